"""The problems of all pairs of classes, whose matrices are put together from blocks that pairs share.

The matrix of the pair (a, b) holds the blocks of a with itself, of b with itself, and of a with b. The first two are
the same in every pair of the class: each is computed once, and the third by one comparison of a with all its partners.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import _core
from mercer.points import Comparison
from mercer.points.threads import run
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
    held = 8 * (sum(n * n for n in sizes.values()) + max(sizes.values()) * gram.shape[0])
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

    def within(rows: np.ndarray) -> np.ndarray:
        if id(rows) not in own:
            own[id(rows)] = Comparison(of, points.take(rows), None, formula).dense()
        return own[id(rows)]

    wide = max(
        sum(len(_classes(problems[i])[1]) for i in g) * len(_classes(problems[g[0]])[0]) for g in groups.values()
    )
    memory = np.empty(wide, points.dtype)  # fresh memory is dear: one piece for all groups
    for group in groups.values():
        if control.exhausted(0) is not None:
            break
        a = _classes(problems[group[0]])[0]
        partners = [_classes(problems[i])[1] for i in group]
        blocks = [within(a), *map(within, partners)]
        compared = Comparison(of, points.take(a), points.take(np.concatenate(partners)), formula)
        across = compared.dense(memory[: compared.shape[0] * compared.shape[1]].reshape(compared.shape))
        stops = np.cumsum([len(b) for b in partners])

        def one(
            k: int,
            group: list[int] = group,
            blocks: list[np.ndarray] = blocks,
            across: np.ndarray = across,
            stops: np.ndarray = stops,
        ) -> None:
            found[group[k]] = _solve(problems[group[k]], blocks[0], blocks[k + 1], across, int(stops[k]), control)

        run(one, range(len(group)))
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
