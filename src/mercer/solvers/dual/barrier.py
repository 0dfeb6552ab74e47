"""Interior-point methods for the dual on a matrix that is held, and for the nearest points of hulls of few features.

SMO moves two coefficients at a time and crawls where the matrix is ill-conditioned beside the box (unscaled features, a
large C). The predictor-corrector of Mehrotra (1992) needs some thirty factorisations whatever the scaling.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, get_blas_funcs
from scipy.linalg.blas import dsyrk

from mercer.machine.threads import one_thread_each, scipy_alone

_ONE_THREAD = 1000  # points of a matrix that one thread factorises in no time
_STEPS = 80  # at most, of the path on a matrix; far beyond what a path that converges takes
_FEATURE_STEPS = 60  # at most, of the path on features
_LIFTS = (0.0, 1e-15, 1e-14, 1e-13, 1e-12)  # of a matrix with ones on its diagonal, until it can be factorised
_FEW_COLUMNS = 3  # up to which triangular systems are solved one by one
_FLOAT32_LARGEST = 1e20  # entries up to which float32 has room for squares of pivots, and for their inverses
_FLOAT32_PIVOT = 1e-5  # of its diagonal entry: below it, some hundred times the rounding of float32 decides a step
_LATE = 5  # steps after complementarity is reached: a residual that remains is rounding
_BACK = 0.995  # of the way to the boundary
_INSIDE = 0.1  # of the mean: how far a start without upper bounds is moved away from 0
_SUMS = (np.zeros((0, 2)), np.array([[1.0, -1.0]]), np.eye(2))  # what is kept of (sum plus, sum minus), by groups
_CORRECTIONS = 2  # further solutions with a factor, each of which takes a tenth of its time
_FARTHER = 0.3  # how much longer a step with a correction is meant to be
_CENTRAL = 10.0  # times the mean, or a part of it: what a product of a coefficient and its multiplier may become there
_FEASIBLE = 1e-9  # how much of a sum may be missing at the end, in units of all coefficients


def inverse_times(factor: tuple[np.ndarray, bool], right: np.ndarray) -> np.ndarray:
    """Return what the inverse of a matrix makes of columns, from its Cholesky factor: in float64, whatever that is in.

    BLAS solves a few columns one by one in a third of the time that it takes for all at once.
    """
    if right.shape[1] > _FEW_COLUMNS:
        return np.asarray(cho_solve(factor, right.astype(factor[0].dtype), check_finite=False), dtype=np.float64)
    L, lower = factor
    (trsv,) = get_blas_funcs(("trsv",), (L,))
    out = np.empty(right.shape)
    for k, column in enumerate(right.T):
        out[:, k] = trsv(L, trsv(L, column, lower=lower, trans=not lower), lower=lower, trans=lower)
    return out


@contextmanager
def quietly(n: int) -> Iterator[None]:
    """Let values leave the range of numbers, which ends a path, and keep BLAS to few threads.

    To one for small matrices: on a busy machine its threads wait for one another for ever.
    """
    few = one_thread_each() if n <= _ONE_THREAD else scipy_alone()
    with few, np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        yield


def barrier(
    K: np.ndarray,
    linear: np.ndarray,
    width: np.ndarray,
    upper: np.ndarray,
    lower: np.ndarray,
    plus: np.ndarray,
    minus: np.ndarray,
    groups: int,
    tol: float,
    least: float = -math.inf,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return plus and minus near the optimum, in their boxes and with their sums kept; None where there is no way.

    Minimises 1/2 b'Kb + linear'b + width'(plus + minus), b = plus - minus (see `SVMDual`). There is no way where the
    matrix cannot be factorised (the kernel is none, or all its values are 0).

    Parameters
    ----------
    K, linear, width, upper, lower
        The problem.
    plus, minus
        A start with the sums that are to be kept.
    groups
        Which sums those are: none (0), that of b (1), or those of plus and of minus (2).
    tol
        The complementarity to stop at, in units of the objective.
    least
        An objective that is small enough to stop at, whatever the complementarity.

    Examples
    --------
    >>> import numpy as np
    >>> two, zero = np.ones(2), np.zeros(2)
    >>> plus, minus = barrier(np.eye(2), -two, zero, 3 * two, zero, zero, zero, 0, 1e-12)
    >>> (plus - minus).round(6)
    array([1., 1.])
    """
    bounds, start = np.stack([upper, lower]), np.stack([plus, minus])
    small = tol * max(1.0, float(np.abs(linear).max()))
    seen = late = 0
    with quietly(len(K)):
        for point, objective, residual in path(K, linear, width, bounds, start, groups):
            seen += 1
            total = point.complementarity
            late += total <= tol * max(abs(objective), 1e-12)
            if (late and residual <= small) or late > _LATE or objective < least or not 0 < total < math.inf:
                break
        else:
            if seen <= 1:
                return None
    return _rounded(point, np.abs(np.diagonal(K)), bounds, start)


def path(
    K: np.ndarray,
    linear: np.ndarray,
    width: np.ndarray,
    bounds: np.ndarray,
    start: np.ndarray,
    groups: int,
) -> Iterator[tuple[Interior, float, float]]:
    """Yield points along the central path, their objectives and the largest parts of their residuals.

    It ends where rounding lets it come no nearer, and is taken within `quietly`. The parameters are those of `barrier`,
    plus before minus.
    """
    K = K.astype(np.float64, copy=False)
    largest = float(np.abs(np.diagonal(K)).max())
    if largest == 0:
        return
    point = Interior(bounds, start, _SUMS[groups], room=float(start.max()) or 1.0 / largest)
    if not (linear.any() or point.capped.any()):
        point.warm(K, start)
    matrices = [K]
    if len(K) > _ONE_THREAD and 1 / _FLOAT32_LARGEST < largest < _FLOAT32_LARGEST:
        matrices.insert(0, K.astype(np.float32))
    for _ in range(_STEPS):
        b = point.coefficients
        F = K @ b + linear
        objective = 0.5 * float(b @ (F + linear)) + float(width[point.at] @ point.x)
        residual = point.residual(F, width)
        yield point, objective, float(np.abs(residual).max(initial=0.0))
        try:
            newton = _newton(matrices, point, residual)
        except LinAlgError:
            return
        total = point.complementarity
        predicted = newton.step()
        after = point.moved(predicted, *point.reach(predicted)).complementarity
        step, far = newton.corrected(predicted, (after / total) ** 3 * total / point.constraints)
        del newton  # its factor, before there is the next one
        if not all(np.isfinite(part).all() for part in step):
            return
        far = min(1.0, _BACK * far)
        point = point.moved(step, far, far)


class _Step(NamedTuple):
    """Changes of the coefficients, and of the multipliers of their bounds and of the sums."""

    x: np.ndarray
    low: np.ndarray
    high: np.ndarray
    mu: np.ndarray


class Interior:
    """Coefficients strictly inside their box, those of plus before those of minus, and all multipliers.

    Coefficients whose bound is 0 are left out.
    """

    def __init__(self, bounds: np.ndarray, start: np.ndarray, rows: np.ndarray, room: float) -> None:
        self.n = bounds.shape[1]
        self.rows = rows
        self.want = rows @ start.sum(axis=1)
        self.half, self.at = np.nonzero(bounds > 0)
        self.sign = 1.0 - 2.0 * self.half
        self.bound = bounds[self.half, self.at]
        self.capped = np.isfinite(self.bound)
        self.constraints = len(self.at) + int(self.capped.sum())
        within = np.where(self.capped, self.bound, room)
        self.x = np.clip(start[self.half, self.at], 0.1 * within, 0.9 * within)
        self.low = np.ones(len(self.at))  # multipliers of x >= 0
        self.high = np.where(self.capped, 1.0, 0.0)  # of x <= bound
        self.mu = np.zeros(len(rows))  # of the sums

    def warm(self, K: np.ndarray, start: np.ndarray) -> None:
        """Move to a start of the nearest points of hulls, a little inside, with the multipliers of its gradient.

        Only the bounds at 0 and the sums give coefficients a size. The complementarity to begin with is a part of the
        differences between the gradients of each sum: a larger one would lead a start near the solution away from it.
        """
        x = start[self.half, self.at]
        halves = np.stack([self.half == 0, self.half == 1])[: len(self.rows)]
        for half in halves:
            x[half] += _INSIDE * x[half].mean()
            x[half] *= start.sum() / len(halves) / x[half].sum()
        self.x = x
        gradient = self.sign * (K @ self.coefficients)[self.at]
        levels = np.array([gradient[half] @ x[half] / x[half].sum() for half in halves])
        ahead = gradient - levels[self.half]
        part = _INSIDE * float(np.abs(ahead) @ x) or float(np.abs(gradient) @ x) or 1.0
        self.low, self.mu = np.maximum(ahead, part / len(x) / x), -levels

    def grid(self, values: np.ndarray) -> np.ndarray:
        """Return one row for plus and one for minus, with a column for every point."""
        out = np.zeros((*values.shape[:-1], 2, self.n))
        out[..., self.half, self.at] = values
        return out

    @property
    def coefficients(self) -> np.ndarray:
        """The b of every point."""
        plus, minus = self.grid(self.x)
        return plus - minus

    @property
    def slack(self) -> np.ndarray:
        """The distance to the upper bounds; 1 where there is none."""
        return np.where(self.capped, np.maximum(self.bound - self.x, 1e-16 * self.bound), 1.0)

    @property
    def complementarity(self) -> float:
        """What the bounds' multipliers say is missing; 0 at the optimum."""
        return float(self.x @ self.low + self.slack @ self.high)

    @property
    def missing(self) -> np.ndarray:
        """What the sums want."""
        return self.want - self.rows @ self.grid(self.x).sum(axis=1)

    def residual(self, F: np.ndarray, width: np.ndarray) -> np.ndarray:
        """Return the gradient of the Lagrangian in the coefficients."""
        return self.sign * F[self.at] + width[self.at] + self.mu @ self.rows[:, self.half] - self.low + self.high

    def reach(self, step: _Step, most: float = 1.0) -> tuple[float, float]:
        """Return how far the coefficients, and their multipliers, may go along a step."""
        to_zero, to_bound = _reach(self.x, step.x), _reach(self.slack[self.capped], -step.x[self.capped])
        low, high = _reach(self.low, step.low), _reach(self.high[self.capped], step.high[self.capped])
        return min(most, to_zero, to_bound), min(most, low, high)

    def moved(self, step: _Step, far: float, dual: float) -> Interior:
        """Return the point after a part of a step in the coefficients, and another in the multipliers."""
        new = copy(self)
        new.x = np.maximum(self.x + far * step.x, 1e-300)
        new.low, new.high, new.mu = self.low + dual * step.low, self.high + dual * step.high, self.mu + dual * step.mu
        return new


def _reach(x: np.ndarray, change: np.ndarray) -> float:
    shrinking = change < 0
    return float((-x[shrinking] / change[shrinking]).min(initial=math.inf))


def _toward(products: np.ndarray, center: float) -> np.ndarray:
    """Return what moves products to within some factor of `center`; less, for those that are far too large."""
    wanted = np.clip(products, center / _CENTRAL, center * _CENTRAL)
    return np.maximum(wanted - products, -center * _CENTRAL)


def _newton(matrices: list[np.ndarray], point: Interior, residual: np.ndarray) -> _Newton:
    """Return the conditions with the first matrix that is precise enough; those before it are removed.

    Far from the solution a factor in float32 leads as far as one in float64, in half of the time.
    """
    while True:
        try:
            newton = _Newton(matrices[0], point, residual)
            if len(matrices) == 1 or newton.smallest_pivot >= _FLOAT32_PIVOT:
                return newton
        except LinAlgError:
            if len(matrices) == 1:
                raise
        del matrices[0]


class _Newton:
    """The linearised conditions of optimality at a point, factorised once, for the predictor and for the corrector.

    With bounds and multipliers eliminated there remains, in the change u of b, (K + 1 / E) u = right with a positive
    diagonal E, bordered by the sums. Where a point has both halves, K u enters their equations with opposite signs: the
    sum of the two has no K, and the halves share u.
    """

    def __init__(self, K: np.ndarray, point: Interior, residual: np.ndarray) -> None:
        self.point, self.residual = point, residual
        self.slack = point.slack
        loose = point.grid(1.0 / (point.low / point.x + point.high / self.slack))
        E = loose.sum(axis=0)
        self.active = np.flatnonzero(E > 0)
        if not self.active.size:
            raise LinAlgError("every coefficient is held by its bounds")
        loose, E = loose[:, self.active], E[self.active]
        self.share = loose / E
        self.both = loose[0] * self.share[1]
        matrix = K.copy() if len(E) == len(K) else K[np.ix_(self.active, self.active)]
        matrix.reshape(-1)[:: len(E) + 1] += 1.0 / E
        diagonal = matrix.diagonal().copy()
        self.factor = cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
        self.smallest_pivot = float((np.square(self.factor[0].diagonal()) / diagonal).min())  # as a share of its entry
        self.of_rows: tuple[np.ndarray, np.ndarray] | None = None  # what the sums' multipliers move

    def step(self, low: Any = 0.0, high: Any = 0.0) -> _Step:
        """Return the step to these products of the distances from the bounds with their multipliers."""
        p = self.point
        low, high = low / p.x, np.where(p.capped, high / self.slack, 0.0)
        x, mu = self._solve(-self.residual + low - p.low - (high - p.high))
        return _Step(x, low - p.low * x / p.x - p.low, high + p.high * x / self.slack - p.high, mu)

    def corrected(self, first: _Step, center: float) -> tuple[_Step, float]:
        """Return the step to products of `center`, with the second-order terms of a first one, and how far it may go.

        A longer step is tried. Products that it would leave far from `center` are corrected, and this is repeated as
        long as the step grows (Gondzio, 1996).
        """
        p = self.point
        low, high = center - first.x * first.low, center + first.x * first.high
        step = self.step(low, high)
        far = min(p.reach(step, math.inf))
        for _ in range(_CORRECTIONS):
            if not far < 1.0:
                break
            t = min(1.0, far + _FARTHER)
            x = p.x + t * step.x, self.slack - t * step.x
            multipliers = p.low + t * step.low, p.high + t * step.high
            more = [_toward(a * b, center) for a, b in zip(x, multipliers, strict=True)]
            longer = self.step(low + more[0], high + more[1])
            reach = min(p.reach(longer, math.inf))
            if not reach > far + 0.01:
                break
            low, high, step, far = low + more[0], high + more[1], longer, reach
        return step, far

    def _solve(self, push: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the changes of the coefficients and of the sums' multipliers for a right-hand side."""
        p, k = self.point, len(self.point.rows)
        x, sums = self._moves(push[None])
        if self.of_rows is None:
            self.of_rows = self._moves(-p.rows[:, p.half])
        mu = np.zeros(k)
        if k and np.isfinite(sums).all():
            mu = np.linalg.lstsq(self.of_rows[1], p.missing - sums[:, 0], rcond=None)[0]
        return x[0] + mu @ self.of_rows[0], mu

    def _moves(self, pushes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the changes of the coefficients for right-hand sides without sums, and what these do to the sums."""
        p = self.point
        right = p.grid(pushes)[:, :, self.active]
        u = inverse_times(self.factor, (self.share[0] * right[:, 0] - self.share[1] * right[:, 1]).T).T
        common = self.both * (right[:, 0] + right[:, 1])
        halves = np.zeros((len(pushes), 2, p.n))
        halves[:, :, self.active] = np.stack([common + self.share[0] * u, common - self.share[1] * u], axis=1)
        return halves[:, p.half, p.at], p.rows @ halves.sum(axis=2).T


def _rounded(
    point: Interior, diagonal: np.ndarray, bounds: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Put coefficients that press against a bound on it, and let the freest ones restore the sums exactly."""
    if not np.isfinite(point.x).all():
        return None
    # Where the multiplier outweighs what the move itself does to the gradient: then the move is of second order.
    stiff = np.maximum(diagonal[point.at], 1.0 / np.where(point.capped, point.bound, 1.0))
    with np.errstate(over="ignore"):
        x = np.where(point.low > stiff * point.x, 0.0, point.x)
        x = np.where(point.capped & (point.high > stiff * point.slack), point.bound, x)
    parts = point.grid(np.minimum(x, point.bound))
    if len(point.rows) < 2:  # plus and minus of one point: only their difference counts
        parts -= parts.min(axis=0)
    for row, want in zip(point.rows, point.want, strict=True):
        for _ in range(4):
            parts = _spread(parts, bounds, row, want - float(row @ parts.sum(axis=1)))
    missing = np.abs(point.want - point.rows @ parts.sum(axis=1)).max(initial=0.0)
    if missing > _FEASIBLE * max(parts.sum(), start.sum()):
        return None
    return parts[0], parts[1]


def _spread(parts: np.ndarray, bounds: np.ndarray, row: np.ndarray, missing: float) -> np.ndarray:
    """Add `missing` to the row's sum, each coefficient in proportion to the room it has inside its box."""
    inside = np.minimum(parts, np.where(np.isinf(bounds), parts, bounds - parts))
    if not np.abs(row) @ inside.sum(axis=1) > 0:
        inside = np.where(row[:, None] * missing > 0, np.minimum(bounds, 1e300) - parts, parts)
    room = np.abs(row)[:, None] * np.maximum(inside, 0.0)
    total = float(room.sum())
    if missing == 0 or total == 0:
        return parts
    return np.clip(parts + row[:, None] * missing * (room / total), 0.0, bounds)


def path_of_features(
    points: np.ndarray, sign: np.ndarray, free: bool, counting: Callable[[float], int] | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """Yield weights u, slacks and |w|^2 along the central path (Mehrotra, 1992).

    The dual of the nearest points is max rho - |w|^2 / 2 under sign (<w, phi> + offset) - rho = slack >= 0. A step is
    solved for w, the offset and rho together. Then what is left for u is a small difference of small numbers. In a
    step that is solved for u, it would not be.

    Parameters
    ----------
    points, sign, free
        The features of the points as rows, their labels, and whether there is an offset.
    counting
        Returns how many of the features count, from the first on, at the largest u / slack; None for all of them.
    """
    n, d = points.shape
    ends = np.column_stack([sign, -np.ones(n)] if free else [-np.ones(n)])  # of the offset and of rho
    few = d if counting is None else 1  # features that are looked at
    rows = points[:, :few]

    def times(v: np.ndarray) -> np.ndarray:
        return sign * (rows @ v[:few]) + ends @ v[few:]

    def transposed(x: np.ndarray) -> np.ndarray:
        return np.concatenate([rows.T @ (sign * x), ends.T @ x])

    u = np.full(n, 1.0 / n)
    slack = np.full(n, max(float(np.einsum("ij,ij->i", points, points).max()), 1e-300))
    v = np.zeros(few + ends.shape[1])
    lifts: tuple[float, ...] = _LIFTS
    for _ in range(_FEATURE_STEPS):
        yield u, slack, float(v[:few] @ v[:few])
        stiff = u / slack
        if counting is not None:
            more = max(few, counting(float(stiff.max())))
            v, few = np.concatenate([v[:few], np.zeros(more - few), v[few:]]), more
        rows = points[:, :few]
        penalty = np.append(np.ones(few), np.zeros(ends.shape[1]))
        gain = np.append(np.zeros(len(penalty) - 1), 1.0)
        missing = times(v) - slack
        newton = _FeatureNewton(rows, sign, ends, stiff, lifts)
        if newton.factor is None:
            return
        lifts = newton.lifts
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


class _FeatureNewton:
    """A' diag(stiff) A + diag(penalty) for the rows A = (phi, sign ends), factorised with the first lift that does."""

    def __init__(
        self, points: np.ndarray, sign: np.ndarray, ends: np.ndarray, stiff: np.ndarray, lifts: tuple[float, ...]
    ) -> None:
        d = points.shape[1]
        rows = np.column_stack([points, sign[:, None] * ends])
        rows *= np.sqrt(stiff)[:, None]
        squares = np.einsum("ij,ij->j", rows, rows)
        squares[:d] += 1.0
        self.scale = 1.0 / np.sqrt(squares)
        rows *= self.scale
        matrix = dsyrk(1.0, rows.T, lower=1)
        self.factor = None
        for i, lift in enumerate(lifts):
            matrix[np.diag_indices(len(matrix))] = 1.0 + lift
            try:
                self.factor = cho_factor(matrix, lower=True, check_finite=False)
            except LinAlgError:
                continue
            self.lifts = lifts[i:]  # a later matrix is worse conditioned
            break

    def solve(self, right: np.ndarray) -> np.ndarray:
        return self.scale * cho_solve(self.factor, self.scale * right, check_finite=False)
