"""Laws made from Gaussian vectors, of the radial kernels and the spectral mixture; the Matern function."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import gammaln, kve, ndtri

from mercer.features.spectral.law import (
    Floats,
    SpectralLaw,
    check_dim,
    check_frozen,
    check_scale,
    describe,
    parameters,
    quantile_rule,
)

# Above this order the uniform expansion of K_nu is exact to rounding, and its powers no longer overflow.
_LARGE_ORDER = 100.0
# Debye's polynomials U_1 .. U_4 (DLMF 10.41.10), as coefficients of p^k, p^(k+2), ...
_DEBYE = (
    (np.array([3.0, -5.0]) / 24.0, 1),
    (np.array([81.0, -462.0, 385.0]) / 1152.0, 2),
    (np.array([30375.0, -369603.0, 765765.0, -425425.0]) / 414720.0, 3),
    (np.array([4465125.0, -94121676.0, 349922430.0, -446185740.0, 185910725.0]) / 39813120.0, 4),
)


class GaussianScaleMixture(SpectralLaw):
    """The law of sqrt(tau) z / scale, with z standard normal in R^d and tau an independent positive variable.

    E cos(w . delta) = E exp(-tau r^2 / 2), with r = |delta / scale|: by Schoenberg (1938) these are all the
    radial kernels that are positive semi-definite in every dimension.

    Parameters
    ----------
    dim : int
        Dimension d.
    scale : float or array_like of shape (dim,), default=1.0
        Length scale of the kernel; frequencies are divided by it.
    mixing : frozen scipy.stats law, optional
        Law of tau, on the positive half-line. Without it tau = 1 and the law is Gaussian.

    Examples
    --------
    >>> law = GaussianScaleMixture.student(dim=2, scale=1.0, nu=1.5)
    >>> law.name
    'multivariate t with 3 degrees of freedom'
    >>> law.characteristic([[0.0, 0.0], [3.0, 4.0]]).round(6).tolist()
    [1.0, 0.001675]
    """

    #: Points of the rule that stands for tau where E exp(-tau s) has no closed form.
    N_POINTS = 257

    def __init__(self, dim: int, scale: float | ArrayLike = 1.0, mixing: Any = None) -> None:
        self.dim = check_dim(dim)
        self.scale = check_scale(scale, self.dim)
        if mixing is not None:
            mixing = check_frozen(mixing, "The mixing law")
            if mixing.support()[0] < 0:
                raise ValueError(
                    f"The mixing law {describe(mixing)} takes negative values (its support starts at "
                    f"{mixing.support()[0]:g}), but tau is a squared scale: use a law on the "
                    "positive half-line."
                )
        self.mixing = mixing
        self.n_uniforms = self.dim + (mixing is not None)

    @classmethod
    def gaussian(cls, dim: int, scale: float | ArrayLike = 1.0) -> GaussianScaleMixture:
        """The normal law, whose kernel is exp(-r^2 / 2) (RBF)."""
        return cls(dim, scale)

    @classmethod
    def student(cls, dim: int, scale: float | ArrayLike = 1.0, nu: float = 1.5) -> GaussianScaleMixture:
        """Multivariate t, 2 nu degrees of freedom, tau = 2 nu / chi2(2 nu), whose kernel is Matern(nu)."""
        if not (0 < nu < np.inf):
            raise ValueError(f"The smoothness nu must be positive and finite, not {nu!r}; try 1.5.")
        return cls(dim, scale, stats.invgamma(float(nu), scale=float(nu)))

    @classmethod
    def gamma_mixture(cls, dim: int, scale: float | ArrayLike = 1.0, alpha: float = 1.0) -> GaussianScaleMixture:
        """Tau of mean 1, Gamma(alpha, rate alpha), whose kernel is (1 + r^2 / (2 alpha))^-alpha."""
        if not (0 < alpha < np.inf):
            raise ValueError(f"The shape alpha must be positive and finite, not {alpha!r}; try 1.0.")
        return cls(dim, scale, stats.gamma(float(alpha), scale=1.0 / float(alpha)))

    @property
    def name(self) -> str:
        if self.mixing is None:
            return "normal"
        kind = type(self.mixing.dist)
        if kind is type(stats.invgamma) and parameters(self.mixing)["loc"] == 0:
            return f"multivariate t with {2 * parameters(self.mixing)['a']:g} degrees of freedom"
        if kind is type(stats.gamma):
            return f"gamma({parameters(self.mixing)['a']:g}) mixture of normals"
        return f"{describe(self.mixing)} mixture of normals"

    def frequencies(self, U: Floats) -> Floats:
        U = self._uniforms(U, self.n_uniforms)
        return self.from_gaussian(ndtri(U[:, : self.dim]), U[:, self.dim :])

    def from_gaussian(self, G: Floats, U: Floats) -> Floats:
        """Frequencies from rows ``G`` that are marginally standard normal and the uniforms of tau, if any."""
        if self.mixing is None:
            return np.asarray(G / self.scale)
        tau = self.mixing.ppf(np.asarray(U).reshape(len(G), 1))
        return np.asarray(np.sqrt(tau) * G / self.scale)

    def characteristic(self, delta: ArrayLike) -> Floats:
        scaled = self._differences(delta) / self.scale
        with np.errstate(over="ignore"):
            return self.radial(np.einsum("ij,ij->i", scaled, scaled))

    def radial(self, r2: ArrayLike) -> Floats:
        """E exp(-tau r2 / 2): the characteristic function of the squared scaled distance, of any shape."""
        r2 = np.asarray(r2, dtype=np.float64)
        with np.errstate(under="ignore", over="ignore"):
            if self.mixing is None:
                return np.asarray(np.exp(-0.5 * r2))
            params = parameters(self.mixing)
            kind, loc, scale = type(self.mixing.dist), params["loc"], params["scale"]
            # exp(-inf * 0) would be NaN, so that the shift of tau is left out where there is none.
            shift = np.exp(-0.5 * loc * r2) if loc else 1.0
            if kind is type(stats.gamma):
                return np.asarray(shift * np.exp(-params["a"] * np.log1p(0.5 * scale * r2)))
            if kind is type(stats.invgamma):
                return shift * matern(np.sqrt(r2) * np.sqrt(scale / params["a"]), params["a"])
            total = np.zeros_like(r2)
            for tau, weight in zip(*quantile_rule(self.mixing, self.N_POINTS), strict=True):
                total += weight * np.exp(-0.5 * tau * np.minimum(r2, 1e300))
            return total

    def _parameters(self) -> dict[str, Any]:
        return {"dim": self.dim, "scale": self.scale, "mixing": self.mixing}


class ShiftedGaussian(SpectralLaw):
    """The law of s * mean + z / scale, with a fair sign s and z standard normal: two bumps.

    E cos(w . delta) = exp(-|delta / scale|^2 / 2) cos(mean . delta), one term of the spectral mixture kernel
    (Wilson and Adams, 2013).

    Parameters
    ----------
    dim : int
        Dimension d.
    mean : array_like of shape (dim,)
        Centre of one of the bumps, in radians per unit of x; the other sits at -mean.
    scale : float or array_like of shape (dim,), default=1.0
        The bumps have standard deviation 1 / scale.

    Examples
    --------
    >>> import numpy as np
    >>> law = ShiftedGaussian(1, mean=[np.pi], scale=2.0)
    >>> law.characteristic([[1.0]]).round(6).tolist()
    [-0.882497]
    """

    def __init__(self, dim: int, mean: ArrayLike, scale: float | ArrayLike = 1.0) -> None:
        self.dim = check_dim(dim)
        self.scale = check_scale(scale, self.dim)
        self.mean = np.array(mean, dtype=np.float64).reshape(-1)
        if self.mean.shape != (self.dim,) or not np.isfinite(self.mean).all():
            raise ValueError(f"mean must hold one finite frequency per coordinate, here {self.dim}; got {mean!r}.")
        self.mean.flags.writeable = False
        self.n_uniforms = self.dim + 1

    @property
    def name(self) -> str:
        return "pair of normals at +mean and -mean"

    def frequencies(self, U: Floats) -> Floats:
        U = self._uniforms(U, self.n_uniforms)
        return self.from_gaussian(ndtri(U[:, : self.dim]), U[:, self.dim :])

    def from_gaussian(self, G: Floats, U: Floats) -> Floats:
        """Frequencies from rows ``G`` that are marginally standard normal and the uniforms of the sign."""
        sign = np.where(np.asarray(U).reshape(len(G), 1) < 0.5, -1.0, 1.0)
        return np.asarray(sign * self.mean + G / self.scale)

    def characteristic(self, delta: ArrayLike) -> Floats:
        delta = self._differences(delta)
        scaled = delta / self.scale
        return np.asarray(np.exp(-0.5 * np.einsum("ij,ij->i", scaled, scaled)) * np.cos(delta @ self.mean))

    def _parameters(self) -> dict[str, Any]:
        return {"dim": self.dim, "mean": self.mean, "scale": self.scale}


def matern(r: ArrayLike, nu: float) -> Floats:
    """Matern correlation of smoothness nu at scaled distance r.

    M(r) = 2^(1-nu) / Gamma(nu) * x^nu * K_nu(x), with x = sqrt(2 nu) r; M(0) = 1.

    It is the characteristic function of the multivariate t law with 2 nu degrees of freedom. Smoothness
    1/2, 3/2, 5/2 use their closed forms; nu = inf is the Gaussian exp(-r^2 / 2).

    Parameters
    ----------
    r : array_like
        Distances divided by the scale, nonnegative.
    nu : float
        Smoothness, positive.

    Returns
    -------
    ndarray
        Values in [0, 1], of the shape of ``r``.

    Examples
    --------
    >>> matern([0.0, 1.0, 1e300], nu=0.5).round(6).tolist()
    [1.0, 0.367879, 0.0]
    """
    if not nu > 0:
        raise ValueError(f"The smoothness nu of a Matern function must be positive, not {nu!r}; try 1.5.")
    r = np.asarray(r, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        if np.isinf(nu):
            return np.asarray(np.exp(-0.5 * r * r))
        if nu in (0.5, 1.5, 2.5):
            # Beyond 1e4 the exponential is 0; the cut keeps inf * 0 away.
            x = np.minimum(np.sqrt(2.0 * nu) * r, 1e4)
            polynomial = {0.5: 1.0, 1.5: 1.0 + x, 2.5: 1.0 + x + x * x / 3.0}[nu]
            return np.asarray(polynomial * np.exp(-x))
        if nu >= _LARGE_ORDER:
            return _by_debye(r, nu)
        return _by_bessel(np.sqrt(2.0 * nu) * r, nu)


def _by_bessel(x: Floats, nu: float) -> Floats:
    x = np.minimum(x, 1e5)  # exp(-1e5) is 0, and the Bessel routine gives up on larger arguments
    scaled = kve(nu, x)
    logarithm = (1.0 - nu) * np.log(2.0) - gammaln(nu) + nu * np.log(x) + np.log(scaled) - x
    value = np.minimum(np.exp(logarithm), 1.0)
    # Where K_nu overflows, x is small and only the part I_{-nu} of K_nu counts:
    # M = sum over k < nu of (x^2/4)^k / (k! (1-nu)(2-nu)...(k-nu)).
    series = np.ones_like(x)
    term = np.ones_like(x)
    for k in range(1, min(int(np.ceil(nu)), 9)):
        term = term * (x * x / 4.0) / (k * (k - nu))
        series += term
    return np.where(np.isfinite(scaled), value, series)


def _by_debye(r: Floats, nu: float) -> Floats:
    # DLMF 10.41.4 with Stirling's series for Gamma(nu): both carry the same polynomials, at p and at 1, so
    # that their ratio is exactly 1 at r = 0 and no large terms are left to cancel.
    z2 = 2.0 * r * r / nu
    q = np.sqrt(1.0 + z2)
    q_minus_1 = np.where(np.isinf(q), np.inf, z2 / (1.0 + q))
    exponent = nu * (np.log1p(0.5 * q_minus_1) - q_minus_1)
    exponent = np.where(np.isinf(q), -np.inf, exponent)
    return np.asarray(np.exp(exponent) * _debye_sum(1.0 / q, nu) / (np.sqrt(q) * _debye_sum(np.ones(()), nu)))


def _debye_sum(p: Floats, nu: float) -> Floats:
    total = np.ones_like(p)
    for coefficients, k in _DEBYE:
        total += (-1.0 / nu) ** k * p**k * np.polynomial.polynomial.polyval(p * p, coefficients)
    return total
