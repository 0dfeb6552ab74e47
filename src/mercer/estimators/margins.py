"""What the conditions of optimality say of each sample, as tables (M7), and the zones of the decision (M10)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, column_or_1d

from mercer.estimators.inputs import positive_weights
from mercer.estimators.multiclass import Pairs, pair_labels
from mercer.points import Points

# A coefficient this close to its bound is there; a new sample whose margin is this close to 1 is on it.
_THERE = 1e-9
_ON = 1e-3


def zones(values: np.ndarray) -> np.ndarray:
    """Return -2, -1, 1 or 2 for values in (-inf, -1], (-1, 0), [0, 1) and [1, inf).

    Examples
    --------
    >>> import numpy as np
    >>> zones(np.array([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0]))
    array([-2, -2, -1,  1,  1,  2,  2])
    """
    return np.select([values <= -1, values < 0, values < 1], [-2, -1, 1], 2)


def classifier_table(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Return the table of `SVC.margins`."""
    pandas = _pandas()
    check_is_fitted(model)
    data = model._read_new(X)
    codes = model._codes(y)
    n = _length(data, codes)
    values = model._values(data)
    known = _is_training(model, data)
    weight = model.class_weight_[codes] * _full_weights(sample_weight, n)
    pairs = Pairs(codes, len(model.classes_))
    tables = []
    for p, ((i, j), (at, b)) in enumerate(zip(pairs, model._pair_coefficients(), strict=True)):
        rows = np.sort(pairs.rows(i, j))
        signs = np.where((codes[rows] == i) == (pairs.count > 2), 1.0, -1.0)
        margin = signs * values[rows, p]
        alpha = bound = np.full(len(rows), np.nan)
        if known:
            full = np.zeros(n)
            full[model.support_[at]] = np.abs(b)
            alpha, bound = full[rows], model._bounds(weight[rows], model._scales[p])
        tables.append(
            {
                "sample": rows,
                "alpha": alpha,
                "margin": margin,
                "slack": np.maximum(0.0, 1.0 - margin),
                "role": _sides(alpha, bound, margin),
                "kkt": _violation(alpha, bound, margin - 1.0),
            }
        )
    index = _index(X, n)
    if len(tables) == 1:
        table = tables[0]
        return pandas.DataFrame({k: v for k, v in table.items() if k != "sample"}, index=index[table["sample"]])
    parts = []
    for (positive, negative), table in zip(pair_labels(model.classes_), tables, strict=True):
        part = pandas.DataFrame({k: v for k, v in table.items() if k != "sample"})
        part.index = pandas.MultiIndex.from_arrays(
            [[positive] * len(part), [negative] * len(part), index[table["sample"]]],
            names=["positive", "negative", "sample"],
        )
        parts.append(part)
    return pandas.concat(parts)


def tube_table(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Return the table of `SVR.margins`."""
    pandas = _pandas()
    check_is_fitted(model)
    data = model._read_new(X)
    y = column_or_1d(y).astype(np.float64)
    n = _length(data, y)
    residual = y - model._values(data)
    epsilon = model._tube()
    alpha = bound = np.full(n, np.nan)
    side = np.sign(residual)
    if _is_training(model, data):
        alpha = np.zeros(n)
        alpha[model.support_] = np.abs(model.dual_coef_[0])
        side = np.where(alpha > 0, 0.0, side)
        side[model.support_] = np.sign(model.dual_coef_[0])
        bound = model.C * _full_weights(sample_weight, n)
    excess = side * residual - epsilon
    names = ("inside the tube", "on the tube", "outside the tube")
    return pandas.DataFrame(
        {
            "alpha": alpha,
            "residual": residual,
            "slack": np.maximum(0.0, np.abs(residual) - epsilon),
            "role": _roles(alpha, bound, -excess, names),
            "kkt": _violation(alpha, bound, -excess),
        },
        index=_index(X, n),
    )


def one_class_table(model: Any, X: Any, sample_weight: Any) -> Any:
    """Return the table of `OneClassSVM.margins`."""
    pandas = _pandas()
    check_is_fitted(model)
    data = model._read_new(X)
    values = model._values(data)
    n = len(values)
    alpha = bound = np.full(n, np.nan)
    if _is_training(model, data):
        alpha = np.zeros(n)
        alpha[model.support_] = model.dual_coef_[0]
        bound = _full_weights(sample_weight, n)
    return pandas.DataFrame(
        {
            "alpha": alpha,
            "margin": values,
            "slack": np.maximum(0.0, -values),
            "role": _roles(alpha, bound, values, ("inside", "on the boundary", "outlier")),
            "kkt": _violation(alpha, bound, values),
        },
        index=_index(X, n),
    )


# -- roles and residuals ----------------------------------------------------------------------------------


def _states(alpha: np.ndarray, bound: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Return 0 for alpha = 0, 1 in between, 2 at the bound; without alpha, by the room to the margin."""
    by_alpha = np.where(alpha <= 0, 0, np.where(alpha < bound * (1 - _THERE), 1, 2))
    by_room = np.where(room > _ON, 0, np.where(room >= -_ON, 1, 2))
    return np.where(np.isnan(alpha), by_room, by_alpha)


def _roles(alpha: np.ndarray, bound: np.ndarray, room: np.ndarray, names: tuple[str, str, str]) -> np.ndarray:
    return np.array(names, dtype=object)[_states(alpha, bound, room)]


def _sides(alpha: np.ndarray, bound: np.ndarray, margin: np.ndarray) -> np.ndarray:
    roles = _roles(alpha, bound, margin - 1.0, ("outside", "on the margin", "inside"))
    roles[(roles == "inside") & (margin <= 0)] = "misclassified"
    return roles


def _violation(alpha: np.ndarray, bound: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Return by how much room >= 0 (alpha = 0), = 0 (in between) or <= 0 (at the bound) is violated."""
    state = _states(alpha, bound, room)
    worst = np.choose(state, [np.maximum(0.0, -room), np.abs(room), np.maximum(0.0, room)])
    return np.where(np.isnan(alpha) | (bound <= 0), np.where(np.isnan(alpha), np.nan, 0.0), worst)


# -- samples ----------------------------------------------------------------------------------------------


def _is_training(model: Any, data: Any) -> bool:
    """Return whether the data are those of the fit, as far as the support vectors can tell."""
    n = data.shape[0] if hasattr(data, "shape") else len(data)
    if n != model.shape_fit_[0] or (hasattr(data, "shape") and tuple(data.shape) != tuple(model.shape_fit_)):
        return False
    if not len(model.support_):
        return True
    if model._kind == "similarities":
        return bool(np.array_equal(data[np.ix_(model.support_, model.support_)], model.kernel_.matrix))
    mine, theirs = model.support_vectors_, Points(data).take(model.support_).data
    if hasattr(mine, "nnz"):
        return bool((mine != theirs).nnz == 0)
    if not hasattr(mine, "shape"):
        return _same(list(mine), list(theirs))
    return bool(np.array_equal(np.asarray(mine, dtype=object), np.asarray(theirs, dtype=object)))


def _same(a: Any, b: Any) -> bool:
    """Return whether two objects are equal, arrays and sequences of such entry by entry."""
    if a is b:
        return True
    if isinstance(a, np.ndarray):
        return bool(np.array_equal(a, b))
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)


def _full_weights(sample_weight: Any, n: int) -> np.ndarray:
    weights, rows = positive_weights(sample_weight, n)
    full = np.ones(n) if weights is None else np.zeros(n)
    if weights is not None:
        full[slice(None) if rows is None else rows] = weights
    return full


def _length(data: Any, y: np.ndarray) -> int:
    n = data.shape[0] if hasattr(data, "shape") else len(data)
    if len(y) != n:
        raise ValueError(f"X has {n} samples and y has {len(y)}; both need one entry per sample.")
    return int(n)


def _index(X: Any, n: int) -> Any:
    index = getattr(X, "index", None)
    return np.arange(n) if index is None or callable(index) else index


def _pandas() -> Any:
    try:
        return import_module("pandas")
    except ImportError:
        raise ImportError("margins returns a pandas DataFrame; install pandas (pip install pandas).") from None
