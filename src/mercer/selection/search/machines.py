"""Support vector machines on many folds, kernels and penalties: each matrix once, each path from small C to large.

What a pair of points has to do with a kernel is computed once for all folds and all C, and a solution is where the next
C starts from.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.estimators.shared.data import asks_for_choice
from mercer.estimators.shared.parameters import check_parameters
from mercer.estimators.svm.classifier import PairwiseClassifier
from mercer.estimators.svm.fold import Data, Fit, Start
from mercer.estimators.svm.svr import TubeRegressor
from mercer.kernels import Kernel, Precomputed
from mercer.machine.threads import cores
from mercer.points import Points
from mercer.selection.search.answers import known
from mercer.selection.search.matrices import Matrices
from mercer.selection.search.work import Watched, Work
from mercer.solvers.dual.shared import FACTORISED, GATHERED

_DOUBLE, _SINGLE_TOL = 600, 1e-6  # points and tolerances from which on the solver takes float32
_SHARE = 0.85  # of the budget, for one matrix and the solution on it
_SHARE_OF_ALL = 0.6  # for two matrices, as one follows another, and a solution for each core; the rest is for later
_ROOM = 2**20  # bytes for each thread
_PATH = "C"  # the parameter along which solutions are followed

Task = tuple[Kernel, int, list[int]]


class Machines:
    """The cells of a search whose estimator is one of the support vector machines.

    Parameters
    ----------
    work
        The search.
    """

    races = True  # whether candidates may be left behind

    def __init__(self, work: Work) -> None:
        self.work = work
        self.models = work.models
        given = (model.get_params(deep=False) for model in self.models)
        self._rest = [repr({k: v for k, v in params.items() if k not in (_PATH, "kernel")}) for params in given]
        first = self.models[0]
        data, target = first._read(work.X, work.y)
        self.kind, self._given = first._kind, data
        n = len(target)
        points = Points(np.arange(n) if self.kind == "similarities" else data)
        target = np.asarray(target, dtype=np.float64) if first._numeric_target else target
        self.data = Data(points, target, work.fit_params.get("sample_weight"), work.budget)
        single = n > _DOUBLE and first.dtype != "float64" and first.tol >= _SINGLE_TOL
        size = 4 if single else 8
        beside = size * min(n, GATHERED) ** 2 + 16 * min(n, FACTORISED) ** 2 + _ROOM  # bytes of a solution
        self.held = size * n * n + beside <= _SHARE * work.budget
        self.serial = 2 * size * n * n + cores() * beside > _SHARE_OF_ALL * work.budget
        self.matrices = Matrices(points, work.budget, len(work.splits) > 1 and not self.serial)
        self._kernels: dict[Any, Kernel] = {}
        self.kept = self.held and self.matrices.all_kept(self._count(), size)
        held = "held, computed once for all folds and all C" if self.held else "computed as the solver asks for it"
        self.plan = f"{type(first).__name__} on {n} points: each kernel matrix {held}; solutions followed along C."

    @staticmethod
    def can(work: Work) -> bool:
        """Whether a search is one of machines that ask for nothing special."""
        if set(work.fit_params) - {"sample_weight"}:
            return False
        models = work.models
        first = models[0]
        if not isinstance(first, PairwiseClassifier | TubeRegressor):
            return False
        for model in models:
            if type(model) is not type(first) or model._reads() != first._reads() or model.dtype != first.dtype:
                return False
            if model.checkpoint is not None or model.time_limit is not None or model.max_iter >= 0:
                return False
            if hasattr(model, "_skl_callbacks") or model.verbose or asks_for_choice(model.kernel):
                return False
        return True

    # -- which cells have a kernel in common ------------------------------------------------------------

    def tasks(self, cells: list[tuple[int, int]]) -> list[Task]:
        """Return the cells as (kernel, fold, candidates).

        Those of a kernel stand next to one another, unless all matrices are kept: then the longest come first, so that
        all cores end at about the same time.
        """
        found: dict[tuple[Kernel, int], list[int]] = {}
        for candidate, fold in cells:
            found.setdefault((self._resolved(candidate, fold), fold), []).append(candidate)
        order = {kernel: i for i, kernel in enumerate(dict.fromkeys(kernel for kernel, _ in found))}
        tasks = [(kernel, fold, which) for (kernel, fold), which in found.items()]
        tasks.sort(key=lambda task: (order[task[0]], task[1]))
        if self.kept:
            tasks.sort(key=lambda task: -sum(self._seconds(c) for c in task[2]))
        self.matrices.expect([kernel for kernel, _, _ in tasks])
        return tasks

    def _seconds(self, candidate: int) -> float:
        """How long the first fold has taken; 0 where that is not known."""
        outcome = self.work.found.get((candidate, 0))
        return 0.0 if outcome is None else outcome.fit_time

    def _count(self) -> int:
        """How many matrices there are; kernels that wait for data have one for each fold."""
        kernels = {(m._given_kernel, m.degree, m.gamma, m.coef0) for m in self.models}
        free = sum(isinstance(kernel, Kernel) and kernel.resolved for kernel, *_ in kernels)
        return free + (len(kernels) - free) * len(self.work.splits)

    def _resolved(self, candidate: int, fold: int) -> Kernel:
        """Return the kernel of a cell, with what waits for data taken from the fold's training points."""
        model = self.models[candidate]
        if self.kind == "similarities":
            key: Any = "similarities"
        elif isinstance(given := model._given_kernel, Kernel) and given.resolved:
            return given
        else:
            key = (given, model.degree, model.gamma, model.coef0, fold)
        if key not in self._kernels:
            if self.kind == "similarities":
                self._kernels[key] = Precomputed(self._given)
            else:
                self._kernels[key] = model._resolved(self.data.points.take(self.work.splits[fold][0]).data)
        return self._kernels[key]

    # -- one kernel on one fold -------------------------------------------------------------------------

    def run(self, task: Task) -> None:
        """Solve and score the candidates that share a kernel on a fold."""
        kernel, fold, which = task
        try:
            for chain in self._chains(which):
                start: Start | None = None
                for candidate in chain:
                    if self.work.stopped():
                        return
                    start = self._cell(kernel, (candidate, fold), start)
        finally:
            self.matrices.done(kernel)

    def _chains(self, which: list[int]) -> Iterator[list[int]]:
        """Yield candidates that differ in C alone, the smallest C first."""
        chains: dict[Any, list[int]] = {}
        for c in which:
            chains.setdefault(self._rest[c], []).append(c)
        for chain in chains.values():
            yield sorted(chain, key=lambda c: getattr(self.models[c], _PATH, 0.0))

    def _cell(self, kernel: Kernel, cell: tuple[int, int], start: Start | None) -> Start | None:
        """Solve and score one cell; return where the next may start."""
        candidate, fold = cell
        began = time.perf_counter()
        try:
            fit = self._fit(kernel, candidate, self.work.splits[fold][0])
            start = fit.solve(start)
            if self.work.stop.is_set():  # in the middle of this
                return None
            seconds = time.perf_counter() - began
            self.work.score_known(cell, lambda rows: known(fit.model, fit.values(rows)), seconds)
        except Exception:  # the plain way says what is wrong, or gives the error score
            self.work.keep(cell, self.work.trial(cell))
            return None
        return start

    def _fit(self, kernel: Kernel, candidate: int, train: np.ndarray) -> Fit:
        model = self.models[candidate]
        check_parameters(model)
        control = Watched(model.tol, precision=model.dtype, stop=self.work.stop)
        shared = self.matrices.get(kernel, control) if self.held else None
        return Fit(self.data, model, kernel, train, shared, control)
