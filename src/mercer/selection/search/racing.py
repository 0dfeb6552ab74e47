"""Rounds of a search: racing, which drops hopeless candidates after the first folds, and successive halving."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Condition
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import is_classifier
from sklearn.utils.validation import _check_method_params

from mercer.machine.threads import one_thread_each, run
from mercer.selection.search.cross_validation import CrossValidation, Outcome
from mercer.selection.search.machines import Machines
from mercer.selection.search.pipelines import Pipelines
from mercer.selection.search.ridge import Ridges

_ENGINES: tuple[Any, ...] = (Machines, Ridges, Pipelines)
_HOPELESS = 4.0  # standard errors of the best score behind it, from which on a candidate is left
_HOPELESS_PAIRED = 3.0  # standard errors of the difference on the same samples: one of 700 that are as good is left
_RACED_FOLDS = 2  # after each of them hopeless candidates are left; then the rest see all other folds
_FACTOR = 3  # samples grow by it from round to round, candidates fall by it
_LEAST_SAMPLES = 100  # of a round
_CLASS_SAMPLES = 8  # of a round, for each fold and class


def search(cv: CrossValidation, metric: Any, exhaustive: bool, by_values: bool) -> None:
    """Evaluate the cells of a search, in rounds of folds; the metric decides which candidates go on.

    `by_values` says that the scorer looks at nothing but predictions, so that precomputed values can answer it.
    """
    engine = next((kind(cv) for kind in _ENGINES if by_values and kind.can(cv)), None)
    cv.plan = f"{type(cv.estimator).__name__} is fitted to every cell by itself." if engine is None else engine.plan
    race = Race(cv, metric, exhaustive or engine is None or not engine.races)
    cv.rough = not race.exhaustive and cv.labels is not None
    for cells in race.rounds():
        if cv.stopped():
            break
        if engine is None:
            _each(cv, cells)
        else:
            _together(cv, engine, cells)


def _each(cv: CrossValidation, cells: list[tuple[int, int]]) -> None:
    """Fit every cell by itself, in as many processes as the user asks for."""
    if cv.jobs in (None, 1):
        for cell in cells:
            if cv.stopped():
                return
            cv.keep(cell, cv.trial(cell, parts=1))
        return
    for cell, outcome in Parallel(n_jobs=cv.jobs, return_as="generator")(delayed(_trial)(cv, c) for c in cells):
        if outcome is None:
            cv.late = True
        else:
            cv.keep(cell, outcome)


def _trial(cv: CrossValidation, cell: tuple[int, int]) -> tuple[tuple[int, int], Outcome | None]:
    """Fit a cell in another process, which knows of the deadline but of no result."""
    return cell, None if cell != (0, 0) and cv.overdue() else cv.trial(cell, effective_n_jobs(cv.jobs))


def _together(cv: CrossValidation, engine: Any, cells: list[tuple[int, int]]) -> None:
    """Let an engine do a round on all cores."""
    running = _RunningTasks(cv, engine.run)
    with one_thread_each():  # the cells share the cores
        tasks = engine.tasks(cells)
        try:
            if cv.jobs != 1 and not engine.serial:
                run(running, tasks)
            else:
                for task in tasks:
                    running(task)
        except BaseException:
            running.dismiss()
            raise


class _RunningTasks:
    """Knows how many tasks are under way: what ends a search early must not go on while they are.

    BLAS gets its threads back at the end of a round, and does not bear that in the middle of somebody's product.
    """

    def __init__(self, cv: CrossValidation, task: Callable[[Any], None]) -> None:
        self.cv, self.task = cv, task
        self._busy, self._free = 0, Condition()

    def __call__(self, argument: Any) -> None:
        with self._free:
            self._busy += 1
        try:
            if not self.cv.stopped():
                self.task(argument)
        except KeyboardInterrupt:
            self.cv.stop.set()
            raise
        finally:
            with self._free:
                self._busy -= 1
                self._free.notify_all()

    def dismiss(self) -> None:
        """Begin nothing more, and wait for what is under way."""
        self.cv.stop.set()
        with self._free:
            self._free.wait_for(lambda: self._busy == 0)


# -- the next cells: after the first folds, only candidates that may yet win go on ------------------------


class Race:
    """Folds one after the other while candidates are left behind, then all that remain.

    What decides is `metric`: "score", or the name of one of several. Anything else ends no candidate early.
    """

    def __init__(self, cv: CrossValidation, metric: Any, exhaustive: bool) -> None:
        self.cv, self.metric = cv, metric
        alone = len(cv.candidates) < 2 or len(cv.splits) <= _RACED_FOLDS
        self.exhaustive = exhaustive or alone or not isinstance(metric, str)

    def rounds(self) -> Iterator[list[tuple[int, int]]]:
        """Yield the cells of one round after the other."""
        alive, folds = list(range(len(self.cv.candidates))), list(range(len(self.cv.splits)))
        if self.exhaustive:
            yield [(c, f) for c in alive for f in folds]
            return
        for look in range(_RACED_FOLDS):
            yield [(c, folds[look]) for c in alive]
            if self.cv.stopped():
                return
            alive = self._still(alive, folds[: look + 1])
        yield [(c, f) for c in alive for f in folds[_RACED_FOLDS:]]

    def _still(self, alive: list[int], folds: list[int]) -> list[int]:
        """Return the candidates that are not hopeless after some folds."""
        outcomes = self.cv.outcomes
        means = np.array([[outcomes[c, f].score(self.metric) for f in folds] for c in alive]).mean(axis=1)
        if not np.isfinite(means).any():
            return alive
        best = int(np.nanargmax(means))
        margins = self._margins(alive, alive[best], folds)
        return [c for c, mean, margin in zip(alive, means, margins, strict=True) if mean >= means[best] - margin]

    def _margins(self, alive: list[int], best: int, folds: list[int]) -> np.ndarray:
        """Return how far behind the best each mean score may be; infinite where the noise is unknown.

        Candidates answer the same samples. Where right answers count, the noise is that of the differences: samples
        that two answer alike, the wrongly labelled ones among them, say nothing about which is better.
        """
        cells = [[self.cv.outcomes[c, f].right for f in folds] for c in (best, *alive)]
        right = [[r for r in row if r is not None] for row in cells]
        if any(len(row) < len(folds) for row in right):
            # Unknown, or 0 since every part of the fold is predicted without a mistake.
            return np.full(len(alive), _HOPELESS * (self.cv.noise(folds) or np.inf))
        answers = np.array([np.concatenate(row) for row in right], np.int8)
        differences = answers[0] - answers[1:]
        return np.asarray(_HOPELESS_PAIRED * differences.std(axis=1) / np.sqrt(differences.shape[1]))


# -- successive halving: all candidates on few samples, the best third on three times as many --------------


class Halving:
    """The rounds of a search that begins with few samples; `samples` and `candidates` count those of every round."""

    def __init__(self, cv: CrossValidation, metric: Any) -> None:
        self.cv, self.metric = cv, metric
        self.samples: list[int] = []
        self.candidates: list[int] = []
        if not isinstance(metric, str):
            raise ValueError(
                f"halving=True compares candidates by one metric, and refit={metric!r} names none; set refit to the "
                "name of a metric."
            )
        self.order = nested(cv.y, cv.samples(), is_classifier(cv.estimator))

    def run(self, by_values: bool) -> None:
        """Evaluate round after round; a round that is interrupted does not count, unless it is the first."""
        cv, alive = self.cv, list(range(len(self.cv.candidates)))
        for i, size in enumerate(self._sizes()):
            sub = self._round(np.sort(self.order[:size]), alive)
            search(sub, self.metric, True, by_values)
            cv.plan, cv.late = sub.plan, sub.late
            if cv.outcomes and (sub.late or cv.stop.is_set()):
                return
            self.samples.append(size)
            self.candidates.append(len(alive))
            for (c, fold), outcome in sub.outcomes.items():
                cv.outcomes[alive[c], fold] = outcome
                cv.rounds[alive[c]] = (i, size)
            if cv.stopped():
                return
            means = [
                np.mean([sub.outcomes[c, f].score(self.metric) for f in range(len(sub.splits))])
                for c in range(len(alive))
            ]
            best = np.argsort(-np.nan_to_num(means, nan=-np.inf), kind="stable")[: -(-len(alive) // _FACTOR)]
            alive = [alive[c] for c in np.sort(best)]

    def _sizes(self) -> list[int]:
        """Return the samples of each round, all of them in the last."""
        cv, n = self.cv, len(self.order)
        classes = len(np.unique(np.asarray(cv.y))) if is_classifier(cv.estimator) else 1
        least = max(_LEAST_SAMPLES, _CLASS_SAMPLES * len(cv.splits) * classes)
        rounds, count, size = 1, len(cv.candidates), n // _FACTOR
        while count >= _FACTOR and size >= least:
            rounds, count, size = rounds + 1, -(-count // _FACTOR), size // _FACTOR
        return [n // _FACTOR ** (rounds - 1 - i) for i in range(rounds)]

    def _round(self, rows: np.ndarray, which: list[int]) -> CrossValidation:
        """Return the search of some candidates on some samples, which are divided as all samples are."""
        cv = self.cv
        place = np.full(len(self.order), -1)
        place[rows] = np.arange(len(rows))
        splits = [tuple(at[at >= 0] for at in (place[train], place[test])) for train, test in cv.splits]
        X, y = (cv.X, cv.y) if len(rows) == len(self.order) else cv.part(rows)
        return cv.reduced(
            X=X,
            y=y,
            candidates=[cv.candidates[c] for c in which],
            splits=splits,
            fit_params=_check_method_params(cv.X, cv.fit_params, rows),
            score_params=_check_method_params(cv.X, cv.score_params, rows),
            labels=None if cv.labels is None else cv.labels[rows],
        )


def nested(y: Any, n: int, by_class: bool, seed: int = 0) -> np.ndarray:
    """Return an order of n samples whose every beginning has about the same share of each class.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0] * 80 + [1] * 40)
    >>> order = nested(y, 120, True)
    >>> [int(y[order[:k]].sum()) for k in (3, 30, 120)]
    [1, 10, 40]
    """
    order = np.random.default_rng(seed).permutation(n)
    if not by_class:
        return order
    codes = np.unique(np.asarray(y), return_inverse=True)[1]
    place = (places(codes, order) + 0.5) / np.bincount(codes)[codes]
    return order[np.argsort(place[order], kind="stable")]


def places(codes: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return the place of each sample among those of its class, in an order of all."""
    counts, place = np.bincount(codes), np.empty(len(codes), np.intp)
    by_class = order[np.argsort(codes[order], kind="stable")]
    place[by_class] = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
    return place
