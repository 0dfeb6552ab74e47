"""The low-rank part of polynomials: its parts against other ways to say the same, and what it is good for."""

import math
from itertools import combinations_with_replacement

import numpy as np
import pytest
from numpy.polynomial import hermite_e

from mercer import RBF, Gram, Polynomial
from mercer.gram.factor import PivotedCholesky
from mercer.gram.matrix import KernelMatrix
from mercer.solvers import Control
from mercer.solvers.systems.preconditioners import choice
from mercer.solvers.systems.preconditioners.low_rank import LowRank
from mercer.solvers.systems.preconditioners.polynomials import (
    Polynomials,
    _best,
    _order,
    _Tree,
    refine_leading,
    replace_rows,
)
from mercer.solvers.systems.system import Systems

KERNEL = Polynomial(8, 0.0, 1.0)


def points(n, d=20, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d)) / np.sqrt(np.arange(1, d + 1))
    return X / np.linalg.norm(X, axis=1)[:, None]


def grown(matrix, rows):
    factor = PivotedCholesky(matrix, rows, True)
    while factor.rank < rows:
        factor.grow(rows - factor.rank)
    return factor


def powers(indices):
    return tuple((j, indices.count(j)) for j in sorted(set(indices)))


# -- which polynomials, and their values ----------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 7, 40, 10_000])
def test_the_largest_products_are_found(count):
    logs = np.log([0.5, 0.25, 0.15, 0.1])
    weights = {0: -4.0, 1: 0.5, 3: 2.0, 4: 1.0}
    every = [
        (weight + sum(logs[list(indices)]), powers(indices))
        for order, weight in weights.items()
        for indices in combinations_with_replacement(range(4), order)
    ]
    found = _best(logs, weights, count)
    wanted = sorted(every, reverse=True)[:count]
    np.testing.assert_allclose([log for log, _ in found], [log for log, _ in wanted], atol=1e-12)
    assert len({a for _, a in found}) == len(wanted)
    assert {a for _, a in found} <= {a for _, a in every}


def test_equal_variances_are_no_reason_to_list_them_all():
    found = _best(np.full(64, -4.0), dict.fromkeys(range(9), 0.0), 100)
    assert len(found) == 100
    assert sum(_order(a) <= 1 for _, a in found) == 65


@pytest.mark.parametrize("complete", [True, False])
def test_values_are_products_of_hermite_polynomials(complete):
    wanted = [(), ((0, 3), (2, 1)), ((1, 8),), ((0, 1), (1, 1), (3, 2)), ((2, 1),)]
    tree = _Tree(wanted, complete)
    assert set(wanted) <= set(tree.polynomials) if complete else wanted == tree.polynomials
    U = np.random.default_rng(0).normal(size=(50, 4))
    for a, row in zip(tree.polynomials, tree.values(U), strict=True):
        expected = np.ones(50)
        for j, k in a:
            expected *= hermite_e.hermeval(U[:, j], np.eye(9)[k]) / math.sqrt(math.factorial(k))
        np.testing.assert_allclose(row, expected, rtol=1e-5, atol=1e-5)


def test_all_divisors_come_first():
    tree = _Tree([((0, 2), (3, 1))])
    assert tree.polynomials[0] == ()
    assert len(tree.polynomials) == 6
    assert [_order(a) for a in tree.polynomials] == sorted(_order(a) for a in tree.polynomials)


# -- the low-rank part ----------------------------------------------------------------------------------


def test_an_even_kernel_is_seen_by_even_polynomials():
    found = Polynomials(KernelMatrix(Gram(KERNEL, points(6_000))), 100)
    assert {_order(a) for a in found._tree.polynomials} == {0, 2, 4}
    assert 80 < found.rank <= 100


def test_a_kernel_of_few_monomials_is_one_of_few_polynomials():
    X = np.random.default_rng(0).normal(size=(5_000, 4))
    matrix = KernelMatrix(Gram(Polynomial(2, 1.0, 0.1), X))
    found = Polynomials(matrix, 60)
    assert found.rank == 15
    factor = PivotedCholesky(matrix, 60, True)
    replace_rows(factor, found.rank, found.rows)
    K = Polynomial(2, 1.0, 0.1)(X[:300])
    R = factor.R[:, :300].astype(float)
    assert np.linalg.norm(K - R.T @ R) < 0.2 * np.linalg.norm(K)
    refine_leading(factor, factor.matrix, 15)  # after which nothing is left
    R = factor.R[:, :300].astype(float)
    np.testing.assert_allclose(R.T @ R, K, atol=1e-4 * K.max())
    np.testing.assert_allclose(factor.left, 0.0, atol=1e-4 * K.max())


def test_it_shows_more_than_pivots_of_a_kernel_that_is_spread():
    matrix = KernelMatrix(Gram(KERNEL, points(6_000)))
    assert Polynomials(matrix, 300).leaves(grown(matrix, 300)) < 0.5
    narrow = KernelMatrix(Gram(RBF(0.02), points(3_000, 2)))  # and less of one that is anything but a polynomial
    assert Polynomials(narrow, 50).leaves(grown(narrow, 400)) > 0.9


HARD = {
    "constant": np.ones((2_000, 3)),
    "zeros": np.zeros((2_000, 3)),
    "repeated": np.repeat(points(20), 100, axis=0),
    "far out": np.random.default_rng(0).standard_cauchy((2_000, 5)),
    "huge": 1e12 * np.random.default_rng(0).normal(size=(2_000, 3)),
    "tiny": 1e-12 * np.random.default_rng(0).normal(size=(2_000, 3)),
    "one feature": np.random.default_rng(0).normal(size=(2_000, 1)),
}


@pytest.mark.parametrize("X", HARD.values(), ids=HARD)
def test_any_points_are_ordinary(X):
    matrix = KernelMatrix(Gram(RBF(1.0), X))
    found = Polynomials(matrix, 40)
    factor = PivotedCholesky(matrix, 40, True)
    replace_rows(factor, found.rank, found.rows)
    refine_leading(factor, factor.matrix, min(found.rank, 16))
    assert np.isfinite(factor.R).all()
    assert (factor.left >= 0).all()
    assert factor.left.max() <= 1.0


# -- in the place of pivots -----------------------------------------------------------------------------


def test_no_point_has_more_than_the_kernel_gives_it():
    X = points(500)
    factor = PivotedCholesky(KernelMatrix(Gram(KERNEL, X)), 4, True)
    long = np.random.default_rng(0).normal(size=(3, 500)).astype(np.float32)
    replace_rows(factor, 3, lambda some: long[:, some])
    squares = (long**2).sum(axis=0)
    np.testing.assert_allclose((factor.R**2).sum(axis=0), np.minimum(squares, 1.0), rtol=1e-5)
    np.testing.assert_allclose(factor.left, np.maximum(1.0 - squares, 0.0), atol=1e-5)
    assert factor.exhausted
    assert factor.rank == 3


def test_leading_rows_are_made_exact():
    X = points(800)
    K = KERNEL(X)
    factor = PivotedCholesky(KernelMatrix(Gram(KERNEL, X)), 30, True)
    rows = (0.2 * np.random.default_rng(0).normal(size=(20, 800)) / math.sqrt(20)).astype(np.float32)
    replace_rows(factor, 20, lambda some: rows[:, some])
    refine_leading(factor, factor.matrix, 6)
    R, W = factor.R.astype(float), rows[:6].T.astype(float)
    np.testing.assert_allclose(R.T @ (R @ W), K @ W, atol=1e-4 * np.abs(K @ W).max())
    np.testing.assert_allclose(factor.left, 1.0 - (R**2).sum(axis=0), atol=1e-5)


def test_inverses_follow_the_rows_that_took_their_place():
    X = points(400)
    factor = PivotedCholesky(KernelMatrix(Gram(KERNEL, X)), 30, True)
    factor.grow(30)
    V = np.random.default_rng(1).normal(size=(400, 1))
    shift = np.full(400, 0.5)
    rows = (np.random.default_rng(0).normal(size=(10, 400)) / 10).astype(np.float32)
    replace_rows(factor, 10, lambda some: rows[:, some])
    expected = np.linalg.solve(rows.T.astype(float) @ rows + np.diag(shift), V)
    np.testing.assert_allclose(LowRank(factor).inverse(shift)(V), expected, rtol=1e-4, atol=1e-5)
    refine_leading(factor, factor.matrix, 4)
    R = factor.R.astype(float)
    expected = np.linalg.solve(R.T @ R + np.diag(shift), V)
    np.testing.assert_allclose(LowRank(factor).inverse(shift)(V), expected, rtol=1e-4, atol=1e-5)


# -- where it is used -----------------------------------------------------------------------------------


SMALL = {
    "_NEIGHBOUR_POINTS": 2_000,
    "_POLYNOMIAL_POINTS": 2_000,
    "_ROWS_BESIDE_NEIGHBOURS": 60,
    "_SPARE_ROWS": 20,
    "_POINTS_PER_POLYNOMIAL": 16,
}


@pytest.fixture
def crowded(monkeypatch):
    """Let 4,000 points be many."""
    for name, value in SMALL.items():
        monkeypatch.setattr(choice, name, value)
    monkeypatch.setattr(choice, "fits_half", lambda n, budget: False)


def test_equations_take_fewer_steps(crowded, monkeypatch):
    X = points(4_000)
    Y = X[:, 0] * X[:, 1] + 0.1 * np.random.default_rng(1).normal(size=4_000)
    steps = []
    exact = np.linalg.solve(KERNEL(X) + 0.1 * np.eye(4_000), Y)
    for used in (True, False):
        if not used:
            monkeypatch.setattr(Polynomials, "applies_to", lambda matrix: False)
        answer = Systems(Gram(KERNEL, X, budget="200 MB"), Control(), method="cg").solve(0.1, Y, tol=1e-6)
        assert answer.stopped == "converged"
        np.testing.assert_allclose(answer.A, exact, rtol=1e-3, atol=1e-5)
        steps.append(answer.iterations)
    assert steps[0] <= 0.8 * steps[1], steps


def test_sparse_points_have_no_principal_axes(crowded):
    from scipy import sparse

    X = sparse.random(3_000, 500, 0.01, random_state=0, format="csr")
    assert not Polynomials.applies_to(KernelMatrix(Gram(RBF(1.0), X)))
