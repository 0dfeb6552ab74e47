"""Subgradient descent on the SVM objective as an estimator (M5)."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.certify import Certificate, combined, product
from mercer.estimators.online import OnlineClassifier
from mercer.kernels.base import check_integer, check_number
from mercer.solvers.control import Control, warn_unfinished
from mercer.solvers.iterate import Vector
from mercer.solvers.pegasos import objectives, pegasos


class Pegasos(OnlineClassifier):
    r"""The support vector machine by stochastic subgradient descent, with steps 1 / (lambda t).

    .. math:: \min_f \ \tfrac{\lambda}{2} \|f\|^2 + \frac1n \sum_i \max(0, 1 - y_i f(x_i))

    This is the soft margin with C = 1 / (lambda n): C times lambda of its objective is the one above. The descent comes
    close quickly and then slowly closer; `SVC` and `LinearSVC` reach the minimum. More than two classes: each against
    the rest.

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
    history_ : list of Watched
        (epoch, step, primal, dual, seconds) at each look; a list of such lists for more than two classes.
    n_iter_ : int
        Steps made, of the machine that made most.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from mercer.estimators.pegasos import Pegasos
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = Pegasos(lam=0.01, random_state=0, tol=0.05).fit(scale(X), y)
    >>> model.score(scale(X), y) > 0.97, model.certificate_.converged
    (True, True)
    """

    def __init__(
        self,
        lam: float = 1e-3,
        kernel: Any = None,
        *,
        solver: Literal["pegasos", "subgradient"] = "pegasos",
        batch_size: int = 1,
        fit_intercept: bool = False,
        average: bool = False,
        project: bool = False,
        max_epochs: int = 100,
        tol: float = 1e-2,
        evaluate: Literal["epoch", "log"] = "epoch",
        shuffle: bool = True,
        random_state: Any = None,
        time_limit: float | None = None,
    ) -> None:
        self.lam = lam
        self.kernel = kernel
        self.solver = solver
        self.batch_size = batch_size
        self.fit_intercept = fit_intercept
        self.average = average
        self.project = project
        self.max_epochs = max_epochs
        self.tol = tol
        self.evaluate = evaluate
        self.shuffle = shuffle
        self.random_state = random_state
        self.time_limit = time_limit

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from points and their classes.

        Parameters
        ----------
        X
            A matrix (dense or sparse), or whatever the kernel compares.
        y
            The class of each point.
        """
        self._check_parameters()
        X, codes = self._read(X, y)
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
            )
            for signs, random in zip(labels, self._generators(len(labels), bool(self.shuffle)), strict=True)
        ]
        c = np.stack([run.coefficients for run in runs])
        offset = c.sum(axis=1) * bool(self.fit_intercept)
        if gram is None:
            vector = Vector(X, constant=False)
            self._keep_vectors(np.stack([vector.combine(row) for row in c]), offset)
        else:
            self._keep_coefficients(gram, c, offset)
        self._certificates, self._coefficients = [run.certificate for run in runs], c
        self.history_ = [run.history for run in runs] if len(runs) > 1 else runs[0].history
        self.n_iter_ = max(run.certificate.iterations for run in runs)
        certificate = self.certificate_
        if certificate.stopped != "converged":
            warn_unfinished(
                certificate.stopped,
                certificate.relative_gap,
                self.tol,
                "Raise max_epochs or lam; SVC and LinearSVC reach small gaps sooner.",
            )
        return self

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
        for name, allowed in (("solver", ("pegasos", "subgradient")), ("evaluate", ("epoch", "log"))):
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{name} of Pegasos must be {' or '.join(map(repr, allowed))}; it is {getattr(self, name)!r}."
                )


class Recheck:
    """Recomputes the objectives in float64 from the coefficients, without the solver's arithmetic."""

    def __init__(self, model: Pegasos) -> None:
        self.model = model

    def __call__(self, X: Any, y: Any) -> Certificate:
        model, c = self.model, self.model._coefficients
        if len(y) != c.shape[1]:
            raise ValueError(f"the model was fitted to {c.shape[1]} points; X and y have {len(y)}.")
        labels = model._signs(np.searchsorted(model.classes_, np.asarray(y)))
        kernel = getattr(model, "kernel_", None)

        def times(row: np.ndarray) -> np.ndarray:
            constant = bool(model.fit_intercept) * float(row.sum())
            if kernel is not None:
                return product(kernel, X, row) + constant
            matrix = X.astype(np.float64) if hasattr(X, "astype") else np.asarray(X, dtype=np.float64)
            return np.asarray(matrix @ (matrix.T @ row)).ravel() + constant

        parts = [
            objectives(times, row, signs, float(model.lam), tol=model._certificates[0].tol, solver="independent check")
            for row, signs in zip(c, labels, strict=True)
        ]
        return combined(parts)
