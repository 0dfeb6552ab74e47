"""`mercer predict`: a column of predictions for a table, as long as it likes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from mercer.cli.shared import options
from mercer.cli.shared.errors import fail, guarded, no_column
from mercer.cli.shared.options import examples
from mercer.cli.shared.output import aside, noted, say_json, watched
from mercer.cli.shared.outputs import Force, Output, require_outputs
from mercer.cli.shared.sink import form, sink
from mercer.machine.words import count, seconds

EXAMPLES = examples(
    "mercer predict price.mercer new.csv --out predicted.csv",
    "mercer predict income.mercer people.csv.gz --proba --keep id --out chances.parquet",
    "mercer predict price.mercer new.csv --quantiles 0.05,0.5,0.95 | head",
    "zcat huge.csv.gz | mercer predict price.mercer - > predicted.csv",
)


@guarded
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
    what = asked[0] if asked else "prediction"
    levels = options.quantiles(quantiles) if quantiles is not None else []
    if out != "-":
        if form(out) != "text" and spreadsheet:
            fail(f"--spreadsheet is for CSV and TSV, which spreadsheets open; --out {out} is neither.")
        require_outputs([Output("--out", Path(out))], [model, data], force)
    began = time.perf_counter()
    with noted() as notes:
        rows = _run(model, data, out, what, levels, keep or [], format, spreadsheet)
    took = time.perf_counter() - began
    if as_json:
        say_json({"rows": rows, "out": out, "columns": what, "seconds": took, "notes": notes})
    elif out != "-":
        aside().print(f"{count(rows, 'row')} predicted in {seconds(took)}: {out}", soft_wrap=True)


def _run(
    path: str,
    data: str,
    out: str,
    what: str,
    levels: list[float],
    keep: list[str],
    format: str | None,
    spreadsheet: bool,
) -> int:
    import mercer
    from mercer.cli.shared.predicting import inputs, pieces, predictions, require

    model = mercer.load(path)
    require(model, what)
    target = mercer.io.facts(path).get("target")
    rows = 0
    with sink(out, spreadsheet) as write, _counting() as counted:
        for piece in pieces(data, format):
            found = predictions(model, inputs(model, piece, data, target), what, levels)
            write(_columns(piece, keep, data).assign(**found))
            rows += len(piece)
            counted(rows)
    return rows


def _columns(piece: Any, keep: list[str], data: str) -> Any:
    """Return the columns to copy."""
    if "all" in keep and "all" not in piece.columns:
        return piece
    for name in keep:
        if name not in piece.columns:
            no_column(name, data, piece.columns, " to keep")
    return piece[keep]


@contextmanager
def _counting() -> Iterator[Callable[[int], None]]:
    """Show how many rows are done, where someone looks."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.completed:,} rows"), TimeElapsedColumn())
    with Progress(*columns, console=aside(), transient=True, disable=not watched()) as bars:
        task = bars.add_task("", total=None)
        yield lambda rows: bars.update(task, completed=rows)
