"""The base of the models of the representer theorem (M13): problems on one kernel matrix, sums of kernels as values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.certify import Certificate, combined, with_duality
from mercer.certify.representer import check_representer
from mercer.estimators.shared.data import FAR, KernelData, Training, read_targets
from mercer.estimators.shared.fitting import CallbackSupportMixin, finite, listening, with_callbacks
from mercer.estimators.shared.parameters import FitParameters, Rules, positive, with_parameters
from mercer.estimators.svm.machine import Recheck
from mercer.gram import Gram
from mercer.losses import Squared, SquaredNorm
from mercer.points import Points
from mercer.rkhs.functions.sums import Expansion
from mercer.rkhs.functions.vector import functions_of
from mercer.solvers.control import Control, warn_stationary, warn_unfinished
from mercer.solvers.representer.engine import Minimiser, Representer, plan, solve
from mercer.solvers.run import history_tables

SYSTEM_RULES: Rules = {  # of models that are linear systems
    "solver": (lambda v: isinstance(v, str) and v in ("auto", "cholesky", "cg"), "'auto', 'cholesky' or 'cg'"),
    "residual": (lambda v: positive(v) and v < 1, "a relative residual with 0 < residual < 1"),
}


@dataclass
class Part:
    """One problem of a model, without its kernel matrix: one output, one class against the rest, one quantile."""

    y: np.ndarray
    loss: Any
    penalty: Any
    weights: np.ndarray | None = None


class RepresenterModel(CallbackSupportMixin, KernelData):
    """Functions f = sum_i a_i k(x_i, .) + b, each of which minimises a sum of losses plus a penalty on its norm."""

    _numeric_target: ClassVar[bool] = True
    solver: Any = "auto"

    # -- what a model defines ---------------------------------------------------------------------------

    def _parts(self, target: np.ndarray, weights: np.ndarray | None) -> list[Part]:
        """Return the problems, from the targets and weights of the samples that count."""
        raise NotImplementedError

    def _target(self, data: Any, y: Any) -> np.ndarray:
        """Return targets of a fitted model, as `_parts` reads them."""
        return read_targets(self, data, y, *self._reads_targets())

    # -- fit --------------------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, data: Any, target: np.ndarray, sample_weight: Any) -> None:
        """Solve the problems, set the attributes of the fit, and warn where it has ended early."""
        training = self._training(data, sample_weight)
        minimisers = self._solve(training, counted(training, target), X, y)
        coefficients = np.concatenate([columns_of(m.coefficients) for m in minimisers], axis=1)
        offsets = np.concatenate([np.atleast_1d(np.asarray(m.offset, dtype=np.float64)) for m in minimisers])
        self._keep(training, data, coefficients, offsets, flat=coefficients.shape[1] == 1 and target.ndim == 1)
        self.n_iter_ = max(c.iterations for c in self._certificates)
        unfinished = [c for c in self._certificates if not c.finished]
        if unfinished:
            worst = max(unfinished, key=lambda c: c.relative_gap)
            warn_unfinished(worst.stopped, worst.relative_gap, worst.tol)
        elif (why := self._certificates[0].stationary).startswith("the kernel"):  # the rest has been chosen as it is
            warn_stationary(self.kernel_, why)

    @with_callbacks  # a warning raised inside would name a line of scikit-learn
    def _solve(self, training: Training, target: np.ndarray, X: Any, y: Any) -> list[Minimiser]:
        with self._controlled(training, X, y, self.tol) as control:
            starts = getattr(self, "_warm", None) if self.warm_start else None
            gram = self._gram(training)
            minimisers = self._minimised(gram, target, training.weights, control, starts)
        self._certificates = with_duality(gram, [m.certificate for m in minimisers], [None] * len(minimisers))
        self._history = [list(map(tuple, m.history)) for m in minimisers]
        self._strengths = [m.strength for m in minimisers]
        self._seconds = control.seconds
        if self.warm_start:
            self._warm = [m.coefficients for m in minimisers]
        return minimisers

    @contextmanager
    def _controlled(self, training: Training, X: Any, y: Any, tol: float) -> Iterator[Control]:
        """Yield the control of the solver, which tells whoever listens to this fit."""
        metadata = {} if training.weights is None else {"sample_weight": training.weights}
        with listening(self, X, y, metadata, tol) as report:
            yield Control(tol, self.max_iter, self.time_limit, self.checkpoint, report, precision=self.dtype)

    @property
    def penalty_strengths(self) -> list[float]:
        """The strength s of the penalty s |f|^2 / 2 of each function of a fitted model."""
        return self._strengths

    def _minimised(
        self,
        gram: Gram,
        target: np.ndarray,
        weights: np.ndarray | None,
        control: Control,
        starts: list[np.ndarray] | None,
    ) -> list[Minimiser]:
        return self._each(gram, self._parts(target, weights), control, starts)

    def _each(
        self, gram: Gram, parts: list[Part], control: Control, starts: list[np.ndarray] | None
    ) -> list[Minimiser]:
        """Solve the problems one after the other; each leaves its knowledge of the matrix to the next."""
        minimisers: list[Minimiser] = []
        for number, part in enumerate(parts):
            if self.checkpoint is not None and len(parts) > 1:
                control = replace(control, checkpoint=Path(f"{self.checkpoint}.{number}"))
            intercept = bool(self.fit_intercept)
            problem = Representer(gram, part.y, part.loss, part.penalty, part.weights, intercept)
            start = starts[number] if starts is not None and len(starts) == len(parts) else None
            if start is not None and start.shape == _shape(problem):  # of a fit to as many points and classes
                problem.start = start
            if number == 0:
                self.plan_ = plan(problem, control, self.solver)
            minimisers.append(solve(problem, control, self.solver))
        return minimisers

    # -- the model --------------------------------------------------------------------------------------

    def _keep(self, training: Training, data: Any, coefficients: np.ndarray, offsets: np.ndarray, flat: bool) -> None:
        """Set the attributes that describe the functions; samples of weight 0 have coefficient 0."""
        self.shape_fit_ = tuple(data.shape) if hasattr(data, "shape") else (len(data),)
        if training.rows is not None:
            everyone = np.zeros((self.shape_fit_[0], coefficients.shape[1]))
            everyone[training.rows] = coefficients
            coefficients = everyone
        self.kernel_ = self._resolved(data) if self._kind == "function" else training.kernel
        self.X_fit_ = data
        self.dual_coef_ = coefficients[:, 0] if flat else coefficients
        self.intercept_: Any = float(offsets[0]) if flat else offsets
        self._support = np.flatnonzero(coefficients.any(axis=1))
        everyone_counts = len(self._support) == len(coefficients)
        centres = data
        if self._kind != "similarities" and not everyone_counts and len(self._support):
            centres = Points(data).take(self._support).data
        single = self._kind == "vectors" and all(c.precision == "float32" for c in self._certificates)
        self._expansion = Expansion(self.kernel_, centres, [coefficients[self._support]], single)

    @property
    def _columns_(self) -> np.ndarray:
        """The coefficients, one column for each function."""
        return columns_of(self.dual_coef_)

    @finite
    def _values(self, X: Any) -> np.ndarray:
        """Return the functions at validated points, (points, functions)."""
        if self._linear:
            return np.asarray(X @ np.atleast_2d(self.coef_).T, dtype=np.float64) + self.intercept_
        return self._sums_of(X, self._support, self.X_fit_)[:, 0] + self.intercept_

    @property
    def coef_(self) -> np.ndarray:
        """The weights of the features, w = sum_i a_i x_i, for the linear kernel: one row for each function."""
        check_is_fitted(self)
        if not self._linear:
            raise AttributeError(f"coef_ exists for the linear kernel only; this model's is {self.kernel_!r}.")
        coef = np.asarray((self.X_fit_.T @ self._columns_).T, dtype=np.float64)
        return coef[0] if self.dual_coef_.ndim == 1 else coef

    @property
    def function_(self) -> Any:
        """What was found, as an `RKHSFunction`; an `RKHSVector` for several outputs, classes or quantiles.

        For kernel="precomputed" its points are the numbers of the training samples.
        """
        check_is_fitted(self)
        points = np.arange(self.shape_fit_[0]) if self._kind == "similarities" else self.X_fit_
        return functions_of(self.kernel_, points, self._columns_, self.intercept_, self.dual_coef_.ndim == 1)

    # -- what a fit says about itself -------------------------------------------------------------------

    @property
    def certificate_(self) -> Certificate:
        """Primal, dual and gap of the fit, `.parts` of each problem; `.verify(X, y)` recomputes them."""
        check_is_fitted(self)
        return combined(self._certificates, seconds=self._seconds, check=Recheck(self))

    @property
    def history_(self) -> Any:
        """The course of the fit, with the fields of `SVC.history_`; for several problems a tuple."""
        check_is_fitted(self)
        return history_tables(self._history, known="primal")

    def _rechecked(self, X: Any, y: Any, sample_weight: Any) -> Certificate:
        data = self._read_new(X)
        target = self._target(data, y)
        training = self._training(data, sample_weight, self.kernel_)
        parts = self._parts(counted(training, target), training.weights)
        everyone = self._columns_ if training.rows is None else self._columns_[training.rows]
        offsets = np.atleast_1d(self.intercept_)
        width = everyone.shape[1] // len(parts)  # functions of each problem: 1, or one for each class
        claims = []
        for i, part in enumerate(parts):
            columns = slice(i * width, (i + 1) * width) if width > 1 else i
            unit = _unit(part)
            claims.append(
                check_representer(
                    training.kernel,
                    training.points.data,
                    part.y / unit,
                    coefficients=everyone[:, columns] / unit,
                    offset=offsets[columns] / unit,
                    loss=part.loss,
                    penalty=part.penalty,
                    weights=part.weights,
                    intercept=bool(self.fit_intercept),
                    strength=self._strengths[i],
                    tol=self._certificates[0].tol,
                )
            )
        return combined(claims)


@with_parameters
class LossModel(FitParameters, RepresenterModel):
    """A representer model of one loss: the parameters that these share."""

    _: KW_ONLY
    fit_intercept: bool = True
    solver: str = "auto"


def counted(training: Training, target: np.ndarray) -> np.ndarray:
    """Return the targets of the samples that count."""
    return target if training.rows is None else target[training.rows]


def _unit(part: Part) -> float:
    """Return the unit in which the objectives of a ridge problem are stated: 1, unless their squares leave float64."""
    largest = float(np.abs(part.y).max())
    quadratic = isinstance(part.loss, Squared) and isinstance(part.penalty, SquaredNorm)
    return largest if quadratic and (largest > FAR or 0 < largest < 1 / FAR) else 1.0


def _shape(problem: Representer) -> tuple[int, ...]:
    return (len(problem.y),) if problem.classes is None else (len(problem.y), problem.classes)


def columns_of(a: np.ndarray) -> np.ndarray:
    """Return a vector as a matrix of one column, and a matrix as it is."""
    return a[:, None] if a.ndim == 1 else a
