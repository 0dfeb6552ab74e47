"""The commands, and how they end."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from mercer.cli import INTERRUPTED, check, fit, predict, score, show, verify
from mercer.cli.shared.errors import CLOSED_PIPE, WRONG_USE, guarded, sentence_of, shortened
from mercer.cli.shared.files import Force, Output, interruptible, require_outputs
from mercer.cli.shared.options import AsJson
from mercer.cli.shown import demo

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
    from mercer.cli.shared.output import say_json, terminal
    from mercer.cli.shown import catalogue

    say_json(catalogue.facts()) if as_json else catalogue.show(terminal())


app.command(epilog=demo.EXAMPLES)(demo.demo)


@app.command()
@guarded
def tour(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", file_okay=False, help="Where the pictures go.")] = Path(
        "demo"
    ),
    quick: Annotated[bool, typer.Option("--quick", hidden=True, help="Time small matrices only.")] = False,
    force: Force = False,
) -> None:
    """Show the library: proofs, verdicts, the classic lifts, certified SVMs, and the engine against scikit-learn."""
    from mercer.cli.shown.tour import PICTURES, run

    demo.make_folder(out)
    require_outputs([Output("--out", out / name) for name in PICTURES], force=force)
    with interruptible():
        run(out, quick=quick)


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code."""
    # A terminal that cannot show a sign shows a question mark; it does not stop the program.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    refused: Any = typer.BadParameter.__mro__[2]  # of the parser: wrong options, unknown commands
    try:
        code = app(arguments or ["--help"], prog_name="mercer", standalone_mode=False)
        if not code:
            sys.stdout.flush()
    except refused as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "mercer"
        said = " ".join(error.format_message().split())
        print(shortened(f"{command}: {said} See {command} --help."), file=sys.stderr)
        code = WRONG_USE
    except KeyboardInterrupt:
        code = INTERRUPTED
    except SystemExit:  # so ends a help that nobody reads to its end
        code = CLOSED_PIPE
    except OSError as error:  # of the last lines of standard output
        code = CLOSED_PIPE if isinstance(error, BrokenPipeError) else WRONG_USE
        if code == WRONG_USE:
            print(shortened(f"mercer: standard output: {sentence_of(error)}"), file=sys.stderr)
    try:
        sys.stdout.flush()
    except OSError:  # what is left cannot be written, and the interpreter would try again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code if isinstance(code, int) else 0
