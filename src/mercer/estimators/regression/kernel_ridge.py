"""Ridge regression with kernels (M12)."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer.certify import with_duality
from mercer.estimators.linear.ridge import is_strength, strengths
from mercer.estimators.regression.base import SYSTEM_RULES, Part, RepresenterModel, columns_of, counted
from mercer.estimators.shared.classes import Labels
from mercer.estimators.shared.data import Training, chosen_kernel, positive_weights
from mercer.estimators.shared.fitting import whole_fit, with_callbacks
from mercer.estimators.shared.parameters import (
    AUTO,
    KERNEL_NAMES,
    PAIRWISE_RULES,
    Rules,
    check_parameters,
    kernel_rule,
    with_parameters,
)
from mercer.gram import Gram
from mercer.losses import Squared, SquaredNorm
from mercer.machine.warn import warn
from mercer.points import Points
from mercer.solvers.control import warn_stationary
from mercer.solvers.systems.inverse import inverse_diagonal
from mercer.solvers.systems.ridge import RidgeProblem, RidgeSolution, solve_ridge


@with_parameters
class RidgeModel(RepresenterModel):
    """What ridge models with a kernel share: scikit-learn's kernels, several targets, what a fit claims."""

    _: KW_ONLY
    kernel: Any = "linear"
    gamma: float | None = None
    degree: int = 3
    coef0: float = 1
    kernel_params: dict[str, Any] | None = None
    fit_intercept: bool = False
    residual: float = 1e-6
    solver: str = "auto"
    max_iter: int = -1
    time_limit: float | None = None
    verbose: int = 0
    budget: int | float | str | None = None
    checkpoint: Any = None
    dtype: str = "auto"

    _rules: ClassVar[Rules] = {
        "alpha": (is_strength, "a finite number >= 0, or one for each target"),
        **PAIRWISE_RULES,
        **SYSTEM_RULES,
    }

    _compares_two: ClassVar[bool] = True

    def _reads_targets(self) -> tuple[bool, bool]:
        return True, True

    def _parts(self, target: np.ndarray, weights: np.ndarray | None) -> list[Part]:
        return [
            Part(np.ascontiguousarray(column), Squared(), SquaredNorm(float(alpha)), weights)
            for column, alpha in zip(columns_of(target).T, self._alphas, strict=True)
        ]

    @with_callbacks  # a warning raised inside would name a line of scikit-learn
    def _solve_ridge(self, training: Training, Y: np.ndarray, alphas: np.ndarray, X: Any, y: Any) -> RidgeSolution:
        with self._controlled(training, X, y, self.residual) as control:
            problem = RidgeProblem(self._gram(training), Y, alphas, training.weights, bool(self.fit_intercept))
            solution = solve_ridge(problem, control, self.solver, self.residual)
        (solution.certificate,) = with_duality(problem.gram, [solution.certificate], [None])
        return solution

    def _fit_strengths(
        self, training: Training, data: Any, target: np.ndarray, alphas: np.ndarray, X: Any, y: Any
    ) -> None:
        """Solve the system to `residual`, relative, in residual and gap; set the attributes of the fit, and warn."""
        Y = columns_of(counted(training, target))
        solution = self._solve_ridge(training, Y, alphas, X, y)
        self._alphas, self._weights, self._rows = alphas, training.weights, training.rows
        self._strengths = [float(alpha) for alpha in alphas]
        self._certificates, self._seconds = [solution.certificate], solution.certificate.seconds
        self._history = [list(map(tuple, solution.history))]
        self._keep(training, data, solution.coefficients, solution.offsets, flat=target.ndim == 1)
        self.plan_ = solution.plan
        self.n_iter_ = solution.certificate.iterations
        self.residual_: Any = float(solution.residual[0]) if target.ndim == 1 else solution.residual
        rows = np.arange(len(target)) if training.rows is None else training.rows
        self._others = np.setdiff1d(np.arange(len(target)), rows)  # weight 0: the fit is without them anyhow
        self._other_targets = columns_of(target)[self._others]
        # Coefficients of least norm do not tell the residuals.
        self._left = Y - columns_of(solution.values) if solution.diagnosis else None
        if solution.diagnosis:
            warn(solution.diagnosis, LinAlgWarning)
        if np.max(solution.residual) > self.residual and not solution.diagnosis:
            warn(
                f"the fit stopped early ({solution.certificate.stopped}) at a relative residual of "
                f"{np.max(solution.residual):.2g}; {self.residual:g} was asked. The model is the best so far.",
                ConvergenceWarning,
            )
        elif why := solution.certificate.stationary:
            warn_stationary(training.kernel, why)

    def loo_residuals(self) -> np.ndarray:
        r"""Return y_i - f(x_i) of the fit without sample i, for every sample, in the shape of y.

        .. math:: y_i - f_{-i}(x_i) = a_i / G_{ii}, \qquad G = (K + \alpha W^{-1})^{-1}

        and with an intercept :math:`G - G 1 1' G / 1'G1` in place of G. One factor serves all samples.
        """
        check_is_fitted(self)
        kernel, data = self.kernel_, self.X_fit_
        n = self.shape_fit_[0]
        points = Points(np.arange(n) if self._kind == "similarities" else data)
        a = columns_of(self.dual_coef_)
        residuals = np.empty(a.shape)
        if self._rows is not None:
            points, a = points.take(self._rows), a[self._rows]
        rows = np.arange(n) if self._rows is None else self._rows
        gram = Gram(kernel, points, budget=self.budget)
        for alpha in np.unique(self._alphas):
            these = np.flatnonzero(self._alphas == alpha)
            shift = np.full(len(rows), alpha) if self._weights is None else alpha / self._weights
            diagonal = inverse_diagonal(gram, shift, bool(self.fit_intercept))
            left = getattr(self, "_left", None)  # not in older model files
            given = a[:, these] if left is None or alpha == 0 else left[:, these] / shift[:, None]
            residuals[np.ix_(rows, these)] = given / diagonal[:, None]
        if len(self._others):
            left = Points(data).take(self._others).data if self._kind != "similarities" else data[self._others]
            residuals[self._others] = self._other_targets - self._values(left)
        return residuals[:, 0] if self.dual_coef_.ndim == 1 else residuals


class RidgeRegressor(MultiOutputMixin, RegressorMixin, RidgeModel):
    """What `KernelRidge` and `KernelRidgeCV` predict: numbers."""

    def predict(self, X: Any) -> np.ndarray:
        """Return f + b at each point, in the shape of y.

        Parameters
        ----------
        X
            Points as in `fit`; for kernel="precomputed", their similarities to all training samples.
        """
        check_is_fitted(self)
        values = self._values(self._read_new(X))
        return values[:, 0] if self.dual_coef_.ndim == 1 else values


@with_parameters
class KernelRidge(RidgeRegressor):
    r"""Ridge regression in the space of a kernel, exact, with a stated residual.

    .. math:: \min_{f, b} \; \sum_i w_i (y_i - f(x_i) - b)^2 + \alpha \|f\|_H^2, \qquad
              (K + \alpha W^{-1}) a + b = y, \quad \textstyle\sum_i a_i = 0 \text{ if there is a } b

    Parameters
    ----------
    alpha
        The strength of the penalty, >= 0: one for all targets or one for each. With 0 the function passes through the
        targets, as far as the kernel allows.
    kernel
        A kernel object, one of scikit-learn's names ("linear", "poly", "rbf", "laplacian", "sigmoid", "cosine", "chi2",
        "additive_chi2", "precomputed"), a function of two points that returns a number, or "auto": as for `SVC`.
    gamma, degree, coef0
        Of the named kernels, as in `sklearn.metrics.pairwise`: gamma=None is 1 / features (1 for "chi2").
    kernel_params
        Further arguments of a function.
    fit_intercept
        Whether there is a b; it is not penalised.
    residual
        The relative residual |y - b - (K + alpha / w) a| / |y| to reach, measured in float64; with an intercept, of y
        less its mean.
    solver
        "cholesky", "cg" (conjugate gradients, which need no n x n matrix), or "auto".
    max_iter, time_limit, verbose, budget, checkpoint, dtype
        As for `SVC`; an iteration is a product with K.

    Attributes
    ----------
    dual_coef_, X_fit_
        As in scikit-learn: a, in the shape of y, and the training points.
    intercept_
        b; one number for each target if y has columns, and 0 without intercept.
    residual_
        The relative residual that was reached; one for each target if y has columns.
    function_, kernel_, coef_, certificate_, plan_, n_iter_
        As for `KernelMachine`. The objective of the certificate is half of the one above.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> model = KernelRidge(alpha=1e-3, kernel="rbf", gamma=0.5).fit(X, y)
    >>> bool(np.abs(model.predict(X) - y).max() < 1e-2), bool(model.residual_ <= 1e-6)
    (True, True)
    >>> bool(np.abs(model.loo_residuals()).max() < 0.05)
    True
    """

    alpha: Any = 1

    _rules: ClassVar[Rules] = {
        **RidgeModel._rules,
        "kernel": kernel_rule((*KERNEL_NAMES, AUTO), "a function of two points"),
    }

    @whole_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidge:
        """Find the coefficients.

        Parameters
        ----------
        X
            The training points: a matrix (dense or sparse), a table, or whatever the kernel compares; the square matrix
            of similarities for kernel="precomputed".
        y
            A number for each, or several in columns.
        sample_weight
            A weight for each, at least 0; weight 0 drops the sample.

        Returns
        -------
        self
        """
        check_parameters(self)
        data, target = self._read(X, y)
        target = np.asarray(target, dtype=np.float64)
        alphas = strengths(self.alpha, columns_of(target).shape[1], type(self).__name__)
        training = self._training(data, sample_weight, chosen_kernel(self, data, target, sample_weight))
        self._fit_strengths(training, data, target, alphas, X, y)
        return self


@with_parameters
class KernelRidgeClassifier(ClassifierMixin, Labels, RidgeModel):
    r"""Classification by ridge regression in the space of a kernel: of +1 for the rows of a class, -1 for all others.

    .. math:: \min_{f, b} \; \sum_i w_i (\pm 1 - f(x_i) - b)^2 + \alpha \|f\|_H^2

    One system for all classes: many cost hardly more than two. The class with the largest f + b is predicted, of two
    classes by one function's sign.

    Parameters
    ----------
    alpha
        The strength of the penalty, >= 0.
    class_weight
        As for `SVC`.
    kernel, gamma, degree, coef0, kernel_params, fit_intercept, residual, solver
        As for `KernelRidge`.
    max_iter, time_limit, verbose, budget, checkpoint, dtype
        As for `KernelRidge`.

    Attributes
    ----------
    classes_, class_weight_
        As for `SVC`.
    dual_coef_, intercept_, X_fit_, residual_, function_, kernel_, coef_, certificate_, plan_, n_iter_
        As for `KernelRidge`, with one target for each class; of two classes one, for the second.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelRidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelRidgeClassifier(0.1, kernel="rbf").fit(X, y)
    >>> model.score(X, y) > 0.95, model.certificate_.verify(X, y).converged
    (True, True)
    """

    alpha: Any = 1
    _: KW_ONLY
    fit_intercept: bool = True
    class_weight: Any = None

    _numeric_target: ClassVar[bool] = False

    def _reads_targets(self) -> tuple[bool, bool]:
        return False, False

    def _weighted(self, codes: np.ndarray, sample_weight: Any) -> Any:
        """Return the weights of samples times those of their classes."""
        if self.class_weight is None:
            return sample_weight
        weights, rows = positive_weights(sample_weight, len(codes))
        some = codes if rows is None else codes[rows]
        products = np.zeros(len(codes))
        products[slice(None) if rows is None else rows] = self._class_weights(some, weights)
        return products

    def _target(self, data: Any, y: Any) -> np.ndarray:
        return signs(self._codes(super()._target(data, y)), len(self.classes_))

    def _rechecked(self, X: Any, y: Any, sample_weight: Any) -> Any:
        return super()._rechecked(X, y, self._weighted(self._codes(y), sample_weight))

    @whole_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidgeClassifier:
        """Find the coefficients.

        Parameters
        ----------
        X
            As for `KernelRidge`.
        y
            A class for each.
        sample_weight
            A weight for each, at least 0; weight 0 drops the sample.

        Returns
        -------
        self
        """
        check_parameters(self)
        data, y = self._read(X, y)
        codes = self._encode(y)
        target = signs(codes, len(self.classes_))
        alphas = strengths(self.alpha, columns_of(target).shape[1], type(self).__name__)
        training = self._training(data, self._weighted(codes, sample_weight))
        self._fit_strengths(training, data, target, alphas, X, y)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f + b for each class, (n, classes); of two classes that of the second, (n,).

        Parameters
        ----------
        X
            Points as in `fit`; for kernel="precomputed", their similarities to all training samples.
        """
        check_is_fitted(self)
        values = self._values(self._read_new(X))
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each point."""
        values = self.decision_function(X)
        return np.asarray(self.classes_[(values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)])


def signs(codes: np.ndarray, count: int) -> np.ndarray:
    """Return +1 for the class of each sample and -1 for the others; of two classes the column of the second.

    Examples
    --------
    >>> import numpy as np
    >>> signs(np.array([0, 2]), 3)
    array([[ 1., -1., -1.],
           [-1., -1.,  1.]])
    >>> signs(np.array([0, 1]), 2)
    array([-1.,  1.])
    """
    targets = np.where(np.arange(count) == codes[:, None], 1.0, -1.0)
    return targets[:, 1] if count == 2 else targets
