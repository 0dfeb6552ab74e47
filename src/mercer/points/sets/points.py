"""A set of points of any kind, with the work done once per point remembered."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from mercer import _core
from mercer.machine.lazy import cached_property
from mercer.points.sets.named import is_named, numbered
from mercer.points.sets.operands import Centred, Compressed, centre
from mercer.points.sets.vectors import NoMatrix, as_vectors, is_foreign, levels_of

__all__ = ["NoMatrix", "Points", "is_foreign"]


class Points:
    """Points to be compared: rows of a matrix or a table, or any sequence of objects.

    Nothing is converted until a kernel asks for it: `vectors` demands numbers, `items` takes the points as
    they are, and `through` derives another set of points (a choice of columns, a feature map, ...) which is
    computed once however many kernels and blocks ask for it.

    Parameters
    ----------
    data
        A NumPy array, a SciPy sparse matrix or array, a pandas or polars table, a torch tensor, or a sequence
        of arbitrary objects.
    name
        What error messages call it.

    Examples
    --------
    >>> points = Points([[0.0, 1.0], [2.0, 3.0]])
    >>> len(points), points.width
    (2, 2)
    """

    _about_zero: Centred | None = None
    _centred: tuple[np.ndarray, Centred] | None = None
    _compressed: tuple[Any, Compressed] | None = None
    _numbered: tuple[Points, Points, Points] | None = None

    def __init__(self, data: Any, name: str = "X") -> None:
        self.data = data
        self.name = name
        self._derived: dict[Hashable, Any] = {}
        single = isinstance(data, str | bytes | dict) and not sparse.issparse(data)
        if single or getattr(data, "ndim", 1) == 0:
            raise TypeError(
                f"{name} is a single {type(data).__name__}; pass a sequence of points or a matrix with one "
                "row per point."
            )
        try:
            self._size = int(data.shape[0]) if hasattr(data, "shape") else len(data)
        except TypeError:
            raise TypeError(
                f"{name} is a {type(data).__name__}, which has no length; pass a sequence or a matrix of points."
            ) from None
        if self._size == 0:
            raise ValueError(f"{name} is empty: it has 0 points; at least one is needed.")

    @classmethod
    def of(cls, data: Any, name: str = "X") -> Points:
        """Return `data` as points, unchanged when it already is."""
        return data if isinstance(data, Points) else cls(data, name)

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"<{len(self)} points of {type(self.data).__name__}>"

    # -- what kernels read ------------------------------------------------------------------------------

    @cached_property
    def vectors(self) -> Any:
        """The points as rows of a finite floating-point matrix: NumPy, CSR or, when given one, torch."""
        return as_vectors(self.data, self.name)

    @property
    def width(self) -> int:
        """The number of coordinates of each vector."""
        return int(self.vectors.shape[1])

    @cached_property
    def numeric(self) -> bool:
        """Whether the points are vectors of numbers rather than other objects."""
        if getattr(self.data, "ndim", 2) == 1:
            return False
        try:
            return self.vectors is not None
        except (TypeError, NoMatrix):
            return False

    @cached_property
    def levels(self) -> dict[Any, tuple[Any, ...]]:
        """The levels of columns that are ordered categories, whose ranks are numbers of the vectors."""
        return levels_of(self.data)

    @cached_property
    def sets(self) -> bool:
        """Whether the points are Python sets, which are compared by their elements."""
        if self.foreign or sparse.issparse(self.data) or getattr(self.data, "dtype", np.dtype(object)).kind != "O":
            return False
        first = Points(self.data[:1]) if hasattr(self.data, "columns") else self
        return isinstance(first.items[0], set | frozenset)

    @property
    def dtype(self) -> Any:
        """The floating-point type of the vectors; float64 for points that are not vectors."""
        return self.vectors.dtype if self.numeric else np.dtype(np.float64)

    @property
    def foreign(self) -> bool:
        """Whether the vectors belong to another array library (torch) rather than NumPy."""
        return is_foreign(self.data)

    @cached_property
    def extent(self) -> float:
        """The largest absolute coordinate."""
        v = self.vectors
        if isinstance(v, np.ndarray):
            return _core.extent(v)
        if sparse.issparse(v):
            v = v.data if v.nnz else np.zeros(1)
        return max(float(v.max()), -float(v.min()))

    @property
    def variance(self) -> float:
        """The variance of all coordinates together, of a matrix whose squares stay in range."""
        return _core.variance(self.vectors)

    @property
    def packed(self) -> np.ndarray:
        """The vectors in the layout that the core streams."""
        return self.centred(None).packed

    @property
    def whole(self) -> Points:
        """The set that these points were taken from."""
        return self

    @cached_property
    def centre(self) -> np.ndarray | None:
        """A point amid the vectors, or None where 0 is one; taken points share it with the whole."""
        return centre(self.vectors)

    def centred(self, centre: np.ndarray | None) -> Centred:
        """Return the vectors minus a centre, remembered for 0 (None) and for the last other one asked for."""
        if centre is None:
            if self._about_zero is None:
                self._about_zero = self._about(None)
            return self._about_zero
        if self._centred is None or self._centred[0] is not centre:
            self._centred = centre, self._about(centre)
        return self._centred[1]

    def _about(self, centre: np.ndarray | None) -> Centred:
        return Centred(self.vectors if centre is None else self.vectors - centre)

    def compressed(self, dtype: Any) -> Compressed:
        """Return the nonzeros of the vectors, rounded to `dtype`; remembered for the last type asked for."""
        if self._compressed is None or self._compressed[0] != dtype:
            self._compressed = dtype, self._compress(dtype)
        return self._compressed[1]

    def _compress(self, dtype: Any) -> Compressed:
        return Compressed.of(self.vectors, dtype)

    @cached_property
    def items(self) -> Sequence[Any]:
        """The points as they are, one by one."""
        data = self.data
        if sparse.issparse(data):
            data = data.tocsr()
            return [data[i] for i in range(len(self))]
        if hasattr(data, "columns"):
            data = np.asarray(data)
        if isinstance(data, np.ndarray) and data.ndim == 2 and data.shape[1] == 1:
            texts = data.dtype.kind in "OUS" and any(isinstance(x, str | bytes) for x in data[:, 0])  # "7" is one, too
            if texts or not self.numeric:
                return list(data[:, 0])  # a table of one column of texts (or other objects) is a list of them
        return data if hasattr(data, "__getitem__") else list(data)

    # -- features with names ----------------------------------------------------------------------------

    @property
    def named(self) -> bool:
        """Whether the features have names, which are to be numbered before points are compared."""
        return is_named(self.origin.data)

    def numbered(self, other: Points) -> tuple[Points, Points]:
        """Return both sets of points with their named features numbered alike; remembered for the last other one."""
        mine, others = self.origin, other.origin
        if mine._numbered is None or mine._numbered[0] is not others:
            vectors = numbered(mine.vectors) * 2 if mine is others else numbered(mine.vectors, others.vectors)
            left = Points(vectors[0], mine.name)
            mine._numbered = others, left, left if mine is others else Points(vectors[1], others.name)
        _, left, right = mine._numbered
        return self.chosen_from(left), other.chosen_from(right)

    @property
    def origin(self) -> Points:
        """The set that these points, or what they are rounded from, were taken from."""
        return self

    def chosen_from(self, points: Points) -> Points:
        """Return of points that stand for those of the origin the ones that stand for these, rounded as these."""
        return points

    # -- deriving ---------------------------------------------------------------------------------------

    def through(self, map: Callable[[Points], Any]) -> Points:
        """Return the points that `map` makes of these; equal maps share one result."""
        image = self._derived.get(map)
        if image is None:
            image = self._derived[map] = self._seen_through(map)
        return image

    def _seen_through(self, map: Callable[[Points], Any]) -> Points:
        image = Points(map(self), self.name)
        if len(image) != len(self):
            raise ValueError(f"{map!r} turned {len(self)} points into {len(image)}; it must keep their number.")
        return image

    def values(self, function: Callable[[Points], Any]) -> Any:
        """Return one number per point; equal functions share one result."""
        numbers = self._derived.get(function)
        if numbers is None:
            numbers = function(self)
            if not self.foreign:
                numbers = np.asarray(numbers)
                if numbers.shape != (len(self),):
                    raise ValueError(
                        f"{function!r} must give one number per point: shape ({len(self)},), not {numbers.shape}."
                    )
                if not np.isfinite(numbers).all():
                    i = int(np.argmin(np.isfinite(numbers)))
                    name = getattr(function, "__qualname__", repr(function))
                    raise ValueError(f"{name} gives {numbers[i]} at point {i}; it must be finite.")
            self._derived[function] = numbers
        return numbers

    def take(self, rows: slice | np.ndarray) -> Points:
        """Return some of the points; what was derived from all of them is cut, not computed again."""
        if isinstance(rows, slice) and rows.indices(len(self)) == (0, len(self), 1):
            return self
        return _Taken(self, rows)

    def place(self, i: int) -> int:
        """Return which of the points that were given number i is."""
        return i

    @property
    def span(self) -> slice | None:
        """Where these points lie in the whole, in its order; None where they are a selection."""
        return slice(0, len(self))

    def single(self) -> Points:
        """Return the same points, their vectors rounded to float32; themselves when they are that or no vectors."""
        if self.foreign or not self.numeric or self.dtype == np.float32:
            return self
        return self._rounded

    @cached_property
    def _rounded(self) -> Points:
        return _Single(self)

    def double(self) -> Points:
        """Return the same points, their vectors in float64; themselves when they are that or no vectors."""
        return self if self.foreign or not self.numeric or self.dtype == np.float64 else self._widened

    @cached_property
    def _widened(self) -> Points:
        return _Double(self)


def _of_parent(name: str) -> Any:
    return property(lambda self: getattr(self._parent, name))


class _Taken(Points):
    """A selection from another set of points, with which it shares what is known of all of them."""

    numeric, levels, sets, dtype, foreign, extent, whole, origin, centre = map(
        _of_parent, ("numeric", "levels", "sets", "dtype", "foreign", "extent", "whole", "origin", "centre")
    )

    def __init__(self, parent: Points, rows: slice | np.ndarray) -> None:
        self._parent, self._rows = parent, rows
        self.name = parent.name
        self._derived = {}
        self._size = len(range(len(parent))[rows]) if isinstance(rows, slice) else len(rows)

    @cached_property
    def data(self) -> Any:
        return _select(self._parent.data, self._rows)

    @cached_property
    def vectors(self) -> Any:
        return _select(self._parent.vectors, self._rows)

    def place(self, i: int) -> int:
        rows = range(len(self._parent))[self._rows] if isinstance(self._rows, slice) else self._rows
        return self._parent.place(int(rows[i]))

    @property
    def span(self) -> slice | None:
        outer = self._parent.span
        if outer is None or not isinstance(self._rows, slice):
            return None
        first, _, step = self._rows.indices(len(self._parent))
        return slice(outer.start + first, outer.start + first + len(self)) if step == 1 else None

    def chosen_from(self, points: Points) -> Points:
        return self._parent.chosen_from(points).take(self._rows)

    def _about(self, centre: np.ndarray | None) -> Centred:
        return self._parent.centred(centre).take(self._rows)

    def _compress(self, dtype: Any) -> Compressed:
        return self._parent.compressed(dtype).take(self._rows)

    def _seen_through(self, map: Callable[[Points], Any]) -> Points:
        return self._parent.through(map).take(self._rows)

    def values(self, function: Callable[[Points], Any]) -> Any:
        return self._parent.values(function)[self._rows]


class _Cast(Points):
    """Other points with their vectors in another precision."""

    origin = _of_parent("origin")

    def __init__(self, parent: Points) -> None:
        self._parent = parent
        self.data, self.name = parent.data, parent.name
        self._derived = {}
        self._size = len(parent)


class _Single(_Cast):
    @cached_property
    def vectors(self) -> Any:
        with np.errstate(over="ignore"):
            rounded = self._parent.vectors.astype(np.float32)
        values = rounded.data if sparse.issparse(rounded) else rounded
        if not np.isfinite(values).all():
            raise FloatingPointError(f"{self.name} has values beyond the range of float32.")
        return rounded

    def chosen_from(self, points: Points) -> Points:
        return self._parent.chosen_from(points).single()

    def _seen_through(self, map: Callable[[Points], Any]) -> Points:
        return self._parent.through(map).single()

    def values(self, function: Callable[[Points], Any]) -> Any:
        return self._parent.values(function)


class _Double(_Cast):
    @cached_property
    def vectors(self) -> Any:
        return self._parent.vectors.astype(np.float64, copy=False)

    @cached_property
    def _exact(self) -> bool:
        """Whether the parent computes in double precision, too, and may do the work."""
        return self._parent.dtype == np.float64

    def chosen_from(self, points: Points) -> Points:
        return self._parent.chosen_from(points).double()

    def _seen_through(self, map: Callable[[Points], Any]) -> Points:
        return (self._parent.through(map) if self._exact else Points(map(self), self.name)).double()

    def values(self, function: Callable[[Points], Any]) -> Any:
        return self._parent.values(function) if self._exact else super().values(function)


def _select(data: Any, rows: slice | np.ndarray) -> Any:
    if hasattr(data, "iloc"):
        return data.iloc[rows]
    if sparse.issparse(data):
        return data.tocsr()[rows]
    if hasattr(data, "shape"):
        part = data[rows]
        return np.ascontiguousarray(part) if isinstance(part, np.ndarray) and part.ndim == 2 else part
    if isinstance(rows, slice):
        return data[rows]
    return [data[int(i)] for i in rows]
