"""An interior-point method for the dual on a matrix that is held: few, expensive steps where SMO would need millions.

SMO moves two coefficients at a time and crawls where the matrix is ill-conditioned beside the box (unscaled features, a
large C). The predictor-corrector of Mehrotra (1992) needs some thirty factorisations whatever the scaling.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mercer.points.threads import one_thread_each

_SMALL = 1000  # points of a matrix that one thread factorises in no time
_STEPS = 80
_BACK = 0.995  # of the way to the boundary
_SUMS = (np.zeros((0, 2)), np.array([[1.0, -1.0]]), np.eye(2))  # what is kept of (sum plus, sum minus), by groups
_FEASIBLE = 1e-9  # how much of a sum may be missing at the end, in units of all coefficients


def _few_threads(n: int) -> Any:
    """Keep BLAS to one thread for small matrices: on a busy machine its threads wait for one another for ever."""
    return one_thread_each() if n <= _SMALL else nullcontext()


def barrier(
    K: np.ndarray,
    linear: np.ndarray,
    width: np.ndarray,
    upper: np.ndarray,
    lower: np.ndarray,
    plus: np.ndarray,
    minus: np.ndarray,
    groups: int,
    tol: float,
    least: float = -math.inf,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return plus and minus near the optimum, in their boxes and with their sums kept; None where there is no way.

    Minimises 1/2 b'Kb + linear'b + width'(plus + minus), b = plus - minus (see `SVMDual`). There is no way where the
    matrix cannot be factorised (the kernel is none, or all its values are 0).

    Parameters
    ----------
    K, linear, width, upper, lower
        The problem.
    plus, minus
        A start with the sums that are to be kept.
    groups
        Which sums those are: none (0), that of b (1), or those of plus and of minus (2).
    tol
        The complementarity to stop at, in units of the objective.
    least
        An objective that is small enough to stop at, whatever the complementarity.

    Examples
    --------
    >>> import numpy as np
    >>> two, zero = np.ones(2), np.zeros(2)
    >>> plus, minus = barrier(np.eye(2), -two, zero, 3 * two, zero, zero, zero, 0, 1e-12)
    >>> (plus - minus).round(6)
    array([1., 1.])
    """
    K = K.astype(np.float64, copy=False)
    diagonal = np.abs(np.diagonal(K))
    largest = float(diagonal.max())
    if largest == 0:
        return None
    bounds, start = np.stack([upper, lower]), np.stack([plus, minus])
    point = _Interior(bounds, start, _SUMS[groups], room=max(1.0 / largest, float(start.max())))
    small = tol * max(1.0, float(np.abs(linear).max()))
    # Values that leave the range of numbers end the loop, by a factorisation that fails or a step that is not finite.
    with _few_threads(len(K)), np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        for number in range(_STEPS):
            b = point.coefficients
            F = K @ b + linear
            objective = 0.5 * float(b @ (F + linear)) + float(width[point.at] @ point.x)
            residual = point.residual(F, width)
            total = point.complementarity
            near = total <= tol * max(abs(objective), 1e-12) and np.abs(residual).max(initial=0.0) <= small
            if near or objective < least or not 0 < total < math.inf:
                break
            try:
                newton = _Newton(K, point, residual)
            except LinAlgError:
                if number == 0:
                    return None
                break  # as near as rounding lets it come
            predicted = newton.step(0.0)
            after = point.moved(predicted, *point.reach(predicted)).complementarity
            step = newton.step((after / total) ** 3 * total / point.constraints, predicted)
            if not all(np.isfinite(part).all() for part in step):
                break
            far = min(1.0, *(_BACK * r for r in point.reach(step, math.inf)))  # one for both: it is quadratic
            point = point.moved(step, far, far)
    return _rounded(point, diagonal, bounds, start)


class _Step(NamedTuple):
    """Changes of the coefficients, and of the multipliers of their bounds and of the sums."""

    x: np.ndarray
    low: np.ndarray
    high: np.ndarray
    mu: np.ndarray


class _Interior:
    """Coefficients strictly inside their box, those of plus before those of minus, and all multipliers.

    Coefficients whose bound is 0 are left out.
    """

    def __init__(self, bounds: np.ndarray, start: np.ndarray, rows: np.ndarray, room: float) -> None:
        self.n = bounds.shape[1]
        self.rows = rows
        self.want = rows @ start.sum(axis=1)
        self.half, self.at = np.nonzero(bounds > 0)
        self.sign = 1.0 - 2.0 * self.half
        self.bound = bounds[self.half, self.at]
        self.capped = np.isfinite(self.bound)
        self.constraints = len(self.at) + int(self.capped.sum())
        within = np.where(self.capped, self.bound, room)
        self.x = np.clip(start[self.half, self.at], 0.1 * within, 0.9 * within)
        self.low = np.ones(len(self.at))  # multipliers of x >= 0
        self.high = np.where(self.capped, 1.0, 0.0)  # of x <= bound
        self.mu = np.zeros(len(rows))  # of the sums

    def grid(self, values: np.ndarray) -> np.ndarray:
        """Return one row for plus and one for minus, with a column for every point."""
        out = np.zeros((*values.shape[:-1], 2, self.n))
        out[..., self.half, self.at] = values
        return out

    @property
    def coefficients(self) -> np.ndarray:
        """The b of every point."""
        plus, minus = self.grid(self.x)
        return plus - minus

    @property
    def slack(self) -> np.ndarray:
        """The distance to the upper bounds; 1 where there is none."""
        return np.where(self.capped, np.maximum(self.bound - self.x, 1e-16 * self.bound), 1.0)

    @property
    def complementarity(self) -> float:
        """What the bounds' multipliers say is missing; 0 at the optimum."""
        return float(self.x @ self.low + self.slack @ self.high)

    @property
    def missing(self) -> np.ndarray:
        """What the sums want."""
        return self.want - self.rows @ self.grid(self.x).sum(axis=1)

    def residual(self, F: np.ndarray, width: np.ndarray) -> np.ndarray:
        """Return the gradient of the Lagrangian in the coefficients."""
        return self.sign * F[self.at] + width[self.at] + self.mu @ self.rows[:, self.half] - self.low + self.high

    def reach(self, step: _Step, most: float = 1.0) -> tuple[float, float]:
        """Return how far the coefficients, and their multipliers, may go along a step."""
        to_zero, to_bound = _reach(self.x, step.x), _reach(self.slack[self.capped], -step.x[self.capped])
        low, high = _reach(self.low, step.low), _reach(self.high[self.capped], step.high[self.capped])
        return min(most, to_zero, to_bound), min(most, low, high)

    def moved(self, step: _Step, far: float, dual: float) -> _Interior:
        """Return the point after a part of a step in the coefficients, and another in the multipliers."""
        new = copy(self)
        new.x = np.maximum(self.x + far * step.x, 1e-300)
        new.low, new.high, new.mu = self.low + dual * step.low, self.high + dual * step.high, self.mu + dual * step.mu
        return new


def _reach(x: np.ndarray, change: np.ndarray) -> float:
    shrinking = change < 0
    return float((-x[shrinking] / change[shrinking]).min(initial=math.inf))


class _Newton:
    """The linearised conditions of optimality at a point, factorised once, for the predictor and for the corrector.

    With bounds and multipliers eliminated there remains, in the change u of b, (K + 1 / E) u = right with a positive
    diagonal E, bordered by the sums. Where a point has both halves, K u enters their equations with opposite signs: the
    sum of the two has no K, and the halves share u.
    """

    def __init__(self, K: np.ndarray, point: _Interior, residual: np.ndarray) -> None:
        self.point, self.residual = point, residual
        self.slack = point.slack
        loose = point.grid(1.0 / (point.low / point.x + point.high / self.slack))
        E = loose.sum(axis=0)
        self.active = np.flatnonzero(E > 0)
        if not self.active.size:
            raise LinAlgError("every coefficient is held by its bounds")
        loose, E = loose[:, self.active], E[self.active]
        self.share = loose / E
        self.both = loose[0] * self.share[1]
        matrix = K.copy() if len(E) == len(K) else K[np.ix_(self.active, self.active)]
        matrix.reshape(-1)[:: len(E) + 1] += 1.0 / E
        self.factor = cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)

    def step(self, center: float, first: _Step | None = None) -> _Step:
        """Return the step to complementarity `center` everywhere, with the second-order terms of a first step."""
        p = self.point
        low, high = (0.0, 0.0) if first is None else (first.x * first.low, -first.x * first.high)
        aim_low, aim_high = (center - low) / p.x, np.where(p.capped, (center - high) / self.slack, 0.0)
        x, mu = self._solve(-self.residual + aim_low - p.low - (aim_high - p.high))
        return _Step(x, aim_low - p.low * x / p.x - p.low, aim_high + p.high * x / self.slack - p.high, mu)

    def _solve(self, push: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the changes of the coefficients and of the sums' multipliers for a right-hand side."""
        p, k = self.point, len(self.point.rows)
        right = p.grid(np.concatenate([push[None], -p.rows[:, p.half]]))[:, :, self.active]
        u = cho_solve(self.factor, (self.share[0] * right[:, 0] - self.share[1] * right[:, 1]).T, check_finite=False).T
        common = self.both * (right[:, 0] + right[:, 1])
        halves = np.zeros((1 + k, 2, p.n))
        halves[:, :, self.active] = np.stack([common + self.share[0] * u, common - self.share[1] * u], axis=1)
        sums = p.rows @ halves.sum(axis=2).T
        mu = np.zeros(k)
        if k and np.isfinite(sums).all():
            mu = np.linalg.lstsq(sums[:, 1:], p.missing - sums[:, 0], rcond=None)[0]
        x = halves[:, p.half, p.at]
        return x[0] + mu @ x[1:], mu


def _rounded(
    point: _Interior, diagonal: np.ndarray, bounds: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Put coefficients that press against a bound on it, and let the freest ones restore the sums exactly."""
    if not np.isfinite(point.x).all():
        return None
    # Where the multiplier outweighs what the move itself does to the gradient: then the move is of second order.
    stiff = np.maximum(diagonal[point.at], 1.0 / np.where(point.capped, point.bound, 1.0))
    with np.errstate(over="ignore"):
        x = np.where(point.low > stiff * point.x, 0.0, point.x)
        x = np.where(point.capped & (point.high > stiff * point.slack), point.bound, x)
    parts = point.grid(np.minimum(x, point.bound))
    if len(point.rows) < 2:  # plus and minus of one point: only their difference counts
        parts -= parts.min(axis=0)
    for row, want in zip(point.rows, point.want, strict=True):
        for _ in range(4):
            parts = _spread(parts, bounds, row, want - float(row @ parts.sum(axis=1)))
    missing = np.abs(point.want - point.rows @ parts.sum(axis=1)).max(initial=0.0)
    if missing > _FEASIBLE * max(parts.sum(), start.sum()):
        return None
    return parts[0], parts[1]


def _spread(parts: np.ndarray, bounds: np.ndarray, row: np.ndarray, missing: float) -> np.ndarray:
    """Add `missing` to the row's sum, each coefficient in proportion to the room it has inside its box."""
    inside = np.minimum(parts, np.where(np.isinf(bounds), parts, bounds - parts))
    if not np.abs(row) @ inside.sum(axis=1) > 0:
        inside = np.where(row[:, None] * missing > 0, np.minimum(bounds, 1e300) - parts, parts)
    room = np.abs(row)[:, None] * np.maximum(inside, 0.0)
    total = float(room.sum())
    if missing == 0 or total == 0:
        return parts
    return np.clip(parts + row[:, None] * missing * (room / total), 0.0, bounds)
