"""Products of the kernel matrix with a few columns, in float32 or float64, computed afresh or from held values."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.gram.gram import Gram
from mercer.gram.rows import times
from mercer.machine.lazy import cached_property
from mercer.points import Bands, Coarse, Points


class Products:
    """K V for the kernel matrix of some points: streamed, or from values that `hold` or `hold_half` keeps.

    Parameters
    ----------
    gram
        The matrix; square, of NumPy or SciPy data or of objects.
    rows
        Which points take part; None for all.
    """

    def __init__(self, gram: Gram, rows: np.ndarray | None = None) -> None:
        if gram.left.foreign or not gram.symmetric:
            raise TypeError(
                f"linear systems need the square matrix of one set of NumPy points; this is {gram!r} of a "
                f"{type(gram.left.data).__name__}."
            )
        self.gram, self.rows = gram, rows
        self._all = gram.shape[0]
        self.n = self._all if rows is None else len(rows)
        self.held: np.ndarray | None = None  # of all points
        self._bands: Bands | None = None
        self.single = gram.compiled and gram.single_is_enough  # whether float32 values are worth having
        self.use_coarse = False  # whether the caller puts up with the error of `coarse` where it asks for float32

    def take(self, rows: np.ndarray | None) -> Products:
        """Return the products of some of the points."""
        if rows is None or (len(rows) == self._all and np.array_equal(rows, np.arange(self._all))):
            return self
        part = Products(self.gram, rows)
        part.held, part.single = self.held, self.single
        return part

    def points(self, single: bool) -> Points:
        """Return the points that take part, in float32 or in float64."""
        everyone = self.gram.left.single() if single else self.gram.left.double()
        return everyone if self.rows is None else everyone.take(self.rows)

    def _in(self, single: bool) -> Gram:
        points = self.points(single)
        return self.gram if points is self.gram.left else self.gram.on(points, None, single)

    @cached_property
    def exact(self) -> Gram:
        """The matrix with values in float64."""
        return self._in(False)

    @cached_property
    def rough(self) -> Gram:
        """The matrix with values in float32, as rough as is forgiven."""
        return self._in(True)

    @cached_property
    def coarse(self) -> Coarse | None:
        """The matrix at points rounded to 16 bits; None where it does not apply."""
        return Coarse.of(self.rough.comparison) if self.single else None

    @property
    def kept(self) -> bool:
        """Whether values are held: then a product with some of the points is no cheaper than with all."""
        return self.held is not None or self._bands is not None

    def elsewhere(self, V: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return K V at other points, by number, for V (n, k) at those that take part, from values in float32."""
        K = self.gram.on(self.gram.left.single().take(others), self.points(True), forgiving=True)
        size = _sizes(V)
        return np.asarray(K.product(V / size) * size)

    def values(self, rows: np.ndarray, cols: slice | np.ndarray, single: bool) -> np.ndarray:
        """Return a block of the matrix."""
        if self.held is not None and (single or self.held.dtype == np.float64):
            block = self.held[self._numbers(rows)]
            return block[:, cols if self.rows is None else self._numbers(cols)]
        return np.asarray((self.rough if single else self.exact).block(rows, cols))

    def _numbers(self, chosen: slice | np.ndarray) -> np.ndarray:
        everyone = np.arange(self._all) if self.rows is None else self.rows
        return everyone[chosen]

    def dense(self, out: np.ndarray) -> np.ndarray:
        """Fill `out` with the matrix, in the type that it has."""
        if self.held is not None and (out.dtype == np.float32 or self.held.dtype == np.float64):
            out[...] = self.held if self.rows is None else self.held[np.ix_(self.rows, self.rows)]
            return out
        return np.asarray((self.rough if out.dtype == np.float32 and self.single else self.exact).fill(out))

    def diagonal(self) -> np.ndarray:
        """Return k(x_i, x_i) in float64."""
        return np.array(self.exact.diag(), dtype=np.float64)

    def __call__(self, V: np.ndarray, single: bool = False) -> np.ndarray:
        """Return K V in float64, for V (n, k) in float64, from kernel values in float32 or float64."""
        size = _sizes(V)
        if self.held is not None and (single or self.held.dtype == np.float64):
            out = self._from_held(V / size)
        elif single and self._bands is not None:
            out = self._bands.product(V / size)
        elif single and self.use_coarse and self.coarse is not None:
            out = self.coarse.matvec(V / size)
        else:
            out = (self.rough if single and self.single else self.exact).product(np.ascontiguousarray(V / size))
        return np.asarray(out * size)

    def _from_held(self, V: np.ndarray) -> np.ndarray:
        assert self.held is not None
        if self.rows is None:
            return times(self.held, V)
        scattered = np.zeros((self._all, V.shape[1]))
        scattered[self.rows] = V
        return times(self.held, scattered)[self.rows]

    def hold_half(self) -> None:
        """Keep the upper triangle in float32: less to read than there is to compute, for simple kernels too."""
        if self._bands is None:
            self._bands = Bands(self.rough.comparison)

    def hold(self, dtype: Any) -> None:
        """Compute all values once and keep them."""
        n = self._all
        if n * n * np.dtype(dtype).itemsize > self.gram.budget:
            return
        whole = self if self.rows is None else Products(self.gram)
        self.held = whole.dense(np.empty((n, n), dtype))


def _sizes(V: np.ndarray) -> np.ndarray:
    """Return the largest entry of each column; divided by it, columns of any size are in the range of float32."""
    size = np.abs(V).max(axis=0, initial=0.0)
    return np.where(size > 0, size, 1.0)
