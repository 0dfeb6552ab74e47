"""The support vector machine of a single class."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from mercer.certify import Certificate
from mercer.estimators.shared.fitting import whole_fit
from mercer.estimators.shared.margins import one_class_table
from mercer.estimators.shared.parameters import check_parameters, with_parameters
from mercer.estimators.svm.machine import SingleMachine, filled


@with_parameters
class OneClassSVM(OutlierMixin, SingleMachine):
    r"""Where most of the data are: the half-space of feature space farthest from the origin that holds them.

    .. math:: \min_{f, \rho} \; \tfrac12 \|f\|_H^2 - \nu \rho \sum_i w_i + \sum_i w_i \max(0, \rho - f(x_i))

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol
        As for `SVC`.
    nu
        At most this share of the samples lies outside, 0 < nu <= 1; at least this share are support vectors.
    max_iter, time_limit, verbose, budget, checkpoint, warm_start, dtype, shrinking, cache_size
        As for `SVC`.

    Attributes
    ----------
    offset_
        rho: `decision_function` is `score_samples` minus this.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, n_iter_, shape_fit_, coef_, fit_status_
        As in scikit-learn: the coefficients sum to nu times the sum of the weights.
    kernel_, certificate_, function_, plan_, history_
        As for `SVC`.

    Notes
    -----
    docs/svm.md lists the differences from scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import OneClassSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = OneClassSVM(nu=0.1).fit(X)
    >>> bool((model.decision_function(X) < -1e-2).mean() <= 0.1), model.predict([[0.0, 0.0], [9.0, 9.0]])
    (True, array([ 1, -1]))
    """

    _: KW_ONLY
    nu: float = 0.5

    @whole_fit
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Find the region.

        Parameters
        ----------
        X
            The training points, as for `SVC`.
        y
            Not used.
        sample_weight
            A weight for each, at least 0; weight 0 drops the sample.

        Returns
        -------
        self
        """
        check_parameters(self)
        data, _ = self._read(X, targets=False)
        n = data.shape[0] if hasattr(data, "shape") else len(data)
        training = self._fit(X, None, np.zeros(n), data, sample_weight)
        self.offset_ = -self.intercept_
        self._warn_unfinished(training, data)
        return self

    def _terms(self, y: np.ndarray, weights: np.ndarray) -> dict[str, Any]:
        total = self.nu * float(weights.sum())
        return {"linear": y, "upper": weights, "lower": np.zeros(len(y)), "plus": filled(weights, total)}

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) - rho: positive inside, negative outside."""
        check_is_fitted(self)
        return self._values(self._read_new(X))

    def score_samples(self, X: Any) -> np.ndarray:
        """Return f(x)."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """Return 1 for points inside and -1 for outliers."""
        return np.where(self.decision_function(X) > 0, 1, -1).astype(np.intp)

    def margins(self, X: Any, sample_weight: Any = None) -> Any:
        """Return where each sample lies (M7), as a pandas DataFrame.

        Parameters
        ----------
        X, sample_weight
            What the model was fitted to. For other samples alpha and kkt are NaN.

        Returns
        -------
        DataFrame
            Per sample: `alpha`; `margin`, f(x) - rho; `slack`, max(0, -margin); `role`, "inside" (alpha = 0), "on the
            boundary" (0 < alpha < 1) or "outlier" (alpha = 1); `kkt`, by how much the margin contradicts the role.
        """
        return one_class_table(self, X, sample_weight)

    def _rechecked(self, X: Any, y: Any, sample_weight: Any) -> Certificate:
        data = self._read_new(X)
        n = data.shape[0] if hasattr(data, "shape") else len(data)
        return self._rechecked_target(data, np.zeros(n), sample_weight)
