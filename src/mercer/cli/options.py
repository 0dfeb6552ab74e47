"""Options of several commands, and files that they write: nothing read, and nothing of others, is replaced."""

from __future__ import annotations

import math
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from mercer.cli import leave
from mercer.cli.output import fail
from mercer.machine.files import placed

SOURCES = "CSV, TSV, JSON lines, Excel, Parquet, Feather or svmlight, also gzipped; - for standard input"

Data = Annotated[str, typer.Argument(metavar="DATA", help=f"The table: {SOURCES}.", show_default=False)]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="A model file.", show_default=False)]
Target = Annotated[
    str | None, typer.Option("--target", "-y", metavar="COLUMN", help="The column to predict.", show_default=False)
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="csv, tsv, jsonl, xlsx, parquet, feather or svmlight, where the file's name does not say it.",
        show_default=False,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Of text that is not UTF-8, such as windows-1252; UTF-16 is known by its byte order mark.",
        show_default=False,
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option("--sheet", metavar="NAME", help="Of a workbook of Excel.", show_default="the first"),
]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="COLUMN", help="A column to leave out. May be repeated.", show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def reading(**given: str | None) -> dict[str, str]:
    """Return what `read_table` is told about a source: those of --format, --encoding and --sheet that were given."""
    return {name: value for name, value in given.items() if value is not None}


_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_PART = r"(\d+(?:\.\d*)?|\.\d+)\s*(ms|s|min|m|h)"


def duration(text: str) -> float:
    """Return seconds from a text such as 60s, 5m, 1h30m or 90.

    Examples
    --------
    >>> from mercer.cli.options import duration
    >>> duration("90"), duration("1m30s"), duration("1.5h")
    (90.0, 90.0, 5400.0)
    """
    written = text.strip().lower()
    if re.fullmatch(r"\d+(\.\d*)?|\.\d+", written):
        seconds = float(written)
    elif re.fullmatch(rf"(?:{_PART}\s*)+", written):
        seconds = sum(float(amount) * _UNITS[unit] for amount, unit in re.findall(_PART, written))
    else:
        raise typer.BadParameter(f"{text!r} is no time; write seconds, or 90s, 5m, 1h30m.", param_hint="--time")
    if not 0 < seconds < math.inf:
        raise typer.BadParameter(f"{text!r} leaves no time; give it at least a second.", param_hint="--time")
    return seconds


def fraction(text: str, option: str) -> float:
    """Return a number between 0 and 1 from 0.2 or 20%."""
    try:
        value = float(text.strip().removesuffix("%")) / (100.0 if text.strip().endswith("%") else 1.0)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1:
        raise typer.BadParameter(f"{text!r} is no share of the rows; write 0.2 or 20%.", param_hint=option)
    return value


def quantiles(text: str) -> list[float]:
    """Return the quantiles of a list such as 0.05,0.5,0.95.

    Examples
    --------
    >>> from mercer.cli.options import quantiles
    >>> quantiles("0.05, 0.5,0.95")
    [0.05, 0.5, 0.95]
    """
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not values or not all(0 < value < 1 for value in values):
        raise typer.BadParameter(
            f"{text!r} is no list of quantiles; write numbers between 0 and 1, as in 0.05,0.5,0.95.",
            param_hint="--quantiles",
        )
    return values


# -- files that commands write ---------------------------------------------------------------------------

Force = Annotated[bool, typer.Option("--force", help="Replace files that mercer has not written, too.")]

_GENERATOR = b'<meta name="generator" content="mercer '  # in the head of every report


class Output(NamedTuple):
    """A file that a command writes, the option that names it, and how to tell one of mercer's."""

    option: str
    path: Path
    ours: Callable[[Path], bool] = lambda path: False


def require_outputs(outputs: Iterable[Output], inputs: Iterable[str] = (), force: bool = False) -> None:
    """Say before the work, not after it, that a file cannot or must not be written.

    Parameters
    ----------
    outputs
        What the command writes: files of their own, none of them one that is read.
    inputs
        What it reads; "-" is standard input.
    force
        Whether files may be replaced that are not mercer's.
    """
    known = [(f"the input {source}" if source != "-" else "standard input", source) for source in inputs]
    for output in outputs:
        option, path, ours = output
        _require_writable(option, path)
        for called, other in known:
            if _same(path, other):
                fail(f"{option} {path} is the same file as {called}, which it would replace; name another file.")
        if not force and path.exists() and path.stat().st_size and not ours(path):
            fail(f"{option} {path} is there, and not known to be mercer's; name another file, or add --force.")
        known.append((f"{option} {path}", str(path)))


def is_model(path: Path) -> bool:
    """Whether a file is a model file."""
    from safetensors import SafetensorError, safe_open

    from mercer.io.container import FORMAT

    try:
        with safe_open(path, framework="numpy") as file:
            return (file.metadata() or {}).get("format") == FORMAT
    except (OSError, SafetensorError):
        return False


def is_report(path: Path) -> bool:
    """Whether a file is a report."""
    with open(path, "rb") as file:
        return _GENERATOR in file.read(2**12)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C be an exception, where a model is to be kept or drafts are to be removed."""
    before = signal.getsignal(signal.SIGINT)
    if before is not leave:  # called from Python, or told to ignore it
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def written(*paths: str | Path) -> Iterator[list[Path]]:
    """Yield drafts that become the files together when the block ends well, as `placed` does; errors name the files."""
    try:
        with interruptible(), placed(*paths) as drafts:
            yield drafts
    except OSError as error:
        why = error.strerror or str(error).rpartition("could not be written: ")[2].rstrip(".")
        fail(f"{' and '.join(map(str, paths))} could not be written: {why}; make room there, or name another place.")


def save_picture(figure: Any, path: Path) -> None:
    """Save a picture, which appears whole or not at all."""
    with written(path) as (draft,):
        figure.savefig(draft, format="png")


def _require_writable(option: str, path: Path) -> None:
    target = Path(os.path.realpath(path))
    if target.is_dir():
        fail(f"{option} {path} is a folder; name a file.")
    if target.exists() and not target.is_file():
        fail(f"{option} {path} is a device or a pipe, and would be replaced by a file; name a file.")
    if not target.parent.is_dir():
        fail(f"{option} {path} cannot be written: there is no folder {target.parent}.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        fail(f"{option} {path} cannot be written: nothing may be written into the folder {target.parent}.")


def _same(path: Path, other: str) -> bool:
    """Whether two names are of one file, whatever links and spellings lead to it."""
    try:
        if other == "-":
            return path.exists() and os.path.samestat(path.stat(), os.fstat(sys.stdin.fileno()))
        return os.path.realpath(path) == os.path.realpath(other) or os.path.samefile(path, other)
    except (OSError, ValueError):  # one of them is not there; standard input is no file
        return False
