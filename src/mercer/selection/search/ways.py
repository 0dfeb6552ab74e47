"""Ways to compute the cells of a search: by one of the fast ways, or each by itself; and which cells come next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Condition
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from mercer.machine.threads import one_thread_each, run
from mercer.selection.search.machines import Machines
from mercer.selection.search.pipes import Pipes
from mercer.selection.search.ridge import Ridges
from mercer.selection.search.work import Outcome, Work

_FAST: tuple[Any, ...] = (Machines, Ridges, Pipes)
_ERRORS = 4.0  # standard errors behind the best, from which on a candidate is left
_LOOKS = 2  # folds after each of which candidates are left


def search(work: Work, metric: Any, exhaustive: bool, known: bool) -> None:
    """Evaluate the cells of a search, in rounds of folds.

    Parameters
    ----------
    work
        The search; what is found is kept there.
    metric
        What decides which candidates go on.
    exhaustive
        Whether all of them do.
    known
        Whether the scorer looks at nothing but predictions.
    """
    way = next((kind(work) for kind in _FAST if known and kind.can(work)), None)
    work.plan = f"{type(work.estimator).__name__} is fitted to every cell by itself." if way is None else way.plan
    race = Race(work, metric, exhaustive or way is None or not way.races)
    for cells in race.rounds():
        if work.stopped():
            break
        if way is None:
            _each(work, cells)
        else:
            _together(work, way, cells)


def _each(work: Work, cells: list[tuple[int, int]]) -> None:
    """Fit every cell by itself, in as many processes as the user asks for."""
    if work.jobs in (None, 1):
        for cell in cells:
            if work.stopped():
                return
            work.keep(cell, work.trial(cell, parts=1))
        return
    for cell, outcome in Parallel(n_jobs=work.jobs, return_as="generator")(delayed(_trial)(work, c) for c in cells):
        if outcome is None:
            work.late = True
        else:
            work.keep(cell, outcome)


def _trial(work: Work, cell: tuple[int, int]) -> tuple[tuple[int, int], Outcome | None]:
    """Fit a cell in another process, which knows of the deadline but of no result."""
    return cell, None if cell != (0, 0) and work.overdue() else work.trial(cell, effective_n_jobs(work.jobs))


def _together(work: Work, way: Any, cells: list[tuple[int, int]]) -> None:
    """Let a fast way do a round on all cores."""
    crew = _Crew(work, way.run)
    with one_thread_each():  # the cells share the cores
        tasks = way.tasks(cells)
        try:
            if work.jobs != 1 and not way.serial:
                run(crew, tasks)
            else:
                for task in tasks:
                    crew(task)
        except BaseException:
            crew.dismiss()
            raise


class _Crew:
    """Knows how many tasks are under way: what ends a search early must not go on while they are.

    BLAS gets its threads back at the end of a round, and does not bear that in the middle of somebody's product.
    """

    def __init__(self, work: Work, task: Callable[[Any], None]) -> None:
        self.work, self.task = work, task
        self._busy, self._free = 0, Condition()

    def __call__(self, argument: Any) -> None:
        with self._free:
            self._busy += 1
        try:
            if not self.work.stopped():
                self.task(argument)
        except KeyboardInterrupt:
            self.work.stop.set()
            raise
        finally:
            with self._free:
                self._busy -= 1
                self._free.notify_all()

    def dismiss(self) -> None:
        """Begin nothing more, and wait for what is under way."""
        self.work.stop.set()
        with self._free:
            self._free.wait_for(lambda: self._busy == 0)


# -- the next cells: after the first folds, only candidates that may yet win go on ------------------------


class Race:
    """Folds one after the other while candidates are left behind, then all that remain.

    Parameters
    ----------
    work
        The search.
    metric
        What decides: "score", or the name of one of several metrics. Anything else ends no candidate early.
    exhaustive
        Whether every candidate sees every fold.
    """

    def __init__(self, work: Work, metric: Any, exhaustive: bool) -> None:
        self.work, self.metric = work, metric
        self.exhaustive = exhaustive or not isinstance(metric, str) or len(work.splits) <= _LOOKS

    def rounds(self) -> Iterator[list[tuple[int, int]]]:
        """Yield the cells of one round after the other."""
        alive, folds = list(range(len(self.work.candidates))), list(range(len(self.work.splits)))
        if self.exhaustive:
            yield [(c, f) for c in alive for f in folds]
            return
        for look in range(_LOOKS):
            yield [(c, folds[look]) for c in alive]
            if self.work.stopped():
                return
            alive = self._still(alive, folds[: look + 1])
        yield [(c, f) for c in alive for f in folds[_LOOKS:]]

    def _still(self, alive: list[int], folds: list[int]) -> list[int]:
        """Return the candidates that are not hopeless after some folds."""
        scores = np.array([[self._score(c, f) for f in folds] for c in alive])
        means = scores.mean(axis=1)
        if not np.isfinite(means).any():
            return alive
        best = int(np.nanargmax(means))
        noise = self.work.noise(folds)
        if not noise:  # unknown, or 0 since every part of the fold is predicted without a mistake
            return alive
        return [c for c, mean in zip(alive, means, strict=True) if mean >= means[best] - _ERRORS * noise]

    def _score(self, candidate: int, fold: int) -> float:
        return self.work.found[candidate, fold].score(self.metric)
