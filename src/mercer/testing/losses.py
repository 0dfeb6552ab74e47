"""Laws of a loss: value, derivative, conjugate and prox belong together."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.losses import Loss

_STEPS = (0.03, 0.5, 2.0, 40.0)
_ROUNDING = 1e-9


def check_loss(loss: Loss, y: Any = None, f: Any = None) -> None:
    """Raise AssertionError, naming the law and the worst place, unless the loss obeys every law.

    - it is convex in f, never negative and never NaN;
    - `derivative` is a subgradient everywhere, and the slope of `value` where that has one;
    - Fenchel and Young: L(y, f) + L*(y, u) >= u f, with equality where u is the derivative at f;
    - `prox`, where there is one, gives the minimiser of L(y, g) + (g - f)² / (2 step).

    Parameters
    ----------
    loss
        A loss.
    y, f
        Truths and predictions to try, every one with every other; a grid around the usual kinks when None.

    Examples
    --------
    >>> from mercer.losses import Hinge
    >>> from mercer.testing import check_loss
    >>> check_loss(Hinge())
    >>> class Steep(Hinge):
    ...     def derivative(self, y, f):
    ...         return 2 * super().derivative(y, f)
    >>> check_loss(Steep())
    Traceback (most recent call last):
        ...
    AssertionError: the derivative of Steep() is no subgradient: at y = ..., f = ... the line of slope ... the loss ...
    """
    truths = np.asarray([-1.0, 1.0] if loss.target == "label" else [-3.0, -0.2, 0.0, 1.0, 7.5] if y is None else y)
    grid = np.unique(np.concatenate([np.linspace(-4.9, 4.9, 15), [-1.0, -0.1, 0.0, 0.1, 1.0]]) if f is None else f)
    Y, F = (a.ravel() for a in np.meshgrid(truths, grid, indexing="ij"))
    value = np.asarray(loss.value(Y, F), dtype=float)
    slope = np.asarray(loss.derivative(Y, F), dtype=float)
    _require(loss, "the value", Y, F, np.isfinite(value) & (value >= 0), "must be finite and not negative")
    _require(loss, "the derivative", Y, F, np.isfinite(slope), "must be finite")
    for other in grid:
        at = np.asarray(loss.value(Y, other), dtype=float)
        low = value + slope * (other - F)
        bad = low - at > _ROUNDING * (1 + np.abs(low) + np.abs(at))
        middle = loss.value(Y, (F + other) / 2)
        _require(loss, "the value", Y, F, middle <= (value + at) / 2 + _ROUNDING * (1 + value + at), "is not convex")
        if bad.any():
            i = int(np.argmax(bad))
            raise AssertionError(
                f"the derivative of {loss!r} is no subgradient: at y = {Y[i]:g}, f = {F[i]:g} the line of slope "
                f"{slope[i]:g} is above the loss at {other:g} by {low[i] - at[i]:.2g}."
            )
    _differences(loss, Y, F, slope)
    _fenchel_young(loss, Y, F, value, slope)
    _prox(loss, Y, F, grid)


def _differences(loss: Loss, Y: np.ndarray, F: np.ndarray, slope: np.ndarray) -> None:
    """One-sided differences hold the derivative between them; where they agree it is determined."""
    h = 1e-6
    before = (loss.value(Y, F) - loss.value(Y, F - h)) / h
    after = (loss.value(Y, F + h) - loss.value(Y, F)) / h
    room = 1e-4 * (1 + np.abs(before) + np.abs(after))
    _require(
        loss,
        "the derivative",
        Y,
        F,
        (slope >= before - room) & (slope <= after + room),
        "is not the slope of the value",
    )
    if loss.smooth:
        _require(loss, "the derivative", Y, F, after - before <= room, "jumps, but the loss says that it is smooth")


def _fenchel_young(loss: Loss, Y: np.ndarray, F: np.ndarray, value: np.ndarray, slope: np.ndarray) -> None:
    size = 1 + np.abs(value) + np.abs(slope * F)
    equal = np.abs(value + loss.conjugate(Y, slope) - slope * F) <= _ROUNDING * size
    _require(loss, "the conjugate", Y, F, equal, "misses Fenchel and Young's equality at the derivative")
    for u in np.linspace(-3.3, 3.3, 23):
        sums = value + loss.conjugate(Y, u)
        _require(loss, "the conjugate", Y, F, ~np.isnan(sums), f"is NaN at u = {u:g}")
        _require(
            loss, "the conjugate", Y, F, sums >= u * F - _ROUNDING * size, f"breaks Fenchel and Young at u = {u:g}"
        )


def _prox(loss: Loss, Y: np.ndarray, F: np.ndarray, grid: np.ndarray) -> None:
    for step in _STEPS:
        try:
            g = np.asarray(loss.prox(Y, F, step), dtype=float)
        except NotImplementedError:
            return
        best = loss.value(Y, g) + (g - F) ** 2 / (2 * step)
        for other in (*grid, g - 1e-3, g + 1e-3, g - 0.1, g + 0.1):
            trial = loss.value(Y, other) + (other - F) ** 2 / (2 * step)
            _require(
                loss,
                "the prox",
                Y,
                F,
                best <= trial + _ROUNDING * (1 + best),
                f"with step {step:g} is not the minimiser",
            )


def _require(loss: Loss, what: str, Y: np.ndarray, F: np.ndarray, holds: Any, complaint: str) -> None:
    if not np.all(holds):
        i = int(np.argmin(holds))
        raise AssertionError(f"{what} of {loss!r} {complaint} (y = {Y[i]:g}, f = {F[i]:g}).")
