"""Huber's loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.kernels.base import check_number
from mercer.losses.base import Loss


@dataclass(frozen=True)
class Huber(Loss):
    r"""The squared error for small errors and the absolute error for large ones (Huber, 1964).

    .. math:: L(y, f) = \begin{cases} \tfrac12 (f - y)^2 & |f - y| \le \delta \\
              \delta\,(|f - y| - \tfrac12 \delta) & \text{else} \end{cases}, \qquad y \in \mathbb R

    For a large delta it is `Squared`, for a small one delta times `Absolute`.

    - derivative: f - y, cut off at -delta and delta
    - curvature: 1 where \|f - y\| <= delta, else 0
    - conjugate: L*(y, u) = u y + u²/2 for \|u\| <= delta, else infinite
    - prox: (f + step y) / (1 + step), or step delta closer to y where that is not as far

    Parameters
    ----------
    delta
        The error at which the loss becomes linear, above 0.

    Examples
    --------
    >>> Huber(1.0).value(1.0, [1.0, 2.0, -1.0])
    array([0. , 0.5, 1.5])
    """

    delta: float = 1.0

    target = "real"
    smooth = True

    def __post_init__(self) -> None:
        check_number(self, "delta", self.delta)

    @np.errstate(over="ignore")
    def value(self, y: Any, f: Any) -> np.ndarray:
        size = np.abs(np.subtract(f, y, dtype=float))
        inner = np.minimum(size, self.delta)
        return inner * (size - 0.5 * inner)

    def derivative(self, y: Any, f: Any) -> np.ndarray:
        return np.clip(np.subtract(f, y, dtype=float), -self.delta, self.delta)

    def curvature(self, y: Any, f: Any) -> np.ndarray:
        return np.where(np.abs(np.subtract(f, y)) <= self.delta, 1.0, 0.0)

    @np.errstate(over="ignore")
    def conjugate(self, y: Any, u: Any) -> np.ndarray:
        return np.where(np.abs(u) <= self.delta, np.multiply(u, y + np.multiply(0.5, u)), np.inf)

    def prox(self, y: Any, f: Any, step: Any) -> np.ndarray:
        total = np.add(1.0, step)
        t = np.subtract(f, y)
        inside = np.abs(t) / total <= self.delta
        far = f - np.sign(t) * self.delta * np.where(inside, 0.0, step)
        return np.where(inside, f / total + y * np.divide(step, total), far)
