"""The state of a dual solver: the variables, the gradient, how far the optimum can be, and where to start."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mercer import _core
from mercer.certify import relative_gap
from mercer.solvers.control import check_vector
from mercer.solvers.dual.problem import SVMDual

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
_EPS = float(np.finfo(np.float64).eps)
_DRIFT = 4e-9  # what a run may do to the sums that it keeps, in units of all coefficients


def _largest(bounds: np.ndarray) -> float:
    top = float(bounds.max())
    return top if top < math.inf else float(np.max(bounds, where=np.isfinite(bounds), initial=0.0))


def _outside(name: str, values: np.ndarray, bound: np.ndarray) -> str:
    """Return which value is not in its box, if one is not."""
    outside = (values < 0) | (values > bound)
    i = int(np.argmax(outside))
    return f"{name}[{i}] = {values[i]:g} is outside [0, {bound[i]:g}]" if outside[i] else ""


def dot(a: np.ndarray, b: np.ndarray) -> float:
    """Return the inner product, without BLAS, whose threads would compete with the core's."""
    return float(np.multiply(a, b).sum())


class Bounds(NamedTuple):
    """Both objectives, and the offsets at which they are this close."""

    primal: float
    dual: float
    plus: float  # F + width + plus is the reduced gradient of `plus`
    minus: float
    rounding: float  # what rounding can add to their difference

    @property
    def relative_gap(self) -> float:
        """The gap beyond rounding in units of the larger objective; infinite while the primal is."""
        return relative_gap(self.primal - self.dual - self.rounding, self.primal, self.dual)


class State:
    """The variables of one problem, F = K b + linear, and what follows from them.

    Without an offset (offset "none") a phantom point stands last: its kernel values are 0 and its coefficient is free,
    so that keeping the sum of all coefficients says nothing about the others.
    """

    def __init__(self, problem: SVMDual, diagonal: np.ndarray | None = None) -> None:
        self.n = len(problem)
        self.phantom = problem.offset == "none"
        self.groups = 2 if problem.offset == "split" else 1
        self.linear = self._vector("linear", problem.linear, 0.0)
        self.upper = self._vector("upper", problem.upper, math.inf)
        self.lower = self._vector("lower", problem.lower, math.inf)
        self.width = self._vector("width", problem.width, 0.0)
        self.plus = self._start("plus", problem.plus, self.upper)
        self.minus = self._start("minus", problem.minus, self.lower)
        if self.phantom:
            self.balance()
        self.gradient = self.linear.copy()
        if diagonal is None:
            diagonal = problem.gram.diag() if problem.rows is None else problem.alone().gram.diag()
        self.lengths = np.sqrt(np.abs(np.asarray(diagonal, dtype=np.float64)))  # in feature space
        self.size = float(self.lengths.max()) ** 2  # of kernel values
        self._steepest = float(np.abs(self.linear).max()) + float(self.width.max())
        self._largest = max(_largest(self.upper[: self.n]), _largest(self.lower[: self.n]))

    def _vector(self, name: str, value: object, last: float) -> np.ndarray:
        vector = check_vector(name, value, self.n)
        return np.append(vector, last) if self.phantom else vector

    def _start(self, name: str, value: np.ndarray | None, bound: np.ndarray) -> np.ndarray:
        if value is None:
            return np.zeros(self.n + self.phantom)
        start = self._vector(name, value, 0.0).copy()
        if why := _outside(name, start, bound):
            raise ValueError(f"the start is infeasible: {why}.")
        return start

    def resume(self, plus: np.ndarray, minus: np.ndarray) -> str:
        """Go on from finite values that an earlier run has left; return why not, if this problem does not allow them.

        The gradient is left to the caller: computing it again removes what rounding has left in it.
        """
        if why := _outside("plus", plus, self.upper) or _outside("minus", minus, self.lower):
            return f"holds values that no run leaves: {why}"
        kept, begun = self.sums(), (self.plus.copy(), self.minus.copy())
        self.plus[:], self.minus[:] = plus, minus
        if self.phantom:
            self.balance()
        elif np.abs(self.sums() - kept).max() > _DRIFT * float((plus + minus).sum()):
            self.plus[:], self.minus[:] = begun
            return "belongs to another problem (the coefficients have another sum: another nu)"
        return ""

    @property
    def coefficients(self) -> np.ndarray:
        """b, one number per point, without the phantom."""
        return (self.plus - self.minus)[: self.n]

    def balance(self) -> None:
        """Give the phantom what the others leave of a zero sum."""
        rest = float(self.coefficients.sum())
        self.plus[-1], self.minus[-1] = max(0.0, -rest), max(0.0, rest)

    def sums(self) -> np.ndarray:
        """Return what every step keeps: the sum of all coefficients, or those of plus and of minus."""
        plus, minus = float(self.plus.sum()), float(self.minus.sum())
        return np.array([plus - minus] if self.groups == 1 else [plus, minus])

    @property
    def arrays(self) -> Arrays:
        """What the core's functions take first."""
        return self.gradient, self.plus, self.minus, self.upper, self.lower, self.width

    @property
    def free(self) -> np.ndarray:
        """Which points have a coefficient strictly between its bounds."""
        inside = ((self.plus > 0) & (self.plus < self.upper)) | ((self.minus > 0) & (self.minus < self.lower))
        return inside[: self.n]

    @property
    def dual(self) -> float:
        """The dual objective, to be maximised."""
        b, total = self.plus - self.minus, self.plus + self.minus
        return -(0.5 * dot(b, self.gradient + self.linear) + dot(self.width, total))

    def slopes(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the slopes of the objective along growing and shrinking b, for each group (as in the core)."""
        n, inf = self.n, math.inf
        F, w = self.gradient[:n], self.width[:n]
        p, m, up, low = self.plus[:n], self.minus[:n], self.upper[:n], self.lower[:n]
        if self.groups == 1:
            return [
                (
                    F + np.where(m > 0, -w, np.where(p < up, w, inf)),
                    F + np.where(p > 0, w, np.where(m < low, -w, -inf)),
                )
            ]
        return [
            (F + np.where(p < up, w, inf), F + np.where(p > 0, w, -inf)),
            (F + np.where(m > 0, -w, inf), F + np.where(m < low, -w, -inf)),
        ]

    def bounds(self) -> Bounds:
        """Return the objectives at the offsets that bring them closest."""
        b = self.plus - self.minus
        dual = self.dual
        # A purely quadratic objective may have the optimum 0, reached only in the limit: stop where w is nothing.
        units = 2.0 if self._steepest > 0 else 64.0
        total = self.plus + self.minus
        length = dot(np.abs(b[: self.n]), self.lengths)
        rounding = units * _EPS * (length**2 + (float(total[: self.n].sum()) + self._largest) * self._steepest)
        if self.phantom:
            plus = minus = 0.0
            gap, n = 0.0, self.n
            for part, bound, sign in ((self.plus, self.upper, 1.0), (self.minus, self.lower, -1.0)):
                r = (sign * self.gradient + self.width)[:n]
                gap += float(np.where(r >= 0, part[:n] * r, (part - bound)[:n] * r).sum())
        else:
            plus, minus, gap = _core.offsets(*self.arrays, self.groups)
        return Bounds(dual + gap, dual, plus, minus, rounding)

    @property
    def floor(self) -> float:
        """What rounding does to the gradient: violations below it mean nothing."""
        length = dot(np.abs(self.coefficients), self.lengths)
        return 2 * _EPS * (math.sqrt(self.size) * length + self._steepest)

    def kkt(self, bounds: Bounds) -> float:
        """Return the worst violation of complementary slackness, in units of f."""
        n, worst = self.n, 0.0
        halves = ((self.plus, self.upper, 1.0, bounds.plus), (self.minus, self.lower, -1.0, bounds.minus))
        for part, bound, sign, offset in halves:
            slope = (sign * self.gradient + self.width)[:n] + offset
            # Growing must not pay below the upper bound, shrinking not above 0.
            pays = np.maximum(np.where(part[:n] < bound[:n], -slope, 0.0), np.where(part[:n] > 0, slope, 0.0))
            worst = max(worst, float(pays.max()))
        return worst


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
