"""`mercer fit`: from a table to a chosen, certified, saved model, told step by step."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.text import Text

from mercer.cli import INTERRUPTED, options, output
from mercer.cli.kernels import kernel_named
from mercer.cli.options import Force, Output, duration, fraction, is_model, is_report, require_outputs
from mercer.cli.output import certificate_lines, guarded, indented, measure_name, noted, say_json, size, terminal
from mercer.cli.rows import Examples, name_of
from mercer.cli.scores import Score, baseline, within
from mercer.machine.words import count, seconds

if TYPE_CHECKING:
    import pandas as pd

    from mercer.cli.training import Settings, Trained


@guarded(
    "mercer fit houses.csv --target price",
    "mercer fit adult.csv.gz -y income --time 2m --report adult.html",
    "mercer fit train.parquet -y label --test test.parquet --out label.mercer",
    "mercer fit data.tsv -y y --kernel 'RBF' --kernel 'Matern(1.5) + Linear()'",
    "zcat big.csv.gz | mercer fit - -y y --json | jq .scores",
)
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
    drop: options.Drop = None,
    search_rows: Annotated[
        int | None,
        typer.Option(
            "--search-rows", min=20, metavar="N", help="Rows that the search looks at first.", show_default="5000"
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the split and of the search.")] = 0,
    format: options.Format = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    force: Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Choose a kernel for a table by cross-validation, fit it to all rows, test it, and save it."""
    from mercer.cli.training import Settings, train

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
        reading=options.reading(format=format, encoding=encoding, sheet=sheet),
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


# -- the account of a fit, step by step ------------------------------------------------------------------

_COLUMNS_LISTED = 40  # of a wide table, this many are listed one by one


class Teller:
    """Prints each step of a fit as soon as it is known.

    Parameters
    ----------
    console
        Where to; None to be silent.
    """

    def __init__(self, console: Console | None) -> None:
        self.console = console or Console(quiet=True)

    @property
    def watching(self) -> bool:
        """Whether a bar may be shown."""
        return not self.console.quiet

    def data(
        self, settings: Settings, frame: pd.DataFrame, whole: Examples, learn: Examples, test: Examples | None
    ) -> None:
        """Tell what was read, what is to be predicted, and how the rows are divided."""
        shape = f"{count(len(frame), 'row')}, {count(frame.shape[1], 'column')}"
        lines = [f"{name_of(settings.data)}: {shape}.", *whole.said]
        if test is None:
            lines.append(f"All {count(len(learn.y), 'row')} are learned from; there are no test rows.")
        elif settings.test is not None:
            lines.append(f"Learning from {count(len(learn.y), 'row')}, testing on {len(test.y):,} of {settings.test}.")
        else:
            lines.append(
                f"Learning from {count(len(learn.y), 'row')}, testing on {len(test.y):,} drawn at random "
                f"(seed {settings.seed})."
            )
        self._section("Data", *map(Text, lines))

    def columns(self, treatment: list[Any]) -> None:
        """Tell what is done to each column."""
        self._section("Columns")
        shown = output.table("column", "is", "and becomes")
        shown.columns[0].overflow = shown.columns[2].overflow = "fold"
        for column in treatment[:_COLUMNS_LISTED]:
            said = str(column.said).removeprefix(f"{column.name}: ").removeprefix("numbers from ")
            style = "" if column.made else "dim"
            shown.add_row(Text(str(column.name), style=style), Text(str(column.kind), style=style), Text(said))
        self.console.print(indented(shown))
        if len(treatment) > _COLUMNS_LISTED:
            left = treatment[_COLUMNS_LISTED:]
            kinds = {kind: sum(column.kind == kind for column in left) for kind in {c.kind for c in left}}
            rest = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
            self.console.print(indented(Text(f"and {len(left):,} more columns: {rest}. `mercer show` lists all.")))

    def searching(self, settings: Settings) -> None:
        """Tell that the search begins."""
        limit = f", at most {seconds(settings.time)} in all" if settings.time else ""
        self._section("Search", Text(f"{settings.cv}-fold cross-validation{limit}; Ctrl-C keeps the best so far."))

    def chosen(self, model: Any) -> None:
        """Tell what was tried, what won and why, the winner's proof, and what its metric has learned."""
        from mercer.estimators.features.learned import learned_metric

        account = model.account_
        for paragraph in (account.kernels, account.tried):
            self.console.print()
            self.console.print(indented(Text(paragraph)))
        self._section("Choice", Text(account.chosen))
        if model.interrupted_:
            self.console.print(indented(Text("This is the best so far: the search ended early.", style="yellow")))
        self._section("Kernel")
        self.console.print(indented(output.tree(model.named_kernel_.proof())))
        metric = learned_metric(model)
        if metric is not None:
            self.console.print(indented(Text(output.metric_line(metric))))

    def scores(
        self, model: Any, settings: Settings, learn: Examples, test: Examples | None, scores: list[Score]
    ) -> None:
        """Tell how good the model is, with the spread of each number."""
        self._section("Scores")
        shown = output.table("rows", "measure", "value", right=("value",))
        measure, sign = measure_name(model.scoring_), -1.0 if str(model.scoring_).startswith("neg_") else 1.0
        shown.add_row(f"{settings.cv} folds", measure, within(sign * model.best_score_, model.score_error_))
        honest = sign * model.honest_score_
        if math.isfinite(honest):
            shown.add_row("  choice included", measure, within(honest, model.score_error_))
        for i, score in enumerate(scores):
            rows = f"{len(test.y):,} test rows" if test is not None and i == 0 else ""
            shown.add_row(rows, score.name, Text(str(score), style="bold" if i == 0 else ""))
        self.console.print(indented(shown))
        known = learn if test is None else test
        self.console.print(indented(Text(f"± is one standard error; {baseline(known.y, learn.task)}.", style="dim")))

    def certificate(self, model: Any) -> None:
        """Tell how far the fit can be from the best one."""
        means, *numbers = certificate_lines(model.certificate_)
        style = "" if model.certificate_.converged else "yellow"
        self._section("Certificate", Text(means, style=style), *map(Text, numbers))

    def written(self, made: Trained) -> None:
        """Tell where time went, and where model and report are."""
        spent = ", ".join(f"{name} {seconds(time)}" for name, time in made.timings.items() if time >= 0.005)
        total = seconds(sum(made.timings.values()))
        self._section("Time", Text(f"{total}: {spent}."))
        out = made.settings.out
        lines = [Text.assemble("model   ", (str(out), "bold"), f"  ({size(out)})")]
        report = made.settings.report
        if report is not None:
            lines.append(Text.assemble("report  ", (str(report), "bold"), f"  ({size(report)})"))
        lines.append(Text(f"next    mercer predict {Path(out)} NEW.csv --out predictions.csv", style="dim"))
        self._section("Written", *lines)

    def _section(self, title: str, *lines: Text) -> None:
        if title != "Data":
            self.console.print()
        self.console.print(Text(title, style="bold"))
        for line in lines:
            self.console.print(indented(line))
