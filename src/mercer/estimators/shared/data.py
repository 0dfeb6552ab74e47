"""Data of a fit: from what a user passes to points, a kernel and weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d, validate_data

from mercer.estimators.shared.classes import as_given, shown
from mercer.estimators.shared.parameters import AUTO, FromMatrices, compares_vectors, named_kernel
from mercer.gram import Gram
from mercer.gram.similarities import asymmetry
from mercer.kernels import FromFunction, Kernel, Linear, Precomputed
from mercer.kernels.rules.scikit_learn import as_kernel
from mercer.machine.budget import Budget
from mercer.points import Points
from mercer.rkhs.functions.sums import Expansion

_ROUNDING = 1e-5  # of the largest entry: the asymmetry of K that may be rounding of float32
FAR = 1e140  # numbers beyond which sums of squares leave the range of float64
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
_MATRIX: dict[str, Any] = {"dtype": [np.float64, np.float32], "order": "C"}
_SMALL = 1500  # points whose matrix is within any budget: 18 MB


@dataclass
class Training:
    """The samples that count, as the solver sees them."""

    points: Points
    kernel: Kernel
    weights: np.ndarray | None  # None where all are 1
    rows: np.ndarray | None  # which of the samples given these are; None for all

    def original(self, index: np.ndarray) -> np.ndarray:
        """Return the numbers, among the samples given, of the chosen ones."""
        return index if self.rows is None else self.rows[index]


class KernelData(BaseEstimator):
    """Reads X by the kernel that will compare it: as vectors, as similarities, or as it is."""

    _numeric_target: ClassVar[bool] = False
    _compares_two: ClassVar[bool] = False  # whether a function as kernel takes two points rather than two sets of them
    _whole_matrices: ClassVar[bool] = True  # whether a function of two sets is called with all points where that fits
    gamma: Any = "scale"  # of named kernels, where a model has no parameters for it
    degree: int = 3
    coef0: float = 1.0
    kernel_params: dict[str, Any] | None = None
    kernel_: Any
    _expansion: Expansion

    @property
    def _given_kernel(self) -> Any:
        """The parameter `kernel`: a name, a kernel object or a function."""
        return as_kernel(self.kernel)

    def _read(self, X: Any, y: Any = None, targets: bool = True) -> tuple[Any, Any]:
        """Return the training data, validated; sets n_features_in_ and feature_names_in_."""
        self._kind = self._reads()
        how, y = self._reads_targets(), as_given(y)
        if how[0]:
            refuse_words(self, y)
        if self._kind in ("anything", "function"):
            data = read_anything(self, X, fitting=True, arrays=self._kind == "function")
            return data, read_targets(self, data, y, *how) if targets else None
        if targets and y is None:
            read_targets(self, X, y, *how)  # says so
        read = read_similarities if self._kind == "similarities" else read_vectors
        data, y = read(self, X, y, *how)
        return data.astype(np.float64, copy=False) if self.dtype == "float64" else data, y

    def _reads_targets(self) -> tuple[bool, bool]:
        """How y is read: whether as numbers, and whether it may have several columns."""
        return self._numeric_target, False

    def _reads(self) -> str:
        """How X is read: as "similarities", as "vectors", as "anything", or for a "function", which gets arrays."""
        kernel = self._given_kernel
        if isinstance(kernel, str):
            return "similarities" if kernel == "precomputed" else "vectors"
        if not isinstance(kernel, Kernel):
            return "function"
        return "vectors" if compares_vectors(kernel) else "anything"

    def _read_new(self, X: Any) -> Any:
        """Return new points, validated against the training data."""
        if self._kind == "similarities":
            return read_new_similarities(self, X, self.shape_fit_[0])
        if self._kind == "vectors":
            return read_new_vectors(self, X)
        return read_anything(self, X, fitting=False, arrays=self._kind == "function")

    def _resolved(self, data: Any) -> Kernel:
        """Return the kernel object, with every parameter known."""
        kernel = self._given_kernel
        if isinstance(kernel, str):
            if kernel == "precomputed":
                return Precomputed(data)
            return named_kernel(kernel, Points(data), self.gamma, self.degree, self.coef0)
        if isinstance(kernel, Kernel):
            return kernel.resolve(Points(data))
        if self._compares_two:
            return FromFunction(partial(kernel, **self.kernel_params) if self.kernel_params else kernel)
        return FromMatrices(kernel)

    def _training(self, data: Any, sample_weight: Any, kernel: Kernel | None = None) -> Training:
        """Return the samples with a positive weight; `kernel` is that of a fitted model, or one that was found."""
        n = int(data.shape[0]) if hasattr(data, "shape") else len(data)
        weights, rows = positive_weights(sample_weight, n)
        if isinstance(self.kernel, Precomputed):
            check_symmetric(np.asarray(self.kernel.matrix))
        if kernel is None or self._kind == "similarities":
            kernel = self._resolved(data)
        points = Points(np.arange(n) if self._kind == "similarities" else data)
        if self._whole_matrices and self._kind == "function" and isinstance(kernel, FromMatrices) and self._fits(n, n):
            matrix = kernel.matrix(points, points)
            check_symmetric(matrix, "matrix of the kernel function", "Return")
            kernel, points = Precomputed(matrix), Points(np.arange(n))
        return Training(points if rows is None else points.take(rows), kernel, weights, rows)

    def _fits(self, rows: int, columns: int) -> bool:
        """Whether the budget has room for a matrix and a copy of it."""
        if self.budget is None and rows * columns <= _SMALL**2:
            return True
        return 16 * rows * columns <= Budget(self.budget)

    def _function_values(self, X: Any, fitted: Any, columns: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the values of a function at validated points and some columns of all training points.

        It is called with all points and all training points, as scikit-learn calls it. If that matrix does not fit, it
        is called with some points after the other.
        """
        new, old = Points(X), Points(fitted)
        step = len(new) if self._fits(len(new), len(old)) else max(1, Budget(self.budget) // (16 * len(old)))
        for start in range(0, len(new), step):
            yield self.kernel_.matrix(new.take(slice(start, start + step)), old)[:, columns]

    def _sums_of(self, X: Any, support: np.ndarray, everyone: Any) -> np.ndarray:
        """Return the kernel sums of each block of `_expansion` at validated points, (points, blocks, functions).

        Its centres are the samples `support` of the training data `everyone`.
        """
        if self._kind == "similarities":
            return self._expansion.sums_of_rows(X[:, support])
        if self._kind == "function" and isinstance(self.kernel_, FromMatrices):
            values = self._function_values(X, everyone, support)
            return np.concatenate([self._expansion.sums_of_rows(some) for some in values])
        return self._expansion.sums(X)

    @property
    def _linear(self) -> bool:
        """Whether f is w.x + b of the features, so that w takes the place of the expansion."""
        return isinstance(self.kernel_, Linear) and self._kind == "vectors"

    def _gram(self, training: Training) -> Gram:
        points = training.points
        budget = self.budget
        if budget is None and len(points) <= _SMALL:
            budget = 8 * _SMALL**2  # asking the system how much is free would take longer than the fit
        return Gram(training.kernel, points, budget=budget)

    # -- for searches, which fit many models to parts of the same data ------------------------------------

    @property
    def input_kind(self) -> str:
        """How X is read: as "similarities", as "vectors", as "anything", or for a "function", which gets arrays."""
        return self._reads()

    @property
    def kernel_key(self) -> Any:
        """What the kernel depends on beside the data: a tuple, or where it waits for no data the kernel itself."""
        given = self._given_kernel
        if isinstance(given, Kernel) and given.resolved:
            return given
        return given, self.gamma, self.degree, self.coef0, repr(self.kernel_params)

    def read_training(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return X and y as `fit` reads them, validated."""
        return self._read(X, y)

    def kernel_of(self, data: Any) -> Kernel:
        """Return the kernel of a fit to data that were read, with every parameter known."""
        return self._resolved(data)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        similarities = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.input_tags.pairwise = similarities
        tags.input_tags.sparse = not similarities
        return tags


def chosen_kernel(model: Any, X: Any, y: Any, sample_weight: Any) -> Kernel | None:
    """Return the kernel that a search finds for kernel="auto", and None for every other; sets or removes `account_`.

    The search stands above the estimators. This is the one place that calls upwards, and only when a fit asks for it.
    """
    if not asks_for_choice(model.kernel):
        vars(model).pop("account_", None)  # of an earlier fit
        return None
    from mercer.selection import choose_kernel

    kernel, model.account_ = choose_kernel(model, X, y, sample_weight)
    return kernel


def asks_for_choice(kernel: Any) -> bool:
    """Whether a parameter `kernel` says that one is to be found."""
    return isinstance(kernel, str) and kernel == AUTO


def read_vectors(estimator: Any, X: Any, y: Any, numeric: bool, many: bool = False) -> tuple[Any, Any]:
    """Return the training data as a matrix of float32 or float64, dense or CSR, and the targets, if there are any."""
    if y is None:
        return validate_data(estimator, X, accept_sparse="csr", **_MATRIX), None
    if _plain(
        X, y
    ):  # nothing to convert or to complain about: the usual way takes a fifth of a tiny fit to find that out
        estimator.n_features_in_ = X.shape[1]
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        return X, y
    return validate_data(estimator, X, y, y_numeric=numeric, multi_output=many, accept_sparse="csr", **_MATRIX)


def _plain(X: Any, y: Any) -> bool:
    """Whether scikit-learn's validation would return both as they are: finite arrays of the right shapes and types."""
    if type(X) is not np.ndarray or type(y) is not np.ndarray or X.dtype not in _FLOATS or y.dtype.kind not in "iuf":
        return False
    if X.ndim != 2 or y.ndim != 1 or len(X) != len(y) or not X.size or not X.flags.c_contiguous:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(X.sum()) and (y.dtype.kind != "f" or np.isfinite(y.sum())))


def read_new_vectors(estimator: Any, X: Any) -> Any:
    """Return a matrix with the columns that the model was fitted to."""
    with np.errstate(invalid="ignore"):  # the sum that shows whether all are finite may be inf - inf
        return validate_data(estimator, X, reset=False, accept_sparse="csr", **_MATRIX)


def read_anything(estimator: Any, X: Any, fitting: bool, arrays: bool = False) -> Any:
    """Return X as it is, with its width and column names (where it has them) remembered or checked.

    A list of objects (sequences, sets, graphs, ...) has no width, whatever the length of the first one is. With
    `arrays`, a list of rows of numbers is no such list but a matrix.
    """
    if hasattr(X, "__iter__") and not hasattr(X, "__len__") and not hasattr(X, "shape"):
        X = list(X)
    Points(X)  # refuses, in a sentence, an X that is no set of points
    if arrays:
        X = _rows_of_numbers(X)
    if len(getattr(X, "shape", ())) == 2:
        validate_data(estimator, X, reset=fitting, skip_check_array=True)
    elif fitting:
        for name in ("n_features_in_", "feature_names_in_"):  # of an earlier fit
            vars(estimator).pop(name, None)
    return X


def _rows_of_numbers(X: Any) -> Any:
    """Return a list of equally long rows of numbers as a matrix, and anything else as it is."""
    if not isinstance(X, list | tuple) or not isinstance(X[0], list | tuple | np.ndarray):
        return X
    try:
        matrix = np.asarray(X)
    except ValueError:  # rows of different lengths
        return X
    return matrix if matrix.ndim == 2 and matrix.dtype.kind in "fiub" else X


def read_similarities(estimator: Any, X: Any, y: Any, numeric: bool, many: bool = False) -> tuple[np.ndarray, Any]:
    """Return the square matrix of similarities of the training samples, and the targets, if there are any."""
    if sparse.issparse(X):
        raise TypeError("Sparse precomputed kernels are not supported; pass X.toarray().")
    if y is None:
        X = validate_data(estimator, X, **_MATRIX)
    else:
        X, y = validate_data(estimator, X, y, y_numeric=numeric, multi_output=many, **_MATRIX)
    if X.shape[0] != X.shape[1]:
        raise ValueError(f"Precomputed matrix must be a square matrix of similarities; X has shape {X.shape}.")
    check_symmetric(X)
    return X, y


def check_symmetric(K: np.ndarray, what: str = "precomputed kernel matrix", remedy: str = "Pass") -> None:
    """Refuse similarities that depend on the order of two samples, beyond the rounding errors of float32."""
    gap, (i, j) = asymmetry(K)
    if gap > _ROUNDING:
        raise ValueError(
            f"the {what} K is asymmetric: K[{i}, {j}] is {K[i, j]:.6g} and K[{j}, {i}] is {K[j, i]:.6g}, and no kernel "
            f"depends on the order of two points. {remedy} (K + K.T) / 2."
        )


def read_new_similarities(estimator: Any, X: Any, width: int) -> np.ndarray:
    """Return the similarities of new points to all training samples."""
    if sparse.issparse(X):
        raise TypeError("Sparse precomputed kernels are not supported; pass X.toarray().")
    X = validate_data(estimator, X, reset=False, **_MATRIX)
    if X.shape[1] != width:
        raise ValueError(
            f"X has {X.shape[1]} columns; with kernel='precomputed' it needs one for each of the {width} samples at "
            "training time."
        )
    return X


def read_targets(estimator: Any, data: Any, y: Any, numeric: bool, many: bool = False) -> np.ndarray:
    """Return the targets that go with data of any kind; with `many`, one column for each of several."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    y = check_array(y, ensure_2d=False, dtype=None, ensure_all_finite=False) if many else column_or_1d(y, warn=True)
    check_consistent_length(data, y)
    if y.dtype.kind == "f" or numeric:
        y = y.astype(np.float64) if numeric else y
        if not np.isfinite(y).all():
            i = int(np.argmin(np.isfinite(y).reshape(len(y), -1).all(axis=1)))
            raise ValueError(f"Input y contains NaN or infinity: y[{i}] is {y[i]}.")
    return y


def refuse_words(estimator: Any, y: Any) -> None:
    """Raise ValueError where targets that must be numbers are words."""
    kind = getattr(getattr(y, "dtype", None), "kind", "O")
    for value in np.asarray(y).ravel() if y is not None and kind in "OUS" else ():
        try:
            float(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"y contains {shown(value):.80}, and {type(estimator).__name__} predicts numbers; encode y, or take a "
                "classifier such as SVC."
            ) from None


def positive_weights(sample_weight: Any, n: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the weights that are not 0, and the numbers of their samples; None and None if all weights are 1."""
    if sample_weight is None:
        return None, None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise ValueError(
            f"Sample weights must be 1D array or scalar: sample_weight.shape == {weight.shape}, and ({n},), one for "
            "each sample, is needed."
        )
    if not np.isfinite(weight).all():
        i = int(np.argmin(np.isfinite(weight)))
        raise ValueError(f"sample_weight[{i}] is {weight[i]}; weights must be finite (NaN and infinity are not).")
    if (weight < 0).any():
        i = int(np.argmax(weight < 0))
        raise ValueError(
            f"sample_weight[{i}] is {weight[i]:g}; with negative weights the objective has no minimum. Use >= 0."
        )
    rows = np.flatnonzero(weight)
    far = rows[(weight[rows] > FAR) | (weight[rows] < 1 / FAR)]
    if len(far):
        raise ValueError(
            f"sample_weight[{far[0]}] is {weight[far[0]]:.3g}, whose square leaves the range of float64; only weights "
            f"between {1 / FAR:g} and {FAR:g} count. Divide all of them by one number, and C or alpha accordingly."
        )
    if not len(rows):
        raise ValueError("Invalid input - all samples have zero or negative weights; at least one must be positive.")
    return (weight, None) if len(rows) == n else (weight[rows], rows)
