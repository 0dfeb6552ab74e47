"""The nearest points of two convex hulls: the problem behind a hard margin, which has a solution whatever the classes.

Mixtures of the two classes, sum b_i phi_i with both parts of b summing to 1, are nearest at a distance that is the
width of the margin, and meet where there is none (Bennett and Bredensteiner, 2000). No coefficient grows without bound,
as those of the dual do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mercer.points.threads import one_thread_each, run
from mercer.solvers.barrier import barrier

_STEPS = 60
_INLINE = 100_000_000  # products below which a second thread costs more than it brings
_PARTS = 8  # of the points, however many threads there are: the result does not depend on them
_BACK = 0.995  # of the way to the boundary
_LIFTS = (0.0, 1e-15, 1e-14, 1e-13, 1e-12)  # of a matrix with ones on its diagonal, until it can be factorised
_EQUATIONS = 200  # points of mixtures that are refined by solving for them
_PATIENCE = 3  # exchanges of points that are not much fewer than those before, after which mixtures stay as they are
_ROUNDING = 1e-12  # of w at a point
_STALLED = 8  # steps in which mixtures come no nearer and margins grow no wider, which end it


class Nearest(NamedTuple):
    """Two mixtures, and what lies between them.

    Attributes
    ----------
    b
        Coefficients of the sign of each label; both parts sum to 1, or all of it does where there is no offset.
    values
        <w, phi_i> with w = sum b_i phi_i.
    apart
        |w|, the distance of the mixtures (without an offset: of one of all signed points from 0). No two mixtures of
        these classes are nearer than `margin`, and none need be farther than `apart`.
    margin
        What lies between the classes along w; negative where they overlap there.
    """

    b: np.ndarray
    values: np.ndarray
    apart: float
    margin: float
    steps: int = 0

    @property
    def gap(self) -> float:
        """How far the square of the distance can be from the smallest there is, as a share of it."""
        return 1.0 - (max(self.margin, 0.0) / self.apart) ** 2 if self.apart > 0 else 1.0


def between(b: np.ndarray, values: np.ndarray, square: float, sign: np.ndarray, free: bool, steps: int = 0) -> Nearest:
    """Return what lies between two mixtures, from w at every point and its squared length."""
    apart = math.sqrt(max(square, 0.0))
    if free:
        least = float(values[sign > 0].min()) - float(values[sign < 0].max())
    else:
        least = float((sign * values).min())
    return Nearest(b, values, apart, least / apart if apart > 0 else -math.inf, steps)


def nearest(
    points: np.ndarray, sign: np.ndarray, free: bool, tol: float, touching: float, stop: Callable[[], bool]
) -> Nearest:
    """Return the nearest mixtures of points given by their features, as rows.

    Parameters
    ----------
    points
        The features; where there is an offset, best with their mean at 0.
    sign
        The label of each, 1 or -1.
    free
        Whether there is an offset: then each class makes up a mixture of its own.
    tol
        The gap to stop at.
    touching
        The distance at which mixtures meet.
    stop
        Asked after each step whether to leave.

    Examples
    --------
    >>> import numpy as np
    >>> found = nearest(np.array([[-2.0], [-1.0], [3.0]]), np.array([-1.0, -1.0, 1.0]), True, 1e-9, 0.0, lambda: False)
    >>> found.b.round(6), round(found.margin, 6)
    (array([ 0., -1.,  1.]), 4.0)
    """
    square = float(np.einsum("ij,ij->i", points, points).max())
    best, smallest, waited = None, math.inf, 0
    with one_thread_each(), np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        for steps, (u, slack) in enumerate(_path(points, sign, free)):
            waited += 1
            pressed = mixtures(np.where(slack > square * u, 0.0, sign * u), free)  # without those that press against 0
            for i, b in enumerate((mixtures(sign * u, free), pressed, _refined(points, pressed, sign, free))):
                if b is None or not np.isfinite(b).all():
                    continue
                w = points.T @ b
                seen = between(b, points @ w, float(w @ w), sign, free, steps)
                left = seen.apart - max(seen.margin, 0.0)
                if left < 0.9 * smallest:
                    smallest, waited = left, 0
                if i == 0 and seen.margin > 0 and best is not None:
                    continue  # a solution has no coefficients that are nearly 0
                if best is None or _better(seen, best):
                    best = seen
                if best.apart <= touching or best.gap <= tol:
                    return best
            if waited >= _STALLED or stop():
                break
    assert best is not None
    return best


def nearest_on_matrix(K: np.ndarray, sign: np.ndarray, free: bool, tol: float, touching: float) -> Nearest | None:
    """Return the nearest mixtures from the kernel matrix of their points, in float64; None where there is no way.

    Parameters
    ----------
    K
        The matrix, positive semidefinite.
    sign, free, tol, touching
        As for `nearest`.
    """
    start, none, unbounded = mixtures(sign, free), np.zeros(len(sign)), np.full(len(sign), np.inf)
    assert start is not None
    least = 0.5 * touching**2
    with one_thread_each():
        easy = refined_on_matrix(K, on_matrix(K, start, sign, free), sign, free)
        if easy.gap <= tol:
            return easy
        if free:
            bounds = np.where(sign > 0, unbounded, 0.0), np.where(sign < 0, unbounded, 0.0)
            parts = np.maximum(start, 0.0), np.maximum(-start, 0.0)
            found = barrier(K, none, none, *bounds, *parts, 2, 0.01 * tol, least)
        else:
            signed = K * sign * sign[:, None]
            found = barrier(signed, none, none, unbounded, none, np.abs(start), none, 1, 0.01 * tol, least)
    b = None if found is None else mixtures(found[0] - found[1] if free else sign * found[0], free)
    return None if b is None else on_matrix(K, b, sign, free)


def on_matrix(K: np.ndarray, b: np.ndarray, sign: np.ndarray, free: bool, steps: int = 0) -> Nearest:
    """Return what lies between two mixtures, by kernel values."""
    values = K @ b
    return between(b, values, float(b @ values), sign, free, steps)


def refined_on_matrix(K: np.ndarray, found: Nearest, sign: np.ndarray, free: bool) -> Nearest:
    """Return nearer mixtures, from linear equations, or those found where there are none.

    At the nearest, w is the same on all points of a mixture, and beyond that on all others. Points with a coefficient
    of the wrong sign leave, points that w puts between the mixtures join (block principal pivoting), as long as they
    become fewer and fewer.
    """
    at, best = np.flatnonzero(found.b), found
    fewest, waited = math.inf, 0
    while waited < _PATIENCE:
        sums = np.stack([sign[at] > 0, sign[at] < 0]).astype(float) if free else sign[None, at]
        try:
            alike = cho_solve(cho_factor(K[np.ix_(at, at)], lower=True), sums.T)
            level = np.linalg.solve(sums @ alike, [1.0, -1.0] if free else [1.0])
        except LinAlgError:
            break
        b = np.zeros(len(sign))
        b[at] = alike @ level
        seen = on_matrix(K, b, sign, free, found.steps)
        wrong = sign * b < 0
        if not wrong.any() and _better(seen, best):
            best = seen
        ahead = sign * seen.values - np.where(sign > 0, level[0], -level[-1] if free else level[0])
        between = (b == 0) & (ahead < -_ROUNDING * np.abs(seen.values).max())
        moving = int(wrong.sum() + between.sum())
        if not moving:
            break
        fewest, waited = (moving, 0) if moving < 0.8 * fewest else (fewest, waited + 1)
        at = np.flatnonzero(((b != 0) & ~wrong) | between)
        if not (len(at) and (not free or np.ptp(sign[at]))):
            break
    return best


def mixtures(b: np.ndarray, free: bool) -> np.ndarray | None:
    """Return coefficients with both parts scaled to sum 1 (without an offset: both together); None where one is 0."""
    plus, minus = np.maximum(b, 0.0), np.maximum(-b, 0.0)
    more, less = float(plus.sum()), float(minus.sum())
    if free:
        return plus / more - minus / less if more > 0 and less > 0 else None
    return b / (more + less) if more + less > 0 else None


def _better(new: Nearest, old: Nearest) -> bool:
    if max(new.margin, old.margin) > 0:
        return new.gap < old.gap
    return new.apart < old.apart


def _refined(points: np.ndarray, b: np.ndarray | None, sign: np.ndarray, free: bool) -> np.ndarray | None:
    """Return the mixtures of the same points that are nearest, from linear equations; None where that is none.

    Each point against the heaviest of its mixture: no step along these differences changes a sum.
    """
    at = np.flatnonzero(b) if b is not None else np.empty(0, np.intp)
    if b is None or not len(at) <= min(points.shape[1] + 2, _EQUATIONS):
        return None
    heaviest = np.full(len(at), at[np.argmax(np.abs(b[at]))])
    if free:
        for side in (-1.0, 1.0):
            heaviest[sign[at] == side] = at[np.argmax(side * b[at])]
    at, heaviest = at[at != heaviest], heaviest[at != heaviest]
    ahead, behind = sign[at], sign[heaviest]
    differences = points[at] * ahead[:, None] - points[heaviest] * behind[:, None]
    moves = np.linalg.lstsq(differences.T, -(points.T @ b), rcond=None)[0]
    b = b.copy()
    np.add.at(b, at, ahead * moves)
    np.add.at(b, heaviest, -behind * moves)
    return b if (sign * b >= 0).all() else None


def _path(points: np.ndarray, sign: np.ndarray, free: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield weights u and slacks along the central path (Mehrotra, 1992).

    The dual of the nearest points is max rho - |w|^2 / 2 under sign (<w, phi> + offset) - rho = slack >= 0. A step is
    solved for w, the offset and rho together: what is left for u is a small difference of small numbers, which it is
    not in a step that is solved for u.
    """
    n, d = points.shape
    ends = np.column_stack([sign, -np.ones(n)] if free else [-np.ones(n)])  # of the offset and of rho
    penalty = np.append(np.ones(d), np.zeros(ends.shape[1]))
    gain = np.append(np.zeros(len(penalty) - 1), 1.0)

    def times(v: np.ndarray) -> np.ndarray:
        return sign * (points @ v[:d]) + ends @ v[d:]

    def transposed(x: np.ndarray) -> np.ndarray:
        return np.concatenate([points.T @ (sign * x), ends.T @ x])

    v, u = np.zeros(len(penalty)), np.full(n, 1.0 / n)
    slack = np.full(n, max(float(np.einsum("ij,ij->i", points, points).max()), 1e-300))
    for _ in range(_STEPS):
        yield u, slack
        missing, stiff = times(v) - slack, u / slack
        newton = _Newton(points, sign, ends, stiff)
        if newton.factor is None:
            return
        base = gain - penalty * v - transposed(stiff * missing)
        # Towards the solution itself; how far that goes says how much of the mean to keep, and what curves away.
        dslack = times(newton.solve(base)) + missing
        du = -u - stiff * dslack
        far = min(1.0, _reach(u, du), _reach(slack, dslack))
        mean, after = float(u @ slack) / n, float((u + far * du) @ (slack + far * dslack)) / n
        push = ((after / mean) ** 3 * mean - du * dslack) / slack
        dv = newton.solve(base + transposed(push))
        dslack = times(dv) + missing
        du = push - u - stiff * dslack
        far = min(1.0, _BACK * _reach(u, du), _BACK * _reach(slack, dslack))
        if not (np.isfinite(dv).all() and np.isfinite(du).all()):
            return
        v = v + far * dv
        u, slack = np.maximum(u + far * du, 1e-300), np.maximum(slack + far * dslack, 1e-300)


class _Newton:
    """A' diag(stiff) A + diag(penalty) for the rows A = (sign phi, ends), factorised."""

    def __init__(self, points: np.ndarray, sign: np.ndarray, ends: np.ndarray, stiff: np.ndarray) -> None:
        n, d = points.shape
        roots = np.sqrt(stiff)[:, None]
        step = n if n * d * d <= _INLINE else -(-n // _PARTS)

        def squares(begin: int) -> np.ndarray:
            some = slice(begin, begin + step)
            rows = np.column_stack([points[some] * sign[some, None], ends[some]]) * roots[some]
            return rows.T @ rows

        matrix = sum(run(squares, range(0, n, step)), np.zeros(()))
        matrix[np.arange(d), np.arange(d)] += 1.0
        self.scale = 1.0 / np.sqrt(matrix.diagonal())
        matrix *= self.scale * self.scale[:, None]
        self.factor = None
        for lift in _LIFTS:
            matrix[np.diag_indices(len(matrix))] = 1.0 + lift
            try:
                self.factor = cho_factor(matrix, lower=True, check_finite=False)
            except LinAlgError:
                continue
            break

    def solve(self, right: np.ndarray) -> np.ndarray:
        return self.scale * cho_solve(self.factor, self.scale * right, check_finite=False)


def _reach(x: np.ndarray, change: np.ndarray) -> float:
    shrinking = change < 0
    return float((-x[shrinking] / change[shrinking]).min(initial=math.inf))
