"""The kernel SVM without offset, by plugging f = sum a_i k(x_i, .) into the primal (M9)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from mercer.certify import Stop, relative_gap
from mercer.gram import Gram
from mercer.solvers.control import Control, check_vector
from mercer.solvers.dual.problem import Solution
from mercer.solvers.run import Run

_SMOOTHING_FACTOR = 0.1  # from one stage to the next
_LEAST_SMOOTHING = 1e-14  # in units of the margin: below, rounding decides on which side of the kink a point is
_STAGE_STEPS = 100  # Newton steps at most with one smoothing
_IDLE_STAGES = 3  # in a row without progress, after which only rounding is left


def plug_in(gram: Gram, y: Any, C: Any = 1.0, control: Control | None = None) -> Solution:
    r"""Minimise the primal over the coefficients of the representer theorem.

    .. math:: \min_a \ \tfrac12 a'Ka + \sum_i C_i \max(0, 1 - y_i (Ka)_i)

    The hinge is replaced by one with a parabola of half-width h around its kink. Newton's method with an exact line
    search minimises it in finitely many steps (Chapelle 2007, Training a support vector machine in the primal); h then
    shrinks. The minimiser for any h has 0 <= y_i a_i <= C_i: it is a point of the dual's box. So the gap is known at
    each stage; it is at most h / 4 times the sum of the C_i of the points on the parabola.

    Parameters
    ----------
    gram
        The kernel matrix of the training points (square).
    y
        Labels, -1 or +1.
    C
        The price of a unit of slack: one positive number, or one per point.
    control
        When to stop; `tol` is the relative duality gap.

    Returns
    -------
    Solution
        Without offset; `plus` are the y_i a_i of the positive points, `minus` those of the negative ones.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, Gram
    >>> X = np.array([[0.0], [1.0], [3.0], [4.0]])
    >>> solution = plug_in(Gram(RBF(scale=1.0), X), [1, 1, -1, -1], C=10.0)
    >>> (solution.values > 0).tolist(), solution.certificate.converged
    ([True, True, False, False], True)
    """
    control = control or Control()
    n = gram.shape[0]
    if not gram.symmetric:
        raise ValueError(
            f"plug_in needs the square kernel matrix of the training points; this one is {n} x {gram.shape[1]}."
        )
    y = check_vector("y", y, n)
    if not (np.abs(y) == 1).all():
        raise ValueError(f"y must hold the labels -1 and +1; it contains {y[np.abs(y) != 1][0]:g}.")
    C = check_vector("C", C, n)
    if not ((C > 0) & np.isfinite(C)).all():
        raise ValueError(f"C must be positive and finite; it contains {C[~((C > 0) & np.isfinite(C))][0]:g}.")
    return _Descent(gram, y, C, control).run()


class _Descent:
    """The state of the run: coefficients a and their product with K."""

    def __init__(self, gram: Gram, y: np.ndarray, C: np.ndarray, control: Control) -> None:
        self.gram, self.y, self.C, self.progress = gram, y, C, Run(control)
        self.a = np.zeros(len(y))
        self.Ka = np.zeros(len(y))
        self.last = self.a  # the last minimiser of a quadratic piece
        self.best = self._claim(self.a)

    def run(self) -> Solution:
        """Shrink the smoothing until the gap is small enough."""
        run, h, idle = self.progress, 0.5, 0
        stopped: str | None = None
        while stopped is None:
            stopped = self._newton(h)
            idle = 0 if self._improve(h) else idle + 1
            alpha, primal, dual = self.best
            gap = relative_gap(primal - dual, primal, dual)
            run.note(primal, dual, gap, int(np.count_nonzero(alpha)))
            if gap <= run.control.tol:
                stopped = Stop.CONVERGED
            elif stopped is None:
                stopped = run.limit()
            if stopped is None and (h < _LEAST_SMOOTHING or idle == _IDLE_STAGES):
                stopped = "the gap is at the level of rounding"
            h *= _SMOOTHING_FACTOR
        return self._solution(stopped)

    def _newton(self, h: float) -> str | None:
        """Minimise with smoothing h from where we are; return which limit stopped it, if one did."""
        width = 2.0 * h / self.C
        seen: tuple[bytes, bytes] | None = None
        for _ in range(_STAGE_STEPS):
            if limit := self.progress.limit():
                return limit
            margin = self.y * self.Ka
            inside = margin < 1.0 - h
            curved = np.flatnonzero(np.abs(1.0 - margin) <= h)
            pieces = (inside.tobytes(), curved.tobytes())
            if pieces == seen:  # the last step solved the quadratic of exactly these pieces
                break
            target = np.where(inside, self.C * self.y, 0.0)
            known = self.gram.matvec(target) if inside.any() else np.zeros(len(self.y))
            if len(curved):
                target[curved] = self._solve(curved, width[curved], (1.0 + h) * self.y[curved] - known[curved])
            self.last = target
            d = target - self.a
            Kd = np.asarray(self.gram.matvec(target), dtype=np.float64) - self.Ka
            t = self._line(d, Kd, h)
            if t == 0.0:
                break
            self.a += t * d
            self.Ka += t * Kd
            self.progress.steps += 1
            seen = pieces if t == 1.0 else None
        return None

    def _solve(self, curved: np.ndarray, ridge: np.ndarray, right: np.ndarray) -> np.ndarray:
        m = len(curved)
        self.gram.budget.require(
            16 * m * m, f"the Newton system of {m} points on the margin", "raise the budget or use the dual solver."
        )
        system = np.asarray(self.gram.block(curved, curved), dtype=np.float64)
        system[np.diag_indices(m)] += ridge
        lift = np.finfo(np.float64).eps * np.trace(system)
        for _ in range(20):
            try:
                return linalg.cho_solve(linalg.cho_factor(system, check_finite=False), right, check_finite=False)
            except linalg.LinAlgError:  # singular to rounding: duplicates, or a kernel with few features
                system[np.diag_indices(m)] += lift
                lift *= 10.0
        raise linalg.LinAlgError(
            f"the kernel matrix of {self.gram.kernel!r} is far from positive semidefinite; the primal is then "
            "not convex. mercer.gram.repair makes the nearest kernel matrix."
        )

    def _line(self, d: np.ndarray, Kd: np.ndarray, h: float) -> float:
        """Return the t in [0, 1] that minimises at a + t d, where the slope is increasing and piecewise linear."""
        flat, curve = float(self.a @ Kd), float(d @ Kd)
        margin, change = self.y * self.Ka, self.y * Kd

        def slope(t: float) -> float:
            s = np.clip((1.0 + h - margin - t * change) / (2.0 * h), 0.0, 1.0)
            return flat + t * curve - float((self.C * s) @ change)

        if slope(0.0) >= 0.0:
            return 0.0
        if slope(1.0) <= 1e-12 * abs(slope(0.0)):
            return 1.0
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if slope(middle) < 0.0 else (low, middle)
        return 0.5 * (low + high)

    def _improve(self, h: float) -> bool:
        """Look for a better claim; return whether there was one.

        Where K is singular many coefficients make the same f, and only some lie in the dual's box: besides the current
        ones, those that the slope of the loss names and those of the last Newton system are tried.
        """
        slope = self.C * np.clip((1.0 + h - self.y * self.Ka) / (2.0 * h), 0.0, 1.0)
        before = self.best[1] - self.best[2]
        for a in (self.a, self.last, self.y * slope):
            claim = self._claim(a)
            if claim[1] - claim[2] < self.best[1] - self.best[2]:
                self.best = claim
        return self.best[1] - self.best[2] < before

    def _claim(self, a: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Return coefficients cut to the dual's box, the primal at them and the dual at them."""
        alpha = np.clip(self.y * a, 0.0, self.C)
        b = self.y * alpha
        Kb = np.asarray(self.gram.matvec(b), dtype=np.float64)
        quadratic = 0.5 * float(b @ Kb)
        primal = quadratic + float(self.C @ np.maximum(0.0, 1.0 - self.y * Kb))
        return alpha, primal, float(alpha.sum()) - quadratic

    def _solution(self, stopped: str) -> Solution:
        alpha, primal, dual = self.best
        values = np.asarray(self.gram.matvec(self.y * alpha), dtype=np.float64)
        r = self.y * values - 1.0
        tiny = 1e-12 * self.C
        kkt = np.maximum(np.where(alpha > tiny, r, 0.0), np.where(alpha < self.C - tiny, -r, 0.0))
        solver, precision = "Newton on the primal with a smoothed hinge", str(self.gram.dtype)
        certificate = self.progress.certificate(
            primal, dual, float(kkt.max(initial=0.0)), solver, stopped, precision=precision
        )
        plus, minus = np.where(self.y > 0, alpha, 0.0), np.where(self.y < 0, alpha, 0.0)
        return Solution(plus, minus, 0.0, values, certificate, history=self.progress.history)
