"""Where a table of predictions goes, piece by piece: CSV, TSV, Parquet or Feather, whole or not at all."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mercer.cli.errors import fail
from mercer.points.files import placed

if TYPE_CHECKING:
    import pandas as pd

Write = Callable[["pd.DataFrame"], None]


@contextmanager
def sink(path: str) -> Iterator[Write]:
    r"""Yield a function that writes pieces of a table; the file appears when all are written.

    Parameters
    ----------
    path
        A name that ends with .csv, .tsv, .csv.gz, .tsv.gz, .parquet, .feather or .arrow; "-" for standard output.

    Examples
    --------
    >>> import tempfile, pandas as pd
    >>> from mercer.cli.sink import sink
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with sink(f"{folder}/all.csv") as write:
    ...         write(pd.DataFrame({"a": [1]}))
    ...         write(pd.DataFrame({"a": [2]}))
    ...     open(f"{folder}/all.csv").read()
    'a\n1\n2\n'
    """
    if path == "-":
        yield _Text(sys.stdout, ",").write
        sys.stdout.flush()
        return
    kind = form(path)
    with placed(path) as (draft,), _KINDS[kind](str(draft), path) as write:
        yield write


def form(path: str) -> str:
    """Return the format that a name asks for, or say which there are."""
    ending = path.lower().removesuffix(".gz").rpartition(".")[2]
    found = {"csv": "text", "tsv": "text", "txt": "text", "parquet": "parquet", "feather": "arrow", "arrow": "arrow"}
    if ending not in found:
        fail(f"--out {path}: its name must end with .csv, .tsv (also .gz), .parquet or .feather.")
    return found[ending]


class _Text:
    """CSV or TSV, the names of the columns once."""

    def __init__(self, stream: Any, separator: str) -> None:
        self.stream, self.separator, self.first = stream, separator, True

    def write(self, piece: pd.DataFrame) -> None:
        piece.to_csv(self.stream, sep=self.separator, header=self.first, index=False, lineterminator="\n")
        self.first = False


@contextmanager
def _text(draft: str, path: str) -> Iterator[Write]:
    name = path.lower()
    separator = "\t" if name.removesuffix(".gz").endswith(".tsv") else ","
    opened: Any = gzip.open if name.endswith(".gz") else open
    with opened(draft, "wt", encoding="utf-8", newline="") as stream:
        yield _Text(stream, separator).write


@contextmanager
def _columnar(draft: str, make: Callable[[str, Any], Any]) -> Iterator[Write]:
    import pyarrow

    writer: Any = None

    def write(piece: pd.DataFrame) -> None:
        nonlocal writer
        table = pyarrow.Table.from_pandas(piece, preserve_index=False)
        if writer is None:
            writer = make(draft, table.schema)
        writer.write_table(table.cast(writer.schema) if hasattr(writer, "schema") else table)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _parquet(draft: str, path: str) -> Any:
    def make(name: str, schema: Any) -> Any:
        from pyarrow.parquet import ParquetWriter

        return ParquetWriter(name, schema)

    return _columnar(draft, make)


def _arrow(draft: str, path: str) -> Any:
    def make(name: str, schema: Any) -> Any:
        from pyarrow.ipc import new_file

        return new_file(name, schema)

    return _columnar(draft, make)


_KINDS: dict[str, Callable[[str, str], Any]] = {"text": _text, "parquet": _parquet, "arrow": _arrow}
