"""KernelCCA against classical canonical correlations, a generalised eigenproblem, and its own laws."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import eigh
from sklearn.base import clone
from sklearn.cross_decomposition import CCA
from sklearn.model_selection import GridSearchCV

from checks import assert_no_fault
from mercer import RBF, FromFunction, Gram, KernelCCA, Linear, Matern
from samples import shared_letters, words


def linear_views(n=120, seed=0):
    """Two views of 5 and 4 columns that share two directions."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(n, 2))
    X = np.column_stack([shared + 0.3 * rng.normal(size=(n, 2)), rng.normal(size=(n, 3))])
    Y = np.column_stack([shared * [1, 2] + rng.normal(size=(n, 2)), rng.normal(size=(n, 2))])
    return X @ rng.normal(size=(5, 5)) + 3.0, Y @ rng.normal(size=(4, 4))


def curved_views(n=300, seed=0):
    """Two views that share a number only through its square."""
    t = np.random.default_rng(seed).uniform(-3, 3, (n, 3))
    return t[:, :2], np.column_stack([t[:, 0] ** 2, t[:, 2]])


X, Y = linear_views()
SMALL = 1e-9


def centred(K):
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


# -- referees -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [None, 20], ids=["dense", "factor"])
def test_with_linear_kernels_it_is_cca(rank):
    model = KernelCCA(3, kernel="linear", kappa=SMALL, rank=rank).fit(X, Y)
    qx, qy = (np.linalg.qr(V - V.mean(axis=0))[0] for V in (X, Y))
    np.testing.assert_allclose(model.correlations_, np.linalg.svd(qx.T @ qy)[1][:3], atol=1e-6)
    np.testing.assert_allclose(model.correlations(X, Y), model.correlations_, atol=1e-6)
    peer = CCA(3, max_iter=10_000, tol=1e-14).fit(X, Y)
    for ours, theirs in zip(model.transform(X, Y), peer.transform(X, Y), strict=True):
        ours = ours / ours.std(axis=0)
        theirs = theirs / theirs.std(axis=0)
        np.testing.assert_allclose(np.abs((ours * theirs).mean(axis=0)), 1, atol=1e-8)


@pytest.mark.parametrize("kappa", [0.01, 0.3])
def test_it_solves_the_generalised_eigenproblem(kappa):
    few = slice(0, 60)
    model = KernelCCA(4, kernel=RBF(3.0), kernel_y=Matern(1.5, 2.0), kappa=kappa).fit(X[few], Y[few])
    n = 60
    K, L = centred(RBF(3.0)(X[few])), centred(Matern(1.5, 2.0)(Y[few]))
    kx, ky = kappa * np.trace(K) / n, kappa * np.trace(L) / n
    # max a'KLb / n with a'(KK/n + kx K)a = b'(LL/n + ky L)b = 1, lifted a little where K and L are singular.
    zero = np.zeros((n, n))
    left = np.block([[zero, K @ L / n], [L @ K / n, zero]])
    right = np.block([[K @ K / n + kx * K, zero], [zero, L @ L / n + ky * L]]) + 1e-13 * np.eye(2 * n)
    np.testing.assert_allclose(model.correlations_, eigh(left, right, eigvals_only=True)[::-1][:4], atol=1e-6)


def test_functions_meet_the_constraint():
    few = slice(0, 80)
    model = KernelCCA(3, kernel=RBF(3.0), kappa=0.05).fit(X[few], Y[few])
    f, g = model.function_
    scores = model.transform(X[few], Y[few])
    for functions, data, found in ((f, X[few], scores[0]), (g, Y[few], scores[1])):
        np.testing.assert_allclose(functions(data), found, atol=1e-9)
        np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-9)
        kappa = 0.05 * np.trace(centred(RBF(3.0)(data))) / 80
        both = found.T @ found / 80 + kappa * functions.gram()
        np.testing.assert_allclose(both, np.eye(3), atol=1e-8)
    np.testing.assert_allclose(scores[0].T @ scores[1] / 80, np.diag(model.correlations_), atol=1e-8)


# -- laws -----------------------------------------------------------------------------------------------------


def test_a_factor_comes_close_and_says_how_close():
    U, V = curved_views(250)
    exact = KernelCCA(2, kernel=RBF(1.5)).fit(U, V)
    low = KernelCCA(2, kernel=RBF(1.5), rank=120, tol=1e-9).fit(U, V)
    assert exact.factor_error_.max() == 0
    assert 0 < low.factor_error_.max() < 1e-4
    assert all("pivoted Cholesky factor of rank" in plan for plan in low.plan_)
    np.testing.assert_allclose(low.correlations_, exact.correlations_, atol=1e-3)
    np.testing.assert_allclose(low.transform(U), exact.transform(U), atol=0.05)
    rough = KernelCCA(2, kernel=RBF(1.5), rank=10).fit(U, V)
    assert rough.factor_error_.min() > low.factor_error_.max()


def test_the_matrix_is_not_formed_beyond_the_budget(monkeypatch):
    def refuse(*_):
        raise AssertionError("the matrix was formed")

    monkeypatch.setattr(Gram, "dense", refuse)
    monkeypatch.setattr("mercer.gram.matrix.KernelMatrix.dense", refuse)
    U, V = curved_views(400)
    model = KernelCCA(1, kernel=RBF(1.5), budget="1 MB").fit(U, V)
    assert max(model.rank_) <= 1e6 / (32 * 400)
    assert model.correlations_[0] > 0.9


def test_a_curved_relation_is_found_and_holds_for_new_samples():
    U, V = curved_views(350)
    model = KernelCCA(1, kernel="rbf").fit(U[:150], V[:150])
    assert model.score(U[150:], V[150:]) > 0.95
    assert abs(KernelCCA(1, kernel="linear").fit(U[:150], V[:150]).score(U[150:], V[150:])) < 0.5


def test_noise_is_not_correlated_with_noise():
    rng = np.random.default_rng(0)
    U, V = rng.normal(size=(400, 3)), rng.normal(size=(400, 2))
    bold = KernelCCA(1, kernel=RBF(0.5), kappa=1e-10).fit(U[:200], V[:200])
    shy = KernelCCA(1, kernel=RBF(0.5), kappa=0.1).fit(U[:200], V[:200])
    assert bold.correlations_[0] > 0.999 > 0.9 > shy.correlations_[0]
    assert abs(bold.score(U[200:], V[200:])) < 0.3


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_multiples_of_kernels_give_the_same_model(factor):
    one = KernelCCA(2, kernel=RBF(3.0)).fit(X, Y)
    two = KernelCCA(2, kernel=factor * RBF(3.0)).fit(X, Y)
    np.testing.assert_allclose(two.correlations_, one.correlations_, rtol=1e-8)
    np.testing.assert_allclose(two.transform(X), one.transform(X), atol=1e-6)


def test_exchanging_the_views_exchanges_the_functions():
    one = KernelCCA(2, kernel=RBF(3.0), kernel_y=Linear()).fit(X, Y)
    two = KernelCCA(2, kernel=Linear(), kernel_y=RBF(3.0)).fit(Y, X)
    np.testing.assert_allclose(one.correlations_, two.correlations_)
    np.testing.assert_allclose(np.abs(one.transform(X)), np.abs(two.transform(Y, X)[1]), atol=1e-7)


def test_views_may_be_matrices_words_or_vectors():
    K, L = RBF(3.0)(X), RBF(2.0)(Y)
    rows, new = slice(0, 90), slice(90, 120)
    for rank in (None, 40):
        expected = KernelCCA(2, kernel=RBF(3.0), kernel_y=RBF(2.0), rank=rank).fit(X[rows], Y[rows])
        given = KernelCCA(2, kernel="precomputed", rank=rank).fit(K[rows, rows], L[rows, rows])
        for a, b in zip(given.transform(K[new, rows], L[new, rows]), expected.transform(X[new], Y[new]), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-7)
    some = words(20)
    lengths = np.array([len(w) for w in some], dtype=float)
    model = KernelCCA(1, kernel=FromFunction(shared_letters), kernel_y="linear").fit(some, lengths)
    assert model.correlations(some, lengths)[0] > 0.7
    assert model.transform(some, lengths)[1].shape == (20, 1)
    one = KernelCCA(1, kernel="rbf").fit(sparse.csr_array(X), sparse.csr_array(Y))
    np.testing.assert_allclose(one.transform(X), KernelCCA(1, kernel="rbf").fit(X, Y).transform(X), atol=1e-8)


# -- hostile data ---------------------------------------------------------------------------------------------


def test_more_components_than_directions():
    model = KernelCCA(6, kernel="linear").fit(X[:, :2], Y)
    assert model.rank_ == (2, 4)
    assert (model.correlations_[2:] == 0).all()
    first, second = model.transform(X[:, :2], Y)
    assert np.abs(first[:, 2:]).max() == np.abs(second[:, 2:]).max() == 0
    assert (model.correlations(X[:, :2], Y)[2:] == 0).all()


@pytest.mark.parametrize("rank", [None, 5], ids=["dense", "factor"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_constant_and_repeated_views(kernel, rank):
    constant = KernelCCA(2, kernel=kernel, rank=rank).fit(np.full((30, 2), 5.0), Y[:30])
    assert (constant.correlations_ == 0).all()
    assert (constant.transform(np.full((30, 2), 5.0)) == 0).all()
    repeated = KernelCCA(1, kernel=kernel, rank=rank).fit(np.repeat(X[:6], 5, axis=0), np.repeat(Y[:6], 5, axis=0))
    assert np.isfinite(repeated.transform(X)).all()
    one = KernelCCA(1, kernel=kernel, rank=rank).fit(X[:1], Y[:1])
    assert (one.transform(X) == 0).all()


@pytest.mark.parametrize("scale", [1e100, 1e-100])
def test_scales_do_not_matter(scale):
    expected = KernelCCA(2, kernel="linear").fit(X, Y).correlations_
    np.testing.assert_allclose(KernelCCA(2, kernel="linear").fit(X * scale, Y).correlations_, expected)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"n_components": 0}, "n_components=0 of KernelCCA must be a whole number >= 1"),
        ({"kappa": 0.0}, "kappa=0.0 of KernelCCA must be a finite number > 0"),
        ({"rank": 0}, "rank=0 of KernelCCA must be a whole number >= 1"),
        ({"tol": 1.0}, "tol=1.0 of KernelCCA must be a share"),
        ({"kernel_y": "gauss"}, "kernel_y='gauss' of KernelCCA must be None, or a kernel object"),
    ],
    ids=lambda v: next(iter(v)) if isinstance(v, dict) else "",
)
def test_parameters_out_of_range(settings, says):
    with pytest.raises(ValueError, match=says):
        KernelCCA(**settings).fit(X, Y)


@pytest.mark.parametrize("idle", [{"scale": False}, {"max_iter": 7}, {"copy": False}], ids=lambda v: next(iter(v)))
def test_parameters_of_scikit_learn_that_change_nothing(idle):
    with pytest.warns(UserWarning, match="changes nothing in KernelCCA"):
        model = KernelCCA(2, **idle).fit(X, Y)
    np.testing.assert_array_equal(model.transform(X), KernelCCA(2).fit(X, Y).transform(X))
    CCA(2, **idle)


def test_views_that_do_not_fit():
    with pytest.raises(ValueError, match="requires y to be passed"):
        KernelCCA().fit(X, None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        KernelCCA().fit(X, Y[:-1])
    model = KernelCCA().fit(X, Y)
    with pytest.raises(ValueError, match=r"y, the second view.*3 features.*expecting 4"):
        model.transform(X, Y[:, :3])
    with pytest.raises(ValueError, match=r"y, the second view.*NaN"):
        KernelCCA().fit(X, np.full(Y.shape, np.nan))


# -- scikit-learn's conventions -------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [None, 30], ids=["dense", "factor"])
def test_models_survive_pickling_cloning_and_refitting(rank):
    model = KernelCCA(2, kernel=RBF("median"), rank=rank).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(X[:9], Y[:9]), model.transform(X[:9], Y[:9]))
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    np.testing.assert_array_equal(
        model.fit(X[:50], Y[:50]).transform(X[:9]), fresh.fit(X[:50], Y[:50]).transform(X[:9])
    )
    assert list(model.get_feature_names_out()) == ["kernelcca0", "kernelcca1"]


def test_the_penalty_can_be_searched():
    U, V = curved_views(150)
    search = GridSearchCV(KernelCCA(1), {"kappa": [1e-3, 10.0]}, cv=3).fit(U, V)
    assert search.best_params_ == {"kappa": 1e-3}
    assert search.best_score_ > 0.9


def test_scikit_learn_finds_no_fault():
    assert_no_fault(KernelCCA())
