"""Columns of categories: one column each, two different categories sqrt(2) apart."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.tables.cells import are_missing, names
from mercer.tables.quantities import HALF

if TYPE_CHECKING:
    import pandas as pd

_SHARE = 20  # in small tables a category with one row in so many is not rare


def learn(name: str, codes: np.ndarray, called: list[str], scale: float, most: int, fewest: int) -> dict[str, Any]:
    """Return how a column of categories is encoded, as plain data.

    Parameters
    ----------
    name
        Of the column.
    codes, called
        The number of each cell's category, -1 where it is missing; and the categories.
    scale
        Two categories are scale * sqrt(2) apart.
    most
        Categories that get a column of their own, at most: those with most rows.
    fewest
        Rows that a category must have for it; in a table of n rows n / 20 are enough.
    """
    counts = np.bincount(codes[codes >= 0], minlength=len(called))
    gone = int((codes < 0).sum())
    enough = min(fewest, math.ceil(len(codes) / _SHARE))
    ranked = sorted(range(len(called)), key=lambda i: (-counts[i], called[i]))
    kept = sorted(called[i] for i in ranked[:most] if counts[i] >= enough)
    pooled = len(called) - len(kept)
    if pooled == 1 and len(kept) < most:  # nothing is saved by calling a single one "other"
        kept, pooled = sorted(called), 0
    values = [f"{name}={k}" for k in kept] + [f"{name} other"] * (pooled > 0) + [f"{name} missing"] * (gone > 0)
    pair = len(values) == 2
    state: dict[str, Any] = {
        "name": name,
        "kind": "yes/no" if pair else "category",
        "kept": kept,
        "other": pooled > 0,
        "missing": gone > 0,
        "scale": float(scale),
        "made": values[1:] if pair else values,
    }
    if pair and not gone and not pooled:
        said = f"{name}: two values, {kept[0]} and {kept[1]}, one column"
    elif len(kept) == 1 and not pooled:
        said = f"{name}: {kept[0]} or missing ({gone:,} rows), one column"
    else:
        said = f"{name}: {len(called):,} categories, one column each"
        if pooled:
            rows = int(counts.sum()) - sum(int(counts[called.index(k)]) for k in kept)
            said = f"{name}: {len(called):,} categories, one column each for {len(kept):,}"
            said += f", and one for the {pooled:,} rarest ({rows:,} rows)"
        if gone:
            said += f"; {are_missing(gone)} a category of {'its' if gone == 1 else 'their'} own"
    state["said"] = said + "."
    return state


def encode(state: dict[str, Any], series: pd.Series) -> np.ndarray:
    """Return the columns of a piece of the table. Categories never seen are "other", or nothing at all: zeros."""
    codes, called = names(series)
    kept: list[str] = state["kept"]
    place = {k: i for i, k in enumerate(kept)}
    other = len(kept) if state["other"] else -1
    last = len(kept) + state["other"] if state["missing"] else -1
    moved = np.array([*(place.get(c, other) for c in called), last], dtype=np.int64)[codes]
    width = len(kept) + state["other"] + state["missing"]
    if width == 2:
        return np.array([-HALF, HALF, 0.0])[moved][:, None] * state["scale"]  # the last for what is neither
    out = np.zeros((len(codes), width))
    known = np.flatnonzero(moved >= 0)
    out[known, moved[known]] = state["scale"]
    return out
