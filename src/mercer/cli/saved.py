"""Saved models: how good they are on other rows, what their file holds, and whether its certificate holds."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.text import Text

import mercer
from mercer.certify import Certificate
from mercer.cli import options, output
from mercer.cli.output import (
    CHECK_FAILED,
    certificate_facts,
    certificate_lines,
    fail,
    guarded,
    indented,
    measure_name,
    metric_line,
    noted,
    say_json,
    summed,
)
from mercer.cli.rows import answers, examples, inputs, pieces, predictions, read, require, split
from mercer.cli.scores import baseline, classification, regression, within
from mercer.kernels import Kernel
from mercer.machine.words import count, seconds


@guarded(
    "mercer score price.mercer test.csv",
    "mercer score price.mercer test.csv --target cost      # where the answers have another name",
    "mercer score income.mercer late.parquet --json | jq .scores.accuracy.value",
)
def score(
    model: options.Model,
    data: options.Data,
    target: Annotated[
        str | None,
        typer.Option("--target", "-y", metavar="COLUMN", help="The right answers.", show_default="as at the fit"),
    ] = None,
    format: options.Format = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    as_json: options.AsJson = False,
) -> None:
    """Predict rows whose answers are known, and say how good that is, each number with its standard error."""
    reading = options.reading(format=format, encoding=encoding, sheet=sheet)
    with noted() as notes:
        found, rows, usual = _scored(model, data, reading, target)
    if as_json:
        scores = {one.name: {"value": one.value, "error": one.error} for one in found}
        say_json({"rows": rows, "scores": scores, "baseline": usual, "notes": notes})
        return
    console = output.terminal()
    shown = output.table("measure", "value", right=("value",))
    for one in found:
        shown.add_row(one.name, str(one))
    console.print(f"{count(rows, 'row')} of {data}")
    console.print(output.indented(shown))
    console.print(output.indented(f"[dim]± is one standard error; {usual}.[/]"))


def _scored(path: str, data: str, reading: dict[str, str], target: str | None) -> tuple[list[Any], int, str]:
    model = mercer.load(path)
    require(model, "prediction")
    facts = mercer.io.facts(path)
    column = target or facts.get("target")
    if column is None:
        fail(f"{path} does not say what it predicts; name the column of the right answers with --target.")
    classes = getattr(model, "classes_", None)
    right, predicted, chances = [], [], []
    what = "proba" if hasattr(model, "predict_proba") else "prediction"
    with summed():
        for piece in pieces(data, **reading):
            if column in piece.columns and not piece[column].notna().any():
                continue
            rows = answers(piece, column, classes, data)
            said = predictions(model, inputs(model, rows.X, data, None), what, [])
            right.append(rows.y)
            predicted.append(said.pop("prediction"))
            if said:
                chances.append(np.column_stack(list(said.values())).astype(np.float32))
    if not right:
        fail(f"{data} has no row with a value of {column!r}: there is nothing to score.")
    y, found = np.concatenate(right), np.concatenate(predicted)
    if classes is None:
        return regression(y, found), len(y), baseline(y, "regress")
    whole = np.concatenate(chances).astype(float) if chances else None
    return classification(y, found, classes, whole), len(y), baseline(y, "classify")


# -- what a file holds -----------------------------------------------------------------------------------


@guarded(
    "mercer show price.mercer",
    "mercer show price.mercer --columns",
    "mercer show price.mercer --json | jq .facts.scores",
)
def show(
    model: options.Model,
    columns: Annotated[bool, typer.Option("--columns", help="Also what was done to each column.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Show what a model file holds: the kernel and its proof, the certificate, and where the model comes from."""
    from mercer.estimators.features.learned import learned_metric

    with noted():
        machine = mercer.load(model)
        facts = mercer.io.facts(model)
    kernel = machine if isinstance(machine, Kernel) else getattr(machine, "kernel_", getattr(machine, "kernel", None))
    kernel = getattr(machine, "named_kernel_", kernel) if isinstance(kernel, Kernel) else None
    claim, metric = getattr(machine, "certificate_", None), learned_metric(machine)
    if as_json:
        told: dict[str, Any] = {"class": type(machine).__name__, "facts": facts}
        if kernel is not None:
            told |= {"kernel": repr(kernel), "proof": kernel.proof().status, "proof_text": str(kernel.proof())}
        if metric is not None:
            told["column_importances"] = metric.by_column()
        say_json(told | ({} if claim is None else {"certificate": certificate_facts(claim)}))
        return
    console = output.terminal()
    console.print(Text.assemble((model, "bold"), f"  {type(machine).__name__}"))
    _origin(console, facts)
    if kernel is not None:
        _title(console, "Kernel")
        console.print(indented(output.tree(kernel.proof())))
        if metric is not None:
            console.print(indented(Text(metric_line(metric))))
    if facts.get("scores") or facts.get("cross_validation"):
        _title(console, "Scores")
        console.print(indented(_scores(facts)))
    if claim is not None:
        _title(console, "Certificate")
        for line in certificate_lines(claim):
            console.print(indented(Text(line)))
    if facts.get("account"):
        _title(console, "How it was chosen")
        for i, paragraph in enumerate(str(facts["account"]).split("\n\n")):
            console.print(*[""] * bool(i), indented(Text(paragraph)), sep="\n")
    if columns and facts.get("columns"):
        _title(console, "Columns")
        for column in facts["columns"]:
            console.print(indented(Text(f"{column['said']}")))


def _scores(facts: dict[str, Any]) -> Any:
    """Return the table of the scores that a model file remembers."""
    shown = output.table("rows", "measure", "value", right=("value",))
    found = facts.get("cross_validation")
    if found:
        sign = -1.0 if found["scoring"].startswith("neg_") else 1.0
        value = within(sign * found["score"], found["error"]) if found["score"] is not None else "unknown"
        shown.add_row(f"{found['folds']} folds", measure_name(found["scoring"]), value)
    for i, (name, score) in enumerate(facts.get("scores", {}).items()):
        rows = f"{facts['test_rows']:,} test rows" if i == 0 else ""
        error = float("nan") if score["error"] is None else score["error"]
        shown.add_row(rows, name, "unknown" if score["value"] is None else within(score["value"], error))
    return shown


def _origin(console: Console, facts: dict[str, Any]) -> None:
    """Print where the model comes from."""
    if "command" not in facts:
        if facts:
            output.facts(console, *((str(name), str(value)) for name, value in facts.items()))
        return
    task = "a class" if facts["task"] == "classify" else "a number"
    if facts.get("classes"):
        labels = [str(label) for label in facts["classes"]]
        task += ": " + ", ".join(labels[:8]) + (f" and {len(labels) - 8} more" if len(labels) > 8 else "")
    learned = f"{count(facts['train_rows'], 'row')} of {facts['source']}, {count(len(facts['columns']), 'column')}"
    rows = [("predicts", f"{facts['target']}, {task}"), ("learned from", learned)]
    rows += [("made by", facts["command"]), ("on", facts["date"].replace("T", " at ").replace("+00:00", " UTC"))]
    rows += [("took", seconds(sum(facts["timings"].values())))]
    rows += [("with", ", ".join(f"{name} {version}" for name, version in facts["versions"].items()))]
    if facts.get("interrupted"):
        rows.append(("interrupted", "the best so far was kept"))
    output.facts(console, *rows)


def _title(console: Console, words: str) -> None:
    console.print()
    console.print(Text(words, style="bold"))


# -- the certificate, again ------------------------------------------------------------------------------


@guarded(
    "mercer verify price.mercer houses.csv",
    "mercer verify price.mercer houses.csv --json | jq .holds",
)
def verify(
    model: options.Model,
    data: options.Data,
    target: options.Target = None,
    format: options.Format = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    as_json: options.AsJson = False,
) -> None:
    """Recompute a model's certificate from its training data, in float64, by code that the solver does not share.

    DATA is the table that the model was fitted to: the split into training and test rows is made again. The exit code
    is 1 when the certificate does not hold, or when these are not the rows of the fit.
    """
    with noted():
        machine = mercer.load(model)
        if not hasattr(machine, "certificate_"):
            fail(f"{model} holds a {type(machine).__name__}, which has no certificate.")
        reading = options.reading(format=format, encoding=encoding, sheet=sheet)
        X, y, known = _rows(machine, mercer.io.facts(model), data, reading, target, model)
        claimed: Certificate = machine.certificate_
        verified = claimed.verify(X, y)
    sound = holds(claimed, verified)
    if as_json:
        told = {"claimed": certificate_facts(claimed), "verified": certificate_facts(verified)}
        say_json({"holds": sound, "rows": len(y), "same_rows": known, **told})
    else:
        _compare(claimed, verified, sound, len(y))
    if not sound:
        raise typer.Exit(CHECK_FAILED)


def holds(claimed: Certificate, verified: Certificate) -> bool:
    """Whether what was found again is as good as what was claimed, rounding aside."""
    as_good = verified.relative_gap <= max(claimed.tol, 1.01 * claimed.relative_gap + 1e-9)
    return bool(as_good and (claimed.stationary or not verified.stationary))


def _compare(claimed: Certificate, verified: Certificate, sound: bool, rows: int) -> None:
    """Print claim and finding side by side, and the verdict."""
    console = output.terminal()
    shown = output.table("", "claimed", "found again", right=("claimed", "found again"))
    for name, pattern in (("primal", ".8g"), ("dual", ".8g"), ("gap", ".3g"), ("relative_gap", ".2e"), ("kkt", ".2e")):
        values = (format(getattr(claim, name), pattern) for claim in (claimed, verified))
        shown.add_row(name.replace("_", " "), *values)
    console.print(shown)
    if sound and verified.stationary:
        console.print(
            f"\n[yellow]Holds[/] on {count(rows, 'training row')} as a stationary point, which need not be the "
            f"optimum: {verified.stationary}."
        )
    elif sound:
        near = (
            f"within {verified.relative_gap:.1e} of the optimum" if verified.relative_gap else "optimal, up to rounding"
        )
        console.print(
            f"\n[green]Holds[/] on {count(rows, 'training row')}: by independent code in float64 the objective is "
            f"{near} ({claimed.tol:.0e} was asked for)."
        )
    elif verified.stationary and not claimed.stationary:
        console.print(f"\n[red]Does not hold[/]: no optimum can be certified, for {verified.stationary}.")
    else:
        console.print(
            f"\n[red]Does not hold[/]: on {count(rows, 'row')} the relative gap is {verified.relative_gap:.1e}; "
            f"{max(claimed.tol, claimed.relative_gap):.1e} was claimed."
        )


def _rows(
    machine: Any, facts: dict[str, Any], data: str, reading: dict[str, str], target: str | None, path: str
) -> tuple[Any, np.ndarray, bool]:
    """Return the training rows, and whether they are known to be those of the fit."""
    column = target or facts.get("target")
    whole = examples(read(data, **reading), column, facts.get("task", "auto"), facts.get("dropped", []), data)
    if "digest" not in facts:  # saved from Python: whoever calls vouches for the rows
        return inputs(machine, whole.X, data, column), whole.y, False
    train, _ = split(whole, facts["test_size"], facts["seed"])
    for part in (whole.part(train), whole):
        if part.digest == facts["digest"]:
            return part.X, part.y, True
    seen = f"{len(whole.y):,} rows, of which {len(train):,} for training"
    same = " (as many as then)" if len(train) == facts["train_rows"] else ""
    fail(
        f"{data} does not hold the rows that {path} was fitted to: it has {seen}{same}, and the fit, of "
        f"{facts['source']}, had {facts['train_rows']:,} others. A certificate is a statement about its own rows.",
        CHECK_FAILED,
    )
