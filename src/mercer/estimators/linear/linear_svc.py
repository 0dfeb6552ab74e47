"""Linear support vector classification and regression, up to millions of rows."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from mercer.estimators.linear.machine import LinearMachine, SparseWeights
from mercer.estimators.shared.classes import Labels, as_given
from mercer.estimators.shared.data import refuse_words
from mercer.estimators.shared.fitting import whole_fit
from mercer.estimators.shared.margins import linear_table, linear_tube_table, zones
from mercer.estimators.shared.parameters import Rules, check_parameters, is_real, one_of, with_parameters


@with_parameters
class LinearSVC(SparseWeights, ClassifierMixin, Labels, LinearMachine):
    r"""Linear support vector classification with a free offset.

    .. math:: \min_{w, b} \; \tfrac12 |w|^2 + C \sum_i s_i \, \ell(y_i (w \cdot x_i + b)),
              \qquad \ell(m) = \max(0, 1 - m) \text{ or its square}

    With the hinge it is `SVC(kernel="linear")`, found without support vectors, in time proportional to the number of
    rows where there are many. More than two classes are told apart by one machine each, against the rest, or by one for
    all (Crammer and Singer, 2001):

    .. math:: \min_{w, b} \; \tfrac12 \sum_m |w_m|^2
              + C \sum_i s_i \big(\max_m (f_m(x_i) + [m \ne y_i]) - f_{y_i}(x_i)\big)

    Parameters
    ----------
    loss
        "hinge" or "squared_hinge".
    C
        The price of a unit of loss, > 0.
    tol
        The relative duality gap at which to stop.
    fit_intercept
        Whether there is an offset b. It is not penalised.
    class_weight
        Weights by class as a dictionary, "balanced", or None: C of a sample is multiplied by that of its class.
    max_iter, time_limit
        Limits of each machine in steps (-1 for none) and of the whole fit in seconds; the model is the best so far.
    verbose
        1 for a progress bar.
    penalty
        "l2", or "l1" for :math:`|w|_1` in place of :math:`\tfrac12 |w|^2`: most weights are then 0.
    multi_class
        "ovr" for each class against the rest; "crammer_singer" for one machine of all, with its own loss (above) and
        the penalty "l2".
    dual, intercept_scaling, random_state
        Nothing depends on them: the solver is chosen by the shape of X, the offset is not penalised, nothing is random.

    Attributes
    ----------
    coef_, intercept_
        w and b, of shape (1, features) and (1,) for two classes, else one row per class.
    classes_, n_iter_, n_features_in_
        As in scikit-learn.
    function_
        w.x + b as a function of the linear kernel, for more than two classes a vector of them; its norm is |w|.
    certificate_
        Primal and dual objective, gap and worst KKT residual; `.verify(X, y)` recomputes them.
    history_
        The course of the fit, a table with the fields steps, primal, dual, gap, support and seconds; one for each of
        several machines.

    Notes
    -----
    Differences from scikit-learn's LinearSVC: the offset is not penalised, so that `intercept_scaling` is of no use and
    the answer is that of SVC; the default loss is therefore the hinge, which "l1" goes with, too; `tol` is a relative
    duality gap; and nothing is random.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearSVC().fit(X, y)
    >>> model.coef_.shape, model.certificate_.converged, model.certificate_.verify(X, y).converged
    ((3, 4), True, True)
    """

    _: KW_ONLY
    loss: str = "hinge"
    class_weight: Any = None
    penalty: str = "l2"
    multi_class: str = "ovr"

    _losses = ("hinge", "squared_hinge")
    _rules: ClassVar[Rules] = {
        **LinearMachine._rules,
        "loss": one_of(*_losses),
        "penalty": (lambda v: v in ("l2", "l1"), "'l2' or 'l1'"),
        "multi_class": (lambda v: v in ("ovr", "crammer_singer"), "'ovr' or 'crammer_singer'"),
    }

    @whole_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVC:
        """Find w and b of every class.

        Parameters
        ----------
        X
            A matrix of float32 or float64, dense or sparse; it is not copied.
        y
            A class for each row.
        sample_weight
            A weight for each row, at least 0.

        Returns
        -------
        self
        """
        check_parameters(self)
        if self.multi_class == "crammer_singer" and self.penalty == "l1":
            raise ValueError(
                "penalty='l1' of LinearSVC goes with multi_class='ovr'; the machine of Crammer and Singer has the "
                "penalty 'l2'."
            )
        data, labels = self._read(X, y, reset=True)
        self.classes_ = _classes(labels)
        if len(self.classes_) < 2:
            raise ValueError(
                f"LinearSVC needs samples of at least two classes; y has one class only, {self.classes_[0]!r}. "
                "OneClassSVM describes a single class."
            )
        if self.class_weight is None:
            self.class_weight_ = np.ones(len(self.classes_))
        else:
            self.class_weight_ = compute_class_weight(self.class_weight, classes=self.classes_, y=labels)
            if not (self.class_weight_ > 0).all():
                c = self.classes_[int(np.argmin(self.class_weight_))]
                raise ValueError(
                    f"class_weight gives class {c!r} the weight {self.class_weight_.min():g}; use one > 0."
                )
        self.coef_ = self._fit(data, labels, sample_weight, X, y)
        if len(self.classes_) == 2 and len(self.coef_) == 2:
            self.coef_, self.intercept_ = np.diff(self.coef_, axis=0), np.diff(self.intercept_)
        return self

    @property
    def _few_weights(self) -> bool:  # type: ignore[override]
        return self.penalty == "l1"

    def _read(self, X: Any, y: Any, reset: bool) -> tuple[Any, np.ndarray]:
        X, y = validate_data(self, X, as_given(y), reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])
        if y.dtype.kind not in "iubU":
            check_classification_targets(y)
        return X, y

    def _problems(self, y: np.ndarray, cost: np.ndarray) -> list[dict[str, Any]]:
        codes = y == self.classes_[1] if len(self.classes_) == 2 else np.searchsorted(self.classes_, y)
        if len(self.classes_) == 2:
            counts = np.array([np.count_nonzero(~codes), np.count_nonzero(codes)])
        else:
            counts = np.bincount(codes, minlength=len(self.classes_))
        if not counts.all():
            c = self.classes_[int(np.argmin(counts))]
            raise ValueError(
                f"no sample of class {c!r} has a positive weight; give it one or leave the class out of y."
            )
        if self.class_weight is not None:
            cost = cost * self.class_weight_[codes.astype(np.intp)]
        if self.multi_class == "crammer_singer":
            return [{"codes": codes.astype(np.intp), "count": len(self.classes_), "cost": cost}]
        target = np.broadcast_to(1.0, (1, len(y)))
        positive = range(len(self.classes_)) if len(self.classes_) > 2 else [1]
        return [{"sign": np.where(codes == c, 1.0, -1.0)[None], "target": target, "cost": cost} for c in positive]

    def decision_function(self, X: Any) -> np.ndarray:
        """Return w.x + b: one value per row for two classes, else one per class.

        Parameters
        ----------
        X
            The points.
        """
        values = self._values(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row: the sign of f, or the class whose f is largest.

        Parameters
        ----------
        X
            The points.
        """
        values = self._values(X)
        chosen = (values[:, 0] > 0).astype(int) if values.shape[1] == 1 else values.argmax(axis=1)
        return self.classes_[chosen]

    def zones(self, X: Any) -> np.ndarray:
        """Return the zone of each point (M10), as `SVC.zones` does: of each class where there are more than two.

        The machine of Crammer and Singer compares classes: then f is that of a class less the largest of the others.

        Parameters
        ----------
        X
            The points.
        """
        values = zones(self._compared(self._values(X)))
        return values[:, 0] if values.shape[1] == 1 else values

    def _compared(self, values: np.ndarray) -> np.ndarray:
        if self.multi_class != "crammer_singer" or values.shape[1] == 1:
            return values
        first, second = np.sort(values, axis=1)[:, [-1, -2]].T[:, :, None]
        return values - np.where(values == first, second, first)

    def margins(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Return what complementary slackness says of each sample (M7), as a pandas DataFrame.

        Parameters
        ----------
        X, y, sample_weight
            What the model was fitted to. For other samples alpha and kkt are NaN, and the role follows from the margin.

        Returns
        -------
        DataFrame
            The table of `SVC.margins`, per sample and, for more than two classes, per class against the rest. With the
            squared hinge alpha has no upper bound and is 2 C slack. For the machine of Crammer and Singer the margin is
            f of the own class less the largest of the others, and alpha what the dual puts on these.
        """
        return linear_table(self, X, y, sample_weight)


def _classes(y: np.ndarray) -> np.ndarray:
    """Return the labels that occur, sorted; where they are two numbers, without sorting y."""
    if y.dtype.kind in "iub" and len(y):
        ends = np.array([y.min(), y.max()])
        if ends[0] != ends[1] and ((y == ends[0]) | (y == ends[1])).all():
            return ends
    return np.unique(y)


# -- linear support vector regression, up to millions of rows ---------------------------------------------


@with_parameters
class LinearSVR(RegressorMixin, LinearMachine):
    r"""Linear support vector regression with a free offset.

    .. math:: \min_{w, b} \; \tfrac12 |w|^2 + C \sum_i s_i \, \ell(y_i - w \cdot x_i - b),
              \qquad \ell(r) = \max(0, |r| - \varepsilon) \text{ or its square}

    Parameters
    ----------
    loss
        "epsilon_insensitive" or "squared_epsilon_insensitive".
    epsilon
        Half the width of the tube in which residuals cost nothing, >= 0.
    C, tol, fit_intercept, max_iter, time_limit, verbose
        As for `LinearSVC`.
    dual, intercept_scaling, random_state
        Nothing depends on them, as for `LinearSVC`.

    Attributes
    ----------
    coef_, intercept_
        w, of shape (features,), and b.
    n_iter_, n_features_in_, function_, certificate_, history_
        As for `LinearSVC`.

    Notes
    -----
    Differences from scikit-learn's LinearSVR are those of `LinearSVC`; epsilon is 0.1 by default, as in SVR.

    Examples
    --------
    >>> X = np.arange(10.0)[:, None]
    >>> model = LinearSVR(C=10.0, epsilon=0.0).fit(X, 2 * X[:, 0] + 1)
    >>> np.round(model.coef_, 2), np.round(model.intercept_, 2)
    (array([2.]), array([1.]))
    """

    _: KW_ONLY
    loss: str = "epsilon_insensitive"
    epsilon: float = 0.1

    _losses = ("epsilon_insensitive", "squared_epsilon_insensitive")
    _rules: ClassVar[Rules] = {
        **LinearMachine._rules,
        "loss": one_of(*_losses),
        "epsilon": (lambda v: is_real(v) and 0 <= v < math.inf, "a finite number >= 0"),
    }

    @whole_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVR:
        """Find w and b; X and sample_weight are those of `LinearSVC.fit`, y has a number for each row."""
        check_parameters(self)
        data, targets = self._read(X, y, reset=True)
        self.coef_ = self._fit(data, targets, sample_weight, X, y)[0]
        return self

    def _read(self, X: Any, y: Any, reset: bool) -> tuple[Any, np.ndarray]:
        types = [np.float64, np.float32]
        refuse_words(self, y)
        X, y = validate_data(self, X, y, reset=reset, accept_sparse="csr", dtype=types, y_numeric=True)
        return X, np.asarray(y, dtype=np.float64)

    def _problems(self, y: np.ndarray, cost: np.ndarray) -> list[dict[str, Any]]:
        sign = np.broadcast_to([[1.0], [-1.0]], (2, len(y)))
        return [{"sign": sign, "target": sign * y - self.epsilon, "cost": cost}]

    def margins(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Return where each sample lies in the tube (M7), as a pandas DataFrame: the table of `SVR.margins`.

        Parameters
        ----------
        X, y, sample_weight
            What the model was fitted to. For other samples alpha and kkt are NaN, and the residual gives the role.
        """
        return linear_tube_table(self, X, y, sample_weight)

    def predict(self, X: Any) -> np.ndarray:
        """Return w.x + b for each row.

        Parameters
        ----------
        X
            The points.
        """
        return self._values(X)[:, 0]
