"""Support vector machines on many folds, kernels and penalties: each matrix once, each path from small C to large.

Kernel values are computed once for all folds and all C, and the solution for one C is where the next starts from.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from mercer.estimators.shared.parameters import check_parameters
from mercer.estimators.svm.classifier import PairwiseClassifier
from mercer.estimators.svm.fold import Data, Fit, Start
from mercer.estimators.svm.svr import TubeRegressor
from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.machine.budget import Budget
from mercer.machine.threads import cores, run
from mercer.points import Block, Points
from mercer.points.formulas import formula as symbolic
from mercer.selection.search.cross_validation import CrossValidation, SharedData, Watched, alike, precomputed
from mercer.solvers import Control
from mercer.solvers.dual.shared import FACTORISED, GATHERED, SharedMatrix

_RACE_TOL = 30.0  # times the tolerance: a gap of 3 percent moves a mean score by less than half its standard error
_SINGLE_POINTS, _SINGLE_TOL = 600, 1e-6  # points and tolerance, from which on the solver takes float32
_MATRIX_SHARE = 0.85  # of the budget, for one matrix and the solution on it
_PARALLEL_SHARE = 0.6  # of the budget, for two matrices, as one follows another, and a solution for each core
_THREAD_BYTES = 2**20  # that a thread needs beside matrices
_PATH = "C"  # the parameter along which solutions are followed
_KEPT_BYTES = 1536 * 2**20  # bytes of matrices that are kept for later folds: fresh memory is dear
_SHARING_KERNELS, _SHARING_FEATURES = 3, 160  # from which on it pays to keep the statistics of pairs
_TILE_VALUES = 1 << 17  # kernel values at a time: what stands between the steps of a formula stays in the cache
_POWERS = {"sqdist": 2, "l1": 1}  # of the scale that divides the differences

Task = tuple[Kernel, int, list[int]]  # a kernel, a fold, candidates


class Machines:
    """The cells of a search whose estimator is one of the support vector machines."""

    races = True  # whether candidates may be left behind

    def __init__(self, cv: CrossValidation) -> None:
        self.cv = cv
        self.models = cv.models
        given = (model.get_params(deep=False) for model in self.models)
        self._rest = [repr({k: v for k, v in params.items() if k not in (_PATH, "kernel")}) for params in given]
        first = self.models[0]
        self.shared = SharedData(cv)
        points, n = self.shared.points, len(self.shared.points)
        self.data = Data(points, self.shared.target, cv.fit_params.get("sample_weight"), cv.budget)
        single = n > _SINGLE_POINTS and first.dtype != "float64" and first.tol >= _SINGLE_TOL
        size = 4 if single else 8
        beside = size * min(n, GATHERED) ** 2 + 16 * min(n, FACTORISED) ** 2 + _THREAD_BYTES  # bytes of a solution
        self.held = size * n * n + beside <= _MATRIX_SHARE * cv.budget
        self.serial = 2 * size * n * n + cores() * beside > _PARALLEL_SHARE * cv.budget
        self.matrices = Matrices(points, cv.budget, len(cv.splits) > 1 and not self.serial)
        kernels = {self.shared.kernel_key((c, f)) for c in range(len(self.models)) for f in range(len(cv.splits))}
        self.kept = self.held and self.matrices.all_kept(len(kernels), size)
        held = "held, computed once for all folds and all C" if self.held else "computed as the solver asks for it"
        self.plan = f"{type(first).__name__} on {n} points: each kernel matrix {held}; solutions followed along C."

    @staticmethod
    def can(cv: CrossValidation) -> bool:
        """Whether a search is one of machines that ask for nothing special."""
        suited = isinstance(cv.models[0], PairwiseClassifier | TubeRegressor) and alike(cv.models)
        return suited and not set(cv.fit_params) - {"sample_weight"}

    # -- which cells have a kernel in common ------------------------------------------------------------

    def tasks(self, cells: list[tuple[int, int]]) -> list[Task]:
        """Return the cells as (kernel, fold, candidates).

        Those of a kernel stand next to one another, unless all matrices are kept: then the longest come first, so that
        all cores end at about the same time.
        """
        by_kernel: dict[tuple[Kernel, int], list[int]] = {}
        for candidate, fold in cells:
            by_kernel.setdefault((self.shared.kernel((candidate, fold)), fold), []).append(candidate)
        order = {kernel: i for i, kernel in enumerate(dict.fromkeys(kernel for kernel, _ in by_kernel))}
        tasks = [(kernel, fold, which) for (kernel, fold), which in by_kernel.items()]
        tasks.sort(key=lambda task: (order[task[0]], task[1]))
        if self.kept:
            first = {c: outcome.fit_time for (c, fold), outcome in self.cv.outcomes.items() if fold == 0}  # seconds
            tasks.sort(key=lambda task: -sum(first.get(c, 0.0) for c in task[2]))
        self.matrices.expect([kernel for kernel, _, _ in tasks])
        return tasks

    # -- one kernel on one fold -------------------------------------------------------------------------

    def run(self, task: Task) -> None:
        """Solve and score the candidates that share a kernel on a fold."""
        kernel, fold, which = task
        try:
            for chain in self._chains(which):
                start: Start | None = None
                for candidate in chain:
                    if self.cv.stopped():
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
            fit = self._fit(kernel, candidate, self.cv.splits[fold][0])
            start = fit.solve(start)
            if self.cv.stop.is_set():  # in the middle of this
                return None
            seconds = time.perf_counter() - began
            self.cv.score_values(cell, lambda rows: precomputed(fit.model, fit.values(rows)), seconds)
        except Exception:  # the plain fit says what is wrong, or gives the error score
            self.cv.keep(cell, self.cv.trial(cell))
            return None
        return start

    def _fit(self, kernel: Kernel, candidate: int, train: np.ndarray) -> Fit:
        model = self.models[candidate]
        check_parameters(model)
        tol = _RACE_TOL * model.tol if self.cv.rough else model.tol
        control = Watched(tol, precision=model.dtype, steady=not self.cv.rough, stop=self.cv.stop)
        shared = self.matrices.get(kernel, control) if self.held else None
        return Fit(self.data, model, kernel, train, shared, control)


# -- kernel matrices: each computed once, and kept while there is room and use for it ----------------------


@dataclass
class _Place:
    lock: Lock = field(default_factory=Lock)  # two threads may want a matrix that neither has
    matrix: SharedMatrix | None = None
    users: int = 0


class Matrices:
    """The matrices of all points under the kernels of a search; `later`: whether kernels come back in later rounds."""

    def __init__(self, points: Points, budget: Budget, later: bool) -> None:
        self.points, self.budget = points, budget
        self._lock = Lock()
        self._places: dict[Kernel, _Place] = {}
        self._statistics: Statistics | None = None
        self._room = min(int(budget) // 4, _KEPT_BYTES) if later else 0

    def expect(self, kernels: list[Kernel]) -> None:
        """Take down who will ask: each mention of a kernel is one `get` and one `done`."""
        for kernel in kernels:
            self._places.setdefault(kernel, _Place()).users += 1

    def all_kept(self, count: int, itemsize: int) -> bool:
        """Return whether as many matrices are kept until the end."""
        return count * itemsize * len(self.points) ** 2 <= self._room

    def get(self, kernel: Kernel, control: Control) -> SharedMatrix:
        """Return the matrix of a kernel."""
        place = self._places[kernel]
        with place.lock:
            if place.matrix is None:
                gram = Gram(kernel, self.points, budget=int(self.budget))
                place.matrix = SharedMatrix(gram, control, self._compute)
            return place.matrix

    def done(self, kernel: Kernel) -> None:
        """Give up one use of a matrix; the last user lets it go where there is no room to keep it."""
        with self._lock:
            place = self._places[kernel]
            place.users -= 1
            if place.users == 0 and place.matrix is not None:
                others = sum(p.matrix is not None for p in self._places.values())
                if others * place.matrix.values.nbytes > self._room:
                    place.matrix = None

    def _compute(self, gram: Gram) -> np.ndarray | None:
        """Return kernel values from statistics that several kernels share, where there is room for them."""
        X = gram.left.vectors if gram.left.numeric else None
        if len(self._places) < _SHARING_KERNELS or not isinstance(X, np.ndarray) or X.shape[1] < _SHARING_FEATURES:
            return None
        with self._lock:
            if self._statistics is None:
                self._statistics = Statistics(gram.left, min(int(self.budget) // 8, _KEPT_BYTES // 4))
        if self._statistics.points.dtype != gram.left.dtype:
            return None
        return self._statistics.values(gram)


# -- pair statistics: inner products and distances, computed once for all kernels -------------------------


class Statistics:
    """The statistics of all pairs of some points, kept for kernels that differ in what they make of them.

    The points are in the type that the values are to have; `room` is what the statistics may take, in bytes.
    """

    def __init__(self, points: Points, room: int) -> None:
        self.points = points
        self._lock = Lock()
        self._kept: dict[str, np.ndarray] = {}
        each = len(points) ** 2 * np.dtype(points.dtype).itemsize
        self._most = room // each if each else 0  # statistics that there is room for

    def values(self, gram: Gram) -> np.ndarray | None:
        """Return the kernel values of all pairs; None where the kernel asks for more than kept statistics."""
        kinds = shared_kinds(gram)
        if not kinds:
            return None
        with self._lock:
            if len(kinds | set(self._kept)) > self._most:
                return None
            for kind in kinds - set(self._kept):
                try:
                    self._kept[kind] = Gram.of_formula(_Statistic(kind), self.points).fill()
                except FloatingPointError:
                    return None
        n = len(self.points)
        out = np.empty((n, n), self.points.dtype)
        height = max(1, _TILE_VALUES // n)
        good = run(lambda r: self._fill(gram, slice(r, min(r + height, n)), out), range(0, n, height))
        return out if all(good) else None  # what is not finite, the matrix itself explains

    def _fill(self, gram: Gram, rows: slice, out: np.ndarray) -> bool:
        tile = _Kept(self.points.take(rows), self.points, {kind: S[rows] for kind, S in self._kept.items()})
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            out[rows] = gram.kernel.of(tile)
        return bool(np.isfinite(out[rows]).all())


def shared_kinds(gram: Gram) -> set[str]:
    """Return the statistics of the points as they are that a kernel reads; empty where it reads anything else."""
    if not gram.compiled:
        return set()
    kinds = set()
    for leaf in symbolic.statistics(gram.formula):
        plain = leaf.kind == "dot" or leaf.kind in _POWERS
        if leaf.path or not plain or not isinstance(leaf.scale, float | int):
            return set()
        kinds.add(leaf.kind)
    return kinds


class _Statistic:
    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __call__(self, pair: Any) -> Any:
        return pair.dot if self.kind == "dot" else getattr(pair, self.kind)()


class _Kept(Block):
    """Some rows of pairs whose statistics are kept."""

    def __init__(self, left: Points, right: Points, kept: dict[str, np.ndarray]) -> None:
        super().__init__(left, right)
        self._kept = kept

    def _compute(self, kind: str, scale: Any) -> Any:
        S = self._kept[kind]
        return S if kind == "dot" or scale == 1 else S * S.dtype.type(float(scale) ** -_POWERS[kind])
