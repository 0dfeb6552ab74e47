"""KernelKMeans against scikit-learn's KMeans, brute force, and the laws of Lloyd's algorithm."""

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_blobs, make_circles
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from checks import assert_no_fault
from mercer import RBF, FromFunction, Gram, KernelKMeans, Polynomial, RKHSFunction
from samples import shared_letters, words

DIGITS = load_digits().data
X, NEW = DIGITS[:300], DIGITS[300:360]
RINGS, SIDES = make_circles(200, factor=0.3, noise=0.05, random_state=0)


def brute_inertia(K, labels, weights):
    """The sum of squared distances to the means, by the pairs of each cluster."""
    total = 0.0
    for c in np.unique(labels):
        w = weights * (labels == c)
        total += w @ np.diag(K) - w @ K @ w / w.sum()
    return total


# -- scikit-learn ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("init", ["k-means++", "random"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_with_the_linear_kernel_it_is_k_means(seed, init):
    ours = KernelKMeans(7, kernel="linear", init=init, n_init=2, random_state=seed).fit(X)
    peer = KMeans(7, init=init, n_init=2, random_state=seed, tol=0, algorithm="lloyd").fit(X)
    np.testing.assert_array_equal(ours.labels_, peer.labels_)
    assert ours.inertia_ == pytest.approx(peer.inertia_)
    assert ours.n_iter_ == peer.n_iter_
    np.testing.assert_array_equal(ours.predict(NEW), peer.predict(NEW))
    np.testing.assert_allclose(ours.transform(NEW), peer.transform(NEW))
    assert ours.score(NEW) == pytest.approx(peer.score(NEW))


def test_with_weights_too():
    w = np.random.default_rng(0).integers(0, 4, len(X)).astype(float)
    ours = KernelKMeans(5, kernel="linear", random_state=0).fit(X, sample_weight=w)
    peer = KMeans(5, random_state=0, tol=0).fit(X, sample_weight=w)
    np.testing.assert_array_equal(ours.labels_, peer.labels_)
    assert ours.inertia_ == pytest.approx(peer.inertia_)
    assert ours.score(X, sample_weight=w) == pytest.approx(-ours.inertia_)
    np.testing.assert_allclose(ours.fit_transform(X, sample_weight=w), peer.transform(X))


def test_first_centres_may_be_named():
    chosen = [3, 50, 200]
    ours = KernelKMeans(3, kernel="linear", init=chosen).fit(X)
    peer = KMeans(3, init=X[chosen], n_init=1, tol=0, algorithm="lloyd").fit(X)
    np.testing.assert_array_equal(ours.labels_, peer.labels_)


def test_first_centres_may_be_points():
    centres = X[[3, 50, 200]] + np.random.default_rng(0).normal(size=(3, 64))
    ours = KernelKMeans(3, kernel="linear", init=centres).fit(X)
    peer = KMeans(3, init=centres, n_init=1, tol=0, algorithm="lloyd").fit(X)
    np.testing.assert_array_equal(ours.labels_, peer.labels_)
    assert ours.inertia_ == pytest.approx(peer.inertia_)
    named, given = (KernelKMeans(3, kernel=RBF(25.0), init=init).fit(X) for init in ([3, 50, 200], X[[3, 50, 200]]))
    np.testing.assert_array_equal(named.labels_, given.labels_)
    w = np.random.default_rng(0).integers(0, 4, len(X)).astype(float)
    ours = KernelKMeans(3, kernel="linear", init=centres).fit(X, sample_weight=w)
    peer = KMeans(3, init=centres, n_init=1, tol=0, algorithm="lloyd").fit(X, sample_weight=w)
    np.testing.assert_array_equal(ours.labels_, peer.labels_)


def test_first_centres_may_come_from_a_function():
    seen = []

    def init(X, n_clusters, random_state):
        seen.append(random_state.choice(len(X), n_clusters, replace=False))
        return X[seen[-1]]

    model = KernelKMeans(4, kernel="linear", init=init, random_state=0).fit(X)
    each = [KernelKMeans(4, kernel="linear", init=chosen).fit(X).inertia_ for chosen in seen]
    assert len(seen) == 10  # as for init="random"
    assert model.inertia_ == pytest.approx(min(each))
    KernelKMeans(4, kernel="linear", init=init, n_init=2, random_state=0).fit(X)
    assert len(seen) == 12


@pytest.mark.parametrize(
    "idle", [{"algorithm": "elkan"}, {"copy_x": False}, {"verbose": 1}], ids=lambda v: next(iter(v))
)
def test_parameters_of_scikit_learn_that_change_nothing(idle):
    with pytest.warns(UserWarning, match="changes nothing in KernelKMeans"):
        model = KernelKMeans(3, random_state=0, **idle).fit(X)
    np.testing.assert_array_equal(model.labels_, KernelKMeans(3, random_state=0).fit(X).labels_)
    KMeans(3, **idle)


# -- laws -----------------------------------------------------------------------------------------------------

KERNELS = [RBF(25.0), Polynomial(2, 1.0, 1e-3), RBF("median") * Polynomial(1, 1.0, 1e-2)]


@pytest.mark.parametrize("kernel", KERNELS, ids=["rbf", "poly", "product"])
def test_the_inertia_is_exact_and_nothing_better_is_near(kernel):
    w = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    model = KernelKMeans(4, kernel=kernel, random_state=0).fit(X, sample_weight=w)
    K = model.kernel_(X)
    assert model.inertia_ == pytest.approx(brute_inertia(K, model.labels_, w), rel=1e-12)
    nearest = np.argmin(model.transform(X), axis=1)
    np.testing.assert_array_equal(nearest, model.labels_)  # no point is nearer to another centre
    for i in np.random.default_rng(2).choice(len(X), 10, replace=False):
        for c in set(range(4)) - {model.labels_[i]}:
            moved = model.labels_.copy()
            moved[i] = c
            # Lloyd's optimum allows a move that helps by shifting both centres, but only a little one.
            assert brute_inertia(K, moved, w) >= model.inertia_ * (1 - 2e-2)


def test_distances_are_those_of_the_mean_functions():
    model = KernelKMeans(3, kernel=RBF(25.0), random_state=0).fit(X)
    means = model.function_
    for x, found in zip(NEW[:4], model.transform(NEW[:4]), strict=True):
        image = RKHSFunction(RBF(25.0), x[None], [1.0])
        np.testing.assert_allclose(found, means.distances(image), atol=1e-7)


def test_more_steps_never_raise_the_inertia():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        values = [
            KernelKMeans(6, kernel=RBF(25.0), random_state=3, max_iter=steps).fit(X).inertia_ for steps in range(1, 8)
        ]
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(values))


def test_weights_are_repetition():
    times = np.random.default_rng(0).integers(0, 3, 60)
    few = DIGITS[:60]
    kept = np.flatnonzero(times)[:4]
    repeated = np.repeat(few, times, axis=0)
    places = np.cumsum(times)[kept] - 1
    one = KernelKMeans(4, kernel=RBF(25.0), init=kept).fit(few, sample_weight=times)
    two = KernelKMeans(4, kernel=RBF(25.0), init=places).fit(repeated)
    np.testing.assert_array_equal(np.repeat(one.labels_, times), two.labels_)
    assert one.inertia_ == pytest.approx(two.inertia_)
    np.testing.assert_array_equal(one.predict(NEW), two.predict(NEW))
    np.testing.assert_array_equal(one.labels_[times == 0], one.predict(few[times == 0]))


def test_a_small_budget_changes_nothing():
    whole = KernelKMeans(5, kernel=RBF(25.0), random_state=0).fit(X)
    tiled = KernelKMeans(5, kernel=RBF(25.0), random_state=0, budget="50 kB").fit(X)
    np.testing.assert_array_equal(whole.labels_, tiled.labels_)
    assert whole.inertia_ == pytest.approx(tiled.inertia_, rel=1e-12)


def test_the_matrix_is_not_formed_beyond_the_budget(monkeypatch):
    def refuse(*_):
        raise AssertionError("the matrix was formed")

    whole = KernelKMeans(5, kernel=RBF(25.0), random_state=0).fit(X)
    monkeypatch.setattr(Gram, "dense", refuse)
    monkeypatch.setattr("mercer.gram.matrix.KernelMatrix.dense", refuse)
    small = KernelKMeans(5, kernel=RBF(25.0), random_state=0, budget="50 kB").fit(X)
    np.testing.assert_array_equal(small.labels_, whole.labels_)
    assert small.inertia_ == pytest.approx(whole.inertia_, rel=1e-9)


def test_rings_are_told_apart_where_k_means_cannot():
    model = KernelKMeans(2, kernel="rbf", gamma=3.0, n_init=10, random_state=0).fit(RINGS)
    assert adjusted_rand_score(model.labels_, SIDES) == 1
    assert adjusted_rand_score(KMeans(2, random_state=0).fit_predict(RINGS), SIDES) < 0.1
    assert adjusted_rand_score(model.predict(RINGS * 1.01), SIDES) == 1


def test_what_the_kernel_compares_may_be_anything():
    some = words(20)
    model = KernelKMeans(3, kernel=FromFunction(shared_letters), random_state=0).fit(some)
    K = np.array([[shared_letters(a, b) for b in some] for a in some])
    given = KernelKMeans(3, kernel="precomputed", random_state=0)
    np.testing.assert_array_equal(given.fit(K).labels_, model.labels_)
    np.testing.assert_array_equal(given.predict(K[:5]), model.predict(some[:5]))
    np.testing.assert_allclose(given.fit_transform(K), model.transform(some), atol=1e-7)
    w = np.ones(20)
    w[-5:] = 0
    np.testing.assert_array_equal(given.fit(K, sample_weight=w).labels_, model.fit(some, sample_weight=w).labels_)
    on_rows = KernelKMeans(4, kernel=RBF(25.0), random_state=0).fit(X)
    np.testing.assert_array_equal(
        KernelKMeans(4, kernel=RBF(25.0), random_state=0).fit(sparse.csr_array(X)).labels_, on_rows.labels_
    )


def test_tol_stops_earlier():
    early = KernelKMeans(8, kernel=RBF(25.0), random_state=0, tol=0.01).fit(X)
    late = KernelKMeans(8, kernel=RBF(25.0), random_state=0).fit(X)
    assert early.n_iter_ < late.n_iter_
    assert late.inertia_ <= early.inertia_ <= 1.1 * late.inertia_
    np.testing.assert_array_equal(early.predict(X), early.labels_)


# -- hostile data ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_clusters_that_lose_their_points_are_refilled(kernel):
    blobs = make_blobs(60, centers=[[0, 0], [50, 0], [0, 50]], random_state=0)[0]
    # Three of the four first centres in one blob, two of them equal: at once nobody's nearest.
    data = np.vstack([blobs, blobs[:1]])
    same = int(np.flatnonzero((data == blobs[0]).all(axis=1))[-1])
    model = KernelKMeans(4, kernel=kernel, init=[0, same, 1, 2]).fit(data)
    assert len(np.unique(model.labels_)) == 4


@pytest.mark.parametrize("data", [np.full((9, 2), 3.0), np.repeat(X[:2], 5, axis=0)], ids=["constant", "two"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_fewer_different_points_than_clusters(data, kernel):
    with pytest.warns(ConvergenceWarning, match="clusters were found where n_clusters=3"):
        model = KernelKMeans(3, kernel=kernel, random_state=0).fit(data)
    assert model.inertia_ <= 1e-9 * np.square(data).sum()
    assert np.isfinite(model.transform(data)).all()
    assert len(np.unique(model.labels_)) == len(np.unique(data, axis=0))


@pytest.mark.parametrize("scale", [1e120, 1e-120])
def test_scales_do_not_matter(scale):
    expected = KernelKMeans(4, kernel="linear", random_state=0).fit(X)
    found = KernelKMeans(4, kernel="linear", random_state=0).fit(X * scale)
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    assert found.inertia_ == pytest.approx(expected.inertia_ * scale**2)


def test_one_row_is_one_cluster():
    model = KernelKMeans(1).fit(X[:1])
    assert model.labels_.tolist() == [0]
    assert model.inertia_ == 0


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"n_clusters": 0}, "n_clusters=0 of KernelKMeans must be a whole number >= 1"),
        ({"n_clusters": 301}, "n_samples=300 should be >= n_clusters=301"),
        ({"init": "best"}, "init='best' of KernelKMeans must be 'k-means[+][+]', 'random'"),
        ({"init": [0, 1]}, "init has shape \\(2,\\) and type int64; it must be the numbers of n_clusters=8"),
        ({"init": [0, 0], "n_clusters": 2}, "must name 2 different samples, from 0 to 299"),
        ({"init": [0, 300], "n_clusters": 2}, "must name 2 different samples, from 0 to 299"),
        ({"init": X[:8, :5]}, "init has shape \\(8, 5\\); as points it must have one row for each of n_clusters=8"),
        ({"n_init": 0}, "n_init=0 of KernelKMeans must be a whole number >= 1, or 'auto'"),
        ({"max_iter": 0}, "max_iter=0 of KernelKMeans must be a whole number >= 1"),
        ({"tol": -1.0}, "tol=-1.0 of KernelKMeans must be a number >= 0"),
    ],
    ids=["none", "many", "init", "few", "twice", "outside", "narrow", "n_init", "max_iter", "tol"],
)
def test_what_is_refused(settings, says):
    with pytest.raises(ValueError, match=says):
        KernelKMeans(**settings).fit(X)


def test_what_else_is_refused():
    with pytest.raises(ValueError, match="names samples of weight 0"):
        KernelKMeans(2, init=[0, 1]).fit(X, sample_weight=np.arange(300))
    with pytest.warns(ConvergenceWarning, match="still changed clusters after max_iter=2"):
        KernelKMeans(9, kernel=RBF(25.0), random_state=0, max_iter=2).fit(X)
    with pytest.raises(ValueError, match="not to themselves, and so no distances"):
        KernelKMeans(2, kernel="precomputed").fit(RBF(25.0)(X)).transform(RBF(25.0)(NEW, X))


# -- scikit-learn's conventions -------------------------------------------------------------------------------


def test_models_survive_pickling_and_cloning():
    model = KernelKMeans(3, kernel=RBF("median"), random_state=0).fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(NEW), model.transform(NEW))
    assert clone(model).get_params() == model.get_params()
    assert list(model.get_feature_names_out()) == ["kernelkmeans0", "kernelkmeans1", "kernelkmeans2"]
    assert model.fit_transform(X.astype(np.float32)).dtype == np.float32


def test_scikit_learn_finds_no_fault():
    assert_no_fault(KernelKMeans())
