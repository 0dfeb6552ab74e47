"""The hinge (M3, M4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.losses.base import Box, Loss


@dataclass(frozen=True)
class Hinge(Loss):
    r"""The loss of the soft margin: nothing outside the margin, then linear.

    .. math:: L(y, f) = \max(0, 1 - y f), \qquad y \in \{-1, 1\}

    It is the slack of the soft margin: 1 on the hyperplane, 3 two margins beyond it.

    - derivative: -y where y f < 1, else 0 (at the kink any number between)
    - conjugate: L*(y, u) = y u for -1 <= y u <= 0, else infinite
    - box: linear = -y, width = 0, upper = 1 where y = 1, lower = 1 where y = -1, else 0
    - prox: y f moves towards 1 by at most `step`, and stays where it is beyond

    Examples
    --------
    >>> Hinge().value(1.0, [2.0, 1.0, 0.0, -2.0])
    array([0., 0., 1., 3.])
    """

    target = "label"

    def value(self, y: Any, f: Any) -> np.ndarray:
        return np.maximum(0.0, 1.0 - np.multiply(y, f))

    def derivative(self, y: Any, f: Any) -> np.ndarray:
        return np.where(np.multiply(y, f) < 1.0, np.negative(y), 0.0)

    def conjugate(self, y: Any, u: Any) -> np.ndarray:
        s = np.multiply(y, u)
        return np.where((s >= -1.0) & (s <= 0.0), s, np.inf)

    def prox(self, y: Any, f: Any, step: Any) -> np.ndarray:
        m = np.multiply(y, f)
        return np.multiply(y, np.maximum(m, np.minimum(m + step, 1.0)))

    def box(self, y: Any) -> Box:
        y = np.asarray(y, dtype=float)
        return Box(-y, np.zeros_like(y), np.where(y > 0.0, 1.0, 0.0), np.where(y < 0.0, 1.0, 0.0))
