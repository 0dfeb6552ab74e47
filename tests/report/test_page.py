"""The page as a browser takes it: closed tags, nothing fetched, everything escaped, every section there."""

import dataclasses
import os
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from mercer import AutoClassifier, AutoRegressor, auto
from mercer.report import Story, render, write_report
from mercer.report.data import _target
from mercer.report.errors import errors_section
from mercer.report.story import Judged
from report_stories import EVIL, story_of

VOID = {"meta", "br", "hr", "img", "input", "link"}
ALWAYS = {"data", "search", "winner", "errors", "calibration", "learning", "importance", "pictures", "influence"}
ALWAYS |= {"timings", "reproduce"}


class Page(HTMLParser):
    """Which elements there are, and which are not closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.wrong, self.ids, self.links, self.tags, self.words = [], [], [], [], [], []
        self.attributes = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        self._look(attrs)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self._look(attrs)

    def _look(self, attrs):
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src", "xlink:href"):
                self.links.append(value)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        self.words.append(data)


def sections(text):
    return re.findall(r'<section id="(\w+)">', text)


def assert_sound(text):
    page = Page(text)
    assert page.wrong == [] == page.open
    assert len(page.ids) == len(set(page.ids))
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert not {"script", "link", "iframe", "img", "object"} & set(page.tags)
    assert not any(name.startswith("on") for name in page.attributes)
    assert not re.search(r"https?:|@import|url\(|//\w", text)
    assert not re.search(r"\b(nan|inf|None|undefined)\b", " ".join(page.words))
    for drawing in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        root = ElementTree.fromstring(drawing)
        assert not re.search(r'="[^"]*\b(nan|inf)\b', drawing)
        if root.get("aria-hidden") != "true":
            assert root.get("role") == "img"
            assert root.find("title").text
            assert root.find("desc").text
    return page


@pytest.mark.parametrize("kind", ["two", "several", "numbers"])
def test_a_page_is_sound_and_complete(pages, kind):
    text = pages[kind]
    assert_sound(text)
    assert set(sections(text)) >= ALWAYS
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_what_a_metric_has_learned_is_shown_where_there_is_one(pages, learned):
    assert all("metric" not in sections(text) for text in pages.values())
    text = render(learned, 0.0)  # nothing needs to be computed
    assert_sound(text)
    assert "metric" in sections(text)
    assert "<script" not in text


@pytest.mark.parametrize("kind", ["two", "several", "numbers"])
def test_what_users_write_is_text(pages, kind):
    text, page = pages[kind], Page(pages[kind])
    assert "<script" not in text
    assert any(EVIL in words for words in page.words)
    assert "</pre><script" not in text
    assert f"mercer fit 'a.csv' --target '</pre>{EVIL}'" in "".join(page.words)


def test_labels_of_classes_are_text(pages):
    assert "<b>no</b>" not in pages["two"]
    assert "&lt;b&gt;no&lt;/b&gt; &amp; never" in pages["two"]


def test_scores_stand_beside_those_of_others(pages, two):
    rows = re.findall(r'<tr><th scope="row">accuracy</th>(.*?)</tr>', pages["two"])
    assert re.findall(r">([\d.]+)<", rows[0]) == ["0.9", "0.91", "0.8"]


def test_commands_and_programs_can_be_copied(pages, numbers):
    programs = re.findall(r"<pre.*?<code>(.*?)</code></pre>", pages["numbers"], re.DOTALL)
    assert len(programs) == 3
    assert numbers.python.replace("<", "&lt;").replace(">", "&gt;").replace("'", "&#39;") in programs


@pytest.mark.parametrize("kind", ["two", "several", "numbers"])
def test_without_a_test_set_the_cross_validation_judges(request, kind):
    story = dataclasses.replace(request.getfixturevalue(kind), test=None, scores={})
    text = render(story, 60.0)
    assert_sound(text)
    expected = ALWAYS - ({"calibration"} if kind == "numbers" else set())
    assert expected <= set(sections(text))
    assert "held out by the cross-validation" in text
    assert "scores" not in sections(text)


def test_few_rows_and_one_column():
    frame = pd.DataFrame({"only": np.arange(14.0)})
    model = AutoRegressor(cv=2, kernels=["RBF(1.0)"]).fit(frame, np.arange(14.0) ** 2)
    text = render(story_of(model, frame, np.arange(14.0) ** 2, test=(frame[:1], np.array([0.0]))), 0.5)
    assert_sound(text)
    assert {"data", "winner", "errors", "importance", "influence"} <= set(sections(text))


def test_few_rows_of_two_classes():
    frame = pd.DataFrame({"a": [0.0, 1, 2, 3, 4, 5, 6, 7], "b": list("xyxyxyxy")})
    y = np.array([False, False, False, False, True, True, True, True])
    model = AutoClassifier(cv=2, kernels=["RBF(1.0)"]).fit(frame, y)
    assert_sound(render(story_of(model, frame, y), 0.5))


def test_many_columns_and_rows_as_an_array():
    X = np.random.default_rng(0).normal(size=(120, 200))
    y = (X[:, 3] + X[:, 4] > 0).astype(int)
    model = AutoClassifier(cv=2, kernels=["0.01 * Linear()"]).fit(X, y)
    story = Story("Wide", "wide.npy", "", "", model, (X, y))
    text = render(story, 1.0)
    assert_sound(text)
    assert text.count("<summary>180 more</summary>") == 1
    assert "184 columns that matter less are not shown" in text
    assert "x3" in re.search(r'aria-labelledby="shift-title shift-desc".*?</svg>', text, re.DOTALL)[0]


def test_many_classes():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 2)), columns=["p", "q"])
    y = np.array([f"class {i:02d}" for i in (np.arange(400) % 20)])
    X["p"] += np.arange(400) % 20
    model = AutoClassifier(cv=2, kernels=["RBF(1.0)"]).fit(X, y)
    text = render(story_of(model, X, y), 1.0)
    assert_sound(text)
    assert "4 rarer classes not shown" in text


def test_columns_of_every_kind():
    rng = np.random.default_rng(0)
    n = 90
    frame = pd.DataFrame(
        {
            0: pd.array(rng.integers(0, 9, n), dtype="Int64"),
            "when": pd.date_range("2024-01-01", periods=n, freq="31h"),
            "flag": pd.array(rng.random(n) < 0.5, dtype="boolean"),
            "sort": pd.Categorical(rng.choice(["a", "b", "c"], n)),
            "price": [f"${x:,.2f}" for x in rng.uniform(1, 5000, n)],
            "name": [f"person number {i}" for i in range(n)],
        }
    )
    frame.loc[3, 0] = pd.NA
    frame.loc[4, "when"] = pd.NaT
    frame.loc[5, "sort"] = None
    y = frame[0].fillna(4).to_numpy(dtype=float) + (frame["sort"] == "b").to_numpy() + rng.normal(size=n) * 0.1
    for kind, target in ((AutoRegressor, y), (AutoClassifier, y > 4)):
        model = kind(cv=2, kernels=["RBF(2.0)"]).fit(frame[:70], target[:70])
        text = render(story_of(model, frame[:70], target[:70], test=(frame[70:], target[70:])), 60.0)
        assert_sound(text)
        assert set(sections(text)) >= ALWAYS


def test_the_file_is_replaced_only_by_a_complete_one(tmp_path, two, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")
    monkeypatch.setattr(os, "replace", lambda *names: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_report(path, two, effort=0.2)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    monkeypatch.undo()
    assert write_report(str(path), two, effort=0.2) == path
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_wrong_stories_and_efforts_are_refused(two):
    frame, y = two.train
    with pytest.raises(ValueError, match="train has 200 rows and 199 targets"):
        dataclasses.replace(two, train=(frame, y[:-1]))
    with pytest.raises(ValueError, match="train has no rows"):
        dataclasses.replace(two, train=(frame[:0], y[:0]))
    with pytest.raises(ValueError, match="effort=-1 must be a number of seconds >= 0"):
        render(two, -1)


# -- the limits of float64 --------------------------------------------------------------------------------


def test_targets_near_the_smallest_numbers_are_told():
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(90, 3)), columns=list("abc"))
    y = (X["a"].to_numpy() + 0.3 * X["b"].to_numpy()) * 1e-307
    model = auto(X, y, cv=3, kernels=["RBF(2.0)"])
    story = Story("Limits", "x.csv", "", "", model, (X[:70], y[:70]), test=(X[70:], y[70:]))
    assert_finite(render(story, effort=0.5))


def test_targets_at_the_limits_of_float64_are_drawn():
    y = np.concatenate([1.7e308 * np.linspace(-1, 1, 60), [1.0]])
    judged = Judged("61 rows", np.arange(61), y, 0.9 * y[::-1])
    drawn = [_target(y, None), *errors_section(judged, Regression(), np.random.default_rng(0)).blocks[0].figures]
    for figure in drawn:
        assert_finite(figure.title + figure.svg)
        assert figure.svg.count("10³⁰⁸") > 2  # ticks


class Regression:
    classifies = False


def assert_finite(page):
    for word in ("∞", "nan", "inf", " none"):
        assert not re.search(rf"(?<![a-z]){word}(?![a-z])", re.sub(r"(?s)<style>.*?</style>", "", page)), word


def test_columns_near_the_limits_of_float64_are_drawn():
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(90, 3)), columns=list("abc"))
    y = X["a"].to_numpy() + 0.3 * X["b"].to_numpy()
    X["a"] *= 1.7e308 / X["a"].abs().max()
    X["b"] *= 1e-307
    X.loc[7, "c"] = 1e300
    with np.errstate(over="raise", invalid="raise"):
        model = auto(X, y, cv=3, kernels=["RBF(2.0)"])
        page = render(Story("Limits", "x.csv", "", "", model, (X, y)), effort=60.0)
    assert "Pictures of the prediction" in page


def test_a_page_without_effort_tells_what_is_known(two):
    page = render(two, 0)
    assert "Search" in page
    assert "Learning curve" not in page
    assert "Influential rows" not in page
