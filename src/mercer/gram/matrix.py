"""The kernel matrix of one set of points as solvers read it: values computed afresh or kept, in both precisions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.gram.gram import Gram
from mercer.machine.lazy import cached_property
from mercer.machine.threads import run, shares
from mercer.points import Points
from mercer.points.kept import Bands, Coarse

_VALUES_AT_ONCE = 1 << 22  # held values that are converted to float64 at a time
_ROWS_AT_ONCE = 256  # rows that are asked of the cache at a time


class KernelMatrix:
    """The kernel matrix of some points as solvers read it: blocks, products, and the values that are kept.

    It decides which values serve a product, a block or the whole. Kept values come first, if they are exact enough: all
    of them, or one triangle for products in float32. Next, for products in float32, come points rounded to 16 bits, if
    the caller bears it. Else values are computed afresh. Values that only Python can compute are asked for by rows, and
    rows are kept within the budget. `single` of a method asks for values in float32.

    Parameters
    ----------
    gram
        The matrix; square.
    rows
        Which points take part; None for all.
    foreign
        Whether the points may be tensors of another library; their values are never kept.
    """

    def __init__(self, gram: Gram, rows: np.ndarray | None = None, foreign: bool = False) -> None:
        if (gram.left.foreign and not foreign) or not gram.symmetric:
            raise TypeError(
                f"solvers need the square matrix of one set of NumPy points; this is {gram!r} of a "
                f"{type(gram.left.data).__name__}."
            )
        self.gram, self.rows = gram, rows
        self._all = gram.shape[0]
        self.n = self._all if rows is None else len(rows)
        self.held: np.ndarray | None = None  # of all points
        self._bands: Bands | None = None
        self.use_coarse = False  # whether the caller puts up with the error of `coarse` where it asks for float32
        self._last: tuple[Any, Any, Any] = (None, None, None)  # rows of a product, the matrix, these points
        self._buffer = np.empty(0)  # of blocks: fresh memory is dear

    @cached_property
    def single(self) -> bool:
        """Whether float32 values are worth having."""
        return self.gram.compiled and self.gram.single_is_enough

    def take(self, rows: np.ndarray | None) -> KernelMatrix:
        """Return the matrix of some of the points."""
        if rows is None or (len(rows) == self._all and np.array_equal(rows, np.arange(self._all))):
            return self
        part = KernelMatrix(self.gram, rows)
        part.held, part.single = self.held, self.single
        return part

    def points(self, single: bool) -> Points:
        """Return the points that take part, in float32 or in float64."""
        everyone = self.gram.left.single() if single else self.gram.left.double()
        return everyone if self.rows is None else everyone.take(self.rows)

    def _in(self, single: bool) -> Gram:
        points = self.points(single)
        same = points is self.gram.left and not (single and self.gram.compiled)
        return self.gram if same else self.gram.on(points, None, single)

    @cached_property
    def exact(self) -> Gram:
        """The matrix with values in float64."""
        return self._in(False)

    @cached_property
    def rough(self) -> Gram:
        """The matrix with values in float32, up to the error that is forgiven; solvers measure its effect."""
        return self._in(True)

    @cached_property
    def coarse(self) -> Coarse | None:
        """The matrix at points rounded to 16 bits; None where it does not apply."""
        return Coarse.of(self.rough.comparison) if self.single else None

    @property
    def kept(self) -> bool:
        """Whether values are kept: then a product with some of the points is no cheaper than with all."""
        return self.held is not None or self._bands is not None

    def _held_for(self, single: bool) -> np.ndarray | None:
        """Return the held values if they are exact enough."""
        return self.held if single or (self.held is not None and self.held.dtype == np.float64) else None

    def _numbers(self, chosen: slice | np.ndarray) -> slice | np.ndarray:
        return chosen if self.rows is None else self.rows[chosen]

    # -- values -----------------------------------------------------------------------------------------

    def block(self, rows: np.ndarray, cols: slice | np.ndarray, single: bool) -> np.ndarray:
        """Return a block of the matrix."""
        held = self._held_for(single)
        if held is not None:
            return held[self._numbers(rows)][:, self._numbers(cols)]
        return np.asarray((self.rough if single else self.exact).block(rows, cols))

    def square(self, chosen: np.ndarray, single: bool) -> np.ndarray:
        """Return the values of some points against one another, valid until the next call."""
        K, held, size = self.rough if single else self.exact, self._held_for(single), len(chosen)
        if held is not None:
            numbers = chosen if self.rows is None else self.rows[chosen]
            return held[np.ix_(numbers, numbers)]
        if not K.compiled:
            return np.concatenate([rows[:, chosen] for rows in _cached_rows(K, chosen)])
        if self._buffer.size < size * size or self._buffer.dtype != K.dtype:
            self._buffer = np.empty(size * size, K.dtype)
        return np.asarray(K.take(chosen).fill(self._buffer[: size * size].reshape(size, size)))

    def dense(self, out: np.ndarray) -> np.ndarray:
        """Fill `out` with the matrix, in the type that it has."""
        single = out.dtype == np.float32
        held = self._held_for(single)
        if held is not None:
            out[...] = held if self.rows is None else held[np.ix_(self.rows, self.rows)]
            return out
        return np.asarray((self.rough if single and self.single else self.exact).fill(out))

    def diagonal(self) -> np.ndarray:
        """Return k(x_i, x_i) in float64."""
        return np.array(self.exact.diag(), dtype=np.float64)

    # -- products ---------------------------------------------------------------------------------------

    def __call__(self, V: np.ndarray, single: bool = False) -> np.ndarray:
        """Return K V in float64, for V (n, k) in float64, from kernel values in float32 or float64."""
        size = _sizes(V)
        return np.asarray(self.product(V / size, single) * size)

    def product(self, V: np.ndarray, single: bool = False) -> np.ndarray:
        """Return K V as `__call__` does, for V whose columns need no scaling to be in the range of float32."""
        held = self._held_for(single)
        if held is not None and self.rows is None:
            return times(held, V)
        if held is not None:
            scattered = np.zeros((self._all, V.shape[1]))
            scattered[self.rows] = V
            return times(held, scattered)[self.rows]
        if single and self._bands is not None:
            return self._bands.product(V)
        if single and self.use_coarse and self.coarse is not None:
            return self.coarse.matvec(V)
        return (self.rough if single and self.single else self.exact).product(np.ascontiguousarray(V))

    def columns_product(self, cols: np.ndarray, v: np.ndarray, rows: np.ndarray | None, single: bool) -> np.ndarray:
        """Return K[rows, cols] v in float64, of few columns; all rows for None."""
        K, held = self.rough if single else self.exact, self._held_for(single)
        if held is None and K.compiled:
            if self._last[0] is not rows or self._last[1] is not K:  # the same rows are asked for many times
                self._last = rows, K, K.left if rows is None else K.left.take(rows)
            return K.on(self._last[2], K.left.take(cols), K.forgiving).product(v)
        # By rows of the symmetric matrix, which are contiguous; sums in float64, some rows at a time.
        if held is None:
            parts = _cached_rows(K, cols)
        else:
            step = max(1, _VALUES_AT_ONCE // len(held))
            parts = (held[self._numbers(cols[i : i + step])] for i in range(0, len(cols), step))
        out, at = np.zeros(self._all if held is not None else self.n), 0
        for part in parts:
            out += v[at : at + len(part)] @ part.astype(np.float64, copy=False)
            at += len(part)
        if held is not None and self.rows is not None:
            out = out[self.rows]
        return out if rows is None else out[rows]

    def elsewhere(self, V: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return K V at other points, by number, for V (n, k) at those that take part, from values in float32."""
        K = self.gram.on(self.gram.left.single().take(others), self.points(True), forgiving=True)
        size = _sizes(V)
        return np.asarray(K.product(V / size) * size)

    # -- values that are kept ---------------------------------------------------------------------------

    def hold_half(self) -> None:
        """Keep the upper triangle in float32: less to read than there is to compute, for simple kernels too."""
        if self._bands is None:
            self._bands = Bands(self.rough.comparison)

    def hold(self, dtype: Any) -> None:
        """Compute all values once and keep them, where they fit the budget."""
        n = self._all
        if n * n * np.dtype(dtype).itemsize <= self.gram.budget:
            whole = self if self.rows is None else KernelMatrix(self.gram)
            self.held = whole.dense(np.empty((n, n), dtype))


def _cached_rows(K: Gram, chosen: np.ndarray) -> Iterator[np.ndarray]:
    """Yield rows of a matrix that only Python can compute, as many at a time as its cache holds."""
    step = max(1, min(_ROWS_AT_ONCE, len(K.cache.slab)))
    return (K.rows(chosen[i : i + step]) for i in range(0, len(chosen), step))


def _sizes(V: np.ndarray) -> np.ndarray:
    """Return the largest entry of each column; divided by it, columns of any size are in the range of float32."""
    size = np.abs(V).max(axis=0, initial=0.0)
    return np.where(size > 0, size, 1.0)


def times(A: np.ndarray, M: np.ndarray) -> np.ndarray:
    """Return A M in float64, of a tall A in whichever precision it has.

    Examples
    --------
    >>> times(np.ones((3, 2)), np.eye(2))[0]
    array([1., 1.])
    """
    out = np.empty((len(A), M.shape[1]))
    M = M.astype(A.dtype, copy=False)

    def part(rows: slice) -> None:
        out[rows] = A[rows] @ M

    run(part, shares(len(A)))
    return out
