"""Functions f = sum a_i k(x_i, .) + b as objects (K8)."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

import array_api_compat
import numpy as np
from scipy import sparse

from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.points import Points
from mercer.points.points import is_foreign


@dataclass(frozen=True, eq=False, repr=False)
class RKHSFunction:
    r"""A function of the space H of a kernel, plus a constant.

    .. math:: f = \sum_i a_i k(x_i, \cdot) + b, \qquad
              \langle f, g \rangle_H = \sum_{ij} a_i c_j k(x_i, z_j)

    The offset b is no part of H (constants need not lie in H at all). It is added to values and carried along by
    sums and multiples, and it enters no inner product, norm or distance: these speak of f - b.

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
    """

    kernel: Kernel
    points: Any
    coefficients: Any
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"kernel must be a kernel object such as RBF(scale=1.0); it is {self.kernel!r}.")
        a = self.coefficients
        if not is_foreign(a):
            a = np.array(a, dtype=np.float64)
            a.setflags(write=False)
        size = self.points.shape[0] if hasattr(self.points, "shape") else len(self.points)
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
        if not len(self):
            return np.zeros(len(Points.of(X)))
        return Gram(self.kernel, X, self.points).matvec(self.coefficients)

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
        self._same_space(other)
        offset = self.offset + other.offset
        if self.points is other.points:
            return RKHSFunction(self.kernel, self.points, self.coefficients + other.coefficients, offset)
        points = _concatenated(self, other)
        both = (self.coefficients, other.coefficients)
        xp = array_api_compat.array_namespace(*both)
        return RKHSFunction(self.kernel, points, xp.concat(both), offset)

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
        return self * (1.0 / float(factor)) if isinstance(factor, numbers.Real) else NotImplemented

    # -- the geometry of H ------------------------------------------------------------------------------

    def __matmul__(self, other: Any) -> float:
        """Return the inner product in H of the two functions without their offsets."""
        if not isinstance(other, RKHSFunction):
            return NotImplemented
        self._same_space(other)
        if not (len(self) and len(other)):
            return 0.0
        if other.points is self.points:
            return float(self.coefficients @ Gram(self.kernel, self.points).matvec(other.coefficients))
        if len(other) > len(self):  # the longer side is summed in the tiles
            return float(self.coefficients @ other._inside(self.points))
        return float(other.coefficients @ self._inside(other.points))

    def norm(self) -> float:
        """Return the norm in H of the function without its offset."""
        square = self @ self
        if square >= 0:
            return math.sqrt(square)
        largest = float(abs(self.coefficients).sum()) ** 2 * float(abs(self.kernel.diag(self.points)).max())
        if square < -1e-6 * largest:
            raise ValueError(
                f"<f, f> = {square:.6g} is negative: {self.kernel!r} is not positive semidefinite, and there is no "
                "norm. mercer.gram.verdict shows it; mercer.gram.repair makes the nearest kernel matrix."
            )
        return 0.0

    def distance(self, other: RKHSFunction) -> float:
        """Return the norm of the difference, without the offsets."""
        return (self - other).norm()

    def _same_space(self, other: RKHSFunction) -> None:
        if self.kernel != other.kernel:
            raise ValueError(
                f"the functions belong to different spaces, those of {self.kernel!r} and {other.kernel!r}; only "
                "functions of one kernel can be added or compared."
            )


def _concatenated(f: RKHSFunction, g: RKHSFunction) -> Any:
    """Return the centres of both functions in one container of the kind of the first."""
    a, b = f.points, g.points
    if not len(f) or not len(g):
        return a if len(f) else b
    if is_foreign(a) and is_foreign(b):
        return array_api_compat.array_namespace(a, b).concat([a, b])
    if hasattr(a, "columns") and hasattr(b, "columns"):
        return _stacked_tables(a, b)
    if sparse.issparse(a) or sparse.issparse(b):
        return sparse.vstack([sparse.csr_array(a), sparse.csr_array(b)], format="csr")
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.concatenate([np.asarray(a), np.asarray(b)])
    return [*a, *b]


def _stacked_tables(a: Any, b: Any) -> Any:
    if hasattr(a, "vstack"):  # polars
        return a.vstack(b)
    import pandas as pd  # type: ignore[import-untyped]

    return pd.concat([a, b], ignore_index=True)
