"""Newton's method for piecewise quadratic linear models: squared hinges at once, hinges by proximal steps."""

from __future__ import annotations

import numpy as np

from mercer.certify import Stop, relative_gap
from mercer.solvers.linear.problem import LinearProblem, State, total
from mercer.solvers.linear.system import MatrixFree, System, system


def squared_newton(problem: LinearProblem, state: State, tol: float) -> State:
    """Minimise a squared-hinge problem: with alpha = 2 cost max(0, z) a step is a weighted least-squares fit."""
    strength = np.broadcast_to(2 * problem.cost, problem.sign.shape)
    return _newton(problem, state, tol, system(problem.rows), np.zeros_like(strength), strength, np.inf)


def proximal(problem: LinearProblem, state: State, tol: float) -> State:
    """Minimise a hinge problem without factorising anything as large as X (Li, Sun and Toh, 2018).

    The dual is maximised by proximal steps: with the anchor a of the last step and strengths s,

        alpha = clip(a + s z, 0, cost),

    which turns the hinge into a Huber function of width cost/s around the anchor. Newton's method minimises it; only
    rows inside that width have curvature, about as many as there are support vectors on the margin.

    Parameters
    ----------
    problem, state, tol
        As for `interior_point`.
    """
    newton = system(problem.rows)
    cost = np.broadcast_to(problem.cost, problem.sign.shape)
    z = problem.slack(problem.rows.times(state.v))
    # One step of the anchor should be able to travel the whole box on data whose slacks are about 1.
    width = max(float(np.abs(z).mean()), 1e-300)
    strength = cost / width
    if state.alpha is None:
        state.alpha = np.zeros(cost.shape)
    last = np.inf
    while True:
        _newton(problem, state, tol, newton, state.alpha, strength, problem.cost)
        if state.stopped != Stop.CONVERGED or state.gap <= tol:
            return state
        if state.gap > 0.25 * last:
            strength = 4 * strength
        last = min(last, state.gap)
        if float(strength.max()) > 1e12 * float(cost.max()) / width:
            state.stopped = Stop.rounding("the proximal steps make no progress")
            return state


def smoothed(problem: LinearProblem, state: State, tol: float, width: float) -> State:
    """Minimise with each hinge rounded over `width` around its kink: close to the solution after a few cheap steps.

    Only rows inside the width have curvature, so that a step costs two products with A and the matrix of those rows.

    Parameters
    ----------
    problem, state, tol
        As for `interior_point`.
    width
        In units of f.
    """
    half = np.broadcast_to(0.5 * problem.cost, problem.sign.shape)
    return _newton(problem, state, tol, system(problem.rows), half, (2 / width) * half, problem.cost)


def _newton(
    problem: LinearProblem,
    state: State,
    tol: float,
    newton: System,
    anchor: np.ndarray,
    strength: np.ndarray,
    cap: np.ndarray | float,
) -> State:
    """Minimise the objective with loss' = alpha(z) = clip(anchor + strength z, 0, cap).

    A step is exact where no z leaves its piece. Ends when the relative gap of the problem itself is `tol`, or when the
    residual says that further steps can only improve the smoothed problem.
    """
    rows, sign = problem.rows, problem.sign
    p = rows.penalty
    v = state.v
    f = rows.times(v)
    smallest, stalled = np.inf, 0
    fresh = True  # f is A v, not yet a sum of steps
    while True:
        z = problem.slack(f)
        alpha = np.clip(anchor + strength * z, 0.0, cap)
        pull = problem.pull(alpha)
        gradient = p * v - pull
        primal, dual = problem.primal(v, z), problem.dual(alpha, pull)
        residual = 0.5 * rows.dual_square(gradient)
        if rows.offset:
            residual += abs(float(gradient[-1])) * max(abs(float(v[-1])), float(np.abs(z).max()))
        state.v, state.alpha = v, alpha
        state.gap = relative_gap(abs(primal - dual) + residual, primal, dual)
        size = float(np.linalg.norm(gradient / np.sqrt(p + rows.shape[0])))
        stalled = 0 if size < 0.9 * smallest else stalled + 1
        smallest = min(smallest, size)
        if state.gap <= tol or (not problem.squared and residual <= 0.1 * abs(primal - dual)) or size == 0:
            if fresh:
                return state
            f, fresh = rows.times(v), True
            continue
        state.note(primal, dual, state.gap, int((alpha > 0).sum()))
        limit = state.limit()
        if limit or stalled >= 30:
            state.stopped = limit or Stop.rounding("no progress in 30 steps")
            return state
        curved = (alpha > 0) & (alpha < cap)
        weight = total(strength * curved)
        # Where no row has curvature nothing holds the offset, and its step is a guess for the line search to correct.
        lift = (1e-10 if weight.any() else 1e-3) * float(strength.sum()) if rows.offset else 0.0
        newton.update(weight, lift)
        if isinstance(newton, MatrixFree):
            newton.accuracy = min(0.1, max(1e-10, state.gap))
        dv = newton.solve(-gradient)
        df = rows.times(dv)
        constant = float(p @ (v * dv)) - (0.0 if problem.linear is None else float(problem.linear @ dv))
        step = step_length(constant, float(p @ (dv * dv)), z, sign * df, anchor, strength, cap)
        v, f, fresh = v + step * dv, f + step * df, False
        state.steps += 1


def step_length(
    constant: float,
    growth: float,
    z: np.ndarray,
    dz: np.ndarray,
    anchor: np.ndarray,
    strength: np.ndarray,
    cap: np.ndarray | float,
) -> float:
    """Return the step that minimises the objective along a line: the zero of an increasing, piecewise linear slope.

    Parameters
    ----------
    constant, growth
        The slope that the penalty adds is constant + growth t.
    z, dz
        The slacks are z - t dz.
    anchor, strength, cap
        The derivative of the loss is clip(anchor + strength z, 0, cap).
    """

    def slope(t: float) -> tuple[float, float]:
        raw = anchor + strength * (z - t * dz)
        alpha = np.clip(raw, 0.0, cap)
        inside = alpha == raw
        return constant + t * growth - float((alpha * dz).sum()), growth + float((strength * dz * dz * inside).sum())

    start = slope(0.0)[0]
    low, high, t = 0.0, np.inf, 1.0
    for _ in range(60):
        first, second = slope(t)
        if abs(first) <= 0.05 * abs(start):
            break
        low, high = (low, t) if first > 0 else (t, high)
        t = t - first / second if second > 0 else np.inf
        if not low < t < high:
            t = 0.5 * (low + high) if np.isfinite(high) else 4 * low
        if high - low <= 1e-12 * high:
            break
    return t
