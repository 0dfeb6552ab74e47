"""Linear models with a hinge on each side of each row: the objective, its dual, and the certificate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.certify import Certificate
from mercer.solvers.linear.rows import Rows
from mercer.solvers.run import Row


@dataclass
class LinearProblem:
    """Minimise 1/2 v'Pv - linear'v + sum_i cost_i sum_k loss(target_ki - sign_ki f_i) with f = A v.

    loss(z) is max(0, z) or, `squared`, max(0, z)². A classifier has one side k per row (sign = y, target = 1), a
    regression two: sign = 1, target = y - epsilon and sign = -1, target = -y - epsilon. The dual is

        maximise sum target alpha - 1/2 |linear + A'(sign alpha)|² in the metric P^-1 [- sum alpha²/(4 cost)]

    over 0 <= alpha [<= cost], subject to linear + A'(sign alpha) = 0 where P vanishes: for the offset.

    Parameters
    ----------
    rows
        A and P.
    sign, target
        Arrays of shape (sides, n).
    cost
        One positive number per row.
    squared
        Which loss.
    linear
        The slope that rows left out (see `linear_solve`) contribute; None for none.
    constant
        What they add to both objectives.
    """

    rows: Rows
    sign: np.ndarray
    target: np.ndarray
    cost: np.ndarray
    squared: bool = False
    linear: np.ndarray | None = None
    constant: float = 0.0

    def slack(self, f: np.ndarray) -> np.ndarray:
        """Return target - sign f: positive where a side costs something."""
        return self.target - self.sign * f

    def risk(self, z: np.ndarray) -> float:
        """Return the cost of the slacks z."""
        loss = np.maximum(z, 0.0)
        if self.squared:
            loss *= loss
        return float((loss @ self.cost).sum())

    def primal(self, v: np.ndarray, z: np.ndarray) -> float:
        """Return the objective at v, where the slacks are z."""
        slope = 0.0 if self.linear is None else float(self.linear @ v)
        return 0.5 * float(self.rows.penalty @ (v * v)) - slope + self.risk(z) + self.constant

    def pull(self, alpha: np.ndarray) -> np.ndarray:
        """Return linear + A'(sign alpha): P v at the optimum."""
        pull = self.rows.transposed(total(self.sign * alpha))
        return pull if self.linear is None else pull + self.linear

    def dual(self, alpha: np.ndarray, pull: np.ndarray) -> float:
        """Return the dual objective, with what is missing to the constraint of the offset taken as nothing."""
        k = self.rows.penalised
        square = pull[:k] * pull[:k] / self.rows.penalty[:k]
        value = self.constant + float((self.target * alpha).sum()) - 0.5 * float(square.sum())
        if self.squared:
            value -= 0.25 * float((alpha * alpha / self.cost).sum())
        return value

    def subset(self, index: np.ndarray) -> LinearProblem:
        """Return the problem of some of the rows."""
        return LinearProblem(
            self.rows.take(index), self.sign[:, index], self.target[:, index], self.cost[index], self.squared
        )


def total(sides: np.ndarray) -> np.ndarray:
    """Return the sum over the sides of each row."""
    return sides[0] if len(sides) == 1 else sides.sum(axis=0)


def balanced(problem: LinearProblem, alpha: np.ndarray) -> np.ndarray:
    """Return alpha inside its box and with linear + sum(sign alpha) = 0 for the offset, by shrinking the heavier sign.

    Rows left out may be heavier than all that can be shrunk; then it stays out of balance.
    """
    alpha = np.maximum(alpha, 0.0)
    if not problem.squared:
        alpha = np.minimum(alpha, problem.cost)
    if len(alpha) == 2:  # a row pulls to one side; what pulls to both is of no use
        alpha -= alpha.min(axis=0)
    if not problem.rows.offset:
        return alpha
    positive = problem.sign > 0
    up, down = float(alpha[positive].sum()), float(alpha[~positive].sum())
    excess = up - down + (0.0 if problem.linear is None else float(problem.linear[-1]))
    if 0 < excess <= up:
        alpha[positive] *= (up - excess) / up
    elif 0 < -excess <= down:
        alpha[~positive] *= (down + excess) / down
    return alpha


def best_offset(problem: LinearProblem, f: np.ndarray) -> float:
    """Return the constant that, added to f, makes the risk smallest: a zero of its increasing derivative.

    The derivative is monotone, so that an interval that holds its zero is known after each evaluation. The hinge's is a
    staircase: once few of its steps lie inside the interval, they are sorted.
    """
    sign, target, cost = problem.sign, problem.target, np.broadcast_to(problem.cost, problem.sign.shape)
    kink = sign * (target - sign * f)  # side k of row i is active for shifts t with sign t < sign kink
    kink, up, weight = kink.ravel(), sign.ravel() > 0, cost.ravel()
    keep = weight > 0
    if not keep.all():
        kink, up, weight = kink[keep], up[keep], weight[keep]
    if not kink.size:
        return 0.0

    low, high = float(kink.min()), float(kink.max())
    if problem.squared:
        t = min(max(0.0, low), high)
        for _ in range(100):
            active = np.where(up, kink > t, kink < t)
            second = 2 * float(weight @ active)
            first = 2 * float((weight * (t - kink)) @ active)
            low, high = (low, min(high, t)) if first > 0 else (max(low, t), high)
            step = t - first / second if second > 0 else 0.5 * (low + high)
            step = step if low < step < high else 0.5 * (low + high)  # at the ends it would come back
            if abs(step - t) <= 4e-16 * max(abs(low), abs(high)) or first == 0:
                break
            t = step
        return t

    start = -float(weight @ up)

    def slope(t: float) -> float:
        """Return the derivative just before t: every kink passed, of either sign, has raised it by its weight."""
        return start + float(weight @ (kink < t))

    # Around 0, where a good solver has left it, small intervals are tried before the whole line.
    width = 1e-3 * float(np.abs(kink[:: max(1, kink.size // 1000)]).mean())
    while width > 0 and max(-low, high) > width and kink.size > 1000:
        if slope(-width) <= 0 <= slope(width):
            low, high = max(low, -width), min(high, width)
            break
        width *= 8
    before = slope(low)
    inside = (kink >= low) & (kink <= high)
    kink, weight = kink[inside], weight[inside]
    if not kink.size:  # flat from end to end
        return 0.0
    order = np.argsort(kink)
    kink = kink[order]
    level = before + np.cumsum(weight[order])
    rounding = 1e-12 * abs(start)
    at = min(int(np.searchsorted(level, -rounding)), len(kink) - 1)
    if abs(level[at]) <= rounding and at + 1 < len(kink):
        return float(0.5 * (kink[at] + kink[at + 1]))
    return float(kink[at])


@dataclass
class LinearSolution:
    """What a linear solver returns: w, b, the dual variables of each side of each row, what they prove, and the way.

    `history` has a row for each look; its support are the rows with a dual variable.
    """

    w: np.ndarray
    b: Any
    alpha: np.ndarray
    certificate: Certificate
    history: list[Row] = field(default_factory=list)


def violation(problem: LinearProblem, alpha: np.ndarray, z: np.ndarray, scale: float) -> float:
    """Return the worst violation of complementary slackness, in units of f; `scale` is the mean of |x|²."""
    if problem.squared:
        return float(np.abs(0.5 * alpha / problem.cost - np.maximum(z, 0.0)).max(initial=0.0))
    moved = np.clip(alpha + z / scale, 0.0, problem.cost)
    return scale * float(np.abs(moved - alpha).max(initial=0.0))
