"""Cross-validation over kernels and penalties, at the price of little more than one fit."""

from __future__ import annotations

import numbers
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from numpy.ma import MaskedArray
from scipy.stats import rankdata
from sklearn.base import ClassifierMixin, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics._scorer import _BaseScorer, _MultimetricScorer, _PassthroughScorer
from sklearn.model_selection import GridSearchCV, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import _check_method_params, _num_samples, column_or_1d, indexable

from mercer.estimators.shared.classes import as_given
from mercer.estimators.shared.parameters import positive, with_parameters
from mercer.machine.budget import Budget
from mercer.machine.warn import warn
from mercer.selection.search.cross_validation import CrossValidation, Outcome, fill_failed, require_for_search, within
from mercer.selection.search.grids import candidates
from mercer.selection.search.racing import Halving, search


@with_parameters
class KernelSearchCV(GridSearchCV):
    """Choose kernel and penalty by cross-validation (M14), as scikit-learn's GridSearchCV does, in far less time.

    The scores are those of `GridSearchCV` up to the tolerance of the solvers. What is different is the work: a kernel
    matrix is computed once for all folds and all penalties, solutions start from their neighbours, a whole path of
    alphas costs one Krylov space, and candidates that one fold shows to be hopeless are left.

    Parameters
    ----------
    estimator
        Any estimator of this library or of scikit-learn. The support vector machines (`SVC`, `NuSVC`, `SVR`, `NuSVR`)
        and `KernelRidge` are the fast ones; others are fitted cell by cell.
    kernels
        The kernels to try: kernel objects or names; a class such as RBF stands for itself at ten scales taken from the
        distances of the data (see `scales`). None for RBF at ten scales, or for what param_grid says. A grid of
        parameters is taken for param_grid, so that the call of GridSearchCV does what it says.
    param_grid
        Other parameters and the values to try, as for GridSearchCV; `kernel__scale` and `gamma` work too, in place of
        `kernels`. None for a default grid of C or alpha.
    cv
        A number of folds, a splitter of scikit-learn, or an iterable of (train, test).
    scoring
        As for GridSearchCV: a name, a scorer, several; None for the estimator's own.
    refit
        As for GridSearchCV: whether to fit the best candidate to all samples; the name of a metric; or a function.
    exhaustive
        Whether every candidate sees every fold. Otherwise those are left whose first folds are worse than the best by
        four standard errors; their other folds are NaN in `cv_results_`, and they rank last.
    halving
        Whether to begin with few samples and all candidates, and to go on with three times as many samples and the best
        third of the candidates until all samples are used (successive halving). Samples are drawn class by class, those
        of one round among those of the next. `cv_results_` has what each candidate scored in its last round, `iter`,
        on `n_resources` samples.
    time_limit
        Seconds after which no further cell is begun: the best of the candidates seen so far is refitted, with a
        warning. None for no limit.
    verbose
        1 for a bar with the best so far.
    budget
        Bytes that kernel matrices may use: a number, a text such as "4 GiB", or None for half of what is free. It
        holds for the models that are fitted, too.
    n_jobs
        Processes for estimators that are fitted cell by cell, as for GridSearchCV. The fast ones use all cores by
        threads; 1 for one thread.
    error_score
        What the score of a failed fit is, or "raise".
    return_train_score
        Whether to score the training samples too.

    Attributes
    ----------
    best_estimator_, best_params_, best_score_, best_index_, cv_results_, scorer_, n_splits_, refit_time_, multimetric_
        As for GridSearchCV. `pandas.DataFrame(search.cv_results_)` is a table with a row for each candidate.
    plan_
        How the cells were computed, in a sentence.
    interrupted_
        Whether the time limit or Ctrl-C has ended the search before its end.
    n_resources_, n_candidates_
        With halving: the samples and the candidates of each round.

    Notes
    -----
    Ctrl-C ends the search, not the program: with a warning, the best of the candidates seen so far is refitted.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from mercer import SVC, KernelSearchCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> search = KernelSearchCV(SVC()).fit(scale(X), y)
    >>> len(search.cv_results_["params"]), bool(search.best_score_ > 0.97)
    (110, True)
    >>> search.best_estimator_.certificate_.converged
    True
    >>> KernelSearchCV(SVC(), {"kernel": ["rbf", "linear"], "C": [1.0, 10.0]}).fit(scale(X), y).best_params_
    {'C': 10.0, 'kernel': 'rbf'}
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **GridSearchCV._parameter_constraints,
        "param_grid": [dict, list, None],
        "exhaustive": ["boolean"],
        "halving": ["boolean"],
    }

    estimator: Any
    kernels: Any = None
    param_grid: Any = None
    _: KW_ONLY
    cv: Any = 5
    scoring: Any = None
    refit: Any = True
    exhaustive: bool = False
    halving: bool = False
    time_limit: float | None = None
    verbose: int = 0
    budget: int | float | str | None = None
    n_jobs: int | None = None
    error_score: Any = np.nan
    return_train_score: bool = False

    # -- fit --------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, **params: Any) -> KernelSearchCV:
        """Score every candidate, and fit the best.

        Parameters
        ----------
        X
            The samples, as the estimator takes them; for kernel="precomputed" the square matrix of similarities.
        y
            Their targets.
        **params
            For the estimator's fit, the scorer and the splitter, such as sample_weight and groups; with metadata
            routing, by request.

        Returns
        -------
        self
        """
        self._validate_params()
        if self.time_limit is not None and not positive(self.time_limit):
            raise ValueError(
                f"time_limit={self.time_limit!r} of KernelSearchCV must be a number of seconds > 0, or None for no "
                "limit."
            )
        if y is None and get_tags(self.estimator).target_tags.required:
            raise ValueError(
                f"KernelSearchCV requires y to be passed, but the target y is None; {type(self.estimator).__name__} "
                "cannot be fitted without it."
            )
        began, budget = time.time(), Budget(self.budget)
        scorer, metric = self._get_scorers()
        X, y = indexable(X, flat(y) if is_classifier(self.estimator) else y)
        require_for_search(budget, _num_samples(X))
        params = _check_method_params(X, params=params)
        routed = self._get_routed_params_for_fit(params)
        splitter = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        self.n_splits_ = splitter.get_n_splits(X, y, **routed.splitter.split)
        kind = getattr(scorer, "validation", CrossValidation)  # a score may ask for more than predictions of a fold
        validation = kind(
            clone(self.estimator),
            X,
            y,
            candidates(self.estimator, self.kernels, self.param_grid, X, y),
            [(np.asarray(a), np.asarray(b)) for a, b in splitter.split(X, y, **routed.splitter.split)],
            scorer,
            {k: v for k, v in routed.estimator.fit.items() if v is not None},
            dict(routed.scorer.score),
            self.error_score,
            self.return_train_score,
            budget,
            self.n_jobs,
            None if self.budget is None else int(budget),
            deadline=None if self.time_limit is None else began + self.time_limit,
        )
        if self.scoring in (None, "accuracy") and not validation.score_params and _counts_right_answers(self.estimator):
            validation.labels = np.asarray(as_given(y))
        self._search(validation, metric)
        fill_failed(validation)
        self.cv_results_ = table(validation)
        first = next(iter(validation.outcomes.values())).test
        self.multimetric_ = isinstance(first, dict)
        if callable(self.scoring) and self.multimetric_:
            self._check_refit_for_multimetric(first)
            metric = self.refit
        self.scorer_ = scorer._scorers if isinstance(scorer, _MultimetricScorer) else scorer
        if self.interrupted_:
            why = "was interrupted" if validation.stop.is_set() else f"reached its time limit of {self.time_limit:g} s"
            warn(
                f"the search {why} after {len(validation.outcomes)} of {validation.count} fits; the best of the "
                "candidates seen so far is kept.",
                ConvergenceWarning,
            )
        if self.refit or not self.multimetric_:
            self.best_index_ = best_index(self.refit, metric, self.cv_results_)
            if not callable(self.refit):
                self.best_score_ = self.cv_results_[f"mean_test_{metric}"][self.best_index_]
            self.best_params_ = self.cv_results_["params"][self.best_index_]
        if self.refit:
            self._refit(validation)
        return self

    @property
    def cancelled(self) -> bool:
        """Whether Ctrl-C has ended the search."""
        return self._stopped

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags = get_tags(self.estimator).target_tags
        return tags

    def _refit(self, validation: CrossValidation) -> None:
        began = time.perf_counter()
        self.best_estimator_ = model = within(validation.model(int(self.best_index_)), validation.limit)
        args = (validation.X,) if validation.y is None else (validation.X, validation.y)
        model.fit(*args, **validation.fit_params)
        self.refit_time_ = time.perf_counter() - began
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_

    def _search(self, validation: CrossValidation, metric: Any) -> None:
        """Evaluate the cells."""
        if not validation.candidates or not validation.splits:
            raise ValueError("No fits were performed: there is no candidate or no fold.")
        validation.metric, by_values = metric, asks_predictions(validation.scorer)
        try:
            with watching(self.verbose, validation, metric):
                if self.halving:
                    rounds = Halving(validation, metric)
                    rounds.run(by_values)
                    self.n_resources_, self.n_candidates_ = rounds.samples, rounds.candidates
                else:
                    search(validation, metric, bool(self.exhaustive), by_values)
        except KeyboardInterrupt:
            validation.stop.set()
        if validation.stop.is_set() and not validation.outcomes:
            raise KeyboardInterrupt
        self.plan_ = validation.plan
        self._stopped = validation.stop.is_set()
        self.interrupted_ = self._stopped or validation.late


def asks_predictions(scorer: Any) -> bool:
    """Whether a scorer looks at nothing but predictions, so that a stand-in can answer it."""
    parts = scorer._scorers.values() if isinstance(scorer, _MultimetricScorer) else [scorer]
    return all(isinstance(part, _BaseScorer | _PassthroughScorer) for part in parts)


def _counts_right_answers(estimator: Any) -> bool:
    """Whether the score of an estimator is scikit-learn's for classifiers."""
    if isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return isinstance(estimator, ClassifierMixin) and type(estimator).score is ClassifierMixin.score


def flat(y: Any) -> Any:
    """Return targets that stand in one column without it, with scikit-learn's warning; all others as they are.

    Examples
    --------
    >>> flat([0, 1, 2])
    [0, 1, 2]
    """
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    if len(shape) != 2 or shape[1] != 1:
        return y
    column = column_or_1d(np.asarray(y), warn=True)
    return y.iloc[:, 0] if hasattr(y, "iloc") else column


# -- the outcomes as scikit-learn lays them out -----------------------------------------------------------


def table(validation: CrossValidation) -> dict[str, Any]:
    """Return `cv_results_`: a column for each parameter, for each fold's score, and for their mean, spread and rank.

    Cells that were not looked at are NaN; means are over those that were. Candidates that have not seen every fold rank
    after all that have, and those of an earlier round of halving after those of a later one.
    """
    shape = (len(validation.candidates), len(validation.splits))
    results: dict[str, Any] = {}
    for name in ("fit_time", "score_time"):
        _spread(results, name, _filled(validation, shape, lambda o, name=name: getattr(o, name)))
    results |= _parameters(validation.candidates)
    results["params"] = validation.candidates
    first = next(iter(validation.outcomes.values())).test
    names: list[Any] = list(first) if isinstance(first, dict) else [None]
    seen = np.zeros(shape, bool)
    for cell in validation.outcomes:
        seen[cell] = True
    rounds = np.array([validation.rounds.get(c, (0, 0)) for c in range(shape[0])])
    if validation.rounds:
        results["iter"], results["n_resources"] = rounds.T
    for metric in names:
        for part in ("test", "train") if validation.train_scores else ("test",):
            key = f"{part}_{'score' if metric is None else metric}"

            def of(outcome: Any, part: str = part, metric: Any = metric) -> float:
                value = getattr(outcome, part)
                return float(value if metric is None else value[metric])

            values = _filled(validation, shape, of)
            for fold in range(shape[1]):
                results[f"split{fold}_{key}"] = values[:, fold]
            _spread(results, key, values, seen)
            if part == "test":
                results[f"rank_{key}"] = _ranks(results[f"mean_{key}"], seen, rounds[:, 0])
    return results


def _filled(validation: CrossValidation, shape: tuple[int, int], of: Any) -> np.ndarray:
    values = np.full(shape, np.nan)
    for cell, outcome in validation.outcomes.items():
        values[cell] = of(outcome)
    return values


def _spread(results: dict[str, Any], key: str, values: np.ndarray, seen: np.ndarray | None = None) -> None:
    """Add mean and standard deviation over the cells that were looked at."""
    made = ~np.isnan(values) if seen is None else seen
    count = np.maximum(made.sum(axis=1), 1)
    mean = np.where(made.any(axis=1), np.where(made, values, 0.0).sum(axis=1) / count, np.nan)
    square = np.where(made, (values - mean[:, None]) ** 2, 0.0).sum(axis=1) / count
    results[f"mean_{key}"] = mean
    results[f"std_{key}"] = np.where(made.any(axis=1), np.sqrt(square), np.nan)


def _ranks(means: np.ndarray, seen: np.ndarray, rounds: np.ndarray) -> np.ndarray:
    """Return 1 for the best; earlier rounds after later ones, fewer folds after more, NaN last."""
    folds = seen.sum(axis=1) + (seen.shape[1] + 1) * (rounds - rounds.max())
    bad = np.isnan(means)
    if bad.all():
        return np.ones(len(means), np.int32)
    means = np.where(bad, np.nanmin(means) - 1.0, means)
    within = rankdata(-means, method="min")
    behind = seen.shape[1] - folds
    order = np.where(bad, behind.max() + 1, behind) * (len(means) + 1.0) + within
    return rankdata(order, method="min").astype(np.int32)


def _parameters(candidates: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a masked array for each parameter, empty where a candidate does not set it."""
    columns: dict[str, Any] = {}
    for name in dict.fromkeys(name for params in candidates for name in params):
        values = {i: params[name] for i, params in enumerate(candidates) if name in params}
        plain = all(isinstance(v, numbers.Number | np.generic) for v in values.values())
        kind = np.result_type(*map(np.asarray, values.values())) if plain else np.dtype(object)
        column = MaskedArray(np.empty(len(candidates), kind), mask=True)
        for i, value in values.items():
            column[i] = value
        columns[f"param_{name}"] = column
    return columns


def best_index(refit: Any, metric: Any, results: dict[str, Any]) -> int:
    """Return which candidate is the best, or the one that a user's function chooses."""
    if not callable(refit):
        return int(results[f"rank_test_{metric}"].argmin())
    chosen = refit(results)
    if not isinstance(chosen, numbers.Integral):
        raise TypeError(f"refit must return the place of a candidate, an integer; it returned {chosen!r}.")
    if not 0 <= int(chosen) < len(results["params"]):
        raise IndexError(f"refit returned {chosen}, which is none of the {len(results['params'])} candidates.")
    return int(chosen)


# -- progress ---------------------------------------------------------------------------------------------


@contextmanager
def watching(verbose: int, validation: CrossValidation, metric: Any) -> Iterator[None]:
    """Show a bar with the best candidate so far, where it is asked for."""
    if not verbose:
        yield
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    scores: dict[int, list[float]] = {}
    best = (-np.inf, "")
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[best]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns) as bars:
        task = bars.add_task(type(validation.estimator).__name__, total=validation.count, best="")

        def tell(cell: tuple[int, int], outcome: Outcome) -> None:
            nonlocal best
            score = outcome.test
            if isinstance(score, dict):
                score = score.get(metric, next(iter(score.values())))
            scores.setdefault(cell[0], []).append(float(score))
            mean = float(np.mean(scores[cell[0]]))
            if mean > best[0]:
                shown = ", ".join(
                    f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}"
                    for k, v in validation.candidates[cell[0]].items()
                )
                best = (mean, f"best {mean:.4g} at {shown}")
            bars.update(task, advance=1, best=best[1])

        validation.tell = tell
        try:
            yield
            bars.update(task, completed=validation.count)
        finally:
            validation.tell = None
