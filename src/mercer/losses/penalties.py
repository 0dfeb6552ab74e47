"""Penalties: what the norm of a function costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from mercer.kernels.base import check_number


@runtime_checkable
class Penalty(Protocol):
    """An increasing function R(t) of the norm t >= 0 of a function, elementwise on arrays.

    Whatever has these two methods is one. The representer theorem asks only that R increases: the minimiser of
    `sum_i L(y_i, f(x_i)) + R(|f|)` is then a combination of the functions k(x_i, .). A penalty that is convex may have
    `conjugate(s)`, the supremum over t >= 0 of s t - R(t).

    Examples
    --------
    >>> from mercer.losses import Penalty
    >>> class Quartic:
    ...     def value(self, t):
    ...         return t**4
    ...     def derivative(self, t):
    ...         return 4 * t**3
    >>> isinstance(Quartic(), Penalty)
    True
    """

    def value(self, t: Any) -> np.ndarray:
        """Return R(t)."""

    def derivative(self, t: Any) -> np.ndarray:
        """Return dR/dt."""


@dataclass(frozen=True)
class _Multiple:
    """A multiple of a function of the norm."""

    strength: float = 1.0

    def __post_init__(self) -> None:
        check_number(self, "strength", self.strength, closed=True)


@dataclass(frozen=True)
class SquaredNorm(_Multiple):
    r"""The penalty of ridge regression and of support vector machines.

    .. math:: R(t) = \frac{\text{strength}}{2} t^2

    - derivative: strength t
    - conjugate: R*(s) = s² / (2 strength) for s >= 0, and 0 below

    Parameters
    ----------
    strength
        At least 0; 0 is no penalty at all.

    Examples
    --------
    >>> SquaredNorm(3.0).value([0.0, 2.0])
    array([0., 6.])
    """

    @np.errstate(over="ignore")
    def value(self, t: Any) -> np.ndarray:
        return (0.5 * self.strength) * np.asarray(t, dtype=float) * t

    @np.errstate(over="ignore")
    def derivative(self, t: Any) -> np.ndarray:
        return np.multiply(self.strength, t, dtype=float)

    @np.errstate(over="ignore", divide="ignore", invalid="ignore")
    def conjugate(self, s: Any) -> np.ndarray:
        s = np.maximum(s, 0.0)
        at = s / self.strength  # the norm with this slope; infinite without a penalty
        return np.where(s > 0.0, np.where(np.isinf(at), np.inf, at * (0.5 * s)), 0.0)


@dataclass(frozen=True)
class Norm(_Multiple):
    r"""The norm itself, which can make the whole function vanish.

    .. math:: R(t) = \text{strength} \cdot t

    - derivative: strength; at t = 0 the largest of the subgradients
    - conjugate: R*(s) = 0 for s <= strength, else infinite

    Parameters
    ----------
    strength
        At least 0; 0 is no penalty at all.

    Examples
    --------
    >>> Norm(3.0).value([0.0, 2.0])
    array([0., 6.])
    """

    @np.errstate(over="ignore")
    def value(self, t: Any) -> np.ndarray:
        return np.multiply(self.strength, t, dtype=float)

    def derivative(self, t: Any) -> np.ndarray:
        return np.full(np.shape(t), float(self.strength))

    def conjugate(self, s: Any) -> np.ndarray:
        return np.where(np.asarray(s) <= self.strength, 0.0, np.inf)


@dataclass(frozen=True)
class Ball:
    r"""A bound on the norm: free within the ball, forbidden outside (Ivanov's regularisation).

    .. math:: R(t) = 0 \text{ for } t \le \text{radius}, \qquad \infty \text{ beyond}

    - derivative: 0 up to the radius, infinite beyond
    - conjugate: R*(s) = radius s for s >= 0, and 0 below

    Parameters
    ----------
    radius
        The largest norm that is allowed, above 0.

    Examples
    --------
    >>> Ball(3.0).value([0.0, 3.0, 3.1])
    array([ 0.,  0., inf])
    """

    radius: float = 1.0

    def __post_init__(self) -> None:
        check_number(self, "radius", self.radius)

    def value(self, t: Any) -> np.ndarray:
        return np.where(np.asarray(t) <= self.radius, 0.0, np.inf)

    def derivative(self, t: Any) -> np.ndarray:
        return self.value(t)

    @np.errstate(over="ignore")
    def conjugate(self, s: Any) -> np.ndarray:
        return self.radius * np.maximum(s, 0.0)
