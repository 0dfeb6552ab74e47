"""Kinds of columns: numbers, categories, dates, texts, or nothing that a kernel can use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    import pandas as pd

_NUMBERS_SHARE = 0.95  # share of the cells of a column of text that are numbers, from which on the others are slips
_NAMING = 0.5  # different texts per row, from which on they name or describe the rows
_TELLING_ROWS = 20  # rows below which one cannot tell whether values name the rows
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
    name: str, series: pd.Series, *, scale: float, most: int, fewest: int, tails: str, texts: str
) -> dict[str, Any]:
    """Return how a column is encoded, as plain data: `name`, `kind`, `made` (columns), `said`, and what its kind needs.

    The other arguments are parameters of `TableEncoder`.
    """
    import pandas as pd

    chosen = isinstance(series.dtype, pd.CategoricalDtype)  # somebody has said that these are categories
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        return _dates(name, series, "", scale)
    plain = not chosen and pd.api.types.is_numeric_dtype(series.dtype)
    if (plain and not pd.api.types.is_bool_dtype(series.dtype)) or pd.api.types.is_timedelta64_dtype(series.dtype):
        return _numbers(name, series, numbers(series), scale, tails)
    if not chosen and not plain:
        codes, values = distinct(series)
        present = [values[i] for i in np.unique(codes[codes >= 0])]
        if any(np.isfinite(number(v)) for v in present if not isinstance(v, bool)):
            cells = numbers(series)
            there = int((~np.isnan(cells.values)).sum())
            if there and there >= _NUMBERS_SHARE * (there + cells.wrong):
                return _numbers(name, series, cells, scale, tails)
        elif all(hasattr(v, "isoformat") and hasattr(v, "year") for v in present) and present:
            return _dates(name, series, "", scale)
        how = format_of(sorted(present, key=str))
        if how is not None:
            return _dates(name, series, how, scale)
    codes, called = names(series)
    there = int((codes >= 0).sum())
    if len(called) < 2 and (not called or there == len(codes)):
        return _constant(name, there, called[0] if called else None)
    if chosen and series.cat.ordered and len(called) > 1:
        return _ordered(name, series, scale)
    if not chosen and there >= _TELLING_ROWS:
        kind = _strings(called) if len(called) > min(most, _NAMING * there) else ""
        if kind and texts == "keep":
            return _kept(name, kind, called, there, len(codes) - there)
        if len(called) > _NAMING * there:
            why = f"{len(called):,} different texts in {there:,} rows name or describe the rows"
            return _dropped(name, "text", why)
    return learn_categories(name, codes, called, scale, most, fewest)


def _ordered(name: str, series: pd.Series, scale: float) -> dict[str, Any]:
    """Return the state of an ordered category: the ranks of its levels are numbers, of all levels that it declares."""
    levels = list(dict.fromkeys(name_of(level) for level in series.cat.categories if not is_missing(level)))
    listed = " < ".join(levels if len(levels) <= _LISTED_LEVELS else [*levels[: _LISTED_LEVELS - 2], "...", levels[-1]])
    called = f"{len(levels):,} levels in order ({listed}), their ranks as numbers"
    state = learn_numbers(name, *ranks(series, levels), scale, "keep", called)
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


def _numbers(name: str, series: pd.Series, cells: Numbers, scale: float, tails: str) -> dict[str, Any]:
    there = cells.values[~np.isnan(cells.values)]
    if not len(there) or there.min() == there.max():
        if len(there) == len(cells.values) or not len(there):
            return _constant(name, len(there), shown(there[0]) if len(there) else None)
        codes = np.where(np.isnan(cells.values), -1, 0)
        return learn_categories(name, codes, [shown(there[0])], scale, 1, 1)
    whole = bool(np.all(there == np.floor(there)))
    if whole and len(there) >= _TELLING_ROWS and _IDENTIFIER.fullmatch(name) and len(np.unique(there)) == len(there):
        return _dropped(name, "identifier", f"{len(there):,} whole numbers, no two alike, number the rows")
    return learn_numbers(name, *cells, scale, tails)


def _dates(name: str, series: pd.Series, how: str, scale: float) -> dict[str, Any]:
    times, _, _ = seconds(series, how)
    there = times[~np.isnan(times)]
    if not len(there) or there.min() == there.max():
        return _constant(name, len(there), str(series.dropna().iloc[0]) if len(there) else None)
    return learn_dates(name, times, how, scale)


def _constant(name: str, there: int, value: str | None) -> dict[str, Any]:
    what = "has no values" if value is None else f"is {value} in all {there:,} rows that have a value"
    return {"name": name, "kind": "constant", "made": [], "said": f"{name}: dropped; it {what}."}


def _dropped(name: str, kind: str, why: str) -> dict[str, Any]:
    return {"name": name, "kind": kind, "made": [], "said": f"{name}: dropped; {why}."}


def encode_column(state: dict[str, Any], series: pd.Series) -> tuple[np.ndarray, int, str]:
    """Return the columns that a column becomes, how many of its cells are of another kind, and one of them."""
    if state["kind"] in OBJECTS:
        codes, called = names(series)
        if state["kind"] == "sequence":
            called = [text.upper() for text in called]
        return np.array([*called, ""], dtype=object)[codes][:, None], 0, ""
    if state["kind"] == "date":
        return encode_dates(state, series)
    if "kept" in state:
        return encode_categories(state, series), 0, ""
    return encode_numbers(state, ranks(series, state["levels"]) if "levels" in state else numbers(series))
