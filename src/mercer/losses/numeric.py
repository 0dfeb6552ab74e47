"""Conjugates, proxes and curvatures that a loss has no formula for, found numerically from its derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_EPS = float(np.finfo(float).eps)
_LARGEST = float(np.finfo(float).max)
_TINY = 1e-290  # the least size of a number that is sought: eps times it is still a normal number
_INTERPOLATIONS = 120  # steps by interpolation in one search at most; then 64 halvings end it
_SIGN = np.int64(np.iinfo(np.int64).min)


def prox(loss: Any, y: Any, f: Any, step: Any) -> np.ndarray:
    r"""Return the g that minimises L(y, g) + (g - f)² / (2 step), by `loss.prox` where there is one.

    Otherwise g is the root of

    .. math:: g + \text{step} \cdot L'(y, g) = f

    whose left side increases at least as fast as g if the loss is convex; at a jump of L' the root is the jump. For
    a loss that is not convex g is a stationary point.

    Parameters
    ----------
    loss
        A loss of scalar predictions, with `value` and `derivative`.
    y, f
        Truths and predictions.
    step
        A number above 0, or one for each prediction.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.losses.numeric import prox
    >>> class Cosh:
    ...     def value(self, y, f):
    ...         return np.log(np.cosh(np.subtract(f, y)))
    ...     def derivative(self, y, f):
    ...         return np.tanh(np.subtract(f, y))
    >>> g = prox(Cosh(), 0.0, [3.0, -1.0], 2.0)
    >>> g + 2.0 * np.tanh(g)
    array([ 3., -1.])
    """
    if hasattr(loss, "prox"):
        return np.asarray(loss.prox(y, f, step), dtype=float)
    if getattr(loss, "target", "real") == "class":
        raise TypeError(
            f"{loss!r} has no prox, and only for losses of one prediction per point is it found numerically; "
            "give the loss a method prox(y, f, step)."
        )
    y, f, step = np.broadcast_arrays(y, np.asarray(f, dtype=float), step)

    def excess(g: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return (g - f) + step * _derivative(loss, y, g)

    # Because the excess grows at least as fast as g, its root is no farther from f than its value there.
    here = excess(f)
    with np.errstate(over="ignore"):
        low = np.maximum(np.minimum(f - here, f), -_LARGEST)
        high = np.minimum(np.maximum(f - here, f), _LARGEST)
    if not getattr(loss, "convex", True):
        low, high = _bracket(excess, low, high)
    return increasing_root(excess, low, high, np.abs(f))


def curvature(loss: Any, y: Any, f: Any) -> np.ndarray:
    """Return the second derivative of the loss in f, by `loss.curvature` where there is one.

    Otherwise it is the central difference of the derivative, not below 0 if the loss is convex. Where f has a column
    for each class, the result is a symmetric matrix for each row.

    Parameters
    ----------
    loss
        A loss with `value` and `derivative`.
    y, f
        Truths and predictions.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.losses.numeric import curvature
    >>> class Quartic:
    ...     def value(self, y, f):
    ...         return np.subtract(f, y) ** 4
    ...     def derivative(self, y, f):
    ...         return 4 * np.subtract(f, y) ** 3
    >>> curvature(Quartic(), 0.0, [1.0, 2.0]).round(6)
    array([12., 48.])
    """
    if hasattr(loss, "curvature"):
        return np.asarray(loss.curvature(y, f), dtype=float)
    f = np.asarray(f, dtype=float)
    if getattr(loss, "target", "real") == "class":
        h = np.cbrt(_EPS) * np.maximum(1.0, np.abs(f).max(axis=-1, keepdims=True, initial=0.0))
        units = np.eye(f.shape[-1])
        columns = [(_derivative(loss, y, f + h * e) - _derivative(loss, y, f - h * e)) / (2.0 * h) for e in units]
        matrix = np.stack(columns, axis=-1)
        return (matrix + np.swapaxes(matrix, -1, -2)) / 2.0
    h = np.cbrt(_EPS) * np.maximum(1.0, np.abs(f))
    after, before = f + h, f - h
    with np.errstate(invalid="ignore"):
        second = (_derivative(loss, y, after) - _derivative(loss, y, before)) / (after - before)
    second = np.where(np.isnan(second), np.inf, second)  # the slopes at both sides are beyond the largest float
    return np.maximum(second, 0.0) if getattr(loss, "convex", True) else second


def increasing_root(
    excess: Callable[[np.ndarray], np.ndarray], low: Any, high: Any, scale: np.ndarray | float = 0.0
) -> np.ndarray:
    """Return where an increasing function changes sign, elementwise, to rounding (Chandrupatla, 1997).

    Each step interpolates the inverse function by a parabola through the last three points, where these look like
    ones of a function that has an inverse, and otherwise halves the floats between the ends.

    Parameters
    ----------
    excess
        The function, which increases at least as fast as its argument.
    low, high
        Ends, where it is at most 0 and at least 0.
    scale
        The size of what was subtracted within `excess`: rounding below this size is no reason to go on.
    """
    x, y = np.array(low, dtype=float), np.array(high, dtype=float)
    at_x, at_y = excess(x), excess(y)
    share = np.full(x.shape, np.nan)  # of the way from the last point x to the other end y; NaN to halve
    for turn in range(_INTERPOLATIONS + 64):
        closer = np.abs(at_x) <= np.abs(at_y)
        best, at_best = np.where(closer, x, y), np.where(closer, at_x, at_y)
        with np.errstate(over="ignore"):
            size, gap = np.maximum(np.maximum(np.abs(best), scale), _TINY), np.abs(y - x)
        unfinished = ~(np.abs(at_best) <= 2.0 * _EPS * size) & (gap > 2.0 * _EPS * size)
        if not unfinished.any():
            break
        with np.errstate(all="ignore"):
            least = np.minimum(_EPS * size / gap, 0.5)  # one step past the root closes the interval behind it
            guess = x + np.clip(share, least, 1.0 - least) * (y - x)
        halve = ~np.isfinite(guess) | (turn >= _INTERPOLATIONS)
        new = np.where(unfinished, np.where(halve, _middle(x, y), guess), best)
        at_new = excess(new)
        same = (at_new > 0.0) == (at_x > 0.0)
        third, at_third = np.where(same, x, y), np.where(same, at_x, at_y)
        y, at_y = np.where(same, y, x), np.where(same, at_y, at_x)
        x, at_x = new, at_new
        with np.errstate(all="ignore"):
            along, up = (x - y) / (third - y), (at_x - at_y) / (at_third - at_y)
            invertible = (up**2 < along) & ((1.0 - up) ** 2 < 1.0 - along)
            share = at_x / (at_y - at_x) * at_third / (at_y - at_third)
            share += (third - x) / (y - x) * at_x / (at_third - at_x) * at_y / (at_third - at_y)
            share = np.where(invertible, share, np.nan)
    return best


def _derivative(loss: Any, y: Any, f: np.ndarray) -> np.ndarray:
    slope = np.asarray(loss.derivative(y, f), dtype=float)
    if np.isnan(slope).any():
        where = np.argmax(np.isnan(slope).ravel())
        raise FloatingPointError(
            f"the derivative of {loss!r} is NaN at f = {np.broadcast_to(f, slope.shape).ravel()[where]:g}; "
            "it must be a number, or infinite, at every finite prediction."
        )
    return slope


def _bracket(excess: Callable, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Widen until the signs differ, for a function that need not increase."""
    width = np.maximum(high - low, 1.0)
    for _ in range(1100):
        left, right = excess(low) > 0.0, excess(high) < 0.0
        if not (left | right).any():
            break
        with np.errstate(over="ignore"):
            low = np.where(left, np.maximum(low - width, -_LARGEST), low)
            high = np.where(right, np.minimum(high + width, _LARGEST), high)
            width = np.minimum(2.0 * width, _LARGEST)
    return low, high


def _middle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The float with as many floats below it and above a as above it and below b."""
    i, j = _place(a), _place(b)
    k = (i >> 1) + (j >> 1) + (i & j & 1)
    return np.where(k >= 0, k, -k | _SIGN).view(np.float64)


def _place(x: np.ndarray) -> np.ndarray:
    """The place of a float among all floats."""
    bits = np.ascontiguousarray(x).view(np.int64).reshape(x.shape)
    return np.where(bits >= 0, bits, -(bits & ~_SIGN))
