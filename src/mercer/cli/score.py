"""`mercer score`: how good a saved model is on rows with known answers."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mercer.cli.shared import options, output
from mercer.cli.shared.errors import fail, guarded
from mercer.cli.shared.options import examples
from mercer.cli.shared.output import noted, say_json
from mercer.machine.words import count

EXAMPLES = examples(
    "mercer score price.mercer test.csv",
    "mercer score price.mercer test.csv --target cost      # where the answers have another name",
    "mercer score income.mercer late.parquet --json | jq .scores.accuracy.value",
)


@guarded
def score(
    model: options.Model,
    data: options.Data,
    target: Annotated[
        str | None,
        typer.Option("--target", "-y", metavar="COLUMN", help="The right answers.", show_default="as at the fit"),
    ] = None,
    format: options.Format = None,
    as_json: options.AsJson = False,
) -> None:
    """Predict rows whose answers are known, and say how good that is, each number with its standard error."""
    with noted() as notes:
        found, rows, baseline = _run(model, data, target, format)
    if as_json:
        scores = {one.name: {"value": one.value, "error": one.error} for one in found}
        say_json({"rows": rows, "scores": scores, "baseline": baseline, "notes": notes})
        return
    console = output.terminal()
    shown = output.table("measure", "value", right=("value",))
    for one in found:
        shown.add_row(one.name, str(one))
    console.print(f"{count(rows, 'row')} of {data}")
    console.print(output.indented(shown))
    console.print(output.indented(f"[dim]± is one standard error; {baseline}.[/]"))


def _run(path: str, data: str, target: str | None, format: str | None) -> tuple[list[Any], int, str]:
    import numpy as np

    import mercer
    from mercer.cli.shared import scores
    from mercer.cli.shared.rows import answers, inputs, pieces, require

    model = mercer.load(path)
    require(model, "prediction")
    facts = mercer.io.facts(path)
    column = target or facts.get("target")
    if column is None:
        fail(f"{path} does not say what it predicts; name the column of the right answers with --target.")
    classes = getattr(model, "classes_", None)
    right, predicted, chances = [], [], []
    for piece in pieces(data, format):
        if column in piece.columns and not piece[column].notna().any():
            continue
        rows = answers(piece, column, classes, data)
        X = inputs(model, rows.X, data, None)
        right.append(rows.y)
        predicted.append(np.asarray(model.predict(X)))
        if hasattr(model, "predict_proba"):
            chances.append(np.asarray(model.predict_proba(X), dtype=np.float32))
    if not right:
        fail(f"{data} has no row with a value of {column!r}: there is nothing to score.")
    y, found = np.concatenate(right), np.concatenate(predicted)
    if classes is None:
        return scores.regression(y, found), len(y), scores.baseline(y, "regress")
    whole = np.concatenate(chances).astype(float) if chances else None
    return scores.classification(y, found, classes, whole), len(y), scores.baseline(y, "classify")
