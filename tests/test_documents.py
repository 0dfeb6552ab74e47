"""What the README and the examples show is what happens."""

import doctest
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.skipif(not (ROOT / "README.md").exists(), reason="the tests run without the sources")
def test_the_readme():
    done = doctest.testfile(str(ROOT / "README.md"), module_relative=False, optionflags=FLAGS)
    assert done.attempted > 10
    assert done.failed == 0


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_run(path, capsys):
    runpy.run_path(str(path))
    assert "F5" in capsys.readouterr().out
