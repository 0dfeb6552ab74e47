"""The loss of logistic regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, xlog1py, xlogy

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
