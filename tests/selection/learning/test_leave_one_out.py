"""Leave-one-out errors and densities: refitting without each sample is the referee, differences that of the slopes."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as theirs
from sklearn.kernel_ridge import KernelRidge

from cases import each
from mercer import KernelRidge as OurRidge
from mercer.gram import parameters, with_parameters
from mercer.kernels import RBF, Constant, Linear, Matern, Periodic, Polynomial, RationalQuadratic, Sigmoid
from mercer.points import Points
from mercer.selection.learning.learner import LeaveOneOut

rng = np.random.default_rng(0)
X = rng.normal(size=(24, 2))
Y = np.c_[np.sin(X[:, 0]), X[:, 1] ** 2] + 0.1 * rng.normal(size=(24, 2))

KERNELS = {
    "per feature": 1.5 * RBF(scale=[0.8, 2.0]) + Constant(0.3),
    "product": RationalQuadratic(alpha=0.7, scale=1.1) * Matern(nu=2.5, scale=[1.0, 3.0]),
    "trend": 0.5 * Linear() + 0.2 * Polynomial(2, 1.0, 0.5),
    "periodic": 1.0 * Periodic(period=2.0, scale=1.2) * RBF(scale=3.0),
    "columns": RBF(scale=1.0).on([0]) + 2.0 * RBF(scale=0.5).on([1]),
}


def without(i):
    return np.delete(np.arange(len(X)), i)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_errors_are_those_of_refits(kernel):
    found = LeaveOneOut(Points(X), Y).factor(kernel, 0.2)
    for i in range(len(X)):
        rest = without(i)
        other = KernelRidge(alpha=0.2, kernel="precomputed").fit(kernel(X[rest]), Y[rest])
        np.testing.assert_allclose(found.errors[i], Y[i] - other.predict(kernel(X[i : i + 1], X[rest]))[0], rtol=1e-8)
    assert found.likelihood == pytest.approx(-0.5 * Y.size * np.log(np.mean(found.errors**2)))


def test_errors_with_an_intercept_are_those_of_refits():
    kernel = KERNELS["per feature"]
    found = LeaveOneOut(Points(X), Y + 7.0, intercept=True).factor(kernel, 0.2)
    for i in range(len(X)):
        rest = without(i)
        other = OurRidge(0.2, kernel=kernel, fit_intercept=True, residual=1e-12).fit(X[rest], Y[rest] + 7.0)
        np.testing.assert_allclose(found.errors[i], Y[i] + 7.0 - other.predict(X[i : i + 1])[0], rtol=1e-6)


def test_densities_are_those_of_refits():
    noise = np.linspace(0.1, 0.5, len(X))
    found = LeaveOneOut(Points(X), Y[:, :1], measure="density").factor(RBF(scale=0.8), noise)
    total = 0.0
    for i in range(len(X)):
        rest = without(i)
        other = GaussianProcessRegressor(theirs.RBF(0.8), alpha=noise[rest], optimizer=None).fit(X[rest], Y[rest, 0])
        mean, std = other.predict(X[i : i + 1], return_std=True)
        total += norm(mean[0], np.sqrt(std[0] ** 2 + noise[i])).logpdf(Y[i, 0])
    assert found.likelihood == pytest.approx(total, rel=1e-9)


@each("measure", ["squares", "density"])
@each("intercept", [False, True], ids=["plain", "intercept"])
@each("kernel", KERNELS.values(), ids=KERNELS)
def test_slopes_are_those_of_the_value(kernel, intercept, measure):
    left_out = LeaveOneOut(Points(X), Y, intercept=intercept, measure=measure)
    left_out.factor(kernel, 0.2)
    slopes, noise = left_out.gradient(kernel)
    theta = np.array([p.value for p in parameters(kernel)])

    def at(change, more=0.0):
        return left_out.factor(with_parameters(kernel, theta + change), 0.2 + more).likelihood

    h = 1e-5
    wanted = [(at(step) - at(-step)) / (2 * h) for step in h * np.eye(len(theta))]
    np.testing.assert_allclose(slopes, wanted, rtol=1e-5, atol=1e-6)
    assert noise.sum() == pytest.approx((at(0, h) - at(0, -h)) / (2 * h), rel=1e-5)


def test_squares_do_not_notice_a_common_factor():
    left_out = LeaveOneOut(Points(X), Y)
    first = left_out.factor(RBF(scale=1.0), 0.1).likelihood
    assert left_out.factor(5.0 * RBF(scale=1.0), 0.5).likelihood == pytest.approx(first)
    slopes, noise = left_out.gradient(5.0 * RBF(scale=1.0))
    assert 5.0 * slopes[0] + 0.5 * noise.sum() == pytest.approx(0.0, abs=1e-8)


def test_more_points_than_one_tile():
    many = np.random.default_rng(1).normal(size=(600, 2))
    left_out = LeaveOneOut(Points(many), many[:, :1] ** 2)
    found = left_out.factor(RBF(scale=1.0), 0.1)
    C = np.linalg.inv(RBF(scale=1.0)(many) + 0.1 * np.eye(600))
    np.testing.assert_allclose(found.errors[:, 0], C @ many[:, 0] ** 2 / C.diagonal(), rtol=1e-7)


def test_too_little_noise_is_raised_and_has_no_slope():
    twice = np.vstack([X, X])
    left_out = LeaveOneOut(Points(twice), np.vstack([Y, Y]))
    found = left_out.factor(RBF(scale=1.0), 0.0)
    assert np.isfinite(found.errors).all()
    slopes, noise = left_out.gradient(RBF(scale=1.0))
    assert np.isfinite(slopes).all()
    assert not noise.any()


def test_what_is_no_kernel_is_refused_with_a_sentence():
    with pytest.raises(np.linalg.LinAlgError, match="not positive semidefinite"):
        LeaveOneOut(Points(5 * X), Y).factor(Sigmoid(gamma=2.0, c=-1.0), 0.01)
