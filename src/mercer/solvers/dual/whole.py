"""SMO with the whole kernel matrix as its working set, and an interior-point method where it crawls."""

from __future__ import annotations

import numpy as np

from mercer import _core
from mercer.solvers.dual.barrier import barrier
from mercer.solvers.dual.course import CHUNK, FLOOR, Course

_PATIENCE = 100  # SMO steps per point, beyond the first chunk, before a method that does not crawl is called
_STALLED = 2_000_000  # steps after which a gap that has not halved will not
_SINGLE_FLOOR = 1e-6  # the smallest violation that float32 can tell, in units of the gradient


class Whole(Course):
    """A problem small enough that all its kernel values are at hand."""

    impatient = False  # whether SMO has been found to crawl already
    _leapt = False
    _best: tuple[float, int, np.ndarray, np.ndarray] | None = None

    @property
    def _values(self) -> np.ndarray:
        return self.matrix.values  # type: ignore[attr-defined]

    def _advance(self) -> str:
        s, control = self.state, self.control
        target = 1e-3 * self._unit()
        while True:
            left = 1000 if self.impatient and not self._leapt else CHUNK
            if control.max_iter >= 0:
                left = max(0, min(left, control.max_iter - self.steps))
            done, violation = _core.smo(self._values, *s.arrays, s.groups, max(target, s.floor), left, True)
            self.steps += done
            bounds = self._note()
            if self._good(bounds):
                if self._trustworthy(bounds):
                    return "converged"
                continue  # look again, in float64
            if (reason := self._limit()) is not None:
                return reason
            patience = 0 if self.impatient else _PATIENCE * s.n + CHUNK
            if violation > target and self.steps > patience and not self._leapt:
                self._leap()
                bounds = self._note()  # before SMO, whose steps can lose to rounding what the leap has found
                if self._good(bounds):
                    return "converged"
            if self._leapt and (reason := self._stalled()) is not None:
                return reason
            if violation <= target or self._stuck(violation):
                if target <= _SINGLE_FLOOR * self._unit() and self.matrix.dtype == np.float32:
                    self._widen()
                elif violation <= s.floor or ((done or violation > target) and self._stuck(violation)):
                    return FLOOR  # no step may also mean that the target was within reach already: then it comes down
                target = self._next_target(target, bounds)

    def _leap(self) -> None:
        """SMO crawls: let an interior-point method come near the solution, and SMO finish."""
        s = self.state
        n = s.n
        self._leapt = True
        if self.matrix.dtype == np.float32:
            self._widen()
        K = self._values[:n, :n]
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

    def _stalled(self) -> str | None:
        """Say so where the gap has not halved for many steps after the leap, and go back to the best point seen."""
        gap = self.history[-1].gap
        if self._best is None or gap <= 0.5 * self._best[0]:
            self._best = (gap, self.steps, self.state.plus.copy(), self.state.minus.copy())
        if self.steps - self._best[1] < _STALLED:
            return None
        if self._best[0] < gap:
            self.state.plus[:], self.state.minus[:] = self._best[2:]
            self.recompute()
            self._note()
        return f"the gap has not halved in {_STALLED:,} steps"
