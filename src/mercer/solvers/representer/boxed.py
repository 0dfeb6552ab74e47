"""Piecewise linear losses: their dual is that of a support vector machine, and its solver is at hand."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.gram import Gram
from mercer.solvers.control import Control
from mercer.solvers.dual.problem import SVMDual
from mercer.solvers.dual.problem import plan as plan_svm
from mercer.solvers.dual.solve import solve
from mercer.solvers.representer.problem import EPS, Point
from mercer.solvers.run import Run

_INFINITE_BOUND = 1e100  # on a coefficient, in units of the linear terms: none reaches it, its square is finite


@dataclass
class Boxed:
    """The dual of a piecewise linear loss, in units that suit its numbers.

    Parameters
    ----------
    dual
        The problem in coefficients divided by `unit`. Dividing all of a, y and f by one number changes bounds, linear
        terms and widths alike, so that y may be of any size.
    strength
        Of the squared norm.
    unit
        The size of the linear terms, or 1.
    middle
        What is added to the offset: a constant in all linear terms does not matter where coefficients sum to 0, but a
        large one would leave few digits for the rest.
    """

    dual: SVMDual
    strength: float
    unit: float
    middle: float


def dual_of(
    gram: Gram,
    y: np.ndarray,
    loss: Any,
    weights: np.ndarray,
    intercept: bool,
    strength: float,
    start: np.ndarray | None = None,
) -> Boxed:
    """Return the dual of a piecewise linear loss plus strength/2 |f|^2.

    With u = -strength a the dual of the representer problem is strength times that of `SVMDual`, whose bounds are
    w * box / strength.
    """
    box = loss.box(y)
    n = len(y)
    linear, width = (np.broadcast_to(np.asarray(part, dtype=np.float64), (n,)) for part in (box.linear, box.width))
    middle = float(np.median(linear)) if intercept else 0.0
    if abs(middle) <= 10.0 * float(np.abs(linear - middle).max()):
        middle = 0.0
    linear = linear - middle
    unit = max(float(np.abs(linear).max()), float(width.max()))
    unit = unit if 0 < unit < math.inf else 1.0
    if 1e-6 <= unit <= 1e6:
        unit = 1.0
    with np.errstate(over="ignore"):
        upper, lower = (np.multiply(weights, part) / strength / unit for part in (box.upper, box.lower))
    dual = SVMDual(
        gram,
        linear / unit,
        np.minimum(upper, _INFINITE_BOUND),
        np.minimum(lower, _INFINITE_BOUND),
        width / unit,
        offset="free" if intercept else "none",
    )
    if box.total is not None:
        _limit(dual, loss, box.total, weights, intercept)
    elif start is not None:
        a = np.clip(np.asarray(start, dtype=np.float64) / unit, -dual.lower, dual.upper)
        plus, minus = np.maximum(a, 0.0), np.maximum(-a, 0.0)
        if intercept:  # every step keeps the sum, which must be 0
            above, below = float(plus.sum()), float(minus.sum())
            if above > below:
                plus *= below / above
            elif below > 0:
                minus *= above / below
        dual.plus, dual.minus = plus, minus
    return Boxed(dual, strength, unit, -middle)


def _limit(dual: SVMDual, loss: Any, total: float, weights: np.ndarray, intercept: bool) -> None:
    """Limit the sum of all coefficients, as for nu: with an offset both signs have half of it."""
    if not intercept:
        raise ValueError(
            f"{loss!r} needs an offset: without one its dual has another constraint. Set fit_intercept=True."
        )
    if len(weights) and weights.min() < weights.max():
        raise ValueError(
            f"{loss!r} is one loss of all predictions, and weights of single ones have no meaning in it; they go from "
            f"{weights.min():g} to {weights.max():g}. Leave sample_weight out."
        )
    dual.offset = "split"
    dual.plus, dual.minus = (0.5 * total / len(weights) * bound for bound in (dual.upper, dual.lower))


def describe(dual: SVMDual, control: Control, why: str) -> str:
    """Return the sentence of the plan."""
    return f"the SVM solver on the dual ({plan_svm([dual], control)[:-1]}): {why}."


def solve_boxed(boxed: Boxed, run: Run, control: Control) -> Point:
    """Solve the dual to a relative gap of `control.tol`; the multipliers are u = -strength a.

    `control` is that of the run but for the tolerance, and perhaps the checkpoint.
    """
    strength, unit = boxed.strength, boxed.unit
    if control.max_iter >= 0:
        control = replace(control, max_iter=max(0, control.max_iter - run.steps))
    solution = solve([boxed.dual], control)[0]
    claim = solution.certificate

    def scaled(value: float) -> float:
        return strength * (unit * value) * unit  # in this order, as the square of the unit may overflow

    a, b = solution.coefficients * unit, solution.offset * unit + boxed.middle
    f = (solution.values - solution.offset) * unit
    with np.errstate(over="ignore"):
        square = float(a @ f)
    begun = run.steps
    run.steps += claim.iterations
    for row in solution.history:
        at = begun + row.steps
        run.history.append(row._replace(steps=at, primal=scaled(row.primal), dual=scaled(row.dual)))
    primal, dual_value = scaled(claim.primal), scaled(claim.dual)
    rounding = scaled(claim.rounding) + 4.0 * EPS * abs(primal)
    return Point(
        a,
        b,
        f,
        -strength * a,
        primal - 0.5 * strength * square,
        square,
        max(primal - dual_value, 0.0),
        strength * strength * square,
        -(dual_value + 0.5 * strength * square),
        unit * claim.kkt,
        rounding,
        strength,
        f"dual: {claim.solver}",
        claim.stopped,
        claim.precision,
    )
