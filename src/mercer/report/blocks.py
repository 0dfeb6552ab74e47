"""Sections of a page and their blocks, and numbers, names and lists as people read them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np


@dataclass
class Prose:
    """Paragraphs."""

    kind: ClassVar[str] = "prose"
    paragraphs: Sequence[str]
    quiet: bool = False
    columns: bool = False


@dataclass
class Facts:
    """Names with their values and, where it helps, what they mean."""

    kind: ClassVar[str] = "facts"
    rows: Sequence[tuple[str, str, str]]


@dataclass
class Figure:
    """A drawing with the sentence that says what is seen, and a note on how to read it."""

    kind: ClassVar[str] = "figure"
    title: str
    svg: str
    note: str = ""


@dataclass
class Table:
    """Rows under a head; the columns in `right` hold numbers, those in `long` sentences. `open` rows are not folded."""

    kind: ClassVar[str] = "table"
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    right: Sequence[int] = ()
    long: Sequence[int] = ()
    open: int = 20


@dataclass
class Figures:
    """Drawings, and short tables, side by side where there is room; `small` ones three in a row."""

    kind: ClassVar[str] = "figures"
    figures: Sequence[Figure | Table]
    small: bool = False


@dataclass
class Tree:
    """A proof, as the nested dictionaries of `Proof.to_dict`."""

    kind: ClassVar[str] = "tree"
    proof: dict[str, Any]


@dataclass
class Code:
    """Text to copy."""

    kind: ClassVar[str] = "code"
    label: str
    text: str


@dataclass
class Section:
    """A heading, a sentence that says the main thing, and blocks."""

    name: str
    title: str
    lead: str
    blocks: list[Any] = field(default_factory=list)


@dataclass
class Tile:
    """One of the few numbers at the top of the page."""

    label: str
    value: str
    note: str = ""


_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_ELLIPSIS = "…"


def number(value: Any, digits: int = 3) -> str:
    """Return a number with a few significant digits; very large and very small ones with a power of ten.

    Examples
    --------
    >>> number(1234567.0), number(0.012345), number(2.5e-9), number(float("nan")), number(100.0)
    ('1,234,567', '0.0123', '2.5·10⁻⁹', 'none', '100')
    """
    value = float(value)
    if math.isnan(value):
        return "none"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e8 or size < 1e-4:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{_plain(mantissa)}·10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
    places = max(0, digits - 1 - math.floor(math.log10(size)))
    return _plain(f"{value:,.{places}f}")


def _plain(text: str) -> str:
    """Drop zeros after the point, and use a true minus sign."""
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "−" + text[1:] if text.startswith("-") else text


def tick(value: float) -> str:
    """Return the label of a place on an axis.

    Examples
    --------
    >>> tick(0.30000000000000004), tick(1e-6), tick(3e-6), tick(20000), tick(-2.5)
    ('0.3', '10⁻⁶', '3·10⁻⁶', '20k', '−2.5')
    """
    size = abs(value)
    if size and (size >= 1e7 or size < 1e-3):
        mantissa, exponent = f"{value:.1e}".split("e")
        power = f"10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
        return power if mantissa == "1.0" else f"{_plain(mantissa)}·{power}"
    if size >= 1e6:
        return _plain(f"{value / 1e6:.3g}") + "M"
    if size >= 1e4:
        return _plain(f"{value / 1e3:.4g}") + "k"
    return _plain(f"{value:.6g}") if size < 1000 else _plain(f"{value:,.0f}")


def percent(share: float) -> str:
    """Return a share in percent, with a digit after the point only where it tells something.

    Examples
    --------
    >>> percent(0.5), percent(0.0123), percent(0.9987), percent(1.0)
    ('50%', '1.2%', '99.9%', '100%')
    """
    value = 100 * float(share)
    if math.isnan(value):
        return "none"
    return f"{value:.1f}%" if (0 < value < 10 or 99 < value < 100) else f"{value:.0f}%"


def clip(text: Any, length: int) -> str:
    """Return a text of at most that many characters.

    Examples
    --------
    >>> clip("short", 8), clip("a rather long name", 8)
    ('short', 'a rathe…')
    """
    text = " ".join(str(text).split())
    return text if len(text) <= length else text[: length - 1].rstrip() + _ELLIPSIS


def named(scoring: str) -> str:
    """Return the name of a score as people write it.

    Examples
    --------
    >>> named("r2"), named("balanced_accuracy"), named("neg_root_mean_squared_error")
    ('R²', 'balanced accuracy', '−root mean squared error')
    """
    if scoring == "r2":
        return "R²"
    return scoring.replace("neg_", "−", 1).replace("_", " ")


def listed(things: Sequence[str], most: int = 4) -> str:
    """Return "a, b and c", or the first few and how many more.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b", "c"]), listed(["a", "b", "c", "d", "e", "f"], 3)
    ('a', 'a, b and c', 'a, b, c and 3 more')
    """
    if len(things) > most:
        return f"{', '.join(things[:most])} and {len(things) - most} more"
    return things[0] if len(things) == 1 else f"{', '.join(things[:-1])} and {things[-1]}" if things else "nothing"


def value(entry: Any, length: int = 24) -> str:
    """Return an entry of a table: numbers short, missing ones said, texts clipped.

    Examples
    --------
    >>> value(3.14159), value(None), value("x"), value(True), value(7)
    ('3.142', 'missing', 'x', 'True', '7')
    """
    if entry is None:
        return "missing"
    if isinstance(entry, bool | np.bool_):
        return str(bool(entry))
    if isinstance(entry, int | np.integer):
        return f"{int(entry)}"
    if isinstance(entry, float | np.floating):
        return "missing" if math.isnan(entry) else number(float(entry), 4)
    return "missing" if str(entry) in ("nan", "NaT", "<NA>") else clip(entry, length)
