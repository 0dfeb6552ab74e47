"""Reading tables, whole or in pieces: delimited text, JSON lines, Excel, Parquet, Feather and SVMlight."""

from __future__ import annotations

import io
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice, pairwise
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from mercer.estimators.shared.parameters import whole
from mercer.tables.cells import ABSENT
from mercer.tables.delimited import delimited_batches, heading, typed_text
from mercer.tables.records import json_batches, sheet_batches
from mercer.tables.source import BROKEN, Source, opened

if TYPE_CHECKING:
    import pandas as pd

_SOURCE = str | os.PathLike[str] | IO[bytes]


def read_table(
    source: _SOURCE,
    *,
    rows: int | None = None,
    format: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> pd.DataFrame:
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
        "csv", "tsv", "txt" (the separator is found out), "jsonl", "xlsx", "svmlight", "parquet" or "feather"; by the
        ending of the name and the first bytes unless given.
    encoding
        Of text that is not UTF-8, such as "windows-1252". A byte order mark, as UTF-16 has it, is seen without it.
    sheet
        Of a workbook of Excel; the first one unless given.

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
    with opened(source, format, encoding) as table:
        return next(_pieces(table, rows, sheet))


def read_pieces(
    source: _SOURCE,
    rows: int = 50_000,
    *,
    format: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> Iterator[pd.DataFrame]:
    r"""Yield a table in pieces, so that it may be larger than memory.

    Column types are those of each piece: a column may be of whole numbers in one and of text in the next. A
    `TableEncoder` makes the same of the pieces as of the whole.

    Parameters
    ----------
    source, format, encoding, sheet
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
    with opened(source, format, encoding) as table:
        yield from _pieces(table, rows, sheet)


def _pieces(source: Source, rows: int | None, sheet: str | None) -> Iterator[pd.DataFrame]:
    if sheet is not None and source.format != "xlsx":
        raise source.wrong(
            f"sheet={sheet!r} is for workbooks of Excel, and this is a file of {source.format}. Leave it out"
        )
    done = 0
    try:
        for frame in _frames(source, rows, sheet):
            frame.index = frame.index + done
            done += len(frame)
            yield frame
    except BROKEN as error:
        raise source.broken(error) from error
    if not done:
        raise source.wrong("it has names of columns, but no rows")


def _frames(source: Source, rows: int | None, sheet: str | None) -> Iterator[pd.DataFrame]:
    if source.format == "svmlight":
        yield from _svmlight_frames(source, rows)
    elif source.format in ("parquet", "feather"):
        yield from map(_typed_columns, _grouped(_columnar_batches(source), rows, source))
    elif source.format == "jsonl":
        yield from map(typed_text, _grouped(json_batches(source), rows, source))
    elif source.format == "xlsx":
        with _seekable(source) as file:
            yield from map(typed_text, _grouped(sheet_batches(source, file, sheet), rows, source))
    else:
        separator, called = heading(source)
        for table in _grouped(delimited_batches(source, separator, called), rows, source):
            yield typed_text(table, separator == ";")


def _grouped(batches: Iterator[Any], rows: int | None, source: Source) -> Iterator[Any]:
    """Yield Arrow tables of so many rows each, from batches of any size; the last may have fewer.

    A column that some batches do not have is empty there.
    """
    import pyarrow as pa

    held: list[Any] = []
    count = 0
    for batch in batches:
        source.require_distinct(batch.schema.names)
        held.append(pa.Table.from_batches([batch]))
        count += len(batch)
        while rows is not None and count >= rows:
            table = pa.concat_tables(held, promote_options="default")
            yield table.slice(0, rows)
            held, count = [table.slice(rows)], count - rows
    if count:
        yield pa.concat_tables(held, promote_options="default")


# -- Parquet and Feather: columns with their types, in batches ---------------------------------------------

_BATCH = 16_384  # rows of Parquet read at a time
_INDEX = re.compile(r"__index_level_\d+__")  # pandas writes the numbers of the rows so


def _columnar_batches(source: Source) -> Iterator[Any]:
    """Yield the rows as Arrow batches."""
    import pyarrow as pa

    try:
        yield from _parquet(source) if source.format == "parquet" else _feather(source)
    except (pa.ArrowException, OSError) as error:
        raise source.wrong(f"it cannot be read as {source.format} ({str(error).splitlines()[0]})") from error


def _parquet(source: Source) -> Iterator[Any]:
    from pyarrow import parquet

    with _seekable(source) as file:
        yield from parquet.ParquetFile(file).iter_batches(batch_size=_BATCH)


def _feather(source: Source) -> Iterator[Any]:
    import pyarrow as pa

    if not source.head.startswith(b"ARROW1"):  # the stream format, which can be read as it comes
        yield from pa.ipc.open_stream(pa.PythonFile(source.stream, mode="r"))
        return
    with _seekable(source) as file:
        reader = pa.ipc.open_file(pa.PythonFile(file, mode="r"))
        for i in range(reader.num_record_batches):
            yield reader.get_batch(i)


@contextmanager
def _seekable(source: Source) -> Iterator[IO[bytes]]:
    """Give a file in which one can go back: these formats keep their table of contents at the end."""
    if source.file is not None:
        source.file.seek(0)
        yield source.file
        return
    with tempfile.TemporaryFile() as file:
        shutil.copyfileobj(source.stream, file, 2**20)
        file.seek(0)
        yield file


def _typed_columns(table: Any) -> pd.DataFrame:
    """Return an Arrow table as one of pandas, without the index that pandas may have written."""
    import pyarrow as pa

    table = table.drop_columns([name for name in table.column_names if _INDEX.fullmatch(name)])
    for i, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(pa.float64()))
    return table.to_pandas(ignore_metadata=True, date_as_object=False)


# -- the format of SVMlight and LIBSVM ---------------------------------------------------------------------

_TARGET = "target"
_DENSE_ENTRIES = 2**26  # entries up to which a table is held with its zeros
_SVMLIGHT_LINE = re.compile(rb"\s*\S+(\s+qid:\d+)?(\s+\d+:[^\s:]+)*\s*(#.*)?", re.DOTALL)


def _svmlight_frames(source: Source, rows: int | None) -> Iterator[pd.DataFrame]:
    """Yield tables with a column "target", and one for each feature, called f and its index in the file.

    A piece has columns up to the largest index in it; its `attrs` say that those it does not have are zero.
    """
    done = 0
    while lines := list(islice(source.stream, rows)):
        if any(map(_has_cells, lines)):
            yield _svmlight_frame(source, lines, done)
        done += len(lines)


def _has_cells(line: bytes) -> bool:
    return not line.lstrip().startswith(b"#") and bool(line.strip())


def _svmlight_frame(source: Source, lines: list[bytes], done: int) -> pd.DataFrame:
    import pandas as pd
    from sklearn.datasets import load_svmlight_file

    try:
        matrix, target = load_svmlight_file(io.BytesIO(b"".join(lines)), zero_based=True)
    except (ValueError, OverflowError) as error:
        raise _svmlight_error(source, lines, done, str(error)) from error
    first = int(matrix.indices.min()) > 0 if matrix.nnz else 1  # indices from 1, as usual: there is no f0
    features = matrix[:, int(first) :]
    names = [f"f{i}" for i in range(int(first), matrix.shape[1])]
    if matrix.shape[0] * len(names) <= _DENSE_ENTRIES:
        frame = pd.DataFrame(features.toarray(), columns=names)
    else:
        frame = pd.DataFrame.sparse.from_spmatrix(features, columns=names)
    whole = bool(np.all(target == np.floor(target))) and bool(np.abs(target).max(initial=0.0) < 2**53)
    frame.insert(0, _TARGET, target.astype(np.int64) if whole else target)
    frame.attrs[ABSENT] = 0.0
    return frame


def _svmlight_error(source: Source, lines: list[bytes], done: int, said: str) -> Exception:
    for i, line in enumerate(lines, done + 1):
        if _has_cells(line) and not _is_svmlight(line):
            return source.wrong(
                f"line {i:,} is no target followed by index:value with growing indices: {line.strip()[:60]!r}"
            )
    return source.wrong(f"it cannot be read as svmlight ({said})")


def _is_svmlight(line: bytes) -> bool:
    if not _SVMLIGHT_LINE.fullmatch(line):
        return False
    target, *cells = line.partition(b"#")[0].split()
    pairs = [cell.split(b":") for cell in cells if not cell.startswith(b"qid:")]
    try:
        float(target)
        indices = [int(i) for i, value in pairs if float(value) == float(value)]
    except ValueError:
        return False
    return all(i < j for i, j in pairwise(indices))
