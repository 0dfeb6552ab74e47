"""Canonical correlations of two views, in the spaces of two kernels."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from mercer.estimators.shared.fitting import whole_fit
from mercer.estimators.shared.parameters import (
    PAIRWISE_RULES,
    Rules,
    Unnecessary,
    check_parameters,
    is_real,
    whole,
    with_parameters,
)
from mercer.estimators.unsupervised.base import Images
from mercer.kernels import Kernel
from mercer.points import Points
from mercer.rkhs import RKHSVector
from mercer.solvers.unsupervised.cca import View, canonical, view


class ViewModel(Images):
    """Functions sum_i A_ij k(x_i, .) + b_j of some of the training points, or of all."""

    _chosen: np.ndarray | None = None  # which of the training points; None for all

    def _keep_data(self, data: Any, kernel: Kernel) -> None:
        self._chosen = None
        super()._keep_data(data, kernel)

    def _keep_functions(self, side: View, coefficients: np.ndarray) -> None:
        self._A, self._b = side.B @ coefficients, side.b @ coefficients
        self._chosen = side.centres
        self._prepare()

    def _prepare(self) -> None:
        super()._prepare()
        if self._kind != "similarities" and self._chosen is not None:
            self._centres = self._centres.take(self._chosen)

    def _scores(self, data: Any) -> np.ndarray:
        """Return the functions at validated points."""
        if self._kind == "similarities" and self._chosen is not None:
            data = data[:, self._chosen]
        return self._sums(data, self._A) + self._b

    def _functions(self) -> RKHSVector:
        points = self._points_fit
        if self._chosen is not None:
            points = Points(points).take(self._chosen).data
        return RKHSVector(self.kernel_, points, self._A, self._b)


@with_parameters
class SecondView(ViewModel):
    """The second view, which reads y as the first reads X.

    Parameters
    ----------
    kernel, gamma, degree, coef0, kernel_params, budget
        As of the `KernelCCA` that it belongs to.
    """

    kernel: Any = None

    def _read_second(self, y: Any, fitting: bool = True) -> Any:
        """Return y, validated; a vector of numbers is a matrix of one column."""
        if self._reads() == "vectors" and not sparse.issparse(y):
            y = y if hasattr(y, "ndim") else np.asarray(y)
            y = np.asarray(y).reshape(-1, 1) if y.ndim == 1 else y
        try:
            return self._read(y, targets=False)[0] if fitting else self._read_new(y)
        except ValueError as error:
            raise ValueError(f"y, the second view, cannot be read as X of it: {str(error).rstrip('.')}.") from error


@with_parameters
class KernelCCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ViewModel):
    r"""Functions of two views of the same samples that are as correlated as the penalty allows.

    .. math:: \max_{f, g} \; \operatorname{cov}(f(x), g(y)) \quad \text{with} \quad
              \operatorname{var} f(x) + \kappa_x \|f\|_{H_x}^2 = \operatorname{var} g(y) + \kappa_y \|g\|_{H_y}^2 = 1

    and further pairs orthogonal to the first (Bach and Jordan 2002; Hardoon, Szedmak and Shawe-Taylor 2004). Without a
    penalty a kernel of full rank finds correlation 1 in noise.

    Parameters
    ----------
    n_components
        How many pairs of functions.
    kernel, kernel_y
        Of the two views, as for `KernelRidge`; kernel_y=None is as the first.
    gamma, degree, coef0, kernel_params
        Of named kernels, for both views; kernel objects have their own.
    kappa
        kappa_x and kappa_y, > 0, in units of the mean squared distance of the images from their mean in H, so that a
        multiple of a kernel gives the same model.
    rank
        The most directions of each H that take part; None to choose: all for up to 1,500 samples, beyond that a pivoted
        Cholesky factor of rank 2,000 or less, as the budget and `tol` allow.
    tol
        The share of the trace of a kernel matrix that such a factor may leave out.
    random_state
        Of its pivots.
    budget
        As for `KernelPCA`.
    scale, max_iter, copy
        Of scikit-learn's `CCA`; nothing here depends on them.

    Attributes
    ----------
    correlations_
        cov(f, g) of each pair, largest first. The correlation on the training samples is larger, that on new ones,
        `correlations(X, y)`, smaller.
    function_
        The f and the g: two `RKHSVector`, with offsets that make their training means 0.
    kernel_, kernel_y_
        The kernels, with every parameter resolved.
    rank_, factor_error_
        For each view: directions that took part, and the share of the trace that was left out.
    plan_
        How each view was decomposed.
    n_iter_
        1: nothing is iterated.

    Notes
    -----
    `transform(X)` and `transform(X, y)` are those of `sklearn.cross_decomposition.CCA`. Where a view has fewer
    directions than n_components, the rest of the components are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelCCA
    >>> t = np.random.default_rng(0).uniform(-3, 3, (400, 3))
    >>> X = t[:, :2]  # both views contain t_0, one of them its square
    >>> Y = np.column_stack([t[:, 0] ** 2, t[:, 2]])
    >>> model = KernelCCA(1, kernel="rbf", gamma=0.5).fit(X[:300], Y[:300])
    >>> bool(model.score(X[300:], Y[300:]) > 0.95)
    True
    """

    n_components: int = 2
    _: KW_ONLY
    kernel: Any = "rbf"
    kernel_y: Any = None
    kappa: float = 0.01
    rank: int | None = None
    tol: float = 1e-6
    random_state: Any = 0
    scale: bool = True
    max_iter: int = 500
    copy: bool = True

    _rules: ClassVar[Rules] = PAIRWISE_RULES | {
        "n_components": (lambda v: whole(v, 1), "a whole number >= 1"),
        "kernel_y": (
            lambda v: v is None or PAIRWISE_RULES["kernel"][0](v),
            f"None, or {PAIRWISE_RULES['kernel'][1]}",
        ),
        "kappa": (lambda v: is_real(v) and 0 < v < math.inf, "a finite number > 0"),
        "rank": (lambda v: v is None or whole(v, 1), "a whole number >= 1, or None"),
        "tol": (lambda v: is_real(v) and 0 <= v < 1, "a share with 0 <= tol < 1"),
    }
    _unnecessary: ClassVar[Unnecessary] = {
        "scale": (True, "features are as the kernels compare them; standardise them before where they differ in unit"),
        "max_iter": (500, "the functions follow from decompositions, not from iterations"),
        "copy": (True, "neither view is changed"),
    }

    # -- fit --------------------------------------------------------------------------------------------

    @whole_fit
    def fit(self, X: Any, y: Any) -> Self:
        """Find the functions.

        Parameters
        ----------
        X, y
            The two views of the same samples, each a matrix, a table, or whatever its kernel compares; the square
            matrix of similarities where its kernel is "precomputed". A vector y is a matrix of one column.

        Returns
        -------
        self
        """
        check_parameters(self)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        data, _ = self._read(X, targets=False)
        second_kernel = self.kernel if self.kernel_y is None else self.kernel_y
        shared = {name: getattr(self, name) for name in ("gamma", "degree", "coef0", "kernel_params", "budget")}
        other = SecondView(second_kernel, **shared)
        second = other._read_second(y)
        check_consistent_length(data, second)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=2)
        views: list[View] = []
        sides: list[tuple[ViewModel, Any]] = [(self, data), (other, second)]
        for (model, points), seed in zip(sides, seeds, strict=True):
            training = model._training(points, None)
            views.append(view(model._gram(training), self.rank, self.tol, int(seed)))
            model._keep_data(points, training.kernel)
        self.correlations_, a, b = canonical(views[0], views[1], int(self.n_components), float(self.kappa))
        self._keep_functions(views[0], a)
        other._keep_functions(views[1], b)
        self._second = other
        self.kernel_y_: Kernel = other.kernel_
        self.rank_ = tuple(len(v.s) for v in views)
        self.factor_error_ = np.array([v.error for v in views])
        self.plan_ = tuple(v.how for v in views)
        self.n_iter_ = 1
        return self

    # -- scores -----------------------------------------------------------------------------------------

    def transform(self, X: Any, y: Any = None) -> Any:
        """Return f at the points of the first view, and with y also g at those of the second: (points, components).

        Parameters
        ----------
        X, y
            Points as in `fit`; similarities to all training samples where a kernel is "precomputed".
        """
        check_is_fitted(self)
        first = self._scores(self._read_new(X))
        return first if y is None else (first, self._second._scores(self._second._read_second(y, fitting=False)))

    def fit_transform(self, X: Any, y: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Find the functions and return the training scores of both views.

        Parameters
        ----------
        X, y
            As for `fit`.
        """
        first, second = self.fit(X, y).transform(X, y)
        return first, second

    def correlations(self, X: Any, y: Any) -> np.ndarray:
        """Return the correlation of each pair of functions on new samples; 0 where one of them is constant.

        Parameters
        ----------
        X, y
            As for `transform`.
        """
        first, second = self.transform(X, y)
        check_consistent_length(first, second)
        first, second = (scores - scores.mean(axis=0) for scores in (first, second))
        sizes = np.linalg.norm(first, axis=0) * np.linalg.norm(second, axis=0)
        return np.einsum("ij,ij->j", first, second) / np.where(sizes > 0, sizes, 1.0)

    def score(self, X: Any, y: Any) -> float:
        """Return the mean of `correlations(X, y)`.

        Parameters
        ----------
        X, y
            As for `transform`.
        """
        return float(self.correlations(X, y).mean())

    @property
    def function_(self) -> tuple[RKHSVector, RKHSVector]:
        """The functions of the two views."""
        check_is_fitted(self)
        return self._functions(), self._second._functions()

    @property
    def _n_features_out(self) -> int:
        return int(self._A.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
