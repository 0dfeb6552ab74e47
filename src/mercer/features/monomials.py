"""The feature map of the polynomial kernel."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from mercer.features.powers import KINDS, PowerMap, expand, n_powers, power_names
from mercer.machine.budget import Budget


class Monomials(PowerMap):
    """All monomials, with the coefficients that make their inner product the polynomial kernel.

    <Phi(x), Phi(z)> = (c1 + c2 <x, z>)^degree, or (c2 <x, z>)^degree when ``exact``, with

    Phi_alpha(x) = sqrt(p! / ((p - k)! alpha!) c1^(p-k) c2^k) x^alpha,   k = |alpha| <= p = degree.

    Only |alpha| = degree when ``exact`` or when c1 = 0, where the other coefficients are zero.

    Parameters
    ----------
    degree : int, default=2
        Degree of the polynomial, at least 1.
    exact : bool, default=False
        Keep only monomials of exactly this degree: the homogeneous kernel. ``c1`` is then not used.
    c1 : float, default=1.0
        Constant of the kernel, nonnegative.
    c2 : float, default=1.0
        Factor of the inner product, positive.

    Attributes
    ----------
    n_features_in_ : int
        Number of features seen in ``fit``.
    n_features_out_ : int
        Number of monomials.

    Examples
    --------
    >>> import numpy as np
    >>> x, z = np.array([[1.0, 2.0]]), np.array([[3.0, -1.0]])
    >>> phi = Monomials(degree=2).fit(x)
    >>> phi.get_feature_names_out().tolist()
    ['1', 'x0', 'x1', 'x0^2', 'x0 x1', 'x1^2']
    >>> round((phi.transform(x) @ phi.transform(z).T).item(), 9)  # (1 + <x, z>)^2
    4.0
    >>> Monomials.count(40, 8)
    314457495
    """

    def __init__(self, degree: int = 2, exact: bool = False, c1: float = 1.0, c2: float = 1.0) -> None:
        self.degree = degree
        self.exact = exact
        self.c1 = c1
        self.c2 = c2

    @staticmethod
    def count(n_features: int, degree: int, exact: bool = True) -> int:
        """Number of monomials in ``n_features`` variables, of degree exactly or at most ``degree``.

        C(degree + d - 1, degree) when ``exact``, else C(degree + d, d). The map is not built.
        """
        for name, value in (("n_features", n_features), ("degree", degree)):
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
                raise ValueError(f"{name} must be a nonnegative integer, not {value!r}.")
        n, p = int(n_features), int(degree)
        return n_powers(n, p) if exact else math.comb(n + p, p)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the number of features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Points.
        y : ignored
        """
        self._degrees()
        X = validate_data(self, X, accept_sparse="csr", dtype=KINDS)
        self.n_features_out_ = sum(n_powers(self.n_features_in_, k) for k in self._degrees())
        return self

    def _expanded(self, X: Any) -> Any:
        degrees, p = self._degrees(), self.degree
        k = np.arange(p + 1)
        # C(p, k) c1^(p-k) c2^k, in logarithms so that a high degree does not overflow on the way.
        logarithm = gammaln(p + 1) - gammaln(k + 1) - gammaln(p - k + 1) + xlogy(p - k, self.c1) + k * np.log(self.c2)
        factors = np.exp(0.5 * logarithm).astype(X.dtype)[None, :]
        return expand(X, degrees, factors, f"The map of {self.n_features_in_} features to monomials of degree {p}")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Name the monomials, such as "x0^2 x1"."""
        check_is_fitted(self)
        names = [str(name) for name in _check_feature_names_in(self, input_features)]
        Budget.all_that_is_free().require(
            100 * self.n_features_out_,
            f"the list of names of {self.n_features_out_:,} monomials",
            "number the columns instead.",
        )
        return np.array([name for k in self._degrees() for name in power_names(names, k)], dtype=object)

    def _degrees(self) -> range:
        p, c1, c2 = self.degree, self.c1, self.c2
        if isinstance(p, bool) or not isinstance(p, Integral) or p < 1:
            raise ValueError(
                f"degree must be an integer of at least 1, not {p!r}; degree=2 gives squares and products."
            )
        if not isinstance(c1, Real) or not 0 <= c1 < np.inf:
            raise ValueError(f"c1 must be nonnegative and finite, or the kernel is not positive; got {c1!r}.")
        if not isinstance(c2, Real) or not 0 < c2 < np.inf:
            raise ValueError(f"c2 must be positive and finite, or the kernel is not positive; got {c2!r}.")
        return range(int(p) if self.exact or c1 == 0 else 0, int(p) + 1)
