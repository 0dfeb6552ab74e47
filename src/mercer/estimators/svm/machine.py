"""The common part of the five kernel machines: from data to dual problems, through the solver, to a fitted model."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.certify import Certificate, Stop, check_svm, combined, with_duality
from mercer.estimators.shared.data import KernelData, Training, chosen_kernel
from mercer.estimators.shared.diagnosis import diagnose
from mercer.estimators.shared.fitting import CallbackSupportMixin, finite, listening, with_callbacks
from mercer.estimators.shared.parameters import FitParameters, with_parameters
from mercer.kernels import Kernel, Precomputed
from mercer.machine.threads import cores
from mercer.points import Points
from mercer.rkhs.functions.sums import Expansion
from mercer.rkhs.functions.vector import functions_of
from mercer.solvers import plan, solve
from mercer.solvers.control import Control, warn_stationary, warn_unfinished
from mercer.solvers.dual.problem import Solution, SVMDual
from mercer.solvers.run import history_tables

_FLAT_SLOPE = 1e-12  # share of the sum of all bounds that a slope of 0 may show by rounding
_COPIES = 256 * 2**20  # bytes of training points, cut out for the class pairs, that are held at a time


@dataclass
class Statement:
    """One dual problem without its kernel matrix: which points take part, and the other terms of `SVMDual`."""

    rows: np.ndarray | None  # None for all
    terms: dict[str, Any]
    classes: tuple[np.ndarray, np.ndarray] | None = None  # whose rows these are


@with_parameters
class SupportVectorMachine(CallbackSupportMixin, FitParameters, KernelData):
    """The base of `SVC`, `NuSVC`, `SVR`, `NuSVR` and `OneClassSVM`."""

    _: KW_ONLY
    tol: float = 1e-3
    shrinking: bool = True
    cache_size: float = 200

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
        """Warn if a problem was left before its end or has no minimum; say the cause where it shows."""
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
        everyone = getattr(self, "_everyone", None)  # not in older model files
        return self._sums_of(X, self.support_, everyone)

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
        if not self._linear:
            raise AttributeError(f"coef_ exists for the linear kernel only; this model's is {self.kernel_!r}.")
        coef = self._coef()
        coef.flags.writeable = False
        return coef

    def _coef(self) -> np.ndarray:
        if not len(self.support_):
            return np.zeros((1, self.n_features_in_))
        return np.asarray(self.dual_coef_ @ Points(self.support_vectors_).vectors)

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
        return int(any(c.stopped != Stop.CONVERGED for c in self._certificates))

    @property
    def history_(self) -> Any:
        """The course of the fit: fields steps, primal, dual, gap, support, seconds; for class pairs a tuple of such."""
        check_is_fitted(self)
        return history_tables(self._history)

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


class SingleMachine(SupportVectorMachine):
    """A model that is one function f."""

    def _terms(self, y: np.ndarray, weights: np.ndarray) -> dict[str, Any]:
        """Return the terms of `SVMDual`, from the targets and the weights of the samples."""
        raise NotImplementedError

    def _fit(self, X: Any, y: Any, target: np.ndarray, data: Any, sample_weight: Any) -> Training:
        training = self._training(data, sample_weight, chosen_kernel(self, data, target, sample_weight))
        solution = self._solve(training, [self._statement(training, target)], X, y)[0]
        b = solution.coefficients
        support = np.flatnonzero(b)
        self._keep(training, data, support, [b[support, None]])
        self.intercept_ = np.array([solution.offset])
        self.n_iter_ = int(solution.certificate.iterations)
        self._half_width = float(solution.half_width)
        both = np.minimum(solution.plus, solution.minus)
        at = np.flatnonzero(both)
        self._both = (training.original(at), both[at])
        return training

    def _statement(self, training: Training, target: np.ndarray) -> Statement:
        if training.rows is not None:
            target = target[training.rows]
        weights = np.ones(len(target)) if training.weights is None else training.weights
        return Statement(None, self._terms(target, weights))

    @finite
    def _values(self, X: Any) -> np.ndarray:
        """Return f at validated points."""
        if self._linear:
            return np.asarray(X @ self.coef_[0], dtype=np.float64) + self.intercept_[0]
        return self._sums(X)[:, 0, 0] + self.intercept_[0]

    @property
    def function_(self) -> Any:
        """The function that was found, as an `RKHSFunction`; for kernel="precomputed" on the places in `support_`."""
        check_is_fitted(self)
        return functions_of(self.kernel_, self._support_points(), self.dual_coef_.T, self.intercept_, single=True)

    def _all_coefficients(self) -> np.ndarray:
        """The coefficient of every sample that was given."""
        b = np.zeros(self.shape_fit_[0])
        b[self.support_] = self.dual_coef_[0]
        return b

    def _rechecked_target(self, data: Any, target: np.ndarray, sample_weight: Any) -> Certificate:
        training = self._training(data, sample_weight, self.kernel_)
        b, both = self._all_coefficients(), np.zeros(self.shape_fit_[0])
        both[self._both[0]] = self._both[1]
        if training.rows is not None:
            b, both = b[training.rows], both[training.rows]
        return self._recheck_one(
            training,
            self._statement(training, target),
            np.maximum(b, 0.0) + both,
            np.maximum(-b, 0.0) + both,
            float(self.intercept_[0]),
            self._half_width,
        )


def central(terms: dict[str, Any], solution: Solution) -> tuple[float, float]:
    """Return offset and half width of a solution, in the middle of those that are optimal (as libsvm does).

    The primal is piecewise linear in the multiplier of each constraint on sums. A support vector that is not at its
    bound fixes the multiplier; without one, the piece at the bottom can be flat.

    Parameters
    ----------
    terms
        The problem, as `SVMDual` takes it.
    solution
        Its solution.
    """
    upper, lower = terms["upper"], terms["lower"]
    kind = terms.get("offset", "free")
    if kind == "none":
        return solution.offset, solution.half_width
    p, m = solution.plus, solution.minus
    if kind == "free" and (_inside(p, upper) or _inside(m, lower)):
        return solution.offset, 0.0
    if np.isinf(upper).any() or np.isinf(lower).any():  # that of a hard margin or tube is in the middle
        return solution.offset, solution.half_width
    width = terms.get("width", 0.0)
    gradient = solution.values - solution.offset + terms["linear"]
    if kind == "free":
        places = np.concatenate([-gradient - width, width - gradient])
        weights = np.concatenate([upper, lower])
        return _flat(places, weights, float(p.sum() - m.sum() - upper.sum()), solution.offset), 0.0
    plus, minus = solution.offset - solution.half_width, -solution.offset - solution.half_width
    if not _inside(p, upper):
        plus = _flat(-gradient - width, upper, float(p.sum() - upper.sum()), plus)
    if not _inside(m, lower):
        minus = _flat(gradient - width, lower, float(m.sum() - lower.sum()), minus)
    return (plus - minus) / 2, -(plus + minus) / 2


def _inside(coefficients: np.ndarray, bound: np.ndarray) -> bool:
    return bool(((coefficients > 0) & (coefficients < bound)).any())


def _flat(places: np.ndarray, weights: np.ndarray, slope: float, minimiser: float) -> float:
    """Return the middle of the flat piece of a convex function, or `minimiser` where there is none.

    Its slope is `slope` on the far left and grows by `weights` at `places`.
    """
    order = np.argsort(places)
    order = order[weights[order] > 0]
    if not len(order):  # bounds so small that they are 0
        return minimiser
    course = slope + np.cumsum(weights[order])
    at = int(np.argmin(np.abs(course)))
    if abs(course[at]) > _FLAT_SLOPE * float(weights.sum()) or at + 1 >= len(order):
        return minimiser
    return float(places[order[at]] + places[order[at + 1]]) / 2
