"""Linear models by the dual solver of the kernel machines: for few rows, or more columns than rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from mercer.gram import Gram
from mercer.kernels import Linear
from mercer.points import Points
from mercer.solvers.control import Control
from mercer.solvers.dual.many import solve
from mercer.solvers.dual.problem import Offset, Solution, SVMDual
from mercer.solvers.dual.small import solve_small
from mercer.solvers.linear.interior import State
from mercer.solvers.linear.problem import LinearProblem
from mercer.solvers.linear.rows import Rows
from mercer.solvers.linear.system import exact

_TINY = 200  # rows for which a step of SMO is much cheaper than the Python around a step of interior points
_EASY = 100.0  # the largest C k(x, x) for which SMO does not crawl on more rows than columns
_STEPS = 100  # of SMO per row, where there is another way
_LARGEST = 20_000  # rows whose kernel values are worth computing


def tiny(problems: list[LinearProblem], control: Control) -> bool:
    """Return whether SMO is tried on all problems together before anything else."""
    first = problems[0]
    n, p = first.rows.shape
    if n > _TINY or first.squared or not first.rows.offset or control.max_iter >= 0 or control.exhausted(0) is not None:
        return False
    return n <= p or float(first.cost.max()) * first.rows.mean_square() <= _EASY


def wide(rows: Rows) -> bool:
    """Return whether SMO suits the shape of a hinge problem."""
    n, p = rows.shape
    return n <= _LARGEST and (n < 1.5 * p or min(n, p) > 2000)


def solve_tiny(problems: list[LinearProblem], control: Control) -> list[State | None]:
    """Solve hinge problems on the same few rows in one call of the core; None for those on which SMO crawls."""
    gram = _gram(problems[0].rows)
    duals = [_dual(p, gram, np.arange(p.rows.shape[0])) for p in problems]
    try:
        found = solve_small(duals, control)
    except KeyboardInterrupt:
        control.cancel()
        return [None] * len(problems)
    return [None if s is None else _state(p, s) for p, s in zip(problems, found, strict=True)]


def by_decomposition(problem: LinearProblem, state: State, control: Control, tol: float) -> State:
    """Solve a hinge problem by SMO; where interior points are possible, too, as long as it does not crawl.

    Parameters
    ----------
    problem, state, control, tol
        As for `interior_point`.
    """
    ours = replace(control, tol=tol)
    if exact(problem.rows):
        steps = _STEPS * (problem.rows.shape[0] + 100)
        ours.max_iter = steps if control.max_iter < 0 else min(steps, control.max_iter)
    (solution,) = solve([_dual(problem, _gram(problem.rows), None)], ours)
    if ours.cancelled:
        control.cancel()
    found = _state(problem, solution)
    state.v, state.alpha, state.steps, state.gap = found.v, found.alpha, state.steps + found.steps, found.gap
    state.method, state.stopped = found.method, found.stopped
    return state


def _gram(rows: Rows) -> Gram:
    """The kernel matrix, of centred rows where the offset allows it: rounding is then that of the data's spread."""
    X = rows.X
    if sparse.issparse(X):
        return Gram(Linear(), Points(X))
    if rows.ready:  # scaled already: the metric of the penalty undoes it
        k = rows.penalised
        return Gram(Linear(), Points(np.ascontiguousarray(X[:, :k] / np.sqrt(rows.penalty[:k]))))
    return Gram(Linear(), Points(np.asarray(X - rows.centre, dtype=np.float64) if rows.centre.any() else X))


def _dual(problem: LinearProblem, gram: Gram, rows: np.ndarray | None) -> SVMDual:
    sign, target, cost = problem.sign, problem.target, problem.cost
    offset: Offset = "free" if problem.rows.offset else "none"
    if len(sign) == 1:
        up = sign[0] > 0
        return SVMDual(gram, -sign[0], np.where(up, cost, 0.0), np.where(up, 0.0, cost), offset=offset, rows=rows)
    y, epsilon = 0.5 * (target[0] - target[1]), -0.5 * (target[0] + target[1])
    return SVMDual(gram, -y, cost, cost, width=np.maximum(epsilon, 0.0), offset=offset, rows=rows)


def _state(problem: LinearProblem, solution: Solution) -> State:
    rows = problem.rows
    state = State(problem)
    k = rows.penalised
    v = rows.transposed(solution.coefficients)
    v[:k] /= rows.penalty[:k]
    v[k:] = 0.0  # `finish` finds the best offset
    certificate = solution.certificate
    state.v, state.steps, state.gap = v, certificate.iterations, certificate.relative_gap
    both = len(problem.sign) == 2
    state.alpha = np.stack([solution.plus, solution.minus]) if both else (solution.plus + solution.minus)[None]
    state.method, state.stopped = certificate.solver, certificate.stopped
    return state
