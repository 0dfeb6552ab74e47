"""The built page, and node to run its program: both are asked for by `make lab`, not by the library."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import mercer

PAGE = Path(mercer.__file__).parent / "lab" / "lab.html"


@pytest.fixture(scope="session")
def page():
    if not PAGE.exists():
        pytest.skip("there is no built page; run make lab")
    return PAGE


@pytest.fixture(scope="session")
def ask(page):
    """Return a function that has the page's program answer questions, all in one process of node."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node to run the page's program")

    def answers(questions):
        done = subprocess.run(
            [node, str(Path(__file__).with_name("run.mjs")), str(page)],
            input=json.dumps(questions),
            capture_output=True,
            encoding="utf-8",
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return answers
