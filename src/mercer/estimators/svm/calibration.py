"""From margins to probabilities: a logistic map of each pair of classes, and one law from all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit

from mercer.estimators.shared.classes import pair_index
from mercer.estimators.svm.fold import dealt

_FLATTEST = 1e-3  # the least slope, in units of the values' deviation: a map that falls would turn the model round
_NEWTON_STEPS = 100  # at most, far more than a convex loss of two numbers takes
_DECREASE = 1e-10  # of the loss: a step that promises to lower it by less is the last; it squares the error
_SURE = 1e-7  # probabilities of pairs stay so far from 0 and 1, those of classes from 0
_POWERS = (0.2, 5.0)  # between which the power of a law is searched
_STEEPNESS = 10.0  # of laws of scores between -1 and 1, before their power is searched
_COUPLED = 2**22  # entries of the systems of coupled pairs that are held at a time, 32 MB


def logistic_map(
    values: np.ndarray, positive: np.ndarray, weights: np.ndarray | None = None, counts: bool = False
) -> tuple[float, float]:
    """Return a and b of p = 1 / (1 + exp(-(a f + b))), the probability that f belongs to a positive (Platt 1999).

    Targets are drawn in from 0 and 1 by one count each, so that values that separate the classes have a slope, too.
    The slope is never negative.

    Parameters
    ----------
    values
        f at points that it was not fitted to.
    positive
        Whether each of them is one.
    weights
        The weight of each beside the others; None for all the same.
    counts
        Whether the weights are numbers of points, so that 2 everywhere is twice as much evidence.

    Examples
    --------
    >>> import numpy as np
    >>> f = np.random.default_rng(0).normal(size=20_000)
    >>> a, b = logistic_map(f, np.random.default_rng(1).uniform(size=20_000) < 1 / (1 + np.exp(1 - 2 * f)))
    >>> round(a), round(b)
    (2, -1)
    """
    positive = np.asarray(positive, dtype=bool)
    if positive.all() or not positive.any():
        return 1.0, 0.0
    weight = _evidence(weights, counts, len(positive))
    yes, no = float(weight[positive].sum()), float(weight[~positive].sum())
    centre = np.average(values, weights=weight)
    unit = float(np.sqrt(np.average((values - centre) ** 2, weights=weight))) or 1.0
    f = values / unit
    target = np.where(positive, (yes + 1.0) / (yes + 2.0), 1.0 / (no + 2.0))
    start = float(np.log((yes + 1.0) / (no + 1.0)))
    a, b = _fitted(f, target, weight, np.array([0.0, start]), np.array([True, True]))
    if a < _FLATTEST:
        a, b = _fitted(f, target, weight, np.array([_FLATTEST, start]), np.array([False, True]))
    return float(a / unit), float(b)


def _evidence(weights: np.ndarray | None, counts: bool, n: int) -> np.ndarray:
    """Return how many points each of n points stands for; n together, unless the weights are such counts."""
    if weights is None:
        return np.ones(n)
    return weights if counts else weights / np.mean(weights)


def _fitted(f: np.ndarray, target: np.ndarray, weight: np.ndarray, start: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Minimise the cross-entropy in (a, b), or in those that are free, by Newton's method with halved steps."""
    A = np.column_stack([f, np.ones(len(f))])
    theta = start

    def loss(w: np.ndarray) -> float:
        z = A @ w
        return float(weight @ (np.logaddexp(0.0, z) - target * z))

    value = loss(theta)
    for _ in range(_NEWTON_STEPS):
        p = expit(A @ theta)
        gradient = (A.T @ (weight * (p - target)))[free]
        curvature = (A.T * (weight * p * (1 - p))) @ A
        curvature = curvature[np.ix_(free, free)] + 1e-12 * len(f) * np.eye(int(free.sum()))
        step = np.zeros(2)
        step[free] = np.linalg.solve(curvature, gradient)
        fall, size = float(gradient @ step[free]), 1.0
        if fall <= _DECREASE * max(1.0, value):
            return theta - step  # short steps square the error
        while (new := loss(theta - size * step)) > value - 1e-4 * size * fall and size > 1e-10:
            size /= 2
        theta, value = theta - size * step, new
    return theta


def pair_maps(
    values: np.ndarray, codes: np.ndarray, count: int, weights: np.ndarray | None = None, counts: bool = False
) -> dict[str, np.ndarray]:
    """Return the logistic map of every pair of classes, as arrays "slope" and "offset".

    For more than two classes also "power", one number. The targets of each pair are drawn in by a count, so that
    coupled pairs are less sure of a class than they have reason to be. The law raised to this power is not (Guo et al.
    2017).

    Parameters
    ----------
    values
        f of every pair at points that it was not fitted to, (points, pairs); NaN where it is not known. For two classes
        it is positive for the second, for more for the first of the pair.
    codes
        The class number of each point.
    count
        The number of classes.
    weights, counts
        What each point counts, as for `logistic_map`.
    """
    lines = []
    for p, (i, j) in enumerate(zip(*pair_index(count), strict=True)):
        here = np.isfinite(values[:, p]) & ((codes == i) | (codes == j))
        positive = codes[here] == (j if count == 2 else i)
        lines.append(logistic_map(values[here, p], positive, None if weights is None else weights[here], counts))
    slope, offset = np.array(lines).T
    maps = {"slope": slope, "offset": offset}
    known = np.isfinite(values).all(axis=1)
    if count > 2 and known.any():
        some = None if weights is None else weights[known]
        weight = _evidence(some, counts, int(known.sum()))
        maps["power"] = np.array([_power(probabilities(values[known], maps, count), codes[known], weight)])
    return maps


def _power(law: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> float:
    """Return t for which p^t, scaled to sum 1, has the least cross-entropy with the classes drawn in by a count."""
    n, count = float(weight.sum()), law.shape[1]
    target = np.full(law.shape, 1.0 / ((n + 2) * (count - 1)))
    target[np.arange(len(law)), codes] = (n + 1.0) / (n + 2.0)
    logs = np.log(law / law.max(axis=1, keepdims=True))
    mean = float(weight @ np.sum(target * logs, axis=1))
    optimum = minimize_scalar(lambda t: float(weight @ np.log(np.exp(t * logs).sum(axis=1))) - t * mean, bounds=_POWERS)
    return float(optimum.x)


def score_maps(
    values: np.ndarray, codes: np.ndarray, count: int, weights: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Return the map from scores of classes to probabilities: of two classes as `pair_maps`, of more one slope.

    The law of more classes is p_i = exp(t f_i) / sum_j exp(t f_j), so that its order is that of the scores.

    Parameters
    ----------
    values
        f of each class at points that it was not fitted to, (points, classes); of two classes that of the second.
    codes, count, weights
        As for `pair_maps`; weights are numbers of points.
    """
    if count == 2:
        return pair_maps(values, codes, 2, weights, counts=True)
    law = _softmax(_STEEPNESS * values)
    return {"slope": _STEEPNESS * np.array([_power(law, codes, _evidence(weights, True, len(codes)))])}


def _softmax(logs: np.ndarray) -> np.ndarray:
    law = np.maximum(np.exp(logs - logs.max(axis=1, keepdims=True)), _SURE)
    return np.asarray(law / law.sum(axis=1, keepdims=True))


def cross_calibrated(
    values: list[np.ndarray],
    points: list[np.ndarray],
    codes: np.ndarray,
    count: int,
    weights: np.ndarray | None = None,
    counts: bool = False,
) -> list[np.ndarray]:
    """Return the law of the classes at the points of each fold, by maps that have seen the other folds only.

    So no probability knows the class of its point. A single fold is cut in five, each of which the others serve.

    Parameters
    ----------
    values
        Of each fold f of every pair, by a machine that was not fitted to the fold: as for `pair_maps`.
    points
        Which points these are.
    codes, count, weights, counts
        Of all points, as for `pair_maps`.
    """
    if len(points) == 1:
        (f,), (at,) = values, points
        part = dealt(codes[at], None)
        cut = [part == p for p in np.unique(part)]
        law = np.empty((len(at), count))
        if len(cut) > 1:
            parts = [f[here] for here in cut], [at[here] for here in cut]
            for here, calibrated in zip(cut, cross_calibrated(*parts, codes, count, weights, counts), strict=True):
                law[here] = calibrated
            return [law]
    laws = []
    every, f = np.concatenate(points), np.concatenate(values)
    for at, own in zip(points, values, strict=True):
        others = ~np.isin(every, at)
        seen = every[others]
        some = None if weights is None else weights[seen]
        laws.append(probabilities(np.nan_to_num(own), pair_maps(f[others], codes[seen], count, some, counts), count))
    return laws


def probabilities(values: np.ndarray, maps: dict[str, Any], count: int) -> np.ndarray:
    """Return the probability of each class at points whose pairs have these values, (points, classes).

    Where the maps are those of `score_maps`, the values are the scores of classes.

    For more than two classes the pairs p_i / (p_i + p_j) of the law p are nearest to the r_ij of the maps (Wu, Lin and
    Weng 2004, their second method): p minimises the sum of (r_ji p_i - r_ij p_j)^2.

    Examples
    --------
    >>> import numpy as np
    >>> maps = {"slope": np.ones(3), "offset": np.zeros(3)}
    >>> log_p = np.log([[0.2, 0.3, 0.5]])  # pairs that agree with one law give it back
    >>> pairs = np.column_stack([log_p[:, 0] - log_p[:, 1], log_p[:, 0] - log_p[:, 2], log_p[:, 1] - log_p[:, 2]])
    >>> probabilities(pairs, maps, 3).round(6)
    array([[0.2, 0.3, 0.5]])
    """
    if "offset" not in maps:
        return _softmax(maps["slope"] * values)
    odds = values * maps["slope"] + maps["offset"]  # their logarithms
    if count == 2:
        return np.column_stack([expit(-odds[:, 0]), expit(odds[:, 0])])
    said = np.clip(expit(odds), _SURE, 1.0 - _SURE)
    step = max(1, _COUPLED // (count + 1) ** 2)
    parts = [_coupled(said[i : i + step], count) for i in range(0, len(said), step)]
    if not parts:
        return np.empty((0, count))
    law = np.concatenate(parts) ** maps.get("power", 1.0)
    return np.asarray(law / law.sum(axis=1, keepdims=True))


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
    p = np.maximum(np.linalg.solve(Q, right)[:, :count, 0], _SURE)
    return np.asarray(p / p.sum(axis=1, keepdims=True))
