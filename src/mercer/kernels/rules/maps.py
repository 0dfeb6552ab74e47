"""Maps of points that kernels look through; equal maps are computed once per set of points."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse

from mercer.points import Points
from mercer.points.sets.points import NoMatrix


@dataclass(frozen=True)
class Mapped:
    """The points after a Python function or a fitted scikit-learn transformer."""

    psi: Callable[..., Any]
    each: bool = False

    def __call__(self, points: Points) -> Any:
        if self.each:
            return [self.psi(x) for x in points.items]
        image = getattr(self.psi, "transform", self.psi)(points.data)
        if isinstance(image, np.ndarray) and image.ndim == 1 and image.dtype.kind in "fiub":
            image = image[:, None]
        if points.foreign and isinstance(image, np.ndarray):
            image = array_namespace(points.vectors).asarray(image, device=points.vectors.device)
        return image


@dataclass(frozen=True)
class Columns:
    """Some columns of a matrix or a table."""

    columns: tuple[Any, ...] | slice

    @classmethod
    def parse(cls, columns: Any) -> Columns:
        """Accept one index or name, a slice, a boolean mask, or a sequence of indices or names."""
        if isinstance(columns, slice):
            return cls(columns)
        if isinstance(columns, str | numbers.Integral):
            columns = [columns]
        if not isinstance(columns, Iterable):
            raise TypeError(f"columns must be an index, a name, a slice or a list of them; they are {columns!r}.")
        chosen = [c.item() if isinstance(c, np.generic) else c for c in columns]
        if chosen and all(isinstance(c, bool) for c in chosen):
            chosen = [i for i, c in enumerate(chosen) if c]
        if not chosen:
            raise ValueError("kernel.on([]) chooses no column; name at least one.")
        for c in chosen:
            if not isinstance(c, str | int):
                raise TypeError(f"a column is an index or a name, not {c!r}.")
        return cls(tuple(chosen))

    def __hash__(self) -> int:
        c = self.columns
        return hash((c.start, c.stop, c.step) if isinstance(c, slice) else c)

    def __call__(self, points: Points) -> Any:
        data, name = points.data, points.name
        if hasattr(data, "columns"):
            return self._of_table(data, name)
        if not hasattr(data, "shape"):
            data = points.vectors
        if len(data.shape) != 2:
            raise NoMatrix(f"kernel.on({self}) needs a matrix or a table; {name} has shape {tuple(data.shape)}.")
        if sparse.issparse(data):
            data = sparse.csr_array(data)
        columns = self.columns
        if isinstance(columns, slice):
            return data[:, columns]
        width = data.shape[1]
        for c in columns:
            if isinstance(c, str):
                raise ValueError(
                    f"unknown column {c!r}: {name} is a {type(data).__name__} without column names; use "
                    f"indices 0 to {width - 1}."
                )
            if not -width <= c < width:
                raise ValueError(f"unknown column {c}: {name} has {width} columns, 0 to {width - 1}.")
        return data[:, list(columns)]

    def pull(self, points: Points, gradient: np.ndarray) -> np.ndarray:
        """Return the gradient in x where that in its columns is given."""
        names = list(getattr(points.data, "columns", range(points.width)))
        chosen = [names.index(c) if c in names else c for c in _listed(self.columns, names)]
        out = np.zeros((len(points), points.width, gradient.shape[2]))
        for column, part in zip(chosen, np.moveaxis(gradient, 1, 0), strict=True):
            out[:, column] += part  # a column may be chosen twice
        return out

    def _of_table(self, table: Any, name: str) -> Any:
        names = list(table.columns)
        columns = _listed(self.columns, names)
        chosen = []
        for c in columns:
            if c in names:
                chosen.append(c)
            elif isinstance(c, int) and -len(names) <= c < len(names):
                chosen.append(names[c])
            else:
                raise ValueError(
                    f"unknown column {c!r}: {name} has "
                    f"{', '.join(map(repr, names[:12]))}{', ...' if len(names) > 12 else ''}."
                )
        return table[chosen] if hasattr(table, "iloc") else table.select(chosen)

    def __str__(self) -> str:
        return repr(list(self.columns) if isinstance(self.columns, tuple) else self.columns)


def _listed(columns: tuple[Any, ...] | slice, names: list[Any]) -> list[Any]:
    return names[columns] if isinstance(columns, slice) else list(columns)


@dataclass(frozen=True)
class Applied:
    """A map of points as a function of plain data, for scikit-learn's transformers."""

    map: Callable[[Points], Any]
    column: bool = False

    def __call__(self, X: Any) -> Any:
        image = self.map(Points.of(X))
        return np.asarray(image)[:, None] if self.column else image
