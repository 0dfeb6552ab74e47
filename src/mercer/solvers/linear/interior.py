"""A primal-dual interior-point method for hinge losses on few columns (Ferris and Munson, 2002; Mehrotra, 1992)."""

from __future__ import annotations

import math

import numpy as np

from mercer.certify import Stop, relative_gap
from mercer.solvers.linear.problem import LinearProblem, State, balanced, total
from mercer.solvers.linear.system import System, system

_STALLED = Stop.rounding("no progress in 15 steps")
_OVERFLOW = Stop.rounding("numbers too large for float64")
_LOST = (_STALLED, _OVERFLOW)


def interior_point(problem: LinearProblem, state: State, tol: float) -> State:
    """Follow the central path of the hinge problem until the relative gap is `tol`.

    With slacks xi, u >= 0 of each side, sign f + xi - u = target, and multipliers alpha of u and cost - alpha of xi:

        alpha u = mu,  (cost - alpha) xi = mu,  P v = linear + A'(sign alpha),  mu -> 0.

    A step eliminates everything but v, so that its cost is A' diag(theta) A and a few products with A.

    Parameters
    ----------
    problem
        With hinges that are not squared.
    state
        `v` is the start (a nearby solution helps); updated step by step.
    tol
        The relative gap at which to stop.
    """
    start = state.v
    _follow(problem, state, tol, np.inf, 0.0)
    if state.stopped in _LOST:
        # Other ways, for the few problems that rounding errors defeat. Where alpha is not unique (equal rows) nothing
        # holds it: a proximal term does, and moves no solution (Friedlander and Orban, 2012). And from the middle of a
        # box that is huge beside every solution there may be no way back: alpha k(x, x) is a change of f, which gives
        # alpha a size.
        scale = problem.rows.mean_square()
        size = float(np.abs(problem.slack(problem.rows.times(start))).mean()) / scale
        for largest, hold in ((np.inf, 1e-13 * scale), (1e4 * size, 0.0), (1e4 * size, 1e-13 * scale)):
            previous = state.v, state.alpha, state.gap
            state.v, state.stopped = start, Stop.CONVERGED
            _follow(problem, state, tol, largest, hold)
            if state.stopped not in _LOST:
                break
            if not state.gap <= previous[2]:
                state.v, state.alpha, state.gap = previous
    return state


def _follow(problem: LinearProblem, state: State, tol: float, largest: float, hold: float) -> None:
    """Follow the path from alpha in the middle of its box, or at `largest` where that is less, held by `hold`."""
    rows, sign, cost, target = problem.rows, problem.sign, problem.cost, problem.target
    p = rows.penalty
    newton = system(rows)
    v = state.v
    f = rows.times(v)
    z = problem.slack(f)
    width = max(float(np.abs(z).mean()), 1e-12 * float(np.abs(target).max()), 1e-300)
    xi, u = np.maximum(z, 0.0) + 0.1 * width, np.maximum(-z, 0.0) + 0.1 * width
    alpha = np.broadcast_to(np.minimum(0.5 * cost, largest), z.shape).copy()
    room = cost - alpha
    xi *= alpha / room
    state.gap = np.inf
    best, smallest, stalled = np.inf, np.inf, 0
    fresh = True  # f is A v, not yet a sum of steps
    while True:
        pull = problem.pull(alpha)
        z = target - sign * f
        primal, dual = problem.primal(v, z), problem.dual(alpha, pull)
        gap = abs(primal - dual)
        if rows.offset:  # what it would cost to balance alpha
            unbalanced = abs(float(pull[-1])) - 1e-14 * float(alpha.sum())  # less than that is rounding
            gap += max(0.0, unbalanced) * (abs(float(v[-1])) + width)
        mu = (float(np.vdot(alpha, u)) + float(np.vdot(room, xi))) / (2 * alpha.size)
        relative = relative_gap(gap, primal, dual)
        if not math.isfinite(relative):
            state.stopped = _OVERFLOW
            return
        # The gap of the iterates may grow while they are far from feasible; then mu still falls.
        stalled = 0 if gap < best or mu < 0.9 * smallest else stalled + 1
        smallest = min(smallest, mu)
        if gap < best or relative <= tol:
            state.v, state.alpha, state.gap, best = v, alpha, relative, gap
        if relative <= tol:
            if not fresh:
                f, fresh = rows.times(v), True
                continue
            state.alpha = balanced(problem, alpha)
            proven = problem.dual(state.alpha, problem.pull(state.alpha))
            state.gap = relative_gap(primal - proven, primal, proven)
            if state.gap <= tol:
                return
        state.note(primal, dual, relative, int((alpha > 1e-6 * cost).sum()))
        limit = state.limit()
        if limit or stalled >= 15 or mu < 1e-290:
            state.stopped = limit or _STALLED
            return
        held = min(hold, 1e-9 * width / float(alpha.mean()))
        ratio_u, ratio_xi = u / alpha, xi / room
        theta = 1.0 / (ratio_u + ratio_xi + held)
        newton.update(total(theta))
        stationarity = p * v - pull
        # Towards the solution itself; how far that goes says how much of mu to keep, and what curves away.
        dv, df, da = _direction(problem, newton, theta, stationarity, z)
        du, dxi = -u - ratio_u * da, ratio_xi * da - xi
        step = longest(1.0, [(alpha, da), (room, -da), (u, du), (xi, dxi)])
        reached = float(np.vdot(alpha + step * da, u + step * du)) + float(np.vdot(room - step * da, xi + step * dxi))
        kept = mu * (reached / (2 * alpha.size) / mu) ** 3
        curved, far = (da * du, da * dxi), step
        # The correction supposes a whole step: after a short one it can lead in circles, and less of it is better
        # (Colombo and Gondzio, 2008). Without progress, back to the central path.
        for share in (0.0,) if stalled >= 3 else (1.0, far * far, 0.0):
            aim = kept if share == 1.0 else max(kept, 0.2 * mu)
            first, second = (aim - share * curved[0]) / alpha, (aim + share * curved[1]) / room
            dv, df, da = _direction(problem, newton, theta, stationarity, z + first - second)
            du, dxi = first - u - ratio_u * da, second - xi + ratio_xi * da
            step = min(1.0, 0.995 * longest(2.0, [(alpha, da), (room, -da), (u, du), (xi, dxi)]))
            if step >= 0.5 * far or step >= 0.3:
                break
        if stalled:  # mu along the step is a parabola: not beyond its lowest point
            slope = float(np.vdot(da, u - xi)) + float(np.vdot(alpha, du)) + float(np.vdot(room, dxi))
            curvature = float(np.vdot(da, du - dxi))
            if slope < 0 < curvature:
                step = min(step, -0.5 * slope / curvature)
        v, f, fresh = v + step * dv, f + step * df, False
        alpha, u, xi = alpha + step * da, u + step * du, xi + step * dxi
        room = room - step * da
        state.steps += 1


def _direction(
    problem: LinearProblem, newton: System, theta: np.ndarray, stationarity: np.ndarray, q: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the Newton step in v, f and alpha; q holds the slacks, corrected for what the step does to xi and u."""
    signed = problem.sign * theta
    dv = newton.solve(problem.rows.transposed(total(signed * q)) - stationarity)
    df = problem.rows.times(dv)
    return dv, df, theta * q - signed * df


def longest(limit: float, pairs: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """Return the longest step, up to the limit, after which no variable is negative; pairs are values and changes."""
    for value, change in pairs:
        worst = float((change / value).min(initial=0.0))
        if worst * limit < -1.0:
            limit = -1.0 / worst
    return limit
