"""Folds on one matrix have the solutions of fits to their own points; a Newton step stays where it must."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import RBF, Gram, _core
from mercer.solvers import Control, SVMDual, solve
from mercer.solvers.dual.shared import SharedMatrix, newton_step


def problem(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)


def terms(y, C):
    return {"linear": -y, "upper": np.where(y > 0, C, 0.0), "lower": np.where(y < 0, C, 0.0)}


@pytest.mark.parametrize(("n", "tol", "most"), [(120, 1e-5, 1e5), (900, 1e-3, 1e3)], ids=["float64", "float32"])
def test_a_path_along_c_solves_each_problem(n, tol, most):
    X, y = problem(n)
    control = Control(tol=tol)
    shared = SharedMatrix(Gram(RBF(1.0), X), control)
    rows = np.flatnonzero(np.arange(n) % 5)
    start = None
    for C in (0.01, 0.3, 10.0, most / 10, most):
        found = shared.solve(rows, terms(y[rows], C), control, start)
        assert found is not None
        solution, values, start = found
        (alone,) = solve([SVMDual(Gram(RBF(1.0), X[rows]), **terms(y[rows], C))], Control(tol=tol))
        assert solution.certificate.dual == pytest.approx(alone.certificate.dual, rel=2 * tol)
        assert solution.certificate.relative_gap <= tol or start.inside
        direct = RBF(1.0)(X, X[rows]) @ solution.coefficients
        np.testing.assert_allclose(values, direct, atol=1e-5 * np.abs(solution.coefficients).sum())
        assert abs(solution.coefficients.sum()) <= 1e-9 * C * n


def test_float32_says_where_it_cannot_know():
    """Values rounded to float32 leave the objective in doubt by about 6e-8 |b|^2, which grows with C.

    Such problems are given back, for the ordinary solver and its float64, and only such.
    """
    X, y = problem(900)
    control = Control(tol=1e-5)
    shared = SharedMatrix(Gram(RBF(1.0), X), control)
    assert shared.values.dtype == np.float32
    for C, known in ((0.3, True), (10.0, True), (1e3, False), (1e5, False)):
        found = shared.solve(np.arange(900), terms(y, C), control)
        assert (found is not None) == known
        (exact,) = solve([SVMDual(Gram(RBF(1.0), X), **terms(y, C))], Control(tol=1e-5, precision="float64"))
        doubt = 6e-8 * (exact.coefficients**2).sum() / abs(exact.certificate.dual)
        assert (doubt <= 0.3e-5) == known


def test_points_left_out_keep_no_coefficient():
    X, y = problem(100)
    rows = np.arange(60)
    _, _, point = SharedMatrix(Gram(RBF(1.0), X), Control()).solve(rows, terms(y[rows], 10.0), Control())
    assert not point.plus[60:].any()
    assert not point.minus[60:].any()


@given(st.integers(2, 25), st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_newton_steps_stay_in_the_box_and_go_down(n, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    K, slope = A @ A.T, rng.normal(size=n)
    low, high = -rng.uniform(0.01, 2.0, n), rng.uniform(0.01, 2.0, n)
    change = newton_step(K, slope, low, high)
    assert (change >= low - 1e-9).all()
    assert (change <= high + 1e-9).all()
    assert abs(change.sum()) <= 1e-6 * max(1.0, np.abs(change).sum())


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_rows_are_added_in_double(dtype):
    K = np.random.default_rng(0).normal(size=(1500, 1500)).astype(dtype)
    at = np.array([3, 700, 701, 1200, 1499], np.int32)
    change, found = np.arange(1.0, 6.0), np.ones(1500)
    _core.add_rows(K, at, change, found)
    np.testing.assert_allclose(found, 1.0 + change @ K[at].astype(np.float64), rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="out of range"):
        _core.add_rows(K, np.array([1500], np.int32), np.ones(1), found)
    with pytest.raises(ValueError, match="not in ascending order"):
        _core.add_rows(K, np.array([5, 5], np.int32), np.ones(2), found)
