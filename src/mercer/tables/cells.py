"""Cells of a table: nothing, a number, or a name. The same whether it was read as text or as a number."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mercer.machine.words import count

if TYPE_CHECKING:
    import pandas as pd

# What people write where there is nothing to write; compared without regard to case, after blanks are removed.
MISSING = ("", "?", "-", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "nat")

ABSENT = "absent columns"  # in the attrs of a table: what the columns that it does not name hold

_FAR = 1e150  # numbers beyond this are taken for it: their squares must be numbers, too
# 1,234.5 and 12.5 and .5 and 1e3, with a currency before or a percent sign after; groups of three digits only.
_NUMBER = re.compile(r"([+-]?)\s*[$€£¥]?\s*([+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*[%€]?")


class Numbers(NamedTuple):
    """The cells of a column as numbers.

    Attributes
    ----------
    values
        float64, NaN where nothing is written or what is written is no number.
    wrong
        How many cells say something that is no number.
    example
        One of them.
    """

    values: np.ndarray
    wrong: int
    example: str


_EXAMPLES = 3  # strange values of a column that are told
_STRANGE = {  # what one strange cell, or several, of a column are
    "number": ("cell is no number", "cells are no numbers"),
    "date": ("cell is no date", "cells are no dates"),
    "level": ("cell is no known level", "cells are no known levels"),
    "category": ("row has a category that fit has not seen", "rows have categories that fit has not seen"),
}


class StrangeCells(UserWarning):
    """Cells that are not like those of the fit; the text names columns, rows and some values. Those of pieces add up.

    Parameters
    ----------
    cells
        For the name of a column, what its cells should be ("number", "date", "level", "category") and what they count
        as: how many are strange, and some of them.

    Examples
    --------
    >>> print(StrangeCells({("age", "number", "missing"): (2, ["old", "older"])}))
    'age': 2 cells are no numbers, such as 'old', 'older'. They count as missing.
    """

    def __init__(self, cells: dict[tuple[str, str, str], tuple[int, list[str]]]) -> None:
        self.cells = {key: (rows, values[:_EXAMPLES]) for key, (rows, values) in cells.items()}
        super().__init__(self.cells)

    def __add__(self, other: StrangeCells) -> StrangeCells:
        cells = dict(self.cells)
        for key, (more, values) in other.cells.items():
            rows, known = cells.get(key, (0, []))
            cells[key] = rows + more, list(dict.fromkeys(known + values))
        return StrangeCells(cells)

    def __str__(self) -> str:
        said: dict[str, list[str]] = {}
        rows: dict[str, int] = {}
        for (column, kind, treated), (many, values) in self.cells.items():
            examples = ", ".join(repr(value[:30]) for value in values)
            said.setdefault(treated, []).append(f"{column!r}: {count(many, *_STRANGE[kind])}, such as {examples}")
            rows[treated] = rows.get(treated, 0) + many
        return " ".join(
            f"{'; '.join(parts)}. {'It counts' if rows[treated] == 1 else 'They count'} as {treated}."
            for treated, parts in said.items()
        )


def is_missing(value: Any) -> bool:
    """Return whether a cell says nothing."""
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def number(value: Any) -> float:
    """Return the number that a cell says, NaN if it says none."""
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value.strip())
        if not match or not any(c.isdigit() for c in match[2]) or (match[1] and match[2][0] in "+-"):
            return math.nan
        value = match[1] + match[2].replace(",", "")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def name(value: Any) -> str:
    """Return how a cell is called as a category: 1, 1.0 and "1.00" are one, and so are True and "true".

    Numbers are told apart as float64, because a column of whole numbers with gaps is read as one of these.

    Examples
    --------
    >>> [name(v) for v in (1, 1.0, "1.00", " State-gov", True, "TRUE")]
    ['1', '1', '1', 'State-gov', 'True', 'True']
    """
    if isinstance(value, str):
        text = value.strip()
        if text.lower() in ("true", "false"):
            return text.capitalize()
        try:
            value = text if "_" in text else float(text)
        except ValueError:
            return text
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, float | np.floating | np.integer) or (isinstance(value, int) and abs(value) < 2**1000):
        same = float(value)
        return str(int(same)) if same.is_integer() and abs(same) < 2**53 else repr(same)
    return str(value)


def shown(value: float) -> str:
    """Return a number as people read it.

    Examples
    --------
    >>> shown(1484705.0), shown(0.25), shown(1 / 3)
    ('1,484,705', '0.25', '0.3333')
    """
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e12 else f"{value:.4g}"


def are_missing(count: int) -> str:
    """Return the beginning of a sentence about missing cells."""
    return f"{count:,} missing {'is' if count == 1 else 'are'}"


def distinct(series: pd.Series) -> tuple[np.ndarray, list[Any]]:
    """Return for each cell the number of its value, -1 where it is missing, and the values.

    Texts that differ in blanks around them only are still different values here.
    """
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        codes, values = np.asarray(series.cat.codes), list(series.cat.categories)
    else:
        try:
            codes, uniques = pd.factorize(series)
        except TypeError:  # lists and dictionaries cannot be compared
            codes, uniques = pd.factorize(np.array([None if _nothing(v) else repr(v) for v in series], dtype=object))
        values = list(uniques)
    gone = np.array([*(is_missing(v) for v in values), True], dtype=bool)
    return np.where(gone[codes], -1, codes), values


def _nothing(value: Any) -> bool:
    return not isinstance(value, list | dict | tuple | set | np.ndarray) and is_missing(value)


def numbers(series: pd.Series, far: float = _FAR) -> Numbers:
    """Return the cells of a column as numbers, whatever they are written as; infinite ones are missing.

    Those beyond `far` are taken for it. For a target that would be a lie: it asks for no limit.
    """
    import pandas as pd

    kind = series.dtype
    if pd.api.types.is_complex_dtype(kind):
        raise ValueError(f"Complex data not supported: {series.name!r} holds complex numbers. Pass two columns.")
    if isinstance(kind, pd.SparseDtype) or pd.api.types.is_numeric_dtype(kind):  # booleans are 0 and 1
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        return Numbers(_finite(values, far), 0, "")
    if pd.api.types.is_timedelta64_dtype(kind):
        return Numbers(_finite(series.dt.total_seconds().to_numpy(dtype=np.float64, na_value=np.nan), far), 0, "")
    if pd.api.types.is_datetime64_any_dtype(kind):
        there = series.notna().to_numpy()
        example = str(series[there].iloc[0]) if there.any() else ""
        return Numbers(np.full(len(series), np.nan), int(there.sum()), example)
    codes, values = distinct(series)
    cells = spread(codes, [number(v) for v in values], values)
    return cells._replace(values=_finite(cells.values, far))


def spread(codes: np.ndarray, known: Any, values: Any) -> Numbers:
    """Return the numbers that are known of distinct values, cell by cell; a value whose number is NaN is wrong."""
    cells = np.append(np.asarray(known, dtype=np.float64), np.nan)[codes]
    strange = (codes >= 0) & np.isnan(cells)
    return Numbers(cells, int(strange.sum()), str(values[codes[np.argmax(strange)]]) if strange.any() else "")


def _finite(values: np.ndarray, far: float) -> np.ndarray:
    """Return the values with NaN for infinite ones, and none beyond `far`."""
    values = np.where(np.isfinite(values), values, np.nan)
    return np.clip(values, -far, far)


def names(series: pd.Series) -> tuple[np.ndarray, list[str]]:
    """Return for each cell the number of its category, -1 where it is missing, and the categories in order."""
    codes, values = distinct(series)
    called = [name(v) for v in values]
    present = np.bincount(codes[codes >= 0], minlength=len(values)) > 0
    order = sorted({c for c, there in zip(called, present) if there})
    place = {c: i for i, c in enumerate(order)}
    moved = np.array([*(place.get(c, -1) for c in called), -1], dtype=np.int64)
    return moved[codes], order


def ranks(series: pd.Series, levels: list[str]) -> Numbers:
    """Return the cells of an ordered category as the places of their levels; what is no level is wrong.

    Examples
    --------
    >>> import pandas as pd
    >>> ranks(pd.Series(["L", "S", None, "giant"]), ["S", "M", "L"])
    Numbers(values=array([ 2.,  0., nan, nan]), wrong=1, example='giant')
    """
    codes, called = names(series)
    place = {level: float(i) for i, level in enumerate(levels)}
    return spread(codes, [place.get(c, np.nan) for c in called], called)
