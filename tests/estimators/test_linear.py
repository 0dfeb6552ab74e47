"""LinearSVC and LinearSVR against scikit-learn's SVC and SVR, and the laws of weights, scales and sparse matrices."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.svm import SVC, SVR
from sklearn.svm import LinearSVC as TheirLinearSVC

import mercer
from cases import each
from checks import assert_no_fault
from mercer.estimators import LinearSVC, LinearSVR

CLASSIFIER_LOSSES = ("hinge", "squared_hinge")
REGRESSOR_LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive")


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(),
        LinearSVC(loss="squared_hinge"),
        LinearSVC(penalty="l1", loss="squared_hinge", tol=1e-12),
        LinearSVC(multi_class="crammer_singer", tol=1e-10),
        LinearSVR(),
        LinearSVR(loss="squared_epsilon_insensitive"),
    ],
)
def test_sklearn_checks(model):
    assert_no_fault(model, {} if model.tol < 1e-5 else None)


def classes(n=200, d=6, k=2, seed=0):
    return make_classification(n, d, n_informative=4, n_redundant=1, n_classes=k, class_sep=0.7, random_state=seed)


def primal(model, X, y, C, weight=None):
    """The objective of a binary linear model, from its definition."""
    f = X @ model.coef_[0] + model.intercept_[0]
    loss = np.maximum(0, 1 - np.where(y == np.unique(y)[1], 1, -1) * f)
    loss = loss**2 if "squared" in model.loss else loss
    return 0.5 * (model.coef_**2).sum() + C * (loss * (1 if weight is None else weight)).sum()


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_hinge_is_svc(C, weighted):
    X, y = classes()
    weight = np.random.default_rng(1).uniform(0.2, 3, len(y)) if weighted else None
    theirs = SVC(kernel="linear", C=C, tol=1e-9).fit(X, y, weight)
    ours = LinearSVC(C=C, tol=1e-10).fit(X, y, weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-3, atol=1e-3)
    assert ours.certificate_.converged


@pytest.mark.parametrize("epsilon", [0.0, 0.5])
def test_the_tube_is_svr(epsilon):
    X, y = make_regression(150, 4, noise=2.0, random_state=0)
    y = y / y.std()
    weight = np.random.default_rng(1).uniform(0.2, 3, len(y))
    theirs = SVR(kernel="linear", C=2.0, epsilon=epsilon, tol=1e-9).fit(X, y, weight)
    ours = LinearSVR(C=2.0, epsilon=epsilon, tol=1e-10).fit(X, y, weight)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)


def test_squared_hinges_are_liblinears_when_there_is_no_offset():
    X, y = classes()
    theirs = TheirLinearSVC(fit_intercept=False, dual=False, tol=1e-10).fit(X, y)
    ours = LinearSVC(loss="squared_hinge", fit_intercept=False, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-7)
    assert ours.intercept_ == 0


def test_several_classes_are_each_against_the_rest():
    X, y = load_iris(return_X_y=True)
    y = np.array(["red", "green", "blue"])[y]
    model = LinearSVC(tol=1e-8).fit(X, y)
    assert model.coef_.shape == (3, 4)
    assert list(model.classes_) == ["blue", "green", "red"]
    for k, c in enumerate(model.classes_):
        single = LinearSVC(tol=1e-8).fit(X, y == c)
        np.testing.assert_allclose(model.decision_function(X)[:, k], single.decision_function(X), atol=1e-3)
    assert len(model.certificate_.parts) == 3
    assert model.score(X, y) > 0.9
    assert model.n_iter_ == max(c.iterations for c in model.certificate_.parts)


@pytest.mark.parametrize("loss", CLASSIFIER_LOSSES)
@pytest.mark.parametrize("k", [2, 3])
def test_sparse_is_dense(loss, k):
    X, y = classes(k=k)
    X[np.abs(X) < 0.5] = 0
    dense = LinearSVC(loss=loss, tol=1e-9).fit(X, y)
    for kind in (sparse.csr_matrix, sparse.csc_array):
        other = LinearSVC(loss=loss, tol=1e-9).fit(kind(X), y)
        np.testing.assert_allclose(other.coef_, dense.coef_, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(other.decision_function(kind(X)), dense.decision_function(X), rtol=1e-4, atol=1e-4)
        assert other.certificate_.verify(kind(X), y).converged


@pytest.mark.parametrize("loss", REGRESSOR_LOSSES)
def test_sparse_is_dense_in_regression(loss):
    X, y = make_regression(100, 5, noise=3.0, random_state=0)
    X[np.abs(X) < 0.5] = 0
    dense = LinearSVR(loss=loss, tol=1e-9).fit(X, y)
    other = LinearSVR(loss=loss, tol=1e-9).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(other.predict(X), dense.predict(X), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(),
        LinearSVC(loss="squared_hinge"),
        LinearSVC(loss="squared_hinge", penalty="l1"),
        LinearSVC(multi_class="crammer_singer"),
        LinearSVR(),
        LinearSVR(loss=REGRESSOR_LOSSES[1]),
    ],
)
def test_weights_are_repetitions(model):
    X, y = classes(60)
    rng = np.random.default_rng(2)
    weight = rng.integers(0, 4, len(y))
    model = clone(model).set_params(tol=1e-12)
    weighted = clone(model).fit(X, y, weight)
    repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-5, atol=1e-5)
    assert weighted.certificate_.verify(X, y, sample_weight=weight).primal == pytest.approx(
        weighted.certificate_.primal, rel=1e-9
    )


def test_class_weights_are_sample_weights():
    X, y = classes()
    by_class = LinearSVC(class_weight={0: 2.0, 1: 0.5}, tol=1e-10).fit(X, y)
    by_row = LinearSVC(tol=1e-10).fit(X, y, np.where(y == 0, 2.0, 0.5))
    np.testing.assert_allclose(by_class.coef_, by_row.coef_, rtol=1e-5, atol=1e-6)
    balanced = LinearSVC(class_weight="balanced", tol=1e-10).fit(X[20:], y[20:])
    theirs = SVC(kernel="linear", class_weight="balanced", tol=1e-9).fit(X[20:], y[20:])
    np.testing.assert_allclose(balanced.coef_, theirs.coef_, rtol=1e-4, atol=1e-5)
    assert by_class.certificate_.verify(X, y).converged


@pytest.mark.parametrize("loss", CLASSIFIER_LOSSES)
@pytest.mark.parametrize("shift", [0.0, 1e5])
def test_only_the_problem_counts_not_where_its_columns_are(loss, shift):
    """With a free offset a shift of the data changes b only: what centring and scaling inside must not disturb."""
    X, y = classes()
    plain = LinearSVC(loss=loss, tol=1e-9).fit(X, y)
    moved = LinearSVC(loss=loss, tol=1e-9).fit(X + shift, y)
    np.testing.assert_allclose(moved.coef_, plain.coef_, rtol=1e-3, atol=1e-4)
    assert moved.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-7)


@pytest.mark.parametrize("loss", CLASSIFIER_LOSSES)
@pytest.mark.parametrize("factor", [1e-8, 1e8])
def test_a_common_scale_is_a_change_of_the_price(loss, factor):
    """x -> s x with C -> C / s² is the same problem in w s: 1/2 |w|² and the losses scale together."""
    X, y = classes()
    plain = LinearSVC(loss=loss, tol=1e-9).fit(X, y)
    scaled = LinearSVC(loss=loss, tol=1e-9, C=1 / factor**2).fit(factor * X, y)
    np.testing.assert_allclose(scaled.coef_ * factor, plain.coef_, rtol=1e-3, atol=1e-5)
    assert scaled.certificate_.primal * factor**2 == pytest.approx(plain.certificate_.primal, rel=1e-7)


@pytest.mark.parametrize("C", [1e-9, 1e-3, 1.0, 1e3, 1e9])
@pytest.mark.parametrize("loss", CLASSIFIER_LOSSES)
def test_unscaled_features_and_any_price_end_with_a_proof(C, loss):
    X, y = load_breast_cancer(return_X_y=True)
    model = LinearSVC(C=C, loss=loss, tol=1e-6).fit(X, y)
    claim = model.certificate_
    assert claim.converged
    assert claim.primal == pytest.approx(primal(model, X, y, C), rel=1e-9)
    again = claim.verify(X, y)
    assert again.primal == pytest.approx(claim.primal, rel=1e-7)
    assert again.relative_gap <= 2e-6


HARD = {
    "twelve orders of magnitude": lambda X, y: (X * 10.0 ** np.linspace(-6, 6, X.shape[1]), y),
    "opposite duplicates": lambda X, y: (np.r_[X, X], np.r_[y, 1 - y]),
    "constant columns": lambda X, y: (np.c_[X, np.full(len(X), 7.0), np.zeros(len(X))], y),
    "equal rows": lambda X, y: (np.ones_like(X), y),
    "only zeros": lambda X, y: (np.zeros_like(X), y),
    "one sample per class": lambda X, y: (X[[np.argmin(y), np.argmax(y)]], np.array([0, 1])),
    "more columns than rows": lambda X, y: (X[:, :].T[:, :20].T[:5].repeat(3, axis=1), np.array([0, 1, 0, 1, 1])),
    "one of a class": lambda X, y: (X, np.arange(len(X)) == 3),
}


@each("C", [1e-9, 1.0, 1e9])
@each("name", HARD)
def test_hard_data_end_with_a_proof(name, C):
    X, y = HARD[name](*classes())
    for loss in CLASSIFIER_LOSSES:
        model = LinearSVC(C=C, loss=loss, max_iter=200).fit(X, y)
        assert model.certificate_.converged
        assert np.isfinite(model.coef_).all()
    for loss in REGRESSOR_LOSSES:
        model = LinearSVR(C=C, loss=loss, max_iter=200).fit(X, y + 0.3 * np.sin(np.arange(len(y))))
        assert model.certificate_.converged
        assert np.isfinite(model.coef_).all()


def test_float32_is_read_as_it_is():
    X, y = classes()
    X = X.astype(np.float32)
    single, double = LinearSVC(tol=1e-9).fit(X, y), LinearSVC(tol=1e-9).fit(X.astype(np.float64), y)
    np.testing.assert_allclose(single.coef_, double.coef_, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(single.decision_function(X), double.decision_function(X), rtol=1e-6, atol=1e-6)


def test_many_rows_go_through_a_sample():
    X, y = classes(100_000, 8)
    model = LinearSVC(tol=1e-6).fit(X, y)
    assert "near the margin" in model.certificate_.solver
    assert model.certificate_.verify(X, y).relative_gap <= 1.1e-6
    square = LinearSVC(loss="squared_hinge", tol=1e-6).fit(X, y)
    assert square.certificate_.converged


def test_limits_warn_and_leave_a_model():
    X, y = classes(k=3)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 reached"):
        model = LinearSVC(max_iter=1).fit(X, y)
    assert model.coef_.shape == (3, 6)
    assert not model.certificate_.converged
    assert model.certificate_.dual <= LinearSVC(tol=1e-8).fit(X, y).certificate_.primal
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        LinearSVR(time_limit=1e-9).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LinearSVC().fit(X, y)


def test_an_interrupt_warns_and_leaves_a_model(monkeypatch):
    import mercer.solvers.linear.solve as linear_solve

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(linear_solve, "interior_point", interrupted)
    X, y = classes(300, k=3)  # more rows than SMO is tried on
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = LinearSVC().fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    assert model.certificate_.verify(X, y).gap >= 0


def test_a_fitted_model_can_be_pickled_and_still_verified():
    X, y = classes()
    model = pickle.loads(pickle.dumps(LinearSVC().fit(X, y)))
    assert model.certificate_.verify(X, y).converged


def test_verify_refuses_other_data():
    X, y = classes()
    model = LinearSVC().fit(X, y)
    with pytest.raises(ValueError, match="200 samples of positive weight and X has 100"):
        model.certificate_.verify(X[:100], y[:100])
    with pytest.raises(ValueError, match="not feasible for these data"):
        model.certificate_.verify(X, np.roll(y, 7), sample_weight=np.full(200, 0.1))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LinearSVC(C=0), "C=0 of LinearSVC must be a finite number > 0"),
        (LinearSVC(C=np.inf), "C=inf of LinearSVC must be a finite number > 0"),
        (LinearSVC(loss="hinges"), "loss='hinges' of LinearSVC must be one of 'hinge', 'squared_hinge'"),
        (LinearSVC(tol=0), "tol=0 of LinearSVC must be a relative duality gap"),
        (LinearSVC(max_iter=1.5), "max_iter=1.5 of LinearSVC must be a whole number"),
        (LinearSVC(time_limit=-1), "time_limit=-1 of LinearSVC must be a number of seconds"),
        (LinearSVC(class_weight={0: -1.0}), "class_weight gives class .*0.* the weight -1"),
        (LinearSVC(penalty="l0"), "penalty='l0' of LinearSVC must be 'l2' or 'l1'"),
        (LinearSVC(multi_class="ovo"), "multi_class='ovo' of LinearSVC must be 'ovr' or 'crammer_singer'"),
        (
            LinearSVC(multi_class="crammer_singer", penalty="l1"),
            "penalty='l1' of LinearSVC goes with multi_class='ovr'",
        ),
        (LinearSVR(epsilon=-0.1), "epsilon=-0.1 of LinearSVR must be a finite number >= 0"),
        (LinearSVR(loss="hinge"), "loss='hinge' of LinearSVR must be one of"),
    ],
)
def test_parameters_out_of_their_domain_are_named(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*classes(30))


def test_labels_and_weights_out_of_their_domain_are_named():
    X, y = classes(30)
    with pytest.raises(ValueError, match="y has one class only"):
        LinearSVC().fit(X, np.zeros(30))
    with pytest.raises(ValueError, match=r"no sample of class .*1.* has a positive weight"):
        LinearSVC().fit(X, y, np.where(y == 1, 0.0, 1.0))
    with pytest.raises(ValueError, match="negative weights"):
        LinearSVC().fit(X, y, np.full(30, -1.0))
    with pytest.raises(ValueError, match="column 0 of X has values beyond"):
        LinearSVC().fit(X * 1e200, y)


@pytest.mark.parametrize("loss", CLASSIFIER_LOSSES)
@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
def test_wide_data_end_with_a_proof(loss, C):
    X, y = make_classification(400, 500, n_informative=20, random_state=0)
    model = LinearSVC(loss=loss, C=C, tol=1e-6).fit(X, y)
    assert model.certificate_.verify(X, y).relative_gap <= 1.1e-6
    if loss == "hinge":
        theirs = SVC(kernel="linear", C=C, tol=1e-8).fit(X, y)
        np.testing.assert_allclose(model.decision_function(X), theirs.decision_function(X), atol=1e-2)


def test_the_shares_of_several_cores_add_up(monkeypatch):
    import mercer.solvers.linear.rows as linear_rows

    X, y = classes(30_000, 8)
    alone = LinearSVC(tol=1e-7).fit(X, y)
    monkeypatch.setattr(linear_rows, "_THREADED_NUMBERS", 1)
    monkeypatch.setattr(linear_rows, "cores", lambda: 3)
    shared = LinearSVC(tol=1e-7).fit(X.astype(np.float64), y)
    assert shared.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=2e-7)


@pytest.mark.parametrize(
    "labels", [[0, 1], [-3, 7], [False, True], ["a", "b"], [2.0, 5.0], [np.uint8(3), np.uint8(200)], [0, 1, 5]]
)
def test_classes_are_the_labels_that_occur(labels):
    X, y = classes(200, k=len(labels))
    named = np.array(labels)[y]
    model = LinearSVC().fit(X, named)
    assert model.classes_.tolist() == np.unique(named).tolist()
    assert model.classes_.dtype == named.dtype
    assert set(model.predict(X)) <= set(named)
    np.testing.assert_array_equal(model.coef_, LinearSVC().fit(X, y).coef_)


# -- few weights --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize(("n", "d"), [(80, 6), (30, 60)])
def test_few_weights_with_hinges_are_a_linear_program(n, d, C):
    X, y = make_classification(n, d, n_informative=4, random_state=1)
    X = X * 10.0 ** np.linspace(-1, 1, d) + 3
    signs, weight = 2.0 * y - 1, np.random.default_rng(0).uniform(0.5, 2, n)
    A = np.c_[signs[:, None] * np.c_[X, -X, np.ones(n)], np.eye(n)]
    bounds = [(0, None)] * (2 * d) + [(None, None)] + [(0, None)] * n
    best = optimize.linprog(np.r_[np.ones(2 * d), 0, C * weight], -A, -np.ones(n), bounds=bounds).fun
    model = LinearSVC(penalty="l1", C=C, tol=1e-7).fit(X, y, weight)
    assert model.certificate_.primal == pytest.approx(best, rel=1e-6)
    assert model.certificate_.verify(X, y, sample_weight=weight).relative_gap <= 2e-7
    risk = weight @ np.maximum(0, 1 - signs * model.decision_function(X))
    assert np.abs(model.coef_).sum() + C * risk == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_few_weights_with_squared_hinges_are_liblinears(C):
    X, y = classes(d=12)
    theirs = TheirLinearSVC(penalty="l1", dual=False, fit_intercept=False, C=C, tol=1e-10, max_iter=10**6).fit(X, y)
    ours = LinearSVC(penalty="l1", loss="squared_hinge", fit_intercept=False, C=C, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert ((ours.coef_ == 0) == (theirs.coef_ == 0)).all()
    free = LinearSVC(penalty="l1", loss="squared_hinge", C=C, tol=1e-10).fit(X + 1, y)
    far = TheirLinearSVC(penalty="l1", dual=False, C=C, tol=1e-6, max_iter=10**6, intercept_scaling=1e4, random_state=0)
    np.testing.assert_allclose(free.coef_, far.fit(X + 1, y).coef_, atol=1e-2)


@pytest.mark.parametrize("loss", CLASSIFIER_LOSSES)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_few_of_many_columns_are_found(loss, kind):
    X, y = make_classification(60, 700, n_informative=5, random_state=0)
    X[np.abs(X) < 0.5] = 0
    model = LinearSVC(penalty="l1", loss=loss, C=0.2, tol=1e-6).fit(kind(X), y)
    assert model.certificate_.verify(kind(X), y).relative_gap <= 2e-6
    assert 0 < np.count_nonzero(model.coef_) <= 60
    values = model.decision_function(kind(X))
    assert sparse.issparse(model.sparsify().coef_)
    np.testing.assert_allclose(model.decision_function(kind(X)), values)
    assert model.certificate_.verify(kind(X), y).converged
    assert isinstance(model.densify().coef_, np.ndarray)


def test_interior_points_and_the_simplex_method_agree(monkeypatch):
    import mercer.solvers.linear.sparse as linear_sparse

    X, y = classes(300, 10)
    program = LinearSVC(penalty="l1", tol=1e-6).fit(X, y)
    monkeypatch.setattr(linear_sparse, "_SIMPLEX_ROWS", 0)
    inner = LinearSVC(penalty="l1", tol=1e-6).fit(X, y)
    assert inner.certificate_.solver != program.certificate_.solver
    assert inner.certificate_.verify(X, y).relative_gap <= 1e-6
    assert inner.certificate_.primal == pytest.approx(program.certificate_.primal, rel=1e-6)
    assert (np.diff(inner.history_["gap"]) <= 0).all()
    with pytest.warns(ConvergenceWarning, match="max_iter=2 reached"):
        early = LinearSVC(penalty="l1", max_iter=2).fit(X, y)
    assert early.certificate_.dual <= program.certificate_.primal <= early.certificate_.primal


# -- one machine for all classes ----------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("k", [2, 4])
def test_crammer_singer_without_offset_is_liblinears(C, k):
    X, y = classes(k=k)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    options = {"multi_class": "crammer_singer", "C": C, "fit_intercept": False}
    theirs = TheirLinearSVC(**options, tol=1e-9, max_iter=10**6, random_state=0).fit(X, y, weight)
    ours = LinearSVC(**options, tol=1e-11).fit(X, y, weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert ours.coef_.shape == theirs.coef_.shape
    assert ours.certificate_.verify(X, y, sample_weight=weight).relative_gap <= 1e-10


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_crammer_singer_with_offsets_ends_with_a_proof(monkeypatch, direct, kind):
    import mercer.solvers.linear.crammer_singer as crammer_singer

    if not direct:
        monkeypatch.setattr(crammer_singer, "_FACTORED_UNKNOWNS", 0)
    X, y = classes(300, k=3)
    X = np.where(np.abs(X) < 0.3, 0.0, X) * 10.0 ** np.linspace(-1, 1, 6) + 2
    model = LinearSVC(multi_class="crammer_singer", tol=1e-7, class_weight="balanced").fit(kind(X), y)
    seen = model.certificate_.verify(kind(X), y)
    assert seen.relative_gap <= 2e-7
    cost = model.class_weight_[y]
    f = model.decision_function(kind(X))
    loss = (f + (np.arange(3) != y[:, None])).max(axis=1) - f[np.arange(300), y]
    assert seen.primal == pytest.approx(0.5 * (model.coef_**2).sum() + cost @ loss, rel=1e-9)
    assert (model.history_["primal"] >= model.history_["dual"]).all()
    model.coef_ = model.coef_ + 0.1
    assert not model.certificate_.verify(kind(X), y).converged
    with pytest.raises(ValueError, match="not feasible for these data"):
        model.certificate_.verify(kind(X), np.roll(y, 1))


def test_crammer_singer_of_two_classes_is_svc_at_half_the_distance():
    """With w_0 = -w_1 the loss is a hinge of (w_1 - w_0).x, the penalty |w_1 - w_0|² / 4: an SVC with twice the C."""
    X, y = classes()
    joint = LinearSVC(multi_class="crammer_singer", C=0.3, tol=1e-10).fit(X, y)
    theirs = SVC(kernel="linear", C=0.6, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(joint.coef_, theirs.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(joint.intercept_, theirs.intercept_, atol=1e-4)


# -- parameters of scikit-learn, margins, history ------------------------------------------------------------


@pytest.mark.parametrize("model", [LinearSVC, LinearSVR])
@pytest.mark.parametrize("given", [{"dual": False}, {"intercept_scaling": 10.0}, {"random_state": 0}], ids=str)
def test_parameters_that_nothing_depends_on_are_said_to_be_so(model, given):
    with pytest.warns(UserWarning, match=f"{next(iter(given))}=.* changes nothing in {model.__name__}"):
        model(**given).fit(*classes(30))


def test_a_column_of_labels_is_read_as_scikit_learn_reads_it():
    X, y = classes(30)
    for model in (LinearSVC(), LinearSVR()):
        with pytest.warns(DataConversionWarning, match="column-vector"):
            column = clone(model).fit(X, y[:, None])
        np.testing.assert_array_equal(column.coef_, model.fit(X, y).coef_)


@pytest.mark.parametrize("n", [150, 400])
@pytest.mark.parametrize("weighted", [False, True])
def test_margins_are_those_of_svc(n, weighted):
    X, y = classes(n)
    weight = np.tile([0.0, 1.0, 2.0, 1.5, 0.5], n // 5) if weighted else None
    ours = LinearSVC(tol=1e-9).fit(X, y, weight)
    theirs = mercer.SVC(kernel="linear", tol=1e-9).fit(X, y, weight)
    mine, other = ours.margins(X, y, weight), theirs.margins(X, y, weight)
    counted = np.ones(n, bool) if weight is None else weight > 0
    assert (mine.role[counted] == other.role[counted]).mean() > 0.99
    np.testing.assert_allclose(mine.margin, other.margin, atol=1e-3)
    assert mine.kkt.max() < 1e-3
    assert set(mine.role) >= {"outside", "on the margin", "inside"}
    assert (ours.zones(X) == theirs.zones(X)).mean() > 0.98
    new = ours.margins(X[::-1], y)
    assert new.alpha.isna().all()
    assert new.kkt.isna().all()


def test_margins_of_other_losses_and_more_classes():
    X, y = classes(300, k=3)
    squared = LinearSVC(loss="squared_hinge", tol=1e-10).fit(X, y)
    table = squared.margins(X, y)
    np.testing.assert_allclose(table.alpha, 2 * table.slack, atol=1e-4)
    assert table.index.names == ["positive", "sample"]
    assert squared.zones(X).shape == (300, 3)
    joint = LinearSVC(multi_class="crammer_singer", tol=1e-9).fit(X, y)
    table = joint.margins(X, y)
    right = joint.predict(X) == y
    assert ((table.margin > 0) == right).all()
    assert table.kkt.max() < 1e-3
    assert ((joint.zones(X)[np.arange(300), y] == 2) == (table.margin >= 1)).all()
    for loss in REGRESSOR_LOSSES:
        target = X[:, 0] + 0.3 * np.sin(np.arange(300.0))
        tube = LinearSVR(loss=loss, tol=1e-9).fit(X, target)
        table = tube.margins(X, target)
        np.testing.assert_allclose(table.slack, np.maximum(0, np.abs(target - tube.predict(X)) - 0.1), atol=1e-12)
        assert table.kkt.max() < 1e-3
        assert len(table.role.unique()) > 1


@pytest.mark.parametrize("loss", CLASSIFIER_LOSSES)
@pytest.mark.parametrize("n", [100, 2000])
def test_the_history_ends_with_the_certificate(loss, n):
    X, y = classes(n)
    model = LinearSVC(loss=loss, tol=1e-6).fit(X, y)
    assert model.history_.dtype.names == ("steps", "primal", "dual", "gap", "support", "seconds")
    last, claim = model.history_[-1], model.certificate_
    assert (last["primal"], last["dual"], last["steps"]) == (claim.primal, claim.dual, claim.iterations)
    assert n == 100 or len(model.history_) > 1
    assert (np.diff(model.history_["seconds"]) >= 0).all()
    assert len(LinearSVC(loss=loss).fit(*classes(n, k=3)).history_) == 3
