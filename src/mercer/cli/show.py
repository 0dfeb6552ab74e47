"""`mercer show`: what a model file holds."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from mercer.cli.shared import options, output
from mercer.cli.shared.errors import guarded
from mercer.cli.shared.options import examples
from mercer.cli.shared.output import certificate_facts, indented, noted, say_json
from mercer.cli.shared.telling import certificate_lines, measure_name
from mercer.machine.words import count, seconds

EXAMPLES = examples(
    "mercer show price.mercer",
    "mercer show price.mercer --columns",
    "mercer show price.mercer --json | jq .facts.scores",
)


@guarded
def show(
    model: options.Model,
    columns: Annotated[bool, typer.Option("--columns", help="Also what was done to each column.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Show what a model file holds: the kernel and its proof, the certificate, and where the model comes from."""
    import mercer
    from mercer.kernels import Kernel

    with noted():
        machine = mercer.load(model)
        facts = mercer.io.facts(model)
    kernel = machine if isinstance(machine, Kernel) else getattr(machine, "kernel_", getattr(machine, "kernel", None))
    kernel = getattr(machine, "named_kernel_", kernel) if isinstance(kernel, Kernel) else None
    claim = getattr(machine, "certificate_", None)
    if as_json:
        told: dict[str, Any] = {"class": type(machine).__name__, "facts": facts}
        if kernel is not None:
            told |= {"kernel": repr(kernel), "proof": kernel.proof().status, "proof_text": str(kernel.proof())}
        say_json(told | ({} if claim is None else {"certificate": certificate_facts(claim)}))
        return
    console = output.terminal()
    console.print(Text.assemble((model, "bold"), f"  {type(machine).__name__}"))
    _origin(console, facts)
    if kernel is not None:
        _title(console, "Kernel")
        console.print(indented(output.tree(kernel.proof())))
    if facts.get("scores") or facts.get("cross_validation"):
        _title(console, "Scores")
        console.print(indented(scores(facts)))
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


def scores(facts: dict[str, Any]) -> Any:
    """Return the table of the scores that a model file remembers."""
    from mercer.cli.shared.scores import within

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
