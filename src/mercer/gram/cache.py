"""Rows of a kernel matrix, kept in one slab of memory and replaced least recently used first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np


class RowCache:
    """A fixed number of rows of equal length.

    Parameters
    ----------
    capacity
        How many rows are kept.
    width, dtype
        The length and type of a row.
    compute
        Called with an array of row numbers that are not at hand; returns those rows.

    Examples
    --------
    >>> import numpy as np
    >>> cache = RowCache(2, 3, np.float64, lambda i: np.outer(i, np.ones(3)))
    >>> cache.rows(np.array([4, 5]))[:, 0], cache.hits
    (array([4., 5.]), 0)
    >>> cache.rows(np.array([5]))[:, 0], cache.hits
    (array([5.]), 1)
    """

    def __init__(self, capacity: int, width: int, dtype: Any, compute: Callable[[np.ndarray], np.ndarray]) -> None:
        self.slab = np.empty((capacity, width), dtype)
        self.hits = 0
        self._compute = compute
        self._slots: OrderedDict[int, int] = OrderedDict()

    def slots(self, index: np.ndarray) -> np.ndarray:
        """Return where in `slab` the given rows are, computing those that are missing.

        At most `capacity` distinct rows can be asked for at once; all of them are then in place together.
        """
        wanted = dict.fromkeys(int(i) for i in index)
        if len(wanted) > len(self.slab):
            raise ValueError(f"{len(wanted)} rows were asked for at once; the cache holds {len(self.slab)}.")
        missing = [i for i in wanted if i not in self._slots]
        for i in wanted:
            if i in self._slots:
                self._slots.move_to_end(i)
        if missing:
            values = self._compute(np.asarray(missing))  # first: when it raises, no row has lost its place
            free = list(range(len(self._slots), min(len(self.slab), len(self._slots) + len(missing))))
            while len(free) < len(missing):
                free.append(self._slots.popitem(last=False)[1])
            self.slab[free] = values
            self._slots.update(zip(missing, free, strict=True))
        self.hits += len(wanted) - len(missing)
        return np.fromiter((self._slots[int(i)] for i in index), np.intp, len(index))

    def rows(self, index: np.ndarray) -> np.ndarray:
        """Return copies of the given rows."""
        size = len(self.slab)
        parts = [self.slab[self.slots(index[i : i + size])] for i in range(0, len(index), size)]
        return np.concatenate(parts) if len(parts) > 1 else parts[0] if parts else self.slab[:0].copy()
