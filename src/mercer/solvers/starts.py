"""Where a dual problem may start: from the solution of a smaller box."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.solvers.state import State, dot


@dataclass
class Point:
    """A solution on all points of a matrix, from which a neighbouring problem starts."""

    plus: np.ndarray
    minus: np.ndarray
    image: np.ndarray | None = None  # K (plus - minus); None where only some points are known
    inside: bool = False  # whether no coefficient is at its upper bound: then it solves every larger box too


def within(start: Point, s: State) -> bool:
    """Return whether a solution below its bounds is below those of another problem."""
    return bool((start.plus <= s.upper).all() and (start.minus <= s.lower).all())


def scaled(s: State, start: Point) -> None:
    """Start from a multiple of the solution of another box."""
    assert start.image is not None
    share = 1.0 if start.inside and within(start, s) else best_share(s, start)
    s.plus, s.minus = start.plus * share, start.minus * share
    np.minimum(s.plus, s.upper, out=s.plus)  # rounding
    np.minimum(s.minus, s.lower, out=s.minus)
    s.gradient = s.linear + share * start.image


def best_share(s: State, start: Point) -> float:
    """Return which multiple of a solution is the best start: it stays in the new box, and keeps sums that are 0."""
    b, total = start.plus - start.minus, start.plus + start.minus
    assert start.image is not None
    square, slope = dot(b, start.image), -dot(b, s.linear) - dot(total, s.width)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = min(
            float(np.min(upper / part, where=part > 0, initial=np.inf))
            for part, upper in ((start.plus, s.upper), (start.minus, s.lower))
        )
    best = slope / square if square > 0 else 1.0
    return float(np.clip(best, 0.0, min(room, 1e300)))
