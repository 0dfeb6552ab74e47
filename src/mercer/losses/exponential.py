"""The loss of boosting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, wrightomega, xlogy

from mercer.losses.base import Loss


@dataclass(frozen=True)
class Exponential(Loss):
    r"""The exponential of the margin missed: the loss of AdaBoost, and the harshest on outliers.

    .. math:: L(y, f) = e^{-y f}, \qquad y \in \{-1, 1\}

    Beyond -y f = 709 it is larger than the largest float, and infinite.

    - derivative: -y exp(-y f)
    - curvature: exp(-y f)
    - conjugate: L*(y, u) = p log p - p at p = -y u >= 0, else infinite
    - prox: y f + W(step exp(-y f)) is y times it, with W of Lambert
    - inverse link: 1 / (1 + exp(-2 f)), the probability of +1 for which f is the best prediction

    Examples
    --------
    >>> Exponential().value(1.0, [0.0, 1000.0, -1000.0])
    array([ 1.,  0., inf])
    """

    target = "label"
    smooth = True

    @np.errstate(over="ignore")
    def value(self, y: Any, f: Any) -> np.ndarray:
        return np.exp(-np.multiply(y, f, dtype=float))

    def derivative(self, y: Any, f: Any) -> np.ndarray:
        return -np.multiply(y, self.value(y, f))

    def curvature(self, y: Any, f: Any) -> np.ndarray:
        return self.value(y, f)

    @np.errstate(over="ignore")
    def conjugate(self, y: Any, u: Any) -> np.ndarray:
        p = -np.multiply(y, u, dtype=float)
        inside = p >= 0.0
        p = np.where(inside, p, 0.0)
        return np.where(inside, xlogy(p, p / np.e), np.inf)

    @np.errstate(divide="ignore")
    def prox(self, y: Any, f: Any, step: Any) -> np.ndarray:
        m = np.multiply(y, f, dtype=float)
        log_step = np.log(step)
        growth = wrightomega(log_step - m)  # W(step exp(-m)) without the exponential
        # The growth is step exp(-g); where it is large, the sum would cancel and the logarithm does not.
        return np.multiply(y, np.where(growth > 1.0, log_step - np.log(growth), m + growth))

    def inverse_link(self, f: Any) -> np.ndarray:
        return expit(np.multiply(2.0, f))
