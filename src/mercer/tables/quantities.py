"""Columns of numbers: standardised, with missing values at the median and said to be missing."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.tables.cells import Numbers, are_missing, shown
from mercer.tables.tails import KNEE, LONG, bend

_FARTHEST = 1e9  # standard deviations; what lies farther out at prediction is brought here

HALF = 0.5**0.5  # two values at -HALF and +HALF are as far apart as two categories: sqrt(2)


def learn(
    name: str, values: np.ndarray, wrong: int, example: str, scale: float, tails: str, called: str = ""
) -> dict[str, Any]:
    """Return how a column of numbers is encoded, as plain data.

    Parameters
    ----------
    name
        Of the column.
    values
        Its numbers, NaN where they are missing.
    wrong, example
        How many cells were no numbers, and one of them.
    scale
        Distance of two categories, in units of sqrt(2): a column of two numbers is one of two categories.
    tails
        "auto", or "keep" to leave every number as it is but for mean and deviation.
    called
        What the values are, where they stand for something else.
    """
    gone = np.isnan(values)
    there = np.sort(values[~gone])  # sorted, so that sums do not depend on the order of the rows
    median = float(np.median(there))
    two = len(there) > 0 and bool(np.all((there == there[0]) | (there == there[-1])))
    state: dict[str, Any] = {
        "name": name,
        "kind": "yes/no" if two else "number",
        "median": median,
        "missing": bool(gone.any()),
        "shape": "plain",
        "unit": KNEE,
        "scale": float(scale),
    }
    if two:
        middle = there[0] / 2 + there[-1] / 2
        half = there[-1] / 2 - there[0] / 2
        state |= {"centre": float(middle), "spread": float(half / (HALF * scale)) or 1.0, "mean": 0.0}
        what = called or f"two values, {shown(there[0])} and {shown(there[-1])}, one column"
    else:
        state |= _standard(there)
        far = np.abs((there[[0, -1]] - state["centre"]) / state["spread"] - state["mean"]).max()
        state["shape"] = "log" if tails == "auto" else "plain"
        what = called or f"numbers from {shown(there[0])} to {shown(there[-1])} (median {shown(median)})"
        what += ", standardised"
        if tails == "auto" and far > LONG:
            what += f"; a long tail (up to {far:.0f} deviations), drawn nearer beyond {KNEE:g}"
    state["made"] = [name] + [f"{name} missing"] * state["missing"]
    said = f"{name}: {what}"
    if state["missing"]:
        said += f"; {are_missing(int(gone.sum()))} at the median and marked by a further column"
    if wrong:
        said += f"; {wrong:,} of these are no numbers, such as {example[:30]!r}"
    state["said"] = said + "."
    return state


def _standard(there: np.ndarray) -> dict[str, float]:
    """Return centre, spread and mean: a value v becomes (v - centre) / spread - mean."""
    centre = float(there[len(there) // 2])
    apart = there - centre
    far = float(np.abs(apart).max())
    apart = apart / far
    deviation = float(apart.std())
    return {"centre": centre, "spread": far * deviation or far, "mean": float(apart.mean()) / deviation}


def encode(state: dict[str, Any], found: Numbers) -> tuple[np.ndarray, int, str]:
    """Return the columns of a piece of the table, how many of its cells are no numbers, and one of them."""
    values, wrong, example = found
    gone = np.isnan(values)
    values[gone] = state["median"]
    out = np.empty((len(values), len(state["made"])))
    with np.errstate(over="ignore"):
        z = np.clip((values - state["centre"]) / state["spread"] - state["mean"], -_FARTHEST, _FARTHEST)
    out[:, 0] = bend(z, state["unit"]) if state["shape"] == "log" else z
    if state["missing"]:
        out[:, 1] = np.where(gone, HALF, -HALF) * state["scale"]
    if state["kind"] == "yes/no":
        out[gone, 0] = 0.0  # as far from the one as from the other
    return out, wrong, example
