"""The matrix of kernel values as an operator that need not be held."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy.sparse.linalg import LinearOperator

from mercer.kernels import Kernel
from mercer.kernels.rules.scikit_learn import as_kernel
from mercer.machine.budget import Budget
from mercer.machine.lazy import cached_property
from mercer.points import Comparison, Points

Rows = slice | int | Any


class Gram(LinearOperator):
    """The matrix K with K_ij = k(x_i, z_j), computed in blocks when and where it is asked for.

    Parameters
    ----------
    kernel
        A kernel; parameters that wait for data are resolved on X.
    X
        The left points, or `Points`.
    Z
        The right points; None for X itself, which makes the matrix symmetric and halves the work.
    budget
        Bytes that `dense` and the row cache may use: a number, a text like "2 GiB", or None for half of what is
        free now. Products and blocks need a few megabytes whatever n is.

    Attributes
    ----------
    kernel : Kernel
        The kernel, with every parameter resolved.
    shape, dtype
        As of the matrix. float32 points give float32 values; sums are kept in double precision.
    compiled : bool
        Whether the C++ core runs the kernel's formula (otherwise array operations on tiles do).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, Gram
    >>> X = np.linspace(0, 1, 5)[:, None]
    >>> K = Gram(RBF(scale=0.5), X)
    >>> K.matvec(np.ones(5)).round(3)
    array([2.949, 3.696, 3.978, 3.696, 2.949])
    >>> K.block(slice(0, 2), slice(3, 5)).round(3)
    array([[0.325, 0.135],
           [0.607, 0.325]])
    >>> float(K.trace())
    5.0
    """

    def __init__(self, kernel: Kernel, X: Any, Z: Any = None, budget: int | float | str | None = None) -> None:
        left = Points.of(X)
        right = None if Z is None or Z is X else Points.of(Z, "Z")
        self.kernel = as_kernel(kernel).resolve(left)
        self.left, self.right = left, left if right is None else right
        self.comparison = Comparison(self.kernel.of, left, right)
        self.given_budget = budget
        super().__init__(None, self.comparison.shape)
        self.dtype = self.comparison.dtype  # not through SciPy, which knows none of torch's

    @cached_property
    def budget(self) -> Budget:
        """The bytes that may be used."""
        return Budget(self.given_budget)

    @property
    def symmetric(self) -> bool:
        """Whether both sets of points are the same."""
        return self.comparison.symmetric

    @property
    def compiled(self) -> bool:
        """Whether the core runs the formula."""
        return self.comparison.compiled

    def __repr__(self) -> str:
        return f"<{self.shape[0]} x {self.shape[1]} Gram matrix of {self.kernel!r}, {self.dtype}>"

    # -- parts of the matrix ----------------------------------------------------------------------------

    def dense(self, out: np.ndarray | None = None) -> Any:
        """Return the whole matrix; refuses, with the size, when it does not fit the budget."""
        n, m = self.shape
        if out is not None and self.left.foreign:
            raise TypeError(f"out is for NumPy arrays; the points are a {type(self.left.data).__name__}.")
        if out is None:
            self.budget.require(
                n * m * self._itemsize,
                f"the dense {n} x {m} matrix",
                "use matvec, block or rows, or raise the budget.",
            )
        elif out.shape != self.shape or out.dtype != self.dtype or not out.flags.c_contiguous:
            raise ValueError(
                f"out must be a C-contiguous {n} x {m} array of {self.dtype}; it is {out.shape}, {out.dtype}."
            )
        return self.comparison.dense(out)

    def block(self, rows: Rows, cols: Rows) -> Any:
        """Return the values of some rows against some columns: slices, indices or boolean masks."""
        return self.comparison.block(_selection(rows, self.shape[0]), _selection(cols, self.shape[1]))

    def rows(self, index: Any) -> Any:
        """Return whole rows, through a cache that keeps the recently used ones within the budget.

        Rows of tensors are computed each time: a cache would lose their device and their gradients.
        """
        chosen = _selection(index, self.shape[0])
        if self.left.foreign:
            return self.comparison.block(chosen, slice(0, self.shape[1]))
        if isinstance(chosen, slice):
            chosen = np.arange(self.shape[0])[chosen]
        return self.cache.rows(chosen)

    @cached_property
    def cache(self) -> RowCache:
        """The row cache: a quarter of the budget, and no more rows than there are."""
        n, m = self.shape
        capacity = int(self.budget // 4 // (m * self._itemsize))
        self.budget.require(
            4 * m * self._itemsize, f"a cache of one row of {m} values", "raise the budget or use block."
        )
        return RowCache(min(n, max(1, capacity)), m, self.dtype, lambda i: self.comparison.block(i, slice(0, m)))

    def diag(self) -> Any:
        """Return k(x_i, x_i) (for a square matrix of two sets: k(x_i, z_i))."""
        if self.symmetric:
            return self.comparison.diag()
        if self.shape[0] != self.shape[1]:
            raise ValueError(f"a {self.shape[0]} x {self.shape[1]} matrix has no diagonal; it is not square.")
        n, step = self.shape[0], 64
        parts = [self.block(slice(i, i + step), slice(i, i + step)).diagonal() for i in range(0, n, step)]
        return array_namespace(parts[0]).concat(parts)

    def trace(self) -> Any:
        """Return the sum of the diagonal."""
        diagonal = self.diag()
        return diagonal.sum(dtype=np.float64) if isinstance(diagonal, np.ndarray) else diagonal.sum()

    # -- products ---------------------------------------------------------------------------------------

    def matvec(self, x: Any) -> Any:
        """Return K x for one vector or for the columns of a matrix, without forming K."""
        return self.comparison.matvec(x)

    matmat = _matvec = _matmat = matvec

    def rmatvec(self, x: Any) -> Any:
        """Return K' x."""
        return self.matvec(x) if self.symmetric else self._mirror.matvec(x)

    rmatmat = _rmatvec = _rmatmat = rmatvec

    def dot(self, x: Any) -> Any:
        """Return K x; `K @ x` is the same. Of another operator, or of a number: their product as an operator."""
        return super().dot(x) if isinstance(x, LinearOperator) or np.isscalar(x) else self.matvec(x)

    @cached_property
    def _mirror(self) -> Comparison:
        return Comparison(self.kernel.of, self.right, self.left)

    def _adjoint(self) -> Gram:
        return self if self.symmetric else Gram(self.kernel, self.right, self.left, self.given_budget)

    _transpose = _adjoint

    @property
    def _itemsize(self) -> int:
        return int(getattr(self.dtype, "itemsize", 8))


def _selection(index: Any, size: int) -> slice | np.ndarray:
    if isinstance(index, slice):
        start, stop, step = index.indices(size)
        return slice(start, max(start, stop)) if step == 1 else np.arange(start, stop, step)
    chosen = np.atleast_1d(np.asarray(index))
    if chosen.shape == (0,):
        chosen = chosen.astype(np.intp)
    if chosen.dtype == bool:
        if chosen.shape != (size,):
            raise IndexError(f"a mask of {chosen.shape[0]} entries cannot choose among {size} points.")
        chosen = np.flatnonzero(chosen)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        raise IndexError(
            f"points are chosen by integers, a slice or a mask; got an array of {chosen.dtype} with shape "
            f"{chosen.shape}."
        )
    if chosen.size and (chosen.min() < -size or chosen.max() >= size):
        bad = chosen[(chosen < -size) | (chosen >= size)][0]
        raise IndexError(f"index {bad} is outside the {size} points.")
    return np.where(chosen < 0, chosen + size, chosen).astype(np.intp)


# -- rows of a kernel matrix, kept in one slab of memory and replaced least recently used first -----------


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
