"""Tables of the conditions of optimality, sample by sample (M7), and the zones of the decision (M10)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, column_or_1d

from mercer.certify import Certificate
from mercer.estimators.shared.classes import Pairs, pair_labels
from mercer.estimators.shared.data import positive_weights
from mercer.points import Points

_AT_BOUND = 1e-9  # share of its bound that a coefficient at the bound may miss by rounding
_ON_MARGIN = 1e-3  # distance from the margin, in units of f, at which a new sample is on it: the usual tol


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
    codes, values, known, weight = _seen(model, X, y, sample_weight)
    n = len(codes)
    pairs = Pairs(codes, len(model.classes_))
    tables = []
    for p, ((i, j), (at, b)) in enumerate(zip(pairs, model._pair_coefficients(), strict=True)):
        rows = np.sort(pairs.rows(i, j))
        signs = np.where((codes[rows] == i) == (pairs.count > 2), 1.0, -1.0)
        alpha = bound = np.full(len(rows), np.nan)
        if known:
            full = np.zeros(n)
            full[model.support_[at]] = np.abs(b)
            alpha, bound = full[rows], model._bounds(weight[rows], model._scales[p])
        tables.append(pandas.DataFrame(_sided(alpha, bound, signs * values[rows, p]), index=_index(X, n)[rows]))
    if len(tables) == 1:
        return tables[0]
    return pandas.concat(tables, keys=pair_labels(model.classes_), names=["positive", "negative", "sample"])


def rest_table(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Return the table of `KernelMachine.margins`, of one class against the rest where there are more than two."""
    codes, values, known, weight = _seen(model, X, y, sample_weight)
    alphas: Any = np.full((1 if len(model.classes_) == 2 else len(model.classes_), len(codes)), np.nan)
    bounds = alphas
    if known:
        alphas, bounds = np.abs(model._columns_.T), [model._bounds(weight, p) for p in range(len(alphas))]
    return _against_rest(model.classes_, X, codes, values, alphas, bounds)


def _seen(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, bool, np.ndarray]:
    """Return class numbers, values of f, whether these are the training points, and the weight of each."""
    check_is_fitted(model)
    data = model._read_new(X)
    codes = model._codes(y)
    weight = _full_weights(sample_weight, _length(data, codes))
    return codes, model._values(data), _is_training(model, data), model.class_weight_[codes] * weight


def tube_table(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Return the table of `SVR.margins`, and of other machines with a tube."""
    check_is_fitted(model)
    data = model._read_new(X)
    y = column_or_1d(y).astype(np.float64)
    n = _length(data, y)
    residual = y - model._values(data).ravel()
    alpha = bound = np.full(n, np.nan)
    side = np.sign(residual)
    if _is_training(model, data):
        b = model._all_coefficients()
        alpha, side = np.abs(b), np.where(b != 0, np.sign(b), side)
        bound = model._bounds(_full_weights(sample_weight, n))
    epsilon = model._tube()
    return _tube(X, alpha, bound, residual, np.maximum(0.0, np.abs(residual) - epsilon), -(side * residual - epsilon))


def linear_table(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Return the table of `LinearSVC.margins`."""
    known, alphas, weight = _linear_dual(model, X, y, sample_weight)
    values, codes = model._compared(model._values(X)), model._codes(y)
    bound = model.C * weight * model.class_weight_[codes] if known else np.full(len(codes), np.nan)
    if model.multi_class == "crammer_singer" and values.shape[1] > 1:
        at = np.arange(len(codes))
        alpha = bound - alphas[0][codes, at] if known else bound
        columns = _sided(alpha, bound, values[at, codes], near=True)
        return _pandas().DataFrame(columns, index=_index(X, len(codes)))
    if model.multi_class == "crammer_singer" and known:
        alphas = [(bound - alphas[0][codes, np.arange(len(codes))])[None]]
    rows = [alpha[0] for alpha in alphas] if known else [bound] * values.shape[1]
    squared = model.loss == "squared_hinge" and model.multi_class == "ovr"
    return _against_rest(model.classes_, X, codes, values, rows, [bound] * len(rows), near=True, squared=squared)


def online_table(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Return the table of `Pegasos.margins`."""
    codes = model._codes(y)
    values = model.decision_function(X).reshape(len(codes), -1)
    bounds = rows = np.full(values.T.shape, np.nan)
    if len(codes) == model._coefficients.shape[1] and _holds(model.certificate_, X, y, sample_weight):
        bounds = model._shares(codes, sample_weight) / (model.lam * len(codes))
        rows = np.array(model._signs(codes)) * model._coefficients
    return _against_rest(model.classes_, X, codes, values, rows, bounds, near=True)


def linear_tube_table(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Return the table of `LinearSVR.margins`."""
    known, alphas, weight = _linear_dual(model, X, y, sample_weight)
    residual = np.asarray(y, dtype=np.float64).ravel() - model.predict(X)
    alpha = bound = np.full(len(residual), np.nan)
    side = np.sign(residual)
    if known:
        up, down = alphas[0]
        alpha, bound = np.maximum(up, down), model.C * weight
        side = np.where(alpha > 1e-6 * bound, np.where(up > down, 1.0, -1.0), side)
    room, squared = model.epsilon - side * residual, model.loss == "squared_epsilon_insensitive"
    if not squared:
        alpha = _at_bounds(alpha, bound, room)
    return _tube(X, alpha, bound, residual, np.maximum(0.0, -room), room, squared)


def one_class_table(model: Any, X: Any, sample_weight: Any) -> Any:
    """Return the table of `OneClassSVM.margins`."""
    check_is_fitted(model)
    data = model._read_new(X)
    values = model._values(data)
    n = len(values)
    alpha = bound = np.full(n, np.nan)
    if _is_training(model, data):
        alpha, bound = model._all_coefficients(), _full_weights(sample_weight, n)
    role = _roles(alpha, bound, values, ("inside", "on the boundary", "outlier"))
    kkt = _violation(alpha, bound, values)
    columns = {"alpha": alpha, "margin": values, "slack": np.maximum(0.0, -values), "role": role, "kkt": kkt}
    return _pandas().DataFrame(columns, index=_index(X, n))


def _against_rest(
    classes: Any, X: Any, codes: np.ndarray, values: np.ndarray, alphas: Any, bounds: Any, **how: bool
) -> Any:
    """Return one table per machine, of the second class of two or of each class against the rest."""
    index, parts = _index(X, len(codes)), []
    for i, (alpha, bound) in enumerate(zip(alphas, bounds, strict=True)):
        own = codes == (i if values.shape[1] > 1 else 1)
        margin = np.where(own, 1.0, -1.0) * values[:, i]
        parts.append(_pandas().DataFrame(_sided(alpha, bound, margin, **how), index=index))
    return parts[0] if len(parts) == 1 else _pandas().concat(parts, keys=list(classes), names=["positive", "sample"])


def _sided(
    alpha: np.ndarray, bound: np.ndarray, margin: np.ndarray, near: bool = False, squared: bool = False
) -> dict[str, np.ndarray]:
    """Return the columns of a classifier's table.

    Coefficients may be `near` their bounds rather than there; with the squared hinge, alpha = 2 bound slack.
    """
    slack, room = np.maximum(0.0, 1.0 - margin), margin - 1.0
    if squared:
        role = np.where(slack > 0, np.where(margin <= 0, "misclassified", "inside"), "outside").astype(object)
        kkt = _squared_violation(alpha, bound, slack)
    else:
        alpha = _at_bounds(alpha, bound, room) if near else alpha
        role, kkt = _roles(alpha, bound, room, ("outside", "on the margin", "inside")), _violation(alpha, bound, room)
        role[(role == "inside") & (margin <= 0)] = "misclassified"
    return {"alpha": alpha, "margin": margin, "slack": slack, "role": role, "kkt": kkt}


def _tube(
    X: Any,
    alpha: np.ndarray,
    bound: np.ndarray,
    residual: np.ndarray,
    slack: np.ndarray,
    room: np.ndarray,
    squared: bool = False,
) -> Any:
    """Return the table of a regressor, from how far each sample is inside its tube."""
    names = ("inside the tube", "on the tube", "outside the tube")
    if squared:
        role = np.where(slack > 0, names[2], names[0]).astype(object)
        kkt = _squared_violation(alpha, bound, slack)
    else:
        role, kkt = _roles(alpha, bound, room, names), _violation(alpha, bound, room)
    columns = {"alpha": alpha, "residual": residual, "slack": slack, "role": role, "kkt": kkt}
    return _pandas().DataFrame(columns, index=_index(X, len(residual)))


# -- roles and residuals ----------------------------------------------------------------------------------


def _states(alpha: np.ndarray, bound: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Return 0 for alpha = 0, 1 in between, 2 at the bound; without alpha, by the room to the margin."""
    by_alpha = np.where(alpha <= 0, 0, np.where(alpha < bound * (1 - _AT_BOUND), 1, 2))
    by_room = np.where(room > _ON_MARGIN, 0, np.where(room >= -_ON_MARGIN, 1, 2))
    return np.where(np.isnan(alpha), by_room, by_alpha)


def _roles(alpha: np.ndarray, bound: np.ndarray, room: np.ndarray, names: tuple[str, str, str]) -> np.ndarray:
    return np.array(names, dtype=object)[_states(alpha, bound, room)]


def _violation(alpha: np.ndarray, bound: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Return by how much room >= 0 (alpha = 0), = 0 (in between) or <= 0 (at the bound) is violated."""
    state = _states(alpha, bound, room)
    worst = np.choose(state, [np.maximum(0.0, -room), np.abs(room), np.maximum(0.0, room)])
    return np.where(np.isnan(alpha) | (bound <= 0), np.where(np.isnan(alpha), np.nan, 0.0), worst)


def _squared_violation(alpha: np.ndarray, bound: np.ndarray, slack: np.ndarray) -> np.ndarray:
    """Return by how much alpha = 2 bound slack is violated, in units of the slack."""
    return np.abs(slack - alpha / (2 * np.where(bound > 0, bound, 1.0)))


def _at_bounds(alpha: np.ndarray, bound: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Return alpha with values that interior points leave near a bound put on it, if the sample is on that side."""
    with np.errstate(invalid="ignore", divide="ignore"):
        share = alpha / bound
    alpha = np.where(share < np.minimum(room, 0.5), 0.0, alpha)
    return np.where(1.0 - share < np.minimum(-room, 0.5), bound, alpha)


# -- samples ----------------------------------------------------------------------------------------------


def _is_training(model: Any, data: Any) -> bool:
    """Return whether the data are those of the fit, as far as the support vectors can tell."""
    n = data.shape[0] if hasattr(data, "shape") else len(data)
    if n != model.shape_fit_[0] or (hasattr(data, "shape") and tuple(data.shape) != tuple(model.shape_fit_)):
        return False
    if hasattr(model, "X_fit_"):
        mine, theirs = model.X_fit_, data
    elif not len(model.support_):
        return True
    elif model._kind == "similarities":
        return bool(np.array_equal(data[np.ix_(model.support_, model.support_)], model.kernel_.matrix))
    else:
        mine, theirs = model.support_vectors_, Points(data).take(model.support_).data
    if hasattr(mine, "nnz"):
        return bool((mine != theirs).nnz == 0)
    if not hasattr(mine, "shape"):
        return _same(list(mine), list(theirs))
    if isinstance(mine, np.ndarray) and isinstance(theirs, np.ndarray):
        return bool(np.array_equal(mine, theirs))
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


def _linear_dual(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[bool, list[np.ndarray], np.ndarray]:
    """Return whether the data are those of the fit (its certificate holds for them), alpha of all samples, weights."""
    check_is_fitted(model)
    data, y = model._read(X, y, reset=False)
    weight = _full_weights(sample_weight, data.shape[0])
    rows = np.flatnonzero(weight)
    try:
        known = _holds(model.certificate_, data, y, sample_weight)
    except ValueError:
        known = False
    if not known:
        return False, [], weight
    full = []
    for alpha in model._alphas:
        full.append(np.zeros((len(alpha), len(weight))))
        full[-1][:, rows] = alpha
    return True, full, weight


def _holds(claim: Certificate, X: Any, y: Any, sample_weight: Any) -> bool:
    """Return whether data have the objectives of a certificate: then they are those of the fit."""
    seen = claim.verify(X, y, sample_weight=sample_weight)
    return max(abs(seen.primal - claim.primal), abs(seen.dual - claim.dual)) <= 1e-6 * claim.primal


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
