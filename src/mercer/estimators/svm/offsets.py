"""The offset in the middle of those that are optimal: an interval, where every coefficient is at a bound."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.solvers.dual.problem import Solution

_ROUNDING = 1e-12


def central(terms: dict[str, Any], solution: Solution) -> tuple[float, float]:
    """Return offset and half width of a solution, in the middle of those that are optimal (as libsvm does).

    The primal is piecewise linear in the multiplier of each constraint on sums. A support vector that is not at its
    bound fixes the multiplier; without one, the piece at the bottom can be flat.

    Parameters
    ----------
    terms
        The problem, as `SVMDual` takes it.
    solution
        Its solution.
    """
    upper, lower = terms["upper"], terms["lower"]
    kind = terms.get("offset", "free")
    if kind == "none":
        return solution.offset, solution.half_width
    p, m = solution.plus, solution.minus
    if kind == "free" and (_inside(p, upper) or _inside(m, lower)):
        return solution.offset, 0.0
    if np.isinf(upper).any() or np.isinf(lower).any():  # that of a hard margin or tube is in the middle
        return solution.offset, solution.half_width
    width = terms.get("width", 0.0)
    gradient = solution.values - solution.offset + terms["linear"]
    if kind == "free":
        places = np.concatenate([-gradient - width, width - gradient])
        weights = np.concatenate([upper, lower])
        return _flat(places, weights, float(p.sum() - m.sum() - upper.sum()), solution.offset), 0.0
    plus, minus = solution.offset - solution.half_width, -solution.offset - solution.half_width
    if not _inside(p, upper):
        plus = _flat(-gradient - width, upper, float(p.sum() - upper.sum()), plus)
    if not _inside(m, lower):
        minus = _flat(gradient - width, lower, float(m.sum() - lower.sum()), minus)
    return (plus - minus) / 2, -(plus + minus) / 2


def _inside(coefficients: np.ndarray, bound: np.ndarray) -> bool:
    return bool(((coefficients > 0) & (coefficients < bound)).any())


def _flat(places: np.ndarray, weights: np.ndarray, slope: float, found: float) -> float:
    """Return the middle of the flat piece of a convex function, or `found` where there is none.

    Its slope is `slope` on the far left and grows by `weights` at `places`.
    """
    order = np.argsort(places)
    order = order[weights[order] > 0]
    if not len(order):  # bounds so small that they are 0
        return found
    course = slope + np.cumsum(weights[order])
    at = int(np.argmin(np.abs(course)))
    if abs(course[at]) > _ROUNDING * float(weights.sum()) or at + 1 >= len(order):
        return found
    return float(places[order[at]] + places[order[at + 1]]) / 2
