"""A fitted automatic model as the report asks it, on rows that are encoded once, and the time that this may take."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import get_scorer, r2_score

from mercer.machine.lazy import cached_property
from mercer.report.drawing.scales import exponent
from mercer.report.drawing.words import named, number


class Encoded:
    """Stands in for an encoder where the rows are encoded already."""

    def transform(self, Z: np.ndarray) -> np.ndarray:
        """Return the rows as they are."""
        return Z


class Machine:
    """The model of a story.

    Parameters
    ----------
    model
        A fitted `AutoClassifier` or `AutoRegressor`.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.classifies = bool(is_classifier(model))
        self.classes = np.asarray(model.classes_) if self.classifies else np.empty(0)
        self.scoring = str(model.scoring_)
        self.measure = named(self.scoring)

    def encode(self, rows: Any) -> np.ndarray:
        """Return rows of the user's table as the kernel sees them."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the fit has said it
            return np.asarray(self.model.encoder_.transform(rows))

    @cached_property
    def bare(self) -> Any:
        """The model for rows that are encoded already."""
        bare = copy.copy(self.model)
        bare.encoder_ = Encoded()
        return bare

    def refitted(self, Z: np.ndarray, y: np.ndarray, time_limit: float) -> Machine:
        """Return the same kernel and price, fitted to other rows within a time."""
        bare = copy.copy(self.bare)
        part = clone(self.model.estimator_)
        changes = {"kernel": self.model.kernel_, "time_limit": time_limit, "verbose": 0, "checkpoint": None}
        known = part.get_params(deep=False)
        part.set_params(**{name: value for name, value in changes.items() if name in known})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            bare.estimator_ = part.fit(Z, self.learnt(y))
        return Machine(bare)

    def learnt(self, y: np.ndarray) -> np.ndarray:
        """Return targets as the machine within has learnt them, such as their logarithms."""
        return np.asarray(self.model.learned_target(y))

    def score(self, Z: np.ndarray, y: np.ndarray) -> float:
        """Return the score that the search looked at, on encoded rows."""
        if self.scoring == "r2" and len(y) > 1:
            return self.score_of(self.values(Z), Z, y)
        try:
            scorer = get_scorer(self.scoring)
        except ValueError:
            return float(self.bare.score(Z, y))
        return float(scorer(self.bare, Z, y))

    def score_of(self, values: np.ndarray, Z: np.ndarray, y: np.ndarray) -> float:
        """Return the score of rows whose `values` are known, without predicting them again where that is possible."""
        if self.scoring == "accuracy":
            return float(np.mean(self.classes[values.argmax(axis=1)] == y))
        if self.scoring == "r2" and len(y) > 1:
            size = max(exponent(y), exponent(values))  # squares are numbers in units of it
            return float(r2_score(np.ldexp(y, -size), np.ldexp(values[:, 0], -size)))
        return self.score(Z, y)

    def values(self, Z: np.ndarray) -> np.ndarray:
        """Return what pictures show: probabilities, one column for each class, or predictions."""
        if self.classifies:
            return np.asarray(self.bare.predict_proba(Z), dtype=float)
        return np.asarray(self.bare.predict(Z), dtype=float)[:, None]

    def name_of_price(self) -> str:
        """Return "C = 10" or "alpha = 0.01"."""
        for name in ("C", "alpha"):
            value = getattr(self.model.estimator_, name, None)
            if value is not None:
                return f"{name} = {number(value)}"
        return ""


def draw(rng: np.random.Generator, size: int, most: int) -> np.ndarray:
    """Return the numbers of at most so many rows, ascending."""
    if size <= most:
        return np.arange(size)
    return np.sort(rng.choice(size, most, replace=False))
