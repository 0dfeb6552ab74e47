"""The base of SVR, NuSVR and OneClassSVM: one machine with one function."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.certify import Certificate
from mercer.estimators.shared.choosing import chosen_kernel
from mercer.estimators.shared.expansion import found_functions
from mercer.estimators.shared.ranges import finite
from mercer.estimators.shared.training import Training
from mercer.estimators.svm.machine import Statement, SupportVectorMachine
from mercer.kernels import Linear


class SingleMachine(SupportVectorMachine):
    """A model that is one function f."""

    def _terms(self, y: np.ndarray, weights: np.ndarray) -> dict[str, Any]:
        """Return the terms of `SVMDual`, from the targets and the weights of the samples."""
        raise NotImplementedError

    def _fit(self, X: Any, y: Any, target: np.ndarray, data: Any, sample_weight: Any) -> Training:
        training = self._training(data, sample_weight, chosen_kernel(self, data, target, sample_weight))
        solution = self._solve(training, [self._statement(training, target)], X, y)[0]
        b = solution.coefficients
        support = np.flatnonzero(b)
        self._keep(training, data, support, [b[support, None]])
        self.intercept_ = np.array([solution.offset])
        self.n_iter_ = int(solution.certificate.iterations)
        self._half_width = float(solution.half_width)
        both = np.minimum(solution.plus, solution.minus)
        at = np.flatnonzero(both)
        self._both = (training.original(at), both[at])
        return training

    def _statement(self, training: Training, target: np.ndarray) -> Statement:
        if training.rows is not None:
            target = target[training.rows]
        weights = np.ones(len(target)) if training.weights is None else training.weights
        return Statement(None, self._terms(target, weights))

    @finite
    def _values(self, X: Any) -> np.ndarray:
        """Return f at validated points."""
        if isinstance(self.kernel_, Linear) and self._kind == "vectors":
            return np.asarray(X @ self.coef_[0], dtype=np.float64) + self.intercept_[0]
        return self._sums(X)[:, 0, 0] + self.intercept_[0]

    @property
    def function_(self) -> Any:
        """The function that was found, as an `RKHSFunction`; for kernel="precomputed" on the places in `support_`."""
        check_is_fitted(self)
        return found_functions(self.kernel_, self._support_points(), self.dual_coef_.T, self.intercept_, single=True)

    def _all_coefficients(self) -> np.ndarray:
        """The coefficient of every sample that was given."""
        b = np.zeros(self.shape_fit_[0])
        b[self.support_] = self.dual_coef_[0]
        return b

    def _rechecked_target(self, data: Any, target: np.ndarray, sample_weight: Any) -> Certificate:
        training = self._training(data, sample_weight, self.kernel_)
        b, both = self._all_coefficients(), np.zeros(self.shape_fit_[0])
        both[self._both[0]] = self._both[1]
        if training.rows is not None:
            b, both = b[training.rows], both[training.rows]
        return self._recheck_one(
            training,
            self._statement(training, target),
            np.maximum(b, 0.0) + both,
            np.maximum(-b, 0.0) + both,
            float(self.intercept_[0]),
            self._half_width,
        )
