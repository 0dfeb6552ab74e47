"""Several functions of one space that share their centres (K8)."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Self, overload

import array_api_compat
import numpy as np
from scipy import sparse

from mercer.kernels import Kernel, Linear
from mercer.points.sets.one import of_sets
from mercer.points.sets.points import is_foreign
from mercer.rkhs.functions.centres import joined, like, plain, size_of, taken
from mercer.rkhs.functions.function import KernelSum, RKHSFunction, same_space
from mercer.rkhs.functions.sums import inner


@dataclass(frozen=True, eq=False, repr=False)
class RKHSVector(KernelSum, Sequence[RKHSFunction]):
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

    _axes = 2
    _wanted = "a row for each point and a column for each function are needed."
    _constants = "offsets"

    @staticmethod
    def _shaped(b: Any, shape: tuple[int, ...]) -> np.ndarray:
        b = np.array(b, dtype=np.float64)
        if b.ndim > 1 or (b.ndim == 1 and b.shape != shape):
            raise ValueError(
                f"offsets have shape {b.shape} and there are {shape[0]} functions; give one number for all or one "
                "for each."
            )
        b = np.broadcast_to(b, shape).copy()
        b.setflags(write=False)
        return b

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

    def __repr__(self) -> str:
        return f"<{len(self)} functions sum_i a_i k(x_i, .) + b on {size_of(self.points)} centres, k = {self.kernel!r}>"

    def __call__(self, X: Any) -> Any:
        """Return every function at each point of X, (n, functions), in one pass; at one point, (functions,)."""
        values, one = of_sets(self._inside, X)
        values = values + like(self.offsets, values)
        return values[0] if one else values

    # -- the vector space -------------------------------------------------------------------------------

    def _numbers(self, value: Any) -> np.ndarray | None:
        if isinstance(value, numbers.Real):
            return np.full(len(self), float(value))
        if isinstance(value, np.ndarray | list | tuple) and np.shape(value) == (len(self),):
            return np.asarray(value, dtype=np.float64)
        return None

    def _partner(self, other: Any) -> RKHSVector | None:
        if isinstance(other, RKHSFunction):
            xp = array_api_compat.array_namespace(other.coefficients)
            same = xp.concat([other._columns] * len(self), axis=1)
            return RKHSVector(other.kernel, other.points, same, other.offset)
        if isinstance(other, RKHSVector) and len(self) != len(other):
            same_space(self, other)
            raise ValueError(f"a vector of {len(self)} functions and one of {len(other)} cannot be added.")
        return other if isinstance(other, RKHSVector) else None

    def _scaled(self, factor: np.ndarray, how: Callable[[Any, Any], Any]) -> Self:
        A = self.coefficients
        if sparse.issparse(A):
            data = how(A.data, np.repeat(factor, np.diff(A.indptr)))
            A = sparse.csc_array((data, A.indices, A.indptr), shape=A.shape)
        else:
            A = how(A, like(factor, A))
        return self._with(A, how(self.offsets, factor))

    # -- the geometry of H ------------------------------------------------------------------------------

    def __matmul__(self, other: Any) -> np.ndarray:
        """Return the inner products with each function of another vector, or with one function."""
        if isinstance(other, RKHSFunction):
            same_space(self, other)
            return inner(self.kernel, self.points, self.coefficients, other.points, other._columns)[:, 0]
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
        G = self @ self
        return np.asarray(0.5 * (G + G.T))

    def norms(self) -> np.ndarray:
        """Return the norm of each function, without its offset."""
        return self._norms()

    def distances(self, other: RKHSVector | RKHSFunction) -> np.ndarray:
        """Return the distance of each function from its partner in another vector, or from one function."""
        return self._distances(other)


def functions_of(kernel: Kernel, points: Any, A: Any, offsets: Any, single: bool) -> RKHSFunction | RKHSVector:
    """Return the functions with coefficients A, (centres, functions): one by itself, or all as a vector."""
    if single:
        return RKHSFunction(kernel, points, A[:, 0], float(np.ravel(offsets)[0]))
    return RKHSVector(kernel, points, A, offsets)


def linear_functions(coef: Any, intercept: Any, single: bool) -> RKHSFunction | RKHSVector:
    """Return w.x + b as functions of the linear kernel: w = sum_i a_i x_i has itself as its only centre."""
    w = np.array(np.atleast_2d(coef), dtype=np.float64)
    return functions_of(Linear(), w, np.eye(len(w)), intercept, single)
