"""Kernel machines that learn how their columns are to be compared."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin, clone
from sklearn.metrics import log_loss, zero_one_loss
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.certify import Certificate
from mercer.estimators.features.learned import WithMetric
from mercer.estimators.features.metric import FAMILIES, Learned, families_for, learn_metric
from mercer.estimators.regression.base import columns_of
from mercer.estimators.regression.kernel_logistic import KernelLogisticRegression
from mercer.estimators.regression.kernel_ridge import KernelRidge, KernelRidgeClassifier
from mercer.estimators.shared.classes import Labels, as_given
from mercer.estimators.shared.data import positive_weights, read_targets, refuse_words
from mercer.estimators.shared.fitting import whole_fit
from mercer.estimators.shared.parameters import Rules, check_parameters, positive, whole, with_parameters
from mercer.estimators.svm.machine import Recheck
from mercer.estimators.svm.svc import SVC
from mercer.kernels import Kernel
from mercer.machine.clock import Clock

FAMILY_NAMES = tuple(family.name for family in FAMILIES)
_LOSSES: dict[str, Any] = {"logistic": KernelLogisticRegression, "hinge": SVC, "squared": KernelRidgeClassifier}
_PRICES = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # of errors, half decades
_PRICED_ROWS = 3000  # on which they are compared, a third of them held out


def _known(value: Any) -> bool:
    names = [value] if isinstance(value, str) else value
    return isinstance(names, list | tuple) and len(names) > 0 and set(names) <= set(FAMILY_NAMES)


def _has_probabilities(model: FeatureLearningClassifier) -> bool:
    if model.loss != "logistic":
        raise AttributeError(f"predict_proba is for loss='logistic'; the {model.loss} loss has no probabilities.")
    return True


@with_parameters
class FeatureLearner(WithMetric, BaseEstimator):
    """The common part of the classifier and the regressor: the learning of the metric, and its attributes."""

    _rules: ClassVar[Rules] = {
        "families": (lambda v: v is None or _known(v), f"None or some of {', '.join(map(repr, FAMILY_NAMES))}"),
        "joint": (lambda v: whole(v, 1), "a whole number >= 1"),
        "time_limit": (lambda v: v is None or positive(v), "None or a number of seconds > 0"),
    }

    _: KW_ONLY
    families: Any = None
    joint: int = 2
    time_limit: float | None = None
    budget: int | float | str | None = None
    random_state: int | None = 0

    def _learned(self, X: np.ndarray, Y: np.ndarray, weights: np.ndarray | None, clock: Clock) -> Learned:
        """Learn the metric, and set what describes it."""
        names = [self.families] if isinstance(self.families, str) else self.families
        learned = learn_metric(
            X,
            Y,
            weights,
            families_for(X.shape[1], names),
            int(self.joint),
            self.random_state or 0,
            clock,
            budget=self.budget,
        )
        self.chosen_ = [step.family.name for step in learned.chosen]
        self.rounds_ = {
            "family": [step.family.name for step, _ in learned.tried],
            "round": np.array([step.number for step, _ in learned.tried]),
            "rows": np.array([rows for _, rows in learned.tried]),
            "error": np.sqrt([step.error for step, _ in learned.tried]),
        }
        return learned

    def _read_new(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "estimator_")
        return np.asarray(validate_data(self, X, reset=False, dtype=np.float64))

    @property
    def kernel_(self) -> Kernel:
        """The kernel that was learned, of rows as they are given."""
        check_is_fitted(self, "estimator_")
        kernel: Kernel = self.estimator_.kernel_
        return kernel

    @property
    def certificate_(self) -> Certificate:
        """The certificate of the last fit, with the learned kernel; `.verify(X, y)` takes the data of `fit`."""
        check_is_fitted(self, "estimator_")
        return replace(self.estimator_.certificate_, check=Recheck(self))

    @property
    def function_(self) -> Any:
        """The function of the kernel's space that was found."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.function_

    @property
    def plan_(self) -> str:
        """How the last fit was solved, and why."""
        check_is_fitted(self, "estimator_")
        return str(self.estimator_.plan_)

    @property
    def history_(self) -> Any:
        """The course of the last fit."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.history_

    def _rechecked(self, X: Any, y: Any, sample_weight: Any) -> Certificate:
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        checked: Certificate = self.estimator_.certificate_.verify(self._read_new(X), y, **weights)
        return checked


@with_parameters
class FeatureLearningRegressor(MultiOutputMixin, RegressorMixin, FeatureLearner):
    r"""Ridge regression with a kernel whose metric is learned from the data (a recursive feature machine).

    A function f is fitted, the mean outer product of its gradients says along which directions it changes, and its root
    is the metric of the next fit:

    .. math:: M = \frac1n \sum_i \nabla f(x_i) \nabla f(x_i)', \qquad k(x, z) = \kappa(|M^{1/2} (x - z)|)

    Which kernel, how many rounds, which scale and which alpha is judged by rows that the metric has not seen. The last
    fit is a `KernelRidge` with that kernel on all rows, with its proof and its certificate.

    Parameters
    ----------
    families
        What is tried: some of "Laplacian of ranks", "Laplacian" (one factor for each column), "exponential",
        "exponential of ranks", "Matern", "RBF" (metrics that mix columns). None for all that suit the number of
        columns.
    joint
        How many kernels the mean may have that is fitted in the end. A further one is taken where it lowers the error.
    time_limit
        Seconds for everything.
    budget
        As for `KernelRidge`.
    random_state
        For the halves of the rows.

    Attributes
    ----------
    metric_
        M, (d, d), in units of the columns' deviations (of their normal scores, with ranks) and with trace 1; of a mean
        of kernels the mean of theirs.
    chosen_
        The families of the kernels in the mean.
    feature_importances_
        The share of each column in the diagonal of `metric_`.
    rounds_
        A table of what was judged: "family", "round", "rows", and "error", the root of the mean square in units of
        the targets' deviation.
    estimator_, kernel_, certificate_, function_, plan_, history_
        The last fit, and its attributes.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Radhakrishnan, Beaglehole, Pandit and Belkin, Mechanism for feature learning in neural networks and
    backpropagation-free machine learning models, Science 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import FeatureLearningRegressor
    >>> X = np.random.default_rng(0).normal(size=(300, 20))
    >>> y = np.sin(2 * X[:, 3]) + X[:, 7] ** 2  # two columns matter, of twenty
    >>> model = FeatureLearningRegressor().fit(X, y)
    >>> sorted(np.argsort(model.feature_importances_)[-2:].tolist())
    [3, 7]
    >>> model.kernel_.proof().status, model.certificate_.converged
    ('proven', True)
    """

    @whole_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the metric, and fit all rows with it.

        Parameters
        ----------
        X
            Rows of numbers.
        y
            A number for each, or several in columns.
        sample_weight
            A weight for each, at least 0; weight 0 drops the row.
        """
        check_parameters(self)
        clock = Clock(self.time_limit)
        refuse_words(self, y)
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=4)
        y = read_targets(self, X, as_given(y), True, True)
        weights, rows = positive_weights(sample_weight, len(X))
        Y = columns_of(y if rows is None else y[rows])
        top = np.abs(Y).max(axis=0)
        Y = Y / np.where(top > 0, top, 1.0)  # squares of huge numbers overflow
        Y = Y - np.average(Y, axis=0, weights=weights)
        deviation = Y.std(axis=0)
        Y /= np.where(deviation > 0, deviation, 1.0)
        learned = self._learned(X if rows is None else X[rows], Y, weights, clock)
        self.estimator_ = KernelRidge(
            alpha=learned.alpha,
            kernel=learned.kernel,
            fit_intercept=True,
            budget=self.budget,
            time_limit=clock.time_limit(),
        ).fit(X, y, sample_weight)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return f at each row, in the shape of y.

        Parameters
        ----------
        X
            Rows as in `fit`.
        """
        Z = self._read_new(X)
        return np.asarray(self.estimator_.predict(Z))


@with_parameters
class FeatureLearningClassifier(ClassifierMixin, Labels, FeatureLearner):
    """A kernel classifier whose metric is learned from the data (a recursive feature machine).

    The metric is learned by ridge regression on indicators of the classes, as `FeatureLearningRegressor` says; the last
    fit, on all rows, is a `KernelLogisticRegression`, an `SVC` or a `KernelRidgeClassifier` with the kernel that was
    learned.

    Parameters
    ----------
    loss
        "logistic" (with probabilities), "hinge", or "squared": ridge regression of signs, by far the quickest for many
        classes.
    C
        The price of errors, or "auto": the best of six on rows that are held out. Not for the squared loss, whose alpha
        is learned with the metric.
    class_weight
        As for `SVC`, of the last fit.
    families, joint, time_limit, budget, random_state
        As for `FeatureLearningRegressor`.

    Attributes
    ----------
    C_
        The price of errors of the last fit; not for the squared loss.
    classes_
        The classes, in ascending order.
    metric_, chosen_, feature_importances_, rounds_, estimator_, kernel_, certificate_, function_, plan_
        As for `FeatureLearningRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import FeatureLearningClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 10))
    >>> y = np.where(X[:, 2] * X[:, 5] > 0, "alike", "unlike")
    >>> model = FeatureLearningClassifier().fit(X, y)
    >>> sorted(np.argsort(model.feature_importances_)[-2:].tolist()), model.score(X, y) > 0.9
    ([2, 5], True)
    """

    _: KW_ONLY
    loss: str = "logistic"
    C: Any = "auto"
    class_weight: Any = None

    _rules: ClassVar[Rules] = {
        **FeatureLearner._rules,
        "loss": (lambda v: isinstance(v, str) and v in _LOSSES, "'logistic', 'hinge' or 'squared'"),
        "C": (lambda v: (isinstance(v, str) and v == "auto") or positive(v), "'auto' or a number > 0"),
    }

    @whole_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the metric, and fit all rows with it.

        Parameters
        ----------
        X
            Rows of numbers.
        y
            A class for each.
        sample_weight
            A weight for each, at least 0; weight 0 drops the row.
        """
        check_parameters(self)
        clock = Clock(self.time_limit)
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=4)
        y = read_targets(self, X, as_given(y), False)
        codes = self._encode(y)
        weights, rows = positive_weights(sample_weight, len(X))
        Z, some = (X, codes) if rows is None else (X[rows], codes[rows])
        learned = self._learned(Z, indicators(some, len(self.classes_), weights), weights, clock)
        machine = self._machine(learned)
        if self.loss != "squared":
            self.C_ = self._price(machine, Z, some, weights) if self.C == "auto" else float(self.C)
            machine.set_params(C=self.C_)
        self.estimator_ = machine.set_params(time_limit=clock.time_limit())
        self.estimator_.fit(X, y, sample_weight)
        return self

    def _machine(self, learned: Learned) -> Any:
        strength = {"alpha": learned.alpha} if self.loss == "squared" else {}
        return _LOSSES[self.loss](kernel=learned.kernel, class_weight=self.class_weight, budget=self.budget, **strength)

    def _price(self, machine: Any, X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None) -> float:
        """Return the price of errors with the least loss on rows that are held out."""
        order = np.random.default_rng(self.random_state or 0).permutation(len(X))[:_PRICED_ROWS]
        test = np.zeros(len(X), bool)
        for code in range(len(self.classes_)):  # a third of each class
            test[order[codes[order] == code][: np.count_nonzero(codes[order] == code) // 3]] = True
        train, test = np.setdiff1d(order, np.flatnonzero(test)), np.flatnonzero(test)
        if not len(test) or len(np.unique(codes[train])) < 2:
            return 1.0
        w = None if weights is None else weights[train]
        losses = []
        for price in _PRICES:
            part = clone(machine).set_params(C=price, class_weight=None).fit(X[train], codes[train], w)
            of_test = None if weights is None else weights[test]
            if self.loss == "hinge":
                losses.append(zero_one_loss(codes[test], part.predict(X[test]), sample_weight=of_test))
            else:
                known = np.isin(codes[test], part.classes_)
                law = part.predict_proba(X[test][known])
                of_known = None if of_test is None else of_test[known]
                losses.append(log_loss(codes[test][known], law, labels=part.classes_, sample_weight=of_known))
        return _PRICES[int(np.argmin(losses))]

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the decision function of the last fit.

        Parameters
        ----------
        X
            Rows as in `fit`.
        """
        Z = self._read_new(X)
        return np.asarray(self.estimator_.decision_function(Z))

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row."""
        Z = self._read_new(X)
        return np.asarray(self.estimator_.predict(Z))

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (n, classes), of the logistic loss."""
        Z = self._read_new(X)
        return np.asarray(self.estimator_.predict_proba(Z))


def indicators(codes: np.ndarray, count: int, weights: np.ndarray | None = None) -> np.ndarray:
    """Return targets for ridge regression: the indicator of each class less its share; of two classes one column.

    Examples
    --------
    >>> import numpy as np
    >>> indicators(np.array([0, 1, 1, 1]), 2).T
    array([[-0.75,  0.25,  0.25,  0.25]])
    """
    Y = np.eye(count)[codes]
    Y -= np.average(Y, axis=0, weights=weights)
    return Y[:, 1:] if count == 2 else Y
