"""The independent check of the engine: both objectives from their definitions, and nothing of the solvers."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.certify.certificate import Certificate, Stop, without_duality
from mercer.certify.positive import why_indefinite
from mercer.certify.values import diagonal, product
from mercer.features.combine import exact_features
from mercer.kernels import Kernel
from mercer.losses.penalties import SquaredNorm

_SUM = 1e-8  # of the absolute sum of the dual point: by which its sum may differ from 0
_INSIDE = 1.0 - 1e-12  # a dual point on the rim of the conjugate's domain may lie outside by rounding
_EPS = float(np.finfo(np.float64).eps)
_NOISE = 1e-7  # of the losses at f = 0, up to which rounding excuses a gap
_MOST_FEATURES = 2  # times the number of points
_NO_PENALTY = 1e-12  # the strength, in units of k(x, x), that stands for none


def check_representer(
    kernel: Kernel,
    X: Any,
    y: Any,
    *,
    coefficients: Any,
    offset: Any = 0.0,
    loss: Any,
    penalty: Any = None,
    weights: Any = None,
    intercept: bool = True,
    strength: float | None = None,
    tol: float = 1e-3,
) -> Certificate:
    r"""Recompute primal and dual of a problem of the representer theorem, in plain NumPy and float64.

    .. math:: P = \sum_i w_i L(y_i, v_i) + R(|f|), \qquad
              D(u) = -\sum_i w_i L^*(y_i, u_i / w_i) - R^*\!\left(\left|\textstyle\sum_i u_i k(x_i, \cdot)\right|\right)

    at v = K a + b and a dual point u that sums to 0 if there is an intercept. Two are tried, and the better bound
    counts. One is u = -strength a, by the loss's conjugate. The other is u_i = w_i L'(y_i, v_i), at which the conjugate
    is known, w_i L* = u_i v_i - w_i L(y_i, v_i) (Fenchel and Young). If the loss or the penalty is not convex, no D
    bounds P: then P - D is the squared norm of the gradient in H over twice the strength, and `stationary` says so. It
    also says if the kernel is not positive semidefinite on X.

    Parameters
    ----------
    kernel, X, y
        The kernel, the training points and their truths.
    coefficients, offset
        a, one number per point (and per class), and b.
    loss, penalty
        The problem; None for half the squared norm.
    weights
        One number per point; None for 1.
    intercept
        Whether b was free.
    strength
        That of the equivalent squared norm, if it is known; it follows from the penalty otherwise.
    tol
        The relative gap that was asked for.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> from mercer.losses import Squared, SquaredNorm
    >>> check_representer(Linear(), [[1.0]], [2.0], coefficients=[1.0], loss=Squared(), intercept=False).gap
    0.0
    """
    started = time.perf_counter()
    a = np.asarray(coefficients, dtype=np.float64)
    y = np.asarray(y, dtype=np.float64)
    n = len(y)
    if a.ndim not in (1, 2) or len(a) != n:
        raise ValueError(f"coefficients have shape {a.shape}; one per training point is needed: {n}.")
    if not (np.isfinite(a).all() and np.isfinite(offset).all()):
        raise ValueError("coefficients and offset must be finite; they are not.")
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != (n,) or not (w >= 0).all():
        raise ValueError(f"weights must be {n} numbers of at least 0.")
    penalty = SquaredNorm(1.0) if penalty is None else penalty
    case = _Case(kernel, X, y, a, np.asarray(offset, dtype=np.float64), loss, penalty, w, intercept)
    certificate, why = case.certificate(strength, tol)
    if not certificate.converged and case.by_features():
        certificate, why = case.certificate(strength, tol)
    certificate = replace(certificate, seconds=time.perf_counter() - started)
    certificate = certificate if certificate.converged else replace(certificate, stopped=Stop.LARGE_GAP)
    return without_duality(certificate, why_indefinite(kernel, X) or why)


class _Case:
    """One problem with one answer."""

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        y: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
        loss: Any,
        penalty: Any,
        w: np.ndarray,
        intercept: bool,
    ) -> None:
        self.kernel, self.X, self.y, self.a, self.b = kernel, X, y, a, b
        self.loss, self.penalty, self.w, self.intercept = loss, penalty, w, intercept
        self.wide = a.ndim == 2
        self.column = w[:, None] if self.wide else w
        self.Phi: np.ndarray | None = None
        self.counts = w > 0
        self.diag = np.abs(diagonal(kernel, X))
        self.f = self.times(a)
        self.v = self.f + b
        self.t = math.sqrt(max(float(np.vdot(a, self.f)), 0.0))
        with np.errstate(all="ignore"):
            self.losses = np.where(self.counts, w * np.asarray(loss.value(y, self.v), dtype=np.float64), 0.0)
            slopes = np.asarray(loss.derivative(y, self.v), dtype=np.float64) * self.column
        self.slopes = np.where(self.counts[:, None] if self.wide else self.counts, slopes, 0.0)

    def times(self, c: np.ndarray) -> np.ndarray:
        """Return K c."""
        if c.ndim == 1:
            return product(self.kernel, self.X, c)
        return np.stack([product(self.kernel, self.X, column) for column in c.T], axis=1)

    def rounding(self, primal: float, tol: float) -> float:
        """Return the error of the objectives that float64 sums can make."""
        length = np.sqrt(self.diag)
        size = np.linalg.norm(self.a, axis=1) if self.wide else np.abs(self.a)
        slope = np.linalg.norm(self.slopes, axis=1) if self.wide else np.abs(self.slopes)
        terms = float(np.linalg.norm(size * length))  # errors of sums of terms add up as if at random
        height = float(np.abs(self.v).max()) + float(np.abs(self.y).max())
        each = _EPS * (height + terms * float(length.max()))
        with np.errstate(all="ignore"):
            zero = np.asarray(self.loss.value(self.y, np.zeros_like(self.v) + self.b), dtype=np.float64)
            most = _NOISE * float(np.where(self.counts, self.w * zero, 0.0).sum())
        # If the squares of errors of f are within tol, they change the primal by the root of tol. And the difference of
        # a truth and a prediction is known to the last place of either, not better.
        most = max(most, 4.0 * math.sqrt(tol) * abs(primal), 4.0 * _EPS * height * float(slope.sum()))
        return min(4.0 * (_EPS * abs(primal) + each * float(slope.sum())), most if most > 0 else math.inf)

    def by_features(self) -> bool:
        """Take norms and a third dual point from the kernel's features from now on, if it has finitely many.

        The sum of u_i Phi(x_i) has rounding errors of the size of |Phi|; u'Ku has those of |Phi|^2, and a small
        strength divides them.
        """
        self.Phi = exact_features(
            self.kernel.resolve(self.X), getattr(self.X, "data", self.X), _MOST_FEATURES * len(self.y)
        )
        return self.Phi is not None

    def certificate(self, strength: float | None, tol: float) -> tuple[Certificate, str]:
        """Return both objectives, and why they bound nothing, if so."""
        primal, dual, kkt, why = self.judge(strength)
        return Certificate(primal, dual, kkt, tol, "independent check", rounding=self.rounding(primal, tol)), why

    # -- strengths --------------------------------------------------------------------------------------

    def judge(self, strength: float | None) -> tuple[float, float, float, str]:
        """Return primal, dual, the worst violation, and why duality does not hold where it does not."""
        t = self.t
        with np.errstate(all="ignore"):
            penalty = _finite(self.penalty.value, t)  # a ball's rim is inside
        primal = float(self.losses.sum()) + penalty
        candidates = self._strengths(strength)
        if not getattr(self.loss, "convex", True) or not self._convex_penalty():
            what = "loss" if not getattr(self.loss, "convex", True) else "penalty"
            r = candidates[0] * self.a + self.slopes
            Kr = self.times(r)
            gap = abs(float(np.vdot(r, Kr))) / (2.0 * candidates[0])
            if what == "penalty":
                duals = [
                    self._dual(u, c, lambda s: s * s / (2 * candidates[0])) for u, c in self._points(candidates[:1])
                ]
                squared = float(self.losses.sum()) + 0.5 * candidates[0] * t * t
                gap = min(gap, *(squared - d for d, _ in duals)) if duals else gap
            kkt = float(np.abs(Kr).max()) / candidates[0]
            return primal, primal - max(gap, 0.0), kkt, f"the {what} is not convex"
        best, kkt = -math.inf, math.inf
        for u, conjugates in self._points(candidates):
            dual, Ku = self._dual(u, conjugates, self._conjugate)
            if dual > best or not math.isfinite(kkt):
                best = max(dual, best)
                kkt = float(np.abs(self.f + Ku / candidates[0]).max())
        return primal, best, kkt, ""

    def _strengths(self, known: float | None) -> list[float]:
        """Return strengths that the equivalent squared norm may have, the likeliest first."""
        if isinstance(self.penalty, SquaredNorm):
            given = float(self.penalty.strength)
            return [given if given > 0 else _NO_PENALTY * (float(self.diag.max()) or 1.0)]
        strengths = [] if known is None else [float(known)]
        if self.t > 0:
            with np.errstate(all="ignore"):
                strengths.append(float(self.penalty.derivative(self.t)) / self.t)
                strengths.append(-float(np.vdot(self.slopes, self.f)) / self.t**2)
        strengths = [s for s in strengths if 0 < s < math.inf]
        return strengths or [1.0]

    def _convex_penalty(self) -> bool:
        said = getattr(self.penalty, "convex", None)
        if said is not None or hasattr(self.penalty, "conjugate"):
            return said is None or bool(said)
        slopes = np.array([float(self.penalty.derivative(t)) for t in np.logspace(-7.0, 7.0, 141)])
        return bool((np.diff(slopes) >= -1e-9 * np.abs(slopes[1:])).all())

    # -- dual points ------------------------------------------------------------------------------------

    def _points(self, strengths: list[float]) -> list[tuple[np.ndarray, float]]:
        """Return dual points with the sums of their conjugates."""
        points = []
        starts = [self.slopes] + [-s * self.a for s in strengths]
        if self.Phi is not None:
            starts.append(self._balanced(strengths[0]))
        for start in starts:
            u: np.ndarray | None = start
            if self.intercept and self._lopsided(start):
                u = self._levelled(start)
            if u is None:
                continue
            if u is self.slopes:
                points.append((u, float(np.vdot(u, self.v)) - float(self.losses.sum())))
            elif (conjugates := self._conjugates(u)) is not None:
                points.append(conjugates)
        return points

    def _balanced(self, strength: float) -> np.ndarray:
        """Return the point nearest to the slopes at which sum u_i Phi(x_i) is -strength f, and the sum of u 0."""
        assert self.Phi is not None
        Phi = np.column_stack([self.Phi, np.ones(len(self.Phi))]) if self.intercept else self.Phi
        return self.slopes - np.linalg.lstsq(Phi.T, Phi.T @ (self.slopes + strength * self.a))[0]

    def _lopsided(self, u: np.ndarray) -> bool:
        return bool((np.abs(u.sum(axis=0)) > _SUM * max(float(np.abs(u).sum()), 1e-300)).any())

    def _levelled(self, u: np.ndarray) -> np.ndarray | None:
        """Return u changed so that it sums to 0, where the curvature of the losses allows."""
        if not hasattr(self.loss, "curvature") or self.wide:
            return None
        with np.errstate(all="ignore"):
            curvature = np.nan_to_num(self.w * self.loss.curvature(self.y, self.v))
        total = float(curvature.sum())
        return u - (u.sum() / total) * curvature if total > 0 else None

    def _conjugates(self, u: np.ndarray, once_more: bool = True) -> tuple[np.ndarray, float] | None:
        """Return u moved into the conjugate's domain, and the sum of the conjugates.

        If that changes the sum of u, which must be 0, it is levelled `once_more`.
        """
        if not hasattr(self.loss, "conjugate") and self.wide:
            return None
        conjugate = getattr(self.loss, "conjugate", self._supremum)
        with np.errstate(all="ignore"):
            each = np.asarray(conjugate(self.y, u / self.column), dtype=np.float64)
            outside = ~np.isfinite(each) & self.counts
            if outside.any():  # by rounding, or for good: then the loss's own slope
                inner = np.asarray(conjugate(self.y, _INSIDE * u / self.column), dtype=np.float64)
                back = outside & np.isfinite(inner)
                gone = outside & ~back
                mask = (lambda m: m[:, None]) if self.wide else (lambda m: m)
                u = np.where(mask(back), _INSIDE * u, np.where(mask(gone), self.slopes, u))
                products = u * self.v
                products = products.sum(axis=1) if self.wide else products
                # By the equality of Fenchel and Young, of the weighted loss.
                each = np.where(back, inner, np.where(gone, (products - self.losses) / self.w, each))
        if self.intercept and self._lopsided(u):
            level = self._levelled(u) if once_more else None
            return None if level is None else self._conjugates(level, once_more=False)
        return u, float((self.w * np.where(self.counts, each, 0.0)).sum())

    def _supremum(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return the supremum over f of u f - L(y, f) for a convex loss without a formula for it, by halving on L'."""
        slope = self.loss.derivative
        low, high = self.v.copy(), self.v.copy()
        width = np.maximum(1.0, np.abs(self.v))
        for _ in range(200):  # until L' is at most u at one end, and at least u at the other
            left, right = slope(y, low) > u, slope(y, high) < u
            if not (left | right).any():
                break
            low, high = np.where(left, low - width, low), np.where(right, high + width, high)
            width = np.minimum(2.0 * width, 1e150)
        beyond = (slope(y, low) > u) | (slope(y, high) < u)
        for _ in range(160):
            middle = low + 0.5 * (high - low)
            less = slope(y, middle) < u
            low, high = np.where(less, middle, low), np.where(less, high, middle)
        value = np.maximum(u * low - self.loss.value(y, low), u * high - self.loss.value(y, high))
        return np.where(beyond, np.inf, value)

    def _dual(self, u: np.ndarray, conjugates: float, penalty: Any) -> tuple[float, np.ndarray]:
        Ku = self.times(u)
        s = math.sqrt(max(float(np.vdot(u, Ku)), 0.0)) if self.Phi is None else float(np.linalg.norm(self.Phi.T @ u))
        return -conjugates - _finite(penalty, s), Ku

    def _conjugate(self, s: float) -> float:
        """Return R*(s), by its formula, or as s t - R(t) at the t at which R' passes s."""
        R, ten = self.penalty, np.float64(10.0)
        if isinstance(R, SquaredNorm):
            return s * (s / (2.0 * self._strengths(None)[0]))
        if hasattr(R, "conjugate"):
            return float(R.conjugate(s))
        low, high = -300.0, 300.0  # powers of 10
        with np.errstate(all="ignore"):
            if float(R.derivative(ten**high)) < s:
                return math.inf
            for _ in range(120):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if float(R.derivative(ten**middle)) < s else (low, middle)
            values = [s * t - float(R.value(t)) for t in (np.float64(0.0), ten**low, ten**high)]
        return max(value for value in values if not math.isnan(value))


def _finite(function: Any, argument: float) -> float:
    """Return the value at an argument; if it is not finite, the value a rounding error further inside the domain."""
    value = float(function(argument))
    return value if math.isfinite(value) else float(function(argument * _INSIDE))
