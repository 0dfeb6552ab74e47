"""Decomposition: SMO inside a working set, one product with the kernel matrix to tell all others.

The scheme of Joachims (1999), with the second-order steps of Fan, Chen & Lin (2005), large working sets of which a part
is kept, and shrinking: points at their bounds are left alone until the others are solved for. Kernel values are not
kept: the square block of the working set and the product of the moved columns are computed anew, which is faster than
reading them from memory where a pair costs about a nanosecond.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mercer import _core
from mercer.certify import Stop
from mercer.solvers.control import Control
from mercer.solvers.dual.barrier import barrier
from mercer.solvers.dual.problem import Method, State, SVMDual, dot
from mercer.solvers.dual.smo import CHUNK, SMO
from mercer.solvers.run import Row

CRAWLS = "crawls"  # not a reason to stop, but to go on with the whole matrix
_SMALLEST = 1536  # points of a working set, if there are as many
_HALF_NEW = 2048  # points of a working set of which half are new each time; of a larger one, a quarter
_EARLY_SHRINKING = 5.0  # times the target: the violation from which on points are shrunk where the free ones are many
_BARRIER_POINTS = 2048  # the largest working set that is factorised when SMO crawls in it
_HELD_POINTS = 6000  # points of a matrix that is factorised when nothing else helps
_CRAWLING_SETS = 30  # working sets in a row in which SMO crawled, before a matrix is factorised
_SETS_PER_LOOK = 100  # working sets, or 20 rounds if that is more, between two looks at whether the objective rises
_IDLE_LOOKS = 2  # looks in a row without the gap halved or the objective 5 percent up, which end it
_LOOKS = frozenset(4**k for k in range(16))  # working sets after which the history gets a row, where none are shrunk
_RECENT_STEPS = 3  # last steps whose span is searched
_CLIPPED = 200  # coefficients that may be stopped at their bounds: each costs a column of the matrix
_BALANCING = 64  # points with the most room, which restore the sum of all coefficients


class Decomposition(SMO):
    """A problem too large for its matrix to be held."""

    def __init__(self, problem: SVMDual, control: Control, method: Method) -> None:
        super().__init__(problem, control, method)
        self.outer = 0
        everyone = np.random.default_rng(0).permutation(self.state.n + self.state.phantom).astype(np.int32)
        self._everyone = self.active = everyone
        self.shrunk = everyone[:0]
        self._free = self._crawling_sets = 0
        self._recent: RecentSteps | None = None  # while points are shrunk
        self._sets_per_look = max(_SETS_PER_LOOK, 20 * self.state.n // _SMALLEST)
        self._idle_looks = 0
        self._progress = (math.inf, -math.inf)  # the gap and the dual of the last progress

    @property
    def may_be_held(self) -> bool:
        """Whether the whole matrix could be held and factorised after all."""
        return self.state.n <= _HELD_POINTS and 24 * self.state.n**2 <= self.problem.gram.budget

    def _block(self, chosen: np.ndarray) -> np.ndarray:
        if not self.state.phantom:
            return self.matrix.square(chosen, self.single)
        return np.pad(self.matrix.square(chosen[chosen < self.state.n], self.single), (0, 1))  # the phantom stands last

    def advance(self) -> str:
        s = self.state
        working = self.shrunk
        target = math.inf
        while True:
            size, fresh = self._sizes()
            out = np.empty(size, np.int32)
            count, violation = _core.select(*s.arrays, s.groups, self.active, working, fresh, out)
            if violation <= target or count == 0:
                if self.shrunk.size:
                    self._unshrink()
                    continue
                bounds = self._look()
                if self._small_gap(bounds):
                    if self._trustworthy(bounds):
                        return Stop.CONVERGED
                    target = math.inf  # look again, in float64
                    continue
                if count == 0 or self._at_floor(violation):
                    if not self.single:
                        return Stop.FLOOR
                    self._widen()
                if (reason := self.run.limit()) is not None:
                    return reason
                target = self._next_target(violation, bounds)
                self._shrink()
                continue
            if self._crowded and not self.shrunk.size and violation <= _EARLY_SHRINKING * target:
                self._shrink()
                if self.shrunk.size:
                    continue
            ahead = None if self._recent is None or self._crawling_sets else self._recent.extrapolation()
            if ahead is not None:
                others = np.empty(size, np.int32)
                number, most = _core.select(*ahead[:3], *s.arrays[3:], s.groups, self.active, working, fresh, others)
                if number:
                    out, count, violation = others, number, most
            working = out[:count]
            self._work(working, max(0.2 * violation, 0.5 * target), ahead)
            if not self.shrunk.size and self.outer in _LOOKS:
                bounds = s.bounds()
                support = int(np.count_nonzero(s.coefficients))
                row = (self.run.steps, bounds.primal, bounds.dual, bounds.relative_gap, support, self.control.seconds)
                self.early.append(Row(*row))
            if (reason := self._pause()) is not None:
                self._unshrink()
                self._look()
                return reason

    def _sizes(self) -> tuple[int, int]:
        """Return the size of the working set, larger where more points are free, and how many of its points are new."""
        if self.outer % 4 == 0:
            self._free = int(np.count_nonzero(self.state.free))
        size = min(self.method.size, max(_SMALLEST, self._free + self._free // 8 + 512))
        return size, size // 2 if size <= _HALF_NEW or self._recent is not None else size // 4

    @property
    def _crowded(self) -> bool:
        """Whether the free points are more than a working set holds."""
        return self._free > self.method.size

    def _work(self, working: np.ndarray, tol: float, ahead: Extrapolation | None = None) -> None:
        """Solve for the working set, from the point ahead if there is one, then update the active points' gradient."""
        s = self.state
        self._known = None
        if s.phantom:  # always among them, and last
            working = np.append(working[working < s.n], np.int32(s.n))
        upper, lower, width = (array[working] for array in s.arrays[3:])
        cap = 20 * len(working)
        if self.control.max_iter >= 0:
            cap = min(cap, self.control.max_iter - self.run.steps)
        block = self._block(working)
        gradient, plus, minus = (array[working] for array in (ahead or s.arrays)[:3])
        before = plus - minus
        if ahead is not None and not restore_sum(ahead.missing, block, gradient, plus, minus, upper, lower):
            ahead, self._recent = None, self._no_steps()
            gradient, plus, minus = (array[working] for array in s.arrays[:3])
            before = plus - minus
        settings = (upper, lower, width, s.groups, tol, min(cap, CHUNK), False)
        done, violation = _core.smo(block, gradient, plus, minus, *settings)
        self._crawling_sets = self._crawling_sets + 1 if violation > tol and done >= 20 * len(working) else 0
        if self._crawling_sets >= _CRAWLING_SETS and not self.may_be_held and self._fits_barrier(len(working)):
            self._interior_points(block, working, plus, minus)
            self._crawling_sets = 0
        moved = plus - minus - before
        which = np.flatnonzero(moved[: len(working) - s.phantom])
        was = None if self._recent is None else (s.plus - s.minus, s.gradient.copy())
        if ahead is None:
            s.plus[working], s.minus[working] = plus, minus
        else:
            ahead.plus[working], ahead.minus[working] = plus, minus
            s.gradient, s.plus, s.minus = ahead[:3]
        if which.size:
            moved = moved[which]
            rows = self._active_points if self.shrunk.size else None
            change = self.matrix.columns_product(working[which], moved, rows, self.single)
            s.gradient[slice(s.n) if rows is None else rows] += change
            self.drift += dot(moved, moved)
        if self._recent is not None and was is not None:
            self._recent.keep(s.plus - s.minus - was[0], s.gradient - was[1])
        self.run.steps += done
        self.outer += 1

    def _no_steps(self) -> RecentSteps | None:
        """Nothing to look ahead along yet; None where that would not pay, or sums are kept in another way."""
        s = self.state
        return RecentSteps(s, self._image) if self._crowded and s.groups == 1 and not s.phantom else None

    def _image(self, where: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the matrix times a vector, for the active points."""
        out = np.zeros(self.state.n)
        out[self._active_points] = self.matrix.columns_product(where, values, self._active_points, self.single)
        return out

    def _fits_barrier(self, size: int) -> bool:
        """Whether a working set is small enough to be factorised: its block, in float64 too, and the factor."""
        return size <= _BARRIER_POINTS and 20 * size**2 <= self.problem.gram.budget

    def _interior_points(self, block: np.ndarray, working: np.ndarray, plus: np.ndarray, minus: np.ndarray) -> None:
        """SMO crawls in the working set: an interior-point method goes on; the others enter through the linear term."""
        s = self.state
        m = len(working) - s.phantom
        at = working[:m]
        K, b = block[:m, :m].astype(np.float64), (s.plus - s.minus)[at]
        linear, width = s.gradient[at] - K @ b, s.width[at]
        groups = 0 if s.phantom else s.groups
        parts = barrier(K, linear, width, s.upper[at], s.lower[at], plus[:m], minus[:m], groups, 1e-9)
        if parts is None:
            return

        def value(p: np.ndarray, q: np.ndarray) -> float:
            c = p - q
            return float(c @ (0.5 * (K @ c) + linear) + width @ (p + q))

        if value(*parts) < value(plus[:m], minus[:m]):
            plus[:m], minus[:m] = parts
            if s.phantom:
                excess = float((plus - minus)[:m].sum()) - float(b.sum()) - (s.plus - s.minus)[-1]
                plus[-1], minus[-1] = max(0.0, -excess), max(0.0, excess)

    def _pause(self) -> str | None:
        """Between two working sets: limits, a checkpoint, a word to the listener."""
        self.run.checkpoint.write_now_and_then(plus=self.state.plus, minus=self.state.minus)
        if self.may_be_held and self._crawling_sets >= _CRAWLING_SETS:
            return CRAWLS
        if self.outer % self._sets_per_look == 0 and (reason := self._without_progress()) is not None:
            return reason
        history = self.run.history
        gap, seconds = (history[-1].gap, history[-1].seconds) if history else (math.inf, 0.0)
        if self.control.report is not None and self.control.seconds - seconds > 0.2:
            support = int(np.count_nonzero(self.state.coefficients))
            self.run.note(math.nan, self.state.dual, gap, support)
        return self.run.limit()

    def _without_progress(self) -> str | None:
        """Return why to stop, judged with fresh gradients: a target that rounding hides is never reached."""
        self._unshrink()
        self.recompute()
        bounds = self._look()
        if self._small_gap(bounds) and self._trustworthy(bounds):
            return Stop.CONVERGED
        gap, dual = self._progress
        gained = bounds.dual - dual
        if bounds.relative_gap <= 0.5 * gap or gained >= 0.05 * abs(bounds.dual):
            self._progress, self._idle_looks = (bounds.relative_gap, bounds.dual), 0
            return None
        self._idle_looks += 1
        if self._idle_looks < _IDLE_LOOKS and gained > 1e-12 * abs(bounds.dual):
            return None
        if not self.single:
            if self.may_be_held:
                return CRAWLS
            still = gained <= 1e-12 * abs(bounds.dual)
            return Stop.FLOOR if still else f"no progress in {self._sets_per_look * _IDLE_LOOKS} working sets"
        self._widen()
        self._progress, self._idle_looks = (math.inf, -math.inf), 0
        return None

    # -- shrinking --------------------------------------------------------------------------------------

    def _shrink(self) -> None:
        """Shrink to the active set: leave alone the points at a bound that no pair would move."""
        s = self.state
        shrinkable = ~s.free
        for up, down in s.slopes():
            low, high = up.min(), down.max()
            shrinkable &= (up >= high) & (down <= low)
        keep = ~shrinkable
        if keep.mean() > 0.9:
            return
        chosen = np.append(keep, True) if s.phantom else keep
        self.active = self._everyone[chosen[self._everyone]]
        self._active_points = self.active[self.active < s.n]
        self.shrunk = np.flatnonzero(~keep).astype(np.int32)
        self._before = s.coefficients
        self._recent = self._no_steps()

    def _unshrink(self) -> None:
        """Make all points active again: the gradient of the shrunk ones takes all changes since at once."""
        s = self.state
        self._recent = None
        if self.shrunk.size:
            change = s.coefficients - self._before
            moved = np.flatnonzero(change)
            if moved.size:
                s.gradient[self.shrunk] += self.matrix.columns_product(moved, change[moved], self.shrunk, self.single)
        self.active, self.shrunk = self._everyone, self._everyone[:0]


Product = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Extrapolation(NamedTuple):
    """A point further on: feasible but for the sum of its coefficients, which the next working set has to restore."""

    gradient: np.ndarray
    plus: np.ndarray
    minus: np.ndarray
    missing: float  # from the sum


class RecentSteps:
    """The last steps of a decomposition with one group of variables, and their products.

    Parameters
    ----------
    state
        Where the solver stands.
    product
        Returns the matrix times a vector that is given by its places and values, right for the active points.
    """

    def __init__(self, state: State, product: Product) -> None:
        self._state, self._product = state, product
        self._steps: list[tuple[np.ndarray, np.ndarray]] = []  # newest first, each with its image
        self._curvature = np.zeros((0, 0))

    def keep(self, step: np.ndarray, image: np.ndarray) -> None:
        """Remember a step and its image, K step."""
        self._steps = [(step, image), *self._steps][:_RECENT_STEPS]
        row = [dot(step, other) for _, other in self._steps]
        m = len(row)
        curvature = np.empty((m, m))
        curvature[0, :] = curvature[:, 0] = row
        curvature[1:, 1:] = self._curvature[: m - 1, : m - 1]
        self._curvature = curvature

    def extrapolation(self) -> Extrapolation | None:
        """Return the minimum over the span, moved into the box; None where there is nothing to gain.

        Each coefficient stays on its side of 0, where the objective is one quadratic function; what is 0 stays 0.
        """
        if not self._steps:
            return None
        s = self._state
        b = s.plus - s.minus
        low, high = np.where(s.minus > 0, -s.lower, 0.0), np.where(s.plus > 0, s.upper, 0.0)
        slope = s.gradient + np.sign(b) * s.width
        free = (b > low) & (b < high)
        if not free.any():
            return None
        slope -= slope[free].mean()  # about the offset: a change of the sum, to be undone, is neither gain nor loss
        falls = np.array([dot(slope, step) for step, _ in self._steps])
        t = -np.linalg.lstsq(self._curvature, falls, rcond=1e-10)[0]
        step = sum(weight * step for weight, (step, _) in zip(t, self._steps, strict=True))
        image = sum(weight * image for weight, (_, image) in zip(t, self._steps, strict=True))
        after = b + step
        outside = np.flatnonzero((after < low) | (after > high))
        if outside.size > _CLIPPED:
            return None
        if outside.size:
            back = np.clip(after[outside], low[outside], high[outside]) - after[outside]
            image += self._product(outside, back)
            step[outside] += back
        fall, curve = dot(slope, step), dot(step, image)
        if not (fall < 0 and curve > 0):
            return None
        length = min(1.0, -fall / curve)
        after = np.clip(b + length * step, low, high)
        gradient = s.gradient + length * image
        return Extrapolation(gradient, np.maximum(after, 0.0), np.maximum(-after, 0.0), float((b - after).sum()))


def restore_sum(
    missing: float,
    block: np.ndarray,
    gradient: np.ndarray,
    plus: np.ndarray,
    minus: np.ndarray,
    upper: np.ndarray,
    lower: np.ndarray,
) -> bool:
    """Restore the sum by the points of a working set that have most room; return whether they have enough."""
    if missing > 0:
        room = np.where(plus > 0, upper - plus, minus)
    else:
        room = np.where(plus > 0, plus, np.where(minus > 0, lower - minus, 0.0))
    balancing = np.argsort(-room)[:_BALANCING]
    room = room[balancing]
    total = float(room.sum())
    if total < 2 * abs(missing):
        return False
    if missing:
        given = missing / total * room
        b = (plus - minus)[balancing] + given
        plus[balancing], minus[balancing] = np.maximum(b, 0.0), np.maximum(-b, 0.0)
        gradient += np.einsum("i,ij->j", given, block[balancing])
    return True
