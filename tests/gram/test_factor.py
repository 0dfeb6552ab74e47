"""Rows of a pivoted Cholesky factor: they reproduce the matrix at their pivots, and what they leave is known."""

import numpy as np
import pytest

from mercer.gram import Gram
from mercer.gram.factor import PivotedCholesky, partial_cholesky
from mercer.gram.matrix import KernelMatrix
from mercer.kernels import RBF, Laplacian, Linear, Matern

X = np.random.default_rng(0).normal(size=(300, 3))

# -- pivots that are drawn ------------------------------------------------------------------------------


def grown(gram, rank, single=False, seed=0):
    factor = PivotedCholesky(KernelMatrix(gram), rank, single, seed)
    while factor.rank < rank and not factor.exhausted:
        factor.grow(min(40, rank - factor.rank))
    return factor


@pytest.mark.parametrize("single", [True, False])
def test_what_it_leaves_is_positive_and_known(single):
    gram = Gram(RBF(scale=1.5), X)
    p = grown(gram, 80, single)
    rest = gram.dense() - p.R.T.astype(float) @ p.R
    assert np.linalg.eigvalsh(rest).min() > -(1e-4 if single else 1e-12)
    assert np.allclose(np.diag(rest), p.left, atol=1e-5 if single else 1e-12)
    assert np.isclose(p.trace, np.trace(rest), rtol=1e-2)
    assert 0.3 < p.largest / np.linalg.eigvalsh(rest).max() < 3


def test_a_factor_that_is_full_grows_no_more():
    p = grown(Gram(RBF(scale=1.5), X), 40)
    assert p.grow(40) == 0
    assert p.exhausted
    assert p.rank == 40


def test_as_good_as_pivots_one_by_one():
    gram = Gram(Laplacian(scale=2.0), X)
    K = gram.dense()
    blocks = [grown(gram, 60, seed=s).trace for s in range(10)]
    singly = [np.trace(K) - np.sum(partial_cholesky(np.diag(K), lambda i: K[:, i], 60, seed=s) ** 2) for s in range(10)]
    assert abs(np.mean(blocks) / np.mean(singly) - 1) < 0.05
    best = np.linalg.eigvalsh(K)[:-60].sum()
    assert best < np.mean(blocks) < 2 * best


def test_stops_at_the_rank_of_the_matrix():
    p = grown(Gram(Linear(), X), 50)
    assert p.rank == 3
    assert p.exhausted
    assert grown(Gram(Linear(), np.zeros((5, 2))), 3).rank == 0
    assert grown(Gram(RBF(), np.ones((50, 2))), 10).rank == 1  # equal points


def test_partial_cholesky_ends_at_the_rank_even_with_duplicates():
    Z = np.repeat(np.random.default_rng(0).standard_normal((20, 3)), 10, axis=0)
    K = RBF(scale=1.0)(Z)
    R = partial_cholesky(np.diag(K), lambda i: K[:, i], 100)
    assert len(R) == 20
    np.testing.assert_allclose(R.T @ R, K, atol=1e-12)


# -- the largest pivots ---------------------------------------------------------------------------------


def covered(kernel, block, floor, most=300):
    factor = PivotedCholesky(KernelMatrix(Gram(kernel, X)), most)
    while factor.left.max() > floor:
        factor.append(*factor.largest_pivots(block, floor))
    return factor


@pytest.mark.parametrize("block", [40, 300])
@pytest.mark.parametrize("kernel", [RBF(scale=2.0), Matern(nu=1.5, scale=3.0), Linear()], ids=str)
def test_what_is_left_is_below_the_floor_and_known(kernel, block):
    factor = covered(kernel, block, 1e-6)
    K = kernel(X)
    rest = K - factor.R.T @ factor.R
    assert len(set(factor.pivots)) == factor.rank
    assert np.abs(rest[factor.pivots]).max() < 1e-10
    assert rest.diagonal().max() < 1e-6 + 1e-10
    np.testing.assert_allclose(factor.left, rest.diagonal(), atol=1e-10)
    assert factor.trace == pytest.approx(np.trace(rest), rel=1e-3, abs=1e-9)
    at = factor.R[:, factor.pivots].T
    np.testing.assert_allclose(np.tril(at) @ np.tril(at).T, K[np.ix_(factor.pivots, factor.pivots)], atol=1e-9)


def test_no_more_pivots_than_the_rank():
    factor = covered(Linear(), 50, 1e-9)
    assert factor.rank == 3
    assert len(factor.largest_pivots(50, 0.0)[0]) == 0  # the rest is rounding


def test_not_many_more_pivots_than_eigenvalues_above_the_floor():
    factor = covered(RBF(scale=2.0), 60, 1e-6)
    values = np.linalg.eigvalsh(RBF(scale=2.0)(X))[::-1]
    needed = int(np.flatnonzero(np.cumsum(values[::-1])[::-1] > factor.trace)[-1]) + 1  # by the best of all factors
    assert factor.rank <= 1.5 * needed


def test_points_without_a_norm_are_no_pivots():
    Z = np.vstack([np.zeros((5, 2)), np.eye(2)])
    factor = PivotedCholesky(KernelMatrix(Gram(Linear(), Z)), 7)
    pivots, L = factor.largest_pivots(7, 0.0)
    assert sorted(pivots) == [5, 6]
    factor.append(pivots, L)
    assert factor.trace == 0
    assert len(factor.largest_pivots(7, 0.0)[0]) == 0
