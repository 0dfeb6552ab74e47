"""Points of any container as the rows of one matrix of finite numbers, or the reason why they are none."""

from __future__ import annotations

import math
from typing import Any

import array_api_compat
import numpy as np
from scipy import sparse

from mercer import _core

# A sparse matrix this dense, or this small, is faster compared as an ordinary one.
_DENSE_SHARE = 0.02
_DENSE_BYTES = 256 * 2**20


class NoMatrix(ValueError):
    """Points that are no rows of one matrix, though they may be numbers: a flat list, rows of different lengths."""


def is_foreign(data: Any) -> bool:
    """Return whether `data` is an array of a library other than NumPy and SciPy."""
    return (
        not isinstance(data, np.ndarray | list | tuple)
        and array_api_compat.is_array_api_obj(data)
        and not array_api_compat.is_numpy_array(data)
        and not sparse.issparse(data)
    )


def as_vectors(data: Any, name: str) -> Any:
    """Return points as rows of a finite floating-point matrix (NumPy, CSR or another library's), or say why not."""
    if type(data) is np.ndarray and data.ndim == 2 and data.dtype in (np.float64, np.float32):
        matrix = np.ascontiguousarray(data)
    elif is_foreign(data):
        return _foreign_vectors(data, name)
    elif sparse.issparse(data):
        return _sparse_vectors(data, name)
    else:
        matrix = _convert(data, name)
    if matrix.shape[1] == 0:
        raise ValueError(f"{name} has 0 columns; at least one feature is needed.")
    if not matrix.flags.aligned:  # a view into a file or a record
        matrix = matrix.copy()
    if not math.isfinite(_core.extent(matrix)):
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise ValueError(_not_finite(name, matrix[row, column], f"row {row}, column {column}"))
    return matrix


def _not_finite(name: str, value: Any, where: str) -> str:
    what = "NaN" if value != value else "an infinite value"
    return (
        f"{name} contains {what} at {where}; kernels compare finite numbers: impute or drop it "
        "(sklearn.impute.SimpleImputer)."
    )


def _convert(data: Any, name: str) -> np.ndarray:
    """Turn tables, lists and arrays of other types into a floating-point matrix, or say why not."""
    if hasattr(data, "columns"):
        data = _table_values(data, name)
    if np.ma.is_masked(data):
        where = ", ".join(map(str, np.argwhere(data.mask)[0]))
        raise ValueError(f"{name} is masked at ({where}); kernels compare finite numbers: impute or drop it.")
    try:
        matrix = np.asarray(data)
    except ValueError:
        raise NoMatrix(
            f"{name} is ragged: its rows have different lengths; a vector kernel needs the same number of "
            "features in each."
        ) from None
    if matrix.dtype.kind == "O":
        try:
            matrix = matrix.astype(np.float64)
        except (TypeError, ValueError):
            matrix = np.asarray(matrix, dtype=object)
    if matrix.dtype.kind not in "fiub" and matrix.size:
        example = matrix.flat[0]
        example = example.item() if hasattr(example, "item") else example
        raise TypeError(
            f"{name} is not numeric (it holds {type(example).__name__} {example!r:.60}); this kernel "
            "compares vectors of numbers. "
            "Encode it (sklearn.preprocessing.OneHotEncoder), choose the numeric columns with kernel.on(columns), "
            "or use a kernel on objects such as FromFunction."
        )
    if matrix.ndim != 2:
        raise NoMatrix(
            f"{name} must be a matrix with one row per point; its shape is {matrix.shape}. "
            "Use X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one point."
        )
    target = np.float32 if matrix.dtype.type in (np.float32, np.float16) else np.float64
    return np.ascontiguousarray(matrix, dtype=target)


def _table_values(table: Any, name: str) -> Any:
    ordered = levels_of(table)
    values = None if ordered else table.to_numpy()
    if values is not None and values.dtype.kind != "O":
        return values
    numbers = []
    for column in dict.fromkeys(table.columns):
        series = _ranks(table[column]) if column in ordered else np.asarray(table[column])
        if series.dtype.kind not in "fiub":
            example = series[0].item() if isinstance(series[0], np.generic) else series[0]
            raise TypeError(
                f"column {column!r} of {name} is not numeric (it holds {example!r:.60}); encode it, or choose the "
                "numeric columns with kernel.on(columns); an ordered category is compared by its ranks."
            )
        numbers.append(series)
    return np.column_stack(numbers)


def levels_of(table: Any) -> dict[Any, tuple[Any, ...]]:
    """Return the levels, in order, of the columns of a table that are ordered categories; of other data nothing.

    Examples
    --------
    >>> import pandas as pd
    >>> levels_of(pd.DataFrame({"size": pd.Categorical(["L", "S"], ["S", "M", "L"], ordered=True), "age": [3, 4]}))
    {'size': ('S', 'M', 'L')}
    """
    if not hasattr(table, "columns") or not hasattr(table, "dtypes"):
        return {}
    levels = {}
    for column, kind in zip(table.columns, table.dtypes, strict=True):
        if getattr(kind, "ordered", False) or type(kind).__name__ == "Enum":  # of pandas, of polars
            levels[column] = tuple(kind.categories)
    return levels


def _ranks(series: Any) -> np.ndarray:
    """Return the places of the cells of an ordered category among its levels, NaN where one is missing."""
    if hasattr(series, "to_physical"):
        return np.asarray(series.to_physical().to_numpy(), dtype=np.float64)
    codes = np.asarray(series.cat.codes, dtype=np.float64)
    return np.where(codes < 0, np.nan, codes)


def _sparse_vectors(data: Any, name: str) -> Any:
    if len(data.shape) != 2:
        raise NoMatrix(f"{name} must be a matrix with one row per point; its shape is {data.shape}.")
    csr = sparse.csr_array(data)
    if csr.dtype not in (np.float32, np.float64):
        csr = csr.astype(np.float64)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    bad = ~np.isfinite(csr.data)
    if bad.any():
        at = int(np.argmax(bad))
        row = int(np.searchsorted(csr.indptr, at, side="right")) - 1
        raise ValueError(_not_finite(name, csr.data[at], f"row {row}, column {csr.indices[at]}"))
    n, d = csr.shape
    if d == 0:
        raise ValueError(f"{name} has 0 columns; at least one feature is needed.")
    if csr.nnz >= _DENSE_SHARE * n * d and n * d * csr.dtype.itemsize <= _DENSE_BYTES:
        return csr.toarray()
    return csr


def _foreign_vectors(data: Any, name: str) -> Any:
    xp = array_api_compat.array_namespace(data)
    if data.ndim != 2:
        raise NoMatrix(f"{name} must be a matrix with one row per point; its shape is {tuple(data.shape)}.")
    if not xp.isdtype(data.dtype, "real floating"):
        data = xp.astype(data, xp.float64)
    if data.shape[1] == 0:
        raise ValueError(f"{name} has 0 columns; at least one feature is needed.")
    if not bool(xp.all(xp.isfinite(data))):
        raise ValueError(
            f"{name} contains NaN or infinite values; kernels compare finite numbers: impute or drop them."
        )
    return data
