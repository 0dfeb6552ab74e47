"""The Matern function of any smoothness, safe at every distance."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, kve

# Above this order the uniform expansion of K_nu is exact to rounding, and its powers no longer overflow.
_LARGE_ORDER = 100.0
# Debye's polynomials U_1 .. U_4 (DLMF 10.41.10), as coefficients of p^k, p^(k+2), ...
_DEBYE = (
    (np.array([3.0, -5.0]) / 24.0, 1),
    (np.array([81.0, -462.0, 385.0]) / 1152.0, 2),
    (np.array([30375.0, -369603.0, 765765.0, -425425.0]) / 414720.0, 3),
    (np.array([4465125.0, -94121676.0, 349922430.0, -446185740.0, 185910725.0]) / 39813120.0, 4),
)

Floats = NDArray[np.float64]


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
