"""Kernel values that are kept, or kept small: 16-bit points, one triangle, rows in a cache, scratch memory."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer import _core
from mercer.machine.lazy import cached_property
from mercer.machine.threads import cores, run
from mercer.points.comparison import Comparison
from mercer.points.formulas.formula import Path, seen, statistics
from mercer.points.formulas.program import STAT, Program, compile_formula
from mercer.points.sets.operands import packed, padded
from mercer.points.sets.points import Points

_LEAST_FEATURES = 16  # from which on it pays
_MOST_FEATURES = 1 << 20  # beyond which the rounding of so many coordinates is no longer small
_LARGEST = 2**15 - 1  # whole number of 16 bits
_LONGEST = 46340.0  # row of them, root of 2**31: no inner product of two such rows overflows 32 bits
_SAMPLE = 256  # points on which the error is measured
_LARGEST_POINTS = 64  # of them those with the largest values
_DIAGONAL_ERROR = 2.0  # times that of all other values, from which on the diagonal is put right
_ROUNDING = 1e-6  # error of values that are put right, in units of the largest
_BLOCK = 32  # rows of the squares from which the coarse diagonal is read
_BAND = 256  # rows of held values that lie together in memory
_STRIP = 2048  # columns of them that are computed at a time
_LANES = 16  # float32 numbers that the core reads at a time
_SCRATCH = 16 * 2**20  # bytes of a matrix that a thread keeps from one problem to the next

_local = threading.local()


def _fits(points: Points) -> bool:
    dense = isinstance(points.vectors, np.ndarray) and _LEAST_FEATURES <= points.width <= _MOST_FEATURES
    return dense and points.centred(None).thin is None  # few nonzeros are faster one by one


def whole(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return whole numbers of 16 bits (n, d), d made even, and a unit for each row by which they are to be multiplied.

    Rows are as long as they may be for the sum of any products of two of them to stay within 32 bits.
    """
    n, d = rows.shape
    out, units = np.zeros((n, d + d % 2), np.int16), np.zeros(n, np.float32)
    longest = _LONGEST - 0.5 * math.sqrt(d)  # rounding may make a row longer by that
    step = max(1, (1 << 18) // d)
    for i in range(0, n, step):
        x = rows[i : i + step].astype(np.float64)
        largest = np.abs(x).max(axis=1)
        x /= np.where(largest > 0, largest, 1.0)[:, None]
        scale = np.minimum(_LARGEST, longest / np.maximum(np.sqrt(np.einsum("ij,ij->i", x, x)), 1.0))
        scale = np.floor(scale)  # numbers that are all of one size are then exact
        with np.errstate(over="ignore"):
            units[i : i + step] = largest / scale
        out[i : i + step, :d] = np.rint(x * scale[:, None])
    return out, units


class Coarse:
    """The matrix of a formula of inner products, of points rounded to 16 bits; made by `Coarse.of`.

    Notes
    -----
    Sums of products of whole numbers are exact: inner products are those of slightly moved points, about 1e-5 |x| |z|
    off. If the formula reads nothing else, then the matrix is one of the same kernel: symmetric to the last bit and,
    but for the rounding of float32, positive semidefinite if the kernel is. A high power of inner products has nearly
    all of its error on the diagonal, where they are largest; then the diagonal alone is put right.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.points import Comparison, Points
    >>> X = np.random.default_rng(0).standard_normal((50, 20))
    >>> products = Coarse.of(Comparison(lambda pair: (1 + pair.dot) ** 3, Points(X)))
    >>> products is None or products.error < 1e-3
    True
    """

    @classmethod
    def of(cls, comparison: Comparison) -> Coarse | None:
        """Return coarse products of a comparison; None where there are none.

        There are if the points are compared with themselves, the formula reads nothing of a pair but inner products of
        dense vectors with 16 features or more, not most of them zeros, and the processor multiplies 16-bit numbers fast
        (AVX-512 VNNI).
        """
        formula = comparison.formula
        if formula is None or not comparison.symmetric or not _core.has_coarse():
            return None
        leaves = statistics(formula)
        if not leaves or any(leaf.kind != "dot" for leaf in leaves):
            return None
        return cls(comparison) if all(_fits(seen(comparison.left, leaf.path)) for leaf in leaves) else None

    def __init__(self, comparison: Comparison) -> None:
        assert comparison.formula is not None
        self._comparison = comparison
        self._program: Program = compile_formula(comparison.formula)
        self._points = {leaf.path: seen(comparison.left, leaf.path) for leaf in self._program.stats}
        self._whole = {path: whole(points.vectors) for path, points in self._points.items()}
        self._job = self._made(np.float32, slice(None))

    def _made(self, dtype: Any, chosen: slice | np.ndarray) -> Any:
        """Return the work on some of the points as the core takes it: coarse in float32, exact in float64."""
        program, left = self._program, self._comparison.left
        single = dtype == np.float32
        operand = self._operand if single else self._exact
        operands = [operand(leaf.path, chosen) for leaf in program.stats]
        with np.errstate(over="ignore"):
            rows, cols = (
                [np.ascontiguousarray(seen(left, leaf.path).values(leaf.function)[chosen], dtype) for leaf in leaves]
                for leaves in (program.rows, program.cols)
            )
        n = len(range(len(left))[chosen]) if isinstance(chosen, slice) else len(chosen)
        kind = _core.JobFloat32 if single else _core.JobFloat64
        return kind(program.code, program.constants, program.registers, program.result, operands, rows, cols, n, n)

    def _operand(self, path: Path, chosen: slice | np.ndarray) -> tuple[Any, ...]:
        numbers, units = (np.ascontiguousarray(part[chosen]) for part in self._whole[path])
        pairs = numbers.view(np.float32)  # two whole numbers in the bits of each
        ends = np.zeros(padded(len(units), units.dtype), np.float32)
        ends[: len(units)] = units
        return STAT["dot"], pairs.shape[1], pairs, packed(pairs), None, (0.0, 0.0), (ends, ends)

    def _exact(self, path: Path, chosen: slice | np.ndarray) -> tuple[Any, ...]:
        x = np.ascontiguousarray(self._points[path].vectors[chosen], np.float64)
        return STAT["dot"], x.shape[1], x, packed(x), None, (0.0, 0.0), None

    @property
    def shape(self) -> tuple[int, int]:
        """The number of points, twice."""
        return self._comparison.shape

    @property
    def error(self) -> float:
        """The largest error of a value, in units of the largest k(x, x), among a sample of pairs (seen in float64).

        Up to 256 points it is that of all pairs. Infinite where a value overflows float32.
        """
        return self._looked_at[0]

    @property
    def exact_diagonal(self) -> bool:
        """Whether the values on the diagonal are the comparison's own, rather than those of the rounded points."""
        return self._looked_at[1]

    @cached_property
    def _looked_at(self) -> tuple[float, bool]:
        n = len(self._comparison.left)
        try:
            sizes = np.abs(np.asarray(self._comparison.diag(), np.float64))
        except FloatingPointError:
            return math.inf, False
        chosen = np.arange(n)
        if n > _SAMPLE:
            some = np.random.default_rng(0).choice(n, _SAMPLE - _LARGEST_POINTS, replace=False)
            chosen = np.union1d(some, np.argpartition(sizes, -_LARGEST_POINTS)[-_LARGEST_POINTS:])
        values = [np.empty((len(chosen), len(chosen)), dtype) for dtype in (np.float32, np.float64)]
        finite = [self._made(v.dtype, chosen).dense_symmetric(0, len(v), v) for v in values]
        largest = float(sizes.max())
        if not all(finite) or largest == 0:
            return (math.inf if not all(finite) or values[0].any() else 0.0), False
        errors = np.abs(values[0] - values[1]) / largest
        own = float(errors.diagonal().max())
        np.fill_diagonal(errors, 0.0)
        # What the others add up to, were they independent of one another.
        rest = math.sqrt(n * float(np.square(errors).sum()) / max(1, errors.size - len(chosen)))
        exact = own > _DIAGONAL_ERROR * rest
        return (max(float(errors.max()), _ROUNDING) if exact else max(own, float(errors.max()))), exact

    @cached_property
    def _missing(self) -> np.ndarray:
        """What the diagonal lacks, (n, 1)."""
        errors = np.array(self._comparison.diag(), np.float64)
        block = np.empty((_BLOCK, _BLOCK), np.float32)
        n = len(errors)
        for i in range(0, n, _BLOCK):
            if n - i < _BLOCK:
                block = np.empty((n - i, n - i), np.float32)
            self._job.dense(i, i + len(block), i, i + len(block), block)
            errors[i : i + len(block)] -= block.diagonal()
        return errors[:, None]

    def matvec(self, v: np.ndarray) -> np.ndarray:
        """Return the matrix times `v` (n,) or (n, k), in float64; `v` is rounded to float32."""
        n = self.shape[0]
        v = np.asarray(v)
        if v.ndim not in (1, 2) or v.shape[0] != n:
            raise ValueError(f"the vector has shape {v.shape}; this matrix is {n} x {n} and needs ({n},) or ({n}, k).")
        with np.errstate(over="ignore"):
            columns = np.ascontiguousarray(v.reshape(n, -1), np.float32)
        parts = [np.zeros(columns.shape) for _ in range(cores())]
        run(lambda i: self._job.matvec_symmetric(i, len(parts), columns, parts[i]), range(len(parts)))
        out = np.sum(parts, axis=0)
        if self.exact_diagonal:
            out += self._missing * columns
        out = out.reshape(v.shape)
        # What overflows is computed again with more care, or has a sentence said about it.
        return out if np.isfinite(out).all() else np.asarray(self._comparison.matvec(v), np.float64)


class Bands:
    """The upper triangle of a symmetric matrix in float32, held in bands of rows from the diagonal on.

    Parameters
    ----------
    comparison
        The matrix, with values in float32.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.points import Comparison, Points
    >>> held = Bands(Comparison(lambda pair: pair.dot, Points(np.float32([[1], [2]]))))
    >>> held.product(np.ones((2, 1)))
    array([[3.],
           [6.]])
    """

    def __init__(self, comparison: Comparison) -> None:
        n = self.n = len(comparison.left)
        self._bands = [  # the first row, and the rows
            (i, np.zeros((min(_BAND, n - i), -(-(n - i) // _LANES) * _LANES), np.float32)) for i in range(0, n, _BAND)
        ]

        def part(first: int) -> None:
            for i, band in self._bands[first :: cores()]:
                for j in range(i, n, _STRIP):
                    cols = slice(j, min(j + _STRIP, n))
                    band[:, j - i : cols.stop - i] = comparison.block(slice(i, i + len(band)), cols)
                square = band[:, : len(band)]  # both halves of the square on the diagonal are there: keep one
                square[np.tril_indices(len(square), -1)] = 0.0
                np.fill_diagonal(square, 0.5 * square.diagonal())

        run(part, range(cores()))

    def product(self, V: np.ndarray) -> np.ndarray:
        """Return the matrix times `V` (n, k), rounded to float32, in float64."""
        padded_columns = np.zeros((V.shape[1], self.n + _LANES), np.float32)
        padded_columns[:, : self.n] = V.T

        def part(first: int) -> np.ndarray:
            out = np.zeros(padded_columns.shape)
            for i, band in self._bands[first :: cores()]:
                _core.band_product(band, i, padded_columns, out)
            return out

        return np.asarray(np.sum(run(part, range(cores())), axis=0)[:, : self.n].T)


class RowCache:
    """A fixed number of rows of equal length.

    Parameters
    ----------
    capacity
        How many rows are kept.
    width, dtype
        The length and type of a row.
    compute
        Called with an array of row numbers that are not at hand; returns those rows.

    Examples
    --------
    >>> import numpy as np
    >>> cache = RowCache(2, 3, np.float64, lambda i: np.outer(i, np.ones(3)))
    >>> cache.rows(np.array([4, 5]))[:, 0], cache.hits
    (array([4., 5.]), 0)
    >>> cache.rows(np.array([5]))[:, 0], cache.hits
    (array([5.]), 1)
    """

    def __init__(self, capacity: int, width: int, dtype: Any, compute: Callable[[np.ndarray], np.ndarray]) -> None:
        self.slab = np.empty((capacity, width), dtype)
        self.hits = 0
        self._compute = compute
        self._slots: OrderedDict[int, int] = OrderedDict()

    def slots(self, index: np.ndarray) -> np.ndarray:
        """Return where in `slab` the given rows are, computing those that are missing.

        At most `capacity` distinct rows can be asked for at once; all of them are then in place together.
        """
        wanted = dict.fromkeys(int(i) for i in index)
        if len(wanted) > len(self.slab):
            raise ValueError(f"{len(wanted)} rows were asked for at once; the cache holds {len(self.slab)}.")
        missing = [i for i in wanted if i not in self._slots]
        for i in wanted:
            if i in self._slots:
                self._slots.move_to_end(i)
        if missing:
            values = self._compute(np.asarray(missing))  # first: when it raises, no row has lost its place
            free = list(range(len(self._slots), min(len(self.slab), len(self._slots) + len(missing))))
            while len(free) < len(missing):
                free.append(self._slots.popitem(last=False)[1])
            self.slab[free] = values
            self._slots.update(zip(missing, free, strict=True))
        self.hits += len(wanted) - len(missing)
        return np.fromiter((self._slots[int(i)] for i in index), np.intp, len(index))

    def rows(self, index: np.ndarray) -> np.ndarray:
        """Return copies of the given rows."""
        size = len(self.slab)
        parts = [self.slab[self.slots(index[i : i + size])] for i in range(0, len(index), size)]
        return np.concatenate(parts) if len(parts) > 1 else parts[0] if parts else self.slab[:0].copy()


def scratch(n: int, dtype: Any) -> np.ndarray | None:
    """Return this thread's n x n matrix, until it is given back; None where it is in use, or would be large.

    A listener to one fit may start another in the same thread.
    """
    size = n * n * np.dtype(dtype).itemsize
    if size > _SCRATCH or getattr(_local, "lent", False):
        return None
    if not hasattr(_local, "memory"):
        _local.memory = np.empty(_SCRATCH, np.uint8)  # fresh memory is dear; what is not touched costs nothing
    _local.lent = True
    return _local.memory[:size].view(dtype).reshape(n, n)


def give_back(matrix: np.ndarray | None) -> None:
    """Let the next problem of this thread have the scratch matrix, if this is it."""
    if matrix is not None and getattr(_local, "lent", False) and np.may_share_memory(matrix, _local.memory):
        _local.lent = False
