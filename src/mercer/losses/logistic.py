"""The losses of a label whose log-odds are predicted: of logistic regression, and of boosting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, wrightomega, xlog1py, xlogy

from mercer.losses.base import Loss
from mercer.losses.numeric import increasing_root


@dataclass(frozen=True)
class Logistic(Loss):
    r"""Minus the log-likelihood of a label whose log-odds are f.

    .. math:: L(y, f) = \log(1 + e^{-y f}), \qquad y \in \{-1, 1\}

    With p = 1 / (1 + exp(y f)), the probability of the other label:

    - derivative: -y p
    - curvature: p (1 - p)
    - conjugate: L*(y, u) = p log p + (1 - p) log(1 - p) at p = -y u between 0 and 1, else infinite
    - prox: the root of g - step y / (1 + exp(y g)) = f, found between bounds
    - inverse link: 1 / (1 + exp(-f)), the probability of +1

    Examples
    --------
    >>> Logistic().value(1.0, [0.0, 1000.0, -1000.0]).round(4)
    array([6.931e-01, 0.000e+00, 1.000e+03])
    >>> Logistic().inverse_link([0.0, 1000.0, -1000.0])
    array([0.5, 1. , 0. ])
    """

    target = "label"
    smooth = True

    def value(self, y: Any, f: Any) -> np.ndarray:
        return np.logaddexp(0.0, -np.multiply(y, f))

    def derivative(self, y: Any, f: Any) -> np.ndarray:
        return -np.multiply(y, expit(-np.multiply(y, f)))

    def curvature(self, y: Any, f: Any) -> np.ndarray:
        m = np.multiply(y, f)
        return expit(m) * expit(-m)

    def conjugate(self, y: Any, u: Any) -> np.ndarray:
        p = -np.multiply(y, u)
        inside = (p >= 0.0) & (p <= 1.0)
        p = np.where(inside, p, 0.0)
        return np.where(inside, xlogy(p, p) + xlog1py(1.0 - p, -p), np.inf)

    def prox(self, y: Any, f: Any, step: Any) -> np.ndarray:
        step = np.asarray(step, dtype=float)
        start = np.asarray(np.multiply(y, f), dtype=float)

        def excess(m: np.ndarray) -> np.ndarray:
            return (m - start) - step * expit(-m)

        return np.multiply(y, increasing_root(excess, start, start + step * expit(-start), np.abs(start)))

    def inverse_link(self, f: Any) -> np.ndarray:
        return expit(np.asarray(f, dtype=float))


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
        return np.where(inside, xlogy(p, np.maximum(p / np.e, np.finfo(float).smallest_subnormal)), np.inf)

    @np.errstate(divide="ignore")
    def prox(self, y: Any, f: Any, step: Any) -> np.ndarray:
        m = np.multiply(y, f, dtype=float)
        log_step = np.log(step)
        growth = wrightomega(log_step - m)  # W(step exp(-m)) without the exponential
        # The growth is step exp(-g); where it is large, the sum would cancel and the logarithm does not.
        return np.multiply(y, np.where(growth > 1.0, log_step - np.log(growth), m + growth))

    def inverse_link(self, f: Any) -> np.ndarray:
        return expit(np.multiply(2.0, f))
