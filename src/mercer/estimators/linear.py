"""Linear support vector machines: w itself instead of an expansion in support vectors, up to millions of rows."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.certify import Certificate, combined
from mercer.estimators.inputs import positive_weights
from mercer.estimators.progress import CallbackSupportMixin, listening, with_callbacks
from mercer.solvers.control import Control, warn_unfinished
from mercer.solvers.linear_problem import LinearProblem, LinearSolution
from mercer.solvers.linear_rows import Rows
from mercer.solvers.linear_solve import solve_linear
from mercer.solvers.linear_verify import check_linear

_STRIP = 2**15  # rows whose values are computed at a time where X has to be converted


class LinearMachine(CallbackSupportMixin, BaseEstimator):
    """What `LinearSVC` and `LinearSVR` share."""

    _losses: tuple[str, str]  # the plain one and the squared one

    def _check(self) -> None:
        """Raise ValueError, naming the parameter and its value, unless every parameter is in its domain."""
        name = type(self).__name__
        if not _number(self.C) or not 0 < self.C < math.inf:
            raise ValueError(f"C={self.C!r} of {name} must be a finite number > 0 (SVC has hard margins).")
        if self.loss not in self._losses:
            raise ValueError(f"loss={self.loss!r} of {name} must be one of {', '.join(map(repr, self._losses))}.")
        if not _number(self.tol) or not 0 < self.tol < 1:
            raise ValueError(f"tol={self.tol!r} of {name} must be a relative duality gap with 0 < tol < 1.")
        if not isinstance(self.max_iter, numbers.Integral) or isinstance(self.max_iter, bool) or self.max_iter < -1:
            raise ValueError(f"max_iter={self.max_iter!r} of {name} must be a whole number >= 0, or -1 for no limit.")
        if self.time_limit is not None and not (_number(self.time_limit) and self.time_limit > 0):
            raise ValueError(f"time_limit={self.time_limit!r} of {name} must be a number of seconds > 0, or None.")

    def _weighted(self, X: Any, y: np.ndarray, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return the samples that count and C times their weights."""
        weights, rows = positive_weights(sample_weight, X.shape[0])
        if rows is not None:
            X, y = X[rows], y[rows]
        return X, y, np.full(X.shape[0], float(self.C)) if weights is None else self.C * weights

    def _problems(self, y: np.ndarray, cost: np.ndarray) -> list[dict[str, Any]]:
        """Return sign, target and cost of each problem, one per row of coef_."""
        raise NotImplementedError

    @with_callbacks
    def _solve(self, data: Any, problems: list[dict[str, Any]], X: Any, y: Any) -> list[LinearSolution]:
        rows = Rows.of(data, bool(self.fit_intercept))
        squared = self.loss == self._losses[1]
        solutions: list[LinearSolution] = []
        with listening(self, X, y, {}) as report:
            control = Control(self.tol, self.max_iter, self.time_limit, report=report)
            for problem in problems:
                solutions.append(solve_linear(LinearProblem(rows, **problem, squared=squared), control))
                if solutions[-1].certificate.stopped in ("interrupted", "stopped by the caller"):
                    control.max_iter = 0  # whoever stopped one class does not want to wait for the others
        return solutions

    def _fit(self, data: Any, y: np.ndarray, sample_weight: Any, X: Any, labels: Any) -> np.ndarray:
        data, y, cost = self._weighted(data, y, sample_weight)
        solutions = self._solve(data, self._problems(y, cost), X, labels)
        self.n_iter_ = max(s.certificate.iterations for s in solutions)
        self.certificate_ = combined(
            [s.certificate for s in solutions],
            seconds=max(s.certificate.seconds for s in solutions),
            check=Recheck(self, [s.alpha for s in solutions]),
        )
        self.intercept_ = np.array([s.b for s in solutions])
        coef = np.array([s.w for s in solutions])
        if self.certificate_.stopped != "converged":
            warn_unfinished(self.certificate_.stopped, self.certificate_.relative_gap, self.tol)
        return coef

    def _values(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        coef = np.atleast_2d(self.coef_).T
        if sparse.issparse(X) or X.dtype == np.float64:
            return np.asarray(X @ coef) + self.intercept_
        values = np.empty((X.shape[0], coef.shape[1]))
        for i in range(0, len(values), _STRIP):
            np.dot(X[i : i + _STRIP].astype(np.float64), coef, out=values[i : i + _STRIP])
        return values + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class Recheck:
    """Recomputes the certificate of a fitted linear model from its training data."""

    def __init__(self, model: LinearMachine, alphas: list[np.ndarray]) -> None:
        self.model = model
        self.alphas = alphas

    def __call__(self, X: Any, y: Any = None, sample_weight: Any = None) -> Certificate:
        model = self.model
        X, y = model._read(X, y, reset=False)
        X, y, cost = model._weighted(X, y, sample_weight)
        if X.shape[0] != self.alphas[0].shape[1]:
            raise ValueError(
                f"the model was fitted to {self.alphas[0].shape[1]} samples of positive weight and X has {X.shape[0]}; "
                "verify with the X, y and sample_weight of the fit."
            )
        parts = [
            check_linear(
                X,
                w=w,
                b=float(b),
                alpha=alpha,
                squared=model.loss == model._losses[1],
                intercept=bool(model.fit_intercept),
                tol=model.certificate_.tol,
                **problem,
            )
            for problem, alpha, w, b in zip(
                model._problems(y, cost),
                self.alphas,
                np.atleast_2d(model.coef_),
                np.atleast_1d(model.intercept_),
                strict=True,
            )
        ]
        return combined(parts)


class LinearSVC(ClassifierMixin, LinearMachine):
    r"""Linear support vector classification with a free offset.

    .. math:: \min_{w, b} \; \tfrac12 |w|^2 + C \sum_i s_i \, \ell(y_i (w \cdot x_i + b)),
              \qquad \ell(m) = \max(0, 1 - m) \text{ or its square}

    With the hinge it is `SVC(kernel="linear")`, found without support vectors: by interior points, in time proportional
    to the number of rows. More than two classes are told apart by one machine each, against the rest.

    Parameters
    ----------
    loss
        "hinge" or "squared_hinge".
    C
        The price of a unit of loss, > 0.
    tol
        The relative duality gap at which to stop.
    fit_intercept
        Whether there is an offset b. It is not penalised.
    class_weight
        Weights by class as a dictionary, "balanced", or None: C of a sample is multiplied by that of its class.
    max_iter, time_limit
        Limits of each machine in steps (-1 for none) and of the whole fit in seconds; the model is the best so far.
    verbose
        1 for a progress bar.

    Attributes
    ----------
    coef_, intercept_
        w and b, of shape (1, features) and (1,) for two classes, else one row per class.
    classes_, n_iter_, n_features_in_
        As in scikit-learn.
    certificate_
        Primal and dual objective, gap and worst KKT residual; `.verify(X, y)` recomputes them.

    Notes
    -----
    Differences from scikit-learn's LinearSVC: the offset is not penalised, so that there is no `intercept_scaling` and
    the answer is that of SVC; the default loss is therefore the hinge; `tol` is a relative duality gap; and
    nothing is random.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearSVC().fit(X, y)
    >>> model.coef_.shape, model.certificate_.converged, model.certificate_.verify(X, y).converged
    ((3, 4), True, True)
    """

    _losses = ("hinge", "squared_hinge")

    def __init__(
        self,
        *,
        loss: str = "hinge",
        C: float = 1.0,
        tol: float = 1e-5,
        fit_intercept: bool = True,
        class_weight: Any = None,
        max_iter: int = -1,
        time_limit: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.C = C
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVC:
        """Find w and b of every class.

        Parameters
        ----------
        X
            A matrix of float32 or float64, dense or sparse; it is not copied.
        y
            A class for each row.
        sample_weight
            A weight for each row, at least 0.

        Returns
        -------
        self
        """
        self._check()
        data, labels = self._read(X, y, reset=True)
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise ValueError(
                f"LinearSVC needs samples of at least two classes; y has one class only, {self.classes_[0]!r}. "
                "OneClassSVM describes a single class."
            )
        if self.class_weight is None:
            self.class_weight_ = np.ones(len(self.classes_))
        else:
            self.class_weight_ = compute_class_weight(self.class_weight, classes=self.classes_, y=labels)
            if not (self.class_weight_ > 0).all():
                c = self.classes_[int(np.argmin(self.class_weight_))]
                raise ValueError(
                    f"class_weight gives class {c!r} the weight {self.class_weight_.min():g}; use one > 0."
                )
        self.coef_ = self._fit(data, labels, sample_weight, X, y)
        return self

    def _read(self, X: Any, y: Any, reset: bool) -> tuple[Any, np.ndarray]:
        X, y = validate_data(self, X, y, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])
        if y.dtype.kind not in "iubU":
            check_classification_targets(y)
        return X, y

    def _problems(self, y: np.ndarray, cost: np.ndarray) -> list[dict[str, Any]]:
        codes = np.searchsorted(self.classes_, y)
        counts = np.bincount(codes, minlength=len(self.classes_))
        if not counts.all():
            c = self.classes_[int(np.argmin(counts))]
            raise ValueError(
                f"no sample of class {c!r} has a positive weight; give it one or leave the class out of y."
            )
        cost = cost * self.class_weight_[codes]
        target = np.broadcast_to(1.0, (1, len(y)))
        positive = range(len(self.classes_)) if len(self.classes_) > 2 else [1]
        return [{"sign": np.where(codes == c, 1.0, -1.0)[None], "target": target, "cost": cost} for c in positive]

    def decision_function(self, X: Any) -> np.ndarray:
        """Return w.x + b: one value per row for two classes, else one per class.

        Parameters
        ----------
        X
            The points.
        """
        values = self._values(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row: the sign of f, or the class whose f is largest.

        Parameters
        ----------
        X
            The points.
        """
        values = self._values(X)
        chosen = (values[:, 0] > 0).astype(int) if values.shape[1] == 1 else values.argmax(axis=1)
        return self.classes_[chosen]


class LinearSVR(RegressorMixin, LinearMachine):
    r"""Linear support vector regression with a free offset.

    .. math:: \min_{w, b} \; \tfrac12 |w|^2 + C \sum_i s_i \, \ell(y_i - w \cdot x_i - b),
              \qquad \ell(r) = \max(0, |r| - \varepsilon) \text{ or its square}

    Parameters
    ----------
    loss
        "epsilon_insensitive" or "squared_epsilon_insensitive".
    epsilon
        Half the width of the tube in which residuals cost nothing, >= 0.
    C, tol, fit_intercept, max_iter, time_limit, verbose
        As for `LinearSVC`.

    Attributes
    ----------
    coef_, intercept_
        w, of shape (features,), and b.
    n_iter_, n_features_in_, certificate_
        As for `LinearSVC`.

    Notes
    -----
    Differences from scikit-learn's LinearSVR are those of `LinearSVC`; epsilon is 0.1 by default, as in SVR.

    Examples
    --------
    >>> X = np.arange(10.0)[:, None]
    >>> model = LinearSVR(C=10.0, epsilon=0.0).fit(X, 2 * X[:, 0] + 1)
    >>> np.round(model.coef_, 2), np.round(model.intercept_, 2)
    (array([2.]), array([1.]))
    """

    _losses = ("epsilon_insensitive", "squared_epsilon_insensitive")

    def __init__(
        self,
        *,
        loss: str = "epsilon_insensitive",
        epsilon: float = 0.1,
        C: float = 1.0,
        tol: float = 1e-5,
        fit_intercept: bool = True,
        max_iter: int = -1,
        time_limit: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.epsilon = epsilon
        self.C = C
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVR:
        """Find w and b.

        Parameters
        ----------
        X
            A matrix of float32 or float64, dense or sparse; it is not copied.
        y
            A number for each row.
        sample_weight
            A weight for each row, at least 0.

        Returns
        -------
        self
        """
        self._check()
        if not _number(self.epsilon) or not 0 <= self.epsilon < math.inf:
            raise ValueError(f"epsilon={self.epsilon!r} of LinearSVR must be a finite number >= 0.")
        data, targets = self._read(X, y, reset=True)
        self.coef_ = self._fit(data, targets, sample_weight, X, y)[0]
        return self

    def _read(self, X: Any, y: Any, reset: bool) -> tuple[Any, np.ndarray]:
        types = [np.float64, np.float32]
        X, y = validate_data(self, X, y, reset=reset, accept_sparse="csr", dtype=types, y_numeric=True)
        return X, np.asarray(y, dtype=np.float64)

    def _problems(self, y: np.ndarray, cost: np.ndarray) -> list[dict[str, Any]]:
        sign = np.broadcast_to([[1.0], [-1.0]], (2, len(y)))
        return [{"sign": sign, "target": sign * y - self.epsilon, "cost": cost}]

    def predict(self, X: Any) -> np.ndarray:
        """Return w.x + b for each row.

        Parameters
        ----------
        X
            The points.
        """
        return self._values(X)[:, 0]


def _number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
