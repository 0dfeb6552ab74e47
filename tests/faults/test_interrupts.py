"""Ctrl-C during a fit: a model that says it was interrupted, or KeyboardInterrupt, and nothing else."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

SECONDS = 60.0  # after which a fit that was interrupted counts as one that never ends
KINDS = {
    "GaussianProcessRegressor(1.0 * RBF([1.0] * 5), n_restarts_optimizer=2)": "3000, t",
    "GaussianProcessRegressor(1.0 * RBF(1.0), optimizer=None, noise=0.1)": "5000, t",
    "KernelRidge(1e-4, kernel='rbf', solver='cholesky')": "5000, t",
    "SVC(C=1e4)": "5000, c",
    "SVC(C=1e3, probability=True)": "3000, c",
    "SVR(C=1e4, epsilon=0.01)": "4000, t",
    "NuSVC(nu=0.2)": "5000, c",
    "LinearSVC(C=1e6, tol=1e-9, multi_class='crammer_singer')": "50000, t.round()",
    "KernelMachine(loss='huber', penalty=1e-4)": "4000, t",
    "KernelMachine(loss='hinge', penalty=1e-2, solver='proximal')": "3000, c",
    "KernelLogisticRegression(C=1e5)": "5000, c",
    "KernelQuantileRegressor(quantiles=[0.1, 0.5, 0.9], C=100.0)": "3000, t",
    "KernelKMeans(8, kernel='rbf', n_init=50)": "4000, None",
    "Pegasos(1e-5, 'rbf', tol=1e-6)": "4000, c",
}
PROGRAM = """
import os, signal, sys, warnings
import numpy as np
from mercer import *

def data(n, target):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    t = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n)
    return X, {"t": t, "c": t + 0.5 * rng.normal(size=n) > 0, "t.round()": t.round(), "None": None}[target]

def fit(kind, n, target):
    seen = []
    def handler(*_):
        seen.append("signal")
        raise KeyboardInterrupt
    signal.signal(signal.SIGINT, handler)
    warnings.simplefilter("ignore")
    model = eval(kind)
    X, y = data(int(n), target)
    names = set(vars(model))
    print("fitting", os.getpid(), flush=True)
    try:
        model.fit(X, y)
        search = "GaussianProcess" in kind  # of which the certificate is not that of the search
        stopped = getattr(getattr(model, "certificate_", None), "stopped", "converged")
        assert not (search and seen) or stopped == "interrupted", stopped
        good = np.isfinite(np.asarray(model.predict(X[:5]), dtype=float)).all()
        print("fitted", good, stopped, flush=True)
    except KeyboardInterrupt:
        print("interrupted", set(vars(model)) == names, flush=True)

for line in sys.stdin:
    child = os.fork()
    if not child:
        fit(*line.strip().split("; "))
        os._exit(0)
    os.waitpid(child, 0)
    print("over", flush=True)
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """A process that has the library loaded and forks one for each fit; what these complain of is in a file."""
    errors = tmp_path_factory.mktemp("interrupts") / "errors"
    with open(errors, "w") as said:
        made = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True
        )
    yield made, errors
    made.stdin.close()
    made.wait(timeout=SECONDS)


def send(number: signal.Signals, pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended already
        os.kill(pid, number)


def interrupted(loaded, kind: str, after: float) -> str:
    """Interrupt a fit so many seconds after it began; return what is wrong with how it ends, "" if nothing is."""
    program, errors = loaded
    program.stdin.write("; ".join([kind, *KINDS[kind].split(", ")]) + "\n")
    program.stdin.flush()
    said, pid = program.stdout.readline().split()
    assert said == "fitting"
    time.sleep(after)
    send(signal.SIGINT, int(pid))
    guard = threading.Timer(SECONDS, send, (signal.SIGKILL, int(pid)))
    guard.start()
    line = program.stdout.readline().split()
    over = line == ["over"] or program.stdout.readline() == "over\n"
    guard.cancel()
    if over and line[:2] in (["fitted", "True"], ["interrupted", "True"]):
        return ""
    return f"{kind} after {after:.2f} s: {' '.join(line)} {errors.read_text()[-500:]}"


def faults(loaded, count: int, seed: int, latest: float) -> list[str]:
    """Interrupt fits of different kinds, at moments up to the latest, in seconds; return what is wrong."""
    rng = random.Random(seed)
    kinds = [k for _ in range(-(-count // len(KINDS))) for k in rng.sample(sorted(KINDS), len(KINDS))][:count]
    return [what for kind in kinds if (what := interrupted(loaded, kind, rng.uniform(0.05, latest)))]


def test_interrupted_fits_end_in_a_whole_model_or_in_none(loaded):
    assert faults(loaded, 6, seed=0, latest=0.7) == []


def test_an_interrupted_search_of_a_gaussian_process_says_so(loaded):
    assert interrupted(loaded, next(iter(KINDS)), 0.3) == ""


@pytest.mark.long
def test_many_interrupted_fits_end_in_a_whole_model_or_in_none(loaded, capsys):
    found = faults(loaded, 100, seed=1, latest=3.0)
    with capsys.disabled():
        print(f"\n100 interrupts: {len(found)} failures")  # noqa: T201
    assert found == []
