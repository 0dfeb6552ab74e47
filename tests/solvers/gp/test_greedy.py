"""Rows of a pivoted Cholesky factor: they reproduce the matrix at their pivots, and what they leave is known."""

import numpy as np
import pytest

from mercer.gram import Gram
from mercer.gram.products import Products
from mercer.kernels import RBF, Linear, Matern
from mercer.solvers.gp.posterior import Greedy

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3))


def covered(kernel, block, floor, most=300):
    cover = Greedy(Products(Gram(kernel, X)), most)
    while cover.left.max() > floor:
        cover.add(*cover.choose(block, floor))
    return cover


@pytest.mark.parametrize("block", [40, 300])
@pytest.mark.parametrize("kernel", [RBF(scale=2.0), Matern(nu=1.5, scale=3.0), Linear()], ids=str)
def test_what_is_left_is_below_the_floor_and_known(kernel, block):
    cover = covered(kernel, block, 1e-6)
    K = kernel(X)
    rest = K - cover.R.T @ cover.R
    assert len(set(cover.pivots)) == cover.rank
    assert np.abs(rest[cover.pivots]).max() < 1e-10
    assert rest.diagonal().max() < 1e-6 + 1e-10
    np.testing.assert_allclose(cover.left, rest.diagonal(), atol=1e-10)
    assert cover.trace == pytest.approx(np.trace(rest), rel=1e-3, abs=1e-9)
    at = cover.R[:, cover.pivots].T
    np.testing.assert_allclose(np.tril(at) @ np.tril(at).T, K[np.ix_(cover.pivots, cover.pivots)], atol=1e-9)


def test_no_more_pivots_than_the_rank():
    cover = covered(Linear(), 50, 1e-9)
    assert cover.rank == 3
    assert len(cover.choose(50, 0.0)[0]) == 0  # the rest is rounding


def test_not_many_more_pivots_than_eigenvalues_above_the_floor():
    cover = covered(RBF(scale=2.0), 60, 1e-6)
    values = np.linalg.eigvalsh(RBF(scale=2.0)(X))[::-1]
    needed = int(np.flatnonzero(np.cumsum(values[::-1])[::-1] > cover.trace)[-1]) + 1  # by the best of all factors
    assert cover.rank <= 1.5 * needed


def test_points_without_a_norm_are_no_pivots():
    Z = np.vstack([np.zeros((5, 2)), np.eye(2)])
    cover = Greedy(Products(Gram(Linear(), Z)), 7)
    pivots, L = cover.choose(7, 0.0)
    assert sorted(pivots) == [5, 6]
    cover.add(pivots, L)
    assert cover.trace == 0
    assert len(cover.choose(7, 0.0)[0]) == 0
