"""Products of the kernel matrix with a few columns, in float32 or float64, computed afresh or from held values."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import _core
from mercer.gram import Gram
from mercer.machine.lazy import cached_property
from mercer.machine.threads import cores, run, shares
from mercer.points import Coarse, Comparison, Points

FORGIVEN = 1e-3  # relative error of float32 values near points that lie far out; the float64 residual finds it
_BAND, _STRIP = 256, 2048  # rows that are held together, and columns computed at a time


class Products:
    """K V for the kernel matrix of some points.

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
        self._bands: list[tuple[int, np.ndarray]] = []  # the first row, and rows from the diagonal on
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

    def _compared(self, single: bool) -> Comparison:
        gram, points = self.gram, self.points(single)
        if points is gram.left:
            return gram.comparison
        return Comparison(gram.kernel.of, points, None, gram.comparison.formula, FORGIVEN if single else None)

    @cached_property
    def exact(self) -> Comparison:
        """The matrix with values in float64."""
        return self._compared(False)

    @cached_property
    def rough(self) -> Comparison:
        """The matrix with values in float32."""
        return self._compared(True)

    @cached_property
    def coarse(self) -> Coarse | None:
        """The matrix at points rounded to 16 bits; None where it does not apply."""
        return Coarse.of(self.rough) if self.single else None

    @property
    def kept(self) -> bool:
        """Whether values are held: then a product with some of the points is no cheaper than with all."""
        return self.held is not None or bool(self._bands)

    def elsewhere(self, V: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return K V at other points, by number, for V (n, k) at those that take part, from values in float32."""
        everyone = self.gram.left.single()
        formula = self.gram.comparison.formula
        compared = Comparison(self.gram.kernel.of, everyone.take(others), self.points(True), formula, FORGIVEN)
        size = np.abs(V).max(axis=0, initial=0.0)
        size = np.where(size > 0, size, 1.0)
        return np.asarray(compared.matvec((V / size).astype(compared.dtype)) * size)

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
        compared = self.rough if out.dtype == np.float32 and self.single else self.exact
        if compared.dtype == out.dtype:
            return np.asarray(compared.dense(out))
        for i in range(0, self.n, 256):
            rows = slice(i, min(i + 256, self.n))
            out[rows] = compared.block(rows, slice(0, self.n))
        return out

    def diagonal(self) -> np.ndarray:
        """Return k(x_i, x_i) in float64."""
        return np.array(self.exact.diag(), dtype=np.float64)

    def __call__(self, V: np.ndarray, single: bool = False) -> np.ndarray:
        """Return K V in float64, for V (n, k) in float64, from kernel values in float32 or float64."""
        size = np.abs(V).max(axis=0, initial=0.0)
        size = np.where(size > 0, size, 1.0)  # columns of any size are within the range of float32
        if self.held is not None and (single or self.held.dtype == np.float64):
            out = self._from_held(V / size)
        elif single and self._bands:
            out = self._from_bands(V / size)
        elif single and self.use_coarse and self.coarse is not None:
            out = self.coarse.matvec(V / size)
        else:
            compared = self.rough if single and self.single else self.exact
            out = np.asarray(compared.matvec(np.ascontiguousarray(V / size, dtype=compared.dtype)), dtype=np.float64)
        return np.asarray(out * size)

    def _from_held(self, V: np.ndarray) -> np.ndarray:
        held = self.held
        assert held is not None
        if self.rows is not None:
            scattered = np.zeros((self._all, V.shape[1]))
            scattered[self.rows] = V
            V = scattered
        V = V.astype(held.dtype, copy=False)
        out = np.empty(V.shape)

        def part(rows: slice) -> None:
            np.matmul(held[rows], V, out=out[rows], casting="same_kind")

        run(part, shares(len(held)))
        return out if self.rows is None else out[self.rows]

    def hold_half(self) -> None:
        """Keep the upper triangle in float32 bands: less to read than there is to compute, for simple kernels too."""
        if self._bands:
            return
        n = self.n
        self._bands = [
            (i, np.zeros((min(_BAND, n - i), -(-(n - i) // 16) * 16), np.float32)) for i in range(0, n, _BAND)
        ]

        def part(first: int) -> None:
            for i, band in self._bands[first :: cores()]:
                for j in range(i, n, _STRIP):
                    cols = slice(j, min(j + _STRIP, n))
                    band[:, j - i : cols.stop - i] = self.rough.block(slice(i, i + len(band)), cols)
                square = band[:, : len(band)]  # both halves of the square on the diagonal are there: keep one
                square[np.tril_indices(len(square), -1)] = 0.0
                np.fill_diagonal(square, 0.5 * square.diagonal())

        run(part, range(cores()))

    def _from_bands(self, V: np.ndarray) -> np.ndarray:
        padded = np.zeros((V.shape[1], self.n + 16), np.float32)
        padded[:, : self.n] = V.T

        def part(first: int) -> np.ndarray:
            out = np.zeros(padded.shape)
            for i, band in self._bands[first :: cores()]:
                _core.band_product(band, i, padded, out)
            return out

        return np.sum(run(part, range(cores())), axis=0)[:, : self.n].T

    def hold(self, dtype: Any) -> None:
        """Compute all values once and keep them."""
        n = self._all
        if n * n * np.dtype(dtype).itemsize > self.gram.budget:
            return
        whole = self if self.rows is None else Products(self.gram)
        self.held = whole.dense(np.empty((n, n), dtype))
