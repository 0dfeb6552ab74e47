"""Mercer expansions against closed forms, independent quadrature, and the laws of the theorem."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from scipy.linalg import eigh
from scipy.optimize import brentq

from mercer import (
    RBF,
    Constant,
    Delta,
    FromFunction,
    Gram,
    Intersection,
    Linear,
    Matern,
    Polynomial,
    RKHSFunction,
    Sigmoid,
)
from mercer.rkhs import Box, MercerExpansion, RKHSVector


def gaussian(scale, mean, sigma, count):
    """The closed form for exp(-|x - z|^2 / 2 scale^2) under N(mean, sigma^2) (Zhu et al. 1998)."""
    a, b = 1 / (4 * sigma**2), 1 / (2 * scale**2)
    c = np.sqrt(a * a + 2 * a * b)
    values = np.sqrt(2 * a / (a + b + c)) * (b / (a + b + c)) ** np.arange(count)

    def functions(x):
        x = x - mean
        h = [(c / a) ** 0.25 * np.exp(-(c - a) * x * x)]
        h.append(np.sqrt(2) * np.sqrt(2 * c) * x * h[0])
        for j in range(1, count - 1):
            h.append((2 * np.sqrt(2 * c) * x * h[j] - np.sqrt(2 * j) * h[j - 1]) / np.sqrt(2 * (j + 1)))
        return np.array(h).T

    return values, functions


# -- closed forms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "mean", "sigma"), [(1.0, 0.0, 1.0), (0.5, 3.0, 1.0), (0.1, 0.0, 1.0), (2.0, -1.0, 3.0)]
)
def test_the_gaussian_kernel_under_a_gaussian_law(scale, mean, sigma):
    expansion = MercerExpansion(RBF(scale), stats.norm(mean, sigma), 20)
    values, functions = gaussian(scale, mean, sigma, 20)
    assert np.abs(expansion.eigenvalues / values - 1).max() < 1e-8
    x = mean + sigma * np.linspace(-2.5, 2.5, 201)
    assert (
        np.abs(expansion.eigenfunctions(x[:, None]) - functions(x)).max() < 1e-6
    )  # and the signs are those of Hermite
    assert (np.abs(expansion.eigenvalues - values) <= expansion.errors).all()
    assert expansion.orthonormality_error < 1e-7
    assert abs(expansion.truncation_error().trace - (1 - values.sum())) < 1e-12


def test_eigenvalues_that_rounding_swallows_are_left_out_and_those_near_it_are_told():
    expansion = MercerExpansion(RBF(3.0), stats.norm(0, 0.5), 20)
    values, _ = gaussian(3.0, 0.0, 0.5, 20)
    count = len(expansion)
    assert values[count - 1] > 1e-15 > values[count + 2]  # 7 digits a term: the tenth is below rounding
    assert (np.abs(expansion.eigenvalues - values[:count]) <= expansion.errors).all()
    assert np.abs(expansion.eigenvalues - values[:count]).max() < 1e-14


def test_the_brownian_kernel_on_the_unit_interval():
    expansion = MercerExpansion(Intersection(), Box(0, 1), 20)
    omega = (np.arange(1, 21) - 0.5) * np.pi
    assert np.abs(expansion.eigenvalues * omega**2 - 1).max() < 3e-8
    assert abs(expansion.eigenvalues[0] * omega[0] ** 2 - 1) < 1e-12
    assert (np.abs(expansion.eigenvalues - omega**-2.0) <= expansion.errors).all()
    x = np.linspace(0, 1, 1001)
    sines = np.sqrt(2) * np.sin(omega * x[:, None])
    F = expansion.eigenfunctions(x[:, None])
    off = np.abs(F * np.sign((F * sines).sum(axis=0)) - sines).max(axis=0)
    assert off[0] < 1e-6
    assert off.max() < 2e-3
    assert "2048 nodes, corrected on the diagonal" in repr(expansion)


def test_an_exponential_kernel_on_an_interval():
    # exp(-c|x - z|) on [-a, a]: the frequencies solve c = w tan(wa) and w = -c tan(wa), in turn.
    c, a, count = 2.0, 1.0, 12
    even = [
        brentq(lambda w: c * np.cos(w * a) - w * np.sin(w * a), j * np.pi / a, (j + 0.5) * np.pi / a) for j in range(6)
    ]
    odd = [
        brentq(lambda w: w * np.cos(w * a) + c * np.sin(w * a), (j + 0.5) * np.pi, (j + 1) * np.pi) for j in range(6)
    ]
    values = np.sort([2 * c / (w * w + c * c) / (2 * a) for w in even + odd])[::-1]
    expansion = MercerExpansion(Matern(0.5, 1 / c), Box(-a, a), count, nodes=1024)
    assert np.abs(expansion.eigenvalues / values - 1).max() < 1e-7


@pytest.mark.parametrize("law", [stats.uniform(0, 1), stats.norm(0, 1)], ids=["uniform", "norm"])
def test_a_matern_kernel_against_brute_force(law):
    # The midpoint rule in x with the density as weights; eigenvalues by Richardson's extrapolation.
    low, high = (0.0, 1.0) if law.dist.name == "uniform" else (-7.5, 7.5)

    def brute(n):
        x = low + (high - low) * (np.arange(n) + 0.5) / n
        root = np.sqrt(law.pdf(x) * (high - low) / n)
        r = np.sqrt(3) * np.abs(x[:, None] - x) / 0.7
        return eigh(root[:, None] * (1 + r) * np.exp(-r) * root, eigvals_only=True, subset_by_index=(n - 6, n - 1))[
            ::-1
        ]

    coarse, fine = brute(400), brute(800)
    expansion = MercerExpansion(Matern(1.5, 0.7), law, 6, nodes=1024)
    assert np.abs(expansion.eigenvalues - fine).max() < 1e-5
    order = 4 if law.dist.name == "norm" else 2
    assert np.abs(expansion.eigenvalues - (fine + (fine - coarse) / (2**order - 1))).max() < 2e-7


# -- samples --------------------------------------------------------------------------------------------


def test_a_sample_is_the_matrix_over_n():
    X = np.random.default_rng(0).standard_normal((60, 3))
    expansion = MercerExpansion(Matern(1.5, 1.0), X, 60)
    K = Matern(1.5, 1.0)(X)
    assert np.allclose(expansion.eigenvalues, eigh(K / 60, eigvals_only=True)[::-1])
    assert np.allclose(expansion.transform(X) @ expansion.transform(X).T, K)
    assert expansion.orthonormality_error < 1e-10
    assert expansion.truncation_error().sup < 1e-10


def test_weights_are_repetitions():
    rng = np.random.default_rng(1)
    X, counts = rng.standard_normal((40, 2)), rng.integers(0, 4, 40)
    kernel = RBF(1.0)
    weighted = MercerExpansion(kernel, X, 8, weights=counts)
    repeated = MercerExpansion(kernel, np.repeat(X, counts, axis=0), 8)
    assert np.allclose(weighted.eigenvalues, repeated.eigenvalues)
    x = rng.standard_normal((10, 2))
    F, G = weighted.eigenfunctions(x), repeated.eigenfunctions(x)
    assert np.allclose(F * np.sign((F * G).sum(axis=0)), G, atol=1e-8)
    assert len(weighted.weights) == (counts > 0).sum()
    assert np.isclose(weighted.weights.sum(), 1)


def test_many_points_go_without_the_matrix(monkeypatch):
    from mercer.rkhs.mercer import integral_operator

    X = np.random.default_rng(2).standard_normal((700, 2))
    w = np.random.default_rng(3).uniform(0.5, 2, 700)
    dense = MercerExpansion(RBF(1.0), X, 6, weights=w)
    monkeypatch.setattr(integral_operator, "_DENSE_POINTS", 100)
    products = MercerExpansion(RBF(1.0), X, 6, weights=w)
    assert "Davidson" in products.how
    assert np.allclose(products.eigenvalues, dense.eigenvalues, rtol=1e-9)
    x = np.random.default_rng(4).standard_normal((20, 2))
    assert np.abs(products.eigenfunctions(x) - dense.eigenfunctions(x)).max() < 1e-6


def test_points_of_any_kind():
    words = ["abc", "abd", "xyz", "xyw", "abz"]
    shared = FromFunction(lambda a, b: float(len(set(a) & set(b))))
    expansion = MercerExpansion(shared, words, 5)
    assert np.allclose(expansion.transform(words) @ expansion.transform(words).T, shared(words))
    X = np.random.default_rng(5).standard_normal((50, 4))
    for other in (X.astype(np.float32), sparse.csr_array(X)):
        assert np.allclose(MercerExpansion(RBF(2.0), other, 5).eigenvalues, MercerExpansion(RBF(2.0), X, 5).eigenvalues)


def test_a_kernel_takes_its_scale_from_the_sample():
    X = np.random.default_rng(6).standard_normal((30, 2))
    assert MercerExpansion(RBF("auto"), X, 3).kernel == RBF("auto").resolve(X)


@pytest.mark.parametrize(
    ("kernel", "X", "rank"),
    [
        (Constant(2.0), np.arange(9.0)[:, None], 1),
        (Linear(), np.random.default_rng(0).standard_normal((30, 3)), 3),
        (RBF(1.0), np.ones((10, 2)), 1),
        (RBF(1.0), np.repeat([[0.0], [1.0], [5.0]], 4, axis=0), 3),
        (RBF(1.0), [[0.5]], 1),
        (Linear(), 1e8 * np.random.default_rng(0).standard_normal((30, 2)), 2),
        (Linear(), 1e-12 * np.random.default_rng(0).standard_normal((30, 2)), 2),
    ],
    ids=["constant", "linear", "equal points", "repeated points", "one point", "huge", "tiny"],
)
def test_there_are_no_more_terms_than_the_kernel_has(kernel, X, rank):
    expansion = MercerExpansion(kernel, X, 7)
    assert len(expansion) == rank
    Phi = expansion.transform(X)
    K = kernel(np.asarray(X, dtype=float))
    assert np.allclose(Phi @ Phi.T, K, atol=1e-10 * np.abs(K).max())
    assert expansion.orthonormality_error < 1e-10
    assert expansion.truncation_error().share < 1e-12


# -- laws and boxes -------------------------------------------------------------------------------------


def products(*spectra):
    """The largest products of eigenvalues, one from each spectrum."""
    whole = np.ones(1)
    for values in spectra:
        whole = np.outer(whole, values).ravel()
    return np.sort(whole)[::-1]


def test_independent_coordinates_multiply():
    line = MercerExpansion(RBF(0.8), Box(0, 1), 12).eigenvalues
    normal = MercerExpansion(RBF(0.8), stats.norm(0, 0.3), 12).eigenvalues
    for measure, spectra in [
        (Box([0, 0], [1, 1]), (line, line)),
        ([stats.uniform(0, 1), stats.norm(0, 0.3)], (line, normal)),
        (stats.multivariate_normal([1.0, 2.0], 0.09 * np.eye(2)), (normal, normal)),
        (Box([0] * 3, [1] * 3), (line,) * 3),
    ]:
        expansion = MercerExpansion(RBF(0.8), measure, 8, nodes=600)
        assert np.allclose(expansion.eigenvalues, products(*spectra)[:8], rtol=1e-8)
        assert expansion.orthonormality_error < 1e-6


def test_a_correlated_normal_law_is_a_turned_one():
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((2, 2)))[0]
    straight = MercerExpansion(RBF(2.0), stats.multivariate_normal([0, 0], np.diag([1.0, 0.25])), 6)
    turned = MercerExpansion(RBF(2.0), stats.multivariate_normal([5, 1], turn @ np.diag([1.0, 0.25]) @ turn.T), 6)
    assert np.allclose(straight.eigenvalues, turned.eigenvalues, rtol=1e-9)
    # A singular covariance: all of the law on a line.
    flat = MercerExpansion(RBF(2.0), stats.multivariate_normal([0, 0], np.ones((2, 2)), allow_singular=True), 6)
    assert np.allclose(flat.eigenvalues, gaussian(2.0, 0.0, np.sqrt(2), 6)[0], rtol=1e-9)
    assert flat.feature_map().n_features_in_ == 2


def test_many_dimensions_by_quasi_random_nodes():
    line = MercerExpansion(RBF(2.0), Box(0, 1), 4).eigenvalues
    expansion = MercerExpansion(RBF(2.0), Box([0] * 7, [1] * 7), 5, nodes=1024)
    true = products(*(line,) * 7)[:5]
    assert "quasi-random" in expansion.how
    assert np.abs(expansion.eigenvalues / true - 1).max() < 0.1
    assert (np.abs(expansion.eigenvalues - true) < 10 * expansion.errors + 1e-3 * true[0]).all()


def test_a_discrete_law_is_its_atoms():
    law, k = stats.binom(6, 0.3), np.arange(7.0)[:, None]
    expansion = MercerExpansion(RBF(1.0), law, 7)
    sample = MercerExpansion(RBF(1.0), k, 7, weights=law.pmf(k[:, 0]))
    assert np.allclose(expansion.eigenvalues, sample.eigenvalues)


def test_an_unbounded_kernel_under_a_law_with_moments():
    # x z + x^2 z^2 under N(0, 1): the features x and x^2 have second moments 1 and 3 and are uncorrelated.
    kernel = Linear() + Linear() ** 2
    assert np.allclose(MercerExpansion(kernel, stats.norm(), 5).eigenvalues, [3.0, 1.0])
    kernel = Polynomial(2, 1.0, 1.0)  # 1, sqrt(2) x, x^2: moments [[1, 0, 1], [0, 2, 0], [1, 0, 3]]
    moments = np.array([[1, 0, 1], [0, 2, 0], [1, 0, 3.0]])
    assert np.allclose(MercerExpansion(kernel, stats.norm(), 5).eigenvalues, np.linalg.eigvalsh(moments)[::-1])


@pytest.mark.parametrize(
    "law",
    [
        stats.expon(),
        stats.gamma(2.5),
        stats.beta(0.5, 2),
        stats.t(3),
        stats.cauchy(),
        stats.lognorm(0.5),
        stats.laplace(),
    ],
    ids=lambda law: law.dist.name,
)
def test_functions_are_orthonormal_under_any_law(law):
    expansion = MercerExpansion(RBF(1.0), law, 5, nodes=640)
    assert expansion.orthonormality_error < 1e-5  # the density of laplace has a kink
    # Once more by many quantiles, which share nothing with the rule.
    x = law.ppf((np.arange(20_000) + 0.5) / 20_000)
    F = expansion.eigenfunctions(x[:, None])
    assert np.abs(F.T @ F / 20_000 - np.eye(5)).max() < 1e-3


def test_heavy_tails_and_growing_kernels():
    assert np.allclose(MercerExpansion(Linear(), stats.t(4), 3).eigenvalues, [2.0], rtol=1e-6)  # the variance
    heavier = MercerExpansion(Linear(), stats.t(2.5), 3)
    assert abs(heavier.eigenvalues[0] - 5) < heavier.errors[0] < 1e-3
    assert (heavier.errors[1:] > heavier.eigenvalues[1:]).all()
    with pytest.raises(ValueError, match=r"the integral of k\(x, x\) under the law is not finite"):
        MercerExpansion(Linear(), stats.cauchy(), 3)


@pytest.mark.parametrize("kernel", [RBF(1e-6), Delta()], ids=["narrow", "delta"])
def test_a_kernel_that_no_rule_resolves_is_told(kernel):
    expansion = MercerExpansion(kernel, Box(0, 1), 3, nodes=1024)
    assert (expansion.errors > 0.5 * expansion.eigenvalues).all()


def test_more_nodes_are_taken_where_asked_for():
    few, many = (MercerExpansion(Intersection(), Box(0, 1), 3, nodes=n) for n in (50, 200))
    true = ((np.arange(3) + 0.5) * np.pi) ** -2.0
    assert len(few.weights) == 50
    assert len(many.weights) == 200
    assert np.abs(many.eigenvalues - true).max() < np.abs(few.eigenvalues - true).max() / 8


# -- Mercer's theorem and the geometry of H -------------------------------------------------------------


@pytest.fixture(scope="module")
def smooth():
    return MercerExpansion(RBF(0.7), Box(-1, 1), 25)


def test_the_series_is_the_kernel(smooth):
    x = np.linspace(-1, 1, 50)[:, None]
    Phi = smooth.transform(x)
    assert np.abs(Phi @ Phi.T - RBF(0.7)(x)).max() <= smooth.truncation_error(x).sup + 1e-12
    short = MercerExpansion(RBF(0.7), Box(-1, 1), 4)
    left = short.truncation_error()
    Phi = short.transform(x)
    assert np.abs(Phi @ Phi.T - RBF(0.7)(x)).max() <= left.sup + 1e-12
    assert np.isclose(left.trace, smooth.eigenvalues[4:].sum(), rtol=1e-6)
    assert left.share == left.trace / short.trace
    assert np.isclose(short.trace, 1.0)


def test_eigenfunctions_are_functions_of_the_space(smooth):
    assert isinstance(smooth.eigenfunctions, RKHSVector)
    assert all(isinstance(f, RKHSFunction) for f in smooth.eigenfunctions)
    some = list(smooth.eigenfunctions)[:6]
    size = np.sqrt(smooth.eigenvalues[:6])
    inner = np.array([[f @ g for f in some] for g in some])
    assert np.allclose(size[:, None] * inner * size, np.eye(6), atol=1e-9)  # of norm 1 / sqrt(lambda), and orthogonal


def test_the_operator_scales_its_functions(smooth):
    x, w = np.polynomial.legendre.leggauss(80)
    z = np.linspace(-1, 1, 15)
    for j in range(5):
        f = smooth.eigenfunctions[j]
        image = RBF(0.7)(z[:, None], x[:, None]) @ (w / 2 * f(x[:, None]))
        assert np.allclose(image, smooth.eigenvalues[j] * f(z[:, None]), atol=1e-12)


@given(seed=st.integers(0, 2**16), offset=st.floats(-3, 3))
@settings(max_examples=25)
def test_coefficients_know_norms_and_inner_products(smooth, seed, offset):
    rng = np.random.default_rng(seed)
    f, g = (RKHSFunction(RBF(0.7), rng.uniform(-1, 1, (4, 1)), rng.standard_normal(4)) for _ in range(2))
    assert np.isclose(smooth.norm(f), f.norm(), rtol=1e-4)
    assert np.isclose(smooth.inner(f, g), f @ g, rtol=1e-4, atol=1e-4 * f.norm() * g.norm())
    assert np.isclose(smooth.norm(smooth.coefficients(f)), smooth.norm(f))
    # Parseval, and the projection is what it says.
    x, w = np.polynomial.legendre.leggauss(60)
    mean_square = float(w / 2 @ f(x[:, None]) ** 2)
    assert np.isclose((smooth.coefficients(f) ** 2).sum(), mean_square, rtol=1e-8)
    assert np.allclose(smooth.projection(f)(x[:, None]), f(x[:, None]), atol=1e-6 * f.norm())
    # The offset counts as a part of the values.
    assert np.allclose(
        smooth.coefficients(f + offset), smooth.coefficients(f) + smooth.coefficients(lambda X: offset + 0 * X[:, 0])
    )


@given(seed=st.integers(0, 2**16))
@settings(max_examples=25)
def test_a_function_is_its_coefficients(smooth, seed):
    c = np.random.default_rng(seed).standard_normal(len(smooth)) * smooth.eigenvalues**0.5
    f = smooth.function(c)
    assert np.allclose(smooth.coefficients(f), c, atol=1e-6)
    assert np.isclose(smooth.norm(c), np.sqrt((c**2 / smooth.eigenvalues).sum()))


def test_a_projection_is_the_closest_function():
    short = MercerExpansion(RBF(0.5), Box(0, 1), 5)
    f = RKHSFunction(RBF(0.5), [[0.1], [0.9]], [1.0, -2.0])
    g = short.projection(f)
    rest = f - g
    assert all(abs(rest @ phi) * np.sqrt(short.eigenvalues[j]) < 1e-9 for j, phi in enumerate(short.eigenfunctions))
    assert np.isclose(f.norm() ** 2, g.norm() ** 2 + rest.norm() ** 2)
    assert np.isclose(short.norm(f), g.norm(), rtol=1e-8)  # by coefficients: of the projection


def test_signs_do_not_hang_on_the_rule():
    few, many = (MercerExpansion(RBF(1.0), stats.norm(), 12, nodes=n) for n in (100, 220))
    x = np.linspace(-2, 2, 9)[:, None]
    assert np.abs(few.eigenfunctions(x) - many.eigenfunctions(x)).max() < 1e-4


def test_an_expansion_can_be_sent(smooth):
    other = pickle.loads(pickle.dumps(smooth))
    x = np.linspace(-1, 1, 7)[:, None]
    assert np.array_equal(other.transform(x), smooth.transform(x))
    assert other.truncation_error() == smooth.truncation_error()


# -- sentences ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", [stats.norm(), Box(0, 1)], ids=["law", "box"])
def test_a_law_gives_no_scale(measure):
    with pytest.raises(ValueError, match=r"RBF\(\) takes a parameter from data, and a law or a box has none"):
        MercerExpansion(RBF("auto"), measure, 3)


@pytest.mark.parametrize("rank", [0, -1, 2.5, True, None], ids=repr)
def test_rank_is_a_number(rank):
    with pytest.raises(ValueError, match="rank must be a whole number of at least 1; it is"):
        MercerExpansion(RBF(1.0), Box(0, 1), rank)


def test_nodes_are_a_number():
    with pytest.raises(ValueError, match="nodes must be a whole number of at least 4; it is 2"):
        MercerExpansion(RBF(1.0), Box(0, 1), 2, nodes=2)


def test_the_kernel_is_a_kernel():
    with pytest.raises(TypeError, match="kernel must be a kernel object"):
        MercerExpansion("rbf", Box(0, 1), 2)


@pytest.mark.parametrize(
    "measure",
    [stats.norm, stats.gaussian_kde([1.0, 2.0, 3.0]), stats.dirichlet([1.0, 2.0])],
    ids=["law", "kde", "dirichlet"],
)
def test_what_is_no_measure_is_told(measure):
    with pytest.raises(TypeError, match=r"no frozen law of scipy.stats on the line .* pass a sample of it instead"):
        MercerExpansion(RBF(1.0), measure, 2)


@pytest.mark.parametrize("corners", [(1, 0), (0, np.inf), ([0, 0], [1]), (0, 0), ([[0]], [[1]])], ids=repr)
def test_a_box_has_two_corners(corners):
    with pytest.raises(ValueError, match=r"Box\(low, high\) needs finite numbers low < high"):
        Box(*corners)


def test_weights_belong_to_samples():
    with pytest.raises(ValueError, match="weights belong to the points of a sample; a law or a box has none"):
        MercerExpansion(RBF(1.0), Box(0, 1), 2, weights=[1.0])


@pytest.mark.parametrize("weights", [[1.0], [0.0, 0.0], [1.0, -1.0], [np.nan, 1.0]], ids=repr)
def test_weights_are_masses(weights):
    with pytest.raises(ValueError, match="weights must be 2 finite numbers >= 0, one for each point and not all zero"):
        MercerExpansion(RBF(1.0), [[0.0], [1.0]], 2, weights=weights)


def test_a_kernel_that_is_zero_has_no_expansion():
    with pytest.raises(ValueError, match="no eigenvalue is above 0: the kernel is 0 on all of the measure"):
        MercerExpansion(Linear(), np.zeros((4, 2)), 2)


def test_a_law_with_too_many_atoms_is_told():
    with pytest.raises(ValueError, match="poisson has more than 10000 atoms"):
        MercerExpansion(RBF(1.0), stats.poisson(1e8), 2)


def test_functions_are_numbers_at_points(smooth):
    with pytest.raises(
        ValueError, match=r"f must give one number for each of \d+ points; it gave an array of shape \(\)"
    ):
        smooth.coefficients(lambda X: 3.0)
    with pytest.raises(ValueError, match="f is not finite at some of the nodes"):
        smooth.coefficients(lambda X: np.full(len(X), np.nan))
    with pytest.raises(
        ValueError, match=r"by 14 coefficients, one for each eigenfunction; got an array of shape \(3,\)"
    ):
        smooth.norm([1.0, 2.0, 3.0])


def test_a_kernel_with_a_negative_eigenvalue_has_no_expansion():
    bent = Sigmoid(1.0, -1.0)
    x, w = np.polynomial.legendre.leggauss(40)
    x, w = (x[:, None] + 1) / 2, w / 2
    least = np.linalg.eigvalsh(np.sqrt(w)[:, None] * bent(x) * np.sqrt(w))[0]  # the operator's, by another rule
    with pytest.raises(ValueError, match=rf"Sigmoid.*eigenvalue {least:.3g} beside 0.0788.*Mercer's theorem needs"):
        MercerExpansion(bent, Box(0, 1), 4)
    sample = np.random.default_rng(0).uniform(size=(2600, 1))
    for points in (sample[:100], sample):  # by LAPACK, and by products
        with pytest.raises(ValueError, match=r"Sigmoid.*eigenvalue -.*Mercer's theorem needs"):
            MercerExpansion(bent, points, 2)
    plain = FromFunction(lambda x, z: float(np.exp(-0.5 * (x - z) @ (x - z))))  # unproven, and a kernel
    one, other = MercerExpansion(plain, sample[:60], 4), MercerExpansion(RBF(1.0), sample[:60], 4)
    np.testing.assert_allclose(one.eigenvalues, other.eigenvalues, rtol=1e-10)


def test_a_budget_bounds_the_nodes():
    with pytest.raises(MemoryError, match=r"the matrix of 512 nodes would need .* pass a smaller number as nodes"):
        MercerExpansion(Intersection(), Box(0, 1), 3, budget="4 MB")


@pytest.mark.long
def test_a_sample_of_fifty_thousand():
    X = np.random.default_rng(0).standard_normal((50_000, 2))
    expansion = MercerExpansion(RBF(1.0), X, 10, budget="500 MB")
    one = gaussian(1.0, 0.0, 1.0, 10)[0]
    assert np.abs(expansion.eigenvalues - products(one, one)[:10]).max() < 0.01
    some = X[:200]
    Phi = expansion.transform(some)
    assert np.abs(Phi @ Phi.T - Gram(RBF(1.0), some).dense()).max() <= expansion.truncation_error(some).sup + 1e-9
