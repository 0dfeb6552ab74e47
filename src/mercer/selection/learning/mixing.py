"""Criteria for the weights of a mixture of kernels: the targets themselves, or the objective of a model."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from functools import reduce
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mercer.certify.values import product
from mercer.gram import Gram
from mercer.gram.products import Products
from mercer.kernels import Kernel, Sum
from mercer.machine.threads import one_thread_each
from mercer.points import Points
from mercer.rkhs.statistics.alignment import centre
from mercer.selection.learning.simplex import Known

_INSIDE = 1e-3  # of the tolerance: that of the fits
_ALONE = 600  # rows up to which threads of BLAS wait for one another longer than they work
_RANK = 1e-12  # of the largest eigenvalue: what is rounding
_EVEN = 1e-12  # of the norm before centring: a matrix that is constant


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

    Parameters
    ----------
    kernels
        With every parameter known.
    points
        Rows of which the matrices are held, all at once.
    Y
        Targets, (n, m).
    """

    def __init__(self, kernels: list[Kernel], points: Points, Y: np.ndarray) -> None:
        n, count = len(points), len(kernels)
        Y = Y - Y.mean(axis=0)
        held = np.empty((count, n * n))
        self.spreads = np.ones(count)
        sizes = np.ones(count)  # of the centred matrices
        for j, kernel in enumerate(kernels):
            K = Products(Gram(kernel, points)).dense(held[j].reshape(n, n))
            size, before = float(np.mean(K.diagonal())), float(np.linalg.norm(K))
            centre(K)
            norm = float(np.linalg.norm(K))
            if norm > _EVEN * before:
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
        bend = float(v @ self.M @ v)
        return v * (max(float(self.c @ v), 0.0) / bend) if bend > 0 else v * 0.0

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

    Parameters
    ----------
    model
        The estimator.
    kernels, spreads
        The kernels, each to be divided by its spread.
    X, y
        The training data.
    tol
        Of the mixture; the fits are a thousand times as exact, since their error counts by its root.
    """

    def __init__(self, model: Any, kernels: list[Kernel], spreads: np.ndarray, X: Any, y: Any, tol: float) -> None:
        self.kernels, self.spreads, self.X, self.y = kernels, spreads, X, y
        known = model.get_params(deep=False)
        inside: dict[str, Any] = {"tol": min(_INSIDE * tol, float(known.get("tol", 1.0)))} if "tol" in known else {}
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
        small = len(self.y) <= _ALONE
        with warnings.catch_warnings(), one_thread_each() if small else nullcontext():
            warnings.simplefilter("ignore", ConvergenceWarning)  # what is left of a gap is in the bounds
            return model.set_params(kernel=mixed(self.kernels, shares / self.spreads)).fit(self.X, self.y)

    def _known(self, model: Any, shares: np.ndarray, upper: float, lower: float, checked: bool) -> Known:
        f = model.function_
        A = f.coefficients
        A = np.asarray(A.toarray() if hasattr(A, "toarray") else A, dtype=np.float64)
        A = A[:, None] if A.ndim == 1 else A
        strengths = np.broadcast_to(np.asarray(getattr(model, "_strengths", 1.0), dtype=np.float64), (A.shape[1],))
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
