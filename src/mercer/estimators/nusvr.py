"""Support vector regression with nu in place of epsilon."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.base import filled
from mercer.estimators.parameters import FINITE_PRICE, Rules
from mercer.estimators.regressor import TubeRegressor


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

    _rules: ClassVar[Rules] = {**TubeRegressor._rules, "C": FINITE_PRICE}

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        max_iter: int = -1,
        time_limit: float | None = None,
        verbose: int = 0,
        budget: int | float | str | None = None,
        checkpoint: Any = None,
        warm_start: bool = False,
        dtype: str = "auto",
        shrinking: bool = True,
        cache_size: float = 200,
    ) -> None:
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.verbose = verbose
        self.budget = budget
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.dtype = dtype
        self.shrinking = shrinking
        self.cache_size = cache_size

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
