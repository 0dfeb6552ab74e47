"""Scores of probabilities that machines have by the margins of rows that were held out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics._scorer import _BaseScorer

from mercer.estimators.shared.classes import numbered, pair_index
from mercer.estimators.svm.calibration import cross_calibrated
from mercer.machine.lazy import cached_property
from mercer.selection.search.cross_validation import CrossValidation, Outcome


def asks_for_probabilities(scorer: Any) -> bool:
    """Whether a scorer of scikit-learn looks at probabilities.

    Examples
    --------
    >>> from sklearn.metrics import get_scorer
    >>> [asks_for_probabilities(get_scorer(name)) for name in ("accuracy", "roc_auc", "neg_log_loss", "roc_auc_ovr")]
    [False, False, True, True]
    """
    return np.atleast_1d(getattr(scorer, "_response_method", "")).tolist()[:1] == ["predict_proba"]


def known_pairs(margins: np.ndarray, classes: np.ndarray, every: np.ndarray) -> np.ndarray:
    """Return the margins of all pairs of classes, NaN where a model has not seen one of the two.

    Parameters
    ----------
    margins
        Of the pairs of the classes that it has seen, (rows,) or (rows, pairs).
    classes, every
        These, and all there are.
    """
    margins, known = margins.reshape(len(margins), -1), np.searchsorted(every, classes)
    if len(known) == 2 < len(every):
        margins = -margins  # of two classes the second is the positive one, of more the first
    place = {pair: p for p, pair in enumerate(zip(*pair_index(len(every)), strict=True))}
    values = np.full((len(margins), len(place)), np.nan)
    values[:, [place[known[i], known[j]] for i, j in zip(*pair_index(len(known)), strict=True)]] = margins
    return values


class Law(ClassifierMixin, BaseEstimator):
    """A classifier of known probabilities; points are places in them."""

    def __init__(self, law: np.ndarray, classes: np.ndarray) -> None:
        self.law = law
        self.classes_ = classes

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities."""
        return self.law[X]

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable classes."""
        return np.asarray(self.classes_[self.law[X].argmax(axis=1)])


@dataclass
class CalibratedValidation(CrossValidation):
    """A cross-validation that scores the folds of a candidate together, once it knows the margins of all of them.

    The probabilities of a fold are a map of its margins, learned from the margins of the other folds.
    """

    waiting: dict[int, dict[int, Outcome]] = field(default_factory=dict)  # of candidates that lack folds: margins

    @cached_property
    def numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """The classes, and the number of that of each sample."""
        return numbered(np.asarray(self.y))

    def score(self, model: Any, X: Any, rows: np.ndarray) -> Any:
        """Return the margins of a model; what they are worth is known when those of the other folds are."""
        return known_pairs(np.asarray(model.decision_function(X)), model.classes_, self.numbers[0])

    def score_values(self, cell: tuple[int, int], answer: Callable[[np.ndarray], Any], fit_time: float) -> Outcome:
        """Keep the margins of a cell."""
        test = self.splits[cell[1]][1]
        outcome = Outcome(self.score(answer(test), np.arange(len(test)), test), fit_time=fit_time)
        self.keep(cell, outcome)
        return outcome

    def keep(self, cell: tuple[int, int], outcome: Outcome) -> None:
        """Take down the outcome of a cell; with the last of a candidate all of them are scored."""
        candidate, fold = cell
        with self._lock:
            waiting = self.waiting.setdefault(candidate, {})
            waiting[fold] = outcome
            if len(waiting) < len(self.splits):
                return
            del self.waiting[candidate]
        self._score_together({f: known for f, known in waiting.items() if known.failed is None})
        for f, known in waiting.items():
            super().keep((candidate, f), known)

    def _score_together(self, folds: dict[int, Outcome]) -> None:
        """Replace margins by the scores of the probabilities that they make."""
        began, (classes, codes) = time.perf_counter(), self.numbers
        tests = [self.splits[f][1] for f in folds]
        weights = self.fit_params.get("sample_weight")
        counts = None if weights is None else np.asarray(weights) / self.scorer.unit
        margins = [known.test for known in folds.values()]
        laws = cross_calibrated(margins, tests, codes, len(classes), counts, counts=True) if folds else []
        for known, test, law in zip(folds.values(), tests, laws, strict=True):
            try:
                known.test = super().score(Law(law, classes), np.arange(len(test)), test)
            except Exception as error:
                if self.error_score == "raise":
                    raise
                known.test = self.error_score
                self._warn_of_score(f"{type(error).__name__}: {error}")
            known.score_time = (time.perf_counter() - began) / len(folds)


class Calibrated(_BaseScorer):
    """A score of probabilities, for machines that have none of their own.

    Parameters
    ----------
    scorer
        One of scikit-learn's that asks for probabilities.
    name
        What it is called.
    unit
        What weights are counted in.
    """

    validation: ClassVar[type] = CalibratedValidation

    def __init__(self, scorer: Any, name: str, unit: float = 1.0) -> None:
        super().__init__(scorer._score_func, scorer._sign, scorer._kwargs, scorer._response_method)
        self.scorer, self.name, self.unit = scorer, name, unit

    def _score(self, method_caller: Any, estimator: Any, X: Any, y_true: Any, **kwargs: Any) -> Any:
        """Score a law; the score is told the classes where some have no sample."""
        told = "labels" in signature(self._score_func).parameters and "labels" not in self._kwargs
        if told and len(np.unique(y_true)) < len(estimator.classes_):
            kwargs["labels"] = estimator.classes_
        return self.scorer._score(method_caller, estimator, X, y_true, **kwargs)
