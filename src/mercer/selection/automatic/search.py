"""The search of the automatic models: a first look at all kernels on some rows, then the best of them on more."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, check_cv

from mercer.estimators.shared.classes import shown
from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.kernels.base import kernel as kernel_class
from mercer.kernels.proof import Proof
from mercer.kernels.rules.pullback import On
from mercer.machine.budget import Budget
from mercer.machine.clock import Clock
from mercer.points import Pair, Points
from mercer.selection.automatic.account import Account, Stage, Trial, spread, told
from mercer.selection.automatic.calibrated import Calibrated
from mercer.selection.automatic.candidates import Candidate, look_at, proposed
from mercer.selection.search.racing import places
from mercer.selection.search.search import KernelSearchCV

FIRST_ROWS = 2000  # on which all kernels are compared
_SECOND_LOOK = 1.5  # times FIRST_ROWS, from which on a second look is worth its while
_SECOND_FAMILIES = 4  # families that a second look is taken at
_NEAR_FACTORS = (0.63, 0.8, 1.0, 1.25, 1.6)  # of the best scale, at the second look
_OUTER_FACTORS = (0.7, 1.0, 1.6, 2.5)  # of the best scale, where it was the largest that was tried
_FINALISTS = 4  # kernels that are compared once more, on more rows
_MAYBE_BEST = 2.0  # standard errors of a difference, up to which a family may still be the best
_FOLD_TARGETS = 5  # targets in a fold of a regression
_FOLDS = 5  # of the cross-validation for kernel="auto"
_SEARCH_ROWS = 5000  # on which its kernels are compared, at most
_SEARCH_SHARE = 0.5  # of the model's time limit, for the search
_SEED = 0  # the models have no random_state, and the same data shall give the same kernel
_GRACE = 2.0  # seconds after Ctrl-C, in which the best so far is fitted as well as it can be
_BUDGET_PART = 4  # a fourth of the budget is for the matrices of the strings, all of them together
_EXHAUSTIVE_ROWS = 3000  # rows of which one fold says too little to leave a candidate, and all of them cost little


@dataclass
class Search:
    """How candidates are compared."""

    model: Any  # `SVC`, `KernelRidge`, ..., whose kernel and price of errors are to be found
    price: str | None  # what the latter is called: "C", "alpha"; None where it stays as it is
    prices: np.ndarray  # to try, from the strongest penalty to the weakest
    scoring: Any  # a name or a scorer
    cv: Any  # a number of folds, a splitter or splits
    classifies: bool  # whether the targets are classes
    seed: Any  # for the folds and the rows
    budget: Any = None  # bytes for everything
    verbose: int = 0  # whether to show bars
    clock: Clock = field(default_factory=Clock)  # how much time is left
    strings: Sequence[int] = ()  # columns of the rows that hold strings
    columns: Sequence[str] = ()  # names of the columns
    named: Callable[[Kernel], Kernel] = lambda kernel: kernel  # how a kernel is shown with them
    groups: np.ndarray | None = None  # to which each row belongs; none of them is in two parts of a fold

    def stages(
        self,
        X: Any,
        y: np.ndarray,
        candidates: Sequence[Candidate],
        rows: tuple[np.ndarray, np.ndarray, np.ndarray | None],
        shares: Sequence[float],
        sample_weight: np.ndarray | None = None,
    ) -> list[Stage]:
        """Compare all candidates on few rows, the best families more closely on more, and the best few on most.

        A set of rows that is no larger than the first, or None, is passed over. What ends one stage early ends all.
        """
        first, second, last = rows
        stages = [self.look(X, y, first, candidates, self.prices, shares[0], sample_weight)]
        for more, narrowed, share in ((second, self.closer, shares[1]), (last, self.finalists, shares[2])):
            if more is not None and len(more) > len(first) and not stages[-1].interrupted:
                candidates, prices = narrowed(stages[-1])
                stages.append(self.look(X, y, more, candidates, prices, share, sample_weight))
        return stages

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
        points, targets = X[rows], y[rows]
        same = kernels = [candidate.kernel for candidate in candidates]
        if self.strings:
            points, same = tabulated(points, kernels, self.strings, self.budget)
        groups = None if self.groups is None else self.groups[rows]
        splits = folds(self.cv, points, targets, self.classifies, self.seed, groups)
        search = KernelSearchCV(
            self.model,
            same,
            {} if self.price is None else {self.price: list(prices)},
            cv=splits,
            scoring=self.scoring,
            refit=False,
            exhaustive=len(rows) <= _EXHAUSTIVE_ROWS or isinstance(self.scoring, Calibrated),
            verbose=self.verbose,
            budget=self.budget,
            time_limit=self.clock.time_limit(share),
        )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="the search (was interrupted|reached)")  # the account says it
            search.fit(points, targets, **({} if sample_weight is None else {"sample_weight": sample_weight[rows]}))
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
        return Stage(rows, splits, trials, prices, spent, interrupted, search.plan_, None, points, one_to_one)

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


# -- kernel values at the rows of a search, computed once for all kernels, folds and penalties ------------


class KernelValues:
    """The matrix of a kernel on some points, computed when it is first asked for."""

    def __init__(self, kernel: Kernel, points: Points, budget: Budget) -> None:
        self._kernel, self._points, self._budget, self._lock = kernel, points, budget, Lock()
        self._matrix: np.ndarray | None = None

    def get(self) -> np.ndarray:
        """Return the matrix; two threads may want one that neither has."""
        with self._lock:
            if self._matrix is None:
                gram = Gram(self._kernel, self._points, budget=int(self._budget))
                self._matrix = np.asarray(gram.dense(), dtype=np.float64)
            return self._matrix


@kernel_class
class Tabulated(Kernel):
    """A kernel by its values at some points; the points that it compares are the numbers of these.

    Two of them are equal if their kernels are: they speak of the points of one search.
    """

    base: Kernel
    values: Any

    def of(self, pair: Pair) -> Any:
        return pair.lookup(self.values.get())

    @property
    def resolved(self) -> bool:
        return True

    def _key(self) -> tuple[Any, ...]:
        return (self.base,)

    def _proof(self) -> Proof:
        return self.base._proof()

    def __sklearn_clone__(self) -> Tabulated:
        return self

    def __repr__(self) -> str:
        return repr(self.base)


def tabulated(
    X: np.ndarray, kernels: Sequence[Kernel], strings: Sequence[int], budget: Any
) -> tuple[Any, list[Kernel]]:
    """Return rows with numbers of rows in the place of strings, and kernels of such rows with the same values.

    Several kernels look at a column in the same way, alone and in sums and products with others. What one of them has
    computed serves all, in every fold.

    Where a quarter of the budget does not hold the matrices, the rows and the kernels are returned as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, Spectrum
    >>> X = np.array([[1.0, "ACGT"], [2.0, "ACCC"], [4.0, "GGGT"]], dtype=object)
    >>> k = RBF(1.0).on([0]) * Spectrum(2).on([1])
    >>> rows, (same,) = tabulated(X, [k], [1], None)
    >>> rows
    array([[1., 0.],
           [2., 1.],
           [4., 2.]])
    >>> np.allclose(same(rows[:2], rows[2:]), k(X[:2], X[2:]))
    True
    """
    limit = Budget.for_points(budget, len(X))
    points, tables = Points(X), dict[Kernel, KernelValues]()

    def put(k: Kernel) -> Kernel:
        if isinstance(k, On) and isinstance(k.columns, list | tuple) and set(k.columns) <= set(strings):
            return On(Tabulated(k.base, tables.setdefault(k, KernelValues(k, points, limit))), list(k.columns[:1]))
        parts = k.children()
        return k.replace(**{name: put(part) for name, part in parts.items()}) if parts else k

    same = [put(k) for k in kernels]
    if 8 * len(X) ** 2 * len(tables) > int(limit) // _BUDGET_PART:
        return X, list(kernels)
    rows = X.copy()
    rows[:, list(strings)] = np.arange(len(X))[:, None]
    return rows.astype(np.float64), same


# -- rows and folds ---------------------------------------------------------------------------------------


def folds(
    cv: Any, X: Any, y: np.ndarray, classifies: bool, seed: Any, groups: np.ndarray | None = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the folds: a number of them is shuffled, and lowered where rows, groups or a class are too few."""
    ours = isinstance(cv, int | np.integer)
    if ours and groups is not None:
        cv = _of_groups(int(cv), y, groups, classifies, seed)
    elif ours:
        if classifies:
            counts = np.unique(y, return_counts=True)[1]
            if len(counts) == 2 or counts.max() < cv:  # of many classes a rare one may be absent from a fold
                cv = max(2, min(int(cv), int(counts.min())))
            cv = StratifiedKFold(int(cv), shuffle=True, random_state=seed)
        else:
            cv = KFold(max(2, min(int(cv), len(y) // _FOLD_TARGETS)), shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        pairs = check_cv(cv, y, classifier=classifies).split(X, y, groups)
        splits = [(np.asarray(a), np.asarray(b)) for a, b in pairs]
    # All groups of a class may have come into one fold.
    return [pair for pair in splits if not (ours and classifies) or len(np.unique(y[pair[0]])) > 1]


def _of_groups(cv: int, y: np.ndarray, groups: np.ndarray, classifies: bool, seed: Any) -> Any:
    """Return what makes folds of whole groups: no more than there are of these, and than each of two classes has."""
    names, numbers = np.unique(groups, return_inverse=True)
    if len(names) < 2:
        raise ValueError(
            f"all rows are of one group, {shown(names[0])}, which cannot be both learned from and held out."
        )
    if not classifies:
        return GroupKFold(min(cv, len(names)), shuffle=True, random_state=seed)
    classes, codes = np.unique(y, return_inverse=True)
    owners = np.bincount(np.unique(np.column_stack([codes, numbers]), axis=0)[:, 0])  # groups that have a class
    if len(classes) == 2 and owners.min() < 2:
        alone = shown(groups[int(np.argmax(codes == owners.argmin()))])
        raise ValueError(
            f"all rows of a class are of one group, {alone}, which cannot be both learned from and held out."
        )
    most = int(owners.min()) if len(classes) == 2 or owners.max() < cv else len(names)
    return StratifiedGroupKFold(max(2, min(cv, most)), shuffle=True, random_state=seed)


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
    codes = np.unique(y, return_inverse=True)[1]
    counts = np.bincount(codes)
    wanted = np.maximum(np.round(size * counts / n), np.minimum(counts, 10))
    return np.flatnonzero(places(codes, order) < wanted[codes])


# -- the kernel of a model (kernel="auto") ------------------------------------------------------------------


def choose_kernel(model: Any, X: Any, y: np.ndarray, sample_weight: Any = None) -> tuple[Kernel, Account]:
    """Return the kernel that cross-validation finds best for a model, and the account of the search.

    Parameters
    ----------
    model
        `SVC`, `SVR`, `KernelRidge`, ..., all of whose parameters but `kernel` are kept.
    X, y, sample_weight
        What it is to be fitted to: a matrix of numbers, dense or sparse.
    """
    classifies = bool(is_classifier(model))
    clock = Clock(model.time_limit)
    plain = clone(model).set_params(kernel="rbf", time_limit=None, checkpoint=None, verbose=0, max_iter=-1)
    scoring = "accuracy" if classifies else "r2"
    search = Search(plain, None, np.array([np.nan]), scoring, _FOLDS, classifies, _SEED, model.budget, 0, clock)
    weight = None if sample_weight is None else np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), len(y))
    counted = np.arange(len(y)) if weight is None else np.flatnonzero(weight > 0)
    rows = counted[sample(y[counted], _SEARCH_ROWS, classifies, _SEED)]
    look = look_at(X)
    first = first_look(y, rows, classifies, _SEED)
    shares = (_SEARCH_SHARE / 2, _SEARCH_SHARE, _SEARCH_SHARE)
    stages = search.stages(X, y, proposed(look, X, rows), (first, rows, None), shares, weight)
    return stages[-1].best().candidate.kernel, told(look, search, stages)
