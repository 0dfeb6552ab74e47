"""Low-rank parts of the kernel matrix as preconditioners."""

import numpy as np
import pytest

from mercer import RBF, Gram, Laplacian
from mercer.gram.factor import PivotedCholesky
from mercer.gram.matrix import KernelMatrix
from mercer.solvers.systems.preconditioners.low_rank import LowRank

X = np.random.default_rng(0).standard_normal((300, 3))


def grown(gram, rank, single=False, seed=0):
    factor = PivotedCholesky(KernelMatrix(gram), rank, single, seed, spare=8)
    while factor.rank < rank and not factor.exhausted:
        factor.grow(min(40, rank - factor.rank))
    return LowRank(factor)


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("rows", [None, np.arange(7, 200, 2)], ids=["all", "some"])
def test_preconditions_exactly_what_it_approximates(single, rows):
    rng = np.random.default_rng(1)
    p = grown(Gram(RBF(scale=1.5), X), 50, single)
    R = p.factor.R.astype(float) if rows is None else p.factor.R[:, rows].astype(float)
    n = R.shape[1]
    V = rng.standard_normal((n, 2)) * np.array([1e-60, 1e60])
    for shift in (np.full(n, 0.1), rng.uniform(0.1, 2.0, n)):
        expected = np.linalg.solve(R.T @ R + np.diag(shift), V)
        everyone = np.full(300, np.inf)
        everyone[slice(None) if rows is None else rows] = shift
        found = p.inverse(everyone, rows)(V)
        assert np.allclose(
            found / np.abs(V).max(axis=0), expected / np.abs(V).max(axis=0), atol=1e-4 if single else 1e-11
        )


def test_grows_between_uses():
    p = grown(Gram(RBF(scale=1.5), X), 30)
    p.inverse(np.full(300, 0.1))
    p = LowRank(PivotedCholesky(KernelMatrix(Gram(RBF(scale=1.5), X)), 60, False))
    V = np.ones((300, 1))
    for _ in range(3):
        p.factor.grow(20)
        expected = np.linalg.solve(p.factor.R.T @ p.factor.R + 0.1 * np.eye(300), V)
        assert np.allclose(p.inverse(np.full(300, 0.1))(V), expected, atol=1e-10)


def test_no_rank_is_the_diagonal():
    p = LowRank(PivotedCholesky(KernelMatrix(Gram(RBF(), X)), 10, False))
    assert np.allclose(p.inverse(np.full(300, 4.0))(np.ones((300, 1))), 0.25)


@pytest.mark.parametrize("single", [True, False])
def test_learns_from_products_what_it_has_missed(single):
    K = Gram(Laplacian(scale=2.0), X).dense()
    p = grown(Gram(Laplacian(scale=2.0), X), 40, single)
    rest = K - p.factor.R.T.astype(float) @ p.factor.R
    W = np.linalg.eigh(rest)[1][:, -6:] @ np.random.default_rng(2).standard_normal((6, 5))
    assert p.learn(W, K @ W) == 5
    assert p.factor.rank == 45
    left = K - p.factor.R.T.astype(float) @ p.factor.R
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
    found = p.inverse(shift)(V)
    assert np.allclose(found[rows], p.inverse(shift, rows)(V[rows]))
    assert not np.delete(found, rows, axis=0).any()


@pytest.mark.parametrize("single", [True, False])
def test_only_what_has_changed_is_weighted_again(single):
    rng = np.random.default_rng(4)
    p = LowRank(PivotedCholesky(KernelMatrix(Gram(RBF(scale=1.5), X)), 60, single, spare=5))
    K = Gram(RBF(scale=1.5), X).dense()
    shift, V = rng.uniform(0.1, 2.0, 300), rng.standard_normal((300, 2))
    for change in ("grow", "few", "learn", "many", "none", "off", "grow", "on"):
        if change == "grow":
            p.factor.grow(20)
        elif change == "learn":
            W = rng.standard_normal((300, 3))
            assert p.learn(W, K @ W) > 0
        else:
            count = {"few": 30, "many": 280, "none": 0, "off": 40, "on": 300}[change]
            some = rng.choice(300, count, replace=False)
            shift[some] = np.inf if change == "off" else rng.uniform(0.1, 2.0, count)
        part = np.flatnonzero(np.isfinite(shift))
        R = p.factor.R[:, part].astype(float)
        expected = np.linalg.solve(R.T @ R + np.diag(shift[part]), V[part])
        assert np.allclose(p.inverse(shift)(V)[part], expected, atol=1e-4 if single else 1e-10), change
        assert np.allclose(p.inverse(shift, part)(V[part]), expected, atol=1e-4 if single else 1e-10)


def test_weights_that_are_nearly_right_stay():
    rng = np.random.default_rng(5)
    p = grown(Gram(RBF(scale=1.5), X), 40)
    R, V = p.factor.R, rng.standard_normal((300, 1))
    first = rng.uniform(0.1, 2.0, 300)
    second = first * np.where(np.arange(300) < 200, rng.uniform(0.95, 1.05, 300), 4.0)
    p.inverse(first)
    found = p.inverse(second, slack=0.1)(V)
    mixed = np.where(np.arange(300) < 200, first, second)
    assert np.allclose(found, np.linalg.solve(R.T @ R + np.diag(mixed), V), atol=1e-10)
    exact = p.inverse(second)(V)
    assert np.allclose(exact, np.linalg.solve(R.T @ R + np.diag(second), V), atol=1e-10)
