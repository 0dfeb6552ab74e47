"""The climber: SciPy's L-BFGS-B is the referee."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, rosen, rosen_der

from mercer.solvers.gp.climb import climb


class Negative:
    """Minus a function to be minimised, which counts what it is asked."""

    def __init__(self, f, slopes):
        self.f, self.df, self.values, self.gradients = f, slopes, 0, 0

    def value(self, theta):
        self.theta, self.values = theta.copy(), self.values + 1
        return -self.f(theta)

    def slopes(self):
        self.gradients += 1
        return -np.asarray(self.df(self.theta))


def quadratic(seed, p):
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(p, p))
    B = B @ B.T + 0.1 * np.eye(p)
    top = rng.normal(size=p)
    return (lambda t: 0.5 * (t - top) @ B @ (t - top)), (lambda t: B @ (t - top)), top


def test_rosenbrock():
    hill = Negative(rosen, rosen_der)
    found = climb(hill, np.array([-1.2, 1.0, 0.5]), np.array([[-5.0, 5.0]] * 3), tol=1e-6)
    np.testing.assert_allclose(found.theta, 1.0, atol=1e-5)
    assert found.stopped == "converged"
    assert hill.gradients <= hill.values  # no slope is taken of a step that is refused


@given(st.integers(0, 10_000), st.integers(1, 6))
def test_bounds_are_kept_and_the_top_within_is_found(seed, p):
    f, df, _ = quadratic(seed, p)
    limits = np.array([[-0.5, 0.5]] * p)
    found = climb(Negative(f, df), np.zeros(p), limits, tol=1e-7)
    assert (found.theta >= -0.5).all()
    assert (found.theta <= 0.5).all()
    best = minimize(f, np.zeros(p), jac=df, bounds=limits, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10})
    assert -found.value <= best.fun + 1e-6 * (1 + abs(best.fun))


def test_known_curvature_saves_evaluations():
    f, df, top = quadratic(3, 6)
    limits = np.array([[-50.0, 50.0]] * 6)
    first = Negative(f, df)
    found = climb(first, top + 1.0, limits, tol=1e-8)
    again = Negative(f, df)
    second = climb(again, top - 1.0, limits, curvature=found.curvature, tol=1e-8)
    np.testing.assert_allclose(second.theta, top, atol=1e-6)
    assert again.values < first.values


def test_where_there_is_no_value_is_avoided():
    def f(t):
        return math.inf if t[0] > 1.0 else float((t[0] - 0.9) ** 2)

    found = climb(Negative(f, lambda t: 2 * (t - 0.9)), np.array([-3.0]), np.array([[-10.0, 10.0]]), tol=1e-6)
    assert found.theta[0] == pytest.approx(0.9, abs=1e-5)


def test_a_start_without_value_ends_at_once():
    found = climb(Negative(lambda t: math.inf, lambda t: t), np.zeros(2), np.array([[-1.0, 1.0]] * 2))
    assert found.value == -math.inf
    assert found.steps == 0


def test_no_parameters():
    found = climb(Negative(lambda t: 1.0, lambda t: t), np.zeros(0), np.zeros((0, 2)))
    assert found.value == -1.0


@pytest.mark.parametrize("reason", ["max_iter=2 reached", "time"])
def test_limits_end_the_climb_with_what_is_best(reason):
    hill = Negative(rosen, rosen_der)
    start = np.array([-1.2, 1.0])
    steps = iter([None, None, "time"])
    watch = (lambda: next(steps)) if reason == "time" else (lambda: None)
    found = climb(
        hill, start, np.array([[-5.0, 5.0]] * 2), tol=1e-9, max_iter=50 if reason == "time" else 2, watch=watch
    )
    assert found.stopped == reason
    assert found.steps == 2
    assert found.value > -rosen(start)


def test_wrong_slopes_do_not_lead_astray():
    found = climb(Negative(lambda t: float(t @ t), lambda t: -2 * t), np.array([1.0, 2.0]), np.array([[-9.0, 9.0]] * 2))
    np.testing.assert_array_equal(found.theta, [1.0, 2.0])
