"""The story of a report: the model, the rows it was fitted to and judged on, and how it came about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit

from mercer.machine.clock import Clock, pace
from mercer.machine.words import count
from mercer.report.machine import Machine, draw


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
        for name, rows in (("train", self.train), ("test", self.test)):
            if rows is not None and len(rows[0]) != len(rows[1]):
                raise ValueError(
                    f"{name} has {len(rows[0])} rows and {len(rows[1])} targets; a report needs one for each row."
                )
        if not len(self.train[0]):
            raise ValueError("train has no rows; a report needs the rows that the model was fitted to.")


# The rows on which the model is judged: the test set or, without one, what the cross-validation held out.


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
