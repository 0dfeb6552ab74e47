"""Sparse matrices, whose columns are numbers already."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.kernels import Kernel

_NUMBERS: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}


class SparseEncoder(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """The columns of a sparse matrix as they are, where `TableEncoder` makes numbers of those of a table.

    Nothing is centred, since zeros would no longer be zeros, and nothing is scaled: what a column is worth beside the
    others, as in a matrix of words or of counts, has been decided by whoever has made the matrix.

    Examples
    --------
    >>> from scipy import sparse
    >>> X = sparse.random_array((5, 1000), density=0.01, format="coo")
    >>> SparseEncoder().fit(X).transform(X).format
    'csr'
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Take note of the number of columns; y is ignored."""
        validate_data(self, X, **_NUMBERS)
        return self

    def transform(self, X: Any) -> Any:
        """Return the rows as a CSR matrix of numbers; dense ones stay dense."""
        check_is_fitted(self, "n_features_in_")
        return validate_data(self, X, reset=False, **_NUMBERS)

    def places(self, *kinds_wanted: str) -> list[int]:
        """Return which columns are of other kinds than numbers: none are."""
        return []

    def groups(self) -> dict[str, np.ndarray]:
        """Return which columns of the result were made of each column: itself."""
        return {str(name): np.array([i]) for i, name in enumerate(self.get_feature_names_out())}

    def named(self, kernel: Kernel) -> Kernel:
        """Return a kernel as it is: columns have numbers only."""
        return kernel

    def sentence(self) -> str:
        """Say what the columns are."""
        return "They are the columns of a sparse matrix, as they are."

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
