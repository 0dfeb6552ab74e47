"""The base of linear support vector machines: w itself instead of an expansion, its certificate, its values."""

from __future__ import annotations

import math
import numbers
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.certify import Certificate, combined
from mercer.estimators.shared.expansion import linear_functions
from mercer.estimators.shared.inputs import positive_weights
from mercer.estimators.shared.parameters import Unnecessary, is_real, warn_unnecessary
from mercer.estimators.shared.progress import CallbackSupportMixin, listening, with_callbacks
from mercer.estimators.shared.ranges import finite
from mercer.solvers.control import Control, warn_unfinished
from mercer.solvers.linear.crammer_singer import Classes, solve_crammer_singer
from mercer.solvers.linear.problem import LinearProblem, LinearSolution
from mercer.solvers.linear.rows import Rows
from mercer.solvers.linear.solve import solve_linear_models
from mercer.solvers.linear.verify import check_crammer_singer, check_linear
from mercer.solvers.run import history_table

_STRIP = 2**15  # rows whose values are computed at a time where X has to be converted


class LinearMachine(CallbackSupportMixin, BaseEstimator):
    """What `LinearSVC` and `LinearSVR` share."""

    _losses: tuple[str, str]  # the plain one and the squared one
    _few_weights = False  # whether |w|_1 is the penalty
    _unnecessary: ClassVar[Unnecessary] = {
        "dual": ("auto", "the solver is chosen by the shape of X, and its answer is proven by both problems"),
        "intercept_scaling": (1.0, "the offset is not penalised"),
        "random_state": (None, "nothing is random"),
    }

    def _check(self) -> None:
        """Raise ValueError, naming the parameter and its value, unless every parameter is in its domain."""
        name = type(self).__name__
        if not is_real(self.C) or not 0 < self.C < math.inf:
            raise ValueError(f"C={self.C!r} of {name} must be a finite number > 0 (SVC has hard margins).")
        if self.loss not in self._losses:
            raise ValueError(f"loss={self.loss!r} of {name} must be one of {', '.join(map(repr, self._losses))}.")
        if not is_real(self.tol) or not 0 < self.tol < 1:
            raise ValueError(f"tol={self.tol!r} of {name} must be a relative duality gap with 0 < tol < 1.")
        if not isinstance(self.max_iter, numbers.Integral) or isinstance(self.max_iter, bool) or self.max_iter < -1:
            raise ValueError(f"max_iter={self.max_iter!r} of {name} must be a whole number >= 0, or -1 for no limit.")
        if self.time_limit is not None and not (is_real(self.time_limit) and self.time_limit > 0):
            raise ValueError(f"time_limit={self.time_limit!r} of {name} must be a number of seconds > 0, or None.")
        warn_unnecessary(self)

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
        self._history = [s.history for s in solutions]
        self.intercept_ = np.array([s.b for s in solutions]).reshape(-1)
        coef = np.vstack([s.w for s in solutions])
        certificate = self.certificate_
        if certificate.stopped != "converged":
            warn_unfinished(certificate.stopped, certificate.relative_gap, self.tol)
        return coef

    @property
    def certificate_(self) -> Certificate:
        """Primal, dual and gap of the fit; `.verify(X, y)` recomputes them by other code."""
        check_is_fitted(self, "_certificates")
        seconds = max(c.seconds for c in self._certificates)
        return combined(self._certificates, seconds=seconds, check=Recheck(self))

    @property
    def history_(self) -> Any:
        """The course of the fit: fields steps, primal, dual, gap, support and seconds; for several problems a tuple."""
        check_is_fitted(self, "_history")
        tables = tuple(map(history_table, self._history))
        return tables[0] if len(tables) == 1 else tables

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


class Recheck:
    """Recomputes the certificate of a fitted linear model from its training data."""

    def __init__(self, model: LinearMachine) -> None:
        self.model = model

    def __call__(self, X: Any, y: Any = None, sample_weight: Any = None) -> Certificate:
        model, alphas = self.model, self.model._alphas
        X, y = model._read(X, y, reset=False)
        X, y, cost = model._weighted(X, y, sample_weight)
        if X.shape[0] != alphas[0].shape[1]:
            raise ValueError(
                f"the model was fitted to {alphas[0].shape[1]} samples of positive weight and X has {X.shape[0]}; "
                "verify with the X, y and sample_weight of the fit."
            )
        problems, w, b = model._problems(y, cost), model._weights(), np.atleast_1d(model.intercept_)
        terms = {"intercept": bool(model.fit_intercept), "tol": model._certificates[0].tol}
        if "codes" in problems[0]:
            if len(w) == 1:  # of two classes the difference is kept
                w, b = np.vstack([-0.5 * w, 0.5 * w]), np.array([-0.5, 0.5]) * b
            codes = problems[0]["codes"]
            return check_crammer_singer(X, w=w, b=b, codes=codes, cost=problems[0]["cost"], beta=alphas[0], **terms)
        terms |= {"squared": model.loss == model._losses[1], "few_weights": model._few_weights}
        return combined(
            [
                check_linear(X, w=w[i], b=float(b[i]), alpha=alphas[i], **problem, **terms)
                for i, problem in enumerate(problems)
            ]
        )


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
