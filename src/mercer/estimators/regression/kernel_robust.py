"""Regression that outliers do not move."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from mercer.estimators.regression.kernel_machine import KernelMachine
from mercer.estimators.shared.fitting import whole_fit
from mercer.estimators.shared.parameters import (
    FINITE_PRICE,
    Rules,
    check_parameters,
    is_loss,
    positive,
    with_parameters,
)
from mercer.gram import Gram
from mercer.losses import Absolute, EpsilonInsensitive, Huber, SquaredNorm
from mercer.solvers.control import Control
from mercer.solvers.representer.engine import Minimiser

_NORMAL = 1.4826022185056018  # the standard deviation of a normal law in units of its median absolute deviation
_LOSSES = ("huber", "absolute", "epsilon_insensitive")
_SCALE_ROUNDS = 20  # fits at most in which the scale is estimated anew
_SCALE_CHANGE = 1e-2  # share of the scale by which the last round may change it


@with_parameters
class KernelRobustRegressor(RegressorMixin, KernelMachine):
    r"""Regression whose loss grows only linearly, so that no single target can pull far.

    .. math:: \min_{f, b} \; \tfrac12 \|f\|_H^2 + C \sum_i w_i \, L(y_i - f(x_i) - b), \qquad
              L(r) = \tfrac12 r^2 \text{ up to } \delta s, \; \delta s |r| - \tfrac12 (\delta s)^2 \text{ beyond}

    Parameters
    ----------
    loss
        "huber", the one above; "absolute", |r|: the median; "epsilon_insensitive", max(0, |r| - delta s); or a loss
        object for real targets, which is taken as it is.
    delta
        The residual, in units of the scale, from which a sample counts as an outlier. 1.345 makes Huber's loss 95% as
        efficient as least squares where the noise is normal.
    scale
        s: a number, or "mad" to estimate it as 1.4826 times the median of |y - f(x)|, the standard deviation of normal
        noise, robustly. f (of Huber's loss) and s are then found in turn until s changes by less than 1%.
    C
        The price of the losses, > 0 and finite.
    kernel, degree, gamma, coef0
        As for `SVC`.
    fit_intercept, solver, tol
        As for `KernelMachine`.
    max_iter, time_limit, verbose, budget, checkpoint, warm_start, dtype
        As for `SVC`.

    Attributes
    ----------
    scale_
        s.
    outliers_
        Which training samples have |y - f(x)| > delta s, as a mask.
    dual_coef_, intercept_, function_, X_fit_, kernel_, coef_, certificate_, plan_, history_, n_iter_
        As for `KernelMachine`.

    Notes
    -----
    scikit-learn's HuberRegressor minimises over its scale too (Huber's Proposal 2), with a linear function; here the
    scale is the median one, which half of the targets can not spoil.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRobustRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=200)
    >>> y[::10] = 30.0
    >>> model = KernelRobustRegressor(C=10.0).fit(X, y)
    >>> bool(np.abs(model.predict(X) - np.sin(X[:, 0])).max() < 0.1)
    True
    >>> bool(model.outliers_[::10].all()), bool(0.07 < model.scale_ < 0.15)
    (True, True)
    """

    loss: Any = "huber"
    C: float = 1.0
    _: KW_ONLY
    delta: float = 1.345
    scale: float | str = "mad"
    tol: float = 1e-4

    _rules: ClassVar[Rules] = {
        "C": FINITE_PRICE,
        "loss": (
            lambda v: v in _LOSSES if isinstance(v, str) else is_loss(v) and getattr(v, "target", "real") == "real",
            f"a loss object for real targets, or one of {', '.join(map(repr, _LOSSES))}",
        ),
        "delta": (lambda v: positive(v) and v < math.inf, "a number of scales > 0"),
        "scale": (
            lambda v: v == "mad" if isinstance(v, str) else positive(v) and v < math.inf,
            "a number > 0, or 'mad' for an estimate",
        ),
    }

    def _reads_targets(self) -> tuple[bool, bool]:
        return True, False

    def _loss_object(self) -> Any:
        if not isinstance(self.loss, str):
            return self.loss
        if self.loss == "absolute":
            return Absolute()
        threshold = float(self.delta) * getattr(self, "scale_", 1.0)
        return Huber(threshold) if self.loss == "huber" else EpsilonInsensitive(threshold)

    def _penalty_object(self) -> Any:
        return SquaredNorm(1.0)

    def _price(self) -> float:
        return float(self.C)

    @whole_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRobustRegressor:
        """Find the function, and the scale of the noise unless given; X, y and sample_weight are those of `SVR.fit`."""
        check_parameters(self)
        data, target = self._read(X, y)
        target = np.asarray(target, dtype=np.float64)
        self._fit(X, y, data, target, sample_weight)
        self.outliers_ = np.abs(target - self._values(data)[:, 0]) > float(self.delta) * self.scale_
        return self

    def _minimised(
        self,
        gram: Gram,
        target: np.ndarray,
        weights: np.ndarray | None,
        control: Control,
        starts: list[np.ndarray] | None,
    ) -> list[Minimiser]:
        if not isinstance(self.scale, str):
            self.scale_ = float(self.scale)
            return super()._minimised(gram, target, weights, control, starts)
        self.scale_ = _spread(target - _median(target, weights), weights, 1.0)
        if not isinstance(self.loss, str) or self.loss == "absolute":  # the scale is for `outliers_` only
            minimisers = super()._minimised(gram, target, weights, control, starts)
            self.scale_ = _spread(target - minimisers[0].values, weights, self.scale_)
            return minimisers
        part = super()._parts(target, weights)[0]
        for _ in range(_SCALE_ROUNDS):
            part.loss = Huber(float(self.delta) * self.scale_)
            minimisers = self._each(gram, [part], control, starts)
            starts = [minimisers[0].coefficients]
            # The next rounds are other problems, and begin near their solutions.
            control = replace(control, checkpoint=None)
            scale = _spread(target - minimisers[0].values, weights, self.scale_)
            if abs(scale - self.scale_) <= _SCALE_CHANGE * self.scale_ or control.exhausted(0) is not None:
                break
            self.scale_ = scale
        # The last fit had this scale, unless the rounds have run out or the loss is another one.
        same = isinstance(self._loss_object(), Huber) and part.loss == self._loss_object()
        return minimisers if same else super()._minimised(gram, target, weights, control, starts)


def _spread(residual: np.ndarray, weights: np.ndarray | None, otherwise: float) -> float:
    """The weighted median of the residuals' sizes as a standard deviation; where that is 0, the mean of their sizes."""
    size = np.abs(residual)
    spread = _NORMAL * _median(size, weights) or float(np.average(size, weights=weights))
    return spread if spread > 0 else otherwise


def _median(values: np.ndarray, weights: np.ndarray | None) -> float:
    if weights is None:
        return float(np.median(values))
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    low = int(np.searchsorted(total, 0.5 * total[-1]))
    high = int(np.searchsorted(total, 0.5 * total[-1], side="right"))
    return 0.5 * float(values[order[low]] + values[order[min(high, len(order) - 1)]])
