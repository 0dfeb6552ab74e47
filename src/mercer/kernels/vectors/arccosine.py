"""Arc-cosine kernels: infinitely wide layers of threshold, rectified and squared units."""

from __future__ import annotations

import math
from typing import Any

from mercer.kernels.base import Kernel, kernel
from mercer.kernels.vectors.cosine import UnitVectors
from mercer.points import Pair
from mercer.points.formulas.pair import norms


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
