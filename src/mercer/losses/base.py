"""What a loss is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from mercer.kernels.base import check_number

Target = Literal["label", "real", "count", "class"]


class Loss(ABC):
    """A function L(y, f) of the prediction f for each truth y, elementwise on arrays.

    To add one: state domain and formula in the docstring, and write `value` and `derivative`. The other methods are
    there only where they have a formula, and a solver that can use one asks whether it is there:

    ==================== ========================================================================================
    method               what it returns
    ==================== ========================================================================================
    curvature(y, f)      the second derivative in f; where the derivative has a kink, a number between its slopes
    conjugate(y, u)      the supremum over f of u f - L(y, f); infinite outside its domain
    prox(y, f, step)     the g that minimises L(y, g) + (g - f)² / (2 step); a step for all, or one for each
    box(y)               the `Box` of a piecewise linear loss
    inverse_link(f)      the prediction on the scale of y: a probability, a mean
    ==================== ========================================================================================

    `mercer.testing.check_loss` checks that they belong together. `mercer.losses.numeric` finds the prox and the
    curvature of a loss that has no formula for them. Whatever has `value` and `derivative` may be used as a loss; what
    this class adds are the attributes' defaults.

    Attributes
    ----------
    target
        What y may be: "label" for -1 and +1, "real" for any number, "count" for numbers of at least 0, "class" for
        0 ... k - 1; for the last one f has k columns, `value` gives one number for each row, and `curvature` a k by k
        matrix.
    smooth
        Whether the derivative in f is continuous.
    convex
        Whether L(y, f) is convex in f.
    """

    target: ClassVar[Target] = "real"
    smooth: ClassVar[bool] = False
    convex: ClassVar[bool] = True

    @abstractmethod
    def value(self, y: Any, f: Any) -> np.ndarray:
        """Return L(y, f)."""

    @abstractmethod
    def derivative(self, y: Any, f: Any) -> np.ndarray:
        """Return dL/df; at a kink, one of the subgradients."""


def check_quantile(owner: Any, value: Any) -> None:
    """Raise unless `value` is a number between 0 and 1."""
    check_number(owner, "quantile", value)
    if value >= 1:
        raise ValueError(f"quantile of {type(owner).__name__} must be < 1; it is {value!r}. The median is 0.5.")


@dataclass(frozen=True)
class Box:
    r"""The conjugate of a piecewise linear loss: linear up to a kink at 0, on an interval.

    .. math:: L^*(y, -b) = \text{linear} \cdot b + \text{width} \cdot |b| \quad\text{for}\quad
              -\text{lower} \le b \le \text{upper}, \qquad \infty \text{ elsewhere}

    These are the terms of the dual of a support vector machine, `mercer.solvers.SVMDual`.

    Parameters
    ----------
    linear, width, upper, lower
        As above, one number for each y; the last three at least 0.

    Examples
    --------
    >>> from mercer.losses import Hinge
    >>> Hinge().box([1.0, -1.0])
    Box(linear=array([-1.,  1.]), width=array([0., 0.]), upper=array([1., 0.]), lower=array([0., 1.]))
    """

    linear: np.ndarray
    width: np.ndarray
    upper: np.ndarray
    lower: np.ndarray
