"""The losses of support vector regression: errors beyond a tube, their squares, and the largest ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.kernels.base import check_integer, check_number
from mercer.losses.base import Box, Loss


@dataclass(frozen=True)
class _Tube(Loss):
    """A loss of errors beyond a tube."""

    epsilon: float = 0.1

    target = "real"

    def __post_init__(self) -> None:
        check_number(self, "epsilon", self.epsilon, closed=True)


@dataclass(frozen=True)
class EpsilonInsensitive(_Tube):
    r"""The absolute error beyond a tube of half-width epsilon.

    .. math:: L(y, f) = \max(0, |f - y| - \varepsilon), \qquad y \in \mathbb R

    - derivative: the sign of f - y outside the tube, 0 inside
    - conjugate: L*(y, u) = u y + epsilon |u| for \|u\| <= 1, else infinite
    - box: linear = -y, width = epsilon, upper = lower = 1
    - prox: f moves towards the tube by at most `step`

    Parameters
    ----------
    epsilon
        The half-width of the tube, at least 0.

    Examples
    --------
    >>> EpsilonInsensitive(0.5).value(1.0, [1.0, 1.5, 3.0])
    array([0. , 0. , 1.5])
    """

    def value(self, y: Any, f: Any) -> np.ndarray:
        return np.maximum(0.0, np.abs(np.subtract(f, y)) - self.epsilon)

    def derivative(self, y: Any, f: Any) -> np.ndarray:
        t = np.subtract(f, y)
        return np.where(np.abs(t) > self.epsilon, np.sign(t), 0.0)

    @np.errstate(over="ignore")
    def conjugate(self, y: Any, u: Any) -> np.ndarray:
        size = np.abs(u)
        return np.where(size <= 1.0, np.multiply(u, y) + self.epsilon * size, np.inf)

    def prox(self, y: Any, f: Any, step: Any) -> np.ndarray:
        t = np.subtract(f, y)
        beyond = np.abs(t) - self.epsilon
        edge = y + np.sign(t) * self.epsilon
        return np.where(beyond <= 0.0, f, np.where(beyond <= step, edge, f - np.sign(t) * step))

    def box(self, y: Any) -> Box:
        y = np.asarray(y, dtype=float)
        one = np.ones_like(y)
        return Box(-y, np.full_like(y, self.epsilon), one, one)


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(_Tube):
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

    smooth = True

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


_ROUNDING = 1e-12  # of the sum of |u|, by which a point on the rim of the conjugate's domain may lie outside


@dataclass(frozen=True)
class LargestErrors(Loss):
    r"""The sum of the k largest absolute errors; the largest alone for k = 1, and `Absolute` for k = n.

    .. math:: L(y, f) = \max_{|S| = k} \sum_{i \in S} |f_i - y_i|
              = \min_\varepsilon \; k \varepsilon + \sum_i \max(0, |f_i - y_i| - \varepsilon)

    It depends on all predictions together, as the representer theorem allows. The second form makes it the loss of
    `NuSVR` with nu = k / n. `value` gives the k largest errors, and 0 for the others; their sum is the loss.

    - derivative: the sign of f - y at the k largest errors, 0 at the others
    - conjugate: L*(y, u) = u'y for max \|u_i\| <= 1 and sum \|u_i\| <= k, else infinite
    - box: linear = -y, width = 0, upper = lower = 1, total = k

    There must be an offset, and samples have equal weights.

    Parameters
    ----------
    count
        k, at least 1; of fewer samples all errors count.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, KernelMachine
    >>> LargestErrors(2).value(0.0, [1.0, -3.0, 2.0])
    array([0., 3., 2.])
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.cos(40 * X[:, 0])
    >>> model = KernelMachine(RBF(1.0), loss=LargestErrors(1), penalty=0.1).fit(X, y)
    >>> model.certificate_.verify(X, y).converged
    True
    """

    count: int = 1

    target = "real"
    joint = True

    def __post_init__(self) -> None:
        check_integer(self, "count", self.count, 1)

    def _among(self, errors: np.ndarray) -> np.ndarray:
        """Return which errors are among the largest; of equal ones the first."""
        largest = np.zeros(errors.shape, bool)
        largest[np.argsort(-errors, kind="stable")[: int(self.count)]] = True
        return largest

    def value(self, y: Any, f: Any) -> np.ndarray:
        errors = np.abs(np.subtract(f, y, dtype=float))
        return np.where(self._among(errors), errors, 0.0)

    def derivative(self, y: Any, f: Any) -> np.ndarray:
        t = np.subtract(f, y, dtype=float)
        return np.where(self._among(np.abs(t)), np.sign(t), 0.0)

    @np.errstate(over="ignore")
    def conjugate(self, y: Any, u: Any) -> np.ndarray:
        size = np.abs(u)
        inside = size.max(initial=0.0) <= 1.0 and float(size.sum()) <= self.count * (1.0 + _ROUNDING)
        return np.multiply(u, y) if inside else np.full(np.broadcast_shapes(np.shape(u), np.shape(y)), np.inf)

    def box(self, y: Any) -> Box:
        y = np.asarray(y, dtype=float)
        one = np.ones_like(y)
        return Box(-y, np.zeros_like(y), one, one, float(min(int(self.count), y.size)))
