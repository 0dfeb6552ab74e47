"""Probabilities of support vector machines: the maps that make them, and `predict_proba` beside scikit-learn's."""

import warnings

import numpy as np
import pytest
import sklearn.svm
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_moons
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import KFold, cross_val_predict, cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from mercer import RBF, FromFunction, KernelSearchCV
from mercer.estimators import SVC, NuSVC
from mercer.estimators.svm.calibration import logistic_map, pair_maps, probabilities
from mercer.estimators.svm.fold import dealt
from samples import shared_letters

X, Y = make_moons(160, noise=0.3, random_state=0)
NAMES = np.where(Y == 1, "up", "down")
FLOWERS, KINDS = load_iris(return_X_y=True)
MODELS = [SVC(probability=True), NuSVC(nu=0.3, probability=True)]

# -- the maps ---------------------------------------------------------------------------------------------


def test_the_logistic_map_is_the_minimum_of_its_entropy_and_never_falls():
    rng = np.random.default_rng(0)
    f, yes = rng.normal(size=300), rng.uniform(size=300) < 0.3
    f[yes] += 1.0
    a, b = logistic_map(f, yes)
    t = np.where(yes, (yes.sum() + 1) / (yes.sum() + 2), 1 / ((~yes).sum() + 2))
    p = 1 / (1 + np.exp(-(a * f + b)))
    assert abs(np.sum(p - t)) < 1e-6
    assert abs(np.sum((p - t) * f)) < 1e-6
    slope, offset = logistic_map(-f, yes)
    assert slope > 0
    assert 1 / (1 + np.exp(-offset)) == pytest.approx(yes.mean(), abs=0.02)


def test_pairs_that_were_never_seen_have_a_map_all_the_same():
    values = np.array([[1.0, np.nan, np.nan], [-1.0, np.nan, np.nan], [2.0, np.nan, np.nan]])
    maps = pair_maps(values, np.array([0, 1, 0]), 3)
    assert np.isfinite(maps["slope"]).all()
    assert (maps["slope"] > 0).all()
    assert probabilities(np.zeros((0, 3)), maps, 3).shape == (0, 3)


def test_a_weight_of_two_is_a_point_twice():
    rng = np.random.default_rng(0)
    values, codes, twice = rng.normal(size=(9000, 3)), np.repeat([0, 1, 2], 3000), rng.uniform(size=9000) < 0.5
    values += np.array([[1, 1, 0], [-1, 0, 1], [0, -1, -1]])[codes]
    again = np.r_[np.arange(9000), np.flatnonzero(twice)]
    weighted, repeated = pair_maps(values, codes, 3, 1.0 + twice), pair_maps(values[again], codes[again], 3)
    for key, value in repeated.items():
        np.testing.assert_allclose(weighted[key], value, atol=0.02)
    np.testing.assert_array_equal(
        pair_maps(values, codes, 3)["slope"], pair_maps(values, codes, 3, np.full(9000, 7.0))["slope"]
    )
    counted = pair_maps(values, codes, 3, 1.0 + twice, counts=True)
    for key, value in repeated.items():
        np.testing.assert_allclose(counted[key], value, rtol=1e-5)


def test_folds_spread_every_class_and_follow_the_seed():
    codes = np.random.default_rng(0).integers(0, 4, 83)
    codes[:2] = 4  # a class of two
    folds = dealt(codes, 3)
    for c in range(5):
        counts = np.bincount(folds[codes == c], minlength=5)
        assert counts.max() - counts.min() <= 1
    assert np.array_equal(folds, dealt(codes, 3))
    assert np.array_equal(dealt(codes, None), dealt(codes, None))
    assert not np.array_equal(folds, dealt(codes, 4))


# -- predict_proba ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("load", [load_breast_cancer, load_digits, load_iris, load_wine], ids=lambda f: f.__name__)
def test_no_less_probable_than_scikit_learn_says(load):
    Z, y = load(return_X_y=True)
    Z = StandardScaler().fit_transform(Z)
    losses = []
    for train, test in KFold(4, shuffle=True, random_state=0).split(Z):
        pair = SVC(C=10.0, probability=True), sklearn.svm.SVC(C=10.0, probability=True, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # scikit-learn's goes away
            losses.append([log_loss(y[test], m.fit(Z[train], y[train]).predict_proba(Z[test])) for m in pair])
    ours, theirs = np.mean(losses, axis=0)
    assert ours <= theirs


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_probabilities_are_a_law_that_follows_the_machine(model):
    model.fit(X, NAMES)
    p, f = model.predict_proba(X), model.decision_function(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(p))
    assert (np.diff(p[np.argsort(f), 1]) > 0).all()
    assert np.array_equal(model.predict(X), model.classes_[(f >= 0).astype(int)])
    np.testing.assert_allclose(p[:, 0], 1 / (1 + np.exp(model.probA_ * -f + model.probB_)))
    np.testing.assert_array_equal(p, type(model)(**model.get_params()).fit(X, NAMES).predict_proba(X))
    assert not np.array_equal(
        p, type(model)(**{**model.get_params(), "random_state": 1}).fit(X, NAMES).predict_proba(X)
    )


def test_what_is_held_out_is_not_learned_from():
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(300, 20)), rng.integers(0, 2, 300)  # nothing to learn
    model = SVC(C=100.0, probability=True).fit(Z, y)
    assert model.score(Z, y) > 0.9
    assert np.abs(model.predict_proba(Z)[:, 1] - 0.5).max() < 0.2


@pytest.mark.parametrize("kinds", [2, 3])
def test_one_problem_in_four_forms(kinds):
    n = 50 * kinds  # the first kinds
    Z, y = FLOWERS[:n], KINDS[:n]
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) * (np.arange(len(y)) % 9 > 0)
    params = {"probability": True, "tol": 1e-8, "class_weight": {1: 2.0}}
    expected = SVC(kernel=RBF(1.0), **params).fit(Z, y, sample_weight=weight).predict_proba(Z)
    K = RBF(1.0)(Z)
    left = SVC(kernel=RBF(1.0), **params).fit(Z[weight > 0], y[weight > 0], sample_weight=weight[weight > 0])
    for found in (
        SVC(kernel="precomputed", **params).fit(K, y, sample_weight=weight).predict_proba(K),
        SVC(kernel=RBF(1.0), **params).fit(sparse.csr_array(Z), y, sample_weight=weight).predict_proba(Z),
        SVC(kernel=RBF(1.0), **params, budget="20 kB").fit(Z, y, sample_weight=weight).predict_proba(Z),
        left.predict_proba(Z),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_objects():
    words = ["kernel", "kernels", "colonel", "kernal", "margin", "margins", "marginal", "marginally"]
    model = SVC(kernel=FromFunction(shared_letters).normalized(), C=10.0, probability=True).fit(
        words, ["k"] * 4 + ["m"] * 4
    )
    assert model.predict_proba(["kernell"])[0, 0] > 0.5 > model.predict_proba(["margining"])[0, 0]


def test_nu_may_be_as_large_as_the_whole_sample_allows():
    y = np.repeat([0, 1], [51, 49])
    model = NuSVC(nu=0.98, probability=True).fit(X[:100], y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_the_tools_of_scikit_learn():
    model = SVC(probability=True)
    vote = VotingClassifier([("svc", model), ("line", LogisticRegression())], voting="soft").fit(X, NAMES)
    assert vote.score(X, NAMES) > 0.85
    calibrated = CalibratedClassifierCV(model, cv=3).fit(X, NAMES)
    assert log_loss(NAMES, calibrated.predict_proba(X)) < 0.35
    p = cross_val_predict(model, X, NAMES, method="predict_proba", cv=KFold(4, shuffle=True, random_state=0))
    assert roc_auc_score(NAMES, p[:, 1]) > 0.9
    assert cross_val_score(model, FLOWERS, KINDS, scoring="roc_auc_ovr").min() > 0.97
    search = KernelSearchCV(model, [RBF(1.0)], {"C": [1.0, 10.0]}, scoring="neg_log_loss", cv=3).fit(X, NAMES)
    assert search.predict_proba(X).shape == (len(X), 2)


def test_they_are_there_when_they_were_asked_for():
    plain = SVC().fit(X, Y)
    assert not hasattr(plain, "predict_proba")
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'"):
        plain.predict_proba(X)
    with pytest.raises(NotFittedError, match="not available when fitted with probability=False"):
        plain.set_params(probability=True).predict_proba(X)
    assert hasattr(plain.fit(X, Y), "calibration_")
    assert not hasattr(plain.set_params(probability=False).fit(X, Y), "calibration_")
    with pytest.raises(ValueError, match=r"probability='yes' of SVC must be True or False"):
        SVC(probability="yes").fit(X, Y)


def test_a_class_of_one_sample():
    y = np.where(np.arange(len(X)) == 7, 2, Y)
    with pytest.warns(UserWarning, match="class 2 has one sample only, which cannot be both learned from and held out"):
        model = SVC(probability=True).fit(X, y)
    assert model.calibration_["slope"][1:].tolist() == [1.0, 1.0]
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    with pytest.warns(UserWarning, match="class 'a' has one sample only"):
        two = SVC(C=9.0, kernel="linear", probability=True).fit([[0.0], [1.0]], ["a", "b"])
    p = two.predict_proba([[0.0], [0.5], [1.0]])
    np.testing.assert_allclose(p[:, 1], 1 / (1 + np.exp([1.0, 0.0, -1.0])), atol=1e-3)
    y[8] = 2
    assert np.isfinite(SVC(probability=True).fit(X, y).predict_proba(X)).all()


def test_limits_hold_for_the_folds_too():
    with pytest.warns(ConvergenceWarning, match="max_iter=3 reached") as caught:
        model = SVC(probability=True, max_iter=3, tol=1e-9).fit(X, Y)
    assert len(caught) > 1
    assert np.isfinite(model.predict_proba(X)).all()


def test_scikit_learn_finds_no_fault():
    weights = {f"check_sample_weight_equivalence_on_{kind}_data": "see test_fitting.py" for kind in ("dense", "sparse")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(SVC(probability=True), expected_failed_checks=weights, on_skip=None, on_fail=None)
    assert not [r["check_name"] for r in results if r["status"] == "failed"]
