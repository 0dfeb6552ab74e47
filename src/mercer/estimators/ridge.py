"""Ridge regression, by the weights of the features or by the coefficients of the samples (M11)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.estimators.functions import linear_functions
from mercer.estimators.inputs import positive_weights
from mercer.estimators.parameters import Rules, check_parameters, is_real
from mercer.points.budget import Budget
from mercer.solvers.linear_ridge import CentredRows, solve_linear_ridge

_TYPES = [np.float64, np.float32]


def is_strength(value: Any) -> bool:
    """Return whether the value is a finite number >= 0, or a vector of such numbers."""
    if is_real(value):
        return 0 <= value < math.inf
    if isinstance(value, str | bytes) or not hasattr(value, "__len__"):
        return False
    array = np.asarray(value)
    return (
        array.ndim == 1
        and array.size > 0
        and array.dtype.kind in "iuf"
        and bool(np.all((array >= 0) & (array < np.inf)))
    )


class Ridge(MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Linear regression with a penalty on the squared weights, solved on its smaller side.

    .. math:: \min_{w, b} \; \sum_i s_i (y_i - w \cdot x_i - b)^2 + \alpha |w|^2, \qquad
              w = (X'X + \alpha I)^{-1} X'y = X'(XX' + \alpha I)^{-1} y

    The first form is a system in the features, the second one in the samples: w lies in the span of the data. They give
    the same w, and the cheaper one is chosen.

    Parameters
    ----------
    alpha
        The strength of the penalty, >= 0; one for all targets or one for each. With 0 the solution is that of least
        squares, the shortest where there are many.
    fit_intercept
        Whether there is a b; it is not penalised.
    solver
        "primal" (features), "dual" (samples), or "auto": primal if there are fewer features than samples.
    budget
        Bytes that the matrix of the system may use, as for `SVC`. A larger system is solved by conjugate gradients,
        which need its products only.

    Attributes
    ----------
    coef_, intercept_
        w and b: of shape (features,) and a number, or (targets, features) and (targets,).
    dual_coef_
        The coefficients a of w = X'a, where the dual was solved: (samples,) or (samples, targets), X about its mean if
        there is an intercept.
    function_
        w.x + b as a function of the linear kernel, for several targets a vector of them; its norm is |w|.
    solver_
        "primal" or "dual".
    n_features_in_
        The number of features.

    Notes
    -----
    Parameters, attributes and scaling are those of scikit-learn's Ridge. `KernelRidge(alpha, kernel="linear")` is the
    dual without intercept.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Ridge
    >>> X = np.random.default_rng(0).normal(size=(20, 50))
    >>> y = X[:, 0] + 1.0
    >>> short, long = Ridge(1.0).fit(X, y), Ridge(1.0, solver="primal").fit(X, y)
    >>> short.solver_, np.allclose(short.coef_, long.coef_)
    ('dual', True)
    """

    _rules: ClassVar[Rules] = {
        "alpha": (is_strength, "a finite number >= 0, or one for each target"),
        "solver": (lambda v: isinstance(v, str) and v in ("auto", "primal", "dual"), "'auto', 'primal' or 'dual'"),
    }

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        fit_intercept: bool = True,
        solver: str = "auto",
        budget: int | float | str | None = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.budget = budget

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Ridge:
        """Find w and b.

        Parameters
        ----------
        X
            A matrix, dense or sparse.
        y
            A number for each row, or several in columns.
        sample_weight
            A weight for each row, at least 0.

        Returns
        -------
        self
        """
        check_parameters(self)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=_TYPES, y_numeric=True, multi_output=True)
        targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        alpha = strengths(self.alpha, targets.shape[1], type(self).__name__)
        weights, rows = positive_weights(sample_weight, X.shape[0])
        n = X.shape[0]
        if rows is not None:
            X, targets = X[rows], targets[rows]
        rows_of = CentredRows(X, weights, bool(self.fit_intercept))
        middle = np.average(targets, axis=0, weights=weights) if self.fit_intercept else np.zeros(targets.shape[1])
        right = rows_of.root[:, None] * (targets - middle)
        size = float(np.abs(right).max()) or 1.0  # so that y of 1e200 has squares
        self.solver_ = self.solver
        if self.solver == "auto":
            self.solver_ = "primal" if X.shape[1] < X.shape[0] else "dual"
        w, a = solve_linear_ridge(rows_of, right / size, alpha, self.solver_, Budget(self.budget))
        w *= size
        flat = np.ndim(y) == 1
        self.coef_ = w[:, 0] if flat else w.T
        offset = middle - rows_of.mean @ w
        self.intercept_: Any = float(offset[0]) if flat else offset
        if a is not None:
            dual = np.zeros((n, targets.shape[1]))
            dual[slice(None) if rows is None else rows] = rows_of.root[:, None] * a * size
            self.dual_coef_ = dual[:, 0] if flat else dual
        elif hasattr(self, "dual_coef_"):
            del self.dual_coef_
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return w.x + b for each row.

        Parameters
        ----------
        X
            The points.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=_TYPES)
        return np.asarray(X @ self.coef_.T, dtype=np.float64) + self.intercept_

    @property
    def function_(self) -> Any:
        """w.x + b as an `RKHSFunction` of the linear kernel, its norm |w|; one for each target as an `RKHSVector`."""
        check_is_fitted(self)
        return linear_functions(self.coef_, self.intercept_, single=self.coef_.ndim == 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def strengths(alpha: Any, targets: int, name: str) -> np.ndarray:
    """Return one alpha for each target."""
    found = np.asarray(alpha, dtype=np.float64)
    if found.ndim and found.shape != (targets,) and found.shape != (1,):
        raise ValueError(
            f"alpha of {name} has {len(found)} numbers and y has {targets} column{'s' * (targets > 1)}; give one alpha "
            "for all or one for each."
        )
    return np.broadcast_to(found, (targets,)).astype(np.float64)
