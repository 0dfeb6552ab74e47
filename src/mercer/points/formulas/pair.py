"""The questions that a kernel may ask about a block of pairs.

A kernel is one method, `of(pair)`: an elementwise formula in the statistics below. The same method is called
with symbols (to learn the formula, see `formula.py`), with blocks of real points, and with the diagonal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import array_api_compat
import numpy as np

from mercer.machine.lazy import cached_property
from mercer.machine.threads import cores, inside, run
from mercer.points.sets import bags
from mercer.points.sets.points import Points

# Hashable callables, so that equal ones are computed once: points to points, and points to one number each.
PointMap = Callable[[Points], Any]
PointValues = Callable[[Points], Any]
# A number for each pair of two sets of points, as a matrix.
PairRule = Callable[[Points, Points], np.ndarray]

_FAR = 3000.0  # exp(-3000 / 2) is 0 in double precision; keeps r * exp(-r) from becoming infinity times zero
_DIFFERENCES = 1 << 20  # coordinates of differences held at a time
_SHARES = 4  # parts of a block for each core, where its rows may be of different cost


def squared_norms(points: Points) -> Any:
    """Return |x|^2 for each point."""
    v = points.vectors
    if points.foreign:
        return array_api_compat.array_namespace(v).sum(v * v, axis=1)
    return np.einsum("ij,ij->i", v, v) if isinstance(v, np.ndarray) else np.asarray(v.multiply(v).sum(axis=1)).ravel()


def norms(points: Points) -> Any:
    """Return |x| for each point, without overflow on the way."""
    v = points.vectors
    if points.foreign:
        return array_api_compat.array_namespace(v).linalg.vector_norm(v, axis=1)
    scaled, unit = unit_rows(v)
    squares = (
        np.einsum("ij,ij->i", scaled, scaled) if isinstance(v, np.ndarray) else scaled.multiply(scaled).sum(axis=1)
    )
    return np.sqrt(np.asarray(squares).ravel()) * unit


def unit_rows(v: Any) -> tuple[Any, np.ndarray]:
    """Return the rows divided by their largest absolute entries, and those (1 for rows of zeros)."""
    if isinstance(v, np.ndarray):
        unit = np.abs(v).max(axis=1)
        unit[unit == 0] = 1
        return v / unit[:, None], unit
    row = np.repeat(np.arange(v.shape[0]), np.diff(v.indptr))
    unit = np.zeros(v.shape[0], v.dtype)
    np.maximum.at(unit, row, np.abs(v.data))
    unit[unit == 0] = 1
    return type(v)((v.data / unit[row], v.indices, v.indptr), shape=v.shape), unit


class Pair(ABC):
    """A block of pairs (x_i, z_j) and its statistics, each computed at most once."""

    @property
    @abstractmethod
    def xp(self) -> Any:
        """The namespace whose `exp`, `sqrt`, `log1p`, ... apply to the statistics (array API names)."""

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of features of the points."""

    @abstractmethod
    def through(self, map: PointMap) -> Pair:
        """Return the same pairs after `map` has been applied to the points (once per set of points)."""

    @abstractmethod
    def left(self, function: PointValues) -> Any:
        """Return one number per left point, as a column."""

    @abstractmethod
    def right(self, function: PointValues) -> Any:
        """Return one number per right point, as a row."""

    @abstractmethod
    def _stat(self, kind: str, scale: Any = 1.0) -> Any: ...

    @property
    @abstractmethod
    def equal(self) -> Any:
        """1 where x_i = z_j, 0 elsewhere."""

    @abstractmethod
    def call(self, function: Callable[[Any, Any], float]) -> Any:
        """Return function(x_i, z_j) for each pair, calling Python."""

    @abstractmethod
    def compare(self, rule: PairRule) -> Any:
        """Return rule(x, z), which computes a matrix of numbers from two sets of points at a time."""

    @abstractmethod
    def lookup(self, matrix: Any) -> Any:
        """Return matrix[x_i, z_j] for points that are indices."""

    @property
    @abstractmethod
    def sets(self) -> bool:
        """Whether the points are Python sets."""

    @property
    @abstractmethod
    def common(self) -> Any:
        """The numbers of common elements of points that are Python sets."""

    @abstractmethod
    def sums(self, of: Callable[[Pair], Any]) -> Any:
        """Return the sum of a formula over all pairs of elements of two bags (points through `bagged`)."""

    @abstractmethod
    def differences(self, function: Callable[[Any], Any]) -> Any:
        """Return function(x_i - z_j) for each pair; `function` takes the differences as rows of a matrix."""

    def outer(self, function: PointValues) -> Any:
        """Return function(x_i) * function(z_j)."""
        return self.left(function) * self.right(function)

    def damped(self, square: Any, p: float) -> Any:
        """Return (1 + r + p r^2) exp(-r) of r = sqrt(square), a smooth function of the square if p is 0 or 1/3."""
        xp = self.xp
        r = xp.clip(xp.sqrt(square), max=_FAR)
        half = xp.exp(-0.5 * r)  # half first: exp(-r) may be denormal where the product is not
        return (1 + r) * half * half if p == 0 else (1 + r + r * r * p) * half * half

    @property
    def dot(self) -> Any:
        """The inner products <x, z>."""
        return self._stat("dot")

    def sqdist(self, scale: Any = 1.0) -> Any:
        """Return sum_j ((x_j - z_j) / s_j)^2; `scale` is a number or one number per feature."""
        return self._stat("sqdist", scale)

    def l1(self, scale: Any = 1.0) -> Any:
        """Return sum_j |x_j - z_j| / s_j."""
        return self._stat("l1", scale)

    @property
    def chi2(self) -> Any:
        """The sum over j of (x_j - z_j)^2 / (x_j + z_j), for non-negative features."""
        return self._stat("chi2")

    @property
    def minimum(self) -> Any:
        """The sum over j of min(x_j, z_j)."""
        return self._stat("minimum")

    @property
    def sqsum(self) -> Any:
        """|x + z|^2."""
        return self._stat("sqsum")


class _Real(Pair):
    """Pairs of points that are at hand."""

    _left: Points
    _right: Points
    _memo: dict[Any, Any]

    @cached_property
    def xp(self) -> Any:
        if self._left.foreign:
            return array_api_compat.array_namespace(self._left.vectors)
        return array_api_compat.array_namespace(np.empty(0))

    @property
    def width(self) -> int:
        return self._left.width

    @property
    def sets(self) -> bool:
        return self._left.sets

    def _values(self, of: Callable[[Pair], Any], left: Points, right: Points) -> np.ndarray:
        """Return a formula of all pairs of other points."""
        from mercer.points.comparison import Comparison

        values: np.ndarray = Comparison(of, left, right).dense()
        return values

    def _stat(self, kind: str, scale: Any = 1.0) -> Any:
        key = (kind, scale if np.isscalar(scale) else tuple(scale))
        if key not in self._memo:
            self._memo[key] = self._compute(kind, scale)
        return self._memo[key]

    @abstractmethod
    def _compute(self, kind: str, scale: Any) -> Any: ...


class Block(_Real):
    """Every left point against every right point, on arrays."""

    def __init__(self, left: Points, right: Points) -> None:
        self._left, self._right, self._memo = left, right, {}

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of left and right points."""
        return len(self._left), len(self._right)

    def through(self, map: PointMap) -> Block:
        if map not in self._memo:
            self._memo[map] = Block(self._left.through(map), self._right.through(map))
        return self._memo[map]

    def left(self, function: PointValues) -> Any:
        return self._left.values(function)[:, None]

    def right(self, function: PointValues) -> Any:
        return self._right.values(function)[None, :]

    @property
    def equal(self) -> Any:
        named = self._left.levels or self._right.levels  # levels are equal by name, and missing ones need no rank
        if not named and self._left.numeric and self._right.numeric:
            apart = self.l1()
            return self.xp.astype(apart == 0, apart.dtype)
        left, right = _numbered(_tokens(self._left), _tokens(self._right))
        return (left[:, None] == right[None, :]).astype(np.float64)

    @property
    def common(self) -> np.ndarray:
        return bags.common(self._left, self._right)

    def sums(self, of: Callable[[Pair], Any]) -> np.ndarray:
        return bags.sums(self._left.data, self._right.data, lambda x, z: self._values(of, x, z))

    def _compute(self, kind: str, scale: Any) -> Any:
        if self._left.foreign:
            same_width(self._left, self._right)
            scale_fits(scale, self.width)
            return statistic(self.xp, kind, self._left.vectors, self._right.vectors, scale)
        from mercer.points.comparison import Comparison

        return Comparison(lambda pair: pair._stat(kind, scale), self._left, self._right).compute()[0]

    def call(self, function: Callable[[Any, Any], float]) -> np.ndarray:
        right = self._right.items
        size = len(self._left) * len(self._right)
        values = (float(function(x, z)) for x in self._left.items for z in right)
        return called(function, np.fromiter(values, np.float64, size).reshape(self.shape), self._left, self._right)

    def compare(self, rule: PairRule) -> np.ndarray:
        left, right = self._left, self._right
        out = np.empty(self.shape)

        def fill(first: int) -> None:
            rows, columns = slice(first, min(first + step, len(left))), slice(first if left is right else 0, len(right))
            out[rows, columns] = values = rule(left.take(rows), right.take(columns))
            if left is right:
                out[rows.stop :, rows] = values[:, len(values) :].T

        step = len(left) if inside() else -(-len(left) // (_SHARES * cores()))
        run(fill, range(0, len(left), step))
        if _begin_alike(left, right):  # rounding may depend on the order of two points
            square = out[:, : len(left)]
            square[:] = np.triu(square) + np.triu(square, 1).T
        return out

    def differences(self, function: Callable[[Any], Any]) -> np.ndarray:
        same_width(self._left, self._right)
        x, z = _dense(self._left), _dense(self._right)
        dtype = np.result_type(x, z)
        x, z = x.astype(np.float64, copy=False), z.astype(np.float64, copy=False)
        step = max(1, _DIFFERENCES // z.size)
        parts = [function((x[i : i + step, None, :] - z).reshape(-1, z.shape[1])) for i in range(0, len(x), step)]
        return np.concatenate(parts).reshape(self.shape).astype(dtype, copy=False)

    def lookup(self, matrix: Any) -> Any:
        return matrix[np.ix_(_indices(self._left, matrix.shape[0]), _indices(self._right, matrix.shape[1]))]


class Diagonal(_Real):
    """Each point paired with itself: statistics are vectors."""

    def __init__(self, points: Points) -> None:
        self._left = self._right = points
        self._memo = {}

    def through(self, map: PointMap) -> Diagonal:
        return Diagonal(self._left.through(map))

    def left(self, function: PointValues) -> Any:
        return self._left.values(function)

    right = left

    @property
    def equal(self) -> Any:
        return 1.0

    @property
    def common(self) -> np.ndarray:
        return np.asarray(self._left.values(bags.sizes))

    def sums(self, of: Callable[[Pair], Any]) -> np.ndarray:
        return bags.own_sums(self._left.data, lambda x, z: self._values(of, x, z))

    def _compute(self, kind: str, scale: Any) -> Any:
        v = self._left.vectors
        if kind in ("sqdist", "l1", "chi2"):
            scale_fits(scale, v.shape[1])
            return v[:, 0] * 0 if self._left.foreign else np.zeros(v.shape[0], v.dtype)
        if kind == "minimum":
            return self.xp.sum(v, axis=1) if self._left.foreign else np.asarray(v.sum(axis=1)).ravel()
        return squared_norms(self._left) * (4 if kind == "sqsum" else 1)

    def call(self, function: Callable[[Any, Any], float]) -> np.ndarray:
        values = np.fromiter((float(function(x, x)) for x in self._left.items), np.float64, len(self._left))
        return called(function, values, self._left, self._right)

    def compare(self, rule: PairRule) -> np.ndarray:
        points, n = self._left, len(self._left)
        out = np.empty(n)

        def fill(first: int) -> None:
            for i in range(first, min(first + step, n)):
                point = points.take(slice(i, i + 1))
                out[i] = rule(point, point)[0, 0]

        step = -(-n // (_SHARES * cores()))
        run(fill, range(0, n, step))
        return out

    def differences(self, function: Callable[[Any], Any]) -> np.ndarray:
        return function(np.zeros((len(self._left), self._left.width))).astype(self._left.dtype, copy=False)

    def lookup(self, matrix: Any) -> Any:
        i = _indices(self._left, min(matrix.shape))
        return matrix[i, i]


def _begin_alike(left: Points, right: Points) -> bool:
    """Return whether the right points begin with the left ones, so that a symmetric matrix begins here."""
    spans = left.span, right.span
    if left.whole is not right.whole or spans[0] is None or spans[1] is None:
        return False
    return spans[0].start == spans[1].start and spans[0].stop <= spans[1].stop


def called(function: Callable[..., Any], values: np.ndarray, left: Points, right: Points) -> np.ndarray:
    """Return what a Python function said of points, or say for which two of them it was no finite number."""
    if np.isfinite(values).all():
        return values
    at = np.argwhere(~np.isfinite(values))[0]
    i, j = left.place(int(at[0])), right.place(int(at[-1]))
    raise FloatingPointError(
        f"the kernel function {getattr(function, '__qualname__', repr(function))} returned {values[tuple(at)]} for "
        f"points {i} and {j}; a kernel is a finite number for every two points: mend the function, or drop the points "
        "that it cannot compare."
    )


def _tokens(points: Points) -> np.ndarray:
    """Return the points as an array of objects that compare as wholes."""
    tokens = np.empty(len(points), dtype=object)
    for i, item in enumerate(points.items):
        item = item.tolist() if isinstance(item, np.ndarray) else item
        tokens[i] = tuple(item) if isinstance(item, list) else item
    return tokens


def _numbered(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return equal objects as equal numbers, which are compared faster; the objects where they cannot be hashed."""
    known: dict[Any, int] = {}
    try:
        numbers = np.array([known.setdefault(token, len(known)) for token in (*left, *right)])
    except TypeError:
        return left, right
    return numbers[: len(left)], numbers[len(left) :]


def _dense(points: Points) -> np.ndarray:
    v = points.vectors
    if points.foreign:
        raise TypeError(
            f"this kernel evaluates on NumPy arrays; pass {points.name} as one rather than a {type(v).__name__}."
        )
    return v if isinstance(v, np.ndarray) else v.toarray()


def same_width(left: Points, right: Points) -> None:
    """Raise unless both sets of points have the same number of features, and ranks the same meaning."""
    same_levels(left, right)
    if left.width != right.width:
        raise ValueError(
            f"{left.name} has {left.width} features and {right.name} has {right.width}; both must have the same "
            "columns in the same order."
        )


def same_levels(left: Points, right: Points) -> None:
    """Raise where a column of ordered categories has other levels in one set of points than in the other."""
    if left.levels == right.levels:
        return
    for column, known in left.levels.items():
        others = right.levels.get(column, known)
        if others != known:
            raise ValueError(
                f"the ordered category {column!r} has the levels {_short(known)} in {left.name} and {_short(others)} "
                f"in {right.name}, so that a rank does not mean the same in both; give them one type, such as "
                f"new[{column!r}].astype(old[{column!r}].dtype)."
            )


def _short(levels: tuple[Any, ...]) -> str:
    return " < ".join(map(str, levels[:6])) + (" < ..." if len(levels) > 6 else "")


def scale_fits(scale: Any, width: int) -> None:
    """Raise unless `scale` is one number or one per feature."""
    if not np.isscalar(scale) and len(scale) != width:
        raise ValueError(
            f"scale has {len(scale)} entries but the points have {width} features; give one number, or one per feature."
        )


def _indices(points: Points, size: int) -> np.ndarray:
    index = np.asarray(points.data)
    if index.ndim == 2 and index.shape[1] == 1:
        index = index[:, 0]
    if index.ndim != 1 or index.dtype.kind not in "iuf" or (index != index.astype(np.intp)).any():
        raise TypeError(
            f"a precomputed kernel compares points by their index into its matrix; {points.name} has shape "
            f"{index.shape} and "
            f"type {index.dtype}. Pass integers such as numpy.arange(n)."
        )
    index = index.astype(np.intp)
    if index.size and (index.min() < 0 or index.max() >= size):
        bad = index[(index < 0) | (index >= size)][0]
        raise IndexError(
            f"{points.name} contains index {bad}, but the precomputed matrix has {size} rows: 0 to {size - 1}."
        )
    return index


# -- pair statistics on arrays of another library (torch on a CPU or a GPU), in its own operations --------


def statistic(xp: Any, kind: str, x: Any, z: Any, scale: Any = 1.0) -> Any:
    """Return one statistic for every row of `x` against every row of `z`.

    Differences are formed coordinate by coordinate and then scaled, as in the core: norms and inner products
    would cancel.
    """
    if kind == "dot":
        return x @ z.T
    scales = xp.broadcast_to(xp.asarray(scale, dtype=x.dtype, device=x.device), (x.shape[1],))
    total = xp.zeros((x.shape[0], z.shape[0]), dtype=x.dtype, device=x.device)
    for j in range(x.shape[1]):
        a, b = x[:, j, None], z[None, :, j]
        if kind == "sqdist":
            total = total + ((a - b) / scales[j]) ** 2
        elif kind == "l1":
            total = total + xp.abs((a - b) / scales[j])
        elif kind == "sqsum":
            total = total + (a + b) ** 2
        elif kind == "minimum":
            total = total + xp.minimum(a, b)
        else:
            bottom = a + b
            total = total + xp.where(bottom > 0, (a - b) ** 2 / xp.where(bottom > 0, bottom, xp.ones_like(bottom)), 0)
    return total
