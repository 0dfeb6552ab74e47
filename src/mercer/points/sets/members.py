"""Points that are sets of hashable objects, compared by the elements they share."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from scipy import sparse

from mercer.points.sets.points import Points


def sizes(points: Points) -> np.ndarray:
    """Return the number of elements of each set."""
    return np.array([len(_as_set(points, i)) for i in range(len(points))], dtype=np.float64)


def common(left: Points, right: Points) -> np.ndarray:
    """Return the number of elements that each set on the left shares with each on the right.

    Elements are numbered for these two sets of points alone. Each set is then a row of ones, and the numbers of common
    elements are products of sparse matrices.

    Examples
    --------
    >>> common(Points([{1, 2, 3}, {4}]), Points([{2, 3, 9}]))
    array([[2.],
           [0.]])
    """
    numbers: dict[Hashable, int] = {}
    x, z = _numbered(left, numbers), _numbered(right, numbers)
    return np.asarray((_ones(x, len(numbers)) @ _ones(z, len(numbers)).T).toarray())


def _numbered(points: Points, numbers: dict[Hashable, int]) -> list[list[int]]:
    return [[numbers.setdefault(e, len(numbers)) for e in _as_set(points, i)] for i in range(len(points))]


def _ones(rows: list[list[int]], width: int) -> sparse.csr_array:
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    columns = np.array([column for row in rows for column in row], dtype=np.intp)
    return sparse.csr_array((np.ones(len(columns)), columns, starts), shape=(len(rows), max(1, width)))


def _as_set(points: Points, i: int) -> set[Hashable] | frozenset[Hashable]:
    item = points.items[i]
    if not isinstance(item, set | frozenset):
        raise TypeError(
            f"{points.name}[{points.place(i)}] is a {type(item).__name__}, {item!r:.60}, among points that are sets; "
            "all of them must be: pass set(x)."
        )
    return item
