"""Ridge regression, by the weights of the features or by the coefficients of the samples (M11)."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.certify import Certificate, Stop, combined
from mercer.estimators.shared.data import positive_weights, refuse_words
from mercer.estimators.shared.fitting import finite, whole_fit
from mercer.estimators.shared.parameters import (
    BOOLEAN,
    Rules,
    Unnecessary,
    check_parameters,
    is_real,
    one_of,
    whole,
    with_parameters,
)
from mercer.estimators.svm.machine import Recheck
from mercer.machine.budget import Budget
from mercer.rkhs.functions.vector import linear_functions
from mercer.solvers.control import Control, warn_unfinished
from mercer.solvers.linear.ridge import CentredRows, solve_linear_ridge
from mercer.solvers.linear.verify import check_ridge
from mercer.solvers.run import history_tables

_TYPES = [np.float64, np.float32]
_THEIRS = ("svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga", "lbfgs")  # scikit-learn's ways to the same w
_SOLVERS = ("auto", "primal", "dual", *_THEIRS)


def is_strength(value: Any) -> bool:
    """Return whether the value is a finite number >= 0, or a vector of such numbers."""
    if is_real(value):
        return 0 <= value < math.inf
    if isinstance(value, str | bytes) or not hasattr(value, "__len__"):
        return False
    array = np.asarray(value)
    return (
        array.ndim == 1
        and array.size > 0
        and array.dtype.kind in "iuf"
        and bool(np.all((array >= 0) & (array < np.inf)))
    )


@with_parameters
class Ridge(MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Linear regression with a penalty on the squared weights, solved on its smaller side.

    .. math:: \min_{w, b} \; \sum_i s_i (y_i - w \cdot x_i - b)^2 + \alpha |w|^2, \qquad
              w = (X'X + \alpha I)^{-1} X'y = X'(XX' + \alpha I)^{-1} y

    The first form is a system in the features, the second one in the samples: w lies in the span of the data. They give
    the same w, and the cheaper one is chosen.

    Parameters
    ----------
    alpha
        The strength of the penalty, >= 0; one for all targets or one for each. With 0 the solution is that of least
        squares, the shortest where there are many.
    fit_intercept
        Whether there is a b; it is not penalised.
    solver
        "primal" (features), "dual" (samples), or "auto": primal if there are fewer features than samples. The names
        that scikit-learn has for ways to the same w ("svd", "cholesky", "lsqr", ...) mean "auto".
    budget
        Bytes that the matrix of the system may use, as for `SVC`. A larger system is solved by conjugate gradients,
        which need its products only.
    positive
        Whether the weights are to be >= 0, by solving for those that are not 0.
    max_iter
        Steps at most, of conjugate gradients or of the search for the positive weights; None for as many as it takes.
    tol
        The relative duality gap that the certificate is held to. A solver does not stop at it.
    copy_X, random_state
        Nothing depends on them: X is never changed, and nothing is random.

    Attributes
    ----------
    coef_, intercept_
        w and b: of shape (features,) and a number, or (targets, features) and (targets,).
    dual_coef_
        The coefficients a of w = X'a, where the dual was solved and float64 can hold them: (samples,) or (samples,
        targets), X about its mean if there is an intercept.
    certificate_
        Primal and dual objective, gap and worst residual, `.parts` of each target; `.verify(X, y)` recomputes them.
    history_
        A table with the fields steps, primal, dual, gap, support and seconds; one for each of several targets.
    n_iter_
        Steps for each target, 1 for a factorisation.
    function_
        w.x + b as a function of the linear kernel, for several targets a vector of them; its norm is |w|.
    solver_
        `solver`; for "auto" what it chose: "primal", "dual", or "nonnegative" if `positive`.
    n_features_in_
        The number of features.

    Notes
    -----
    Parameters, attributes, types and scaling are those of scikit-learn's Ridge. `KernelRidge(alpha, kernel="linear")`
    is the dual without intercept.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Ridge
    >>> X = np.random.default_rng(0).normal(size=(20, 50))
    >>> y = X[:, 0] + 1.0
    >>> short, long = Ridge(1.0).fit(X, y), Ridge(1.0, solver="primal").fit(X, y)
    >>> short.solver_, np.allclose(short.coef_, long.coef_)
    ('dual', True)
    """

    alpha: Any = 1.0
    _: KW_ONLY
    fit_intercept: bool = True
    solver: str = "auto"
    budget: int | float | str | None = None
    positive: bool = False
    max_iter: int | None = None
    tol: float = 1e-4
    copy_X: bool = True  # noqa: N815
    random_state: Any = None

    _rules: ClassVar[Rules] = {
        "alpha": (is_strength, "a finite number >= 0, or one for each target"),
        "solver": one_of(*_SOLVERS),
        "positive": BOOLEAN,
        "max_iter": (lambda v: v is None or whole(v, 1), "a whole number >= 1, or None for no limit"),
    }
    _unnecessary: ClassVar[Unnecessary] = {"random_state": (None, "nothing is random")}

    @whole_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Ridge:
        """Find w and b.

        Parameters
        ----------
        X
            A matrix, dense or sparse.
        y
            A number for each row, or several in columns.
        sample_weight
            A weight for each row, at least 0.

        Returns
        -------
        self
        """
        check_parameters(self)
        if self.positive and self.solver not in ("auto", "primal", "lbfgs"):
            raise ValueError(
                f"solver={self.solver!r} of Ridge does not support positive=True: it solves one system, and which "
                "weights are 0 has to be searched for; use solver='auto'."
            )
        control = Control(self.tol)
        refuse_words(self, y)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=_TYPES, y_numeric=True, multi_output=True)
        data, targets, weights, rows = self._counted(X, y, sample_weight)
        rows_of = CentredRows(data, weights, bool(self.fit_intercept))
        middle = np.average(targets, axis=0, weights=weights) if self.fit_intercept else np.zeros(targets.shape[1])
        right = rows_of.root[:, None] * (targets - middle)
        size = float(np.abs(right).max()) or 1.0  # so that y of 1e200 has squares
        solver = "primal" if data.shape[1] < data.shape[0] else "dual"
        if self.positive or self.solver in ("primal", "dual"):
            solver = "nonnegative" if self.positive else self.solver
        self.solver_ = solver if self.solver == "auto" else self.solver
        alpha = strengths(self.alpha, targets.shape[1], type(self).__name__)
        budget = Budget.for_points(self.budget, min(data.shape))
        w, a, self.n_iter_ = solve_linear_ridge(rows_of, right / size, alpha, solver, budget, self.max_iter)
        w = (w * size).astype(X.dtype, copy=False)
        offset = (middle - rows_of.mean @ w).astype(X.dtype, copy=False)
        self.coef_ = w[:, 0] if w.shape[1] == 1 else w.T
        self.intercept_: Any = offset[0] if y.ndim == 1 else offset
        dual = np.zeros((X.shape[0], targets.shape[1]))
        if a is not None:
            dual[slice(None) if rows is None else rows] = rows_of.root[:, None] * a * size
        if a is not None and np.isfinite(dual).all():
            self.dual_coef_ = dual[:, 0] if w.shape[1] == 1 else dual
        elif hasattr(self, "dual_coef_"):
            del self.dual_coef_
        steps = int(self.n_iter_.max())
        self._certificates = self._claims(data, targets, weights, solver=solver, iterations=steps)
        self._seconds = control.seconds
        if not all(c.converged for c in self._certificates):
            self._certificates = [replace(c, stopped=self._reason(c, steps)) for c in self._certificates]
            claim = self.certificate_
            if not claim.converged:
                warn_unfinished(claim.stopped, claim.relative_gap, self.tol)
        return self

    def _counted(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, Any, Any]:
        """Return the samples that count, their targets in columns, their weights, and which they are."""
        targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        weights, rows = positive_weights(sample_weight, X.shape[0])
        return (X, targets, weights, rows) if rows is None else (X[rows], targets[rows], weights, rows)

    def _claims(self, X: Any, targets: np.ndarray, weights: Any, **about: Any) -> list[Certificate]:
        return check_ridge(
            X,
            targets,
            w=np.atleast_2d(self.coef_).T.astype(np.float64),
            b=np.atleast_1d(self.intercept_).astype(np.float64),
            alpha=strengths(self.alpha, targets.shape[1], type(self).__name__),
            weights=weights,
            intercept=bool(self.fit_intercept),
            positive=bool(self.positive),
            tol=self.tol,
            **about,
        )

    def _reason(self, claim: Certificate, steps: int) -> str:
        """Return why a target was left before its tolerance."""
        if claim.converged:
            return Stop.CONVERGED
        return Stop.steps(self.max_iter) if steps == self.max_iter else Stop.ROUNDING

    @property
    def certificate_(self) -> Certificate:
        """Primal, dual and gap of the fit, `.parts` of each target; `.verify(X, y)` recomputes them."""
        check_is_fitted(self, "_certificates")
        return combined(self._certificates, seconds=self._seconds, check=Recheck(self))

    def _rechecked(self, X: Any, y: Any, sample_weight: Any) -> Certificate:
        X, y = validate_data(
            self, X, y, reset=False, accept_sparse="csr", dtype=_TYPES, y_numeric=True, multi_output=True
        )
        return combined(self._claims(*self._counted(X, y, sample_weight)[:3], solver="recomputed"))

    @property
    def history_(self) -> Any:
        """The end of the fit as a table of one row; one table for each of several targets."""
        check_is_fitted(self, "_certificates")
        return history_tables(
            [(c.iterations, c.primal, c.dual, c.relative_gap, int(np.count_nonzero(w)), self._seconds)]
            for c, w in zip(self._certificates, np.atleast_2d(self.coef_), strict=True)
        )

    @finite
    def predict(self, X: Any) -> np.ndarray:
        """Return w.x + b for each row.

        Parameters
        ----------
        X
            The points.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=_TYPES)
        return np.asarray(X @ self.coef_.T) + self.intercept_

    @property
    def function_(self) -> Any:
        """w.x + b as an `RKHSFunction` of the linear kernel, its norm |w|; one for each target as an `RKHSVector`."""
        check_is_fitted(self)
        return linear_functions(self.coef_, self.intercept_, single=np.ndim(self.intercept_) == 0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def strengths(alpha: Any, targets: int, name: str) -> np.ndarray:
    """Return one alpha for each target."""
    alphas = np.asarray(alpha, dtype=np.float64)
    if alphas.ndim and alphas.shape != (targets,) and alphas.shape != (1,):
        raise ValueError(
            f"alpha of {name} has {len(alphas)} numbers and y has {targets} column{'s' * (targets > 1)}; give one "
            "alpha for all or one for each."
        )
    return np.broadcast_to(alphas, (targets,)).astype(np.float64)
