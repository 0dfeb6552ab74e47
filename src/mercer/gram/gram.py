"""The matrix of kernel values as an operator that need not be held."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace, to_device
from scipy.sparse.linalg import LinearOperator

from mercer.kernels import Kernel
from mercer.kernels.rules.scikit_learn import as_kernel
from mercer.machine.budget import Budget
from mercer.machine.lazy import cached_property
from mercer.points import Comparison, Pair, Points
from mercer.points.kept import RowCache

Rows = slice | int | Any

# Four questions about float32, which measure different things. `FORGIVEN`: the error of a single value that
# callers bear who measure its effect, by a float64 residual or a gap computed again. `single_is_enough`: whether a few
# values, computed with care, keep their digits, for callers who measure nothing. `Symmetric.error`: the error of the
# whole matrix, which bounds that of eigenvalues. `Coarse.error`: the error of values at 16 bits, against a given shift.
FORGIVEN = 1e-3  # relative, near points that lie far out; elsewhere float32 values are far better
_SAMPLE = 48  # points on which float32 is compared with float64
_SINGLE_ERROR = 1e-5  # of the largest kernel value, up to which float32 values are good enough
_SINGLE_SHARE = 1e-4  # of what distinguishes the kernel values from one another, likewise
_STRIP = 256  # rows converted to another type at a time


class Gram(LinearOperator):
    """The matrix K with K_ij = k(x_i, z_j), computed in blocks when and where it is asked for.

    Whatever needs kernel values asks this class, and this class asks one object, `comparison`, for them: `dense`,
    `block`, `diag` and `matvec` of two sets of points under the kernel's formula. Those four calls are what another
    machine (a GPU, a cluster) would have to answer; parts, precisions, caches and held values are built on them.

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
        self._compare(as_kernel(kernel).resolve(left), left, right, budget)

    def _compare(
        self,
        kernel: Any,
        left: Points,
        right: Points | None,
        budget: int | float | str | None = None,
        formula: Any = None,
        forgiving: bool = False,
    ) -> None:
        self.kernel = kernel
        self.left, self.right = left, left if right is None else right
        self.comparison = Comparison(kernel.of, left, right, formula, FORGIVEN if forgiving else None)
        self.given_budget, self.forgiving = budget, forgiving
        super().__init__(None, self.comparison.shape)
        self.dtype = self.comparison.dtype  # not through SciPy, which knows none of torch's

    @classmethod
    def of_formula(cls, of: Callable[[Pair], Any], left: Points, right: Points | None = None) -> Gram:
        """Return the matrix of a function of pairs that is no kernel: a distance, an inner product.

        Examples
        --------
        >>> from mercer.points import Points
        >>> Gram.of_formula(lambda pair: pair.l1(), Points([[0.0], [3.0]])).fill()
        array([[0., 3.],
               [3., 0.]])
        """
        made = cls.__new__(cls)
        made._compare(_PairFormula(of), left, right)
        return made

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

    @property
    def formula(self) -> Any:
        """The traced formula of the kernel (`mercer.points.formulas.formula`); None where there is none."""
        return self.comparison.formula

    def __repr__(self) -> str:
        return f"<{self.shape[0]} x {self.shape[1]} Gram matrix of {self.kernel!r}, {self.dtype}>"

    # -- the same kernel elsewhere ----------------------------------------------------------------------

    def on(self, left: Points, right: Points | None = None, forgiving: bool = False) -> Gram:
        """Return the matrix of the same kernel, its formula traced already, on other points.

        Parameters
        ----------
        left, right
            The points; None on the right for those on the left.
        forgiving
            Whether values may be off by `FORGIVEN` of themselves near points that lie far out, in float32.
        """
        made = Gram.__new__(Gram)
        made._compare(self.kernel, left, right, self.given_budget, self.comparison.formula, forgiving)
        return made

    def take(self, rows: slice | np.ndarray, cols: slice | np.ndarray | None = None) -> Gram:
        """Return the matrix of some points, against some of the right points.

        Where `cols` is None: of one set of points, of these among themselves; of two sets, against all on the right.

        Examples
        --------
        >>> from mercer import Linear
        >>> K = Gram(Linear(), [[1.0], [2.0], [3.0]])
        >>> K.take(np.array([0, 2])).dense()
        array([[1., 3.],
               [3., 9.]])
        """
        left = self.left.take(rows)
        if cols is None:
            return self.on(left, None if self.symmetric else self.right, self.forgiving)
        return self.on(left, self.right.take(cols), self.forgiving)

    def against(self, points: Points) -> Gram:
        """Return the matrix of the left points against other points."""
        return self.on(self.left, points, self.forgiving)

    def single(self, forgiving: bool = False) -> Gram:
        """Return the matrix with values in float32; `forgiving` as for `on`."""
        return self._at(self.left.single(), self.right.single(), forgiving)

    def double(self) -> Gram:
        """Return the matrix with values in float64, at float32 points taken for the float64 numbers that they are."""
        return self._at(self.left.double(), self.right.double(), False)

    def _at(self, left: Points, right: Points, forgiving: bool) -> Gram:
        if left is self.left and right is self.right and forgiving == self.forgiving:
            return self
        return self.on(left, None if self.symmetric else right, forgiving)

    @cached_property
    def single_is_enough(self) -> bool:
        """Whether float32 gives the values of this matrix of one set of points: measured on a few against float64.

        In float32 points far from the origin lose their distances, values that are nearly alike lose their differences,
        and some formulas amplify rounding. None of this can be told from the kernel alone.
        """
        points = self.left
        if not self.compiled or points.dtype == np.float32:
            return bool(points.dtype == np.float32)
        some = self.take(np.unique(np.linspace(0, len(points) - 1, _SAMPLE).astype(np.intp)))
        try:
            rough = some.single().fill()
        except FloatingPointError:
            return False
        exact = some.fill()
        means = exact.mean(axis=0)
        alike = np.abs(exact - means - means[:, None] + means.mean()).max()  # what is left when the offset has its part
        return bool(np.abs(rough - exact).max() <= min(_SINGLE_ERROR * np.abs(exact).max(), _SINGLE_SHARE * alike))

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

    def fill(self, out: np.ndarray | None = None) -> Any:
        """Return the whole matrix, in `out` of whichever float type, without asking the budget: the caller has planned.

        Where nothing is given it is a new matrix of the type of the values.
        """
        if out is None or out.dtype == self.dtype:
            return self.comparison.dense(out)
        for i in range(0, len(out), _STRIP):
            rows = slice(i, min(i + _STRIP, len(out)))
            out[rows] = self.comparison.block(rows, slice(0, self.shape[1]))
        return out

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

    def product(self, V: np.ndarray, precision: str | None = None) -> np.ndarray:
        """Return K V in float64, with V rounded to the precision of the kernel values where the core computes them.

        Parameters
        ----------
        V
            One vector or the columns of a matrix, of NumPy whatever the points are.
        precision
            "float32" (forgiving) or "float64"; None for that of this matrix.
        """
        K = self if precision is None else self.double() if precision == "float64" else self.single(forgiving=True)
        if K.left.foreign:
            like = K.left.vectors
            V = array_namespace(like).asarray(V, dtype=like.dtype, device=like.device)
            return as_numpy(K.matvec(V))
        return np.asarray(K.matvec(np.asarray(V, dtype=K.dtype if K.compiled else np.float64)), dtype=np.float64)

    def rmatvec(self, x: Any) -> Any:
        """Return K' x."""
        return self.matvec(x) if self.symmetric else self._mirror.matvec(x)

    rmatmat = _rmatvec = _rmatmat = rmatvec

    def dot(self, x: Any) -> Any:
        """Return K x; `K @ x` is the same. Of another operator, or of a number: their product as an operator."""
        return super().dot(x) if isinstance(x, LinearOperator) or np.isscalar(x) else self.matvec(x)

    @cached_property
    def _mirror(self) -> Gram:
        return self.on(self.right, self.left, self.forgiving)

    def _adjoint(self) -> Gram:
        return self if self.symmetric else self._mirror

    _transpose = _adjoint

    @property
    def _itemsize(self) -> int:
        return int(getattr(self.dtype, "itemsize", 8))


class _PairFormula:
    """A function of pairs in the place of a kernel."""

    def __init__(self, of: Callable[[Pair], Any]) -> None:
        self.of = of

    def __repr__(self) -> str:
        return repr(self.of)


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


# -- values in double precision, and in NumPy's arrays -----------------------------------------------------


def in_double(points: Points) -> Points:
    """Return the points with float32 (and float16) coordinates cast to float64, others as they are."""
    data = points.data
    if hasattr(data, "columns"):
        narrow = [c for c, t in zip(data.columns, data.dtypes) if str(t).lower() in ("float32", "float16")]
        cast = dict.fromkeys(narrow, "float64" if hasattr(data, "iloc") else float)
        return Points(data.astype(cast) if hasattr(data, "iloc") else data.cast(cast), points.name) if cast else points
    if points.foreign:
        xp = array_namespace(points.vectors)
        return Points(xp.astype(points.vectors, xp.float64), points.name)
    narrow_array = getattr(getattr(data, "dtype", None), "kind", "") == "f" and data.dtype.itemsize < 8
    return Points(data.astype(np.float64), points.name) if narrow_array else points


def as_numpy(values: Any) -> np.ndarray:
    """Return the values as float64, from whichever library."""
    if not isinstance(values, np.ndarray):
        values = to_device(values, "cpu")
    return np.asarray(values, dtype=np.float64)
