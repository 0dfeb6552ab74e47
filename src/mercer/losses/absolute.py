"""The absolute error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.losses.base import Box, Loss


@dataclass(frozen=True)
class Absolute(Loss):
    r"""The absolute error; its best constant is the median, which no outlier can move far.

    .. math:: L(y, f) = |f - y|, \qquad y \in \mathbb R

    - derivative: the sign of f - y
    - conjugate: L*(y, u) = u y for \|u\| <= 1, else infinite
    - box: linear = -y, width = 0, upper = lower = 1
    - prox: f moves towards y by at most `step`

    Examples
    --------
    >>> Absolute().value(1.0, [1.0, 2.0, -1.0])
    array([0., 1., 2.])
    """

    target = "real"

    def value(self, y: Any, f: Any) -> np.ndarray:
        return np.abs(np.subtract(f, y))

    def derivative(self, y: Any, f: Any) -> np.ndarray:
        return np.sign(np.subtract(f, y, dtype=float))

    @np.errstate(over="ignore")
    def conjugate(self, y: Any, u: Any) -> np.ndarray:
        return np.where(np.abs(u) <= 1.0, np.multiply(u, y), np.inf)

    def prox(self, y: Any, f: Any, step: Any) -> np.ndarray:
        t = np.subtract(f, y)
        return np.where(np.abs(t) <= step, y, f - np.sign(t) * step)

    def box(self, y: Any) -> Box:
        y = np.asarray(y, dtype=float)
        one = np.ones_like(y)
        return Box(-y, np.zeros_like(y), one, one)
