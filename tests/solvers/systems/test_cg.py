"""Conjugate gradients: many columns, rounding, and matrices that are not positive."""

import numpy as np
import pytest

from mercer import RBF, Gram, Laplacian
from mercer.gram.matrix import KernelMatrix
from mercer.solvers.systems.cg import Indefinite, Refinement, iterate, krylov, refine

RNG = np.random.default_rng(0)


def plain(V, columns):
    return V


def never(*_):
    return None


def test_as_many_steps_as_different_eigenvalues():
    values = np.array([1.0, 2.0, 5.0])[RNG.integers(0, 3, 60)]
    steps, B, A = [], RNG.standard_normal((60, 2)), np.zeros((60, 2))
    lengths = np.linalg.norm(B, axis=0)

    def multiply(V, columns):
        steps.append(len(columns))
        return values[:, None] * V

    assert iterate(multiply, plain, B, A, 1e-10 * lengths, np.arange(2), never) is None
    assert len(steps) <= 4
    assert np.allclose(A, B / values[:, None])


def test_columns_that_are_done_drop_out():
    widths, B = [], RNG.standard_normal((60, 2))
    d = np.linspace(1, 100, 60)
    B[:, 0] = np.eye(60)[3]  # an eigenvector: one step

    def multiply(V, columns):
        widths.append(list(columns))
        return d[:, None] * V

    A = np.zeros((60, 5))
    iterate(multiply, plain, B, A, np.array([1e-8, 1e-8]), np.array([1, 4]), never)
    assert widths[0] == [1, 4]
    assert widths[1:] == [[4]] * (len(widths) - 1)
    assert np.allclose(A[:, [1, 4]], B / d[:, None])
    assert not A[:, [0, 2, 3]].any()


def test_a_negative_direction_is_told():
    with pytest.raises(Indefinite, match="not positive definite"):
        iterate(lambda V, _: -V, plain, np.ones((3, 1)), np.zeros((3, 1)), np.array([1e-9]), np.arange(1), never)


def test_float32_is_corrected_to_any_tolerance():
    X = RNG.standard_normal((300, 3))
    gram = Gram(RBF(scale=1.0), X)
    Y, shift = RNG.standard_normal((300, 2)), np.full((300, 2), 0.05)
    matrix = KernelMatrix(gram)
    assert matrix.single
    course = Refinement(np.zeros((300, 2)), np.full(2, np.inf))
    assert refine(matrix, shift, Y, course, 1e-12, lambda single: plain, never) == "converged"
    assert course.single
    assert len(course.history) > 2  # float32 alone does not go so far
    rest = Y - gram.dense() @ course.A - 0.05 * course.A
    assert np.all(np.linalg.norm(rest, axis=0) / np.linalg.norm(Y, axis=0) < 2e-12)
    assert np.allclose(course.rest, rest, atol=1e-12)


def test_gives_up_float32_where_it_does_not_help():
    X = 1e6 + RNG.standard_normal((100, 2))  # so far out that float32 loses the distances
    gram = Gram(Laplacian(scale=1.0), X)
    matrix = KernelMatrix(gram)
    matrix.single = True
    inverse = np.linalg.inv(gram.dense() + 1e-6 * np.eye(100))
    Y = RNG.standard_normal((100, 1))
    course = Refinement(np.zeros((100, 1)), np.full(1, np.inf))
    tries = []

    def precondition(single):
        tries.append(single)
        return lambda V, _: inverse @ V

    assert refine(matrix, np.full((100, 1), 1e-6), Y, course, 1e-9, precondition, never) == "converged"
    assert tries[0]
    assert not course.single


def test_says_when_rounding_ends_it():
    matrix = KernelMatrix(Gram(Laplacian(scale=1.0), RNG.standard_normal((50, 2))))
    course = Refinement(np.zeros((50, 1)), np.full(1, np.inf), single=False)
    Y = RNG.standard_normal((50, 1))
    stopped = refine(matrix, np.zeros((50, 1)), Y, course, 1e-30, lambda _: plain, never)
    assert stopped.startswith("rounding errors")
    assert course.residual < 1e-11


def test_what_the_listener_says_ends_it():
    matrix = KernelMatrix(Gram(RBF(scale=1.0), RNG.standard_normal((50, 2))))
    course = Refinement(np.zeros((50, 1)), np.full(1, np.inf))
    seen = []

    def watch(iterations, residual, columns):
        seen.append((iterations, residual, columns))
        return "enough" if iterations == 3 else None

    assert refine(matrix, np.full((50, 1), 1e-3), np.ones((50, 1)), course, 1e-12, lambda _: plain, watch) == "enough"
    assert course.iterations == 3 == len(seen)
    assert seen[0][2].tolist() == [0]


# -- One Krylov space solves for every shift ---------------------------------------------------------------


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
