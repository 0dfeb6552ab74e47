"""Features with names in place of numbers: what maps of objects (strings, graphs) count, whatever they have seen.

A map of objects cannot number its features: the k-mers of new strings are not known when the first ones are read. It
names each by an integer below `NAMES` instead (the k-mer itself, packed, or 62 bits of a hash), and returns a sparse
matrix with that many columns. Two sets of points are compared after the names that occur in either have been numbered.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mercer import _core

NAMES = 2**62  # columns of a matrix whose columns are names
_NUMBERS = 2**31 - 1  # columns that can be numbered in the core


def bags(names: np.ndarray, starts: np.ndarray, values: np.ndarray | None = None) -> sparse.csr_array:
    """Return bags of named features as sparse rows, equal names of a row added up.

    Parameters
    ----------
    names
        Integers from 0 to `NAMES` - 1, one row after the other.
    starts
        Where each row begins, and the length of `names` at the end.
    values
        What each occurrence counts; None for 1.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.points.sets.named import bags
    >>> rows = bags(np.array([7, 9, 7]), np.array([0, 3, 3]))
    >>> rows.indices, rows.data, rows.indptr
    (array([7, 9]), array([2., 1.]), array([0, 2, 2]))
    """
    values = np.ones(len(names)) if values is None else np.asarray(values, dtype=np.float64)
    rows = sparse.csr_array(
        (values, np.array(names, np.int64), np.array(starts, np.int64)), shape=(len(starts) - 1, NAMES)
    )
    rows.sum_duplicates()
    return rows


def is_named(vectors: Any) -> bool:
    """Return whether the columns of a matrix are names."""
    return sparse.issparse(vectors) and len(vectors.shape) == 2 and vectors.shape[1] > _NUMBERS


def numbered(*matrices: Any) -> list[sparse.csr_array]:
    """Return matrices of named features with the same columns in the same order: one for each name that occurs.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.points.sets.named import bags, numbered
    >>> a, b = numbered(bags(np.array([7, 9]), np.array([0, 2])), bags(np.array([9, 5]), np.array([0, 2])))
    >>> a.toarray(), b.toarray()
    (array([[0., 1., 1.]]), array([[1., 0., 1.]]))
    """
    names = np.concatenate([m.indices for m in matrices])
    columns = np.empty(len(names), dtype=np.int32)
    width = max(1, _core.rank_names(names, columns))
    parts = np.split(columns, np.cumsum([len(m.indices) for m in matrices])[:-1])
    return [
        sparse.csr_array((m.data, part, m.indptr), shape=(m.shape[0], width))
        for m, part in zip(matrices, parts, strict=True)
    ]
