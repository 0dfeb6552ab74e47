"""The nearest points of two convex hulls: the problem behind a hard margin, which has a solution whatever the classes.

Mixtures of the two classes are sums sum b_i phi_i with both parts of b summing to 1. The distance of the nearest is the
width of the margin; where there is no margin, they meet (Bennett and Bredensteiner, 2000). Coefficients are bounded;
those of the dual of a hard margin may not be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor

from mercer.machine.threads import one_thread_each, scipy_alone
from mercer.solvers.dual.barrier import Interior, inverse_times, path, path_of_features, quietly

_ONE_THREAD = 100_000_000  # products below which a second thread costs more than it brings
_DIRECT_POINTS = 200  # of mixtures, up to which they are refined by solving for all coefficients at once
_HALVING = 8  # exchanges in which the points to exchange should become half as many, once they are few
_FALLS = ((2, 0.85), (_HALVING, 0.5))  # exchanges, and the part of many points that is still to exchange after them
_MOST_EXCHANGES = 60  # where so many have led nowhere, interior steps go on
_MOST_BORDERED = 40  # points by which a set may differ from the one that was factorised
_EQUATIONS_GAP = 0.03  # of interior mixtures: from there on their points are nearly those of the nearest
_RETRY = 0.1  # of the gap at which equations have failed: where they are tried again
_COMPLEMENTARITY = 1e-8  # of the objective: where mixtures have the points of the nearest
_FEW_WRONG_SIGNS = 0.01  # of all points: so few coefficients of the wrong sign may be left out
_MANY_EXCHANGED = 0.02  # of all points: so many to exchange are too many when they become no fewer
_ACTIVE = (1.0, 1e3)  # times what a coefficient does to its own value: a value farther ahead holds it at 0
_COLUMN_SHARE = 0.1  # of 1 / stiffness: columns of a factor that leave less of K hardly change a step
_RESIDUAL = 1e-6  # of the square of the distance: what equations may leave of w
_VALUE_ROUNDING = 1e-15  # of k(x, x), in w at a point
_SQUARE_ROUNDING = 5e-14  # of k(x, x), in squares of distances that are sums of kernel values
_OVERLAP = 1e-14  # of k(x, x): squares of distances that count as 0 where the classes overlap
_STALLED = 8  # steps without nearer mixtures or a wider margin: there it ends
_FLOOR_STEPS = 4  # in which complementarity does not halve: rounding keeps it where it is


class Columns(NamedTuple):
    """F with F F' = K up to rounding, the square of each pivot, and K."""

    values: np.ndarray
    left: np.ndarray
    K: np.ndarray

    def counting(self, stiffness: float) -> int:
        """Return how many columns count beside 1 / stiffness."""
        return max(1, int(np.count_nonzero(self.left * stiffness > _COLUMN_SHARE)))


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
    points: np.ndarray,
    sign: np.ndarray,
    free: bool,
    tol: float,
    touching: float,
    stop: Callable[[], bool],
    factor: Columns | None = None,
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
    factor
        The factor of which the features are the columns: steps far from the solution are taken with the first of them,
        and equations in the kernel's values have the last word (see `nearest_on_matrix`).

    Examples
    --------
    >>> import numpy as np
    >>> points, sign = np.array([[-2.0], [-1.0], [3.0]]), np.array([-1.0, -1.0, 1.0])
    >>> hulls = nearest(points, sign, True, 1e-9, 0.0, lambda: False)
    >>> hulls.b.round(6), round(hulls.margin, 6)
    (array([ 0., -1.,  1.]), 4.0)
    """
    square = float(np.einsum("ij,ij->i", points, points).max())
    best, smallest, waited = None, math.inf, 0
    refine = None if factor is None else _Refinement(factor.K, sign, free, tol)
    few = len(points) * points.shape[1] ** 2 <= _ONE_THREAD
    with one_thread_each() if few else scipy_alone(), np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        for steps, (u, slack, length) in enumerate(
            path_of_features(points, sign, free, None if factor is None else factor.counting)
        ):
            far = float(u @ slack) > max(length, 1e3 * touching**2)
            wide = points.shape[1] > _DIRECT_POINTS  # products with all features take as long as a part of the step
            if best is not None and far and wide and not stop():
                continue
            waited += 1
            inside = mixtures(sign * u, free)
            tried = [inside]
            if not wide or (best is not None and (best.margin > 0 or best.apart <= 10 * touching)):
                tried += [mixtures(np.where(slack > times * square * u, 0.0, sign * u), free) for times in _ACTIVE]
                tried.append(_refined(points, tried[1], sign, free))
            for b in tried:
                if b is None or not np.isfinite(b).all():
                    continue
                w = points.T @ b
                seen = between(b, points @ w, float(w @ w), sign, free, steps)
                gap = seen.apart - max(seen.margin, 0.0)
                if gap < 0.9 * smallest:
                    smallest, waited = gap, 0
                if best is None or _better(seen, best):
                    best = seen
                # A solution has no coefficients that are nearly 0.
                if best.apart <= touching or (seen.gap <= tol and b is not inside):
                    return seen if seen.gap <= tol else best
            if refine is not None and best is not None:
                refined = refine(np.arange(len(u)), u, slack, best.gap, steps)
                if refined is not None:
                    return refined
                if best.margin <= 0 and best.apart**2 <= _OVERLAP * square:
                    break
            # Mixtures that nearly meet will hardly come apart again.
            meeting = best is not None and best.margin <= 0 and best.apart <= 100 * touching
            if waited >= (_STALLED // 2 if meeting else _STALLED) or stop():
                break
    assert best is not None
    return best


def nearest_on_matrix(
    K: np.ndarray, sign: np.ndarray, free: bool, tol: float, touching: float, start: np.ndarray | None = None
) -> Nearest | None:
    """Return the nearest mixtures from the kernel matrix of their points, in float64; None where there is no way.

    An interior-point method, until its mixtures have a margin: linear equations for the points that it takes for those
    of the nearest mixtures have the last word.

    Parameters
    ----------
    K
        The matrix, positive semidefinite.
    sign, free, tol, touching
        As for `nearest`.
    start
        Coefficients not far from the solution, of the sign of each label; None for all alike.
    """
    b = None if start is None else mixtures(start, free)
    if b is None:
        b = mixtures(sign, free)
    assert b is not None
    largest = float(np.abs(K.diagonal()).max())
    noise = _SQUARE_ROUNDING * largest
    mixed, refine = on_matrix(K, b, sign, free), _Refinement(K, sign, free, tol)
    totals: list[float] = []
    with quietly(len(K)):
        for steps, (point, objective, _) in enumerate(_path_of_mixtures(K, b, sign, free)):
            b = mixtures(point.coefficients if free else sign * point.coefficients, free)
            if b is None or not np.isfinite(b).all():
                return None
            mixed = on_matrix(K, b, sign, free, steps)
            refined = refine(point.at, point.x, point.low, mixed.gap, steps)
            if refined is not None:
                return refined
            if mixed.gap <= _RETRY * tol or (mixed.margin <= 0 and mixed.apart**2 <= _OVERLAP * largest):
                break
            least = max(min(_COMPLEMENTARITY, 0.01 * tol) * objective, 0.01 * noise if objective > 0.1 * noise else 0.0)
            totals.append(point.complementarity)
            if objective <= 0.5 * touching**2 or totals[-1] <= least:
                break
            if len(totals) > _FLOOR_STEPS and totals[-1] > 0.5 * totals[-1 - _FLOOR_STEPS]:
                break
        else:
            if mixed.steps == 0:
                return None
    for times in _ACTIVE:
        few = mixtures(np.where(in_mixture(K, mixed, sign, free, times), mixed.b, 0.0), free)
        fewer = mixed if few is None else on_matrix(K, few, sign, free, mixed.steps)
        if _better(fewer, mixed) or (mixed.margin > 0 and fewer.gap <= max(tol, 2 * mixed.gap)):
            return fewer
    return mixed


def _path_of_mixtures(
    K: np.ndarray, b: np.ndarray, sign: np.ndarray, free: bool
) -> Iterator[tuple[Interior, float, float]]:
    """Return the central path from mixtures; without an offset, of signed points."""
    none, unbounded = np.zeros(len(sign)), np.full(len(sign), np.inf)
    if free:
        bounds = np.where(sign > 0, unbounded, 0.0), np.where(sign < 0, unbounded, 0.0)
        return path(K, none, none, np.stack(bounds), np.maximum([b, -b], 0.0), 2)
    signed = K * sign * sign[:, None]
    return path(signed, none, none, np.stack([unbounded, none]), np.stack([np.abs(b), none]), 1)


class _Refinement:
    """Linear equations for the points that an interior step takes for those of the nearest mixtures.

    These are the points whose coefficients fall more slowly than their multipliers: the indicators of Tapia (El-Bakry,
    Tapia and Zhang, 1994), which know no scale. How small the coefficients of others are says little where the matrix
    is ill-conditioned. Equations that fail are tried again once the gap is much smaller.
    """

    def __init__(self, K: np.ndarray, sign: np.ndarray, free: bool, tol: float) -> None:
        self.K, self.sign, self.free, self.tol = K, sign, free, tol
        self.wanted = _EQUATIONS_GAP
        self.before: tuple[np.ndarray, np.ndarray] | None = None

    def __call__(self, at: np.ndarray, x: np.ndarray, low: np.ndarray, gap: float, steps: int) -> Nearest | None:
        """Return the nearest mixtures, from coefficients x of the points `at` and multipliers; None if not yet."""
        before, self.before = self.before, (x, low)
        if before is None or gap > self.wanted:
            return None
        self.wanted = _RETRY * gap
        positive = np.zeros(len(self.sign), bool)
        positive[at] = x * before[1] > low * before[0]
        refined = refined_on_matrix(self.K, positive, self.sign, self.free, self.tol, steps)
        return refined if refined is not None and is_nearest(self.K, refined, self.tol) else None


def in_mixture(K: np.ndarray, mixed: Nearest, sign: np.ndarray, free: bool, times: float = 1.0) -> np.ndarray:
    """Return which coefficients are not pressed to 0: by how far a point is ahead of the margin, in units of K b."""
    ahead = sign * mixed.values
    for side in (sign > 0, sign < 0) if free else (slice(None),):
        ahead[side] -= ahead[side].min()
    return np.asarray((mixed.b != 0) & (ahead <= times * K.diagonal() * np.abs(mixed.b)))


def is_nearest(K: np.ndarray, mixed: Nearest, tol: float) -> bool:
    """Return whether no mixtures are nearer by more than a gap of `tol`, or by more than the rounding of squares."""
    return mixed.gap <= max(
        tol, min(_SQUARE_ROUNDING * float(np.abs(K.diagonal()).max()) / max(mixed.apart**2, 1e-300), 0.1)
    )


def on_matrix(K: np.ndarray, b: np.ndarray, sign: np.ndarray, free: bool, steps: int = 0) -> Nearest:
    """Return what lies between two mixtures, by kernel values."""
    values = K @ b
    return between(b, values, float(b @ values), sign, free, steps)


def refined_on_matrix(
    K: np.ndarray,
    at: np.ndarray,
    sign: np.ndarray,
    free: bool,
    tol: float = 0.0,
    steps: int = 0,
    most: int = _MOST_EXCHANGES,
) -> Nearest | None:
    """Return the nearest mixtures that linear equations lead to, from those of the points `at`; None where none do.

    At the nearest, w is the same on all points of a mixture, and beyond that on all others. Points with a coefficient
    of the wrong sign leave, and points that w puts between the mixtures join (block principal pivoting; Portugal,
    Judice and Vicente, 1994). If exchanges do not halve their number, all at once go round in circles, and only the
    last half are exchanged. If they are many by then, or become more, the search ends. It also ends at a gap of `tol`
    and after `most` exchanges.
    """
    best: Nearest | None = None
    largest = float(np.abs(K.diagonal()).max())
    equations, moving = _Equations(K, sign, free), [len(sign)]
    for _ in range(most):
        if not at.any() or (free and not np.ptp(sign[at])):
            break
        try:
            b, values, level = equations.solve(at)
        except LinAlgError:
            break
        seen = between(b, values, float(b @ values), sign, free, steps)
        if seen.apart**2 <= _SQUARE_ROUNDING * largest:  # what is left is rounding
            break
        wrong = sign * b < 0
        good = seen
        if wrong.any() and np.count_nonzero(wrong) <= _FEW_WRONG_SIGNS * len(sign):
            good = on_matrix(K, np.asarray(mixtures(np.where(wrong, 0.0, b), free)), sign, free, steps)
        if (good is not seen or not wrong.any()) and (best is None or _better(good, best)):
            best = good
            if is_nearest(K, best, tol):
                break
        ahead = sign * seen.values - np.where(sign > 0, level[0], -level[-1] if free else level[0])
        moved = wrong | (~at & (ahead < -_VALUE_ROUNDING * largest))
        moving.append(int(np.count_nonzero(moved)))
        if not moving[-1]:
            break
        fell = [moving[-1] <= part * moving[max(0, len(moving) - 1 - times)] for times, part in _FALLS]
        if moving[-1] > _MANY_EXCHANGED * len(sign) and not all(fell):
            break
        if not fell[-1]:
            moved[: np.flatnonzero(moved)[moving[-1] // 2]] = False
        at = at ^ moved
    return best


class _Equations:
    """Mixtures with the same w on all of their points, for sets of points that differ by few.

    The matrix of one set is factorised. For another set it is bordered: with columns of K for points that join, and
    with columns of the identity for points that leave.
    """

    def __init__(self, K: np.ndarray, sign: np.ndarray, free: bool) -> None:
        self.K = K
        self.sums = np.stack([sign > 0, sign < 0], axis=1).astype(float) if free else sign[:, None]
        self.wanted = np.array([1.0, -1.0] if free else [1.0])
        self.base = np.zeros(len(K), bool)

    def solve(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the coefficients, w on all points, and w on the points of each mixture as it should be."""
        if not self.base.any() or np.count_nonzero(at ^ self.base) > _MOST_BORDERED:
            self._factorise(at)
        alike = self._inverse(at, self.sums)
        b, level = np.zeros(len(at)), np.zeros(len(self.wanted))
        for _ in range(2):  # again only for what rounding has left
            more = np.linalg.solve(self.sums.T @ alike, self.wanted - self.sums.T @ b)
            b, level = b + alike @ more, level + more
            values = self.K @ b
            left = np.where(at, self.sums @ level - values, 0.0)
            if np.abs(left).max() <= _RESIDUAL * abs(float(b @ values)):
                break
            b += self._inverse(at, left[:, None])[:, 0]
        return b, values, level

    def _inverse(self, at: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return what the inverse of the matrix of some points makes of the rows of these."""
        border = np.flatnonzero(at ^ self.base)
        inner = inverse_times(self.factor, right[self.base])
        out = np.zeros_like(right)
        if len(border):
            columns, solved = self._columns(border)
            join = at[border]
            square = np.where(join & join[:, None], self.K[np.ix_(border, border)], 0.0) - columns.T @ solved
            z = np.linalg.solve(square, np.where(join[:, None], right[border], 0.0) - columns.T @ inner)
            out[border] = np.where(join[:, None], z, 0.0)
            inner -= solved @ z
        out[self.points] += inner
        out[~at] = 0.0
        return out

    def _factorise(self, at: np.ndarray) -> None:
        self.base, self.points = at, np.flatnonzero(at)
        self.factor = cho_factor(self.K[np.ix_(at, at)].T, lower=True, overwrite_a=True, check_finite=False)
        self.known: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def _columns(self, border: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns that border the matrix, and its inverse times them."""
        new = np.array([i for i in border if i not in self.known], dtype=np.intp)
        if len(new):
            columns = np.where(self.base[new], self.points[:, None] == new, self.K[np.ix_(self.points, new)])
            solved = inverse_times(self.factor, columns)
            self.known.update(zip(new.tolist(), zip(columns.T, solved.T, strict=True), strict=True))
        columns, solved = zip(*(self.known[i] for i in border), strict=True)
        return np.stack(columns, axis=1), np.stack(solved, axis=1)


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
    support = np.flatnonzero(b) if b is not None else np.empty(0, np.intp)
    if b is None or not len(support) <= min(points.shape[1] + 2, _DIRECT_POINTS):
        return None
    heaviest = np.full(len(support), support[np.argmax(np.abs(b[support]))])
    if free:
        for side in (-1.0, 1.0):
            heaviest[sign[support] == side] = support[np.argmax(side * b[support])]
    support, heaviest = support[support != heaviest], heaviest[support != heaviest]
    ahead, behind = sign[support], sign[heaviest]
    differences = points[support] * ahead[:, None] - points[heaviest] * behind[:, None]
    moves = np.linalg.lstsq(differences.T, -(points.T @ b), rcond=None)[0]
    b = b.copy()
    np.add.at(b, support, ahead * moves)
    np.add.at(b, heaviest, -behind * moves)
    return b if (sign * b >= 0).all() else None
