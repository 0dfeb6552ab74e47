"""Disks that are full or read-only: one sentence, exit code 2, old outputs as they were, no drafts."""

import codecs
import os
import resource
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import mercer
from children import Child

PREDICTIONS = ("predicted.csv", "predicted.tsv", "predicted.csv.gz", "predicted.parquet", "predicted.feather")
COMMAND = "from mercer.cli import main; main()"


def save(path, limit=None, nobody=False):
    """Load a model and save it where it was, in a child that may not; return the error."""
    model = mercer.load(path)
    sys.dont_write_bytecode = True  # a limit on files would cut that, too
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    if nobody and os.getuid() == 0:
        codecs.lookup("ascii")  # loaded before the rights to read the modules may be gone
        os.setuid(65534)
    try:
        mercer.save(model, path)
    except OSError as error:
        return str(error)
    return ""


@pytest.fixture(scope="module")
def made(tmp_path_factory, server):
    """A table, a model and a report."""
    folder = tmp_path_factory.mktemp("outputs")
    random = np.random.default_rng(0)
    X = random.normal(size=(2000, 3))
    table = pd.DataFrame(X, columns=list("abc")).assign(y=X[:, 0] + random.normal(0, 0.1, 2000))
    table.to_csv(folder / "new.csv", index=False)
    table[:120].to_csv(folder / "data.csv", index=False)
    done = server.run(*fit("old"), cwd=folder)
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


def refused(done, before, folder):
    """Check that a run has ended in a sentence and changed nothing; return the sentence."""
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("mercer: ")
    assert done.stderr.count("\n") == 1, done.stderr
    assert ".mercer-" not in done.stderr  # a command names the file, not its draft
    assert contents(folder) == before
    return done.stderr


@pytest.mark.parametrize("limit", [1000, 40_000])
@pytest.mark.parametrize("name", ["old", "other"])
def test_a_disk_that_is_full_leaves_the_old_model_and_report(server, folder, limit, name):
    before = contents(folder)
    said = refused(server.run(*fit(name), cwd=folder, limit=limit), before, folder)
    assert f"{name}.mercer and {name}.html could not be written: File too large" in said


@pytest.mark.parametrize("name", PREDICTIONS)
def test_a_disk_that_is_full_leaves_the_old_predictions(server, folder, name):
    (folder / name).write_text("old")
    before = contents(folder)
    done = server.run("predict", "old.mercer", "new.csv", "--out", name, "--force", cwd=folder, limit=2000)
    assert f"{name} could not be written: " in refused(done, before, folder)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "command", [("predict", "old.mercer", "new.csv"), ("show", "old.mercer", "--json"), ("kernels",)]
)
def test_standard_output_that_is_full_is_an_error_in_words(server, folder, command):
    before = contents(folder)
    done = server.run(*command, cwd=folder, stdout="/dev/full")
    assert "No space left on device" in refused(done, before, folder)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_nor_does_python_complain_when_it_ends(folder):
    before = contents(folder)
    with open("/dev/full", "w") as full:
        call = [sys.executable, "-c", COMMAND, "kernels"]
        done = subprocess.run(call, cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True, timeout=200)
    assert "No space left on device" in refused(done, before, folder)


@pytest.mark.parametrize("limit", [1000, 3000])
def test_save_to_a_disk_that_is_full_leaves_the_old_file(folder, limit):
    before = contents(folder)
    assert "File too large" in Child(save, folder / "old.mercer", limit).answer()[0]
    assert contents(folder) == before


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
def test_a_folder_that_is_read_only_is_said_before_the_work(server, locked, command):
    before = contents(locked)
    done = server.run(*command, cwd=locked, nobody=True)
    assert "nothing may be written into the folder" in refused(done, before, locked)
    assert done.stdout == ""


def test_save_into_a_folder_that_is_read_only_leaves_the_old_file(locked):
    before = contents(locked)
    assert "Permission denied" in Child(save, locked / "old.mercer", None, True).answer()[0]
    assert contents(locked) == before
