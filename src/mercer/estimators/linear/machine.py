"""The base of linear support vector machines: w itself instead of an expansion, its certificate, its values."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.certify import Certificate, Stop, combined
from mercer.estimators.shared.data import positive_weights
from mercer.estimators.shared.fitting import CallbackSupportMixin, finite, listening, with_callbacks
from mercer.estimators.shared.parameters import FINITE_PRICE, Rules, Unnecessary, with_parameters
from mercer.estimators.svm.machine import Recheck
from mercer.rkhs.functions.vector import linear_functions
from mercer.solvers.control import Control, warn_unfinished
from mercer.solvers.linear.crammer_singer import Classes, solve_crammer_singer
from mercer.solvers.linear.problem import LinearProblem, LinearSolution
from mercer.solvers.linear.rows import Rows
from mercer.solvers.linear.solve import solve_linear_models
from mercer.solvers.linear.verify import check_crammer_singer, check_linear
from mercer.solvers.run import history_tables

_STRIP = 2**15  # rows whose values are computed at a time where X has to be converted


@with_parameters
class LinearMachine(CallbackSupportMixin, BaseEstimator):
    """What `LinearSVC` and `LinearSVR` share."""

    _: KW_ONLY
    C: float = 1.0
    tol: float = 1e-5
    fit_intercept: bool = True
    max_iter: int = -1
    time_limit: float | None = None
    verbose: int = 0
    dual: Any = "auto"
    intercept_scaling: float = 1.0
    random_state: Any = None

    _losses: ClassVar[tuple[str, str]]  # the plain one and the squared one
    _few_weights = False  # whether |w|_1 is the penalty
    _rules: ClassVar[Rules] = {"C": (FINITE_PRICE[0], f"{FINITE_PRICE[1]} (SVC has hard margins)")}
    _unnecessary: ClassVar[Unnecessary] = {
        "dual": ("auto", "the solver is chosen by the shape of X, and its answer is proven by both problems"),
        "intercept_scaling": (1.0, "the offset is not penalised"),
        "random_state": (None, "nothing is random"),
    }

    def _weighted(self, X: Any, y: np.ndarray, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return the samples that count and C times their weights."""
        weights, rows = positive_weights(sample_weight, X.shape[0])
        if rows is not None:
            X, y = X[rows], y[rows]
        return X, y, np.broadcast_to(float(self.C), X.shape[0]) if weights is None else self.C * weights

    def _problems(self, y: np.ndarray, cost: np.ndarray) -> list[dict[str, Any]]:
        """Return sign, target and cost of each problem, or codes, count and cost of a joint one."""
        raise NotImplementedError

    @with_callbacks
    def _solve(self, data: Any, problems: list[dict[str, Any]], X: Any, y: Any) -> list[LinearSolution]:
        rows = Rows.of(data, bool(self.fit_intercept))
        squared = self.loss == self._losses[1]
        with listening(self, X, y, {}) as report:
            control = Control(self.tol, self.max_iter, self.time_limit, report=report)
            if "codes" in problems[0]:
                return [solve_crammer_singer(Classes(rows, **problems[0]), control)]
            models = [LinearProblem(rows, **p, squared=squared) for p in problems]
            return solve_linear_models(models, control, self._few_weights)

    def _fit(self, data: Any, y: np.ndarray, sample_weight: Any, X: Any, labels: Any) -> np.ndarray:
        data, y, cost = self._weighted(data, y, sample_weight)
        solutions = self._solve(data, self._problems(y, cost), X, labels)
        self.n_iter_ = max(s.certificate.iterations for s in solutions)
        self._certificates = [s.certificate for s in solutions]
        self._alphas = [s.alpha for s in solutions]
        self._history = [list(map(tuple, s.history)) for s in solutions]
        self.intercept_ = np.array([s.b for s in solutions]).reshape(-1)
        coef = np.vstack([s.w for s in solutions])
        certificate = self.certificate_
        if certificate.stopped != Stop.CONVERGED:
            warn_unfinished(certificate.stopped, certificate.relative_gap, self.tol)
        return coef

    @property
    def certificate_(self) -> Certificate:
        """Primal, dual and gap of the fit; `.verify(X, y)` recomputes them by other code."""
        check_is_fitted(self, "_certificates")
        seconds = max(c.seconds for c in self._certificates)
        return combined(self._certificates, seconds=seconds, check=Recheck(self))

    def _rechecked(self, X: Any, y: Any, sample_weight: Any) -> Certificate:
        """Return the certificate, recomputed from the training data."""
        alphas = self._alphas
        X, y = self._read(X, y, reset=False)
        X, y, cost = self._weighted(X, y, sample_weight)
        if X.shape[0] != alphas[0].shape[1]:
            raise ValueError(
                f"the model was fitted to {alphas[0].shape[1]} samples of positive weight and X has {X.shape[0]}; "
                "verify with the X, y and sample_weight of the fit."
            )
        problems, w, b = self._problems(y, cost), self._weights(), np.atleast_1d(self.intercept_)
        terms = {"intercept": bool(self.fit_intercept), "tol": self._certificates[0].tol}
        if "codes" in problems[0]:
            if len(w) == 1:  # of two classes the difference is kept
                w, b = np.vstack([-0.5 * w, 0.5 * w]), np.array([-0.5, 0.5]) * b
            codes = problems[0]["codes"]
            return check_crammer_singer(X, w=w, b=b, codes=codes, cost=problems[0]["cost"], beta=alphas[0], **terms)
        terms |= {"squared": self.loss == self._losses[1], "few_weights": self._few_weights}
        return combined(
            [
                check_linear(X, w=w[i], b=float(b[i]), alpha=alphas[i], **problem, **terms)
                for i, problem in enumerate(problems)
            ]
        )

    @property
    def history_(self) -> Any:
        """The course of the fit: fields steps, primal, dual, gap, support and seconds; for several problems a tuple."""
        check_is_fitted(self, "_history")
        return history_tables(self._history)

    def _weights(self) -> np.ndarray:
        """Return w, a row for each machine, dense."""
        return np.atleast_2d(self.coef_.toarray() if sparse.issparse(self.coef_) else self.coef_)

    @finite
    def _values(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        if sparse.issparse(self.coef_):
            product = X @ self.coef_.T
            return np.asarray(product.toarray() if sparse.issparse(product) else product) + self.intercept_
        coef = np.atleast_2d(self.coef_).T
        if sparse.issparse(X) or X.dtype == np.float64:
            return np.asarray(X @ coef) + self.intercept_
        values = np.empty((X.shape[0], coef.shape[1]))
        for i in range(0, len(values), _STRIP):
            np.dot(X[i : i + _STRIP].astype(np.float64), coef, out=values[i : i + _STRIP])
        return values + self.intercept_

    @property
    def function_(self) -> Any:
        """w.x + b as an `RKHSFunction` of the linear kernel, its norm |w|; one for each class as an `RKHSVector`."""
        check_is_fitted(self)
        return linear_functions(self._weights(), self.intercept_, single=len(self.intercept_) == 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


_has_weights = available_if(lambda self: getattr(self, "kernel", None) is None)


class SparseWeights:
    """What linear classifiers offer for their `coef_`, as in scikit-learn."""

    coef_: Any

    @_has_weights
    def sparsify(self) -> Self:
        """Keep `coef_` as a sparse matrix, which takes less memory and time where more than half of it is zero."""
        check_is_fitted(self, "coef_")
        self.coef_ = sparse.csr_matrix(self.coef_)
        return self

    @_has_weights
    def densify(self) -> Self:
        """Keep `coef_` as an array again."""
        check_is_fitted(self, "coef_")
        if sparse.issparse(self.coef_):
            self.coef_ = self.coef_.toarray()
        return self
