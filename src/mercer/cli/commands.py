"""The commands, and how they end."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from mercer.cli import INTERRUPTED, demo, fit, kernels, predict, saved
from mercer.cli.output import CLOSED_PIPE, WRONG_USE, sentence_of, shortened

app = typer.Typer(
    help="Learning with kernels: exact, certified, fast, on any input a kernel can compare.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
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


for command in (
    fit.fit,
    predict.predict,
    saved.score,
    saved.show,
    saved.verify,
    kernels.check,
    kernels.kernels,
    demo.demo,
    demo.tour,
    demo.lab,
):
    app.command(epilog=vars(command)["epilog"])(command)


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
