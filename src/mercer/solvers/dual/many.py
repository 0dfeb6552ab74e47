"""Many dual problems at once; those of pairs of classes share blocks of their matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import _core
from mercer.machine.threads import cores, run, within_limit
from mercer.solvers.control import Control
from mercer.solvers.dual.hard import is_hard, solve_hard, solve_soft
from mercer.solvers.dual.matrix import give_back, scratch
from mercer.solvers.dual.planning import WHOLE, method, whole_item
from mercer.solvers.dual.problem import Solution, SVMDual
from mercer.solvers.dual.small import shares_small_matrix, solve_by, solve_small
from mercer.solvers.dual.tube import is_tube, solve_tube

_INLINE = 300_000  # kernel values below which a second thread costs more than it brings
_SHARE = 4  # of the budget, which the blocks may take


@within_limit
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
    if len(problems) == 1:
        return [_solve(problems[0], control)]
    found: list[Solution | None] = [None] * len(problems)
    try:
        if shares_small_matrix(problems, control):
            found = solve_small(problems, control)
        elif pairs_of_classes(problems, control):
            found = solve_pairs(problems, control)
    except KeyboardInterrupt:
        control.cancel()

    def one(i: int) -> None:
        if found[i] is None:
            found[i] = _solve(problems[i], control)

    small = [i for i, p in enumerate(problems) if found[i] is None and len(p) <= WHOLE]
    large = [i for i, p in enumerate(problems) if len(p) > WHOLE]
    try:
        for i in large:
            one(i)
        small.sort(key=lambda i: -len(problems[i]))
        values = [len(problems[i]) ** 2 for i in small]
        if sum(values) <= _INLINE or sum(values[: cores()]) * whole_item(True) > problems[0].gram.budget:
            for i in small:
                one(i)
        else:
            run(one, small)
    except KeyboardInterrupt:
        control.cancel()  # every run returns what it has, those not begun their start
        for i in range(len(problems)):
            one(i)
    return [s for s in found if s is not None]


def _solve(problem: SVMDual, control: Control) -> Solution:
    if not is_hard(problem):
        return solve_soft(problem, control)
    return solve_tube(problem, control) if is_tube(problem) else solve_hard(problem, control)


def pairs_of_classes(problems: list[SVMDual], control: Control) -> bool:
    """Return whether the problems are pairs of classes of moderate size, with nothing special asked for."""
    first = problems[0]
    gram = first.gram
    plain = control.checkpoint is None and control.max_iter < 0 and gram.compiled and first.offset != "none"
    if not plain or len(problems) < 3 or any(p.classes is None or p.gram is not gram for p in problems):
        return False
    sizes = {id(c): len(c) for p in problems for c in p.classes or ()}
    held = 8 * (sum(n * n for n in sizes.values()) + cores() * max(sizes.values()) * gram.shape[0])
    return held <= gram.budget // _SHARE and all(method(p, control).whole for p in problems)


def solve_pairs(problems: list[SVMDual], control: Control) -> list[Solution | None]:
    """Solve the problems, those of one class after the other; None for those that need more than SMO."""
    gram = problems[0].gram
    single = method(max(problems, key=len), control).single
    points = gram.left.single() if single else gram.left
    found: list[Solution | None] = [None] * len(problems)
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
            found[i] = _solve_pair(problems[i], own[id(a)], own[id(b)], across, stop, control)

    run(within, members)
    run(one_against_all, sorted(groups.values(), key=lambda g: -len(g)))
    return found


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
