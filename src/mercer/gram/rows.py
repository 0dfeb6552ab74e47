"""Products of tall matrices, their rows shared among the cores."""

from __future__ import annotations

import numpy as np

from mercer.machine.threads import run, shares

_CHUNK = 4096  # rows that are converted to float64 at a time


def times(A: np.ndarray, M: np.ndarray) -> np.ndarray:
    """Return A M in float64, of a tall A in whichever precision it has.

    Examples
    --------
    >>> times(np.ones((3, 2)), np.eye(2))[0]
    array([1., 1.])
    """
    out = np.empty((len(A), M.shape[1]))
    M = M.astype(A.dtype, copy=False)

    def part(rows: slice) -> None:
        out[rows] = A[rows] @ M

    run(part, shares(len(A)))
    return out


def inner(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return A' B in float64, in the precision of A within thousands of rows and in float64 across.

    Examples
    --------
    >>> inner(np.ones((3, 1)), np.ones((3, 2)))
    array([[3., 3.]])
    """

    def part(rows: slice) -> np.ndarray:
        total = np.zeros((A.shape[1], B.shape[1]))
        for i in range(rows.start, rows.stop, _CHUNK):
            some = slice(i, min(i + _CHUNK, rows.stop))
            total += A[some].T @ B[some].astype(A.dtype, copy=False)
        return total

    return np.asarray(np.sum(run(part, shares(len(A))), axis=0))


def square(A: np.ndarray) -> np.ndarray:
    """Return A' A with float64 products, of A in whichever precision it has."""

    def part(rows: slice) -> np.ndarray:
        total = np.zeros((A.shape[1], A.shape[1]))
        for i in range(rows.start, rows.stop, _CHUNK):
            some = A[i : min(i + _CHUNK, rows.stop)].astype(np.float64, copy=False)
            total += some.T @ some
        return total

    return np.asarray(np.sum(run(part, shares(len(A))), axis=0))
