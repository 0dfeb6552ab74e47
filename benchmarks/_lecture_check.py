"""Certificates of `lecture.py` from the coefficients alone: float64, NumPy, no line shared with the solvers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from threadpoolctl import threadpool_limits

ROWS, COLUMNS = 512, 4096


def values(X: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Return K A for k(x, z) = <x, z>^8: a product by BLAS, squared three times, tile by tile on two threads."""
    out = np.zeros(A.shape)

    def part(start: int) -> None:
        rows = X[start : start + ROWS]
        total = np.zeros((len(rows), A.shape[1]))
        for j in range(0, len(X), COLUMNS):
            tile = rows @ X[j : j + COLUMNS].T
            for _ in range(3):
                np.multiply(tile, tile, out=tile)
            total += tile @ A[j : j + COLUMNS]
        out[start : start + ROWS] = total

    with threadpool_limits(1), ThreadPoolExecutor(2) as pool:
        list(pool.map(part, range(0, len(X), ROWS)))
    return out


def ridge(a: np.ndarray, f: np.ndarray, y: np.ndarray, alpha: float) -> tuple[float, float]:
    """Return primal and dual of sum (y - f)^2 / 2 + alpha |f|^2 / 2; the dual at u = -alpha a."""
    square = alpha * float(a @ f)
    u = -alpha * a
    return 0.5 * float(((y - f) ** 2).sum() + square), -float((0.5 * u**2 + u * y).sum()) - 0.5 * square


def squared_hinge(
    a: np.ndarray, f: np.ndarray, c: np.ndarray, g: np.ndarray, y: np.ndarray, alpha: float
) -> tuple[float, float]:
    """Return the primal of sum max(0, 1 - y f)^2 + alpha |f|^2 / 2 at f = K a, and the dual at u = -alpha c, g = K c.

    No y_i c_i may be negative.
    """
    s = -alpha * y * c  # y u, not above 0
    primal = float((np.maximum(0.0, 1.0 - y * f) ** 2).sum()) + 0.5 * alpha * float(a @ f)
    return primal, -float((s + s**2 / 4).sum()) - 0.5 * alpha * float(c @ g)
