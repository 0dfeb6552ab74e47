"""Feature maps of sums, products and multiples of kernels, from the maps of their parts."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from mercer.features.monomials import Monomials
from mercer.features.named import NamedFeatures

_MONOMIALS = 10**7  # of one point: more are not computed to learn how many features there are
_COMPARED = 16  # points at which a feature map is compared with its kernel
_ALIKE = 1e-9  # of the largest value: beyond it, the two are not the same


class TensorFeatures(TransformerMixin, BaseEstimator):
    """All products of a feature of one map with a feature of another.

    Phi(x) = Phi_1(x) (x) Phi_2(x), so that <Phi(x), Phi(z)> = <Phi_1(x), Phi_1(z)> <Phi_2(x), Phi_2(z)>.

    Parameters
    ----------
    left, right : transformer
        The two maps.

    Examples
    --------
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> TensorFeatures(FunctionTransformer(), FunctionTransformer()).fit_transform([[2.0, 3.0]]).tolist()
    [[4.0, 6.0, 6.0, 9.0]]
    """

    def __init__(self, left: Any, right: Any) -> None:
        self.left = left
        self.right = right

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit both maps."""
        self.left_ = clone(self.left).fit(X, y)
        self.right_ = clone(self.right).fit(X, y)
        return self

    def transform(self, X: Any) -> Any:
        """Return the products, the right map's features running fastest."""
        check_is_fitted(self)
        a, b = self.left_.transform(X), self.right_.transform(X)
        if sparse.issparse(a) or sparse.issparse(b):
            # Row i of the result is the Kronecker product of rows i: the transposed Khatri-Rao product.
            a, b = sparse.csr_array(a), sparse.csr_array(b)
            rows = [sparse.kron(a[[i]], b[[i]], format="csr") for i in range(a.shape[0])]
            return sparse.csr_array(sparse.vstack(rows))
        a, b = np.asarray(a), np.asarray(b)
        return (a[:, :, None] * b[:, None, :]).reshape(len(a), -1)


@dataclass(frozen=True)
class Times:
    """Multiplication by a number."""

    factor: float

    def __call__(self, X: Any) -> Any:
        return (X if sparse.issparse(X) else np.asarray(X)) * self.factor


@dataclass(frozen=True)
class ConstantColumn:
    """One column that holds the same number for every point."""

    value: float

    def __call__(self, X: Any) -> Any:
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        return np.full((n, 1), self.value)


def concatenated(left: Any, right: Any) -> FeatureUnion:
    """Return the map whose inner product is the sum of those of two maps."""
    return FeatureUnion([("left", left), ("right", right)])


def multiplied(base: Any, factor: float) -> Pipeline:
    """Return the map whose inner product is `factor` times that of `base`."""
    return make_pipeline(base, FunctionTransformer(Times(factor**0.5), accept_sparse=True))


def preceded(step: Any, base: Any) -> Pipeline:
    """Return the map that applies the function `step` to the points first."""
    return make_pipeline(FunctionTransformer(step, accept_sparse=True), base)


def exact_features(kernel: Any, X: Any, most: int) -> np.ndarray | None:
    """Return Phi with Phi Phi' the kernel matrix of X, in float64; None where there is none of so few columns.

    Parameters
    ----------
    kernel
        With every parameter known.
    X
        Points that the kernel compares.
    most
        Columns at most.
    """
    if getattr(getattr(X, "dtype", None), "kind", "") == "f":
        X = X.astype(np.float64, copy=False)
    wide = X.shape[1] if getattr(X, "ndim", 1) == 2 else 1
    try:
        phi = deepcopy(kernel.feature_map())  # a transformer of the user's stays as it is
        monomials = [p for p in (phi, *phi.get_params().values()) if isinstance(p, Monomials)]
        if any(Monomials.count(wide, p.degree, p.exact) > _MONOMIALS for p in monomials):
            return None
        named = any(isinstance(p, NamedFeatures) for p in (phi, *phi.get_params().values()))
        if named and phi.fit(X[:_COMPARED]).transform(X[:1]).shape[1] > most:  # all points have no fewer
            return None
        if phi.fit(X).transform(X[:1]).shape[1] > most:
            return None
        Phi = phi.transform(X)
        few = Phi[:_COMPARED].toarray() if sparse.issparse(Phi) else np.asarray(Phi[:_COMPARED], dtype=np.float64)
        K = np.asarray(kernel(X[:_COMPARED]), dtype=np.float64)
    except (TypeError, ValueError, AttributeError, KeyError, MemoryError):  # no finite map, or not of such points
        return None
    if not np.allclose(few @ few.T, K, rtol=0.0, atol=_ALIKE * float(np.abs(K).max())):
        return None  # a transformer that was fitted to other points
    return np.asarray(Phi.toarray() if sparse.issparse(Phi) else Phi, dtype=np.float64)
