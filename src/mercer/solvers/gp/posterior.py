"""The posterior of a Gaussian process: variances and covariances, cheaper where the kernel matrix is of low rank."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from scipy.linalg import blas, cho_factor

from mercer.certify import Stop
from mercer.gram import Gram
from mercer.gram.factor import PivotedCholesky
from mercer.gram.matrix import KernelMatrix
from mercer.kernels import Kernel
from mercer.points import Points
from mercer.solvers.control import Control
from mercer.solvers.systems.cholesky import rounding
from mercer.solvers.systems.system import Systems

_TILE = 1 << 25  # bytes of kernel values between new points and training points at a time
_COLUMNS = 128  # equations that conjugate gradients solve together
_RESIDUAL = 1e-3  # of such an equation, in units of the noise: its square is the error of a variance
_POINTS_PER_NEW = 8  # training points for each new one, above which no low rank is looked for
_FEW_EQUATIONS = 16  # so many are sooner solved than a low rank is looked for
_TRIANGLE_POINTS = 1_000  # training points below which triangles are fast enough
_TRACE_LEFT = 5e-7  # of K by a low rank, at most, in units of the noise
_VARIANCE_ERROR = 2e-6  # relative: where the bound is larger, the low rank is not trusted
_BLOCK = 512  # candidates for pivots that are drawn at first
_FIRST_FLOOR = 1 / 64  # the smallest pivot at first, in units of that trace
_FLOOR_FACTOR = 2.0  # by which the floor is lowered where too few pivots are left
_CHUNK = 2_048  # columns of R that are weighted at a time
_RANK_TILE = 1 << 25  # bytes of kernel values at a time


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
        """Return K as a matrix of low rank, if it is one and the new points are enough to repay the search.

        What is returned does not depend on what was asked before, nor do the digits of a variance.
        """
        n = len(self.points)
        if n < _TRIANGLE_POINTS or not (self._prepared or _POINTS_PER_NEW * new >= n):
            return None
        if not self._sought:
            most = int(min(n // 4, self.spare // (8 * n)))
            self._low, self._sought = LowRank.of(Gram(self.kernel, self.points), self.shift, most), True
        return self._low

    def variance(self, new: Points) -> np.ndarray:
        low = self.low_rank(len(new))
        return self.exact_variance(new) if low is None else low.completed(new, self.exact_variance)

    def exact_variance(self, new: Points) -> np.ndarray:
        """Return the variances by the factor alone."""
        n, m = len(self.points), len(new)
        variances = np.array(self.kernel.diag(new), dtype=np.float64)
        step = min(m, max(64, _TILE // (8 * n)))
        tile = np.empty((step, n))
        for i in range(0, m, step):
            rows = slice(i, min(i + step, m))
            v = self._whitened(new, rows, tile[: rows.stop - i])
            variances[rows] -= np.einsum("ij,ij->i", v, v)
        return np.maximum(variances, 0.0, out=variances)

    def covariance(self, new: Points) -> np.ndarray:
        covariance = Gram(self.kernel, new).fill(np.empty((len(new), len(new))))
        v = self._whitened(new, slice(0, len(new)), np.empty((len(new), len(self.points))))
        covariance -= v @ v.T
        return covariance

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
        tol = np.clip(_RESIDUAL * float(np.min(self.shift)) / length, 1e-12, 1e-3)
        answer = self._systems.solve(self.shift, k, tol=tol)
        if answer.stopped == Stop.INTERRUPTED:
            self._systems = None  # whose control is cancelled
            raise KeyboardInterrupt
        shift = np.asarray(self.shift).reshape(-1, 1)
        return k, answer.A, answer.product + shift * answer.A

    def variance(self, new: Points) -> np.ndarray:
        n, m = self.gram.shape[0], len(new)
        if not self._sought and m >= _FEW_EQUATIONS:
            most = min(n // 4, int(self.gram.budget // (32 * n)))
            self._low, self._sought = LowRank.of(self.gram, self.shift, most), True
        return self._by_equations(new) if self._low is None else self._low.completed(new, self._by_equations)

    def _by_equations(self, new: Points) -> np.ndarray:
        m = len(new)
        variances = np.array(self.gram.kernel.diag(new), dtype=np.float64)
        for i in range(0, m, _COLUMNS):
            rows = slice(i, min(i + _COLUMNS, m))
            k, A, MA = self._solved(new, rows)
            variances[rows] -= np.einsum("ij,ij->j", A, 2 * k - MA)
        return np.maximum(variances, 0.0, out=variances)

    def covariance(self, new: Points) -> np.ndarray:
        covariance = self.gram.on(new).fill(np.empty((len(new), len(new))))
        k, A, MA = self._solved(new, slice(0, len(new)))
        half = A.T @ (k - 0.5 * MA)
        return covariance - half - half.T


def cross(kernel: Kernel, new: Points, rows: slice, points: Points, out: np.ndarray) -> np.ndarray:
    """Return the kernel values of some new points against the training points, in `out` (new, training)."""
    some = new if rows == slice(0, len(new)) else new.take(rows)
    return np.asarray(Gram(kernel, some, points).fill(out))


def whitened(factor: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the solutions of L v = k for each row k of `values`, in their place."""
    solved: Any = blas.dtrsm(1.0, factor, values.T, lower=1, overwrite_b=1)
    return np.asarray(solved).T


class LowRank:
    r"""The process with the kernel matrix R'R of low rank in place of K; the trace t of K - R'R is left out.

    .. math:: \operatorname{var} f(x) \approx e + \rho^T (I + R S^{-1} R^T)^{-1} \rho, \qquad
              \rho = L_P^{-1} k_P(x), \quad e = k(x, x) - |\rho|^2

    with the pivots P. Write f = g + h, where h is independent of the values at P. The first term is the variance of h
    before the data are seen. The second, u, is the variance of g after they are seen, as if h were 0. By Cauchy and
    Schwarz the error is at most :math:`2 \sqrt{\delta e u} + \delta e` with :math:`\delta = t / \min_i s_i`: so
    small is what h contributes to the data, beside the noise.

    Parameters
    ----------
    kernel
        With every parameter known.
    pivots
        The points P.
    root
        L_P, lower triangular.
    inner
        The lower Cholesky factor of I + R S^-1 R'.
    delta
        As above.
    """

    def __init__(self, kernel: Kernel, pivots: Points, root: np.ndarray, inner: np.ndarray, delta: float) -> None:
        self.kernel, self.pivots, self.root, self.inner, self.delta = kernel, pivots, root, inner, delta

    @property
    def rank(self) -> int:
        """The number of pivots."""
        return len(self.pivots)

    @classmethod
    def of(cls, gram: Gram, shift: float | np.ndarray, most: int) -> LowRank | None:
        """Return the kernel matrix as one of rank at most `most`; None where too much would be left out."""
        least = float(np.min(shift))
        matrix = KernelMatrix(gram)
        goal = _TRACE_LEFT * least
        if most < 1 or goal < rounding(matrix):
            return None
        factor, floor = PivotedCholesky(matrix, most), _FIRST_FLOOR * goal
        while factor.trace > goal:
            block = max(_BLOCK, factor.rank)
            pivots, L = factor.largest_pivots(block, floor)
            if len(pivots) > most - factor.rank or (len(pivots) == block and _hopeless(L, factor.rank, floor, most)):
                return None
            if len(pivots):
                factor.append(pivots, L)
            elif (
                floor <= factor.least_pivot or floor * matrix.n < goal
            ):  # smaller ones are rounding, or no longer matter
                return None
            if len(pivots) < block // 8:
                floor /= _FLOOR_FACTOR
        if not factor.rank:
            return None
        at = factor.pivots
        root = np.asfortranarray(np.tril(factor.R[:, at].T))
        inner = np.eye(len(at))
        weight = 1.0 / np.sqrt(np.broadcast_to(np.asarray(shift, dtype=np.float64), matrix.n))
        for i in range(0, matrix.n, _CHUNK):
            part = factor.R[:, i : i + _CHUNK] * weight[i : i + _CHUNK]
            inner += part @ part.T
        inner = np.asfortranarray(cho_factor(inner, lower=True, overwrite_a=True, check_finite=False)[0])
        return cls(gram.kernel, Points(gram.left.take(at).data), root, inner, factor.trace / least)

    def completed(self, new: Points, exactly: Callable[[Points], np.ndarray]) -> np.ndarray:
        """Return the variances; where they may be inexact, those of `exactly`."""
        variances, certain = self.variance(new)
        if not certain.all():
            rest = np.flatnonzero(~certain)
            variances[rest] = exactly(Points(new.take(rest).data))
        return variances

    def variance(self, new: Points) -> tuple[np.ndarray, np.ndarray]:
        """Return the variances, and which of them are certain to a relative error of 2e-6."""
        m, r = len(new), self.rank
        variances = np.array(self.kernel.diag(new), dtype=np.float64)
        certain = np.empty(m, dtype=bool)
        step = min(m, max(64, _RANK_TILE // (8 * r)))
        tile = np.empty((step, r))
        for i in range(0, m, step):
            rows = slice(i, min(i + step, m))
            part = tile[: rows.stop - i]
            Gram(self.kernel, new.take(rows), self.pivots).fill(part)
            rho = blas.dtrsm(1.0, self.root, part.T, lower=1, overwrite_b=1).T
            open_ = np.maximum(variances[rows] - np.einsum("ij,ij->i", rho, rho), 0.0)
            u = blas.dtrsm(1.0, self.inner, rho.T, lower=1, overwrite_b=1).T
            seen = np.einsum("ij,ij->i", u, u)
            variances[rows] = open_ + seen
            missed = 2 * np.sqrt(self.delta * open_ * seen) + self.delta * open_
            certain[rows] = missed <= _VARIANCE_ERROR * variances[rows]
        return variances, certain


def _hopeless(L: np.ndarray, rank: int, floor: float, most: int) -> bool:
    """Whether pivots fall too slowly to reach the floor by rank `most`, where all candidates of a block were taken.

    The pivots of a few points fall faster than those of all. Eigenvalues of smooth kernels fall at best as a geometric
    series. So the rate of the last half is more than can be hoped for.
    """
    d = np.square(L.diagonal())
    half = len(d) // 2
    rate = math.log(d[half] / d[-1]) / (len(d) - half)
    return rate <= 0 or rank + len(d) + math.log(d[-1] / floor) / rate > 1.3 * most
