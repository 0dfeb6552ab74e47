"""Many dual problems at once."""

from __future__ import annotations

from mercer.points.threads import cores, run, within_limit
from mercer.solvers.control import Control
from mercer.solvers.dual import Solution, SVMDual
from mercer.solvers.hard import is_hard, solve_hard, solve_soft
from mercer.solvers.pairs import pairs_of_classes, solve_pairs
from mercer.solvers.planning import WHOLE, whole_item
from mercer.solvers.small import shares_small_matrix, solve_small
from mercer.solvers.tube import is_tube, solve_tube

_INLINE = 300_000  # kernel values below which a second thread costs more than it brings


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
