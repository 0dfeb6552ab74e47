"""`mercer check`: is it a kernel, on this data?"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from mercer.cli.shared import options, output
from mercer.cli.shared.errors import CHECK_FAILED, guarded, no_column
from mercer.cli.shared.options import examples, kernel_named
from mercer.cli.shared.output import noted, say_json
from mercer.cli.shared.rows import placed
from mercer.machine.words import count

EXAMPLES = examples(
    "mercer check 'RBF(2) + 0.5 * Linear() ** 2' data.csv",
    "mercer check 'Sigmoid(1, -1)' data.csv --drop label --json",
    'mercer check \'RBF(10).on("age") * Delta().on("job")\' people.csv --raw',
)


@guarded
def check(
    kernel: Annotated[
        str, typer.Argument(metavar="KERNEL", help="An expression, such as 'RBF(2) + Linear()'.", show_default=False)
    ],
    data: options.Data,
    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", metavar="COLUMN", help="A column to leave out. May be repeated.", show_default=False),
    ] = None,
    rows: Annotated[int, typer.Option("--rows", min=1, metavar="N", help="How many rows to look at.")] = 2000,
    raw: Annotated[
        bool, typer.Option("--raw", help="Compare the columns as they are, not standardised and one-hot.")
    ] = False,
    format: options.Format = None,
    as_json: options.AsJson = False,
) -> None:
    """Say whether a kernel is symmetric and positive semidefinite on the rows of a table, with proof or witness.

    Columns are treated as in `mercer fit`. The exit code is 1 when it is no kernel there.
    """
    from mercer.gram import verdict
    from mercer.tables import TableEncoder

    made = kernel_named(kernel)
    made = made() if isinstance(made, type) else made
    with noted():
        frame = _frame(data, rows, drop or [], format)
        shape = f"{count(len(frame), 'row')}, {count(frame.shape[1], 'column')}"
        points: Any = frame
        if not raw:
            encoder = TableEncoder().fit(frame)
            points, made = encoder.transform(frame), placed(made, encoder, data)
            shape += f", {points.shape[1]} after encoding"
        made = made.resolve(points)
        found = verdict(made, points)
    proof = made.proof()
    if as_json:
        say_json(_facts(made, proof, found, shape))
    else:
        console = output.terminal()
        console.print(output.tree(proof))
        console.print(Text(f"\nOn {shape} of {data}:"))
        style = "green" if found.psd else "red"
        first, *rest = str(found).splitlines()
        console.print(f"[{style}]{first}[/]")
        console.print("\n".join(rest), markup=False)
    if not found.psd:
        raise typer.Exit(CHECK_FAILED)


def _frame(data: str, rows: int, drop: list[str], format: str | None) -> Any:
    """Return the first rows of a table."""
    from mercer.tables import read_table

    frame = read_table(data, rows=rows, format=format)
    for name in drop:
        if name not in frame.columns:
            no_column(name, data, frame.columns, " to drop")
    return frame.drop(columns=drop)


def _facts(kernel: Any, proof: Any, found: Any, shape: str) -> dict[str, Any]:
    told = {"kernel": repr(kernel), "proof": proof.status, "rule": proof.rule, "data": shape}
    return told | found.to_dict()
