"""The truncated Mercer feature map as a scikit-learn transformer (K9)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.kernels.rules.scikit_learn import as_kernel
from mercer.rkhs.mercer.expansion import MercerExpansion

_KINDS = (np.float64, np.float32)


class MercerFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""The features whose inner product is closest to a kernel, on average over a measure.

    .. math:: \Phi(x) = (\sqrt{\lambda_1} \varphi_1(x), \dots, \sqrt{\lambda_r} \varphi_r(x))

    Of all r features these leave the least of the kernel's trace. On the training points they are the coordinates of
    kernel principal components without centring.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    n_components : int, default=20
        The number r of features; there are fewer where fewer eigenvalues are told from 0.
    measure : law, Box or None, default=None
        As of `MercerExpansion`; None for the points given to ``fit``.
    random_state : int, default=0
        Of what is drawn to find eigenvectors of more than 2500 points.

    Attributes
    ----------
    expansion_ : MercerExpansion
        The expansion.
    eigenvalues_ : ndarray
        Its eigenvalues.
    n_features_in_ : int
        Number of features seen in ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF
    >>> from mercer.rkhs import MercerFeatures
    >>> X = np.random.default_rng(0).uniform(size=(300, 2))
    >>> F = MercerFeatures(RBF(scale=1.0), n_components=25).fit_transform(X)
    >>> F.shape, bool(np.abs(F @ F.T - RBF(scale=1.0)(X)).max() < 1e-4)
    ((300, 25), True)
    """

    def __init__(self, kernel: Any, n_components: int = 20, measure: Any = None, random_state: int = 0) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.measure = measure
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Expand the kernel.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The points, which are the measure unless another is given.
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            The masses of the points.
        """
        X = validate_data(self, X, accept_sparse="csr", dtype=_KINDS)
        if self.measure is None:
            expansion = MercerExpansion(
                self.kernel, X, self.n_components, weights=sample_weight, seed=self.random_state
            )
        else:
            kernel = as_kernel(self.kernel)
            kernel = kernel.resolve(X) if hasattr(kernel, "resolve") else kernel
            expansion = MercerExpansion(kernel, self.measure, self.n_components, weights=sample_weight)
        return self._of(expansion)

    def _of(self, expansion: MercerExpansion) -> Self:
        self.expansion_ = expansion
        self.eigenvalues_ = expansion.eigenvalues
        if not hasattr(self, "n_features_in_"):
            width = expansion._measure.width
            if width is None:
                raise TypeError("the points of this expansion are no vectors; use its own method transform.")
            self.n_features_in_ = width
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the features, of shape (n_samples, n_components), in the precision of X."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=_KINDS, reset=False)
        return self.expansion_.transform(X).astype(X.dtype, copy=False)

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
