"""Posterior variances by a factor and by conjugate gradients, against the formula."""

import numpy as np
import pytest

from mercer.gram import Gram
from mercer.kernels import RBF, Matern
from mercer.points import Points
from mercer.solvers.gp import posterior as gp_posterior
from mercer.solvers.gp.likelihood import Evidence
from mercer.solvers.gp.posterior import ByFactor, ByGradients, LowRank, cross

rng = np.random.default_rng(0)
X, T = rng.normal(size=(200, 3)), rng.normal(size=(70, 3))
KERNEL = 2.0 * Matern(nu=1.5, scale=[1.0, 2.0, 3.0])


def covariance(noise):
    K = KERNEL(X) + np.diag(np.broadcast_to(noise, len(X)))
    return KERNEL(T) - KERNEL(T, X) @ np.linalg.solve(K, KERNEL(X, T))


def both(noise):
    factor = Evidence(Points(X), np.zeros((len(X), 1))).factor(KERNEL, noise).values
    return [ByFactor(KERNEL, Points(X), noise, factor), ByGradients(Gram(KERNEL, X), noise)]


@pytest.mark.parametrize("noise", [0.1, np.linspace(0.05, 0.3, len(X))], ids=["one", "each"])
def test_both_ways_are_the_formula(noise, monkeypatch):
    monkeypatch.setattr(gp_posterior, "_TILE", 8 * len(X) * 64)  # more than one tile
    monkeypatch.setattr(gp_posterior, "_COLUMNS", 30)
    expected = covariance(noise)
    for posterior in both(noise):
        np.testing.assert_allclose(posterior.variance(Points(T)), expected.diagonal(), rtol=1e-5)
        np.testing.assert_allclose(posterior.covariance(Points(T)), expected, atol=1e-6)


def test_at_the_training_points_no_variance_is_negative():
    for posterior in both(1e-9)[:1] + both(1e-4):
        assert (posterior.variance(Points(X)) >= 0).all()


def test_conjugate_gradients_never_promise_too_much():
    """What a rough solution is off by makes the variance larger."""
    rough = ByGradients(Gram(KERNEL, X), 0.1)
    exact = covariance(0.1).diagonal()
    assert (rough.variance(Points(T)) >= exact - 1e-12).all()


def test_a_smooth_kernel_goes_through_its_rank(monkeypatch):
    monkeypatch.setattr(gp_posterior, "_TRIANGLE_POINTS", 100)
    kernel = 1.0 * RBF(scale=4.0)
    points = Points(np.linspace(-3, 3, 400)[:, None])
    new = Points(np.linspace(-4, 4, 300)[:, None])
    factor = Evidence(points, np.zeros((400, 1))).factor(kernel, 0.01).values
    posterior = ByFactor(kernel, points, 0.01, factor)
    exact = posterior.exact_variance(new)
    assert posterior.low_rank(10) is None  # a few points are not worth the search
    np.testing.assert_allclose(posterior.variance(new), exact, rtol=1e-5)
    assert posterior.low_rank(300).rank < 50
    tight = ByFactor(kernel, points, 0.01, factor, spare=8 * 400 * 5)
    assert tight.low_rank(300) is None  # there is no room for it
    np.testing.assert_allclose(tight.variance(new), exact)
    large = ByGradients(Gram(kernel, points), 0.01)
    np.testing.assert_allclose(large.variance(new), exact, rtol=1e-5)
    assert large._low is not None


def test_digits_do_not_depend_on_what_was_asked_before(monkeypatch):
    monkeypatch.setattr(gp_posterior, "_TRIANGLE_POINTS", 100)
    kernel, points = 1.0 * RBF(scale=4.0), Points(np.linspace(-3, 3, 400)[:, None])
    few, many = (Points(np.linspace(-4, 4, n)[:, None]) for n in (20, 300))
    factor = Evidence(points, np.zeros((400, 1))).factor(kernel, 0.01).values
    posterior = ByFactor(kernel, points, 0.01, factor)
    before = posterior.variance(few)
    posterior.variance(many)
    assert np.array_equal(posterior.variance(few), before)
    ready = ByFactor(kernel, points, 0.01, factor)
    ready.prepare()
    assert ready.low_rank(1) is not None  # whatever is asked
    assert np.array_equal(ready.variance(many), posterior.variance(many))
    np.testing.assert_allclose(ready.variance(few), before, rtol=3e-6)


def test_cross_reads_points_in_float32():
    small = Points(T.astype(np.float32))
    values = cross(KERNEL, small, slice(0, 10), Points(X.astype(np.float32)), np.empty((10, len(X))))
    np.testing.assert_allclose(values, KERNEL(T[:10], X), rtol=1e-4)
    same = Points(X)
    np.testing.assert_allclose(cross(KERNEL, same, slice(0, len(X)), same, np.empty((200, 200))), KERNEL(X))


# -- Variances from a matrix of low rank: the bound holds, and where it is large no certainty is claimed ---


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
    monkeypatch.setattr(gp_posterior, "_TRACE_LEFT", 10.0)
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
