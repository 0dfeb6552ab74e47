"""`mercer fit`: from a table to a chosen, certified, saved model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from mercer.cli import INTERRUPTED
from mercer.cli.shared import options
from mercer.cli.shared.errors import guarded
from mercer.cli.shared.files import Force, Output, is_model, is_report, require_outputs
from mercer.cli.shared.options import duration, examples, fraction, kernel_named
from mercer.cli.shared.output import noted, say_json, terminal

EXAMPLES = examples(
    "mercer fit houses.csv --target price",
    "mercer fit adult.csv.gz -y income --time 2m --report adult.html",
    "mercer fit train.parquet -y label --test test.parquet --out label.mercer",
    "mercer fit data.tsv -y y --kernel 'RBF' --kernel 'Matern(1.5) + Linear()'",
    "zcat big.csv.gz | mercer fit - -y y --json | jq .scores",
)


@guarded
def fit(
    data: options.Data,
    target: options.Target = None,
    task: Annotated[
        Literal["auto", "classify", "regress"],
        typer.Option("--task", help="Whether the target is a class or a number; auto looks at it."),
    ] = "auto",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="The model file.", show_default="NAME.mercer, after the data"),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Also write a report, one HTML page.", show_default=False),
    ] = None,
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            "--kernel",
            "-k",
            metavar="TEXT",
            help="A kernel to try instead of the usual list, such as 'RBF(2) + Linear()'; 'RBF' tries several scales. "
            "May be repeated.",
            show_default=False,
        ),
    ] = None,
    cv: Annotated[int, typer.Option("--cv", min=2, metavar="FOLDS", help="Folds of the cross-validation.")] = 5,
    time: Annotated[
        str, typer.Option("--time", "-t", metavar="TIME", help="What search and fit may take: 60s, 5m, 1h.")
    ] = "3m",
    test: Annotated[
        str | None,
        typer.Option("--test", metavar="FILE", help="Test rows, in a table of their own.", show_default=False),
    ] = None,
    test_size: Annotated[
        str,
        typer.Option("--test-size", metavar="SHARE", help="The share of the rows kept for the test; 0 for none."),
    ] = "0.2",
    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", metavar="COLUMN", help="A column to leave out. May be repeated.", show_default=False),
    ] = None,
    search_rows: Annotated[
        int | None,
        typer.Option(
            "--search-rows", min=20, metavar="N", help="Rows that the search looks at first.", show_default="5000"
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the split and of the search.")] = 0,
    format: options.Format = None,
    force: Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Choose a kernel for a table by cross-validation, fit it to all rows, test it, and save it."""
    from mercer.cli.shared.telling import Teller
    from mercer.cli.shared.training import Settings, train

    share = fraction(test_size, "--test-size")
    limit = duration(time)
    kernels = [kernel_named(text) for text in kernel or []]
    model_path = out or default_path(data)
    outputs = [Output("--out", model_path, is_model)]
    if report is not None:
        outputs.append(Output("--report", report, is_report))
    require_outputs(outputs, [data, *([test] if test else [])], force)
    settings = Settings(
        data=data,
        target=target,
        task=task,
        kernels=kernels,
        cv=cv,
        time=limit,
        out=model_path,
        report=report,
        test=test,
        test_size=0.0 if test else share,
        drop=drop or [],
        search_rows=search_rows,
        seed=seed,
        format=format,
        command=sys.argv[1:],
    )
    with noted() as notes:
        made = train(settings, Teller(None if as_json else terminal()), notes)
    if as_json:
        say_json({**made.facts, "model": str(settings.out), "report": settings.report and str(settings.report)})
    if made.interrupted:
        raise typer.Exit(INTERRUPTED)


def default_path(data: str) -> Path:
    """Return where the model of some data goes unless it is said.

    Examples
    --------
    >>> from mercer.cli.fit import default_path
    >>> str(default_path("far/adult.csv.gz")), str(default_path("-"))
    ('adult.mercer', 'model.mercer')
    """
    stem = Path(data).name.split(".")[0]
    return Path(f"{stem if data != '-' and stem else 'model'}.mercer")
