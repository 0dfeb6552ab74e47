"""From names to loss objects."""

from __future__ import annotations

from typing import Any

from mercer import losses

_CLASSES = {
    "squared": "Squared",
    "absolute": "Absolute",
    "huber": "Huber",
    "pinball": "Pinball",
    "expectile": "Expectile",
    "epsilon_insensitive": "EpsilonInsensitive",
    "squared_epsilon_insensitive": "SquaredEpsilonInsensitive",
    "poisson": "Poisson",
    "logistic": "Logistic",
    "hinge": "Hinge",
    "squared_hinge": "SquaredHinge",
    "smoothed_hinge": "SmoothedHinge",
    "perceptron": "PerceptronLoss",
    "exponential": "Exponential",
    "multinomial": "Multinomial",
}
NAMES = tuple(_CLASSES)


def named_loss(loss: Any) -> Any:
    """Return the loss that a name means, with its default parameters; a loss object is returned as it is."""
    return getattr(losses, _CLASSES[loss])() if isinstance(loss, str) else loss


def is_loss(value: Any) -> bool:
    """Return whether an object has what every loss and every penalty has: a value and a derivative."""
    methods = (getattr(value, name, None) for name in ("value", "derivative"))
    return not isinstance(value, type) and all(map(callable, methods))
