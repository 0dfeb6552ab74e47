"""KernelPCA against scikit-learn, PCA and the geometry of H."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Peer
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import pairwise_kernels

from checks import assert_no_fault
from mercer import RBF, Delta, FromFunction, Gram, KernelPCA, Linear, Matern, Polynomial, Precomputed
from samples import shared_letters, table, words

DIGITS = load_digits().data
X, NEW = DIGITS[:150], DIGITS[150:200]
KERNELS = {
    "linear": {},
    "rbf": {"gamma": 1e-3},
    "poly": {"gamma": 1e-3, "degree": 2, "coef0": 0.5},
    "sigmoid": {"gamma": 1e-7, "coef0": 0.0},
    "cosine": {},
}


def centred(K):
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


def rbf(A, B=None):
    return pairwise_kernels(A, B, metric="rbf", gamma=1e-3)


# -- parity ---------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:the centred kernel Sigmoid")
@pytest.mark.parametrize("n_components", [1, 4, None])
@pytest.mark.parametrize("name", KERNELS)
def test_it_is_scikit_learns(name, n_components):
    ours = KernelPCA(n_components, kernel=name, **KERNELS[name])
    peer = Peer(n_components, kernel=name, eigen_solver="dense", **KERNELS[name])
    Z, expected = ours.fit_transform(X), peer.fit_transform(X)
    assert ours.eigenvalues_.shape == peer.eigenvalues_.shape
    largest = peer.eigenvalues_[0]
    np.testing.assert_allclose(ours.eigenvalues_, peer.eigenvalues_, rtol=1e-9, atol=1e-12 * largest)
    strong = peer.eigenvalues_ > 1e-4 * largest  # eigenvectors of close eigenvalues are free to turn
    size = np.sqrt(largest)
    np.testing.assert_allclose(Z[:, strong], expected[:, strong], atol=1e-7 * size)
    np.testing.assert_allclose(ours.transform(NEW)[:, strong], peer.transform(NEW)[:, strong], atol=1e-7 * size)
    np.testing.assert_allclose(ours.eigenvectors_[:, strong], peer.eigenvectors_[:, strong], atol=1e-7)


@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_the_learned_way_back_is_scikit_learns(alpha):
    settings = {"n_components": 8, "kernel": "rbf", "gamma": 1e-3, "fit_inverse_transform": True, "alpha": alpha}
    ours, peer = KernelPCA(**settings).fit(X), Peer(**settings).fit(X)
    Z = peer.transform(NEW)
    np.testing.assert_allclose(ours.inverse_transform(Z), peer.inverse_transform(Z), atol=1e-6)
    np.testing.assert_allclose(ours.X_transformed_fit_, peer.X_transformed_fit_, atol=1e-8)


@pytest.mark.parametrize(
    "idle",
    [
        {"eigen_solver": "arpack"},
        {"eigen_solver": "randomized", "iterated_power": 3},
        {"max_iter": 7},
        {"copy_X": False},
        {"n_jobs": 2},
    ],
    ids=lambda v: next(iter(v)),
)
def test_parameters_of_scikit_learn_that_change_nothing(idle):
    with pytest.warns(UserWarning, match="changes nothing in KernelPCA") as seen:
        model = KernelPCA(3, kernel="rbf", **idle).fit(X)
    assert len(seen) == len(idle)
    plain = KernelPCA(3, kernel="rbf").fit(X)
    np.testing.assert_array_equal(model.transform(NEW), plain.transform(NEW))
    Peer(3, kernel="rbf", **idle).fit(X)


def test_no_tolerance_is_what_rounding_allows():
    close = KernelPCA(4, kernel="rbf", gamma=1e-3, tol=0).fit(DIGITS[:800])  # more than are decomposed whole
    peer = Peer(4, kernel="rbf", gamma=1e-3, tol=0, eigen_solver="dense").fit(DIGITS[:800])
    assert close.plan_ != "LAPACK"
    np.testing.assert_allclose(close.eigenvalues_, peer.eigenvalues_, rtol=1e-12)
    np.testing.assert_allclose(close.eigenvectors_, peer.eigenvectors_, atol=1e-10)


def test_gamma_is_scikit_learns():
    for gamma in (None, 1e-3):
        ours, peer = (cls(2, kernel="rbf", gamma=gamma).fit(X) for cls in (KernelPCA, Peer))
        assert ours.gamma_ == peer.gamma_


def test_remove_zero_eig_and_more_components_than_rank():
    few = X[:20, :3]
    kept = KernelPCA(10, kernel="linear").fit(few)
    peer = Peer(10, kernel="linear", eigen_solver="dense").fit(few)
    assert kept.eigenvalues_.shape == peer.eigenvalues_.shape == (10,)
    assert np.count_nonzero(kept.eigenvalues_) == np.linalg.matrix_rank(few - few.mean(axis=0))
    assert np.abs(kept.transform(few)[:, kept.eigenvalues_ == 0]).max() == 0
    dropped = KernelPCA(10, kernel="linear", remove_zero_eig=True).fit(few)
    np.testing.assert_allclose(dropped.eigenvalues_, kept.eigenvalues_[kept.eigenvalues_ > 0])
    assert KernelPCA(10_000, kernel="linear").fit(few).eigenvalues_.shape == (20,)


def test_a_small_budget_gives_the_same_components():
    few = DIGITS[:500]
    whole = KernelPCA(6, kernel=RBF(30.0)).fit(few)
    tiled = KernelPCA(6, kernel=RBF(30.0), budget="3 MB", tol=1e-10).fit(few)
    assert tiled.plan_ != whole.plan_
    np.testing.assert_allclose(tiled.eigenvalues_, whole.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(tiled.fit_transform(few), whole.fit_transform(few), atol=1e-6)
    np.testing.assert_allclose(tiled.explained_variance_ratio_, whole.explained_variance_ratio_, rtol=1e-9)
    assert tiled.residuals_.max() <= 1e-9 * tiled.eigenvalues_[0]


def test_the_kernel_may_be_a_name_an_object_a_function_or_a_matrix():
    expected = KernelPCA(3, kernel="rbf", gamma=1e-3).fit(X).transform(NEW)
    same = [
        KernelPCA(3, kernel=RBF.from_gamma(1e-3)).fit(X).transform(NEW),
        KernelPCA(3, kernel=lambda a, b: np.exp(-1e-3 * np.sum((a - b) ** 2))).fit(X[:]).transform(NEW),
        KernelPCA(3, kernel="precomputed").fit(rbf(X)).transform(rbf(NEW, X)),
        KernelPCA(3, kernel=RBF.from_gamma(1e-3)).fit(sparse.csr_array(X)).transform(sparse.csr_array(NEW)),
    ]
    for found in same:
        np.testing.assert_allclose(found, expected, atol=1e-9)
    K = Precomputed(rbf(DIGITS[:200]))
    found = KernelPCA(3, kernel=K).fit(np.arange(150)).transform(np.arange(150, 200))
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_words_have_components():
    some = words(20)
    model = KernelPCA(2, kernel=FromFunction(shared_letters))
    Z = model.fit_transform(some)
    np.testing.assert_allclose(model.transform(some), Z, atol=1e-9)
    K = np.array([[shared_letters(a, b) for b in some] for a in some])
    np.testing.assert_allclose(model.eigenvalues_, np.linalg.eigvalsh(centred(K))[::-1][:2])


def test_tables_have_components():
    people = table(30)
    kernel = RBF(10.0).on("age") * Delta().on("town") + RBF("median").on(["age", "income"])
    model = KernelPCA(3, kernel=kernel)
    np.testing.assert_allclose(model.fit_transform(people), model.transform(people), atol=1e-9)
    assert list(model.feature_names_in_) == ["age", "income", "town"]


# -- laws -----------------------------------------------------------------------------------------------------


def test_with_the_linear_kernel_it_is_pca():
    model, pca = KernelPCA(5, kernel="linear").fit(X), PCA(5).fit(X)
    np.testing.assert_allclose(model.explained_variance_ratio_, pca.explained_variance_ratio_)
    np.testing.assert_allclose(np.abs(model.transform(NEW)), np.abs(pca.transform(NEW)), atol=1e-9)
    back = pca.inverse_transform(pca.transform(NEW))
    np.testing.assert_allclose(model.inverse_transform(model.transform(NEW)), back, atol=1e-9)
    np.testing.assert_allclose(model.reconstruction_error(NEW), np.square(NEW - back).sum(axis=1))


@pytest.mark.parametrize("kernel", [RBF(30.0), Matern(1.5, 40.0), Polynomial(2, 1.0, 1e-3)], ids=["rbf", "mat", "poly"])
def test_components_are_orthonormal_functions_of_h(kernel):
    model = KernelPCA(4, kernel=kernel).fit(X)
    F = model.function_
    np.testing.assert_allclose(F.gram(), np.eye(4), atol=1e-9)
    np.testing.assert_allclose(F(NEW), model.transform(NEW), atol=1e-9)
    np.testing.assert_allclose(model.transform(X).mean(axis=0), 0, atol=1e-9)


def test_shares_of_the_variance_come_from_the_trace():
    everything = KernelPCA(kernel=RBF(30.0)).fit(X)
    few = KernelPCA(3, kernel=RBF(30.0)).fit(X)
    assert everything.explained_variance_ratio_.sum() == pytest.approx(1)
    np.testing.assert_allclose(few.explained_variance_ratio_, everything.explained_variance_ratio_[:3])


def test_the_reconstruction_error_is_a_distance_in_h():
    model = KernelPCA(5, kernel=RBF(30.0)).fit(X)
    trace = np.trace(centred(RBF(30.0)(X)))
    assert model.reconstruction_error(X).sum() == pytest.approx(trace - model.eigenvalues_.sum())
    mean = np.full(len(X), 1 / len(X))
    for x, error in zip(NEW[:3], model.reconstruction_error(NEW[:3]), strict=True):
        # |phi(x) - m - sum_j z_j f_j|^2 with all of it written out in the kernels at x and at the training points.
        z = model.function_(x[None])[0]
        a = np.concatenate([[1.0], -mean - model._A @ z])
        assert error == pytest.approx(a @ RBF(30.0)(np.vstack([x, X])) @ a)
    assert KernelPCA(kernel=RBF(30.0)).fit(X).reconstruction_error(X).max() < 1e-9


def test_the_order_of_the_samples_does_not_matter():
    order = np.random.default_rng(0).permutation(len(X))
    one, two = (KernelPCA(4, kernel=RBF(30.0)).fit(rows) for rows in (X, X[order]))
    np.testing.assert_allclose(one.eigenvalues_, two.eigenvalues_)
    np.testing.assert_allclose(np.abs(one.transform(NEW)), np.abs(two.transform(NEW)), atol=1e-9)


def test_float32_comes_back_as_float32():
    single, double = X.astype(np.float32), KernelPCA(3, kernel=RBF(30.0)).fit(X)
    model = KernelPCA(3, kernel=RBF(30.0))
    assert model.fit_transform(single).dtype == model.transform(single).dtype == np.float32
    np.testing.assert_allclose(model.transform(NEW), double.transform(NEW), atol=1e-9)


# -- the way back ---------------------------------------------------------------------------------------------


def test_preimages_remove_noise():
    rng = np.random.default_rng(0)
    train, test = DIGITS[:500], DIGITS[500:560]
    noisy = test + rng.normal(scale=4.0, size=test.shape)
    model = KernelPCA(64, kernel=RBF("median")).fit(train)
    Z = model.transform(noisy)
    best_plane = min(
        np.sqrt(np.mean((p.inverse_transform(p.transform(noisy)) - test) ** 2))
        for p in (PCA(k).fit(train) for k in (8, 16, 32))
    )
    for method in ("auto", "distances", "fixed_point"):
        found = model.set_params(preimage=method).inverse_transform(Z)
        assert np.sqrt(np.mean((found - test) ** 2)) < 0.9 * best_plane


@pytest.mark.parametrize(
    ("kernel", "method"),
    [(RBF(30.0), "fixed_point"), (RBF(30.0), "distances"), (RBF(30.0), "gradient"), (Matern(2.5, 40.0), "gradient")],
    ids=["fixed_point", "distances", "gradient", "matern"],
)
def test_all_components_lead_back_to_the_points(kernel, method):
    few = X[:40]
    model = KernelPCA(kernel=kernel, preimage=method).fit(few)
    np.testing.assert_allclose(model.inverse_transform(model.transform(few[:4])), few[:4], atol=0.05)


def test_scales_of_other_widths_do_not_stop_the_learned_map():
    model = KernelPCA(3, kernel=RBF(np.full(64, 30.0)), fit_inverse_transform=True, alpha=1e-4).fit(X)
    found = model.inverse_transform(model.transform(X))
    assert np.mean((found - X) ** 2) < 0.6 * np.mean((X - X.mean(axis=0)) ** 2)
    thin = clone(model).fit(sparse.csr_array(X))
    np.testing.assert_allclose(thin.inverse_transform(thin.transform(X)), found, atol=1e-6)
    refit = model.set_params(fit_inverse_transform=False).fit(X)
    assert not hasattr(refit, "dual_coef_")


# -- hostile data ---------------------------------------------------------------------------------------------

HOSTILE = {
    "constant": np.full((12, 3), 7.0),
    "duplicates": np.repeat(X[:4], 5, axis=0),
    "one row": X[:1],
    "huge": X[:20] * 1e120,
    "tiny": X[:20] * 1e-120,
    "far": X[:20] + 1e7,
}


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_data_have_finite_components(name, kernel):
    data = HOSTILE[name]
    for n_components in (None, 2):
        model = KernelPCA(n_components, kernel=kernel)
        Z = model.fit_transform(data)
        assert np.isfinite(Z).all()
        assert np.isfinite(model.transform(data)).all()
        assert np.isfinite(model.explained_variance_ratio_).all()
        assert (model.reconstruction_error(data) >= 0).all()
        size = np.abs(Z).max(initial=0.0)
        lost = 1e-2 if name == "far" else 1e-5  # inner products of 6e15 are known to 1, and Z to 1 / sqrt(lambda)
        np.testing.assert_allclose(model.transform(data)[:, :1], Z[:, :1], atol=lost * size + 1e-300)
    if name in ("constant", "one row"):
        assert KernelPCA(kernel=kernel).fit(data).eigenvalues_.shape == (0,)
        assert KernelPCA(2, kernel=kernel).fit(data).transform(data).max() == 0
    if name == "duplicates":
        assert KernelPCA(kernel=kernel).fit(data).eigenvalues_.shape == (3,)


# -- what is refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"n_components": 0}, "n_components=0 of KernelPCA must be a whole number >= 1"),
        ({"kernel": "gauss"}, "kernel='gauss' of KernelPCA must be a kernel object"),
        ({"alpha": -1.0}, "alpha=-1.0 of KernelPCA must be a finite number >= 0"),
        ({"preimage": "magic"}, "preimage='magic' of KernelPCA must be 'auto', 'ridge'"),
        ({"tol": -1e-6}, "tol=-1e-06 of KernelPCA must be a relative residual"),
        ({"gamma": -2.0}, "gamma=-2.0 of KernelPCA must be a number > 0"),
        ({"budget": "many"}, "is not a size"),
    ],
    ids=lambda v: next(iter(v)) if isinstance(v, dict) else "",
)
def test_parameters_out_of_range(settings, says):
    with pytest.raises(ValueError, match=says):
        KernelPCA(**settings).fit(X)


def test_components_of_what_is_no_kernel_come_with_a_warning():
    K = pairwise_kernels(X[:80] / 16, metric="sigmoid", gamma=1.0, coef0=-1.0)
    least = np.linalg.eigvalsh(centred(K))[0]
    with pytest.warns(UserWarning, match=r"not positive semidefinite.*explained_variance_ratio_") as said:
        KernelPCA(2, kernel="precomputed").fit(K)
    assert float(str(said[0].message).split("eigenvalue ")[1].split(")")[0]) == pytest.approx(least, rel=0.02)


def test_kernels_that_are_not_positive_semidefinite():
    K = np.diag([1.0, -1.0, 3.0, -2.0])
    with pytest.raises(
        ValueError, match=r"significant negative eigenvalues: .*not positive semidefinite on these points"
    ):
        KernelPCA(kernel="precomputed").fit(K)


def test_all_components_of_many_points_do_not_fit():
    with pytest.raises(MemoryError, match=r"150 points into 150 components would need .* n_components, or raise"):
        KernelPCA(kernel="rbf", budget="100 kB").fit(X)


def test_ways_back_that_there_are_not():
    model = KernelPCA(2, kernel="rbf", preimage="ridge").fit(X)
    with pytest.raises(NotFittedError, match="fit_inverse_transform=False"):
        model.inverse_transform(model.transform(NEW))
    with pytest.raises(ValueError, match="X has 3 columns; inverse_transform needs one for each of the 2"):
        model.set_params(preimage="auto").inverse_transform(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="Cannot fit_inverse_transform with a precomputed kernel"):
        KernelPCA(kernel="precomputed", fit_inverse_transform=True).fit(rbf(X))
    with pytest.raises(TypeError, match="only rows of numbers have a way back"):
        KernelPCA(kernel=FromFunction(shared_letters), fit_inverse_transform=True).fit(words(9))
    with pytest.raises(ValueError, match="no way back to learn"):
        KernelPCA(fit_inverse_transform=True).fit(np.ones((5, 2)))
    with pytest.raises(ValueError, match="not to themselves"):
        KernelPCA(2, kernel="precomputed").fit(rbf(X)).reconstruction_error(rbf(NEW, X))


# -- scikit-learn's conventions -------------------------------------------------------------------------------


def test_models_survive_pickling_and_cloning():
    model = KernelPCA(3, kernel=RBF("median") + 0.1 * Linear(), fit_inverse_transform=True).fit(X)
    again = pickle.loads(pickle.dumps(model))
    Z = model.transform(NEW)
    np.testing.assert_array_equal(again.transform(NEW), Z)
    np.testing.assert_array_equal(again.inverse_transform(Z), model.inverse_transform(Z))
    assert clone(model).get_params() == model.get_params()
    assert list(model.get_feature_names_out()) == ["kernelpca0", "kernelpca1", "kernelpca2"]
    assert model.set_output(transform="pandas").transform(NEW).shape == (50, 3)


@pytest.mark.parametrize(
    "model", [KernelPCA(), KernelPCA(2, kernel="rbf", fit_inverse_transform=True)], ids=["linear", "rbf"]
)
def test_scikit_learn_finds_no_fault(model):
    assert_no_fault(model)


def test_the_gram_operator_is_enough(monkeypatch):
    """No call for the whole matrix is made where it does not fit."""

    def refuse(*_):
        raise AssertionError("the matrix was formed")

    monkeypatch.setattr(Gram, "dense", refuse)
    model = KernelPCA(3, kernel=RBF(30.0), budget="2 MB").fit(DIGITS[:900])
    assert model.eigenvalues_.shape == (3,)
