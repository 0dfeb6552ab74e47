"""Linear support vector regression, up to millions of rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from mercer.estimators.linear.machine import LinearMachine
from mercer.estimators.shared.inputs import refuse_words
from mercer.estimators.shared.margins import linear_tube_table
from mercer.estimators.shared.parameters import is_real
from mercer.estimators.shared.ranges import whole_fit


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
    dual, intercept_scaling, random_state
        Nothing depends on them, as for `LinearSVC`.

    Attributes
    ----------
    coef_, intercept_
        w, of shape (features,), and b.
    n_iter_, n_features_in_, function_, certificate_, history_
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
        dual: Any = "auto",
        intercept_scaling: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.epsilon = epsilon
        self.C = C
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.verbose = verbose
        self.dual = dual
        self.intercept_scaling = intercept_scaling
        self.random_state = random_state

    @whole_fit
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
        if not is_real(self.epsilon) or not 0 <= self.epsilon < math.inf:
            raise ValueError(f"epsilon={self.epsilon!r} of LinearSVR must be a finite number >= 0.")
        data, targets = self._read(X, y, reset=True)
        self.coef_ = self._fit(data, targets, sample_weight, X, y)[0]
        return self

    def _read(self, X: Any, y: Any, reset: bool) -> tuple[Any, np.ndarray]:
        types = [np.float64, np.float32]
        refuse_words(self, y)
        X, y = validate_data(self, X, y, reset=reset, accept_sparse="csr", dtype=types, y_numeric=True)
        return X, np.asarray(y, dtype=np.float64)

    def _problems(self, y: np.ndarray, cost: np.ndarray) -> list[dict[str, Any]]:
        sign = np.broadcast_to([[1.0], [-1.0]], (2, len(y)))
        return [{"sign": sign, "target": sign * y - self.epsilon, "cost": cost}]

    def margins(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Return where each sample lies in the tube (M7), as a pandas DataFrame: the table of `SVR.margins`.

        Parameters
        ----------
        X, y, sample_weight
            What the model was fitted to. For other samples alpha and kkt are NaN, and the residual gives the role.
        """
        return linear_tube_table(self, X, y, sample_weight)

    def predict(self, X: Any) -> np.ndarray:
        """Return w.x + b for each row.

        Parameters
        ----------
        X
            The points.
        """
        return self._values(X)[:, 0]
