"""Losses with kinks that are not piecewise linear, or known by value and derivative only: augmented Lagrangians."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.certify import Stop
from mercer.solvers.representer.newton import Newton
from mercer.solvers.representer.problem import EPS, Point, Task, note
from mercer.solvers.run import Run
from mercer.solvers.systems.system import Systems

_MOST_ROUNDS = 300  # updates of the multipliers
_RHO_GROWTH = 5.0  # factor of rho where a round leaves more than a fifth of the distance to the copies
_IDLE_ROUNDS = 12  # rounds without progress, after which only rounding is left
_FIRST_RHO = 10.0  # in units of slope over spread


class Envelope:
    r"""The smooth function of a prediction v that is left of a loss after the minimum over a copy g of v.

    .. math:: E_i(v) = \min_g \ w_i L(y_i, g) + \tfrac{\rho}{2} (v + m_i - g)^2

    Its derivative rho (v + m - g) is a subgradient of w L at the minimiser g, which the prox finds; its second
    derivative is between 0 and rho: rho at a kink, 0 on a straight piece.
    """

    smooth = True
    convex = True

    def __init__(self, loss: Any, y: np.ndarray, weights: np.ndarray, multipliers: np.ndarray, rho: float) -> None:
        self.loss, self.y, self.weights, self.m, self.rho = loss, y, weights, multipliers, rho
        self.step = np.maximum(weights, 1e-300) / rho
        self._known: tuple[Any, np.ndarray] = (None, multipliers)

    def copies(self, v: np.ndarray) -> np.ndarray:
        """Return the g of each prediction."""
        if self._known[0] is not v:
            self._known = (v, self._prox(v + self.m))
        return self._known[1]

    def _prox(self, x: np.ndarray) -> np.ndarray:
        g = self.loss.prox(self.y, x, self.step) if hasattr(self.loss, "prox") else self._halved(x)
        return np.where(self.weights > 0, g, x)

    def _halved(self, x: np.ndarray) -> np.ndarray:
        """The root of g + step L'(g) = x, which lies between x and x - step L'(x), by halving.

        Most of these roots lie at kinks, where nothing is faster than halving. `losses.numeric.prox` interpolates and
        ends with the nearest float: it takes ten times as long.
        """
        slope, y, step = self.loss.derivative, self.y, self.step
        other = x - step * slope(y, x)
        low, high = np.minimum(x, other), np.maximum(x, other)
        fine = 2.0 * EPS * np.maximum(np.abs(x), np.abs(other))
        for _ in range(100):
            middle = 0.5 * (low + high)
            above = middle + step * slope(y, middle) > x
            low, high = np.where(above, low, middle), np.where(above, middle, high)
            if (high - low <= fine).all():
                break
        return 0.5 * (low + high)

    def value(self, y: Any, v: np.ndarray) -> np.ndarray:
        g = self.copies(v)
        return self.weights * self.loss.value(self.y, g) + 0.5 * self.rho * (v + self.m - g) ** 2

    def derivative(self, y: Any, v: np.ndarray) -> np.ndarray:
        return self.rho * (v + self.m - self.copies(v))

    def curvature(self, y: Any, v: np.ndarray) -> np.ndarray:
        """Return rho c / (c + 1 / step), c being the loss's curvature at g: a difference of slopes, huge at a kink."""
        g = self.copies(v)
        size = np.maximum(np.abs(g), np.abs(v + self.m - g))
        h = np.maximum(np.minimum(1e-6 * np.maximum(1.0, size), 1e-4 * self.step), 16.0 * EPS * size)
        c = (self.loss.derivative(self.y, g + h) - self.loss.derivative(self.y, g - h)) / ((g + h) - (g - h))
        c = self.step * np.maximum(c, 0.0)
        share = np.where(np.isfinite(c), c / (1.0 + c), 1.0)
        return self.rho * np.where((share > 1e-9) & (self.weights > 0), share, 0.0)


def solve_proximal(task: Task, run: Run, tol: float) -> Point:
    r"""Minimise by the method of multipliers, each of its problems by Newton steps on envelopes of the losses.

    The losses act on a copy g of v = K a + b. In turn, minimise the augmented Lagrangian over (a, b, g), and add the
    difference v - g to the multipliers (Rockafellar 1976; by Newton steps Li, Sun and Toh 2018).
    The points on straight pieces leave the Newton systems, so that these are as small as the set of kinks in use. The
    derivative u of the envelope is a subgradient of the losses at g and sums to 0; with r = strength a + u the gap is

    .. math:: P - D = \sum_i w_i (L(v_i) - L(g_i)) - u_i (v_i - g_i) + \frac{r'Kr}{2\,\text{strength}}
    """
    assert task.systems is not None
    n, strength = len(task), task.strength
    a = np.zeros(n) if task.a is None else np.asarray(task.a, dtype=np.float64)
    f = task.systems.product(a) if a.any() else np.zeros(n)
    b = task.best_offset(f, float(task.b))
    multipliers, rho = -strength * a, _steepness(task, f + b)
    best: Point | None = None
    last = math.inf
    stopped = Stop.FLOOR
    idle = 0
    for _ in range(_MOST_ROUNDS):
        envelope = Envelope(task.loss, task.y, task.weights, multipliers / rho, rho)
        inner = Task(task.systems, task.y, envelope, np.ones(n), task.intercept, strength, a, b)
        share = 0.1 * min(tol * abs(best.primal), best.gap) if best is not None else 0.0
        quiet = Run(run.control, quiet=True, steps=run.steps)
        try:
            minimiser = Newton(inner, quiet).run(1e-3 if best is None else 1e-14, share)
            point = _judged(task, task.systems, envelope, minimiser)
        except KeyboardInterrupt:
            if best is None:
                raise
            run.control.cancel()
            stopped = Stop.INTERRUPTED
            break
        run.steps = max(run.steps + 1, quiet.steps)
        a, b = minimiser.a, minimiser.b
        idle = 0 if best is None or point.gap < 0.9 * best.gap else idle + 1
        best = point if best is None or point.gap < best.gap else best
        note(run, point.primal, point.relative_gap, a, b, strength)
        if point.relative_gap <= tol:
            best, stopped = point, Stop.CONVERGED
            break
        if (limit := run.limit()) is not None:
            stopped = limit
            break
        if idle >= _IDLE_ROUNDS:
            break
        v = minimiser.f + minimiser.b
        multipliers = envelope.derivative(task.y, v)
        apart = float(np.linalg.norm(v - envelope.copies(v)))
        if apart > 0.2 * last:
            rho *= _RHO_GROWTH
        last = apart
    assert best is not None
    best.stopped, best.solver = stopped, "augmented Lagrangians with the prox of the loss"
    return best


def _steepness(task: Task, v: np.ndarray) -> float:
    """Return a first rho: about the change of the losses' slopes over the spread of the predictions."""
    u = np.abs(np.nan_to_num(task.slopes(v)))
    slope = float(u.mean())
    spread = float(np.std(task.y)) if getattr(task.loss, "target", "real") != "label" else 1.0
    spread = spread if 0 < spread < math.inf else max(1.0, float(np.abs(task.y).max()) * 1e-3)
    return _FIRST_RHO * slope / spread if 0 < slope < math.inf else _FIRST_RHO


def _judged(task: Task, systems: Systems, envelope: Envelope, point: Point) -> Point:
    """Return the point with the objectives of the loss itself."""
    v = point.f + point.b
    g, strength = envelope.copies(v), task.strength
    u = envelope.derivative(task.y, v)  # not the Newton method's, which may be of another kind
    r = strength * point.a + u
    Kr = systems.product(r)
    before = task.total(g)
    b = task.best_offset(point.f, point.b) if getattr(task.loss, "smooth", False) else point.b
    v = point.f + b
    loss = task.total(v)
    terms = loss - before - float(u @ (v - g))
    noise = EPS * (float(np.abs(v).max()) + float(np.abs(task.y).max()))
    rounding = 8.0 * (EPS * abs(loss) + noise * float(np.abs(u).sum())) + point.rounding
    apart = float(np.abs(v - g).max())
    return replace(
        point,
        b=b,
        loss=loss,
        gap=max(terms, 0.0) + abs(float(r @ Kr)) / (2.0 * strength),
        pull=max(float(u @ (Kr - strength * point.f)), 0.0),
        conjugates=float(u @ g) - before,
        rounding=rounding,
        kkt=max(float(np.abs(Kr).max()) / strength, apart),
    )
