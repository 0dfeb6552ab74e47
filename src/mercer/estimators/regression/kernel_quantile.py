"""Quantile regression with kernels."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_pinball_score
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.regression.base import LossModel, Part, columns_of
from mercer.estimators.shared.fitting import whole_fit
from mercer.estimators.shared.parameters import BOOLEAN, FINITE_PRICE, Rules, check_parameters, is_real, with_parameters
from mercer.losses import Pinball, SquaredNorm


def _are_quantiles(value: Any) -> bool:
    if isinstance(value, str) or not isinstance(value, Iterable | numbers.Real):
        return False
    each = list(value) if isinstance(value, Iterable) else [value]
    return len(each) > 0 and all(is_real(q) and 0 < float(q) < 1 for q in each)


@with_parameters
class KernelQuantileRegressor(RegressorMixin, LossModel):
    r"""Conditional quantiles, each a function of H plus a constant.

    .. math:: \min_{f, b} \; \tfrac12 \|f\|_H^2 + C \sum_i w_i \, \rho_q(y_i - f(x_i) - b), \qquad
              \rho_q(r) = \max(q r, (q - 1) r)

    Parameters
    ----------
    quantiles
        A number q between 0 and 1, or several; 0.5 is the median.
    C
        The price of the losses, > 0 and finite.
    non_crossing
        Whether the predicted quantiles of each point are put in order. Fitted one by one, the 90% function may fall
        below the 80% function where there are few data. Sorting the values at each point (the rearrangement of
        Chernozhukov, Fernández-Val and Galichon, 2010) guarantees that predictions never decrease with q, everywhere,
        and the pinball loss summed over equally spaced quantiles does not grow. `function_` holds the functions as
        fitted.
    kernel, degree, gamma, coef0
        As for `SVC`.
    fit_intercept, solver, tol
        As for `KernelMachine`.
    max_iter, time_limit, verbose, budget, checkpoint, warm_start, dtype
        As for `SVC`.

    Attributes
    ----------
    quantiles_
        The quantiles, as an array.
    dual_coef_, intercept_, function_, X_fit_, kernel_, coef_, certificate_, plan_, history_, n_iter_
        As for `KernelMachine`, with one function for each quantile.

    Notes
    -----
    With an intercept the fit has the right coverage on its training data: at most a share q of the (weighted) samples
    lies below the q-function, and at most 1 - q above; the samples that lie on it make up the difference.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelQuantileRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 3, (300, 1))
    >>> y = np.sin(2 * X[:, 0]) + (0.1 + 0.3 * X[:, 0]) * rng.normal(size=300)
    >>> model = KernelQuantileRegressor((0.1, 0.5, 0.9), C=1.0).fit(X, y)
    >>> below = (y[:, None] < model.predict(X)).mean(axis=0)
    >>> bool(np.abs(below - [0.1, 0.5, 0.9]).max() < 0.05)
    True
    """

    quantiles: Any = (0.5,)
    C: float = 1.0
    _: KW_ONLY
    non_crossing: bool = False
    tol: float = 1e-4

    _rules: ClassVar[Rules] = {
        "C": FINITE_PRICE,
        "quantiles": (_are_quantiles, "a number between 0 and 1, or a sequence of such numbers"),
        "non_crossing": BOOLEAN,
    }

    @whole_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelQuantileRegressor:
        """Find the function of each quantile; X, y and sample_weight are those of `SVR.fit`."""
        check_parameters(self)
        data, target = self._read(X, y)
        self.quantiles_ = np.atleast_1d(np.asarray(self.quantiles, dtype=np.float64))
        self._fit(X, y, data, np.asarray(target, dtype=np.float64), sample_weight)
        return self

    def _parts(self, target: np.ndarray, weights: np.ndarray | None) -> list[Part]:
        price = np.full(len(target), float(self.C)) if weights is None else self.C * weights
        return [Part(target, Pinball(float(q)), SquaredNorm(1.0), price) for q in self.quantiles_]

    def predict(self, X: Any) -> np.ndarray:
        """Return the quantiles at each point, of shape (n,) for one and (n, quantiles) for several.

        Parameters
        ----------
        X
            Points as in `fit`; for kernel="precomputed", their similarities to all training samples.
        """
        check_is_fitted(self)
        values = self._values(self._read_new(X))
        if self.non_crossing:
            values[:, np.argsort(self.quantiles_)] = np.sort(values, axis=1)
        return values[:, 0] if len(self.quantiles_) == 1 else values

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of the pinball loss that is explained, D², averaged over the quantiles.

        Returns
        -------
        float
            1 - loss of the predictions / loss of the best constants for these y; 1 at best, as
            `sklearn.metrics.d2_pinball_score`.
        """
        values = columns_of(self.predict(X))
        scores = [
            d2_pinball_score(y, column, sample_weight=sample_weight, alpha=float(q))
            for q, column in zip(self.quantiles_, values.T, strict=True)
        ]
        return float(np.mean(scores))
