"""Options that several commands take, and how they are read."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

import typer

SOURCES = "CSV, TSV, Parquet, Feather or svmlight, also gzipped; - for standard input"

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
        help="csv, tsv, parquet, feather or svmlight, where the file's name does not say it.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]

_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_PART = r"(\d+(?:\.\d*)?|\.\d+)\s*(ms|s|min|m|h)"


def duration(text: str) -> float:
    """Return seconds from a text such as 60s, 5m, 1h30m or 90.

    Examples
    --------
    >>> from mercer.cli.shared.options import duration
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
    >>> from mercer.cli.shared.options import quantiles
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


def kernel_named(text: str) -> Any:
    """Return the kernel of an expression; the class of a bare name such as RBF, which is tried at several scales.

    Examples
    --------
    >>> from mercer.cli.shared.options import kernel_named
    >>> kernel_named("RBF(2) + Linear()")
    RBF(scale=2) + Linear()
    >>> kernel_named("RBF").__name__
    'RBF'
    """
    import mercer.kernels
    from mercer.cli.shown.catalogue import catalogue

    named = {kind.__name__: kind for kind in catalogue() if "scale" in kind.__dataclass_fields__}  # type: ignore[attr-defined]
    return named.get(text.strip()) or mercer.kernels.parse_kernel(text)


def examples(*lines: str) -> str:
    """Return the lines that end a command's help: what one would type."""
    return "\n".join(["Examples:", *(f"  {line}".replace("[", r"\[") for line in lines)])
