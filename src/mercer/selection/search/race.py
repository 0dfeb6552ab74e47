"""Which cells come next: after the first folds, only candidates that may yet win go on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.selection.search.work import Work

_ERRORS = 4.0  # standard errors behind the best, from which on a candidate is left
_LOOKS = 2  # folds after each of which candidates are left


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
