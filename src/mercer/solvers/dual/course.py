"""The common part of all ways to solve a dual problem: kernel values, notes, limits, precision, the solution."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from mercer.certify import Certificate
from mercer.points import Comparison
from mercer.solvers.checkpoint import Checkpoint
from mercer.solvers.control import Control
from mercer.solvers.dual.matrix import Cached, Held, Matrix, Streamed, give_back, hidden_gap, hides, scratch
from mercer.solvers.dual.planning import Method
from mercer.solvers.dual.problem import Solution, SVMDual
from mercer.solvers.dual.state import Bounds, State, dot
from mercer.solvers.run import Row

CHUNK = 200_000  # SMO steps between two looks at the clock
_SETTLED = 0.05
FLOOR = "at the limit of float64"


class Course(ABC):
    """One problem on its way to the solution."""

    def __init__(self, problem: SVMDual, control: Control, method: Method) -> None:
        self.problem, self.control, self.method = problem, control, method
        self._scratch: np.ndarray | None = None
        self.matrix = self._matrix(method.single)
        held = self.matrix.values if isinstance(self.matrix, Held) else None
        self.state = State(problem, None if held is None else held.diagonal()[: len(problem)])
        self.steps = 0
        self.history: list[Row] = []
        s = self.state
        self.checkpoint = Checkpoint(control, (s.linear, s.upper, s.lower, s.width))
        saved = self.checkpoint.restore(plus=s.plus.shape, minus=s.minus.shape)
        if saved is not None and (why := s.resume(**saved)):
            raise self.checkpoint.refusal(why)
        self.drift = 0.0  # squared length of all moves: what rounding has had to work on
        self._asked_to_stop = False
        self._known: Bounds | None = None

    @abstractmethod
    def _advance(self) -> str:
        """Go on until the gap is small enough or a limit is reached; return why it stopped."""

    def run(self) -> Solution:
        """Return the solution, or the best so far when a limit is reached."""
        try:
            return self._run()
        finally:
            give_back(self._scratch)

    def _run(self) -> Solution:
        stopped = "converged"
        try:
            if self.state.coefficients.any():
                self.recompute()
            stopped = self._advance()
        except KeyboardInterrupt:
            stopped = "interrupted"
            self.control.cancel()
            self.recompute()  # the interruption may have come between a step and its gradient
        solution = self._finish(stopped)
        if stopped == "converged":
            self.checkpoint.remove()
        else:
            self.checkpoint.write(plus=self.state.plus, minus=self.state.minus)
        return solution

    # -- kernel values ----------------------------------------------------------------------------------

    def _matrix(self, single: bool) -> Matrix:
        gram, points = self.problem.gram, self.problem.points(single)
        if not single:  # values of float32 points, rounded like them, would leave rounding in doubt for ever
            points = points.double()
        if self.method.whole:
            whole = points is gram.left  # its comparison is made already
            compared = gram.comparison if whole else Comparison(gram.kernel.of, points, None, gram.comparison.formula)
            # A thread keeps its scratch memory, which a small budget has no room for.
            roomy = gram.given_budget is None or 8 * self.method.memory <= gram.budget
            if compared.compiled and self._scratch is None and roomy:
                self._scratch = scratch(len(points), compared.dtype)
                values = compared.dense(self._scratch)
            else:
                values = compared.dense()
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
        """Whether rounding can hide no gap; if it can, go over to float64 and say no."""
        if self.matrix.dtype == np.float64:
            return True
        s = self.state
        b = s.coefficients
        n, free, box = s.n, s.free, (s.upper + s.lower)[: s.n]
        allowed = 0.3 * self.control.tol * max(abs(bounds.primal), abs(bounds.dual))
        moves = math.sqrt(dot(b**2, s.lengths**2) + s.size * self.drift)
        worst = hidden_gap(moves, float((box * s.lengths)[free].sum()))
        known = isinstance(self.matrix, Held)  # streamed values may be off by more, far from the centre
        if (known and worst <= allowed) or hides(self.problem, b, (s.gradient - s.linear)[:n], free, box) <= allowed:
            return True
        self._widen()
        return False

    def _widen(self) -> None:
        """Compute kernel values in float64 from here on."""
        self.matrix = self._matrix(False)
        self.drift = 0.0
        self.recompute()

    # -- notes and limits -------------------------------------------------------------------------------

    def _good(self, bounds: Bounds) -> bool:
        """Whether the gap is small enough, and the dual value has settled to a twentieth of it.

        The gap may be nearly all on the primal side, or nearly all on the dual one; a certificate bounds both, but a
        solver that stops at the first sight of the gap would leave as much as tol in the dual value.
        """
        tol, size = self.control.tol, max(abs(bounds.primal), abs(bounds.dual))
        if bounds.relative_gap > tol:
            return False
        before = self.history[-2].dual if len(self.history) > 1 else -math.inf
        return bounds.relative_gap <= _SETTLED * tol or bounds.dual - before <= _SETTLED * tol * size

    def _note(self) -> Bounds:
        s = self.state
        bounds = self._known = s.bounds()
        support = int(np.count_nonzero(s.coefficients))
        gap = bounds.relative_gap
        self.history.append(Row(self.steps, bounds.primal, bounds.dual, gap, support, self.control.seconds))
        self._asked_to_stop = self.control.tell(iteration=self.steps, gap=gap, dual=bounds.dual, support=support)
        self.checkpoint.write_now_and_then(plus=s.plus, minus=s.minus)
        return bounds

    def _limit(self) -> str | None:
        return "stopped by the callback" if self._asked_to_stop else self.control.exhausted(self.steps)

    def _stuck(self, violation: float) -> bool:
        """Whether rounding is all that is left, by its size or because nothing has improved for a while."""
        recent = self.history[-6:]
        last, first = recent[-1], recent[0]
        still = len(recent) == 6 and last.dual - first.dual <= 1e-12 * abs(last.dual)
        still = still and min(row.gap for row in recent) == first.gap
        return still or violation <= self.state.floor

    def _unit(self) -> float:
        """The size of the gradient at the start, in which violations are measured."""
        return max(float(np.abs(self.state.linear).max()), 1e-300) if self.state.linear.any() else 1.0

    def _next_target(self, target: float, bounds: Bounds) -> float:
        gap = bounds.relative_gap
        return target * (max(0.1, min(0.3, 0.7 * self.control.tol / gap)) if 0 < gap < math.inf else 0.1)

    def _finish(self, stopped: str) -> Solution:
        s = self.state
        bounds = self._known or s.bounds()
        n = s.n
        offset = (bounds.plus - bounds.minus) / 2
        certificate = Certificate(
            primal=bounds.primal,
            dual=bounds.dual,
            kkt=s.kkt(bounds),
            rounding=bounds.rounding,
            tol=self.control.tol,
            solver=self.method.name,
            iterations=self.steps,
            seconds=self.control.seconds,
            precision=str(np.dtype(self.matrix.dtype)),
            stopped=stopped,
        )
        return Solution(
            plus=s.plus[:n],
            minus=s.minus[:n],
            offset=offset,
            values=s.gradient[:n] - s.linear[:n] + offset,
            certificate=certificate,
            half_width=-(bounds.plus + bounds.minus) / 2 if s.groups == 2 else 0.0,
            history=self.history,
        )
