"""The log marginal likelihood of a Gaussian process and its gradient, in the memory of one matrix."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import lapack

from mercer.certify import Certificate
from mercer.gram import Gram, parameter_gradient
from mercer.gram.matrix import KernelMatrix
from mercer.kernels import Kernel
from mercer.machine.threads import one_thread_each, run, within_limit
from mercer.points import Points
from mercer.solvers.systems.cholesky import cholesky, diagnose, inverse_of_product

_TILE = 512  # rows and columns that are mirrored at a time
_EPS = float(np.finfo(np.float64).eps)
_LARGEST_TARGET = 1e140  # size of the targets beyond which their squares leave the range of float64
LEAST = 1e3 * _EPS  # of the trace of K, a thousand times its rounding: less noise is too little for a sound factor


@dataclass(frozen=True)
class Factored:
    r"""The Cholesky factor of K + S, and the coefficients of the posterior mean.

    .. math:: L L^T = K + \operatorname{diag}(s) + j I, \qquad A = (K + \operatorname{diag}(s) + j I)^{-1} Y

    Attributes
    ----------
    values
        n x n, column by column; its lower triangle holds L, the rest is of no use.
    A
        As Y.
    jitter
        j: what was added to the diagonal because rounding would have spoiled the factor; mostly 0.
    likelihood
        The log marginal likelihood of all columns of Y together.
    """

    values: np.ndarray
    A: np.ndarray
    jitter: float
    likelihood: float


class Evidence:
    r"""What some data say about a kernel and a noise level.

    .. math:: \log p(Y) = \sum_c \bigl(-\tfrac12 y_c^T (K + S)^{-1} y_c
              - \tfrac12 \log\det(K + S) - \tfrac n2 \log 2\pi\bigr)

    Parameters
    ----------
    points
        The training points.
    Y
        Targets, (n, m): independent given the kernel, which they share.
    memory
        At least 8 n² bytes to work in, kept from one call to the next: fresh memory is dear. None to take them.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF
    >>> from mercer.points import Points
    >>> X = np.linspace(0, 1, 5)[:, None]
    >>> evidence = Evidence(Points(X), np.sin(6 * X))
    >>> from scipy.stats import multivariate_normal
    >>> law = multivariate_normal(cov=RBF(scale=0.5)(X) + 0.01 * np.eye(5))
    >>> bool(abs(evidence.factor(RBF(scale=0.5), 0.01).likelihood - law.logpdf(np.sin(6 * X[:, 0]))) < 1e-9)
    True
    >>> slopes, noise = evidence.gradient(RBF(scale=0.5))  # in the scale, and in the noise of each point
    >>> slopes.shape, noise.shape
    ((1,), (5,))
    """

    def __init__(self, points: Points, Y: np.ndarray, memory: np.ndarray | None = None) -> None:
        self.points, self.Y = points, np.ascontiguousarray(Y, dtype=np.float64)
        n = len(self.Y)
        size = 8 * n * n
        self.memory = np.empty(size, np.uint8) if memory is None else memory
        self.matrix = self.memory[:size].view(np.float64).reshape(n, n)
        self.factored: Factored | None = None
        self._share, self._hidden = 0.0, False

    @within_limit
    def factor(self, kernel: Kernel, noise: float | np.ndarray, careful: bool = True) -> Factored:
        """Return the factor of the kernel matrix plus noise; the last one made is lost.

        Parameters
        ----------
        kernel
            With every parameter known.
        noise
            The variance of the noise: a number, or one per point.
        careful
            Where the noise is next to nothing: whether to try without jitter first.

        Raises
        ------
        numpy.linalg.LinAlgError
            When the matrix is not positive semidefinite.
        """
        K, n = self.matrix, len(self.matrix)
        self.factored = None
        least = float(np.min(noise))
        floor = least_noise(kernel.diag(self.points))
        hidden = least < floor  # then the diagonal is the floor, or a multiple of it, whatever the noise is
        tries = [0.0] if careful or not hidden else []
        for times in (*tries, 1.0, 10.0, 100.0):
            jitter = times * floor - (least if hidden and times else 0.0)
            fill(kernel, self.points, K)
            K.flat[:: n + 1] += noise + jitter
            doubtful = hidden and not times
            norm = float(lapack.dlange("1", K.T)) if doubtful else 0.0
            L = K.T
            if not cholesky(L) or (doubtful and lapack.dpocon(L, norm, uplo="L")[0] < n * _EPS):
                continue
            self.factored = self._factored(L, float(jitter))
            self._share, self._hidden = times * LEAST, hidden and times > 0
            return self.factored
        shift = np.broadcast_to(np.asarray(noise, dtype=np.float64), n)
        raise np.linalg.LinAlgError(
            diagnose(KernelMatrix(Gram(kernel, self.points)), shift).replace("alpha", "the noise")
        )

    def _factored(self, L: np.ndarray, jitter: float) -> Factored:
        A, _ = lapack.dpotrs(L, self.Y, lower=1)
        n, width = self.Y.shape
        with np.errstate(over="ignore"):
            fit = float(np.vdot(self.Y, A))
        half_log_det = float(np.log(L.diagonal()).sum())
        likelihood = -0.5 * fit - width * (half_log_det + 0.5 * n * math.log(2 * math.pi))
        return Factored(L, np.ascontiguousarray(A), jitter, likelihood)

    def gradient(self, kernel: Kernel) -> tuple[np.ndarray, np.ndarray]:
        r"""Return the slopes of the likelihood of the last factor; the factor is lost.

        .. math:: \frac{\partial \log p}{\partial \theta} = \tfrac12 \sum_{ij} W_{ij}
                  \frac{\partial K_{ij}}{\partial \theta}, \qquad W = A A^T - m (K + S)^{-1}

        Parameters
        ----------
        kernel
            The kernel of the last call of `factor`.

        Returns
        -------
        slopes, noise
            In each continuous parameter of the kernel, and in the noise variance of each point.
        """
        assert self.factored is not None
        A, L = self.factored.A, self.factored.values
        self.factored = None
        inverse_of_product(L)
        W, width = self.matrix, self.Y.shape[1]
        size = float(np.abs(A).max()) or 1.0
        n = len(W)

        def tile(at: tuple[int, int]) -> None:
            rows, cols = slice(at[0], at[0] + _TILE), slice(at[1], at[1] + _TILE)
            part = W[rows, cols]
            part *= -width
            part += (A[rows] / size) @ (A[cols].T * size)
            if rows == cols:
                below = np.tril_indices(len(part), -1)
                part[below] = part.T[below]
            else:
                W[cols, rows] = part.T

        with one_thread_each() if n > _TILE else nullcontext():
            run(tile, [(i, j) for i in range(0, n, _TILE) for j in range(i, n, _TILE)])
            noise = np.zeros(n) if self._hidden else 0.5 * W.diagonal()
            W.flat[:: n + 1] += self._share * W.trace()  # the jitter is a multiple of the trace of K
            return 0.5 * parameter_gradient(kernel, self.points, W), noise


def least_noise(diagonal: np.ndarray) -> float:
    """Return the least noise variance with which rounding does not spoil the factor, from the diagonal of K."""
    with np.errstate(over="ignore"):
        trace = float(np.abs(diagonal).sum(dtype=np.float64))
    if not math.isfinite(trace):
        raise FloatingPointError("the trace of the kernel matrix exceeds the range of float64; scale the features.")
    return LEAST * max(trace, 1e-290)


def fill(kernel: Kernel, points: Points, out: np.ndarray) -> None:
    """Write the kernel matrix of the points into a C-contiguous float64 matrix."""
    Gram(kernel, points).fill(out)


def rows_of(points: Points, rows: np.ndarray) -> Points:
    """Return some points as a set of their own, which keeps what is computed once for each point."""
    return Points(points.take(rows).data, points.name)


def unit_of_claims(unit: np.ndarray) -> np.ndarray:
    """Return the units of objectives: 1 in place of units whose squares leave the range of float64."""
    return np.where((unit < _LARGEST_TARGET) & (unit > 1 / _LARGEST_TARGET), unit, 1.0)


def mean_certificate(
    kernel: Kernel,
    points: Points,
    Y: np.ndarray,
    A: np.ndarray,
    shift: float | np.ndarray,
    *,
    unit: np.ndarray,
    tol: float,
    **said: Any,
) -> tuple[Certificate, np.ndarray]:
    r"""Return the certificate of the posterior mean, which solves a ridge problem, and the relative residuals.

    .. math:: \tfrac12 \sum_i w_i (y_i - f(x_i))^2 + \tfrac{\alpha}{2} \|f\|_H^2, \qquad \alpha / w_i = s_i

    with alpha the mean of s. The gap is half the weighted square of Y - (K + S) A, computed in float64.

    Parameters
    ----------
    kernel, points, Y, A, shift
        The problem and its solution.
    unit
        In what the columns of Y are measured: objectives are in its squares, as far as `unit_of_claims` allows.
    tol
        The relative gap that was asked for.
    **said
        Further fields of the certificate.
    """
    s = np.broadcast_to(np.asarray(shift, dtype=np.float64), len(Y))
    alpha = float(s.mean())
    w = (alpha / s if alpha > 0 else np.ones(len(s)))[:, None]
    KA = Gram(kernel, points).product(A)
    residual = Y - KA - s[:, None] * A
    length = np.linalg.norm(Y, axis=0)
    primal = 0.5 * (w * (Y - KA) ** 2).sum(axis=0) + 0.5 * alpha * np.einsum("ij,ij->j", A, KA)
    gap = 0.5 * (w * residual**2).sum(axis=0)
    diagonal = np.asarray(kernel.diag(points), dtype=np.float64).clip(min=0.0)
    moved = np.sqrt(diagonal[:, None] * (diagonal @ A**2))
    floor = 2 * _EPS * (np.abs(Y).max(axis=0, initial=0.0) + moved + s[:, None] * np.abs(A))
    lost = 0.5 * (w * floor**2).sum(axis=0)
    unit = unit_of_claims(unit)
    square = unit**2
    certificate = Certificate(
        primal=float(primal @ square),
        dual=float((primal - gap) @ square),
        kkt=float((np.abs(residual).max(axis=0) * unit).max()),
        tol=tol,
        rounding=float(lost @ square),
        **said,
    )
    return certificate, np.linalg.norm(residual, axis=0) / np.where(length > 0, length, 1.0)


class Profile(Evidence):
    r"""The log marginal likelihood under s (K + alpha I), at the s under which the data are most likely.

    .. math:: \max_s \log N(y; 0, s M) = -\tfrac n2 \log \frac{y' M^{-1} y}{n} - \tfrac12 \log\det M
              - \tfrac n2 (1 + \log 2\pi)

    Ridge regression does not know s: only the ratio of K to alpha matters for what it predicts. As s is the best one,
    its own change has no share in the slopes, which are those of `Evidence` for the targets in units of its root.

    Examples
    --------
    >>> from mercer import RBF
    >>> from mercer.points import Points
    >>> X = np.linspace(0, 1, 9)[:, None]
    >>> profile = Profile(Points(X), np.sin(6 * X))
    >>> likelihoods = [profile.factor(c * RBF(0.5), 0.1 * c).likelihood for c in (1.0, 9.0)]
    >>> bool(np.isclose(*likelihoods))
    True
    """

    def _factored(self, L: np.ndarray, jitter: float) -> Factored:
        factored = super()._factored(L, jitter)
        size = self.Y.size
        fit = float(np.vdot(self.Y, factored.A))
        amplitude = max(fit / size, 1e-300)
        likelihood = factored.likelihood + 0.5 * fit - 0.5 * size * (1.0 + math.log(amplitude))
        return replace(factored, A=factored.A / math.sqrt(amplitude), likelihood=likelihood)
