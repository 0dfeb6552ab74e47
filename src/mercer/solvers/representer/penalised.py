"""Any increasing penalty on the norm, by a search over the strength of the squared-norm problem with its minimiser."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.certify import Stop, relative_gap
from mercer.machine.lazy import cached_property
from mercer.solvers.representer.problem import EPS, Point
from mercer.solvers.run import Run

_MOST_SOLVES = 80  # squared-norm problems of one search
_STALE_SOLVES = 5  # in a row on one side of the root, after which the other end of the bracket is dropped
_STRENGTH_RANGE = 1e14  # factor by which strengths may differ from the first one
_ZERO_LOSS = 1e-10  # in units of the losses at f = 0, below which they count as 0
_SCANNED_STRENGTHS = 25  # for a penalty that is not convex


class Search:
    r"""Find the strength whose squared norm has the same minimiser as a penalty R.

    The minimiser :math:`f_\lambda` of the losses plus :math:`\lambda |f|^2 / 2` has the norm :math:`t(\lambda)`. As
    :math:`\lambda` grows, :math:`t(\lambda)` falls and :math:`\lambda t(\lambda)` grows. :math:`f_\lambda` minimises
    the losses plus R where

    .. math:: \lambda t(\lambda) = R'(t(\lambda)).

    For a convex R there is one root. Its conjugate gives the gap: with s the norm of :math:`\sum u_i k(x_i, .)`
    for the dual point u, what R adds to it is R(t) + R*(s) - s t.

    Parameters
    ----------
    penalty
        R: `value(t)`, `derivative(t)`, perhaps `conjugate(s)`.
    minimise
        From a strength and a relative gap to a point.
    tol
        The relative gap to reach.
    progress
        Limits and history.
    zero
        From a point to the best one with f = 0.
    first
        The strength to begin with.
    """

    def __init__(
        self,
        penalty: Any,
        minimise: Callable[[float, float], Point],
        tol: float,
        progress: Run,
        zero: Callable[[Point], Point],
        first: float | None = None,
    ) -> None:
        self.penalty, self._minimise, self.tol = penalty, minimise, tol
        self.progress, self.zero, self.first = progress, zero, first
        self.radius = getattr(penalty, "radius", None)
        self.solves = 0
        self._first_loss: float | None = None
        self._inner = 0.1 * tol
        self.best: tuple[Point, float, float, float] | None = None  # point, primal, dual, rounding

    def run(self) -> tuple[Point, float, float, float, str]:
        """Return the point, primal, dual, their rounding, and what the certificate should say."""
        start, first = self._guess(), self.first
        if first is not None and start / _STRENGTH_RANGE <= first <= start * _STRENGTH_RANGE:
            start = first
        if not self.convex:
            return self._scan(start)
        stopped = self._bracket(start)
        assert self.best is not None
        point, primal, dual, rounding = self.best
        reached = Stop.CONVERGED if self._good else stopped or point.stopped
        if not self._good and reached == Stop.CONVERGED:
            reached = "the search over the strength has ended"
        text = f"; strength {point.strength:.3g} of the equivalent squared norm, {self.solves} solves"
        if self.radius is not None and math.sqrt(max(point.square, 0.0)) < (1 - 1e-3) * self.radius:
            text += "; the ball does not bind"
        elif point.square == 0:
            text = f"; f = 0 is the minimiser, {self.solves} solves"
        return replace(point, stopped=reached), primal, dual, rounding, text

    def _slope(self, t: float) -> float:
        with np.errstate(all="ignore"):
            return float(self.penalty.derivative(np.float64(t)))

    def _value(self, t: float) -> float:
        with np.errstate(all="ignore"):
            return float(self.penalty.value(np.float64(t)))

    def _guess(self) -> float:
        slope = self._slope(1.0)
        return slope if 0 < slope < math.inf else 1.0

    @cached_property
    def convex(self) -> bool:
        """Whether R is convex: by its own word, else by its derivative, which must not fall on a grid."""
        said = getattr(self.penalty, "convex", None)
        if said is not None:
            return bool(said)
        if hasattr(self.penalty, "conjugate"):
            return True
        slopes = np.array([self._slope(t) for t in np.geomspace(1e-8, 1e8, 161)])
        if (slopes < 0).any() or np.isnan(slopes).any():
            raise ValueError(
                f"the penalty {self.penalty!r} must increase with the norm; its derivative is "
                f"{slopes[(slopes < 0) | np.isnan(slopes)][0]:g} somewhere."
            )
        return bool((np.diff(slopes) >= -1e-9 * np.abs(slopes[1:])).all())

    # -- one strength -----------------------------------------------------------------------------------

    def _try(self, strength: float) -> tuple[Point, float, bool]:
        """Solve for a strength; return the point, the log of strength t / R'(t), and whether the search may end."""
        point = self._minimise(strength, self._inner)
        self.solves += 1
        t = math.sqrt(max(point.square, 0.0))
        self._judge(point, point)
        if self.radius is None and strength * t < self._slope(0.0):  # the pull on f may be too weak to lift it off 0
            self._judge(point, self.zero(point))
        if self.radius is not None:
            excess = math.log(self.radius / t) if t > 0 else math.inf
        else:
            slope = self._slope(t)
            excess = math.log(strength * t / slope) if t > 0 and 0 < slope < math.inf else math.inf
            if slope == math.inf:
                excess = -math.inf
            elif t == 0:
                excess = -math.inf if slope > 0 else math.inf
        limit = self.progress.limit() is not None or point.stopped == Stop.INTERRUPTED
        if limit and self.best is None:  # outside of the ball, but all there is
            self.best = (point, math.inf, -math.inf, 0.0)
        return point, excess, self._good or limit

    @property
    def _good(self) -> bool:
        """Whether the best point is good enough."""
        return self.best is not None and self._near(*self.best[1:])

    def _near(self, primal: float, dual: float, rounding: float) -> bool:
        return relative_gap(primal - dual - rounding, primal, dual) <= self.tol

    def _judge(self, point: Point, at: Point) -> None:
        """Keep a point, itself or f = 0, if its gap for R beside the dual point of the first is the smallest so far."""
        s, t = math.sqrt(max(point.pull, 0.0)), math.sqrt(max(at.square, 0.0))
        if self.radius is not None and t > self.radius:
            return
        dual = -point.conjugates - self._conjugate(s)
        primal = at.loss + self._value(t)
        rounding = point.rounding + 8.0 * EPS * (abs(at.loss) + point.strength * t * t + (s * t if t else 0.0))
        zero = at is not point and self._near(primal, dual, rounding)
        if zero or self.best is None or not primal - dual >= self.best[1] - self.best[2]:
            self.best = (at, primal, dual, rounding)

    def _conjugate(self, s: float) -> float:
        """R*(s), by its own formula or where R' passes s."""
        if hasattr(self.penalty, "conjugate"):
            return float(self.penalty.conjugate(s))
        low, high = 0.0, 1.0
        while self._slope(high) < s:
            low, high = high, 2.0 * high
            if high > 1e300:
                return math.inf
        while self._slope(low) > s and low > 0:
            low *= 0.5
        for _ in range(200):
            middle = 0.5 * (low + high)
            if middle in (low, high):
                break
            low, high = (middle, high) if self._slope(middle) < s else (low, middle)
        return max(s * t - self._value(t) for t in (0.0, low, high))

    # -- the root ---------------------------------------------------------------------------------------

    def _bracket(self, start: float) -> str | None:
        """Go to where strength t - R'(t) changes sign, then close in on it; return what ended it early."""
        x = math.log(start)
        low = high = None
        at_low = at_high = 0.0
        step = 1.5
        # Only points with a feasible dual (a norm) or inside of the ball count: aim at that side, by a part of tol.
        aim = 0.05 * self.tol if self.radius is not None else -0.05 * self.tol
        side = 0
        for _ in range(_MOST_SOLVES):
            point, excess, done = self._try(math.exp(x))
            if done:
                return self.progress.limit()
            if self._first_loss is None:
                self._first_loss = self.zero(point).loss
            if (
                self.radius is not None
                and excess > 0
                and point.loss <= _ZERO_LOSS * self._first_loss
                and self.best is not None
            ):
                return (
                    f"the ball does not bind, and the losses can come as close to their bound as one likes: they are "
                    f"{point.loss / self._first_loss:.0e} of what they are at f = 0"
                )
            value = excess - aim
            if value < 0:
                low, at_low = x, value
                side = side - 1 if side < 0 else -1
            else:
                high, at_high = x, value
                side = side + 1 if side > 0 else 1
            if side >= _STALE_SOLVES:
                low = None  # it was computed with less precise norms
            elif side <= -_STALE_SOLVES:
                high = None
            if low is None or high is None:
                if abs(x - math.log(start)) > math.log(_STRENGTH_RANGE):
                    return None  # the root lies beyond all strengths: f = 0, or a penalty that does nothing
                jump = max(min(2.0 * abs(value), 3.0), 1e-9)
                step = max(jump, 1.6 * step if 2 < abs(side) < _STALE_SOLVES or abs(side) > _STALE_SOLVES else jump)
                x = x + step if value < 0 else x - step
                continue
            if high - low <= 4.0 * EPS * max(1.0, abs(x)):
                break
            # Norms are known to the root of the gap; they must be known better than the strengths differ.
            self._inner = min(self._inner, 0.1 * self.tol * max(high - low, 1e-4) ** 2)
            x = 0.5 * (low + high)
            if math.isfinite(at_low) and math.isfinite(at_high):
                weight_low = at_low * (0.5 ** (side - 1) if side > 1 else 1.0)  # Illinois: the idle end counts less
                weight_high = at_high * (0.5 ** (-side - 1) if side < -1 else 1.0)
                secant = low - weight_low * (high - low) / (weight_high - weight_low)
                margin = 1e-3 * (high - low)
                x = min(max(secant, low + margin), high - margin)
        return None

    # -- penalties that are not convex ------------------------------------------------------------------

    def _scan(self, start: float) -> tuple[Point, float, float, float, str]:
        """Try strengths over many orders of magnitude, then close in on the best."""
        tried: list[tuple[float, float, Point]] = []

        def objective(x: float) -> float:
            point = self._minimise(math.exp(x), 0.1 * self.tol)
            self.solves += 1
            value = point.loss + self._value(math.sqrt(max(point.square, 0.0)))
            tried.append((x, value, point))
            return value

        middle = math.log(start)
        for x in middle + np.linspace(math.log(1e6), -math.log(1e8), _SCANNED_STRENGTHS):
            objective(float(x))
            if self.progress.limit() is not None:
                break
        tried.sort(key=lambda row: row[0])
        at = min(range(len(tried)), key=lambda i: tried[i][1])
        low, high = tried[max(at - 1, 0)][0], tried[min(at + 1, len(tried) - 1)][0]
        golden = 0.5 * (math.sqrt(5.0) - 1.0)
        x, z = high - golden * (high - low), low + golden * (high - low)
        if self.progress.limit() is None and low < high:
            fx, fz = objective(x), objective(z)
            for _ in range(30):
                if high - low < 1e-4 or self.progress.limit() is not None:
                    break
                if fx <= fz:
                    high, z, fz = z, x, fx
                    x = high - golden * (high - low)
                    fx = objective(x)
                else:
                    low, x, fx = x, z, fz
                    z = low + golden * (high - low)
                    fz = objective(z)
        _, value, point = min(tried, key=lambda row: row[1])
        none = self.zero(point)
        at_zero = none.loss + self._value(0.0)
        gap = point.gap
        if at_zero <= value:
            point, value = none, at_zero
        text = (
            f"; the best of {self.solves} strengths, {point.strength:.3g}, and the gap is that of its squared-norm "
            "problem"
        )
        return point, value, value - gap, point.rounding, text
