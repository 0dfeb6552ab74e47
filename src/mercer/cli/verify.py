"""`mercer verify`: the certificate of a saved model, computed again from the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import typer

from mercer.certify import Certificate
from mercer.cli.shared import options, output
from mercer.cli.shared.errors import CHECK_FAILED, fail, guarded
from mercer.cli.shared.options import examples
from mercer.cli.shared.output import certificate_facts, noted, say_json
from mercer.machine.words import count

EXAMPLES = examples(
    "mercer verify price.mercer houses.csv",
    "mercer verify price.mercer houses.csv --json | jq .holds",
)


@guarded
def verify(
    model: options.Model,
    data: options.Data,
    target: options.Target = None,
    format: options.Format = None,
    as_json: options.AsJson = False,
) -> None:
    """Recompute a model's certificate from its training data, in float64, by code that the solver does not share.

    DATA is the table that the model was fitted to: the split into training and test rows is made again. The exit code
    is 1 when the certificate does not hold, or when these are not the rows of the fit.
    """
    import mercer

    with noted():
        machine = mercer.load(model)
        if not hasattr(machine, "certificate_"):
            fail(f"{model} holds a {type(machine).__name__}, which has no certificate.")
        X, y, known = _rows(machine, mercer.io.facts(model), data, target, format, model)
        claimed: Certificate = machine.certificate_
        verified = claimed.verify(X, y)
    sound = holds(claimed, verified)
    if as_json:
        told = {"claimed": certificate_facts(claimed), "verified": certificate_facts(verified)}
        say_json({"holds": sound, "rows": len(y), "same_rows": known, **told})
    else:
        show(claimed, verified, sound, len(y))
    if not sound:
        raise typer.Exit(CHECK_FAILED)


def holds(claimed: Certificate, verified: Certificate) -> bool:
    """Whether what was found again is as good as what was claimed, rounding aside.

    Examples
    --------
    >>> from mercer import Certificate
    >>> from mercer.cli.verify import holds
    >>> claim = Certificate(primal=10.001, dual=10.0, kkt=2e-4, tol=1e-3)
    >>> holds(claim, claim), holds(claim, Certificate(primal=11.0, dual=10.0, kkt=1.0, tol=1e-3))
    (True, False)
    """
    as_good = verified.relative_gap <= max(claimed.tol, 1.01 * claimed.relative_gap + 1e-9)
    return bool(as_good and (claimed.stationary or not verified.stationary))


def show(claimed: Certificate, verified: Certificate, sound: bool, rows: int) -> None:
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
    machine: Any, facts: dict[str, Any], data: str, target: str | None, format: str | None, path: str
) -> tuple[Any, np.ndarray, bool]:
    """Return the training rows, and whether they are known to be those of the fit."""
    from mercer.cli.shared.rows import examples as examples_of
    from mercer.cli.shared.rows import inputs, read, split

    column = target or facts.get("target")
    whole = examples_of(read(data, format), column, facts.get("task", "auto"), facts.get("dropped", []), data)
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
