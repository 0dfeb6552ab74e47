"""The rows on which the model is judged: the test set or, without one, what the cross-validation held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from mercer.machine.words import count
from mercer.report.drawing.clock import Clock, pace
from mercer.report.machine import Machine, draw
from mercer.report.story import Story

LEVELS = np.array([0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975])
_FEWEST, _MOST = 500, 20_000


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
    rows = draw(rng, len(y), int(np.clip(clock.left / max(each, 1e-9), _FEWEST, _MOST)))
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
