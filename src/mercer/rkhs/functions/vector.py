"""Several functions of one space that share their centres (K8)."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul, truediv
from typing import Any, Self, overload

import array_api_compat
import numpy as np
from scipy import sparse

from mercer.gram import gradient
from mercer.kernels import Kernel, Linear
from mercer.kernels.rules.scikit_learn import as_kernel
from mercer.points import Points
from mercer.points.sets.points import is_foreign
from mercer.rkhs.functions.centres import doubled, joined, like, plain, size_of, taken
from mercer.rkhs.functions.function import RKHSFunction, same_space
from mercer.rkhs.functions.pruning import Pruned, prune
from mercer.rkhs.functions.sums import Projected, distances, inner, norms, project, values


@dataclass(frozen=True, eq=False, repr=False)
class RKHSVector(Sequence[RKHSFunction]):
    r"""Functions f_1, ..., f_k of one space on common centres: the outputs, classes or class pairs of a model.

    .. math:: f_j = \sum_i A_{ij} k(x_i, \cdot) + b_j

    A sequence of `RKHSFunction` (len, indexing, iteration) that is evaluated in one pass. As there, the offsets enter
    values only, and no inner product, norm or distance.

    Parameters
    ----------
    kernel
        The kernel of H; parameters that wait for data are resolved on `points`.
    points
        The centres x_i.
    coefficients
        A, of shape (centres, functions). A SciPy sparse matrix where each function uses few of the centres, as those of
        class pairs do: an indexed function then holds these centres only.
    offsets
        b: one number for all functions or one for each.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.rkhs import RKHSVector
    >>> F = RKHSVector(RBF(scale=1.0), [[0.0], [2.0]], np.eye(2), offsets=[0.0, 1.0])
    >>> F([[0.0], [1.0]]).round(3)
    array([[1.   , 1.135],
           [0.607, 1.607]])
    >>> F.gram().round(3)
    array([[1.   , 0.135],
           [0.135, 1.   ]])
    >>> [f.offset for f in F], (F[0] - F[1]).norm().__round__(3)
    ([0.0, 1.0], 1.315)
    """

    kernel: Kernel
    points: Any
    coefficients: Any
    offsets: Any = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"kernel must be a kernel object such as RBF(scale=1.0); it is {self.kernel!r}.")
        points = self.points.data if isinstance(self.points, Points) else self.points
        A, size = self.coefficients, size_of(points)
        if sparse.issparse(A):
            A = sparse.csc_array(A, dtype=np.float64, copy=True)
            A.sum_duplicates()
            A.eliminate_zeros()
        elif not is_foreign(A):
            A = np.array(A, dtype=np.float64)
            A.setflags(write=False)
        if A.ndim != 2 or A.shape[0] != size:
            raise ValueError(
                f"coefficients have shape {tuple(A.shape)} and there are {size} points; a row for each point and a "
                "column for each function are needed."
            )
        b = np.array(self.offsets, dtype=np.float64)
        if b.ndim > 1 or (b.ndim == 1 and b.shape != (A.shape[1],)):
            raise ValueError(
                f"offsets have shape {b.shape} and there are {A.shape[1]} functions; give one number for all or one "
                "for each."
            )
        b = np.broadcast_to(b, (A.shape[1],)).copy()
        b.setflags(write=False)
        numbers_of = A.data if sparse.issparse(A) else A
        if not (is_foreign(A) or np.isfinite(numbers_of).all()) or not np.isfinite(b).all():
            raise ValueError("coefficients and offsets must be finite; they contain NaN or infinite values.")
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "coefficients", A)
        object.__setattr__(self, "offsets", b)
        if size:
            object.__setattr__(self, "kernel", self.kernel.resolve(points))

    @classmethod
    def of(cls, functions: Iterable[RKHSFunction]) -> Self:
        """Return functions of one space as a vector on all their centres.

        Examples
        --------
        >>> from mercer import Linear, RKHSFunction
        >>> f, g = (RKHSFunction(Linear(), [[x]], [1.0]) for x in (1.0, 3.0))
        >>> RKHSVector.of([f, g])([[2.0]])
        array([[2., 6.]])
        """
        parts = list(functions)
        if not parts or not all(isinstance(f, RKHSFunction) for f in parts):
            raise ValueError(f"RKHSVector.of takes at least one RKHSFunction, and nothing else; it got {parts!r:.80}.")
        containers: list[Any] = []
        for f in parts:
            same_space(parts[0], f)
            if not any(f.points is known for known in containers):
                containers.append(f.points)
        sizes = [size_of(points) for points in containers]
        A = np.zeros((sum(sizes), len(parts)))
        for j, f in enumerate(parts):
            at = next(i for i, known in enumerate(containers) if known is f.points)
            start = sum(sizes[:at])
            A[start : start + sizes[at], j] = plain(f.coefficients)
        points = reduce(joined, containers)
        return cls(parts[0].kernel, points, like(A, parts[0].coefficients), [f.offset for f in parts])

    # -- a sequence -------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return int(self.coefficients.shape[1])

    @overload
    def __getitem__(self, index: int) -> RKHSFunction: ...
    @overload
    def __getitem__(self, index: slice) -> RKHSVector: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, numbers.Integral):
            j = range(len(self))[int(index)]
            points, a = self.points, self.coefficients[:, [j] if sparse.issparse(self.coefficients) else j]
            if sparse.issparse(a):
                rows = np.sort(a.indices)
                points, a = taken(points, rows), a.toarray()[rows, 0]
            return RKHSFunction(self.kernel, points, a, float(self.offsets[j]))
        chosen = np.arange(len(self))[index]
        A = self.coefficients[:, chosen.tolist() if is_foreign(self.coefficients) else chosen]
        return type(self)(self.kernel, self.points, A, self.offsets[chosen])

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<{len(self)} functions sum_i a_i k(x_i, .) + b on {size_of(self.points)} centres, k = {self.kernel!r}>"

    # -- values -----------------------------------------------------------------------------------------

    def __call__(self, X: Any) -> Any:
        """Return every function at each point of X, (n, functions), in one pass over tiles of kernel values."""
        values = self._inside(X)
        return values + like(self.offsets, values)

    def _inside(self, X: Any) -> Any:
        """Return every function without its offset at each point of X."""
        if not size_of(self.points):
            return np.zeros((len(Points.of(X)), len(self)))
        return values(self.kernel, X, self.points, self.coefficients)

    def gradient(self, X: Any) -> Any:
        """Return the derivatives of every function at each row of X, (n, functions, features)."""
        x = plain(X)
        if not size_of(self.points):
            n, d = Points.of(x).vectors.shape
            return like(np.zeros((n, len(self), d)), X)
        slopes = gradient(self.kernel, x, plain(self.points), self._plain_coefficients())
        return like(np.ascontiguousarray(np.moveaxis(slopes, 1, 2)), X)

    def _plain_coefficients(self) -> np.ndarray:
        A = self.coefficients
        return np.asarray(A.toarray() if sparse.issparse(A) else plain(A))

    # -- the vector space -------------------------------------------------------------------------------

    __array_ufunc__ = None  # NumPy's numbers and arrays leave the arithmetic to the methods below

    def _numbers(self, value: Any) -> np.ndarray | None:
        """Return one number for each function, or None for something else."""
        if isinstance(value, numbers.Real):
            return np.full(len(self), float(value))
        if isinstance(value, np.ndarray | list | tuple) and np.shape(value) == (len(self),):
            return np.asarray(value, dtype=np.float64)
        return None

    def _with(self, coefficients: Any, offsets: Any) -> Self:
        return type(self)(self.kernel, self.points, coefficients, offsets)

    def _scaled(self, factor: np.ndarray, how: Callable[[Any, Any], Any]) -> Self:
        """Return the functions times the factors, or divided by them."""
        A = self.coefficients
        if sparse.issparse(A):
            data = how(A.data, np.repeat(factor, np.diff(A.indptr)))
            A = sparse.csc_array((data, A.indices, A.indptr), shape=A.shape)
        else:
            A = how(A, like(factor, A))
        return self._with(A, how(self.offsets, factor))

    def __add__(self, other: Any) -> RKHSVector:
        shift = self._numbers(other)
        if shift is not None:
            return self._with(self.coefficients, self.offsets + shift)
        if isinstance(other, RKHSFunction):
            same_space(self, other)
            xp = array_api_compat.array_namespace(other.coefficients)
            same = xp.concat([other.coefficients[:, None]] * len(self), axis=1)
            other = RKHSVector(other.kernel, other.points, same, other.offset)
        if not isinstance(other, RKHSVector):
            return NotImplemented
        same_space(self, other)
        if len(self) != len(other):
            raise ValueError(f"a vector of {len(self)} functions and one of {len(other)} cannot be added.")
        A, B = self.coefficients, other.coefficients
        if self.points is other.points:
            return self._with(A + B, self.offsets + other.offsets)
        if sparse.issparse(A) or sparse.issparse(B):
            C: Any = sparse.vstack([sparse.csc_array(A), sparse.csc_array(B)], format="csc")
        else:
            C = array_api_compat.array_namespace(A, B).concat([A, B])
        return type(self)(self.kernel, joined(self.points, other.points), C, self.offsets + other.offsets)

    __radd__ = __add__

    def __neg__(self) -> RKHSVector:
        return self * -1.0

    def __sub__(self, other: Any) -> RKHSVector:
        shift = self._numbers(other)
        if shift is not None:
            return self + -shift
        return self + -other if isinstance(other, RKHSVector | RKHSFunction) else NotImplemented

    def __rsub__(self, other: Any) -> RKHSVector:
        return -self + other

    def __mul__(self, factor: Any) -> RKHSVector:
        each = self._numbers(factor)
        return NotImplemented if each is None else self._scaled(each, mul)

    __rmul__ = __mul__

    def __truediv__(self, factor: Any) -> RKHSVector:
        each = self._numbers(factor)
        if each is None:
            return NotImplemented
        if not each.all():
            raise ZeroDivisionError("a function cannot be divided by 0.")
        return self._scaled(each, truediv)

    # -- the geometry of H ------------------------------------------------------------------------------

    def __matmul__(self, other: Any) -> np.ndarray:
        """Return the inner products with each function of another vector, or with one function."""
        if isinstance(other, RKHSFunction):
            same_space(self, other)
            one = other.coefficients[:, None]
            return inner(self.kernel, self.points, self.coefficients, other.points, one)[:, 0]
        if not isinstance(other, RKHSVector):
            return NotImplemented
        same_space(self, other)
        return inner(self.kernel, self.points, self.coefficients, other.points, other.coefficients)

    def __rmatmul__(self, other: Any) -> Any:
        """Return <g, f_j> for a function g, and for a matrix M the functions sum_j M_ij f_j."""
        if isinstance(other, RKHSFunction):
            return self @ other
        M = np.asarray(other, dtype=np.float64)
        if M.ndim not in (1, 2) or M.shape[-1] != len(self):
            raise ValueError(
                f"a matrix of shape {M.shape} cannot mix {len(self)} functions; it needs {len(self)} columns."
            )
        A = self.coefficients @ like(np.atleast_2d(M).T, self.coefficients)
        mixed = self._with(A, np.atleast_2d(M) @ self.offsets)
        return mixed[0] if M.ndim == 1 else mixed

    def gram(self) -> np.ndarray:
        """Return the matrix of inner products <f_i, f_j>, without the offsets."""
        found = self @ self
        return np.asarray(0.5 * (found + found.T))

    def norms(self) -> np.ndarray:
        """Return the norm of each function, without its offset."""
        return norms(self.kernel, self.points, self.coefficients)

    def distances(self, other: RKHSVector | RKHSFunction) -> np.ndarray:
        """Return the distance of each function from its partner in another vector, or from one function."""
        difference = self - other
        return distances(difference.kernel, difference.points, difference.coefficients)

    def prune(self, tol: float = 1e-6, max_centres: int | None = None, *, budget: Any = None) -> Pruned:
        """Return the functions on fewer common centres, and how far each has moved; see `RKHSFunction.prune`.

        Parameters
        ----------
        tol
            The error of every function, as a share of its norm.
        max_centres, budget
            As for `RKHSFunction.prune`.
        """
        A = self._plain_coefficients()
        rows, C, error, size = prune(self.kernel, self.points, A, tol, max_centres, budget)
        pruned = type(self)(self.kernel, taken(self.points, rows), like(C, self.coefficients), self.offsets)
        return Pruned(pruned, error, _share(error, size))

    def project(self, points: Any, *, budget: Any = None) -> Projected:
        """Return the projections of all functions on one span, and how far each has moved; see `RKHSFunction.project`.

        The kernel matrix of the points is decomposed once for all of them.

        Parameters
        ----------
        points, budget
            As for `RKHSFunction.project`.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import RBF
        >>> F = RKHSVector(RBF(scale=1.0), [[0.0], [1.0], [2.0]], [[1.0, 0.0], [-2.0, 1.0], [0.5, 0.0]])
        >>> G, error, relative = F.project([[0.5], [1.5]])
        >>> G([[0.5], [1.5]]).shape, np.allclose(G([[0.5], [1.5]]), F([[0.5], [1.5]]))
        ((2, 2), True)
        >>> np.allclose(F.norms() ** 2, G.norms() ** 2 + error**2)
        True
        """
        points = points.data if isinstance(points, Points) else points
        inside = np.asarray(plain(self._inside(doubled(points))), dtype=np.float64)
        rows, A = project(self.kernel, points, inside, budget)
        projected = type(self)(self.kernel, taken(points, rows), like(A, self.coefficients), self.offsets)
        error = self.distances(projected)
        return Projected(projected, error, _share(error, self.norms()))


def _share(error: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return errors as shares of norms; 0 of the function 0."""
    return np.divide(error, size, out=np.zeros_like(error), where=size > 0)


def functions_of(kernel: Kernel, points: Any, A: Any, offsets: Any, single: bool) -> RKHSFunction | RKHSVector:
    """Return the functions with coefficients A, (centres, functions): one by itself, or all as a vector."""
    if single:
        return RKHSFunction(kernel, points, A[:, 0], float(np.ravel(offsets)[0]))
    return RKHSVector(kernel, points, A, offsets)


def linear_functions(coef: Any, intercept: Any, single: bool) -> RKHSFunction | RKHSVector:
    """Return w.x + b as functions of the linear kernel: w = sum_i a_i x_i has itself as its only centre."""
    w = np.array(np.atleast_2d(coef), dtype=np.float64)
    return functions_of(Linear(), w, np.eye(len(w)), intercept, single)
