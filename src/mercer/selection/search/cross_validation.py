"""A cross-validation: the cells of candidates and folds, how they are fitted and scored, and their outcomes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from threading import Event, Lock
from typing import Any

import numpy as np
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_regressor
from sklearn.exceptions import FitFailedWarning
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import _check_method_params

from mercer.estimators.shared.data import asks_for_choice
from mercer.estimators.svm.classifier import PairwiseClassifier
from mercer.kernels import Kernel, Precomputed
from mercer.machine.budget import Budget
from mercer.machine.lazy import cached_property
from mercer.machine.warn import warn
from mercer.points import Points
from mercer.solvers import Control

Split = tuple[np.ndarray, np.ndarray]
_FOLD_PARTS = 10  # parts of a fold, whose scores tell the noise of the score of the fold
_FIT_BUDGET = 4  # a plain fit beside the matrices of a search has this part of the budget: a fourth
_SAMPLE_BYTES, _LEAST_BYTES = 64, 2**17  # that a model takes for each sample, and at least
_ERROR_LETTERS = 300  # letters of an error that are repeated


@dataclass
class Outcome:
    """One candidate on one fold."""

    test: Any  # a number, or a dictionary of numbers by name
    train: Any = None
    fit_time: float = 0.0
    score_time: float = 0.0
    failed: str | None = None  # why, where it could not be fitted
    right: np.ndarray | None = None  # whether each test sample is answered rightly, where the score is their share

    def score(self, metric: Any) -> float:
        """The test score, or that of one of several metrics."""
        return float(self.test[metric] if isinstance(self.test, dict) else self.test)


@dataclass(frozen=True)
class Watched(Control):
    """The limits of a fit that ends when its search is stopped, and that stops it where Ctrl-C has reached the fit."""

    stop: Event = field(default_factory=Event)

    def exhausted(self, steps: int) -> str | None:
        """Return which limit has been reached, if one has."""
        return "interrupted" if self.stop.is_set() else super().exhausted(steps)

    def cancel(self) -> None:
        """Ask every run of the search to return what it has."""
        self.stop.set()


@dataclass
class CrossValidation:
    """The candidates, the folds and how they are scored; the outcomes as they come in.

    A cell is a candidate on a fold.
    """

    estimator: Any
    X: Any
    y: Any
    candidates: list[dict[str, Any]]
    splits: list[Split]
    scorer: Any
    fit_params: dict[str, Any]
    score_params: dict[str, Any]
    error_score: Any
    train_scores: bool
    budget: Budget
    jobs: int | None = None
    limit: int | None = None  # bytes that the models may use; None where the user has named no budget
    tell: Callable[[tuple[int, int], Outcome], None] | None = None
    outcomes: dict[tuple[int, int], Outcome] = field(default_factory=dict)
    stop: Event = field(default_factory=Event)
    metric: Any = "score"  # which of several metrics decides
    deadline: float | None = None  # as time.time() says it; after it no cell is begun
    late: bool = False  # whether the deadline has kept a cell from being begun
    plan: str = ""  # how the cells are computed
    rounds: dict[int, tuple[int, int]] = field(default_factory=dict)  # of a candidate: its last round, and its samples
    labels: np.ndarray | None = None  # where the score is the share of right answers: these
    rough: bool = False  # whether a solution need only tell which samples are answered rightly, in a race
    leaders: dict[int, tuple[float, int, Any]] = field(default_factory=dict)  # of a fold: score, candidate, stand-in
    _lock: Any = field(default_factory=Lock)
    _config: dict[str, Any] = field(default_factory=get_config)

    @property
    def count(self) -> int:
        """How many cells there are."""
        return len(self.candidates) * len(self.splits)

    def samples(self) -> int:
        """How many samples there are."""
        return int(self.X.shape[0]) if hasattr(self.X, "shape") else len(self.X)

    def model(self, candidate: int) -> Any:
        """Return a new estimator with the parameters of a candidate."""
        return clone(self.estimator).set_params(**clone(self.candidates[candidate], safe=False))

    @cached_property
    def models(self) -> list[Any]:
        """An estimator for each candidate, to be read and not to be fitted."""
        return [self.model(c) for c in range(len(self.candidates))]

    def keep(self, cell: tuple[int, int], outcome: Outcome) -> None:
        """Take down the outcome of a cell."""
        with self._lock:
            self.outcomes[cell] = outcome
            if self.tell is not None:
                self.tell(cell, outcome)

    def stopped(self) -> bool:
        """Whether no further cell is to be begun: after an interruption, or late once there is a result."""
        if self.outcomes and self.overdue():
            self.late = True
        return self.late or self.stop.is_set()

    def overdue(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline is not None and time.time() >= self.deadline

    def part(self, rows: np.ndarray, others: np.ndarray | None = None) -> tuple[Any, Any]:
        """Return X and y of some samples; of a matrix of similarities, those to `others`, or to one another."""
        X = self.X
        if get_tags(self.estimator).input_tags.pairwise:
            X = X[np.ix_(rows, rows if others is None else others)]
        else:
            X = _safe_indexing(X, rows)
        return X, None if self.y is None else _safe_indexing(self.y, rows)

    def reduced(self, **changes: Any) -> CrossValidation:
        """Return a search of a part of this one, which keeps its own outcomes and stops with it."""
        own: dict[str, Any] = {"tell": None, "outcomes": {}, "late": False, "plan": "", "rounds": {}, "leaders": {}}
        return replace(self, **own, _lock=Lock(), **changes)

    def __getstate__(self) -> dict[str, Any]:
        """Return what other processes need: no locks, no listeners, and no outcomes."""
        return self.__dict__ | {"_lock": None, "stop": None, "tell": None, "outcomes": {}, "leaders": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {"_lock": Lock(), "stop": Event()})

    # -- scores -----------------------------------------------------------------------------------------

    def score(self, model: Any, X: Any, rows: np.ndarray) -> Any:
        """Return the score of a model at points X, whose targets are those of `rows`."""
        if (right := self._right(model, X, rows)) is not None:
            return float(np.mean(right))
        args = () if self.y is None else (_safe_indexing(self.y, rows),)
        params = _check_method_params(self.X, self.score_params, rows) if self.score_params else {}
        with config_context(**self._config):  # which scikit-learn keeps for each thread
            score = self.scorer(model, X, *args, **params)
        if isinstance(score, dict):
            return {name: self._number(value) for name, value in score.items()}
        return self._number(score)

    def _right(self, model: Any, X: Any, rows: np.ndarray) -> np.ndarray | None:
        """Return which samples a stand-in answers rightly, where these count."""
        if self.labels is None or not isinstance(model, PrecomputedClassifier):
            return None
        return np.asarray(model.predict(X) == self.labels[rows])  # accuracy_score takes ten times as long

    def _number(self, value: Any) -> Any:
        if not isinstance(value, str):
            return float(value)
        self._warn_of_score(value.strip().splitlines()[-1])  # of a traceback, what was raised
        return self.error_score

    def _warn_of_score(self, why: str) -> None:
        warn(f"Scoring failed. The score is set to {self.error_score}. {why[:_ERROR_LETTERS]}")

    def score_values(self, cell: tuple[int, int], answer: Callable[[np.ndarray], Any], fit_time: float) -> Outcome:
        """Score a cell by precomputed values, and keep it.

        `answer` gives, for rows, a stand-in for the model, whose points are the places of these rows.
        """
        train, test = self.splits[cell[1]]
        began = time.perf_counter()
        model = answer(test)
        right = self._right(model, np.arange(len(test)), test)
        score = self.score(model, np.arange(len(test)), test) if right is None else float(np.mean(right))
        outcome = Outcome(score, fit_time=fit_time, right=right)
        outcome.score_time = time.perf_counter() - began
        if self.train_scores:
            outcome.train = self.score(answer(train), np.arange(len(train)), train)
        self.keep(cell, outcome)
        if isinstance(self.metric, str):
            self.lead(cell[1], (outcome.score(self.metric), cell[0], model))
        return outcome

    def lead(self, fold: int, best: tuple[float, int, Any]) -> None:
        """Remember the best on a fold; of equals the one that stands first, whoever came first."""
        with self._lock:
            score, candidate, _ = self.leaders.get(fold, (-np.inf, 0, None))
            if best[0] > score or (best[0] == score and best[1] < candidate):
                self.leaders[fold] = best

    def noise(self, folds: list[int]) -> float | None:
        """Return the standard error of a mean over folds, from the scores of their parts; None where it is unknown."""
        squares = []
        for fold in folds:
            if fold not in self.leaders:
                return None
            model, test = self.leaders[fold][2], self.splits[fold][1]
            parts = [np.arange(i, len(test), _FOLD_PARTS) for i in range(_FOLD_PARTS)]
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of parts that are too small for the metric: NaN says it
                    scores = [Outcome(self.score(model, part, test[part])).score(self.metric) for part in parts]
            except Exception:  # a metric that needs both classes, in a part that has one
                return None
            squares.append(np.var(scores, ddof=1) / _FOLD_PARTS)
        error = float(np.sqrt(np.mean(squares) / len(folds)))
        return error if np.isfinite(error) else None

    # -- the plain fit ----------------------------------------------------------------------------------

    def trial(self, cell: tuple[int, int], parts: int = _FIT_BUDGET) -> Outcome:
        """Fit and score one cell as scikit-learn does, from scratch, in one of some parts of the budget."""
        (candidate, fold), began = cell, time.perf_counter()
        train, test = self.splits[fold]
        params = _check_method_params(self.X, self.fit_params, train) if self.fit_params else {}
        try:
            with config_context(**self._config):
                model = within(self.model(candidate), None if self.limit is None else self.limit // parts)
                X, y = self.part(train)
                X_test, _ = self.part(test, train)
                model.fit(X, **params) if y is None else model.fit(X, y, **params)
                if _interrupted(model):
                    raise KeyboardInterrupt
        except Exception as error:
            if self.error_score == "raise":
                raise
            return Outcome(self.error_score, self.error_score, time.perf_counter() - began, failed=_said(error))
        fitted = time.perf_counter()
        try:
            outcome = Outcome(self.score(model, X_test, test), fit_time=fitted - began)
            outcome.score_time = time.perf_counter() - fitted
            if self.train_scores:
                outcome.train = self.score(model, X, train)
        except Exception as error:
            if self.error_score == "raise":
                raise
            self._warn_of_score(_said(error))
            outcome = Outcome(self.error_score, self.error_score, fitted - began)
        return outcome


def require_for_search(budget: Budget, n: int, part: float = 1.0) -> None:
    """Raise MemoryError where a part of a budget does not suffice to search on n samples."""
    needed = int(_FIT_BUDGET * max(_SAMPLE_BYTES * n, _LEAST_BYTES) / part) + 1
    budget.require(needed, f"a search on {n} samples", "raise the budget, or pass fewer samples.")


def within(model: Any, budget: int | None) -> Any:
    """Return an estimator whose parts of this library use no more than some bytes, in the place of its own; None as is.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from mercer import SVC
    >>> within(make_pipeline(SVC()), 10**6).get_params()["svc__budget"]
    1000000
    """
    if budget is None:
        return model
    parts = {"": model} | {f"{k}__": v for k, v in model.get_params().items() if isinstance(v, BaseEstimator)}
    own = {at: part.get_params(deep=False) for at, part in parts.items() if type(part).__module__.startswith("mercer.")}
    return model.set_params(
        **{
            f"{at}budget": budget if params["budget"] is None else min(budget, int(Budget(params["budget"])))
            for at, params in own.items()
            if "budget" in params
        }
    )


def _interrupted(model: Any) -> bool:
    """Return whether Ctrl-C has ended the fit of a model, which then is the best so far."""
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    return "interrupt" in str(getattr(getattr(last, "certificate_", None), "stopped", ""))


def _said(error: Exception) -> str:
    """Return what an error says, cut where it is long."""
    text = f"{type(error).__name__}: {error}"
    return text if len(text) <= _ERROR_LETTERS else text[: _ERROR_LETTERS - 4] + " ..."


def fill_failed(cv: CrossValidation) -> None:
    """Give failed cells the names of the metrics that others have, and warn, or raise where every fit has failed."""
    failed = [outcome for outcome in cv.outcomes.values() if outcome.failed]
    if not failed:
        return
    if len(failed) == len(cv.outcomes):
        given = f" with {', '.join(cv.fit_params):.80}" if cv.fit_params else ""
        raise ValueError(
            f"All the {len(failed)} fits{given} failed; error_score='raise' shows where. The first: {failed[0].failed}"
        )
    warn(
        f"{len(failed)} of {len(cv.outcomes)} fits failed, and their score is {cv.error_score}. The first: "
        f"{failed[0].failed}",
        FitFailedWarning,
    )
    names = next((o.test for o in cv.outcomes.values() if not o.failed), None)
    if isinstance(names, dict):
        for outcome in failed:
            outcome.test = outcome.train = dict.fromkeys(names, cv.error_score)


# -- what the models of a search have in common -----------------------------------------------------------


def alike(models: list[Any]) -> bool:
    """Whether models read X in one way and one precision, and ask for nothing that only a fit by itself can give."""
    first = models[0]
    return all(
        type(model) is type(first)
        and model.input_kind == first.input_kind
        and model.dtype == first.dtype
        and model.checkpoint is None
        and model.time_limit is None
        and model.max_iter < 0
        and not model.verbose
        and not hasattr(model, "_skl_callbacks")
        and not asks_for_choice(model.kernel)
        for model in models
    )


class SharedData:
    """The samples of all folds as models that are alike read them, and the kernels of these models."""

    def __init__(self, cv: CrossValidation) -> None:
        first = cv.models[0]
        self._cv, self._similarities = cv, first.input_kind == "similarities"
        self._data, target = first.read_training(cv.X, cv.y)
        self.target = np.asarray(target, dtype=np.float64) if is_regressor(first) else target
        self.points = Points(np.arange(len(target)) if self._similarities else self._data)
        self._kernels: dict[Any, Kernel] = {}

    def kernel_key(self, cell: tuple[int, int]) -> Any:
        """Return what the kernel of a cell depends on: a tuple that ends with the fold where it waits for data."""
        key = self._cv.models[cell[0]].kernel_key
        return "similarities" if self._similarities else key if isinstance(key, Kernel) else (*key, cell[1])

    def kernel(self, cell: tuple[int, int]) -> Kernel:
        """Return the kernel of a cell, with what waits for data taken from the training points of the fold."""
        key = self.kernel_key(cell)
        if isinstance(key, Kernel):
            return key
        if key not in self._kernels:
            if self._similarities:
                self._kernels[key] = Precomputed(self._data)
            else:
                train = self._cv.splits[cell[1]][0]
                self._kernels[key] = self._cv.models[cell[0]].kernel_of(self.points.take(train).data)
        return self._kernels[key]


# -- models whose values are precomputed -------------------------------------------------------------------


class PrecomputedClassifier(PairwiseClassifier):
    """A classifier of precomputed values of every pair, (points, pairs); points are places in them.

    How pairs vote is that of the model that it stands for.
    """

    def __init__(self, model: Any, values: np.ndarray) -> None:
        self.model, self.values = model, values
        self.kernel = "rbf"
        self.classes_ = model.classes_
        self.break_ties, self.decision_function_shape = model.break_ties, model.decision_function_shape

    def _read_new(self, X: Any) -> Any:
        return X

    def _pieces(self, X: Any) -> Iterator[np.ndarray]:
        yield self.values[X]


class PrecomputedRegressor(RegressorMixin, BaseEstimator):
    """A regressor of precomputed values, in the shape that predict returns; points are places in them."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self.fitted_ = True

    def fit(self, X: Any, y: Any) -> PrecomputedRegressor:
        """Do nothing."""
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the values."""
        return self.values[X]


def precomputed(model: Any, values: np.ndarray) -> PrecomputedClassifier | PrecomputedRegressor:
    """Return what stands for a machine whose values, (points, pairs), are precomputed."""
    return (
        PrecomputedClassifier(model, values)
        if isinstance(model, PairwiseClassifier)
        else PrecomputedRegressor(values[:, 0])
    )
