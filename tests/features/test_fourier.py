"""RandomFourier: close to the kernel, closer with orthogonal and quasi-Monte-Carlo frequencies."""

import numpy as np
import pytest
from scipy import sparse, stats

from cases import each
from checks import assert_no_fault
from mercer.features import (
    DiscreteLaw,
    GaussianScaleMixture,
    IndependentLaw,
    LinearImage,
    MixtureLaw,
    RandomFourier,
    ShiftedGaussian,
)


class Spectral:
    """A stationary kernel in the three methods that RandomFourier calls."""

    def __init__(self, law=GaussianScaleMixture.gaussian):
        self.law = law

    def __repr__(self):
        return "Spectral()"

    def resolve(self, X):
        return self

    def spectral_law(self, d):
        return self.law(d)

    def diag(self, X):
        return np.ones(len(X))


class Unresolved(Spectral):
    """A kernel whose scale comes from the data."""

    def resolve(self, X):
        scale = float(X.std())
        return Spectral(lambda d: GaussianScaleMixture.gaussian(d, scale))


SAMPLINGS = ["plain", "orthogonal", "qmc"]
LAWS = {
    "gaussian": GaussianScaleMixture.gaussian,
    "student": lambda d: GaussianScaleMixture.student(d, 2.0, 1.5),
    "gamma mixture": lambda d: GaussianScaleMixture.gamma_mixture(d, 1.0, 0.7),
    "bumps": lambda d: ShiftedGaussian(d, np.arange(d), 2.0),
    "mixture": lambda d: MixtureLaw(
        [0.4, 0.6], [ShiftedGaussian(d, np.ones(d)), GaussianScaleMixture.student(d, 1.0, 0.5)]
    ),
    "linear image": lambda d: LinearImage(np.tri(d), GaussianScaleMixture.gaussian(d)),
    "cauchy": lambda d: IndependentLaw(d, stats.cauchy()),
    "discrete": lambda d: DiscreteLaw(np.arange(2.0 * d).reshape(2, d), [0.3, 0.7]),
}


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("width", [20, 7])
def test_scikit_learn_contract(width, sampling):
    assert_no_fault(RandomFourier(Spectral(), width, sampling))


def points(n=12, d=4):
    return np.random.default_rng(5).normal(size=(n, d)) * 0.7


def exact(law, X):
    return law.characteristic((X[:, None] - X[None]).reshape(-1, X.shape[1])).reshape(len(X), len(X))


def error(law, sampling, seeds, X, n_components=128):
    K = exact(law(X.shape[1]), X)
    total = 0.0
    for seed in seeds:
        F = RandomFourier(Spectral(law), n_components, sampling, random_state=seed).fit_transform(X)
        total += np.mean((F @ F.T - K) ** 2)
    return np.sqrt(total / len(seeds))


@each("sampling", SAMPLINGS)
@each("name", LAWS)
def test_inner_products_are_close_to_the_kernel(name, sampling):
    if sampling == "orthogonal" and name in ("cauchy", "discrete"):
        pytest.skip("not made from Gaussian vectors")
    # The root mean square error of plain sampling is at most 1/sqrt(m), m = 2048; the others are no worse.
    assert error(LAWS[name], sampling, range(3), points(), 4096) < 1.2 / np.sqrt(2048)


@pytest.mark.parametrize("name", ["gaussian", "student", "gamma mixture", "linear image"])
def test_orthogonal_is_better_than_plain(name):
    X = points(d=8) / 4
    assert error(LAWS[name], "orthogonal", range(40), X) < 0.95 * error(LAWS[name], "plain", range(40), X)


@pytest.mark.parametrize("name", LAWS)
def test_qmc_is_better_than_plain(name):
    X = points(d=2)
    assert error(LAWS[name], "qmc", range(20), X) < 0.8 * error(LAWS[name], "plain", range(20), X)


@pytest.mark.parametrize("m", [1, 3, 4, 5, 11])
def test_orthogonal_frequencies_are_orthogonal_in_blocks(m):
    phi = RandomFourier(Spectral(), 2 * m, "orthogonal", random_state=0).fit(points())
    assert phi.frequencies_.shape == (m, 4)
    for start in range(0, m, 4):
        block = phi.frequencies_[start : start + 4]
        G = block @ block.T
        np.testing.assert_allclose(G, np.diag(np.diag(G)), atol=1e-12)


def test_orthogonal_frequencies_keep_their_marginal_law():
    W = RandomFourier(Spectral(), 20_000, "orthogonal", random_state=0).fit(points(d=3)).frequencies_
    for column in W.T:
        assert stats.kstest(column, "norm").pvalue > 1e-4
    assert stats.kstest(np.sum(W**2, axis=1), stats.chi2(3).cdf).pvalue > 1e-4


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_features_have_unit_norm_and_the_stated_form(sampling):
    X = points()
    phi = RandomFourier(Spectral(), 30, sampling, random_state=0).fit(X)
    F = phi.transform(X)
    assert F.shape == (12, 30)
    assert phi.get_feature_names_out().shape == (30,)
    np.testing.assert_allclose(np.sum(F**2, axis=1), 1.0, rtol=1e-14)
    phase = X @ phi.frequencies_.T
    np.testing.assert_allclose(F, np.hstack([np.cos(phase), np.sin(phase)]) / np.sqrt(15), atol=1e-14)


def test_inner_products_do_not_see_a_common_shift():
    X = points()
    phi = RandomFourier(Spectral(), 40, random_state=0).fit(X)
    F, G = phi.transform(X), phi.transform(X + 3.0)
    np.testing.assert_allclose(F @ F.T, G @ G.T, atol=1e-12)


def test_kernel_is_resolved_on_the_data():
    X = 10 * points()
    kernel = Unresolved()
    phi = RandomFourier(kernel, 4000, random_state=0).fit(X)
    assert phi.kernel is kernel
    assert phi.kernel_ is not kernel
    assert np.std(phi.frequencies_) == pytest.approx(1 / X.std(), rel=0.05)


def test_sparse_and_float32_follow_the_input():
    X = points()
    X[X < 0.3] = 0
    phi = RandomFourier(Spectral(), 20, random_state=0).fit(X)
    for form in (sparse.csr_array, sparse.csr_matrix, sparse.csc_array):
        F = phi.transform(form(X))
        assert isinstance(F, np.ndarray)
        np.testing.assert_allclose(F, phi.transform(X), atol=1e-14)
    same = RandomFourier(Spectral(), 20, random_state=0).fit(X.astype(np.float32))
    F = same.transform(X.astype(np.float32))
    assert F.dtype == np.float32
    np.testing.assert_allclose(F, phi.transform(X), atol=1e-5)


def test_an_odd_number_of_features_is_unbiased():
    X = points()
    total = np.zeros((len(X), len(X)))
    for seed in range(2000):
        F = RandomFourier(Spectral(), 3, random_state=seed).fit_transform(X)
        assert F.shape == (len(X), 3)
        total += F @ F.T
    # Each entry is a mean of 2000 bounded values with deviation below 1.
    assert np.abs(total / 2000 - exact(LAWS["gaussian"](4), X)).max() < 5 / np.sqrt(2000)


def test_composites_have_their_kernels_features():
    from mercer import RBF, Constant, Laplacian, Matern

    X = points()
    for kernel in (2.5 * RBF(1.0), RBF(1.0) + 3 * Laplacian(2.0), RBF(1.0) * Matern(0.5, 2.0), Constant(2.0) + RBF(1.0),
                   RBF(1.0) ** 2, RBF(0.7).on([0, 2]) * Laplacian(1.5)):  # fmt: skip
        F = RandomFourier(kernel, 40_000, random_state=0).fit_transform(X)
        assert np.abs(F @ F.T - kernel(X)).max() < 5 * kernel.amplitude(4) / np.sqrt(20_000)


def test_random_state_decides():
    def draw(seed):
        return RandomFourier(Spectral(), 10, random_state=seed).fit(points()).frequencies_

    np.testing.assert_array_equal(draw(1), draw(1))
    np.testing.assert_array_equal(draw(np.random.default_rng(1)), draw(np.random.default_rng(1)))
    assert not np.array_equal(draw(1), draw(2))


@pytest.mark.parametrize(
    ("make", "kind", "sentence"),
    [
        (lambda: RandomFourier(Spectral(), 0), ValueError, "whole number of at least 1; got 0"),
        (lambda: RandomFourier(Spectral(), 5.0), ValueError, "whole number.*got 5.0"),
        (
            lambda: RandomFourier(Spectral(), 4, "sobol"),
            ValueError,
            "'plain', 'orthogonal', 'qmc'; got 'sobol'",
        ),
        (lambda: RandomFourier("rbf", 4), TypeError, "str has no method 'resolve'.*such as RBF"),
        (
            lambda: RandomFourier(Spectral(LAWS["cauchy"]), 4, "orthogonal"),
            ValueError,
            "'independent cauchy in each of 4 coordinates', is not made from them: use sampling='qmc'",
        ),
        (
            lambda: RandomFourier(
                Spectral(lambda d: MixtureLaw([0.5, 0.5], [LAWS["gaussian"](d), LAWS["cauchy"](d)])),
                4,
                "orthogonal",
            ),
            ValueError,
            "is not made from them",
        ),
    ],
)
def test_bad_input_is_answered_with_a_sentence(make, kind, sentence):
    with pytest.raises(kind, match=sentence):
        make().fit(points())


def test_qmc_beyond_the_sobol_table():
    with pytest.raises(ValueError, match="reaches 21201 dimensions, but the law needs 21202"):
        RandomFourier(Spectral(), 4, "qmc").fit(np.ones((1, 21202)))
