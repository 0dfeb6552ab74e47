"""Kernels of the angle between two vectors: the cosine, and infinitely wide layers of units."""

from __future__ import annotations

import math
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


@kernel
class ArcCosine(Kernel):
    r"""An infinitely wide random layer (Cho and Saul, 2009).

    .. math:: k(x, z) = \tfrac{1}{\pi} (|x| |z|)^n J_n(\theta), \quad \theta = \angle(x, z)

    with :math:`J_0 = \pi - \theta`, :math:`J_1 = \sin\theta + (\pi - \theta)\cos\theta`,
    :math:`J_2 = 3 \sin\theta\cos\theta + (\pi - \theta)(1 + 2\cos^2\theta)`.

    Parameters
    ----------
    order
        n: 0 for threshold units, 1 for rectified linear ones, 2 for their squares.

    Examples
    --------
    >>> from mercer.kernels import ArcCosine
    >>> ArcCosine(order=0)([[1.0, 0.0], [0.0, 1.0]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    order: int = 1

    _because = "feature map", "twice the mean over normal w of h(w.x) h(w.z), with h(t) = max(t, 0)^order."

    def _validate(self) -> None:
        if self.order not in (0, 1, 2):
            raise ValueError(f"order of ArcCosine must be 0, 1 or 2; it is {self.order!r}.")

    def of(self, pair: Pair) -> Any:
        xp = pair.xp
        unit = pair.through(UnitVectors())
        apart, together = unit.sqdist(), unit.sqsum
        # Kahan's formula: exact near 0 and pi, where the arc cosine of an inner product loses half the digits.
        rest = math.pi - 2 * xp.atan2(xp.sqrt(apart), xp.sqrt(together))
        if self.order == 0:
            return rest / math.pi
        c, s = (together - apart) / 4, xp.sqrt(apart) * xp.sqrt(together) / 2
        if self.order == 1:
            return pair.outer(norms) * (s + rest * c) / math.pi
        return pair.outer(norms) ** 2 * (3 * s * c + rest * (1 + 2 * c * c)) / math.pi
