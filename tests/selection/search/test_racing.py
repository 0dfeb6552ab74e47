"""A race chooses what an exhaustive search chooses, up to noise; the noise that labels share decides nothing."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_friedman1

from cases import each
from mercer import RBF, SVC, SVR, KernelSearchCV
from mercer.selection.search.cross_validation import Outcome
from mercer.selection.search.racing import Race

KERNELS = [RBF(s) for s in (0.05, 0.3, 1.0, 3.0, 10.0)]
PRICES = np.logspace(-2, 2, 5)


def made(name):
    rng = np.random.default_rng(0)
    if name == "three classes":
        return make_classification(600, 6, n_informative=5, n_redundant=0, n_classes=3, random_state=0)
    X = rng.normal(size=(800, 2 if name == "narrow" else 8))
    flipped = rng.random(len(X)) < {"noisy": 0.2, "narrow": 0.1, "clean": 0.0}[name]
    return X, (np.sin(2 * X[:, 0]) + X[:, 1] > 0) != flipped


@each("name", ["noisy", "narrow", "clean", "three classes"])
def test_the_choice_is_within_a_standard_error_of_the_best_of_all(name):
    X, y = made(name)
    race, whole = (KernelSearchCV(SVC(), KERNELS, {"C": PRICES}, exhaustive=e, refit=False) for e in (False, True))
    race.fit(X, y)
    whole.fit(X, y)
    folds = np.array([whole.cv_results_[f"split{i}_test_score"] for i in range(5)])
    means = folds.mean(axis=0)
    error = np.sqrt(means.max() * (1 - means.max()) / len(y))  # of a share of right answers
    assert means[race.best_index_] >= means.max() - error
    assert abs(race.best_score_ - whole.best_score_) <= error
    assert np.isnan(race.cv_results_["split4_test_score"]).any()  # some were left


@each("model", [SVC(), SVR()], ids=["SVC", "SVR"])
def test_threads_decide_nothing(model):
    X, y = made("noisy") if isinstance(model, SVC) else make_friedman1(400, noise=2.0, random_state=0)
    one, many = (
        KernelSearchCV(model, KERNELS, {"C": PRICES}, n_jobs=jobs, refit=False).fit(X, y).cv_results_
        for jobs in (1, None)
    )
    for fold in range(5):
        np.testing.assert_array_equal(one[f"split{fold}_test_score"], many[f"split{fold}_test_score"])


def race_of(answers, labels):
    """A race of candidates whose answers to the samples of one fold are known."""
    right = [np.asarray(a) == labels for a in answers]
    outcomes = {(c, 0): Outcome(float(r.mean()), right=r) for c, r in enumerate(right)}
    cv = SimpleNamespace(candidates=answers, outcomes=outcomes, splits=[None] * 5, noise=lambda folds: None)
    return Race(cv, "score", False)


@pytest.mark.parametrize("flipped", [0.0, 0.2])
def test_noisy_labels_do_not_widen_the_margin(flipped):
    """It depends on the samples that are answered differently, and on which of these are labelled how, alone."""
    rng = np.random.default_rng(0)
    truth = rng.random(1000) < 0.5
    worse = truth ^ (np.arange(1000) < 40)
    labels = truth ^ ((rng.random(1000) < flipped) & (truth == worse))
    race = race_of([truth, worse, truth], labels)
    margins = race._margins([0, 1, 2], 0, [0])
    assert margins[0] == margins[2] == 0
    assert margins[1] == pytest.approx(3 * np.sqrt(0.04 * 0.96 / 1000))
    assert race._still([0, 1, 2], [0]) == [0, 2]  # 40 samples to none are no chance


def test_few_differences_leave_nobody():
    truth = np.arange(200) % 2 == 0
    race = race_of([truth, truth ^ (np.arange(200) < 8)], truth)
    assert race._still([0, 1], [0]) == [0, 1]
