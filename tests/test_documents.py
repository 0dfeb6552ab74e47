"""What the README, the documentation and the examples show is what happens."""

import doctest
import re
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).parents[1]
PAGES = [path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if path.exists()]
PAGES = [path for path in PAGES if path.stem not in ("benchmarks", "design", "lab-notes")]  # and none beside a wheel
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LECTURES = sorted((ROOT / "docs" / "lectures").glob("*.py"))
CATALOGUE = {"K": 11, "F": 5, "M": 16}  # statements of the notes by their numbers; S, the thought experiment, has none
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.stem)
def test_pages(path):
    done = doctest.testfile(str(path), module_relative=False, optionflags=FLAGS)
    assert done.attempted > 10
    assert done.failed == 0


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_run(path, capsys, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    runpy.run_path(str(path))
    shown = capsys.readouterr().out
    sections = re.findall(r"^# ([FKM]\d+)\. ", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(sections) > 3
    for section in sections:  # each prints what it has found
        assert re.search(rf"^{section} ", shown, re.MULTILINE)


@pytest.mark.parametrize("path", LECTURES, ids=lambda p: p.stem)
def test_lectures_are_true(path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    with threadpool_limits(1):  # small matrices, which threads of BLAS beside other tests would only delay
        runpy.run_path(str(path))
    assert 2 <= len(plt.get_fignums()) <= 3
    plt.close("all")


@pytest.mark.skipif(not LECTURES, reason="there are no lectures beside a wheel")
def test_lectures_show_the_whole_catalogue():
    shown = set()
    for path in LECTURES:
        _, statements = path.read_text(encoding="utf-8").rstrip().rsplit("\n# This page shows ", 1)
        for letter, first, _, last in re.findall(r"([KFMS])(\d*)(-[KFM](\d+))?", statements):
            shown |= {f"{letter}{i}" for i in range(int(first), int(last or first) + 1)} if first else {letter}
    assert shown == {f"{letter}{i + 1}" for letter, count in CATALOGUE.items() for i in range(count)} | {"S"}


@pytest.mark.skipif(not (ROOT / "benchmarks").exists(), reason="there are no benchmarks beside a wheel")
def test_the_page_of_figures_shows_what_the_benchmarks_have_kept():
    page = runpy.run_path(str(ROOT / "benchmarks" / "page.py"))
    assert page["PAGE"].read_text() == page["page"]()
