"""Pegasos against its definition, and against the optimum that Clarabel finds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import referee
from mercer.gram import Gram
from mercer.kernels import RBF, Linear
from mercer.solvers.control import Control
from mercer.solvers.online.pegasos import pegasos
from mercer.solvers.online.perceptron import Coefficients, Vector


def draw(seed, n=80, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)


def by_hand(X, y, lam, batch, epochs, project, seed=None):
    """The algorithm as it is printed; yields every iterate."""
    n = len(y)
    w, t = np.zeros(X.shape[1]), 0
    rng = np.random.default_rng(seed)
    for _ in range(epochs):
        order = np.arange(n) if seed is None else rng.permutation(n)
        k = n / -(-n // batch)
        for start in range(0, n, batch):
            rows = order[start : start + batch]
            t += 1
            eta = 1 / (lam * t)
            hit = rows[y[rows] * (X[rows] @ w) < 1]
            w = (1 - eta * lam) * w + eta / k * (y[hit] @ X[hit])
            if project and np.linalg.norm(w) > lam**-0.5:
                w = w * lam**-0.5 / np.linalg.norm(w)
            yield w


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    batch=st.sampled_from([1, 3, 40, 80, 500]),
    project=st.booleans(),
    average=st.booleans(),
    shuffle=st.booleans(),
    lam=st.sampled_from([1e-3, 0.1, 2.0]),
)
def test_the_algorithm_as_printed(seed, batch, project, average, shuffle, lam):
    X, y = draw(seed)
    shuffle = shuffle and batch < 80
    iterates = np.array(list(by_hand(X, y, lam, min(batch, 80), 4, project, seed if shuffle else None)))
    w = iterates.mean(axis=0) if average else iterates[-1]
    options = {"batch": batch, "project": project, "average": average, "max_epochs": 4}
    for form in (
        Vector(X, False),
        Vector(sparse.csr_array(X), False),
        Coefficients(Gram(Linear(), X), False),
    ):
        random = np.random.default_rng(seed) if shuffle else None
        done = pegasos(form, y, lam, random=random, control=Control(tol=-1.0), **options)
        assert X.T @ done.coefficients == pytest.approx(w, rel=1e-7, abs=1e-7 * lam**-0.5)
        f = X @ w
        assert done.certificate.primal == pytest.approx(lam / 2 * w @ w + np.maximum(0, 1 - y * f).mean(), rel=1e-6)
        assert done.certificate.iterations == len(iterates)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("batch", [1, 10])
def test_the_gap_is_real_and_closes(batch, average, constant):
    X, y = draw(1, 150)
    lam, K = 0.05, RBF(1.5)(X) + constant
    best = lam * referee.solve(referee.no_offset(K, y, 1 / (lam * 150))).dual
    done = pegasos(
        Coefficients(Gram(RBF(1.5), X), constant),
        y,
        lam,
        batch=batch,
        average=average,
        max_epochs=200,
        random=np.random.default_rng(0),
        control=Control(tol=1e-3),
    )
    assert len(done.history) <= 200
    for look in done.history:
        assert look.dual <= best * (1 + 1e-7)
        assert look.primal >= best * (1 - 1e-7)
    assert done.history[-1].primal <= best * (1.1 if average else 1.02)
    assert done.certificate.relative_gap < (0.3 if average else 0.05)
    assert (y * done.coefficients >= -1e-12).all()
    if not average:  # whole passes end in the dual's box
        assert (y * done.coefficients <= (1 + 1e-9) / (lam * 150)).all()


def test_subgradient_descent_comes_down():
    X, y = draw(2)
    lam = 0.5
    best = lam * referee.solve(referee.no_offset(X @ X.T, y, 1 / (lam * 80))).dual
    done = pegasos(Vector(X, False), y, lam, batch=80, max_epochs=2000, control=Control(tol=1e-3))
    assert done.certificate.solver == "subgradient descent"
    assert done.certificate.primal == pytest.approx(best, rel=2e-3)
    assert done.history[-1].step == done.history[-1].epoch


def test_looks_can_be_rare():
    X, y = draw(3)
    options = {"max_epochs": 20, "control": Control(tol=1e-12)}
    looks = pegasos(Vector(X, False), y, 0.1, evaluate="log", **options).history
    assert [look.epoch for look in looks] == [1, 2, 4, 8, 16, 20]
    every = pegasos(Vector(X, False), y, 0.1, **options).history
    assert [look.epoch for look in every] == list(range(1, 21))
    assert [look.primal for look in every if look.epoch in (1, 2, 4, 8, 16, 20)] == [look.primal for look in looks]


def test_limits_and_listeners():
    X, y = draw(3)
    done = pegasos(Vector(X, False), y, 0.1, control=Control(tol=1e-12, max_iter=100))
    assert done.certificate.stopped == "max_iter=100 reached"
    seen = []
    control = Control(tol=1e-12, report=lambda p: seen.append(p) or len(seen) == 3)
    assert pegasos(Vector(X, False), y, 0.1, control=control).certificate.stopped == "stopped by the callback"
    assert pegasos(Vector(X, False), y, 0.1, max_epochs=2).certificate.stopped == "max_epochs=2 reached"


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_any_scale_stays_finite(scale):
    X, y = draw(4)
    for project in (False, True):
        done = pegasos(Vector(scale * X, True), y, 1e-6, project=project, max_epochs=5)
        assert np.isfinite([done.certificate.primal, done.certificate.dual]).all()
        assert done.certificate.gap >= -1e-9 * abs(done.certificate.primal)
