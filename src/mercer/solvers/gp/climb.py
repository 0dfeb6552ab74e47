"""Maximisation of a smooth function of few parameters between bounds, at few evaluations."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mercer.certify import Stop

_LONGEST_STEP = 2.0  # of a parameter, a logarithm: a factor of 7
_ARMIJO = 1e-4  # share of the slope times the step that a step must gain
_LEAST_GAIN = 1e-3  # of a step, in units of the slope at which a climb ends: below, no further step is taken
_SHORTER_STEPS = 12  # that are tried along one direction


class Objective(Protocol):
    """A function whose slopes are computed after its value, at the same cost again."""

    def value(self, theta: np.ndarray) -> float:
        """Return the value; -inf where there is none."""

    def slopes(self) -> np.ndarray:
        """Return the slopes where the value was last asked for."""


@dataclass
class Top:
    """Where a climb ended.

    Attributes
    ----------
    theta
        The parameters.
    value
        The value there.
    curvature
        Of the negative of the function, as far as the steps have shown it; None if there were none.
    steps
        How many were taken.
    stopped
        "converged", or what ended it before.
    """

    theta: np.ndarray
    value: float
    curvature: np.ndarray | None
    steps: int
    stopped: str = Stop.CONVERGED


def climb(
    objective: Objective,
    start: np.ndarray,
    limits: np.ndarray,
    *,
    curvature: np.ndarray | None = None,
    tol: float = 1e-2,
    max_iter: int = 200,
    watch: Callable[[], str | None] = lambda: None,
) -> Top:
    r"""Climb from `start` to a local maximum by Newton steps with a secant approximation of the curvature.

    .. math:: B_{FF} p_F = g_F, \qquad F = \{i : \theta_i \text{ is not pressed against a bound}\}

    B is updated by the formula of Broyden, Fletcher, Goldfarb and Shanno, damped as by Powell (1978) so that it stays
    positive definite where the function is not concave. Unlike with a limited memory, it can be handed on: a climb on
    some of the data shows the curvature on all of it.

    Parameters
    ----------
    objective
        What to maximise.
    start, limits
        Where to start, and one row (low, high) for each parameter.
    curvature
        B at the start, if a similar climb has found one.
    tol
        Stop when no slope exceeds this, or when the last step and the next gain less than a thousandth of it.
    max_iter
        The most steps.
    watch
        Asked after each step; what it returns ends the climb.

    Examples
    --------
    >>> class Hill:
    ...     def value(self, theta):
    ...         self.theta = theta
    ...         return -float(((theta - [1.0, 5.0]) ** 2).sum())
    ...     def slopes(self):
    ...         return -2 * (self.theta - [1.0, 5.0])
    >>> climb(Hill(), np.zeros(2), np.array([[-3.0, 3.0], [-3.0, 3.0]])).theta.round(3)
    array([1., 3.])
    """
    low, high = limits.T
    theta = np.clip(start, low, high)
    value = objective.value(theta)
    if not len(theta) or value == -math.inf:
        return Top(theta, value, curvature, 0)
    g = objective.slopes()
    B, fresh = (np.eye(len(theta)), True) if curvature is None else (curvature, False)
    gained = math.inf
    steps, stopped = 0, Stop.CONVERGED
    while True:
        if not np.isfinite(g).all():
            stopped = "the slopes of the likelihood leave the range of float64"
            break
        free = ~(((theta <= low) & (g < 0)) | ((theta >= high) & (g > 0)))
        largest = float(np.abs(g[free]).max(initial=0.0))
        if largest <= tol:
            break
        if fresh:
            B = np.eye(len(theta)) * largest
        p = _direction(B, g, free)
        if max(0.5 * float(g @ p), gained) < _LEAST_GAIN * tol:
            break
        if steps >= max_iter:
            stopped = Stop.steps(max_iter)
            break
        reason = watch()
        if reason is not None:
            stopped = reason
            break
        p *= min(1.0, _LONGEST_STEP / float(np.abs(p).max()))
        accepted = _along(objective, theta, value, g, p, low, high)
        if accepted is None:
            if fresh:
                break  # the slopes say up and the values do not: rounding
            fresh, gained = True, math.inf
            value = objective.value(theta)
            g = objective.slopes()
            continue
        steps += 1
        s, new = accepted[0] - theta, objective.slopes()
        B = updated_curvature(B, s, g - new, fresh)
        fresh, gained = False, accepted[1] - value
        (theta, value), g = accepted, new
    return Top(theta, value, None if fresh else B, steps, stopped)


def _direction(B: np.ndarray, g: np.ndarray, free: np.ndarray) -> np.ndarray:
    p = np.zeros(len(g))
    at = np.flatnonzero(free)
    try:
        p[at] = cho_solve(cho_factor(B[np.ix_(at, at)]), g[at])
    except LinAlgError:
        p[at] = g[at] / float(np.abs(g[at]).max())
    return p


def _along(
    objective: Objective,
    theta: np.ndarray,
    value: float,
    g: np.ndarray,
    p: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> tuple[np.ndarray, float] | None:
    """Return a point on the way of the step, bent along the bounds, that gains enough; None where there is none."""
    t = 1.0
    for _ in range(_SHORTER_STEPS):
        new = np.clip(theta + t * p, low, high)
        hoped = float(g @ (new - theta))
        there = objective.value(new)
        if there >= value + _ARMIJO * hoped and there > value:
            return new, there
        curvature = hoped - (there - value)  # of the parabola through both values with this slope
        t *= float(np.clip(0.5 * hoped / curvature, 0.1, 0.5)) if math.isfinite(curvature) and curvature > 0 else 0.1
    return None


def updated_curvature(B: np.ndarray, s: np.ndarray, y: np.ndarray, fresh: bool) -> np.ndarray:
    """Return the curvature B after a step s along which the gradient changed by y: damped BFGS (Powell, 1978)."""
    sy = float(s @ y)
    if fresh and sy > 0:
        B = np.eye(len(s)) * (float(y @ y) / sy)
    Bs = B @ s
    sBs = float(s @ Bs)
    if sy < 0.2 * sBs:
        share = 0.8 * sBs / (sBs - sy)
        y = share * y + (1 - share) * Bs
        sy = float(s @ y)
    return np.asarray(B - np.outer(Bs, Bs) / sBs + np.outer(y, y) / sy)
