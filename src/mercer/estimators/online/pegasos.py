"""Subgradient descent on the SVM objective as an estimator (M5)."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.certify import Certificate, combined, product, relative_gap, why_indefinite, with_duality, without_duality
from mercer.estimators.online.base import OnlineClassifier
from mercer.estimators.shared.fitting import whole_fit
from mercer.estimators.shared.margins import online_table, zones
from mercer.estimators.shared.parameters import is_real, with_parameters
from mercer.estimators.svm.machine import Recheck
from mercer.kernels.base import check_integer, check_number
from mercer.points import Points
from mercer.solvers.control import Control, warn_stationary, warn_unfinished
from mercer.solvers.online.pegasos import Watched, objectives, pegasos
from mercer.solvers.online.perceptron import Vector
from mercer.solvers.run import history_tables


@with_parameters
class Pegasos(OnlineClassifier):
    r"""The support vector machine by stochastic subgradient descent, with steps 1 / (lambda t).

    .. math:: \min_f \ \tfrac{\lambda}{2} \|f\|^2 + \frac{1}{\sum_i s_i} \sum_i s_i \max(0, 1 - y_i f(x_i))

    This is the soft margin with C = 1 / (lambda sum s), or 1 / (lambda n) without weights: lambda times its objective
    is the one above. The descent comes close quickly and then slowly closer; `SVC` and `LinearSVC` reach the minimum.
    More than two classes: each against the rest.

    Parameters
    ----------
    lam
        lambda, the weight of the penalty.
    kernel
        None for a linear model of the features (dense or sparse), a kernel object, or a name as for `SVC` (with its
        defaults).
    solver
        "pegasos": each step looks at `batch_size` points. "subgradient": each step looks at all of them, the plain
        method of the lectures, whose steps one can watch in `history_`.
    batch_size
        Points per step.
    fit_intercept
        Whether f has an offset. It is the weight of a feature that is constantly 1 and is penalised like the others
        (the kernel becomes k + 1), which keeps the rate of convergence and the duality gap of the method; `SVC` has an
        offset that is not penalised. The notes state the method without one.
    average
        Whether the model is the mean of all iterates rather than the last one.
    project
        Whether each iterate is scaled back to norm 1 / sqrt(lambda), within which the solution lies.
    max_epochs
        Passes over the data at most (steps, for "subgradient").
    tol
        The relative duality gap at which to stop.
    evaluate
        When to look at the objective: "epoch", after each pass; "log", after the first, second, fourth, eighth, ...
    shuffle
        Whether the points are visited in a new random order in each pass.
    random_state
        The source of those orders.
    time_limit
        Seconds after which to stop; None for no limit.
    class_weight
        Weights by class as a dictionary, "balanced", or None: s of a point is multiplied by that of its class. With
        more than two classes, in the machine of that class, whose other points weigh 1.
    learning_rate
        The step lengths: "optimal" for 1 / (lambda t), "invscaling" for 1 / sqrt(lambda t) up to 1 / lambda, a number
        for the same at each step, or a function of t = 1, 2, ... They must be below 1 / lambda. The guarantee of the
        method is for the first; the certificate holds for all.

    Attributes
    ----------
    coef_, intercept_
        w and b of each machine (linear form).
    dual_coef_, support_
        The coefficients of the kernel functions, and the points they belong to (kernel form).
    function_
        f as an `RKHSFunction`; an `RKHSVector`, one per class, for more than two.
    certificate_ : Certificate
        The objective above, its dual at the coefficients of the model, and their gap.
    history_
        A table of looks with the fields steps, primal, dual, gap, support and seconds; for more than two classes a
        tuple, one for each.
    n_iter_ : int
        Steps made, of the machine that made most.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from mercer.estimators.online.pegasos import Pegasos
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = Pegasos(lam=0.01, random_state=0, tol=0.05).fit(scale(X), y)
    >>> model.score(scale(X), y) > 0.97, model.certificate_.converged
    (True, True)
    """

    lam: float = 1e-3
    kernel: Any = None
    _: KW_ONLY
    solver: Literal["pegasos", "subgradient"] = "pegasos"
    batch_size: int = 1
    fit_intercept: bool = False
    average: bool = False
    project: bool = False
    max_epochs: int = 100
    tol: float = 1e-2
    evaluate: Literal["epoch", "log"] = "epoch"
    shuffle: bool = True
    random_state: Any = None
    time_limit: float | None = None
    class_weight: Any = None
    learning_rate: Any = "optimal"

    _former: ClassVar[dict[str, str]] = {"history_": "_history"}  # what model files of earlier versions call it

    @whole_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from points and their classes.

        Parameters
        ----------
        X
            A matrix (dense or sparse), or whatever the kernel compares.
        y
            The class of each point.
        sample_weight
            A weight s for each point, at least 0; 0 leaves the point out.
        """
        self._check_parameters()
        X, codes = self._read(X, y)
        weights, rows = self._steps(codes, sample_weight)
        n = len(codes)
        if rows is not None:
            X, codes = Points(X).take(rows).data, codes[rows]
        labels = self._signs(codes)
        gram = self._gram(X)
        batch = len(codes) if self.solver == "subgradient" else int(self.batch_size)
        control = Control(tol=self.tol, time_limit=self.time_limit)
        runs = [
            pegasos(
                self._fresh(X, gram),
                signs,
                float(self.lam),
                batch=batch,
                max_epochs=int(self.max_epochs),
                project=bool(self.project),
                average=bool(self.average),
                random=random,
                evaluate=self.evaluate,
                control=control,
                weights=s / s.mean(),
                rate=self._rate(),
            )
            for signs, random, s in zip(labels, self._generators(len(labels), bool(self.shuffle)), weights, strict=True)
        ]
        c = np.stack([run.coefficients for run in runs])
        offset = c.sum(axis=1) * bool(self.fit_intercept)
        if gram is None:
            vector = Vector(X, constant=False)
            self._keep_vectors(np.stack([vector.combine(row) for row in c]), offset)
        else:
            self._keep_coefficients(gram, c, offset)
            self.support_ = self.support_ if rows is None else rows[self.support_]
        claims = [run.certificate for run in runs]
        self._certificates = claims if gram is None else with_duality(gram, claims, [None] * len(claims))
        self._coefficients = np.zeros((len(runs), n))
        self._coefficients[:, slice(None) if rows is None else rows] = c
        self._history = [run.history for run in runs]
        self.n_iter_ = max(run.certificate.iterations for run in runs)
        certificate = self.certificate_
        if not certificate.finished:
            warn_unfinished(
                certificate.stopped,
                certificate.relative_gap,
                self.tol,
                "Raise max_epochs or lam; SVC and LinearSVC reach small gaps sooner.",
            )
        elif certificate.stationary:
            warn_stationary(self.kernel_, certificate.stationary)
        return self

    def _shares(self, codes: np.ndarray, sample_weight: Any) -> np.ndarray:
        """Return the weight of each point in each machine, 0 for those left out, in units of their mean."""
        weights, rows = self._steps(codes, sample_weight)
        s = np.zeros((len(weights), len(codes)))
        s[:, slice(None) if rows is None else rows] = weights
        return s / s.mean(axis=1, keepdims=True)

    def _rate(self) -> Any:
        """Return the step length as a function of t."""
        rate, lam = self.learning_rate, float(self.lam)
        if isinstance(rate, str):
            return {"optimal": lambda t: 1.0 / (lam * t), "invscaling": lambda t: 1.0 / max(lam, math.sqrt(lam * t))}[
                rate
            ]
        return rate if callable(rate) else lambda t: float(rate)

    @property
    def history_(self) -> Any:
        """The looks at the descent as a table; for more than two classes a tuple."""
        check_is_fitted(self, "_history")
        parts = [self._history] if isinstance(self._history[0], Watched) else self._history
        return history_tables(
            [
                (w.step, w.primal, w.dual, relative_gap(w.primal - w.dual, w.primal, w.dual), w.support, w.seconds)
                for w in rows
            ]
            for rows in parts
        )

    def zones(self, X: Any) -> np.ndarray:
        """Return the zone of each point (M10), as `SVC.zones` does: of each class where there are more than two.

        Parameters
        ----------
        X
            Points of the kind the model was fitted to.
        """
        return zones(self.decision_function(X))

    def margins(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Return what complementary slackness says of each sample (M7): the table of `LinearSVC.margins`.

        A descent comes close to the conditions only; `kkt` says how close.

        Parameters
        ----------
        X, y, sample_weight
            What the model was fitted to. For other samples alpha and kkt are NaN, and the role follows from the margin.
        """
        return online_table(self, X, y, sample_weight)

    @property
    def certificate_(self) -> Certificate:
        """The objective, its dual and their gap; `.verify(X, y)` recomputes them by other code."""
        check_is_fitted(self, "_certificates")
        return combined(self._certificates, check=Recheck(self))

    def _check_parameters(self) -> None:
        self._check_kernel()
        check_number(self, "lam", self.lam)
        check_number(self, "tol", self.tol)
        check_integer(self, "max_epochs", self.max_epochs, 1)
        check_integer(self, "batch_size", self.batch_size, 1)
        if self.time_limit is not None:
            check_number(self, "time_limit", self.time_limit)
        rate = self.learning_rate
        named = isinstance(rate, str) and rate in ("optimal", "invscaling")
        if not named and not callable(rate) and not (is_real(rate) and 0 < rate < 1 / self.lam):
            raise ValueError(
                f"learning_rate={rate!r} of Pegasos must be 'optimal', 'invscaling', a number > 0 and below 1 / lam, "
                "or a function of the number of the step."
            )
        for name, allowed in (("solver", ("pegasos", "subgradient")), ("evaluate", ("epoch", "log"))):
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{name} of Pegasos must be {' or '.join(map(repr, allowed))}; it is {getattr(self, name)!r}."
                )

    def _rechecked(self, X: Any, y: Any, sample_weight: Any) -> Certificate:
        """Return the objectives in float64 from the coefficients, without the solver's arithmetic."""
        c = self._coefficients
        if len(y) != c.shape[1]:
            raise ValueError(f"the model was fitted to {c.shape[1]} points; X and y have {len(y)}.")
        codes = self._codes(y)
        shares, labels = self._shares(codes, sample_weight), self._signs(codes)
        kernel = getattr(self, "kernel_", None)

        def times(row: np.ndarray) -> np.ndarray:
            constant = bool(self.fit_intercept) * float(row.sum())
            if kernel is not None:
                return product(kernel, X, row) + constant
            matrix = X.astype(np.float64) if hasattr(X, "astype") else np.asarray(X, dtype=np.float64)
            return np.asarray(matrix @ (matrix.T @ row)).ravel() + constant

        parts = [
            objectives(times, row, signs, float(self.lam), s, tol=self._certificates[0].tol, solver="independent check")
            for row, signs, s in zip(c, labels, shares, strict=True)
        ]
        why = "" if kernel is None else why_indefinite(kernel, X)
        return combined([without_duality(part, why) for part in parts])
