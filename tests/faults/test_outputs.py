"""Disks that are full or read-only: one sentence, exit code 2, old outputs as they were, no drafts."""

import os
import resource
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

PREDICTIONS = ("predicted.csv", "predicted.tsv", "predicted.csv.gz", "predicted.parquet", "predicted.feather")
COMMAND = "from mercer.cli import main; main()"
SAVE = """
import mercer, sys
try:
    mercer.save(mercer.load(sys.argv[1]), sys.argv[2])
except OSError as error:
    sys.exit(f"mercer: {error}")
"""
# Loaded before the rights to read the modules may be gone.
NOBODY = """
import codecs, os, sys
import mercer.cli.commands, mercer.cli.shared.training, mercer.io, mercer.report, mercer.selection, mercer.tables
model = mercer.load(sys.argv[1]) if len(sys.argv) == 3 else None
codecs.lookup("ascii")
if os.getuid() == 0:
    os.setuid(65534)
"""


def run(folder, program, *arguments, limit=None, stdout=subprocess.PIPE):
    """Run a program that may write no file longer than `limit` bytes."""
    return subprocess.run(
        [sys.executable, "-B", "-c", program, *map(str, arguments)],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        preexec_fn=limit and (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))),
        text=True,
        timeout=200,
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A table, a model and a report."""
    folder = tmp_path_factory.mktemp("outputs")
    random = np.random.default_rng(0)
    X = random.normal(size=(2000, 3))
    table = pd.DataFrame(X, columns=list("abc")).assign(y=X[:, 0] + random.normal(0, 0.1, 2000))
    table.to_csv(folder / "new.csv", index=False)
    table[:120].to_csv(folder / "data.csv", index=False)
    done = run(folder, COMMAND, *fit("old"))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def folder(made, tmp_path):
    for path in made.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def fit(name):
    return "fit", "data.csv", "-y", "y", "-k", "RBF(2)", "--out", f"{name}.mercer", "--report", f"{name}.html"


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refused(done, before, folder, code=2):
    """Check that a run has ended in a sentence and changed nothing; return the sentence."""
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("mercer: ")
    assert done.stderr.count("\n") == 1, done.stderr
    assert code != 2 or ".mercer-" not in done.stderr  # a command names the file, not its draft
    assert contents(folder) == before
    return done.stderr


@pytest.mark.parametrize("limit", [1000, 40_000])
@pytest.mark.parametrize("name", ["old", "other"])
def test_a_disk_that_is_full_leaves_the_old_model_and_report(folder, limit, name):
    before = contents(folder)
    said = refused(run(folder, COMMAND, *fit(name), limit=limit), before, folder)
    assert f"{name}.mercer and {name}.html could not be written: File too large" in said


@pytest.mark.parametrize("name", PREDICTIONS)
def test_a_disk_that_is_full_leaves_the_old_predictions(folder, name):
    (folder / name).write_text("old")
    before = contents(folder)
    done = run(folder, COMMAND, "predict", "old.mercer", "new.csv", "--out", name, "--force", limit=2000)
    assert f"{name} could not be written: " in refused(done, before, folder)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "command", [("predict", "old.mercer", "new.csv"), ("show", "old.mercer", "--json"), ("kernels",)]
)
def test_standard_output_that_is_full_is_an_error_in_words(folder, command):
    before = contents(folder)
    with open("/dev/full", "w") as full:
        done = run(folder, COMMAND, *command, stdout=full)
    assert "No space left on device" in refused(done, before, folder)


@pytest.mark.parametrize("limit", [1000, 3000])
def test_save_to_a_disk_that_is_full_leaves_the_old_file(folder, limit):
    before = contents(folder)
    said = refused(run(folder, SAVE, "old.mercer", "old.mercer", limit=limit), before, folder, code=1)
    assert "File too large" in said


@pytest.fixture
def locked(folder):
    folder.chmod(0o555)
    if os.getuid() == 0:
        for parent in folder.parents[:3]:  # pytest keeps its folders to itself
            if parent.stat().st_uid == 0 and parent.name.startswith(("pytest-", "popen-")):
                parent.chmod(0o755)
    yield folder
    folder.chmod(0o755)


@pytest.mark.parametrize("command", [fit("old"), fit("other"), ("predict", "old.mercer", "new.csv", "--out", "p.csv")])
def test_a_folder_that_is_read_only_is_said_before_the_work(locked, command):
    before = contents(locked)
    done = run(locked, NOBODY + COMMAND, *command)
    assert "nothing may be written into the folder" in refused(done, before, locked)
    assert done.stdout == ""


def test_save_into_a_folder_that_is_read_only_leaves_the_old_file(locked):
    before = contents(locked)
    program = NOBODY + SAVE.replace("mercer.load(sys.argv[1])", "model")
    assert "Permission denied" in refused(run(locked, program, "old.mercer", "old.mercer"), before, locked, code=1)
