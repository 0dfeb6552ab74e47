"""The base class of losses, and the laws that are checked at a fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

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
    joint
        Whether the loss is one of all predictions together, which `value` only shares out among them.
    """

    target: ClassVar[Target] = "real"
    smooth: ClassVar[bool] = False
    convex: ClassVar[bool] = True
    joint: ClassVar[bool] = False

    @abstractmethod
    def value(self, y: Any, f: Any) -> np.ndarray:
        """Return L(y, f)."""

    @abstractmethod
    def derivative(self, y: Any, f: Any) -> np.ndarray:
        """Return dL/df; at a kink, one of the subgradients."""

    def mean(self, y: Any, f: Any, sample_weight: Any = None) -> float:
        """Return the mean of L(y, f) over samples: a score, smaller is better."""
        return float(np.average(self.value(y, f), weights=sample_weight))


_JOINT = (
    "The representer theorem holds for a joint loss of all values, too, but only one has a solver here: "
    "LargestErrors(k), the sum of the k largest errors |y - f|."
)


def check_elementwise(loss: Any, y: np.ndarray, f: np.ndarray) -> None:
    """Raise unless a loss gives each prediction a value and a slope that depend on this prediction alone.

    Every other prediction is moved far away; what belongs to the rest must stay as it was.

    Parameters
    ----------
    loss
        An object with `value(y, f)` and `derivative(y, f)`.
    y, f
        Truths and predictions; the latter with one column for each class for a loss of classes.

    Examples
    --------
    >>> class Largest(Loss):
    ...     def value(self, y, f):
    ...         return np.full(len(y), np.abs(y - f).max())
    ...     def derivative(self, y, f):
    ...         return np.sign(f - y)
    >>> check_elementwise(Largest(), np.zeros(4), np.zeros(4))
    Traceback (most recent call last):
        ...
    ValueError: the value of ... of prediction 1 changes from 0 to ... when other predictions do; ...
    """
    with np.errstate(all="ignore"):
        if (shape := np.shape(loss.value(y, f))) != (len(y),):
            raise ValueError(
                f"the value of {loss!r} for {len(y)} predictions has the shape {shape}; a loss gives one number for "
                f"each of them, and the sum is taken over the samples. {_JOINT}"
            )
        for moved in (slice(0, None, 2), slice(1, None, 2)):
            other = np.array(f)
            other[moved] += 10.0 * (1.0 + np.abs(y[moved]).max(initial=0.0)) * (1.0 + np.arange(f[:1].size))
            rest = np.ones(len(y), bool)
            rest[moved] = False
            for name in ("value", "derivative"):
                before, after = (np.asarray(getattr(loss, name)(y, g), dtype=np.float64) for g in (f, other))
                before, after = (np.broadcast_to(v, y.shape if name == "value" else f.shape) for v in (before, after))
                changed = rest & ~np.isclose(before, after, rtol=1e-9, equal_nan=True).reshape(len(y), -1).all(axis=1)
                if changed.any():
                    i = int(np.argmax(changed))
                    was, now = (np.array2string(v[i], formatter={"float": "{:.4g}".format}) for v in (before, after))
                    raise ValueError(
                        f"the {name} of {loss!r} of prediction {i} changes from {was} to {now} when other predictions "
                        "do; a loss is a sum over the samples, and each term may depend on its own sample alone. "
                        + _JOINT
                    )


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
    total
        For a joint loss, what the sum of all \|b\| is at most; None where there is no such limit.

    Examples
    --------
    >>> from mercer.losses import Hinge
    >>> Hinge().box([1.0, -1.0])
    Box(linear=array([-1.,  1.]), width=array([0., 0.]), upper=array([1., 0.]), lower=array([0., 1.]), total=None)
    """

    linear: np.ndarray
    width: np.ndarray
    upper: np.ndarray
    lower: np.ndarray
    total: float | None = None
