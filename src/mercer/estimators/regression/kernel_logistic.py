"""Logistic regression with kernels."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

from sklearn.base import ClassifierMixin

from mercer.estimators.regression.kernel_machine import KernelMachine
from mercer.estimators.shared.parameters import FINITE_PRICE, Rules, Unnecessary, is_real, with_parameters
from mercer.losses import Logistic, Multinomial, SquaredNorm


@with_parameters
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
    penalty, l1_ratio
        "l2" and 0, the only ones that a kernel has: the norm of f.
    dual, intercept_scaling, random_state, n_jobs
        Of scikit-learn's LogisticRegression; nothing here depends on them, and other values than its own are warned of.

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

    C: float = 1.0
    _: KW_ONLY
    class_weight: Any = None
    tol: float = 1e-6
    penalty: str = "l2"
    l1_ratio: float = 0.0
    dual: bool = False
    intercept_scaling: float = 1
    random_state: Any = None
    n_jobs: int | None = None

    _rules: ClassVar[Rules] = {
        "C": FINITE_PRICE,
        "penalty": (lambda v: isinstance(v, str) and v == "l2", "'l2': a kernel knows the norm of f and no other"),
        "l1_ratio": (lambda v: v is None or (is_real(v) and v == 0), "0: a kernel knows the norm of f and no other"),
    }
    _unnecessary: ClassVar[Unnecessary] = {
        "dual": (False, "the solver works on the coefficients of the kernel functions either way"),
        "intercept_scaling": (1, "the offset is not penalised"),
        "random_state": (None, "nothing is random"),
    }

    def _loss_object(self) -> Any:
        return Multinomial() if len(getattr(self, "classes_", ())) > 2 else Logistic()

    def _penalty_object(self) -> Any:
        return SquaredNorm(1.0)

    def _price(self) -> float:
        return float(self.C)
