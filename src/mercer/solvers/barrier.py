"""An interior-point method for the dual on a matrix that is held: few, expensive steps where SMO would need millions.

SMO moves two coefficients at a time and crawls where the matrix is ill-conditioned beside the box (unscaled features, a
large C). Mehrotra's predictor-corrector needs some thirty factorisations whatever the scaling.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

_STEPS = 80
_BACK = 0.995  # of the way to the boundary


class _Side:
    """One half of the coefficients (plus or minus) with its bounds and their multipliers."""

    def __init__(self, sign: float, start: np.ndarray, bound: np.ndarray, scale: float) -> None:
        self.sign = sign
        self.at = np.flatnonzero(bound > 0)
        self.bound = bound[self.at]
        self.capped = np.isfinite(self.bound)
        room = np.where(self.capped, self.bound, scale)
        self.x = np.clip(start[self.at], 0.1 * room, 0.9 * room)
        self.low = np.ones(len(self.at))  # multiplier of x >= 0
        self.high = np.where(self.capped, 1.0, 0.0)  # multiplier of x <= bound
        self.dx = self.dlow = self.dhigh = np.zeros(0)

    @property
    def slack(self) -> np.ndarray:
        return np.where(self.capped, np.maximum(self.bound - self.x, 1e-16 * self.bound), 1.0)

    def weight(self) -> np.ndarray:
        return self.low / self.x + np.where(self.capped, self.high / self.slack, 0.0)

    def complementarity(self) -> tuple[float, int]:
        total = float(self.x @ self.low) + float(self.slack[self.capped] @ self.high[self.capped])
        return total, len(self.x) + int(self.capped.sum())

    def longest(self) -> tuple[float, float]:
        """How far the coefficients, and the multipliers, may go."""
        far = [_reach(self.x, self.dx), _reach(self.slack[self.capped], -self.dx[self.capped])]
        dual = [_reach(self.low, self.dlow), _reach(self.high[self.capped], self.dhigh[self.capped])]
        return min(far), min(dual)


def _reach(x: np.ndarray, dx: np.ndarray) -> float:
    shrinking = dx < 0
    return float((-x[shrinking] / dx[shrinking]).min(initial=math.inf))


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
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return plus and minus near the optimum; None where the matrix cannot be factorised (no kernel, then).

    The Newton system in the change u of b is (K + E) u = rhs with a positive diagonal E, bordered by the sums that are
    kept as at the start: that of b (groups 1), those of plus and minus (2), or none (0).
    """
    n = len(K)
    K = K.astype(np.float64, copy=False)
    size = float(np.abs(np.diagonal(K)).max())
    if size == 0:
        return None
    scale = max(1.0 / size, float(plus.max()), float(minus.max()))
    sides = [_Side(1.0, plus, upper, scale), _Side(-1.0, minus, lower, scale)]
    # Which sums are kept: that of b, or those of plus and minus.
    rows = ([], [(1.0, -1.0)], [(1.0, 0.0), (0.0, 1.0)])[groups]
    want = [r[0] * float(plus.sum()) + r[1] * float(minus.sum()) for r in rows]
    mu = np.zeros(len(rows))
    target = 1e-12
    for step_number in range(_STEPS):
        b = np.zeros(n)
        for side in sides:
            b[side.at] += side.sign * side.x
        F = K @ b + linear
        total, count = (sum(values) for values in zip(*(side.complementarity() for side in sides), strict=True))
        objective = 0.5 * float(b @ (F + linear)) + sum(float(width[s.at] @ s.x) for s in sides)
        residual = [
            s.sign * F[s.at] + width[s.at] + sum(m * r[k] for m, r in zip(mu, rows, strict=True)) - s.low + s.high
            for k, s in enumerate(sides)
        ]
        missing = np.array(
            [w - sum(r[k] * float(s.x.sum()) for k, s in enumerate(sides)) for w, r in zip(want, rows, strict=True)]
        )
        worst = max((float(np.abs(r).max(initial=0.0)) for r in residual), default=0.0)
        if total <= tol * max(abs(objective), target) and worst <= tol * max(1.0, float(np.abs(linear).max())):
            break
        # Of a point with both halves, K u enters each half's equation; their sum has no K, hence these shares.
        loose = np.zeros((2, n))
        for k, side in enumerate(sides):
            loose[k, side.at] = 1 / side.weight()
        E = loose.sum(axis=0)
        active = np.flatnonzero(E > 0)
        share = loose[:, active] / E[active]
        both = loose[0, active] * share[1]
        try:
            factor = cho_factor(K[np.ix_(active, active)] + np.diag(1 / E[active]), lower=True, check_finite=False)
        except LinAlgError:
            if step_number == 0:
                return None
            break  # as near as rounding lets it come

        def direction(push: list[np.ndarray], missing: np.ndarray) -> None:
            """Set the changes of both halves, and of the sums' multipliers; push is the right-hand side of each half."""
            right = np.zeros((1 + len(rows), 2, n))
            for k, side in enumerate(sides):
                right[0, k, side.at] = push[k]
                for i, row in enumerate(rows):
                    right[i + 1, k, side.at] = -row[k]
            right = right[:, :, active]
            u = cho_solve(factor, (share[0] * right[:, 0] - share[1] * right[:, 1]).T, check_finite=False).T
            common = both * (right[:, 0] + right[:, 1])
            halves = np.zeros((1 + len(rows), 2, n))
            halves[:, 0, active] = share[0] * u + common
            halves[:, 1, active] = common - share[1] * u
            change = np.zeros(0)
            if rows:
                sums = np.array([[row[0] * h[0].sum() + row[1] * h[1].sum() for h in halves] for row in rows])
                change = np.linalg.lstsq(sums[:, 1:], missing - sums[:, 0], rcond=None)[0]
            for k, side in enumerate(sides):
                side.dx = halves[0, k, side.at] + (change @ halves[1:, k, side.at] if rows else 0.0)
            direction.mu = change  # type: ignore[attr-defined]

        def complete(center: float, second: bool) -> None:
            """Predictor (center 0) or corrector: the multipliers' changes follow from those of the coefficients."""
            extra = [(s.dx * s.dlow, -s.dx * s.dhigh) if second else (0.0, 0.0) for s in sides]
            push = [
                -r + (center - e[0]) / s.x - s.low - np.where(s.capped, (center - e[1]) / s.slack - s.high, 0.0)
                for r, s, e in zip(residual, sides, extra, strict=True)
            ]
            direction(push, missing)
            for s, e in zip(sides, extra, strict=True):
                s.dlow = (center - e[0] - s.low * s.dx) / s.x - s.low
                s.dhigh = np.where(s.capped, (center - e[1] + s.high * s.dx) / s.slack - s.high, 0.0)

        complete(0.0, False)
        far, dual = (min(1.0, *reach) for reach in zip(*(s.longest() for s in sides), strict=True))
        after = sum(
            float((s.x + far * s.dx) @ (s.low + dual * s.dlow))
            + float((s.slack - far * s.dx)[s.capped] @ (s.high + dual * s.dhigh)[s.capped])
            for s in sides
        )
        center = (after / total) ** 3 * total / count
        complete(center, True)
        far, dual = (min(1.0, *(_BACK * r for r in reach)) for reach in zip(*(s.longest() for s in sides), strict=True))
        step = min(far, dual)  # one length for both: the problem is quadratic
        if not (np.isfinite(direction.mu).all() and all(np.isfinite(s.dx).all() for s in sides)):  # type: ignore[attr-defined]
            break
        for s in sides:
            s.x = np.maximum(s.x + step * s.dx, 1e-300)
            s.low = s.low + step * s.dlow
            s.high = np.where(s.capped, s.high + step * s.dhigh, 0.0)
        mu = mu + step * direction.mu  # type: ignore[attr-defined]
    return _rounded(sides, n, upper, lower, rows, want)


def _rounded(
    sides: list[_Side], n: int, upper: np.ndarray, lower: np.ndarray, rows: list[tuple[float, float]], want: list[float]
) -> tuple[np.ndarray, np.ndarray]:
    """Put coefficients that press against a bound on it, and let the freest ones restore the sums exactly."""
    parts = [np.zeros(n), np.zeros(n)]
    bounds = (upper, lower)
    for part, s in zip(parts, sides, strict=True):
        x = np.where(s.low > s.x / np.where(s.capped, s.bound, 1.0), 0.0, s.x)
        part[s.at] = np.where(s.capped & (s.high > s.slack / np.where(s.capped, s.bound, 1.0)), s.bound, x)
    if len(rows) < 2:  # plus and minus of one point: only their difference counts
        common = np.minimum(*parts)
        for part in parts:
            part -= common
    for r, w in zip(rows, want, strict=True):
        for _ in range(4):
            missing = w - r[0] * float(parts[0].sum()) - r[1] * float(parts[1].sum())
            if missing == 0:
                break
            _spread(parts, bounds, r, missing)
    return parts[0], parts[1]


def _spread(parts: list[np.ndarray], bounds: tuple[np.ndarray, ...], row: tuple[float, float], missing: float) -> None:
    """Add `missing` to the row's sum, each coefficient in proportion to the room it has inside its box."""
    rooms = []
    for k in (0, 1):
        inside = np.minimum(parts[k], np.where(np.isinf(bounds[k]), parts[k], bounds[k] - parts[k]))
        rooms.append(abs(row[k]) * np.maximum(inside, 0.0))
    total = float(rooms[0].sum() + rooms[1].sum())
    if total == 0:
        rooms = []
        for k in (0, 1):
            grow = row[k] * missing > 0
            rooms.append(abs(row[k]) * (np.minimum(bounds[k], 1e300) - parts[k] if grow else parts[k]))
        total = float(rooms[0].sum() + rooms[1].sum())
        if total == 0:
            return
    for k in (0, 1):
        if row[k]:
            parts[k][:] = np.clip(parts[k] + row[k] * missing * rooms[k] / total, 0.0, bounds[k])
