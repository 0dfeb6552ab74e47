"""SVC beside scikit-learn's: the same functions, attributes and shapes; and what a fit promises about itself."""

import numpy as np
import pytest
import sklearn.svm
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification, make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

import mercer
import referee
from cases import each
from mercer import KernelSearchCV
from mercer.estimators import SVC, LinearSVC
from mercer.kernels import RBF, Linear, Polynomial
from mercer.solvers import Infeasible
from parity import radius, svc_certificate

TIGHT = 1e-9


def moons(n=120, seed=0):
    return make_moons(n, noise=0.25, random_state=seed)


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:250], y[:250]


def overlapping():
    X, y = make_classification(150, 6, flip_y=0.2, random_state=3)
    return X, np.where(y == 1, "yes", "no")


def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


NAMED = [
    {"kernel": "rbf"},
    {"kernel": "rbf", "gamma": 2.0},
    {"kernel": "rbf", "gamma": "auto"},
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 2, "coef0": 1.0},
    {"kernel": "poly", "gamma": 0.3},
]


def both(X, y, sample_weight=None, **params):
    ours = SVC(tol=TIGHT, **params).fit(X, y, sample_weight=sample_weight)
    theirs = sklearn.svm.SVC(tol=1e-8, **params).fit(X, y, sample_weight=sample_weight)
    return ours, theirs


@each("data", [moons, cancer, overlapping], ids=lambda f: f.__name__)
@each("params", NAMED, ids=str)
@each("C", [0.05, 1.0, 30.0])
def test_two_classes_agree_with_scikit_learn_within_the_two_gaps(data, params, C):
    X, y = data()
    ours, theirs = both(X, y, C=C, **params)
    largest = float(ours.kernel_.diag(X).max())
    allowed = radius(ours.certificate_, largest)
    allowed += radius(svc_certificate(theirs, ours.kernel_, X, y, C), largest) + 1e-6
    f, g = ours.decision_function(X), theirs.decision_function(X)
    assert np.abs(f - g).max() <= allowed
    sure = np.abs(g) > allowed
    assert np.array_equal(ours.predict(X)[sure], theirs.predict(X)[sure])


@pytest.mark.parametrize("weights", ["some zero", "spread", "balanced", "by class"])
def test_weights_agree_with_scikit_learn(weights):
    X, y = overlapping()
    rng = np.random.default_rng(0)
    params, sample_weight, per_sample = {}, None, np.ones(len(y))
    if weights == "some zero":
        sample_weight = per_sample = (rng.random(len(y)) > 0.3) * rng.uniform(0.5, 2, len(y))
    elif weights == "spread":
        sample_weight = per_sample = 10 ** rng.uniform(-2, 1, len(y))
    elif weights == "balanced":
        params["class_weight"] = "balanced"
        per_sample = len(y) / (2 * np.where(y == "yes", (y == "yes").sum(), (y == "no").sum()))
    else:
        params["class_weight"] = {"yes": 4.0}
        per_sample = np.where(y == "yes", 4.0, 1.0)
    ours, theirs = both(X, y, sample_weight, **params)
    np.testing.assert_allclose(ours.class_weight_, theirs.class_weight_)
    allowed = radius(ours.certificate_, 1.0)
    allowed += radius(svc_certificate(theirs, ours.kernel_, X, y, 1.0, per_sample), 1.0)
    assert np.abs(ours.decision_function(X) - theirs.decision_function(X)).max() <= allowed + 1e-6
    assert ours.certificate_.verify(X, y, sample_weight=sample_weight).relative_gap <= TIGHT
    if weights == "some zero":
        assert not np.isin(ours.support_, np.flatnonzero(per_sample == 0)).any()


@pytest.mark.parametrize("data", [load_iris, load_wine], ids=["iris", "wine"])
@pytest.mark.parametrize("params", [{"C": 10.0}, {"kernel": "linear", "C": 0.5}, {"class_weight": "balanced"}], ids=str)
def test_many_classes_agree_with_scikit_learn(data, params):
    X, y = data(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    y = np.array(["a", "c", "b"])[y]
    ours, theirs = both(X, y, **params)
    for shape in ("ovo", "ovr"):
        ours.decision_function_shape = theirs.decision_function_shape = shape
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=3e-4)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    assert np.array_equal(ours.classes_, theirs.classes_)


@pytest.mark.parametrize("data", [moons, wine], ids=lambda f: f.__name__)
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_attributes_have_the_shapes_and_the_order_of_scikit_learn(data, kernel):
    X, y = data()
    ours, theirs = both(X, y, kernel=kernel)
    assert np.array_equal(ours.support_, theirs.support_)
    assert np.array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_array_equal(ours.support_vectors_, theirs.support_vectors_)
    for name in ("dual_coef_", "intercept_"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert mine.shape == other.shape
        np.testing.assert_allclose(mine, other, atol=2e-3)
    assert ours.n_iter_.shape == theirs.n_iter_.shape
    assert ours.shape_fit_ == theirs.shape_fit_
    for name in ("support_", "n_support_", "n_iter_"):
        assert getattr(ours, name).dtype == getattr(theirs, name).dtype
    if kernel == "linear":
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
        assert not ours.coef_.flags.writeable
    else:
        assert not hasattr(ours, "coef_")


def test_a_kernel_object_gives_what_its_name_gives():
    X, y = moons()
    named = SVC(kernel="poly", degree=2, gamma=0.5, coef0=1.0, tol=TIGHT).fit(X, y)
    given = SVC(kernel=Polynomial(2, 1.0, 0.5), tol=TIGHT).fit(X, y)
    assert given.kernel_ == named.kernel_
    np.testing.assert_array_equal(named.decision_function(X), given.decision_function(X))
    np.testing.assert_allclose(SVC(kernel=Linear()).fit(X, y).coef_, SVC(kernel="linear").fit(X, y).coef_)
    assert isinstance(SVC(kernel=RBF("median")).fit(X, y).kernel_.scale, float)


def test_weight_two_is_the_same_as_two_samples():
    X, y = moons(40)
    kernel = RBF(0.7)
    weights = np.tile([1.0, 2.0, 0.0, 3.0], 10)
    rows = np.repeat(np.arange(40), weights.astype(int))
    weighted = SVC(kernel=kernel, tol=1e-11).fit(X, y, sample_weight=weights)
    repeated = SVC(kernel=kernel, tol=1e-11).fit(X[rows], y[rows])
    allowed = radius(weighted.certificate_, 1.0) + radius(repeated.certificate_, 1.0)
    assert np.abs(weighted.decision_function(X) - repeated.decision_function(X)).max() <= allowed + 1e-9


def test_the_order_of_the_samples_does_not_matter():
    X, y = wine()
    order = np.random.default_rng(1).permutation(len(y))
    a, b = SVC(tol=1e-10, gamma=0.1).fit(X, y), SVC(tol=1e-10, gamma=0.1).fit(X[order], y[order])
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-4)
    assert a.certificate_.dual == pytest.approx(b.certificate_.dual, rel=1e-8)


# -- hard margin ------------------------------------------------------------------------------------------


def test_a_hard_margin_is_the_widest_street():
    X = np.array([[0.0, 0.0], [0.0, 2.0], [3.0, 0.0], [3.0, 1.0], [5.0, 5.0]])
    y = np.array([0, 0, 1, 1, 1])
    model = SVC(kernel="linear", C=np.inf, tol=1e-10).fit(X, y)
    assert model.margin_width_ == pytest.approx(3.0, rel=1e-6)
    signed = (2 * y - 1) * model.decision_function(X)
    assert signed.min() == pytest.approx(1.0, abs=1e-5)
    assert model.certificate_.verify(X, y).relative_gap < 1e-8


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_hard_margin_on_inseparable_classes_is_an_error_with_evidence(kernel):
    X, y = np.array([[0.0], [1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    with pytest.raises(Infeasible, match="separated") as caught:
        SVC(kernel=kernel, C=np.inf).fit(X, y)
    b = caught.value.coefficients
    K = SVC(kernel=kernel).fit(X, y).kernel_(X)
    assert np.any(b)
    assert b @ K @ b <= 1e-8 * np.abs(b).sum() ** 2


# -- what cannot be fitted --------------------------------------------------------------------------------


def test_a_single_class_is_named():
    with pytest.raises(ValueError, match=r"at least two classes.*'spam'.*OneClassSVM"):
        SVC().fit([[0.0], [1.0]], ["spam", "spam"])


def test_bad_weights_are_named():
    X, y = moons(10)
    with pytest.raises(ValueError, match=r"sample_weight\[3\] is -1.*negative"):
        SVC().fit(X, y, sample_weight=[1, 1, 1, -1, 1, 1, 1, 1, 1, 1])
    with pytest.raises(ValueError, match="all samples have zero or negative weights"):
        SVC().fit(X, y, sample_weight=np.zeros(10))
    with pytest.raises(ValueError, match=r"shape == \(3,\).*\(10,\)"):
        SVC().fit(X, y, sample_weight=[1, 1, 1])
    with pytest.raises(ValueError, match="class 1 have weight 0"):
        SVC().fit(X, y, sample_weight=1.0 - y)
    with pytest.raises(ValueError, match=r"sample_weight\[0\] is nan"):
        SVC().fit(X, y, sample_weight=np.full(10, np.nan))
    with pytest.raises(ValueError, match="class_weight gives class 1 the weight -2"):
        SVC(class_weight={1: -2.0}).fit(X, y)


def test_break_ties_needs_one_score_per_class():
    X, y = wine()
    with pytest.raises(ValueError, match="break_ties must be False"):
        SVC(break_ties=True, decision_function_shape="ovo").fit(X, y).predict(X)


# -- sparse and dense -------------------------------------------------------------------------------------


@pytest.mark.parametrize("density", [0.5, 0.005])
def test_sparse_data_give_what_dense_data_give(density):
    X = sparse.random_array((90, 400), density=density, rng=np.random.default_rng(0), format="csr")
    y = (np.asarray(X[:, :200].sum(axis=1)).ravel() > np.asarray(X[:, 200:].sum(axis=1)).ravel()).astype(int)
    for kernel in ("rbf", "linear"):
        dense = SVC(kernel=kernel, tol=1e-10).fit(X.toarray(), y)
        thin = SVC(kernel=kernel, tol=1e-10).fit(X, y)
        assert sparse.issparse(thin.support_vectors_)
        np.testing.assert_allclose(thin.decision_function(X), dense.decision_function(X.toarray()), atol=1e-5)
        np.testing.assert_allclose(thin.decision_function(X.toarray()), thin.decision_function(X), atol=1e-12)


def test_float32_data_stay_float32_and_are_close():
    X, y = moons()
    narrow = SVC(tol=1e-6).fit(X.astype(np.float32), y)
    assert narrow.support_vectors_.dtype == np.float32
    wide = SVC(tol=1e-6).fit(X.astype(np.float32).astype(float), y)
    assert np.abs(narrow.decision_function(X) - wide.decision_function(X)).max() < 1e-2
    assert SVC(dtype="float64").fit(X.astype(np.float32), y).certificate_.precision == "float64"
    assert SVC(dtype="float32").fit(X, y).certificate_.precision == "float32"


# -- hard margins and machines without an offset --------------------------------------------------------------


def test_classes_a_ten_millionth_apart_are_separated():
    rng = np.random.default_rng(0)
    x = np.concatenate([[1.0, 1.0 + 1e-7], rng.uniform(0, 1, 200), 1 + 1e-7 + rng.uniform(0, 1, 200)])
    y = (x > 1 + 5e-8).astype(int)
    model = SVC(C=np.inf, kernel="linear").fit(x[:, None], y)
    assert model.margin_width_ == pytest.approx(x[1] - x[0], rel=1e-6)
    assert model.score(x[:, None], y) == 1
    assert model.certificate_.converged
    assert model.certificate_.verify(x[:, None], y).converged


def test_a_pair_of_classes_that_cannot_be_separated_is_evidence_too():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(Infeasible) as caught:
        SVC(C=np.inf, kernel="linear").fit(X, y)
    b = caught.value.coefficients
    pair = X[y > 0]
    assert len(b) == len(pair)
    assert (b[b > 0].sum(), -b[b < 0].sum()) == pytest.approx((1, 1))
    assert np.abs(b @ pair).max() <= 1e-12


@pytest.mark.parametrize("C", [0.3, 10.0, np.inf])
@pytest.mark.parametrize("kernel", [RBF(1.0), Linear()], ids=str)
def test_without_offset_it_is_the_dual_that_clarabel_solves(kernel, C):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] + X[:, 1] > 0, 1.0, -1.0)
    X[:, 0] += 0.2 * y
    model = SVC(C=C, kernel=kernel, fit_intercept=False, tol=1e-8).fit(X, y)
    problem = referee.no_offset(kernel(X), y, C)
    problem.upper, problem.lower = np.where(y > 0, C, 0.0), np.where(y < 0, C, 0.0)
    assert model.certificate_.dual == pytest.approx(referee.solve(problem).dual, rel=1e-6)
    assert model.certificate_.verify(X, y).converged
    assert model.intercept_ == 0
    f = model.decision_function(X)
    np.testing.assert_allclose(model.function_(X), f, atol=1e-9)
    table = model.margins(X, y)
    np.testing.assert_allclose(table.margin, y * f, atol=1e-9)
    assert table.kkt.max() < 1e-3
    assert np.array_equal(model.zones(X) > 0, f >= 0)
    if np.isinf(C):
        assert table.margin.min() == pytest.approx(1.0, abs=1e-4)
        assert model.margin_width_ == pytest.approx(2 / model.function_.norm())


def test_without_offset_it_is_linear_svc_without_one():
    X, y = cancer()
    ours = SVC(kernel="linear", fit_intercept=False, tol=TIGHT).fit(X, y)
    np.testing.assert_allclose(ours.coef_, LinearSVC(fit_intercept=False, tol=TIGHT).fit(X, y).coef_, atol=1e-5)


def test_many_classes_without_offset_are_pairs_without_offset():
    X, y = wine()
    model = SVC(fit_intercept=False, tol=1e-8, decision_function_shape="ovo").fit(X, y)
    assert not model.intercept_.any()
    assert model.certificate_.verify(X, y).converged
    pair = SVC(kernel=model.kernel_, fit_intercept=False, tol=1e-8).fit(X[y > 0], y[y > 0])
    np.testing.assert_allclose(model.decision_function(X)[:, 2], -pair.decision_function(X), atol=1e-4)


def test_points_through_the_origin_have_no_hard_margin_without_offset():
    X, y = np.array([[1.0, 1.0], [2.0, 2.0]]), np.array([0, 1])  # one direction, two labels
    assert SVC(C=np.inf, kernel="linear").fit(X, y).score(X, y) == 1
    with pytest.raises(Infeasible) as caught:
        SVC(C=np.inf, kernel="linear", fit_intercept=False).fit(X, y)
    assert caught.value.coefficients == pytest.approx([-2 / 3, 1 / 3])


def test_a_warm_start_without_offset_goes_on_from_the_last_coefficients():
    X, y = moons()
    model = SVC(fit_intercept=False, warm_start=True, tol=1e-8).fit(X, y)
    steps = model.n_iter_[0]
    assert model.fit(X, y).n_iter_[0] < steps
    assert model.certificate_.converged


def test_a_search_and_a_file_keep_a_machine_without_offset(tmp_path):
    X, y = moons()
    model = SVC(fit_intercept=False, kernel=RBF(1.0), tol=1e-8)

    def logistic(model, X, y):  # that every value of f counts in
        return -np.log1p(np.exp((1 - 2 * y) * model.decision_function(X))).mean()

    search = KernelSearchCV(model, [RBF(1.0)], {"C": [0.1, 1.0]}, cv=3, scoring=logistic, exhaustive=True)
    plain = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=3, scoring=logistic).fit(X, y)
    found = search.fit(X, y).cv_results_["mean_test_score"]
    np.testing.assert_allclose(found, plain.cv_results_["mean_test_score"], rtol=1e-4)
    fitted = model.fit(X, y)
    mercer.save(fitted, tmp_path / "model.mercer")
    loaded = mercer.load(tmp_path / "model.mercer")
    assert loaded.fit_intercept is False
    np.testing.assert_array_equal(loaded.decision_function(X), fitted.decision_function(X))
    assert loaded.certificate_.verify(X, y).converged
