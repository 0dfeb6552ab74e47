"""Kernels with a learned metric, compared by leave-one-out: predictions are those of fits without each row."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score, get_scorer, log_loss, r2_score

from mercer import RBF, AutoClassifier, AutoRegressor, KernelRidge, KernelRidgeClassifier
from mercer.estimators.features import metric
from mercer.estimators.features.metric import families_for, learn_metric
from mercer.estimators.regression.kernel_ridge import signs
from mercer.estimators.svm.calibration import probabilities, score_maps
from mercer.machine.clock import Clock
from mercer.selection.automatic import learned
from mercer.selection.automatic.calibrated import Calibrated
from mercer.selection.automatic.candidates import Candidate
from mercer.selection.automatic.learned import Cell, LeftOutSearch, Task, learned_stages
from mercer.selection.automatic.search import Search

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1]
WEIGHTS = RNG.uniform(0.5, 2.0, 60)
IRIS, SPECIES = load_iris(return_X_y=True)


def search(classifies=False, scoring="r2", **others):
    model = KernelRidgeClassifier() if classifies else KernelRidge(fit_intercept=True)
    return Search(model, "alpha", np.array([1.0]), scoring, 5, classifies, 0, **others)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_predictions_are_those_of_fits_without_each_row(weights):
    look = LeftOutSearch(search(), Task(X, Y, Y[:, None], weights), np.arange(60))
    look.at([Cell(Candidate(RBF(1.0), "RBF"), 0.3)])
    (trial,) = look.trials
    for i in range(0, 60, 7):
        rest = np.delete(np.arange(60), i)
        model = KernelRidge(0.3, kernel=RBF(1.0), fit_intercept=True, residual=1e-10)
        model.fit(X[rest], Y[rest], None if weights is None else weights[rest])
        assert trial.values[i, 0] == pytest.approx(model.predict(X[i : i + 1])[0], abs=1e-6)
    for score, (_, test) in zip(trial.scores, look.splits, strict=True):
        told = {} if weights is None else {"sample_weight": weights[test]}
        assert score == pytest.approx(r2_score(Y[test], trial.values[test, 0], **told))


def test_classes_are_scored_by_the_largest_of_their_functions():
    task = Task(IRIS, SPECIES, signs(SPECIES, 3))
    look = LeftOutSearch(search(True, "accuracy"), task, np.arange(150))
    look.at([Cell(Candidate(RBF(1.0), "RBF"), 0.1), Cell(Candidate(RBF(1e-3), "narrow"), 0.1)])
    good, bad = look.trials
    for score, (_, test) in zip(good.scores, look.splits, strict=True):
        assert score == accuracy_score(SPECIES[test], good.values[test].argmax(axis=1))
    assert good.mean > 0.9 > bad.mean
    assert look.stage().best() is good


def test_probabilities_of_a_part_are_by_a_map_that_has_not_seen_it():
    scorer = get_scorer("neg_log_loss")
    task = Task(IRIS, SPECIES, signs(SPECIES, 3))
    look = LeftOutSearch(search(True, Calibrated(scorer, "neg_log_loss")), task, np.arange(150))
    look.at([Cell(Candidate(RBF(1.0), "RBF"), 0.1)])
    (trial,) = look.trials
    for score, (_, test) in zip(trial.scores, look.splits, strict=True):
        rest = np.setdiff1d(np.arange(150), test)
        law = probabilities(trial.values[test], score_maps(trial.values[rest], SPECIES[rest], 3), 3)
        assert score == pytest.approx(-log_loss(SPECIES[test], law, labels=[0, 1, 2]))


def test_the_law_of_scores_is_the_best_of_its_kind():
    """Its slope has the least cross-entropy with the classes, whose order it keeps."""
    values = np.random.default_rng(1).normal(size=(4000, 4)) * 0.3
    law = np.exp(12 * values) / np.exp(12 * values).sum(axis=1, keepdims=True)
    codes = (law.cumsum(axis=1) < np.random.default_rng(2).uniform(size=(4000, 1))).sum(axis=1)
    maps = score_maps(values, codes, 4)
    assert maps["slope"][0] == pytest.approx(12, rel=0.1)
    found = probabilities(values, maps, 4)
    assert np.array_equal(found.argmax(axis=1), values.argmax(axis=1))
    least = log_loss(codes, found)
    for slope in (0.8, 1.25):
        assert log_loss(codes, probabilities(values, {"slope": slope * maps["slope"]}, 4)) > least


def test_neighbours_and_means_are_what_they_say():
    found = learn_metric(X, (Y - Y.mean())[:, None], joint=1)
    step = found.near[0]
    first, second = Cell.of(found, step, 0.0), Cell.of(found, replace(step, scale=step.scale + 3), 0.0)
    wide = first.moved(2, -1)
    assert wide.alpha == pytest.approx(first.alpha / np.sqrt(10), rel=1e-3)
    power = 0.25 if step.family.name == "RBF" else 0.5  # of the kernel at half the scale
    np.testing.assert_allclose(wide.candidate.kernel(X), first.candidate.kernel(X) ** power, rtol=1e-6)
    both = first.joined(second)
    mean = 0.5 * (first.candidate.kernel(X) + second.candidate.kernel(X))
    np.testing.assert_allclose(both.candidate.kernel(X), mean, atol=1e-12)
    assert both.joined(second) is None
    assert Cell(Candidate(RBF(), "plain"), 1.0).joined(first) is None
    assert Cell(Candidate(RBF(), "plain"), 1.0).moved(2, -1) is None


def test_rows_that_a_metric_was_learned_from_do_not_judge_it(monkeypatch):
    for module, names in (
        (metric, ("SCREENED_ROWS", "JUDGED_ROWS", "_TUNED_ROWS", "_SINGLE_ROWS")),
        (learned, ("_COMPARED_ROWS", "_REFINED_ROWS", "_COUNTED_ROWS")),
    ):
        for name in names:  # a fifth of the rows, everywhere
            monkeypatch.setattr(module, name, getattr(module, name) // 5)
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(1000, 2))
    y = Z[:, 0] + 0.1 * rng.normal(size=1000)
    rows = np.arange(900)
    (first, second) = learned_stages(search(), Task(Z, y, y[:, None]), rows)
    found = learn_metric(Z[rows], (y[rows] - y[rows].mean())[:, None], joint=1)
    assert len(found.seen) == 400
    for stage in (first, second):
        assert not set(stage.rows) & set(rows[found.seen])
    assert len(second.rows) > len(first.rows) == 400


def test_errors_of_rows_that_a_metric_was_learned_from_count_for_more():
    """Forty weights learned from eighty rows suit these rows; a metric that treats all columns alike knows none."""
    Z = np.random.default_rng(0).normal(size=(80, 40))
    y = Z[:, 0] * Z[:, 1] + Z[:, 2]
    found = learn_metric(Z, (y - y.mean())[:, None], joint=1)
    step = max(found.near, key=lambda step: step.number)
    assert step.number > 0
    assert step.optimism > 1.1 > max(step.optimism for step in found.near if step.number == 0)
    cell, plain = Cell.of(found, step, 0.0), Cell(Candidate(RBF(4.0), "RBF"), 1.0)
    errors = []
    for learned_from in (False, True):
        look = LeftOutSearch(search(), Task(Z, y, y[:, None]), np.arange(80), learned_from)
        look.at([cell, plain])
        errors.append(np.array(look.errors))
    np.testing.assert_allclose(errors[1] / errors[0], [step.optimism, 1.0])
    two = cell.joined(replace(cell, candidate=plain.candidate))
    assert two.optimism == pytest.approx(step.optimism)


def test_a_product_over_columns_becomes_a_sum_over_them():
    found = learn_metric(X, (Y - Y.mean())[:, None], families=families_for(2, ["Laplacian"]), joint=1)
    (step,) = found.near
    cell = Cell.of(found, replace(step, scale=8, alpha=2), 1e-5)
    (wide, _) = (cell.moved(*way) for way in learned._TO_SUMS)
    parts = np.log(cell.candidate.kernel(X)) / 2**6  # of each column, summed
    np.testing.assert_allclose(wide.candidate.kernel(X), 1 + parts, atol=float(parts.min() ** 2))
    assert replace(cell, least=2e-2).moved(*learned._TO_SUMS[0]) is None


def test_a_limit_and_ctrl_c_leave_what_was_seen(monkeypatch):
    stages = learned_stages(search(clock=Clock(1e-9)), Task(X, Y, Y[:, None]), np.arange(60))
    assert [stage.interrupted for stage in stages] == [True]
    assert stages[0].best().values is not None

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("mercer.selection.automatic.learned.learn_metric", interrupted)
    (stage,) = learned_stages(search(), Task(X, Y, Y[:, None]), np.arange(60))
    assert {trial.candidate.family for trial in stage.trials} <= {"Laplacian of ranks", "RBF", "linear"}


def test_scores_that_look_at_rows_get_folds():
    def own(model, Z, y):
        return model.score(Z, y) - 1e-9 * len(Z)

    model = AutoRegressor(scoring=own, cv=2).fit(X, Y)
    assert "fits in" in model.account_.tried
    assert "the fit without it predicts" in AutoRegressor().fit(X, Y).account_.tried


def test_predictions_of_classes_are_those_of_the_model():
    model = AutoClassifier().fit(IRIS, SPECIES)
    assert isinstance(model.estimator_, KernelRidgeClassifier)
    Z = model.encoder_.transform(IRIS)
    assert np.array_equal(model.predict(IRIS), model.estimator_.predict(Z))
    law = model.predict_proba(IRIS)
    np.testing.assert_allclose(law.sum(axis=1), 1.0)
    assert np.array_equal(law.argmax(axis=1), SPECIES[[np.flatnonzero(c == SPECIES)[0] for c in model.predict(IRIS)]])
    assert np.array_equal(np.sort(model.held_out_["rows"]), np.arange(150))
