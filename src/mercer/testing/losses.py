"""Laws of a loss: value, derivative and whatever else it has belong together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from mercer.losses.base import check_elementwise

_STEPS = (0.03, 0.5, 2.0, 40.0)  # of prox: from where the loss hardly moves a prediction to where it decides
_ROUNDING = 1e-9  # of the terms of a law, by which its two sides may differ: losses need not be good to the last digit
_LARGEST_VALUE = 1e100  # values beyond this one are asked only to be numbers: the laws' own sums would overflow
_TRUTHS: dict[str, list[float]] = {
    "label": [-1.0, 1.0],
    "real": [-3.0, -0.2, 0.0, 1.0, 7.5],
    "count": [0.0, 0.4, 1.0, 7.0],
    "class": [0, 1, 2],
}


def check_loss(loss: Any, y: Any = None, f: Any = None) -> None:
    """Raise AssertionError, naming the law and the worst place, unless the loss obeys every law.

    - `value` and `derivative` of a prediction depend on this prediction alone;
    - `value` is a number or infinite, and convex in f unless the loss says `convex = False`;
    - `derivative` is a subgradient everywhere, and the slope of `value` where that has one;
    - `curvature`, where there is one, is the slope of the derivative where that has one;
    - Fenchel and Young: L(y, f) + L*(y, u) >= u f, with equality where u is the derivative at f, for `conjugate` and
      for the conjugate that `box` describes, which are one where there are both;
    - `prox`, where there is one, gives the minimiser of L(y, g) + (g - f)² / (2 step), for one step and for many;
    - `inverse_link`, where there is one, says for which truth, or for which probabilities of truths, f is the best
      prediction: the mean derivative is 0.

    Parameters
    ----------
    loss
        A loss: a `mercer.losses.Loss`, or any object with `value` and `derivative`.
    y, f
        Truths and predictions to try, every one with every other; when None, a grid around the usual kinks. For a loss
        of target "class", f has one row for each prediction.

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
    target = getattr(loss, "target", "real")
    if target not in _TRUTHS:
        raise AssertionError(f"the target of {loss!r} must be one of {', '.join(map(repr, _TRUTHS))}, not {target!r}.")
    truths = np.asarray(_TRUTHS[target] if y is None else y)
    if target == "class":
        grid = np.asarray(list(product([-3.0, 0.0, 0.5, 4.0], repeat=3)) if f is None else f, dtype=float)
    else:
        usual = np.concatenate([np.linspace(-4.9, 4.9, 15), [-1.0, -0.1, 0.0, 0.1, 1.0]])
        grid = np.unique(np.asarray(usual if f is None else f, dtype=float))
    places = _Places(loss, np.repeat(truths, len(grid)), np.concatenate([grid] * len(truths)), grid)
    try:
        check_elementwise(loss, places.Y, places.F)
    except ValueError as error:
        raise AssertionError(str(error)) from None
    value, slope = places.value(places.F), places.derivative(places.F)
    places.require("the value", ~np.isnan(value) & (value > -np.inf), "must be a number or infinite")
    places.require(
        "the derivative", ~np.isfinite(value) | places.whole(np.isfinite(slope)), "must be finite where the value is"
    )
    small = np.abs(value) < _LARGEST_VALUE
    places = _Places(loss, places.Y[small], places.F[small], grid)
    value, slope = value[small], slope[small]
    if not small.any():
        return
    if getattr(loss, "convex", True):
        _convexity(places, value, slope)
    _differences(places, value, slope)
    if hasattr(loss, "curvature"):
        _curvature(places, slope)
    if hasattr(loss, "conjugate"):
        _fenchel_young(places, "the conjugate", loss.conjugate, value, slope)
    if hasattr(loss, "box"):
        _box(places, value, slope)
    if hasattr(loss, "prox"):
        _prox(places)
    if hasattr(loss, "inverse_link"):
        _inverse_link(places, target)


@dataclass
class _Places:
    """Pairs of a truth and a prediction, the latter a number or a row of numbers."""

    loss: Any
    Y: np.ndarray
    F: np.ndarray
    grid: np.ndarray

    def value(self, f: np.ndarray) -> np.ndarray:
        return np.asarray(self.loss.value(self.Y, f), dtype=float)

    def derivative(self, f: np.ndarray) -> np.ndarray:
        return np.asarray(self.loss.derivative(self.Y, f), dtype=float)

    def others(self) -> list[np.ndarray]:
        """Each prediction in turn, for all truths."""
        return [np.broadcast_to(other, self.F.shape) for other in self.grid]

    def directions(self) -> np.ndarray:
        return np.eye(self.F.shape[1]) if self.F.ndim == 2 else np.ones(1)

    def inner(self, u: Any, f: Any) -> np.ndarray:
        """The product of a derivative and a prediction."""
        return np.sum(np.multiply(u, f), axis=-1) if self.F.ndim == 2 else np.multiply(u, f)

    def whole(self, holds: np.ndarray) -> np.ndarray:
        """Whether something holds in every column."""
        return np.asarray(holds.all(axis=-1) if self.F.ndim == 2 else holds)

    def scale(self) -> np.ndarray:
        """The size of each prediction, in whose proportion differences are taken."""
        return np.maximum(1.0, np.abs(self.F).max(axis=-1, keepdims=True) if self.F.ndim == 2 else np.abs(self.F))

    def require(self, what: str, holds: Any, complaint: str) -> None:
        holds = np.broadcast_to(holds, self.Y.shape)
        if not holds.all():
            raise AssertionError(f"{what} of {self.loss!r} {complaint} ({self.name(int(np.argmin(holds)))}).")

    def name(self, i: int) -> str:
        return f"y = {self.Y[i]:g}, f = {np.array2string(self.F[i], precision=6)}"


def _convexity(at: _Places, value: np.ndarray, slope: np.ndarray) -> None:
    for other in at.others():
        there = at.value(other)
        room = _ROUNDING * (1 + np.abs(value) + np.abs(there))
        middle = at.value(at.F / 2 + other / 2)
        at.require("the value", middle <= value / 2 + there / 2 + room, "is not convex")
        low = value + at.inner(slope, other - at.F)
        bad = low - there > _ROUNDING * (1 + np.abs(low) + np.abs(value) + np.abs(at.inner(slope, at.F)))
        if bad.any():
            i = int(np.argmax(bad))
            raise AssertionError(
                f"the derivative of {at.loss!r} is no subgradient: at {at.name(i)} the line of slope "
                f"{np.array2string(slope[i], precision=6)} is above the loss at "
                f"{np.array2string(other[i], precision=6)} by {low[i] - there[i]:.2g}."
            )


def _differences(at: _Places, value: np.ndarray, slope: np.ndarray) -> None:
    """One-sided differences hold the derivative between them; where they agree it is determined."""
    for e in at.directions():
        jump = {}
        for size in (1e-4, 1e-6):
            h = size * at.scale()
            length = h.reshape(at.Y.shape)
            before = (value - at.value(at.F - h * e)) / length
            after = (at.value(at.F + h * e) - value) / length
            jump[size] = np.abs(after - before)
        room = 1e-4 * (1 + np.abs(before) + np.abs(after)) + 1e-14 * np.abs(value) / length
        along = at.inner(slope, e)
        between = (along >= np.minimum(before, after) - room) & (along <= np.maximum(before, after) + room)
        at.require("the derivative", between, "is not the slope of the value")
        if getattr(at.loss, "smooth", False):
            # Where the derivative is continuous the differences come together as their width shrinks.
            smooth = jump[1e-6] <= np.maximum(room, jump[1e-4] / 5)
            at.require("the derivative", smooth, "jumps, but the loss says that it is smooth")


def _curvature(at: _Places, slope: np.ndarray) -> None:
    curvature = np.asarray(at.loss.curvature(at.Y, at.F), dtype=float)
    expected = (*at.F.shape, at.F.shape[1]) if at.F.ndim == 2 else at.F.shape
    if curvature.shape != expected:
        raise AssertionError(f"the curvature of {at.loss!r} must have the shape {expected}, not {curvature.shape}.")
    at.require("the curvature", np.isfinite(curvature).reshape(len(at.Y), -1).all(axis=1), "must be finite")
    h = 1e-6 * at.scale()
    for e in at.directions():
        before = (slope - at.derivative(at.F - h * e)) / h
        after = (at.derivative(at.F + h * e) - slope) / h
        along = curvature @ e if at.F.ndim == 2 else curvature
        room = 1e-4 * (1 + np.abs(before) + np.abs(after)) + 1e-14 * np.abs(slope) / h
        between = (along >= np.minimum(before, after) - room) & (along <= np.maximum(before, after) + room)
        at.require("the curvature", at.whole(between), "is not the slope of the derivative")


def _fenchel_young(at: _Places, what: str, conjugate: Callable, value: np.ndarray, slope: np.ndarray) -> None:
    size = 1 + np.abs(value) + np.abs(at.inner(slope, at.F))
    equal = np.abs(value + conjugate(at.Y, slope) - at.inner(slope, at.F)) <= _ROUNDING * size
    at.require(what, equal, "misses Fenchel and Young's equality at the derivative")
    tilts = [at.derivative(other) for other in at.others()]
    if at.F.ndim == 1:
        tilts += [np.full(at.F.shape, u) for u in np.linspace(-3.3, 3.3, 23)]
    else:
        tilts += [np.broadcast_to(u, at.F.shape) for e in at.directions() for u in (e, -e)]
    # Far predictions see that the conjugate is infinite where it must be.
    far = [at.F] if at.F.ndim == 2 else [at.F, np.full(at.F.shape, 1e6), np.full(at.F.shape, -1e6)]
    costs = [at.value(f) for f in far]
    for u in tilts:
        if not (np.abs(u) < _LARGEST_VALUE).all():
            continue
        star = np.asarray(conjugate(at.Y, u), dtype=float)
        tilt = f"at u = {np.array2string(u[0], precision=6)}"
        at.require(what, ~np.isnan(star), f"is NaN {tilt}")
        for f, cost in zip(far, costs, strict=True):
            room = _ROUNDING * (1 + np.abs(at.inner(u, f)) + np.where(np.isfinite(cost), np.abs(cost), 0.0))
            at.require(what, cost + star >= at.inner(u, f) - room, f"breaks Fenchel and Young's inequality {tilt}")


def _box(at: _Places, value: np.ndarray, slope: np.ndarray) -> None:
    """The conjugate that the box describes is one, and the one of `conjugate`."""
    terms = at.loss.box(at.Y)
    for name in ("width", "upper", "lower"):
        at.require("the box", np.asarray(getattr(terms, name)) >= 0, f"needs {name} >= 0")

    def conjugate(y: np.ndarray, u: np.ndarray) -> np.ndarray:
        inside = (-u <= terms.upper) & (-u >= -terms.lower)
        return np.where(inside, -u * terms.linear + np.abs(u) * terms.width, np.inf)

    _fenchel_young(at, "the box", conjugate, value, slope)
    if not hasattr(at.loss, "conjugate"):
        return
    for share in (0.0, 0.3, 1.0, 1.01):
        for b in (share * terms.upper, -share * terms.lower):
            same = np.isclose(conjugate(at.Y, -b), at.loss.conjugate(at.Y, -b), rtol=_ROUNDING, atol=_ROUNDING)
            at.require("the box", same, f"and the conjugate differ {share:g} of the way to its end")


def _prox(at: _Places) -> None:
    many = np.resize(_STEPS, at.Y.shape)
    for step in (*_STEPS, many):
        each = np.broadcast_to(step, at.Y.shape)
        with_step = f"with step {step:g}" if np.ndim(step) == 0 else "with one step for each prediction"
        g = np.asarray(at.loss.prox(at.Y, at.F, step), dtype=float)
        at.require("the prox", at.whole(np.isfinite(g)), f"{with_step} must be finite")
        pull = (at.F - g) / (each[:, None] if at.F.ndim == 2 else each)
        if getattr(at.loss, "convex", True):
            # Monotony: the pull is a subgradient at g if no derivative nearby contradicts it.
            near = 1e-6 * np.maximum(1.0, np.abs(g).max(axis=-1, keepdims=True) if at.F.ndim == 2 else np.abs(g))
            for e in (*at.directions(), *-at.directions()):
                there = at.derivative(g + near * e)
                room = 1e-8 * (1 + at.inner(np.abs(there) + np.abs(pull), np.abs(e)))
                room += 1e-14 * at.inner(np.abs(at.F), np.abs(e)) / each
                good = at.inner(there - pull, e) >= -room
                at.require("the prox", good, f"{with_step} is not the minimiser")
        best = at.value(g) + at.inner(pull, at.F - g) / 2
        for other in at.others():
            trial = at.value(other) + at.inner(other - at.F, other - at.F) / (2 * each)
            room = _ROUNDING * (1 + np.abs(best))
            at.require("the prox", best <= trial + room, f"{with_step} is not the minimiser")


def _inverse_link(at: _Places, target: str) -> None:
    truth = np.asarray(at.loss.inverse_link(at.F), dtype=float)
    at.require("the inverse link", at.whole(np.isfinite(truth)), "must be finite")
    if target in ("label", "class"):
        at.require("the inverse link", at.whole((truth >= 0) & (truth <= 1)), "must be a probability")
    if target == "class":
        at.require("the inverse link", np.abs(truth.sum(axis=-1) - 1) <= _ROUNDING, "must sum to 1 in each row")
        chances = [truth[:, [c]] for c in range(truth.shape[1])]
        slopes = [np.asarray(at.loss.derivative(np.full(len(truth), c), at.F)) for c in range(truth.shape[1])]
    elif target == "label":
        chances = [truth, 1 - truth]
        slopes = [np.asarray(at.loss.derivative(np.full(len(truth), label), at.F)) for label in (1.0, -1.0)]
    else:
        chances, slopes = [np.ones(len(truth))], [np.asarray(at.loss.derivative(truth, at.F))]
    largest = np.max(np.abs(slopes), axis=0)
    slopes = [np.where(largest < _LARGEST_VALUE, slope, 0.0) for slope in slopes]
    terms = [chance * slope for chance, slope in zip(chances, slopes, strict=True)]
    # The last term is the rounding of the probabilities.
    room = 1e-7 * (1 + sum(np.abs(term) for term in terms)) + 1e-15 * largest
    best = at.whole(np.abs(sum(terms)) <= room)
    at.require("the inverse link", best, "is not the truth for which f is the best prediction")
