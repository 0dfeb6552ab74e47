"""Outputs of the commands: the account to standard output, bars and notes to standard error, JSON for machines."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from mercer.certify import Certificate
from mercer.cli.shared.errors import shortened

# A warning that tells the user nothing about the data or the model.
_SILENT = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ResourceWarning, RuntimeWarning)


def aside() -> Console:
    """Return the console for standard error, without colours when piped."""
    return Console(stderr=True, highlight=False)


def watched() -> bool:
    """Whether someone looks at standard error, so that a bar makes sense."""
    return sys.stderr.isatty()


@contextmanager
def noted() -> Iterator[list[str]]:
    """Say warnings once each, as lines on standard error, and keep them.

    Examples
    --------
    >>> import warnings
    >>> from mercer.cli.shared.output import noted
    >>> with noted() as notes:
    ...     for _ in range(2):
    ...         warnings.warn("three values of age are no numbers.")
    >>> notes
    ['three values of age are no numbers.']
    """
    notes: list[str] = []

    def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
        said = " ".join(str(message).split())
        if not issubclass(category, _SILENT) and said not in notes:
            notes.append(said)
            aside().print(Text.assemble(("note: ", "yellow"), shortened(said, 590)), soft_wrap=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show  # type: ignore[assignment]
        yield notes


def say_json(found: dict[str, Any]) -> None:
    """Print one JSON object to standard output."""
    print(json.dumps(plain(found), indent=2, ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """Return a value in the types of JSON; what is no number is null.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.cli.shared.output import plain
    >>> plain({"rows": np.int64(3), "score": float("nan"), "classes": np.array(["a", "b"])})
    {'rows': 3, 'score': None, 'classes': ['a', 'b']}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str | int | bool) or value is None:
        return value
    return value.isoformat() if isinstance(value, date) else str(value)


def certificate_facts(claim: Certificate) -> dict[str, Any]:
    """Return what a certificate says, as plain data."""
    names = ("primal", "dual", "gap", "relative_gap", "kkt", "tol", "converged", "solver", "iterations", "seconds")
    found = {name: getattr(claim, name) for name in names}
    texts = {name: getattr(claim, name) for name in ("precision", "stopped", "stationary")}
    return {**found, **texts, "problems": max(1, len(claim.parts))}


def size(path: str | Path) -> str:
    """Return how large a file is."""
    amount = float(Path(path).stat().st_size)
    for unit in ("bytes", "kB", "MB"):
        if amount < 1000 or unit == "MB":
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if unit != "MB" else f"{amount:.1f} MB"
