"""The solver of linear models: which method, on which rows first, and the certificate at the end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from mercer.certify import Certificate, Stop, relative_gap
from mercer.gram import Gram
from mercer.kernels import Linear
from mercer.machine.threads import within_limit
from mercer.points import Points
from mercer.solvers.control import Control
from mercer.solvers.dual.problem import Offset, Solution, SVMDual
from mercer.solvers.dual.solve import solve, solve_small
from mercer.solvers.linear.interior import interior_point
from mercer.solvers.linear.many import ManyRows, Sweeper
from mercer.solvers.linear.newton import (
    by_kernel,
    proximal,
    proximal_by_kernel,
    smoothed,
    squared_by_kernel,
    squared_newton,
)
from mercer.solvers.linear.problem import LinearProblem, LinearSolution, State, balanced
from mercer.solvers.linear.rows import COPIED_NUMBERS, Rows, single_threaded
from mercer.solvers.linear.sparse import solve_sparse
from mercer.solvers.linear.system import exact
from mercer.solvers.run import Row

_SAMPLE_ROWS = 20_000  # rows whose solution tells where the others lie
_CLASS_ROWS = 500  # rows of each class in the sample at least
_SMO_ROWS = 200  # rows up to which SMO costs much less than the Python around a step of interior points
_SMO_COST = 100.0  # largest C k(x, x) for which SMO does not crawl on more rows than columns
_SMO_STEPS_PER_ROW = 100  # after which SMO is given up, where there is another way
_KERNEL_ROWS = 20_000  # rows up to which kernel values are worth computing


@within_limit
def solve_linear_models(
    problems: list[LinearProblem], control: Control, few_weights: bool = False
) -> list[LinearSolution]:
    """Solve linear models on the same rows to the relative gap `control.tol`, and prove it.

    ============== ======================= ================================= =======================================
    loss           rows < 1.5 columns      else, at most 2,000 columns       more of both
    ============== ======================= ================================= =======================================
    hinge          Newton on the kernel    SMO on at most 200 rows; interior SMO; beyond 20,000 rows proximal Newton
                   matrix where bounds     points, on the rows near the      steps by conjugate gradients
                   do not matter           margin first
    squared hinge  Newton on the kernel    Newton                            Newton, conjugate gradients
                   matrix
    ============== ======================= ================================= =======================================

    More than 80,000 dense rows are first tried by `ManyRows`.

    Parameters
    ----------
    problems
        What to minimise, as for one class each against the rest; costs are positive, and `rows` are shared.
    control
        The limits. An interrupt, too, returns the best solution so far. Whoever stops one problem does not want to wait
        for the others: they are returned as they start.
    few_weights
        Whether |w|_1 is the penalty, in place of |w|²/2.
    """
    with single_threaded(problems[0].rows):
        states: list[State | None] = [None] * len(problems)
        if not few_weights and tiny(problems, control):
            states = solve_tiny(problems, control)
        solutions = []
        for problem, state in zip(problems, states, strict=True):
            solutions.append(solve_sparse(problem, control) if few_weights else _solve_one(problem, state, control))
            if solutions[-1].certificate.stopped in (Stop.INTERRUPTED, Stop.CALLBACK):
                control = replace(control, max_iter=0)
        return solutions


def _solve_one(problem: LinearProblem, state: State | None, control: Control) -> LinearSolution:
    """Solve one problem, unless `state` is its solution already."""
    if state is not None:
        v, alpha, certificate = finish(problem, state)
        if certificate.converged:
            return _solution(problem.rows, state, v, alpha, certificate)
    rows = problem.rows
    if rows.shape[0] * rows.shape[1] <= COPIED_NUMBERS:
        problem = replace(problem, rows=rows.take(np.arange(rows.shape[0])))
    state = State(problem, control)
    try:
        proven = _solve(problem, state)
        if proven is not None:
            return _solution(rows, state, state.v, *proven)
    except KeyboardInterrupt:
        state.stopped = Stop.INTERRUPTED
    except np.linalg.LinAlgError as error:
        state.stopped = Stop.rounding(str(error))
    return _solution(rows, state, *finish(problem, state))


def _solution(rows: Rows, state: State, v: np.ndarray, alpha: np.ndarray, claim: Certificate) -> LinearSolution:
    support = int((alpha > 0).any(axis=0).sum())
    last = Row(claim.iterations, claim.primal, claim.dual, claim.relative_gap, support, claim.seconds)
    return LinearSolution(*rows.model(v), alpha, claim, [*state.history, last])


def _solve(problem: LinearProblem, state: State) -> tuple[np.ndarray, Certificate] | None:
    """Go through the stages: a sample, more rows with rounded hinges, the rows near the margin, and if need be all.

    Returns alpha and a certificate where a stage ends with them.
    """
    n = problem.rows.shape[0]
    tol = 0.5 * state.control.tol  # the offset and the balance of alpha are yet to be made exact
    if n > 4 * _SAMPLE_ROWS and n > 50 * problem.rows.shape[1] and Sweeper.suits(problem):
        per_column = 400 if problem.squared else 200
        sample, chosen = _sample(problem, min(_SAMPLE_ROWS, per_column * max(50, problem.rows.shape[1])))
        if not _constant_fits(sample):
            try:
                proven = ManyRows(problem, (sample, chosen), state, tol).solve()
            except np.linalg.LinAlgError:
                proven = None
            if proven is not None:
                return proven
            state.afresh()
            if limit := state.limit():
                state.stopped = limit
                return None
            state.v = np.zeros_like(state.v)
    state.v, z = problem.with_best_offset(state.v)
    if problem.risk(z) == 0:  # a constant fits
        state.alpha = np.zeros(problem.sign.shape)
        return None
    if n > 4 * _SAMPLE_ROWS:
        part = _sample(problem, _SAMPLE_ROWS)[0]
        _plan(part, state, max(tol, 1e-2))
        if not problem.squared and exact(problem.rows):
            larger = _sample(problem, n // 8)[0] if n > 16 * _SAMPLE_ROWS else part
            for stage, share in ((larger, 0.1), (problem, 0.03)):
                if not state.limit():
                    smoothed(stage, state.afresh(), tol, 2 * stage.half_width(state.v, share))
            if state.gap > tol and not state.limit():
                _near_the_margin(problem, state, tol)
            if state.gap <= 2 * tol:
                return None
        if limit := state.limit():
            state.stopped = limit
            return None
        state.afresh()
    _plan(problem, state, tol)
    return None


def _constant_fits(problem: LinearProblem) -> bool:
    """Return whether the offset alone leaves no loss."""
    up = problem.sign > 0
    low = float(problem.target[up].max(initial=-np.inf))
    high = -float(problem.target[~up].max(initial=-np.inf))
    return low <= high if problem.rows.offset else low <= 0 <= high


def _plan(problem: LinearProblem, state: State, tol: float) -> None:
    if by_kernel(problem.rows) and problem.linear is None and _by_kernel(problem, state, tol):
        return
    if not problem.squared and wide(problem.rows) and problem.linear is None:
        by_decomposition(problem, state, tol)
        if not exact(problem.rows) or state.limit():
            return
        if finish(problem, state)[2].relative_gap <= 2 * tol:  # its own bounds allow for rounding
            return
        state.afresh()
    if problem.squared:
        state.method = "semismooth Newton"
        squared_newton(problem, state, tol)
    elif exact(problem.rows):
        state.method = "interior point"
        interior_point(problem, state, tol)
    else:
        state.method = "proximal semismooth Newton"
        proximal(problem, state, tol)


def _by_kernel(problem: LinearProblem, state: State, tol: float) -> bool:
    """Try Newton's method on the kernel matrix; return whether it has solved the problem."""
    start = state.v
    state.method = "Newton on the kernel matrix"
    try:
        if problem.squared:
            squared_by_kernel(problem, state, tol)
        elif not proximal_by_kernel(problem, state, tol):
            return False
    except np.linalg.LinAlgError:
        state.stopped = Stop.ROUNDING
    if not state.stopped.startswith(Stop.ROUNDING):
        return True
    state.afresh().v = start
    return False


def _sample(problem: LinearProblem, rows: int) -> tuple[LinearProblem, np.ndarray]:
    """Return a problem on some of the rows, with costs that stand for all rows, and the numbers of these rows.

    Rows are cut into stretches of equal length, and one is drawn from each. Where that would leave too few of a class,
    its own rows are drawn from in this way.
    """
    random = np.random.default_rng(0)
    n = problem.rows.shape[0]
    classes = [True, False] if len(problem.sign) == 1 else [None]
    chosen = _spread(random, n, rows)
    index, costs = [], []
    for c in classes:
        taken = chosen if c is None else chosen[(problem.sign[0, chosen] > 0) == c]
        inside = np.ones(n, bool) if c is None else (problem.sign[0] > 0) == c
        if len(taken) < _CLASS_ROWS and c is not None:
            members = np.flatnonzero(inside)
            taken = members[_spread(random, len(members), min(len(members), _CLASS_ROWS))]
        total = float(problem.cost @ inside)
        index.append(taken)
        costs.append(problem.cost[taken] * (total / float(problem.cost[taken].sum())) if len(taken) else taken)
    taken = np.concatenate(index)
    return replace(problem.subset(taken), cost=np.concatenate(costs)), taken


def _spread(random: np.random.Generator, n: int, size: int) -> np.ndarray:
    """Return `size` of n numbers in rising order, without repetition."""
    cuts = np.arange(size + 1) * n // max(1, size)
    return cuts[:-1] + (random.random(size) * np.diff(cuts)).astype(np.intp)


def _near_the_margin(problem: LinearProblem, state: State, tol: float) -> None:
    """Solve for the rows near the margin, the others held on their side of it.

    A row that stays on its side has a loss that is linear: its alpha is 0 or its cost. So the sum of those rows is one
    slope, the problem that is left is small, and its dual value bounds the whole problem from below whatever the guess.
    Rows that were on the wrong side widen the band; at a third of the rows the whole problem is as cheap.
    """
    cost, n = problem.cost, len(problem.cost)
    size, last = max(_SAMPLE_ROWS // 2, n // 24), np.inf
    v, z = problem.with_best_offset(state.v)
    while size <= n // 3:
        band = np.sort(np.argpartition(np.abs(z).min(axis=0), size)[:size])
        alpha = np.where(z > 0, cost, 0.0)
        alpha[:, band] = 0.0
        sub = problem.subset(band, problem.pull(alpha), problem.gain(alpha))
        if not sub.can_balance():
            size *= 2
            continue
        state.method, state.v = "interior point near the margin", v
        interior_point(sub, state.afresh(), 0.5 * tol)
        v, z = problem.with_best_offset(state.v)
        assert state.alpha is not None
        dual = sub.dual(state.alpha, sub.pull(state.alpha))
        alpha[:, band] = state.alpha
        primal = problem.primal(v, z)
        state.v, state.alpha = v, alpha
        state.gap = relative_gap(primal - dual, primal, dual)
        if state.gap <= 2 * tol or state.limit():
            return
        if state.gap > 0.1 * last:
            size *= 2
        last = state.gap


def finish(problem: LinearProblem, state: State) -> tuple[np.ndarray, np.ndarray, Certificate]:
    """Return what a state amounts to: v with the best offset, a feasible alpha, and the certificate of both."""
    rows = problem.rows
    v, z = problem.with_best_offset(state.v)
    if problem.squared:
        alpha = 2 * problem.cost * np.maximum(z, 0.0)
    else:
        known = state.alpha is not None and state.alpha.shape == problem.sign.shape  # not of a stage on fewer rows
        alpha = state.alpha if known else np.where(z > 0, problem.cost, 0.0)
    alpha = balanced(problem, alpha)
    pull = problem.pull(alpha)
    primal, dual = problem.primal(v, z), problem.dual(alpha, pull)
    apart = rows.times(rows.implied(pull - rows.penalty * v))
    kkt = max(problem.violation(alpha, z, rows.mean_square()), float(np.abs(apart).max(initial=0.0)))
    return v, alpha, state.certificate(primal, dual, kkt, state.method, state.stopped, otherwise=Stop.ROUNDING)


# -- linear models by the dual solver of the kernel machines: for few rows, or more columns than rows -----


def tiny(problems: list[LinearProblem], control: Control) -> bool:
    """Return whether SMO is tried on all problems together before anything else."""
    first = problems[0]
    n, p = first.rows.shape
    limited = control.max_iter >= 0 or control.exhausted(0) is not None
    if n > _SMO_ROWS or first.squared or not first.rows.offset or limited:
        return False
    return n <= p or float(first.cost.max()) * first.rows.mean_square() <= _SMO_COST


def wide(rows: Rows) -> bool:
    """Return whether SMO suits the shape of a hinge problem."""
    n, p = rows.shape
    return n <= _KERNEL_ROWS and (n < 1.5 * p or min(n, p) > 2000)


def solve_tiny(problems: list[LinearProblem], control: Control) -> list[State | None]:
    """Solve hinge problems on the same few rows in one call of the core; None for those on which SMO crawls."""
    gram = _gram(problems[0].rows)
    duals = [_dual(p, gram, np.arange(p.rows.shape[0])) for p in problems]
    try:
        solutions = solve_small(duals, control)
    except KeyboardInterrupt:
        control.cancel()
        return [None] * len(problems)
    return [None if s is None else _take(State(p, control), p, s) for p, s in zip(problems, solutions, strict=True)]


def by_decomposition(problem: LinearProblem, state: State, tol: float) -> State:
    """Solve a hinge problem by SMO; where interior points are possible, too, in a limited number of steps."""
    control = state.control
    most = control.max_iter
    if exact(problem.rows):
        steps = _SMO_STEPS_PER_ROW * (problem.rows.shape[0] + 100)
        most = steps if most < 0 else min(steps, most)
    (solution,) = solve([_dual(problem, _gram(problem.rows), None)], replace(control, tol=tol, max_iter=most))
    return _take(state, problem, solution)


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


def _take(state: State, problem: LinearProblem, solution: Solution) -> State:
    """Bring the state to a solution of the dual."""
    v = problem.rows.implied(problem.rows.transposed(solution.coefficients))  # `finish` finds the best offset
    certificate = solution.certificate
    state.history += [row._replace(steps=state.steps + row.steps) for row in solution.history]
    state.v, state.steps, state.gap = v, state.steps + certificate.iterations, certificate.relative_gap
    both = len(problem.sign) == 2
    state.alpha = np.stack([solution.plus, solution.minus]) if both else (solution.plus + solution.minus)[None]
    state.method, state.stopped = certificate.solver, certificate.stopped
    return state
