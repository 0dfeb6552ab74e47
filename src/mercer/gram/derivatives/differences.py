"""Derivatives by differences, for what symbols cannot follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from mercer.points import Points

T = TypeVar("T")

_STEP = 1e-5  # of a parameter or of the spread of a feature: the errors of truncation and of rounding are both small
_CENTRAL = ((1, 8 / 12), (-1, -8 / 12), (2, -1 / 12), (-2, 1 / 12))
_FORWARD = ((0, -25 / 12), (1, 48 / 12), (2, -36 / 12), (3, 16 / 12), (4, -3 / 12))


def stencil(at: Callable[[float], T], step: float) -> list[tuple[float, T]]:
    """Return weights and neighbours, at(0.0) being the middle, whose weighted sum is the derivative.

    Four on both sides, or five on one where the other raises ValueError: the border of a domain.

    Examples
    --------
    >>> round(sum(weight * value for weight, value in stencil(lambda t: (1 + t) ** 3, 1e-3)), 9)
    3.0
    """
    try:
        return [(c / step, at(i * step)) for i, c in _CENTRAL]
    except ValueError:
        return [(c / step, at(i * step)) for i, c in _FORWARD]


def slope(at: Callable[[float], Any], step: float) -> Any:
    """Return the derivative of an array that depends on one number."""
    return sum(weight * value for weight, value in stencil(at, step))


def parameter_step(value: float) -> float:
    """Return how far to move a parameter."""
    return _STEP * abs(value) or _STEP


def feature_steps(x: Points, z: Points) -> np.ndarray:
    """Return how far to move each feature: little beside its spread over all points, enough beside its size."""
    both = np.vstack([dense(x.vectors), dense(z.vectors)])
    size = np.abs(both).max(axis=0)
    size[size == 0] = 1.0
    spread = (both / size).std(axis=0)
    return _STEP * np.where(spread > _STEP, spread, 1.0) * size


def moved(x: Points, feature: int, by: float) -> Points:
    """Return the points after a change of one feature."""
    if hasattr(x.data, "columns"):
        raise TypeError(
            f"this kernel is differentiated by differences, which move {x.name} a little; pass it as an array, not as "
            f"a {type(x.data).__name__}."
        )
    vectors = np.array(dense(x.vectors), dtype=np.float64)
    vectors[:, feature] += by
    return Points(vectors, x.name)


def dense(v: Any) -> np.ndarray:
    """Return the vectors as an array."""
    return v.toarray() if sparse.issparse(v) else v
