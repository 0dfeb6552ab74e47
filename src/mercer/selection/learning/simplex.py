"""Convex functions of shares: numbers of at least 0 that sum up to 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from mercer.solvers.gp.climb import updated_curvature

_ENOUGH = 1e-4  # share of the slope that a step must gain (Armijo)
_TRIES = 20  # shorter steps that are tried
_NOTHING = 1e-9  # a share below which it is none
_NUDGE = 1e-14  # of the trace of a curvature: it may be singular to rounding
_PATIENCE = 15  # evaluations without a smaller gap, after which rounding has the last word


@dataclass
class Known:
    """What is known of the function at some shares.

    Attributes
    ----------
    upper, lower
        Bounds of the value there.
    slopes
        Its derivatives.
    bound
        A lower bound of its minimum.
    """

    upper: float
    lower: float
    slopes: np.ndarray
    bound: float

    def mismatch(self, shares: np.ndarray) -> float:
        """How far the slopes are from equal where there is a share, and larger elsewhere, relative to the least."""
        least = float(self.slopes.min())
        return float(shares @ self.slopes - least) / abs(least) if least else 0.0


@dataclass
class Minimum:
    """Where `descend` ended.

    Attributes
    ----------
    shares
        The best shares.
    known
        What is known of the function there.
    bound
        The best lower bound of the minimum.
    history
        The upper and lower bound of the minimum after each evaluation.
    stopped
        "converged", or what ended it before.
    """

    shares: np.ndarray
    known: Known
    bound: float
    history: list[tuple[float, float]] = field(default_factory=list)
    stopped: str = "converged"


def nearest(B: np.ndarray, g: np.ndarray, x: np.ndarray) -> np.ndarray:
    r"""Return the shares z that minimise g'(z - x) + (z - x)' B (z - x) / 2, for B positive definite.

    With B = R'R this is the point of least norm in the hull of some vectors, and so a problem of non-negative least
    squares (Lawson and Hanson, 1974, ch. 23): with A of these vectors as columns, the minimiser u of
    |Au|² + (sum u - 1)² is a multiple of it.

    Examples
    --------
    >>> nearest(np.eye(3), np.array([-1.0, 0.0, 5.0]), np.full(3, 1 / 3)).round(3)
    array([1., 0., 0.])
    """
    R = np.linalg.cholesky(B + _NUDGE * np.trace(B) * np.eye(len(x))).T
    A = R - (R @ x - solve_triangular(R, g, trans="T"))[:, None]
    size = float(np.abs(A).max())
    if size == 0:
        return x
    u, _ = nnls(np.vstack([A / size, np.ones(len(x))]), np.append(np.zeros(len(x)), 1.0))
    return np.asarray(u / u.sum())


def descend(
    function: Callable[[np.ndarray], Known],
    start: np.ndarray,
    tol: float,
    max_iter: int = 200,
    watch: Callable[[], str | None] = lambda: None,
) -> Minimum:
    """Minimise a convex function of shares until its lower bound says that it is done.

    Newton steps with a secant approximation of the curvature, as in `mercer.solvers.gp.climb`; each step minimises the
    parabola over all shares.

    Parameters
    ----------
    function
        Values, slopes and bounds.
    start
        Where to start: positive shares.
    tol
        The difference of the upper and the lower bound, relative to the upper, at which it ends.
    max_iter
        The most steps.
    watch
        Asked after each step; what it returns ends the run.

    Examples
    --------
    >>> c = np.array([0.7, 0.6, -0.5])
    >>> def square(x):
    ...     g = x - c
    ...     value = float(g @ g) / 2
    ...     return Known(value, value, g, value + float((g - g @ x).min()))
    >>> descend(square, np.full(3, 1 / 3), 1e-9).shares.round(4)
    array([0.55, 0.45, 0.  ])
    """
    x = np.asarray(start, dtype=np.float64)
    here = function(x)
    found = Minimum(x, here, here.bound, [(here.upper, here.bound)])
    B: np.ndarray | None = None
    for step in range(max_iter + 1):
        if found.known.upper - found.bound <= tol * abs(found.known.upper) or not here.slopes.any():
            return found
        reason = f"max_iter={max_iter} reached" if step == max_iter else watch() or _stuck(found.history)
        if reason is not None:
            found.stopped = reason
            return found
        fresh = B is None
        if B is None:  # the curvature of a sum of multiples of 1 / x
            B = np.diag(2.0 * np.maximum(np.abs(here.slopes), 1e-6 * np.abs(here.slopes).max()) / np.maximum(x, 1e-2))
        way = _trimmed(nearest(B, here.slopes, x)) - x
        moved = _along(function, x, here, way, found)
        if moved is None:
            if fresh:
                found.stopped = "rounding: no step gains anything"
                return found
            B = None
            continue
        new, there = moved
        B = updated_curvature(B, new - x, there.slopes - here.slopes, False)
        x, here = new, there
    return found


def _along(
    function: Callable[[np.ndarray], Known], x: np.ndarray, here: Known, way: np.ndarray, found: Minimum
) -> tuple[np.ndarray, Known] | None:
    """Return a point on the way that gains enough, and take note of what is seen; None where there is none."""
    slope = float(here.slopes @ way)
    if not slope < 0:
        return None
    doubt = here.upper - here.lower
    t = 1.0
    for _ in range(_TRIES):
        new = x + t * way
        there = function(new)
        found.bound = max(found.bound, there.bound)
        if there.upper < found.known.upper:
            found.shares, found.known = new, there
        found.history.append((found.known.upper, found.bound))
        if there.upper <= here.upper + _ENOUGH * t * slope + doubt + (there.upper - there.lower):
            return new, there
        t *= 0.3
    return None


def _stuck(history: list[tuple[float, float]]) -> str | None:
    """Return what to say if the bounds have not come nearer to each other for a while."""
    gaps = [upper - bound for upper, bound in history]
    if len(gaps) > _PATIENCE and gaps[-1] > 0.99 * gaps[-1 - _PATIENCE]:
        return "rounding: the bounds come no nearer"
    return None


def _trimmed(x: np.ndarray) -> np.ndarray:
    """Return the shares without those that are next to nothing."""
    x = np.where(x < _NOTHING, 0.0, x)
    return np.asarray(x / x.sum())
