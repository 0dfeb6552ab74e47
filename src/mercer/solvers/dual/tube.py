"""Hard tubes (regression with C = infinity): the flattest function within epsilon of every target, or why none exists.

An interior-point method comes near, and linear equations finish: f is known where it touches the tube. Where that
fails, a linear program finds the narrowest tube that a function of the kernel's space stays in.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from scipy.linalg import LinAlgError, LinAlgWarning, solve
from scipy.optimize import linprog

from mercer.certify import Certificate
from mercer.machine.threads import one_thread_each
from mercer.solvers.control import Control
from mercer.solvers.dual.barrier import barrier
from mercer.solvers.dual.course import FLOOR
from mercer.solvers.dual.hard import holds, inner_products, matrix, pivoted_factor
from mercer.solvers.dual.planning import WHOLE
from mercer.solvers.dual.problem import Infeasible, Solution, SVMDual
from mercer.solvers.run import Row

_EPS = float(np.finfo(np.float64).eps)
_PATIENCE = 3  # exchanges of points on the edge that are not much fewer than those before
_SINGULAR = 400  # points on the edge up to which equations may be solved by least squares
_EDGE = 1e-6  # of the targets: how far from the edge of the tube a point may be that is said to be on it
_NARROWER = 1e-9  # of a tube: what a linear program may be off


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
        rounding = 16 * _EPS * (length * float(lengths.max()) + largest + abs(offset))
        rounding = min(rounding, _EDGE * largest)  # coefficients beyond that are of no function in the tube
        inside = bool((np.abs(y - f) <= width + rounding).all())
        if not inside:
            _require_tube(problem, K, y, width, free)
    square = float(b @ (f - offset))
    dual = float(y @ b - width @ np.abs(b)) - 0.5 * square
    rounded = 2 * _EPS * length * (length + float(np.abs(b).sum())) + rounding * float(np.abs(b).sum())
    primal = max(dual, 0.5 * square) if inside else np.inf
    edge = np.abs(np.abs(y - f) - width)[b != 0]
    outside = float(np.maximum(np.abs(y - f) - width, 0.0).max())
    certificate = Certificate(
        primal=primal,
        dual=dual,
        kkt=max(outside, float(edge.max(initial=0.0))),
        tol=control.tol,
        solver="interior points, then the equations of the tube's edge",
        seconds=control.seconds,
        rounding=rounded,
    )
    if not certificate.converged:
        certificate = replace(certificate, stopped=FLOOR)
    support = int(np.count_nonzero(b))
    history = [Row(0, primal, dual, certificate.relative_gap, support, control.seconds)]
    return Solution(np.maximum(b, 0.0), np.maximum(-b, 0.0), offset, f, certificate, history=history)


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
    side = np.sign(b)
    while waited < _PATIENCE and side.any():
        at = np.flatnonzero(side)
        part, offset = _equations(K[np.ix_(at, at)], (y - side * width)[at], free)
        if part is None:
            break
        b = np.zeros(n)
        b[at] = part
        residual = y - K @ b - offset
        wrong = side * b < 0
        beyond = (side == 0) & (np.abs(residual) > width * (1 + 1e-12) + 16 * _EPS * np.abs(y).max())
        moving = int(wrong.sum() + beyond.sum())
        if not moving:
            return b, offset
        fewest, waited = (moving, 0) if moving < 0.8 * fewest else (fewest, waited + 1)
        side = np.where(wrong, 0.0, np.where(beyond, np.sign(residual), side))
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
            found = solve(whole, right, assume_a="sym")
    except (LinAlgError, LinAlgWarning):
        if n > _SINGULAR:
            return None, 0.0
        found = np.linalg.lstsq(whole, right, rcond=None)[0]
    return found[:n], float(found[n]) if free else 0.0


def _central(residual: np.ndarray, width: np.ndarray, free: bool) -> float:
    return float((residual - width).max() + (residual + width).min()) / 2 if free else 0.0


def _require_tube(problem: SVMDual, K: np.ndarray, y: np.ndarray, width: np.ndarray, free: bool) -> None:
    """Raise unless some function of the kernel's space, and an offset, is within the width of every target."""
    points = inner_products(problem)
    if points is not None:
        factor = points - points.mean(axis=0) if free else points
    else:
        found = pivoted_factor(K)
        if found is None or found.values.shape[1] == len(y):
            return  # no function to speak of, or one for any targets
        factor = found.values
    n = len(y)
    sides = np.column_stack([factor, np.ones((n, int(free)))])
    cost = np.append(np.zeros(sides.shape[1]), 1.0)
    rows = np.block([[sides, -np.ones((n, 1))], [-sides, -np.ones((n, 1))]])
    program = linprog(cost, rows, np.concatenate([y, -y]), bounds=(None, None), method="highs")
    if program.status != 0 or not program.fun > float(width.max()) * (1 + _NARROWER):
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
