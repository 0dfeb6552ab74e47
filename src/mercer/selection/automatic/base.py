"""The base of the automatic classifier and regressor: from a table through a search to a fitted model."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import check_scoring
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_y, _num_samples, check_consistent_length, check_is_fitted

from mercer.certify import Certificate
from mercer.estimators.features.learned import WithMetric, learned_metric
from mercer.estimators.shared.classes import as_given
from mercer.estimators.shared.parameters import Rules, check_parameters, whole, with_parameters
from mercer.estimators.svm.machine import Recheck
from mercer.kernels import Kernel
from mercer.machine.budget import Budget
from mercer.machine.clock import Clock
from mercer.machine.words import count
from mercer.selection.automatic.account import Account, Stage, scoring_name, told
from mercer.selection.automatic.candidates import Look, look_at, proposed
from mercer.selection.automatic.learned import Task, learned_stages, usual_list
from mercer.selection.automatic.rows import Rows
from mercer.selection.automatic.search import Search, first_look, sample
from mercer.selection.search.cross_validation import require_for_search
from mercer.selection.search.search import asks_predictions
from mercer.tables import SparseEncoder, TableEncoder

FoldModels = Iterator[tuple[Any, np.ndarray, np.ndarray]]  # a model, the rows it has not seen, and their places

_FINAL_ROWS = 3  # times search_rows, for the last look at the best few classifiers
_LEARNING_ROWS = 40  # from which on a metric is learned
_SCALE_KERNELS = 6  # kernels by which the scale of the targets is chosen: the numbers, or their logarithms
_SEARCH_SHARE, _HELD_OUT_SHARE = 0.6, 0.75  # of the time limit: when the search is over, and what is held out is known
_FIT_BUDGET = 0.4  # of the budget, for each fit after the search
_REFIT_SHARE = 0.25  # of the time limit, that the fit to all rows has in any case


@with_parameters
class AutoModel(WithMetric, BaseEstimator):
    """The base of `AutoClassifier` and `AutoRegressor`."""

    _classifies: ClassVar[bool]
    _rules: ClassVar[Rules] = {
        "search_rows": (lambda v: whole(v, 20), "a whole number of rows >= 20"),
        "cv": (
            lambda v: whole(v, 2) or hasattr(v, "split") or (hasattr(v, "__iter__") and not isinstance(v, str)),
            "a number of folds >= 2, a splitter of scikit-learn, or pairs of training and test rows",
        ),
        "scoring": (lambda v: v is None or isinstance(v, str) or callable(v), "the name of a score, a scorer, or None"),
    }

    _: KW_ONLY
    kernels: Any = None
    cv: Any = 5
    scoring: Any = None
    time_limit: float | None = None
    search_rows: int = 5000
    budget: int | float | str | None = None
    random_state: Any = 0
    verbose: int = 0

    @property
    def _part(self) -> int | None:
        """The bytes for a fit after the search, of whose memory the allocator may still hold a part."""
        return None if self.budget is None else int(_FIT_BUDGET * Budget(self.budget))

    # -- what the two define ----------------------------------------------------------------------------

    def _read_target(self, y: np.ndarray) -> np.ndarray:
        """Return the targets as they are learned from, with what is known of them remembered."""
        raise NotImplementedError

    def _readings(self, y: np.ndarray, rows: Rows) -> list[tuple[str, np.ndarray, Any]]:
        """Return the ways to read the targets: their scale, the values, and how predictions of these are scored."""
        raise NotImplementedError

    def _columns_of(self, target: np.ndarray) -> np.ndarray:
        """Return targets as ridge regression learns them, in columns."""
        raise NotImplementedError

    def _machine(self, rows: Rows, ridge: bool) -> tuple[Any, str, np.ndarray]:
        """Return the model whose kernel is to be found, and its price of errors: the name, and values to try.

        The strongest penalty comes first. `ridge` asks for a model of ridge regression.
        """
        raise NotImplementedError

    def _held_out(self, models: FoldModels, y: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Return what models of the folds say of rows `at` that they have not seen; NaN where none has answered."""
        raise NotImplementedError

    def _calibrate(self, values: np.ndarray, y: np.ndarray, stage: Stage, rows: Rows, scores: bool) -> None:
        """Learn from what was said of the rows of a stage that were held out what the model is worth.

        The values are `scores` of classes, or of their pairs.
        """
        raise NotImplementedError

    def _target_sentences(self, y: np.ndarray) -> str:
        """Say what the targets look like."""
        raise NotImplementedError

    def _model_sentences(self) -> str:
        """Say what is particular to the fitted model."""
        raise NotImplementedError

    def learned_target(self, y: Any) -> np.ndarray:
        """Return targets on the scale on which `estimator_` has learned them."""
        raise NotImplementedError

    # -- fit --------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Look at the data, find a kernel, and fit it to all rows.

        Parameters
        ----------
        X
            A table (pandas, polars) with columns of any kind, an array, or a sparse matrix, which is taken as it is.
        y
            A class or a number for each row.
        sample_weight
            How many rows each row counts for, at least 0: in the columns' means, the fits, the scores, and what is
            learned from rows held out. 0 leaves it out.
        groups
            What belongs together: rows of one group are never both learned from and held out. A number of folds becomes
            `StratifiedGroupKFold` (`GroupKFold`); a splitter gets them; pairs of rows are taken as they are.

        Returns
        -------
        self
        """
        return self.fit_encoded(X, y, sample_weight=sample_weight, groups=groups)

    def fit_encoded(
        self, X: Any, y: Any, encoder: TableEncoder | None = None, sample_weight: Any = None, groups: Any = None
    ) -> Self:
        """Fit, with an encoder that has learned the columns of X already, where there is one.

        Whoever shows the columns before the search (`mercer fit`) has such an encoder; `new_encoder` makes it.
        """
        check_parameters(self)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        require_for_search(Budget(self.budget), _num_samples(y), _FIT_BUDGET)
        clock = Clock(self.time_limit)
        self.timings_ = clock.spent
        seed = int(check_random_state(self.random_state).randint(2**31))
        with clock("encode"):
            rows = Rows.of(y, sample_weight, groups)
            if len(rows.places) < rows.given:
                check_consistent_length(X, y)
            Z = self._encoded(rows.taken(X), encoder, rows)
            y = rows.taken(as_given(y))
            target = _check_y(y, multi_output=False, y_numeric=not self._classifies, estimator=self)
            check_consistent_length(Z, target)
            target = self._read_target(target)
        with clock("search"):
            look, search, stages, learned = self._searched(Z, target, rows, clock, seed)
        stage, winner = stages[-1], stages[-1].best()
        self._keep_results(search, stages)
        with clock("calibrate"):
            model = clone(search.model).set_params(
                kernel=winner.candidate.kernel, **{str(search.price): winner.price}, verbose=0
            )
            values = winner.values
            if values is None:
                values = self._held_out(self._fold_models(model, learned, rows, stage, clock), learned, stage.rows)
            self._calibrate(values, learned, stage, rows, winner.values is not None)
        with clock("refit"):
            said = self._refit(model, Z, self.learned_target(target), rows, clock)
        self.account_ = told(look, search, stages)
        self._complete(self.account_, target, rows, said)
        self.interrupted_ = any(s.interrupted for s in stages) or "interrupt" in self.certificate_.stopped
        return self

    def new_encoder(self) -> TableEncoder:
        """Return an encoder as `fit` uses it, not yet fitted: kernels that are named compare numbers only."""
        return TableEncoder(texts="keep" if self.kernels is None else "drop")

    def _encoded(self, X: Any, encoder: TableEncoder | None, rows: Rows) -> Any:
        """Return the rows as kernels compare them: a sparse matrix stays one."""
        if encoder is None and sparse.issparse(X):
            self.encoder_: Any = SparseEncoder().fit(X)
        else:
            self.encoder_ = self.new_encoder().fit(X, **rows.weighted()) if encoder is None else encoder
        Z = self.encoder_.transform(X)
        self.n_features_in_ = self.encoder_.n_features_in_
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if hasattr(self.encoder_, "feature_names_in_"):
            self.feature_names_in_ = self.encoder_.feature_names_in_
        return Z

    def _searched(
        self, Z: Any, target: np.ndarray, given: Rows, clock: Clock, seed: int
    ) -> tuple[Look, Search, list[Stage], np.ndarray]:
        """Compare kernels on some rows; return also the targets as the winner has read them."""
        strings = [(place, kind) for kind in ("text", "sequence") for place in self.encoder_.places(kind)]
        look = look_at(Z, self.encoder_.places("category", "yes/no"), encoded=True, strings=strings)
        learns = self._learns(Z, strings, given)
        model, price, prices = self._machine(given, learns)
        readings, cv = self._readings(target, given), given.cut(self.cv)
        n = len(target)
        rows = first = np.arange(n)
        if not isinstance(cv, list):  # pairs of rows speak of all rows
            rows = sample(target, int(self.search_rows), self._classifies, seed)
            first = first_look(target, rows, self._classifies, seed)
        candidates = usual_list(Z[rows]) if learns else proposed(look, Z, rows, self.kernels)
        searches = [
            Search(
                model,
                price,
                prices,
                how,
                cv,
                self._classifies,
                seed,
                self.budget,
                self.verbose,
                clock,
                [place for place, _ in strings],
                self.encoder_.get_feature_names_out().tolist() if strings else [],
                self.encoder_.named,
                given.groups,
            )
            for _, _, how in readings
        ]
        at, self._compared = 0, {}
        if len(readings) > 1:  # some kernels tell which way to read the targets
            step = max(1, len(candidates) // _SCALE_KERNELS)
            some = candidates[step // 2 :: step]
            for i, (search, (name, values, _)) in enumerate(zip(searches, readings, strict=True)):
                stage = search.look(Z, values, first, some, prices, _SEARCH_SHARE * 0.2 * (i + 1), given.weights)
                if clock.interrupted:
                    self.target_scale_ = name
                    return look, search, [stage], values
                self._compared[name] = stage.best().mean
            at = int(np.argmax(list(self._compared.values())))
        search, (self.target_scale_, learned, _) = searches[at], readings[at]
        if learns:
            task = Task(Z, learned, self._columns_of(learned), given.weights)
            return look, search, learned_stages(search, task, rows, prices[-1]), learned
        more = None
        if self._classifies and n >= 2 * len(rows):  # errors are counted, and on few rows the count is too noisy
            more = sample(target, _FINAL_ROWS * int(self.search_rows), True, seed)
        shares = (_SEARCH_SHARE * (0.7 if len(first) < len(rows) else 1.0), _SEARCH_SHARE * 0.85, _SEARCH_SHARE)
        stages = search.stages(Z, learned, candidates, (first, rows, more), shares, given.weights)
        return look, search, stages, learned

    def _learns(self, Z: Any, strings: Any, given: Rows) -> bool:
        """Whether a metric is learned: of numbers, where the user has not said what to compare, nor on which rows.

        The score must look at predictions only, since it is told those that leave-one-out gives.
        """
        free = self.kernels is None and isinstance(self.cv, int | np.integer) and given.groups is None
        free = free and (
            self.scoring is None or asks_predictions(check_scoring(self._machine(given, True)[0], self.scoring))
        )
        return bool(free and not strings and not sparse.issparse(Z) and Z.shape[0] >= _LEARNING_ROWS)

    def _fold_models(self, model: Any, y: np.ndarray, rows: Rows, stage: Stage, clock: Clock) -> FoldModels:
        """Yield the winner fitted to the training rows of each fold, with its test rows and their places.

        Rows and kernel are as the search has seen them, so that kernel values of strings are not computed again.
        """
        model = clone(model).set_params(kernel=stage.kernels[model.kernel])
        Z = stage.seen
        for number, (train, test) in enumerate(stage.splits):
            left = clock.time_limit(
                _SEARCH_SHARE + (_HELD_OUT_SHARE - _SEARCH_SHARE) * (number + 1) / len(stage.splits)
            )
            if number and clock.interrupted and left == clock.time_limit(0.0):  # nothing: one fold has to do
                return
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # the fit to all rows says what is wrong
                    part = clone(model).set_params(time_limit=left)
                    at = stage.rows[train]
                    part.fit(Z[train], y[at], **rows.weighted(at))
            except (ValueError, KeyboardInterrupt):  # one class only; or enough of it
                if not number:
                    raise
                continue
            yield part, Z[test], test

    def _refit(self, model: Any, Z: Any, y: np.ndarray, rows: Rows, clock: Clock) -> list[str]:
        """Fit the winner to all rows; return what the solver had to say."""
        left = clock.time_limit()
        if clock.limit is not None and left is not None:  # a long search must not leave a model that is no model
            left = max(left, _REFIT_SHARE * clock.limit)
        self.estimator_ = clone(model).set_params(time_limit=left, verbose=self.verbose)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.estimator_.fit(Z, y, **rows.weighted())
        for warning in caught:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        return [str(warning.message).rstrip(".") for warning in caught]

    # -- what is kept -----------------------------------------------------------------------------------

    def _keep_results(self, search: Search, stages: list[Stage]) -> None:
        winner = stages[-1].best()
        self.best_score_, self.score_error_ = winner.mean, winner.error
        self.honest_score_ = stages[-1].honest_score()
        self.scoring_ = scoring_name(search.scoring)
        trials = [
            trial
            for i, stage in enumerate(stages)
            for trial in stage.trials
            if i or not any(trial.candidate.family == t.candidate.family for s in stages[1:] for t in s.trials)
        ]
        self.best_index_ = trials.index(winner)
        seen = [trial.scores[np.isfinite(trial.scores)] for trial in trials]
        self.results_ = {
            "kernel": [repr(search.named(trial.candidate.kernel)) for trial in trials],
            "family": [trial.candidate.family for trial in trials],
            "scale": np.array([trial.candidate.scale for trial in trials]),
            str(search.price): np.array([trial.price for trial in trials]),
            "mean_test_score": np.array([trial.mean for trial in trials]),
            "std_test_score": np.array([np.std(scores) if len(scores) else np.nan for scores in seen]),
            "folds": np.array([trial.folds for trial in trials]),
            "time": np.array([trial.seconds for trial in trials]),
            "rows": np.array([trial.rows for trial in trials]),
        }

    def _complete(self, account: Account, target: np.ndarray, rows: Rows, said: list[str]) -> None:
        """Add to the account what the search does not know."""
        account.seen += f" {self.encoder_.sentence()}"
        if rows.weights is not None:
            out = rows.given - len(target)
            left = f"; {count(out, 'row')} of weight 0 {'is' if out == 1 else 'are'} left out" if out else ""
            account.seen += f" Rows count as often as their weights say{left}."
        account.seen += f" {self._target_sentences(target)}"
        claim = self.certificate_
        state = "converged" if claim.converged else f"NOT converged ({claim.stopped})"
        account.model = (
            f"The model: fitted to all {len(target):,} rows in {self.timings_['refit']:.1f} s; {state} at a relative "
            f"gap of {claim.relative_gap:.1e}, {claim.tol:.0e} was asked. {self._model_sentences()}"
        )
        for sentence in said:
            account.model += f" The fit warned: {sentence}."
        account.facts["converged"], account.facts["warnings"] = bool(claim.converged), said

    # -- the fitted model -------------------------------------------------------------------------------

    def _values(self, X: Any, method: str) -> np.ndarray:
        """Return what the fitted machine says of rows of the user's table."""
        check_is_fitted(self, "estimator_")
        return np.asarray(getattr(self.estimator_, method)(self.encoder_.transform(X)))

    @property
    def kernel_(self) -> Kernel:
        """The kernel, which compares encoded rows."""
        check_is_fitted(self, "estimator_")
        kernel: Kernel = self.estimator_.kernel_
        return kernel

    @property
    def column_importances_(self) -> dict[str, float] | None:
        """The share of each column of the user's table in the metric of the kernel, the largest first; None without."""
        metric = learned_metric(self)
        return None if metric is None else metric.by_column()

    @property
    def named_kernel_(self) -> Kernel:
        """The kernel with names of columns in the place of their numbers, for people to read."""
        return self.encoder_.named(self.kernel_)

    @property
    def certificate_(self) -> Certificate:
        """Primal, dual, gap and residual of the final fit.

        `certificate_.verify(X, y, sample_weight=...)` takes what `fit` took.
        """
        check_is_fitted(self, "estimator_")
        return replace(self.estimator_.certificate_, check=Recheck(self))

    def _rechecked(self, X: Any, y: Any, sample_weight: Any) -> Certificate:
        rows = Rows.of(y, sample_weight)
        Z, target = self.encoder_.transform(rows.taken(X)), self.learned_target(rows.taken(y))
        checked: Certificate = self.estimator_.certificate_.verify(Z, target, **rows.weighted())
        return checked

    @property
    def function_(self) -> Any:
        """The function of the kernel's space that was found, on encoded rows."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.function_

    @property
    def plan_(self) -> str:
        """How the final fit was solved, and why."""
        check_is_fitted(self, "estimator_")
        return str(self.estimator_.plan_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
