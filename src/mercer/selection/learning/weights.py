"""Weights of a mixture of kernels: two criteria, and the minimiser of a convex function on the simplex."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from scipy.linalg import eigh, solve_triangular
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mercer.certify.values import product
from mercer.gram import Gram
from mercer.gram.matrix import KernelMatrix
from mercer.kernels import Kernel, Sum
from mercer.machine.threads import one_thread_each
from mercer.points import Points
from mercer.rkhs.statistics.independence import centre
from mercer.solvers.gp.climb import updated_curvature

_FIT_TOL = 1e-3  # of the tolerance: that of the fits
_SERIAL_ROWS = 600  # rows up to which threads of BLAS wait for one another longer than they work
_RANK = 1e-12  # of the largest eigenvalue: what is rounding
_CONSTANT_NORM = 1e-12  # of the norm before centring: a matrix that is constant
_ARMIJO = 1e-4  # share of the slope that a step must gain (Armijo)
_LINE_STEPS = 20  # shorter steps that are tried
_LEAST_WEIGHT = 1e-9  # a share below which it is none
_DIAGONAL_SHIFT = 1e-14  # of the trace of a curvature: it may be singular to rounding
_PATIENCE = 15  # evaluations without a smaller gap, after which rounding has the last word


def mixed(kernels: list[Kernel], factors: np.ndarray) -> Kernel:
    """Return the sum of kernels, each times its factor, without those of factor 0.

    Examples
    --------
    >>> from mercer import RBF, Linear
    >>> mixed([RBF(1.0), Linear(), RBF(2.0)], np.array([0.5, 0.0, 2.0]))
    0.5 * RBF(scale=1.0) + 2.0 * RBF(scale=2.0)
    """
    parts = [float(c) * k for k, c in zip(kernels, factors, strict=True) if c > 0]
    return reduce(Sum, parts)


class Aligned:
    r"""The centred matrices of some kernels beside that of the targets, by their inner products.

    .. math:: \min_{v \ge 0} \; \tfrac12 \Bigl\|\sum_j v_j \tilde K_j - \tilde T\Bigr\|_F^2
              = \tfrac12 v'Mv - c'v + \tfrac12 \|\tilde T\|^2, \qquad T = Y Y'

    The direction of the minimiser is that of the best alignment (Cortes, Mohri and Rostamizadeh, 2012).

    Every parameter of the kernels is known, their matrices are held all at once, and Y has the shape (n, m).
    """

    def __init__(self, kernels: list[Kernel], points: Points, Y: np.ndarray) -> None:
        n, count = len(points), len(kernels)
        Y = Y - Y.mean(axis=0)
        held = np.empty((count, n * n))
        self.spreads = np.ones(count)
        sizes = np.ones(count)  # of the centred matrices
        for j, kernel in enumerate(kernels):
            K = KernelMatrix(Gram(kernel, points)).dense(held[j].reshape(n, n))
            size, before = float(np.mean(K.diagonal())), float(np.linalg.norm(K))
            centre(K)
            norm = float(np.linalg.norm(K))
            if norm > _CONSTANT_NORM * before:
                sizes[j], self.spreads[j] = norm, float(np.mean(K.diagonal()))
            else:
                K[:] = 0.0
                self.spreads[j] = size if size > 0 else 1.0
            K /= sizes[j]
        self._units = sizes / self.spreads  # from shares to matrices of norm 1
        self.M = held @ held.T
        self.c = np.array([float(np.vdot(Y, K.reshape(n, n) @ Y)) for K in held])
        self.square = float(np.sum((Y.T @ Y) ** 2))
        self.constant = not self.c.max(initial=0.0) > 1e-14 * np.sqrt(self.square)

    def best(self) -> tuple[np.ndarray, tuple[float, float], int]:
        """Return the shares, both bounds, and how many kernels count."""
        values, vectors = eigh(self.M)
        kept = values > _RANK * max(float(values[-1]), 1e-300)
        if not kept.any():
            return np.zeros(len(self.c)), (0.5 * self.square, 0.5 * self.square), 0
        root = np.sqrt(values[kept])[:, None] * vectors[:, kept].T  # M = root' root, and c lies in its range
        v, _ = nnls(root, (vectors[:, kept].T @ self.c) / np.sqrt(values[kept]))
        shares = v / self._units
        total = float(shares.sum())
        if not total > 0:
            return shares, (0.5 * self.square, 0.5 * self.square), 0
        return shares / total, self._bounds(v), int((v > 0).sum())

    def bounds(self, shares: np.ndarray) -> tuple[float, float]:
        """Return the least distance of a multiple of the mixture, and a bound that no mixture is below."""
        return self._bounds(self._scaled(shares))

    def _scaled(self, shares: np.ndarray) -> np.ndarray:
        """Return the multiple of a mixture that is nearest to the targets, in units of norm 1."""
        v = shares * self._units
        curvature = float(v @ self.M @ v)
        return v * (max(float(self.c @ v), 0.0) / curvature) if curvature > 0 else v * 0.0

    def _bounds(self, v: np.ndarray) -> tuple[float, float]:
        Mv = self.M @ v
        upper = 0.5 * float(v @ Mv) - float(self.c @ v) + 0.5 * self.square
        # Inner products of positive semidefinite matrices are at least 0, so that a multiple of v is dual feasible:
        # M (t v) >= c. Weak duality then bounds the minimum by -|t v|^2 / 2.
        wanted = self.c > 1e-14 * max(float(self.c.max()), 1e-300)
        if not (Mv[wanted] > 0).all():
            return upper, 0.0
        t = max(1.0, float(np.max(self.c[wanted] / Mv[wanted], initial=0.0)))
        return upper, max(0.0, 0.5 * self.square - 0.5 * t * t * float(v @ Mv))

    def kkt(self, shares: np.ndarray) -> float:
        """Return by how much the conditions of the minimum are violated, in units of the largest c."""
        v = self._scaled(shares)
        slope = self.M @ v - self.c
        worst = max(float(np.max(-slope)), float(np.max(np.abs(slope[v > 0]), initial=0.0)), 0.0)
        return worst / max(float(self.c.max()), 1e-300)

    def cosine(self, shares: np.ndarray) -> float:
        """Return the alignment of a mixture with the targets."""
        v = shares * self._units
        size = float(v @ self.M @ v) * self.square
        return float(np.clip(float(self.c @ v) / np.sqrt(size), 0.0, 1.0)) if size > 0 else 0.0

    def cosines(self) -> np.ndarray:
        """Return the alignment of each kernel."""
        return np.array([self.cosine(row) for row in np.eye(len(self.c))])


class Mixed:
    r"""The least value of a model's objective as a function of the shares of its kernels.

    .. math:: J(w) = \min_f \sum_i L(y_i, f(x_i)) + \tfrac s2 \|f\|_w^2
              = \max_b \; A(b) - \tfrac s2 \sum_j w_j\, b'K_jb, \qquad
              \frac{\partial J}{\partial w_j} = -\tfrac s2 b'K_jb

    It is convex, and every b bounds its minimum from below: :math:`A(b) - \max_j \tfrac s2 b'K_jb` (Bach, Lanckriet and
    Jordan, 2004). A(b) is what the certificate of a fit claims of its dual, plus its norm.

    Each kernel is divided by its spread. `tol` is that of the mixture; the fits are a thousand times as exact, since
    their error counts by its root.
    """

    def __init__(self, model: Any, kernels: list[Kernel], spreads: np.ndarray, X: Any, y: Any, tol: float) -> None:
        self.kernels, self.spreads, self.X, self.y = kernels, spreads, X, y
        known = model.get_params(deep=False)
        inside: dict[str, Any] = {"tol": min(_FIT_TOL * tol, float(known.get("tol", 1.0)))} if "tol" in known else {}
        inside |= {"dtype": "float64"} if "dtype" in known else {}
        inside |= {"warm_start": True} if "warm_start" in known else {}
        self.model = clone(model).set_params(**inside)
        self.given = model

    def __call__(self, shares: np.ndarray) -> Known:
        """Fit the model with a mixture, and say what that shows."""
        claim = self._fit(self.model, shares).certificate_
        return self._known(self.model, shares, claim.primal, claim.dual, checked=False)

    def checked(self, shares: np.ndarray) -> Known:
        """Say the same of a new fit whose claims and norms are recomputed by other code."""
        model = self._fit(clone(self.model), shares)
        claim = model.certificate_.verify(self.X, self.y)
        return self._known(model, shares, claim.primal, claim.dual, checked=True)

    def fitted(self, shares: np.ndarray) -> Any:
        """Return the model with a mixture, with the tolerance that it was given."""
        return self._fit(clone(self.given), shares)

    def _fit(self, model: Any, shares: np.ndarray) -> Any:
        small = len(self.y) <= _SERIAL_ROWS
        with warnings.catch_warnings(), one_thread_each() if small else nullcontext():
            warnings.simplefilter("ignore", ConvergenceWarning)  # what is left of a gap is in the bounds
            return model.set_params(kernel=mixed(self.kernels, shares / self.spreads)).fit(self.X, self.y)

    def _known(self, model: Any, shares: np.ndarray, upper: float, lower: float, checked: bool) -> Known:
        f = model.function_
        A = f.coefficients
        A = np.asarray(A.toarray() if hasattr(A, "toarray") else A, dtype=np.float64)
        A = A[:, None] if A.ndim == 1 else A
        strengths = np.broadcast_to(
            np.asarray(getattr(model, "penalty_strengths", 1.0), dtype=np.float64), (A.shape[1],)
        )
        A = A * np.sqrt(strengths)
        q = np.array([_quadratic(k, f.points, A, checked) for k in self.kernels]) / self.spreads
        return Known(upper, lower, -0.5 * q, lower + 0.5 * (float(shares @ q) - float(q.max())))


def _quadratic(kernel: Kernel, X: Any, A: np.ndarray, checked: bool) -> float:
    """Return the sum of a'Ka over the columns of A."""
    if not len(A):
        return 0.0
    points = Points.of(X)
    if checked:
        KA = np.stack([product(kernel, points.data, a) for a in A.T], axis=1)
    else:
        gram = Gram(kernel, points)
        KA = np.asarray(gram.matvec(A.astype(gram.dtype)), dtype=np.float64)
    return max(float(np.vdot(A, KA)), 0.0)


# -- convex functions of weights: numbers of at least 0 that sum up to 1 -----------------------------------


@dataclass
class Known:
    """What is known of the function at some shares."""

    upper: float  # bounds of the value there
    lower: float
    slopes: np.ndarray  # its derivatives
    bound: float  # a lower bound of its minimum

    def mismatch(self, shares: np.ndarray) -> float:
        """How far the slopes are from equal where there is a share, and larger elsewhere, relative to the least."""
        least = float(self.slopes.min())
        return float(shares @ self.slopes - least) / abs(least) if least else 0.0


@dataclass
class Minimum:
    """Where `descend` ended."""

    shares: np.ndarray  # the best
    known: Known  # of the function there
    bound: float  # the best lower bound of the minimum
    history: list[tuple[float, float]]  # the upper and lower bound of the minimum after each evaluation
    stopped: str = "converged"  # or what ended it before


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
    R = np.linalg.cholesky(B + _DIAGONAL_SHIFT * np.trace(B) * np.eye(len(x))).T
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

    The start is positive; it ends where the bounds differ by `tol`, relative to the upper, or after `max_iter` steps.
    `watch` is asked after each step, and what it returns ends the run.

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
    minimum = Minimum(x, here, here.bound, [(here.upper, here.bound)])
    B: np.ndarray | None = None
    for step in range(max_iter + 1):
        if minimum.known.upper - minimum.bound <= tol * abs(minimum.known.upper) or not here.slopes.any():
            return minimum
        reason = f"max_iter={max_iter} reached" if step == max_iter else watch() or _stuck(minimum.history)
        if reason is not None:
            minimum.stopped = reason
            return minimum
        fresh = B is None
        if B is None:  # the curvature of a sum of multiples of 1 / x
            B = np.diag(2.0 * np.maximum(np.abs(here.slopes), 1e-6 * np.abs(here.slopes).max()) / np.maximum(x, 1e-2))
        way = _trimmed(nearest(B, here.slopes, x)) - x
        moved = _along(function, x, here, way, minimum)
        if moved is None:
            if fresh:
                minimum.stopped = "rounding: no step gains anything"
                return minimum
            B = None
            continue
        new, there = moved
        B = updated_curvature(B, new - x, there.slopes - here.slopes, False)
        x, here = new, there
    return minimum


def _along(
    function: Callable[[np.ndarray], Known], x: np.ndarray, here: Known, way: np.ndarray, minimum: Minimum
) -> tuple[np.ndarray, Known] | None:
    """Return a point on the way that gains enough, and take note of what is seen; None where there is none."""
    slope = float(here.slopes @ way)
    if not slope < 0:
        return None
    doubt = here.upper - here.lower
    t = 1.0
    for _ in range(_LINE_STEPS):
        new = x + t * way
        there = function(new)
        minimum.bound = max(minimum.bound, there.bound)
        if there.upper < minimum.known.upper:
            minimum.shares, minimum.known = new, there
        minimum.history.append((minimum.known.upper, minimum.bound))
        if there.upper <= here.upper + _ARMIJO * t * slope + doubt + (there.upper - there.lower):
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
    x = np.where(x < _LEAST_WEIGHT, 0.0, x)
    return np.asarray(x / x.sum())
