"""Support vector regression."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.estimators.regressor import TubeRegressor


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

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        max_iter: int = -1,
        time_limit: float | None = None,
        verbose: int = 0,
        budget: int | float | str | None = None,
        checkpoint: Any = None,
        warm_start: bool = False,
        dtype: str = "auto",
        shrinking: bool = True,
        cache_size: float = 200,
        fit_intercept: bool = True,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.verbose = verbose
        self.budget = budget
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.dtype = dtype
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.fit_intercept = fit_intercept

    def _tube(self) -> float:
        return float(self.epsilon)

    def _terms(self, y: np.ndarray, weights: np.ndarray) -> dict[str, Any]:
        bound, width = self.C * weights, np.full(len(y), float(self.epsilon))
        offset = "free" if self.fit_intercept else "none"
        return {"linear": -y, "width": width, "upper": bound, "lower": bound, "offset": offset}
