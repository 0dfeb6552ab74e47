"""Kernel density estimates: scikit-learn and SciPy as referees, integrals, tails, and the limit of small windows."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity as Referee
from sklearn.neighbors import KNeighborsClassifier

import mercer
from cases import each
from checks import assert_no_fault
from mercer import KernelDensity
from mercer.kernels import RBF, Cauchy, Laplacian, Linear, Matern, RationalQuadratic, Wendland
from mercer.rkhs.statistics.density import METRICS, PROFILES, Profile, log_density, log_left_out, window

ENDLESS = [RBF(0.7), Laplacian(0.7), Matern(0.5, 0.7), Matern(1.5, 0.7), Matern(2.5, 0.7)]
HEAVY = [RationalQuadratic(2.0, 0.7), RationalQuadratic(1.7, 0.7)]
FINITE = [Wendland(0, 0.7), Wendland(1, 0.7), Wendland(2, 0.7)]
WINDOWS = [*ENDLESS, *HEAVY, *FINITE]
names = {"ids": repr}


def sample(n=60, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * np.geomspace(1, 3, d) + 5.0


# -- scikit-learn and SciPy -------------------------------------------------------------------------------


@each("d", [1, 3, 5])  # its integral of a cosine is right in odd dimensions only
@each("name", PROFILES)
@each("weighted", [False, True], ids=["equal", "weighted"])
def test_scikit_learn_agrees(d, name, weighted):
    X, new = sample(d=d), sample(40, d=d, seed=1) + 1.0
    w = np.random.default_rng(2).integers(1, 5, size=60) if weighted else None
    for bandwidth in (2.5, 6.0):
        model = KernelDensity(bandwidth, kernel=name).fit(X, sample_weight=w)
        referee = Referee(bandwidth=bandwidth, kernel=name, rtol=0, atol=0).fit(X, sample_weight=w)
        found, expected = model.score_samples(new), referee.score_samples(new)
        inside = np.isfinite(expected)  # of compact windows
        assert found[inside] == pytest.approx(expected[inside], rel=1e-10)
        assert (found[~inside] == -math.inf).all()
        assert model.score(new[inside]) == pytest.approx(referee.score(new[inside]), rel=1e-10)
    assert inside.all()


def test_scikit_learn_s_linear_window_is_a_wendland_kernel_in_one_dimension():
    X = sample(d=1)
    referee = Referee(bandwidth=0.8, kernel="linear", rtol=0, atol=0).fit(X)
    inside = np.exp(referee.score_samples(X))
    assert np.exp(KernelDensity(0.8, kernel=Wendland(0)).fit(X).score_samples(X)) == pytest.approx(inside, rel=1e-9)


@pytest.mark.parametrize("rule", ["scott", "silverman"])
@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
def test_scipy_agrees_on_the_rules_in_one_dimension(rule, weighted):
    X, new = sample(d=1), sample(30, d=1, seed=1)
    w = np.random.default_rng(2).exponential(size=60) if weighted else None
    model = KernelDensity(rule).fit(X, sample_weight=w)
    referee = stats.gaussian_kde(X.T, bw_method=rule, weights=w)
    assert model.bandwidth_ == pytest.approx(math.sqrt(referee.covariance[0, 0]))
    assert model.score_samples(new) == pytest.approx(referee.logpdf(new.T), rel=1e-9)


@pytest.mark.parametrize("rule", ["scott", "silverman"])
def test_scikit_learn_agrees_on_the_rules_for_standardised_features(rule):
    X = sample(d=3)
    X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    model, referee = KernelDensity(rule).fit(X), Referee(bandwidth=rule, rtol=0, atol=0).fit(X)
    assert np.broadcast_to(model.bandwidth_, 3) == pytest.approx(np.full(3, referee.bandwidth_))
    assert model.score_samples(X) == pytest.approx(referee.score_samples(X), rel=1e-9)


@each("name", PROFILES)
@each("metric", METRICS)
def test_every_metric_has_its_own_integral(name, metric):
    found = window(Profile(name, metric, [0.5, 2.0, 1.0]), 3)
    draws = found.draw(20_000, np.random.default_rng(0))
    # E g(x) / p(x) over draws of p is the integral of g: here of an ellipsoid inside every window.
    inside = np.linalg.norm(draws / [0.5, 2.0, 1.0], axis=1) < 0.4
    p = np.exp(log_density(found, draws[inside], np.zeros((1, 3)), np.zeros(1)))
    ball = np.zeros(len(draws))
    ball[inside] = 1 / p
    assert abs(ball.mean() - 4 / 3 * math.pi * 0.4**3) < 4 * ball.std() / math.sqrt(len(draws))
    apart = cdist(draws[:50] / [0.5, 2.0, 1.0], np.zeros((1, 3)), {"manhattan": "cityblock"}.get(metric, metric))
    # Distances decide, and nothing else: draws in the order of their distance are in that of their density.
    logs = log_density(found, draws[:50], np.zeros((1, 3)), np.zeros(1))
    assert (np.diff(logs[np.argsort(apart[:, 0])]) <= 1e-12).all()


def test_metrics_by_their_other_names():
    X = sample()
    for name, params, plain in [
        ("minkowski", None, "euclidean"),
        ("minkowski", {"p": 1}, "manhattan"),
        ("p", {"p": math.inf}, "chebyshev"),
        ("l1", None, "manhattan"),
        ("l2", None, "euclidean"),
    ]:
        found = KernelDensity(0.8, metric=name, metric_params=params).fit(X).score_samples(X)
        assert np.array_equal(found, KernelDensity(0.8, metric=plain).fit(X).score_samples(X))


def test_a_window_that_is_no_kernel_has_no_function(tmp_path):
    X = sample()
    model = KernelDensity(2.0, kernel="tophat").fit(X)
    assert model.bandwidth_ == 2.0
    with pytest.raises(AttributeError, match="'tophat' is not known to be a positive semidefinite kernel"):
        _ = model.function_
    assert np.isfinite(KernelDensity("loo", kernel="epanechnikov").fit(X).score_samples(X)).all()
    mercer.save(model, tmp_path / "model.mercer")
    twin = mercer.load(tmp_path / "model.mercer")
    assert np.array_equal(twin.score_samples(X), model.score_samples(X))
    assert np.array_equal(twin.sample(5, random_state=0), model.sample(5, random_state=0))


def test_what_changes_nothing_is_said():
    X = sample()
    plain = KernelDensity(0.8).fit(X).score_samples(X)
    for name, value in [("algorithm", "ball_tree"), ("atol", 1e-3), ("rtol", 1e-3), ("breadth_first", False)]:
        with pytest.warns(UserWarning, match=f"{name}={value!r} changes nothing in KernelDensity: ") as seen:
            model = KernelDensity(0.8, **{name: value}).fit(X)
        assert len(seen) == 1
        assert seen[0].filename == __file__
        assert np.array_equal(model.score_samples(X), plain)


# -- densities --------------------------------------------------------------------------------------------


def test_the_cosine_has_its_integral_in_every_dimension():
    for d in (1, 2, 3, 4, 50):
        shell = integrate.quad(lambda r: d * r ** (d - 1) * math.cos(0.5 * math.pi * r), 0, 1)[0]  # noqa: B023
        ball = window(Profile("tophat", scale=1.0), d).log_volume
        assert window(Profile("cosine", scale=1.0), d).log_volume == pytest.approx(ball + math.log(shell), abs=1e-10)


@pytest.mark.parametrize("kernel", [*WINDOWS, Cauchy(0.7), "tophat", "cosine"], **names)
def test_the_integral_is_one(kernel):
    X = np.array([[0.0], [0.3], [2.0]])
    model = KernelDensity(0.7 if isinstance(kernel, str) else None, kernel=kernel).fit(X, sample_weight=[1, 2, 1])

    def density(t):
        return math.exp(model.score_samples([[t]])[0])

    corners = sorted({float(c + s) for c in X[:, 0] for s in (-0.7, 0.0, 0.7)})
    inner = integrate.quad(density, corners[0], corners[-1], points=corners[1:-1], limit=400)[0]
    outer = integrate.quad(density, -np.inf, corners[0])[0] + integrate.quad(density, corners[-1], np.inf)[0]
    assert inner + outer == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("kernel", [RBF([0.5, 2.0, 1.0]), *ENDLESS[2:], RationalQuadratic(3.0, 0.7), *FINITE], **names)
def test_the_volume_in_three_dimensions(kernel):
    scales = np.broadcast_to(kernel.scale, 3)
    unit = kernel.replace(scale=1.0)

    def shell(r):
        return 4 * math.pi * r * r * unit(np.array([[r, 0.0, 0.0]]), np.zeros((1, 3)))[0, 0]

    volume = integrate.quad(shell, 0, 1)[0] + (0 if kernel in FINITE else integrate.quad(shell, 1, np.inf)[0])
    assert window(kernel, 3).log_volume == pytest.approx(math.log(volume * scales.prod()), abs=1e-6)


@pytest.mark.parametrize("kernel", [*WINDOWS, Cauchy(0.7)], **names)
def test_draws_have_the_density_of_the_window(kernel):
    draws = window(kernel, 1).draw(4000, np.random.default_rng(0))[:, 0]
    grid = np.linspace(0, 3, 3001)
    values = kernel.replace(scale=1.0)(grid[:, None], np.zeros((1, 1)))[:, 0]
    volume = math.exp(window(kernel, 1).log_volume) / kernel.scale
    inside = 2 * integrate.cumulative_trapezoid(values, grid, initial=0.0) / volume
    seen = (np.abs(draws)[:, None] <= kernel.scale * grid[::50]).mean(axis=0)
    assert np.abs(seen - inside[::50]).max() < 1.95 / math.sqrt(4000)  # Kolmogorov and Smirnov, 0.1%
    assert abs(np.mean(draws > 0) - 0.5) < 4 * 0.5 / math.sqrt(4000)


@pytest.mark.parametrize("kernel", [RBF([0.5, 2.0, 1.0]), *ENDLESS, RationalQuadratic(3.0, 0.7), *FINITE], **names)
def test_draws_in_three_dimensions_have_the_likelihood_of_the_density(kernel):
    found = window(kernel, 3)
    draws = found.draw(20_000, np.random.default_rng(0)) / np.broadcast_to(kernel.scale, 3)
    unit = kernel.replace(scale=1.0)
    # E g(x) / p(x) over draws of p is the integral of g: here of a ball inside every window.
    inside = np.linalg.norm(draws, axis=1) < 0.4
    p = unit(draws[inside], np.zeros((1, 3)))[:, 0] / math.exp(window(unit, 3).log_volume)
    ball = np.zeros(len(draws))
    ball[inside] = 1 / p
    assert abs(ball.mean() - 4 / 3 * math.pi * 0.4**3) < 4 * ball.std() / math.sqrt(len(draws))


def test_samples_come_from_the_density():
    X = np.array([[0.0], [10.0]])
    model = KernelDensity(0.5).fit(X, sample_weight=[1, 3])
    drawn = model.sample(4000, random_state=0)
    assert drawn.shape == (4000, 1)
    assert np.mean(drawn > 5) == pytest.approx(0.75, abs=0.03)
    assert stats.kstest(drawn[drawn < 5], stats.norm(0, 0.5).cdf).pvalue > 1e-3
    assert np.array_equal(drawn, model.sample(4000, random_state=0))


def test_the_density_is_a_function_of_the_space():
    X = sample()
    model = KernelDensity(0.8).fit(X)
    assert model.function_(X) == pytest.approx(np.exp(model.score_samples(X)), rel=1e-10)
    assert model.function_.kernel == model.kernel_ == RBF(0.8)


# -- tails ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [*ENDLESS, *HEAVY], **names)
@pytest.mark.parametrize("far", [100.0, 1e4, 1e100, 1e160])
def test_far_from_the_data_the_logarithm_is_finite(kernel, far):
    X = np.array([[0.0], [1.0], [3.0]])
    found = KernelDensity(kernel=kernel).fit(X).score_samples([[far * 0.7], [0.5]])
    r = far - X[:, 0] / 0.7
    with np.errstate(over="ignore"):
        terms = {
            "RBF": lambda: -(r**2) / 2,
            "Laplacian": lambda: -r,
            "Matern": lambda: _matern(r, getattr(kernel, "nu", 0)),
            "RationalQuadratic": lambda: -kernel.alpha * (2 * np.log(r) - math.log(2 * kernel.alpha)),
        }[type(kernel).__name__]()
    expected = logsumexp(terms) - math.log(3) - window(kernel, 1).log_volume
    assert found[0] == pytest.approx(expected, rel=1e-3 if kernel in HEAVY else 1e-9)
    assert math.isfinite(found[0]) or (isinstance(kernel, RBF) and far > 1e155)  # -1e320 is no float64
    assert found[1] > -10


def _matern(r, nu):
    r = r * math.sqrt(2 * nu)
    return {0.5: 0.0, 1.5: np.log1p(r), 2.5: np.log1p(r) + np.log1p(r / 3 * (r / (1 + r)))}[nu] - r


def test_compact_windows_end():
    model = KernelDensity(kernel=Wendland(1, 1.0)).fit([[0.0], [1.0]])
    assert model.score_samples([[5.0]])[0] == -math.inf
    assert model.score_samples([[1.99]])[0] > -20


def test_it_is_smooth_where_the_computation_changes():
    """Sums and sums of logarithms meet at densities of 1e-200 of the window's height."""
    model = KernelDensity(1.0).fit([[0.0]])
    t = np.linspace(29.0, 32.0, 301)[:, None]
    assert model.score_samples(t) == pytest.approx(stats.norm.logpdf(t[:, 0]), rel=1e-12)


@given(st.integers(0, 2**20), st.sampled_from([1e-100, 1e-5, 1e5, 1e100]), st.sampled_from(["scott", "silverman"]))
def test_units_shift_the_logarithm(seed, factor, rule):
    X = sample(12, seed=seed)
    here, there = KernelDensity(rule).fit(X), KernelDensity(rule).fit(factor * X)
    assert there.score_samples(factor * X) == pytest.approx(here.score_samples(X) - 2 * math.log(factor), rel=1e-7)


def test_order_does_not_matter():
    X = sample()
    order = np.random.default_rng(0).permutation(60)
    for rule in ("scott", "loo"):
        found = KernelDensity(rule).fit(X).score_samples(X[:5])
        assert KernelDensity(rule).fit(X[order]).score_samples(X[:5]) == pytest.approx(found, rel=1e-5)


# -- the bandwidth ----------------------------------------------------------------------------------------


def test_leaving_out_is_leaving_out():
    X, w = sample(15), np.random.default_rng(0).exponential(size=15)
    found = log_left_out(window(RBF(0.8), 2), X, np.log(w / w.sum()))
    for i in range(15):
        others = np.arange(15) != i
        alone = KernelDensity(0.8).fit(X[others], sample_weight=w[others]).score_samples(X[[i]])
        assert found[i] == pytest.approx(alone[0], rel=1e-10)


@pytest.mark.parametrize("kernel", ["gaussian", "exponential", RBF(), Wendland(1)], **names)
def test_the_leave_one_out_choice_is_a_maximum(kernel):
    X = sample(50)
    model = KernelDensity("loo", kernel=kernel).fit(X)
    logs = np.full(50, -math.log(50))

    def likelihood(factor):
        scale = [factor * s for s in model.bandwidth_]
        return log_left_out(window(model.kernel_.replace(scale=scale), 2), X, logs).sum()

    assert all(likelihood(1.0) >= likelihood(f) - 1e-3 for f in np.geomspace(0.2, 5, 30))


def test_the_leave_one_out_choice_beats_scott_s_on_two_far_clusters():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(100, 1)), rng.normal(size=(100, 1)) + 100])
    new = np.concatenate([rng.normal(size=(100, 1)), rng.normal(size=(100, 1)) + 100])
    assert KernelDensity("loo").fit(X).score(new) > KernelDensity("scott").fit(X).score(new) + 50


def test_the_scale_of_the_kernel_is_a_bandwidth():
    X = sample()
    own = KernelDensity(kernel=RBF([0.5, 2.0])).fit(X)
    assert own.score_samples(X) == pytest.approx(KernelDensity([0.5, 2.0]).fit(X).score_samples(X))
    median = KernelDensity(kernel=RBF("median")).fit(X)
    assert median.kernel_ == RBF("median").resolve(X)
    assert KernelDensity().fit(X).bandwidth_ == KernelDensity("scott").fit(X).bandwidth_


def test_searches_find_a_bandwidth():
    X = np.random.default_rng(0).normal(size=(200, 1))
    search = GridSearchCV(KernelDensity(), {"bandwidth": [0.01, 0.3, 10.0]}).fit(X)
    assert search.best_params_ == {"bandwidth": 0.3}


# -- the limits of the window (M15) -----------------------------------------------------------------------


def windows_vote(X, y, new, bandwidth):
    """The sign of sum y_i k(x_i, .), by the logarithms of the sums over each class."""
    sums = [KernelDensity(bandwidth).fit(X[y == c]).score_samples(new) + math.log(np.sum(y == c)) for c in (-1, 1)]
    return np.where(sums[1] > sums[0], 1, -1)


@settings(max_examples=20)
@given(st.integers(0, 2**20))
def test_small_windows_classify_like_the_nearest_neighbour(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(40, 2)), np.where(rng.random(40) < 0.5, 1, -1)
    y[:2] = [-1, 1]
    new = 3.0 * rng.normal(size=(100, 2))
    nearest = KNeighborsClassifier(1).fit(X, y).predict(new)
    agree = [np.mean(windows_vote(X, y, new, h) == nearest) for h in (10.0, 1e-1, 1e-3, 1e-6)]
    assert agree[-1] == 1.0
    assert agree[-1] >= agree[1]


def test_the_limit_is_lost_where_kernel_values_are_zero():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.where(rng.random(40) < 0.5, 1, -1)
    new = 3.0 * rng.normal(size=(100, 2))
    plain = rbf_kernel(new, X, gamma=0.5 / 1e-3**2) @ y
    assert np.mean(plain == 0) > 0.9
    nearest = KNeighborsClassifier(1).fit(X, y).predict(new)
    assert np.array_equal(windows_vote(X, y, new, 1e-3), nearest)


def test_large_windows_see_nothing_but_the_means():
    rng = np.random.default_rng(1)
    y = np.repeat([-1, 1], 20)
    X = rng.normal(size=(40, 2)) + 2.0 * y[:, None]
    new = 4.0 * rng.normal(size=(200, 2))
    means = [X[y == c].mean(axis=0) for c in (-1, 1)]
    squares = [np.mean(np.sum(X[y == c] ** 2, axis=1)) for c in (-1, 1)]
    # k = 1 - |x - z|^2 / 2h^2 + ..., so the vote is that of mean squared distances: linear in x.
    linear = new @ (means[1] - means[0]) - 0.5 * (squares[1] - squares[0])
    clear = np.abs(linear) > 1e-3
    assert np.array_equal(windows_vote(X, y, new, 1e3)[clear], np.sign(linear)[clear])


# -- hostile samples --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["scott", "silverman", 0.5])
@pytest.mark.parametrize("X", [[[3.0]], [[0.1, 0.1]] * 7, [[0.0, 5.0], [1.0, 5.0]]], ids=["one", "constant", "column"])
def test_constant_features_and_single_points(rule, X):
    model = KernelDensity(rule).fit(X)
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.sample(10, random_state=0)).all()
    if rule == "scott" and X[0] == X[-1]:
        assert np.broadcast_to(model.bandwidth_, len(X[0])) == pytest.approx(len(X) ** (-1 / (len(X[0]) + 4)))


def test_repeated_points_have_no_leave_one_out_maximum():
    X = np.repeat(sample(10), 2, axis=0)
    with pytest.warns(UserWarning, match="points of the sample are repeated"):
        model = KernelDensity("loo").fit(X)
    assert np.isfinite(model.score_samples(X)).all()


def test_weights_of_zero_are_points_left_out():
    X = sample(10)
    w = np.r_[np.ones(5), np.zeros(5)]
    assert KernelDensity(0.5).fit(X, sample_weight=w).score_samples(X) == pytest.approx(
        KernelDensity(0.5).fit(X[:5]).score_samples(X)
    )


def test_many_features():
    X = np.random.default_rng(0).normal(size=(20, 900))
    model = KernelDensity(5.0).fit(X)
    assert np.isfinite(model.score_samples(X)).all()
    assert model.score_samples(X) == pytest.approx(Referee(bandwidth=5.0).fit(X).score_samples(X), rel=1e-9)
    with pytest.raises(FloatingPointError, match="outside the range of float64; score_samples gives their logarithms"):
        _ = model.function_


# -- the interface ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [KernelDensity(), KernelDensity(1.0, kernel=Laplacian())], ids=["scott", "laplacian"])
def test_scikit_learn_finds_no_fault(model):
    assert_no_fault(model)


def test_clone_pickle_and_tables():
    X = pd.DataFrame(sample(), columns=["a", "b"])
    model = clone(KernelDensity("scott", kernel=Laplacian())).fit(X)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    twin = pickle.loads(pickle.dumps(model))
    assert twin.score_samples(X) == pytest.approx(model.score_samples(X), rel=1e-12)


def test_errors_are_sentences():
    X = sample()
    with pytest.raises(ValueError, match=r"Linear\(\) is no density: known with their integrals are RBF"):
        KernelDensity(kernel=Linear()).fit(X)
    with pytest.raises(ValueError, match=r"no finite integral over 2 features: .*has one for alpha > 1\."):
        KernelDensity(kernel=Cauchy(1.0)).fit(X)
    with pytest.raises(ValueError, match=r"Matern\(nu=0.7, scale=1.0\) is no density"):
        KernelDensity(kernel=Matern(0.7, 1.0)).fit(X)
    with pytest.raises(
        ValueError, match="kernel='triweight' of KernelDensity must be one of 'gaussian', 'exponential'"
    ):
        KernelDensity(kernel="triweight").fit(X)
    for wrong in ({"metric": "haversine"}, {"metric_params": {"p": 2}}, {"metric": "p", "metric_params": {"p": 3}}):
        with pytest.raises(ValueError, match=r"invalid metric: .*KernelDensity knows the integrals of windows in"):
            KernelDensity(**wrong).fit(X)
    with pytest.raises(ValueError, match=r"metric='l1' of KernelDensity is for the kernels .*RBF\(.*distances of its"):
        KernelDensity(kernel=RBF(), metric="l1").fit(X)
    with pytest.raises(TypeError, match="must be a kernel object or a name"):
        KernelDensity(kernel=3).fit(X)
    with pytest.raises(ValueError, match="bandwidth='isj' of KernelDensity must be a number > 0"):
        KernelDensity("isj").fit(X)
    for wrong in (0.0, -1.0, math.inf, math.nan, True, [1.0, 2.0, 3.0], [[1.0]], {}):
        with pytest.raises(ValueError, match="must be a finite number > 0, or one for each of the 2 features"):
            KernelDensity(wrong).fit(X)
    with pytest.raises(ValueError, match=r"both bandwidth=0.5 and the scale of RBF\(scale=1.0\) are given"):
        KernelDensity(0.5, kernel=RBF(1.0)).fit(X)
    with pytest.raises(ValueError, match="leaves out one point at a time, and there is n_samples=1"):
        KernelDensity("loo").fit(X[:1])
    with pytest.raises(ValueError, match="leave some point without neighbours"):
        KernelDensity("loo", kernel=Wendland()).fit([[0.0]] * 500 + [[1e9]])
    with pytest.raises(ValueError, match="n_samples must be a whole number >= 1; it is 0"):
        KernelDensity().fit(X).sample(0)
    with pytest.raises(ValueError, match=r"sample_weight\[0\] is -1"):
        KernelDensity().fit(X, sample_weight=-np.ones(60))
