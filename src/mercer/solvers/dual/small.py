"""Many small problems on the points of one matrix, in one call: the class pairs of a classifier.

What costs most in a problem of a hundred points is Python. The core takes the problems one after the other, on every
thread; those that do not come out well are returned undone, for `Decomposition` and its ways out of trouble.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import accumulate, pairwise

import numpy as np

from mercer import _core
from mercer.certify import Certificate
from mercer.machine.threads import cores, run
from mercer.points import Comparison
from mercer.solvers.control import Control, check_vector
from mercer.solvers.dual.matrix import give_back, hidden_gap, hides, scratch
from mercer.solvers.dual.planning import WHOLE, method
from mercer.solvers.dual.problem import Solution, SVMDual
from mercer.solvers.run import Row

_AT_ONCE = 20_000  # problems between two looks at the limits
_VECTORS = ("linear", "upper", "lower", "width", "plus", "minus")  # of a problem
_STEPS = 100  # per point, and as many again in all; then it crawls
_ALONE = 300_000  # kernel values below which a second thread costs more than it brings


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
    gram = largest.gram
    single = method(largest, control).single
    compared = gram.comparison
    if single:
        compared = Comparison(gram.kernel.of, gram.left.single(), None, compared.formula)
    lent = scratch(gram.shape[0], compared.dtype) if compared.compiled else None
    try:
        return _solve_on(compared.dense(lent), problems, control)
    finally:
        give_back(lent)


def _solve_on(K: np.ndarray, problems: list[SVMDual], control: Control) -> list[Solution | None]:
    found: list[Solution | None] = []
    for begin in range(0, len(problems), _AT_ONCE):
        if control.exhausted(0) is not None:
            return found + [None] * (len(problems) - len(found))
        some = problems[begin : begin + _AT_ONCE]
        shares = [some]
        if sum(len(p) ** 2 for p in some) > _ALONE:
            cuts = np.linspace(0, len(some), cores() + 1).astype(int)
            shares = [some[a:b] for a, b in pairwise(cuts) if a < b]
        for share in run(lambda share: together(K, share, control), shares):
            found += share
        if control.report is not None:
            support = sum(int(np.count_nonzero(s.coefficients)) for s in found if s is not None)
            dual = sum(s.certificate.dual for s in found if s is not None)
            if control.tell(iteration=len(found), gap=control.tol, dual=dual, support=support):
                control.cancel()
    return found


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
    out = np.empty((len(problems), 8))
    groups = 2 if problems[0].offset == "split" else 1
    vectors = (gradient, plus, minus, upper, lower, width)
    call(start, *vectors, groups, linear, control.tol, _STEPS * (max(sizes) + 100), out)
    values = gradient - linear
    name = str(squares.dtype)
    if squares.dtype == np.float32:
        square = np.abs(squares.astype(np.float64))
        box = upper + lower
        free = ((plus > 0) & (plus < upper)) | ((minus > 0) & (minus < lower))
        lengths = np.sqrt(np.add.reduceat(square * (plus - minus) ** 2, start[:-1]))
        exposed = np.add.reduceat(np.where(free, np.sqrt(square) * box, 0.0), start[:-1])
        allowed = 0.3 * control.tol * np.maximum(np.abs(out[:, 0]), np.abs(out[:, 1]))
        for p in np.flatnonzero(hidden_gap(lengths, exposed) > allowed):
            at = slice(start[p], start[p + 1])
            if out[p, 7] and hides(problems[p], (plus - minus)[at], values[at], free[at], box[at]) > allowed[p]:
                out[p, 7] = 0.0
    found: list[Solution | None] = []
    support = np.add.reduceat(plus != minus, start[:-1]).tolist()
    seconds = (time.perf_counter() - began) / len(problems)
    for k, (primal, dual, rounding, kkt, above, below, steps, good) in enumerate(out.tolist()):
        if not good:
            found.append(None)
            continue
        a, b = ends[k], ends[k + 1]
        offset, half = (above - below) / 2, -(above + below) / 2
        certificate = Certificate(
            primal, dual, kkt, control.tol, "SMO, many small problems", int(steps), seconds, rounding, name
        )
        gap = max(0.0, primal - dual - rounding) / max(abs(primal), abs(dual), 1e-300)
        found.append(
            Solution(
                plus[a:b],
                minus[a:b],
                offset,
                values[a:b] + offset,
                certificate,
                half if groups == 2 else 0.0,
                [Row(steps, primal, dual, gap, support[k], seconds)],
            )
        )
    return found
