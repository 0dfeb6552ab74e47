"""Where a table of predictions goes, piece by piece: CSV, TSV, Parquet or Feather, whole or not at all."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mercer.cli.shared.errors import fail
from mercer.cli.shared.outputs import written

if TYPE_CHECKING:
    import pandas as pd

Write = Callable[["pd.DataFrame"], None]


@contextmanager
def sink(path: str, guard: bool = False) -> Iterator[Write]:
    r"""Yield a function that writes pieces of a table; the file appears when all are written.

    Parameters
    ----------
    path
        A name that ends with .csv, .tsv, .csv.gz, .tsv.gz, .parquet, .feather or .arrow; "-" for standard output.
    guard
        Whether texts that a spreadsheet would take for formulas get an apostrophe before them; CSV and TSV only.

    Examples
    --------
    >>> import tempfile, pandas as pd
    >>> from mercer.cli.shared.sink import sink
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with sink(f"{folder}/all.csv") as write:
    ...         write(pd.DataFrame({"a": [1]}))
    ...         write(pd.DataFrame({"a": [2]}))
    ...     open(f"{folder}/all.csv").read()
    'a\n1\n2\n'
    """
    if path == "-":
        yield _Text(sys.stdout, ",", guard).write
        sys.stdout.flush()
        return
    with written(path) as (draft,):
        if form(path) == "text":
            name = path.lower()
            opened: Any = gzip.open if name.endswith(".gz") else open
            with opened(draft, "wt", encoding="utf-8", newline="") as stream:
                yield _Text(stream, "\t" if name.removesuffix(".gz").endswith(".tsv") else ",", guard).write
        else:
            with _columnar(str(draft), _parquet if form(path) == "parquet" else _arrow) as write:
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

    def __init__(self, stream: Any, separator: str, guard: bool) -> None:
        self.stream, self.separator, self.guard, self.first = stream, separator, guard, True

    def write(self, piece: pd.DataFrame) -> None:
        if self.guard:
            piece = guarded_cells(piece)
        piece.to_csv(self.stream, sep=self.separator, header=self.first, index=False, lineterminator="\n")
        self.first = False


def guarded_cells(piece: pd.DataFrame) -> pd.DataFrame:
    """Return a table with an apostrophe before texts that a spreadsheet would take for formulas; numbers stay.

    Examples
    --------
    >>> import pandas as pd
    >>> from mercer.cli.shared.sink import guarded_cells
    >>> guarded_cells(pd.DataFrame({"@a": ["=1+1", "-5", "x"], "b": [-1, 2, 3]}))
        '@a  b
    0  '=1+1 -1
    1     -5  2
    2      x  3
    """
    import pandas as pd

    from mercer.tables.cells import number

    def safe(cell: Any) -> Any:
        formula = isinstance(cell, str) and cell.startswith(tuple("=+-@\t\r\n")) and number(cell) != number(cell)
        return f"'{cell}" if formula else cell

    columns = {
        safe(name): cells if pd.api.types.is_numeric_dtype(cells) else cells.astype(object).map(safe)
        for name, cells in piece.items()
    }
    return pd.DataFrame(columns)


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


def _parquet(name: str, schema: Any) -> Any:
    from pyarrow.parquet import ParquetWriter

    return ParquetWriter(name, schema)


def _arrow(name: str, schema: Any) -> Any:
    from pyarrow.ipc import new_file

    return new_file(name, schema)
