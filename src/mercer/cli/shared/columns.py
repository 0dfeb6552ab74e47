"""Kernels that name columns of a table, for the matrix that the table becomes."""

from __future__ import annotations

from typing import Any

from mercer.cli.shared.errors import no_column
from mercer.kernels import Kernel
from mercer.kernels.rules.pullback import On


def placed(kernel: Any, encoder: Any, source: str) -> Any:
    """Return a kernel with names of columns replaced by the places of what these became.

    Parameters
    ----------
    kernel
        A kernel such as `RBF(1.0).on("age")`; a class stays as it is.
    encoder
        A fitted `TableEncoder`.
    source
        What errors call the table.

    Examples
    --------
    >>> import pandas as pd
    >>> from mercer import RBF, Linear
    >>> from mercer.cli.shared.columns import placed
    >>> from mercer.tables import TableEncoder
    >>> people = pd.DataFrame({"age": [31.0, 33.0, 60.0], "job": ["smith", "baker", "clerk"]})
    >>> placed(RBF(1.0).on("age") + Linear().on(["job"]), TableEncoder().fit(people), "people.csv")
    RBF(scale=1.0).on([0]) + Linear().on([1, 2, 3])
    """
    if isinstance(kernel, On) and _names(kernel.columns):
        made: dict[str, list[int]] = {}
        place = 0
        for column in encoder.treatment_:
            made[column.name] = list(range(place, place + len(column.made)))
            place += len(column.made)
        wanted = _names(kernel.columns)
        for name in wanted:
            if not made.get(name):
                no_column(name, source, [known for known, places in made.items() if places], ", which a kernel names,")
        return On(kernel.base, [i for name in wanted for i in made[name]])
    if not isinstance(kernel, Kernel):
        return kernel
    parts = {name: part for name, part in kernel._params().items() if isinstance(part, Kernel)}
    return kernel.replace(**{name: placed(part, encoder, source) for name, part in parts.items()}) if parts else kernel


def _names(columns: Any) -> list[str]:
    """Return the names among columns; none where these are places."""
    if isinstance(columns, str):
        return [columns]
    return [c for c in columns if isinstance(c, str)] if isinstance(columns, list | tuple) else []
