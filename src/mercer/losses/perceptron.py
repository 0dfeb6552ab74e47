"""The loss that the perceptron descends (M1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.losses.base import Box, Loss


@dataclass(frozen=True)
class PerceptronLoss(Loss):
    r"""How far a point lies on the wrong side: the hinge without a margin.

    .. math:: L(y, f) = \max(0, -y f), \qquad y \in \{-1, 1\}

    - derivative: -y where y f <= 0, else 0. At f = 0, where any number between is a subgradient, the choice makes a
      step of gradient descent the perceptron's update on a mistake.
    - conjugate: L*(y, u) = 0 for -1 <= y u <= 0, else infinite
    - box: linear = width = 0, upper = 1 where y = 1, lower = 1 where y = -1, else 0
    - prox: y f moves towards 0 by at most `step` where it is negative

    Examples
    --------
    >>> PerceptronLoss().value(-1.0, [2.0, 1.0, 0.0, -2.0])
    array([2., 1., 0., 0.])
    """

    target = "label"

    def value(self, y: Any, f: Any) -> np.ndarray:
        return np.maximum(0.0, -np.multiply(y, f))

    def derivative(self, y: Any, f: Any) -> np.ndarray:
        return np.where(np.multiply(y, f) <= 0.0, np.negative(y), 0.0)

    def conjugate(self, y: Any, u: Any) -> np.ndarray:
        s = np.multiply(y, u)
        return np.where((s >= -1.0) & (s <= 0.0), 0.0, np.inf)

    def prox(self, y: Any, f: Any, step: Any) -> np.ndarray:
        m = np.multiply(y, f)
        return np.multiply(y, np.maximum(m, np.minimum(m + step, 0.0)))

    def box(self, y: Any) -> Box:
        y = np.asarray(y, dtype=float)
        zero = np.zeros_like(y)
        return Box(zero, zero, np.where(y > 0.0, 1.0, 0.0), np.where(y < 0.0, 1.0, 0.0))
