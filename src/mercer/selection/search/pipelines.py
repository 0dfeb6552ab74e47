"""Pipelines that end in one of the fast models: the steps before it are fitted once for each fold.

The points differ from fold to fold then, and so do the matrices; all penalties of a kernel share one all the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from mercer.machine.threads import run
from mercer.selection.search.cross_validation import CrossValidation
from mercer.selection.search.machines import Machines
from mercer.selection.search.ridge import Ridges

_ENGINES: tuple[Any, ...] = (Machines, Ridges)  # of last steps, which are no pipelines

Key = tuple[tuple[tuple[str, int], ...], int]  # the parameters of the steps before the last, and a fold
Task = tuple[Any, Any]  # an engine and its task; None and a cell to be fitted by itself


class Pipelines:
    """The cells of a search whose estimator is a pipeline."""

    def __init__(self, cv: CrossValidation) -> None:
        self.cv = cv
        self.name = cv.estimator.steps[-1][0]
        self._engine = _engine_of_last(cv)
        self.races, self.serial = self._engine.races, False
        # Of the engine of a fold: its search of the last step, the candidates there, and the fold.
        self._subs: dict[int, tuple[CrossValidation, list[int], int]] = {}
        self.plan = (
            f"Pipeline on {len(cv.splits[0][0])} points: the steps before the last once for each fold, then "
            f"{type(cv.estimator.steps[-1][1]).__name__} with each kernel matrix once for all penalties."
        )

    @staticmethod
    def can(cv: CrossValidation) -> bool:
        """Whether a search is one of pipelines that ask for nothing special."""
        return isinstance(cv.estimator, Pipeline) and not cv.train_scores and _engine_of_last(cv) is not None

    def tasks(self, cells: list[tuple[int, int]]) -> list[Task]:
        """Fit the steps before the last, and return what is to be done with the points that they give."""
        by_front: dict[Key, list[int]] = {}
        for candidate, fold in cells:
            given = self.cv.candidates[candidate].items()
            front = tuple(sorted((k, id(v)) for k, v in given if not k.startswith(f"{self.name}__")))
            by_front.setdefault((front, fold), []).append(candidate)
        self._subs.clear()
        parts = run(self._prepare, [(fold, which) for (_, fold), which in by_front.items()])
        return [task for part in parts for task in part]

    def _prepare(self, part: tuple[int, list[int]]) -> list[Task]:
        """Return the tasks of one fold, or its cells one by one where the pipeline cannot be taken apart."""
        fold, which = part
        try:
            sub = self._sub(fold, which)
            engine = self._engine(sub)
            tasks = engine.tasks([(i, 0) for i in range(len(which))])
        except Exception:  # the plain fit says what is wrong, or gives the error score
            return [(None, (c, fold)) for c in which]
        self._subs[id(engine)] = (sub, which, fold)
        self.serial = self.serial or engine.serial
        return [(engine, task) for task in tasks]

    def _sub(self, fold: int, which: list[int]) -> CrossValidation:
        """Return the search of the last step on the points of one fold, as the steps before it leave them."""
        cv = self.cv
        train, test = cv.splits[fold]
        front = cv.model(which[0])[:-1]
        (X, y), (X_test, _) = cv.part(train), cv.part(test)
        points = joined(len(np.asarray(cv.y)), train, front.fit_transform(X, y), test, front.transform(X_test))
        sub = _last(cv, which, points, fold)

        def tell(cell: tuple[int, int], outcome: Any) -> None:
            cv.keep((which[cell[0]], fold), outcome)

        sub.tell = tell
        return sub

    def run(self, task: Task) -> None:
        """Do one task."""
        engine, what = task
        if engine is None:
            if not self.cv.stopped():
                self.cv.keep(what, self.cv.trial(what))
            return
        engine.run(what)
        sub, which, fold = self._subs[id(engine)]
        for score, candidate, model in list(sub.leaders.values()):
            self.cv.lead(fold, (score, which[candidate], model))


def joined(n: int, train: np.ndarray, A: Any, test: np.ndarray, B: Any) -> Any:
    """Return a matrix with rows for all samples from those of two parts; the rows of others are zero.

    Examples
    --------
    >>> import numpy as np
    >>> joined(3, np.array([2, 0]), np.array([[1.0], [2.0]]), np.array([1]), np.array([[3.0]]))
    array([[2.],
           [3.],
           [1.]])
    """
    if np.intersect1d(train, test).size:
        raise ValueError("training and test samples overlap.")
    rows = np.concatenate([train, test])
    if sparse.issparse(A):
        both = sparse.vstack([A, B]).tocsr()
        place = sparse.csr_matrix((np.ones(len(rows)), (rows, np.arange(len(rows)))), shape=(n, len(rows)))
        return sparse.csr_matrix(place @ both)
    A, B = np.asarray(A), np.asarray(B)
    if A.dtype.kind not in "fiub":
        raise ValueError("the steps before the last give no numbers.")
    out = np.zeros((n, A.shape[1]), np.float32 if A.dtype == np.float32 else np.float64)
    out[train], out[test] = A, B
    return out


def _engine_of_last(cv: CrossValidation) -> Any:
    """Return the engine for the last step of a pipeline, or None."""
    name = cv.estimator.steps[-1][0]
    names = {key for params in cv.candidates for key in params}
    if any("__" not in key for key in names) or any(not key.startswith(f"{name}__") for key in cv.fit_params):
        return None
    probe = _last(cv, list(range(len(cv.candidates))), cv.X, 0)
    if not hasattr(probe.estimator, "fit"):
        return None
    return next((kind for kind in _ENGINES if kind.can(probe)), None)


def _last(cv: CrossValidation, which: list[int], X: Any, fold: int) -> CrossValidation:
    """Return the search of the last step alone, on one fold."""
    name, last = cv.estimator.steps[-1]
    start = len(name) + 2
    return cv.reduced(
        estimator=clone(last) if hasattr(last, "fit") else last,
        X=X,
        candidates=[{k[start:]: v for k, v in cv.candidates[c].items() if k.startswith(f"{name}__")} for c in which],
        splits=[cv.splits[fold]],
        fit_params={k[start:]: v for k, v in cv.fit_params.items()},
        train_scores=False,
    )
