"""Delimited text: cells between commas, semicolons, tabs, bars or blanks, under a line of names."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from mercer.tables.cells import MISSING, number
from mercer.tables.source import Source

if TYPE_CHECKING:
    import pandas as pd

_BLOCK = 2**20  # bytes parsed at a time: no row may be longer, and Arrow reads 32 of them ahead
_SEPARATORS = {"csv": ",;\t|", "tsv": "\t", "txt": ",;\t| "}
_LOOK = 50  # lines by which the separator is chosen


def batches(source: Source, separator: str, called: list[str]) -> Iterator[Any]:
    """Yield the rows as Arrow batches of texts, a few megabytes at a time.

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

    stream = _Ended(source.stream)
    done = 0
    last = None
    try:
        reader = arrow.open_csv(
            pa.PythonFile(stream, mode="r"),
            # One thread, so that rows are numbered; it keeps up with what is done to them afterwards.
            read_options=arrow.ReadOptions(
                use_threads=False, block_size=_BLOCK, column_names=called, skip_rows_after_names=1
            ),
            parse_options=arrow.ParseOptions(delimiter=separator, newlines_in_values=True, invalid_row_handler=ragged),
            convert_options=arrow.ConvertOptions(
                column_types=dict.fromkeys(called, pa.string()), strings_can_be_null=False
            ),
        )
        for batch in reader:
            if len(batch):
                done += len(batch)
                last = batch
                yield batch
    except pa.ArrowInvalid as error:
        raise _explained(source, error, invalid, called, done) from error
    if last is not None and "\n" in last.column(len(called) - 1)[-1].as_py() and stream.end != b'"':
        raise source.wrong('a quote (") is opened in its last row and never closed')


def _explained(source: Source, error: Exception, invalid: list[Any], called: list[str], done: int) -> Exception:
    """Return in a sentence what Arrow complains of."""
    if invalid:
        row = invalid[-1]
        cells = f"{row.actual_columns} cell{'s' * (row.actual_columns != 1)}"
        names = f"the first line names {row.expected_columns} columns"
        return source.wrong(f"line {row.number:,} has {cells} where {names}: {row.text[:60]!r}")
    text = str(error)
    if "UTF8" in text:
        where = text.partition("column #")[2].partition(":")[0]
        which = f" in column {called[int(where)]!r}" if where.isdigit() and int(where) < len(called) else ""
        return source.wrong(f"it is not UTF-8 text{which}, after line {done + 1:,}. Save it as UTF-8")
    if "straddl" in text:
        return source.wrong(
            f"after line {done + 1:,} a row is longer than {_BLOCK // 2**20} MB; a quote may be open there"
        )
    return source.wrong(f"it cannot be read as text in columns ({text})")


def heading(source: Source) -> tuple[str, list[str]]:
    """Return the character between cells, and the names of the columns."""
    text = source.head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")  # the head may end within a letter
    separator = _separator(text, _SEPARATORS[source.format])
    names = next(row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if any(row))
    if "\ufffd" in "".join(names):
        raise source.wrong("its first line is not UTF-8 text. Save it as UTF-8")
    called = [name.strip() or f"column {i}" for i, name in enumerate(names, 1)]
    if all(number(name) == number(name) for name in called):
        raise source.wrong(
            "its first line holds numbers only, so that its columns have no names. Put a line with names before it"
        )
    twice = sorted({name for name in called if called.count(name) > 1})
    if twice:
        raise source.wrong(f"two columns are called {twice[0]!r}. Give them different names")
    return separator, called


def _separator(text: str, candidates: str) -> str:
    """Return the candidate by which the first lines have equally many cells, and most of them."""
    best, most = candidates[0], (False, 1)
    whole = text if text.count("\n") <= 1 else text[: text.rindex("\n")]
    for candidate in candidates:
        rows = islice(csv.reader(io.StringIO(whole, newline=""), delimiter=candidate), _LOOK)
        try:
            widths = [len(row) for row in rows if any(row)]
        except csv.Error:
            continue
        if widths and widths[0] > 1 and (len(set(widths)) == 1, widths[0]) > most:
            best, most = candidate, (len(set(widths)) == 1, widths[0])
    return best


class _Ended:
    """A stream that ends in a line feed and remembers its last byte before that."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._over = False
        self.end = b""

    def read(self, size: int) -> bytes:
        if self._over:
            return b""
        data: bytes = self._stream.read(size)
        self.end = data.rstrip()[-1:] or self.end
        self._over = len(data) < size
        return data + b"\n" if self._over and not data.endswith(b"\n") else data

    def close(self) -> None:
        pass


def typed(table: Any, semicolons: bool) -> pd.DataFrame:
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
