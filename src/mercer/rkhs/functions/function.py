"""Functions f = sum a_i k(x_i, .) + b as objects (K8)."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

import array_api_compat
import numpy as np

from mercer.gram import gradient
from mercer.kernels import Kernel
from mercer.kernels.rules.scikit_learn import as_kernel
from mercer.points import Points
from mercer.points.sets.points import is_foreign
from mercer.rkhs.functions.centres import doubled, joined, like, plain, size_of, taken
from mercer.rkhs.functions.pruning import Pruned, prune
from mercer.rkhs.functions.sums import Projected, distances, inner, norms, project, values


@dataclass(frozen=True, eq=False, repr=False)
class RKHSFunction:
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
    >>> representer = RKHSFunction(f.kernel, [[0.5]], [1.0])
    >>> bool(abs(f @ representer - f([[0.5]])[0]) < 1e-15)
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"kernel must be a kernel object such as RBF(scale=1.0); it is {self.kernel!r}.")
        if isinstance(self.points, Points):
            object.__setattr__(self, "points", self.points.data)
        a = self.coefficients
        if not is_foreign(a):
            a = np.array(a, dtype=np.float64)
            a.setflags(write=False)
        size = size_of(self.points)
        if a.ndim != 1 or a.shape[0] != size:
            raise ValueError(
                f"coefficients have shape {tuple(a.shape)} and there are {size} points; one number per point is needed."
            )
        if not (is_foreign(a) or np.isfinite(a).all()) or not math.isfinite(self.offset):
            raise ValueError("coefficients and offset must be finite; they contain NaN or infinite values.")
        object.__setattr__(self, "coefficients", a)
        object.__setattr__(self, "offset", float(self.offset))
        if size:
            object.__setattr__(self, "kernel", self.kernel.resolve(self.points))

    # -- values -----------------------------------------------------------------------------------------

    def __call__(self, X: Any) -> Any:
        """Return f at each point of X, in tiles: the matrix of kernel values is not held."""
        return self._inside(X) + self.offset

    def _inside(self, X: Any) -> Any:
        """Return f - b at each point of X."""
        return values(self.kernel, X, self.points, self.coefficients) if len(self) else np.zeros(len(Points.of(X)))

    def gradient(self, X: Any) -> Any:
        """Return the derivatives of f by the coordinates of x at each row of X, (n, features), in tiles.

        Parameters
        ----------
        X
            Vectors. Kernels without a derivative (`Delta`, `Laplacian`) and other objects are refused; a kink at the
            centres themselves counts as 0 there (see `mercer.gram.gradient`).
        """
        x = plain(X)
        if not len(self):
            return like(np.zeros(Points.of(x).vectors.shape), X)
        return like(gradient(self.kernel, x, plain(self.points), plain(self.coefficients)), X)

    def __len__(self) -> int:
        return int(self.coefficients.shape[0])

    def __bool__(self) -> bool:
        return True  # a function without centres is a constant, not nothing

    def __repr__(self) -> str:
        constant = f" {'-' if self.offset < 0 else '+'} {abs(self.offset):.6g}" if self.offset else ""
        return f"<sum of {len(self)} terms a_i k(x_i, .){constant}, k = {self.kernel!r}>"

    # -- the vector space -------------------------------------------------------------------------------

    __array_ufunc__ = None  # NumPy's numbers leave the arithmetic to the methods below

    def __add__(self, other: Any) -> RKHSFunction:
        if isinstance(other, numbers.Real):
            return RKHSFunction(self.kernel, self.points, self.coefficients, self.offset + float(other))
        if not isinstance(other, RKHSFunction):
            return NotImplemented
        same_space(self, other)
        offset = self.offset + other.offset
        if self.points is other.points:
            return RKHSFunction(self.kernel, self.points, self.coefficients + other.coefficients, offset)
        both = (self.coefficients, other.coefficients)
        xp = array_api_compat.array_namespace(*both)
        return RKHSFunction(self.kernel, joined(self.points, other.points), xp.concat(both), offset)

    __radd__ = __add__

    def __neg__(self) -> RKHSFunction:
        return self * -1.0

    def __sub__(self, other: Any) -> RKHSFunction:
        return self + -other if isinstance(other, RKHSFunction | numbers.Real) else NotImplemented

    def __rsub__(self, other: Any) -> RKHSFunction:
        return -self + other if isinstance(other, numbers.Real) else NotImplemented

    def __mul__(self, factor: Any) -> RKHSFunction:
        if not isinstance(factor, numbers.Real):
            return NotImplemented
        number = float(factor)
        return RKHSFunction(self.kernel, self.points, self.coefficients * number, self.offset * number)

    __rmul__ = __mul__

    def __truediv__(self, factor: Any) -> RKHSFunction:
        if not isinstance(factor, numbers.Real):
            return NotImplemented
        number = float(factor)
        if number == 0:
            raise ZeroDivisionError("a function cannot be divided by 0.")
        return RKHSFunction(self.kernel, self.points, self.coefficients / number, self.offset / number)

    # -- the geometry of H ------------------------------------------------------------------------------

    def __matmul__(self, other: Any) -> float:
        """Return the inner product in H of the two functions without their offsets."""
        if not isinstance(other, RKHSFunction):
            return NotImplemented
        same_space(self, other)
        if not (len(self) and len(other)):
            return 0.0
        a, c = self.coefficients[:, None], other.coefficients[:, None]
        return float(inner(self.kernel, self.points, a, other.points, c)[0, 0])

    def norm(self) -> float:
        """Return the norm in H of the function without its offset."""
        return float(norms(self.kernel, self.points, self.coefficients[:, None])[0])

    def distance(self, other: RKHSFunction) -> float:
        """Return the norm of the difference, without the offsets; centres that are in both are compared as one."""
        difference = self - other
        return float(distances(difference.kernel, difference.points, difference.coefficients[:, None])[0])

    def prune(self, tol: float = 1e-6, max_centres: int | None = None, *, budget: Any = None) -> Pruned:
        r"""Return a function with fewer centres close to this one, and how far away it is.

        .. math:: g = \arg\min_{g \in \mathrm{span}\{k(x_s, \cdot)\}_{s \in S}} \|f - g\|_H

        Centres without a coefficient are dropped and equal ones made one, which changes nothing. Then S is chosen among
        the centres, one after the other by what each promises for this f, until the error is small enough. The
        coefficients are the best for these centres; the offset stays.

        Parameters
        ----------
        tol
            The error to reach, as a share of the norm of f. With 0 nothing is done that changes f.
        max_centres
            The most centres to keep; None for as many as `tol` needs.
        budget
            Bytes that may be used, as for `Gram`: 8 for each kept centre and each centre of f.

        Returns
        -------
        Pruned
            A tuple (function, error, relative): g, the distance of f and g in H, computed from the coefficients that g
            has, and its share of the norm of f. With `max_centres`, or at the limits of float64, it may exceed `tol`.

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
        A = plain(self.coefficients)[:, None]
        rows, C, error, size = prune(self.kernel, self.points, A, tol, max_centres, budget)
        a = like(C[:, 0], self.coefficients)
        function = RKHSFunction(self.kernel, taken(self.points, rows), a, self.offset)
        return Pruned(function, float(error[0]), float(error[0] / size[0]) if size[0] else 0.0)

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
            Bytes that may be used, as for `Gram`: the kernel matrix of the points is decomposed.

        Returns
        -------
        Projected
            A tuple (function, error, relative): Pf, the distance of f and Pf in H, and its share of the norm of f.
            Where the kernel matrix is singular to rounding, the values agree to about the root of rounding.

        Examples
        --------
        >>> from mercer import RBF, RKHSFunction
        >>> f = RKHSFunction(RBF(scale=1.0), [[0.0], [1.0], [2.0]], [1.0, -2.0, 0.5])
        >>> g, error, relative = f.project([[0.5], [1.5]])
        >>> bool(abs(f([[1.5]]) - g([[1.5]]))[0] < 1e-12)
        True
        >>> bool(abs(f.norm() ** 2 - g.norm() ** 2 - error**2) < 1e-12)
        True
        """
        points = points.data if isinstance(points, Points) else points
        values = np.asarray(plain(self._inside(doubled(points))), dtype=np.float64)
        rows, A = project(self.kernel, points, values[:, None], budget)
        function = RKHSFunction(self.kernel, taken(points, rows), like(A[:, 0], self.coefficients), self.offset)
        error, size = self.distance(function), self.norm()
        return Projected(function, error, error / size if size else 0.0)


def same_space(f: Any, g: Any) -> None:
    """Raise unless two functions, or vectors of functions, have one kernel."""
    if f.kernel != g.kernel:
        raise ValueError(
            f"the functions belong to different spaces, those of {f.kernel!r} and {g.kernel!r}; only functions of one "
            "kernel can be added or compared."
        )
