"""Functions f = sum a_i k(x_i, .) + b as objects (K8)."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from operator import mul, truediv
from typing import Any, ClassVar, Self

import array_api_compat
import numpy as np
from scipy import sparse

from mercer.gram import gradient
from mercer.kernels import Kernel
from mercer.kernels.rules.scikit_learn import as_kernel
from mercer.points import Points
from mercer.points.sets.one import of_sets
from mercer.points.sets.points import is_foreign
from mercer.rkhs.functions.centres import doubled, joined, like, plain, size_of, taken
from mercer.rkhs.functions.pruning import Projected, Pruned, project, prune
from mercer.rkhs.functions.sums import distances, inner, norms, values


class KernelSum:
    """One function of a space, or several on common centres, with constants that are no part of them.

    A class says how its coefficients and offsets are shaped; all else follows from the columns of coefficients.
    """

    kernel: Kernel
    points: Any
    coefficients: Any

    _axes: ClassVar[int]  # of the coefficients
    _wanted: ClassVar[str]  # what the shape of the coefficients should be, in words
    _constants: ClassVar[str]  # the name of the offsets

    def __post_init__(self) -> None:
        kernel = as_kernel(self.kernel)
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel must be a kernel object such as RBF(scale=1.0); it is {kernel!r}.")
        points = self.points.data if isinstance(self.points, Points) else self.points
        A, size = self.coefficients, size_of(points)
        if sparse.issparse(A):
            A = sparse.csc_array(A, dtype=np.float64, copy=True)
            A.sum_duplicates()
            A.eliminate_zeros()
        elif not is_foreign(A):
            A = np.array(A, dtype=np.float64)
            A.setflags(write=False)
        if A.ndim != self._axes or A.shape[0] != size:
            raise ValueError(f"coefficients have shape {tuple(A.shape)} and there are {size} points; {self._wanted}")
        b = self._shaped(self._b, A.shape[1:])
        entries = A.data if sparse.issparse(A) else A
        if not (is_foreign(A) or np.isfinite(entries).all()) or not np.isfinite(b).all():
            raise ValueError(f"coefficients and {self._constants} must be finite; they contain NaN or infinite values.")
        kernel = kernel.resolve(points) if size else kernel
        fields = {"kernel": kernel, "points": points, "coefficients": A, self._constants: b}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @staticmethod
    def _shaped(b: Any, shape: tuple[int, ...]) -> Any:
        """Return the offsets of functions whose coefficients have this shape beside the points."""
        raise NotImplementedError

    @property
    def _b(self) -> Any:
        return getattr(self, self._constants)

    @property
    def _columns(self) -> Any:
        """The coefficients, a column for each function."""
        return self.coefficients if self._axes == 2 else self.coefficients[:, None]

    def _plain_coefficients(self) -> np.ndarray:
        A = self.coefficients
        return np.asarray(A.toarray() if sparse.issparse(A) else plain(A))

    def _with(self, coefficients: Any, b: Any, points: Any = None) -> Self:
        cls: Any = type(self)
        return cls(self.kernel, self.points if points is None else points, coefficients, b)

    def __bool__(self) -> bool:
        return True  # a function without centres is a constant, not nothing

    # -- values -----------------------------------------------------------------------------------------

    def _inside(self, X: Any) -> Any:
        """Return the values less the offsets at each point of X."""
        if not size_of(self.points):
            return np.zeros((len(Points.of(X)), *self.coefficients.shape[1:]))
        return values(self.kernel, X, self.points, self.coefficients)

    def gradient(self, X: Any) -> Any:
        """Return the derivatives by the coordinates of x at each row of X, (n, features), in tiles.

        Of several functions, (n, functions, features).

        Parameters
        ----------
        X
            Vectors. Kernels without a derivative (`Delta`, `Intersection`) and other objects are refused; a kink at the
            centres themselves counts as 0 there (see `mercer.gram.gradient`).
        """
        x, A = plain(X), self._plain_coefficients()
        if size_of(self.points):
            slopes = gradient(self.kernel, x, plain(self.points), A)
        else:
            slopes = np.zeros((*Points.of(x).vectors.shape, *A.shape[1:]))
        return like(slopes if self._axes == 1 else np.ascontiguousarray(np.moveaxis(slopes, 1, 2)), X)

    # -- the vector space -------------------------------------------------------------------------------

    __array_ufunc__ = None  # NumPy's numbers and arrays leave the arithmetic to the methods below

    def _numbers(self, value: Any) -> Any:
        """Return the number, or one for each function; None for something else."""
        return float(value) if isinstance(value, numbers.Real) else None

    def _partner(self, other: Any) -> KernelSum | None:
        """Return what can be added function by function; None for something else."""
        return other if type(other) is type(self) else None

    def _scaled(self, factor: Any, how: Callable[[Any, Any], Any]) -> Self:
        """Return the functions times the factors, or divided by them."""
        return self._with(how(self.coefficients, factor), how(self._b, factor))

    def __add__(self, other: Any) -> Self:
        shift = self._numbers(other)
        if shift is not None:
            return self._with(self.coefficients, self._b + shift)
        other = self._partner(other)
        if other is None:
            return NotImplemented
        same_space(self, other)
        A, B, b = self.coefficients, other.coefficients, self._b + other._b
        if self.points is other.points:
            return self._with(A + B, b)
        if sparse.issparse(A) or sparse.issparse(B):
            C: Any = sparse.vstack([sparse.csc_array(A), sparse.csc_array(B)], format="csc")
        else:
            C = array_api_compat.array_namespace(A, B).concat([A, B])
        return self._with(C, b, joined(self.points, other.points))

    __radd__ = __add__

    def __neg__(self) -> Self:
        return self * -1.0

    def __sub__(self, other: Any) -> Self:
        shift = self._numbers(other)
        if shift is not None:
            return self + -shift
        return self + -other if isinstance(other, KernelSum) else NotImplemented

    def __rsub__(self, other: Any) -> Self:
        return -self + other

    def __mul__(self, factor: Any) -> Self:
        each = self._numbers(factor)
        return NotImplemented if each is None else self._scaled(each, mul)

    __rmul__ = __mul__

    def __truediv__(self, factor: Any) -> Self:
        each = self._numbers(factor)
        if each is None:
            return NotImplemented
        if not np.all(each):
            raise ZeroDivisionError("a function cannot be divided by 0.")
        return self._scaled(each, truediv)

    # -- the geometry of H ------------------------------------------------------------------------------

    def _norms(self) -> np.ndarray:
        return norms(self.kernel, self.points, self._columns)

    def _distances(self, other: Any) -> np.ndarray:
        difference = self - other
        return distances(difference.kernel, difference.points, difference._columns)

    def prune(self, tol: float = 1e-6, max_centres: int | None = None, *, budget: Any = None) -> Pruned:
        r"""Return a function with fewer centres close to this one, and how far away it is.

        .. math:: g = \arg\min_{g \in \mathrm{span}\{k(x_s, \cdot)\}_{s \in S}} \|f - g\|_H

        Centres without a coefficient are dropped and equal ones made one, which changes nothing. Then S is chosen among
        the centres, one after the other by what each promises for this f, until the error is small enough. The
        coefficients are the best for these centres; the offset stays.

        Parameters
        ----------
        tol
            The error to reach, as a share of the norm of f; of every function of a vector, on common centres. With 0
            nothing is done that changes f.
        max_centres
            The most centres to keep; None for as many as `tol` needs.
        budget
            Bytes that may be used, as for `Gram`: 8 for each kept centre and each centre of f.

        Returns
        -------
        Pruned
            A tuple (function, error, relative): g, the distance of f and g in H, computed from the coefficients that g
            has, and its share of the norm of f (of a vector one for each). With `max_centres`, or at the limits of
            float64, it may exceed `tol`.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import RBF, RKHSFunction
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> f = RKHSFunction(RBF(scale=0.5), X, np.cos(9 * X[:, 0]))
        >>> g, error, relative = f.prune(tol=1e-3)
        >>> len(g) < 10, relative <= 1e-3, bool(np.isclose(error, f.distance(g)))
        (True, True, True)
        """
        A = self._plain_coefficients()
        A = A if self._axes == 2 else A[:, None]
        rows, C, error, size = prune(self.kernel, self.points, A, tol, max_centres, budget)
        return Pruned(*self._approximated(taken(self.points, rows), C, error, size))

    def project(self, points: Any, *, budget: Any = None) -> Projected:
        r"""Return the projection of f on the span of the kernel functions at some points, and how far it is from f.

        .. math:: Pf = \sum_i a_i k(x_i, \cdot), \qquad Pf(x_i) = f(x_i)

        f - Pf is orthogonal to every :math:`k(x_i, \cdot)`, so that f and Pf have the same values at the points, and
        :math:`|f|^2 = |Pf|^2 + |f - Pf|^2`: no loss of these values notices the change, and the norm never grows. This
        is the proof of the representer theorem. The offset stays.

        Parameters
        ----------
        points
            The :math:`x_i`: whatever the kernel compares; equal ones count once.
        budget
            Bytes that may be used, as for `Gram`: the matrix of the points is decomposed, once for all functions.

        Returns
        -------
        Projected
            A tuple (function, error, relative): Pf, the distance of f and Pf in H, and its share of the norm of f (of a
            vector one for each). Where the kernel matrix is singular to rounding, the values agree to about the root of
            rounding.

        Examples
        --------
        >>> from mercer import RBF, RKHSFunction, RKHSVector
        >>> f = RKHSFunction(RBF(scale=1.0), [[0.0], [1.0], [2.0]], [1.0, -2.0, 0.5])
        >>> g, error, relative = f.project([[0.5], [1.5]])
        >>> bool(abs(f([[1.5]]) - g([[1.5]]))[0] < 1e-12)
        True
        >>> bool(abs(f.norm() ** 2 - g.norm() ** 2 - error**2) < 1e-12)
        True
        >>> F = RKHSVector(RBF(scale=1.0), [[0.0], [1.0], [2.0]], [[1.0, 0.0], [-2.0, 1.0], [0.5, 0.0]])
        >>> F.project([[0.5], [1.5]]).function([[0.5], [1.5]]).shape
        (2, 2)
        """
        points = points.data if isinstance(points, Points) else points
        inside = np.asarray(plain(self._inside(doubled(points))), dtype=np.float64)
        rows, A = project(self.kernel, points, inside if self._axes == 2 else inside[:, None], budget)
        return Projected(*self._approximated(taken(points, rows), A))

    def _approximated(
        self, points: Any, A: np.ndarray, error: np.ndarray | None = None, size: np.ndarray | None = None
    ) -> tuple[Self, Any, Any]:
        """Return the functions with coefficients A, how far they are from these, and that as shares of the norms."""
        made = self._with(like(A if self._axes == 2 else A[:, 0], self.coefficients), self._b, points)
        if error is None or size is None:
            error, size = self._distances(made), self._norms()
        share = np.divide(error, size, out=np.zeros_like(error), where=size > 0)
        return (made, error, share) if self._axes == 2 else (made, float(error[0]), float(share[0]))


@dataclass(frozen=True, eq=False, repr=False)
class RKHSFunction(KernelSum):
    r"""A function of the space H of a kernel, plus a constant.

    .. math:: f = \sum_i a_i k(x_i, \cdot) + b, \qquad
              \langle f, g \rangle_H = \sum_{ij} a_i c_j k(x_i, z_j)

    The offset b is no part of H (constants need not lie in H at all). It is added to values and carried along by
    sums and multiples, and it enters no inner product, norm, distance or pruning error: these speak of f - b. Two
    functions that differ by a constant only have distance 0.

    Parameters
    ----------
    kernel
        The kernel of H; parameters that wait for data are resolved on `points`.
    points
        The centres x_i: a matrix, a table or a sequence, whatever the kernel compares.
    coefficients
        The a_i, one per centre.
    offset
        The constant b.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> from mercer.rkhs import RKHSFunction
    >>> f = RKHSFunction(RBF(scale=1.0), [[0.0], [2.0]], [1.0, -1.0])
    >>> f([[0.0], [1.0], [2.0]]).round(3)
    array([ 0.865,  0.   , -0.865])
    >>> bool(abs(f @ f.kernel.at(0.5) - f(0.5)) < 1e-15)
    True
    >>> (2 * f - f).distance(f)
    0.0
    >>> f.gradient([[1.0]]).round(3)
    array([[-1.213]])
    """

    kernel: Kernel
    points: Any
    coefficients: Any
    offset: float = 0.0

    _axes = 1
    _wanted = "one number per point is needed."
    _constants = "offset"

    @staticmethod
    def _shaped(b: Any, shape: tuple[int, ...]) -> float:
        return float(b)

    def __call__(self, X: Any) -> Any:
        """Return f at each point of X, in tiles: the matrix of kernel values is not held. At one point, a number.

        One point is what it is in k(x, z): a number, a text, a graph, or a flat array where points are rows of numbers.
        """
        inside, one = of_sets(self._inside, X)
        return float(inside[0]) + self.offset if one else inside + self.offset

    def __len__(self) -> int:
        return int(self.coefficients.shape[0])

    def __repr__(self) -> str:
        constant = f" {'-' if self.offset < 0 else '+'} {abs(self.offset):.6g}" if self.offset else ""
        return f"<sum of {len(self)} terms a_i k(x_i, .){constant}, k = {self.kernel!r}>"

    def __matmul__(self, other: Any) -> float:
        """Return the inner product in H of the two functions without their offsets."""
        if not isinstance(other, RKHSFunction):
            return NotImplemented
        same_space(self, other)
        return float(inner(self.kernel, self.points, self._columns, other.points, other._columns)[0, 0])

    def norm(self) -> float:
        """Return the norm in H of the function without its offset."""
        return float(self._norms()[0])

    def distance(self, other: RKHSFunction) -> float:
        """Return the norm of the difference, without the offsets; centres that are in both are compared as one."""
        return float(self._distances(other)[0])


def same_space(f: Any, g: Any) -> None:
    """Raise unless two functions, or vectors of functions, have one kernel."""
    if f.kernel != g.kernel:
        raise ValueError(
            f"the functions belong to different spaces, those of {f.kernel!r} and {g.kernel!r}; only functions of one "
            "kernel can be added or compared."
        )
