"""Ctrl-C during a fit: a model that says it was interrupted, or KeyboardInterrupt, and nothing else."""

from __future__ import annotations

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
CHILD = """
import signal, sys, warnings
seen = []
def handler(*_):
    seen.append("signal")
    raise KeyboardInterrupt
signal.signal(signal.SIGINT, handler)
warnings.simplefilter("ignore")
import numpy as np
from mercer import *
def data(n, target):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    t = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n)
    return X, {"t": t, "c": t + 0.5 * rng.normal(size=n) > 0, "t.round()": t.round(), "None": None}[target]
model = eval(sys.argv[1])
n, target = sys.argv[2].split(", ")
X, y = data(int(n), target)
names = set(vars(model))
print("fitting", flush=True)
try:
    model.fit(X, y)
    search = "GaussianProcess" in sys.argv[1]  # of which the certificate is not that of the search
    stopped = getattr(getattr(model, "certificate_", None), "stopped", "converged")
    assert not (search and seen) or stopped == "interrupted", stopped
    good = np.isfinite(np.asarray(model.predict(X[:5]), dtype=float)).all()
    print("fitted", good, stopped, flush=True)
except KeyboardInterrupt:
    print("interrupted", set(vars(model)) == names, flush=True)
"""


def interrupted(kind: str, after: float) -> str:
    """Interrupt a fit so many seconds after it began; return what is wrong with how it ends, "" if nothing is."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, kind, KINDS[kind]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "fitting\n"
    time.sleep(after)
    child.send_signal(signal.SIGINT)
    guard = threading.Timer(SECONDS, child.kill)
    guard.start()
    line = child.stdout.readline().split()
    guard.cancel()
    child.kill()
    errors = child.communicate()[1]
    if line[:2] in (["fitted", "True"], ["interrupted", "True"]):
        return ""
    return f"{kind} after {after:.2f} s: {' '.join(line)} {errors[-500:]}"


def faults(count: int, seed: int, latest: float) -> list[str]:
    """Interrupt fits of different kinds, at moments up to the latest, in seconds; return what is wrong."""
    rng = random.Random(seed)
    kinds = [k for _ in range(-(-count // len(KINDS))) for k in rng.sample(sorted(KINDS), len(KINDS))][:count]
    return [what for kind in kinds if (what := interrupted(kind, rng.uniform(0.05, latest)))]


def test_interrupted_fits_end_in_a_whole_model_or_in_none():
    assert faults(6, seed=0, latest=1.0) == []


def test_an_interrupted_search_of_a_gaussian_process_says_so():
    assert interrupted(next(iter(KINDS)), 0.3) == ""


@pytest.mark.long
def test_many_interrupted_fits_end_in_a_whole_model_or_in_none(capsys):
    found = faults(100, seed=1, latest=3.0)
    with capsys.disabled():
        print(f"\n100 interrupts: {len(found)} failures")  # noqa: T201
    assert found == []
