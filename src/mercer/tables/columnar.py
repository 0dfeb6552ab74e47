"""Parquet and Feather: columns with their types, in batches."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from mercer.tables.source import Source

if TYPE_CHECKING:
    import pandas as pd

_BATCH = 16_384
_INDEX = re.compile(r"__index_level_\d+__")  # pandas writes the numbers of the rows so


def batches(source: Source) -> Iterator[Any]:
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


def typed(table: Any) -> pd.DataFrame:
    """Return an Arrow table as one of pandas, without the index that pandas may have written."""
    import pyarrow as pa

    table = table.drop_columns([name for name in table.column_names if _INDEX.fullmatch(name)])
    for i, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(pa.float64()))
    return table.to_pandas(ignore_metadata=True, date_as_object=False)
