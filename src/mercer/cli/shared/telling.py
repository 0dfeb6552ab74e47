"""The account that `mercer fit` gives, step by step."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from mercer.cli.shared import output
from mercer.cli.shared.output import indented, size
from mercer.cli.shared.rows import Examples, name_of
from mercer.cli.shared.scores import Score, baseline, within
from mercer.machine.words import count, seconds

if TYPE_CHECKING:
    import pandas as pd

    from mercer.cli.shared.training import Settings, Trained

_COLUMNS_LISTED = 40  # of a wide table, this many are listed one by one


class Teller:
    """Prints each step of a fit as soon as it is known.

    Parameters
    ----------
    console
        Where to; None to be silent.
    """

    def __init__(self, console: Console | None) -> None:
        self.console = console

    @property
    def watching(self) -> bool:
        """Whether a bar may be shown."""
        return self.console is not None

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
        if self.console is None:
            return
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
        if self.console is None:
            return
        limit = f", at most {seconds(settings.time)} in all" if settings.time else ""
        self._section("Search", Text(f"{settings.cv}-fold cross-validation{limit}; Ctrl-C keeps the best so far."))

    def chosen(self, model: Any) -> None:
        """Tell what was tried, what won and why, and the winner's proof."""
        if self.console is None:
            return
        account = model.account_
        for paragraph in (account.kernels, account.tried):
            self.console.print()
            self.console.print(indented(Text(paragraph)))
        self._section("Choice", Text(account.chosen))
        if model.interrupted_:
            self.console.print(indented(Text("This is the best so far: the search ended early.", style="yellow")))
        self._section("Kernel")
        self.console.print(indented(output.tree(model.named_kernel_.proof())))

    def scores(
        self, model: Any, settings: Settings, learn: Examples, test: Examples | None, scores: list[Score]
    ) -> None:
        """Tell how good the model is, with the spread of each number."""
        if self.console is None:
            return
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
        if self.console is None:
            return
        means, *numbers = certificate_lines(model.certificate_)
        style = "" if model.certificate_.converged else "yellow"
        self._section("Certificate", Text(means, style=style), *map(Text, numbers))

    def written(self, made: Trained) -> None:
        """Tell where time went, and where model and report are."""
        if self.console is None:
            return
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
        if self.console is None:
            return
        if title != "Data":
            self.console.print()
        self.console.print(Text(title, style="bold"))
        for line in lines:
            self.console.print(indented(line))


def certificate_lines(claim: Any) -> list[str]:
    """Return what a certificate means, and its numbers."""
    if claim.stationary:
        means = f"A stationary point, which need not be the optimum: {claim.stationary}."
    elif not claim.converged:
        means = (
            f"Not converged ({claim.stopped}): the objective may be {claim.relative_gap:.1e} of it above the optimum."
        )
    elif claim.relative_gap:
        means = (
            "No function of this kernel's space has an objective lower than this one's by more than "
            f"{claim.relative_gap:.1e} of it ({claim.tol:.0e} was asked for)."
        )
    else:
        means = (
            f"No function of this kernel's space has a lower objective, up to rounding ({claim.tol:.0e} was asked for)."
        )
    return [means, *str(claim).splitlines()]


def measure_name(scoring: object) -> str:
    """Return what scikit-learn's name of a score is called here: a negated error is the error."""
    name = str(scoring).removeprefix("neg_").replace("_", " ")
    return {
        "r2": "R²",
        "root mean squared error": "RMSE",
        "mean absolute error": "MAE",
        "roc auc": "ROC area",
    }.get(name, name)
