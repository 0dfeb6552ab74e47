"""The `mercer` command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from mercer.cli import check, demo, fit, predict, score, show, verify
from mercer.cli.errors import WRONG_USE, guarded
from mercer.cli.options import AsJson

app = typer.Typer(
    help="Learning with kernels: exact, certified, fast, on any input a kernel can compare.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.command(epilog=fit.EXAMPLES)(fit.fit)
app.command(epilog=predict.EXAMPLES)(predict.predict)
app.command(epilog=score.EXAMPLES)(score.score)
app.command(epilog=show.EXAMPLES)(show.show)
app.command(epilog=verify.EXAMPLES)(verify.verify)
app.command(epilog=check.EXAMPLES)(check.check)


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
@guarded
def kernels(as_json: AsJson = False) -> None:
    """List the kernels and the closure rules, each with its formula and why it is positive semidefinite."""
    from mercer.cli import catalogue
    from mercer.cli.output import say_json
    from mercer.cli.terminal import terminal

    say_json(catalogue.facts()) if as_json else catalogue.show(terminal())


app.command(epilog=demo.EXAMPLES)(demo.demo)


@app.command()
@guarded
def tour(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", file_okay=False, help="Where the pictures go.")] = Path(
        "demo"
    ),
    quick: Annotated[bool, typer.Option("--quick", hidden=True, help="Time small matrices only.")] = False,
) -> None:
    """Show the library: proofs, verdicts, the classic lifts, certified SVMs, and the engine against scikit-learn."""
    from mercer.cli.tour import run

    demo.make_folder(out)
    run(out, quick=quick)


def main() -> None:
    """Run the command line: what is wrong is one line on standard error, and the exit code is for scripts."""
    # A terminal that cannot show a sign shows a question mark; it does not stop the program.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    refused: Any = typer.BadParameter.__mro__[2]  # of the parser: wrong options, unknown commands
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name="mercer", standalone_mode=False)
    except refused as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "mercer"
        said = " ".join(error.format_message().split())
        print(f"{command}: {said} See {command} --help.", file=sys.stderr)
        code = WRONG_USE
    sys.exit(code if isinstance(code, int) else 0)
