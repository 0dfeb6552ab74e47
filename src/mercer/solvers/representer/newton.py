"""Newton's method on the coefficients of the representer theorem, for losses with a continuous derivative."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mercer.certify import Stop
from mercer.gram import Gram
from mercer.machine.budget import readable
from mercer.solvers.representer.directions import ROUGH, Directions
from mercer.solvers.representer.problem import EPS, Point, Task, dual_point, hidden, hold_few, note
from mercer.solvers.run import Run

EXACT = 2500  # points up to which each Newton system is factorised
_FIRST_FORCING = 3e-2  # relative residual to which the first systems of more points are solved
_FORCING_PER_ROOT = 0.5  # relative residual of the next system, per root of the predicted relative gain
_MODEL_ERROR = 0.02  # distance to the minimum of Newton's model, as a share of the gain of the step
_TIGHTEST = 1e-5  # smallest forcing and model error after cut steps, as their systems may have been too rough
_MOST_STEPS = 2000  # Newton steps; more mean that the derivatives of the loss are wrong
_GAP_POINTS = 2000  # points up to which the gap is computed at each step, as its product with K is cheap
_CUT_STEPS = 3  # steps in a row cut to less than a fifth; then a path of larger strengths is followed
_CUT_SHORT = "steps cut short"  # why `_descend` ends then
_LOCAL_GAIN = 1e-3  # predicted gain in units of the objective, below which the minimiser is near
_IDLE_LOOKS = 8  # evaluations of the gap without progress, after which only rounding is left


def method(gram: Gram) -> str:
    """Return how linear systems will be solved, and the memory that takes."""
    n = gram.shape[0]
    if n <= EXACT:
        return f"a Cholesky factorisation, {readable(16 * n * n)}"
    return f"preconditioned conjugate gradients, up to {readable(min(8 * n * n, gram.budget // 3))}"


class Newton:
    """Semi-smooth Newton steps with a line search on the objective (Chapelle 2007, for any loss).

    With u_i = w_i L'(v_i) at v = K a + b, each step goes towards the minimiser of the quadratic model (`Directions`,
    where the equation is); the step of the offset makes the coefficients sum to 0. Where the loss is convex, u is a
    dual point, and its conjugate is known by the equality of Fenchel and Young. With r = lambda a + u the gap is then
    r'Kr / (2 lambda).

    Parameters
    ----------
    task
        The problem. If its loss is not convex the method descends to a stationary point.
    run
        Limits, history, checkpoint; `progress` of the solver.
    name
        How the solver calls itself in certificates.
    """

    def __init__(self, task: Task, run: Run, name: str = "Newton") -> None:
        self.task, self.progress, self.name = task, run, name
        assert task.systems is not None
        self.systems = task.systems
        hold_few(task.systems)
        self._fresh = False  # whether f is a product of float64 values with a, not a sum of steps
        n = len(task)
        self.a = np.zeros(n) if task.a is None else np.array(task.a, dtype=np.float64)
        self.f = self.systems.product(self.a) if self.a.any() else np.zeros(n)
        self.b = float(task.b)
        self.diagonal = np.abs(np.asarray(self.systems.gram.diag(), dtype=np.float64))
        self.size = float(self.diagonal.max())
        self.lengths = np.sqrt(self.diagonal)
        self.directions = Directions(task, self.diagonal)
        self.forcing, self.share = _FIRST_FORCING, _MODEL_ERROR
        self._v: tuple = (None, 0.0, self.f)
        self._aside = False  # whether the strength is not that of the problem
        self._short = 0  # steps in a row that were cut short
        self._last = math.inf

    def run(self, tol: float, enough: float = 0.0, at_least: int = 0) -> Point:
        """Return the minimiser to a relative gap of `tol`, or to a gap of `enough`, after so many steps at least."""
        task = self.task
        if not math.isfinite(task.total(self.v)):
            self._begin_again()
        try:
            point, stopped = self._descend(tol, enough, at_least, may_restart=True)
            if stopped == _CUT_SHORT:
                self._aside = True
                for strength in self._larger_strengths():
                    if self.progress.limit() is not None:
                        break
                    self.task = replace(task, strength=strength)
                    self._descend(1e-2, 0.0)
                self.task, self._aside = task, False
                point, stopped = self._descend(tol, enough)
        except KeyboardInterrupt:
            self.progress.control.cancel()
            stopped = Stop.INTERRUPTED
            self.task = task
            self.f = self.systems.product(self.a)
            point = self._look(tol)
        point.stopped = Stop.CONVERGED if point.relative_gap <= tol else stopped
        point.solver = self.name
        return point

    def _larger_strengths(self) -> list[float]:
        """Return larger strengths to come down from, for when Newton's steps are cut short again and again.

        At the first one no function value can be larger than the scale of y. Each solution is close to the next.
        """
        task = self.task
        self.a, self.f = np.zeros_like(self.a), np.zeros_like(self.f)
        self.b = task.best_offset(self.f, self.b)
        pull = float(np.abs(task.slopes(self.f + self.b)).sum()) * self.size
        scale = float(np.std(task.y)) or max(1.0, float(np.abs(task.y).max()))
        first = pull / scale
        count = max(1, math.ceil(math.log10(max(first / task.strength, 10.0))))
        return [task.strength * 10.0**k for k in range(count, 0, -1)]

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")  # the line search comes back from infinity
    def _descend(self, tol: float, enough: float, at_least: int = 0, may_restart: bool = False) -> tuple[Point, str]:
        """Take Newton steps until the gap is small enough, a limit is reached, or nothing moves any more."""
        task, run = self.task, self.progress
        self._short, self._last = 0, math.inf
        best = self._look(tol)
        point: Point | None = best
        bound, lowest, idle, begun = best.primal - best.gap, best.primal, 0, run.steps
        while True:
            if point is not None:
                taken = run.steps - begun >= at_least or point.gap == 0
                if taken and (point.relative_gap <= tol or point.gap <= enough):
                    if self._trusted():
                        return point, Stop.CONVERGED
                    point = self._look(tol)
                    continue
                better = point.gap < 0.9 * best.gap or point.primal < lowest - 1e-9 * abs(lowest)
                idle = 0 if better else idle + 1
                lowest, best = min(lowest, point.primal), min(best, point, key=lambda p: p.gap)
                bound = max(bound, point.primal - point.gap)
            stopped = run.limit()
            if stopped is None and idle >= _IDLE_LOOKS:
                stopped = Stop.FLOOR
            if stopped is None and run.steps - begun >= _MOST_STEPS:
                stopped = f"{_MOST_STEPS} Newton steps"
            if stopped is not None:
                if point is None or point.gap > best.gap:
                    point = self._look(tol)
                    if task.convex and lowest <= point.primal:
                        point = best
                if task.convex:
                    point.gap = min(point.gap, point.primal - bound)
                return point, stopped
            if may_restart and task.convex and self._short >= _CUT_STEPS:
                return best, _CUT_SHORT
            predicted = self._step()
            run.steps += 1
            near = predicted <= 4.0 * max(tol * abs(self.value), enough) or run.steps % 10 == 0
            point = self._look(tol, product=near or predicted <= 0)
            if not math.isfinite(point.gap) or not (near or len(task) <= _GAP_POINTS or point.relative_gap <= tol):
                point = None  # too far for more than an estimate
            gap = point.relative_gap if point is not None else predicted / max(abs(self.value), 1e-300)
            note(run, self.value, gap, self.a, self.b, task.strength, keep=not self._aside)

    def _begin_again(self) -> None:
        self.a, self.f, self.b = np.zeros_like(self.a), np.zeros_like(self.f), 0.0
        start = self.task.total(self.f)
        if not math.isfinite(start):
            y = self.task.y
            raise ValueError(
                f"the loss {self.task.loss!r} is not finite at f = 0, where y lies between {y.min():.3g} and "
                f"{y.max():.3g}: divide y by its largest value, or use a loss that grows more slowly (Absolute, Huber)."
            )

    # -- where the run stands ---------------------------------------------------------------------------

    @property
    def v(self) -> np.ndarray:
        """f(x_i) + b; the same array while neither changes, as some losses keep results for the last array."""
        if self._v[0] is not self.f or self._v[1] != self.b:
            self._v = (self.f, self.b, self.f + self.b)
        return self._v[2]

    @property
    def value(self) -> float:
        """The objective."""
        return self.task.total(self.v) + 0.5 * self.task.strength * float(self.a @ self.f)

    def _look(self, tol: float = 0.0, product: bool = True) -> Point:
        """Update the offset, so that u is a dual point; return the current point with its gap.

        Of two dual points, -strength a and the slopes of the losses, the one with the smaller gap counts. The gap of
        the second, and the exact gap of the first, take a product with K. Where a bound on the gap of the first is
        enough, or if `product` is False, there is no product.
        """
        task, strength = self.task, self.task.strength
        self.b = task.best_offset(self.f, self.b)
        v = self.v
        u, d = task.slopes(v), task.curvatures(v)
        square, loss = float(self.a @ self.f), task.total(v)
        gap, pull, kkt, conjugates = math.inf, math.inf, math.inf, float(u @ v) - loss
        dual = dual_point(task, self.a, v, u, self.lengths, d)
        if dual is not None:
            gap, pull = dual.gap, (strength * math.sqrt(max(square, 0.0)) + dual.apart) ** 2
            with np.errstate(all="ignore"):
                away = np.abs(strength * self.a + u) / d
            kkt = float(away[d > 1e-12 * float(d.max())].max(initial=0.0))
        primal = loss + 0.5 * strength * square
        known = dual is not None and not self.a.any()  # the start; the other dual point is far away, too
        if len(task) <= _GAP_POINTS or (product and gap > tol * abs(primal) and not known):
            r = strength * self.a + u
            both = self.systems.product(np.stack([r] if dual is None else [r, dual.rest], axis=1))
            Kr = both[:, 0]
            other = abs(float(r @ Kr)) / (2.0 * strength)
            if dual is not None:
                K_rest = both[:, 1]
                exact = dual.missing + abs(float(dual.rest @ K_rest)) / (2.0 * strength)
                if exact < gap:
                    gap, pull = exact, max(float(dual.u @ (K_rest - strength * self.f)), 0.0)
            if other <= gap:
                gap, pull = other, max(float(u @ (Kr - strength * self.f)), 0.0)
                kkt, dual = float(np.abs(Kr).max()) / strength, None
        gap += hidden(self.a, self.lengths, strength)
        noise = EPS * (float(np.abs(v).max()) + float(np.abs(task.y).max()))  # in each value
        slope_noise = noise * float(d.sum())  # in the sum of the derivatives
        rounding = 4.0 * (EPS * abs(loss) + noise * float(np.abs(u).sum()) + noise * slope_noise)
        rounding += slope_noise * (slope_noise * self.size / (2.0 * strength))
        if dual is not None:
            u, conjugates = dual.u, dual.conjugates
        a, f = self.a.copy(), self.f.copy()
        return Point(a, self.b, f, u, loss, square, gap, pull, conjugates, kkt, rounding, strength)

    def _trusted(self) -> bool:
        """Whether f is a product with kernel values in float64; if not, take one and say no."""
        fresh, self._fresh = self._fresh, True
        if not fresh:
            self.f = self.systems.product(self.a, precise=True)
        return fresh

    # -- one step ---------------------------------------------------------------------------------------

    def _step(self) -> float:
        """Take one step; return what Newton's model says the objective was above the optimum."""
        task, strength = self.task, self.task.strength
        v = self.v
        u = task.slopes(v)
        r = strength * self.a + u
        step, shift, Ks = self.directions.find(task, v, self.a, r, self.forcing, self.share, self.value)
        slope = float(r @ Ks) + float(u.sum()) * shift
        if not slope < 0:  # rounding, or a system solved too roughly: the gradient descends in any case
            self.forcing = max(0.01 * self.forcing, 1e-12)
            self.share = max(0.01 * self.share, _TIGHTEST)
            step, shift = -r / strength, 0.0
            Ks = self.systems.product(step)
            slope = float(r @ Ks)
            if not slope < 0:
                return 0.0
        t = self._search(v, Ks + shift, float(self.a @ Ks), float(step @ Ks), slope)
        self._short = self._short + 1 if t < 0.2 else 0
        self.a, self.f, self.b = self.a + t * step, self.f + t * Ks, self.b + t * shift
        self._adapt(-slope / 2.0, t)
        self._fresh = False
        return -slope / 2.0

    def _adapt(self, predicted: float, t: float) -> None:
        """Solve the next system to an error smaller than that of Newton's model."""
        size = max(abs(self.value), 1e-300)
        if t == 1.0 and self._last <= _LOCAL_GAIN * size and predicted > 0.1 * self._last:
            self.forcing *= 0.1  # close by, only inexact steps make slow progress
            self.share = max(0.1 * self.share, _TIGHTEST)
        elif t < 0.5:
            self.share = max(0.3 * self.share, _TIGHTEST)
            tightest = _TIGHTEST if self._short > 1 else ROUGH
            self.forcing = max(0.1 * self.forcing, min(self.forcing, tightest))
        self.forcing = max(min(self.forcing, _FORCING_PER_ROOT * math.sqrt(predicted / size)), 1e-12)
        self._last = predicted

    def _search(self, v: np.ndarray, e: np.ndarray, aKs: float, sKs: float, start: float) -> float:
        """Return how far to go: all the way if that is good, else to where the objective is smallest on the line."""
        task, strength = self.task, self.task.strength
        base = task.total(v)

        seen: list = [0.0, v]

        def at(t: float) -> np.ndarray:
            if seen[0] != t:
                seen[:] = t, v + t * e
            return seen[1]

        def slope(t: float) -> float:
            total = float(task.slopes(at(t)) @ e) + strength * (aKs + t * sKs)
            return total if total == total else math.inf

        def gain(t: float) -> float:
            return task.total(at(t)) - base + strength * t * (aKs + 0.5 * t * sKs)

        slack = 8.0 * EPS * abs(base)
        if not task.convex:
            t = 1.0
            while gain(t) > 1e-4 * t * start + slack and t > 1e-16:
                t *= 0.5
            return t
        t, derivative = 1.0, slope(1.0)
        if abs(derivative) <= 0.5 * abs(start) and gain(1.0) <= slack:
            return 1.0
        low, high = 0.0, math.inf
        at_low, at_high = start, math.inf
        for _ in range(80):
            if derivative < 0:
                low, at_low = t, derivative
            else:
                high, at_high = t, derivative
            if abs(derivative) <= 0.1 * abs(start) and (derivative <= 0 or gain(t) <= slack):
                return t
            if high == math.inf:
                if t > 1e6:
                    return t
                t *= 4.0
            else:
                t = 0.5 * (low + high)
                if at_high < math.inf:
                    secant = low - at_low * (high - low) / (at_high - at_low)
                    t = min(max(secant, low + 0.1 * (high - low)), high - 0.1 * (high - low))
            derivative = slope(t)
        return low if low > 0 else t
