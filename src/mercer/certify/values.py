"""Kernel values in float64 by array operations alone: no line of the compiled core takes part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from mercer.kernels import Kernel
from mercer.points import Block, Diagonal, PointMap, Points

_TILE = 64 * 2**20  # bytes of kernel values held at a time
_COLUMNS = 1024  # features of a sparse matrix that are expanded at a time


class _Plain(Block):
    """Every left point against every right point, with statistics by NumPy and SciPy in float64."""

    def through(self, map: PointMap) -> _Plain:
        if map not in self._memo:
            self._memo[map] = _Plain(self._left.through(map), self._right.through(map))
        return self._memo[map]

    def _compute(self, kind: str, scale: Any) -> Any:
        left, right = self._left, self._right
        if left.named and right.named:
            left, right = left.numbered(right)
        x, z = left.vectors, right.vectors
        if sparse.issparse(x) or sparse.issparse(z):
            return _sparse(kind, sparse.csr_array(x, dtype=np.float64), sparse.csr_array(z, dtype=np.float64), scale)
        x, z = np.asarray(x, dtype=np.float64), np.asarray(z, dtype=np.float64)
        return _dense(kind, x, z, np.broadcast_to(np.asarray(scale, dtype=np.float64), (x.shape[1],)))


def _dense(kind: str, x: np.ndarray, z: np.ndarray, scale: np.ndarray) -> np.ndarray:
    if kind == "dot":
        return x @ z.T
    if kind == "sqdist":
        return cdist(x / scale, z / scale, "sqeuclidean")
    if kind == "l1":
        return cdist(x / scale, z / scale, "cityblock")
    if kind == "sqsum":
        return cdist(x, -z, "sqeuclidean")
    total = np.zeros((len(x), len(z)))
    for a, b in zip(x.T, z.T, strict=True):
        if kind == "minimum":
            total += np.minimum(a[:, None], b)
        else:
            bottom = a[:, None] + b
            total += np.divide((a[:, None] - b) ** 2, bottom, out=np.zeros_like(bottom), where=bottom > 0)
    return total


def _sparse(kind: str, x: Any, z: Any, scale: Any) -> np.ndarray:
    if kind == "dot":
        return (x @ z.T).toarray()
    d = x.shape[1]
    each = np.broadcast_to(np.asarray(scale, dtype=np.float64), (d,))
    if kind in ("sqdist", "sqsum"):  # by norms: visiting each coordinate of each pair would take days
        x, z = x / each, z / each
        square = [np.asarray(v.multiply(v).sum(axis=1)).ravel() for v in (x, z)]
        sign = -2 if kind == "sqdist" else 2
        return np.maximum(square[0][:, None] + square[1] + sign * (x @ z.T).toarray(), 0.0)
    x, z = x.tocsc(), z.tocsc()
    total = np.zeros((x.shape[0], z.shape[0]))
    for j in range(0, d, _COLUMNS):
        part = slice(j, j + _COLUMNS)
        total += _dense(kind, x[:, part].toarray(), z[:, part].toarray(), each[part])
    return total


def _in_double(X: Any) -> Any:
    """Return the same points with float32 numbers as float64; whatever is not numbers stays as it is."""
    if isinstance(X, Points):
        X = X.data
    if hasattr(X, "detach"):  # a torch tensor
        X = X.detach().cpu().numpy()
    if isinstance(X, np.ndarray) or sparse.issparse(X):
        return X.astype(np.float64) if X.dtype.kind == "f" and X.dtype != np.float64 else X
    if hasattr(X, "select_dtypes"):
        narrow = X.select_dtypes(["float32", "float16"]).columns
        return X.astype(dict.fromkeys(narrow, np.float64)) if len(narrow) else X
    return X


def tiles(kernel: Kernel, X: Any, columns: np.ndarray | None = None) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield the rows of the kernel matrix of X a tile at a time, against some columns or all, in float64.

    Parameters
    ----------
    kernel
        A kernel; parameters that wait for data are resolved on X as it is given.
    X
        Any points that the kernel compares.
    columns
        Indices of the points on the right; None for all.
    """
    kernel = kernel.resolve(X)
    points = Points(_in_double(X))
    right = points if columns is None else points.take(columns)
    height = max(1, _TILE // (8 * max(1, len(right))))
    for start in range(0, len(points), height):
        rows = slice(start, min(start + height, len(points)))
        block = _Plain(points.take(rows), right)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # checked on the next lines
            values = np.broadcast_to(np.asarray(kernel.of(block), dtype=np.float64), block.shape)
        if not np.isfinite(values).all():
            i, j = np.argwhere(~np.isfinite(values))[0]
            j = j if columns is None else columns[j]
            raise FloatingPointError(
                f"the kernel value of points {start + i} and {j} is not finite in float64; scale the features "
                "(sklearn.preprocessing.StandardScaler)."
            )
        yield rows, values


def product(kernel: Kernel, X: Any, coefficients: np.ndarray) -> np.ndarray:
    """Return K b for the kernel matrix of X in float64, from the columns whose coefficient is not zero.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> product(Linear(), [[1.0], [2.0], [3.0]], np.array([1.0, 0.0, -1.0]))
    array([-2., -4., -6.])
    """
    b = np.asarray(coefficients, dtype=np.float64)
    used = np.flatnonzero(b)
    out = np.zeros(b.shape)
    if len(used):
        for rows, values in tiles(kernel, X, used):
            out[rows] = values @ b[used]
    return out


def diagonal(kernel: Kernel, X: Any) -> np.ndarray:
    """Return k(x_i, x_i) in float64."""
    kernel = kernel.resolve(X)
    points = Points(_in_double(X))
    return np.broadcast_to(np.asarray(kernel.of(Diagonal(points)), dtype=np.float64), (len(points),))
