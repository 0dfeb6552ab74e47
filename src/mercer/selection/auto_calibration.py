"""From margins to probabilities: a logistic map of each pair of classes, and one law from all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from mercer.estimators.multiclass import pair_index

_FLATTEST = 1e-3  # the least slope, in units of the values' deviation: a map that falls would turn the model round
_STEPS, _DONE = 100, 1e-10
_SURE = 1e-7  # probabilities of pairs stay so far from 0 and 1
_HELD = 2**22  # numbers held at a time


def logistic_map(values: np.ndarray, positive: np.ndarray) -> tuple[float, float]:
    """Return a and b of p = 1 / (1 + exp(-(a f + b))), the probability that f belongs to a positive (Platt 1999).

    Targets are drawn in from 0 and 1 by one count each, so that values that separate the classes have a slope, too.
    The slope is never negative.

    Parameters
    ----------
    values
        f at points that it was not fitted to.
    positive
        Whether each of them is one.

    Examples
    --------
    >>> import numpy as np
    >>> f = np.random.default_rng(0).normal(size=20_000)
    >>> a, b = logistic_map(f, np.random.default_rng(1).uniform(size=20_000) < 1 / (1 + np.exp(1 - 2 * f)))
    >>> round(a), round(b)
    (2, -1)
    """
    positive = np.asarray(positive, dtype=bool)
    yes = int(positive.sum())
    no = len(positive) - yes
    if not yes or not no:
        return 1.0, 0.0
    unit = float(np.std(values)) or 1.0
    f = values / unit
    target = np.where(positive, (yes + 1.0) / (yes + 2.0), 1.0 / (no + 2.0))
    start = float(np.log((yes + 1.0) / (no + 1.0)))
    a, b = _fitted(f, target, np.array([0.0, start]), np.array([True, True]))
    if a < _FLATTEST:
        a, b = _fitted(f, target, np.array([_FLATTEST, start]), np.array([False, True]))
    return float(a / unit), float(b)


def _fitted(f: np.ndarray, target: np.ndarray, start: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Minimise the cross-entropy in (a, b), or in those that are free, by Newton's method with halved steps."""
    A = np.column_stack([f, np.ones(len(f))])
    at = start

    def loss(w: np.ndarray) -> float:
        z = A @ w
        return float(np.sum(np.logaddexp(0.0, z) - target * z))

    now = loss(at)
    for _ in range(_STEPS):
        p = expit(A @ at)
        gradient = (A.T @ (p - target))[free]
        curvature = (A.T * (p * (1 - p))) @ A
        curvature = curvature[np.ix_(free, free)] + 1e-12 * len(f) * np.eye(int(free.sum()))
        step = np.zeros(2)
        step[free] = np.linalg.solve(curvature, gradient)
        fall, size = float(gradient @ step[free]), 1.0
        if fall <= _DONE * max(1.0, now):
            return at - step  # where steps are short, each squares what is left
        while (new := loss(at - size * step)) > now - 1e-4 * size * fall and size > 1e-10:
            size /= 2
        at, now = at - size * step, new
    return at


def pair_maps(values: np.ndarray, codes: np.ndarray, count: int) -> dict[str, np.ndarray]:
    """Return the logistic map of every pair of classes, as arrays "slope" and "offset".

    Parameters
    ----------
    values
        f of every pair at points that it was not fitted to, (points, pairs); NaN where it is not known. For two classes
        it is positive for the second, for more for the first of the pair.
    codes
        The class number of each point.
    count
        The number of classes.
    """
    if count == 2:
        known = np.isfinite(values[:, 0])
        slope, offset = logistic_map(values[known, 0], codes[known] == 1)
        return {"slope": np.array([slope]), "offset": np.array([offset])}
    found = []
    for p, (i, j) in enumerate(zip(*pair_index(count), strict=True)):
        here = np.isfinite(values[:, p]) & ((codes == i) | (codes == j))
        found.append(logistic_map(values[here, p], codes[here] == i))
    slope, offset = np.array(found).T
    return {"slope": slope, "offset": offset}


def probabilities(values: np.ndarray, maps: dict[str, Any], count: int) -> np.ndarray:
    """Return the probability of each class at points whose pairs have these values, (points, classes).

    For more than two classes that law p is taken whose pairs p_i / (p_i + p_j) are nearest to what the maps say (Wu,
    Lin and Weng 2004, their second method): p minimises the sum of (r_ji p_i - r_ij p_j)^2.

    Examples
    --------
    >>> import numpy as np
    >>> maps = {"slope": np.ones(3), "offset": np.zeros(3)}
    >>> log_p = np.log([[0.2, 0.3, 0.5]])  # pairs that agree with one law give it back
    >>> pairs = np.column_stack([log_p[:, 0] - log_p[:, 1], log_p[:, 0] - log_p[:, 2], log_p[:, 1] - log_p[:, 2]])
    >>> probabilities(pairs, maps, 3).round(6)
    array([[0.2, 0.3, 0.5]])
    """
    said = expit(values * maps["slope"] + maps["offset"])
    if count == 2:
        return np.column_stack([1.0 - said[:, 0], said[:, 0]])
    said = np.clip(said, _SURE, 1.0 - _SURE)
    step = max(1, _HELD // (count + 1) ** 2)
    parts = [_coupled(said[i : i + step], count) for i in range(0, len(said), step)]
    return np.concatenate(parts) if parts else np.empty((0, count))


def _coupled(said: np.ndarray, count: int) -> np.ndarray:
    first, second = pair_index(count)
    R = np.zeros((len(said), count, count))
    R[:, first, second] = said
    R[:, second, first] = 1.0 - said
    # Stationary under sum p = 1: Q p + m 1 = 0 with Q_ii = sum_j r_ji^2, Q_ij = -r_ij r_ji.
    Q = np.zeros((len(said), count + 1, count + 1))
    Q[:, :count, :count] = -R * R.transpose(0, 2, 1)
    each = np.arange(count)
    Q[:, each, each] = np.square(R).sum(axis=1)
    Q[:, :count, count] = Q[:, count, :count] = 1.0
    right = np.zeros((len(said), count + 1, 1))
    right[:, count] = 1.0
    p = np.maximum(np.linalg.solve(Q, right)[:, :count, 0], 0.0)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def conformal_quantiles(residuals: np.ndarray, quantiles: np.ndarray) -> np.ndarray:
    """Return quantiles of residuals on the safe side: ranks among n + 1, rounded away from the middle.

    Parameters
    ----------
    residuals
        y - f at points that f was not fitted to, ascending.
    quantiles
        Between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> conformal_quantiles(np.arange(1.0, 10.0), np.array([0.1, 0.5, 0.85]))
    array([1., 5., 9.])
    """
    n = len(residuals)
    rank = quantiles * (n + 1)
    rank = np.where(quantiles > 0.5, np.ceil(rank - 1e-9), np.floor(rank + 1e-9))
    return np.asarray(residuals[np.clip(rank.astype(np.intp), 1, n) - 1])
