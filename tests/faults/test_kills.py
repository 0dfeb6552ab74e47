"""Fits that are killed at a random moment and resumed: they end as if nothing had been, and nothing is left behind."""

import os
import random
import time
from functools import partial

import numpy as np
import pytest

from children import Child
from mercer import SVC, SVR, KernelLogisticRegression, KernelMachine, KernelRidge
from mercer.estimators.regression import base as representer
from mercer.estimators.svm import machine as base
from mercer.losses import Norm
from mercer.solvers import Control

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on this system")

N = 400
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4))
REAL = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * RNG.normal(size=N)
LABELS = np.where(REAL > 0, 1, -1)
APART = np.where(X[:, 0] > 0, 1, -1)
MODELS = {
    "SVC by decomposition": (SVC(C=100.0, tol=1e-6, budget="500 kB"), LABELS),
    "SVR by decomposition": (SVR(C=10.0, tol=1e-6, budget="500 kB"), REAL),
    "hard margin": (SVC(C=np.inf, tol=1e-6, gamma=0.1), APART),
    "ridge by conjugate gradients": (KernelRidge(alpha=1e-3, kernel="rbf", solver="cg", residual=1e-8), REAL),
    "logistic": (KernelLogisticRegression(C=100.0, tol=1e-8), LABELS),
    "a norm as the penalty": (KernelMachine(loss="huber", penalty=Norm(0.5), tol=1e-6), REAL),
}


@pytest.fixture(autouse=True)
def _written_at_every_step(monkeypatch):
    for module in (base, representer):
        monkeypatch.setattr(module, "Control", partial(Control, every=0.0))


def fit(name, path):
    """Return what a fit claims, whether that is so, and its values."""
    model, y = MODELS[name]
    model.set_params(checkpoint=path).fit(X, y)
    claim = model.certificate_
    values = getattr(model, "decision_function", model.predict)(X)
    return claim.primal, claim.dual, claim.converged, claim.verify(X, y).converged, values


def failures_of_kills(kills, folder, seed=0):
    """Kill fits of each model in turn and resume them; return what went wrong, and how many could be resumed."""
    rng, failures, whole, resumable = random.Random(seed), [], {}, 0
    for number in range(kills):
        name = list(MODELS)[number % len(MODELS)]
        path = folder / f"{number}" / "fit.npz"
        path.parent.mkdir()
        if name not in whole:
            begun = time.perf_counter()
            whole[name] = (*Child(fit, name, path).answer()[0], time.perf_counter() - begun)
        primal, dual, _, _, values, seconds = whole[name]
        child = Child(fit, name, path)
        time.sleep(rng.uniform(0.0, seconds))
        child.kill()
        left = sorted(os.listdir(path.parent))
        resumable += any(file.startswith("fit.npz") for file in left)
        try:
            resumed, said = Child(fit, name, path).answer()
            assert resumed[2], "it has not converged"
            assert resumed[3], "the certificate is not confirmed"
            width = primal - dual + resumed[0] - resumed[1] + 1e-9 * abs(primal)
            assert abs(resumed[0] - primal) <= width, f"the objective is {resumed[0]!r}, not {primal!r}"
            assert np.abs(resumed[4] - values).max() <= 0.02, f"values differ by {np.abs(resumed[4] - values).max()}"
            assert not said, said
            assert not os.listdir(path.parent), f"{os.listdir(path.parent)} are left"
        except AssertionError as problem:
            failures.append(f"{name}, killed with {left} there: {problem}")
    return failures, resumable


@pytest.mark.parametrize("kills", [6, pytest.param(120, marks=pytest.mark.long)])
def test_a_killed_fit_goes_on_and_ends_as_one_that_was_not(tmp_path, kills):
    failures, resumable = failures_of_kills(kills, tmp_path)
    print(f"\n{kills} kills, {resumable} of them with a checkpoint there: {len(failures)} failures")  # noqa: T201
    assert not failures


def test_a_fit_goes_on_from_where_it_was_killed(tmp_path):
    path = tmp_path / "fit.npz"
    child = Child(fit, "SVR by decomposition", path)
    deadline, coefficients = time.monotonic() + 60, np.zeros(N)
    while not coefficients.any() and time.monotonic() < deadline:
        if path.exists():
            with np.load(path) as written:  # never half of one
                coefficients = written["plus"] - written["minus"]
    child.kill()
    with np.load(path) as written:
        coefficients = written["plus"] - written["minus"]
    model = SVR(C=10.0, tol=1e-6, budget="500 kB", checkpoint=path, max_iter=0)
    with pytest.warns(UserWarning, match="max_iter=0 reached"):
        model.fit(X, REAL)
    np.testing.assert_array_equal(model.support_, np.flatnonzero(coefficients))
    np.testing.assert_allclose(model.dual_coef_[0], coefficients[model.support_])
