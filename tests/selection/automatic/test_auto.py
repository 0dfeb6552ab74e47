"""auto, AutoClassifier, AutoRegressor and kernel="auto": what they find, what they say, and what they survive."""

import ast
import pickle
import re
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.metrics import f1_score, log_loss, make_scorer
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_predict

from cases import each
from checks import assert_no_fault
from mercer import (
    RBF,
    SVC,
    SVR,
    AutoClassifier,
    AutoRegressor,
    GappedKmers,
    KernelRidge,
    KernelRidgeCV,
    KernelSearchCV,
    Laplacian,
    Linear,
    NuSVC,
    OneClassSVM,
    auto,
    load,
    save,
)
from mercer.points.sets import sequences
from mercer.selection.automatic import search as auto_search
from mercer.selection.automatic.account import Stage, Trial
from mercer.selection.automatic.candidates import (
    HEAVY,
    LIGHT,
    Candidate,
    given_kernels,
    kernel_list,
    look_at,
    mixed_list,
)
from mercer.selection.automatic.search import folds, sample, tabulated
from mercer.selection.search.racing import Race
from strings_table import notes

FEW = [RBF(1.0), RBF(3.0), "0.1 * Linear()"]


def people(n=300, seed=0):
    """A table of numbers and categories, with missing cells; the target depends on a product of both."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.uniform(20, 70, n),
            "job": rng.choice(["smith", "baker", "clerk"], n),
            "gain": np.exp(rng.normal(3, 2, n)),
            "country": "NL",
        }
    )
    sign = np.where(table["job"] == "smith", 1.0, -1.0)
    score = sign * (table["age"] - 45) / 10 + rng.normal(0, 0.5, n)
    table.loc[rng.uniform(size=n) < 0.1, "gain"] = np.nan
    return table, np.where(score > 0, "rich", "poor"), score.to_numpy()


@pytest.fixture(scope="module")
def classifier():
    table, labels, _ = people()
    return AutoClassifier(cv=3).fit(table, labels)


@pytest.fixture(scope="module")
def regressor():
    table, _, score = people()
    return AutoRegressor(kernels=[RBF, Laplacian, "0.3 * Linear()"], cv=3).fit(table, score)


# -- scikit-learn's contract ------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [AutoClassifier(kernels=[RBF(2.0)], cv=2), AutoRegressor(kernels=[RBF(2.0)], cv=2)])
def test_scikit_learn_finds_no_fault(model):
    assert_no_fault(model)


def test_what_a_user_finds_in_a_classifier(classifier):
    table, labels, _ = people()
    other, truth, _ = people(seed=1)
    assert classifier.score(other, truth) > 0.85
    assert classifier.classes_.tolist() == ["poor", "rich"]
    assert classifier.feature_names_in_.tolist() == list(table.columns)
    assert classifier.n_features_in_ == 4
    assert classifier.kernel_.proof().status == "proven"
    assert classifier.certificate_.converged
    assert classifier.certificate_.verify(table, labels).converged
    assert classifier.function_(classifier.encoder_.transform(table)).shape == (300,)
    assert isinstance(classifier.plan_, str)
    assert set(classifier.timings_) == {"encode", "search", "calibrate", "refit"}
    assert classifier.scoring_ == "accuracy"
    assert not classifier.interrupted_


def test_what_the_metric_has_learned_is_told_by_column(classifier):
    encoder, shares = classifier.encoder_, classifier.feature_importances_
    assert len(shares) == len(encoder.get_feature_names_out()) == len(classifier.metric_)
    assert shares.sum() == pytest.approx(1.0) == np.trace(classifier.metric_)
    columns = classifier.column_importances_
    assert set(columns) == {"age", "job", "gain"}
    assert list(columns.values()) == sorted(columns.values(), reverse=True)
    assert columns["job"] == pytest.approx(shares[encoder.places("category")].sum())
    assert list(columns)[-1] == "gain"  # which has no part in the target
    (share, parts), *_ = classifier.directions()
    assert 0 < share <= 1
    assert set(parts) <= set(encoder.get_feature_names_out())


def test_two_columns_of_ten_come_first_in_whatever_order_and_units():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 10)), columns=list("abcdefghij"))
    y = np.sin(2 * X["d"]) + X["g"] ** 2
    plain = AutoRegressor().fit(X, y).column_importances_
    assert set(list(plain)[:2]) == {"d", "g"}
    moved = X[list("jihgfedcba")] * 10.0 ** np.arange(10)
    other = AutoRegressor().fit(moved, y).column_importances_
    assert set(list(other)[:2]) == {"d", "g"}
    assert [other[name] for name in plain] == pytest.approx(list(plain.values()), abs=1e-6)


def test_a_kernel_that_treats_all_columns_alike_has_no_metric():
    table, _, score = people(60)
    model = AutoRegressor(kernels=[RBF(2.0)], cv=2).fit(table, score)
    assert model.metric_ is model.feature_importances_ is model.column_importances_ is None
    assert model.directions() == []


def test_the_results_are_columns_of_one_length_and_name_the_winner(classifier, regressor):
    for model, price in ((classifier, "alpha"), (regressor, "alpha")):
        results = pd.DataFrame(model.results_)
        assert {"kernel", "family", "scale", price, "mean_test_score", "std_test_score", "folds"} <= set(results)
        best = results.loc[model.best_index_]
        assert best["kernel"] == repr(model.kernel_)
        assert best[price] == getattr(model.estimator_, price)
        assert best["mean_test_score"] == model.best_score_
        # Of few rows of classes the least squared error decides, since wrong answers are too few to be counted.
        assert model.best_score_ >= results["mean_test_score"].max() - (0 if price == "C" else model.score_error_)
        assert model.score_error_ == pytest.approx(best["std_test_score"] / np.sqrt(best["folds"] - 1))
        assert model.honest_score_ <= model.best_score_


def test_scores_are_those_of_cross_validation(regressor):
    """The winner's score is that of the same folds by scikit-learn, and what is held out are its predictions."""
    table, _, score = people()
    encoded = regressor.encoder_.transform(table)
    seed = int(np.random.RandomState(0).randint(2**31))
    cut = KFold(3, shuffle=True, random_state=seed)
    theirs = cross_val_predict(clone(regressor.estimator_), encoded, score, cv=cut)
    np.testing.assert_allclose(regressor.held_out_["values"], theirs, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(regressor.held_out_["rows"], np.arange(300))
    parts = [1 - np.var(score[b] - theirs[b]) / np.var(score[b]) for _, b in cut.split(encoded)]
    assert regressor.best_score_ == pytest.approx(np.mean(parts), abs=5e-3)


NUMBERS = np.arange(40) % 2
LABELS = {
    "texts that read as numbers": np.array(["07", "1.0"])[NUMBERS],
    "texts with blanks": [[" a", "b "][i] for i in NUMBERS],
    "truths as texts": np.array(["true", "FALSE"])[NUMBERS],
    "texts as objects": np.array(["3", "4"], dtype=object)[NUMBERS],
    "booleans": NUMBERS > 0,
    "small integers": NUMBERS.astype(np.int8),
    "large integers": np.array([2**53 + 2, 2**53 + 4])[NUMBERS],
    "floats": NUMBERS.astype(np.float32),
    "nullable integers": pd.Series(NUMBERS, dtype="Int16"),
    "nullable booleans": pd.Series(NUMBERS > 0, dtype="boolean"),
    "categories of texts": pd.Series(["8", "9"] * 20, dtype="category"),
    "categories of integers": pd.Categorical(NUMBERS),
}


@each("kind", LABELS)
@each(
    "fit",
    [
        lambda X, y: auto(X, y, kernels=FEW[:1], cv=2),
        lambda X, y: AutoClassifier(kernels=FEW[:1], cv=2).fit(X, y),
        lambda X, y: KernelSearchCV(SVC(), FEW[:1], {"C": [1.0]}, cv=2).fit(X, y),
        lambda X, y: SVC(kernel="auto").fit(X, y),
    ],
    ids=["auto", "AutoClassifier", "KernelSearchCV", "kernel=auto"],
)
def test_labels_come_back_as_they_were_given(kind, fit):
    y = LABELS[kind]
    X = np.c_[4.0 * NUMBERS, np.arange(40) / 40]
    model = fit(X, y)
    found = model.predict(X)
    given = list(y)
    assert found.tolist() == given
    assert model.classes_.tolist() == sorted(set(given))
    assert {type(label) for label in found.tolist()} == {getattr(v, "item", lambda v=v: v)().__class__ for v in given}
    if isinstance(y, np.ndarray):
        assert found.dtype == y.dtype
    assert model.score(X, y) == 1.0


def test_labels_with_gaps():
    X = np.c_[4.0 * NUMBERS, np.arange(40) / 40]
    given = (NUMBERS + 1).tolist()
    found = auto(X, [None, *given[1:-1], None], kernels=FEW[:1], cv=2).predict(X)
    assert found.tolist() == given
    assert found.dtype.kind == "i"


def test_objects_that_are_integers_are_integers_and_labels_of_two_types_are_refused():
    X = np.c_[4.0 * NUMBERS]
    assert auto(X, NUMBERS.astype(object), kernels=FEW[:1], cv=2).predict(X).tolist() == NUMBERS.tolist()
    with pytest.raises(ValueError, match=r"must be of one type, texts or numbers, .*; y holds 1 and 'b'"):
        auto(X, np.array([1, "b"], dtype=object)[NUMBERS])


@pytest.mark.parametrize("column", [lambda y: y[:, None], lambda y: pd.DataFrame({"y": y})], ids=["array", "table"])
@pytest.mark.parametrize("task", ["classify", "regress"])
def test_targets_in_a_column(column, task):
    X = np.c_[4.0 * NUMBERS, np.arange(40) / 40]
    flat = auto(X, NUMBERS, task=task, kernels=FEW[:1], cv=2)
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        model = auto(X, column(NUMBERS), task=task, kernels=FEW[:1], cv=2)
    assert model.best_score_ == flat.best_score_
    np.testing.assert_array_equal(model.predict(X), flat.predict(X))


def test_clone_and_pickle(classifier, regressor):
    table, _, _ = people(seed=1)
    for model in (classifier, regressor):
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict(table), model.predict(table))
        assert str(again.account_) == str(model.account_)
        assert not hasattr(clone(model), "estimator_")


# -- the function auto ------------------------------------------------------------------------------------


def test_auto_tells_the_task_by_the_target():
    table, labels, score = people(80)
    assert isinstance(auto(table, labels, kernels=FEW, cv=3), AutoClassifier)
    assert isinstance(auto(table, score, kernels=FEW, cv=3), AutoRegressor)
    assert isinstance(auto(table, (score > 0).astype(int), kernels=FEW, cv=3, task="regress"), AutoRegressor)


def test_auto_takes_the_name_of_a_column_and_leaves_rows_without_target():
    table, labels, _ = people(80)
    whole = table.assign(wealth=labels)
    whole.loc[:4, "wealth"] = None
    model = auto(whole, "wealth", kernels=FEW, cv=3)
    assert model.feature_names_in_.tolist() == list(table.columns)
    assert model.estimator_.shape_fit_[0] == 75
    with pytest.raises(ValueError, match="the table has no column 'welth'; it has 'age', 'job'"):
        auto(whole, "welth")


def test_the_default_list_does_as_well_as_tuned_machines():
    X, y = load_breast_cancer(return_X_y=True)
    model = auto(X, y)
    assert model.best_score_ > 0.97
    assert any(family.startswith("learned ") for family in model.results_["family"])


# -- the account ------------------------------------------------------------------------------------------


def test_the_account_says_what_was_done(classifier):
    text, facts = str(classifier.account_), classifier.account_.to_dict()["facts"]
    assert len(text.split("\n\n")) == 5
    for said in (
        "300 rows",
        "Dropped: country",
        "2 classes",
        "along which a first function changes",
        "converged",
        repr(classifier.kernel_)[:30],
    ):
        assert said in text
    assert f"{classifier.best_score_:.4g} ± {classifier.score_error_:.2g}" in text
    assert facts["score"] == classifier.best_score_
    assert facts["families"][0]["family"] == facts["family"]
    assert all(isinstance(value, str | float | int | list | bool | type(None)) for value in facts.values())


def test_the_honest_score_chooses_as_the_search_does():
    """By least losses on the other folds where there are losses, and not by the scores."""
    scores, losses = np.array([[0.9, 0.8, 0.7], [0.6, 0.5, 0.7]]), np.array([[3.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    for known, expected in ((losses, 0.6), ([None, None], 0.8)):
        trials = [
            Trial(Candidate(kernel, "family"), 1.0, s, 0.1, 9, None, least)
            for kernel, s, least in zip((RBF(1.0), RBF(2.0)), scores, known, strict=True)
        ]
        stage = Stage(np.arange(9), [], trials, np.ones(1), 0.1, False, "")
        assert stage.honest_score() == pytest.approx(expected)


def test_the_honest_score_of_noise_is_not_above_chance():
    """With many candidates and no signal the best score is optimistic; choosing by other folds is not."""
    rng = np.random.default_rng(0)
    best, honest = [], []
    for _ in range(4):
        X, y = rng.normal(size=(60, 5)), rng.permutation(np.repeat([0, 1], 30))
        model = AutoClassifier(kernels=RBF).fit(X, y)
        best.append(model.best_score_)
        honest.append(model.honest_score_)
    assert np.mean(honest) < np.mean(best) - 0.03
    assert abs(np.mean(honest) - 0.5) < 0.12


def test_a_refit_that_warns_is_in_the_account(monkeypatch):
    table, labels, _ = people(60)
    ordinary = SVC.fit

    def fit(self, X, y, sample_weight=None):
        if len(y) == 60:
            warnings.warn("the sky is falling.", ConvergenceWarning)
        return ordinary(self, X, y, sample_weight)

    monkeypatch.setattr(SVC, "fit", fit)
    with pytest.warns(ConvergenceWarning, match="the sky is falling"):
        model = AutoClassifier(kernels=FEW, cv=3).fit(table, labels)
    assert "The fit warned: the sky is falling." in str(model.account_)


# -- probabilities and quantiles --------------------------------------------------------------------------


def test_probabilities_agree_with_predictions_and_are_calibrated():
    X, y = make_classification(1500, 6, n_informative=4, flip_y=0.2, weights=[0.8], random_state=0)
    model = AutoClassifier(kernels=[RBF(3.0)], cv=3).fit(X[:800], y[:800])
    p = model.predict_proba(X[800:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X[800:]), p.argmax(axis=1))
    np.testing.assert_array_equal(model.decision_function(X[800:]) > 0, p[:, 1] > 0.5)
    share = np.full(len(p), y[:800].mean())
    assert log_loss(y[800:], p) < log_loss(y[800:], share) - 0.1
    assert abs(p[:, 1].mean() - y[800:].mean()) < 0.05


def test_probabilities_of_many_classes():
    X, y = load_digits(return_X_y=True)
    model = AutoClassifier(kernels=[RBF(8.0)], cv=3).fit(X[:700], y[:700])
    p = model.predict_proba(X[700:])
    assert p.shape == (len(X) - 700, 10)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X[700:]), model.decision_function(X[700:]).argmax(axis=1))
    assert model.score(X[700:], y[700:]) > 0.93
    assert log_loss(y[700:], p) < 0.35
    assert model.held_out_["values"].shape == (700, 10)


def test_quantiles_hold_on_rows_that_were_not_seen():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, (900, 1))
    y = np.sin(X[:, 0]) + 0.3 * rng.standard_t(3, 900)
    model = AutoRegressor(kernels=[RBF(1.0)]).fit(X[:300], y[:300])
    found = model.predict_quantiles(X[300:], [0.1, 0.5, 0.9])
    assert (np.diff(found, axis=1) > 0).all()
    np.testing.assert_allclose((y[300:, None] <= found).mean(axis=0), [0.1, 0.5, 0.9], atol=0.05)
    with pytest.raises(ValueError, match="must be numbers between 0 and 1"):
        model.predict_quantiles(X, [0.5, 1.0])


def test_long_tails_are_learned_as_logarithms_where_that_is_better():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 2))
    y = np.exp(3 * X[:, 0] + X[:, 1] + 0.05 * rng.normal(size=200))
    model = AutoRegressor(kernels=FEW, cv=3).fit(X, y)
    assert model.target_scale_ == "log"
    assert "logarithms are learned" in str(model.account_)
    assert model.scoring_ == "r2"
    assert model.score(X, y) > 0.95
    assert model.certificate_.verify(X, y).converged
    assert (model.predict_quantiles(X[:5]) > 0).all()
    far = model.predict(100 * np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]]))  # exp of a line would be huge there
    assert ((far >= 0.999 * y.min()) & (far <= 1.001 * y.max())).all()
    assert AutoRegressor(kernels=FEW, cv=3).fit(X, X[:, 0] + 2).target_scale_ == "identity"


# -- rows, folds, limits ----------------------------------------------------------------------------------


def test_many_rows_are_searched_in_several_looks_and_all_are_fitted(monkeypatch):
    monkeypatch.setattr(auto_search, "FIRST_ROWS", 150)
    table, labels, _ = people(900)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)  # of one's own: no metric is learned
    model = AutoClassifier(cv=folds, search_rows=300).fit(table, labels)
    assert [stage["rows"] for stage in model.account_.facts["stages"]] == [150, 300, 900]
    assert model.estimator_.shape_fit_[0] == 900
    assert len(model.held_out_["rows"]) == 900
    results = pd.DataFrame(model.results_)
    assert set(results["rows"]) == {150, 300, 900}
    early, late = (set(results["family"][results["rows"] == rows]) for rows in (150, 300))
    assert not early & late
    assert results.loc[model.best_index_, "rows"] == 900
    assert "Left there: " in str(model.account_)


def test_samples_keep_rare_classes():
    y = np.repeat([0, 1, 2], [5000, 300, 4])
    rows = sample(y, 500, True, 0)
    assert len(rows) <= 520
    assert np.bincount(y[rows]).tolist()[1:] == [28, 4]
    assert (np.diff(rows) > 0).all()
    assert len(sample(np.arange(50.0), 20, False, 0)) == 20


def test_folds_are_fewer_where_rows_are():
    X = np.zeros((10, 1))
    assert len(folds(5, X, np.arange(10.0), False, 0)) == 2
    assert len(folds(5, X, np.repeat([0, 1], [7, 3]), True, 0)) == 3
    assert len(folds(StratifiedKFold(4), X, np.repeat([0, 1], 5), True, 0)) == 4


def test_a_long_search_leaves_time_for_the_last_fit():
    X, y = load_breast_cancer(return_X_y=True)
    model = AutoClassifier(time_limit=0.02).fit(X, y)  # less than one fold takes
    assert model.estimator_.time_limit >= 0.25 * 0.02
    assert np.isfinite(model.decision_function(X)).all()


def test_a_time_limit_ends_the_search():
    X, y = make_classification(1500, 20, n_informative=10, flip_y=0.3, random_state=0)
    model = AutoClassifier(time_limit=0.05).fit(X, y)  # less than the first look takes
    assert model.interrupted_
    assert "ended before its end" in str(model.account_)
    assert model.predict(X).shape == (1500,)


def test_ctrl_c_while_the_scale_of_targets_is_looked_for_ends_all_of_the_search(monkeypatch):
    X = np.random.default_rng(0).normal(size=(200, 2))
    looks, ordinary, rounds = [], auto_search.Search.look, Race.rounds

    def counted(self, *args, **kwargs):
        looks.append(self)
        return ordinary(self, *args, **kwargs)

    def interrupted(self):
        for cells in rounds(self):
            yield cells
            raise KeyboardInterrupt

    monkeypatch.setattr(auto_search.Search, "look", counted)
    monkeypatch.setattr(Race, "rounds", interrupted)
    model = AutoRegressor(kernels=FEW, cv=3).fit(X, np.exp(3 * X[:, 0]))
    assert model.interrupted_
    assert len(looks) == 1


def test_a_budget_that_does_not_do_is_refused_before_the_search():
    table, labels, _ = people(100)
    with pytest.raises(
        MemoryError, match=r"a search on 100 samples would need .*, more than the budget of 1000 B; raise"
    ):
        AutoClassifier(budget=1000).fit(table, labels)


def test_ctrl_c_keeps_the_best_so_far(monkeypatch):
    table, labels, _ = people(100)
    rounds, ordinary = [], Race.rounds

    def interrupted(self):
        for cells in ordinary(self):
            yield cells[: len(cells) // 2]
            rounds.append(len(cells))
            raise KeyboardInterrupt

    monkeypatch.setattr(Race, "rounds", interrupted)
    model = AutoClassifier(kernels=FEW, cv=3).fit(table, labels)
    assert rounds
    assert model.interrupted_
    assert model.score(table, labels) > 0.5


def test_the_same_seed_gives_the_same_model():
    table, labels, _ = people(80)
    one, two = (AutoClassifier(kernels=[RBF], cv=3, random_state=3).fit(table, labels) for _ in range(2))
    assert one.kernel_ == two.kernel_
    np.testing.assert_array_equal(one.predict_proba(table), two.predict_proba(table))


# -- difficult data ---------------------------------------------------------------------------------------


def test_ten_rows():
    X = np.linspace(0, 1, 10)[:, None]
    assert auto(X, np.repeat(["a", "b"], 5)).predict([[0.0], [1.0]]).tolist() == ["a", "b"]
    assert np.isfinite(auto(X, 2 * X[:, 0] + 0.5, task="regress").predict(X)).all()


def test_huge_and_tiny_scales_change_nothing():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:150], y[:150]
    factors = np.logspace(-100, 100, X.shape[1])
    plain = AutoRegressor(kernels=FEW, cv=3).fit(X, y)
    other = AutoRegressor(kernels=FEW, cv=3).fit(X * factors, 1e9 * y)
    assert plain.kernel_ == other.kernel_
    np.testing.assert_allclose(other.predict(X * factors), 1e9 * plain.predict(X), rtol=1e-5)


def test_imbalanced_classes():
    X, y = make_classification(600, 5, n_informative=3, n_redundant=0, weights=[0.97], class_sep=2.0, random_state=0)
    model = AutoClassifier(kernels=[RBF(2.0)], scoring="balanced_accuracy").fit(X, y)
    assert model.scoring_ == "balanced_accuracy"
    assert abs(model.predict_proba(X)[:, 1].mean() - y.mean()) < 0.02
    with pytest.raises(ValueError, match="class True has one row only"):
        AutoClassifier(kernels=FEW).fit(X[:30], np.arange(30) == 29)


def test_a_class_may_be_absent_from_a_fold():
    X, y = load_iris(return_X_y=True)
    y = np.where(np.arange(150) == 0, 7, y)
    model = AutoClassifier(kernels=FEW, cv=3).fit(X, y)
    assert model.predict_proba(X).shape == (150, 4)
    assert model.score(X, y) > 0.9


def test_copies_are_counted():
    table, labels, _ = people(100)
    twice = pd.concat([table, table], ignore_index=True)
    model = AutoClassifier(kernels=FEW, cv=3).fit(twice, np.tile(labels, 2))
    assert "100 rows repeat an earlier one" in str(model.account_)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"cv": 1}, "cv=1 of AutoClassifier must be a number of folds >= 2"),
        ({"search_rows": 3}, "search_rows=3 of AutoClassifier must be a whole number of rows >= 20"),
        ({"time_limit": 0}, "time_limit=0 of AutoClassifier must be a number of seconds > 0"),
        ({"kernels": []}, "kernels is empty"),
        ({"kernels": [Linear]}, "the class Linear, which has no scale"),
        ({"kernels": ["RBF(1) +"]}, "expected"),
        ({"kernels": [3.0]}, "kernels contains 3.0"),
        ({"scoring": 7}, "scoring=7 of AutoClassifier must be the name of a score"),
    ],
)
def test_wrong_parameters_are_named(options, what):
    X, y = load_iris(return_X_y=True)
    with pytest.raises((ValueError, TypeError), match=what):
        AutoClassifier(**options).fit(X, y)


def test_a_scorer_may_know_labels_by_name():
    table, labels, _ = people(100)
    named = make_scorer(f1_score, pos_label="rich")
    model = AutoClassifier(kernels=FEW, cv=3, scoring=named).fit(table, labels)
    assert model.scoring_ == "f1_score"
    assert model.best_score_ > 0.7


# -- the list of kernels ----------------------------------------------------------------------------------


def test_every_kernel_of_the_list_is_proven_and_fits_the_data():
    table, _, _ = people()
    encoder = AutoRegressor().fit(table[:60], np.arange(60.0)).encoder_
    Z = encoder.transform(table)
    look = look_at(Z, encoder.places("category", "yes/no"), encoded=True)
    found = kernel_list(look, Z)
    families = {candidate.family for candidate in found}
    assert {"linear", "polynomial", "RBF", "Matern", "Laplacian", "RBF + linear"} < families
    assert {HEAVY, LIGHT} < families
    apart = next(candidate for candidate in found if candidate.family == HEAVY)
    product = RBF(apart.scale).on(list(look.numbers)) * RBF(apart.scale / 2).on(list(look.categories))
    np.testing.assert_allclose(apart.kernel(Z[:50]), product(Z[:50]), atol=0.01)  # scales have three digits
    for candidate in found:
        assert candidate.kernel.proof().status == "proven"
        values = candidate.kernel(Z[:50])
        assert np.isfinite(values).all()
        if candidate.make is not None:
            assert candidate.make(candidate.scale) == candidate.kernel


def test_columns_of_unequal_deviation_are_measured_in_their_own():
    X = np.random.default_rng(0).normal(size=(60, 3)) * [1.0, 1000.0, 0.0]
    look = look_at(X)
    assert look.units is not None
    assert look.units[2] == 1.0
    assert all(len(c.kernel.scale) == 3 for c in kernel_list(look, X) if c.family == "RBF")
    assert look_at(X * [1.0, 1e-3, 1.0]).units is None


def test_given_kernels_may_be_texts_and_classes():
    X = np.random.default_rng(0).normal(size=(50, 2))
    found = given_kernels(["RBF(2) + Linear()", RBF, Laplacian(1.0), Laplacian(1.0)], X)
    assert found[0].kernel == RBF(2) + Linear()
    assert sum(c.family == "RBF" for c in found) == 8
    assert [c.family for c in found].count("Laplacian") == 1


# -- kernel="auto" ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [SVC(C=3.0), NuSVC(nu=0.2), SVR(C=2.0), KernelRidge(alpha=0.1)], ids=repr)
def test_kernel_auto_keeps_the_other_parameters(model):
    X, y = load_iris(return_X_y=True)
    X = X * [1.0, 100.0, 1.0, 1.0]
    model.set_params(kernel="auto")
    fitted = clone(model).fit(X, y)
    assert fitted.kernel == "auto"
    assert fitted.kernel_.proof().status == "proven"
    assert fitted.score(X, y) > 0.9
    assert repr(fitted.kernel_) == fitted.account_.facts["kernel"]
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert fitted.certificate_.verify(X, y).converged
    fitted.set_params(kernel="rbf").fit(X, y)
    assert not hasattr(fitted, "account_")


def test_kernel_auto_inside_searches():
    X, y = load_iris(return_X_y=True)
    X, y = X[::3], y[::3]
    theirs = GridSearchCV(SVC(kernel="auto"), {"C": [0.1, 3.0]}, cv=2).fit(X, y)
    ours = KernelSearchCV(SVC(kernel="auto"), None, {"C": [0.1, 3.0]}, cv=2).fit(X, y)
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=1e-12)
    ridge = KernelSearchCV(KernelRidge(kernel="auto"), None, {"alpha": [0.1, 1.0]}, cv=2).fit(X, y)
    assert "account_" in vars(ridge.best_estimator_)


def test_kernel_auto_takes_sparse_matrices_and_weights():
    rng = np.random.default_rng(0)
    X = sparse.random_array((120, 40), density=0.05, rng=rng, format="csr")
    y = np.asarray(X[:, :20].sum(axis=1)).ravel() > np.asarray(X[:, 20:].sum(axis=1)).ravel()
    weights = np.where(np.arange(120) < 100, 1.0, 0.0)
    model = SVC(kernel="auto").fit(X, y, sample_weight=weights)
    assert "cosine" in str(model.account_)
    assert model.support_.max() < 100


def test_models_without_a_search_refuse_auto():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="kernel='auto' of OneClassSVM must be a kernel object"):
        OneClassSVM(kernel="auto").fit(X)
    with pytest.raises(ValueError, match="kernel='auto' of KernelRidgeCV must be a kernel object"):
        KernelRidgeCV(kernel="auto").fit(X, y)


def test_two_looks_for_kernel_auto(monkeypatch):
    monkeypatch.setattr(auto_search, "FIRST_ROWS", 60)
    X, y = load_iris(return_X_y=True)
    model = SVC(kernel="auto").fit(X, y)
    assert [stage["rows"] for stage in model.account_.facts["stages"]] == [60, 150]


# -- texts and sequences ----------------------------------------------------------------------------------


def test_words_decide_where_they_tell_the_classes_apart(tmp_path):
    table, labels, _ = notes()
    model = AutoClassifier().fit(table[["age", "note", "user"]], labels)
    assert model.score(table, labels) > 0.97
    assert "TextNGrams" in repr(model.kernel_)
    assert model.kernel_.proof().proven
    assert "rows of 1 number and 1 string" in str(model.account_)
    assert model.certificate_.verify(table, labels).converged
    save(model, tmp_path / "notes.mercer")
    again = load(tmp_path / "notes.mercer")
    np.testing.assert_array_equal(again.predict_proba(table), model.predict_proba(table))
    new = pd.DataFrame({"age": [30.0, np.nan], "note": ["unheard words with margin", None], "user": ["x", "y"]})
    assert model.predict(new)[0] == "keep"


def test_a_motif_and_a_number_are_learned_together():
    table, _, target = notes(240)
    model = AutoRegressor().fit(table[["age", "gene"]], target)
    assert "RBF" in repr(model.kernel_)
    assert "GappedKmers" in repr(model.kernel_)
    test, _, truth = notes(100, seed=1)
    assert model.score(test, truth) > 0.6
    alone = AutoRegressor().fit(table[["age"]], target)
    assert model.score(test, truth) > alone.score(test, truth) + 0.2


def test_strings_alone_are_enough():
    table, labels, _ = notes()
    model = AutoClassifier().fit(table[["note", "gene"]], labels)
    assert model.score(table, labels) > 0.97
    assert "rows of 2 strings" in str(model.account_)


def test_given_kernels_compare_numbers():
    table, labels, _ = notes()
    model = AutoClassifier(kernels=[RBF(1.0)]).fit(table, labels)
    assert [column.name for column in model.encoder_.treatment_ if column.made] == ["age"]


def test_long_sequences_are_compared_by_their_kmers():
    rng = np.random.default_rng(0)
    Z = np.array([["".join(rng.choice(list("ACGT"), 4000))] for _ in range(200)], dtype=object)
    families = [c.family for c in mixed_list(look_at(Z, strings=[(0, "sequence")]), Z)]
    assert families == ["runs of letters at a place", "4-mers", "6-mers", "8-mers"]
    Z[0, 0] += "A"
    assert [c.family for c in mixed_list(look_at(Z, strings=[(0, "sequence")]), Z)] == families[1:]


def test_several_texts_and_sequences_make_no_longer_list():
    table, _, _ = notes(60)
    Z = table[["note", "gene", "note", "gene"]].to_numpy(dtype=object)
    one = mixed_list(look_at(Z[:, :2], strings=[(0, "text"), (1, "sequence")]), Z[:, :2])
    four = mixed_list(look_at(Z, strings=[(0, "text"), (1, "sequence"), (2, "text"), (3, "sequence")]), Z)
    assert [c.family for c in four] == [c.family for c in one]
    texts = {family.split(", ")[0] for family in (c.family for c in one)}
    bases = {family.split(", ")[1] for family in (c.family for c in one)}
    assert len(one) == len(texts) * len(bases)  # each way to compare texts with each for sequences
    assert len(texts) == len(bases) == 3
    for candidate in four:  # every column has its kernel, with the same weight
        np.testing.assert_allclose(candidate.kernel.diag(Z), 1.0)
        assert all(f".on([{i}])" in repr(candidate.kernel) for i in range(4))
    numbers = np.column_stack([table["age"], Z[:, :2]])
    all_three = mixed_list(look_at(numbers, strings=[(1, "text"), (2, "sequence")]), numbers)
    assert len(all_three) < 60


def test_columns_are_named_where_people_read():
    table, labels, _ = notes(120)
    table = table[["age", "note", "gene"]].rename(columns={"note": "the customer's note", "gene": "Gen (ü)"})
    table["job"] = np.resize(["smith", "baker", "clerk"], 120)
    model = AutoClassifier(cv=3).fit(table, labels)
    text, facts = str(model.account_), model.account_.to_dict()["facts"]
    assert "Each of the first 9, of the strings, is also tried with RBF of the numbers at the scale" in text
    assert "Compared as strings: the customer's note (text), Gen (ü) (sequence)." in text
    shown = repr(model.named_kernel_)
    assert facts["kernel"] == shown == model.results_["kernel"][model.best_index_]
    assert "the customer's note" in shown
    known = {"the customer's note", "Gen (ü)", "age", "job"}
    for kernel in [*model.results_["kernel"], *(family["kernel"] for family in facts["families"])]:
        for listed in re.findall(r"\.on\((.*?\])\)", kernel):
            assert set(ast.literal_eval(listed)) <= known, kernel


def test_strings_are_compared_once_for_all_kernels_and_folds(monkeypatch):
    table, _, _ = notes(90)
    compared = []
    real = sequences.WindowSums.__call__

    def counted(rule, left, right):
        compared.append((rule, len(left) * len(right)))
        return real(rule, left, right)

    monkeypatch.setattr(sequences.WindowSums, "__call__", counted)
    model = AutoClassifier(cv=3).fit(table[["age", "gene"]], table["gene"].str.contains("TATAATGC"))
    assert "GappedKmers" in repr(model.kernel_)
    pairs = Counter()
    for rule, size in compared:
        pairs[rule] += size
    assert len(pairs) == 3  # one rule for each number of gaps
    refit = 90 * 90 + 4 * 90  # the winner's matrix once more, its diagonal, and room for the bookkeeping of blocks
    assert max(pairs.values()) <= 90 * 90 + refit + 2 * 90
    assert min(pairs.values()) <= 90 * 90 + 2 * 90


def test_known_values_change_nothing():
    table, labels, target = notes(60)
    for kind, y in ((AutoClassifier, labels), (AutoRegressor, target)):
        shared = kind(cv=3).fit(table, y)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(auto_search, "tabulated", lambda X, kernels, strings, budget: (X, kernels))
            apart = kind(cv=3).fit(table, y)
        assert shared.kernel_ == apart.kernel_
        np.testing.assert_allclose(shared.results_["mean_test_score"], apart.results_["mean_test_score"], atol=1e-6)
        np.testing.assert_allclose(shared.held_out_["values"], apart.held_out_["values"], rtol=1e-2, atol=1e-2)


def test_known_values_within_the_budget_only():
    table, _, _ = notes(60)
    Z = table[["age", "gene"]].to_numpy(dtype=object)
    k = RBF(1.0).on([0]) + GappedKmers().on([1])
    rows, (same,) = tabulated(Z, [k], [1], None)
    np.testing.assert_array_equal(same(rows), k(Z))
    np.testing.assert_array_equal(same(rows[:9], rows[9:]), k(Z[:9], Z[9:]))
    assert same.proof().status == k.proof().status
    assert tabulated(Z, [k], [1], 8 * 60**2 * 4 - 1)[0] is Z


def test_ordered_categories_are_learned_by_their_order():
    rng = np.random.default_rng(0)
    levels = [f"level {i}" for i in range(12)]
    rank = rng.integers(0, 12, 200)
    y = np.where(rank + rng.normal(0, 0.3, 200) > 5.5, "dear", "cheap")
    names = np.array(levels, dtype=object)[rank]
    table = pd.DataFrame({"grade": pd.Categorical(names, levels, ordered=True)})
    model = AutoClassifier(cv=3).fit(table, y)
    assert "ordered categories 1" in str(model.account_)
    assert model.score(table, y) > 0.9
    unseen = ~np.isin(rank, [0, 11])  # of levels that no row to learn from has, the order still tells
    part = AutoClassifier(cv=3).fit(table[unseen], y[unseen])
    assert part.predict(pd.DataFrame({"grade": ["level 0", "level 11"]})).tolist() == ["cheap", "dear"]
    enum = pl.DataFrame({"grade": pl.Series(names, dtype=pl.Enum(levels))})
    np.testing.assert_array_equal(model.predict(enum), model.predict(table))
