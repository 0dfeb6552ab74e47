"""Stand-ins for fitted models whose values at the points to score are known already: what a scorer asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from mercer.estimators.svm.classifier import PairwiseClassifier


class KnownClassifier(PairwiseClassifier):
    """A classifier of known values; points are places in them. How pairs vote is `SVC`'s.

    Parameters
    ----------
    model
        The model that it stands for, with its `classes_`.
    values
        f of every pair at every point, (points, pairs).
    """

    def __init__(self, model: Any, values: np.ndarray) -> None:
        self.model, self.values = model, values
        self.kernel = "rbf"
        self.classes_ = model.classes_
        self.break_ties, self.decision_function_shape = model.break_ties, model.decision_function_shape

    def _read_new(self, X: Any) -> Any:
        return X

    def _pieces(self, X: Any) -> Iterator[np.ndarray]:
        yield self.values[X]


class KnownRegressor(RegressorMixin, BaseEstimator):
    """A regressor of known values, in the shape that predict returns; points are places in them."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self.fitted_ = True

    def fit(self, X: Any, y: Any) -> KnownRegressor:
        """Do nothing."""
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the known values."""
        return self.values[X]


def known(model: Any, values: np.ndarray) -> KnownClassifier | KnownRegressor:
    """Return what stands for a machine whose values, (points, pairs), are known."""
    return KnownClassifier(model, values) if isinstance(model, PairwiseClassifier) else KnownRegressor(values[:, 0])
