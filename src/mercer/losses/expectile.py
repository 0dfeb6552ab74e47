"""The loss of expectile regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.losses.base import Loss, check_quantile


@dataclass(frozen=True)
class Expectile(Loss):
    r"""The tilted squared error; its best constant is an expectile (Newey and Powell, 1987).

    .. math:: L(y, f) = |q - [y < f]|\,(f - y)^2, \qquad y \in \mathbb R

    It is to `Squared`, which it is at q = 1/2, what `Pinball` is to `Absolute`. Below, w is q where f <= y, and 1 - q
    where f > y.

    - derivative: 2 w (f - y)
    - curvature: 2 w
    - conjugate: L*(y, u) = u y + u² / (4 w), with w = q where u <= 0, and 1 - q where u > 0
    - prox: (f + 2 w step y) / (1 + 2 w step)

    Parameters
    ----------
    quantile
        The share q of the pull that comes from the truths above the prediction, between 0 and 1.

    Examples
    --------
    >>> Expectile(0.75).value(1.0, [1.0, 2.0, 0.0])
    array([0.  , 0.25, 0.75])
    """

    quantile: float = 0.5

    target = "real"
    smooth = True

    def __post_init__(self) -> None:
        check_quantile(self, self.quantile)

    @np.errstate(over="ignore")
    def value(self, y: Any, f: Any) -> np.ndarray:
        t = np.subtract(f, y, dtype=float)
        return self._weight(t) * np.square(t)

    def derivative(self, y: Any, f: Any) -> np.ndarray:
        t = np.subtract(f, y, dtype=float)
        return 2.0 * self._weight(t) * t

    def curvature(self, y: Any, f: Any) -> np.ndarray:
        return 2.0 * self._weight(np.subtract(f, y, dtype=float))

    @np.errstate(over="ignore")
    def conjugate(self, y: Any, u: Any) -> np.ndarray:
        u = np.asarray(u, dtype=float)
        return u * (y + u / (4.0 * self._weight(u)))

    def prox(self, y: Any, f: Any, step: Any) -> np.ndarray:
        pull = 2.0 * self._weight(np.subtract(f, y, dtype=float)) * step
        return f / (1.0 + pull) + y * (pull / (1.0 + pull))

    def _weight(self, t: np.ndarray) -> np.ndarray:
        return np.where(t > 0.0, 1.0 - self.quantile, self.quantile)
