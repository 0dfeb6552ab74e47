"""Demonstrations: the main job on a table of scikit-learn's and the thought experiment; a tour; a page to play with."""

from __future__ import annotations

import sys
import time
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from mercer.cli.options import Force, Output, interruptible, is_model, is_report, require_outputs, written
from mercer.cli.output import fail, guarded, heading, terminal

TARGET = "diagnosis"
LAB = Path(__file__).parents[1] / "lab" / "lab.html"  # made by `make lab`, and part of every wheel
DATA, NEW, MODEL, REPORT, PREDICTED = "tumours.csv", "new.csv", "tumours.mercer", "tumours.html", "predicted.csv"


@guarded("mercer demo", "mercer demo --out /tmp/demo")
def demo(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", file_okay=False, help="Where the files go.")] = Path(
        "demo"
    ),
    quick: Annotated[bool, typer.Option("--quick", hidden=True, help="Few examples in the last part.")] = False,
    force: Force = False,
) -> None:
    """Do the main job on a small table: fit, report, predict, show, verify; then a model of 314 million features."""
    make_folder(out)
    tables = [Output("--out", out / name) for name in (DATA, NEW, PREDICTED)]
    require_outputs(
        [*tables, Output("--out", out / MODEL, is_model), Output("--out", out / REPORT, is_report)], (), force
    )
    run(out, quick, force)


@guarded()
def tour(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", file_okay=False, help="Where the pictures go.")] = Path(
        "demo"
    ),
    quick: Annotated[bool, typer.Option("--quick", hidden=True, help="Time small matrices only.")] = False,
    force: Force = False,
) -> None:
    """Show the library: proofs, verdicts, the classic lifts, certified SVMs, and the engine against scikit-learn."""
    from mercer.cli import tour as shown

    make_folder(out)
    require_outputs([Output("--out", out / name) for name in shown.PICTURES], force=force)
    with interruptible():
        shown.run(out, quick=quick)


@guarded("mercer lab", "mercer lab --write lab.html")
def lab(
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", help="Write the page there, and open nothing.")
    ] = None,
    force: Force = False,
) -> None:
    """Open the lab: one page in which kernels, losses and machines are played with, without a server."""
    if not LAB.exists():
        fail("the page of the lab is not built; run make lab in the sources.")
    if write is not None:
        require_outputs([Output("--write", write, is_report)], force=force)
        with written(write) as (draft,):
            draft.write_bytes(LAB.read_bytes())
    elif not webbrowser.open(LAB.as_uri()):
        fail(f"no browser could be opened; the page is {LAB}.")
    terminal().print(Text.assemble("The lab is ", (str((write or LAB).absolute()), "bold")), soft_wrap=True)


def make_folder(out: Path) -> None:
    """Make a folder, or say why it cannot be made."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fail(f"--out: cannot make the folder {out}: {error.strerror}.")


def write_tables(out: Path) -> tuple[Path, Path]:
    """Write scikit-learn's breast cancer data as two tables: one to learn from, and twenty rows without their answer.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mercer.cli.demo import write_tables
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data, new = write_tables(Path(folder))
    ...     len(data.read_text().splitlines()), len(new.read_text().splitlines())
    (550, 21)
    """
    from sklearn.datasets import load_breast_cancer

    found = load_breast_cancer(as_frame=True)
    table = found.data.assign(**{TARGET: found.target_names[found.target]})
    with written(out / DATA, out / NEW) as (data, new):
        table[:-20].to_csv(data, index=False)
        table[-20:].drop(columns=[TARGET]).to_csv(new, index=False)
    return out / DATA, out / NEW


def run(out: Path, quick: bool = False, force: bool = False) -> None:
    """Type the commands of the main job, one after the other, and end with the path of the report."""
    from mercer.cli.lecture import show_lecture

    console = terminal()
    began = time.perf_counter()
    data, new = write_tables(out)
    model, report, predicted = out / MODEL, out / REPORT, out / PREDICTED
    heading(console, 1, f"A table, {data}: what tells malignant tumours from benign ones?")
    _type(console, "fit", str(data), "--target", TARGET, "--out", str(model), "--report", str(report))
    heading(console, 2, "New rows")
    _type(console, "predict", str(model), str(new), "--proba", "--out", str(predicted), *["--force"] * force)
    _head(console, predicted)
    heading(console, 3, "What the file says, and whether it is true")
    _type(console, "show", str(model))
    _type(console, "verify", str(model), str(data))
    heading(console, 4, "The lectures' thought experiment, at a thirtieth of its size")
    show_lecture(console, 1_000 if quick else 10_000)
    console.print(Text(f"\n{time.perf_counter() - began:.0f} seconds in all. `mercer tour` shows more.", style="dim"))
    console.print(Text.assemble("The report is ", (str(report.absolute()), "bold")), soft_wrap=True)


def _type(console: Console, *arguments: str) -> None:
    """Show a command, and run it as if it had been typed."""
    from mercer.cli.commands import app

    console.print()
    console.print(Text.assemble(("$ ", "dim"), (f"mercer {' '.join(arguments)}", "cyan")), soft_wrap=True)
    typed, sys.argv = sys.argv, ["mercer", *arguments]
    try:
        call: Callable[..., object] = app
        code = call(list(arguments), prog_name="mercer", standalone_mode=False)
    finally:
        sys.argv = typed
    if code:
        raise typer.Exit(int(str(code)))


def _head(console: Console, path: Path, lines: int = 4) -> None:
    """Show the first lines of a file."""
    console.print()
    console.print(Text.assemble(("$ ", "dim"), (f"head -n {lines} {path}", "cyan")), soft_wrap=True)
    for line in path.read_text(encoding="utf-8").splitlines()[:lines]:
        console.print(Text(line), soft_wrap=True)
