"""Scores against scikit-learn's, and their errors against the spread over many draws."""

import numpy as np
import pytest
from sklearn import metrics

from mercer.cli.scores import area, baseline, classification, regression, within


def draw(random, n=300):
    y = random.random(n) < 0.3
    chance = 1 / (1 + np.exp(-(1.5 * y - 1 + random.normal(0, 1, n))))
    return np.where(y, "b", "a"), np.column_stack([1 - chance, chance])


def test_classification():
    y, chances = draw(np.random.default_rng(0))
    predicted = np.where(chances[:, 1] > 0.5, "b", "a")
    found = {score.name: score.value for score in classification(y, predicted, np.array(["a", "b"]), chances)}
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(y, predicted))
    assert found["balanced accuracy"] == pytest.approx(metrics.balanced_accuracy_score(y, predicted))
    assert found["ROC area"] == pytest.approx(metrics.roc_auc_score(y == "b", chances[:, 1]))
    assert found["log loss"] == pytest.approx(metrics.log_loss(y, chances))


def test_ties_count_half():
    y = np.array([True, False, True, False, True])
    value = np.array([1.0, 1.0, 2.0, 0.0, 1.0])
    assert area(y, value).value == pytest.approx(metrics.roc_auc_score(y, value))


def test_many_classes():
    random = np.random.default_rng(1)
    classes = np.arange(4)
    y = random.integers(0, 4, 200)
    chances = random.dirichlet(np.ones(4), 200)
    found = {score.name: score for score in classification(y, chances.argmax(axis=1), classes, chances)}
    assert set(found) == {"accuracy", "balanced accuracy", "log loss"}
    assert found["log loss"].value == pytest.approx(metrics.log_loss(y, chances))
    assert not found["log loss"].larger


def test_errors_are_the_spread_over_draws():
    random = np.random.default_rng(2)
    classes = np.array(["a", "b"])
    found = []
    for _ in range(300):
        y, chances = draw(random)
        found.append(classification(y, np.where(chances[:, 1] > 0.5, "b", "a"), classes, chances))
    for scores in zip(*found, strict=True):
        spread = np.std([score.value for score in scores])
        assert np.mean([score.error for score in scores]) == pytest.approx(spread, rel=0.2), scores[0].name


def test_errors_of_regression_are_the_spread_over_draws():
    random = np.random.default_rng(3)
    found = []
    for _ in range(400):
        y = random.normal(0, 2, 300)
        found.append(regression(y, y + random.normal(0, 1, 300)))
    for name, scores in zip(("R²", "RMSE", "MAE"), zip(*found, strict=True), strict=True):
        spread = np.std([score.value for score in scores])
        assert scores[0].name == name
        assert np.mean([score.error for score in scores]) == pytest.approx(spread, rel=0.35), name


def test_regression_without_spread():
    scores = {score.name: score for score in regression(np.ones(5), np.ones(5))}
    assert np.isnan(scores["R²"].value)
    assert scores["RMSE"].value == 0


def test_digits_follow_the_error():
    assert within(0.123456, 0.01) == "0.123 ± 0.010"
    assert within(12345.678, 123.4) == "12,346 ± 123"


@pytest.mark.parametrize("size", [1e307, 1e-307])
def test_scores_near_the_limits_of_float64_are_those_of_the_same_numbers_in_other_units(size):
    random = np.random.default_rng(0)
    y = random.uniform(-1, 1, 50)
    predicted = y + random.normal(0, 0.1, 50)
    usual = regression(y, predicted)
    for score, other in zip(usual, regression(y * size, predicted * size), strict=True):
        unit = 1.0 if score.name == "R²" else size
        assert other.value == pytest.approx(score.value * unit, rel=1e-9)
        assert other.error == pytest.approx(score.error * unit, rel=1e-9)
        assert len(str(other)) < 40
    assert "inf" not in baseline(y * size, "regress")
