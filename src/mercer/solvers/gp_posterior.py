"""How much a Gaussian process still varies once it has seen its data: variances and covariances."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from scipy.linalg import blas

from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.points import Comparison, Points
from mercer.solvers.control import Control
from mercer.solvers.gp_rank import LowRank
from mercer.solvers.systems import Systems

_TILE = 1 << 25  # bytes of kernel values between new points and training points at a time
_COLUMNS = 128  # equations that conjugate gradients solve together
_CLOSE = 1e-3  # residual of such an equation, in units of the noise: its square is what a variance is off by
_WORTH = 8  # one new point for so many training points, below which no low rank is looked for
_FEW = 16  # equations that are sooner solved than a low rank is looked for
_MANY = 1_000  # training points below which triangles are fast enough


class Posterior(Protocol):
    """What is known of f beside its mean."""

    def variance(self, new: Points) -> np.ndarray:
        """Return the variance of f at each point."""

    def covariance(self, new: Points) -> np.ndarray:
        """Return the covariances of f between the points."""


class ByFactor:
    r"""Variances by the Cholesky factor of K + S.

    .. math:: \operatorname{cov}(f(x), f(z)) = k(x, z) - v(x)^T v(z), \qquad L v(x) = (k(x_i, x))_i

    Parameters
    ----------
    kernel, points
        The kernel, with every parameter known, and the training points.
    shift
        The diagonal of S: a number, or one per point.
    factor
        n x n, column by column; its lower triangle is L.
    spare
        Bytes that may be used beside it.
    """

    def __init__(
        self, kernel: Kernel, points: Points, shift: float | np.ndarray, factor: np.ndarray, spare: float = math.inf
    ) -> None:
        self.kernel, self.points, self.shift, self.factor, self.spare = kernel, points, shift, factor, spare
        self._low: LowRank | None = None
        self._sought = self._prepared = False

    def prepare(self) -> None:
        """Look for a low rank at once, and use it for any number of new points."""
        self._prepared = True
        self.low_rank(0)

    def low_rank(self, new: int) -> LowRank | None:
        """Return K as a matrix of low rank, if it is one and so many new points make it worth looking for.

        What is returned does not depend on what was asked before, nor do the digits of a variance.
        """
        n = len(self.points)
        if n < _MANY or not (self._prepared or _WORTH * new >= n):
            return None
        if not self._sought:
            most = int(min(n // 4, self.spare // (8 * n)))
            self._low, self._sought = LowRank.of(Gram(self.kernel, self.points), self.shift, most), True
        return self._low

    def variance(self, new: Points) -> np.ndarray:
        low = self.low_rank(len(new))
        if low is None:
            return self.exact_variance(new)
        found, certain = low.variance(new)
        if not certain.all():
            rest = np.flatnonzero(~certain)
            found[rest] = self.exact_variance(Points(new.take(rest).data))
        return found

    def exact_variance(self, new: Points) -> np.ndarray:
        """Return the variances by the factor alone."""
        n, m = len(self.points), len(new)
        found = np.array(Comparison(self.kernel.of, new).diag(), dtype=np.float64)
        step = min(m, max(64, _TILE // (8 * n)))
        tile = np.empty((step, n))
        for i in range(0, m, step):
            rows = slice(i, min(i + step, m))
            v = self._whitened(new, rows, tile[: rows.stop - i])
            found[rows] -= np.einsum("ij,ij->i", v, v)
        return np.maximum(found, 0.0, out=found)

    def covariance(self, new: Points) -> np.ndarray:
        found = np.array(Comparison(self.kernel.of, new).dense(), dtype=np.float64)
        v = self._whitened(new, slice(0, len(new)), np.empty((len(new), len(self.points))))
        found -= v @ v.T
        return found

    def _whitened(self, new: Points, rows: slice, out: np.ndarray) -> np.ndarray:
        """Return v of some new points, one per row, in `out`."""
        return whitened(self.factor, cross(self.kernel, new, rows, self.points, out))


class ByGradients:
    """The same without the matrix: an equation with K + S for each new point, by conjugate gradients.

    A solution with the residual r makes a variance too large by at most |r|² / s.

    Parameters
    ----------
    gram
        The kernel matrix of the training points.
    shift
        The diagonal of S, above 0: a number, or one per point.
    """

    def __init__(self, gram: Gram, shift: float | np.ndarray) -> None:
        self.gram, self.shift = gram, shift
        self._systems: Systems | None = None
        self._low: LowRank | None = None
        self._sought = False

    def _solved(self, new: Points, rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return k, A and (K + S) A for some new points, one column for each."""
        if self._systems is None:
            self._systems = Systems(self.gram, Control(), method="cg")
        n, width = self.gram.shape[0], rows.stop - rows.start
        k = cross(self.gram.kernel, new, rows, self.gram.left, np.empty((width, n))).T
        length = np.maximum(np.linalg.norm(k, axis=0), 1e-300)
        tol = np.clip(_CLOSE * float(np.min(self.shift)) / length, 1e-12, 1e-3)
        answer = self._systems.solve(self.shift, k, tol=tol)
        if answer.stopped == "interrupted":
            self._systems = None  # whose control is cancelled
            raise KeyboardInterrupt
        shift = np.asarray(self.shift).reshape(-1, 1)
        return k, answer.A, answer.product + shift * answer.A

    def variance(self, new: Points) -> np.ndarray:
        n, m = self.gram.shape[0], len(new)
        if not self._sought and m >= _FEW:
            most = min(n // 4, int(self.gram.budget // (32 * n)))
            self._low, self._sought = LowRank.of(self.gram, self.shift, most), True
        if self._low is None:
            return self._by_equations(new)
        found, certain = self._low.variance(new)
        if not certain.all():
            rest = np.flatnonzero(~certain)
            found[rest] = self._by_equations(Points(new.take(rest).data))
        return found

    def _by_equations(self, new: Points) -> np.ndarray:
        m = len(new)
        found = np.array(Comparison(self.gram.kernel.of, new).diag(), dtype=np.float64)
        for i in range(0, m, _COLUMNS):
            rows = slice(i, min(i + _COLUMNS, m))
            k, A, MA = self._solved(new, rows)
            found[rows] -= np.einsum("ij,ij->j", A, 2 * k - MA)
        return np.maximum(found, 0.0, out=found)

    def covariance(self, new: Points) -> np.ndarray:
        found = np.array(Comparison(self.gram.kernel.of, new).dense(), dtype=np.float64)
        k, A, MA = self._solved(new, slice(0, len(new)))
        half = A.T @ (k - 0.5 * MA)
        return found - half - half.T


def cross(kernel: Kernel, new: Points, rows: slice, points: Points, out: np.ndarray) -> np.ndarray:
    """Return the kernel values of some new points against the training points, in `out` (new, training)."""
    some = new if rows == slice(0, len(new)) else new.take(rows)
    compared = Comparison(kernel.of, some, points)
    if compared.dtype == out.dtype and not compared.symmetric:
        compared.dense(out)
    else:
        out[...] = compared.dense()
    return out


def whitened(factor: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the solutions of L v = k for each row k of `values`, in their place."""
    found: Any = blas.dtrsm(1.0, factor, values.T, lower=1, overwrite_b=1)
    return np.asarray(found).T
