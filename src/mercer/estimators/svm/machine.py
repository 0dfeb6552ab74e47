"""The common part of the five kernel machines: from data to dual problems, through the solver, to a fitted model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.certify import Certificate, check_svm, combined, with_duality
from mercer.estimators.shared.diagnosis import diagnose
from mercer.estimators.shared.expansion import Expansion
from mercer.estimators.shared.progress import CallbackSupportMixin, listening, with_callbacks
from mercer.estimators.shared.training import KernelData, Training
from mercer.estimators.svm.offsets import central
from mercer.kernels import Kernel, Linear, Precomputed
from mercer.machine.threads import cores
from mercer.points import Points
from mercer.solvers import plan, solve
from mercer.solvers.control import Control, warn_stationary, warn_unfinished
from mercer.solvers.dual.problem import Solution, SVMDual
from mercer.solvers.run import history_table

_COPIES = 256 * 2**20  # bytes of training points, cut out for the class pairs, that are held at a time


@dataclass
class Statement:
    """One dual problem without its kernel matrix: which points take part, and the other terms of `SVMDual`."""

    rows: np.ndarray | None  # None for all
    terms: dict[str, Any]
    classes: tuple[np.ndarray, np.ndarray] | None = None  # whose rows these are


class SupportVectorMachine(CallbackSupportMixin, KernelData):
    """The base of `SVC`, `NuSVC`, `SVR`, `NuSVR` and `OneClassSVM`."""

    # -- the solver -------------------------------------------------------------------------------------

    @with_callbacks
    def _solve(self, training: Training, statements: list[Statement], X: Any, y: Any) -> list[Solution]:
        """Solve the dual problems, those of many class pairs in batches whose copies of the points fit in memory."""
        starts = self._starts(statements)
        metadata = {} if training.weights is None else {"sample_weight": training.weights}
        with listening(self, X, y, metadata) as report:
            control = Control(self.tol, self.max_iter, self.time_limit, self.checkpoint, report, precision=self.dtype)
            solutions: list[Solution] = []
            gram = self._gram(training)
            for number, (begin, end) in enumerate(self._batches(training, statements)):
                if self.checkpoint is not None and len(statements) > 1:
                    control = replace(control, checkpoint=Path(f"{self.checkpoint}.{number}"))
                problems = [
                    SVMDual(gram, rows=s.rows, classes=s.classes, **{**s.terms, **starts[begin + i]})
                    for i, s in enumerate(statements[begin:end])
                ]
                if number == 0:
                    self.plan_ = plan(problems, control)
                solutions += solve(problems, control)
        for statement, solution in zip(statements, solutions, strict=True):
            solution.offset, solution.half_width = central(statement.terms, solution)
        self._certificates = with_duality(gram, [s.certificate for s in solutions], [s.rows for s in statements])
        self._seconds = control.seconds
        self._history = [list(map(tuple, s.history)) for s in solutions]
        if self.warm_start:
            self._warm = [(s.plus, s.minus) for s in solutions]
        return solutions

    def _batches(self, training: Training, statements: list[Statement]) -> list[tuple[int, int]]:
        """Return the first and the last problem of each batch."""
        if len(statements) == 1 or self.checkpoint is not None:  # each to its own file
            return [(i, i + 1) for i in range(len(statements))]
        data = training.points.data
        wide = data.shape[1] if getattr(data, "ndim", 1) == 2 else 8
        limit = _COPIES // (16 * wide)
        batches, begin, held = [], 0, 0
        for i, statement in enumerate(statements):
            held += 32 if statement.rows is None else max(32, len(statement.rows))
            if held > limit and i + 1 - begin >= 4 * cores():
                batches.append((begin, i + 1))
                begin, held = i + 1, 0
        return [*batches, (begin, len(statements))] if begin < len(statements) else batches

    def _starts(self, statements: list[Statement]) -> list[dict[str, np.ndarray]]:
        """Return feasible starts from the previous fit, where its problems had the same shapes."""
        previous = getattr(self, "_warm", None) if self.warm_start else None
        if previous is None or len(previous) != len(statements):
            return [{}] * len(statements)
        return [
            _warm_start(s.terms, *old) if len(old[0]) == len(s.terms["linear"]) else {}
            for s, old in zip(statements, previous, strict=True)
        ]

    def _warn_unfinished(self, training: Training, data: Any, target: Any = None) -> None:
        """Warn, with the cause as far as it can be seen, if a problem was left before its end or has no minimum."""
        if all(c.finished for c in self._certificates):
            if why := next((c.stationary for c in self._certificates if c.stationary), ""):
                warn_stationary(training.kernel, why)
            return
        C = getattr(self, "C", None)
        if C is not None and training.weights is not None:
            C = C * float(training.weights.max())
        regression = self._numeric_target and target is not None
        cause = diagnose(
            training.points.data if self._kind in ("similarities", "function") else data,
            training.kernel,
            labels=None if regression else target,
            C=C,
            unit=float(np.std(target)) if regression else 1.0,
            names=getattr(self, "feature_names_in_", None),
        )
        claim = self.certificate_
        said = "" if cause is None else f"What the data say: {cause}"
        warn_unfinished(claim.stopped, claim.relative_gap, self.tol, said)

    # -- the model --------------------------------------------------------------------------------------

    def _keep(self, training: Training, data: Any, support: np.ndarray, blocks: list[np.ndarray]) -> None:
        """Set the attributes that describe the solution by its support vectors."""
        self.support_ = training.original(support).astype(np.int32)
        self.shape_fit_ = tuple(data.shape) if hasattr(data, "shape") else (len(data),)
        self.dual_coef_ = np.ascontiguousarray(np.concatenate(blocks).T)
        if self._kind == "similarities":
            self.support_vectors_ = np.empty((0, 0))
            self.kernel_: Kernel = Precomputed(data[np.ix_(self.support_, self.support_)])
        else:
            self.support_vectors_ = _rows_of(data, self.support_)
            self.kernel_ = self._resolved(data) if self._kind == "function" else training.kernel
        self._everyone = data if self._kind == "function" else None  # a function is asked about all training points
        single = self._kind == "vectors" and all(c.precision == "float32" for c in self._certificates)
        self._expansion = Expansion(self.kernel_, self.support_vectors_, blocks, single)

    def _sums(self, X: Any) -> np.ndarray:
        """Return the kernel sums of each block at validated points, (points, blocks, functions)."""
        if self._kind == "similarities":
            return self._expansion.sums_of_rows(X[:, self.support_])
        if self._kind == "function":
            values = self._function_values(X, self._everyone, self.support_)
            return np.concatenate([self._expansion.sums_of_rows(some) for some in values])
        return self._expansion.sums(X)

    def _support_points(self) -> Any:
        """The support vectors, as `kernel_` compares them."""
        return np.arange(len(self.support_)) if self._kind == "similarities" else self.support_vectors_

    @property
    def n_support_(self) -> np.ndarray:
        """The number of support vectors (of each class, for a classifier)."""
        check_is_fitted(self)
        return np.array([len(block) for block in self._expansion.blocks], dtype=np.int32)

    @property
    def coef_(self) -> np.ndarray:
        """The weights of the features, w = sum_i b_i x_i, for the linear kernel."""
        check_is_fitted(self)
        if not isinstance(self.kernel_, Linear):
            raise AttributeError(f"coef_ exists for the linear kernel only; this model's is {self.kernel_!r}.")
        coef = self._coef()
        coef.flags.writeable = False
        return coef

    def _coef(self) -> np.ndarray:
        if not len(self.support_):
            return np.zeros((1, self.n_features_in_))
        return np.asarray(self.dual_coef_ @ _plain(self.support_vectors_))

    # -- what a fit says about itself -------------------------------------------------------------------

    @property
    def certificate_(self) -> Certificate:
        """Primal, dual, gap and the worst KKT residual of the fit; `.verify(X, y)` recomputes them."""
        check_is_fitted(self)
        return combined(self._certificates, seconds=self._seconds, check=Recheck(self))

    @property
    def fit_status_(self) -> int:
        """0 where the fit has reached `tol`, 1 where it ended before, as in scikit-learn."""
        check_is_fitted(self)
        return int(any(c.stopped != "converged" for c in self._certificates))

    @property
    def history_(self) -> Any:
        """The course of the fit: fields steps, primal, dual, gap, support, seconds; for class pairs a tuple of such."""
        check_is_fitted(self)
        tables = tuple(history_table(rows) for rows in self._history)
        return tables[0] if len(tables) == 1 else tables

    def _rechecked(self, X: Any, y: Any, sample_weight: Any) -> Certificate:
        raise NotImplementedError

    def _recheck_one(
        self, training: Training, statement: Statement, plus: np.ndarray, minus: np.ndarray, offset: float, half: float
    ) -> Certificate:
        terms = {k: v for k, v in statement.terms.items() if k not in ("plus", "minus", "offset")}
        kind = statement.terms.get("offset", "free")
        sums = [float(np.sum(statement.terms.get(side, 0.0))) for side in ("plus", "minus")]
        return check_svm(
            training.kernel,
            training.points.data if statement.rows is None else training.points.take(statement.rows).data,
            plus=plus,
            minus=minus,
            offset=offset,
            offset_kind=kind,
            half_width=half,
            total=sums[0] - sums[1] if kind == "free" else sums,
            tol=self.tol,
            **terms,
        )


class Recheck:
    """Recomputes the certificate of a fitted model from its training data."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, X: Any, y: Any = None, sample_weight: Any = None) -> Certificate:
        return self.model._rechecked(X, y, sample_weight)


def filled(upper: np.ndarray, total: float) -> np.ndarray:
    """Return a point of the box 0 <= a <= upper whose sum is `total`: the first ones full, then zeros."""
    before = np.cumsum(upper) - upper
    start = np.clip(total - before, 0.0, upper)
    last = int(np.flatnonzero(start)[-1]) if start.any() else 0
    start[last] = min(upper[last], start[last] + (total - start.sum()))  # what the running sum has lost by rounding
    return start


def _warm_start(terms: dict[str, Any], plus: np.ndarray, minus: np.ndarray) -> dict[str, np.ndarray]:
    """Return the previous coefficients, moved into the new box and onto the new sums."""
    upper, lower = (np.broadcast_to(terms[side], len(plus)) for side in ("upper", "lower"))
    plus, minus = np.clip(plus, 0.0, upper), np.clip(minus, 0.0, lower)
    if terms.get("offset", "free") == "none":
        return {"plus": plus, "minus": minus}
    sums = [float(np.sum(terms.get(side, 0.0))) for side in ("plus", "minus")]
    if terms.get("offset", "free") == "free" and not any(sums):
        sums = [min(plus.sum(), minus.sum())] * 2
    return {"plus": _with_sum(plus, upper, sums[0]), "minus": _with_sum(minus, lower, sums[1])}


def _with_sum(a: np.ndarray, upper: np.ndarray, total: float) -> np.ndarray:
    seen = float(a.sum())
    if seen == total:
        return a
    if seen > total:
        return a * (total / seen)
    room = upper - a
    return a + room * ((total - seen) / room.sum())


def _rows_of(data: Any, index: np.ndarray) -> Any:
    """Return some of the training samples, in the type they were given in."""
    if len(index):
        return Points(data).take(index).data
    return data[:0]


def _plain(X: Any) -> Any:
    return X if hasattr(X, "shape") and not hasattr(X, "columns") else np.asarray(X, dtype=np.float64)
