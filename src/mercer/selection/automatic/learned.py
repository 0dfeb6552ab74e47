"""Kernels whose metric is learned, compared by what the fit without each row predicts of it."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import check_scoring

from mercer.estimators.features.metric import Learned, Round, learn_metric, left_out_by, mean_of, rows_within
from mercer.estimators.svm.calibration import probabilities, score_maps
from mercer.gram import Gram
from mercer.kernels import RBF, Laplacian, Linear
from mercer.machine.threads import one_thread_each, run
from mercer.selection.automatic.account import Stage, Trial
from mercer.selection.automatic.calibrated import Calibrated
from mercer.selection.automatic.candidates import Candidate, city_ratio, mean_square, short
from mercer.selection.automatic.progress import rounds_shown
from mercer.selection.automatic.search import Search, folds
from mercer.selection.search.cross_validation import PrecomputedRegressor
from mercer.selection.search.grids import scales

_COMPARED_ROWS = 2000  # on which all candidates are compared: a factor and its inverse take 0.1 s
_REFINED_ROWS = 4000  # on which the best are: a factor and its inverse take 0.5 to 1 s
_FINALISTS = 4  # candidates that are compared on them
_GAIN = 0.9995  # of the error, without which a search goes no further
_SHARES = ("accuracy", "r2")  # scores whose distance from 1 is a share of errors
_COUNTED_ROWS = 1000  # from which on wrong answers are many enough to be counted
# Steps of scale and alpha. A kernel with a kink, 1 - |x - z| / s for large s, stays what it is if s alpha does.
_WAYS = ((2, -1), (0, -1), (0, 1))
# The same from a product over the columns to what is a sum of them up to a hundredth: no greedy step leads there where
# the ways between are no better, and sums are best where columns act one by one (adult: .1327 wrong, not .1364).
_TO_SUMS = ((12, -6), (12, -7))
_SEARCH_SHARE = 0.6  # of the time limit, after which nothing more is looked at
_GRACE = 2.0  # seconds after Ctrl-C, in which the best so far is fitted as well as it can be


@dataclass(frozen=True)
class Task:
    """What is to be learned.

    Attributes
    ----------
    Z
        Rows of numbers.
    y
        What scores are told of them: numbers or classes.
    Y
        What ridge regression is told: a column of numbers, or of signs for each class (one column for two classes).
    weights
        How many rows each counts for, or None.
    """

    Z: np.ndarray
    y: np.ndarray
    Y: np.ndarray
    weights: np.ndarray | None = None

    def at(self, rows: np.ndarray) -> Task:
        """Return the same of some rows."""
        return Task(self.Z[rows], self.y[rows], self.Y[rows], None if self.weights is None else self.weights[rows])


def usual_list(X: np.ndarray) -> list[Candidate]:
    """Return two kernels that treat all columns alike, by which the scale of the targets is chosen.

    Examples
    --------
    >>> import numpy as np
    >>> [c.family for c in usual_list(np.random.default_rng(0).normal(size=(100, 3)))]
    ['Laplacian of ranks', 'RBF']
    """
    middle = short(2.0 * scales(X, 3)[1])
    ranks = Laplacian(short(middle * city_ratio(X))).ranked(X)
    return [Candidate(ranks, "Laplacian of ranks"), Candidate(RBF(middle), "RBF")]


def learned_stages(search: Search, task: Task, rows: np.ndarray, least_alpha: float = 0.0) -> list[Stage]:
    """Learn metrics from some rows, compare their kernels with linear functions, and refine the best on more rows.

    All rows that the metrics have not been learned from may be compared on, unless these are too few.

    Parameters
    ----------
    search
        Its clock, its seed, its score, and the model whose kernel and alpha are to be found.
    task
        All rows.
    rows
        What metrics may be learned from, and how many rows are compared on at most.
    least_alpha
        No smaller one is tried.
    """
    some, clock, least_alpha = task.at(rows), search.clock, short(least_alpha)
    centred = some.Y - np.average(some.Y, axis=0, weights=some.weights)
    line = Candidate(short(1.0 / mean_square(some.Z)) * Linear(), "linear")
    try:
        with rounds_shown(search.verbose) as listen:
            learned = learn_metric(
                some.Z, centred, some.weights, None, 1, search.seed, clock, listen, budget=search.budget
            )
    except KeyboardInterrupt:  # nothing was learned yet
        clock.interrupt(_GRACE)
        cells = [Cell(candidate, 1.0) for candidate in (*usual_list(some.Z), line)]
        seen = np.zeros(0, np.intp)
    else:
        cells = [Cell.of(learned, step, least_alpha) for step in learned.near]
        cells.append(Cell(line, learned.unit))
        seen = rows[learned.seen]
    unseen = np.setdiff1d(np.arange(len(task.y)), seen)
    honest = unseen if len(unseen) >= len(seen) else np.arange(len(task.y))
    learned_from = len(honest) > len(unseen)
    most = min(len(rows), _REFINED_ROWS, rows_within(search.budget))
    order = honest[np.random.default_rng(search.seed).permutation(len(honest))]
    first, last = np.sort(order[: min(most, _COMPARED_ROWS)]), np.sort(order[:most])
    look = LeftOutSearch(search, task.at(first), first, learned_from)
    look.at(cells)
    stages = [look.stage()]
    if len(last) > len(first) and not stages[0].interrupted:
        cells = look.ranking()[:_FINALISTS]
        look = LeftOutSearch(search, task.at(last), last, learned_from)
        look.at(cells)
        if look.trials:
            stages.append(look.stage())
    if not stages[-1].interrupted:
        look.refine()
        stages[-1] = look.stage()
    return stages


@dataclass(frozen=True, eq=False)
class Cell:
    """A kernel and an alpha to look at.

    Attributes
    ----------
    candidate, alpha
        The two.
    step, learned, least
        The round of a metric that the kernel comes from, how such kernels are made, and the least alpha.
    members
        Whose kernels it is the mean of.
    """

    candidate: Candidate
    alpha: float
    step: Round | None = None
    learned: Learned | None = None
    least: float = 0.0
    members: tuple[Cell, ...] = ()

    @classmethod
    def of(cls, learned: Learned, step: Round, least: float) -> Self:
        """Return the cell of a round."""
        kernel, alpha = learned.kernel_of(step), max(learned.strength(step.alpha), least)
        return cls(Candidate(kernel, f"learned {step.family.name}"), alpha, step, learned, least)

    @property
    def optimism(self) -> float:
        """How many times too small its mean squares are on rows that its metric was learned from."""
        if self.members:
            return math.prod(cell.optimism for cell in self.members) ** (1 / len(self.members))
        return 1.0 if self.step is None else self.step.optimism

    def moved(self, scale: int, alpha: int) -> Cell | None:
        """Return its neighbour so many steps of the search away; None where there is none."""
        if self.step is None or self.learned is None or self.learned.strength(self.step.alpha + alpha) < self.least:
            return None
        there = replace(self.step, scale=self.step.scale + scale, alpha=self.step.alpha + alpha)
        return Cell.of(self.learned, there, self.least)

    def joined(self, other: Cell) -> Cell | None:
        """Return the mean of the kernels of both, at the mean alpha; None where one is not learned, or in the other."""
        members = (*(self.members or (self,)), other)
        if other in members[:-1] or any(cell.step is None for cell in members):
            return None
        names = " and ".join(cell.candidate.family.removeprefix("learned ") for cell in members)
        kernel = mean_of([cell.candidate.kernel for cell in members])
        alpha = short(math.prod(cell.alpha for cell in members) ** (1 / len(members)))
        return Cell(Candidate(kernel, f"learned mean of {names}"), alpha, members=members)


def _with(cell: Cell, other: Cell) -> Cell:
    return cell.joined(other) or cell


class LeftOutSearch:
    """Kernels and alphas compared by leave-one-out predictions of some rows.

    Parameters
    ----------
    search
        Its clock, its folds (the parts that scores are of) and its score.
    task, rows
        The rows, and which these are.
    learned_from
        Whether metrics were learned from these rows.
    """

    def __init__(self, search: Search, task: Task, rows: np.ndarray, learned_from: bool = False) -> None:
        self.search, self.task, self.rows, self.learned_from = search, task, rows, learned_from
        self.shift: Any = 1.0 if task.weights is None else 1.0 / task.weights
        self.splits = folds(search.cv, task.Z, task.y, search.classifies, search.seed)
        self.scored = Scored(search, task, [test for _, test in self.splits])
        self.cells: list[Cell] = []
        self.trials: list[Trial] = []
        self.errors: list[float] = []  # mean squares
        self.seconds, self.interrupted = 0.0, False

    def at(self, cells: Sequence[Cell]) -> None:
        """Look at some cells, on each core at one."""
        began = time.perf_counter()
        try:
            with one_thread_each():
                outcomes = run(self._look, cells)
        except KeyboardInterrupt:
            self.search.clock.interrupt(_GRACE)
            self.interrupted, outcomes = True, []
            if not self.trials:  # the first of them has to do
                outcomes = [self._look(cells[0])]
        for cell, looked in zip(cells, outcomes, strict=False):
            if looked is not None:
                self.cells.append(cell)
                self.trials.append(looked[0])
                self.errors.append(looked[1])
        self.seconds += time.perf_counter() - began

    def _look(self, cell: Cell) -> tuple[Trial, float] | None:
        """Return the scores of a cell and its mean square error; None where time is out or the matrix is singular."""
        start = time.perf_counter()
        if self.search.clock.over(_SEARCH_SHARE) and (self.trials or self.interrupted):
            self.interrupted = True
            return None
        K = Gram(cell.candidate.kernel, self.task.Z).fill()
        solution = left_out_by(K.astype, self.task.Y, cell.alpha * self.shift)
        if solution is None:
            return None
        values = self.task.Y - solution[1]
        squares, scores = np.square(solution[1]).sum(axis=1), self.scored(values)
        error = self._factor(cell) * float(np.average(squares, weights=self.task.weights))
        losses = self._losses(cell, scores, squares)
        seconds = time.perf_counter() - start
        return Trial(cell.candidate, cell.alpha, scores, seconds, len(self.rows), values, losses), error

    def ranking(self) -> list[Cell]:
        """Return the cells, the best first: by their scores, of few rows by the mean squares of their errors.

        Errors of rows that a metric was learned from count for more, as they are too small.
        """
        order = np.lexsort((self.errors, [np.sum(trial.losses) for trial in self.trials]))
        return [self.cells[i] for i in order]

    def _losses(self, cell: Cell, scores: np.ndarray, squares: np.ndarray) -> np.ndarray:
        """Return what a cell is chosen by, on each part of the rows."""
        if self.search.scoring not in _SHARES:
            return -scores
        if len(self.rows) >= _COUNTED_ROWS:
            return (1.0 - scores) * self._factor(cell)
        if self.task.weights is not None:
            squares = self.task.weights * squares
        return np.array([squares[at].sum() for at in self.scored.parts]) * self._factor(cell)

    def _factor(self, cell: Cell) -> float:
        return cell.optimism if self.learned_from else 1.0

    def refine(self) -> None:
        """Look at other scales and alphas of the best kernel, as long as errors fall, and at its mean with others.

        Also at sums over the columns, with the weights of the best product over them.
        """
        best, *others = self.ranking()
        moves = [(cell, move) for move in _WAYS if (cell := best.moved(*move)) is not None]
        means = [mean for cell in others[:_FINALISTS] if (mean := best.joined(cell)) is not None]
        products = [cell for cell in (best, *others) if cell.step is not None and not cell.step.family.mixes]
        sums = [cell for move in _TO_SUMS if products and (cell := products[0].moved(*move)) is not None]
        if len(self.rows) < _COUNTED_ROWS:  # whose errors do not tell which is best; and many kernels cost little
            every = reduce(_with, others, best)
            means += [every] if len(every.members) > 2 else []
        self.at([*means, *sums, *(cell for cell, _ in moves)])
        moves.sort(key=lambda pair: self._error(pair[0]))
        while moves and not self.interrupted and self._error(moves[0][0]) < _GAIN**2 * self._error(best):
            best, move = moves[0]
            further = best.moved(*move)
            moves = [] if further is None else [(further, move)]
            self.at([cell for cell, _ in moves])
        two = self.ranking()[0]
        if two.members and not self.interrupted:
            self.at([three for cell in others[:_FINALISTS] if (three := two.joined(cell)) is not None])

    def _error(self, cell: Cell) -> float:
        return self.errors[self.cells.index(cell)] if cell in self.cells else math.inf

    def stage(self) -> Stage:
        """Return what was found."""
        winner = self.trials[self.cells.index(self.ranking()[0])] if self.trials else None
        plan = (
            "Ridge regression by one factor and its inverse for each kernel and alpha: all leave-one-out predictions."
        )
        alphas = np.unique([cell.alpha for cell in self.cells])[::-1]
        return Stage(
            self.rows, self.splits, list(self.trials), alphas, self.seconds, self.interrupted, plan, chosen=winner
        )


class Scored:
    """The scores of leave-one-out predictions, in parts.

    Parameters
    ----------
    search
        Whose score it is.
    task
        The rows that are predicted.
    parts
        Places of these.
    """

    def __init__(self, search: Search, task: Task, parts: list[np.ndarray]) -> None:
        self.search, self.task, self.parts = search, task, parts
        self.classes: Any = None
        if search.classifies:
            self.classes, self.codes = np.unique(task.y, return_inverse=True)
        calibrated = isinstance(search.scoring, Calibrated)
        self.scorer = search.scoring if calibrated else check_scoring(search.model, search.scoring)

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Return the score of each part."""
        y, weights = self.task.y, self.task.weights
        stands: Any = PrecomputedRegressor(values[:, 0])
        if self.classes is not None:
            laws = self.laws(values) if isinstance(self.scorer, Calibrated) else None
            stands = Says(values, self.classes, laws)
        weighted = getattr(self.scorer, "_accept_sample_weight", bool)()
        told = [{} if weights is None or not weighted else {"sample_weight": weights[at]} for at in self.parts]
        return np.array([float(self.scorer(stands, at, y[at], **t)) for at, t in zip(self.parts, told, strict=True)])

    def laws(self, values: np.ndarray) -> np.ndarray:
        """Return the probabilities of all rows, those of a part by a map that has seen the others only."""
        count = len(self.classes)
        laws = np.empty((len(values), count))
        weights = None if self.task.weights is None else self.task.weights / self.scorer.unit
        for at in self.parts:
            rest = np.setdiff1d(np.arange(len(values)), at)
            some = None if weights is None else weights[rest]
            laws[at] = probabilities(values[at], score_maps(values[rest], self.codes[rest], count, some), count)
        return laws


class Says(ClassifierMixin, BaseEstimator):
    """A classifier of known scores of its classes, (points, classes), or of the second of two; points are places."""

    def __init__(self, values: np.ndarray, classes: np.ndarray, laws: np.ndarray | None) -> None:
        self.values, self.laws = values, laws
        self.classes_ = classes

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores."""
        return self.values[X, 0] if len(self.classes_) == 2 else self.values[X]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities."""
        assert self.laws is not None
        return self.laws[X]

    def predict(self, X: Any) -> np.ndarray:
        """Return the classes with the largest scores."""
        values = self.decision_function(X)
        return np.asarray(self.classes_[(values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)])
