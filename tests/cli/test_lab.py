import webbrowser

import pytest
from typer.testing import CliRunner

from mercer.cli import demo
from mercer.cli.commands import app

PAGE = '<head><meta name="generator" content="mercer lab"></head>'


@pytest.fixture
def built(tmp_path, monkeypatch):
    page = tmp_path / "built.html"
    page.write_text(PAGE, encoding="utf-8")
    monkeypatch.setattr(demo, "LAB", page)
    return page


def lab(*arguments):
    return CliRunner().invoke(app, ["lab", *map(str, arguments)])


def test_the_page_is_opened(built, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda uri: opened.append(uri) or True)
    done = lab()
    assert done.exit_code == 0
    assert opened == [built.as_uri()]
    assert done.output.split() == ["The", "lab", "is", str(built)]


def test_the_page_is_written_and_nothing_opened(built, monkeypatch, tmp_path):
    monkeypatch.setattr(webbrowser, "open", lambda uri: pytest.fail("a browser was opened"))
    copy = tmp_path / "copy.html"
    for _ in range(2):  # its own page it replaces without being asked
        assert lab("--write", copy).exit_code == 0
        assert copy.read_text(encoding="utf-8") == PAGE


def test_nothing_of_others_is_replaced(built, tmp_path):
    other = tmp_path / "thesis.html"
    other.write_text("chapter one", encoding="utf-8")
    done = lab("--write", other)
    assert done.exit_code == 2
    assert "not known to be mercer's" in done.stderr
    assert other.read_text(encoding="utf-8") == "chapter one"
    assert lab("--write", other, "--force").exit_code == 0
    assert other.read_text(encoding="utf-8") == PAGE


def test_without_a_page_it_says_how_to_make_one(monkeypatch, tmp_path):
    monkeypatch.setattr(demo, "LAB", tmp_path / "nowhere.html")
    done = lab()
    assert done.exit_code == 2
    assert done.stderr.strip() == "mercer: the page of the lab is not built; run make lab in the sources."


def test_without_a_browser_it_says_where_the_page_is(built, monkeypatch):
    monkeypatch.setattr(webbrowser, "open", lambda uri: False)
    done = lab()
    assert done.exit_code == 2
    assert f"no browser could be opened; the page is {built}." in " ".join(done.stderr.split())
