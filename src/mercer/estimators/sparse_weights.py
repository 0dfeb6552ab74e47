"""Weights as a sparse matrix, for models most of whose weights are zero."""

from __future__ import annotations

from typing import Any, Self

from scipy import sparse
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

_has_weights = available_if(lambda self: getattr(self, "kernel", None) is None)


class SparseWeights:
    """What linear classifiers offer for their `coef_`, as in scikit-learn."""

    coef_: Any

    @_has_weights
    def sparsify(self) -> Self:
        """Keep `coef_` as a sparse matrix, which takes less memory and time where more than half of it is zero."""
        check_is_fitted(self, "coef_")
        self.coef_ = sparse.csr_matrix(self.coef_)
        return self

    @_has_weights
    def densify(self) -> Self:
        """Keep `coef_` as an array again."""
        check_is_fitted(self, "coef_")
        if sparse.issparse(self.coef_):
            self.coef_ = self.coef_.toarray()
        return self
