"""The log marginal likelihood: SciPy's normal density is the referee of its value, differences of its slopes."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import multivariate_normal

from mercer.gram import parameters, with_parameters
from mercer.kernels import (
    RBF,
    Constant,
    FromFunction,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
)
from mercer.points import Points
from mercer.solvers.gp import likelihood as gp
from mercer.solvers.gp.likelihood import Evidence, least_noise, mean_certificate, unit_of_claims

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 2))
Y = np.c_[np.sin(X[:, 0]), X[:, 1] ** 2] + 0.1 * rng.normal(size=(30, 2))

KERNELS = {
    "scaled": 2.0 * RBF(scale=0.8),
    "per feature": 1.5 * RBF(scale=[0.8, 2.0]) + Constant(0.3),
    "product": RationalQuadratic(alpha=0.7, scale=1.1) * Matern(nu=2.5, scale=3.0),
    "trend": 0.5 * Linear() + 0.2 * Polynomial(2, 1.0, 0.5) + 1.0 * Matern(nu=1.5, scale=[1.0, 2.0]),
    "periodic": 1.0 * Periodic(period=2.0, scale=1.2) * RBF(scale=3.0) + 0.1 * Matern(nu=0.5, scale=1.0),
    "limit": (0.4 * RBF(scale=1.0)).exp(),
    "normalized": (0.3 * Linear() + Constant(0.5)).normalized() * 2.0,
}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_value_is_the_density_of_the_targets(kernel):
    for noise in (0.2, np.linspace(0.1, 0.5, len(X))):
        law = multivariate_normal(cov=kernel(X) + np.diag(np.broadcast_to(noise, len(X))))
        found = Evidence(Points(X), Y).factor(kernel, noise)
        assert found.likelihood == pytest.approx(law.logpdf(Y[:, 0]) + law.logpdf(Y[:, 1]), rel=1e-10)
        assert found.jitter == 0
        np.testing.assert_allclose(law.cov @ found.A, Y, atol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_slopes_are_those_of_the_value(kernel):
    evidence = Evidence(Points(X), Y)
    evidence.factor(kernel, 0.2)
    slopes, noise = evidence.gradient(kernel)
    values = np.array([p.value for p in parameters(kernel)])

    def at(change, more=0.0):
        return evidence.factor(with_parameters(kernel, values * np.exp(change)), 0.2 + more).likelihood

    for i in range(len(values)):
        step = 1e-5 * np.eye(len(values))[i]
        assert slopes[i] * values[i] == pytest.approx((at(step) - at(-step)) / 2e-5, rel=1e-5, abs=1e-5)
    nothing = np.zeros(len(values))
    each = np.array([(at(nothing, 1e-6 * e) - at(nothing, -1e-6 * e)) / 2e-6 for e in np.eye(len(X))[:3]])
    np.testing.assert_allclose(noise[:3], each, rtol=1e-5, atol=1e-5)


def test_slopes_count_the_jitter(monkeypatch):
    """Without noise the diagonal is a multiple of the trace, which moves with the kernel; the noise does nothing."""
    monkeypatch.setattr(gp, "LEAST", 1e11 * np.finfo(float).eps)  # enough to see differences above rounding
    doubled = np.vstack([X, X[:5]])
    targets = np.vstack([Y, Y[:5] + 0.1])
    evidence = Evidence(Points(doubled), targets)

    def at(factor, scale):
        return evidence.factor(factor * RBF(scale=scale), 0.0, careful=False).likelihood

    evidence.factor(2.0 * RBF(scale=0.8), 0.0, careful=False)
    slopes, noise = evidence.gradient(2.0 * RBF(scale=0.8))
    assert not noise.any()
    by_factor = (at(2.0 * (1 + 1e-4), 0.8) - at(2.0 * (1 - 1e-4), 0.8)) / 4e-4
    by_scale = (at(2.0, 0.8 * (1 + 1e-4)) - at(2.0, 0.8 * (1 - 1e-4))) / 1.6e-4
    np.testing.assert_allclose(slopes, [by_factor, by_scale], rtol=1e-3)


def test_duplicates_without_noise_get_the_least_jitter():
    doubled, targets = np.vstack([X, X]), np.vstack([Y, Y])
    kernel = 3.0 * RBF(scale=0.5)
    found = Evidence(Points(doubled), targets).factor(kernel, 0.0)
    assert found.jitter == pytest.approx(least_noise(kernel.diag(doubled)))
    assert 0 < found.jitter < 1e-9
    assert np.isfinite(found.likelihood)
    assert np.isfinite(found.A).all()


def test_a_well_conditioned_matrix_needs_no_jitter():
    found = Evidence(Points(X), Y).factor(Matern(nu=0.5, scale=0.3), 0.0)
    assert found.jitter == 0


def test_an_indefinite_kernel_is_refused_in_a_sentence():
    with pytest.raises(np.linalg.LinAlgError, match=r"not positive semidefinite.*Raise the noise"):
        Evidence(Points(3 * X), Y).factor(Sigmoid(2.0, -1.0), 1e-3)


def test_a_trace_beyond_float64_is_refused_in_a_sentence():
    with pytest.raises(FloatingPointError, match="exceeds the range of float64; scale the features"):
        least_noise(np.full(10, 1e308))


@pytest.mark.parametrize("kind", ["float32 table", "sparse", "words"])
def test_points_of_any_kind(kind):
    if kind == "words":
        words = ["ab", "abc", "b", "xyz", "ay"]
        kernel = 1.5 * FromFunction(lambda a, b: float(len(set(a) & set(b))))
        points, targets, K = Points(words), Y[:5], kernel(words)
    elif kind == "sparse":
        data = sparse.csr_array(np.where(X > 0, X, 0.0))
        kernel = 2.0 * RBF(scale=0.8)
        points, targets, K = Points(data), Y, kernel(data.toarray())
    else:
        table = pd.DataFrame(X.astype(np.float32), columns=["a", "b"])
        kernel = 2.0 * RBF(scale=0.8)
        points, targets, K = Points(table), Y, kernel(np.asarray(table, dtype=np.float64))
    evidence = Evidence(points, targets)
    found = evidence.factor(kernel, 0.3)
    law = multivariate_normal(cov=K + 0.3 * np.eye(len(K)))
    assert found.likelihood == pytest.approx(sum(law.logpdf(y) for y in targets.T), rel=1e-4)
    slopes, _ = evidence.gradient(kernel)
    assert np.isfinite(slopes).all()
    assert len(slopes) == len(parameters(kernel))


def test_memory_is_used_again():
    memory = np.empty(8 * len(X) ** 2, np.uint8)
    evidence = Evidence(Points(X), Y, memory)
    assert np.shares_memory(evidence.factor(RBF(scale=1.0), 0.1).values, memory)


def test_the_mean_is_certified_as_a_ridge_problem():
    kernel, noise = 2.0 * RBF(scale=0.8), np.linspace(0.1, 0.4, len(X))
    found = Evidence(Points(X), Y).factor(kernel, noise)
    said, residual = mean_certificate(kernel, Points(X), Y, found.A, noise, unit=np.array([1.0, 10.0]), tol=1e-6)
    assert said.converged
    assert residual.max() < 1e-10
    K, w = kernel(X), noise.mean() / noise
    primal = [
        0.5 * (w * (y - K @ a) ** 2).sum() + 0.5 * noise.mean() * a @ K @ a for y, a in zip(Y.T, found.A.T, strict=True)
    ]
    assert said.primal == pytest.approx(primal[0] + 100 * primal[1])
    worse, residual = mean_certificate(kernel, Points(X), Y, 1.1 * found.A, noise, unit=np.ones(2), tol=1e-6)
    assert not worse.converged
    assert residual.min() > 0.01


def test_units_whose_squares_overflow_are_left_out():
    np.testing.assert_array_equal(unit_of_claims(np.array([1e-200, 2.0, 1e200])), [1.0, 2.0, 1.0])
