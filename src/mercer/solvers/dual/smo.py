"""SMO: the driver and the stopping rule of all ways to a bounded dual problem, and the way on the whole matrix.

Decomposition (`decomposition.py`) and the problems of a search (`shared.py`) are driven by the same class.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Self

import numpy as np

from mercer import _core
from mercer.certify import Stop
from mercer.solvers.control import Control
from mercer.solvers.dual.barrier import barrier
from mercer.solvers.dual.matrix import (
    FLOAT32_SHARE,
    Cached,
    Held,
    Matrix,
    Streamed,
    float32_gap_bound,
    give_back,
    measured_float32_gap,
    scratch,
)
from mercer.solvers.dual.problem import Bounds, Method, Solution, State, SVMDual, dot
from mercer.solvers.run import Row, Run, begin_looks, early_rows

CHUNK = 200_000  # SMO steps between two looks at the clock
_DUAL_SHARE = 0.05  # of tol: what the dual value may still gain from one look at the gap to the next at the end
_STEPS_BEFORE_CRAWLING = 100  # SMO steps per point, beyond the first chunk; then interior points are tried
_PROBE = 1000  # SMO steps before interior points where SMO is known to crawl
_STALLED = 2_000_000  # SMO steps after interior points in which a gap that has not halved will not
_FLOAT32_VIOLATION = 1e-6  # the smallest violation that float32 can tell, in units of the gradient


class SMO(ABC):
    """One problem on its way to the solution: iterate, stopping rule, precision, limits and result.

    Parameters
    ----------
    problem, control
        What is to be solved, and within which limits.
    method
        The plan: which kernel values are held, and in which precision.
    """

    def __init__(self, problem: SVMDual, control: Control, method: Method) -> None:
        self.problem, self.control, self.method = problem, control, method
        self._scratch: np.ndarray | None = None
        self.matrix = self._matrix(method.single)
        held = self.matrix.values if isinstance(self.matrix, Held) else None
        self.state = State(problem, None if held is None else held.diagonal()[: len(problem)])
        s = self.state
        self.run = Run(control, (s.linear, s.upper, s.lower, s.width))
        saved = self.run.checkpoint.restore(plus=s.plus.shape, minus=s.minus.shape)
        if saved is not None and (why := s.resume(**saved)):
            raise self.run.checkpoint.refusal(why)
        self.drift = 0.0  # squared length of all moves: what rounding has had to work on
        self._known: Bounds | None = None
        self.early: list[Row] = []  # of the history, between the looks

    @abstractmethod
    def advance(self) -> str:
        """Go on until the gap is small enough or a limit is reached; return why it stopped."""

    def solve(self) -> Solution:
        """Return the solution, or the best so far when a limit is reached."""
        try:
            if self.state.coefficients.any():
                self.recompute()
            stopped = self.advance()
        except KeyboardInterrupt:
            stopped = Stop.INTERRUPTED
            self.control.cancel()
            self.recompute()  # the interruption may have come between a step and its gradient
        finally:
            give_back(self._scratch)
        solution = self.solution(stopped)
        self.run.end(stopped == Stop.CONVERGED, plus=self.state.plus, minus=self.state.minus)
        return solution

    # -- kernel values ----------------------------------------------------------------------------------

    def _matrix(self, single: bool) -> Matrix:
        gram, points = self.problem.gram, self.problem.points(single)
        if not single:  # values of float32 points, rounded like them, would leave rounding in doubt for ever
            points = points.double()
        if self.method.whole:
            own = gram if points is gram.left else gram.on(points)
            # A thread keeps its scratch memory, which a small budget has no room for.
            roomy = gram.given_budget is None or 8 * self.method.memory <= gram.budget
            if own.compiled and self._scratch is None and roomy:
                self._scratch = scratch(len(points), own.dtype)
                values = own.fill(self._scratch)
            else:
                values = own.fill()
            return Held(np.pad(values, (0, 1)) if self.problem.offset == "none" else values)
        if gram.compiled:
            return Streamed(gram, points)
        return Held(gram.dense()) if self.method.held else Cached(gram)

    def recompute(self) -> None:
        """Set the gradient from the coefficients alone."""
        s = self.state
        b = s.coefficients
        support = np.flatnonzero(b)
        self._known = None
        s.gradient[:] = s.linear
        if support.size:
            s.gradient[: s.n] += self.matrix.product(None, support, self._round(b[support]))[: s.n]

    def _round(self, v: np.ndarray) -> np.ndarray:
        return v.astype(self.matrix.dtype) if isinstance(self.matrix, Streamed) else v

    # -- precision --------------------------------------------------------------------------------------

    def _trustworthy(self, bounds: Bounds) -> bool:
        """Return whether float32 hides no gap that matters; where it may, go over to float64."""
        if self.matrix.dtype == np.float64:
            return True
        s = self.state
        b = s.coefficients
        n, free, box = s.n, s.free, (s.upper + s.lower)[: s.n]
        allowed = FLOAT32_SHARE * self.control.tol * max(abs(bounds.primal), abs(bounds.dual))
        moves = math.sqrt(dot(b**2, s.lengths**2) + s.size * self.drift)
        worst = float32_gap_bound(moves, float((box * s.lengths)[free].sum()))
        if worst <= allowed and isinstance(self.matrix, Held):  # streamed values may be off by more, far out
            return True
        if measured_float32_gap(self.problem, b, (s.gradient - s.linear)[:n], free, box) <= allowed:
            return True
        self._widen()
        return False

    def _widen(self) -> None:
        """Compute kernel values in float64 from here on."""
        self.matrix = self._matrix(False)
        self.drift = 0.0
        self.recompute()

    # -- the stopping rule ------------------------------------------------------------------------------

    def _small_gap(self, bounds: Bounds) -> bool:
        """Return whether the gap is small enough, and the dual value steady to a twentieth of it.

        The gap may be nearly all on the primal side, or nearly all on the dual one; a certificate bounds both, but a
        solver that stops at the first sight of the gap would leave as much as tol in the dual value.
        """
        tol, size = self.control.tol, max(abs(bounds.primal), abs(bounds.dual))
        if bounds.relative_gap > tol:
            return False
        if not self.control.steady:
            return True
        history = self.run.history
        before = history[-2].dual if len(history) > 1 else -math.inf
        return bounds.relative_gap <= _DUAL_SHARE * tol or bounds.dual - before <= _DUAL_SHARE * tol * size

    def _look(self) -> Bounds:
        """Compute the objectives, and record them."""
        s = self.state
        bounds = self._known = s.bounds()
        support = int(np.count_nonzero(s.coefficients))
        self.run.note(bounds.primal, bounds.dual, bounds.relative_gap, support, plus=s.plus, minus=s.minus)
        return bounds

    def _at_floor(self, violation: float) -> bool:
        """Return whether rounding is all that is left, by its size or because nothing has improved for six looks."""
        recent = self.run.history[-6:]
        last, first = recent[-1], recent[0]
        still = len(recent) == 6 and last.dual - first.dual <= 1e-12 * abs(last.dual)
        still = still and min(row.gap for row in recent) == first.gap
        return still or violation <= self.state.floor

    def _unit(self) -> float:
        """Return the size of the gradient at the start, in which violations are measured."""
        return max(float(np.abs(self.state.linear).max()), 1e-300) if self.state.linear.any() else 1.0

    def _next_target(self, target: float, bounds: Bounds) -> float:
        """Return the violation at which the gap may be small enough, from the gap at an earlier target."""
        gap = bounds.relative_gap
        return target * (max(0.1, min(0.3, 0.7 * self.control.tol / gap)) if 0 < gap < math.inf else 0.1)

    def _history(self) -> list[Row]:
        looked_at = {row.steps for row in self.run.history}
        early = [row for row in self.early if row.steps not in looked_at]
        return sorted([*early, *self.run.history], key=lambda row: row.steps)

    def solution(self, stopped: str) -> Solution:
        """Return the iterate as a solution, with its certificate."""
        s = self.state
        bounds = self._known or s.bounds()
        n = s.n
        certificate = self.run.certificate(
            bounds.primal,
            bounds.dual,
            s.kkt(bounds),
            self.method.name,
            stopped,
            rounding=bounds.rounding,
            precision=str(np.dtype(self.matrix.dtype)),
        )
        return Solution(
            plus=s.plus[:n],
            minus=s.minus[:n],
            offset=bounds.offset,
            values=s.gradient[:n] - s.linear[:n] + bounds.offset,
            certificate=certificate,
            half_width=bounds.half_width if s.groups == 2 else 0.0,
            history=self._history(),
        )


class WholeMatrixSMO(SMO):
    """SMO with all points as its working set, and an interior-point method where it crawls."""

    _crawls = False  # whether SMO is known to
    _interior_points_done = False
    _best: tuple[float, int, np.ndarray, np.ndarray] | None = None  # gap, steps, plus and minus

    def go_on_from(self, crawled: Solution) -> Self:
        """Take over steps and history of a decomposition in which SMO crawled: interior points come first."""
        self._crawls = True
        self.run.steps, self.run.history = crawled.certificate.iterations, [*crawled.history]
        return self

    @property
    def _values(self) -> np.ndarray:
        return self.matrix.values  # type: ignore[attr-defined]

    def advance(self) -> str:
        s, control = self.state, self.control
        target = 1e-3 * self._unit()
        patience = 0 if self._crawls else _STEPS_BEFORE_CRAWLING * s.n + CHUNK
        while True:
            most = _PROBE if self._crawls and not self._interior_points_done else CHUNK
            if control.max_iter >= 0:
                most = max(0, min(most, control.max_iter - self.run.steps))
            looks = begin_looks(1, self.run.steps, s.dual if self._known is None else self._known.dual, control.seconds)
            done, violation = _core.smo(self._values, *s.arrays, s.groups, max(target, s.floor), most, True, looks)
            self.run.steps += done
            self.early += early_rows(looks[0], self.run.steps)
            bounds = self._look()
            if self._small_gap(bounds):
                if self._trustworthy(bounds):
                    return Stop.CONVERGED
                continue  # look again, in float64
            if (reason := self.run.limit()) is not None:
                return reason
            if violation > target and self.run.steps > patience and not self._interior_points_done:
                self._interior_points()
                bounds = self._look()  # before SMO, whose steps can lose to rounding what interior points have gained
                if self._small_gap(bounds):
                    return Stop.CONVERGED
            if self._interior_points_done and (reason := self._stalled()) is not None:
                return reason
            if violation <= target or self._at_floor(violation):
                if target <= _FLOAT32_VIOLATION * self._unit() and self.matrix.dtype == np.float32:
                    self._widen()
                elif violation <= s.floor or ((done or violation > target) and self._at_floor(violation)):
                    return (
                        Stop.FLOOR
                    )  # no step may also mean that the target was within reach already: then it comes down
                target = self._next_target(target, bounds)

    def _interior_points(self) -> None:
        """SMO crawls: let an interior-point method come near the solution, from which SMO goes on."""
        s = self.state
        n = s.n
        self._interior_points_done = True
        if self.matrix.dtype == np.float32:
            self._widen()
        K = self._values[:n, :n]
        fixed = (K, s.linear[:n], s.width[:n], s.upper[:n], s.lower[:n])
        parts = barrier(*fixed, s.plus[:n], s.minus[:n], 0 if s.phantom else s.groups, 1e-10)
        if parts is None:
            return
        before = s.bounds().dual, s.plus.copy(), s.minus.copy()
        s.plus[:n], s.minus[:n] = parts
        if s.phantom:
            s.balance()
        self.recompute()
        if not s.bounds().dual >= before[0]:
            s.plus[:], s.minus[:] = before[1:]
            self.recompute()

    def _stalled(self) -> str | None:
        """Say so where the gap has not halved for many steps, and go back to the best point seen."""
        gap = self.run.history[-1].gap
        if self._best is None or gap <= 0.5 * self._best[0]:
            self._best = (gap, self.run.steps, self.state.plus.copy(), self.state.minus.copy())
        if self.run.steps - self._best[1] < _STALLED:
            return None
        if self._best[0] < gap:
            self.state.plus[:], self.state.minus[:] = self._best[2:]
            self.recompute()
            self._look()
        return f"the gap has not halved in {_STALLED:,} steps"
