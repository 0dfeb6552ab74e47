"""A look ahead along the last steps: what one working set undoes of another's progress is put right in their span.

Where the free points are more than a working set holds, decomposition is a block method for one linear system, and
converges as such methods do. Minimising over the span of the last few steps, whose products with the kernel matrix are
known, makes of it what conjugate gradients make of steepest descent; the block method is the preconditioner, another
one in each step (Saad 1993).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mercer.solvers.state import State, dot

_KEPT = 3  # steps whose span is searched
_CLIPPED = 200  # points that may be stopped at their bounds: each costs a column of the matrix
_TAKERS = 64  # points that make up for it

Product = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Ahead(NamedTuple):
    """A point further on: feasible but for the sum of its coefficients, which the next working set has to restore."""

    gradient: np.ndarray
    plus: np.ndarray
    minus: np.ndarray
    owed: float  # what is missing from the sum


class Directions:
    """The last steps of a decomposition with one group of variables, and their products.

    Parameters
    ----------
    state
        Where the solver stands.
    product
        Returns the matrix times a vector that is given by its places and values, right for the points at work.
    """

    def __init__(self, state: State, product: Product) -> None:
        self._state, self._product = state, product
        self._steps: list[tuple[np.ndarray, np.ndarray]] = []  # newest first, each with its image
        self._curvature = np.zeros((0, 0))

    def keep(self, step: np.ndarray, image: np.ndarray) -> None:
        """Remember a step and its image, K step."""
        self._steps = [(step, image), *self._steps][:_KEPT]
        row = [dot(step, other) for _, other in self._steps]
        m = len(row)
        curvature = np.empty((m, m))
        curvature[0, :] = curvature[:, 0] = row
        curvature[1:, 1:] = self._curvature[: m - 1, : m - 1]
        self._curvature = curvature

    def ahead(self) -> Ahead | None:
        """Return the minimum over the span, moved into the box; None where there is nothing to gain.

        Each coefficient stays on its side of 0, where the objective is one quadratic function; what is 0 stays 0.
        """
        if not self._steps:
            return None
        s = self._state
        b = s.plus - s.minus
        low, high = np.where(s.minus > 0, -s.lower, 0.0), np.where(s.plus > 0, s.upper, 0.0)
        slope = s.gradient + np.sign(b) * s.width
        free = (b > low) & (b < high)
        if not free.any():
            return None
        slope -= slope[free].mean()  # about the offset: a change of the sum, to be undone, is neither gain nor loss
        falls = np.array([dot(slope, step) for step, _ in self._steps])
        t = -np.linalg.lstsq(self._curvature, falls, rcond=1e-10)[0]
        step = sum(weight * step for weight, (step, _) in zip(t, self._steps, strict=True))
        image = sum(weight * image for weight, (_, image) in zip(t, self._steps, strict=True))
        after = b + step
        outside = np.flatnonzero((after < low) | (after > high))
        if outside.size > _CLIPPED:
            return None
        if outside.size:
            back = np.clip(after[outside], low[outside], high[outside]) - after[outside]
            image += self._product(outside, back)
            step[outside] += back
        fall, curve = dot(slope, step), dot(step, image)
        if not (fall < 0 and curve > 0):
            return None
        length = min(1.0, -fall / curve)
        after = np.clip(b + length * step, low, high)
        gradient = s.gradient + length * image
        return Ahead(gradient, np.maximum(after, 0.0), np.maximum(-after, 0.0), float((b - after).sum()))


def settle(
    owed: float,
    block: np.ndarray,
    gradient: np.ndarray,
    plus: np.ndarray,
    minus: np.ndarray,
    upper: np.ndarray,
    lower: np.ndarray,
) -> bool:
    """Restore the sum by the points of a working set that have most room; return whether they have enough."""
    if owed > 0:
        room = np.where(plus > 0, upper - plus, minus)
    else:
        room = np.where(plus > 0, plus, np.where(minus > 0, lower - minus, 0.0))
    takers = np.argsort(-room)[:_TAKERS]
    room = room[takers]
    total = float(room.sum())
    if total < 2 * abs(owed):
        return False
    if owed:
        given = owed / total * room
        b = (plus - minus)[takers] + given
        plus[takers], minus[takers] = np.maximum(b, 0.0), np.maximum(-b, 0.0)
        gradient += np.einsum("i,ij->j", given, block[takers])
    return True
