"""Centres of functions, in whatever container they come: joined, chosen, and recognised where they are equal."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import array_api_compat
import numpy as np
from scipy import sparse

from mercer.points import Points
from mercer.points.sets.points import is_foreign


def size_of(points: Any) -> int:
    """Return how many centres there are; there may be none."""
    return int(points.shape[0]) if hasattr(points, "shape") else len(points)


def taken(points: Any, rows: np.ndarray) -> Any:
    """Return some of the centres, in their own kind of container."""
    if not size_of(points) or (len(rows) == size_of(points) and np.array_equal(rows, np.arange(len(rows)))):
        return points
    return Points(points).take(rows).data


def joined(a: Any, b: Any) -> Any:
    """Return all centres in one container of the kind of the first."""
    if not size_of(a) or not size_of(b):
        return a if size_of(a) else b
    if is_foreign(a) and is_foreign(b):
        return array_api_compat.array_namespace(a, b).concat([a, b])
    if hasattr(a, "columns") and hasattr(b, "columns"):
        return _stacked_tables(a, b)
    if sparse.issparse(a) or sparse.issparse(b):
        return sparse.vstack([sparse.csr_array(a), sparse.csr_array(b)], format="csr")
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.concatenate([np.asarray(a), np.asarray(b)])
    return [*a, *b]


def _stacked_tables(a: Any, b: Any) -> Any:
    if hasattr(a, "vstack"):  # polars
        return a.vstack(b)
    import pandas as pd

    return pd.concat([a, b], ignore_index=True)


def doubled(points: Any) -> Any:
    """Return the centres with float32 numbers as float64; whatever else stays as it is.

    Norms are differences of large numbers, which float32 kernel values would leave without digits.
    """
    if isinstance(points, np.ndarray) or sparse.issparse(points):
        return points.astype(np.float64) if points.dtype in (np.float32, np.float16) else points
    if hasattr(points, "select_dtypes"):
        small = points.select_dtypes(["float32", "float16"]).columns
        return points.astype(dict.fromkeys(small, np.float64)) if len(small) else points
    return points


def plain(points: Any) -> Any:
    """Return tensors as NumPy arrays, and everything else as it is."""
    if not is_foreign(points):
        return points
    return np.asarray(points.detach().cpu() if hasattr(points, "detach") else points)


def like(array: np.ndarray, template: Any) -> Any:
    """Return a NumPy array as a tensor where the template is one, on its device and in its precision."""
    if not is_foreign(template):
        return array
    xp = array_api_compat.array_namespace(template)
    return xp.asarray(np.array(array), dtype=template.dtype, device=template.device)


def first_equal(points: Any) -> np.ndarray:
    """Return for each centre the number of the first one that is equal to it.

    Examples
    --------
    >>> first_equal(["a", "b", "a"])
    array([0, 1, 0])
    """
    if sparse.issparse(points):
        return _first_of(_sparse_rows(points))
    if hasattr(points, "columns"):
        return _first_of(map(tuple, points.rows() if hasattr(points, "rows") else points.itertuples(index=False)))
    array = plain(points)
    if not isinstance(array, np.ndarray):
        given = Points(array)
        array = given.vectors if given.numeric else array
    if isinstance(array, np.ndarray) and array.dtype.kind in "fiub":
        rows = np.ascontiguousarray(array.reshape(len(array), -1) + np.zeros(1, array.dtype))  # -0 is 0
        keys = rows[:, 0] if rows.shape[1] == 1 else rows.view(f"V{rows.shape[1] * rows.itemsize}").ravel()
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
        return np.asarray(first[group])
    return _first_of((type(x), x) for x in array)


def _sparse_rows(points: Any) -> Iterable[Hashable]:
    csr = sparse.csr_array(points, copy=True)
    csr.sum_duplicates()
    csr.eliminate_zeros()
    for start, stop in zip(csr.indptr[:-1], csr.indptr[1:], strict=True):
        yield csr.indices[start:stop].tobytes(), csr.data[start:stop].tobytes()


def _first_of(keys: Iterable[Hashable]) -> np.ndarray:
    seen: dict[Hashable, int] = {}
    first = []
    for i, key in enumerate(keys):
        try:
            first.append(seen.setdefault(key, i))
        except TypeError:  # not hashable: equal to itself only
            first.append(i)
    return np.array(first, dtype=np.intp)


def merged(points: Any, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which centres are left when equal ones are made one and those without a coefficient dropped.

    Parameters
    ----------
    points
        The centres.
    coefficients
        Their coefficients, (n, k).

    Returns
    -------
    rows, coefficients
        The centres that are left, in order, and their coefficients: the function is the same.

    Examples
    --------
    >>> rows, a = merged(["a", "b", "a", "c"], np.array([[1.0], [0.0], [2.0], [4.0]]))
    >>> rows.tolist(), a.ravel().tolist()
    ([0, 3], [3.0, 4.0])
    """
    first = first_equal(points)
    total = np.zeros_like(coefficients)
    np.add.at(total, first, coefficients)
    rows = np.flatnonzero(total.any(axis=1))
    return rows, total[rows]
