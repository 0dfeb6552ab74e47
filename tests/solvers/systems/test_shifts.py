"""One Krylov space solves for every shift."""

import numpy as np
import pytest

from mercer.solvers.systems.cg import krylov


def matrix(n, seed=0):
    A = np.random.default_rng(seed).normal(size=(n, n))
    return A @ A.T / n


@pytest.mark.parametrize("n", [1, 7, 60])
def test_every_shift_is_solved(n):
    A, B = matrix(n), np.random.default_rng(1).normal(size=(3, n))
    shifts = np.logspace(-2, 3, 9)
    X, AX, residuals = krylov(lambda V: V @ A, B, shifts, np.ones(9), 1e-10, 200)
    assert residuals.max() <= 1e-10
    for k, shift in enumerate(shifts):
        np.testing.assert_allclose(X[:, k], np.linalg.solve(A + shift * np.eye(n), B.T).T, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(AX, X @ A, rtol=1e-6, atol=1e-7)


def test_inverses_serve_as_well():
    """(A + s) x = b as (1 + (s - m) M) u = b with M = (A + m)^-1 and x = M u, for s on both sides of m and at m."""
    n, m = 40, 0.1
    A, B = matrix(n), np.random.default_rng(1).normal(size=(2, n))
    M, shifts = np.linalg.inv(A + m * np.eye(n)), np.array([1e-3, 0.1, 2.0])
    _, X, residuals = krylov(lambda V: V @ M, B, np.ones(3), shifts - m, 1e-10, 100)
    assert residuals.max() <= 1e-10
    for k, shift in enumerate(shifts):
        np.testing.assert_allclose(X[:, k], np.linalg.solve(A + shift * np.eye(n), B.T).T, rtol=1e-6)


def test_residuals_are_honest_when_steps_are_too_few():
    A, B = matrix(80), np.random.default_rng(1).normal(size=(1, 80))
    X, _, residuals = krylov(lambda V: V @ A, B, np.array([1e-6, 10.0]), np.ones(2), 1e-9, 12)
    left = [np.linalg.norm(B - X[:, k] @ (A + s * np.eye(80))) for k, s in enumerate((1e-6, 10.0))]
    np.testing.assert_allclose(residuals[0], left / np.linalg.norm(B), rtol=1e-4, atol=1e-12)
    assert residuals[0, 0] > 1e-3


def test_nothing_to_solve_for():
    X, _, residuals = krylov(lambda V: V @ np.eye(5), np.zeros((1, 5)), np.ones(2), np.ones(2), 1e-9, 5)
    assert not X.any()
    assert not residuals.any()
