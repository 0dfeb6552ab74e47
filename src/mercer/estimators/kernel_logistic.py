"""Logistic regression with kernels."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.base import ClassifierMixin

from mercer.estimators.kernel_machine import KernelMachine
from mercer.estimators.parameters import FINITE_PRICE, Rules
from mercer.losses import Logistic, Multinomial, SquaredNorm


class KernelLogisticRegression(ClassifierMixin, KernelMachine):
    r"""Probabilities of classes, their logarithmic odds a function of H plus a constant.

    .. math:: \min_{f, b} \; \tfrac12 \|f\|_H^2 + C \sum_i w_i \log\bigl(1 + e^{-y_i (f(x_i) + b)}\bigr)

    For more than two classes each has its function, and the loss is that of their softmax, the multinomial one.

    Parameters
    ----------
    C
        The price of the losses, > 0 and finite.
    kernel, degree, gamma, coef0, class_weight
        As for `SVC`.
    fit_intercept, solver, tol
        As for `KernelMachine`.
    max_iter, time_limit, verbose, budget, checkpoint, warm_start, dtype
        As for `SVC`.

    Attributes
    ----------
    classes_, dual_coef_, intercept_, function_, X_fit_, kernel_, coef_, certificate_, plan_, history_, n_iter_
        As for `KernelMachine`.

    Notes
    -----
    The probabilities are calibrated by construction: the derivative by b is 0 at the minimum, so that the (weighted)
    mean of the probability of a class over the training data is the (weighted) share of that class. Class weights
    change these shares, and with them the probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelLogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = np.where((X**2).sum(axis=1) < 1.4, "in", "out")
    >>> model = KernelLogisticRegression(C=10.0).fit(X, y)
    >>> model.predict([[0.0, 0.0], [3.0, 0.0]]).tolist(), model.score(X, y) > 0.95
    (['in', 'out'], True)
    >>> share = model.predict_proba(X)[:, 1].mean()
    >>> bool(abs(share - (y == "out").mean()) < 1e-4)
    True
    """

    _rules: ClassVar[Rules] = {"C": FINITE_PRICE}

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = -1,
        time_limit: float | None = None,
        verbose: int = 0,
        budget: int | float | str | None = None,
        checkpoint: Any = None,
        warm_start: bool = False,
        dtype: str = "auto",
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.verbose = verbose
        self.budget = budget
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.dtype = dtype

    def _loss_object(self) -> Any:
        return Multinomial() if len(getattr(self, "classes_", ())) > 2 else Logistic()

    def _penalty_object(self) -> Any:
        return SquaredNorm(1.0)

    def _price(self) -> float:
        return float(self.C)
