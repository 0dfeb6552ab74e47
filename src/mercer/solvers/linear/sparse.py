"""Linear classifiers with few weights, |w|_1 in place of |w|²/2: interior points on the columns that matter."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize, sparse

from mercer.certify import Stop, relative_gap
from mercer.solvers.control import Control
from mercer.solvers.linear.interior import longest
from mercer.solvers.linear.problem import LinearProblem, LinearSolution, balanced
from mercer.solvers.linear.rows import Rows
from mercer.solvers.linear.system import ByColumns
from mercer.solvers.run import Run

_COLUMNS_AT_ONCE = 400  # columns up to which all are solved for at once
_SIMPLEX_ROWS = 2000  # rows up to which a simplex method ends sooner, and with fewer weights, than interior points
_IDLE_STEPS = 15  # steps without progress, after which only rounding is left


@dataclass
class Point:
    """A model and dual variables, and the objectives that they prove."""

    v: np.ndarray
    alpha: np.ndarray
    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """Their distance in units of the primal."""
        return relative_gap(self.primal - self.dual, self.primal, self.dual)


def solve_sparse(problem: LinearProblem, control: Control) -> LinearSolution:
    r"""Minimise |w|_1 + sum_i cost_i loss(1 - y_i f_i) over w and the offset to the relative gap `control.tol`.

    .. math:: \max_\alpha \sum_i \alpha_i \; [- \alpha_i^2 / (4 c_i)] \quad \text{subject to} \quad
              |\textstyle\sum_i y_i \alpha_i x_i|_\infty \le 1, \ \sum_i y_i \alpha_i = 0, \ 0 \le \alpha_i [\le c_i]

    is the dual; with hinges both are linear programs (Bradley and Mangasarian, 1998). Few weights are not zero, so that
    a problem of many columns is solved on some of them; the constraints of the others say which to add.

    Parameters
    ----------
    problem
        A classifier's: one side per row. Its quadratic penalty serves for the scales of the columns alone.
    control
        The limits. An interrupt, too, returns the best solution so far.
    """
    rows = problem.rows
    k = rows.penalised
    price = np.sqrt(rows.penalty[:k])  # of a unit of v: |w|_1 = sum price |v|
    v, z = problem.with_best_offset(np.zeros(rows.shape[1]))
    alpha = 2 * problem.cost * np.maximum(z, 0.0) if problem.squared else np.where(z > 0, problem.cost, 0.0)
    point = _bounded(problem, price, v, alpha, control.tol)
    pull = np.abs(problem.pull(balanced(problem, alpha))[:k]) / price
    chosen = np.arange(k) if k <= _COLUMNS_AT_ONCE else np.sort(np.argsort(-pull)[: _COLUMNS_AT_ONCE // 4])
    run, stopped = Run(control), Stop.CONVERGED
    try:
        while point.gap > control.tol and stopped == Stop.CONVERGED:
            places = np.append(chosen, k) if rows.offset else chosen
            part = replace(problem, rows=_columns(rows, chosen))
            start = replace(point, v=point.v[places])
            solve = _program if not problem.squared and rows.shape[0] <= _SIMPLEX_ROWS else _follow
            inner, stopped = solve(part, price[chosen], start, run)
            v = np.zeros(rows.shape[1])
            v[places] = inner.v
            seen = _bounded(problem, price, v, inner.alpha, control.tol)
            point = seen if seen.primal < point.primal or seen.gap < point.gap else point
            pull = np.abs(problem.pull(inner.alpha)[:k]) / price
            used = chosen[(inner.v[: len(chosen)] != 0) | (pull[chosen] > 0.9)]
            pull[chosen] = 0.0
            new = np.argsort(-pull)[: max(50, len(used))]
            if not pull[new[0]] > 1.0:
                break
            chosen = np.union1d(used, new[pull[new] > 1.0])
    except KeyboardInterrupt:
        stopped = Stop.INTERRUPTED
    except np.linalg.LinAlgError as error:
        stopped = Stop.rounding(str(error))
    z = problem.slack(rows.times(point.v))
    pull = problem.pull(point.alpha)[:k] / price
    # Of the rows in steps of the cost over the mean slack; of the columns (|pull| <= 1, pull v = |v|) in steps of the
    # largest weight.
    kkt = problem.violation(point.alpha, z, max(float(np.abs(z).mean()), 1e-300) / problem.cost)
    size = float(np.abs(point.v[:k]).max(initial=0.0))
    moved = point.v[:k] + size * pull
    moved = np.sign(moved) * np.maximum(np.abs(moved) - size, 0.0)
    kkt = max(kkt, float(np.abs(moved - point.v[:k]).max(initial=0.0)))
    solver = "interior point" if problem.squared or rows.shape[0] > _SIMPLEX_ROWS else "linear program"
    certificate = run.certificate(point.primal, point.dual, kkt, solver, stopped, otherwise=Stop.ROUNDING)
    return LinearSolution(*rows.model(point.v), point.alpha, certificate, run.history)


def _bounded(problem: LinearProblem, price: np.ndarray, v: np.ndarray, alpha: np.ndarray, tol: float) -> Point:
    """Return a model and a feasible alpha near those given.

    A weight whose pull is less than its price need not be used. Weights that are small beside this slack are set to 0,
    as many as `tol` allows.
    """
    k = len(price)
    alpha = balanced(problem, alpha)
    pull = np.abs(problem.pull(alpha)[:k]) / price
    alpha = alpha * min(1.0, (1.0 - 1e-12) / max(float(pull.max(initial=0.0)), 1e-300))
    dual = float(alpha.sum())
    if problem.squared:  # the best multiple of alpha
        curved = float((alpha * alpha / problem.cost).sum()) / 4
        share = min(1.0, dual / (2 * curved)) if curved > 0 else 0.0
        alpha, dual = share * alpha, share * dual - share * share * curved
    size = price * np.abs(v[:k])

    def with_weights(keep: np.ndarray) -> Point:
        at = v.copy()
        at[:k] *= keep
        at, z = problem.with_best_offset(at)
        return Point(at, alpha, float(price @ np.abs(at[:k])) + problem.risk(z), dual)

    point = with_weights(np.ones(k, bool))
    if point.gap <= tol:
        unused = size.sum() * np.maximum(1.0 - pull / max(1.0, float(pull.max(initial=0.0))), 0.0)
        for share in (1.0, 1e-2, 1e-4, 1e-6, 1e-8):
            fewer = with_weights(size > share * unused)
            if fewer.gap <= tol:
                return fewer
    return point


def _columns(rows: Rows, chosen: np.ndarray) -> Rows:
    """Return the rows with some of their columns."""
    if len(chosen) == rows.penalised:
        return Rows(rows.X, rows.centre, rows.scale, rows.ones, rows.penalty)
    X = rows.X.tocsc()[:, chosen].toarray() if sparse.issparse(rows.X) else rows.X[:, chosen]
    penalty = rows.penalty[np.append(chosen, rows.penalised)] if rows.offset else rows.penalty[chosen]
    return Rows(X, rows.centre[chosen], rows.scale[chosen], rows.ones, penalty)


def _program(problem: LinearProblem, price: np.ndarray, best: Point, run: Run) -> tuple[Point, str]:
    """Solve a hinge problem as the linear program it is: over p, q >= 0 with w = p - q, the offset, and the slacks.

    Returns the best point, and why it is the last.
    """
    control, rows, k = run.control, problem.rows, len(price)
    A = problem.sign.T * rows.matrix()
    n, free = rows.shape[0], rows.shape[1] - k
    if limit := run.limit():
        return best, limit
    options: dict[str, float] = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    if control.time_limit is not None:
        options["time_limit"] = max(1e-3, control.time_limit - control.seconds)
    if control.max_iter >= 0:
        options["maxiter"] = control.max_iter - run.steps
    optimum = optimize.linprog(
        np.concatenate([price, price, np.zeros(free), problem.cost]),
        -sparse.hstack([A[:, :k], -A[:, :k], A[:, k:], sparse.eye_array(n)]).tocsc(),
        -np.ones(n),
        bounds=np.array([(0.0, np.inf)] * (2 * k) + [(-np.inf, np.inf)] * free + [(0.0, np.inf)] * n),
        options=options,
    )
    run.steps += int(optimum.nit)
    if optimum.x is not None:
        v = np.append(optimum.x[:k] - optimum.x[k : 2 * k], optimum.x[2 * k : 2 * k + free])
        seen = _bounded(problem, price, v, -optimum.ineqlin.marginals[None], 0.5 * control.tol)
        best = seen if seen.gap < best.gap else best
    run.note(best.primal, best.dual, best.gap, int((best.alpha > 0).sum()))
    if run.asked_to_stop or (optimum.status != 0 and best.gap > control.tol):
        return best, run.limit() or f"the linear program was left: {optimum.message}"
    return best, Stop.CONVERGED


def _follow(problem: LinearProblem, price: np.ndarray, best: Point, run: Run) -> tuple[Point, str]:
    """Follow the central path until the gap is half of what is asked; return the best point on it, and why it is.

    With w = p - q, p, q >= 0, whose multipliers are s, t = price -+ A'(y alpha), and slacks y f + xi - u = 1 of the
    rows, multipliers alpha of u and cost - alpha of xi (squared: xi = alpha / (2 cost)), a step eliminates all but v:

        (A' diag(theta) A + diag(1 / (p/s + q/t))) dv = ...

    Steps are those of Mehrotra (1992): one towards the solution says how far the next may aim, and what curves away.
    """
    control, rows, cost, squared = run.control, problem.rows, problem.cost, problem.squared
    y, k = problem.sign[0], len(price)
    newton = ByColumns(rows)
    v, least, idle = best.v.copy(), np.inf, 0
    z = 1.0 - y * rows.times(v)
    alpha = 2 * cost * np.maximum(z, 0.1) if squared else 0.5 * cost
    u, xi = np.maximum(-z, 0.0) + 0.1, np.maximum(z, 0.0) + 0.1
    size = max(0.1, float(np.abs(v[:k]).mean()))
    p, q = np.maximum(v[:k], 0.0) + size, np.maximum(-v[:k], 0.0) + size
    pull = rows.transposed(y * alpha)[:k]
    s, t = (np.maximum(price + side * pull, 0.1 * (price + np.abs(pull))) for side in (-1, 1))
    while True:
        v[:k] = p - q
        z = 1.0 - y * rows.times(v)
        pull = rows.transposed(y * alpha)
        room = cost - alpha
        mu = float(alpha @ u) + float(p @ s) + float(q @ t) + (0.0 if squared else float(room @ xi))
        mu /= 2 * k + len(y) * (1 if squared else 2)
        seen = _bounded(problem, price, v, alpha[None], 0.5 * control.tol)
        top, bottom = min(best, seen, key=lambda x: x.primal), max(best, seen, key=lambda x: x.dual)
        best = seen if seen.gap <= 0.5 * control.tol else Point(top.v, bottom.alpha, top.primal, bottom.dual)
        run.note(best.primal, best.dual, best.gap, int((alpha > 1e-6 * cost).sum()))
        idle = 0 if mu < 0.9 * least else idle + 1
        least = min(least, mu)
        if best.gap <= 0.5 * control.tol:
            return best, Stop.CONVERGED
        limit = run.limit()
        if limit or idle >= _IDLE_STEPS or not np.isfinite(mu) or mu < 1e-290:
            return best, limit or Stop.rounding(f"no progress in {_IDLE_STEPS} steps")
        theta = 1.0 / (u / alpha + (0.5 / cost if squared else xi / room))
        loose = p / s + q / t
        rows.penalty = np.append(1.0 / loose, 0.0) if rows.offset else 1.0 / loose
        newton.update(theta)
        missing = price - pull[:k] - s, price + pull[:k] - t
        aims: tuple[np.ndarray | float, ...] = (0.0, 0.0, 0.0, 0.0)
        for last in (False, True):
            a, r, first, second = aims
            slack = z + a / alpha - (0.5 * alpha / cost if squared else r / room)
            shift = first / s - p - second / t + q - p / s * missing[0] + q / t * missing[1]
            right = rows.transposed(y * theta * slack)
            right[:k] += shift / loose
            if rows.offset:
                right[-1] += pull[-1]
            dv = newton.solve(right)
            da = theta * (slack - y * rows.times(dv))
            dpull = rows.transposed(y * da)[:k]
            du = a / alpha - u - u / alpha * da
            dxi = -xi if squared else r / room - xi + xi / room * da
            ds, dt = missing[0] - dpull, missing[1] + dpull
            dp, dq = first / s - p - p / s * ds, second / t - q - q / t * dt
            pairs = [(alpha, da), (u, du), (p, dp), (s, ds), (q, dq), (t, dt)]  # one after the other complementary
            pairs += [] if squared else [(room, -da), (xi, dxi)]
            step = longest(2.0, pairs)
            if not last:
                ends = [x + step * dx for x, dx in pairs]
                reached = sum(float(x @ w) for x, w in zip(ends[::2], ends[1::2]))
                sigma = (reached / (mu * (2 * k + len(y) * (1 if squared else 2)))) ** 3
                aim = max(sigma, 1e-3 if idle < 3 else 0.3) * mu
                aims = (aim - da * du, aim + da * dxi, aim - dp * ds, aim - dq * dt)
        step = min(1.0, 0.99 * step)
        p, q, s, t = p + step * dp, q + step * dq, s + step * ds, t + step * dt
        alpha, u = alpha + step * da, u + step * du
        xi = xi if squared else xi + step * dxi
        if rows.offset:
            v[-1] += step * dv[-1]
        run.steps += 1
