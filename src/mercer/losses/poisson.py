"""The loss of Poisson regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import kl_div, wrightomega, xlogy

from mercer.losses.base import Loss


@dataclass(frozen=True)
class Poisson(Loss):
    r"""Half the deviance of a count whose mean is exp(f).

    .. math:: L(y, f) = e^f - y f + (y \log y - y), \qquad y \ge 0

    The constant makes the loss 0 at f = log y; it is minus the log-likelihood up to a term of y. Beyond f = 709 it is
    larger than the largest float, and infinite.

    - derivative: exp(f) - y
    - curvature: exp(f)
    - conjugate: L*(y, u) = s log s - s - (y log y - y) at s = u + y >= 0, else infinite
    - prox: a - W(step exp(a)) with a = f + step y and W of Lambert
    - inverse link: exp(f), the mean

    Examples
    --------
    >>> import numpy as np
    >>> Poisson().value([0.0, 1.0, 5.0], [-np.inf, 0.0, np.log(5.0)])
    array([0., 0., 0.])
    """

    target = "count"
    smooth = True

    @np.errstate(over="ignore", invalid="ignore")
    def value(self, y: Any, f: Any) -> np.ndarray:
        y, f = _counts(y), np.asarray(f, dtype=float)
        log_y = np.log(np.where(y > 0.0, y, 1.0))
        off = np.where(y > 0.0, f - log_y, 0.0)
        # Near the minimum the terms of the definition cancel; far above it expm1 overflows sooner than exp(f).
        mean = np.exp(f)
        above = np.where(np.isinf(mean), np.inf, mean - y * (1.0 + off))
        return np.where((y > 0.0) & (off < 1.0), y * (np.expm1(off) - off), above)

    @np.errstate(over="ignore")
    def derivative(self, y: Any, f: Any) -> np.ndarray:
        return np.exp(np.asarray(f, dtype=float)) - _counts(y)

    @np.errstate(over="ignore")
    def curvature(self, y: Any, f: Any) -> np.ndarray:
        return np.exp(np.asarray(f, dtype=float)) + 0.0 * _counts(y)

    @np.errstate(over="ignore", invalid="ignore")
    def conjugate(self, y: Any, u: Any) -> np.ndarray:
        y, u = _counts(y), np.asarray(u, dtype=float)
        s = np.maximum(u + y, 0.0)
        known = np.where(y > 0.0, y, 1.0)
        near = kl_div(s, known) + (s - known) * np.log(known)  # far from y nothing cancels, and s / y may overflow
        apart = np.where(s < 1e3 * known, near, xlogy(s, s / np.e) + known - xlogy(known, known))
        return np.where((u + y < 0.0) | np.isinf(u), np.inf, np.where(y > 0.0, apart, xlogy(s, s / np.e)))

    @np.errstate(divide="ignore")
    def prox(self, y: Any, f: Any, step: Any) -> np.ndarray:
        a = f + np.multiply(step, _counts(y))
        log_step = np.log(step)
        fall = wrightomega(a + log_step)  # W(step exp(a)) without the exponential
        # The fall is step exp(g); where it is large, the difference would cancel and the logarithm does not.
        return np.where(fall > 1.0, np.log(fall) - log_step, a - fall)

    @np.errstate(over="ignore")
    def inverse_link(self, f: Any) -> np.ndarray:
        return np.exp(np.asarray(f, dtype=float))


def _counts(y: Any) -> np.ndarray:
    y = np.asarray(y, dtype=float)
    if not np.all(y >= 0.0):
        raise ValueError(f"y of Poisson must be counts, numbers >= 0; one is {y[~(y >= 0.0)].flat[0]:g}.")
    return y
