"""The blocks of a page: sections, and in them prose, facts, figures, tables, trees and programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar


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
