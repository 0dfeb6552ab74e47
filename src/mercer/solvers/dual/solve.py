"""Dual problems, one or many: which way each is solved, and what problems on one matrix share.

What costs most in a problem of a hundred points is Python: small problems on one matrix, such as the class pairs of a
classifier, go to the core in one call. Pairs of larger classes share blocks of their matrices. What SMO alone does not
solve there is solved by itself, with all ways out of trouble.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from mercer import _core
from mercer.certify import Certificate
from mercer.machine.threads import cores, held_blas, run
from mercer.points.kept import give_back, scratch
from mercer.solvers.control import Control, check_vector
from mercer.solvers.dual.decomposition import CRAWLS, Decomposition
from mercer.solvers.dual.problem import WHOLE, Solution, SVMDual, method, whole_item
from mercer.solvers.dual.smo import FLOAT32_SHARE, WholeMatrixSMO, float32_gap_bound, measured_float32_gap
from mercer.solvers.run import Row, begin_looks, early_rows

_ONE_THREAD = 300_000  # kernel values below which a second thread costs more than it brings
_BUDGET_PARTS = 4  # one of these parts of the budget is for the blocks that class pairs share
_PROBLEMS_AT_ONCE = 20_000  # between two looks at the limits
_STEPS_PER_POINT = 100  # SMO steps, and as many again in all; beyond them SMO crawls
_MOST_COURSES = 100  # problems in one call; the rows of more would take longer than the problems
_VECTORS = ("linear", "upper", "lower", "width", "plus", "minus")  # of a problem


def solve(problems: list[SVMDual], control: Control | None = None) -> list[Solution]:
    """Solve each problem; small ones side by side, large ones one after the other, each on all cores.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, Gram
    >>> from mercer.solvers import SVMDual, solve
    >>> y = np.array([1.0, 1.0, -1.0, -1.0])
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> dual = SVMDual(Gram(RBF(), X), linear=-y, upper=np.where(y > 0, 1.0, 0.0), lower=np.where(y < 0, 1.0, 0.0))
    >>> solution, = solve([dual])
    >>> bool(solution.certificate.relative_gap <= 1e-3)
    True
    """
    control = control or Control()
    with held_blas():
        return [solve_one(problems[0], control)] if len(problems) == 1 else _solve_many(problems, control)


def _solve_many(problems: list[SVMDual], control: Control) -> list[Solution]:
    solutions: list[Solution | None] = [None] * len(problems)
    try:
        if shares_small_matrix(problems, control):
            solutions = solve_small(problems, control)
        elif pairs_of_classes(problems, control):
            solutions = solve_pairs(problems, control)
    except KeyboardInterrupt:
        control.cancel()

    def one(i: int) -> None:
        if solutions[i] is None:
            solutions[i] = solve_one(problems[i], control)

    small = [i for i, p in enumerate(problems) if solutions[i] is None and len(p) <= WHOLE]
    large = [i for i, p in enumerate(problems) if len(p) > WHOLE]
    try:
        for i in large:
            one(i)
        small.sort(key=lambda i: -len(problems[i]))
        values = [len(problems[i]) ** 2 for i in small]
        if sum(values) <= _ONE_THREAD or sum(values[: cores()]) * whole_item(True) > problems[0].gram.budget:
            for i in small:
                one(i)
        else:
            run(one, small)
    except KeyboardInterrupt:
        control.cancel()  # every run returns what it has, those not begun their start
        for i in range(len(problems)):
            one(i)
    return [s for s in solutions if s is not None]


def solve_one(problem: SVMDual, control: Control) -> Solution:
    """Solve one problem by the method that suits it."""
    if problem.is_hard:
        from mercer.solvers.dual import hard, tube  # here, because they solve bounded problems in their turn

        return tube.solve_tube(problem, control) if tube.is_tube(problem) else hard.solve_hard(problem, control)
    chosen = method(problem, control)
    if chosen.whole:
        return WholeMatrixSMO(problem, control, chosen).solve()
    problem = problem.alone()
    solution = Decomposition(problem, control, chosen).solve()
    if solution.certificate.stopped != CRAWLS:
        return solution
    chosen = replace(chosen, name="interior points after decomposition", whole=True, single=False)
    problem = replace(problem, plus=solution.plus, minus=solution.minus)
    return WholeMatrixSMO(problem, control, chosen).go_on_from(solution).solve()


# -- small problems on one matrix --------------------------------------------------------------------------


def shares_small_matrix(problems: list[SVMDual], control: Control) -> bool:
    """Return whether the problems can be solved together: one small matrix, nothing special asked for."""
    first = problems[0]
    gram = first.gram
    return (
        len(problems) > 1
        and gram.shape[0] <= WHOLE
        and gram.shape[0] ** 2 * 8 <= gram.budget
        and control.checkpoint is None
        and control.max_iter < 0
        and all(p.gram is gram and p.rows is not None and p.offset == first.offset != "none" for p in problems)
    )


def solve_small(problems: list[SVMDual], control: Control) -> list[Solution | None]:
    """Solve the problems together; None for those that need more than SMO."""
    largest = max(problems, key=len)
    gram = largest.gram.single() if method(largest, control).single else largest.gram
    lent = scratch(gram.shape[0], gram.dtype) if gram.compiled else None
    try:
        return _solve_on(gram.fill(lent), problems, control)
    finally:
        give_back(lent)


def _solve_on(K: np.ndarray, problems: list[SVMDual], control: Control) -> list[Solution | None]:
    solutions: list[Solution | None] = []
    for begin in range(0, len(problems), _PROBLEMS_AT_ONCE):
        if control.exhausted(0) is not None:
            return solutions + [None] * (len(problems) - len(solutions))
        some = problems[begin : begin + _PROBLEMS_AT_ONCE]
        shares = [some]
        if sum(len(p) ** 2 for p in some) > _ONE_THREAD:
            cuts = np.linspace(0, len(some), cores() + 1).astype(int)
            shares = [some[a:b] for a, b in pairwise(cuts) if a < b]
        for share in run(lambda share: together(K, share, control), shares):
            solutions += share
        if control.report is not None:
            support = sum(int(np.count_nonzero(s.coefficients)) for s in solutions if s is not None)
            dual = sum(s.certificate.dual for s in solutions if s is not None)
            if control.tell(iteration=len(solutions), gap=control.tol, dual=dual, support=support):
                control.cancel()
    return solutions


def together(K: np.ndarray, problems: list[SVMDual], control: Control) -> list[Solution | None]:
    """Return the solutions of problems on parts of one matrix, by one call of the core; None where it gave up."""
    row = np.concatenate([p.rows for p in problems]).astype(np.int32)
    squares = K.diagonal()[row]
    return solve_by(lambda start, *rest: _core.smo_batch(K, start, row, *rest), problems, control, squares)


def solve_by(
    call: Callable[..., None], problems: list[SVMDual], control: Control, squares: np.ndarray
) -> list[Solution | None]:
    """Solve problems by a function of the core that takes their vectors; None where SMO alone does not do.

    Parameters
    ----------
    call
        Called with where each problem begins, and what `_core.smo_batch` takes from `gradient` on.
    squares
        k(x, x) of all their points, in the type of the kernel values.
    """
    began = time.perf_counter()
    sizes = [len(p) for p in problems]
    start = np.array([0, *accumulate(sizes)], np.int64)

    table = np.zeros((1 + len(_VECTORS), int(start[-1])))
    ends = start.tolist()
    for vector, name in zip(table[1:], _VECTORS, strict=True):
        for problem, begin, end in zip(problems, ends[:-1], ends[1:], strict=True):
            if (value := getattr(problem, name)) is not None:
                vector[begin:end] = value
    gradient, linear, upper, lower, width, plus, minus = table
    if not np.isfinite(table).all():
        for vector, name in zip(table[1:], _VECTORS, strict=True):
            check_vector(name, vector, len(vector))
        return [None] * len(problems)  # a hard margin
    started = any(p.plus is not None or p.minus is not None for p in problems)
    if started and ((plus < 0) | (plus > upper) | (minus < 0) | (minus > lower)).any():
        return [None] * len(problems)  # an error that the other way explains
    out = np.empty((len(problems), 8))  # a row for each problem, whose entries are named below
    groups = 2 if problems[0].offset == "split" else 1
    vectors = (gradient, plus, minus, upper, lower, width)
    looks = begin_looks(len(problems)) if len(problems) <= _MOST_COURSES else None
    call(start, *vectors, groups, linear, control.tol, _STEPS_PER_POINT * (max(sizes) + 100), out, looks)
    values = gradient - linear
    name = str(squares.dtype)
    if squares.dtype == np.float32:  # as SMO does for one problem
        square = np.abs(squares.astype(np.float64))
        box = upper + lower
        free = ((plus > 0) & (plus < upper)) | ((minus > 0) & (minus < lower))
        lengths = np.sqrt(np.add.reduceat(square * (plus - minus) ** 2, start[:-1]))
        exposed = np.add.reduceat(np.where(free, np.sqrt(square) * box, 0.0), start[:-1])
        allowed = FLOAT32_SHARE * control.tol * np.maximum(np.abs(out[:, 0]), np.abs(out[:, 1]))
        for p in np.flatnonzero(float32_gap_bound(lengths, exposed) > allowed):
            at = slice(start[p], start[p + 1])
            if not out[p, 7]:
                continue
            if measured_float32_gap(problems[p], (plus - minus)[at], values[at], free[at], box[at]) > allowed[p]:
                out[p, 7] = 0.0
    solutions: list[Solution | None] = []
    support = np.add.reduceat(plus != minus, start[:-1]).tolist()
    seconds = (time.perf_counter() - began) / len(problems)
    for k, (primal, dual, rounding, kkt, above, below, steps, good) in enumerate(out.tolist()):
        if not good:
            solutions.append(None)
            continue
        a, b = ends[k], ends[k + 1]
        offset, half_width = (above - below) / 2, -(above + below) / 2  # as those of `Bounds`
        certificate = Certificate(
            primal, dual, kkt, control.tol, "SMO, many small problems", int(steps), seconds, rounding, name
        )
        solutions.append(
            Solution(
                plus[a:b],
                minus[a:b],
                offset,
                values[a:b] + offset,
                certificate,
                half_width if groups == 2 else 0.0,
                [
                    *([] if looks is None else early_rows(looks[k], steps)),
                    Row(steps, primal, dual, certificate.relative_gap, support[k], seconds),
                ],
            )
        )
    return solutions


# -- pairs of larger classes -------------------------------------------------------------------------------


def pairs_of_classes(problems: list[SVMDual], control: Control) -> bool:
    """Return whether the problems are pairs of classes of moderate size, with nothing special asked for."""
    first = problems[0]
    gram = first.gram
    plain = control.checkpoint is None and control.max_iter < 0 and gram.compiled and first.offset != "none"
    if not plain or len(problems) < 3 or any(p.classes is None or p.gram is not gram for p in problems):
        return False
    sizes = {id(c): len(c) for p in problems for c in p.classes or ()}
    held = 8 * (sum(n * n for n in sizes.values()) + cores() * max(sizes.values()) * gram.shape[0])
    return held <= gram.budget // _BUDGET_PARTS and all(method(p, control).whole for p in problems)


def solve_pairs(problems: list[SVMDual], control: Control) -> list[Solution | None]:
    """Solve the problems, those of one class after the other; None for those that need more than SMO."""
    gram = problems[0].gram
    single = method(max(problems, key=len), control).single
    points = gram.left.single() if single else gram.left
    solutions: list[Solution | None] = [None] * len(problems)
    own: dict[int, np.ndarray] = {}
    groups: dict[int, list[int]] = {}
    for i, problem in enumerate(problems):
        groups.setdefault(id(_classes(problem)[0]), []).append(i)

    members = {id(c): c for p in problems for c in _classes(p)}

    def within(key: int) -> None:
        own[key] = gram.on(points.take(members[key])).fill()

    def one_against_all(group: list[int]) -> None:
        if control.exhausted(0) is not None:
            return
        a, partners = _classes(problems[group[0]])[0], [_classes(problems[i])[1] for i in group]
        across = gram.on(points.take(a), points.take(np.concatenate(partners))).fill()
        stop = 0
        for i, b in zip(group, partners, strict=True):
            stop += len(b)
            solutions[i] = _solve_pair(problems[i], own[id(a)], own[id(b)], across, stop, control)

    run(within, members)
    run(one_against_all, sorted(groups.values(), key=lambda g: -len(g)))
    return solutions


def _classes(problem: SVMDual) -> tuple[np.ndarray, np.ndarray]:
    assert problem.classes is not None
    return problem.classes


def _solve_pair(
    problem: SVMDual, a: np.ndarray, b: np.ndarray, across: np.ndarray, stop: int, control: Control
) -> Solution | None:
    """Solve for two classes; `across` compares the first with all its partners, and the second's columns end at `stop`.

    SMO looks at a small part of the rows: the core puts those together that it asks for.
    """
    n = len(problem)
    rows = scratch(n, a.dtype)
    room = np.empty((n, n), a.dtype) if rows is None else rows
    squares = np.concatenate([a.diagonal(), b.diagonal()])

    def call(start: np.ndarray, *rest: Any) -> None:
        _core.smo_pair(a, b, across, stop - len(b), room, *rest)

    try:
        return solve_by(call, [problem], control, squares)[0]
    finally:
        give_back(rows)
