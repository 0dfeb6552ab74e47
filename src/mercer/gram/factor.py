"""Factors R of a positive semidefinite matrix: R'R = K, or as much of it as some rows can hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.linalg import eigh, lapack, solve_triangular

from mercer.machine.threads import run, shares

_COLUMNS = 2048  # of R, written at a time
# Shares of the diagonal. A drawn pivot below the first is rounding. A pivot that was chosen for its size has too few
# digits below the second.
_ROUNDING = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 2e-15}
_FEW_DIGITS = 4e-14
_ESTIMATE = 16  # pivots drawn together from which on they show the largest eigenvalue that is left


def eigen_factor(K: np.ndarray) -> np.ndarray:
    """Return R = D^(1/2) U' for K = U D U', without the rows whose eigenvalue is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> R = eigen_factor(np.array([[4.0, 2.0], [2.0, 1.0]]))
    >>> (R.T @ R).round(12)
    array([[4., 2.],
           [2., 1.]])
    """
    values, U = eigh(K, driver="evd")  # to a few eps where the default gives hundreds
    kept = values > 0
    return (U[:, kept] * np.sqrt(values[kept])).T


def partial_cholesky(diag: np.ndarray, column: Callable[[int], np.ndarray], rank: int, seed: int = 0) -> np.ndarray:
    """Return at most `rank` rows of a Cholesky factor with random pivots, from as many columns of K.

    .. math:: R^T R = K_{:S} K_{SS}^{-1} K_{S:}

    Each pivot of S is drawn with the diagonal of K - R'R as its probabilities. That comes close to the best
    approximation of this rank, and never looks at all of K (Chen, Epperly, Tropp and Webber 2023). It is for
    matrices, such as a user's own, that are only known by their columns; for all others there is `PivotedCholesky`.

    Parameters
    ----------
    diag
        The diagonal of K.
    column
        Returns the column of K with a given index.
    rank
        The most rows to return; fewer when nothing but rounding is left of the diagonal.
    seed
        Of the pivots.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((100, 3))
    >>> K = X @ X.T
    >>> R = partial_cholesky(np.diag(K), lambda i: K[:, i], rank=10)
    >>> len(R), bool(np.allclose(R.T @ R, K))
    (3, True)
    """
    rng = np.random.default_rng(seed)
    rounding = len(diag) * np.finfo(float).eps
    R = np.zeros((rank, len(diag)))
    left = diag.clip(min=0)
    enough = rounding * left.sum()
    done = 0
    while done < rank and left.sum() > enough:
        s = int(rng.choice(len(left), p=left / left.sum()))
        rest = column(s) - R[:done, s] @ R[:done]
        if rest[s] > rounding * diag[s]:  # a smaller one is noise, and no direction
            R[done] = rest / np.sqrt(rest[s])
            left = (left - R[done] ** 2).clip(min=0)
            done += 1
        left[s] = 0
    return R[:done]


def lapack_cholesky(K: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray, int]:
    """Return L, the order p of the points and the rank, with K[p][:, p] = L L' up to rounding: by the largest pivots.

    Parameters
    ----------
    K
        Positive semidefinite, in float64.
    least
        What a pivot must be above.

    Examples
    --------
    >>> import numpy as np
    >>> L, order, rank = lapack_cholesky(np.array([[1.0, 2.0], [2.0, 4.0]]), 1e-12)
    >>> L.ravel(), order.tolist(), rank
    (array([2., 1.]), [1, 0], 1)
    """
    packed, order, rank, _ = lapack.dpstrf(K.T, tol=least, lower=1)
    if K.diagonal().max() <= least:  # which LAPACK does not ask of the first pivot
        rank = 0
    return np.tril(packed[:, :rank]), order - 1, rank


class Values(Protocol):
    """The kernel matrix of n points, as far as a factor needs it."""

    n: int

    def diagonal(self) -> np.ndarray:
        """Return k(x_i, x_i) in float64."""

    def block(self, rows: np.ndarray, cols: slice | np.ndarray, single: bool) -> np.ndarray:
        """Return a block, in float32 where that will do."""


class PivotedCholesky:
    r"""Rows R of a Cholesky factor with pivots S, a block at a time.

    .. math:: R^T R = K_{:S} K_{SS}^{-1} K_{S:}

    Candidates are drawn with the diagonal of K - R'R as probabilities. `grow` accepts each with the probability that
    those accepted before have left it: the pivots are distributed as if drawn one by one, at the speed of matrix
    products (Epperly, Tropp and Webber 2024; Chen, Epperly, Tropp and Webber 2023). `largest_pivots` takes the largest
    of them in turn, which is faster where almost every point that matters becomes a pivot anyway.

    Parameters
    ----------
    matrix
        K.
    most
        The largest rank of pivots.
    single
        Whether R is kept in float32.
    seed
        Of the candidates.
    spare
        Rows that `extend` may add.
    """

    def __init__(self, matrix: Values, most: int, single: bool = False, seed: int = 0, spare: int = 0) -> None:
        self.matrix, self.single = matrix, single
        self.dtype = np.dtype(np.float32 if single else np.float64)
        self.most = min(most, matrix.n)
        self._rows = np.empty((min(most + spare, matrix.n), matrix.n), self.dtype)  # not touched before its use
        self.rank = 0
        self.pivots = np.zeros(0, dtype=np.intp)  # S, in the order of the rows
        self._diagonal = matrix.diagonal().clip(min=0.0)
        self.left = self._diagonal.copy()  # the diagonal of K - R'R
        self._rng = np.random.default_rng(seed)
        self.exhausted = not self.left.any()
        self._share = 1.0

    @property
    def R(self) -> np.ndarray:
        """The rows so far."""
        return self._rows[: self.rank]

    @property
    def trace(self) -> float:
        """The trace of K - R'R: the sum of the eigenvalues that R leaves out."""
        return float(self.left.sum())

    @property
    def largest(self) -> float:
        """About the largest eigenvalue of K - R'R, as the last block of pivots showed it."""
        return max(self._share * self.trace, float(self.left.max()))

    @property
    def least_pivot(self) -> float:
        """What `largest_pivots` takes for rounding."""
        return _FEW_DIGITS * float(self._diagonal.max())

    def grow(self, block: int) -> int:
        """Draw a block of pivots and return how many were accepted."""
        total = self.left.sum()
        if self.exhausted or self.rank == self.most:
            self.exhausted = True
            return 0
        drawn = self._rng.choice(len(self.left), size=min(block, self.most - self.rank), p=self.left / total)
        accepted, L = self._accept(drawn)
        if len(accepted):
            self.append(accepted, L)
        if not len(accepted) or self.left.sum() <= _ROUNDING[self.dtype] * self._diagonal.sum():
            self.exhausted = True
        return len(accepted)

    def _accept(self, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pivots that are kept and the Cholesky factor of their block of K - R'R."""
        H, b = self._rest(drawn), len(drawn)
        if b > _ESTIMATE:
            # Points drawn in proportion to the diagonal show the eigenvalues of K - R'R, each too large by trace / b.
            root = 1.0 / np.sqrt(self.left[drawn])
            top = eigh(H * root * root[:, None], eigvals_only=True, subset_by_index=[b - 1, b - 1])
            self._share = max(float(top[0]) - 1.0, 0.1) / b
        chance = self._rng.random(b) * self.left[drawn]
        noise = np.maximum(chance, _ROUNDING[self.dtype] * self._diagonal[drawn])
        kept: list[int] = []
        L = np.zeros((b, b))
        for i in range(b):
            t = len(kept)
            rest = H[i, i] - L[i, :t] @ L[i, :t]
            if rest <= noise[i]:
                continue
            L[i:, t] = (H[i:, i] - L[i:, :t] @ L[i, :t]) / np.sqrt(rest)
            kept.append(i)
        return drawn[kept], L[np.ix_(kept, range(len(kept)))]

    def largest_pivots(self, block: int, floor: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the largest pivots among candidates, and the lower Cholesky factor of their block of K - R'R.

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
        L, order, rank = lapack_cholesky(self._rest(drawn), max(floor, self.least_pivot))
        return drawn[order[:rank]], L[:rank]

    def _rest(self, some: np.ndarray) -> np.ndarray:
        """Return the block of K - R'R between some points."""
        known = self.R[:, some].astype(np.float64, copy=False)
        return np.asarray(self.matrix.block(some, some, self.single).astype(np.float64) - known.T @ known)

    def append(self, pivots: np.ndarray, L: np.ndarray) -> None:
        """Add the rows of pivots, given the Cholesky factor of their block of K - R'R."""
        n, r, t = self.matrix.n, self.rank, len(pivots)
        values = self.matrix.block(pivots, slice(0, n), self.single)
        inverse = solve_triangular(L, np.eye(t), lower=True).astype(self.dtype)
        at_pivots = np.ascontiguousarray(self.R[:, pivots].T)
        new = self._rows[r : r + t]

        def part(cols: slice) -> None:
            rest = values[:, cols].astype(self.dtype, copy=False) - at_pivots @ self._rows[:r, cols]
            np.matmul(inverse, rest, out=new[:, cols])
            self.left[cols] -= np.einsum("ij,ij->j", new[:, cols], new[:, cols], dtype=np.float64)

        run(part, shares(n))
        self.left[pivots] = 0.0
        self.left.clip(min=0.0, out=self.left)
        self.rank = r + t
        self.pivots = np.concatenate([self.pivots, pivots])

    @property
    def room(self) -> int:
        """The number of rows that may still be added."""
        return len(self._rows) - self.rank

    def extend(self, rows: np.ndarray) -> None:
        """Add the rows of another low-rank part of K - R'R."""
        new = self._rows[self.rank : self.rank + len(rows)]
        new[:] = rows
        self.left -= np.einsum("ij,ij->j", new, new, dtype=np.float64)
        self.left.clip(min=0.0, out=self.left)
        self.rank += len(rows)

    def overwrite(self, rank: int, columns: Callable[[slice], np.ndarray]) -> None:
        """Put other rows in the place of R, with which R'R is about K, too.

        Parameters
        ----------
        rank
            Their number, at most `most`.
        columns
            From some points to their columns of R.
        """

        def part(share: slice) -> None:
            for i in range(share.start, share.stop, _COLUMNS):
                some = slice(i, min(i + _COLUMNS, share.stop))
                R = self._rows[:rank, some]
                R[:] = columns(some)
                self.left[some] = self._diagonal[some] - np.einsum("ij,ij->j", R, R, dtype=np.float64)

        run(part, shares(self.matrix.n))
        self.left.clip(min=0.0, out=self.left)
        self.rank, self.pivots, self.exhausted = rank, np.zeros(0, dtype=np.intp), True
