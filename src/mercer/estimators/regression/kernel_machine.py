"""Any loss, any penalty, any kernel: the representer theorem as an estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.regression.base import LossModel, Part, columns_of
from mercer.estimators.shared.classes import Labels
from mercer.estimators.shared.fitting import whole_fit
from mercer.estimators.shared.margins import rest_table, tube_table, zones
from mercer.estimators.shared.parameters import check_parameters, named_loss
from mercer.losses import EpsilonInsensitive, Hinge, SmoothedHinge, SquaredHinge, SquaredNorm


def _classifies(model: KernelMachine) -> bool:
    return model._kind_of_target() in ("label", "class")


def _has_probabilities(model: KernelMachine) -> bool:
    return _classifies(model) and hasattr(model._loss_object(), "inverse_link")


def _has_zones(model: KernelMachine) -> bool:
    if not isinstance(model._loss_object(), Hinge | SmoothedHinge | SquaredHinge):
        raise AttributeError(f"zones are those of a margin at f = 1, which {model._loss_object()!r} has not.")
    return True


def _has_margins(model: KernelMachine) -> bool:
    if not isinstance(model._loss_object(), Hinge | EpsilonInsensitive):
        raise AttributeError(
            f"margins are for Hinge and EpsilonInsensitive, whose coefficients have bounds; the loss is "
            f"{model._loss_object()!r}."
        )
    return True


def _one_of_two(values: np.ndarray) -> np.ndarray:
    """Return the values of all classes, or for two classes by how much the second is ahead."""
    if values.shape[1] > 2:
        return values
    return values[:, 0] if values.shape[1] == 1 else values[:, 1] - values[:, 0]


class KernelMachine(Labels, LossModel):
    r"""The function that minimises a sum of losses plus a penalty on its norm (M13).

    .. math:: \min_{f \in H, b} \; \sum_i w_i L(y_i, f(x_i) + b) + R(\|f\|_H)

    For every loss and every increasing R the minimiser is :math:`f = \sum_i a_i k(x_i, \cdot)`, so that n numbers and b
    are all there is to find. Ridge regression, logistic regression, quantiles, robust regression and the
    maximum margin are choices of L.

    Parameters
    ----------
    kernel, degree, gamma, coef0
        As for `SVC`: a kernel object, a name, "precomputed", or a function of two sets of points.
    loss
        A loss of `mercer.losses`, its name ("squared", "huber", "pinball", "poisson", "logistic", "hinge",
        "multinomial", ...), or any object with `value(y, f)` and `derivative(y, f)`, elementwise on arrays. Its
        `target` ("real" where it has none) makes the model a regressor ("real", "count") or a classifier ("label",
        "class").
    penalty
        R: a number s for s |f|² / 2, a penalty of `mercer.losses` (`SquaredNorm`, `Norm`, `Ball`), or any object with
        `value(t)` and `derivative(t)` that increases with t.
    fit_intercept
        Whether there is a b; it is not penalised.
    solver
        "auto" (the cheapest that the loss allows), "ridge" (squared loss: one linear system), "newton" (smooth losses),
        "dual" (piecewise linear losses: the solver of `SVC`) or "proximal" (every loss).
    tol
        The relative duality gap at which a fit is finished (`SVC` says what that is).
    class_weight
        For classifiers, as for `SVC`.
    max_iter, time_limit, verbose, budget, checkpoint, warm_start, dtype
        As for `SVC`.

    Attributes
    ----------
    dual_coef_, intercept_
        a and b: of shape (n,) and a number for one function, else (n, functions) and (functions,).
    function_
        f + b as an `RKHSFunction`; for several outputs or classes an `RKHSVector`. Its norm is that of f: b is no part
        of H.
    X_fit_, kernel_
        The training points and the kernel, with every parameter resolved.
    classes_, class_weight_
        For classifiers.
    coef_
        w, where the kernel is linear.
    certificate_, plan_, history_, n_iter_
        As for `SVC`. For a loss that is not convex the certificate speaks of a stationary point.

    Notes
    -----
    Several columns of real targets are independent problems on one kernel matrix. More than two classes with a "label"
    loss: one class against the rest; `Multinomial` treats them together.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, KernelMachine
    >>> from mercer.losses import Huber
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> y[::10] += 5.0  # outliers
    >>> robust = KernelMachine(RBF(1.0), loss=Huber(0.1), penalty=0.1).fit(X, y)
    >>> bool(np.abs(robust.predict(X) - np.sin(X[:, 0])).max() < 0.2)
    True

    A loss of one's own needs its value and its derivative:

    >>> class LogCosh:
    ...     smooth = True
    ...     def value(self, y, f):
    ...         return np.logaddexp(f - y, y - f) - np.log(2.0)
    ...     def derivative(self, y, f):
    ...         return np.tanh(f - y)
    >>> own = KernelMachine(RBF(1.0), loss=LogCosh(), penalty=0.1).fit(X, y)
    >>> own.certificate_.converged, own.certificate_.verify(X, y).converged
    (True, True)
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        loss: Any = "squared",
        penalty: Any = 1.0,
        *,
        fit_intercept: bool = True,
        solver: str = "auto",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-4,
        class_weight: Any = None,
        max_iter: int = -1,
        time_limit: float | None = None,
        verbose: int = 0,
        budget: int | float | str | None = None,
        checkpoint: Any = None,
        warm_start: bool = False,
        dtype: str = "auto",
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.verbose = verbose
        self.budget = budget
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.dtype = dtype

    # -- what the models made from this one define ------------------------------------------------------

    def _loss_object(self) -> Any:
        return named_loss(self.loss)

    def _penalty_object(self) -> Any:
        return self.penalty if hasattr(self.penalty, "value") else SquaredNorm(float(self.penalty))

    def _price(self) -> float:
        """What the losses are multiplied by."""
        return 1.0

    def _kind_of_target(self) -> str:
        try:
            return str(getattr(self._loss_object(), "target", "real"))
        except KeyError:  # a name that `fit` will refuse
            return "real"

    def _reads_targets(self) -> tuple[bool, bool]:
        return not _classifies(self), not _classifies(self)

    # -- fit --------------------------------------------------------------------------------------------

    @whole_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Find the coefficients and the offset.

        Parameters
        ----------
        X
            The training points: a matrix (dense or sparse), a table, or whatever the kernel compares; the square matrix
            of similarities for kernel="precomputed".
        y
            A number for each (or several, in columns), a count, or a class, as the loss asks.
        sample_weight
            A weight for each, at least 0, by which its loss is multiplied; weight 0 drops the sample.

        Returns
        -------
        self
        """
        check_parameters(self)
        data, target = self._read(X, y)
        if _classifies(self):
            target = self._encode(target)
        else:
            target = self._numbers(target)
        self._fit(X, y, data, target, sample_weight)
        return self

    def _numbers(self, y: Any) -> np.ndarray:
        y = np.asarray(y, dtype=np.float64)
        if self._kind_of_target() == "count" and (y < 0).any():
            raise ValueError(
                f"y contains {y.min():g}; {type(self).__name__} with loss={self._loss_object()!r} is for counts, "
                "which are at least 0."
            )
        return y

    def _target(self, data: Any, y: Any) -> np.ndarray:
        if _classifies(self):
            return self._codes(y)
        return self._numbers(super()._target(data, y))

    def _parts(self, target: np.ndarray, weights: np.ndarray | None) -> list[Part]:
        loss, penalty, price = self._loss_object(), self._penalty_object(), self._price()
        if _classifies(self):
            weights = price * self._class_weights(target, weights)
            if self._kind_of_target() == "class":
                return [Part(target, loss, penalty, weights)]
            positive = [1] if len(self.classes_) == 2 else range(len(self.classes_))
            return [Part(np.where(target == c, 1.0, -1.0), loss, penalty, weights) for c in positive]
        if weights is not None:
            weights = price * weights
        elif price != 1.0:
            weights = np.full(len(target), price)
        return [Part(np.ascontiguousarray(column), loss, penalty, weights) for column in columns_of(target).T]

    # -- values -----------------------------------------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray:
        """Return the prediction at each point.

        Parameters
        ----------
        X
            Points as in `fit`; for kernel="precomputed", their similarities to all training samples.

        Returns
        -------
        ndarray
            f + b for real targets, the expected count exp(f + b) for counts, the class for labels.
        """
        check_is_fitted(self)
        values = self._values(self._read_new(X))
        if _classifies(self):
            values = _one_of_two(values)
            return self.classes_[values.argmax(axis=1) if values.ndim == 2 else (values > 0).astype(np.intp)]
        loss = self._loss_object()
        if hasattr(loss, "inverse_link"):
            values = np.asarray(loss.inverse_link(values))
        return values[:, 0] if self.dual_coef_.ndim == 1 else values

    @available_if(_classifies)
    def decision_function(self, X: Any) -> np.ndarray:
        """Return f + b at each point: one column per class; for two classes of shape (n,), positive for the second."""
        check_is_fitted(self)
        return _one_of_two(self._values(self._read_new(X)))

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class at each point, in the order of `classes_`."""
        check_is_fitted(self)
        probabilities = np.asarray(self._loss_object().inverse_link(self._values(self._read_new(X))))
        if probabilities.shape[1] == 1:
            return np.concatenate([1.0 - probabilities, probabilities], axis=1)
        total = probabilities.sum(axis=1, keepdims=True)  # one against the rest: they need not add up
        return np.where(total > 0, probabilities / np.where(total > 0, total, 1.0), 1.0 / probabilities.shape[1])

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    # -- the solution looked at -------------------------------------------------------------------------

    @available_if(_has_zones)
    def zones(self, X: Any) -> np.ndarray:
        """Return the zone of each point, as `SVC.zones`; for more than two classes one column for each."""
        check_is_fitted(self)
        columns = zones(self._values(self._read_new(X)))
        return columns[:, 0] if columns.shape[1] == 1 else columns

    @available_if(_has_margins)
    def margins(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Return what complementary slackness says of each sample: the table of `SVC.margins`, or of `SVR.margins`.

        `alpha` is the size of the coefficient, whose bound is the weight of the sample over the strength of the
        penalty: 1/s for s |f|² / 2. More than two classes are one table each, against the rest.
        """
        return (rest_table if _classifies(self) else tube_table)(self, X, y, sample_weight)

    def _bounds(self, weights: np.ndarray, part: int = 0) -> np.ndarray:
        """The largest coefficient of each sample in one of the problems."""
        return np.asarray(self._price() * weights / self._strengths[part])

    def _tube(self) -> float:
        return float(self._loss_object().epsilon)

    def _all_coefficients(self) -> np.ndarray:
        return np.asarray(self._columns_[:, 0])

    # -- scores -----------------------------------------------------------------------------------------

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return how good the predictions are, 1 at best.

        Returns
        -------
        float
            The share of right classes for classifiers; R² for real targets; for counts the share of the Poisson
            deviance that is explained.
        """
        from sklearn.metrics import accuracy_score, d2_tweedie_score, r2_score

        measure: Any = r2_score
        if _classifies(self):
            measure = accuracy_score
        elif self._kind_of_target() == "count":
            return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=1))
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    # -- scikit-learn -----------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        kind = self._kind_of_target()
        if kind in ("label", "class"):
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
            return tags
        tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        tags.target_tags.multi_output = self._reads_targets()[1]
        tags.target_tags.positive_only = kind == "count"
        return tags
