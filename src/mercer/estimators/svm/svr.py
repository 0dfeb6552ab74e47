"""Support vector regression: targets, predictions and the tube; SVR with epsilon, NuSVR with nu in its place."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mercer.certify import Certificate
from mercer.estimators.shared.data import read_targets
from mercer.estimators.shared.fitting import whole_fit
from mercer.estimators.shared.margins import tube_table
from mercer.estimators.shared.parameters import FINITE_PRICE, SEARCHED_KERNEL, Rules, check_parameters, with_parameters
from mercer.estimators.svm.machine import SingleMachine, filled


@with_parameters
class TubeRegressor(RegressorMixin, SingleMachine):
    """A regressor that does not mind residuals inside a tube."""

    _: KW_ONLY
    C: float = 1.0

    _numeric_target: ClassVar[bool] = True
    _rules: ClassVar[Rules] = {"kernel": SEARCHED_KERNEL}

    def _tube(self) -> float:
        """Half the width of the tube."""
        raise NotImplementedError

    def _bounds(self, weights: np.ndarray) -> np.ndarray:
        """The largest coefficient of each sample."""
        return np.asarray(self.C * weights)

    @whole_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Find the flattest function that keeps most targets in the tube.

        Parameters
        ----------
        X, sample_weight
            As for `SVC.fit`.
        y
            A number for each point.

        Returns
        -------
        self
        """
        check_parameters(self)
        data, target = self._read(X, y)
        target = np.asarray(target, dtype=np.float64)
        self._warn_unfinished(self._fit(X, y, target, data, sample_weight), data, target)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return f at each point."""
        check_is_fitted(self)
        return self._values(self._read_new(X))

    def margins(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Return where each sample lies in the tube (M7), as a pandas DataFrame.

        Parameters
        ----------
        X, y, sample_weight
            What the model was fitted to. For other samples alpha and kkt are NaN, and the residual gives the role.

        Returns
        -------
        DataFrame
            Per sample: `alpha`; `residual`, y - f(x); `slack`, by how much it leaves the tube; `role`, "inside the
            tube" (alpha = 0), "on the tube" (0 < alpha < C) or "outside the tube" (alpha = C); `kkt`, by how much the
            residual contradicts the role.
        """
        return tube_table(self, X, y, sample_weight)

    def _rechecked(self, X: Any, y: Any, sample_weight: Any) -> Certificate:
        data = self._read_new(X)
        return self._rechecked_target(data, read_targets(self, data, y, True), sample_weight)


@with_parameters
class SVR(TubeRegressor):
    r"""Support vector regression: residuals up to epsilon cost nothing, larger ones by their excess.

    .. math:: \min_{f, b} \; \tfrac12 \|f\|_H^2 + C \sum_i w_i \max(0, |y_i - f(x_i) - b| - \varepsilon)

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol
        As for `SVC`.
    C
        The price of leaving the tube, > 0; inf for a tube that no target leaves, which fails with the evidence where
        no function of the kernel's space stays in it (up to 3,000 samples).
    epsilon
        Half the width of the tube, >= 0.
    max_iter, time_limit, verbose, budget, checkpoint, warm_start, dtype, shrinking, cache_size, fit_intercept
        As for `SVC`.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, n_iter_, shape_fit_, coef_, fit_status_
        As in scikit-learn (`dual_coef_` is an array for sparse X too).
    kernel_, certificate_, function_, plan_, history_
        As for `SVC`.

    Notes
    -----
    docs/svm.md lists the differences from scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVR
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = SVR(C=10.0, epsilon=0.05).fit(X, np.sin(X[:, 0]))
    >>> bool(np.abs(model.predict(X) - np.sin(X[:, 0])).max() < 0.06)
    True
    """

    _: KW_ONLY
    epsilon: float = 0.1
    fit_intercept: bool = True

    def _tube(self) -> float:
        return float(self.epsilon)

    def _terms(self, y: np.ndarray, weights: np.ndarray) -> dict[str, Any]:
        bound, width = self.C * weights, np.full(len(y), float(self.epsilon))
        offset = "free" if self.fit_intercept else "none"
        return {"linear": -y, "width": width, "upper": bound, "lower": bound, "offset": offset}


@with_parameters
class NuSVR(TubeRegressor):
    r"""Support vector regression that is told the share of samples outside the tube instead of its width.

    .. math:: \min_{f, b, \varepsilon} \; \tfrac12 \|f\|_H^2 + C \sum_i w_i \bigl(\nu \varepsilon
              + \max(0, |y_i - f(x_i) - b| - \varepsilon)\bigr)

    Parameters
    ----------
    nu
        At most this share of the samples lies outside the tube, 0 < nu <= 1.
    C
        The price of leaving the tube, > 0 and finite.
    kernel, degree, gamma, coef0, tol
        As for `SVC`.
    max_iter, time_limit, verbose, budget, checkpoint, warm_start, dtype, shrinking, cache_size
        As for `SVC`.

    Attributes
    ----------
    epsilon_
        Half the width of the tube that was found.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, n_iter_, shape_fit_, coef_, fit_status_
        As in scikit-learn.
    kernel_, certificate_, function_, plan_, history_
        As for `SVC`.

    Notes
    -----
    With nu = k / n and equal weights the losses, at the best epsilon, are the sum of the k largest errors
    |y - f(x) - b|: a joint loss of all values, which `mercer.losses.LargestErrors` is for `KernelMachine`.

    docs/svm.md lists the differences from scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import NuSVR
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.cos(40 * X[:, 0])
    >>> model = NuSVR(nu=0.2, C=10.0).fit(X, y)
    >>> bool((np.abs(model.predict(X) - y) > model.epsilon_ + 1e-2).mean() <= 0.2)
    True
    """

    _: KW_ONLY
    nu: float = 0.5

    _rules: ClassVar[Rules] = {**TubeRegressor._rules, "C": FINITE_PRICE}

    @property
    def epsilon_(self) -> float:
        """Half the width of the tube."""
        check_is_fitted(self)
        return -self._half_width

    def _tube(self) -> float:
        return self.epsilon_

    def _terms(self, y: np.ndarray, weights: np.ndarray) -> dict[str, Any]:
        bound = self.C * weights
        start = filled(bound, self.nu * float(bound.sum()) / 2)
        return {"linear": -y, "upper": bound, "lower": bound, "offset": "split", "plus": start, "minus": start.copy()}
