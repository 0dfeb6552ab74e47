"""Searches by scores of probabilities: what they score, and that no probability knows its class."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, make_scorer, roc_auc_score
from sklearn.model_selection import PredefinedSplit, StratifiedKFold

from cases import each
from mercer import RBF, SVC, AutoClassifier
from mercer.estimators.svm.calibration import cross_calibrated, pair_maps, probabilities
from mercer.selection.automatic.calibrated import known_pairs
from mercer.selection.search.racing import Race

FEW = [RBF(1.0), RBF(3.0), "0.1 * Linear()"]


def noisy(n=300, classes=2, seed=0):
    return make_classification(
        n, 5, n_informative=4, n_redundant=0, n_classes=classes, flip_y=0.2, class_sep=0.8, random_state=seed
    )


def cut(X, y, folds=4):
    return list(StratifiedKFold(folds, shuffle=True, random_state=1).split(X, y))


# -- the laws of a fold --------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("folds", [1, 3])
def test_no_probability_knows_the_class_of_its_point(classes, folds):
    """Other classes at the points of a fold (of a part of it, where there is one only) leave its law as it is."""
    rng = np.random.default_rng(0)
    codes, pairs = np.arange(90) % classes, classes * (classes - 1) // 2
    points = np.array_split(rng.permutation(90), folds)
    values = [rng.normal(size=(len(at), pairs)) + codes[at][:, None] for at in points]
    laws = cross_calibrated(values, points, codes, classes)
    for law, at in zip(laws, points, strict=True):
        assert law.shape == (len(at), classes)
        np.testing.assert_allclose(law.sum(axis=1), 1.0)
    if folds > 1:
        other = codes.copy()
        other[points[0]] = rng.integers(0, classes, len(points[0]))
        changed = cross_calibrated(values, points, other, classes)
        np.testing.assert_array_equal(changed[0], laws[0])
        assert not np.allclose(changed[1], laws[1])
        maps = pair_maps(np.concatenate(values[1:]), codes[np.concatenate(points[1:])], classes)
        np.testing.assert_array_equal(laws[0], probabilities(values[0], maps, classes))


def test_points_that_are_in_two_folds_serve_neither():
    rng = np.random.default_rng(0)
    codes, points = np.arange(60) % 2, [np.arange(0, 40), np.arange(20, 60)]
    values = [rng.normal(size=(40, 1)) + codes[at][:, None] for at in points]
    other = codes.copy()
    other[20:40] = 1 - codes[20:40]
    for law, changed in zip(
        cross_calibrated(values, points, codes, 2), cross_calibrated(values, points, other, 2), strict=True
    ):
        np.testing.assert_array_equal(law, changed)


def test_pairs_of_classes_that_a_model_has_not_seen():
    margins = np.arange(4.0)
    np.testing.assert_array_equal(known_pairs(margins, np.array([0, 1]), np.array([0, 1])), margins[:, None])
    found = known_pairs(margins, np.array(["a", "c"]), np.array(["a", "b", "c"]))
    np.testing.assert_array_equal(found[:, 1], -margins)
    assert np.isnan(found[:, [0, 2]]).all()


# -- the search ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_the_score_is_that_of_probabilities_by_the_other_folds(classes):
    X, y = noisy(classes=classes)
    folds = cut(X, y)
    model = AutoClassifier(kernels=[RBF(2.0)], cv=folds, scoring="neg_log_loss").fit(X, y)
    Z, machine = model.encoder_.transform(X), SVC(C=model.estimator_.C, kernel=RBF(2.0), decision_function_shape="ovo")
    margins = [
        machine.fit(Z[train], y[train]).decision_function(Z[test]).reshape(len(test), -1) for train, test in folds
    ]
    scores = []
    for k, (_, test) in enumerate(folds):
        others = [j for j in range(len(folds)) if j != k]
        maps = pair_maps(
            np.concatenate([margins[j] for j in others]), np.concatenate([y[folds[j][1]] for j in others]), classes
        )
        scores.append(-log_loss(y[test], probabilities(margins[k], maps, classes)))
    assert model.best_score_ == pytest.approx(np.mean(scores), rel=1e-2)
    assert model.scoring_ == "neg_log_loss"
    assert "each kernel matrix" in model.account_.facts["stages"][0]["plan"]


def test_the_score_is_what_the_model_is_worth_on_other_rows():
    found, true = [], []
    for seed in range(5):
        X, y = noisy(900, seed=seed)
        model = AutoClassifier(kernels=FEW, scoring="neg_log_loss").fit(X[:300], y[:300])
        found.append(model.best_score_)
        true.append(-log_loss(y[300:], model.predict_proba(X[300:])))
        plain = LogisticRegression().fit(X[:300], y[:300])
        assert true[-1] > -log_loss(y[300:], plain.predict_proba(X[300:])) - 0.05
    assert np.mean(found) == pytest.approx(np.mean(true), abs=0.025)


def test_chance_is_not_beaten():
    scores = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(100, 3)), rng.permutation(np.arange(100) % 2)
        scores.append(AutoClassifier(kernels=FEW, scoring="neg_log_loss").fit(X, y).honest_score_)
    assert np.mean(scores) < 0.015 - np.log(2)


@each("scoring", ["neg_log_loss", "neg_brier_score", "roc_auc_ovr", "roc_auc_ovo_weighted"])
def test_scores_of_many_classes(scoring):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = AutoClassifier(kernels=FEW, scoring=scoring).fit(X, names)
    assert model.scoring_ == scoring
    assert model.best_score_ > (0.98 if scoring.startswith("roc") else -0.2)
    assert model.score(X, names) > 0.94
    assert np.isfinite(model.results_["mean_test_score"]).all()


def test_scores_of_two_classes_by_name():
    X, y = noisy()
    table, labels = pd.DataFrame(X).rename(columns=str), np.where(y > 0, "rich", "poor")
    brier = make_scorer(brier_score_loss, greater_is_better=False, response_method="predict_proba", pos_label="rich")
    by_name = AutoClassifier(kernels=FEW, scoring=brier, cv=3).fit(table, labels)
    assert by_name.scoring_ == "brier_score_loss"
    by_text = AutoClassifier(kernels=FEW, scoring="neg_brier_score", cv=3).fit(table, labels)
    assert by_name.best_score_ == pytest.approx(by_text.best_score_)
    area = make_scorer(roc_auc_score, response_method="predict_proba")
    margins = AutoClassifier(kernels=[RBF(2.0)], scoring="roc_auc", cv=3).fit(X, y)
    chances = AutoClassifier(kernels=[RBF(2.0)], scoring=area, cv=3).fit(X, y)
    np.testing.assert_allclose(  # a rising map leaves the order as it is
        chances.results_["mean_test_score"], margins.results_["mean_test_score"]
    )


def test_weights_count_in_maps_and_scores():
    X, y = noisy(120)
    weights, folds = np.random.default_rng(0).integers(0, 3, 120), cut(X, y, 3)
    again = np.repeat(np.arange(120), weights)
    cuts = [tuple(np.flatnonzero(np.isin(again, part)) for part in fold) for fold in folds]
    with pytest.MonkeyPatch.context() as patch:
        machine = SVC(decision_function_shape="ovo", tol=1e-10), "C", np.array([0.3, 3.0])
        patch.setattr(AutoClassifier, "_machine", lambda self, rows, ridge: machine)
        weighted, repeated = (
            AutoClassifier(kernels=[RBF(1.0), RBF(3.0)], cv=cv, scoring="neg_log_loss").fit(*given)
            for cv, given in ((folds, (X, y, weights)), (cuts, (X[again], y[again])))
        )
    expected = repeated.results_["mean_test_score"]
    np.testing.assert_allclose(weighted.results_["mean_test_score"], expected, rtol=1e-5)


def test_one_fold_is_calibrated_within():
    X, y = noisy()
    one = PredefinedSplit(np.where(np.arange(300) < 150, -1, 0))
    model = AutoClassifier(kernels=FEW, scoring="neg_log_loss", cv=one).fit(X, y)
    assert -np.log(2) < model.best_score_ < -0.3
    assert len(model.held_out_["rows"]) == 150


def test_a_class_may_be_absent_from_a_fold():
    X, y = load_iris(return_X_y=True)
    y = np.where(np.arange(150) == 0, 7, y)
    for scoring in ("neg_log_loss", "neg_brier_score"):
        model = AutoClassifier(kernels=FEW, cv=3, scoring=scoring).fit(X, y)
        assert np.isfinite(model.results_["mean_test_score"]).all()
        assert model.best_score_ > -0.3


def test_all_folds_of_a_candidate_are_scored_or_none(monkeypatch):
    X, y = load_breast_cancer(return_X_y=True)
    ordinary = Race.rounds

    def interrupted(self):
        for cells in ordinary(self):
            yield cells[: len(cells) // 2 + 2]
            raise KeyboardInterrupt

    limited = AutoClassifier(scoring="neg_log_loss", time_limit=0.05).fit(X, y)
    monkeypatch.setattr(Race, "rounds", interrupted)
    ended = AutoClassifier(kernels=FEW, scoring="neg_log_loss").fit(X, y)
    for model in (limited, ended):
        assert model.interrupted_
        assert set(model.results_["folds"]) <= {0, 5}
        assert np.isfinite(model.best_score_)


def test_a_score_that_fails_is_said():
    def choosy(y, p):
        raise ValueError("not today")

    X, y = noisy(60)
    scorer = make_scorer(choosy, response_method="predict_proba")
    with pytest.warns(UserWarning, match="ValueError: not today"), pytest.raises(ValueError, match="no kernel could"):
        AutoClassifier(kernels=FEW, scoring=scorer).fit(X, y)
