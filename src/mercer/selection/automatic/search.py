"""The search of the automatic models: a first look at all kernels on some rows, then the best of them on more."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold, check_cv

from mercer.kernels import Kernel
from mercer.machine.clock import Clock
from mercer.selection.automatic.kernels import Candidate
from mercer.selection.automatic.strings import tabulated
from mercer.selection.search.search import KernelSearchCV

FIRST_ROWS = 2000  # on which all kernels are compared
_SECOND_LOOK = 1.5  # times FIRST_ROWS, from which on a second look is worth its while
_SECOND_FAMILIES = 4  # families that a second look is taken at
_NEAR_FACTORS = (0.63, 0.8, 1.0, 1.25, 1.6)  # of the best scale, at the second look
_OUTER_FACTORS = (0.7, 1.0, 1.6, 2.5)  # of the best scale, where it was the largest that was tried
_FINALISTS = 4  # kernels that are compared once more, on more rows
_MAYBE_BEST = 2.0  # standard errors of a difference, up to which a family may still be the best
_FOLD_TARGETS = 5  # targets in a fold of a regression
_GRACE = 2.0  # seconds after Ctrl-C, in which the best so far is fitted as well as it can be
_EXHAUSTIVE_ROWS = 3000  # rows of which one fold says too little to leave a candidate, and all of them cost little


@dataclass(eq=False)
class Trial:
    """A kernel with a price of errors, and its score on each fold (NaN where it was not looked at)."""

    candidate: Candidate
    price: float
    scores: np.ndarray
    seconds: float
    rows: int

    @property
    def folds(self) -> int:
        """On how many folds it was scored."""
        return int(np.isfinite(self.scores).sum())

    @property
    def mean(self) -> float:
        """The mean score of these."""
        return float(np.nanmean(self.scores)) if self.folds else float("nan")

    @property
    def error(self) -> float:
        """The standard error of the mean, from the spread over the folds."""
        return spread(self.scores)


def spread(scores: np.ndarray) -> float:
    """Return the standard error of the mean of scores, NaN of fewer than two."""
    scores = scores[np.isfinite(scores)]
    return float(np.std(scores, ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else float("nan")


@dataclass
class Stage:
    """One search: on which rows, with which folds, what was found."""

    rows: np.ndarray
    splits: list[tuple[np.ndarray, np.ndarray]]  # places in rows
    trials: list[Trial]
    prices: np.ndarray
    seconds: float
    interrupted: bool
    plan: str
    seen: Any = None  # the rows as the kernels of the search have seen them
    kernels: dict[Kernel, Kernel] = field(default_factory=dict)  # and the kernels of such rows, by those of the table

    def finished(self) -> list[Trial]:
        """The trials that have seen as many folds as any has."""
        most = max((trial.folds for trial in self.trials), default=0)
        return [trial for trial in self.trials if trial.folds == most and most]

    def best(self) -> Trial:
        """The best of them: of equal ones the first family, the largest scale, the lowest price of errors."""
        finished = self.finished()
        if not finished:
            raise ValueError("no kernel could be fitted to any fold; the data may have too few rows of some class.")
        order = {family: i for i, family in enumerate(dict.fromkeys(t.candidate.family for t in self.trials))}
        rising = self.prices[-1] > self.prices[0]

        def rank(trial: Trial) -> tuple[float, int, float, float]:
            scale = trial.candidate.scale
            simple = -trial.price if rising else trial.price
            return trial.mean, -order[trial.candidate.family], scale if np.isfinite(scale) else 0.0, simple

        return max(finished, key=rank)

    def champions(self) -> list[Trial]:
        """The best trial of each family, the best family first."""
        best: dict[str, Trial] = {}
        for trial in self.finished():
            rival = best.get(trial.candidate.family)
            if rival is None or trial.mean > rival.mean:
                best[trial.candidate.family] = trial
        winner = self.best()
        best[winner.candidate.family] = winner
        return sorted(best.values(), key=lambda t: (t is not winner, -t.mean))

    def honest_score(self) -> float:
        """What the way of choosing scores: each fold by the trial that is best on the others."""
        finished = self.finished()
        table = np.array([trial.scores for trial in finished])
        table = table[:, np.isfinite(table).all(axis=0)]
        if table.shape[1] < 2:
            return float("nan")
        others = table.sum(axis=1, keepdims=True) - table
        return float(np.mean([table[int(others[:, k].argmax()), k] for k in range(table.shape[1])]))


@dataclass
class Search:
    """How candidates are compared.

    Parameters
    ----------
    model
        `SVC`, `KernelRidge`, ..., whose kernel and price of errors are to be found.
    price
        What the latter is called: "C", "alpha"; None where it stays as it is.
    prices
        What to try, from the strongest penalty to the weakest.
    scoring
        A name or a scorer.
    cv
        A number of folds, a splitter or splits.
    classifies
        Whether the targets are classes.
    seed
        For the folds and the rows.
    budget, verbose, clock
        Bytes for everything, whether to show bars, and how much time is left.
    strings
        Columns of the rows that hold strings.
    columns, named
        Names of the columns of the rows, and how a kernel is shown with them.
    """

    model: Any
    price: str | None
    prices: np.ndarray
    scoring: Any
    cv: Any
    classifies: bool
    seed: Any
    budget: Any = None
    verbose: int = 0
    clock: Clock = field(default_factory=Clock)
    strings: Sequence[int] = ()
    columns: Sequence[str] = ()
    named: Callable[[Kernel], Kernel] = lambda kernel: kernel

    def look(
        self,
        X: Any,
        y: np.ndarray,
        rows: np.ndarray,
        candidates: Sequence[Candidate],
        prices: np.ndarray,
        share: float,
        sample_weight: np.ndarray | None = None,
    ) -> Stage:
        """Score the candidates at all prices on some rows; a share of the time limit may have passed at the end."""
        began = time.perf_counter()
        some, targets = X[rows], y[rows]
        kernels = [candidate.kernel for candidate in candidates]
        same = kernels
        if self.strings:
            some, same = tabulated(some, kernels, self.strings, self.budget)
        splits = folds(self.cv, some, targets, self.classifies, self.seed)
        search = KernelSearchCV(
            self.model,
            same,
            {} if self.price is None else {self.price: list(prices)},
            cv=splits,
            scoring=self.scoring,
            refit=False,
            exhaustive=len(rows) <= _EXHAUSTIVE_ROWS,
            verbose=self.verbose,
            budget=self.budget,
            time_limit=self.clock.time_limit(share),
        )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="the search (was interrupted|reached)")  # the account says it
            search.fit(some, targets, **({} if sample_weight is None else {"sample_weight": sample_weight[rows]}))
        table, by_kernel = search.cv_results_, dict(zip(same, candidates, strict=True))
        scores = np.column_stack([table[f"split{k}_test_score"] for k in range(len(splits))])
        trials = [
            Trial(
                by_kernel[params["kernel"]],
                float(params[self.price]) if self.price else float("nan"),
                scores[i],
                float(table["mean_fit_time"][i] * np.isfinite(scores[i]).sum()),
                len(rows),
            )
            for i, params in enumerate(table["params"])
        ]
        interrupted = bool(getattr(search, "interrupted_", False))
        if search.cancelled:
            self.clock.interrupt(_GRACE)
        spent, one_to_one = time.perf_counter() - began, dict(zip(kernels, same, strict=True))
        return Stage(rows, splits, trials, prices, spent, interrupted, search.plan_, some, one_to_one)

    def closer(self, stage: Stage) -> tuple[list[Candidate], np.ndarray]:
        """Return the families that may be the best, at scales about their best, and the prices about theirs."""
        candidates: list[Candidate] = []
        winner, *others = stage.champions()
        errors = [spread(winner.scores - t.scores) for t in others]
        usual = float(np.median(errors)) if errors else 0.0  # one that fails on a fold is not as good for its spread
        near = [t for t, e in zip(others, errors, strict=True) if winner.mean - t.mean <= _MAYBE_BEST * min(e, usual)]
        chosen = [winner, *near[: _SECOND_FAMILIES - 1]]
        for trial in chosen:
            best = trial.candidate
            if best.make is None:
                candidates.append(best)
                continue
            tried = [t.candidate.scale for t in stage.trials if t.candidate.family == best.family]
            factors: tuple[float, ...] = _NEAR_FACTORS if trial is winner else (0.8, 1.0, 1.25)
            if best.scale == max(tried) > min(tried):  # the best may lie beyond
                factors = _OUTER_FACTORS
            elif best.scale == min(tried) < max(tried):
                factors = tuple(1 / f for f in _OUTER_FACTORS)
            candidates += [best.at(float(f"{best.scale * f:.3g}")) for f in factors]
        candidates = list({candidate.kernel: candidate for candidate in candidates}.values())
        if self.price is None:
            return candidates, self.prices
        places = [int(np.argmin(np.abs(np.log(self.prices / trial.price)))) for trial in chosen]
        return candidates, self.prices[max(0, min(places) - 1) : max(places) + 3]  # more rows bear a weaker penalty

    def finalists(self, stage: Stage) -> tuple[list[Candidate], np.ndarray]:
        """Return the few best kernels of a stage, and the prices at which they were so good."""
        by_kernel: dict[Any, Trial] = {}
        for trial in sorted(stage.finished(), key=lambda t: (t is not stage.best(), -t.mean)):
            by_kernel.setdefault(trial.candidate.kernel, trial)
        best = list(by_kernel.values())[:_FINALISTS]
        prices = {trial.price for trial in best}
        return [trial.candidate for trial in best], np.array([p for p in self.prices if p in prices])


# -- rows and folds ---------------------------------------------------------------------------------------


def folds(cv: Any, X: Any, y: np.ndarray, classifies: bool, seed: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the folds: a number of them is shuffled, and lowered where rows or a class are too few."""
    if isinstance(cv, int | np.integer):
        if classifies:
            counts = np.unique(y, return_counts=True)[1]
            if len(counts) == 2 or counts.max() < cv:  # of many classes a rare one may be absent from a fold
                cv = max(2, min(int(cv), int(counts.min())))
            cv = StratifiedKFold(int(cv), shuffle=True, random_state=seed)
        else:
            cv = KFold(max(2, min(int(cv), len(y) // _FOLD_TARGETS)), shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        return [(np.asarray(a), np.asarray(b)) for a, b in check_cv(cv, y, classifier=classifies).split(X, y)]


def first_look(y: np.ndarray, rows: np.ndarray, classifies: bool, seed: Any) -> np.ndarray:
    """Return the rows on which all kernels are compared; all of them where there are not many."""
    if len(rows) <= _SECOND_LOOK * FIRST_ROWS:
        return rows
    return rows[sample(y[rows], FIRST_ROWS, classifies, seed)]


def sample(y: np.ndarray, size: int, classifies: bool, seed: Any) -> np.ndarray:
    """Return at most `size` rows, ascending; of classes in proportion, but ten of each where there are so many."""
    n = len(y)
    if n <= size:
        return np.arange(n)
    order = np.random.default_rng(seed).permutation(n)
    if not classifies:
        return np.sort(order[:size])
    classes, codes = np.unique(y, return_inverse=True)
    place = np.empty(n, np.intp)  # of each row among those of its class
    for c in range(len(classes)):
        own = order[codes[order] == c]
        place[own] = np.arange(len(own))
    counts = np.bincount(codes)
    wanted = np.maximum(np.round(size * counts / n), np.minimum(counts, 10))
    return np.flatnonzero(place < wanted[codes])
