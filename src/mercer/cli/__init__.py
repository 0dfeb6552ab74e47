"""The `mercer` command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Learning with kernels: exact, certified, fast, on any input a kernel can compare.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)


def _version(asked: bool) -> None:
    if asked:
        from mercer import __version__

        typer.echo(f"mercer {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", file_okay=False, help="Where the pictures go.")] = Path(
        "demo"
    ),
    quick: Annotated[bool, typer.Option("--quick", hidden=True, help="Time small matrices only.")] = False,
) -> None:
    """Show the library: proofs, verdicts, the classic lifts, certified SVMs, and the engine against scikit-learn."""
    from mercer.cli.demo import run

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"cannot make the folder {out}: {error.strerror}.", param_hint="--out") from None
    try:
        run(out, quick=quick)
    except PermissionError as error:
        raise typer.BadParameter(f"cannot write to {error.filename}: {error.strerror}.", param_hint="--out") from None


@app.command()
def kernels() -> None:
    """List the kernels and the closure rules, each with its formula and why it is positive semidefinite."""
    from mercer.cli.catalogue import show
    from mercer.cli.terminal import terminal

    show(terminal())


def main() -> None:
    """Run the command line."""
    # A terminal that cannot show a sign shows a question mark; it does not stop the program.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    app(prog_name="mercer")
