"""The base of the online learners: any points in, one machine per class, a function out."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from mercer.estimators.linear.machine import SparseWeights
from mercer.estimators.shared.classes import Labels, as_given, shown
from mercer.estimators.shared.data import FAR, positive_weights, read_anything
from mercer.estimators.shared.fitting import finite
from mercer.estimators.shared.parameters import KERNEL_NAMES, compares_vectors, named_kernel
from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.kernels.rules.scikit_learn import as_kernel
from mercer.machine.warn import warn
from mercer.points import Points
from mercer.rkhs.functions.vector import functions_of, linear_functions
from mercer.solvers.online.perceptron import Coefficients, Iterate, Vector

_NAMES = tuple(name for name in KERNEL_NAMES if name != "precomputed")


class OnlineClassifier(SparseWeights, ClassifierMixin, Labels, BaseEstimator):
    """A classifier that is one vector w per class, or one kernel expansion per class; two classes need one."""

    kernel: Any
    fit_intercept: bool
    random_state: Any
    class_weight: Any
    classes_: np.ndarray

    def _check_kernel(self) -> None:
        kernel = self._given_kernel
        if isinstance(kernel, str) and kernel not in _NAMES:
            raise ValueError(
                f"kernel={kernel!r} of {type(self).__name__} must be a kernel object, None for a linear model of the "
                f"features, or one of {', '.join(map(repr, _NAMES))}."
            )
        if kernel is not None and not isinstance(kernel, Kernel | str):
            raise TypeError(
                f"kernel of {type(self).__name__} must be a kernel object such as RBF(scale=1.0), a name, or None "
                f"for a linear model of the features; it is {kernel!r}."
            )

    @property
    def _given_kernel(self) -> Any:
        return as_kernel(self.kernel)

    @property
    def _vectors(self) -> bool:
        kernel = self._given_kernel
        return not isinstance(kernel, Kernel) or compares_vectors(kernel)

    def _read(self, X: Any, y: Any, classes: Any = None, first: bool = True) -> tuple[Any, np.ndarray]:
        """Return the points, and the class numbers of the labels."""
        y = as_given(y)
        if self._vectors:
            X, y = validate_data(self, X, y, reset=first, accept_sparse="csr", dtype=[np.float64, np.float32])
        else:
            if y is None:
                raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
            X = read_anything(self, X, fitting=first)
            y = column_or_1d(y, warn=True)
            check_consistent_length(X, y)
        largest = float(np.abs(X.data if sparse.issparse(X) else X).max(initial=0.0)) if self.kernel is None else 0.0
        if largest > FAR:
            raise ValueError(f"X reaches {largest:.3g}, whose square leaves the range of float64; scale the features.")
        check_classification_targets(y)
        self.classes_ = np.unique(y if classes is None else classes)
        codes = np.searchsorted(self.classes_, y)
        if not np.array_equal(self.classes_[np.minimum(codes, len(self.classes_) - 1)], y):
            unknown = np.setdiff1d(y, self.classes_)[0]
            raise ValueError(f"y contains the class {unknown!r}, which is not among classes={self.classes_.tolist()}.")
        if len(self.classes_) < 2:
            raise ValueError(
                f"y holds one class only, {self.classes_[0]!r}; a classifier needs samples of at least two classes."
            )
        return X, codes

    def _signs(self, codes: np.ndarray) -> list[np.ndarray]:
        """Return the labels -1 and +1 of each machine: the second class of two, or each class against the rest."""
        positive = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        return [np.where(codes == k, 1.0, -1.0) for k in positive]

    def _generators(self, count: int, shuffle: bool) -> list[np.random.Generator | None]:
        """Return the source of the order of the points for each machine: the same order for all."""
        if not shuffle:
            return [None] * count
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        return [np.random.default_rng(seed) for _ in range(count)]

    def _steps(self, codes: np.ndarray, sample_weight: Any) -> tuple[list[np.ndarray], np.ndarray | None]:
        """Return the weights of the points in each machine, and the points that count; None for all.

        In the machine of one class against the rest, the weight of the class is that of its own points, and the rest
        weigh 1: as in scikit-learn.
        """
        weights, rows = positive_weights(sample_weight, len(codes))
        weights = np.ones(len(codes)) if weights is None else weights
        codes = codes if rows is None else codes[rows]
        of_machines = [weights] * (1 if len(self.classes_) == 2 else len(self.classes_))
        if self.class_weight is not None:
            if self.class_weight != "balanced" and not isinstance(self.class_weight, dict):
                raise ValueError(
                    f"class_weight={self.class_weight!r} of {type(self).__name__} must be a dictionary of weights by "
                    "class, 'balanced' or None."
                )
            named = self.classes_[codes]
            by_class = compute_class_weight(self.class_weight, classes=self.classes_, y=named)
            if not (by_class > 0).all():
                c = shown(self.classes_[int(np.argmin(by_class))])
                raise ValueError(f"class_weight gives class {c} the weight {by_class.min():g}; it must be > 0.")
            if len(of_machines) == 1:
                return [weights * by_class[codes]], rows
            of_machines = [weights * np.where(codes == k, by_class[k], 1.0) for k in range(len(of_machines))]
        return of_machines, rows

    def _gram(self, X: Any, budget: Any = None) -> Gram | None:
        """Return the kernel matrix, its kernel resolved, or None for the linear form."""
        kernel = self._given_kernel
        if kernel is None:
            return None
        return Gram(named_kernel(kernel, Points(X)) if isinstance(kernel, str) else kernel, X, budget=budget)

    def _fresh(self, X: Any, gram: Gram | None) -> Iterate:
        if gram is None:
            return Vector(X, bool(self.fit_intercept))
        return Coefficients(gram, bool(self.fit_intercept))

    # -- the model --------------------------------------------------------------------------------------

    def _keep_vectors(self, w: np.ndarray, offset: np.ndarray, dtype: Any = np.float64) -> None:
        self.coef_, self.intercept_ = w.astype(dtype, copy=False), offset.astype(dtype, copy=False)

    def _keep_coefficients(self, gram: Gram, c: np.ndarray, offset: np.ndarray) -> None:
        """Keep the centres that some machine uses."""
        self.support_ = np.flatnonzero(c.any(axis=0))
        self.dual_coef_ = c[:, self.support_]
        self.intercept_ = offset
        self.kernel_ = gram.kernel
        self._centres = gram.left.take(self.support_).data if len(self.support_) else None

    @property
    def function_(self) -> Any:
        """The decision function as an `RKHSFunction`, or an `RKHSVector` with one for each of more than two classes."""
        check_is_fitted(self)
        single = len(self.classes_) == 2
        if self.kernel is None:
            w = self.coef_.toarray() if sparse.issparse(self.coef_) else self.coef_
            return linear_functions(w, self.intercept_, single)
        centres = [] if self._centres is None else self._centres
        return functions_of(self.kernel_, centres, self.dual_coef_.T, self.intercept_, single)

    @finite
    def decision_function(self, X: Any) -> np.ndarray:
        """Return f at each point: one number for two classes, one per class for more.

        Parameters
        ----------
        X
            Points of the kind the model was fitted to.
        """
        check_is_fitted(self)
        if self._vectors:
            X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        else:
            X = read_anything(self, X, fitting=False)
        if self.kernel is None:
            product = X @ self.coef_.T
            f = np.asarray(product.toarray() if sparse.issparse(product) else product) + self.intercept_
        elif self._centres is None:
            f = np.tile(self.intercept_, (len(Points.of(X)), 1))
        else:
            f = Gram(self.kernel_, X, self._centres).matvec(self.dual_coef_.T) + self.intercept_
        return f.ravel() if len(self.classes_) == 2 else f

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each point.

        Parameters
        ----------
        X
            Points of the kind the model was fitted to.
        """
        f = self.decision_function(X)
        return self.classes_[(f > 0).astype(int) if f.ndim == 1 else f.argmax(axis=1)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = tags.input_tags.string or not self._vectors
        return tags


def not_at_rest(message: str) -> None:
    """Warn that a learner ended before its goal; the model is usable all the same."""
    warn(message, ConvergenceWarning)
