"""Piecewise linear losses through the dual of support vector machines."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import conic
from mercer.gram import Gram
from mercer.kernels import RBF
from mercer.losses import Absolute, EpsilonInsensitive, Hinge, PerceptronLoss, Pinball
from mercer.solvers.control import Control
from mercer.solvers.representer.boxed import dual_of, solve_boxed
from mercer.solvers.run import Run

LOSSES = [Absolute(), Pinball(0.2), EpsilonInsensitive(0.3), Hinge(), PerceptronLoss()]


def run(loss, X, y, weights, intercept, strength, tol=1e-9, start=None):
    boxed = dual_of(Gram(RBF(1.0), X), y, loss, weights, intercept, strength, start)
    return solve_boxed(boxed, Run(control := Control(tol=tol)), control), boxed.dual


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@settings(max_examples=20)
@given(
    seed=st.integers(0, 10**6),
    strength=st.sampled_from([1e-2, 1.0, 30.0]),
    size=st.sampled_from([1e-9, 1.0, 1e9]),
    intercept=st.booleans(),
)
def test_objectives_are_those_of_the_definition(loss, seed, strength, size, intercept):
    X, y = conic.draw(loss, seed, 15)
    if loss.target == "real":
        y = size * y
        strength = strength / size
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, 15)
    point, _ = run(loss, X, y, weights, intercept, strength)
    K = np.asarray(Gram(RBF(1.0), X).dense())
    v = K @ point.a + point.b
    primal = weights @ loss.value(y, v) + 0.5 * strength * point.a @ K @ point.a
    u = -strength * point.a
    scaled = np.clip(u / weights, *_range(loss, y))
    dual = -weights @ loss.conjugate(y, scaled) - 0.5 * u @ K @ u / strength
    assert point.primal == pytest.approx(primal, rel=1e-7, abs=1e-12)
    assert point.primal - point.gap == pytest.approx(dual, rel=1e-7, abs=1e-9 * max(primal, 1e-12))
    assert point.stopped == "converged"
    if intercept:
        assert abs(point.a.sum()) <= 1e-9 * np.abs(point.a).sum() + 1e-300


def _range(loss, y):
    box = loss.box(y)
    return -np.asarray(box.upper), np.asarray(box.lower)


@pytest.mark.parametrize("loss", LOSSES[:4], ids=repr)
@pytest.mark.parametrize("intercept", [True, False])
def test_any_start_is_made_feasible(loss, intercept):
    X, y = conic.draw(loss, 0, 20)
    start = 100 * np.random.default_rng(0).normal(size=20)
    cold, _ = run(loss, X, y, np.ones(20), intercept, 0.1)
    warm, dual = run(loss, X, y, np.ones(20), intercept, 0.1, start=start)
    assert warm.primal == pytest.approx(cold.primal, rel=1e-8)
    assert (dual.plus <= dual.upper).all()
    assert (dual.minus <= dual.lower).all()
    if intercept:
        assert abs((dual.plus - dual.minus).sum()) < 1e-9


@pytest.mark.parametrize("loss", LOSSES[:3], ids=repr)
def test_truths_far_from_0_lose_no_digits(loss):
    X, y = conic.draw(loss, 0, 20)
    y = np.round(y, 6)
    near, _ = run(loss, X, y, np.ones(20), True, 1e-3)
    far, _ = run(loss, X, y + 2.0**26, np.ones(20), True, 1e-3)
    np.testing.assert_allclose(far.a, near.a, atol=1e-2)
    assert far.b - near.b == pytest.approx(2.0**26, abs=1e-4)
    assert far.stopped == "converged"


def test_the_history_tells_the_primal():
    X, y = conic.draw(Hinge(), 0, 60)
    boxed = dual_of(Gram(RBF(0.3), X), y, Hinge(), np.ones(60), True, 1e-2)
    course = Run(Control(tol=1e-6))
    point = solve_boxed(boxed, course, course.control)
    assert course.history[-1][1] == pytest.approx(point.primal, rel=1e-5)
