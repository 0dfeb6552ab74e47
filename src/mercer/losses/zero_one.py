"""The 0-1 loss: what a classifier is judged by, and what no machine here descends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from mercer.losses.base import Loss


@dataclass(frozen=True)
class ZeroOne(Loss):
    r"""A mistake costs 1, whatever its size; its mean over samples is the share of them.

    .. math:: L(y, f) = \begin{cases} 0 & \text{if } f \text{ has the sign of } y \\ 1 & \text{otherwise} \end{cases},
              \qquad y \in \{-1, 1\}

    f = 0 belongs to the second class, as in `predict`. It can be scored and drawn, not trained: it is flat wherever it
    does not jump, so that no derivative says where to go, and the fewest mistakes of a hyperplane are NP-hard to find.
    `Hinge`, `SquaredHinge` and `Exponential` are convex losses above it; so is `Logistic`, in units of log 2.

    Examples
    --------
    >>> from mercer.losses import ZeroOne
    >>> ZeroOne().value(1.0, [2.0, 1.0, 0.0, -2.0])
    array([0., 0., 0., 1.])
    >>> ZeroOne().mean([1.0, -1.0, -1.0], [0.3, -2.0, 0.1])
    0.3333333333333333
    """

    target = "label"
    convex = False

    def value(self, y: Any, f: Any) -> np.ndarray:
        return np.where(np.greater_equal(f, 0.0) == np.greater(y, 0.0), 0.0, 1.0)

    def derivative(self, y: Any, f: Any) -> NoReturn:
        """Say that there is none."""
        raise ValueError(
            "the 0-1 loss cannot be trained: it is flat wherever it does not jump, and has no derivative to descend. "
            "Train with a convex loss above it, Hinge(), SquaredHinge() or Logistic(), and score with ZeroOne().mean."
        )
