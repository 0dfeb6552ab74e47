"""The course of an iterative fit, as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

HISTORY = np.dtype([(name, "f8") for name in ("steps", "primal", "dual", "gap", "support", "seconds")])


class Row(NamedTuple):
    """Where a fit stood: NaN for what was not known then, or has no meaning there."""

    steps: float
    primal: float
    dual: float
    gap: float  # relative
    support: float
    seconds: float


def history_table(rows: Iterable[Sequence[float]], known: str = "dual") -> np.ndarray:
    """Return rows as a table with the fields of `HISTORY`.

    Parameters
    ----------
    rows
        Six numbers each, or the five of older model files, which had one of the two objectives.
    known
        Which one: "primal" or "dual".

    Examples
    --------
    >>> table = history_table([Row(10, 2.0, 1.5, 0.25, 4, 0.01), (20, 1.75, 0.125, 4, 0.02)])
    >>> table["dual"], table["primal"]
    (array([1.5 , 1.75]), array([ 2., nan]))
    """
    missing = 1 if known == "dual" else 2
    full = [tuple(row) if len(row) == len(Row._fields) else (*row[:missing], np.nan, *row[missing:]) for row in rows]
    return np.array(full, dtype=HISTORY)
