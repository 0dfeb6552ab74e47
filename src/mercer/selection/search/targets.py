"""Targets as the numbers that kernels are compared by."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from mercer.estimators import GaussianProcessRegressor
from mercer.estimators.regression.base import columns_of
from mercer.estimators.shared.classes import numbered, shown

_EQUAL = 8 * float(np.finfo(np.float64).eps)
_LARGE = 1e150
_FEW = 20  # whole numbers that name classes


def flat(y: Any) -> Any:
    """Return targets that stand in one column without it, with scikit-learn's warning; all others as they are.

    Examples
    --------
    >>> flat([0, 1, 2])
    [0, 1, 2]
    """
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    if len(shape) != 2 or shape[1] != 1:
        return y
    column = column_or_1d(np.asarray(y), warn=True)
    return y.iloc[:, 0] if hasattr(y, "iloc") else column


def codes_of(labels: np.ndarray) -> np.ndarray:
    """Return labels as numbers: -1 and 1 for two classes, for more one such column for each.

    Examples
    --------
    >>> codes_of(np.array(["no", "yes", "no"])).ravel()
    array([-1.,  1., -1.])
    """
    classes, codes = numbered(labels)
    if len(classes) < 2:
        raise ValueError(
            f"y has one class only, {shown(classes[0])}: every kernel tells it from nothing. Give two or more."
        )
    if len(classes) == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)


def is_classes(y: Any) -> bool:
    """Whether targets name classes: texts, booleans, or whole numbers with at most 20 values.

    Examples
    --------
    >>> is_classes(["a", "b"]), is_classes([1, 2, 1]), is_classes([0.5, 2.0]), is_classes(range(100))
    (True, True, False, False)
    """
    y = np.asarray(y)
    few = y.dtype.kind not in "iuf" or len(np.unique(y)) <= _FEW
    return few and type_of_target(y) in ("binary", "multiclass")


def numbers_of(model: Any, target: Any, scaled: bool) -> tuple[np.ndarray, float]:
    """Return the targets of an estimator in columns, and the unit that they are in.

    Parameters
    ----------
    model
        The estimator; for a Gaussian process targets are normalised as it says.
    target
        As it has read them.
    scaled
        Whether the unit may be the largest: not where the noise is in the units of the targets.
    """
    if is_classifier(model):
        return codes_of(np.asarray(target)), 1.0
    Y = columns_of(np.asarray(target, dtype=np.float64))
    if isinstance(model, GaussianProcessRegressor):
        return model._normalise(Y)[0], 1.0
    largest = float(np.abs(Y).max())
    if scaled and largest > 0:
        return Y / largest, largest
    if largest > _LARGE:
        raise ValueError(f"y reaches {largest:.3g}, whose square leaves the range of float64; scale the targets.")
    return Y, 1.0


def is_constant(Y: np.ndarray, intercept: bool) -> bool:
    """Whether the targets are what every model predicts: 0, or any one number where there is an offset."""
    rest = Y - Y.mean(axis=0) if intercept else Y
    return bool(np.abs(rest).max() <= _EQUAL * np.abs(Y).max(initial=0.0))
