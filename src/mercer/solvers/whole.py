"""SMO with the whole kernel matrix as its working set, and an interior-point method where it crawls."""

from __future__ import annotations

import numpy as np

from mercer import _core
from mercer.solvers.barrier import barrier
from mercer.solvers.course import CHUNK, FLOOR, Course

_PATIENCE = 100  # SMO steps per point, beyond the first chunk, before a method that does not crawl is called
_SINGLE_FLOOR = 1e-6  # the smallest violation that float32 can tell, in units of the gradient


class Whole(Course):
    """A problem small enough that all its kernel values are at hand."""

    _leapt = False

    @property
    def _values(self) -> np.ndarray:
        return self.matrix.values  # type: ignore[attr-defined]

    def _advance(self) -> str:
        s, control = self.state, self.control
        target = 1e-3 * self._unit()
        while True:
            left = CHUNK if control.max_iter < 0 else max(0, min(CHUNK, control.max_iter - self.steps))
            done, violation = _core.smo(self._values, *s.arrays, s.groups, max(target, s.floor), left, True)
            self.steps += done
            bounds = self._note()
            if self._good(bounds):
                if self._trustworthy(bounds):
                    return "converged"
                continue  # look again, in float64
            if (reason := self._limit()) is not None:
                return reason
            if violation > target and self.steps > _PATIENCE * s.n + CHUNK and not self._leapt:
                self._leap()
            if violation <= target or self._stuck(violation):
                if target <= _SINGLE_FLOOR * self._unit() and self.matrix.dtype == np.float32:
                    self._widen()
                elif self._stuck(violation):
                    return FLOOR
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
