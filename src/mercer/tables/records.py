"""JSON lines and sheets of Excel: values that have types become the texts of a CSV file, and are read as these are."""

from __future__ import annotations

import json
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, time, timedelta
from itertools import count, islice
from typing import IO, Any

from mercer.tables.delimited import BLOCK, column_names
from mercer.tables.source import ROW, Source, TableError


def _texts(names: Iterable[str], columns: Iterable[Iterable[Any]]) -> Any:
    """Return an Arrow batch of texts; halves of letters, which JSON can write, are question marks."""
    import pyarrow as pa

    texts = ([None if value is None else str(value).encode("utf-8", "replace") for value in c] for c in columns)
    named = [name.encode("utf-8", "replace").decode() for name in names]
    return pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in texts], named)


# -- JSON lines: an object on each line ------------------------------------------------------------------

_CELLS = 2**26  # cells of a megabyte of lines: more are those of lines with few names in common
_DECODER = json.JSONDecoder(object_pairs_hook=tuple, parse_int=str, parse_float=str, parse_constant=str)


def json_batches(source: Source) -> Iterator[Any]:
    """Yield the rows as Arrow batches of texts, a megabyte at a time, with the columns that have been named by then."""
    names: dict[str, None] = {}
    rows: list[dict[str, Any]] = []
    size = 0
    for number in count(1):
        line = source.stream.readline(ROW + 1)
        size += len(line)
        if len(line) > ROW:
            raise source.too_long(number)
        if line.strip():
            rows.append(_row(source, number, line.decode().strip()))
            names |= dict.fromkeys(rows[-1])
        if len(names) * len(rows) > _CELLS:
            raise source.wrong(
                f"its lines up to {number:,} have {len(names):,} names, and few values of each. Name fewer"
            )
        if rows and (size > BLOCK or not line):
            yield _texts(names, ([row.get(name) for row in rows] for name in names))
            rows, size = [], 0
        if not line:
            return


def _row(source: Source, number: int, line: str) -> dict[str, Any]:
    """Return names and values of a line, numbers as they are written."""
    try:
        pairs = _DECODER.decode(line)
    except (ValueError, RecursionError) as error:
        why = getattr(error, "msg", str(error))
        raise source.wrong(f"line {number:,} is no whole JSON object ({why}): {line[:60]!r}") from error
    if not isinstance(pairs, tuple):
        raise source.wrong(f'line {number:,} is no JSON object, such as {{"age": 31, "job": "smith"}}: {line[:60]!r}')
    row: dict[str, Any] = {}
    for name, value in pairs:
        if name in row:
            raise source.wrong(f"line {number:,} names {name!r} twice. Give each value a name of its own")
        if isinstance(value, tuple | list):
            what = "a list" if isinstance(value, list) else "an object"
            raise source.wrong(f"line {number:,} holds {what} in column {name!r}. Give each of its values a column")
        row[name] = value
    return row


# -- workbooks of Excel ----------------------------------------------------------------------------------

_SHEET_BATCH = 1000  # rows read at a time
_SHEET_ROWS = 2**20  # rows that a sheet can have
_UNPACKED, _RATIO = 2**26, 100  # bytes that a workbook may unpack to, and how many times its size if it is more


def sheet_batches(source: Source, file: IO[bytes], wanted: str | None) -> Iterator[Any]:
    """Yield the rows of a sheet as Arrow batches of texts; rows without cells are left out.

    Parameters
    ----------
    source, file
        The open table, as a file in which one can go back.
    wanted
        The name of the sheet; the first one unless given.
    """
    sheets = _sheets(source, file)
    title = next(iter(sheets), None) if wanted is None else wanted
    there = f"its sheets are {', '.join(map(repr, list(sheets)[:10]))}{', ...' if len(sheets) > 10 else ''}"
    if title not in sheets:
        raise source.wrong(f"it has no sheet {title!r}; {there}" if sheets else "it has no sheets")
    rows = _sheet_rows(source, sheets[title])
    _, names = next(rows, (0, []))
    if not names:
        raise source.wrong(f"its sheet {title!r} is empty; {there}")
    called = column_names(source, [name or "" for name in names])
    while batch := list(islice(rows, _SHEET_BATCH)):
        for number, cells in batch:
            if len(cells) > len(called):
                raise source.wrong(
                    f"row {number:,} of its sheet {title!r} has {len(cells):,} cells where the first row names "
                    f"{len(called):,} columns: {cells[-1]!r:.60}"
                )
        yield _texts(called, zip(*(cells + [None] * (len(called) - len(cells)) for _, cells in batch)))


def _sheets(source: Source, file: IO[bytes]) -> dict[str, Any]:
    """Return the sheets of a workbook by their names."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise source.wrong(
            "it is a workbook of Excel, which openpyxl reads. Install that, as in pip install openpyxl, or save the "
            "sheet as CSV"
        ) from None
    with _reading(source):
        size, unpacked = file.seek(0, 2), sum(part.file_size for part in zipfile.ZipFile(file).infolist())
        if unpacked > max(_UNPACKED, _RATIO * size):
            raise source.wrong(f"it unpacks to {unpacked / size:,.0f} times its size, as no table does")
        book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
        return {sheet.title: sheet for sheet in book.worksheets}


def _sheet_rows(source: Source, sheet: Any) -> Iterator[tuple[int, list[str | None]]]:
    """Yield the number and the cells of each row that has some, without empty ones at its end."""
    sheet.reset_dimensions()  # some programs write that there are fewer cells
    rows = sheet.iter_rows(values_only=True)
    for done in range(0, _SHEET_ROWS, _SHEET_BATCH):
        with _reading(source):
            batch = list(islice(rows, _SHEET_BATCH))
        for number, values in enumerate(batch, done + 1):
            cells = [_shown(value) for value in values]
            while cells and cells[-1] is None:
                cells.pop()
            if cells:
                yield number, cells
        if not batch:
            return
    raise source.wrong(f"its sheet {sheet.title!r} has more rows than Excel knows")


def _shown(value: Any) -> str | None:
    """Return a cell as a CSV file would have it, None where it is empty."""
    if isinstance(value, datetime) and value.time() == time():
        value = value.date()
    if isinstance(value, timedelta):
        value = value.total_seconds()
    return None if value is None else str(value).strip() or None


@contextmanager
def _reading(source: Source) -> Iterator[None]:
    """Make one error of the many that openpyxl raises on files that are none, and leave out what it says of styles."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (TableError, MemoryError):
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise source.wrong(
            f"it cannot be read as a workbook of Excel ({why:.100}). Save it again, or as CSV"
        ) from error
