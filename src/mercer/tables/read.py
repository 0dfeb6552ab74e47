"""Reading tables, whole or in pieces."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from mercer.estimators.shared.parameters import whole
from mercer.tables import columnar, delimited, svmlight
from mercer.tables.source import BROKEN, Source, opened

if TYPE_CHECKING:
    import pandas as pd

_SOURCE = str | os.PathLike[str] | IO[bytes]


def read_table(source: _SOURCE, *, rows: int | None = None, format: str | None = None) -> pd.DataFrame:
    r"""Return a table as a pandas one.

    Blanks around cells of text are removed, and "", "?", "NA", "null" and the like are missing. A column of text all of
    whose cells are numbers is one of numbers.

    Parameters
    ----------
    source
        A path; "-" for standard input; or an open binary file. Each may be compressed (gzip, bzip2, xz, zstd).
    rows
        How many rows to read, from the first on; all of them unless given.
    format
        "csv", "tsv", "txt" (the separator is found out), "svmlight", "parquet" or "feather"; by the ending of the
        name and the first bytes unless given.

    Raises
    ------
    TableError
        With a sentence, if there is no such file or it is no table.

    Examples
    --------
    >>> import io
    >>> from mercer.tables import read_table
    >>> read_table(io.BytesIO(b"age,job\n31, smith\n?,baker\n"))
        age    job
    0  31.0  smith
    1   NaN  baker
    """
    if rows is not None and not whole(rows, 1):
        raise ValueError(f"rows={rows!r} must be a whole number >= 1, or None for all.")
    with opened(source, format) as found:
        return next(_pieces(found, rows))


def read_pieces(source: _SOURCE, rows: int = 50_000, *, format: str | None = None) -> Iterator[pd.DataFrame]:
    r"""Yield a table in pieces, so that it may be larger than memory.

    Column types are those of each piece: a column may be of whole numbers in one and of text in the next. A
    `TableEncoder` makes the same of the pieces as of the whole.

    Parameters
    ----------
    source, format
        As for `read_table`.
    rows
        Rows of a piece; the last one may have fewer.

    Examples
    --------
    >>> import io
    >>> from mercer.tables import read_pieces
    >>> [len(piece) for piece in read_pieces(io.BytesIO(b"a,b\n1,2\n3,4\n5,6\n"), rows=2)]
    [2, 1]
    """
    if not whole(rows, 1):
        raise ValueError(f"rows={rows!r} must be a whole number >= 1.")
    with opened(source, format) as found:
        yield from _pieces(found, rows)


def _pieces(source: Source, rows: int | None) -> Iterator[pd.DataFrame]:
    done = 0
    try:
        for frame in _frames(source, rows):
            frame.index = frame.index + done
            done += len(frame)
            yield frame
    except BROKEN as error:
        raise source.broken(error) from error
    if not done:
        raise source.wrong("it has names of columns, but no rows")


def _frames(source: Source, rows: int | None) -> Iterator[pd.DataFrame]:
    if source.format == "svmlight":
        yield from svmlight.pieces(source, rows)
    elif source.format in ("parquet", "feather"):
        yield from map(columnar.typed, _grouped(columnar.batches(source), rows, source))
    else:
        separator, called = delimited.heading(source)
        for table in _grouped(delimited.batches(source, separator, called), rows, source):
            yield delimited.typed(table, separator == ";")


def _grouped(batches: Iterator[Any], rows: int | None, source: Source) -> Iterator[Any]:
    """Yield Arrow tables of so many rows each, from batches of any size; the last may have fewer."""
    import pyarrow as pa

    held: list[Any] = []
    count = 0
    for batch in batches:
        source.require_distinct(batch.schema.names)
        held.append(batch)
        count += len(batch)
        while rows is not None and count >= rows:
            table = pa.Table.from_batches(held)
            yield table.slice(0, rows)
            held, count = table.slice(rows).to_batches(), count - rows
    if count:
        yield pa.Table.from_batches(held)
