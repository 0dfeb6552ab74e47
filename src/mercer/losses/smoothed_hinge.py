"""The hinge with a rounded corner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.kernels.base import check_number
from mercer.losses.base import Loss


@dataclass(frozen=True)
class SmoothedHinge(Loss):
    r"""The hinge, with its corner replaced by a parabola (Rennie and Srebro, 2005).

    .. math:: L(y, f) = \begin{cases} 0 & y f \ge 1 \\ (1 - y f)^2 / (2 w) & 1 - w < y f < 1 \\
              1 - y f - w/2 & y f \le 1 - w \end{cases}, \qquad y \in \{-1, 1\}

    It lies below `Hinge` by at most w/2.

    - derivative: -y (1 - y f) / w, the fraction cut off at 0 and 1
    - curvature: 1/w where 1 - w < y f < 1, else 0
    - conjugate: L*(y, u) = y u + w u²/2 for -1 <= y u <= 0, else infinite
    - prox: y f grows by step (1 - y f) / (w + step), the fraction cut off at 0 and 1

    Parameters
    ----------
    width
        The length w of the rounded part, above 0.

    Examples
    --------
    >>> SmoothedHinge(0.5).value(1.0, [2.0, 1.0, 0.5, 0.0])
    array([0.  , 0.  , 0.25, 0.75])
    """

    width: float = 1.0

    target = "label"
    smooth = True

    def __post_init__(self) -> None:
        check_number(self, "width", self.width)

    def value(self, y: Any, f: Any) -> np.ndarray:
        slack = np.maximum(0.0, 1.0 - np.multiply(y, f))
        inner = np.minimum(slack, self.width)
        return (inner / self.width) * (slack - 0.5 * inner)

    def derivative(self, y: Any, f: Any) -> np.ndarray:
        slack = np.clip(1.0 - np.multiply(y, f), 0.0, self.width)
        return -np.multiply(y, slack / self.width)

    def curvature(self, y: Any, f: Any) -> np.ndarray:
        m = np.multiply(y, f)
        return np.where((m > 1.0 - self.width) & (m < 1.0), 1.0 / self.width, 0.0)

    def conjugate(self, y: Any, u: Any) -> np.ndarray:
        s = np.multiply(y, u)
        inside = (s >= -1.0) & (s <= 0.0)
        s = np.where(inside, s, 0.0)
        return np.where(inside, s + 0.5 * self.width * s**2, np.inf)

    def prox(self, y: Any, f: Any, step: Any) -> np.ndarray:
        m = np.multiply(y, f)
        return np.multiply(y, m + step * np.clip((1.0 - m) / np.add(self.width, step), 0.0, 1.0))
