"""Support vector machines on many folds, kernels and penalties: each matrix once, each path from small C to large.

What a pair of points has to do with a kernel is computed once for all folds and all C, and a solution is where the next
C starts from.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from threading import Lock
from typing import Any

import numpy as np

from mercer.estimators.base import Statement
from mercer.estimators.classifier import PairwiseClassifier
from mercer.estimators.inputs import positive_weights
from mercer.estimators.multiclass import Pairs, pair_values
from mercer.estimators.offsets import central
from mercer.estimators.parameters import check_parameters
from mercer.estimators.regressor import TubeRegressor
from mercer.estimators.training import Training
from mercer.gram import Gram
from mercer.kernels import Kernel, Precomputed
from mercer.points import Points
from mercer.points.threads import cores
from mercer.selection.answers import KnownClassifier, KnownRegressor
from mercer.selection.work import Work
from mercer.solvers import Control, Solution, SVMDual, solve
from mercer.solvers.shared import Point, SharedMatrix, solve_together

_DOUBLE, _SINGLE_TOL = 600, 1e-6  # points and tolerances from which on the solver takes float32
_SHARE = 0.85  # of the budget, for matrices
_ROOM = 2**20  # bytes for each thread
_KEPT = 1536 * 2**20  # bytes of matrices that are kept for later folds: fresh memory is dear
_PATH = "C"  # the parameter along which solutions are followed


class Machines:
    """The cells of a search whose estimator is one of the support vector machines.

    Parameters
    ----------
    work
        The search.
    """

    def __init__(self, work: Work) -> None:
        self.work = work
        self.models = [work.model(c) for c in range(len(work.candidates))]
        given = (model.get_params(deep=False) for model in self.models)
        self._rest = [repr({k: v for k, v in params.items() if k not in (_PATH, "kernel")}) for params in given]
        first = self.models[0]
        data, target = first._read(work.X, work.y)
        self.kind, self.data = first._kind, data
        self.target = np.asarray(target, dtype=np.float64) if first._numeric_target else target
        n = len(target)
        self.points = Points(np.arange(n) if self.kind == "similarities" else data)
        self.weights = work.fit_params.get("sample_weight")
        single = n > _DOUBLE and first.dtype != "float64" and first.tol >= _SINGLE_TOL
        self.held = (
            2 * (4 if single else 8) * n * n + cores() * _ROOM <= _SHARE * work.budget
        )  # two, as one follows another
        self._kernels: dict[Any, Kernel] = {}
        self._matrices: dict[Kernel, tuple[SharedMatrix | None, int]] = {}
        self._lock = Lock()
        self.serial = not self.held  # then each solution uses all cores
        held = "held, computed once for all folds and all C" if self.held else "computed as the solver asks for it"
        self.plan = f"{type(first).__name__} on {n} points: each kernel matrix {held}; solutions followed along C."

    @staticmethod
    def can(work: Work) -> bool:
        """Whether a search is one of machines that ask for nothing special."""
        if set(work.fit_params) - {"sample_weight"}:
            return False
        models = [work.model(c) for c in range(len(work.candidates))]
        first = models[0]
        if not isinstance(first, PairwiseClassifier | TubeRegressor):
            return False
        for model in models:
            if type(model) is not type(first) or model._reads() != first._reads() or model.dtype != first.dtype:
                return False
            if model.checkpoint is not None or model.time_limit is not None or model.max_iter >= 0:
                return False
            if hasattr(model, "_skl_callbacks") or model.verbose:
                return False
        return True

    # -- which cells have a kernel in common ------------------------------------------------------------

    def tasks(self, cells: list[tuple[int, int]]) -> list[tuple[Kernel, int, list[int]]]:
        """Return the cells as (kernel, fold, candidates), those of a kernel next to one another."""
        found: dict[tuple[Kernel, int], list[int]] = {}
        for candidate, fold in cells:
            found.setdefault((self._resolved(candidate, fold), fold), []).append(candidate)
        order = {kernel: i for i, kernel in enumerate(dict.fromkeys(kernel for kernel, _ in found))}
        tasks = [(kernel, fold, which) for (kernel, fold), which in found.items()]
        tasks.sort(key=lambda task: (order[task[0]], task[1]))
        for kernel, _, _ in tasks:
            matrix, users = self._matrices.get(kernel, (None, 0))
            self._matrices[kernel] = (matrix, users + 1)
        return tasks

    def _resolved(self, candidate: int, fold: int) -> Kernel:
        """Return the kernel of a cell, with what waits for data taken from the fold's training points."""
        model = self.models[candidate]
        if self.kind == "similarities":
            key: Any = "similarities"
        elif isinstance(model.kernel, Kernel) and model.kernel.resolved:
            return model.kernel
        else:
            key = (model.kernel, model.degree, model.gamma, model.coef0, fold)
        if key not in self._kernels:
            if self.kind == "similarities":
                self._kernels[key] = Precomputed(self.data)
            else:
                self._kernels[key] = model._resolved(self.points.take(self.work.splits[fold][0]).data)
        return self._kernels[key]

    def _matrix(self, kernel: Kernel, control: Control) -> SharedMatrix:
        with self._lock:
            matrix, users = self._matrices[kernel]
            if matrix is None:
                matrix = SharedMatrix(Gram(kernel, self.points, budget=int(self.work.budget) // 2), control)
                self._matrices[kernel] = (matrix, users)
            return matrix

    def _done(self, kernel: Kernel) -> None:
        with self._lock:
            matrix, users = self._matrices[kernel]
            if users == 1 and matrix is not None:  # for later folds, if there is room for all
                others = sum(m is not None for m, _ in self._matrices.values())
                if others * matrix.values.nbytes > min(self.work.budget // 4, _KEPT):
                    matrix = None
            self._matrices[kernel] = (matrix, users - 1)

    # -- one kernel on one fold -------------------------------------------------------------------------

    def run(self, task: tuple[Kernel, int, list[int]]) -> None:
        """Solve and score the candidates that share a kernel on a fold."""
        kernel, fold, which = task
        try:
            for chain in self._chains(which):
                start: Any = None
                for candidate in chain:
                    if self.work.stop.is_set():
                        return
                    start = self._cell(kernel, (candidate, fold), start)
        finally:
            self._done(kernel)

    def _chains(self, which: list[int]) -> Iterator[list[int]]:
        """Yield candidates that differ in C alone, the smallest C first."""
        chains: dict[Any, list[int]] = {}
        for c in which:
            chains.setdefault(self._rest[c], []).append(c)
        for chain in chains.values():
            yield sorted(chain, key=lambda c: getattr(self.models[c], _PATH, 0.0))

    def _cell(self, kernel: Kernel, cell: tuple[int, int], start: Any) -> Any:
        """Solve and score one cell; return where the next may start."""
        began = time.perf_counter()
        try:
            fit = Fit(self, kernel, cell)
            start = fit.solve(start)
            self.work.score_known(cell, fit.answer, time.perf_counter() - began)
        except Exception:  # the plain way says what is wrong, or gives the error score
            self.work.keep(cell, self.work.trial(cell))
            return None
        return start


class Fit:
    """One model on the training points of one fold."""

    def __init__(self, machines: Machines, kernel: Kernel, cell: tuple[int, int]) -> None:
        self.machines, self.kernel = machines, kernel
        self.model = model = copy.copy(machines.models[cell[0]])
        check_parameters(model)
        train = machines.work.splits[cell[1]][0]
        weights = None if machines.weights is None else np.asarray(machines.weights)[train]
        weight, rows = positive_weights(weights, len(train))
        self.at = train if rows is None else train[rows]  # the points that count
        self.training = Training(machines.points, kernel, weight, rows)
        self.control = Control(model.tol, precision=model.dtype)
        target = machines.target[train]
        if isinstance(model, PairwiseClassifier):
            codes = model._encode(target)
            codes = codes if rows is None else codes[rows]
            self.pairs: Pairs | None = Pairs(codes, len(model.classes_))
            self.statements = model._statements(self.training, self.pairs, codes)
        else:
            self.pairs = None
            self.statements = [model._statement(self.training, target)]

    def solve(self, start: Any) -> Any:
        """Find the machine of every pair; return where the next C may start from."""
        soft = all(np.isfinite(s.terms[side]).all() for s in self.statements for side in ("upper", "lower"))
        shared = self.machines._matrix(self.kernel, self.control) if self.machines.held and soft else None
        self.image: np.ndarray | None = None  # sums of kernel functions at all points, where they are known
        starts = start if start is not None else [None] * len(self.statements)
        after: list[Point | None] = [None] * len(self.statements)
        found: list[Solution | None] = [None] * len(self.statements)
        if shared is not None and len(self.statements) == 1:
            done = shared.solve(self.at, self.statements[0].terms, self.control, starts[0])
            if done is not None:
                found[0], self.image, after[0] = done
        elif shared is not None:
            problems = [self._problem(shared.gram, s, p) for s, p in zip(self.statements, starts, strict=True)]
            found = solve_together(shared, problems, self.control)
        self.solutions = self._finish(found, starts)
        self.shared = shared
        if after[0] is None:
            after = [Point(s.plus, s.minus) for s in self.solutions]
        for statement, solution in zip(self.statements, self.solutions, strict=True):
            solution.offset, solution.half_width = central(statement.terms, solution)
        follows = all("plus" not in s.terms and s.terms.get("offset", "free") == "free" for s in self.statements)
        return after if follows else None

    def _problem(self, gram: Gram, statement: Statement, start: Point | None) -> SVMDual:
        rows = self.at if statement.rows is None else self.at[statement.rows]
        return SVMDual(gram, rows=rows, **{**statement.terms, **_clipped(statement.terms, start, len(rows))})

    def _finish(self, found: list[Solution | None], starts: list[Point | None]) -> list[Solution]:
        """Solve what is left undone in the ordinary way."""
        left = [i for i, s in enumerate(found) if s is None]
        if left:
            gram = Gram(self.kernel, self.machines.points.take(self.at), budget=int(self.machines.work.budget) // 4)
            problems = []
            for i in left:
                statement, size = self.statements[i], len(self.statements[i].terms["linear"])
                terms = {**statement.terms, **_clipped(statement.terms, starts[i], size, self.at)}
                problems.append(SVMDual(gram, rows=statement.rows, classes=statement.classes, **terms))
            for i, solution in zip(left, solve(problems, self.control), strict=True):
                found[i] = solution
        return [s for s in found if s is not None]

    # -- values -----------------------------------------------------------------------------------------

    def answer(self, rows: np.ndarray) -> Any:
        """Return the fitted model as a scorer sees it, at some of all points."""
        scale = np.ones(len(self.solutions))
        if isinstance(self.model, PairwiseClassifier):
            scale = np.array([self.model._scale(s, self.training) for s in self.solutions])
        offsets = np.array([s.offset for s in self.solutions]) / scale
        if self.image is not None:
            values = self.image[rows, None] / scale + offsets
        elif self.pairs is None or len(self.pairs) == 1:
            b = self.solutions[0].coefficients
            values = self._sums(rows, self.at, b[:, None]) / scale + offsets
        else:
            values = self._pair_values(rows, scale, offsets)
        if isinstance(self.model, PairwiseClassifier):
            return KnownClassifier(self.model, values)
        return KnownRegressor(values[:, 0])

    def _pair_values(self, rows: np.ndarray, scale: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        assert self.pairs is not None
        coefficients = [s.coefficients / q for s, q in zip(self.solutions, scale, strict=True)]
        support, blocks = self.pairs.layout(coefficients)
        sums = np.empty((len(rows), len(blocks), blocks[0].shape[1]))
        start = 0
        for i, block in enumerate(blocks):
            sums[:, i] = self._sums(rows, self.at[support[start : start + len(block)]], block)
            start += len(block)
        return pair_values(sums, offsets)

    def _sums(self, rows: np.ndarray, centres: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return the sums of kernel functions at some points."""
        used = np.flatnonzero(B.any(axis=1))
        if not used.size:
            return np.zeros((len(rows), B.shape[1]))
        centres, B = centres[used], B[used]
        if self.shared is not None:
            return np.asarray(self.shared.values[np.ix_(rows, centres)] @ B)
        points = self.machines.points
        return np.asarray(Gram(self.kernel, points.take(rows), points.take(centres)).matvec(B))


def _clipped(terms: dict[str, Any], start: Point | None, size: int, at: np.ndarray | None = None) -> dict[str, Any]:
    """Return a solution for another C as a start, scaled so that it is in the box; nothing where there is none."""
    if start is None:
        return {}
    plus, minus = start.plus, start.minus
    if len(plus) != size and at is not None and len(plus) > size:  # of all points
        plus, minus = plus[at], minus[at]
    if len(plus) != size:
        return {}
    with np.errstate(divide="ignore", invalid="ignore"):
        room = min(
            float(np.min(terms[side] / part, where=part > 0, initial=np.inf))
            for side, part in (("upper", plus), ("lower", minus))
        )
    share = min(room, 1.0)
    return {
        "plus": np.minimum(plus * share, terms["upper"]),
        "minus": np.minimum(minus * share, terms["lower"]),
    }
