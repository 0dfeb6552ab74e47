"""From what a user passes to points and a kernel: what every model with a kernel shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from mercer.estimators.inputs import (
    positive_weights,
    read_anything,
    read_new_similarities,
    read_new_vectors,
    read_similarities,
    read_targets,
    read_vectors,
)
from mercer.estimators.kernel_names import FromMatrices, compares_vectors, named_kernel
from mercer.estimators.labels import as_given
from mercer.gram import Gram
from mercer.kernels import Kernel, Precomputed
from mercer.points import Points

_SMALL = 1500  # points whose matrix is within any budget that the system's free memory would give


@dataclass
class Training:
    """The samples that count, as the solver sees them."""

    points: Points
    kernel: Kernel
    weights: np.ndarray | None  # None where all are 1
    rows: np.ndarray | None  # which of the samples given these are; None for all

    def original(self, index: np.ndarray) -> np.ndarray:
        """Return which of the samples given the chosen ones are."""
        return index if self.rows is None else self.rows[index]


class KernelData(BaseEstimator):
    """Reads X by the kernel that will compare it: as vectors, as similarities, or as it is."""

    _numeric_target: ClassVar[bool] = False

    def _read(self, X: Any, y: Any = None, targets: bool = True) -> tuple[Any, Any]:
        """Return the training data, validated; sets n_features_in_ and feature_names_in_."""
        self._kind = self._reads()
        how, y = self._reads_targets(), as_given(y)
        if self._kind == "anything":
            data = read_anything(self, X, fitting=True)
            return data, read_targets(self, data, y, *how) if targets else None
        if targets and y is None:
            read_targets(self, X, y, *how)  # says so
        read = read_similarities if self._kind == "similarities" else read_vectors
        data, y = read(self, X, y, *how)
        return data.astype(np.float64, copy=False) if self.dtype == "float64" else data, y

    def _reads_targets(self) -> tuple[bool, bool]:
        """How y is read: whether as numbers, and whether it may have several columns."""
        return self._numeric_target, False

    def _reads(self) -> str:
        """How X is read: as "similarities", as "vectors", or as "anything"."""
        if isinstance(self.kernel, str):
            return "similarities" if self.kernel == "precomputed" else "vectors"
        return "vectors" if isinstance(self.kernel, Kernel) and compares_vectors(self.kernel) else "anything"

    def _read_new(self, X: Any) -> Any:
        """Return new points, validated against what the model was fitted to."""
        if self._kind == "similarities":
            return read_new_similarities(self, X, self.shape_fit_[0])
        return read_new_vectors(self, X) if self._kind == "vectors" else read_anything(self, X, fitting=False)

    def _resolved(self, data: Any) -> Kernel:
        """Return the kernel object, with every parameter known."""
        if isinstance(self.kernel, str):
            if self.kernel == "precomputed":
                return Precomputed(data)
            return named_kernel(self.kernel, self.degree, self.gamma, self.coef0, Points(data))
        if isinstance(self.kernel, Kernel):
            return self.kernel.resolve(Points(data))
        return FromMatrices(self.kernel)

    def _training(self, data: Any, sample_weight: Any, kernel: Kernel | None = None) -> Training:
        """Return the samples with a positive weight; `kernel` is that of a fitted model, or one that was found."""
        n = int(data.shape[0]) if hasattr(data, "shape") else len(data)
        weights, rows = positive_weights(sample_weight, n)
        if kernel is None or self._kind == "similarities":
            kernel = self._resolved(data)
        points = Points(np.arange(n) if self._kind == "similarities" else data)
        return Training(points if rows is None else points.take(rows), kernel, weights, rows)

    def _gram(self, training: Training) -> Gram:
        points = training.points
        budget = self.budget
        if budget is None and len(points) <= _SMALL:
            budget = 8 * _SMALL**2  # asking the system how much is free would take longer than the fit
        return Gram(training.kernel, points, budget=budget)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        similarities = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.input_tags.pairwise = similarities
        tags.input_tags.sparse = not similarities
        return tags
