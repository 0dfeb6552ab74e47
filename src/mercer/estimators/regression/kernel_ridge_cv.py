"""Kernel ridge regression with an alpha chosen by its predictions of samples that it has not seen."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from mercer.estimators.regression.base import columns_of, counted
from mercer.estimators.regression.kernel_ridge import RidgeRegressor
from mercer.estimators.shared.data import Training
from mercer.estimators.shared.fitting import whole_fit
from mercer.estimators.shared.parameters import BOOLEAN, Rules, check_parameters, is_real, with_parameters
from mercer.gram import Gram
from mercer.solvers.systems.spectrum import Spectrum


def _are_strengths(value: Any) -> bool:
    each: Any = [value] if isinstance(value, numbers.Number) else value
    if isinstance(each, str) or not hasattr(each, "__len__") or np.ndim(each) != 1:
        return False
    return len(each) > 0 and all(is_real(alpha) and 0 < alpha < np.inf for alpha in each)


@with_parameters
class KernelRidgeCV(RidgeRegressor):
    r"""Ridge regression in the space of a kernel, with alpha chosen by cross-validation from one eigendecomposition.

    With G the inverse of K + alpha and a = G y, the errors of the fit without the samples F are, exactly,

    .. math:: y_F - f_{-F}(x_F) = (G_{FF})^{-1} a_F

    so that no fit is made but the last one. `KernelRidge` says what is minimised.

    Parameters
    ----------
    alphas
        The strengths to try, > 0.
    cv
        None to leave out one sample at a time; a number of folds; or a splitter of scikit-learn. A splitter whose
        training sets are not all the other samples costs a decomposition for each.
    scoring
        What to maximise: a name or a scorer of scikit-learn. None is the negative mean squared error where one is left
        out, and R² for folds, as for scikit-learn's RidgeCV. Sample weights count in it.
    alpha_per_target
        Whether each target has its own alpha (for cv=None).
    store_cv_results
        Whether to keep what each alpha predicts of each sample (for cv=None).
    kernel, gamma, degree, coef0, kernel_params, fit_intercept, residual, solver
        As for `KernelRidge`. Kernel parameters that wait for data are taken from all samples, once.
    max_iter, time_limit, verbose, budget, checkpoint, dtype
        As for `KernelRidge`, for the fit of the chosen alpha.

    Attributes
    ----------
    alpha_, best_score_
        The best alpha and its score; arrays if there is one for each target.
    scores_
        The score of each alpha (and of each target, if each has its own).
    cv_results_
        With `store_cv_results`: the squared error (with `scoring` the prediction) of each sample of positive weight
        when it is left out, of shape (samples, alphas) or (samples, targets, alphas).
    dual_coef_, X_fit_, intercept_, residual_, function_, kernel_, coef_, certificate_, plan_, n_iter_
        As for `KernelRidge`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidgeCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, (100, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=100)
    >>> model = KernelRidgeCV(np.logspace(-6, 3, 10), kernel="rbf", gamma=0.5).fit(X, y)
    >>> bool(1e-3 < model.alpha_ < 10), bool(np.abs(model.predict(X) - np.sin(X[:, 0])).max() < 0.1)
    (True, True)
    """

    alphas: Any = (0.1, 1.0, 10.0)
    _: KW_ONLY
    cv: Any = None
    scoring: Any = None
    alpha_per_target: bool = False
    store_cv_results: bool = False

    _rules: ClassVar[Rules] = {
        **RidgeRegressor._rules,
        "alphas": (_are_strengths, "numbers > 0, at least one"),
        "alpha_per_target": BOOLEAN,
        "store_cv_results": BOOLEAN,
    }

    @whole_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidgeCV:
        """Choose alpha, and find the coefficients.

        Parameters
        ----------
        X, y, sample_weight
            As for `KernelRidge.fit`.

        Returns
        -------
        self
        """
        check_parameters(self)
        for name in ("store_cv_results", "alpha_per_target"):
            if self.cv is not None and getattr(self, name):
                raise ValueError(f"cv!=None and {name}=True are incompatible; leave cv=None, which leaves one out.")
        data, target = self._read(X, y)
        target = np.asarray(target, dtype=np.float64)
        training = self._training(data, sample_weight)
        if len(training.points) < 2:
            raise ValueError("KernelRidgeCV leaves samples out and needs at least two; here n_samples=1.")
        Y = columns_of(counted(training, target))
        alphas = np.atleast_1d(np.asarray(self.alphas, dtype=np.float64))
        unit = float(np.abs(Y).max()) or 1.0  # so that the squares of targets of 1e200 are numbers
        scores = self._scores(training, data, target, Y, alphas, unit)
        best = scores.argmax(axis=0)
        if self.cv is None and self.scoring is None:
            with np.errstate(over="ignore"):
                scores = scores * unit * unit
        self.scores_ = scores
        self.alpha_: Any = alphas[best] if scores.ndim == 2 else float(alphas[best])
        self.best_score_: Any = scores.max(axis=0) if scores.ndim == 2 else float(scores.max())
        chosen = np.broadcast_to(self.alpha_, (Y.shape[1],)).astype(np.float64)
        self._fit_strengths(training, data, target, chosen, X, y)
        return self

    # -- scores -----------------------------------------------------------------------------------------

    def _scores(
        self, training: Training, data: Any, target: np.ndarray, Y: np.ndarray, alphas: np.ndarray, unit: float
    ) -> np.ndarray:
        """Return the score of each alpha, (alphas,), or (alphas, targets) if each target has its own.

        Mean squared errors are in the unit of the targets.
        """
        each = bool(self.alpha_per_target) and Y.shape[1] > 1
        weights, w = training.weights, np.ones(len(Y)) if training.weights is None else training.weights
        if self.cv is None:
            errors = np.empty((len(alphas), *Y.shape))
            spectrum = Spectrum(self._gram(training), float(alphas.min()), weights, bool(self.fit_intercept))
            for rows, part in spectrum.leave_one_out(Y / unit, alphas):
                errors[:, rows] = part
            if self.store_cv_results:
                with np.errstate(over="ignore"):
                    kept = (unit * errors) ** 2 if self.scoring is None else Y - unit * errors
                kept = kept.transpose(1, 2, 0)
                self.cv_results_ = kept[:, 0] if target.ndim == 1 else kept
            if self.scoring is None:
                means = np.average(errors**2, axis=1, weights=w)  # (alphas, targets)
                return -(means if each else means.mean(axis=1))
            measure = self._measure(weights)
            if each:
                return np.array([[measure(y, y - unit * e) for y, e in zip(Y.T, E.T, strict=True)] for E in errors])
            return np.array([measure(Y, Y - unit * E) for E in errors])
        measure = self._measure(weights)
        scores = [
            [measure(Y[fold], Y[fold] - unit * E, fold) for E in errors]
            for fold, errors in self._folds(training, data, target, Y / unit, alphas)
        ]
        return np.mean(scores, axis=0)

    def _measure(self, weights: np.ndarray | None) -> Any:
        """Return the score as a function of truths, predictions, and whose they are."""
        scoring = self.scoring
        if scoring is None:
            scoring = "neg_mean_squared_error" if self.cv is None else "r2"
        from sklearn.metrics import check_scoring  # importing it takes longer than most of mercer

        scorer = check_scoring(_Known(), scoring=scoring)

        def measure(y: np.ndarray, predicted: np.ndarray, rows: Any = slice(None)) -> float:
            y, predicted = (v[:, 0] if v.ndim == 2 and v.shape[1] == 1 else v for v in (y, predicted))
            given = {} if weights is None else {"sample_weight": weights[rows]}
            return float(scorer(_Known(), predicted, y, **given))

        return measure

    def _folds(
        self, training: Training, data: Any, target: np.ndarray, Y: np.ndarray, alphas: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the samples of each fold that count, and the errors (alphas, samples, targets) without them."""
        from sklearn.model_selection import check_cv

        n, intercept = len(target), bool(self.fit_intercept)
        place = np.arange(n) if training.rows is None else np.full(n, -1)
        if training.rows is not None:
            place[training.rows] = np.arange(len(training.rows))
        whole: Spectrum | None = None
        for train, test in check_cv(self.cv).split(
            np.empty(n) if self._kind in ("anything", "function") else data, target
        ):
            inside, fold = (place[part][place[part] >= 0] for part in (train, test))
            if not len(fold) or not len(inside):
                continue
            if len(np.union1d(inside, fold)) == len(Y) == len(inside) + len(fold):
                whole = whole or Spectrum(self._gram(training), float(alphas.min()), training.weights, intercept)
                yield from whole.leave_fold_out(Y, alphas, [fold])
                continue
            points, weights = training.points.take(inside), training.weights
            some = Spectrum(
                Gram(training.kernel, points, budget=self.budget),
                float(alphas.min()),
                None if weights is None else weights[inside],
                intercept,
            )
            across = Gram(training.kernel, training.points.take(fold), points)
            solutions = [some.solve(Y[inside], float(alpha)) for alpha in alphas]
            yield fold, np.array([Y[fold] - across.matvec(A) - b for A, b in solutions])


class _Known(RegressorMixin, BaseEstimator):
    """A model, as scorers ask for one, that returns its input as the prediction."""

    def fit(self, X: Any, y: Any) -> _Known:
        return self

    def predict(self, X: Any) -> Any:
        return X
