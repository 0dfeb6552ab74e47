"""A classifier and a regressor that find their kernels, and one call for both (`auto`)."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring, make_scorer
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mercer.estimators import SVC, KernelRidge, KernelRidgeClassifier
from mercer.estimators.regression.base import columns_of
from mercer.estimators.regression.kernel_ridge import signs
from mercer.estimators.shared.classes import as_given, numbered, shown
from mercer.estimators.svm.calibration import pair_maps, probabilities, score_maps
from mercer.machine.words import count
from mercer.points import Points
from mercer.selection.automatic.account import Stage, scoring_name
from mercer.selection.automatic.base import AutoModel, FoldModels
from mercer.selection.automatic.calibrated import Calibrated, asks_for_probabilities, known_pairs
from mercer.selection.automatic.quantiles import ResidualScale, conformal_quantiles
from mercer.selection.automatic.rows import Rows
from mercer.selection.search.cross_validation import PrecomputedRegressor
from mercer.selection.search.search import flat
from mercer.tables import target_of

_C_GRID = np.array([0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0])  # half decades, the strongest penalty first
_ALPHA_GRID = np.logspace(1, -5, 13)
_MANY_ROWS, _LEAST_ALPHA = 12_000, 9e-5  # rows from which on no smaller alpha is tried: the last fit would hardly end
_SKEWNESS, _LOG_TARGETS = 1.0, 30  # skewness and number of positive targets from which on their logarithms are tried
_LARGEST_EXPONENT = 700.0  # beyond this exp is infinite


class AutoClassifier(ClassifierMixin, AutoModel):
    """A classifier of tables that finds its kernel: an encoder, a search, a machine on all rows, and probabilities.

    The columns are turned into numbers (`TableEncoder`). Kernels that suit the data are compared on some of the rows,
    by what fits without them predict; the best is fitted to all. What was said of rows held out gives probabilities.
    Numbers are compared by metrics that are learned, with a `KernelRidgeClassifier`; strings, sparse tables, few rows
    (below 40), named kernels and given folds by an `SVC`.

    Parameters
    ----------
    kernels
        What to try: kernels, classes of kernels (at several scales), texts such as "RBF(2) + Linear()"; they compare
        encoded rows. None for a list that suits the data.
    cv
        A number of folds, which are shuffled; a splitter of scikit-learn, or pairs of training and test rows.
    scoring
        What to maximise: a name or a scorer of scikit-learn. None for accuracy (`AutoRegressor`: R²). Probabilities are
        those of each fold by maps of the margins that the others hold out.
    time_limit
        Seconds for everything. The search ends after 60% of them with the best so far; the last fit may, too.
    search_rows
        Rows on which kernels are compared, at most: all on 2,000 first, the best few on more. Machines with a learned
        metric see 4,000; by folds the best four are compared on up to three times search_rows where there are so many.
    budget
        Bytes that kernel matrices may use: a number, a text such as "4 GiB", or None for half of what is free.
    random_state
        For the choice of rows and folds.
    verbose
        1 for bars.

    Attributes
    ----------
    account_
        What was seen, tried and chosen, and how sure that is: `print(model.account_)`, `model.account_.to_dict()`.
    encoder_, estimator_
        The fitted `TableEncoder`, and the machine on its columns: `KernelRidgeClassifier` or `SVC` (`KernelRidge`).
    kernel_, certificate_, function_, plan_
        Of `estimator_`; `certificate_.verify(X, y)` takes what `fit` took.
    named_kernel_
        `kernel_` with names of columns in the place of their numbers, for people to read; so are those in `results_`.
    metric_, feature_importances_, column_importances_, directions()
        What a kernel whose metric was learned compares rows by, in units of the deviations of encoded columns (which
        `encoder_.get_feature_names_out()` names): the metric (trace 1), its diagonal, the same summed by column of the
        table, its leading eigenvectors. None, and no directions, where the kernel treats all columns alike.
    best_score_, score_error_
        The winner's mean score over the folds, and its standard error. The best of many looks better than it is;
        `honest_score_` is the score of the way of choosing: each fold by the candidate that is best on the others.
    results_, best_index_
        Columns of all that was tried, and the place of the winner: "kernel", "family", "scale", "alpha" (or "C"),
        "mean_test_score", "std_test_score", "folds", "time", "rows". (Not the first look at families that had more.)
    scoring_
        The name of the score.
    held_out_
        "rows" that were held out in turn, and "values": their decision function (predictions) by models of the others.
    calibration_
        "slope" and "offset" of the logistic map from margins to probabilities, for each pair of classes; for more than
        two classes the "power" that the law of all pairs is raised to. Of a `KernelRidgeClassifier` of more classes the
        "slope" alone: probabilities are proportional to exp(slope f).
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.
    timings_
        Seconds: "encode", "search", "calibrate", "refit".
    interrupted_
        Whether the search or the last fit was ended before its time.

    Notes
    -----
    `predict` returns the class of the largest probability, so that the two never disagree. For two classes the decision
    function is the margin of `estimator_`, shifted to 0 where both classes are equally probable; for more it is the
    logarithm of the probabilities.

    Examples
    --------
    >>> import pandas as pd
    >>> from mercer import AutoClassifier
    >>> fruit = pd.DataFrame({"weight": [150, 170, 140, 7, 8, 6] * 5, "colour": ["red", "green", "red"] * 10})
    >>> model = AutoClassifier(cv=3).fit(fruit, ["apple", "apple", "apple", "cherry", "cherry", "cherry"] * 5)
    >>> model.predict(pd.DataFrame({"weight": [9, 145], "colour": ["red", "blue"]}))
    array(['cherry', 'apple'], dtype='<U6')
    """

    _classifies: ClassVar[bool] = True

    def _read_target(self, y: np.ndarray) -> np.ndarray:
        if y.dtype.kind == "O":
            y = _of_one_type(y)
        check_classification_targets(y)
        self.classes_, _ = numbered(y)
        counts = np.unique(y, return_counts=True)[1]
        if len(self.classes_) < 2:
            raise ValueError(f"AutoClassifier needs at least two classes; y has one class only, {shown(y[0])}.")
        if counts.min() < 2 and len(counts) == 2:
            rare = self.classes_[int(counts.argmin())]
            raise ValueError(f"class {shown(rare)} has one row only, which cannot be both learned from and held out.")
        return y

    def _readings(self, y: np.ndarray, rows: Rows) -> list[tuple[str, np.ndarray, Any]]:
        scoring = "accuracy" if self.scoring is None else self.scoring
        scorer, how = check_scoring(SVC(), scoring), scoring
        if asks_for_probabilities(scorer):
            how = Calibrated(scorer, scoring_name(scoring), rows.unit)
        learned = numbered(y)[1] if isinstance(scoring, str) else y  # a scorer may know labels by name
        return [("identity", learned, how)]

    def _columns_of(self, target: np.ndarray) -> np.ndarray:
        return columns_of(signs(numbered(target)[1], len(self.classes_)))

    def _machine(self, rows: Rows, ridge: bool) -> tuple[Any, str, np.ndarray]:
        if ridge:
            return KernelRidgeClassifier(budget=self._part), "alpha", _alphas(rows)
        return SVC(decision_function_shape="ovo", budget=self._part), "C", _C_GRID / rows.unit

    def _held_out(self, models: FoldModels, y: np.ndarray, at: np.ndarray) -> np.ndarray:
        every = numbered(y)[0]  # the classes, by name or by number
        values = np.full((len(at), len(every) * (len(every) - 1) // 2), np.nan)
        for model, Z, places in models:
            values[places] = known_pairs(model.decision_function(Z), model.classes_, every)
        return values

    def _calibrate(self, values: np.ndarray, y: np.ndarray, stage: Stage, rows: Rows, scores: bool) -> None:
        at, of = stage.rows, len(self.classes_)
        codes, counts = np.searchsorted(numbered(y)[0], y[at]), rows.counts(at)
        self.calibration_ = (
            score_maps(values, codes, of, counts) if scores else pair_maps(values, codes, of, counts, counts=True)
        )
        seen = np.isfinite(values).all(axis=1)
        self.held_out_ = {"rows": rows.places[at[seen]], "values": self._decision(values[seen])}

    def learned_target(self, y: Any) -> np.ndarray:
        """Return the labels as `estimator_` has learned them."""
        y = np.asarray(as_given(y))
        return y.astype(str) if self.classes_.dtype.kind == "U" else y

    def _decision(self, values: np.ndarray) -> np.ndarray:
        if len(self.classes_) == 2:
            return np.asarray(values[:, 0] + self.calibration_["offset"][0] / self.calibration_["slope"][0])
        p = probabilities(values, self.calibration_, len(self.classes_))
        return np.asarray(np.log(np.maximum(p, np.finfo(float).tiny)))

    def _margins(self, X: Any) -> np.ndarray:
        values = self._values(X, "decision_function")
        return values.reshape(len(values), -1)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the margin of each row, 0 at even odds; for more than two classes log probabilities, (n, classes).

        Parameters
        ----------
        X
            A table or an array as in `fit`.
        """
        return self._decision(self._margins(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (n, classes)."""
        return probabilities(self._margins(X), self.calibration_, len(self.classes_))

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row."""
        decision = self.decision_function(X)
        codes = (decision > 0).astype(np.intp) if decision.ndim == 1 else decision.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def _target_sentences(self, y: np.ndarray) -> str:
        counts = np.unique(y, return_counts=True)[1]
        most, least = self.classes_[int(counts.argmax())], self.classes_[int(counts.argmin())]
        return (
            f"The target has {len(counts)} classes; the largest, {shown(most)}, is {counts.max() / len(y):.1%} of the "
            "rows, which is the accuracy of naming it always; the smallest, "
            f"{shown(least)}, has {count(int(counts.min()), 'row')}."
        )

    def _model_sentences(self) -> str:
        held = f" of {count(len(self.held_out_['rows']), 'row')} that were held out"
        ridge = isinstance(self.estimator_, KernelRidgeClassifier)
        said = "Ridge regression of +1 for each class and -1 for the others."
        if not ridge:
            n, of = len(self.estimator_.support_), self.estimator_.shape_fit_[0]
            said = f"{count(n, 'support vector')} of {of:,} rows."
        if len(self.classes_) > 2 and ridge:
            return f"{said} Probabilities are proportional to exponentials of its values, by those{held}."
        said += f" Probabilities are a logistic map of the margins{held}"
        if len(self.classes_) > 2:
            return f"{said}, one for each of {len(self.calibration_['slope'])} pairs of classes, and coupled."
        even = -self.calibration_["offset"][0] / self.calibration_["slope"][0]
        return f"{said}; even odds are at a margin of {even:.2g}."


def _alphas(rows: Rows) -> np.ndarray:
    """Return the strengths of the penalty to try, the largest first."""
    alphas = _ALPHA_GRID if len(rows.places) <= _MANY_ROWS else _ALPHA_GRID[_ALPHA_GRID > _LEAST_ALPHA]
    return np.asarray(alphas * rows.unit)


def _of_one_type(y: np.ndarray) -> np.ndarray:
    """Return labels in an array of objects as texts, numbers or booleans, whichever they are."""
    import pandas as pd

    labels = pd.Series(y, dtype=object).infer_objects().to_numpy()
    if labels.dtype.kind == "O" and (strange := [label for label in y if not isinstance(label, str)]):
        other = next((label for label in y if type(label) is not type(strange[0])), None)
        said = shown(strange[0]) if other is None else f"{shown(strange[0])} and {shown(other)}"
        raise ValueError(f"the labels in y must be of one type, texts or numbers, to be put in order; y holds {said}.")
    return labels


class AutoRegressor(RegressorMixin, AutoModel):
    """A regressor of tables that finds its kernel: an encoder, a search, and a `KernelRidge` on all rows.

    As `AutoClassifier`, with numbers as targets. Positive targets with a long tail are also tried on the scale of their
    logarithms, and learned there if that predicts the targets themselves better.

    Parameters
    ----------
    kernels, cv, scoring, time_limit, search_rows, budget, random_state, verbose
        As for `AutoClassifier`; the default score is R².

    Attributes
    ----------
    account_, encoder_, estimator_, kernel_, named_kernel_, certificate_, function_, plan_, best_score_, score_error_
    honest_score_, metric_, feature_importances_, column_importances_, directions()
        As for `AutoClassifier`.
    results_, best_index_, scoring_, held_out_, n_features_in_, feature_names_in_, timings_, interrupted_
        As for `AutoClassifier`; results have "alpha".
    target_scale_
        "identity", or "log" where `estimator_` has learned logarithms. Then no prediction is beyond all targets.
    target_range_
        The least and the largest target, on that scale.
    residuals_, residual_counts_
        Target less prediction of rows that were held out, on that scale, ascending; and how many rows each counts for,
        None where all count for one.
    residual_rows_, residual_folds_
        Whose residuals these are, as places in `estimator_.X_fit_`, and the numbers of the folds that held them out.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import AutoRegressor
    >>> X = np.random.default_rng(0).uniform(0, 6, (150, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=150)
    >>> model = AutoRegressor().fit(X, y)
    >>> bool(model.best_score_ > 0.95)
    True
    >>> low, high = model.predict_quantiles([[1.5]], [0.05, 0.95])[0]
    >>> bool(0.7 < low < np.sin(1.5) < high < 1.3)
    True
    """

    _classifies: ClassVar[bool] = False

    def _read_target(self, y: np.ndarray) -> np.ndarray:
        return np.asarray(y, dtype=np.float64)

    def _readings(self, y: np.ndarray, rows: Rows) -> list[tuple[str, np.ndarray, Any]]:
        scoring = "r2" if self.scoring is None else self.scoring
        readings: list[tuple[str, np.ndarray, Any]] = [("identity", y, scoring)]
        if len(y) >= _LOG_TARGETS and y.min() > 0 and _tail(y, rows) > max(_SKEWNESS, 2 * abs(_tail(np.log(y), rows))):
            scorer = make_scorer(partial(_scored_back, scorer=check_scoring(KernelRidge(), scoring)))
            scorer.name = scoring_name(scoring)
            readings.append(("log", np.log(y), scorer))
        return readings

    def _columns_of(self, target: np.ndarray) -> np.ndarray:
        return target[:, None]

    def _machine(self, rows: Rows, ridge: bool) -> tuple[Any, str, np.ndarray]:
        return KernelRidge(fit_intercept=True, budget=self._part), "alpha", _alphas(rows)

    def _held_out(self, models: FoldModels, y: np.ndarray, at: np.ndarray) -> np.ndarray:
        values = np.full((len(at), 1), np.nan)
        for model, Z, places in models:
            values[places, 0] = model.predict(Z)
        return values

    def _calibrate(self, values: np.ndarray, y: np.ndarray, stage: Stage, rows: Rows, scores: bool) -> None:
        seen = np.flatnonzero(np.isfinite(values[:, 0]))
        self.target_range_ = np.array([y.min(), y.max()], dtype=np.float64)
        at, predicted = stage.rows[seen], self._within(values[seen, 0])
        residuals = y[at] - predicted
        order = np.argsort(residuals, kind="stable")
        self.residuals_, self.residual_counts_ = residuals[order], rows.counts(at[order])
        self.residual_rows_, self.residual_folds_ = at[order], stage.folds()[seen[order]]
        self.__dict__.pop("_scale", None)  # of an earlier fit
        self.held_out_ = {"rows": rows.places[at], "values": self._back(predicted)}

    def learned_target(self, y: Any) -> np.ndarray:
        """Return the targets, or their logarithms where `estimator_` has learned these."""
        y = np.asarray(y, dtype=np.float64)
        return np.log(y) if self.target_scale_ == "log" else y

    def _back(self, values: np.ndarray) -> np.ndarray:
        return _exp(values) if self.target_scale_ == "log" else values

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted number of each row.

        Parameters
        ----------
        X
            A table or an array as in `fit`.
        """
        return self._back(self._within(self._values(X, "predict")))

    def _within(self, values: np.ndarray) -> np.ndarray:
        """Return predictions; logarithms no farther out than all targets, since exp makes huge what is a little off."""
        known = self.target_scale_ == "log" and hasattr(self, "target_range_")  # older model files do not
        return np.clip(values, *self.target_range_) if known else values

    def predict_quantiles(self, X: Any, quantiles: Any = (0.05, 0.5, 0.95), adaptive: bool = False) -> np.ndarray:
        """Return numbers below which the target of each row is with given probabilities, (n, quantiles).

        They are the prediction plus quantiles of the residuals of rows that were held out (as in conformal prediction):
        over all rows they hold as they say, or a little more, since the last fit has seen more rows.

        Parameters
        ----------
        X
            A table or an array as in `fit`.
        quantiles
            Probabilities between 0 and 1.
        adaptive
            False: their distance from the prediction is the same everywhere on the scale that was learned (after
            learning logarithms it is a factor), so that they do not tell rows that are hard to predict from easy ones.
            True: it is in proportion to how large residuals are about the row, which is learned from those held out.
            That is done when it is first asked for, in less than a second. Where residuals do not clearly depend on the
            row, and of fewer than 40 rows, the distance is the same everywhere.
        """
        check_is_fitted(self, "estimator_")
        asked = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
        if asked.ndim != 1 or not ((asked > 0) & (asked < 1)).all():
            raise ValueError(f"quantiles={quantiles!r} must be numbers between 0 and 1.")
        if not isinstance(adaptive, bool | np.bool_):
            raise ValueError(f"adaptive={adaptive!r} must be True or False.")
        if not adaptive:
            return self._back(self._within(self._values(X, "predict"))[:, None] + self._residual_quantiles(asked))
        scale, Z = self._residual_scale(), self.encoder_.transform(X)
        values = self._within(np.asarray(self.estimator_.predict(Z)))
        return self._back(values[:, None] + scale.quantiles(Z, asked))

    def _residual_quantiles(self, asked: np.ndarray) -> np.ndarray:
        counts = getattr(self, "residual_counts_", None)  # older model files do not know it
        return conformal_quantiles(self.residuals_, asked, counts)

    def _residual_scale(self) -> ResidualScale:
        if not hasattr(self, "residual_rows_"):
            raise ValueError(
                "this model is of an older version, which did not keep whose residuals it knows; fit it again, or take "
                "quantiles that are not adaptive."
            )
        if "_scale" not in vars(self):
            self._scale = ResidualScale.of(
                self.residuals_,
                self.residual_counts_,
                self.residual_folds_,
                Points(self.estimator_.X_fit_).take(self.residual_rows_),
                self.kernel_,
                self._part,
            )
        return self._scale

    def __getstate__(self) -> Any:
        # A copy or a file finds the scale of residuals again when it is asked for it.
        return {name: value for name, value in super().__getstate__().items() if name != "_scale"}

    def _target_sentences(self, y: np.ndarray) -> str:
        said = f"The target lies between {y.min():.4g} and {y.max():.4g}, with deviation {np.std(y):.4g}."
        if len(self._compared) > 1:
            plain, logged = (f"{self._compared[name]:.4g}" for name in ("identity", "log"))
            chosen = "logarithms are learned" if self.target_scale_ == "log" else "it is learned as it is"
            said += (
                f" It is positive with a long tail: for some kernels {self.scoring_} was at best {plain} as it is and "
                f"{logged} by way of its logarithm, so {chosen}."
            )
        return said

    def _model_sentences(self) -> str:
        low, high = self._back(self._residual_quantiles(np.array([0.05, 0.95])))
        n = count(len(self.residuals_), "row")
        if self.target_scale_ == "log":
            return f"Nine in ten of {n} that were held out lie between {low:.3g} and {high:.3g} times the prediction."
        return f"Nine in ten of {n} that were held out lie between {low:.3g} and {high:+.3g} of the prediction."


def _exp(values: np.ndarray) -> np.ndarray:
    return np.exp(np.minimum(values, _LARGEST_EXPONENT))


def _tail(values: np.ndarray, rows: Rows) -> float:
    """Return the skewness of values: the mean cube of their standardised deviations."""
    mean = np.average(values, weights=rows.weights)
    square, cube = (np.average((values - mean) ** p, weights=rows.weights) for p in (2, 3))
    return float(cube / square**1.5) if square > 0 else 0.0


def _scored_back(target: np.ndarray, predicted: np.ndarray, scorer: Any, sample_weight: Any = None) -> float:
    """Score predictions of logarithms as those of the numbers themselves."""
    takes = getattr(scorer, "_accept_sample_weight", bool)()
    told = {"sample_weight": sample_weight} if takes and sample_weight is not None else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return float(scorer(PrecomputedRegressor(_exp(predicted)), np.arange(len(target)), _exp(target), **told))


# -- one call ---------------------------------------------------------------------------------------------


def auto(
    X: Any, y: Any, *, task: str = "auto", sample_weight: Any = None, groups: Any = None, **options: Any
) -> AutoClassifier | AutoRegressor:
    """Return a fitted model for a table: its kernel is found by cross-validation, and an account says how.

    Parameters
    ----------
    X
        A table (pandas, polars) with columns of any kind, an array, or a sparse matrix of numbers.
    y
        The target: a class or a number for each row, or the name of a column of X. Rows without one are left out.
        Classes are predicted as they are given: texts as texts, whether or not they read as numbers.
    task
        "classify", "regress", or "auto" to tell by the target: texts and few whole numbers are classes.
    sample_weight, groups
        As for `AutoClassifier.fit`: a number and a group for each row, or the name of a column of X.
    **options
        Parameters of `AutoClassifier` and `AutoRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import auto
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = auto(X, y)
    >>> model.best_score_ > 0.95, model.kernel_.proof().status, model.certificate_.verify(X, y).converged
    (True, 'proven', True)
    >>> print(model.account_)
    The data: 150 rows of 4 numbers. ...
    """
    (y, sample_weight, groups), X = _columns(X, y, sample_weight, groups)
    y = flat(y.to_pandas() if hasattr(y, "to_pandas") else y)
    target = target_of(y, task)
    known = {name: v for name, v in (("sample_weight", sample_weight), ("groups", groups)) if v is not None}
    if len(target.rows) < len(y):
        X = X.to_pandas() if hasattr(X, "to_pandas") else X
        X = X.tocsr() if sparse.issparse(X) else X if hasattr(X, "iloc") else np.asarray(X)
        X = _safe_indexing(X, target.rows)
        known = {name: _safe_indexing(v, target.rows) for name, v in known.items()}
    if target.task == "classify":
        return AutoClassifier(**options).fit(X, _safe_indexing(y, target.rows), **known)
    return AutoRegressor(**options).fit(X, target.values, **known)


def _columns(X: Any, *given: Any) -> tuple[list[Any], Any]:
    """Return what is given for each row, columns in the place of their names, and the table without these."""
    names = [name for name in given if isinstance(name, str)] if hasattr(X, "columns") else []
    for name in names:
        if name not in X.columns:
            raise ValueError(f"the table has no column {name!r}; it has {', '.join(map(repr, list(X.columns)[:10]))}.")
    rest = X[[name for name in X.columns if name not in names]] if names else X
    return [X[v] if isinstance(v, str) and names else v for v in given], rest
