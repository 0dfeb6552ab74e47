"""Hard margins (C = infinity), or the evidence that there is none."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import numpy as np
from scipy import sparse
from scipy.linalg.lapack import dpotrf

from mercer.certify import Stop
from mercer.gram import Gram
from mercer.gram.factor import lapack_cholesky
from mercer.points import diagonal
from mercer.points.formulas.formula import StatLeaf
from mercer.solvers.control import Control
from mercer.solvers.dual.barrier import quietly
from mercer.solvers.dual.hulls import (
    Columns,
    Nearest,
    between,
    in_mixture,
    is_nearest,
    mixtures,
    nearest,
    nearest_on_matrix,
    on_matrix,
    refined_on_matrix,
)
from mercer.solvers.dual.problem import FLOAT64_EPS, WHOLE, Infeasible, Solution, SVMDual
from mercer.solvers.dual.solve import solve_one
from mercer.solvers.run import Checkpoint, Run

_BOUNDS = (1e2, 1e5, 1e8, 1e11)  # on the coefficients, one after the other, in units of 1 / k(x, x)
_ROUGH_GAP = 1e-2  # at which a solution shows whether its bound matters
_PART = 600  # points tried first when there are many
_SMO_STEPS = 20  # per point, in which most margins are found
_SMO_POINTS = 600  # up to which SMO is tried although vectors are at hand
_MOST_COORDINATES = 1000  # of vectors that are taken as they are
_FULL_RANK = 0.6  # rank per point: above it, the matrix itself is factorised sooner than the square of its factor
_FIRST_EXCHANGES = 24  # from SMO's support vectors: those that arrive took 17 at most on 200 problems of 2,000 points
_MEETING = 1e-6  # of the points' length: mixtures nearer than that are kept apart by rounding alone
# The same where the classes overlap along the line between the mixtures: of 9,000 problems eight ended between 1e-6 and
# 2e-6, and larger and larger bounds found no margin in any of them.
_OVERLAPPING = 1e-5


def holds(problem: SVMDual) -> bool:
    """Return whether all kernel values are few enough to be held in float64."""
    return len(problem) <= WHOLE and 8 * len(problem) ** 2 <= problem.gram.budget


def solve_hard(problem: SVMDual, control: Control) -> Solution:
    """Return the widest margin, or raise `Infeasible` with the mixtures of the two classes that meet.

    SMO has a try where all kernel values are at hand: most margins are found in few steps. Where they are not, the
    nearest points of the two convex hulls decide. Only too many points for that are left to bounds that grow.
    """
    y = -np.asarray(problem.linear, dtype=np.float64)
    if not (np.abs(y) == 1).all() or np.any(problem.width):
        raise ValueError("infinite bounds are for hard-margin classifiers; give C a finite value.")
    try:
        solution = _hard(problem, control, y)
    except Infeasible:
        _forget(control)
        raise
    if solution.certificate.stopped in (Stop.CONVERGED, Stop.FLOOR):
        _forget(control)
    return solution


def _hard(problem: SVMDual, control: Control, y: np.ndarray) -> Solution:
    free = problem.offset != "none"
    size = float(np.abs(diagonal(problem.gram.kernel.of, problem.points())).max())
    if free and not ((y > 0).any() and (y < 0).any()):
        return _by_bounds(problem, control, y, size)
    points = inner_products(problem)
    fits = holds(problem)
    start = None
    if fits and (points is None or len(y) <= _SMO_POINTS):
        quick, done = _quickly(problem, control, y, size)
        if done:
            return quick
        start = quick.coefficients
    hulls, touching = None, 0.0
    if points is not None:
        hulls, touching = _between_vectors(points, y, free, control)
    elif fits:
        touching = 4 * math.sqrt(FLOAT64_EPS * size)
        hulls = _between_values(problem, y, free, touching, control, start)
    if hulls is not None and hulls.margin > touching:
        solution = _widest(hulls, problem, y, points, control)
        if solution is not None:
            return solution
    if hulls is not None and hulls.apart <= (_MEETING if hulls.margin > 0 else _OVERLAPPING) * math.sqrt(size):
        _refuse(hulls, size)
    return _by_bounds(problem, control, y, size)


def _quickly(problem: SVMDual, control: Control, y: np.ndarray, size: float) -> tuple[Solution, bool]:
    """Return what SMO finds in few steps, and whether to end there: at a solution below its bounds or a given limit."""
    most = _SMO_STEPS * len(y)
    if 0 <= control.max_iter <= most:
        most = control.max_iter
    start = problem
    for number in range(2):
        soft, cap = _bounded(start, number, size)
        solution = solve_one(soft, replace(control, max_iter=most, checkpoint=_file(control, number)))
        claim = solution.certificate
        ended = claim.stopped == Stop.CALLBACK or control.exhausted(claim.iterations) is not None
        if ended or (claim.stopped == Stop.CONVERGED and not _reached(solution, cap)):
            return _certified(solution, y, problem.offset != "none"), True
        most -= claim.iterations
        if claim.stopped != Stop.CONVERGED or most <= 0:
            break
        start = _from(problem, solution)
    return solution, False


# -- the nearest points of two hulls ----------------------------------------------------------------------


def inner_products(problem: SVMDual) -> np.ndarray | None:
    """Return the vectors of which the kernel is the inner product; None where it is none, or they are too wide."""
    formula = problem.gram.formula
    leaf = formula.leaf if formula is not None else None
    if not isinstance(leaf, StatLeaf) or leaf.kind != "dot":
        return None
    points = problem.points()
    for map in leaf.path:
        points = points.through(map)
    if not points.width <= min(len(points), _MOST_COORDINATES) or 8 * len(points) * points.width > problem.gram.budget:
        return None
    vectors = points.double().vectors
    return vectors.toarray() if sparse.issparse(vectors) else np.asarray(vectors)


def matrix(problem: SVMDual) -> np.ndarray:
    """Return all kernel values in float64."""
    return np.asarray(problem.gram.on(problem.points().double()).fill(), dtype=np.float64)


def pivoted_factor(K: np.ndarray) -> Columns | None:
    """Return F with F F' = K up to rounding; None where K is not positive semidefinite."""
    largest = float(K.diagonal().max())
    L, order, rank = lapack_cholesky(K, 10 * FLOAT64_EPS * largest)
    factor = np.empty((len(K), rank))
    factor[order] = L
    probe = np.cos(np.arange(len(K)))
    off = np.abs(K @ probe - factor @ (factor.T @ probe)).max() > 1e-9 * len(K) * max(largest, 1e-300)
    return None if off else Columns(factor, np.square(L.diagonal()), K)


def _between_vectors(points: np.ndarray, y: np.ndarray, free: bool, control: Control) -> tuple[Nearest, float]:
    """Return the nearest mixtures of vectors, and the distance below which mixtures meet.

    An offset makes up for a move of all vectors. They are moved to mean 0, where those far out keep all their digits.
    """
    moved = points - points.mean(axis=0) if free else points
    touching = 16 * FLOAT64_EPS * math.sqrt(float(np.einsum("ij,ij->i", moved, moved).max()))
    return nearest(moved, y, free, _gap(control), touching, lambda: control.exhausted(0) is not None), touching


def _between_values(
    problem: SVMDual, y: np.ndarray, free: bool, touching: float, control: Control, start: np.ndarray | None
) -> Nearest | None:
    """Return the nearest mixtures, from kernel values; None where these are not positive semidefinite.

    The square of a distance is a sum of kernel values: their rounding hides distances below some 1e-8.
    """
    K = matrix(problem)
    goal = 0.5 * control.tol  # the other half is for what rounding adds
    with quietly(len(K)):
        definite = dpotrf(K.T, lower=1, clean=0)[1] == 0  # takes a quarter of the time of pivots
        factor = None if definite else pivoted_factor(K)
        if factor is None and not definite:
            return None
        rank = len(K) if factor is None else factor.values.shape[1]
        if start is not None and np.count_nonzero(start) <= rank:
            hulls = refined_on_matrix(K, start != 0, y, free, goal, most=_FIRST_EXCHANGES)
            if hulls is not None and is_nearest(K, hulls, goal):
                return hulls
        if factor is None or rank > _FULL_RANK * len(K):
            return nearest_on_matrix(K, y, free, goal, touching, start)
        on_factor = nearest(factor.values, y, free, goal, touching, lambda: control.exhausted(0) is not None, factor)
        hulls = on_matrix(K, on_factor.b, y, free, on_factor.steps)
        if hulls.margin > touching and hulls.gap > _gap(control):
            refined = refined_on_matrix(K, in_mixture(K, hulls, y, free), y, free, steps=on_factor.steps)
            hulls = refined if refined is not None and refined.gap < hulls.gap else hulls
    return hulls


def _gap(control: Control) -> float:
    return min(0.1 * control.tol, 1e-6)  # the last steps are quick


def _widest(
    hulls: Nearest, problem: SVMDual, y: np.ndarray, points: np.ndarray | None, control: Control
) -> Solution | None:
    """Return the margin between two mixtures as a solution of the dual; None where float64 cannot hold it.

    f is a sum of terms b_i k(x_i, x): where classes nearly touch, these are large and of both signs.
    """
    free = problem.offset != "none"
    total = float(np.abs(hulls.b).sum())
    b = hulls.b * (total / hulls.apart**2)
    support = np.flatnonzero(b)
    if points is None:
        values = hulls.values * (total / hulls.apart**2)
    else:
        values = points @ (b[support] @ points[support])
    lengths = np.sqrt(np.abs(diagonal(problem.gram.kernel.of, problem.points())))
    length = float(np.abs(b) @ lengths)
    if FLOAT64_EPS * length * float(lengths.max()) > 0.5:
        return None
    offset = -(float(values[y > 0].min()) + float(values[y < 0].max())) / 2 if free else 0.0
    values = values + offset
    smallest = float((y * values).min())
    if not smallest > 0:
        return None
    dual = 0.5 * (total / hulls.apart) ** 2
    primal, rounding = max(dual, dual / smallest**2), 2 * FLOAT64_EPS * length * (length + total)
    slack = y * values - 1.0
    kkt = max(float(np.abs(slack[support]).max()), float(-slack.min()))
    run, solver = Run(control, steps=hulls.steps), "nearest points of the convex hulls"
    certificate = run.certificate(primal, dual, kkt, solver, otherwise=Stop.FLOOR, rounding=rounding)
    run.note(primal, dual, certificate.relative_gap, len(support))
    return Solution(np.maximum(b, 0.0), np.maximum(-b, 0.0), offset, values, certificate, history=run.history)


def _refuse(hulls: Nearest, size: float) -> NoReturn:
    width = 1.05 * 2 * hulls.apart / float(np.abs(hulls.b).sum())
    many = [int(np.count_nonzero(hulls.b * side > 0)) for side in (1.0, -1.0)]
    raise Infeasible(
        f"the classes cannot be separated by a hard margin (C=inf): no margin is wider than {width:.2g}, where the "
        f"points are up to {math.sqrt(size):.2g} long in feature space: a mixture of {many[0]} points of one class and "
        f"one of {many[1]} points of the other are no farther apart. Use a finite C, or a kernel that separates more "
        "(a smaller RBF scale).",
        coefficients=hulls.b,
    )


# -- bounds that grow -------------------------------------------------------------------------------------


def _by_bounds(problem: SVMDual, control: Control, y: np.ndarray, size: float) -> Solution:
    """Solve under finite bounds, larger ones while some coefficient reaches its own.

    A solution below its bounds is the hard-margin solution. Dual values only grow with the bounds, and each is a lower
    bound of |w|^2 / 2. If even the largest bounds are reached, no margin is wider than 2 / sqrt(2 D).
    """
    start, shift = problem, problem.offset != "none"
    for number in range(len(_BOUNDS)):
        soft, cap = _bounded(start, number, size)
        # The bounds are far away, so that slacks are dear: what misses the margin is a small part of the gap.
        # Beyond the first bound, a rough solution is enough to see whether it is reached.
        ours = replace(control, checkpoint=_file(control, number))
        tol = max(control.tol, _ROUGH_GAP) if number else control.tol
        solution = solve_one(soft, replace(ours, tol=tol))
        if tol > control.tol and not _reached(solution, cap):
            solution = solve_one(_from(soft, solution), ours)
        if not _reached(solution, cap) or solution.certificate.stopped == Stop.INTERRUPTED:
            return _certified(solution, y, shift)
        if number == 0 and len(y) > WHOLE:
            _require_separable_part(problem, solution, control)
        start = _from(problem, solution)
    b = mixtures(solution.coefficients, shift)
    assert b is not None
    values = (solution.values - solution.offset) * (np.abs(b).sum() / np.abs(solution.coefficients).sum())
    _refuse(between(b, values, float(b @ values), y, shift), size)


def _bounded(problem: SVMDual, number: int, size: float) -> tuple[SVMDual, float]:
    """Return a problem under one of the finite bounds, and the bound."""
    cap = _BOUNDS[number] / size if size > 0 else _BOUNDS[number]
    return replace(problem, upper=np.minimum(problem.upper, cap), lower=np.minimum(problem.lower, cap)), cap


def _from(problem: SVMDual, solution: Solution) -> SVMDual:
    """Return a problem that starts at the solution of another."""
    return replace(problem, plus=solution.plus, minus=solution.minus)


def _file(control: Control, number: int) -> str | Path | None:
    """Return the checkpoint of the problem under one of the bounds."""
    file = control.checkpoint
    return file if file is None or number == 0 else f"{file}.{number}"


def _forget(control: Control) -> None:
    """Remove the checkpoints of all bounds: there is nothing to resume."""
    for number in range(len(_BOUNDS)):
        Checkpoint(replace(control, checkpoint=_file(control, number))).remove()


def _reached(solution: Solution, cap: float) -> bool:
    return max(float(solution.plus.max()), float(solution.minus.max())) >= cap


def _require_separable_part(problem: SVMDual, solution: Solution, control: Control) -> None:
    """Raise if the points that resist most cannot be separated: then all of them cannot, and few are quick to try."""
    part = np.sort(np.argsort(solution.plus + solution.minus)[-_PART:])
    y = -problem.linear[part]
    if np.abs(y.sum()) == len(y):
        return
    gram = Gram(problem.gram.kernel, problem.points().take(part), budget=problem.gram.given_budget)
    cut = SVMDual(gram, -y, problem.upper[part], problem.lower[part], offset=problem.offset)
    try:
        solve_hard(cut, replace(control, checkpoint=None, tol=max(control.tol, 1e-3)))
    except Infeasible as refusal:
        b = np.zeros(len(problem))
        b[part] = refusal.coefficients
        raise Infeasible(str(refusal), b) from None


def _certified(solution: Solution, y: np.ndarray, shift: bool) -> Solution:
    """Return the solution with the primal of the hard margin: f scaled until the smallest margin is 1."""
    values, offset, certificate = solution.values, solution.offset, solution.certificate
    if shift and (y > 0).any() and (y < 0).any():  # the offset in the middle between the classes
        middle = (values[y > 0].min() + values[y < 0].max()) / 2
        values, offset = values - middle, offset - middle
    smallest = float((y * values).min())
    square = float(solution.coefficients @ (values - offset))
    primal = 0.5 * square / smallest**2 if smallest > 0 else math.inf
    certificate = replace(certificate, primal=max(primal, certificate.dual))
    return replace(solution, offset=offset, values=values, certificate=certificate)
