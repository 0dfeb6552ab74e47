"""Similarities given from outside: a matrix, a feature map or a function in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.preprocessing import FunctionTransformer

from mercer.kernels.base import Kernel, kernel
from mercer.kernels.rules.pullback import Mapped
from mercer.points import Pair


@kernel
class Precomputed(Kernel):
    """A matrix of similarities; the points are indices into it.

    .. math:: k(i, j) = M_{ij}

    Parameters
    ----------
    matrix
        A square, finite matrix. Whether it is a kernel is not taken on trust: see `verdict` and `repair`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Precomputed
    >>> k = Precomputed(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> k([0, 1, 1])
    array([[2., 1., 1.],
           [1., 2., 2.],
           [1., 2., 2.]])
    """

    _fixed: ClassVar[tuple[str, ...]] = ("matrix",)

    matrix: Any

    _because = (
        "given matrix",
        "numbers from outside prove nothing; verdict(k, indices) decides for this matrix.",
        "unproven",
    )

    def _validate(self) -> None:
        check_matrix(self, "matrix", self.matrix, "a square matrix of numbers")

    def of(self, pair: Pair) -> Any:
        m = np.asarray(self.matrix)
        return pair.lookup(m if m.dtype.kind == "f" else m.astype(np.float64))


def check_matrix(owner: Any, name: str, matrix: Any, what: str) -> None:
    """Raise unless a parameter is a square matrix of finite numbers."""
    m = np.asarray(matrix)
    if m.ndim != 2 or m.shape[0] != m.shape[1] or m.dtype.kind not in "fiub":
        raise ValueError(f"{name} of {type(owner).__name__} must be {what}; it has shape {m.shape} and type {m.dtype}.")
    if not np.isfinite(m).all():
        i, j = np.argwhere(~np.isfinite(m))[0]
        raise ValueError(
            f"{name} of {type(owner).__name__} contains {m[i, j]} at ({i}, {j}); every entry must be finite."
        )


@kernel
class FromFeatures(Kernel):
    r"""The kernel of a feature map (K2).

    .. math:: k(x, z) = \langle \Phi(x), \Phi(z) \rangle

    Parameters
    ----------
    phi
        A function from the points to a matrix with one row of features per point, or a fitted scikit-learn
        transformer.
    each
        Whether `phi` takes one point at a time rather than all of them.

    Examples
    --------
    >>> from mercer.kernels import FromFeatures
    >>> FromFeatures(lambda word: [word.count("a"), word.count("b")], each=True)(["ab", "aab"])
    array([[2., 3.],
           [3., 5.]])
    """

    phi: Callable[..., Any]
    each: bool = False

    _because = "feature map", "k(x, z) = <Phi(x), Phi(z)>, so a'Ka = |sum a_i Phi(x_i)|^2 >= 0."

    def _validate(self) -> None:
        if not (callable(self.phi) or hasattr(self.phi, "transform")):
            raise TypeError(f"phi of FromFeatures must be a function or a transformer; it is {self.phi!r}.")

    def of(self, pair: Pair) -> Any:
        return pair.through(Mapped(self.phi, self.each)).dot

    def feature_map(self) -> Any:
        return (
            self.phi
            if hasattr(self.phi, "transform")
            else FunctionTransformer(_EachRow(self.phi) if self.each else self.phi)
        )


class _EachRow:
    """A function of one point, applied to all."""

    def __init__(self, phi: Callable[..., Any]) -> None:
        self.phi = phi

    def __call__(self, X: Any) -> Any:
        import numpy as np

        return np.asarray([self.phi(x) for x in X], dtype=float)


@kernel
class FromFunction(Kernel):
    """Any Python similarity of two points (K10).

    .. math:: k(x, z) = f(x, z)

    Parameters
    ----------
    f
        A symmetric function of two points of any type. Nothing is known of it: the proof says "unproven", and
        `verdict` tests it on points.

    Examples
    --------
    >>> from mercer.kernels import FromFunction
    >>> FromFunction(lambda a, b: float(len(set(a) & set(b))))(["abc", "bcd"])
    array([[3., 2.],
           [2., 3.]])
    """

    f: Callable[[Any, Any], float]

    _because = (
        "given function",
        "nothing is known about a Python function; verdict(k, X) tests it on points.",
        "unproven",
    )

    def _validate(self) -> None:
        if not callable(self.f):
            raise TypeError(f"f of FromFunction must be a function of two points; it is {self.f!r}.")

    def of(self, pair: Pair) -> Any:
        return pair.call(self.f)
