"""The Laplacian kernel, of the L1 distance."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from mercer.features.spectral import IndependentLaw
from mercer.kernels.base import kernel
from mercer.kernels.vectors.stationary import Radial, Scale, spread, upper_triangle
from mercer.points import Block, Pair, Points


@kernel
class Laplacian(Radial):
    r"""The Laplacian kernel.

    .. math:: k(x, z) = \exp\Bigl(-\sum_j \frac{|x_j - z_j|}{s_j}\Bigr)

    Parameters
    ----------
    scale
        s: a number, one per feature, "auto" (the number of features times the deviation of the data) or
        "median" (the median L1 distance).

    Examples
    --------
    >>> from mercer.kernels import Laplacian
    >>> Laplacian(scale=1.0)([[0.0], [1.0]]).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    scale: Scale = "auto"

    _because = "Bochner", "the characteristic function of independent Cauchy frequencies with width 1/scale."

    def of(self, pair: Pair) -> Any:
        return pair.xp.exp(-pair.l1(self.scale))

    def _auto_scale(self, points: Points) -> float:
        deviation = float(np.sqrt(spread(points)))
        return points.width * (deviation if deviation > 0 else 1.0)

    def _distances(self, points: Points) -> np.ndarray:
        return upper_triangle(Block(points, points).l1())

    def spectral_law(self, dim: int) -> Any:
        return IndependentLaw(dim, stats.cauchy(), self.scale)
