"""The cosine kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import array_api_compat
import numpy as np
from scipy import sparse
from sklearn.preprocessing import Normalizer

from mercer.kernels.base import Kernel, kernel
from mercer.points import Pair, Points
from mercer.points.formulas.pair import norms, squared_norms, unit_rows


@kernel
class Cosine(Kernel):
    r"""The cosine of the angle between two vectors, 0 where one of them is zero.

    .. math:: k(x, z) = \frac{\langle x, z \rangle}{|x| |z|}

    Examples
    --------
    >>> from mercer.kernels import Cosine
    >>> Cosine()([[1.0, 0.0], [3.0, 4.0]])
    array([[1. , 0.6],
           [0.6, 1. ]])
    """

    _because = "inner product", "the inner product of the unit vectors x / |x| and z / |z|."

    def of(self, pair: Pair) -> Any:
        return pair.through(UnitVectors()).dot

    def feature_map(self) -> Any:
        return Normalizer()


@dataclass(frozen=True)
class UnitVectors:
    """x / |x|, and 0 for x = 0."""

    def __call__(self, points: Points) -> Any:
        v = points.vectors
        if points.foreign:
            length = points.values(norms)
            xp = array_api_compat.array_namespace(v)
            return v / xp.where(length > 0, length, xp.ones_like(length))[:, None]
        v, _ = unit_rows(v)
        squares = squared_norms(Points(v))
        inverse = 1.0 / np.sqrt(np.where(squares > 0, squares, 1.0)).astype(v.dtype)
        return sparse.diags_array(inverse) @ v if sparse.issparse(v) else v * inverse[:, None]

    def pull(self, points: Points, gradient: np.ndarray) -> np.ndarray:
        """Return the gradient in x where that in x / |x| is given: its part across x, divided by |x|; 0 at x = 0."""
        u = points.through(self).vectors
        u = (u.toarray() if sparse.issparse(u) else u)[:, :, None]
        across = gradient - u * (u * gradient).sum(axis=1, keepdims=True)
        length = points.values(norms)[:, None, None]
        return np.divide(across, length, out=np.zeros_like(across), where=length > 0)
