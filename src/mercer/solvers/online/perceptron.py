"""Rosenblatt's perceptron (M1)."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from mercer.solvers.online.iterate import Iterate


@dataclass
class Mistakes:
    """What a perceptron did.

    Attributes
    ----------
    counts
        How often each training point was a mistake: the dual variables.
    per_epoch
        Mistakes in each pass over the data.
    order
        The points that were mistakes, one after another.
    converged
        Whether the last pass made none.
    history
        (corrections so far, points corrected so far, seconds) after each pass.
    """

    counts: np.ndarray
    per_epoch: list[int] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    converged: bool = False
    history: list[tuple[int, int, float]] = field(default_factory=list)


def perceptron(
    iterate: Iterate,
    y: np.ndarray,
    max_epochs: int = 100,
    random: np.random.Generator | None = None,
    steps: np.ndarray | float = 1.0,
) -> Mistakes:
    r"""Visit the points in turn; on a mistake, where y f(x) <= 0, add y phi(x) to the iterate, times a step.

    Novikoff (1962): if some unit vector separates the points with margin gamma, and all are within R of the origin,
    there are at most (R / gamma)² mistakes with equal steps, in whatever order the points come.

    Parameters
    ----------
    iterate
        Where to start; changed in place.
    y
        Labels, -1 or +1.
    max_epochs
        Passes over the data at most; points that cannot be separated never come to rest.
    random
        Shuffles the points before each pass; None visits them as they come.
    steps
        The step of each point, > 0; one number for all.

    Examples
    --------
    >>> from mercer.solvers.online.iterate import Vector
    >>> X, y = np.array([[2.0], [1.0], [-1.0]]), np.array([1.0, 1.0, -1.0])
    >>> done = perceptron(Vector(X, constant=False), y)
    >>> done.order, done.per_epoch, done.converged
    ([0], [1, 0], True)
    """
    done, started = Mistakes(np.zeros(len(y))), time.perf_counter()
    steps = np.broadcast_to(steps, len(y))
    for _ in range(max_epochs):
        order = np.arange(len(y)) if random is None else random.permutation(len(y))
        before = len(done.order)
        for start in range(0, len(y), iterate.panel):
            _visit(iterate, y, order[start : start + iterate.panel], steps, done)
        done.per_epoch.append(len(done.order) - before)
        done.history.append((len(done.order), int(np.count_nonzero(done.counts)), time.perf_counter() - started))
        if done.per_epoch[-1] == 0:
            done.converged = True
            break
    return done


def _visit(iterate: Iterate, y: np.ndarray, rows: np.ndarray, steps: np.ndarray, done: Mistakes) -> None:
    """Visit a panel of points: only its mistakes cost a step of Python."""
    labels = y[rows]
    margins = labels * iterate.values(rows)
    wrong = np.flatnonzero(margins <= 0)
    if not len(wrong):
        return
    signed = (steps[rows] * labels)[:, None] * iterate.inner(rows) * labels
    chosen = []
    at = int(wrong[0])
    while True:
        chosen.append(at)
        margins += signed[at]
        later = np.flatnonzero(margins[at + 1 :] <= 0)
        if not len(later):
            break
        at += 1 + int(later[0])
    mistakes = rows[chosen]
    iterate.add(mistakes, steps[mistakes] * labels[chosen])
    done.counts[mistakes] += 1
    done.order += mistakes.tolist()
