"""A similarity matrix given from outside."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mercer.kernels.base import Kernel, kernel
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
