"""The hinge (M3, M4), its square, the one with a rounded corner, and the loss that the perceptron descends (M1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.kernels.base import check_number
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


# -- the loss that the perceptron descends (M1) -----------------------------------------------------------


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
