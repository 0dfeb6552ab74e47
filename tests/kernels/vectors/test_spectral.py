"""Kernels from the law of their frequencies, and mixtures of Gaussian ones."""

import pickle

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from mercer.features import DiscreteLaw
from mercer.kernels import RBF, Cauchy, Laplacian, Matern, Spectral, SpectralMixture, Stationary
from samples import COVARIANCE, vectors

# Bochner's pairs (K7): the law of the frequencies, and its characteristic function as a kernel.
PAIRS = {
    "normal and Gaussian": (stats.norm(scale=0.5), RBF(2.0)),
    "Cauchy and Laplacian": (stats.cauchy(scale=0.5), Laplacian(2.0)),
    "multivariate normal and Gaussian": (stats.multivariate_normal(cov=np.diag([4.0, 1.0, 0.25])), RBF([0.5, 1, 2])),
    "Student t and Matern": (stats.multivariate_t(shape=np.eye(3) / 4, df=3), Matern(1.5, 2.0)),
    "Student t and Matern, any nu": (stats.multivariate_t(shape=np.eye(3) / 4, df=1.6), Matern(0.8, 2.0)),
}


@pytest.mark.parametrize(("law", "k"), PAIRS.values(), ids=PAIRS.keys())
def test_a_law_and_its_kernel(law, k):
    X, Z = vectors(), vectors(7, seed=1)
    np.testing.assert_allclose(Stationary.from_spectral(law)(X, Z), k(X, Z), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(
    ("law", "of"),
    [
        (stats.laplace(scale=0.5), lambda t: 1 / (1 + (0.5 * t) ** 2)),
        (stats.uniform(-2, 4), lambda t: np.sinc(2 * t / np.pi)),
        (stats.t(3), lambda t: (1 + np.sqrt(3) * abs(t)) * np.exp(-np.sqrt(3) * abs(t))),
        (stats.logistic(), lambda t: np.where(t == 0, 1.0, np.pi * t / np.sinh(np.pi * np.where(t == 0, 1, t)))),
        (stats.triang(0.5, loc=-1, scale=2), lambda t: np.sinc(t / (2 * np.pi)) ** 2),
    ],
    ids=["Laplace and Cauchy", "uniform and sinc", "t", "logistic", "triangle and squared sinc"],
)
def test_one_dimensional_laws_multiply_over_features(law, of):
    X = vectors(12)[4:]
    wanted = np.prod(of(X[:, None] - X[None]), axis=-1)
    np.testing.assert_allclose(Stationary.from_spectral(law)(X), wanted, atol=1e-9)


def test_laplace_on_one_feature_is_the_cauchy_kernel():
    x = vectors(d=1)
    np.testing.assert_allclose(Stationary.from_spectral(stats.laplace(scale=0.5))(x), Cauchy(2.0)(x), rtol=1e-12)


def test_a_covariance_measures_correlated_features():
    X = vectors()
    delta = X[:, None] - X[None]
    wanted = np.exp(-0.5 * np.einsum("ijk,kl,ijl->ij", delta, COVARIANCE, delta))
    np.testing.assert_allclose(
        Stationary.from_spectral(stats.multivariate_normal(cov=COVARIANCE))(X), wanted, rtol=1e-9, atol=1e-14
    )


def normal_frequencies(n, rng):
    return rng.normal(size=(n, 3))


def test_a_sampler_gives_the_mean_of_cosines():
    X = vectors(12)
    k = Stationary.from_spectral(normal_frequencies, dim=3)
    assert np.abs(k(X) - RBF(1.0)(X)).max() < 5 / np.sqrt(4096)
    np.testing.assert_array_equal(k(X), k(X))  # the same draws each time
    with pytest.raises(ValueError, match=r"this spectral law is on 3 features; the points have 2"):
        k(X[:, :2])


def test_finitely_many_frequencies_are_a_sum_of_cosines():
    X, w = vectors(), np.array([[0.5, 1.0, 0.0], [2.0, 0.0, -1.0]])
    phases = (X[:, None] - X[None]) @ w.T
    np.testing.assert_allclose(
        Stationary.from_spectral(DiscreteLaw(w, [0.25, 0.75]))(X), np.cos(phases) @ [0.25, 0.75], atol=1e-12
    )


def test_kernels_of_equal_laws_are_equal():
    a, b = Spectral(stats.t(3, scale=2.0)), Spectral(stats.t(df=3, scale=2.0))
    assert a == b
    assert hash(a) == hash(b)
    assert a != Spectral(stats.t(4, scale=2.0))
    assert repr(a) == "Spectral(law=scipy.stats.t(df=3, scale=2.0))"
    assert clone(a) == a
    assert pickle.loads(pickle.dumps(a)) == a


def test_the_proof_names_the_law():
    assert "the law cauchy" in Spectral(stats.cauchy()).proof().reason
    assert Spectral(stats.cauchy()).proof().rule == "Bochner"


@pytest.mark.parametrize("d", [1, 2])
def test_widths_must_agree(d):
    with pytest.raises(ValueError, match=rf"X has 3 features and Z has {d}; both must have the same columns"):
        Spectral(stats.norm())(vectors(), vectors(5, d=d))


@pytest.mark.parametrize(
    ("law", "words"),
    [
        ("cauchy", r"cannot be made from 'cauchy'.*scipy\.stats\.cauchy\(\).*sampler"),
        (None, "cannot be made from None"),
        (stats.poisson(3.0), "a discrete law"),
        (stats.multivariate_normal, "is not frozen"),
        (stats.t, "without its shape parameters"),
    ],
)
def test_what_is_no_law_is_refused_before_anything_is_proven_of_it(law, words):
    with pytest.raises((TypeError, ValueError), match=words):
        Stationary.from_spectral(law)


def test_a_law_on_other_features_is_refused_where_the_kernel_is_made():
    with pytest.raises(ValueError, match="lives in dimension 2"):
        Stationary.from_spectral(stats.multivariate_normal(cov=COVARIANCE[:2, :2]), dim=3)


def by_hand(X, weights, means, scales):
    delta = X[:, None] - X[None]
    total = 0.0
    for w, m, s in zip(weights, means, scales, strict=True):
        envelope = np.exp(-0.5 * ((delta / s) ** 2).sum(axis=-1))
        total = total + w * envelope * np.cos(2 * np.pi * (delta * m).sum(axis=-1))
    return total


@pytest.mark.parametrize(
    "parameters",
    [
        ([1.0, 0.5], [0.2, 1.0], [3.0, 1.0]),
        ([1.0, 0.0], [[0.1, 0.2, 0.3], 0.5], [[1.0, 2.0, 3.0], 4.0]),
        (np.array([2.0]), np.array([[0.1, 0.0, 0.4]]), np.array([2.0])),
    ],
    ids=["numbers", "per feature", "arrays"],
)
def test_agrees_with_its_formula(parameters):
    X = vectors()
    means = [np.broadcast_to(m, 3) for m in parameters[1]]
    k = SpectralMixture(*parameters)
    np.testing.assert_allclose(k(X), by_hand(X, parameters[0], means, parameters[2]), atol=1e-12)


def test_frequency_zero_is_the_gaussian_kernel():
    X = vectors()
    np.testing.assert_allclose(SpectralMixture([1.0], [0.0], [1.3])(X), RBF(1.3)(X), rtol=1e-12, atol=1e-300)


def test_patterns_repeat():
    t = np.arange(8.0)[:, None]
    K = SpectralMixture([1.0], [0.25], [1e6])(t)
    np.testing.assert_allclose(K[0], [1, 0, -1, 0, 1, 0, -1, 0], atol=1e-9)


def test_lists_and_arrays_make_equal_kernels():
    a = SpectralMixture([1.0], [[0.1, 0.2]], [2.0])
    b = SpectralMixture(np.array([1.0]), np.array([[0.1, 0.2]]), np.array([2.0]))
    assert a == b
    assert hash(a) == hash(b)
    assert repr(a) == repr(b)


def test_parameters_are_checked():
    with pytest.raises(ValueError, match=r"as many weights \(2\) as means \(1\) and scales \(2\), at least one"):
        SpectralMixture([1.0, 2.0], [0.5], [1.0, 1.0])
    with pytest.raises(ValueError, match=r"every weight of SpectralMixture must be >= 0 and finite; it is -1"):
        SpectralMixture([-1.0], [0.5], [1.0])
    with pytest.raises(ValueError, match=r"every scale of SpectralMixture must be > 0"):
        SpectralMixture([1.0], [0.5], [0.0])
    with pytest.raises(ValueError, match=r"every mean of SpectralMixture must be .*finite; it is nan"):
        SpectralMixture([1.0], [float("nan")], [1.0])
    with pytest.raises(TypeError, match=r"weights of SpectralMixture must be a list with one entry per component"):
        SpectralMixture(1.0, 0.5, 1.0)
    with pytest.raises(ValueError, match=r"a mean of SpectralMixture has 2 entries but the points have 3 features"):
        SpectralMixture([1.0], [[0.1, 0.2]], [1.0])(vectors())
