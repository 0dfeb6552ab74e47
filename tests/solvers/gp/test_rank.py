"""Variances from a matrix of low rank: the bound holds, and where it is large no certainty is claimed."""

import numpy as np
import pytest

from mercer.gram import Gram
from mercer.kernels import RBF, Matern
from mercer.points import Points
from mercer.solvers.gp import posterior as gp_rank
from mercer.solvers.gp.posterior import LowRank

rng = np.random.default_rng(0)


def exact(kernel, X, T, noise):
    K = kernel(X) + np.diag(np.broadcast_to(noise, len(X)))
    return kernel.diag(T) - np.einsum("ij,ij->j", kernel(X, T), np.linalg.solve(K, kernel(X, T)))


@pytest.mark.parametrize("noise", [0.05, np.linspace(0.02, 0.1, 500)], ids=["one", "each"])
def test_a_smooth_kernel(noise):
    X, T = rng.uniform(-1, 1, (500, 2)), rng.uniform(-1.2, 1.2, (200, 2))
    kernel = 3.0 * RBF(scale=[1.5, 3.0])
    low = LowRank.of(Gram(kernel, X), noise, 125)
    assert low.rank < 125
    found, certain = low.variance(Points(T))
    assert certain.mean() > 0.9
    np.testing.assert_allclose(found[certain], exact(kernel, X, T, noise)[certain], rtol=3e-6)


@pytest.mark.parametrize("amplitude", [1.0, 100.0, 2000.0, 1e4, 1e6, 1e8])
def test_rounding_of_a_large_kernel_is_not_taken_for_what_is_left(amplitude):
    X, T = rng.uniform(0, 1, (2000, 5)), rng.uniform(0, 1, (200, 5))
    kernel = amplitude * RBF(scale=[1.4, 1.8, 4.8, 46.0, 95.0])
    low = LowRank.of(Gram(kernel, X), 0.04, 500)
    assert low is not None or amplitude > 1e4
    if low is not None:
        found, certain = low.variance(Points(T))
        np.testing.assert_allclose(found[certain], exact(kernel, X, T, 0.04)[certain], rtol=2e-5)
        assert certain.mean() > 0.9


def test_what_is_not_certain_is_not_claimed(monkeypatch):
    """With much left out the values are rough; the bound knows."""
    monkeypatch.setattr(gp_rank, "_TRACE_LEFT", 10.0)
    X, T = rng.normal(size=(400, 3)), 2 * rng.normal(size=(300, 3))
    kernel = 1.0 * RBF(scale=2.0)
    low = LowRank.of(Gram(kernel, X), 0.1, 300)
    found, certain = low.variance(Points(T))
    truth = exact(kernel, X, T, 0.1)
    assert np.abs(found / truth - 1).max() > 1e-4
    assert (np.abs(found / truth - 1)[certain] <= 3e-6).all()
    assert certain.mean() < 0.5


@pytest.mark.parametrize(
    ("kernel", "noise"), [(Matern(nu=0.5, scale=1.0), 0.1), (RBF(scale=0.1), 0.1), (RBF(scale=2.0), 1e-14)]
)
def test_a_rough_kernel_has_none(kernel, noise):
    X = rng.normal(size=(400, 3))
    assert LowRank.of(Gram(kernel, X), noise, 100) is None


def test_points_in_float32_and_a_matrix_of_rank_one():
    X = np.ones((300, 2), np.float32)
    kernel = RBF(scale=1.0)
    low = LowRank.of(Gram(kernel, X), 0.1, 75)
    assert low.rank == 1
    found, certain = low.variance(Points(X[:5]))
    np.testing.assert_allclose(found, 1 - 300 / 300.1, rtol=1e-4)
    assert certain.all()
