"""Weights as a sparse matrix, for models most of whose weights are zero."""

from __future__ import annotations

from typing import Any, Self

from scipy import sparse
from sklearn.utils.validation import check_is_fitted


class SparseWeights:
    """What linear classifiers offer for their `coef_`, as in scikit-learn."""

    coef_: Any

    def sparsify(self) -> Self:
        """Keep `coef_` as a sparse matrix, which takes less memory and time where more than half of it is zero."""
        check_is_fitted(self, "coef_")
        self.coef_ = sparse.csr_matrix(self.coef_)
        return self

    def densify(self) -> Self:
        """Keep `coef_` as an array again."""
        check_is_fitted(self, "coef_")
        if sparse.issparse(self.coef_):
            self.coef_ = self.coef_.toarray()
        return self
