"""`mercer predict`: a column of predictions for a table, as long as it likes."""

from __future__ import annotations

import gzip
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mercer.cli import options
from mercer.cli.options import Force, Output, require_outputs, written
from mercer.cli.output import aside, fail, guarded, noted, require_columns, say_json, summed, watched
from mercer.machine.words import count, seconds

if TYPE_CHECKING:
    import pandas as pd


@guarded(
    "mercer predict price.mercer new.csv --out predicted.csv",
    "mercer predict income.mercer people.csv.gz --proba --keep id --out chances.parquet",
    "mercer predict price.mercer new.csv --quantiles 0.05,0.5,0.95 --adaptive | head",
    "zcat huge.csv.gz | mercer predict price.mercer - > predicted.csv",
)
def predict(
    model: options.Model,
    data: options.Data,
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", metavar="FILE", help="CSV, TSV (also .gz), Parquet or Feather; - for standard output."
        ),
    ] = "-",
    proba: Annotated[bool, typer.Option("--proba", help="Also the probability of each class.")] = False,
    margins: Annotated[bool, typer.Option("--margins", help="Also the values of the decision function.")] = False,
    quantiles: Annotated[
        str | None,
        typer.Option(
            "--quantiles",
            metavar="LIST",
            help="Also quantiles of the target, such as 0.05,0.5,0.95.",
            show_default=False,
        ),
    ] = None,
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="Quantiles further apart for rows that are harder to predict.")
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="COLUMN",
            help="A column of the data to copy before the predictions, or 'all'. May be repeated.",
            show_default=False,
        ),
    ] = None,
    spreadsheet: Annotated[
        bool,
        typer.Option(
            "--spreadsheet", help="Write an apostrophe before texts that a spreadsheet would take for formulas."
        ),
    ] = False,
    format: options.Format = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    force: Force = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object about the run; needs --out FILE.")
    ] = False,
) -> None:
    """Predict every row of a table. Rows are read, predicted and written in pieces, so that memory stays small."""
    asked = [name for name, on in (("proba", proba), ("margins", margins), ("quantiles", quantiles is not None)) if on]
    if len(asked) > 1:
        fail(f"take one of --proba, --margins and --quantiles; these are {len(asked)}.")
    if as_json and out == "-":
        fail("--json needs --out FILE: standard output cannot hold both the predictions and the JSON object.")
    if adaptive and quantiles is None:
        fail("--adaptive says which quantiles; say how many, too, as in --quantiles 0.05,0.5,0.95 --adaptive.")
    what = asked[0] if asked else "prediction"
    levels = options.quantiles(quantiles) if quantiles is not None else []
    if out != "-":
        if form(out) != "text" and spreadsheet:
            fail(f"--spreadsheet is for CSV and TSV, which spreadsheets open; --out {out} is neither.")
        require_outputs([Output("--out", Path(out))], [model, data], force)
    began = time.perf_counter()
    reading = options.reading(format=format, encoding=encoding, sheet=sheet)
    with noted() as notes:
        rows = _run(model, data, reading, out, what, levels, adaptive, keep or [], spreadsheet)
    took = time.perf_counter() - began
    if as_json:
        say_json({"rows": rows, "out": out, "columns": what, "seconds": took, "notes": notes})
    elif out != "-":
        aside().print(f"{count(rows, 'row')} predicted in {seconds(took)}: {out}", soft_wrap=True)


def _run(
    path: str,
    data: str,
    reading: dict[str, str],
    out: str,
    what: str,
    levels: list[float],
    adaptive: bool,
    keep: list[str],
    spreadsheet: bool,
) -> int:
    import mercer
    from mercer.cli.rows import inputs, pieces, predictions, require

    model = mercer.load(path)
    require(model, what)
    target = mercer.io.facts(path).get("target")
    rows, names = 0, None
    with summed(), sink(out, spreadsheet) as write, _counting() as counted:
        for piece in pieces(data, **reading):
            found = predictions(model, inputs(model, piece, data, target), what, levels, adaptive)
            kept = _columns(piece, keep, data)
            if names not in (None, list(kept.columns)):  # JSON lines need not all have the same names
                fail(f"--keep all: {data} has other columns after row {rows:,} than before; name those to keep.")
            names = list(kept.columns)
            write(kept.assign(**found))
            rows += len(piece)
            counted(rows)
    return rows


def _columns(piece: Any, keep: list[str], data: str) -> Any:
    """Return the columns to copy."""
    if "all" in keep and "all" not in piece.columns:
        return piece
    require_columns(keep, data, piece.columns, " to keep")
    return piece[keep]


@contextmanager
def _counting() -> Iterator[Callable[[int], None]]:
    """Show how many rows are done, where someone looks."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.completed:,} rows"), TimeElapsedColumn())
    with Progress(*columns, console=aside(), transient=True, disable=not watched()) as bars:
        task = bars.add_task("", total=None)
        yield lambda rows: bars.update(task, completed=rows)


# Where a table of predictions goes, piece by piece: CSV, TSV, Parquet or Feather, whole or not at all.


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
    >>> from mercer.cli.predict import sink
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
    formats = {"csv": "text", "tsv": "text", "txt": "text", "parquet": "parquet", "feather": "arrow", "arrow": "arrow"}
    if ending not in formats:
        fail(f"--out {path}: its name must end with .csv, .tsv (also .gz), .parquet or .feather.")
    return formats[ending]


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
    >>> from mercer.cli.predict import guarded_cells
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
