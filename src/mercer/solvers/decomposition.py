"""Decomposition: SMO inside a working set, one product with the kernel matrix to tell all others.

The scheme of Joachims (1999), with the second-order steps of Fan, Chen & Lin (2005), large working sets of which a part
is kept, and points at their bounds left alone until the others have settled. Kernel values are not kept: the square
block of the working set and the product of the moved columns are computed anew, which is faster than reading them from
memory where a pair costs about a nanosecond.
"""

from __future__ import annotations

import math

import numpy as np

from mercer import _core
from mercer.certify import Certificate
from mercer.points import Comparison
from mercer.solvers.barrier import barrier
from mercer.solvers.checkpoint import Checkpoint
from mercer.solvers.control import Control
from mercer.solvers.dual import Solution, SVMDual
from mercer.solvers.matrix import Cached, Held, Matrix, Streamed
from mercer.solvers.planning import method
from mercer.solvers.state import Bounds, State

_SMALLEST = 1024  # points of a working set, if there are as many
_BARRIER = 2048  # the largest working set that is factorised when SMO crawls in it
_WATCH = 200  # working sets between two looks at whether the objective still rises
_CRAWLS = 30  # working sets in a row in which it did, before that
_CHUNK = 200_000  # SMO steps between two looks at the clock
_PATIENCE = 100  # SMO steps per point, beyond the first chunk, before a method that does not crawl is called
_ROUNDING = 6e-8
_SINGLE_FLOOR = 1e-6  # the smallest violation that float32 can tell, in units of the gradient
_FLOOR = "at the limit of float64"


class Decomposition:
    """One problem on its way to the solution."""

    def __init__(self, problem: SVMDual, control: Control) -> None:
        self.problem, self.control = problem, control
        self.method = method(problem, control)
        self.matrix = self._matrix(self.method.single)
        held = self.matrix.values if isinstance(self.matrix, Held) else None
        self.state = State(problem, None if held is None else held.diagonal()[: len(problem)])
        self.steps = self.outer = 0
        self.history: list[tuple[float, ...]] = []
        self.checkpoint = Checkpoint(control, self.state)
        self.checkpoint.restore()
        self._drift = 0.0  # squared length of all moves: what rounding has had to work on
        self._free = 0
        self._asked_to_stop = False
        self._leapt = False
        self._crawls = 0
        self._watched = -math.inf
        self._known: Bounds | None = None

    # -- kernel values ----------------------------------------------------------------------------------

    def _matrix(self, single: bool) -> Matrix:
        gram = self.problem.gram
        n = len(self.problem)
        points = gram.left.single() if single else gram.left
        if self.method.whole:
            if points is gram.left:
                values = gram.comparison.dense()
            else:
                values = Comparison(gram.kernel.of, points, None, gram.comparison.formula).dense()
            return Held(np.pad(values, (0, 1)) if self.problem.offset == "none" else values)
        if gram.compiled:
            return Streamed(gram, points)
        if n * n * 8 <= gram.budget // 2:
            return Held(gram.dense())
        return Cached(gram)

    def _block(self, chosen: np.ndarray) -> np.ndarray:
        if not self.state.phantom:
            return self.matrix.block(chosen)
        return np.pad(self.matrix.block(chosen[chosen < self.state.n]), (0, 1))  # the phantom stands last

    def recompute(self) -> None:
        """Set the gradient from the coefficients alone."""
        s = self.state
        b = s.coefficients
        support = np.flatnonzero(b)
        self._known = None
        s.gradient[:] = s.linear
        if support.size:
            rows = None
            s.gradient[: s.n] += self.matrix.product(rows, support, self._round(b[support]))[: s.n]

    def _round(self, v: np.ndarray) -> np.ndarray:
        return v.astype(self.matrix.dtype) if isinstance(self.matrix, Streamed) else v

    # -- the two ways -----------------------------------------------------------------------------------

    def run(self) -> Solution:
        """Return the solution, or the best so far when a limit is reached."""
        stopped = "converged"
        try:
            if self.state.coefficients.any():
                self.recompute()
            stopped = self._whole() if self.method.whole else self._decompose()
        except KeyboardInterrupt:
            stopped = "interrupted"
            self.control.cancel()
            self.recompute()  # the interruption may have come between a step and its gradient
        solution = self._finish(stopped)
        if stopped == "converged":
            self.checkpoint.remove()
        else:
            self.checkpoint.write()
        return solution

    def _whole(self) -> str:
        s, control = self.state, self.control
        values = self.matrix.values  # type: ignore[attr-defined]
        target = 1e-3 * self._unit()
        while True:
            left = _CHUNK if control.max_iter < 0 else max(0, min(_CHUNK, control.max_iter - self.steps))
            done, violation = _core.smo(values, *s.arrays, s.groups, max(target, s.floor), left, True)
            self.steps += done
            self.outer += 1
            bounds = self._note()
            if self._good(bounds):
                return "converged"
            if (reason := self._limit()) is not None:
                return reason
            if violation > target and self.steps > _PATIENCE * s.n + _CHUNK and not self._leapt:
                self._leap()
            if violation <= target or self._stuck(violation):
                if target <= _SINGLE_FLOOR * self._unit() and values.dtype == np.float32:
                    self._widen()
                    values = self.matrix.values  # type: ignore[attr-defined]
                elif self._stuck(violation):
                    return _FLOOR
                target = self._next_target(target, bounds)

    def _leap(self) -> None:
        """SMO crawls: let an interior-point method come near the solution, and SMO finish."""
        s = self.state
        n = s.n
        self._leapt = True
        K = self.problem.gram.dense() if self.matrix.dtype == np.float32 else self.matrix.values[:n, :n]  # type: ignore[attr-defined]
        fixed = (K, s.linear[:n], s.width[:n], s.upper[:n], s.lower[:n])
        found = barrier(*fixed, s.plus[:n], s.minus[:n], 0 if s.phantom else s.groups, 1e-10)
        if found is None:
            return
        before = s.bounds().dual, s.plus.copy(), s.minus.copy()
        s.plus[:n], s.minus[:n] = found
        if s.phantom:
            s.balance()
        self.recompute()
        if not s.bounds().dual >= before[0]:
            s.plus[:], s.minus[:] = before[1:]
            self.recompute()

    def _stuck(self, violation: float) -> bool:
        """Whether rounding is all that is left, by its size or because nothing has improved for a while."""
        recent = self.history[-6:]
        gained = recent[-1][1] - recent[0][1]
        still = len(recent) == 6 and gained <= 1e-12 * abs(recent[-1][1]) and min(r[2] for r in recent) == recent[0][2]
        return still or violation <= self.state.floor

    def _unit(self) -> float:
        """The size of the gradient at the start, in which violations are measured."""
        return max(float(np.abs(self.state.linear).max()), 1e-300) if self.state.linear.any() else 1.0

    def _next_target(self, target: float, bounds: Bounds) -> float:
        gap = bounds.relative_gap
        return target * (max(0.1, min(0.5, 0.7 * self.control.tol / gap)) if 0 < gap < math.inf else 0.1)

    def _decompose(self) -> str:
        s = self.state
        everyone = self._everyone = np.random.default_rng(0).permutation(s.n + s.phantom).astype(np.int32)
        self.hot, self.cold = everyone, everyone[:0]
        working = everyone[:0]
        target = math.inf
        while True:
            size, fresh = self._sizes()
            out = np.empty(size, np.int32)
            count, violation = _core.select(*s.arrays, s.groups, self.hot, working, fresh, out)
            if violation <= target or count == 0:
                if self.cold.size:
                    self._wake()
                    continue
                bounds = self._note()
                if self._good(bounds):
                    if self._trustworthy(bounds):
                        return "converged"
                    target = math.inf  # look again, in float64
                    continue
                if count == 0 or self._stuck(violation):
                    if self.matrix.dtype == np.float64:
                        return _FLOOR
                    self._widen()
                if (reason := self._limit()) is not None:
                    return reason
                target = self._next_target(violation, bounds)
                self._shrink()
                continue
            working = out[:count]
            self._work(working, max(0.1 * violation, 0.3 * target))
            if (reason := self._pause()) is not None:
                self._wake()
                self._note()
                return reason

    def _sizes(self) -> tuple[int, int]:
        """The working set grows with the free points: they must settle among themselves, and SMO's steps are cheap."""
        if self.outer % 4 == 0:
            self._free = int(np.count_nonzero(self.state.free))
        size = max(_SMALLEST, min(self.method.size, self._free + self._free // 8 + 512))
        return size, size // 2 if size <= 2 * _SMALLEST else size // 4

    def _work(self, working: np.ndarray, tol: float) -> None:
        """Solve for the working set, then tell the hot points what moved."""
        s = self.state
        self._known = None
        if s.phantom:  # always among them, and last
            working = np.append(working[working < s.n], np.int32(s.n))
        part = [array[working] for array in s.arrays]
        before = part[1] - part[2]
        cap = 20 * len(working)
        if self.control.max_iter >= 0:
            cap = min(cap, self.control.max_iter - self.steps)
        block = self._block(working)
        done, violation = _core.smo(block, *part, s.groups, tol, min(cap, _CHUNK), False)
        self._crawls = self._crawls + 1 if violation > tol and done >= 20 * len(working) else 0
        if self._crawls >= _CRAWLS and len(working) <= _BARRIER:
            self._leap_within(block, part, working)
            self._crawls = 0
        moved = part[1] - part[2] - before
        which = np.flatnonzero(moved[: len(working) - s.phantom])
        s.plus[working], s.minus[working] = part[1], part[2]
        rows = None if not self.cold.size else self._hot_points
        if which.size:
            moved = moved[which]
            change = self.matrix.product(rows, working[which], self._round(moved))
            if rows is None:
                s.gradient[: s.n] += change
            else:
                s.gradient[rows] += change
            self._drift += float(moved @ moved)
        self.steps += done
        self.outer += 1

    def _leap_within(self, block: np.ndarray, part: list[np.ndarray], working: np.ndarray) -> None:
        """The same within a working set: the others' coefficients enter through the linear term."""
        s = self.state
        m = len(working) - s.phantom
        b = (s.plus - s.minus)[working[:m]]
        K = block[:m, :m].astype(np.float64)
        fixed = (K, s.gradient[working[:m]] - K @ b, *(part[k][:m] for k in (5, 3, 4)))
        found = barrier(*fixed, part[1][:m], part[2][:m], 0 if s.phantom else s.groups, 1e-9)
        if found is None:
            return

        def value(p: np.ndarray, q: np.ndarray) -> float:
            c = p - q
            return float(c @ (0.5 * (K @ c) + fixed[1]) + fixed[2] @ (p + q))

        if value(*found) < value(part[1][:m], part[2][:m]):
            part[1][:m], part[2][:m] = found
            if s.phantom:
                rest = float((part[1] - part[2])[:m].sum()) - float(b.sum()) - (s.plus - s.minus)[-1]
                part[1][-1], part[2][-1] = max(0.0, -rest), max(0.0, rest)

    # -- points at rest ---------------------------------------------------------------------------------

    def _shrink(self) -> None:
        """Leave alone the points at a bound that no pair would move, until the others have settled."""
        s = self.state
        keep = s.free
        resting = np.ones(s.n, bool)
        for up, down in self._slopes():
            low, high = up.min(), down.max()
            resting &= (up >= high) & (down <= low)
        keep = ~(resting & ~keep)
        if keep.mean() > 0.9:
            return
        chosen = np.append(keep, True) if s.phantom else keep
        self.hot = self._everyone[chosen[self._everyone]]
        self._hot_points = self.hot[self.hot < s.n]
        self.cold = np.flatnonzero(~keep).astype(np.int32)
        self._before = s.coefficients

    def _slopes(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The slopes of the objective along growing and shrinking b, for each group (as in the core)."""
        s, n = self.state, self.state.n
        F, w = s.gradient[:n], s.width[:n]
        p, m, up, low = s.plus[:n], s.minus[:n], s.upper[:n], s.lower[:n]
        inf = math.inf
        if s.groups == 1:
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

    def _wake(self) -> None:
        """Bring the gradient of the points at rest up to date, all changes since at once."""
        s = self.state
        if self.cold.size:
            change = s.coefficients - self._before
            moved = np.flatnonzero(change)
            if moved.size:
                s.gradient[self.cold] += self.matrix.product(self.cold, moved, self._round(change[moved]))
        self.hot, self.cold = self._everyone, self._everyone[:0]

    # -- precision --------------------------------------------------------------------------------------

    def _trustworthy(self, bounds: Bounds) -> bool:
        """Whether rounding can hide no gap; if it can, go over to float64 and say no."""
        if self.matrix.dtype == np.float64 or not isinstance(self.matrix, Streamed):
            return True
        s = self.state
        b = s.coefficients
        error = _ROUNDING * s.size * math.sqrt(float(b @ b) + self._drift)
        exposed = float((s.upper + s.lower)[: s.n][s.free].sum()) / 2
        if error * exposed <= 0.3 * self.control.tol * max(abs(bounds.primal), abs(bounds.dual)):
            return True
        self._widen()
        return False

    def _widen(self) -> None:
        """Compute kernel values in float64 from here on."""
        self.matrix = self._matrix(False)
        self._drift = 0.0
        self.recompute()

    # -- bookkeeping ------------------------------------------------------------------------------------

    def _good(self, bounds: Bounds) -> bool:
        return bounds.relative_gap <= self.control.tol

    def _note(self) -> Bounds:
        s = self.state
        bounds = self._known = s.bounds()
        support = int(np.count_nonzero(s.coefficients))
        gap = bounds.relative_gap
        self.history.append((self.steps, bounds.dual, gap, support, self.control.seconds))
        self._asked_to_stop = self.control.tell(iteration=self.steps, gap=gap, dual=bounds.dual, support=support)
        self.checkpoint.write_now_and_then()
        return bounds

    def _pause(self) -> str | None:
        """Between two working sets: limits, a checkpoint, a word to the listener."""
        self.checkpoint.write_now_and_then()
        if self.outer % _WATCH == 0:  # a target that rounding hides is never reached
            before, self._watched = self._watched, self._dual()
            if self._watched - before <= 1e-12 * abs(self._watched):
                if self.matrix.dtype == np.float64:
                    return _FLOOR
                self._wake()
                self._widen()
        last = self.history[-1] if self.history else (0, 0.0, math.inf, 0, 0.0)
        if self.control.report is not None and self.control.seconds - last[4] > 0.2:
            dual = self._dual()
            support = int(np.count_nonzero(self.state.coefficients))
            self.history.append((self.steps, dual, last[2], support, self.control.seconds))
            if self.control.tell(iteration=self.steps, gap=last[2], dual=dual, support=support):
                return "stopped by the callback"
        return self.control.exhausted(self.steps)

    def _dual(self) -> float:
        s = self.state
        return -float(0.5 * (s.plus - s.minus) @ (s.gradient + s.linear) + s.width @ (s.plus + s.minus))

    def _limit(self) -> str | None:
        return "stopped by the callback" if self._asked_to_stop else self.control.exhausted(self.steps)

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
