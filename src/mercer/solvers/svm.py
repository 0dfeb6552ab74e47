"""Many dual problems at once, and the plan for them in one sentence."""

from __future__ import annotations

from mercer.points.budget import readable
from mercer.points.threads import run
from mercer.solvers.control import Control
from mercer.solvers.decomposition import WHOLE, Decomposition, method
from mercer.solvers.dual import Solution, SVMDual
from mercer.solvers.hard import is_hard, solve_hard


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

    def one(i: int) -> None:
        if found[i] is None:
            found[i] = _solve(problems[i], control)

    small = [i for i, p in enumerate(problems) if len(p) <= WHOLE]
    large = [i for i, p in enumerate(problems) if len(p) > WHOLE]
    try:
        for i in large:
            one(i)
        run(one, sorted(small, key=lambda i: -len(problems[i])))
    except KeyboardInterrupt:
        control.cancel()  # every run returns what it has, those not begun their start
        for i in range(len(problems)):
            one(i)
    return [s for s in found if s is not None]


def _solve(problem: SVMDual, control: Control) -> Solution:
    return solve_hard(problem, control) if is_hard(problem) else Decomposition(problem, control).run()


def plan(problems: list[SVMDual], control: Control | None = None) -> str:
    """Return how the problems will be solved and why, in a sentence."""
    control = control or Control()
    largest = max(problems, key=len)
    chosen = method(largest, control)
    many = f"{len(problems)} problems of up to {len(largest)} points, side by side: " if len(problems) > 1 else ""
    kind = "float32" if chosen.single else "float64"
    return f"{many}{chosen.name} in {kind}, {readable(chosen.memory)}: {chosen.why}."
