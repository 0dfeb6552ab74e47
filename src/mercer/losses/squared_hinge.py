"""The squared hinge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.losses.base import Loss


@dataclass(frozen=True)
class SquaredHinge(Loss):
    r"""The square of the hinge: differentiable, and harder on points far on the wrong side.

    .. math:: L(y, f) = \max(0, 1 - y f)^2, \qquad y \in \{-1, 1\}

    - derivative: -2 y max(0, 1 - y f)
    - curvature: 2 where y f < 1, else 0
    - conjugate: L*(y, u) = y u + u²/4 for y u <= 0, else infinite
    - prox: y f becomes (y f + 2 step) / (1 + 2 step) where y f < 1

    Examples
    --------
    >>> SquaredHinge().value(1.0, [2.0, 1.0, 0.0, -2.0])
    array([0., 0., 1., 9.])
    """

    target = "label"
    smooth = True

    @np.errstate(over="ignore")
    def value(self, y: Any, f: Any) -> np.ndarray:
        return np.maximum(0.0, 1.0 - np.multiply(y, f)) ** 2

    def derivative(self, y: Any, f: Any) -> np.ndarray:
        return -2.0 * np.multiply(y, np.maximum(0.0, 1.0 - np.multiply(y, f)))

    def curvature(self, y: Any, f: Any) -> np.ndarray:
        return np.where(np.multiply(y, f) < 1.0, 2.0, 0.0)

    @np.errstate(over="ignore")
    def conjugate(self, y: Any, u: Any) -> np.ndarray:
        s = np.multiply(y, u)
        return np.where(s <= 0.0, s * (1.0 + s / 4.0), np.inf)

    def prox(self, y: Any, f: Any, step: Any) -> np.ndarray:
        m = np.multiply(y, f)
        pull = np.multiply(2.0, step)
        return np.multiply(y, np.where(m < 1.0, (m + pull) / (1.0 + pull), m))
