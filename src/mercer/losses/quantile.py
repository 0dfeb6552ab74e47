"""The losses of quantile, median and expectile regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.kernels.base import check_number
from mercer.losses.base import Box, Loss


@dataclass(frozen=True)
class _Tilted(Loss):
    """A loss that counts errors to one side more."""

    quantile: float = 0.5

    target = "real"

    def __post_init__(self) -> None:
        check_number(self, "quantile", self.quantile)
        if self.quantile >= 1:
            raise ValueError(
                f"quantile of {type(self).__name__} must be < 1; it is {self.quantile!r}. The median is 0.5."
            )


@dataclass(frozen=True)
class Pinball(_Tilted):
    r"""The tilted absolute error; its best constant is a quantile (Koenker and Bassett, 1978).

    .. math:: L(y, f) = \max(q\,(y - f),\ (1 - q)(f - y)), \qquad y \in \mathbb R

    A prediction that is too low costs q per unit, one that is too high 1 - q. At q = 1/2 it is half of `Absolute`.

    - derivative: -q where f < y, 1 - q where f > y, 0 where they are equal
    - conjugate: L*(y, u) = u y for -q <= u <= 1 - q, else infinite
    - box: linear = -y, width = 0, upper = q, lower = 1 - q
    - prox: f moves towards y, by at most q `step` from below and (1 - q) `step` from above

    Parameters
    ----------
    quantile
        The share q of truths that should lie below the prediction, between 0 and 1.

    Examples
    --------
    >>> Pinball(0.75).value(1.0, [1.0, 2.0, 0.0])
    array([0.  , 0.25, 0.75])
    """

    def value(self, y: Any, f: Any) -> np.ndarray:
        t = np.subtract(f, y, dtype=float)
        return np.maximum(-self.quantile * t, (1.0 - self.quantile) * t)

    def derivative(self, y: Any, f: Any) -> np.ndarray:
        t = np.subtract(f, y, dtype=float)
        return np.where(t > 0.0, 1.0 - self.quantile, np.where(t < 0.0, -self.quantile, 0.0))

    @np.errstate(over="ignore")
    def conjugate(self, y: Any, u: Any) -> np.ndarray:
        u = np.asarray(u, dtype=float)
        return np.where((u >= -self.quantile) & (u <= 1.0 - self.quantile), u * y, np.inf)

    def prox(self, y: Any, f: Any, step: Any) -> np.ndarray:
        t = np.subtract(f, y)
        up, down = np.multiply(self.quantile, step), np.multiply(1.0 - self.quantile, step)
        return np.where(t > down, f - down, np.where(t < -up, f + up, y))

    def box(self, y: Any) -> Box:
        y = np.asarray(y, dtype=float)
        return Box(-y, np.zeros_like(y), np.full_like(y, self.quantile), np.full_like(y, 1.0 - self.quantile))


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


@dataclass(frozen=True)
class Expectile(_Tilted):
    r"""The tilted squared error; its best constant is an expectile (Newey and Powell, 1987).

    .. math:: L(y, f) = |q - [y < f]|\,(f - y)^2, \qquad y \in \mathbb R

    It is to `Squared`, which it is at q = 1/2, what `Pinball` is to `Absolute`. Below, w is q where f <= y, and 1 - q
    where f > y.

    - derivative: 2 w (f - y)
    - curvature: 2 w
    - conjugate: L*(y, u) = u y + u² / (4 w), with w = q where u <= 0, and 1 - q where u > 0
    - prox: (f + 2 w step y) / (1 + 2 w step)

    Parameters
    ----------
    quantile
        The share q of the pull that comes from the truths above the prediction, between 0 and 1.

    Examples
    --------
    >>> Expectile(0.75).value(1.0, [1.0, 2.0, 0.0])
    array([0.  , 0.25, 0.75])
    """

    smooth = True

    @np.errstate(over="ignore")
    def value(self, y: Any, f: Any) -> np.ndarray:
        t = np.subtract(f, y, dtype=float)
        return self._weight(t) * np.square(t)

    def derivative(self, y: Any, f: Any) -> np.ndarray:
        t = np.subtract(f, y, dtype=float)
        return 2.0 * self._weight(t) * t

    def curvature(self, y: Any, f: Any) -> np.ndarray:
        return 2.0 * self._weight(np.subtract(f, y, dtype=float))

    @np.errstate(over="ignore")
    def conjugate(self, y: Any, u: Any) -> np.ndarray:
        u = np.asarray(u, dtype=float)
        return u * (y + u / (4.0 * self._weight(u)))

    def prox(self, y: Any, f: Any, step: Any) -> np.ndarray:
        pull = 2.0 * self._weight(np.subtract(f, y, dtype=float)) * step
        return f / (1.0 + pull) + y * (pull / (1.0 + pull))

    def _weight(self, t: np.ndarray) -> np.ndarray:
        return np.where(t > 0.0, 1.0 - self.quantile, self.quantile)
