"""Kernels on histograms: chi-squared and intersection."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.kernels.base import Kernel, check_number, kernel
from mercer.points import Pair, Points
from mercer.points.formulas.dual import number


@kernel
class ChiSquared(Kernel):
    r"""The exponential chi-squared kernel, for non-negative features such as counts.

    .. math:: k(x, z) = \exp\Bigl(-\gamma \sum_j \frac{(x_j - z_j)^2}{x_j + z_j}\Bigr)

    Parameters
    ----------
    gamma
        The rate.

    Examples
    --------
    >>> from mercer.kernels import ChiSquared
    >>> ChiSquared(gamma=1.0)([[1.0, 0.0], [0.0, 1.0]]).round(4)
    array([[1.    , 0.1353],
           [0.1353, 1.    ]])
    """

    gamma: float = 1.0

    _because = (
        "Schoenberg",
        "(x - z)^2 / (x + z) = x + z - 4 x z / (x + z) is conditionally negative definite for x, z >= 0.",
    )

    def _validate(self) -> None:
        check_number(self, "gamma", self.gamma)

    def of(self, pair: Pair) -> Any:
        return pair.xp.exp(-number(self.gamma) * pair.through(non_negative).chi2)


@kernel
class Intersection(Kernel):
    r"""The histogram intersection kernel, for non-negative features.

    .. math:: k(x, z) = \sum_j \min(x_j, z_j)

    On Python sets of hashable objects it is the number of common elements.

    Examples
    --------
    >>> from mercer.kernels import Intersection
    >>> Intersection()([[1.0, 2.0], [3.0, 0.0]])
    array([[3., 1.],
           [1., 3.]])
    >>> Intersection()([{"a", "b"}, {"b", "c"}])
    array([[2., 1.],
           [1., 2.]])
    """

    _because = "feature map", "min(x, z) is the integral over t >= 0 of 1[t < x] 1[t < z]."

    def of(self, pair: Pair) -> Any:
        return pair.common if pair.sets else pair.through(non_negative).minimum


def non_negative(points: Points) -> Any:
    """Return the vectors after checking that no coordinate is negative."""
    v = points.vectors
    low = float(v.data.min() if hasattr(v, "indptr") and v.nnz else v.min())
    if low < 0:
        row = (
            ""
            if not isinstance(v, np.ndarray)
            else f" at row {np.argwhere(v < 0)[0][0]}, column {np.argwhere(v < 0)[0][1]}"
        )
        raise ValueError(
            f"{points.name} contains {low:.6g}{row}; this kernel is positive semidefinite on non-negative "
            "features only. "
            "Shift or rescale them (sklearn.preprocessing.MinMaxScaler)."
        )
    return v
