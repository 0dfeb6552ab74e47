"""Successive halving: all candidates on few samples, the best third of them on three times as many, and so on."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import _check_method_params

from mercer.selection.search.ways import search
from mercer.selection.search.work import Work

_FACTOR = 3  # samples grow by it from round to round, candidates fall by it
_LEAST = 100  # samples of a round
_EACH = 8  # samples of a round for each fold and class


class Halving:
    """The rounds of a search that begins with few samples.

    Parameters
    ----------
    work
        The search.
    metric
        What decides which candidates go on.

    Attributes
    ----------
    samples, candidates
        How many of each there were in every round.
    """

    def __init__(self, work: Work, metric: Any) -> None:
        self.work, self.metric = work, metric
        self.samples: list[int] = []
        self.candidates: list[int] = []
        if not isinstance(metric, str):
            raise ValueError(
                f"halving=True compares candidates by one metric, and refit={metric!r} names none; set refit to the "
                "name of a metric."
            )
        self.order = nested(work.y, work.samples(), is_classifier(work.estimator))

    def run(self, known: bool) -> None:
        """Evaluate round after round; a round that is interrupted does not count, unless it is the first."""
        work, alive = self.work, list(range(len(self.work.candidates)))
        for i, size in enumerate(self._sizes()):
            sub = self._round(np.sort(self.order[:size]), alive)
            search(sub, self.metric, True, known)
            work.plan, work.late = sub.plan, sub.late
            if work.found and (sub.late or work.stop.is_set()):
                return
            self.samples.append(size)
            self.candidates.append(len(alive))
            for (c, fold), outcome in sub.found.items():
                work.found[alive[c], fold] = outcome
                work.rounds[alive[c]] = (i, size)
            if work.stopped():
                return
            means = [
                np.mean([sub.found[c, f].score(self.metric) for f in range(len(sub.splits))]) for c in range(len(alive))
            ]
            best = np.argsort(-np.nan_to_num(means, nan=-np.inf), kind="stable")[: -(-len(alive) // _FACTOR)]
            alive = [alive[c] for c in np.sort(best)]

    def _sizes(self) -> list[int]:
        """Return the samples of each round, all of them in the last."""
        work, n = self.work, len(self.order)
        classes = len(np.unique(np.asarray(work.y))) if is_classifier(work.estimator) else 1
        least = max(_LEAST, _EACH * len(work.splits) * classes)
        rounds, count, size = 1, len(work.candidates), n // _FACTOR
        while count >= _FACTOR and size >= least:
            rounds, count, size = rounds + 1, -(-count // _FACTOR), size // _FACTOR
        return [n // _FACTOR ** (rounds - 1 - i) for i in range(rounds)]

    def _round(self, rows: np.ndarray, which: list[int]) -> Work:
        """Return the search of some candidates on some samples, which are divided as all samples are."""
        work = self.work
        place = np.full(len(self.order), -1)
        place[rows] = np.arange(len(rows))
        splits = [tuple(at[at >= 0] for at in (place[train], place[test])) for train, test in work.splits]
        X, y = (work.X, work.y) if len(rows) == len(self.order) else work.part(rows)
        return Work(
            work.estimator,
            X,
            y,
            [work.candidates[c] for c in which],
            splits,  # type: ignore[arg-type]
            work.scorer,
            _check_method_params(work.X, work.fit_params, rows),
            _check_method_params(work.X, work.score_params, rows),
            work.error_score,
            work.train_scores,
            work.budget,
            work.jobs,
            work.limit,
            stop=work.stop,
            metric=work.metric,
            deadline=work.deadline,
            labels=None if work.labels is None else work.labels[rows],
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
    _, codes = np.unique(np.asarray(y)[order], return_inverse=True)
    place = np.empty(n)
    for code in range(int(codes.max()) + 1):
        own = np.flatnonzero(codes == code)
        place[own] = (np.arange(len(own)) + 0.5) / len(own)
    return order[np.argsort(place, kind="stable")]
