"""Ctrl-C at any moment of a command: it ends cleanly, and its outputs are all old or all new."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

# As the script of an installed package starts it. The mark says that `main` listens to Ctrl-C and goes on to load
# the commands: before it, Python itself answers.
PROGRAM = """
import sys
from mercer.cli import main

class Mark:
    def find_spec(self, name, *rest):
        if name == "mercer.cli.commands":
            print("started", flush=True)

sys.meta_path.insert(0, Mark())
sys.exit(main())
"""
COMMANDS = {
    "fit": ("fit", "data.csv", "-y", "y", "-k", "RBF", "--out", "new.mercer", "--report", "new.html"),
    "predict": ("predict", "old.mercer", "long.csv", "--out", "predicted.csv", "--force"),
    "score": ("score", "old.mercer", "long.csv"),
    "verify": ("verify", "old.mercer", "data.csv"),
}
OUTPUTS = {"fit": ("new.mercer", "new.html"), "predict": ("predicted.csv",)}


def start(folder, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )


@pytest.fixture(scope="module")
def folder(server, tmp_path_factory):
    """Tables, a model and a report."""
    made = tmp_path_factory.mktemp("commands")
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 4)).round(4)
    table = pd.DataFrame(X, columns=list("abcd"))
    table["y"] = (np.sin(X[:, 0]) + X[:, 1] + random.normal(0, 0.1, 120)).round(4)
    table.to_csv(made / "data.csv", index=False)
    pd.concat([table] * 250).to_csv(made / "long.csv", index=False)
    fit = ("fit", "data.csv", "-y", "y", "-k", "RBF(2)", "--out", "old.mercer", "--report", "old.html")
    assert server.run(*fit, cwd=made).returncode == 0
    return made


def run(folder, *arguments):
    began = time.perf_counter()
    process = start(folder, *arguments)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    return time.perf_counter() - began


def reset(folder, command):
    """Put old outputs there; return their bytes."""
    old = {"new.mercer": "old.mercer", "new.html": "old.html", "predicted.csv": "data.csv"}
    for name in OUTPUTS.get(command, ()):
        (folder / name).write_bytes((folder / old[name]).read_bytes())
    return contents(folder, command)


def contents(folder, command):
    return [(folder / name).read_bytes() for name in OUTPUTS.get(command, ())]


def interrupted(folder, command, delay):
    """Run a command, press Ctrl-C after a delay, and say what is wrong with how it ended; '' if nothing is."""
    before = reset(folder, command)
    process = start(folder, *COMMANDS[command])
    assert process.stdout.readline() == "started\n"
    time.sleep(delay)
    if process.poll() is None:
        os.kill(process.pid, signal.SIGINT)
    try:
        _, said = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return "does not end"
    changed = [new != old for new, old in zip(contents(folder, command), before, strict=True)]
    wrong = [
        (process.returncode not in (0, 130), f"exit code {process.returncode}: {said}"),
        ("Traceback" in said or "Exception ignored" in said, said),
        (len(set(changed)) > 1, f"changed: {changed}"),
        (any(folder.glob(".mercer-*.tmp")), "drafts are left"),
    ]
    return "; ".join(what for bad, what in wrong if bad)


def interrupts(folder, number, seed, spans):
    """Interrupt the commands in turn, each at moments drawn from its span; return what went wrong."""
    random = np.random.default_rng(seed)
    found = []
    for i in range(number):
        command = list(COMMANDS)[i % len(COMMANDS)]
        delay = random.uniform(0.0, spans[command])
        wrong = interrupted(folder, command, delay)
        if wrong:
            found.append(f"{command} after {delay:.2f} s: {wrong}")
    sys.stdout.write("\n".join([f"{number} interrupts: {len(found)} failures", *found, ""]))
    return found


def test_ctrl_c_at_some_moments_ends_and_leaves_outputs_all_old_or_all_new(folder):
    # About what each takes where nothing else runs: where it takes longer, the moments are among its first.
    assert interrupts(folder, len(COMMANDS), 0, dict.fromkeys(COMMANDS, 1.0)) == []


@pytest.mark.long
def test_ctrl_c_at_a_hundred_moments(folder):
    spans = {}
    for command in COMMANDS:
        reset(folder, command)
        spans[command] = run(folder, *COMMANDS[command])
    assert interrupts(folder, 100, 1, spans) == []


def test_ctrl_c_while_modules_are_loaded_is_one_sentence(folder):
    for delay in (0.0, 0.2):
        process = start(folder, "show", "old.mercer")
        assert process.stdout.readline() == "started\n"
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode in (0, 130), said
        assert said in ("", "mercer: interrupted before it was done; no file is left half written.\n")


def test_ctrl_c_in_the_report_keeps_the_model_with_a_short_report(folder, tmp_path):
    for name in ("data.csv", "old.mercer"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    slow = "import mercer.report.page as page, time; page._sections = lambda *given: (print('report', flush=True), "
    slow += "time.sleep(60)); "
    process = subprocess.Popen(
        [sys.executable, "-c", slow + PROGRAM, *COMMANDS["fit"]],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stdout:
        if line == "report\n":
            break
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "interrupted: the report tells only what the search and the fit have found" in said
    import mercer

    assert mercer.io.facts(tmp_path / "new.mercer")["interrupted"]
    page = (tmp_path / "new.html").read_text(encoding="utf-8")
    assert "Search" in page
    assert "Influential rows" not in page
