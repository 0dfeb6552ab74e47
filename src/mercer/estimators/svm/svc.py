"""The support vector classifiers: SVC with C, NuSVC with nu in its place."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from mercer.certify import Stop
from mercer.estimators.shared.classes import Pairs
from mercer.estimators.shared.data import Training
from mercer.estimators.shared.parameters import with_parameters
from mercer.estimators.svm.classifier import PairwiseClassifier
from mercer.estimators.svm.machine import Statement, filled
from mercer.solvers.dual.problem import Solution

# Half widths of the margin that are rounding, as shares of sum |b_i| max k(x, x), by the precision of kernel values.
_ROUNDING = {"float64": 1e-13, "float32": 1e-7}


@with_parameters
class SVC(PairwiseClassifier):
    r"""The support vector classifier (M2, M3, M9), with a certificate.

    .. math:: \min_{f, b} \; \tfrac12 \|f\|_H^2 + C \sum_i w_i \max(0, 1 - y_i (f(x_i) + b))

    More than two classes: one machine for each pair, and a vote.

    Parameters
    ----------
    C
        The price of slack, > 0; inf for a hard margin, which fails with the evidence where classes cannot be separated.
    kernel
        A kernel object such as `RBF(2.0) + Linear()`, on whatever it compares (strings, tables, ...); a name as
        in scikit-learn ("linear", "poly", "rbf", "sigmoid", "laplacian", "cosine", "chi2", "additive_chi2",
        "precomputed") or "matern", of smoothness 5/2; a function (X, Z) -> matrix; or "auto": `fit` finds
        one by cross-validation, with the other parameters as they are, and `account_` says why that one (within half of
        time_limit, if there is one; X is a matrix of numbers).
    degree, gamma, coef0
        For the names, as in scikit-learn; a kernel object has its own parameters (searched as `kernel__scale`).
    tol
        The relative duality gap, (primal - dual) / primal, at which a machine is finished.
    class_weight
        Multiplies C per class: a dictionary, "balanced" or None.
    max_iter, time_limit
        Steps (per pair of classes; -1 for no limit) and seconds after which the best model so far is returned, with
        a warning.
    decision_function_shape, break_ties
        As in scikit-learn: "ovr" or "ovo"; whether predict asks the decision function when votes tie.
    verbose
        1 for a bar with the gap, the support vectors and the time.
    budget
        Bytes that the solver may use: a number, a text such as "500 MB", or None for half of what is free.
    checkpoint
        A file from which a fit that was killed goes on when it is started again. Its folder must be there; if it cannot
        be written, a warning says so and the fit is as without.
    warm_start
        Whether to start from the coefficients of the previous fit, where the data has the same shape.
    dtype
        The arithmetic of kernel values: "float32", "float64", or "auto" to choose by tol, size and kernel. Sums are
        kept in float64 either way.
    probability
        Whether to fit `predict_proba`, by five more machines that each hold out a fifth of the samples; time_limit
        allows them as long again.
    random_state
        Which samples are held out together: a seed or a generator; None for always the same.
    shrinking, cache_size
        Of scikit-learn's, without effect here: the solver needs no such advice, and `budget` bounds the memory.
    fit_intercept
        Whether there is an offset b; without one f is a function of the kernel's space, and `intercept_` is 0.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, coef_, intercept_, classes_, class_weight_, n_iter_, shape_fit_,
    fit_status_
        As in scikit-learn (`dual_coef_` is an array for sparse X too).
    kernel_
        The kernel object, with every parameter resolved. (kernel="precomputed": of the support vectors.)
    certificate_
        Primal, dual, gap and worst KKT residual; `certificate_.verify(X, y)` recomputes them by other code.
    function_, margin_width_
        f as an `RKHSFunction` (for pairs of classes an `RKHSVector`), and 2 / |w| for each pair. The norm of f is |w|:
        the offset is no part of it.
    plan_, history_
        How the problem was solved and why; the course of the gap.
    calibration_, probA_, probB_
        For probability=True: "slope" and "offset" of the logistic map of each pair (and the "power" of
        the law they give); slopes and offsets in scikit-learn's signs.
    account_
        For kernel="auto": what was tried, and why the winner won.

    Notes
    -----
    docs/svm.md lists where this differs from `sklearn.svm.SVC`. Above all `tol` bounds the objective, not a gradient,
    so the same value is stricter.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(C=10.0).fit(X, y)
    >>> model.score(X, y) > 0.95, model.certificate_.converged
    (True, True)
    >>> model.certificate_.verify(X, y).converged
    True
    """

    _: KW_ONLY
    C: float = 1.0
    fit_intercept: bool = True

    def _bounds(self, weights: np.ndarray, scale: float) -> np.ndarray:
        return self.C * weights

    def _pair_terms(self, signs: np.ndarray, weights: np.ndarray) -> dict[str, Any]:
        bound = self.C * weights
        positive = signs > 0
        upper, lower = np.where(positive, bound, 0.0), np.where(positive, 0.0, bound)
        return {"linear": -signs, "upper": upper, "lower": lower, "offset": "free" if self.fit_intercept else "none"}


# -- the support vector classifier with nu in place of C --------------------------------------------------


@with_parameters
class NuSVC(PairwiseClassifier):
    r"""The support vector classifier that is told the share of margin errors instead of their price.

    .. math:: \min_{f, b, \rho} \; \tfrac12 \|f\|_H^2 - \nu \rho \sum_i w_i
              + \sum_i w_i \max(0, \rho - y_i (f(x_i) + b))

    At most a share nu of the samples lies inside the margin, and at least a share nu are support vectors (Schölkopf et
    al., 2000). f is divided by rho at the end, so that the margin is at +-1 as for `SVC`.

    Parameters
    ----------
    nu
        The share, 0 < nu <= 1. In a pair of classes of sizes (weights) n and m it can be at most 2 min(n, m) / (n + m).
    kernel, degree, gamma, coef0, tol, class_weight, max_iter, time_limit
        As for `SVC`. `class_weight` multiplies the sample weights (scikit-learn's NuSVC ignores it).
    decision_function_shape, break_ties, verbose, budget, checkpoint, warm_start, dtype
        As for `SVC`.
    probability, random_state, shrinking, cache_size
        As for `SVC`.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, coef_, intercept_, classes_, class_weight_, n_iter_, shape_fit_,
    fit_status_
        As in scikit-learn.
    kernel_, certificate_, function_, margin_width_, plan_, history_
        As for `SVC`; the certificate speaks of f before it is divided by rho.
    calibration_, probA_, probB_
        As for `SVC`.

    Notes
    -----
    docs/svm.md lists the differences from scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import NuSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NuSVC(nu=0.2).fit(X, y)
    >>> model.score(X, y) > 0.95, model.certificate_.converged
    (True, True)
    """

    _: KW_ONLY
    nu: float = 0.5

    def _statements(self, training: Training, pairs: Pairs, codes: np.ndarray) -> list[Statement]:
        largest, sizes = self._largest(codes, training.weights)
        if self.nu > largest * (1 + 1e-12):
            raise ValueError(
                f"specified nu is infeasible: nu={self.nu:g}, but with classes of weight {sizes[0]:g} and "
                f"{sizes[-1]:g} the largest feasible nu is {largest:.6g}. Lower nu, or use SVC."
            )
        return super()._statements(training, pairs, codes)

    def _largest(self, codes: np.ndarray, weights: np.ndarray | None) -> tuple[float, np.ndarray]:
        """Return the largest feasible nu, and what the classes weigh, ascending."""
        weights = self.class_weight_[codes] * (1.0 if weights is None else weights)
        sizes = np.sort(np.bincount(codes, weights, len(self.classes_)))
        return float(2 * sizes[0] / (sizes[0] + sizes[-1])), sizes

    def _on_part(self, labels: np.ndarray, weights: np.ndarray | None, rows: np.ndarray) -> Any:
        part = super()._on_part(labels, weights, rows)
        codes = part._encode(labels[rows])
        part.nu = min(self.nu, part._largest(codes, None if weights is None else weights[rows])[0])
        return part

    def _bounds(self, weights: np.ndarray, scale: float) -> np.ndarray:
        return weights / scale

    def _pair_terms(self, signs: np.ndarray, weights: np.ndarray) -> dict[str, Any]:
        upper, lower = np.where(signs > 0, weights, 0.0), np.where(signs > 0, 0.0, weights)
        total = min(self.nu * weights.sum() / 2, upper.sum(), lower.sum())
        return {
            "linear": np.zeros(len(signs)),
            "upper": upper,
            "lower": lower,
            "offset": "split",
            "plus": filled(upper, total),
            "minus": filled(lower, total),
        }

    def _scale(self, solution: Solution, training: Training) -> float:
        rho = solution.half_width
        largest = float(np.abs(training.kernel.diag(training.points)).max())  # of all kernel values
        rounding = _ROUNDING[solution.certificate.precision] * largest * float(np.abs(solution.coefficients).sum())
        if not rho > rounding:
            if solution.certificate.stopped == Stop.INTERRUPTED:
                raise KeyboardInterrupt  # before there was a margin
            raise ValueError(
                f"the margin of NuSVC vanishes (rho = {rho:.3g}) at nu={self.nu:g}: some averages over that share of "
                "each class are the same point for this kernel, so nothing separates them. Raise nu, take a richer "
                "kernel, or use SVC."
            )
        return rho
