"""Encodings of columns: numbers standardised, categories one column each, dates a line and circles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.tables.cells import Numbers, are_missing, distinct, names, shown, spread

if TYPE_CHECKING:
    import pandas as pd

_FARTHEST = 1e9  # standard deviations; what lies farther out at prediction is brought here
_KNEE = 3.0  # standard deviations up to which numbers stay as they are; those beyond are drawn nearer
_LONG_TAIL = 6.0  # standard deviations beyond which a tail is long enough to be spoken of
_HALF = 0.5**0.5  # two values at -_HALF and +_HALF are as far apart as two categories: sqrt(2)
_MARKED = "; {} at the median and marked by a further column"


def learn_numbers(
    name: str,
    values: np.ndarray,
    wrong: int,
    example: str,
    scale: float,
    tails: str,
    weights: np.ndarray | None = None,
    called: str = "",
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
    weights
        How many rows each of them counts for; None for one.
    called
        What the values are, where they stand for something else.
    """
    gone = np.isnan(values)
    present, weights = in_order(values[~gone], None if weights is None else weights[~gone])
    median = median_of(present, weights)
    two = len(present) > 0 and bool(np.all((present == present[0]) | (present == present[-1])))
    state: dict[str, Any] = {
        "name": name,
        "kind": "yes/no" if two else "number",
        "median": median,
        "missing": bool(gone.any()),
        "shape": "plain",
        "unit": _KNEE,
        "scale": float(scale),
    }
    if two:
        middle = present[0] / 2 + present[-1] / 2
        half = present[-1] / 2 - present[0] / 2
        state |= {"centre": float(middle), "spread": float(half / (_HALF * scale)) or 1.0, "mean": 0.0}
        what = called or f"two values, {shown(present[0])} and {shown(present[-1])}, one column"
    else:
        state |= _standard(present, weights)
        far = np.abs((present[[0, -1]] - state["centre"]) / state["spread"] - state["mean"]).max()
        state["shape"] = "log" if tails == "auto" else "plain"
        what = called or f"numbers from {shown(present[0])} to {shown(present[-1])} (median {shown(median)})"
        what += ", standardised"
        if tails == "auto" and far > _LONG_TAIL:
            what += f"; a long tail (up to {far:.0f} deviations), drawn nearer beyond {_KNEE:g}"
    if gone.any():
        what += _MARKED.format(are_missing(int(gone.sum())))
    if wrong:
        what += f"; {wrong:,} of these are no numbers, such as {example[:30]!r}"
    made = [name] + [f"{name} missing"] * state["missing"]
    return state | {"made": made, "said": f"{name}: {what}."}


def in_order(values: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Return values in ascending order with their weights, so that sums do not depend on the order of the rows."""
    if weights is None:
        return np.sort(values), None
    order = np.lexsort((weights, values))
    return values[order], weights[order]


def median_of(values: np.ndarray, weights: np.ndarray | None) -> float:
    """Return the median of ascending values, each of which counts for as many as its weight says.

    Examples
    --------
    >>> median_of(np.array([1.0, 2.0, 9.0]), np.array([1.0, 1.0, 2.0]))
    5.5
    """
    if weights is None:
        return float(np.median(values))
    below = np.cumsum(weights)
    low, high = (np.searchsorted(below, below[-1] / 2, side) for side in ("left", "right"))
    return float(values[low] / 2 + values[min(high, len(values) - 1)] / 2)


def _standard(values: np.ndarray, weights: np.ndarray | None) -> dict[str, float]:
    """Return centre, spread and mean: a value v becomes (v - centre) / spread - mean."""
    centre = float(values[len(values) // 2])
    apart = values - centre
    far = float(np.abs(apart).max())
    mean, deviation = _moments(apart / far, weights)
    return {"centre": centre, "spread": far * deviation or far, "mean": mean / deviation}


def _moments(values: np.ndarray, weights: np.ndarray | None) -> tuple[float, float]:
    mean = float(np.average(values, weights=weights))
    return mean, float(np.sqrt(np.average((values - mean) ** 2, weights=weights)))


def encode_numbers(state: dict[str, Any], cells: Numbers) -> tuple[np.ndarray, int, list[str]]:
    """Return the columns of a piece of the table, how many of its cells are no numbers, and one of them."""
    values, wrong, example = cells
    gone = np.isnan(values)
    values[gone] = state["median"]
    out = np.empty((len(values), len(state["made"])))
    with np.errstate(over="ignore"):
        z = np.clip((values - state["centre"]) / state["spread"] - state["mean"], -_FARTHEST, _FARTHEST)
    out[:, 0] = bend(z, state["unit"]) if state["shape"] == "log" else z
    if state["missing"]:
        out[:, 1] = np.where(gone, _HALF, -_HALF) * state["scale"]
    if state["kind"] == "yes/no":
        out[gone, 0] = 0.0  # as far from the one as from the other
    return out, wrong, [example]


def bend(standard: np.ndarray, knee: float) -> np.ndarray:
    r"""Return standardised numbers, those beyond the knee c drawn nearer by a logarithm.

    .. math:: z \mapsto z \text{ for } |z| \le c, \qquad \operatorname{sign}(z) (c + \log(1 + |z| - c)) \text{ beyond}

    Their order stays, and so do the distances of most rows. A row that is 50 deviations away from all others, to which
    a kernel such as RBF would see no likeness whatever its other columns say, is 7 away.

    Examples
    --------
    >>> bend(np.array([-1.0, 2.5, 50.0]), 3.0).round(2)
    array([-1.  ,  2.5 ,  6.87])
    """
    far = np.maximum(np.abs(standard) - knee, 0.0)
    return np.where(far > 0, np.sign(standard) * (knee + np.log1p(far)), standard)


# -- categories: two different ones are sqrt(2) apart ------------------------------------------------------

_RARE_ROWS = 20  # in small tables a category that has one row in this many is not rare


def learn_categories(
    name: str, codes: np.ndarray, called: list[str], scale: float, most: int, fewest: int
) -> dict[str, Any]:
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
    enough = min(fewest, math.ceil(len(codes) / _RARE_ROWS))
    ranked = sorted(range(len(called)), key=lambda i: (-counts[i], called[i]))
    kept = sorted(called[i] for i in ranked[:most] if counts[i] >= enough)
    pooled = len(called) - len(kept)
    if pooled == 1 and len(kept) < most:  # nothing is saved by calling a single one "other"
        kept, pooled = sorted(called), 0
    rare = sorted(set(called) - set(kept))
    values = [f"{name}={k}" for k in kept] + [f"{name} other"] * (pooled > 0) + [f"{name} missing"] * (gone > 0)
    pair = len(values) == 2
    state: dict[str, Any] = {
        "name": name,
        "kind": "yes/no" if pair else "category",
        "kept": kept,
        "other": pooled > 0,
        "rare": rare,
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


def encode_categories(state: dict[str, Any], series: pd.Series) -> tuple[np.ndarray, int, list[str]]:
    """Return the columns of a piece of the table, how many of its cells are of categories never seen, and these.

    They are "other", or nothing at all: zeros.
    """
    codes, called = names(series)
    kept: list[str] = state["kept"]
    # A file of an older version does not tell which were rare: then nothing is said to be new.
    seen = {*kept, *state.get("rare", called if state["other"] else [])}
    unseen = [c for c in called if c not in seen]
    rows = int(np.array([*(c not in seen for c in called), False])[codes].sum())
    place = {k: i for i, k in enumerate(kept)}
    other = len(kept) if state["other"] else -1
    last = len(kept) + state["other"] if state["missing"] else -1
    moved = np.array([*(place.get(c, other) for c in called), last], dtype=np.int64)[codes]
    width = len(kept) + state["other"] + state["missing"]
    if width == 2:
        pair = np.array([-_HALF, _HALF, 0.0])[moved][:, None] * state["scale"]  # the last for what is neither
        return pair, rows, unseen
    out = np.zeros((len(codes), width))
    known = np.flatnonzero(moved >= 0)
    out[known, moved[known]] = state["scale"]
    return out, rows, unseen


# -- dates and times: a line for how long ago, circles for season, weekday and hour ------------------------

_DAYS = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%d %b %Y", "%b %d, %Y", "%d-%b-%Y", "%d %B %Y")
# Tried in this order. pandas calls "ISO8601" all of 2024-01-31, 2024-01-31 12:00 and 2024-01-31T12:00:00.5+02:00.
_FORMATS = ("ISO8601", *(f"{day}{hour}" for day in _DAYS for hour in ("", " %H:%M", " %H:%M:%S")), "%H:%M", "%H:%M:%S")

_DAY = 86_400.0  # seconds, as dates are held
_YEAR = 365.2425 * _DAY  # the mean of the Gregorian calendar
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
    for how in _FORMATS:
        few, all_of_them = texts[:5], texts  # most formats fail at once
        if all(pd.to_datetime(t, format=how, errors="coerce", utc=True).notna().all() for t in (few, all_of_them)):
            return how
    return None


def _parted(text: str) -> bool:
    """Whether a text has the separators of a date: 20240131 may be any number."""
    return sum(text.count(c) for c in "-/. ") >= 2


def seconds(series: pd.Series, how: str) -> Numbers:
    """Return seconds since 1970, NaN where there is no date."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        return Numbers(_seconds(series), 0, "")
    codes, values = distinct(series)
    texts = [v.strip() if isinstance(v, str) else str(v) for v in values]
    dates = pd.to_datetime(texts, format=how or "ISO8601", errors="coerce", utc=True)
    return spread(codes, _seconds(pd.Series(dates)), texts)


def _seconds(series: pd.Series) -> np.ndarray:
    import pandas as pd

    series = series.dt.tz_convert("UTC").dt.tz_localize(None) if series.dt.tz is not None else series
    ticks = series.to_numpy(dtype="datetime64[us]")
    return np.where(pd.isna(series), np.nan, ticks.astype(np.int64) / 1e6)


def learn_dates(
    name: str, times: np.ndarray, how: str, scale: float, weights: np.ndarray | None = None
) -> dict[str, Any]:
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
    weights
        How many rows each time counts for; None for one.
    """
    gone = np.isnan(times)
    present, weights = in_order(times[~gone], None if weights is None else weights[~gone])
    span = float(present[-1] - present[0])
    clock = how in ("%H:%M", "%H:%M:%S")
    parts = [] if clock else ["time"]
    parts += ["season"] * (span >= _HALF_YEAR)
    parts += ["weekday"] * (len(np.unique(present // _DAY % 7)) > 1)
    parts += ["hour"] * (len(np.unique(present % _DAY)) > 1)
    made = [m for p in parts for m in ([f"{name} {p}"] if p == "time" else [f"{name} {p} sin", f"{name} {p} cos"])]
    days = present / _DAY
    mean, deviation = _moments(days, weights)
    state: dict[str, Any] = {
        "name": name,
        "kind": "date",
        "format": how,
        "parts": parts,
        "median": median_of(days, weights),
        "centre": mean,
        "spread": deviation or 1.0,
        "missing": bool(gone.any()),
        "scale": float(scale),
        "made": made + [f"{name} missing"] * bool(gone.any()),
    }
    first, last = (np.datetime64(int(t), "s").item() for t in (present[0], present[-1]))
    what = f"times from {first:%H:%M} to {last:%H:%M}" if clock else f"dates from {first:%Y-%m-%d} to {last:%Y-%m-%d}"
    read = f", read as {how.replace('%d', 'day').replace('%m', 'month').replace('%Y', 'year')}" if "%m/" in how else ""
    marked = _MARKED.format(are_missing(int(gone.sum()))) if gone.any() else ""
    return state | {"said": f"{name}: {what}{read}; columns for {', '.join(parts)}{marked}."}


def encode_dates(state: dict[str, Any], series: pd.Series) -> tuple[np.ndarray, int, list[str]]:
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
        columns.append(np.where(gone, _HALF, -_HALF) * state["scale"])
    return np.column_stack(columns), wrong, [example]
