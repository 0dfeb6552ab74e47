"""Hard margins (C = infinity) by soft ones whose bounds do not matter, or the evidence that there is none."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from mercer.gram import Gram
from mercer.points import diagonal
from mercer.solvers.control import Control
from mercer.solvers.decomposition import CRAWLS, Decomposition
from mercer.solvers.dual import Infeasible, Solution, SVMDual
from mercer.solvers.planning import WHOLE, method
from mercer.solvers.whole import Whole

_ROUGH = 1e-2  # the gap at which a rung shows whether its bound matters
_PART = 600  # points tried first when there are many
_LADDER = (1e2, 1e5, 1e8, 1e11)  # bounds on the coefficients, in units of 1 / k(x, x)


def is_hard(problem: SVMDual) -> bool:
    """Return whether a coefficient has no bound."""
    return bool(np.isinf(problem.upper).any() or np.isinf(problem.lower).any())


def solve_soft(problem: SVMDual, control: Control) -> Solution:
    """Solve one problem whose coefficients are bounded, by the method that suits it."""
    chosen = method(problem, control)
    if chosen.whole:
        return Whole(problem, control, chosen).run()
    problem = problem.alone()
    solution = Decomposition(problem, control, chosen).run()
    if solution.certificate.stopped != CRAWLS:
        return solution
    chosen = replace(chosen, name="interior points after decomposition", whole=True, single=False)
    again = Whole(replace(problem, plus=solution.plus, minus=solution.minus), control, chosen)
    again.impatient = True
    again.steps, again.history = solution.certificate.iterations, solution.history
    return again.run()


def solve_hard(problem: SVMDual, control: Control) -> Solution:
    """Solve under finite bounds, larger ones while some coefficient reaches its own.

    A solution below its bounds is the hard-margin solution. Dual values only grow with the bounds, and each is a lower
    bound of |w|^2 / 2: where even the largest bounds are reached, no margin wider than 2 / sqrt(2 D) exists.
    """
    y = -np.asarray(problem.linear, dtype=np.float64)
    if not (np.abs(y) == 1).all() or np.any(problem.width):
        raise ValueError("infinite bounds are for hard-margin classifiers; give C a finite value.")
    size = float(np.abs(diagonal(problem.gram.kernel.of, problem.points())).max())
    solution, file = None, control.checkpoint
    for rung, bound in enumerate(_LADDER):
        cap = bound / size if size > 0 else bound
        soft = replace(problem, upper=np.minimum(problem.upper, cap), lower=np.minimum(problem.lower, cap))
        if solution is not None:
            soft.plus, soft.minus = solution.plus, solution.minus
        # The bounds are far away, so that slacks are dear: what misses the margin is a small part of the gap.
        if file is not None:  # one per rung, whose bounds tell it from the others
            control.checkpoint = f"{file}.{rung}" if rung else file
        asked = control.tol
        try:
            control.tol = max(asked, _ROUGH) if rung else asked  # enough to see whether a bound is reached
            solution = solve_soft(soft, control)
            control.tol = asked
            if solution.certificate.tol > asked and not _reached(solution, cap):
                soft.plus, soft.minus = solution.plus, solution.minus
                solution = solve_soft(soft, control)
        finally:
            control.tol = asked
            written, control.checkpoint = control.checkpoint, file
        if not _reached(solution, cap) or solution.certificate.stopped == "interrupted":
            return _certified(solution, y, problem.offset != "none")
        if written is not None:
            Path(written).unlink(missing_ok=True)
        if bound == _LADDER[0] and len(y) > WHOLE:
            _require_separable_part(problem, solution, control)
    _refuse(solution, y, size)
    raise AssertionError("not reached")


def _reached(solution: Solution, cap: float) -> bool:
    return max(float(solution.plus.max()), float(solution.minus.max())) >= cap


def _require_separable_part(problem: SVMDual, solution: Solution, control: Control) -> None:
    """Raise if the points that resist most cannot be separated: then all of them cannot, and few are quick to try."""
    n = len(problem)
    part = np.sort(np.argsort(solution.plus + solution.minus)[-_PART:])
    y = -problem.linear[part]
    if np.abs(y.sum()) == len(y):
        return
    gram = Gram(problem.gram.kernel, problem.points().take(part), budget=problem.gram.given_budget)
    cut = SVMDual(gram, -y, problem.upper[part], problem.lower[part], offset=problem.offset)
    ours = replace(control, checkpoint=None, tol=max(control.tol, 1e-3))
    try:
        solve_hard(cut, ours)
    except Infeasible as found:
        if found.coefficients is not None:
            b = np.zeros(n)
            b[part] = found.coefficients
            found.coefficients = b
        raise
    if ours.cancelled:
        control.cancel()


def _certified(solution: Solution, y: np.ndarray, shift: bool) -> Solution:
    """Return the solution with the primal of the hard margin: f scaled until the smallest margin is 1."""
    values = solution.values
    if shift and (y > 0).any() and (y < 0).any():  # the offset in the middle between the classes
        low, high = values[y > 0].min(), values[y < 0].max()
        solution.offset -= (low + high) / 2
        solution.values = values = values - (low + high) / 2
    smallest = float((y * values).min())
    certificate = solution.certificate
    square = float(solution.coefficients @ (values - solution.offset))
    primal = 0.5 * square / smallest**2 if smallest > 0 else math.inf
    solution.certificate = replace(certificate, primal=max(primal, certificate.dual))
    return solution


def _refuse(solution: Solution | None, y: np.ndarray, size: float) -> None:
    assert solution is not None
    b = solution.coefficients
    width = 2 / math.sqrt(2 * max(solution.certificate.dual, 1e-300))
    wrong = int((y * solution.values <= 0).sum())
    raise Infeasible(
        f"the classes cannot be separated by a hard margin (C=inf): no margin is wider than {width:.1g}, where the "
        f"points are up to {math.sqrt(size):.2g} long in feature space, and {wrong} of {len(y)} points stay on the "
        "wrong side. Use a finite C, or a kernel that separates more (a smaller RBF scale).",
        coefficients=b.copy(),
    )
