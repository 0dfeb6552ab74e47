"""The cause, in one sentence, of a fit that did not come to its end: the data and the kernel looked at."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mercer.certify import tiles
from mercer.kernels import RBF, Kernel
from mercer.points import Points

_SAMPLE = 64  # points whose kernel values are looked at
_ROWS = 20_000  # rows among which equal ones are looked for
_DWARFS = 1e3  # how many times the usual spread hides the other features
_FAR = 1e6  # how many times its spread a feature may be away from 0
_SAME = 1e-6  # the part of a kernel value that is nothing
_NEGATIVE = 1e-9  # the part of the largest eigenvalue below which a negative one is rounding
_HUGE = 1e8  # C k(x, x), in units of f, from which sums in float64 lose the answer


def diagnose(
    X: Any,
    kernel: Kernel,
    *,
    labels: Any = None,
    C: float | None = None,
    unit: float = 1.0,
    names: Any = None,
) -> str | None:
    """Return one sentence with the cause of trouble, the value seen and the remedy; None where nothing is seen.

    Looks at the spread of every feature, at the kernel matrix of a few points, at equal rows with different labels and
    at C beside the kernel's values: O(nd) in all.

    Parameters
    ----------
    X
        The training points.
    kernel
        The kernel with its parameters resolved.
    labels
        The class of each point, for a classifier.
    C
        The price of slack (times the largest weight), for a model that has one.
    unit
        What f is measured in: 1 for a classifier, the spread of the targets for a regressor.
    names
        The names of the features, where X had them.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 1e7, 1.0]
    >>> diagnose(X, RBF(1.0), names=["age", "income", "height"])[:22]
    "feature 1 ('income') h"
    """
    matrix = X if sparse.issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2) else None
    points = Points(X)
    said = _features(matrix, names) if matrix is not None else None
    if said is not None:
        return said
    chosen = np.unique(np.linspace(0, len(points) - 1, _SAMPLE).astype(np.intp))
    try:
        K = _values(kernel, points.take(chosen))
    except FloatingPointError as error:
        return f"kernel values leave the range of float64: {error}"
    said = _sample(K, kernel)
    if said is None and labels is not None and matrix is not None:
        said = _contradictions(matrix, np.asarray(labels))
    return said if said is not None else _price(C, float(np.abs(K.diagonal()).max()), unit)


def _values(kernel: Kernel, points: Points) -> np.ndarray:
    K = np.zeros((len(points), len(points)))
    for rows, block in tiles(kernel, points):
        K[rows] = block
    return K


def _features(X: Any, names: Any) -> str | None:
    """Name the feature whose scale hides the others, or that lost its digits far from 0."""
    mean, spread = _moments(X)
    if not spread.any():
        return None if X.shape[0] < 2 else "all rows of X are equal: there is nothing to tell the samples apart by."
    varying = np.sort(spread[spread > 0])
    usual = float(varying[(len(varying) - 1) // 2])
    j = int(np.argmax(spread))
    if spread[j] >= _DWARFS * usual:
        return (
            f"{_named(j, names)} has a spread of {spread[j]:.2g}, {spread[j] / usual:.1g} times the median spread of "
            "the features; the kernel sees hardly anything but it: scale the features "
            "(sklearn.preprocessing.StandardScaler)."
        )
    far = np.where(spread > 0, np.abs(mean) / np.where(spread > 0, spread, 1.0), np.abs(mean) / usual)
    j = int(np.argmax(far))
    if far[j] >= _FAR:
        size = f"{spread[j]:.2g}" if spread[j] > 0 else "0 (it is constant)"
        return (
            f"{_named(j, names)} has the mean {mean[j]:.2g} and a spread of {size}; what tells samples apart is lost "
            "in the digits: subtract the mean (sklearn.preprocessing.StandardScaler)."
        )
    return None


def _moments(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of each column, without leaving the range of numbers."""
    if sparse.issparse(X):
        largest = np.asarray(abs(X).max(axis=0).toarray(), dtype=np.float64).ravel()
        scale = np.where(largest > 0, largest, 1.0)
        unit = X @ sparse.diags_array(1.0 / scale)
        mean = np.asarray(unit.mean(axis=0)).ravel()
        square = np.asarray(unit.multiply(unit).mean(axis=0)).ravel()
        return mean * scale, np.sqrt(np.maximum(square - mean**2, 0.0)) * scale
    largest = np.abs(X).max(axis=0).astype(np.float64)
    scale = np.where(largest > 0, largest, 1.0)
    unit = X / scale
    spread = np.where(np.ptp(X, axis=0) > 0, unit.std(axis=0), 0.0)
    return unit.mean(axis=0) * scale, spread * scale


def _named(j: int, names: Any) -> str:
    return f"feature {j}" if names is None else f"feature {j} ({str(names[j])!r})"


def _sample(K: np.ndarray, kernel: Kernel) -> str | None:
    """Say what is wrong with the kernel matrix of a few points."""
    size = float(np.abs(K).max())
    if size == 0:
        return f"every value of {kernel!r} on these points is 0."
    if len(K) < 2:
        return None
    low, high = float(K.min()), float(K.max())
    if high - low <= _SAME * size:
        return (
            f"{kernel!r} is nearly constant on these points, between {low:.9g} and {high:.9g}: it cannot tell them "
            f"apart; {_finer(kernel)}."
        )
    length = np.sqrt(np.abs(K.diagonal()))
    if length.min() > 0:
        other = float(np.abs(K / np.outer(length, length))[~np.eye(len(K), dtype=bool)].max())
        if other <= _SAME:
            return (
                f"{kernel!r} sees no two points as similar: the largest similarity of {len(K)} sampled ones is "
                f"{other:.1g} of that of a point to itself, so that nothing is learned from one about another; "
                f"{_coarser(kernel)}."
            )
    values = np.linalg.eigvalsh((K + K.T) / 2)
    if values[0] < -_NEGATIVE * max(values[-1], 0.0) * len(K):
        return (
            f"{kernel!r} is indefinite: on {len(K)} sampled points its matrix has eigenvalue {values[0]:.2g} beside "
            f"{values[-1]:.2g}, so that the problem is not convex and a solution need not be the best; take a "
            "positive definite kernel (mercer.gram.repair mends a matrix)."
        )
    return None


def _finer(kernel: Kernel) -> str:
    return "lower its scale (raise gamma)" if isinstance(kernel, RBF) else "change its parameters"


def _coarser(kernel: Kernel) -> str:
    return "raise its scale (lower gamma)" if isinstance(kernel, RBF) else "change its parameters"


def _contradictions(X: Any, labels: np.ndarray) -> str | None:
    """Name two equal rows with different labels."""
    n = min(X.shape[0], _ROWS, len(labels))
    if n < 2:
        return None
    rows = X[:n]
    if sparse.issparse(rows):
        # Equal rows have equal projections; a random one tells different rows apart.
        rows = rows @ np.random.default_rng(0).normal(size=(X.shape[1], 2))
    rows = np.ascontiguousarray(rows) + 0  # no negative zeros
    _, group = np.unique(
        rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel(), return_inverse=True
    )
    order = np.lexsort((labels[:n], group))
    clash = (group[order][1:] == group[order][:-1]) & (labels[order][1:] != labels[order][:-1])
    if not clash.any():
        return None
    at = int(np.argmax(clash))
    i, j = sorted((int(order[at]), int(order[at + 1])))
    mixed = int(np.isin(group, group[order][:-1][clash]).sum())
    return (
        f"{mixed} of {n} samples are equal to one with another label (samples {i} and {j}, for example): no function "
        "separates them, and a large C only makes that dear; lower C or clean the labels."
    )


def _price(C: float | None, largest: float, unit: float) -> str | None:
    """Say that C is out of proportion to the kernel's values."""
    if C is None:
        return None
    if unit > 0 and C * (largest / unit) >= _HUGE:
        beside = "" if unit == 1 else f" and targets that spread by {unit:.2g}"
        return (
            f"C={C:g} is huge beside kernel values of {largest:.2g}{beside}: sums of C k(x, z) lose the answer to "
            f"rounding; lower C{' or scale y' if unit != 1 else ', or scale X where its numbers are large'}."
        )
    return None
