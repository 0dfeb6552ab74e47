"""What a loss is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np


class Loss(ABC):
    """A convex function L(y, f) of the prediction f for each truth y, elementwise on arrays.

    To add one: state domain, formula, derivative and conjugate in the docstring and write `value`, `derivative` and
    `conjugate`; `prox` where it has a closed form. `mercer.testing.check_loss` checks that they belong together.

    Attributes
    ----------
    target
        What y may be: "label" for -1 and +1, "real" for any number.
    smooth
        Whether the derivative in f is continuous.
    """

    target: ClassVar[Literal["label", "real"]]
    smooth: ClassVar[bool] = False

    @abstractmethod
    def value(self, y: Any, f: Any) -> np.ndarray:
        """Return L(y, f)."""

    @abstractmethod
    def derivative(self, y: Any, f: Any) -> np.ndarray:
        """Return dL/df; at a kink, one of the subgradients."""

    @abstractmethod
    def conjugate(self, y: Any, u: Any) -> np.ndarray:
        """Return the supremum over f of u f - L(y, f); infinite outside its domain."""

    def prox(self, y: Any, f: Any, step: float) -> np.ndarray:
        """Return the g that minimises L(y, g) + (g - f)² / (2 step)."""
        raise NotImplementedError(
            f"{type(self).__name__} has no prox in closed form; a solver that needs one cannot use this loss."
        )
