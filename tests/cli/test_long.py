"""What takes long: Ctrl-C, and tables longer than one would hold in memory."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mercer as library


def start(*arguments, cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE):
    return subprocess.Popen(
        [sys.executable, "-m", "mercer.cli", *map(str, arguments)],
        cwd=cwd,
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_work(process, seconds):
    """Wait until a process has computed for some seconds more: on a busy machine those of the clock say little."""
    path = Path(f"/proc/{process.pid}/stat")

    def used():
        fields = path.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    if not path.exists():
        time.sleep(seconds)
        return
    end = used() + seconds
    while used() < end and process.poll() is None:
        time.sleep(0.05)


# -- Ctrl-C -----------------------------------------------------------------------------------------------


def test_ctrl_c_keeps_the_best_so_far(tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(4000, 16)).round(4)
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(16)])
    table["y"] = np.where(np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + random.normal(0, 0.5, 4000) > 0, "in", "out")
    table.to_csv(tmp_path / "data.csv", index=False)
    process = start("fit", "data.csv", "-y", "y", "--search-rows", "3500", cwd=tmp_path)
    for line in process.stdout:
        if line.startswith("Search"):
            break
    wait_for_work(process, 0.5)
    process.send_signal(signal.SIGINT)
    rest, said = process.communicate(timeout=100)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert "Kernel" in rest
    model = library.load(tmp_path / "data.mercer")
    assert library.io.facts(tmp_path / "data.mercer")["interrupted"]
    assert (model.predict(table.drop(columns="y")) == table["y"]).mean() > 0.52  # after little of the search
    assert "This is the best so far" in rest


def test_ctrl_c_before_there_is_anything(tmp_path):
    process = start("fit", "-", "-y", "y", cwd=tmp_path, stdin=subprocess.PIPE)
    process.stdin.write("a,y\n" + "1,2\n" * 40_000)  # more than a pipe holds: it reads, and waits for more
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert out == ""
    assert said.strip() == "mercer: interrupted before it was done; no file is left half written."
    assert list(tmp_path.iterdir()) == []


# -- many rows --------------------------------------------------------------------------------------------


def peak(*arguments, cwd, stdin=None):
    """Run a command; return its largest resident set in megabytes, which the system keeps of every process."""
    with open(cwd / "out.csv", "w") as out:
        process = start(*arguments, cwd=cwd, stdin=stdin or subprocess.DEVNULL, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, process.stderr.read()
    process.stderr.close()
    process.returncode = 0
    return usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def long_table(path, source, rows):
    """Write a table again and again."""
    head, *lines = source.read_text().splitlines(keepends=True)
    with open(path, "w") as file:
        file.write(head)
        for _ in range(rows // len(lines)):
            file.writelines(lines)
        file.writelines(lines[: rows % len(lines)])


def streams(data, model, tmp_path, rows, more):
    """Predicting many rows takes at most `more` megabytes beyond predicting one piece of them."""
    long_table(tmp_path / "piece.csv", data / "new.csv", 20_000)
    long_table(tmp_path / "long.csv", data / "new.csv", rows)
    one = peak("predict", model, "piece.csv", cwd=tmp_path)
    many = peak("predict", model, "long.csv", cwd=tmp_path)
    assert many < one + more
    with open(tmp_path / "out.csv") as file:
        lines = file.readlines()
    assert len(lines) == rows + 1
    found = {f"{float(line):.6f}" for line in lines[1:]}
    assert len(found) <= 60  # the same rows have the same predictions, in whichever piece they are
    return lines


def test_a_hundred_thousand_rows_stream(data, spent, tmp_path):
    streams(data, spent[0], tmp_path, 100_000, more=60)


@pytest.mark.long
def test_a_million_rows_stream(data, spent, tmp_path):
    lines = streams(data, spent[0], tmp_path, 1_000_000, more=60)
    assert sum(map(sys.getsizeof, lines)) > 60 * 2**20  # holding the predictions alone would not have gone unnoticed
    with subprocess.Popen(["gzip", "-1", "-c", "long.csv"], cwd=tmp_path, stdout=subprocess.PIPE) as packed:
        assert peak("predict", spent[0], "-", cwd=tmp_path, stdin=packed.stdout) < 1000
    assert json.dumps((tmp_path / "out.csv").read_text().splitlines(keepends=True)[:100]) == json.dumps(lines[:100])
