"""The course of an iterative fit as a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

HISTORY = np.dtype([(name, "f8") for name in ("steps", "primal", "dual", "gap", "support", "seconds")])


def history_table(rows: Iterable[Any]) -> np.ndarray:
    """Return a table of the looks that a solver took: NaN where it did not look at a value; the gap is relative.

    Examples
    --------
    >>> history_table([(1, 3.0, 2.0, 0.33, 4, 0.001)])["primal"]
    array([3.])
    """
    return np.array([tuple(row) for row in rows], dtype=HISTORY)
