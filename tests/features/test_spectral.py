"""Spectral laws: Bochner's pairs, samples against closed forms, laws as values, errors; Matern's function."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gammaln, logsumexp
from scipy.stats import qmc

from cases import each
from mercer.features.spectral import (
    DiscreteLaw,
    GaussianScaleMixture,
    IndependentLaw,
    LinearImage,
    MixtureLaw,
    ShiftedGaussian,
    SpectralLaw,
    as_law,
    matern,
)

COVARIANCE = np.array([[2.0, 0.6], [0.6, 0.5]])
LAWS = {
    "gaussian": GaussianScaleMixture.gaussian(2, 1.5),
    "gaussian, ARD": GaussianScaleMixture.gaussian(2, [0.5, 3.0]),
    "Matern 1/2": GaussianScaleMixture.student(2, 1.0, 0.5),
    "Matern 3/2, ARD": GaussianScaleMixture.student(2, [1.0, 2.0], 1.5),
    "Matern 2.2": GaussianScaleMixture.student(3, 1.0, 2.2),
    "Matern 150": GaussianScaleMixture.student(1, 0.7, 150.0),
    "rational quadratic": GaussianScaleMixture.gamma_mixture(2, 1.0, 0.7),
    "lognormal mixing": GaussianScaleMixture(2, 1.0, stats.lognorm(0.8)),
    "gamma mixing, shifted": GaussianScaleMixture(2, 1.0, stats.gamma(2.0, loc=0.5)),
    "cauchy": IndependentLaw(2, stats.cauchy(), [1.0, 2.0]),
    "laplace": IndependentLaw(2, stats.laplace()),
    "uniform": IndependentLaw(1, stats.uniform(-2, 4)),
    "uniform, one-sided": IndependentLaw(2, stats.uniform(1, 2)),
    "t": IndependentLaw(2, stats.t(3)),
    "logistic, off centre": IndependentLaw(2, stats.logistic(loc=0.5, scale=0.5)),
    "gamma": IndependentLaw(2, stats.gamma(2.5)),
    "discrete": DiscreteLaw([[0.0, 1.0], [2.0, 0.5], [-1.0, 3.0]], [0.2, 0.3, 0.5]),
    "pair of bumps": ShiftedGaussian(2, [1.0, -2.0], [1.0, 3.0]),
    "mixture": MixtureLaw([0.3, 0.7], [ShiftedGaussian(2, [1.0, 0.0], 2.0), GaussianScaleMixture.student(2, 1.0, 0.5)]),
    "linear image": LinearImage([[1.0, 0.5], [0.0, 2.0], [1.0, 1.0]], GaussianScaleMixture.gaussian(2)),
}
each_law = each("law", LAWS.values(), ids=LAWS.keys())


def differences(law: SpectralLaw, m: int = 12) -> np.ndarray:
    return np.random.default_rng(3).normal(size=(m, law.dim)) * np.linspace(0.05, 2.0, m)[:, None]


def mean_cosine(W: np.ndarray, delta: np.ndarray) -> np.ndarray:
    return np.cos(W @ delta.T).mean(axis=0)


@each_law
def test_samples_have_the_characteristic_function(law):
    n, delta = 40_000, differences(law)
    W = law.sample(n, random_state=0)
    assert W.shape == (n, law.dim)
    # The cosine has a variance of at most 1; 5 standard errors over 12 points.
    np.testing.assert_allclose(mean_cosine(W, delta), law.characteristic(delta), atol=5 / np.sqrt(n))


@each_law
def test_quasi_monte_carlo_is_closer_than_the_monte_carlo_error(law):
    n, delta = 2**12, differences(law)
    U = np.clip(qmc.Sobol(law.n_uniforms, scramble=True, seed=1).random(n), 1e-16, 1 - 2e-16)
    quasi = np.sqrt(np.mean((mean_cosine(law.frequencies(U), delta) - law.characteristic(delta)) ** 2))
    plain = [mean_cosine(law.sample(n, seed), delta) - law.characteristic(delta) for seed in range(10)]
    assert quasi < 0.5 * np.sqrt(np.mean(np.square(plain)))


@each_law
def test_characteristic_is_a_normalised_even_psd_function(law):
    delta = differences(law)
    assert law.characteristic(np.zeros((1, law.dim))) == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_allclose(law.characteristic(-delta), law.characteristic(delta), atol=1e-14)
    X = np.random.default_rng(0).normal(size=(25, law.dim)) * 2
    K = law.characteristic((X[:, None] - X[None]).reshape(-1, law.dim)).reshape(25, 25)
    assert np.linalg.eigvalsh((K + K.T) / 2).min() > -1e-13
    assert np.abs(K).max() <= 1 + 1e-14


@each_law
def test_laws_are_values(law):
    again = pickle.loads(pickle.dumps(law))
    assert again == law
    assert hash(again) == hash(law)
    import scipy

    assert scipy.stats is stats  # the representation names it
    assert eval(repr(law)) == law
    assert law != GaussianScaleMixture.gaussian(7)
    assert isinstance(law.name, str)


def test_the_same_seed_gives_the_same_sample():
    law = GaussianScaleMixture.student(3, 1.0, 1.5)
    np.testing.assert_array_equal(law.sample(5, 1), law.sample(5, 1))
    np.testing.assert_array_equal(law.sample(5, np.random.RandomState(1)), law.sample(5, np.random.RandomState(1)))
    rng = np.random.default_rng(0)
    assert not np.array_equal(law.sample(5, rng), law.sample(5, rng))


# K7: the pairs of the lectures, against formulas written out here.
points_1d = np.concatenate([[0.0], np.logspace(-8, 3, 60)])[:, None]


@pytest.mark.parametrize(
    ("law", "kernel"),
    [
        (stats.norm(scale=2), lambda r: np.exp(-(r**2) * 2)),
        (stats.cauchy(scale=3), lambda r: np.exp(-3 * r)),
        (stats.laplace(scale=0.5), lambda r: 1 / (1 + r**2 / 4)),
        (stats.uniform(-2, 4), lambda r: np.sinc(2 * r / np.pi)),
        (stats.t(1), lambda r: np.exp(-r)),
        (stats.t(3), lambda r: (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r)),
        (stats.t(5), lambda r: (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r)),
        (
            stats.logistic(),
            lambda r: np.where(r == 0, 1, np.pi * r / np.sinh(np.clip(np.pi * r, 1e-300, 700))),
        ),
    ],
    ids=lambda value: value.dist.name if hasattr(value, "dist") else "",
)
def test_bochner_pairs_on_the_line(law, kernel):
    found = as_law(law, 1).characteristic(points_1d)
    np.testing.assert_allclose(found, kernel(points_1d[:, 0]), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("nu", "kernel"),
    [
        (0.5, lambda r: np.exp(-r)),
        (1.5, lambda r: (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r)),
        (2.5, lambda r: (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r)),
    ],
)
def test_student_is_matern_in_several_dimensions(nu, kernel):
    delta = differences(LAWS["Matern 2.2"], 30)
    r = np.linalg.norm(delta, axis=1) / 0.6
    law = GaussianScaleMixture.student(3, 0.6, nu)
    np.testing.assert_allclose(law.characteristic(delta), kernel(r), rtol=1e-12)
    assert law.name == f"multivariate t with {2 * nu:g} degrees of freedom"


def test_gamma_mixture_is_the_rational_quadratic():
    delta = differences(LAWS["rational quadratic"], 30)
    r2 = np.sum(delta**2, axis=1) / 0.6**2
    law = GaussianScaleMixture.gamma_mixture(2, 0.6, 0.7)
    np.testing.assert_allclose(law.characteristic(delta), (1 + r2 / (2 * 0.7)) ** -0.7, rtol=1e-12)


@pytest.mark.parametrize("law", [LAWS["gaussian"], LAWS["Matern 3/2, ARD"], LAWS["Matern 2.2"],
                                 LAWS["rational quadratic"], LAWS["lognormal mixing"], LAWS["cauchy"],
                                 LAWS["t"], LAWS["laplace"]])  # fmt: skip
def test_huge_and_tiny_differences_give_numbers(law):
    delta = np.outer([0.0, 1e-320, 1e-160, 1e-20, 1e20, 1e160, 1e300], np.ones(law.dim))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value = law.characteristic(delta)
    np.testing.assert_allclose(value, [1, 1, 1, 1, 0, 0, 0], atol=1e-12)


def test_quadrature_over_tau_agrees_with_a_closed_form():
    r2 = np.logspace(-4, 5, 50)
    by_rule = GaussianScaleMixture(1, 1.0, stats.chi2(3)).radial(r2)
    closed = GaussianScaleMixture(1, 1.0, stats.gamma(1.5, scale=2)).radial(r2)
    np.testing.assert_allclose(by_rule, closed, atol=1e-13)


def test_quantile_points_agree_with_a_closed_form():
    t = np.linspace(-20, 20, 101)
    by_points = IndependentLaw(1, stats.gamma(2.5)).coordinate(t)
    np.testing.assert_allclose(by_points, np.real((1 - 1j * t) ** -2.5), atol=1e-12)
    np.testing.assert_allclose(IndependentLaw(1, stats.gennorm(2)).coordinate(t), np.exp(-(t**2) / 4), atol=1e-12)


@given(loc=st.floats(-3, 3), width=st.floats(0.1, 5), t=st.floats(-20, 20))
@settings(deadline=None, max_examples=50)
def test_uniform_anywhere_is_symmetrised(loc, width, t):
    law = IndependentLaw(1, stats.uniform(loc, width))
    ends = np.array([loc, loc + width])
    exact = np.cos(t * ends[0]) if abs(t) < 1e-9 else np.diff(np.sin(t * ends))[0] / (width * t)
    assert law.coordinate(t) == pytest.approx(exact, abs=1e-6)


def test_a_user_law_with_a_famous_name_is_not_mistaken():
    class Norm(stats.rv_continuous):
        def _pdf(self, x):
            return 2 * x

        def _cdf(self, x):
            return x**2

        def _ppf(self, q):
            return np.sqrt(q)

    law = IndependentLaw(1, Norm(name="norm", a=0, b=1)())
    exact = 2 * (np.sin(2.0) / 2 + (np.cos(2.0) - 1) / 4)  # integral of 2 x cos(2 x) over (0, 1)
    assert law.coordinate(2.0) == pytest.approx(exact, abs=1e-9)


class TestAsLaw:
    def test_laws_pass_through(self):
        assert as_law(LAWS["gaussian"], 2) is LAWS["gaussian"]

    def test_frozen_and_shapeless_laws(self):
        assert as_law(stats.cauchy(), 3) == IndependentLaw(3, stats.cauchy()) == as_law(stats.cauchy, 3)

    def test_diagonal_normal_is_ard(self):
        law = as_law(stats.multivariate_normal(cov=[[4.0, 0.0], [0.0, 0.25]]), 2)
        assert law == GaussianScaleMixture.gaussian(2, [0.5, 2.0])
        assert as_law(stats.multivariate_normal(cov=4.0), 1) == GaussianScaleMixture.gaussian(1, 0.5)

    def test_general_normal(self):
        law = as_law(stats.multivariate_normal(cov=COVARIANCE), 2)
        delta = differences(law)
        exact = np.exp(-0.5 * np.einsum("ij,jk,ik->i", delta, COVARIANCE, delta))
        np.testing.assert_allclose(law.characteristic(delta), exact, rtol=1e-12)
        np.testing.assert_allclose(np.cov(law.sample(40_000, 0).T), COVARIANCE, atol=0.05)

    def test_singular_normal(self):
        law = as_law(stats.multivariate_normal(cov=[[1.0, 0.0], [0.0, 0.0]], allow_singular=True), 2)
        np.testing.assert_allclose(law.characteristic([[1.0, 5.0]]), np.exp(-0.5))

    def test_multivariate_t(self):
        law = as_law(stats.multivariate_t(shape=COVARIANCE, df=3), 2)
        delta = differences(law)
        r = np.sqrt(3 * np.einsum("ij,jk,ik->i", delta, COVARIANCE, delta))
        np.testing.assert_allclose(law.characteristic(delta), (1 + r) * np.exp(-r), rtol=1e-10)
        diagonal = as_law(stats.multivariate_t(shape=[[4.0, 0.0], [0.0, 1.0]], df=3), 2)
        assert diagonal == GaussianScaleMixture.student(2, [0.5, 1.0], 1.5)

    def test_sampler(self):
        law = as_law(lambda n, rng: rng.laplace(size=(n, 1)), 1, n_samples=20_000)
        t = np.linspace(0, 3, 7)[:, None]
        np.testing.assert_allclose(law.characteristic(t), 1 / (1 + t[:, 0] ** 2), atol=0.03)
        assert law == as_law(lambda n, rng: rng.laplace(size=(n, 1)), 1, n_samples=20_000)


@each(
    ("call", "sentence"),
    [
        (lambda: GaussianScaleMixture.gaussian(0), "positive integer, not 0"),
        (lambda: GaussianScaleMixture.gaussian(2, -1.0), "scale must be positive and finite, not -1.0"),
        (lambda: GaussianScaleMixture.gaussian(2, [1.0, 2.0, 3.0]), r"one per coordinate, here 2.*\(3,\)"),
        (lambda: GaussianScaleMixture.gaussian(2, "wide"), "scale must be a positive number.*'wide'"),
        (lambda: GaussianScaleMixture.student(2, 1.0, 0.0), "nu must be positive and finite, not 0.0"),
        (lambda: GaussianScaleMixture.gamma_mixture(2, 1.0, -1), "alpha must be positive and finite, not -1"),
        (lambda: GaussianScaleMixture(2, 1.0, stats.norm()), "takes negative values.*positive half-line"),
        (lambda: IndependentLaw(2, stats.t), "without its shape parameters.*call it first"),
        (lambda: IndependentLaw(2, stats.poisson(3)), "discrete law.*DiscreteLaw"),
        (lambda: IndependentLaw(2, stats.norm(scale=[1.0, 2.0])), "array as its parameter 'scale'"),
        (lambda: IndependentLaw(2, stats.norm(scale=-1)), "outside its domain"),
        (lambda: IndependentLaw(2, "cauchy"), "frozen univariate law of scipy.stats.*got str"),
        (lambda: DiscreteLaw([1.0, 2.0]), r"shape \(m, dim\).*\(2,\)"),
        (lambda: DiscreteLaw([[np.nan]]), "NaN or infinite"),
        (lambda: DiscreteLaw([[1.0], [2.0]], [0.5, 0.6]), "sum to 1, but these sum to 1.1: divide"),
        (lambda: DiscreteLaw([[1.0], [2.0]], [1.5, -0.5]), "cannot be negative.*-0.5"),
        (lambda: DiscreteLaw([[1.0], [2.0]], [1.0]), "one weight for each of the 2"),
        (lambda: MixtureLaw([], []), "at least one law"),
        (lambda: MixtureLaw([1.0, 0.0], [LAWS["gaussian"], LAWS["uniform"]]), r"same dimension.*\[1, 2\]"),
        (lambda: ShiftedGaussian(2, [1.0]), "one finite frequency per coordinate, here 2"),
        (lambda: LinearImage([[1.0]], LAWS["gaussian"]), "with 2 columns"),
        (lambda: LAWS["gaussian"].characteristic([1.0, 2.0]), r"shape \(m, 2\).*\(2,\)"),
        (lambda: LAWS["gaussian"].frequencies(np.ones((3, 5))), r"shape \(n, 2\).*\(3, 5\)"),
        (lambda: LAWS["gaussian"].sample(0), "positive integer, not 0"),
        (lambda: as_law(LAWS["gaussian"], 3), "lives in dimension 2.*3 features"),
        (lambda: as_law(stats.multivariate_normal(mean=[1.0, 0.0]), 2), "has mean.*ShiftedGaussian"),
        (lambda: as_law(stats.multivariate_normal, 2), "not frozen"),
        (lambda: as_law("normal", 2), "cannot be made from 'normal'.*sampler"),
        (lambda: as_law(lambda n, rng: rng.normal(size=n), 2), r"must return shape \(4096, 2\).*\(4096,\)"),
    ],
)
def test_bad_input_is_answered_with_a_sentence(call, sentence):
    with pytest.raises((ValueError, TypeError), match=f"(?s){sentence}") as caught:
        call()
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(("period", "scale"), [(1.0, 1.0), ([0.5, 3.0], 0.3), (2.0, 5.0), (1.0, 0.05)])
def test_harmonic_law_is_the_periodic_kernel(period, scale):
    from mercer import Periodic

    law = Periodic(period, scale).spectral_law(2)
    delta = np.random.default_rng(3).normal(size=(30, 2))
    np.testing.assert_allclose(
        law.characteristic(delta), Periodic(period, scale)(delta, np.zeros((1, 2)))[:, 0], atol=1e-9
    )
    W = law.sample(200_000, 0)
    assert np.abs(np.cos(W @ delta.T).mean(0) - law.characteristic(delta)).max() < 5 / np.sqrt(200_000)


def test_products_of_kernels_add_frequencies():
    from mercer.features import ConvolvedLaw

    # An asymmetric part: without random signs its frequencies would not multiply the kernels.
    law = ConvolvedLaw([DiscreteLaw([[1.0, 0.5]]), GaussianScaleMixture.gaussian(2, 2.0), DiscreteLaw([[-0.7, 2.0]])])
    delta = np.random.default_rng(4).normal(size=(30, 2))
    W = law.sample(200_000, 1)
    assert np.abs(np.cos(W @ delta.T).mean(0) - law.characteristic(delta)).max() < 5 / np.sqrt(200_000)


def by_integral(r: float, nu: float) -> float:
    """K_nu(x) = integral of exp(-x cosh t) cosh(nu t) over t > 0, by trapezoids in logarithms."""
    x = np.sqrt(2 * nu) * r
    t = np.linspace(0, np.arccosh(1 + (800 + 40 * nu) / x), 20_001)
    weights = np.full(t.shape, t[1])
    weights[0] /= 2
    bessel = logsumexp(-x * np.cosh(t) + np.logaddexp(nu * t, -nu * t) - np.log(2), b=weights)
    return float(np.exp((1 - nu) * np.log(2) - gammaln(nu) + nu * np.log(x) + bessel))


@given(r=st.floats(1e-6, 25.0), nu=st.one_of(st.floats(0.05, 5), st.floats(5, 1000)))
@settings(deadline=None, max_examples=100)
def test_against_the_integral(r, nu):
    # The logarithms above lose about nu log(nu) units of rounding.
    assert matern(r, nu) == pytest.approx(by_integral(r, nu), rel=1e-11 + 1e-14 * nu, abs=1e-300)


@pytest.mark.parametrize("nu", [0.01, 0.5, 1.0, 1.5, 2.0, 2.5, 30.0, 99.99, 100.0, 1e4, 1e9, np.inf])
def test_falls_from_one_to_zero_without_nan(nu):
    r = np.concatenate([[0.0], np.logspace(-320, 308, 3000), [np.inf]])
    value = matern(r, nu)
    assert value[0] == 1.0
    assert value[-1] == 0.0
    assert np.isfinite(value).all()
    assert np.diff(value).max() <= 1e-12


def test_orders_join_smoothly_and_reach_the_gaussian():
    r = np.linspace(0, 10, 200)
    np.testing.assert_allclose(matern(r, 100.0), matern(r, 100.0 - 1e-9), rtol=1e-10)
    np.testing.assert_allclose(matern(r, 0.5 + 1e-12), matern(r, 0.5), rtol=1e-10)
    np.testing.assert_allclose(matern(r, 1e12), matern(r, np.inf), atol=1e-10)


@pytest.mark.parametrize("nu", [0.0, -1.0, float("nan")])
def test_bad_smoothness(nu):
    with pytest.raises(ValueError, match=f"must be positive, not {nu}"):
        matern(1.0, nu)
