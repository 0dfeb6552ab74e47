"""The squared error (M11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.losses.base import Loss


@dataclass(frozen=True)
class Squared(Loss):
    r"""Half the square of the error, the loss of ridge regression; its best constant is the mean.

    .. math:: L(y, f) = \tfrac12 (f - y)^2, \qquad y \in \mathbb R

    - derivative: f - y
    - curvature: 1
    - conjugate: L*(y, u) = u y + u²/2
    - prox: (f + step y) / (1 + step)

    Examples
    --------
    >>> Squared().value(1.0, [1.0, 2.0, -1.0])
    array([0. , 0.5, 2. ])
    """

    target = "real"
    smooth = True

    @np.errstate(over="ignore")
    def value(self, y: Any, f: Any) -> np.ndarray:
        return 0.5 * np.square(np.subtract(f, y))

    def derivative(self, y: Any, f: Any) -> np.ndarray:
        return np.subtract(f, y, dtype=float)

    def curvature(self, y: Any, f: Any) -> np.ndarray:
        return np.ones(np.broadcast_shapes(np.shape(y), np.shape(f)))

    @np.errstate(over="ignore")
    def conjugate(self, y: Any, u: Any) -> np.ndarray:
        return np.multiply(u, y + np.multiply(0.5, u))

    def prox(self, y: Any, f: Any, step: Any) -> np.ndarray:
        total = np.add(1.0, step)
        return np.divide(f, total) + y * np.divide(step, total)
