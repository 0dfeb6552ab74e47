"""The rows of a linear model as its solvers see them: centred, scaled, with a column for the offset, not copied."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import ThreadpoolController

from mercer.machine.threads import cores, run

_STRIP_BYTES = 2**21  # of a strip of rows: what a core's second-level cache holds
_THREADED_NUMBERS = 2**22  # of a matrix from which on several cores are worth starting
_X_LIMIT = 1e100  # of X, whose square times many rows and a large C is still finite in float64
COPIED_NUMBERS = 2**17  # of a matrix up to which a copy costs next to nothing
_SCALE_ROWS = 4096  # rows from which the centre and the scales of the columns are taken


class Rows:
    """The matrix A = [(X - centre) / scale, 1] of a linear model f = A v, made strip by strip from X as it is.

    The offset is free, so that any centre gives the same model; with the scales s the penalty |w|²/2 becomes
    sum p_j v_j² / 2 with p = 1/s², and p = 0 for the offset. Both only serve the arithmetic: they keep columns of very
    different size, or far from zero, from spoiling the Newton systems.

    Parameters
    ----------
    X
        A float32 or float64 array, or a CSR matrix.
    centre, scale
        One number per column.
    ones
        Whether A has the last column.
    penalty
        p, one number per column of A.

    Examples
    --------
    >>> rows = Rows.of(np.array([[0.0], [2.0]]), intercept=True)
    >>> v = np.array([3.0, 1.0])
    >>> w, b = rows.model(v)
    >>> np.allclose(rows.times(v), np.array([[0.0], [2.0]]) @ w + b)
    True
    """

    def __init__(self, X: Any, centre: np.ndarray, scale: np.ndarray, ones: bool, penalty: np.ndarray) -> None:
        self.X = X
        self.centre = centre
        self.scale = scale
        self.ones = ones
        self.penalty = penalty
        self.ready = not ones and not centre.any() and bool((scale == 1).all())
        self.shape = (X.shape[0], len(penalty))
        self.offset = bool(len(penalty) and penalty[-1] == 0)
        self.penalised = len(penalty) - self.offset  # the columns before the offset's

    @classmethod
    def of(cls, X: Any, intercept: bool) -> Rows:
        """Return the rows of X, with centre and scales from a sample of them."""
        n, d = X.shape
        sample = X if n <= _SCALE_ROWS else X[np.linspace(0, n - 1, _SCALE_ROWS).astype(int)]
        with np.errstate(over="ignore", under="ignore"):
            if sparse.issparse(sample):
                centre = np.asarray(sample.mean(axis=0, dtype=np.float64)).ravel()
                peak = np.asarray(abs(sample).max(axis=0).todense(), dtype=np.float64).ravel() if n else np.zeros(d)
            else:
                centre = sample.mean(axis=0, dtype=np.float64)
                peak = np.abs(sample - centre if intercept else sample).max(axis=0, initial=0.0).astype(np.float64)
            if not intercept:
                centre = np.zeros(d)
            # What is left of a constant column after centring is rounding, not a scale.
            peak[peak <= 1e-14 * np.abs(centre)] = 0
            if not (peak < _X_LIMIT).all():
                j = int(np.argmax(~(peak < _X_LIMIT)))
                raise ValueError(
                    f"column {j} of X has values beyond {_X_LIMIT:g}, whose squares float64 cannot hold; divide it by "
                    "a constant, or scale all columns (sklearn.preprocessing.StandardScaler)."
                )
            scale = np.where(peak > 0, np.exp2(np.round(np.log2(np.where(peak > 0, peak, 1.0)))), 1.0)
            scale = np.maximum(scale, 1 / _X_LIMIT)
        penalty = np.append(scale**-2.0, 0.0) if intercept else scale**-2.0
        return cls(X, centre, scale, intercept, penalty)

    def model(self, v: np.ndarray) -> tuple[np.ndarray, float]:
        """Return w and b of f(x) = w.x + b."""
        w = v[: len(self.scale)] / self.scale
        return w, float(v[-1] - self.centre @ w) if self.ones else 0.0

    def vector(self, w: np.ndarray, b: float) -> np.ndarray:
        """Return the v that means w and b: the inverse of `model`."""
        v = w * self.scale
        return np.append(v, b + self.centre @ w) if self.ones else v

    def implied(self, pull: np.ndarray) -> np.ndarray:
        """Return the v of P v = pull, with 0 for the offset."""
        v = np.zeros_like(pull)
        v[: self.penalised] = (pull[: self.penalised].T / self.penalty[: self.penalised]).T
        return v

    def square(self, v: np.ndarray) -> float:
        """Return |w|² = v'Pv."""
        return float(self.penalty @ (v * v))

    def dual_square(self, pull: np.ndarray) -> float:
        """Return |w|² of the w that a pull implies."""
        k = self.penalised
        return float((pull[:k] * pull[:k] / self.penalty[:k]).sum())

    def times(self, v: np.ndarray) -> np.ndarray:
        """Return A v for one vector, or for several in columns."""
        if not v.any():
            return np.zeros((self.shape[0], *v.shape[1:]))
        if self.ready and self.X.dtype == np.float64:
            return np.asarray(self.X @ v)
        w = (v[: len(self.scale)].T / self.scale).T
        shift = v[-1] - self.centre @ w if self.ones else 0.0
        if sparse.issparse(self.X):
            f = np.asarray(self.X @ w, dtype=np.float64)
        else:
            f = np.empty((self.shape[0], *v.shape[1:]))

            def part(share: slice) -> None:
                for s in self._strips(share):
                    np.dot(self.X[s].astype(np.float64, copy=False), w, out=f[s])

            run(part, self._shares())
        f += shift
        return f

    def transposed(self, r: np.ndarray) -> np.ndarray:
        """Return A' r for one vector, or for several in columns."""
        if self.ready and self.X.dtype == np.float64:
            return np.asarray(self.X.T @ r)
        if sparse.issparse(self.X):
            t = np.asarray(self.X.T @ r, dtype=np.float64).T
        else:
            nothing = np.zeros((*r.shape[1:], len(self.scale)))

            def part(share: slice) -> np.ndarray:
                t = nothing.copy()
                for s in self._strips(share):
                    t += (self.X[s].astype(np.float64, copy=False).T @ r[s]).T
                return t

            t = sum(run(part, self._shares()), nothing)
        return self.of_sums(t, r.sum(axis=0))

    def of_sums(self, sums: np.ndarray, total: Any) -> np.ndarray:
        """Return A' r from X' r, its transpose for several columns, and the sum of r."""
        t = ((sums - np.multiply.outer(total, self.centre)) / self.scale).T
        return np.concatenate([t, total[None]]) if self.ones else t

    def gram(self, weight: np.ndarray, index: np.ndarray | None = None) -> np.ndarray:
        """Return A' diag(weight) A for weights of one sign, over all rows or those of `index`, strip by strip."""
        if self.ready and not sparse.issparse(self.X) and index is None and self.X.nbytes <= _STRIP_BYTES:
            return self.X.T @ (self.X * weight[:, None])
        root = np.sqrt(np.abs(weight))

        def part(share: slice) -> np.ndarray:
            total = np.zeros((self.shape[1],) * 2)
            for s in self._strips(share):
                block = self._block(s if index is None else index[s]) * root[s, None]
                total += block.T @ block
            return total

        total = sum(run(part, self._shares(len(weight))), np.zeros((self.shape[1],) * 2))
        return -total if weight.size and weight.min() < 0 else total

    def diagonal(self, weight: np.ndarray) -> np.ndarray:
        """Return the diagonal of A' diag(weight) A."""
        if sparse.issparse(self.X):
            X = self.X
            square = np.asarray(sparse.csr_matrix((X.data.astype(float) ** 2, X.indices, X.indptr), X.shape).T @ weight)
            total = weight.sum()
            t = (square - 2 * self.centre * np.asarray(X.T @ weight) + self.centre**2 * total) / self.scale**2
            t = np.maximum(t, 0.0)
            return np.append(t, total) if self.ones else t
        t = np.zeros(self.shape[1])
        for s in self._strips():
            block = self._block(s)
            t += weight[s] @ (block * block)
        return t

    def mean_square(self) -> float:
        """Return the mean of |x - centre|² over a sample of the rows; 1 if it vanishes."""
        n = self.shape[0]
        part = self if n <= _SCALE_ROWS else self.take(np.linspace(0, n - 1, _SCALE_ROWS).astype(int))
        square = part.diagonal(np.ones(part.shape[0]))
        k = self.penalised
        return float((square[:k] / self.penalty[:k]).sum()) / max(1, part.shape[0]) or 1.0

    def kernel(self) -> np.ndarray:
        """Return the inner products of all pairs of rows in the metric of the penalty, the offset's column left out."""
        if sparse.issparse(self.X):  # p scale² = 1: the metric is that of x - centre
            K = np.asarray((self.X @ self.X.T).todense(), dtype=np.float64)
            along = np.asarray(self.X @ self.centre)
            return K - along - along[:, None] + self.centre @ self.centre
        block = self._block(slice(None))
        block = block[:, : self.penalised] / np.sqrt(self.penalty[: self.penalised])
        return block @ block.T

    def matrix(self) -> np.ndarray:
        """Return A."""
        return self._block(slice(None))

    def take(self, index: np.ndarray) -> Rows:
        """Return some of the rows, as a float64 array of their own (a CSR matrix if X is sparse and wide)."""
        if sparse.issparse(self.X) and self.shape[1] > 2000:
            return Rows(self.X[index], self.centre, self.scale, self.ones, self.penalty)
        p = self.shape[1]
        if self.ready and not sparse.issparse(self.X):
            return Rows(self.X[index], self.centre, self.scale, False, self.penalty)
        return Rows(self._block(index), np.zeros(p), np.ones(p), False, self.penalty)

    def _block(self, rows: Any) -> np.ndarray:
        if self.ready and not sparse.issparse(self.X):
            return self.X[rows]
        X = self.X[rows].toarray() if sparse.issparse(self.X) else self.X[rows]
        block = np.empty((X.shape[0], self.shape[1]))
        inner = block[:, : len(self.scale)]
        np.subtract(X, self.centre, out=inner)
        inner /= self.scale
        if self.ones:
            block[:, -1] = 1.0
        return block

    def _shares(self, n: int | None = None) -> list[slice]:
        """Return the rows each core takes; one share where there are few."""
        n = self.shape[0] if n is None else n
        parts = cores() if n * self.shape[1] >= _THREADED_NUMBERS else 1
        cuts = [n * i // parts for i in range(parts + 1)]
        return [slice(a, b) for a, b in pairwise(cuts)]

    def _strips(self, share: slice | None = None) -> Iterator[slice]:
        share = share or slice(0, self.shape[0])
        step = max(
            1024, _STRIP_BYTES // (8 * max(1, self.shape[1]))
        )  # of wide rows enough to pay for adding up their matrices
        return (slice(i, min(i + step, share.stop)) for i in range(share.start, share.stop, step))


def single_threaded(rows: Rows) -> AbstractContextManager[Any]:
    """Hold BLAS to one thread while a problem that is not small is solved.

    NumPy and SciPy each bring their own BLAS, whose threads wait for one another by spinning: on a busy machine of two
    cores that made fits three to ten times as long. `Rows` uses the cores for what is long.
    """
    small = rows.shape[0] * rows.shape[1] <= COPIED_NUMBERS
    return nullcontext() if small else _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    """Return what knows the libraries; finding them takes longer than a small fit."""
    return ThreadpoolController()
