"""From what a user passes to points and a kernel: what every model with a kernel shares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from mercer.estimators.shared.inputs import (
    check_symmetric,
    positive_weights,
    read_anything,
    read_new_similarities,
    read_new_vectors,
    read_similarities,
    read_targets,
    read_vectors,
    refuse_words,
)
from mercer.estimators.shared.kernel_names import FromMatrices, compares_vectors, named_kernel
from mercer.estimators.shared.labels import as_given
from mercer.gram import Gram
from mercer.kernels import FromFunction, Kernel, Precomputed
from mercer.kernels.rules.scikit_learn import as_kernel
from mercer.machine.budget import Budget
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
    _compares_two: ClassVar[bool] = False  # whether a function as kernel takes two points rather than two sets of them
    _whole_matrices: ClassVar[bool] = True  # whether a function of two sets is called with all points where that fits
    gamma: Any = "scale"  # of named kernels, where a model has no parameters for it
    degree: int = 3
    coef0: float = 1.0
    kernel_params: dict[str, Any] | None = None
    kernel_: Any

    @property
    def _given_kernel(self) -> Any:
        """The parameter `kernel`: a name, a kernel object or a function."""
        return as_kernel(self.kernel)

    def _read(self, X: Any, y: Any = None, targets: bool = True) -> tuple[Any, Any]:
        """Return the training data, validated; sets n_features_in_ and feature_names_in_."""
        self._kind = self._reads()
        how, y = self._reads_targets(), as_given(y)
        if how[0]:
            refuse_words(self, y)
        if self._kind in ("anything", "function"):
            data = read_anything(self, X, fitting=True, arrays=self._kind == "function")
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
        """How X is read: as "similarities", as "vectors", as "anything", or for a "function", which gets arrays."""
        kernel = self._given_kernel
        if isinstance(kernel, str):
            return "similarities" if kernel == "precomputed" else "vectors"
        if not isinstance(kernel, Kernel):
            return "function"
        return "vectors" if compares_vectors(kernel) else "anything"

    def _read_new(self, X: Any) -> Any:
        """Return new points, validated against what the model was fitted to."""
        if self._kind == "similarities":
            return read_new_similarities(self, X, self.shape_fit_[0])
        if self._kind == "vectors":
            return read_new_vectors(self, X)
        return read_anything(self, X, fitting=False, arrays=self._kind == "function")

    def _resolved(self, data: Any) -> Kernel:
        """Return the kernel object, with every parameter known."""
        kernel = self._given_kernel
        if isinstance(kernel, str):
            if kernel == "precomputed":
                return Precomputed(data)
            return named_kernel(kernel, Points(data), self.gamma, self.degree, self.coef0)
        if isinstance(kernel, Kernel):
            return kernel.resolve(Points(data))
        if self._compares_two:
            return FromFunction(partial(kernel, **self.kernel_params) if self.kernel_params else kernel)
        return FromMatrices(kernel)

    def _training(self, data: Any, sample_weight: Any, kernel: Kernel | None = None) -> Training:
        """Return the samples with a positive weight; `kernel` is that of a fitted model, or one that was found."""
        n = int(data.shape[0]) if hasattr(data, "shape") else len(data)
        weights, rows = positive_weights(sample_weight, n)
        if isinstance(self.kernel, Precomputed):
            check_symmetric(np.asarray(self.kernel.matrix))
        if kernel is None or self._kind == "similarities":
            kernel = self._resolved(data)
        points = Points(np.arange(n) if self._kind == "similarities" else data)
        if self._whole_matrices and self._kind == "function" and isinstance(kernel, FromMatrices) and self._fits(n, n):
            matrix = kernel.matrix(points, points)
            check_symmetric(matrix, "matrix of the kernel function", "Return")
            kernel, points = Precomputed(matrix), Points(np.arange(n))
        return Training(points if rows is None else points.take(rows), kernel, weights, rows)

    def _fits(self, rows: int, columns: int) -> bool:
        """Whether a matrix may be held beside what is computed from it."""
        if self.budget is None and rows * columns <= _SMALL**2:
            return True
        return 16 * rows * columns <= Budget(self.budget)

    def _function_values(self, X: Any, fitted: Any, columns: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the values of a function at validated points and some columns of all training points.

        It is called with all points and all training points, as scikit-learn calls it, or where the matrix does not fit
        with some points after the other.
        """
        new, old = Points(X), Points(fitted)
        step = len(new) if self._fits(len(new), len(old)) else max(1, Budget(self.budget) // (16 * len(old)))
        for start in range(0, len(new), step):
            yield self.kernel_.matrix(new.take(slice(start, start + step)), old)[:, columns]

    def _gram(self, training: Training) -> Gram:
        points = training.points
        budget = self.budget
        if budget is None and len(points) <= _SMALL:
            budget = 8 * _SMALL**2  # asking the system how much is free would take longer than the fit
        return Gram(training.kernel, points, budget=budget)

    # -- for searches, which fit many models to parts of the same data ------------------------------------

    @property
    def input_kind(self) -> str:
        """How X is read: as "similarities", as "vectors", as "anything", or for a "function", which gets arrays."""
        return self._reads()

    @property
    def kernel_key(self) -> Any:
        """What the kernel depends on beside the data: a tuple, or where it waits for no data the kernel itself."""
        given = self._given_kernel
        if isinstance(given, Kernel) and given.resolved:
            return given
        return given, self.gamma, self.degree, self.coef0, repr(self.kernel_params)

    def read_training(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return X and y as `fit` reads them, validated."""
        return self._read(X, y)

    def kernel_of(self, data: Any) -> Kernel:
        """Return the kernel of a fit to data that were read, with every parameter known."""
        return self._resolved(data)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        similarities = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.input_tags.pairwise = similarities
        tags.input_tags.sparse = not similarities
        return tags
