"""The Taylor map of the Gaussian kernel, with its error bound."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import gammainc, gammaln
from sklearn.utils import check_array
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from mercer.features.monomials import KINDS, PowerMap, expand, n_powers, power_names
from mercer.features.spectral.law import check_scale


class TaylorFeatures(PowerMap):
    """Truncated Taylor map of the Gaussian kernel.

    exp(-|x - z|^2 / (2 s^2)) = exp(-(|x|^2 + |z|^2) / (2 s^2)) sum over k of (x . z / s^2)^k / k!, hence

    Phi_alpha(x) = exp(-|x|^2 / (2 s^2)) x^alpha / (s^|alpha| sqrt(alpha!)),   |alpha| <= degree.

    The number of features is C(degree + d, d), so that this is for a small dimension d. Centre the data: the
    error depends on the distance to the origin, and :meth:`error_bound` says how large it can be.

    Parameters
    ----------
    scale : float or array_like of shape (n_features,), default=1.0
        Scale s of the kernel, or one per feature.
    degree : int, default=6
        Degree at which the series is cut. :meth:`degree_for` finds one for a given error.

    Attributes
    ----------
    n_features_in_ : int
        Number of features seen in ``fit``.
    n_features_out_ : int
        Number of Taylor features.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.5, 0.0], [0.0, -1.0]])
    >>> phi = TaylorFeatures(degree=8).fit(X)
    >>> F = phi.transform(X)
    >>> abs((F @ F.T)[0, 1] - np.exp(-1.25 / 2)).item() <= phi.error_bound(X) < 1e-5
    True
    >>> TaylorFeatures.degree_for(X, scale=1.0, tol=1e-5)
    8
    """

    def __init__(self, scale: float | ArrayLike = 1.0, degree: int = 6) -> None:
        self.scale = scale
        self.degree = degree

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the number of features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Points.
        y : ignored
        """
        _check_degree(self.degree)
        validate_data(self, X, accept_sparse="csr", dtype=KINDS)
        check_scale(self.scale, self.n_features_in_)
        self.n_features_out_ = n_powers(self.n_features_in_ + 1, self.degree)
        return self

    def _expanded(self, X: Any) -> Any:
        r = _scaled_norms(X, self.scale)
        # x = r u: the powers of the unit vector u are bounded, and so is exp(-r^2/2) r^k / sqrt(k!), whereas
        # exp(-r^2/2) and r^k by themselves underflow and overflow.
        unit = _divide(X, self.scale, np.where(r > 0, r, 1.0))
        k = np.arange(self.degree + 1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            powers = np.where(k == 0, 0.0, k * np.log(r)[:, None])
            factors = np.exp(powers - 0.5 * (r * r)[:, None] - 0.5 * gammaln(k + 1))
        what = f"The Taylor map of {self.n_features_in_} features to degree {self.degree}"
        return expand(unit, range(self.degree + 1), factors.astype(X.dtype), what)

    def error_bound(self, X: Any, Z: Any = None) -> float:
        """Bound |k(x, z) - <Phi(x), Phi(z)>| over x in X and z in Z, up to rounding.

        With P the regularised incomplete gamma function, p the degree, and A <= B the largest |x| / s in X
        and in Z (in whichever order), the bound is

        max over A <= b <= B of exp(-(A - b)^2 / 2) P(p + 1, A b).

        It is the supremum of the error over all x and z in the two balls around the origin that just hold X
        and Z, attained at parallel x and z; without Z it is P(p + 1, A^2), attained at the longest x of X.

        Parameters
        ----------
        X, Z : {array-like, sparse matrix} of shape (n_samples, n_features)
            Points; Z is X when left out.
        """
        _check_degree(self.degree)
        radius = _radius(X, self.scale)
        return _sup_error(self.degree, radius, radius if Z is None else _radius(Z, self.scale))

    @staticmethod
    def degree_for(X: Any, scale: float | ArrayLike = 1.0, tol: float = 1e-6) -> int:
        """Smallest degree whose :meth:`error_bound` on X is at most ``tol``."""
        if not 0 < tol < 1:
            raise ValueError(f"tol must lie between 0 and 1, the range of the kernel; got {tol!r}.")
        radius = _radius(X, scale)
        if radius > 1e6:
            raise ValueError(
                f"The longest point has |x| / scale = {radius:g}, beyond the reach of a Taylor map, which "
                "needs a degree near its square: centre the data, take a larger scale, or use RandomFourier."
            )
        low, high = -1, 1  # the bound is above tol at `low`, and at most tol at `high`
        while _sup_error(high, radius, radius) > tol:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _sup_error(middle, radius, radius) > tol else (low, middle)
        return high

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Name the features by their monomials, as in "gauss x0^2 x1"."""
        check_is_fitted(self)
        names = [str(name) for name in _check_feature_names_in(self, input_features)]
        features = [f"gauss {name}" for k in range(self.degree + 1) for name in power_names(names, k)]
        return np.array(features, dtype=object)


def _check_degree(degree: Any) -> None:
    if isinstance(degree, bool) or not isinstance(degree, Integral) or degree < 0:
        raise ValueError(f"degree must be a nonnegative integer, not {degree!r}; degree_for(X, scale, tol) finds one.")


def _scaled_norms(X: Any, scale: Any) -> NDArray[np.float64]:
    """|x / scale| row by row, in float64 and without overflow of the squares."""
    scaled = abs(_divide(X.astype(np.float64), scale, np.ones(X.shape[0])))
    peak = scaled.max(axis=1)
    peak = np.asarray(peak.toarray() if sparse.issparse(peak) else peak).reshape(-1)
    safe = np.where(peak > 0, peak, 1.0)
    part = _divide(scaled, 1.0, safe)
    squares = part.multiply(part) if sparse.issparse(part) else part * part
    return np.asarray(safe * np.sqrt(np.asarray(squares.sum(axis=1)).reshape(-1)), dtype=np.float64)


def _divide(X: Any, scale: Any, norms: NDArray[np.float64]) -> Any:
    """Divide the columns of X by ``scale`` and its rows by ``norms``, keeping its kind and precision."""
    scale = check_scale(scale, X.shape[1])
    if not sparse.issparse(X):
        return (X / norms[:, None] / scale).astype(X.dtype, copy=False)
    columns = np.broadcast_to(scale, X.shape[1])[X.indices]
    rows = np.repeat(norms, np.diff(X.indptr))
    divided = X.copy()
    divided.data = (X.data / rows / columns).astype(X.dtype, copy=False)
    return divided


def _radius(X: Any, scale: Any) -> float:
    return float(_scaled_norms(check_array(X, accept_sparse="csr", dtype=KINDS), scale).max())


def _sup_error(p: int, a: float, b: float) -> float:
    """Supremum over |x| <= a, |z| <= b (scale 1) of the error of the series cut after degree p.

    The error is exp(-(|x|^2 + |z|^2) / 2) |sum over k > p of (x . z)^k / k!|, at most g(|x|, |z|) with
    g(a, b) = exp(-(a - b)^2 / 2) P(p + 1, a b), and equal to it for parallel x and z. For a <= b, g grows
    with a; so the supremum has the shorter radius full, and the other at the top of log g, which is concave
    because P is a gamma distribution function of shape >= 1. The top solves b - a = a P'/P <= (p + 1) / b,
    hence b <= a + sqrt(p + 1).
    """
    a, b = min(a, b), min(max(a, b), min(a, b) + np.sqrt(p + 1.0))
    if a == 0:
        return 0.0
    if gammainc(p + 1, a * a) == 1.0:
        return 1.0

    def slope(c: float) -> float:
        log_t = float(np.log(a) + np.log(c))
        with np.errstate(over="ignore"):
            growth = np.exp(p * log_t - a * c - gammaln(p + 1) - _log_tail(p, log_t))  # P'/P
        return float(a - c + a * growth)

    top = b if slope(b) >= 0 else float(brentq(slope, a, b, xtol=1e-12))
    return float(np.exp(-0.5 * (a - top) ** 2 + _log_tail(p, float(np.log(a) + np.log(top)))))


def _log_tail(p: int, log_t: float) -> float:
    """Log of P(p + 1, t), or of its upper bound t^(p+1) exp(-t) / (p+1)! / (1 - t/(p+2)) if P underflows."""
    t = np.exp(log_t)
    value = float(gammainc(p + 1, t))
    if value > 1e-290:
        return float(np.log(value))
    return float((p + 1) * log_t - t - gammaln(p + 2) - np.log1p(-t / (p + 2)))
