"""The perceptron as an estimator (M1)."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.online.base import OnlineClassifier, not_at_rest
from mercer.estimators.shared.fitting import whole_fit
from mercer.estimators.shared.parameters import Unnecessary, warn_unnecessary, with_parameters
from mercer.kernels.base import check_integer, check_number
from mercer.points import Points
from mercer.solvers.online.perceptron import Coefficients, Mistakes, Vector, perceptron
from mercer.solvers.run import history_tables


@with_parameters
class Perceptron(OnlineClassifier):
    r"""Rosenblatt's perceptron: visit the points in turn, and learn from mistakes alone.

    .. math:: \text{if } y_i f(x_i) \le 0: \quad f \leftarrow f + \eta s_i \, y_i \, k(x_i, \cdot)

    Points that can be separated are separated after finitely many mistakes, at most (R / gamma)² (Novikoff 1962). Which
    separating function comes out depends on the order of the points. More than two classes: each against the rest.

    Parameters
    ----------
    kernel
        None for the primal form, a vector w; or a kernel object, or a name as for `SVC` (with its defaults), for the
        dual form that counts the mistakes at each point.
    fit_intercept
        Whether f has an offset: a feature that is constantly 1, with a weight like the others.
    max_epochs
        Passes over the data at most; a pass without a mistake is the last one.
    shuffle
        Whether the points are visited in a new random order in each pass.
    random_state
        The source of those orders.
    eta0
        The step eta, > 0. With equal weights it scales f and changes no decision.
    class_weight
        Weights by class as a dictionary, "balanced", or None: the step at a point is multiplied by that of its class.
        With more than two classes, in the machine of that class, whose other points weigh 1.
    warm_start
        Whether `fit` goes on from the w of the last fit (primal form).
    max_iter
        scikit-learn's name for `max_epochs`; None to go by that.
    penalty
        None: a perceptron has no penalty. `Pegasos` and `LinearSVC` have one.
    alpha, l1_ratio, tol, n_iter_no_change, early_stopping, validation_fraction, n_jobs, verbose
        Nothing depends on them: they belong to penalties, or to rules for stopping before a pass without mistakes.

    Attributes
    ----------
    coef_, intercept_
        w and b of each machine (primal form), of the type of X.
    dual_coef_, support_
        Signed sums of the steps at each mistake (with equal steps 1: counts of mistakes), and the points they belong
        to (dual form).
    function_
        f as an `RKHSFunction`; an `RKHSVector`, one per class, for more than two.
    mistakes_ : int
        All mistakes of all machines.
    mistakes_per_epoch_ : ndarray of shape (n_iter_, machines)
        The same by pass.
    n_iter_ : int
        Passes made, of the machine that made most.
    converged_ : bool
        Whether every machine ended with a pass without mistakes.
    history_
        A table with the corrections so far (steps), the points corrected (support) and seconds after each pass; there
        is no objective, so that primal, dual and gap are NaN. A tuple, one for each class, for more than two.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer.estimators.online.perceptron import Perceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> setosa = Perceptron().fit(X, y == 0)
    >>> setosa.converged_, setosa.score(X, y == 0), setosa.mistakes_
    (True, 1.0, 5)
    """

    kernel: Any = None
    _: KW_ONLY
    fit_intercept: bool = True
    max_epochs: int = 100
    shuffle: bool = False
    random_state: Any = None
    eta0: float = 1.0
    class_weight: Any = None
    warm_start: bool = False
    max_iter: int | None = None
    penalty: None = None
    alpha: float = 0.0001
    l1_ratio: float = 0.15
    tol: float | None = 1e-3
    n_iter_no_change: int = 5
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_jobs: int | None = None
    verbose: int = 0

    _unnecessary: ClassVar[Unnecessary] = {
        "alpha": (0.0001, "there is no penalty"),
        "l1_ratio": (0.15, "there is no penalty"),
        "tol": (1e-3, "a pass without a mistake is the last one"),
        "n_iter_no_change": (5, "a pass without a mistake is the last one"),
        "early_stopping": (False, "a pass without a mistake is the last one"),
        "validation_fraction": (0.1, "nothing is held out"),
        "verbose": (0, "`mistakes_per_epoch_` tells what each pass did"),
    }

    @whole_fit
    def fit(self, X: Any, y: Any, coef_init: Any = None, intercept_init: Any = None, sample_weight: Any = None) -> Self:
        """Learn from points and their classes.

        Parameters
        ----------
        X
            A matrix (dense or sparse), or whatever the kernel compares.
        y
            The class of each point.
        coef_init, intercept_init
            w and b to begin with, in the shapes of `coef_` and `intercept_` (primal form); None for zeros.
        sample_weight
            A weight for each point, at least 0: the step at the point is multiplied by it, and 0 leaves the point out.
        """
        self._check()
        start = self._start(coef_init, intercept_init)
        X, codes = self._read(X, y)
        weights, rows = self._steps(codes, sample_weight)
        if rows is not None:
            X, codes = Points(X).take(rows).data, codes[rows]
        labels = self._signs(codes)
        gram = self._gram(X)
        machines = [self._fresh(X, gram) for _ in labels]
        self._begin(machines, X, *start)
        randoms = self._generators(len(labels), self.shuffle)
        most = self.max_epochs if self.max_iter is None else self.max_iter
        runs = [
            perceptron(machine, signs, int(most), random, self.eta0 * s)
            for machine, signs, random, s in zip(machines, labels, randoms, weights, strict=True)
        ]
        offset = np.array([machine.offset for machine in machines])
        if gram is None:
            self._keep_vectors(np.stack([m.w for m in machines if isinstance(m, Vector)]), offset, X.dtype)
        else:
            self._keep_coefficients(gram, np.stack([m.c for m in machines if isinstance(m, Coefficients)]), offset)
            self.support_ = self.support_ if rows is None else rows[self.support_]
        self._remember(runs)
        if not self.converged_:
            last, name = int(self.mistakes_per_epoch_[-1].sum()), "max_epochs" if self.max_iter is None else "max_iter"
            not_at_rest(
                f"the perceptron still made {last} mistakes in pass {self.n_iter_}, the last that {name}={most} "
                f"allows; the points may not be separable. Raise {name}, or use SVC or Pegasos, which allow for errors."
            )
        return self

    def _check(self) -> None:
        self._check_kernel()
        for name in ("max_epochs",) if self.max_iter is None else ("max_epochs", "max_iter"):
            check_integer(self, name, getattr(self, name), 1)
        check_number(self, "eta0", self.eta0)
        if self.penalty is not None:
            raise ValueError(
                f"penalty={self.penalty!r} of Perceptron must be None: the perceptron corrects mistakes and minimises "
                "nothing that could have a penalty. Use Pegasos or LinearSVC(penalty='l2' or 'l1')."
            )
        warn_unnecessary(self)

    def _start(self, coef_init: Any, intercept_init: Any) -> tuple[Any, Any]:
        """Return w and b to begin with, or None."""
        given = coef_init is not None or intercept_init is not None
        if (given or self.warm_start) and self.kernel is not None:
            raise ValueError(
                "coef_init, intercept_init and warm_start of Perceptron need the primal form, kernel=None; the dual "
                "form has coefficients of its training points, which new ones do not share."
            )
        if self.warm_start and not given and hasattr(self, "coef_"):
            self.densify()
            return self.coef_, self.intercept_
        return coef_init, intercept_init

    def _begin(self, machines: list[Any], X: Any, coef: Any, intercept: Any) -> None:
        shapes = (len(machines), X.shape[1] if coef is not None else 0), (len(machines),)
        for name, value, shape in (("coef_init", coef, shapes[0]), ("intercept_init", intercept, shapes[1])):
            if value is None:
                continue
            value = np.asarray(value, dtype=np.float64)
            if value.size != np.prod(shape):
                raise ValueError(f"{name} has shape {value.shape}; for these data it must have shape {shape}.")
            for machine, row in zip(machines, value.reshape(shape), strict=True):
                if name == "coef_init":
                    machine.w = row.copy()
                elif self.fit_intercept:
                    machine.offset = float(row)

    def _remember(self, runs: list[Mistakes]) -> None:
        self.n_iter_ = max(len(run.per_epoch) for run in runs)
        self.mistakes_per_epoch_ = np.array(
            [run.per_epoch + [0] * (self.n_iter_ - len(run.per_epoch)) for run in runs], dtype=int
        ).T
        self.mistakes_ = int(self.mistakes_per_epoch_.sum())
        self.converged_ = all(run.converged for run in runs)
        self._history = [run.history for run in runs]

    @property
    def history_(self) -> Any:
        """The course of the fit, a table of passes; for more than two classes a tuple."""
        check_is_fitted(self, "_history")
        nan = math.nan
        return history_tables([(n, nan, nan, nan, m, t) for n, m, t in rows] for rows in self._history)

    @available_if(lambda self: self.kernel is None)
    @whole_fit
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Pass once over some points, going on from the current w (primal form only).

        Parameters
        ----------
        X, y
            Points and their classes.
        classes
            All classes there will ever be; needed in the first call, and the same in later ones.
        sample_weight
            As for `fit`.
        """
        self._check()
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' of Perceptron is not supported for partial_fit, which sees some points only; "
                "give a dictionary, such as that of sklearn.utils.class_weight.compute_class_weight."
            )
        first = not hasattr(self, "coef_")
        if first and classes is None:
            raise ValueError("the first call of partial_fit needs classes: all classes that y will ever contain.")
        if not first and classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes={classes!r} differs from those of the first call, {self.classes_.tolist()}.")
        X, codes = self._read(X, y, self.classes_ if not first else classes, first)
        weights, rows = self._steps(codes, sample_weight)
        if rows is not None:
            X, codes = X[rows], codes[rows]
        labels = self._signs(codes)
        if first:
            self._keep_vectors(np.zeros((len(labels), X.shape[1])), np.zeros(len(labels)), X.dtype)
            self.mistakes_, self.n_iter_, self._history = 0, 0, [[] for _ in labels]
            self.mistakes_per_epoch_ = np.zeros((0, len(labels)), dtype=int)
        self.densify()
        runs = []
        for i, (signs, random) in enumerate(zip(labels, self._generators(len(labels), self.shuffle), strict=True)):
            machine = Vector(X, bool(self.fit_intercept))
            machine.w, machine.offset = self.coef_[i], float(self.intercept_[i])
            runs.append(perceptron(machine, signs, 1, random, self.eta0 * weights[i]))
            self.intercept_[i] = machine.offset
            last = self._history[i][-1] if self._history[i] else (0, 0, 0.0)
            self._history[i].append((last[0] + len(runs[-1].order), last[1], last[2] + runs[-1].history[0][2]))
        new = np.array([run.per_epoch[0] for run in runs], dtype=int)
        self.mistakes_per_epoch_ = np.vstack([self.mistakes_per_epoch_, new])
        self.mistakes_ += int(new.sum())
        self.n_iter_ += 1
        self.converged_ = not new.any()
        return self
