"""A low-rank factor of the kernel matrix that leaves next to nothing out: pivots from blocks of candidates."""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, lapack

from mercer.solvers.products import Products

_NOISE = 4e-14  # of the diagonal, below which a pivot has too few digits: it divides what rounding has left


class Greedy:
    r"""Rows R of a Cholesky factor with pivots P, in float64.

    .. math:: R^T R = K_{:P} K_{PP}^{-1} K_{P:}

    Candidates are drawn with the diagonal of K - R'R as probabilities; among them the largest is the next pivot, until
    none is above a floor (LAPACK's pstrf). What the others leave of the diagonal is brought up to date once per block,
    by products of matrices. Where the floor is far below the diagonal almost every point that matters becomes a pivot
    anyway, and this is faster than to draw each with the right probability (`mercer.solvers.pivoted`).

    Parameters
    ----------
    products
        The kernel matrix.
    most
        The largest rank.
    seed
        Of the candidates.
    """

    def __init__(self, products: Products, most: int, seed: int = 0) -> None:
        self.products, self.most = products, min(most, products.n)
        self._rows = np.empty((self.most, products.n))  # not touched before its use
        self.pivots = np.zeros(0, dtype=np.intp)
        self.left = products.diagonal().clip(min=0.0)  # the diagonal of K - R'R
        self.noise = _NOISE * float(self.left.max())
        self._rng = np.random.default_rng(seed)

    @property
    def rank(self) -> int:
        """The number of pivots."""
        return len(self.pivots)

    @property
    def R(self) -> np.ndarray:
        """The rows so far."""
        return self._rows[: self.rank]

    @property
    def trace(self) -> float:
        """The trace of K - R'R."""
        return float(self.left.sum())

    def choose(self, block: int, floor: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the next pivots, and the lower Cholesky factor of their block of K - R'R.

        Parameters
        ----------
        block
            How many candidates are drawn.
        floor
            What a pivot must be above; rounding is, in any case, too little.
        """
        size = min(block, int(np.count_nonzero(self.left)))
        if not size:
            return np.zeros(0, dtype=np.intp), np.zeros((0, 0))
        drawn = self._rng.choice(len(self.left), size=size, replace=False, p=self.left / self.left.sum())
        H = self.products.values(drawn, drawn, False).astype(np.float64)
        known = self.R[:, drawn]
        H -= known.T @ known
        least = max(floor, self.noise)
        L, order, rank, _ = lapack.dpstrf(H, tol=least, lower=1)
        if H.diagonal().max() <= least:  # which LAPACK does not ask of the first pivot
            rank = 0
        return drawn[order[:rank] - 1], np.tril(L[:rank, :rank])

    def add(self, pivots: np.ndarray, L: np.ndarray) -> None:
        """Add the rows of pivots that were chosen, which must not exceed the largest rank."""
        r, t = self.rank, len(pivots)
        new = self._rows[r : r + t]
        new[...] = self.products.values(pivots, slice(0, self.products.n), False)
        new -= self.R[:, pivots].T @ self.R
        blas.dtrsm(1.0, np.asfortranarray(L), new.T, side=1, lower=1, trans_a=1, overwrite_b=1)
        self.left -= np.einsum("ij,ij->j", new, new)
        self.left.clip(min=0.0, out=self.left)
        self.left[pivots] = 0.0
        self.pivots = np.concatenate([self.pivots, pivots])
