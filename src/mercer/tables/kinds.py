"""Kinds of columns: numbers, categories, dates, texts or nothing to learn from; numbers or classes to predict."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mercer.machine.words import count
from mercer.tables.cells import Numbers, are_missing, distinct, is_missing, names, number, numbers, ranks, shown
from mercer.tables.cells import name as name_of
from mercer.tables.encodings import (
    encode_categories,
    encode_dates,
    encode_numbers,
    format_of,
    learn_categories,
    learn_dates,
    learn_numbers,
    seconds,
)
from mercer.tables.source import TableError

if TYPE_CHECKING:
    import pandas as pd

_NUMBERS_SHARE = 0.95  # share of the cells of a column of text that are numbers, from which on the others are slips
_NAMING = 0.5  # different values per row, from which on they name or describe the rows
_FEWEST_ROWS = 20  # rows below which one cannot tell whether values name the rows
_PROSE_WORDS = 3  # words of the median text, from which on texts are prose
_DNA_LETTERS = 8  # letters of the shortest sequence of DNA
_DNA = re.compile(r"[ACGTUNacgtun]+")
_WORD = re.compile(r"\w\w+")
OBJECTS = ("text", "sequence")  # kinds whose cells stay as they are, for kernels of strings
_LISTED_LEVELS = 8  # levels of an ordered category that are named in a sentence
_IDENTIFIER = re.compile(
    r"(?i:((row|record|case|line)[ _.]*)?(id|index|number|no|nr|#)|.+[ _.]id|unnamed: 0|column 1)|.+[a-z]I[Dd]"
)


def learn_column(
    name: str,
    series: pd.Series,
    *,
    scale: float,
    most: int,
    fewest: int,
    tails: str,
    texts: str,
    weights: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return how a column is encoded, as plain data: `name`, `kind`, `made` (columns), `said`, and what its kind needs.

    The other arguments are parameters of `TableEncoder`, and the weights of the rows.
    """
    import pandas as pd

    chosen = isinstance(series.dtype, pd.CategoricalDtype)  # somebody has said that these are categories
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        return _dates(name, series, "", scale, weights)
    plain = not chosen and pd.api.types.is_numeric_dtype(series.dtype)
    if (plain and not pd.api.types.is_bool_dtype(series.dtype)) or pd.api.types.is_timedelta64_dtype(series.dtype):
        return _numbers(name, series, numbers(series), scale, tails, weights)
    if not chosen and not plain:
        codes, values = distinct(series)
        present = [values[i] for i in np.unique(codes[codes >= 0])]
        if any(np.isfinite(number(v)) for v in present if not isinstance(v, bool)):
            cells = numbers(series)
            filled = int((~np.isnan(cells.values)).sum())
            if filled and filled >= _NUMBERS_SHARE * (filled + cells.wrong):
                return _numbers(name, series, cells, scale, tails, weights)
        elif all(hasattr(v, "isoformat") and hasattr(v, "year") for v in present) and present:
            return _dates(name, series, "", scale, weights)
        how = format_of(sorted(present, key=str))
        if how is not None:
            return _dates(name, series, how, scale, weights)
    codes, called = names(series)
    filled = int((codes >= 0).sum())
    if len(called) < 2 and (not called or filled == len(codes)):
        return _constant(name, filled, called[0] if called else None)
    if chosen and series.cat.ordered and len(called) > 1:
        return _ordered(name, series, scale, weights)
    if not chosen and filled >= _FEWEST_ROWS:
        kind = _strings(called) if len(called) > min(most, _NAMING * filled) else ""
        if kind and texts == "keep":
            return _kept(name, kind, called, filled, len(codes) - filled)
        if len(called) > _NAMING * filled:
            why = f"{len(called):,} different texts in {filled:,} rows name or describe the rows"
            return _dropped(name, "text", why)
    return learn_categories(name, codes, called, scale, most, fewest)


def _ordered(name: str, series: pd.Series, scale: float, weights: np.ndarray | None) -> dict[str, Any]:
    """Return the state of an ordered category: the ranks of its levels are numbers, of all levels that it declares."""
    levels = list(dict.fromkeys(name_of(level) for level in series.cat.categories if not is_missing(level)))
    listed = " < ".join(levels if len(levels) <= _LISTED_LEVELS else [*levels[: _LISTED_LEVELS - 2], "...", levels[-1]])
    called = f"{len(levels):,} levels in order ({listed}), their ranks as numbers"
    state = learn_numbers(name, *ranks(series, levels), scale, "keep", weights, called)
    kind = "ordered category" if state["kind"] == "number" else state["kind"]
    return state | {"kind": kind, "levels": levels}


def _strings(called: list[str]) -> str:
    """Return what different texts are: "sequence" (of bases), "text" (prose), or "" for names."""
    mostly = (1 - _NUMBERS_SHARE) * len(called)
    if sum(len(text) < _DNA_LETTERS or _DNA.fullmatch(text) is None for text in called) <= mostly:
        return "sequence"
    return "text" if np.median([len(_WORD.findall(text)) for text in called]) >= _PROSE_WORDS else ""


def _kept(name: str, kind: str, called: list[str], there: int, gone: int) -> dict[str, Any]:
    """Return the state of a column whose cells stay texts."""
    if kind == "sequence":
        other = [text for text in called if _DNA.fullmatch(text) is None]
        bases = [text for text in called if _DNA.fullmatch(text) is not None]
        letters = sorted({letter for text in bases for letter in text.upper()})
        low, high = (end(map(len, bases)) for end in (min, max))
        what = f"sequences of {', '.join(letters)}, {f'{low:,} to ' if low < high else 'all '}{high:,} long"
        if other:
            what += f", and {count(len(other), 'text')} that {'is' if len(other) == 1 else 'are'} no DNA, such as "
            what += f"{other[0][:30]!r}"
    else:
        what = f"texts of {np.median([len(_WORD.findall(text)) for text in called]):.0f} words (median)"
    said = f"{name}: {len(called):,} different {what}, compared as they are"
    said += f"; {are_missing(gone)} empty" if gone else ""
    return {"name": name, "kind": kind, "made": [name], "said": f"{said}."}


def _numbers(
    name: str, series: pd.Series, cells: Numbers, scale: float, tails: str, weights: np.ndarray | None
) -> dict[str, Any]:
    there = cells.values[~np.isnan(cells.values)]
    if not len(there) or there.min() == there.max():
        if len(there) == len(cells.values) or not len(there):
            return _constant(name, len(there), shown(there[0]) if len(there) else None)
        codes, called = names(series)
        return learn_categories(name, codes, called, scale, len(called), 1)
    whole = bool(np.all(there == np.floor(there)))
    if whole and len(there) >= _FEWEST_ROWS and _IDENTIFIER.fullmatch(name) and len(np.unique(there)) == len(there):
        return _dropped(name, "identifier", f"{len(there):,} whole numbers, no two alike, number the rows")
    return learn_numbers(name, *cells, scale, tails, weights)


def _dates(name: str, series: pd.Series, how: str, scale: float, weights: np.ndarray | None) -> dict[str, Any]:
    times, _, _ = seconds(series, how)
    there = times[~np.isnan(times)]
    if not len(there) or there.min() == there.max():
        return _constant(name, len(there), str(series.dropna().iloc[0]) if len(there) else None)
    return learn_dates(name, times, how, scale, weights)


def _constant(name: str, there: int, value: str | None) -> dict[str, Any]:
    what = "has no values" if value is None else f"is {value} in all {there:,} rows that have a value"
    return {"name": name, "kind": "constant", "made": [], "said": f"{name}: dropped; it {what}."}


def _dropped(name: str, kind: str, why: str) -> dict[str, Any]:
    return {"name": name, "kind": kind, "made": [], "said": f"{name}: dropped; {why}."}


def encode_column(state: dict[str, Any], series: pd.Series) -> tuple[np.ndarray, int, list[str]]:
    """Return the columns that a column becomes, how many of its cells are not like those of the fit, and some."""
    if state["kind"] in OBJECTS:
        codes, called = names(series)
        if state["kind"] == "sequence":
            called = [text.upper() for text in called]
        return np.array([*called, ""], dtype=object)[codes][:, None], 0, []
    if state["kind"] == "date":
        return encode_dates(state, series)
    if "kept" in state:
        return encode_categories(state, series)
    return encode_numbers(state, ranks(series, state["levels"]) if "levels" in state else numbers(series))


def strangeness(state: dict[str, Any]) -> tuple[str, str]:
    """Return what cells of a column should be, as `StrangeCells` calls it, and what those that are not count as."""
    if "kept" not in state:
        return "date" if state["kind"] == "date" else "level" if "levels" in state else "number", "missing"
    if state["other"]:
        return "category", "other, as rare ones do"
    pair = state["kind"] == "yes/no"
    return "category", "neither value, halfway between the two" if pair else "none of those seen, equally far from each"


# -- the column to predict ------------------------------------------------------------------------------

TASKS = ("auto", "classify", "regress")

_CLASSES = 20  # different whole numbers; more than these are quantities, not classes
_CLASS_ROWS = 5  # rows that each such class has on average, at least


class Target(NamedTuple):
    """What is to be predicted.

    Attributes
    ----------
    task
        "classify" or "regress".
    values
        The labels, or the numbers as float64, of the rows that have one.
    classes
        The different labels in order; None for a regression.
    said
        A sentence that says what was taken for what.
    rows
        The positions, from 0, of the rows that have a target; the others are dropped.
    """

    task: str
    values: np.ndarray
    classes: np.ndarray | None
    said: str
    rows: np.ndarray


def target_of(series: Any, task: str = "auto") -> Target:
    """Return what a column says is to be predicted.

    Texts, booleans, two values, and whole numbers of at most 20 values with five rows each on average are classes.
    Other numbers are quantities.

    Parameters
    ----------
    series
        The column: a pandas series, or a list or array.
    task
        "classify" or "regress" to say so; "auto" to find out.

    Returns
    -------
    Target

    Examples
    --------
    >>> from mercer.tables import target_of
    >>> target = target_of(["yes", "no", None, "yes"])
    >>> target.task, target.classes.tolist(), target.rows.tolist()
    ('classify', ['no', 'yes'], [0, 1, 3])
    >>> print(target.said)
    target: 2 classes, no (1 rows) and yes (2); 1 row without a target was dropped.
    >>> target_of([1.5, 2.25, 8.0]).task
    'regress'
    """
    import pandas as pd

    if task not in TASKS:
        raise ValueError(f"task={task!r} must be one of {', '.join(map(repr, TASKS))}.")
    series = series if isinstance(series, pd.Series) else pd.Series(series)
    called = "target" if series.name is None else str(series.name)
    if not len(series):
        raise TableError(f"the target {called!r} has no rows.")
    codes, levels = names(series)
    cells = numbers(series, far=np.inf)
    rows = np.flatnonzero(codes >= 0)
    if not len(rows):
        raise TableError(f"the target {called!r} has no values: all {len(series):,} rows are missing.")
    if len(levels) == 1:
        raise TableError(
            f"the target {called!r} is {levels[0]} in all {len(rows):,} rows; there is nothing to tell apart. "
            "Choose another column."
        )
    numeric = not cells.wrong and bool(np.isfinite(cells.values[rows]).all())
    if task == "auto":
        task = _task(series, cells.values[rows], numeric, len(levels))
    dropped = len(series) - len(rows)
    were = "was" if dropped == 1 else "were"
    gone = f"; {count(dropped, 'row')} without a target {were} dropped" if dropped else ""
    if task == "regress":
        values = _quantities(called, cells, rows)
        low, middle, high = (shown(float(v)) for v in np.percentile(values, [0, 50, 100]))
        said = f"{called}: numbers from {low} to {high} (median {middle}){gone}."
        return Target(task, values, None, said, rows)
    if len(rows) >= _FEWEST_ROWS and len(levels) > _NAMING * len(rows):
        raise TableError(
            f"the target {called!r} has {len(levels):,} different values in {len(rows):,} rows, too many for classes. "
            + ("Choose task 'regress' to predict numbers." if numeric else "Choose another column.")
        )
    labels = _labels(series.iloc[rows], codes[rows])
    classes, counts = np.unique(labels, return_counts=True)
    return Target(task, labels, classes, f"{called}: {_counted(classes, counts)}{gone}.", rows)


def _task(series: Any, values: np.ndarray, numeric: bool, many: int) -> str:
    import pandas as pd

    chosen = isinstance(series.dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(series.dtype)
    if chosen or not numeric or many == 2:
        return "classify"
    whole = bool(np.all(values == np.floor(values)))
    return "classify" if whole and many <= min(_CLASSES, len(values) / _CLASS_ROWS) else "regress"


def _quantities(called: str, cells: Any, rows: np.ndarray) -> np.ndarray:
    values = np.asarray(cells.values[rows], dtype=np.float64)
    if cells.wrong:
        raise TableError(
            f"the target {called!r} is no number in {cells.wrong:,} rows: {cells.example[:30]!r}. Correct them, or "
            "choose task 'classify' to predict classes."
        )
    if not np.isfinite(values).all():
        raise TableError(f"the target {called!r} is infinite in row {int(rows[np.argmin(np.isfinite(values))]) + 1:,}.")
    return values


def _labels(cells: Any, codes: np.ndarray) -> np.ndarray:
    """Return labels as the column has them: booleans, whole numbers, numbers, or texts as they are first written.

    Parameters
    ----------
    cells
        The part of the column that is there.
    codes
        For each the number of its class, under which "yes" and " yes", or "true" and "TRUE", are the same.
    """
    import pandas as pd

    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(cells.cat.categories.dtype)
    cells = cells.infer_objects()
    if pd.api.types.is_bool_dtype(cells.dtype):
        return np.asarray(cells.to_numpy(dtype=bool))
    if pd.api.types.is_numeric_dtype(cells.dtype):
        labels = cells.to_numpy(dtype=getattr(cells.dtype, "numpy_dtype", None))
        whole = labels.dtype.kind == "f" and np.all(labels == np.floor(labels)) and np.abs(labels).max() < 2**53
        return labels.astype(np.int64) if whole else labels  # a column with gaps is read as one of float64
    first = np.unique(codes, return_index=True)[1]
    return np.array([str(cells.iloc[i]).strip() for i in first])[codes]


def _counted(classes: np.ndarray, counts: np.ndarray) -> str:
    first, *others = [f"{c} ({n:,}{' rows' if i == 0 else ''})" for i, (c, n) in enumerate(zip(classes, counts))]
    if len(others) < 6:
        listed = ", ".join([first, *others[:-1]]) + f" and {others[-1]}"
    else:
        listed = ", ".join([first, *others[:4]]) + ", ..."
    rare = int((counts < _CLASS_ROWS).sum())
    few = f"; {rare} of them with fewer than {_CLASS_ROWS} rows" if rare and len(classes) > 2 else ""
    return f"{len(classes)} classes, {listed}{few}"
