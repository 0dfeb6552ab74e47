"""Hard tubes (regression with C = infinity): the flattest function within epsilon of every target, or why none exists.

An interior-point method comes near, and linear equations finish: f is known where it touches the tube. Where
they fail, a linear program finds the narrowest tube that some function of the kernel's space stays in.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.linalg import LinAlgError, LinAlgWarning, solve
from scipy.optimize import linprog

from mercer.certify import Stop
from mercer.machine.threads import one_thread_each
from mercer.solvers.control import Control
from mercer.solvers.dual.barrier import barrier
from mercer.solvers.dual.hard import holds, inner_products, matrix, pivoted_factor
from mercer.solvers.dual.problem import FLOAT64_EPS, WHOLE, Infeasible, Solution, SVMDual
from mercer.solvers.run import Run

_IDLE_EXCHANGES = 3  # of points on the edge, that are not much fewer than those before
_LEAST_SQUARES = 400  # points on the edge up to which equations may be solved by least squares
_EDGE = 1e-6  # of the targets: a point as near as that to the edge of the tube is on it
_PROGRAM_ERROR = 1e-9  # of the width of a tube: what a linear program may be off


def is_tube(problem: SVMDual) -> bool:
    """Return whether no coefficient of either sign has a bound."""
    return bool(np.isinf(problem.upper).all() and np.isinf(problem.lower).all())


def solve_tube(problem: SVMDual, control: Control) -> Solution:
    """Return the flattest function in the tube, or raise `Infeasible` with what contradicts it."""
    n, free = len(problem), problem.offset != "none"
    if not holds(problem):
        raise ValueError(
            f"C=inf needs the whole kernel matrix of {n} points, which is held for up to {WHOLE} points within the "
            "budget; take a large finite C instead."
        )
    y = -np.asarray(problem.linear, dtype=np.float64)
    width = np.broadcast_to(np.asarray(problem.width, dtype=np.float64), (n,))
    K = matrix(problem)
    with one_thread_each():
        b, offset = _flattest(K, y, width, free)
        f = K @ b + offset
        lengths = np.sqrt(np.abs(K.diagonal()))
        length = float(np.abs(b) @ lengths)
        largest = float(np.abs(y).max())
        rounding = 16 * FLOAT64_EPS * (length * float(lengths.max()) + largest + abs(offset))
        rounding = min(rounding, _EDGE * largest)  # coefficients beyond that are of no function in the tube
        inside = bool((np.abs(y - f) <= width + rounding).all())
        if not inside:
            _require_tube(problem, K, y, width, free)
    square = float(b @ (f - offset))
    dual = float(y @ b - width @ np.abs(b)) - 0.5 * square
    rounded = 2 * FLOAT64_EPS * length * (length + float(np.abs(b).sum())) + rounding * float(np.abs(b).sum())
    primal = max(dual, 0.5 * square) if inside else np.inf
    edge = np.abs(np.abs(y - f) - width)[b != 0]
    outside = float(np.maximum(np.abs(y - f) - width, 0.0).max())
    kkt = max(outside, float(edge.max(initial=0.0)))
    run, solver = Run(control, quiet=True), "interior points, then the equations of the tube's edge"
    certificate = run.certificate(primal, dual, kkt, solver, otherwise=Stop.FLOOR, rounding=rounded)
    run.note(primal, dual, certificate.relative_gap, int(np.count_nonzero(b)))
    return Solution(np.maximum(b, 0.0), np.maximum(-b, 0.0), offset, f, certificate, history=run.history)


def _flattest(K: np.ndarray, y: np.ndarray, width: np.ndarray, free: bool) -> tuple[np.ndarray, float]:
    """Return coefficients and offset: exact where the points on the edge are found, else as near as steps come."""
    n, none = len(y), np.zeros(len(y))
    middle = float(y.max() + y.min()) / 2 if free else 0.0
    if (np.abs(y - middle) <= width).all():
        return none, middle
    if not width.any():
        b, offset = _equations(K, y, free)
        return (b, offset) if b is not None else (none, middle)
    unbounded = np.full(n, np.inf)
    near = barrier(K, -y, width, unbounded, unbounded, none, none, int(free), 1e-10)
    b = none if near is None else near[0] - near[1]
    best, fewest, waited = (b, _central(y - K @ b, width, free)), np.inf, 0
    sign = np.sign(b)
    while waited < _IDLE_EXCHANGES and sign.any():
        at = np.flatnonzero(sign)
        part, offset = _equations(K[np.ix_(at, at)], (y - sign * width)[at], free)
        if part is None:
            break
        b = np.zeros(n)
        b[at] = part
        residual = y - K @ b - offset
        wrong = sign * b < 0
        beyond = (sign == 0) & (np.abs(residual) > width * (1 + 1e-12) + 16 * FLOAT64_EPS * np.abs(y).max())
        moving = int(wrong.sum() + beyond.sum())
        if not moving:
            return b, offset
        fewest, waited = (moving, 0) if moving < 0.8 * fewest else (fewest, waited + 1)
        sign = np.where(wrong, 0.0, np.where(beyond, np.sign(residual), sign))
    return best


def _equations(K: np.ndarray, target: np.ndarray, free: bool) -> tuple[np.ndarray | None, float]:
    """Return b and the offset with K b + offset = target (and sum b = 0); None where that has no solution."""
    n = len(target)
    border = np.ones((n, int(free)))
    whole = np.block([[K, border], [border.T, np.zeros((int(free), int(free)))]])
    right = np.append(target, np.zeros(int(free)))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", LinAlgWarning)
            b = solve(whole, right, assume_a="sym")
    except (LinAlgError, LinAlgWarning):
        if n > _LEAST_SQUARES:
            return None, 0.0
        b = np.linalg.lstsq(whole, right, rcond=None)[0]
    return b[:n], float(b[n]) if free else 0.0


def _central(residual: np.ndarray, width: np.ndarray, free: bool) -> float:
    return float((residual - width).max() + (residual + width).min()) / 2 if free else 0.0


def _require_tube(problem: SVMDual, K: np.ndarray, y: np.ndarray, width: np.ndarray, free: bool) -> None:
    """Raise unless some function of the kernel's space, and an offset, is within the width of every target."""
    points = inner_products(problem)
    if points is not None:
        factor = points - points.mean(axis=0) if free else points
    else:
        columns = pivoted_factor(K)
        if columns is None or columns.values.shape[1] == len(y):
            return  # no function to speak of, or one for any targets
        factor = columns.values
    n = len(y)
    sides = np.column_stack([factor, np.ones((n, int(free)))])
    cost = np.append(np.zeros(sides.shape[1]), 1.0)
    rows = np.block([[sides, -np.ones((n, 1))], [-sides, -np.ones((n, 1))]])
    program = linprog(cost, rows, np.concatenate([y, -y]), bounds=(None, None), method="highs")
    if program.status != 0 or not program.fun > float(width.max()) * (1 + _PROGRAM_ERROR):
        return
    weights = -program.ineqlin.marginals
    b = weights[n:] - weights[:n]
    b = b / np.abs(b).sum()
    raise Infeasible(
        f"no function of this kernel's space stays within epsilon={width.max():.4g} of every target (C=inf): as far as "
        f"kernel values in float64 tell, the narrowest tube has epsilon={program.fun:.4g}. Raise epsilon to that at "
        "least, use a finite C, or a kernel that tells more points apart.",
        coefficients=b,
    )
