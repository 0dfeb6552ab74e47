"""The story of a report: the model as the report asks it, the rows it was fitted to, and those it is judged on."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone, is_classifier
from sklearn.metrics import get_scorer, r2_score

from mercer.machine.clock import Clock, pace
from mercer.machine.lazy import cached_property
from mercer.machine.words import count
from mercer.report.blocks import named, number
from mercer.report.scales import exponent


@dataclass
class Story:
    """Everything that `write_report` tells.

    Parameters
    ----------
    title
        The heading of the page.
    source
        Where the rows come from, such as the name of a file.
    command, python
        How to reproduce the model: the command line, and a program. Either may be empty.
    model
        A fitted `AutoClassifier` or `AutoRegressor`.
    train
        The rows and the targets of the fit: (DataFrame, array).
    test
        Rows and targets that the fit has not seen; None if there are none. Then errors and calibration are those of the
        cross-validation.
    scores
        Scores on the test rows, by name.
    timings
        Seconds, by what they were spent on. Those of the model (`timings_`) are added if they are not among them.
    seed
        What the split and the search were seeded with.
    peers
        Scores of other models on the same test rows: a number for each name, or a dictionary of scores.
    treatment
        What was done to each column: `TableEncoder.treatment_`.
    notes
        Sentences to show beside the data, such as which rows were dropped.
    """

    title: str
    source: str
    command: str
    python: str
    model: Any
    train: tuple[Any, np.ndarray]
    test: tuple[Any, np.ndarray] | None = None
    scores: dict[str, float] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)
    seed: int = 0
    peers: dict[str, Any] | None = None
    treatment: list[Any] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if sparse.issparse(self.train[0]):
            raise TypeError("a report tells of the columns of a table; X of this one is a sparse matrix.")
        for name, rows in (("train", self.train), ("test", self.test)):
            if rows is not None and len(rows[0]) != len(rows[1]):
                raise ValueError(
                    f"{name} has {len(rows[0])} rows and {len(rows[1])} targets; a report needs one for each row."
                )
        if not len(self.train[0]):
            raise ValueError("train has no rows; a report needs the rows that the model was fitted to.")


# -- the model -------------------------------------------------------------------------------------------


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


# -- the rows on which it is judged ---------------------------------------------------------------------


LEVELS = np.array([0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975])
_FEWEST_JUDGED, _MOST_JUDGED = 500, 20_000  # rows whose predictions are judged, as time allows


@dataclass
class Judged:
    """Rows, their targets, and what the model said of them without having seen them."""

    where: str
    rows: np.ndarray
    truth: np.ndarray
    predicted: np.ndarray
    probabilities: np.ndarray | None = None
    quantiles: np.ndarray | None = None
    tested: bool = True


def judge(story: Story, machine: Machine, clock: Clock, rng: np.random.Generator) -> Judged | None:
    """Return the rows to judge by; None if there are none."""
    if story.test is not None and len(story.test[0]):
        return _on_test(story, machine, clock, rng)
    held = getattr(machine.model, "held_out_", None)
    return None if not held or not len(held["rows"]) else _held_out(story, machine, held)


def _on_test(story: Story, machine: Machine, clock: Clock, rng: np.random.Generator) -> Judged:
    assert story.test is not None
    frame, y = story.test[0], np.asarray(story.test[1])
    Z = machine.encode(frame)
    each = 2 * pace(machine.values, Z)
    rows = draw(rng, len(y), int(np.clip(clock.left / max(each, 1e-9), _FEWEST_JUDGED, _MOST_JUDGED)))
    where = count(len(y), "test row")
    if len(rows) < len(y):
        where = f"{len(rows):,} of the {where}"
    Z, y = Z[rows], y[rows]
    judged = Judged(where, rows, y, np.asarray(machine.bare.predict(Z)))
    if machine.classifies:
        judged.probabilities = machine.values(Z)
    else:
        judged.quantiles = np.asarray(machine.bare.predict_quantiles(Z, LEVELS), dtype=float)
    return judged


def _held_out(story: Story, machine: Machine, held: dict[str, Any]) -> Judged:
    rows = np.asarray(held["rows"], dtype=int)
    values = np.asarray(held["values"], dtype=float)
    truth = np.asarray(story.train[1])[rows]
    where = f"{count(len(rows), 'row')} held out by the cross-validation"
    if not machine.classifies:
        return Judged(where, rows, truth, values, tested=False)
    if values.ndim == 2:
        chances = np.exp(values)  # of several classes the decision function is the logarithm of the probabilities
    else:
        second = expit(values * machine.model.calibration_["slope"][0])  # it is 0 at even odds
        chances = np.column_stack([1 - second, second])
    return Judged(where, rows, truth, machine.classes[chances.argmax(axis=1)], chances, tested=False)
