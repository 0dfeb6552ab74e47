"""Principal components of the images of the data in H."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.extmath import svd_flip
from sklearn.utils.validation import check_array, check_is_fitted

from mercer.certify import Stop, seen_indefinite
from mercer.estimators.regression.kernel_ridge import KernelRidge
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
from mercer.estimators.unsupervised.base import Images, like
from mercer.gram import Gram, top_eigenpairs
from mercer.gram.matrix import KernelMatrix
from mercer.kernels import RBF, Kernel
from mercer.machine.warn import warn
from mercer.points import Points
from mercer.rkhs import RKHSVector
from mercer.rkhs.functions.preimage import METHODS, dense_rows, preimages

# scikit-learn's thresholds for eigenvalues, relative to the largest: below the first they are 0, below minus the second
# the kernel is not positive semidefinite.
_NULL, _INDEFINITE = 1e-12, 1e-5
_EPS = float(np.finfo(float).eps)
_ROUGH = 2000  # points beyond which float32 values serve for sums over all: these are good to a few 1e-7
_BATCH = 2**24  # numbers of coefficients that preimages hold at a time


@with_parameters
class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Images):
    r"""Principal component analysis in the space of a kernel, from products with its matrix alone where n is large.

    .. math:: H K H v_j = \lambda_j v_j, \quad H = I - \tfrac1n 1 1^T, \qquad
              f_j = \lambda_j^{-1/2} \sum_i v_{ij} (k(x_i, \cdot) - m), \quad m = \tfrac1n \sum_i k(x_i, \cdot)

    The f_j are orthonormal in H, and a point is mapped to the inner products of phi(x) - m with them (Schoelkopf, Smola
    and Mueller 1998).

    Parameters
    ----------
    n_components
        How many; None for all whose eigenvalue is not 0, which takes the whole matrix.
    kernel, gamma, degree, coef0, kernel_params
        As for `KernelRidge`.
    alpha
        The penalty of the ridge regression that learns the way back (`fit_inverse_transform`).
    fit_inverse_transform
        Whether to learn the way back, as scikit-learn does.
    preimage
        How `inverse_transform` finds points: "ridge", a map learned by kernel ridge regression from the components to X
        (Bakir, Weston and Schoelkopf 2004), which needs `fit_inverse_transform`; "distances", by those to the nearest
        training points (Kwok and Tsang 2004); "fixed_point" and "gradient", the point x whose phi(x) is nearest in H
        (Mika et al. 1999); or "auto": the learned map if there is one, else the search that suits the kernel.
    tol
        |H K H v - lambda v| to reach, relative to the largest eigenvalue, where the matrix is not decomposed whole; 0
        for what rounding allows.
    remove_zero_eig
        Whether to drop components whose eigenvalue is 0, where n_components is given.
    random_state
        Of the iteration's start.
    budget
        Bytes that the fit may use, as for `SVC`. A matrix that does not fit is not formed.
    eigen_solver, max_iter, iterated_power, copy_X, n_jobs
        Of scikit-learn; nothing here depends on them.

    Attributes
    ----------
    eigenvalues_, eigenvectors_
        lambda_j, largest first, and v_j in columns, with scikit-learn's signs.
    explained_variance_ratio_
        The lambda_j as shares of their sum over all components: of the trace of H K H.
    residuals_, plan_
        |H K H v_j - lambda_j v_j|, and how the eigenvectors were found.
    dual_coef_, X_transformed_fit_
        The learned way back: coefficients of X in the kernels at the components of the training points.
    function_
        The f_j as an `RKHSVector`; their offsets are -<f_j, m>, so that `transform` returns their values.
    kernel_, X_fit_
        The kernel with every parameter resolved, and the training points.
    gamma_
        The gamma of a kernel that is named: as given, or 1 / n_features.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from mercer import KernelPCA
    >>> X, y = make_circles(200, factor=0.3, noise=0.05, random_state=0)
    >>> model = KernelPCA(2, kernel="rbf", gamma=2.0)
    >>> Z = model.fit_transform(X)
    >>> bool(Z[y == 1, 0].min() > Z[y == 0, 0].max())
    True
    >>> bool(abs(model.function_[0].norm() - 1) < 1e-8)
    True
    """

    n_components: int | None = None
    _: KW_ONLY
    kernel: Any = "linear"
    alpha: float = 1.0
    fit_inverse_transform: bool = False
    preimage: str = "auto"
    tol: float = 1e-6
    remove_zero_eig: bool = False
    random_state: Any = 0
    eigen_solver: str = "auto"
    max_iter: int | None = None
    iterated_power: int | str = "auto"
    copy_X: bool = True  # noqa: N815
    n_jobs: int | None = None

    _rules: ClassVar[Rules] = PAIRWISE_RULES | {
        "n_components": (lambda v: v is None or whole(v, 1), "a whole number >= 1, or None for all"),
        "alpha": (lambda v: is_real(v) and 0 <= v < math.inf, "a finite number >= 0"),
        "preimage": (lambda v: v in ("auto", "ridge", *METHODS), f"'auto', 'ridge', {', '.join(map(repr, METHODS))}"),
        "tol": (lambda v: is_real(v) and 0 <= v < 1, "a relative residual with 0 <= tol < 1"),
    }
    _unnecessary: ClassVar[Unnecessary] = {
        "eigen_solver": ("auto", "the solver follows from n, n_components and the budget; plan_ says which it was"),
        "max_iter": (None, "products with the matrix are taken until tol is reached, or a warning says why it is not"),
        "iterated_power": ("auto", "eigenvectors are refined until tol is reached"),
    }

    # -- fit --------------------------------------------------------------------------------------------

    @whole_fit
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the components.

        Parameters
        ----------
        X
            The training points: a matrix (dense or sparse), a table, or whatever the kernel compares; the square matrix
            of similarities for kernel="precomputed".
        y
            Ignored.

        Returns
        -------
        self
        """
        check_parameters(self)
        data, _ = self._read(X, targets=False)
        if self.fit_inverse_transform:
            self._invertible(data)
        training = self._training(data, None)
        gram = self._gram(training)
        n = gram.shape[0]
        k = n if self.n_components is None else min(int(self.n_components), n)
        if 2 * k > n:
            gram.budget.require(
                32 * n * n,
                f"the decomposition of {n} points into {k} components",
                "ask for fewer with n_components, or raise the budget.",
            )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        pairs = top_eigenpairs(gram, k, center=True, tol=max(self.tol, _EPS), seed=seed)
        sums = _row_sums(gram) if pairs.sums is None else pairs.sums
        values = self._nonnegative(pairs.values, gram)
        vectors = svd_flip(pairs.vectors, None)[0]
        if self.remove_zero_eig or self.n_components is None:
            kept = values > 0
            values, vectors, residuals = values[kept], vectors[:, kept], pairs.residuals[kept]
        else:
            residuals = pairs.residuals
        self._keep_data(data, training.kernel)
        self.eigenvalues_, self.eigenvectors_, self.residuals_ = values, vectors, residuals
        self.plan_ = pairs.how
        self._row_means = sums / n
        trace = float(gram.trace()) - float(sums.sum()) / n  # of H K H
        self._trace = max(trace, 0.0, float(values.sum()))
        self.explained_variance_ratio_ = values / self._trace if self._trace > 0 else np.zeros(len(values))
        if why := seen_indefinite(gram, centred=True):
            warn(
                f"{why.replace('the kernel', f'the centred kernel {gram.kernel!r}', 1)}: directions with negative "
                "eigenvalues are no components, and explained_variance_ratio_ is a share of what they leave. "
                "mercer.repair makes the nearest matrix without them.",
                UserWarning,
            )
        self._A, self._b = self._coefficients()
        for name in ("dual_coef_", "X_transformed_fit_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if self.fit_inverse_transform:
            self._learn_inverse()
        return self

    def _nonnegative(self, values: np.ndarray, gram: Gram) -> np.ndarray:
        """Return the eigenvalues with those that are 0 but for rounding set to 0."""
        if not np.isfinite(values).all():
            raise FloatingPointError(
                f"the eigenvalues of the matrix of {gram.kernel!r} exceed the range of float64; scale the data."
            )
        largest = float(values[0])
        rounding = _EPS * float(np.abs(gram.diag()).sum())
        if float(values[-1]) < -_INDEFINITE * max(largest, 0.0) - 8 * rounding:
            raise ValueError(
                "There are significant negative eigenvalues: the centred kernel matrix has "
                f"{values[-1]:.3g}, and the largest is {largest:.3g}, so that {gram.kernel!r} is not positive "
                "semidefinite on these points. mercer.verdict shows it; mercer.repair makes the nearest matrix that is."
            )
        return np.where(values > max(_NULL * largest, rounding), values, 0.0)

    def _coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        """Return A and b of f_j = sum_i A_ij k(x_i, .) + b_j; the columns of A sum to 0, which does the centring."""
        values, vectors = self.eigenvalues_, self.eigenvectors_
        scale = np.where(values > 0, 1.0 / np.sqrt(np.where(values > 0, values, 1.0)), 0.0)
        A = (vectors - vectors.mean(axis=0)) * scale
        return A, -(self._row_means @ A)

    # -- forth ------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> np.ndarray:
        """Return the components of new points, (points, components).

        Parameters
        ----------
        X
            Points as in `fit`; for kernel="precomputed", their similarities to all training samples.
        """
        check_is_fitted(self)
        return like(X, self._sums(self._read_new(X), self._A) + self._b)

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Find the components and return those of the training points, v_j sqrt(lambda_j).

        Parameters
        ----------
        X, y
            As for `fit`.
        """
        return like(X, self.fit(X)._projected)

    @property
    def _projected(self) -> np.ndarray:
        return np.asarray(self.eigenvectors_ * np.sqrt(self.eigenvalues_))

    def reconstruction_error(self, X: Any) -> np.ndarray:
        r"""Return the squared distance in H from each point to the components' span.

        .. math:: \|\phi(x) - m\|^2 - \sum_j f_j(x)^2

        It is large where the components do not describe a point (Hoffmann 2007); over the training points it sums to
        the trace of H K H less the eigenvalues.

        Parameters
        ----------
        X
            Points as in `fit`.
        """
        check_is_fitted(self)
        data = self._read_new(X)
        n = len(self._row_means)
        both = self._sums(data, np.column_stack([self._A, np.full(n, 1.0 / n)]))
        length = self._own(data) - 2.0 * both[:, -1] + self._row_means.mean()
        inside = np.square(both[:, :-1] + self._b).sum(axis=1)
        return np.asarray((length - inside).clip(min=0.0))

    @property
    def gamma_(self) -> float | None:
        """The gamma of a kernel that is named: as given, or 1 / n_features."""
        check_is_fitted(self)
        return self.gamma if self.gamma is not None or self._kind != "vectors" else 1.0 / self.n_features_in_

    @property
    def function_(self) -> RKHSVector:
        """The components as functions of H, with the offsets that centre them."""
        check_is_fitted(self)
        return RKHSVector(self.kernel_, self._points_fit, self._A, self._b)

    # -- and back ---------------------------------------------------------------------------------------

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return points whose components are close to the given ones; see the parameter `preimage`.

        Parameters
        ----------
        X
            Components, (points, n_components).
        """
        check_is_fitted(self)
        learned = hasattr(self, "dual_coef_")
        if not learned and self.preimage == "ridge":
            raise NotFittedError(
                "preimage='ridge' is a map learned in fit, and this model was fitted with fit_inverse_transform=False; "
                "set it to True, or let preimage be 'auto'."
            )
        Z = check_array(X, dtype=np.float64)
        k = len(self.eigenvalues_)
        if Z.shape[1] != k:
            raise ValueError(f"X has {Z.shape[1]} columns; inverse_transform needs one for each of the {k} components.")
        if self.preimage == "ridge" or (self.preimage == "auto" and learned):
            return np.asarray(Gram(self._inverse_kernel, Z, self.X_transformed_fit_).matvec(self.dual_coef_))
        self._invertible(self.X_fit_)
        n, X_fit = len(self._A), dense_rows(self.X_fit_)
        step = max(1, _BATCH // n)
        parts = [
            preimages(self.kernel_, X_fit, self._A @ Z[i : i + step].T + 1.0 / n, method=self.preimage).points
            for i in range(0, len(Z), step)
        ]
        return np.concatenate(parts)

    def _invertible(self, data: Any) -> None:
        """Say so where points of the kind of the data cannot be made from components."""
        name = type(self).__name__
        if self._kind == "similarities":
            raise ValueError(
                f"Cannot fit_inverse_transform with a precomputed kernel: {name} sees no points then, and has none to "
                "return. Pass the points and a kernel object."
            )
        if not Points(data).numeric:
            raise TypeError(
                f"{name} cannot return points of the kind it was fitted to ({type(data).__name__}): only rows of "
                "numbers have a way back."
            )

    def _learn_inverse(self) -> None:
        """Learn X from the components by kernel ridge regression, with the same kernel where it can compare them."""
        Z, X = self._projected, dense_rows(self.X_fit_)
        self.X_transformed_fit_ = Z
        if not Z.shape[1]:
            raise ValueError(
                "all components are 0 (the images of all points are equal); there is no way back to learn."
            )
        self._inverse_kernel = _comparing(self.kernel_, Z)
        ridge = KernelRidge(self.alpha, kernel=self._inverse_kernel, residual=1e-10, budget=self.budget)
        self.dual_coef_ = ridge.fit(Z, X).dual_coef_
        if ridge.certificate_.stopped == Stop.INTERRUPTED:
            raise KeyboardInterrupt

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _row_sums(gram: Gram) -> np.ndarray:
    """Return K 1; for many points from float32 values, if these are known to be good: their errors cancel."""
    matrix = KernelMatrix(gram)
    ones = np.ones((gram.shape[0], 1))
    return matrix(ones, matrix.single and len(ones) > _ROUGH)[:, 0]


def _comparing(kernel: Kernel, Z: np.ndarray) -> Kernel:
    """Return the kernel, or a Gaussian one where the kernel's parameters are for points of another width."""
    try:
        kernel(Z[:1])
    except (ValueError, IndexError, KeyError, TypeError):
        return RBF("median").resolve(Points(Z))
    return kernel
