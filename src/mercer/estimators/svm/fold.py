"""One support vector machine on the training points of one fold, solved on the matrix of all points, and its values."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from mercer.certify import Stop
from mercer.estimators.shared.classes import Pairs, pair_values
from mercer.estimators.shared.data import Training, positive_weights
from mercer.estimators.svm.machine import Statement, central
from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.machine.budget import Budget
from mercer.machine.threads import one_thread_each, run
from mercer.points import Points
from mercer.solvers import Control, Solution, SVMDual, solve
from mercer.solvers.control import warn_unfinished
from mercer.solvers.dual.shared import Point, SharedMatrix, share_in_box
from mercer.solvers.dual.solve import together

Start = list[Point | None]
_FOLDS = 5  # that probabilities are calibrated on
_SERIAL_VALUES = 300_000  # kernel values below which a second thread costs more than it brings


@dataclass
class Data:
    """All points that folds are cut from, as their models see them."""

    points: Points
    target: np.ndarray
    weights: Any  # of the samples, or None
    budget: Budget


class Fit:
    """One model on the training points of one fold.

    Parameters
    ----------
    data
        All points, and what goes with them.
    model
        The estimator, whose parameters are checked.
    kernel
        Its kernel, resolved.
    train
        The points to learn from.
    shared
        The matrix of all points; None where it is not held.
    control
        The limits of the fit; by default the model's tolerance and arithmetic.
    """

    def __init__(
        self,
        data: Data,
        model: Any,
        kernel: Kernel,
        train: np.ndarray,
        shared: SharedMatrix | None = None,
        control: Control | None = None,
    ) -> None:
        self.data, self.kernel, self.shared = data, kernel, shared
        self.model = model = copy.copy(model)
        weights = None if data.weights is None else np.asarray(data.weights)[train]
        weight, rows = positive_weights(weights, len(train))
        self.at = train if rows is None else train[rows]  # the points that count
        self.training = Training(data.points, kernel, weight, rows)
        self.control = control or Control(model.tol, precision=model.dtype)
        target = data.target[train]
        if not model._numeric_target:
            codes = model._encode(target)
            codes = codes if rows is None else codes[rows]
            self.pairs: Pairs | None = Pairs(codes, len(model.classes_))
            self.statements = model._statements(self.training, self.pairs, codes)
        else:
            self.pairs = None
            self.statements = [model._statement(self.training, target)]
        hard = not all(np.isfinite(s.terms[side]).all() for s in self.statements for side in ("upper", "lower"))
        if hard or any(s.terms.get("offset", "free") == "none" for s in self.statements):
            self.shared = None  # a hard margin or no offset, which are other solvers'

    def solve(self, start: Start | None = None) -> Start | None:
        """Find the machine of every pair; return where the next C may start from.

        Parameters
        ----------
        start
            Solutions for another C.
        """
        self.image: np.ndarray | None = None  # sums of kernel functions at all points, where they are known
        starts: Start = start if start is not None else [None] * len(self.statements)
        after: Start = [None] * len(self.statements)
        solutions: list[Solution | None] = [None] * len(self.statements)
        if self.shared is not None and len(self.statements) == 1:
            done = self.shared.solve(self.at, self.statements[0].terms, self.control, starts[0])
            if done is not None:
                solutions[0], self.image, after[0] = done
        elif self.shared is not None:
            solutions = [_known(s.terms, p) for s, p in zip(self.statements, starts, strict=True)]
            left = [i for i, solution in enumerate(solutions) if solution is None]
            problems = [self._problem(self.shared.gram, self.statements[i], starts[i]) for i in left]
            if problems:
                for i, solution in zip(left, together(self.shared.values, problems, self.control), strict=True):
                    solutions[i] = solution
        self.solutions = self._finish(solutions, starts)
        if after[0] is None:
            after = [_point(t.terms, s) for t, s in zip(self.statements, self.solutions, strict=True)]
        for statement, solution in zip(self.statements, self.solutions, strict=True):
            solution.offset, solution.half_width = central(statement.terms, solution)
        return after if self.follows else None

    @property
    def follows(self) -> bool:
        """Whether solutions may be scaled: one free offset, and sums that are 0."""
        return all("plus" not in s.terms and s.terms.get("offset", "free") == "free" for s in self.statements)

    def _problem(self, gram: Gram, statement: Statement, start: Point | None) -> SVMDual:
        rows = self.at if statement.rows is None else self.at[statement.rows]
        return SVMDual(gram, rows=rows, **{**statement.terms, **_clipped(statement.terms, start, len(rows))})

    def _finish(self, solutions: list[Solution | None], starts: list[Point | None]) -> list[Solution]:
        """Solve the remaining problems in the ordinary way."""
        left = [i for i, s in enumerate(solutions) if s is None]
        if left:
            gram = Gram(self.kernel, self.data.points.take(self.at), budget=int(self.data.budget) // 4)
            problems = []
            for i in left:
                statement, size = self.statements[i], len(self.statements[i].terms["linear"])
                terms = {**statement.terms, **_clipped(statement.terms, starts[i], size, self.at)}
                problems.append(SVMDual(gram, rows=statement.rows, classes=statement.classes, **terms))
            for i, solution in zip(left, solve(problems, self.control), strict=True):
                solutions[i] = solution
                claim = solution.certificate
                if claim.stopped != Stop.CONVERGED:
                    warn_unfinished(claim.stopped, claim.relative_gap, self.control.tol)
        return [s for s in solutions if s is not None]

    # -- values -----------------------------------------------------------------------------------------

    def values(self, rows: np.ndarray) -> np.ndarray:
        """Return f of every pair, or of the one function, at some of all points, (points, pairs)."""
        scale = np.ones(len(self.solutions))
        if self.pairs is not None:
            scale = np.array([self.model._scale(s, self.training) for s in self.solutions])
        offsets = np.array([s.offset for s in self.solutions]) / scale
        if self.image is not None:
            return np.asarray(self.image[rows, None] / scale + offsets)
        if self.pairs is not None and len(self.pairs) > 1:
            return self._pair_values(rows, scale, offsets)
        b = self.solutions[0].coefficients
        return np.asarray(self._sums(rows, self.at, b[:, None]) / scale + offsets)

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
        if self.shared is not None:  # by rows of the symmetric matrix, in which neighbours are near in memory
            return np.asarray((B.T @ self.shared.values[np.ix_(centres, rows)]).T)
        points = self.data.points
        return np.asarray(Gram(self.kernel, points.take(rows), points.take(centres)).matvec(B))


def dealt(codes: np.ndarray, random_state: Any) -> np.ndarray:
    """Return the fold of each sample: those of a class are spread over as many folds as they can be.

    The one sample of a class is in none, -1: without it there would be nothing to learn the class from.

    Parameters
    ----------
    codes
        The class number of each sample.
    random_state
        A seed or a generator, as in scikit-learn; None for always the same folds.

    Examples
    --------
    >>> import numpy as np
    >>> folds = dealt(np.array([0, 0, 0, 0, 0, 0, 0, 1, 1, 1]), None)
    >>> np.bincount(folds), len(set(folds[7:]))
    (array([2, 2, 2, 2, 2]), 3)
    """
    mixed = check_random_state(0 if random_state is None else random_state).permutation(len(codes))
    folds = np.empty(len(codes), dtype=np.intp)
    folds[mixed[np.argsort(codes[mixed], kind="stable")]] = np.arange(len(codes)) % _FOLDS
    folds[np.bincount(codes)[codes] == 1] = -1
    return folds


def held_out_values(model: Any, training: Training, labels: np.ndarray, folds: np.ndarray, gram: Gram) -> np.ndarray:
    """Return f of every pair of a classifier at every sample, by a machine that was not fitted to it, (samples, pairs).

    NaN for samples of no fold.

    Parameters
    ----------
    model
        The classifier, whose parameters are checked.
    training, labels
        The samples that count.
    folds
        The fold of each.
    gram
        Their kernel matrix, which all folds share where the budget holds it.
    """
    data = Data(training.points, labels, training.weights, gram.budget)
    control = Control(model.tol, model.max_iter, model.time_limit, precision=model.dtype)
    held = model.max_iter < 0 and 8 * len(labels) ** 2 <= gram.budget
    shared = SharedMatrix(gram, control) if held else None

    def values(fold: int) -> np.ndarray:
        train = np.flatnonzero(folds != fold)
        fit = Fit(data, model._on_part(labels, training.weights, train), training.kernel, train, shared, control)
        fit.solve()
        return fit.values(np.flatnonzero(folds == fold))

    every = np.unique(folds[folds >= 0])
    if held and len(labels) ** 2 > _SERIAL_VALUES:
        try:
            with one_thread_each():
                parts = run(values, every)
        except KeyboardInterrupt:
            control.cancel()  # the folds that other threads are at
            raise
    else:  # small, or so large that each solution uses all cores
        parts = [values(fold) for fold in every]
    count = len(model.classes_)
    held_out = np.full((len(labels), count * (count - 1) // 2), np.nan)
    for fold, part in zip(every, parts, strict=True):
        held_out[folds == fold] = part
    return held_out


def _point(terms: dict[str, Any], solution: Solution) -> Point:
    """Return a solution on its own points as a start for others."""
    bounds = ((solution.plus, terms["upper"]), (solution.minus, terms["lower"]))
    below = all(((part < bound) | (bound == 0)).all() for part, bound in bounds)
    return Point(solution.plus, solution.minus, inside=below, solution=solution)


def _known(terms: dict[str, Any], start: Point | None) -> Solution | None:
    """Return the solution for a smaller C where it solves this problem, too: no coefficient is at its upper bound."""
    if start is None or not start.inside or start.solution is None:
        return None
    known = start.solution
    bounds = ((known.plus, terms["upper"]), (known.minus, terms["lower"]))
    return known if all((part <= bound).all() for part, bound in bounds) else None


def _clipped(terms: dict[str, Any], start: Point | None, size: int, at: np.ndarray | None = None) -> dict[str, Any]:
    """Return a solution for another C as a start, scaled into the box; nothing without one."""
    if start is None:
        return {}
    plus, minus = start.plus, start.minus
    if len(plus) != size and at is not None and len(plus) > size:  # of all points
        plus, minus = plus[at], minus[at]
    if len(plus) != size:
        return {}
    upper, lower = terms["upper"], terms["lower"]
    share = min(share_in_box(plus, minus, upper, lower), 1.0)
    return {"plus": np.minimum(plus * share, upper), "minus": np.minimum(minus * share, lower)}
