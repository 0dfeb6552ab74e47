"""Where a dual solver stands: the variables, the gradient, and how far the optimum can be."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mercer import _core
from mercer.solvers.control import check_vector
from mercer.solvers.dual import SVMDual


_EPS = float(np.finfo(np.float64).eps)


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
        gap, size = self.primal - self.dual - self.rounding, max(abs(self.primal), abs(self.dual))
        if gap <= 0:
            return 0.0
        return gap / size if size < math.inf else math.inf


class State:
    """The variables of one problem, F = K b + linear, and what follows from them.

    Without an offset (offset "none") a phantom point stands last: its kernel values are 0 and its coefficient is free,
    so that keeping the sum of all coefficients says nothing about the others.
    """

    def __init__(self, problem: SVMDual) -> None:
        n = self.n = len(problem)
        self.phantom = problem.offset == "none"
        self.groups = 2 if problem.offset == "split" else 1
        free = [math.inf] if self.phantom else []
        zero = [0.0] if self.phantom else []

        def vector(name: str, value: object, last: list[float]) -> np.ndarray:
            return np.concatenate([check_vector(name, value, n), last])

        self.linear = vector("linear", problem.linear, zero)
        self.upper = vector("upper", problem.upper, free)
        self.lower = vector("lower", problem.lower, free)
        self.width = vector("width", problem.width, zero)
        self.plus = vector("plus", 0.0 if problem.plus is None else problem.plus, zero)
        self.minus = vector("minus", 0.0 if problem.minus is None else problem.minus, zero)
        for part, bound, name in ((self.plus, self.upper, "plus"), (self.minus, self.lower, "minus")):
            if (part < 0).any() or (part > bound).any():
                i = int(np.argmax((part < 0) | (part > bound)))
                raise ValueError(f"the start is infeasible: {name}[{i}] = {part[i]:g} is outside [0, {bound[i]:g}].")
        if self.phantom:
            self.balance()
        self.gradient = self.linear.copy()
        self.lengths = np.sqrt(np.abs(np.asarray(problem.gram.diag(), dtype=np.float64)))  # in feature space
        self.size = float(self.lengths.max()) ** 2  # of kernel values

    @property
    def coefficients(self) -> np.ndarray:
        """b, one number per point, without the phantom."""
        return (self.plus - self.minus)[: self.n]

    def balance(self) -> None:
        """Give the phantom what the others leave of a zero sum."""
        rest = float(self.coefficients.sum())
        self.plus[-1], self.minus[-1] = max(0.0, -rest), max(0.0, rest)

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What the core's functions take first."""
        return self.gradient, self.plus, self.minus, self.upper, self.lower, self.width

    @property
    def free(self) -> np.ndarray:
        """Which points have a coefficient strictly between its bounds."""
        inside = ((self.plus > 0) & (self.plus < self.upper)) | ((self.minus > 0) & (self.minus < self.lower))
        return inside[: self.n]

    def bounds(self) -> Bounds:
        """Return the objectives at the offsets that bring them closest."""
        b = self.plus - self.minus
        dual = -float(0.5 * b @ (self.gradient + self.linear) + self.width @ (self.plus + self.minus))
        # A purely quadratic objective may have the optimum 0, reached only in the limit: stop where w is nothing.
        units = 2.0 if self.linear.any() else 64.0
        length = float((self.plus + self.minus)[: self.n] @ self.lengths)
        kink = max(float(np.max(a, where=np.isfinite(a), initial=0.0)) for a in (self.upper, self.lower))
        rounding = units * _EPS * (length**2 + (np.abs(b).sum() + kink) * float(np.abs(self.linear).max()))
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
        length = float((self.plus + self.minus)[: self.n] @ self.lengths)
        return 2 * _EPS * (math.sqrt(self.size) * length + float(np.abs(self.linear).max()))

    def kkt(self, bounds: Bounds) -> float:
        """Return the worst violation of complementary slackness, in units of f."""
        r, s = self.gradient + self.width + bounds.plus, self.width - self.gradient + bounds.minus
        n = self.n
        worst = 0.0
        for part, bound, slope in ((self.plus, self.upper, r), (self.minus, self.lower, s)):
            open_up, open_down = part[:n] < bound[:n], part[:n] > 0
            worst = max(worst, float(np.max(-slope[:n], where=open_up, initial=0.0)))
            worst = max(worst, float(np.max(slope[:n], where=open_down, initial=0.0)))
        return worst
