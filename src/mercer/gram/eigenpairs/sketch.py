"""A guess of a kernel matrix from some of its columns."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular

from mercer.gram import rows
from mercer.gram.symmetric import Symmetric

_ROUNDING = 1e-6  # of the largest eigenvalue: what is smaller is rounding of float32
_POLE = 1e-3  # of an eigenvalue: how close to it an equation is still solved


class Sketch:
    r"""The eigenvalues e and nearly orthonormal vectors Z of a matrix made from some columns S of K.

    .. math:: K_{:S} K_{SS}^{-1} K_{S:} = Z \operatorname{diag}(e) Z^T

    Columns are drawn with k(x, x) as their probabilities. Of a positive semidefinite K this leaves a positive
    semidefinite rest, whose trace bounds every eigenvalue that the guess has missed. It is no
    `PivotedCholesky`, as K may be indefinite or centred: all columns are drawn at once and kept as they are.

    Parameters
    ----------
    matrix
        The matrix; a centred one is guessed by the centred guess.
    rank
        How many columns are drawn.
    rng
        Draws them.
    """

    def __init__(self, matrix: Symmetric, rank: int, rng: np.random.Generator) -> None:
        weight = np.abs(matrix.diag)
        rank = min(rank, int(np.count_nonzero(weight)))
        chosen = np.sort(rng.choice(matrix.n, rank, replace=False, p=weight / weight.sum())) if rank else np.arange(0)
        C = matrix.columns(chosen)
        A = _root(C[chosen].astype(np.float64))
        between = rows.square(C)
        self.left = float(matrix.diag.sum() - np.einsum("ij,ij->", A, between @ A))  # the trace of the rest
        self._centre = rows.inner(C, np.ones((matrix.n, 1)))[:, 0] / matrix.n if matrix.center else np.zeros(rank)
        between -= matrix.n * np.outer(self._centre, self._centre)
        self.values, G = _positive(A.T @ between @ A)
        self._C = C
        self._B = A @ (G / np.sqrt(self.values))

    def vectors(self, count: int) -> np.ndarray:
        """Return the leading columns of Z, or all where there are fewer."""
        return self._times(self._B[:, :count])

    def solve(self, R: np.ndarray, shifts: np.ndarray, floor: float) -> np.ndarray:
        """Return (Z diag(e) Z' - shift)^-1 r for each column r of R, kept away from its poles."""
        size = np.maximum(np.abs(shifts), floor)
        inside = self._B.T @ (rows.inner(self._C, R) - np.outer(self._centre, R.sum(axis=0)))
        gap = self.values[:, None] - shifts
        gap = np.copysign(np.maximum(np.abs(gap), _POLE * size), gap)
        return self._times(self._B @ (inside / gap + inside / size)) - R / size

    def _times(self, M: np.ndarray) -> np.ndarray:
        return rows.times(self._C, M) - self._centre @ M


def _root(W: np.ndarray) -> np.ndarray:
    """Return A with A A' about the inverse of W, of its positive part where it has another."""
    try:
        L = cholesky(W + _ROUNDING * np.trace(W) * np.eye(len(W)), lower=True)
        return np.asarray(solve_triangular(L, np.eye(len(W)), lower=True).T)
    except np.linalg.LinAlgError:
        values, U = _positive(W)
        return np.asarray(U / np.sqrt(values))


def _positive(H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues that are no rounding of float32, largest first, and their vectors."""
    if not len(H):
        return np.zeros(0), np.zeros((0, 0))
    values, U = eigh(H, driver="evd")
    kept = np.flatnonzero(values > _ROUNDING * max(values[-1], 0.0))[::-1]
    return values[kept], U[:, kept]
