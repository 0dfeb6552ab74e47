"""What the README, the documentation and the examples show is what happens."""

import doctest
import importlib
import re
import runpy
import shlex
from pathlib import Path
from types import FunctionType

import matplotlib.pyplot as plt
import pytest
import typer
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

import mercer
from mercer.cli.commands import app
from mercer.kernels import Kernel

ROOT = Path(__file__).parents[1]
PAGES = [path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if path.exists()]
TALKS = [path for path in PAGES if ">>>" not in path.read_text(encoding="utf-8")]  # and none beside a wheel
PAGES = [path for path in PAGES if path not in TALKS]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LECTURES = sorted((ROOT / "docs" / "lectures").glob("*.py"))
CATALOGUE = {"K": 11, "F": 5, "M": 16}  # statements of the notes by their numbers; S, the thought experiment, has none
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.stem)
def test_pages(path):
    done = doctest.testfile(str(path), module_relative=False, optionflags=FLAGS)
    assert done.attempted > 5
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
    plt.close("all")
    with threadpool_limits(1):  # small matrices, which threads of BLAS beside other tests would only delay
        made = runpy.run_path(str(path)).values()
    own = {id(figure) for figure in (getattr(thing, "figure_", thing) for thing in made) if isinstance(figure, Figure)}
    assert 2 <= len(own | {id(plt.figure(number)) for number in plt.get_fignums()}) <= 4
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


@pytest.mark.skipif(not (ROOT / "docs").exists(), reason="there are no documents beside a wheel")
def test_every_public_name_has_a_page_in_the_reference():
    pages = runpy.run_path(str(ROOT / "docs" / "pages.py"))
    written = {}
    for room, names in pages["rooms"]().items():
        page = pages["room_page"](room, names)
        for name in names:
            path = pages["full_name"](room, name)
            assert f"~{path}\n" in page
            assert path in pages["name_page"](room, name)
            thing = pages["thing"](path)
            assert not isinstance(thing, type | FunctionType) or thing.__doc__, f"{path} says nothing of itself"
            written[name, id(thing)] = path
    public = [("mercer", name) for name in mercer.__all__]
    for folder in Path(mercer.__file__).parent.glob("*/__init__.py"):
        module = importlib.import_module(f"mercer.{folder.parent.name}")
        public += [(module.__name__, name) for name in getattr(module, "__all__", ())]
    found = {(module, name): id(getattr(importlib.import_module(module), name)) for module, name in public}
    assert len(found) > 200
    assert [f"{module}.{name}" for (module, name), thing in found.items() if (name, thing) not in written] == []


@pytest.mark.skipif(not (ROOT / "docs").exists(), reason="there are no documents beside a wheel")
def test_the_catalogue_of_the_pages_has_every_kernel_that_is_not_made_of_others():
    page = runpy.run_path(str(ROOT / "docs" / "pages.py"))["catalogue_page"]()
    for name in mercer.__all__:
        kind = getattr(mercer, name)
        if isinstance(kind, type) and issubclass(kind, Kernel) and name not in ("Kernel", "Stationary"):
            assert f"mercer.{name}`" in page or f"``{name}(k" in page


def test_all_python_on_the_pages_is_run():
    for path in (*PAGES, *TALKS):
        text = path.read_text(encoding="utf-8")
        assert all(block.startswith(">>> ") for block in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)), path


def test_the_commands_that_the_pages_show_have_these_options():
    commands = typer.main.get_command(app)
    for path in (*PAGES, *TALKS):
        for line in re.findall(r"^ {4}mercer (\w.*)$", path.read_text(encoding="utf-8"), re.MULTILINE):
            name, *words = shlex.split(line, comments=True)
            command = commands.get_command(None, name)
            assert command is not None, f"{path.name}: there is no command {name}"
            command.make_parser(typer.Context(command)).parse_args(words)
