"""SMO: the driver and the stopping rule of all ways to a bounded dual problem, and the way on the whole matrix.

Decomposition (`decomposition.py`) and the problems of a search (`shared.py`) are driven by the same class.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

from mercer import _core
from mercer.certify import Stop
from mercer.gram.matrix import KernelMatrix
from mercer.machine.threads import run
from mercer.points.kept import give_back, scratch
from mercer.solvers.control import Control
from mercer.solvers.dual.barrier import barrier
from mercer.solvers.dual.problem import Bounds, Method, Solution, State, SVMDual, dot
from mercer.solvers.run import Row, Run, begin_looks, early_rows

CHUNK = 200_000  # SMO steps between two looks at the clock
_DUAL_SHARE = 0.05  # of tol: what the dual value may still gain from one look at the gap to the next at the end
_STEPS_BEFORE_CRAWLING = 100  # SMO steps per point, beyond the first chunk; then interior points are tried
_PROBE = 1000  # SMO steps before interior points where SMO is known to crawl
_STALLED = 2_000_000  # SMO steps after interior points: a gap that they have not halved will stay
_FLOAT32_VIOLATION = 1e-6  # the smallest violation that float32 can tell, in units of the gradient
FLOAT32_SHARE = 0.3  # of the gap asked for: what float32 values may hide of it
_SAMPLE = 48  # free points on which float32 is compared with float64
_PART = 800  # points that they are compared with at a time
_ROUNDING = 6e-8  # of float32


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
        self.matrix = KernelMatrix(problem.gram, problem.rows)
        self.single = method.single
        self._scratch: np.ndarray | None = None
        self._keep()
        held = self.matrix.held
        self.state = State(problem, None if held is None else held.diagonal())
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

    def _keep(self) -> None:
        """Compute the values that are kept, in the precision of now."""
        if self.method.held:
            self.matrix.hold(np.float64)

    def recompute(self) -> None:
        """Set the gradient from the coefficients alone."""
        s = self.state
        b = s.coefficients
        support = np.flatnonzero(b)
        self._known = None
        s.gradient[:] = s.linear
        if support.size:
            s.gradient[: s.n] += self.matrix.columns_product(support, b[support], None, self.single)

    # -- precision --------------------------------------------------------------------------------------

    def _trustworthy(self, bounds: Bounds) -> bool:
        """Return whether float32 hides no gap that matters; where it may, go over to float64."""
        if not self.single:
            return True
        s = self.state
        b = s.coefficients
        n, free, box = s.n, s.free, (s.upper + s.lower)[: s.n]
        allowed = FLOAT32_SHARE * self.control.tol * max(abs(bounds.primal), abs(bounds.dual))
        moves = math.sqrt(dot(b**2, s.lengths**2) + s.size * self.drift)
        worst = float32_gap_bound(moves, float((box * s.lengths)[free].sum()))
        if worst <= allowed and self.matrix.held is not None:  # streamed values may be off by more, far out
            return True
        if measured_float32_gap(self.problem, b, (s.gradient - s.linear)[:n], free, box) <= allowed:
            return True
        self._widen()
        return False

    def _widen(self) -> None:
        """Compute kernel values in float64 from here on."""
        self.single = False
        self._keep()
        self.drift = 0.0
        self.recompute()

    # -- the stopping rule ------------------------------------------------------------------------------

    def _small_gap(self, bounds: Bounds) -> bool:
        """Return whether the gap is small enough, and the dual value steady to a twentieth of it.

        The gap may be nearly all on the primal side, or nearly all on the dual one. A certificate bounds both. But a
        solver that stops as soon as the gap is small may leave an error of tol in the dual value.
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
        """Return whether only rounding is left: the violation is as small, or six looks have seen no progress."""
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
            precision="float32" if self.single else "float64",
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

    def _keep(self) -> None:
        """Compute the whole matrix, in this thread's scratch memory where that is roomy enough."""
        problem = self.problem
        gram, points = problem.gram, problem.points(self.single)
        if not self.single:  # values of float32 points, rounded like them, would leave rounding in doubt for ever
            points = points.double()
        own = gram if points is gram.left else gram.on(points)
        # A thread keeps its scratch memory, which a small budget has no room for.
        roomy = gram.given_budget is None or 8 * self.method.memory <= gram.budget
        if own.compiled and self._scratch is None and roomy:
            self._scratch = scratch(len(points), own.dtype)
            values = own.fill(self._scratch)
        else:
            values = own.fill()
        self.matrix = KernelMatrix(own)
        self.matrix.held = values
        self._values = np.pad(values, (0, 1)) if problem.offset == "none" else values  # the phantom stands last

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
                if target <= _FLOAT32_VIOLATION * self._unit() and self.single:
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
        if self.single:
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


def float32_gap_bound(length: Any, exposed: Any) -> Any:
    """Return what float32 kernel values could hide of a gap, at worst.

    Rounding moves f(x_i) by about its unit times |x_i| (in feature space) times `length`, the root of the sum of
    (b_j |x_j|)^2; each free coefficient leaves about half its box times that in the gap: `exposed` is the sum of these
    boxes, each times |x_i|.
    """
    return _ROUNDING * length * exposed / 2


def measured_float32_gap(
    problem: SVMDual, b: np.ndarray, values: np.ndarray, free: np.ndarray, box: np.ndarray
) -> float:
    """Return what float32 does hide of a gap: measured on some free points, whose f is computed again in float64.

    Parameters
    ----------
    problem, b
        The problem and its coefficients.
    values
        f at its points, without the offset, as the solver knows them.
    free, box
        Which coefficients are free, and how large their boxes are.
    """
    sample = np.flatnonzero(free)
    if not sample.size:
        return 0.0  # at a bound, a small error of f changes nothing
    sample = sample[np.unique(np.linspace(0, len(sample) - 1, _SAMPLE).astype(np.intp))]
    support = np.flatnonzero(b)
    points, gram = problem.points(), problem.gram
    left = points.take(sample)

    def part(chosen: np.ndarray) -> np.ndarray:
        return np.asarray(gram.on(left, points.take(chosen)).matvec(b[chosen]))

    # So few at a time that no centre is looked for: moving all points to one in float64 would cost more than the sums.
    parts = run(part, [support[i : i + _PART] for i in range(0, len(support), _PART)])
    error = np.abs(sum(parts) - values[sample]).mean()
    return 2.0 * float(error) * float(box[free].sum()) / 2
