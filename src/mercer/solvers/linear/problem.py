"""Linear models with a hinge on each side of each row: the objective, its dual, and where a solver stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.certify import Certificate, Stop
from mercer.solvers.control import Control
from mercer.solvers.linear.rows import Rows
from mercer.solvers.run import Row, Run


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
        return 0.5 * self.rows.square(v) - slope + self.risk(z) + self.constant

    def pull(self, alpha: np.ndarray) -> np.ndarray:
        """Return linear + A'(sign alpha): P v at the optimum."""
        pull = self.rows.transposed(total(self.sign * alpha))
        return pull if self.linear is None else pull + self.linear

    def dual(self, alpha: np.ndarray, pull: np.ndarray) -> float:
        """Return the dual objective, as if alpha met the constraint of the offset."""
        return self.constant + self.gain(alpha) - 0.5 * self.rows.dual_square(pull)

    def gain(self, alpha: np.ndarray) -> float:
        """Return what alpha itself adds to the dual objective."""
        value = float((self.target * alpha).sum())
        return value - 0.25 * float((alpha * alpha / self.cost).sum()) if self.squared else value

    def subset(self, index: np.ndarray, linear: np.ndarray | None = None, constant: float = 0.0) -> LinearProblem:
        """Return the problem of some of the rows, with what the others contribute."""
        sides = self.sign[:, index], self.target[:, index]
        return LinearProblem(self.rows.take(index), *sides, self.cost[index], self.squared, linear, constant)

    def can_balance(self) -> bool:
        """Return whether the rows of a band alone can meet the constraint of the offset, with room to spare."""
        if not self.rows.offset or self.linear is None:
            return True
        cost = np.broadcast_to(self.cost, self.sign.shape)
        up, down = float(cost[self.sign > 0].sum()), float(cost[self.sign < 0].sum())
        return bool(-0.9 * up < self.linear[-1] < 0.9 * down)

    def half_width(self, v: np.ndarray, share: float) -> float:
        """Return the slack that a share of the rows does not exceed."""
        z = np.abs(self.slack(self.rows.times(v))).min(axis=0)
        return max(float(np.quantile(z[:: max(1, len(z) // 20_000)], share)), 1e-9 * float(z.max()), 1e-300)

    def with_best_offset(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return v with the best offset for its w, and the slacks there."""
        f = self.rows.times(v)
        if self.rows.offset:
            shift = best_offset(self, f)
            v = v.copy()
            v[-1] += shift
            f += shift
        return v, self.slack(f)

    def violation(self, alpha: np.ndarray, z: np.ndarray, scale: Any) -> float:
        """Return the worst violation of complementary slackness, in units of f.

        `scale` is what makes a change of f of one of alpha: the mean of |x|², or a number for each row.
        """
        if self.squared:
            return float(np.abs(0.5 * alpha / self.cost - np.maximum(z, 0.0)).max(initial=0.0))
        moved = np.clip(alpha + z / scale, 0.0, self.cost)
        return float((scale * np.abs(moved - alpha)).max(initial=0.0))


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

    The derivative is monotone: each evaluation narrows the interval that holds its zero. The hinge's is a staircase:
    once few of its steps lie inside the interval, they are sorted.
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


class State(Run):
    """A run and its current point, kept up to date so that an interrupt loses nothing."""

    def __init__(self, problem: LinearProblem, control: Control) -> None:
        super().__init__(control)
        self.v = np.zeros(problem.rows.shape[1])
        self.alpha: np.ndarray | None = None
        self.gap = np.inf
        self.stopped = Stop.CONVERGED
        self.method = ""
        self._last = -1  # step of the stage; -1 for no limit

    def afresh(self, steps: int = -1) -> State:
        """Forget all but the point, for the next stage, of so many steps at most; -1 for no limit."""
        self.alpha, self.gap, self.stopped = None, np.inf, Stop.CONVERGED
        self._last = self.steps + steps if steps >= 0 else -1
        return self

    def limit(self) -> str | None:
        """Return what ends the stage now, if anything."""
        over = 0 <= self._last <= self.steps
        return super().limit() or (Stop.steps(self._last) if over else None)
