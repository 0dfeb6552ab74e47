"""Columns of dates and times: a line for how long ago, circles for season, weekday and hour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.tables.cells import are_missing, distinct
from mercer.tables.quantities import HALF

if TYPE_CHECKING:
    import pandas as pd

_DAYS = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%d %b %Y", "%b %d, %Y", "%d-%b-%Y", "%d %B %Y")
# Tried in this order. pandas calls "ISO8601" all of 2024-01-31, 2024-01-31 12:00 and 2024-01-31T12:00:00.5+02:00.
FORMATS = ("ISO8601", *(f"{day}{hour}" for day in _DAYS for hour in ("", " %H:%M", " %H:%M:%S")), "%H:%M", "%H:%M:%S")

_DAY = 86_400.0
_YEAR = 365.2425 * _DAY
_HALF_YEAR = _YEAR / 2  # what spans less has no seasons, only sooner and later
_PERIODS = {"season": _YEAR, "weekday": 7 * _DAY, "hour": _DAY}


def format_of(values: list[Any]) -> str | None:
    """Return the first format in which all of these texts are dates; None if there is none.

    Examples
    --------
    >>> format_of(["2024-01-31", "2024-02-01 12:00"]), format_of(["31/01/2024"]), format_of(["1/2/2024", "1/31/2024"])
    ('ISO8601', '%d/%m/%Y', '%m/%d/%Y')
    >>> format_of(["2024"]) is None
    True
    """
    import pandas as pd

    texts = [v.strip() for v in values if isinstance(v, str)]
    if len(texts) < len(values) or not texts or any(len(t) < 5 or not (":" in t or _parted(t)) for t in texts[:20]):
        return None
    for how in FORMATS:
        few, all_of_them = texts[:5], texts  # most formats fail at once
        if all(pd.to_datetime(t, format=how, errors="coerce", utc=True).notna().all() for t in (few, all_of_them)):
            return how
    return None


def _parted(text: str) -> bool:
    """Whether a text has the separators of a date: 20240131 may be any number."""
    return sum(text.count(c) for c in "-/. ") >= 2


def seconds(series: pd.Series, how: str) -> tuple[np.ndarray, int, str]:
    """Return seconds since 1970, NaN where there is no date; how many cells are no dates, and one of them."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        return _seconds(series), 0, ""
    codes, values = distinct(series)
    texts = [v.strip() if isinstance(v, str) else str(v) for v in values]
    form = how or "ISO8601"
    known = np.append(_seconds(pd.Series(pd.to_datetime(texts, format=form, errors="coerce", utc=True))), np.nan)
    found = known[codes]
    strange = (codes >= 0) & np.isnan(found)
    return found, int(strange.sum()), texts[codes[np.argmax(strange)]] if strange.any() else ""


def _seconds(series: pd.Series) -> np.ndarray:
    import pandas as pd

    series = series.dt.tz_convert("UTC").dt.tz_localize(None) if series.dt.tz is not None else series
    ticks = series.to_numpy(dtype="datetime64[us]")
    return np.where(pd.isna(series), np.nan, ticks.astype(np.int64) / 1e6)


def learn(name: str, times: np.ndarray, how: str, scale: float) -> dict[str, Any]:
    """Return how a column of dates is encoded, as plain data.

    Parameters
    ----------
    name
        Of the column.
    times
        Seconds since 1970, NaN where the date is missing.
    how
        The format in which texts are dates, "" if they are no texts.
    scale
        Radius of the circles: two times at random are as far apart as two categories.
    """
    gone = np.isnan(times)
    there = np.sort(times[~gone])
    span = float(there[-1] - there[0])
    clock = how in ("%H:%M", "%H:%M:%S")
    parts = [] if clock else ["time"]
    parts += ["season"] * (span >= _HALF_YEAR)
    parts += ["weekday"] * (len(np.unique(there // _DAY % 7)) > 1)
    parts += ["hour"] * (len(np.unique(there % _DAY)) > 1)
    made = [m for p in parts for m in ([f"{name} {p}"] if p == "time" else [f"{name} {p} sin", f"{name} {p} cos"])]
    days = there / _DAY
    state: dict[str, Any] = {
        "name": name,
        "kind": "date",
        "format": how,
        "parts": parts,
        "median": float(np.median(days)),
        "centre": float(days.mean()),
        "spread": float(days.std()) or 1.0,
        "missing": bool(gone.any()),
        "scale": float(scale),
        "made": made + [f"{name} missing"] * bool(gone.any()),
    }
    first, last = (np.datetime64(int(t), "s").item() for t in (there[0], there[-1]))
    what = f"times from {first:%H:%M} to {last:%H:%M}" if clock else f"dates from {first:%Y-%m-%d} to {last:%Y-%m-%d}"
    read = f", read as {how.replace('%d', 'day').replace('%m', 'month').replace('%Y', 'year')}" if "%m/" in how else ""
    said = f"{name}: {what}{read}; columns for {', '.join(parts)}"
    if gone.any():
        said += f"; {are_missing(int(gone.sum()))} at the median and marked by a further column"
    state["said"] = said + "."
    return state


def encode(state: dict[str, Any], series: pd.Series) -> tuple[np.ndarray, int, str]:
    """Return the columns of a piece of the table, how many of its cells are no dates, and one of them."""
    times, wrong, example = seconds(series, state["format"])
    gone = np.isnan(times)
    columns: list[np.ndarray] = []
    for part in state["parts"]:
        if part == "time":
            days = np.where(gone, state["median"], times / _DAY)
            columns.append((days - state["centre"]) / state["spread"])
        else:
            angle = 2 * np.pi / _PERIODS[part] * np.where(gone, 0.0, times)
            # A missing time is in the middle of the circle, equally far from all.
            columns += [np.where(gone, 0.0, f(angle)) * state["scale"] for f in (np.sin, np.cos)]
    if state["missing"]:
        columns.append(np.where(gone, HALF, -HALF) * state["scale"])
    return np.column_stack(columns), wrong, example
