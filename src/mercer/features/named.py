"""The features of a map of objects, numbered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer.points import Points


class NamedFeatures(TransformerMixin, BaseEstimator):
    """The features that a map counts in strings, graphs or other objects, as columns of a sparse matrix.

    <Phi(x), Phi(z)> = k(x, z) for every x that was seen in ``fit``: features of other objects that occur in none of
    these have no column.

    Parameters
    ----------
    map : callable
        A map from points to bags of named features (`mercer.points.sets.named`); `k.feature_map()` chooses it.

    Attributes
    ----------
    names_ : ndarray
        The name of each column, a 62-bit number, in increasing order.
    n_features_out_ : int
        Number of columns.

    Examples
    --------
    >>> from mercer import Spectrum
    >>> phi = Spectrum(2).feature_map().fit(["banana", "bandana"])
    >>> phi.transform(["banana", "cabana"]).toarray()
    array([[2., 1., 0., 2., 0.],
           [1., 1., 0., 1., 0.]])
    """

    def __init__(self, map: Callable[[Points], Any]) -> None:
        self.map = map

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the features that occur.

        Parameters
        ----------
        X : sequence of objects
            Points.
        y : ignored
        """
        self.names_ = np.unique(self.map(Points.of(X)).indices)
        self.n_features_out_ = len(self.names_)
        return self

    def transform(self, X: Any) -> sparse.csr_array:
        """Count the features.

        Parameters
        ----------
        X : sequence of objects
            Points.

        Returns
        -------
        CSR of shape (n_samples, n_features_out_)
        """
        check_is_fitted(self)
        Phi = self.map(Points.of(X))
        column = np.searchsorted(self.names_, Phi.indices)
        column[column == self.n_features_out_] = 0
        known = self.names_[column] == Phi.indices if self.n_features_out_ else np.zeros(len(column), bool)
        kept = np.concatenate([[0], np.cumsum(known)])[Phi.indptr]
        shape = Phi.shape[0], max(1, self.n_features_out_)
        narrow = np.int32 if max(kept[-1], shape[1]) < 2**31 else np.int64  # which is all that LIBLINEAR reads
        return sparse.csr_array((Phi.data[known], column[known].astype(narrow), kept.astype(narrow)), shape=shape)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns, as texts."""
        check_is_fitted(self)
        return np.array([format(int(name), "x") for name in self.names_], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags
