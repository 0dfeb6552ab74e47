"""Low-rank factors with random pivots, and equations with them."""

import numpy as np
import pytest

from mercer import RBF, Gram, Laplacian, Linear
from mercer.gram.factor import partial_cholesky
from mercer.gram.products import Products
from mercer.solvers.systems.pivoted import Pivoted

X = np.random.default_rng(0).standard_normal((300, 3))


def grown(gram, rank, single=False, seed=0):
    pivoted = Pivoted(Products(gram), rank, single, seed, spare=8)
    while pivoted.rank < rank and not pivoted.exhausted:
        pivoted.grow(min(40, rank - pivoted.rank))
    return pivoted


@pytest.mark.parametrize("single", [True, False])
def test_what_it_leaves_is_positive_and_known(single):
    gram = Gram(RBF(scale=1.5), X)
    p = grown(gram, 80, single)
    rest = gram.dense() - p.R.T.astype(float) @ p.R
    assert np.linalg.eigvalsh(rest).min() > -(1e-4 if single else 1e-12)
    assert np.allclose(np.diag(rest), p.left, atol=1e-5 if single else 1e-12)
    assert np.isclose(p.trace, np.trace(rest), rtol=1e-2)
    assert 0.3 < p.largest / np.linalg.eigvalsh(rest).max() < 3


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


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("rows", [None, np.arange(7, 200, 2)], ids=["all", "some"])
def test_preconditions_exactly_what_it_approximates(single, rows):
    rng = np.random.default_rng(1)
    p = grown(Gram(RBF(scale=1.5), X), 50, single)
    R = p.R.astype(float) if rows is None else p.R[:, rows].astype(float)
    n = R.shape[1]
    V = rng.standard_normal((n, 2)) * np.array([1e-60, 1e60])
    for shift in (np.full(n, 0.1), rng.uniform(0.1, 2.0, n)):
        expected = np.linalg.solve(R.T @ R + np.diag(shift), V)
        found = p.precondition(shift, rows)(V)
        assert np.allclose(
            found / np.abs(V).max(axis=0), expected / np.abs(V).max(axis=0), atol=1e-4 if single else 1e-11
        )


def test_grows_between_uses():
    p = grown(Gram(RBF(scale=1.5), X), 30)
    p.precondition(np.full(300, 0.1))
    p = Pivoted(Products(Gram(RBF(scale=1.5), X)), 60, False)
    V = np.ones((300, 1))
    for _ in range(3):
        p.grow(20)
        expected = np.linalg.solve(p.R.T @ p.R + 0.1 * np.eye(300), V)
        assert np.allclose(p.precondition(np.full(300, 0.1))(V), expected, atol=1e-10)


def test_no_rank_is_the_diagonal():
    p = Pivoted(Products(Gram(RBF(), X)), 10, False)
    assert np.allclose(p.precondition(np.full(300, 4.0))(np.ones((300, 1))), 0.25)


@pytest.mark.parametrize("single", [True, False])
def test_learns_from_products_what_it_has_missed(single):
    K = Gram(Laplacian(scale=2.0), X).dense()
    p = grown(Gram(Laplacian(scale=2.0), X), 40, single)
    rest = K - p.R.T.astype(float) @ p.R
    W = np.linalg.eigh(rest)[1][:, -6:] @ np.random.default_rng(2).standard_normal((6, 5))
    assert p.learn(W, K @ W) == 5
    assert p.rank == 45
    left = K - p.R.T.astype(float) @ p.R
    assert np.abs(left @ W).max() < (1e-4 if single else 1e-10)
    assert np.linalg.eigvalsh(left).min() > -(1e-4 if single else 1e-12)
    assert np.allclose(np.diag(left), p.left, atol=1e-5 if single else 1e-12)
    assert p.learn(W, K @ W) == 0  # nothing new


def test_points_without_a_finite_shift_take_no_part():
    p = grown(Gram(RBF(scale=1.5), X), 50)
    rows = np.arange(3, 300, 2)
    shift = np.full(300, np.inf)
    shift[rows] = 0.3
    V = np.random.default_rng(3).standard_normal((300, 2))
    found = p.precondition(shift)(V)
    assert np.allclose(found[rows], p.precondition(shift[rows], rows)(V[rows]))
    assert not np.delete(found, rows, axis=0).any()


@pytest.mark.parametrize("single", [True, False])
def test_only_what_has_changed_is_weighted_again(single):
    rng = np.random.default_rng(4)
    p = Pivoted(Products(Gram(RBF(scale=1.5), X)), 60, single, spare=5)
    K = Gram(RBF(scale=1.5), X).dense()
    shift, V = rng.uniform(0.1, 2.0, 300), rng.standard_normal((300, 2))
    for change in ("grow", "few", "learn", "many", "none", "off", "grow", "on"):
        if change == "grow":
            p.grow(20)
        elif change == "learn":
            W = rng.standard_normal((300, 3))
            assert p.learn(W, K @ W) > 0
        else:
            count = {"few": 30, "many": 280, "none": 0, "off": 40, "on": 300}[change]
            some = rng.choice(300, count, replace=False)
            shift[some] = np.inf if change == "off" else rng.uniform(0.1, 2.0, count)
        part = np.flatnonzero(np.isfinite(shift))
        R = p.R[:, part].astype(float)
        expected = np.linalg.solve(R.T @ R + np.diag(shift[part]), V[part])
        assert np.allclose(p.precondition(shift)(V)[part], expected, atol=1e-4 if single else 1e-10), change
        assert np.allclose(p.precondition(shift[part], part)(V[part]), expected, atol=1e-4 if single else 1e-10)


def test_weights_that_are_nearly_right_stay():
    rng = np.random.default_rng(5)
    p = grown(Gram(RBF(scale=1.5), X), 40)
    R, V = p.R, rng.standard_normal((300, 1))
    first = rng.uniform(0.1, 2.0, 300)
    second = first * np.where(np.arange(300) < 200, rng.uniform(0.95, 1.05, 300), 4.0)
    p.precondition(first)
    found = p.precondition(second, slack=0.1)(V)
    mixed = np.where(np.arange(300) < 200, first, second)
    assert np.allclose(found, np.linalg.solve(R.T @ R + np.diag(mixed), V), atol=1e-10)
    exact = p.precondition(second)(V)
    assert np.allclose(exact, np.linalg.solve(R.T @ R + np.diag(second), V), atol=1e-10)
