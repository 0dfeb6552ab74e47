"""The problems of all pairs of classes, whose matrices are put together from blocks that pairs share.

The matrix of the pair (a, b) holds the blocks of a with itself, of b with itself, and of a with b. The first two are
the same in every pair of the class: each is computed once, and the third by one comparison of a with all its partners.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import _core
from mercer.points import Comparison
from mercer.points.threads import cores, run
from mercer.solvers.control import Control
from mercer.solvers.dual import Solution, SVMDual
from mercer.solvers.matrix import give_back, scratch
from mercer.solvers.planning import method
from mercer.solvers.small import solve_by

_SHARE = 4  # of the budget, which the blocks may take


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
    of, formula = gram.kernel.of, gram.comparison.formula
    found: list[Solution | None] = [None] * len(problems)
    own: dict[int, np.ndarray] = {}
    groups: dict[int, list[int]] = {}
    for i, problem in enumerate(problems):
        groups.setdefault(id(_classes(problem)[0]), []).append(i)

    members = {id(c): c for p in problems for c in _classes(p)}

    def within(key: int) -> None:
        own[key] = Comparison(of, points.take(members[key]), None, formula).dense()

    def one_against_all(group: list[int]) -> None:
        if control.exhausted(0) is not None:
            return
        a, partners = _classes(problems[group[0]])[0], [_classes(problems[i])[1] for i in group]
        across = Comparison(of, points.take(a), points.take(np.concatenate(partners)), formula).dense()
        stop = 0
        for i, b in zip(group, partners, strict=True):
            stop += len(b)
            found[i] = _solve(problems[i], own[id(a)], own[id(b)], across, stop, control)

    run(within, members)
    run(one_against_all, sorted(groups.values(), key=lambda g: -len(g)))
    return found


def _classes(problem: SVMDual) -> tuple[np.ndarray, np.ndarray]:
    assert problem.classes is not None
    return problem.classes


def _solve(
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
