"""Delimited text: cells between commas, semicolons, tabs, bars or blanks, under a line of names."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from mercer.tables.cells import MISSING, number
from mercer.tables.source import ROW, Source

if TYPE_CHECKING:
    import pandas as pd

BLOCK = 2**20  # bytes parsed at a time
_CELL = 2**20  # bytes of the longest quoted cell with line breaks: a quote that is open longer was opened by mistake
_MERGED_LINES = 8  # lines of a quoted cell from which on it is asked whether they are rows
_SEPARATORS = {"csv": ",;\t|", "tsv": "\t", "txt": ",;\t| "}
_SEPARATOR_LINES = 50  # lines by which the separator is chosen


def delimited_batches(source: Source, separator: str, called: list[str]) -> Iterator[Any]:
    """Yield the rows as Arrow batches of texts, a megabyte at a time.

    Parameters
    ----------
    source
        The open table.
    separator, called
        What `heading` has found.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow

    invalid: list[Any] = []

    def ragged(row: Any) -> str:
        invalid.append(row)
        return "error"

    parse = arrow.ParseOptions(delimiter=separator, newlines_in_values=True, invalid_row_handler=ragged)
    convert = arrow.ConvertOptions(column_types=dict.fromkeys(called, pa.string()), strings_can_be_null=False)
    for lines, block in _blocks(source, separator, len(called)):
        # A block in memory and one thread: Arrow's own reader of streams leaves a thread that the end of the
        # program can meet while it reads, which aborts it.
        read = arrow.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=called)
        try:
            table = arrow.read_csv(pa.BufferReader(block), read, parse, convert)
        except pa.ArrowInvalid as error:
            raise _explained(source, error, invalid, lines, block) from error
        yield from table.to_batches()


def _blocks(source: Source, separator: str, width: int) -> Iterator[tuple[int, bytes]]:
    """Yield whole rows after that of the names, about a megabyte at a time, and the number of lines before them."""
    quotes = _Quotes(source, separator, width)
    held, lines, named = b"", 0, False
    while True:
        more = source.stream.read(max(BLOCK, len(held)))
        block = held + more
        end = quotes.end_of_rows(block, lines, last=not more)
        if end == 0 and len(block) > ROW:
            raise source.too_long(lines + 1)
        start = 0
        if not named:
            names = quotes.first_row.match(b"\n" + block[:end])
            named, start = names is not None, names.end() - 1 if names else end
        if block[start:end].strip(b"\r\n"):
            yield lines + block.count(b"\n", 0, start), block[start:end]
        if not more:
            return
        lines += block.count(b"\n", 0, end)
        held = block[end:]


class _Quotes:
    """Where quoted cells are: line breaks within them end no row, and a quote that was forgotten swallows rows.

    A quote opens a cell at its beginning only, and is written twice within.
    """

    def __init__(self, source: Source, separator: str, width: int) -> None:
        edge = re.escape(separator.encode()) + rb"\r\n"
        cell = rb'"[^"]*+(?:""[^"]*+)*+'
        rest = rb'(?<=[%(edge)s])%(cell)s"|(?<![%(edge)s])"'  # a quoted cell; a quote in one that is not quoted
        line = rest % {b"edge": edge, b"cell": cell.replace(rb'[^"]', rb'[^"\r\n]')}
        self.plain = re.compile(rb'(?:[^"]++|%s)*+' % line)  # all up to a quote that opens a cell with line breaks
        self.cell = re.compile(cell + rb'("?)')
        many = rest % {b"edge": edge, b"cell": cell}
        self.first_row = re.compile(rb'[%s]*+(?:[^"\r\n]++|%s)++(?:\r?\n|\r|\Z)' % (edge, many))
        self.source, self.separator, self.width = source, separator.encode(), width

    def end_of_rows(self, block: bytes, lines: int, last: bool) -> int:
        """Return where the last whole row ends, or say which line opens a quote that is not closed.

        Parameters
        ----------
        block
            Whole rows, and perhaps the beginning of one more.
        lines
            How many lines come before it.
        last
            Whether nothing comes after it.
        """
        if b'"' not in block:
            return len(block) if last else 1 + max(block.rfind(b"\n"), block.rfind(b"\r"))
        text = b"\n" + block  # so that a quote at the beginning is at the beginning of a cell
        start, end = 0, 1
        while True:
            stop = self.plain.match(text, start).end()  # type: ignore[union-attr]
            end = max(end, 1 + text.rfind(b"\n", start, stop), 1 + text.rfind(b"\r", start, stop))
            cell = self.cell.match(text, stop)
            if cell is None:
                return len(block) if last else end - 1
            if not cell[1]:
                if last or len(text) - stop > _CELL:
                    raise self._open(lines + text.count(b"\n", 0, stop), "")
                return end - 1
            if self._merged(cell[0], text[cell.end() : cell.end() + 1]):
                until = lines + text.count(b"\n", 0, cell.end())
                raise self._open(lines + text.count(b"\n", 0, stop), f" before line {until:,}")
            start = cell.end()

    def _open(self, line: int, until: str) -> Exception:
        return self.source.wrong(
            f'line {line:,} opens a quote (") that is not closed{until}. Close it, or write it twice within quotes'
        )

    def _merged(self, cell: bytes, after: bytes) -> bool:
        """Whether a quoted cell with line breaks has swallowed rows: it ends within a cell, or its lines are rows."""
        if after not in (self.separator, b"\r", b"\n", b""):
            return True
        inner = cell.splitlines()[1:-1]
        return (
            self.width > 1
            and len(inner) >= _MERGED_LINES
            and all(line.count(self.separator) == self.width - 1 for line in inner)
        )


def _explained(source: Source, error: Exception, invalid: list[Any], lines: int, block: bytes) -> Exception:
    """Return in a sentence what Arrow complains of."""
    if invalid:
        row = invalid[-1]
        place = re.search(rb"(?<=[\r\n])" + re.escape(row.text.encode()) + rb"(?=[\r\n]|\Z)", b"\n" + block)
        line = lines + block.count(b"\n", 0, place.start() if place else 0) + 1
        cells = f"{row.actual_columns:,} cell{'s' * (row.actual_columns != 1)}"
        names = f"the first line names {row.expected_columns:,} columns"
        return source.wrong(f"line {line:,} has {cells} where {names}: {row.text[:60]!r}")
    return source.wrong(f"it cannot be read as text in columns ({error})")


def heading(source: Source) -> tuple[str, list[str]]:
    """Return the character between cells, and the names of the columns."""
    text = source.head.decode("utf-8", "ignore")  # the head may end within a letter
    separator = _separator(text, _SEPARATORS[source.format])
    try:
        names = next(row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if any(row))
    except csv.Error as error:
        raise source.wrong(f"its first line cannot be read as names of columns ({error})") from error
    return separator, column_names(source, names)


def column_names(source: Source, first: list[str]) -> list[str]:
    """Return the names of the columns that a first line has, numbered where there is none."""
    called = [name.strip() or f"column {i}" for i, name in enumerate(first, 1)]
    if all(number(name) == number(name) for name in called):
        raise source.wrong(
            "its first line holds numbers only, so that its columns have no names. Put a line with names before it"
        )
    source.require_distinct(called)
    return called


def _separator(text: str, candidates: str) -> str:
    """Return the candidate by which the first lines have equally many cells, and most of them."""
    best, most = candidates[0], (False, 1)
    whole = text if text.count("\n") <= 1 else text[: text.rindex("\n")]
    for candidate in candidates:
        rows = islice(csv.reader(io.StringIO(whole, newline=""), delimiter=candidate), _SEPARATOR_LINES)
        try:
            widths = [len(row) for row in rows if any(row)]
        except csv.Error:
            continue
        if widths and widths[0] > 1 and (len(set(widths)) == 1, widths[0]) > most:
            best, most = candidate, (len(set(widths)) == 1, widths[0])
    return best


def typed_text(table: Any, semicolons: bool = False) -> pd.DataFrame:
    """Return columns of texts as columns of numbers, where all of their cells are, and of texts.

    Parameters
    ----------
    table
        An Arrow table of texts.
    semicolons
        Whether cells stand between semicolons: then 1,5 is a number, too.
    """
    import pyarrow as pa

    made = {name: _typed(table.column(i), semicolons) for i, name in enumerate(table.column_names)}
    return pa.table(made).to_pandas()


def _typed(column: Any, semicolons: bool) -> Any:
    import pyarrow as pa
    from pyarrow import compute

    column = compute.utf8_trim_whitespace(column)
    gone = compute.is_in(compute.utf8_lower(column), value_set=pa.array(MISSING))
    column = compute.if_else(gone, pa.scalar(None, pa.string()), column)
    for form in (pa.int64(), pa.float64()):
        try:
            return column.cast(form)
        except pa.ArrowInvalid:
            pass
    if semicolons:
        try:
            return compute.replace_substring(column, ",", ".").cast(pa.float64())
        except pa.ArrowInvalid:
            pass
    return column
