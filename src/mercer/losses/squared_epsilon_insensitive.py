"""The squared error beyond a tube."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.kernels.base import check_number
from mercer.losses.base import Loss


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(Loss):
    r"""The square of the error beyond a tube of half-width epsilon; the squared error where epsilon is 0.

    .. math:: L(y, f) = \max(0, |f - y| - \varepsilon)^2, \qquad y \in \mathbb R

    - derivative: 2 sign(f - y) max(0, \|f - y\| - epsilon)
    - curvature: 2 where \|f - y\| >= epsilon, else 0
    - conjugate: L*(y, u) = u y + epsilon \|u\| + u²/4
    - prox: the distance from the tube is divided by 1 + 2 step

    Parameters
    ----------
    epsilon
        The half-width of the tube, at least 0.

    Examples
    --------
    >>> SquaredEpsilonInsensitive(0.5).value(1.0, [1.0, 1.5, 3.0])
    array([0.  , 0.  , 2.25])
    """

    epsilon: float = 0.1

    target = "real"
    smooth = True

    def __post_init__(self) -> None:
        check_number(self, "epsilon", self.epsilon, closed=True)

    @np.errstate(over="ignore")
    def value(self, y: Any, f: Any) -> np.ndarray:
        return np.maximum(0.0, np.abs(np.subtract(f, y)) - self.epsilon) ** 2

    def derivative(self, y: Any, f: Any) -> np.ndarray:
        t = np.subtract(f, y)
        return 2.0 * np.sign(t) * np.maximum(0.0, np.abs(t) - self.epsilon)

    def curvature(self, y: Any, f: Any) -> np.ndarray:
        return np.where(np.abs(np.subtract(f, y)) >= self.epsilon, 2.0, 0.0)

    @np.errstate(over="ignore")
    def conjugate(self, y: Any, u: Any) -> np.ndarray:
        return np.multiply(u, y + np.multiply(0.25, u)) + self.epsilon * np.abs(u)

    def prox(self, y: Any, f: Any, step: Any) -> np.ndarray:
        t = np.subtract(f, y)
        edge = y + np.sign(t) * self.epsilon
        pull = np.multiply(2.0, step)
        return np.where(np.abs(t) <= self.epsilon, f, f / (1.0 + pull) + edge * (pull / (1.0 + pull)))
