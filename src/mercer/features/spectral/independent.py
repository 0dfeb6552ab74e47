"""Laws with independent coordinates, of the product kernels: any law on the line, or whole multiples of a frequency."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import ive

from mercer.features.spectral.gaussian import matern
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


def _logistic(t: Floats) -> Floats:
    y = np.pi * np.abs(t)
    with np.errstate(invalid="ignore", divide="ignore"):
        # y / sinh(y), written so that a large y does not overflow.
        value = 2.0 * np.minimum(y, 1e4) * np.exp(-y) / -np.expm1(-2.0 * y)
    return np.where(y == 0, 1.0, value)


#: Type of the law -> (centre, characteristic function about the centre, given its shape parameters), in the
#: standard form loc = 0, scale = 1. Types, not names: a user's own law may be called anything.
_CLOSED_FORMS: dict[type, tuple[float, Callable[..., Floats]]] = {
    type(stats.norm): (0.0, lambda t: np.exp(-0.5 * t * t)),
    type(stats.cauchy): (0.0, lambda t: np.exp(-np.abs(t))),
    type(stats.laplace): (0.0, lambda t: 1.0 / (1.0 + t * t)),
    type(stats.uniform): (0.5, lambda t: np.sinc(t / (2.0 * np.pi))),
    type(stats.t): (0.0, lambda t, df: matern(np.abs(t), 0.5 * df)),
    type(stats.logistic): (0.0, _logistic),
}


class IndependentLaw(SpectralLaw):
    """Coordinates drawn independently from one law on the line, then divided by the scale.

    E cos(w . delta) = product over j of phi(delta_j / scale_j), phi being the characteristic function of the
    law. Cauchy gives the Laplacian kernel exp(-|delta / scale|_1), Laplace the Cauchy kernel, uniform sinc.

    phi must be real, so that a law that is not symmetric about 0 is replaced by its symmetrised one: each
    coordinate gets an independent fair sign, and phi becomes the real part of the characteristic function.

    phi has a closed form for ``norm``, ``cauchy``, ``laplace``, ``uniform``, ``t`` and ``logistic`` of
    scipy.stats, with any ``loc``. Any other law is replaced in ``characteristic`` by a law on 2049 of its
    quantiles (``N_POINTS``, a double-exponential rule), which keeps the kernel positive semi-definite.

    Parameters
    ----------
    dim : int
        Dimension d.
    law : frozen scipy.stats law
        Law of every coordinate before scaling.
    scale : float or array_like of shape (dim,), default=1.0
        Length scale of the kernel; frequencies are divided by it.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> law = IndependentLaw(2, stats.cauchy(), scale=2.0)
    >>> bool(np.allclose(law.characteristic([[1.0, -3.0]]), np.exp(-(1 + 3) / 2)))
    True
    """

    N_POINTS = 2049

    def __init__(self, dim: int, law: Any, scale: float | ArrayLike = 1.0) -> None:
        self.dim = check_dim(dim)
        self.law = check_frozen(law, "The law of the coordinates")
        self.scale = check_scale(scale, self.dim)
        self.n_uniforms = self.dim

    @property
    def name(self) -> str:
        name = self.law.dist.name if type(self.law.dist) in _CLOSED_FORMS else describe(self.law)
        if not self._is_symmetric():
            name = f"symmetrised {name}"
        return name if self.dim == 1 else f"independent {name} in each of {self.dim} coordinates"

    def frequencies(self, U: Floats) -> Floats:
        U = self._uniforms(U, self.n_uniforms)
        if self._is_symmetric():
            return np.asarray(self.law.ppf(U) / self.scale)
        # The leading bit of the uniform is the sign, the rest is again a uniform.
        sign = np.where(U < 0.5, -1.0, 1.0)
        rest = np.where(U < 0.5, 2.0 * U, 2.0 * U - 1.0)
        return np.asarray(sign * self.law.ppf(np.clip(rest, 2.0**-54, 1.0 - 2.0**-53)) / self.scale)

    def characteristic(self, delta: ArrayLike) -> Floats:
        return np.asarray(np.prod(self.coordinate(self._differences(delta) / self.scale), axis=1))

    def coordinate(self, t: ArrayLike) -> Floats:
        """phi(t): real part of the characteristic function of one unscaled coordinate, t of any shape."""
        t = np.asarray(t, dtype=np.float64)
        with np.errstate(over="ignore", under="ignore"):
            if type(self.law.dist) not in _CLOSED_FORMS:
                return self._coordinate_by_points(t)
            params = parameters(self.law)
            loc, scale = params.pop("loc"), params.pop("scale")
            centre, phi = _CLOSED_FORMS[type(self.law.dist)]
            value = phi(scale * t, **params)
            middle = loc + centre * scale
            return np.asarray(value * np.cos(middle * t) if middle else value)

    def _coordinate_by_points(self, t: Floats) -> Floats:
        points, weights = quantile_rule(self.law, self.N_POINTS)
        flat = t.ravel()
        value = np.empty_like(flat)
        for start in range(0, flat.size, 4096):
            part = slice(start, start + 4096)
            value[part] = np.cos(np.outer(flat[part], points)) @ weights
        return value.reshape(t.shape)

    def _is_symmetric(self) -> bool:
        if type(self.law.dist) not in _CLOSED_FORMS:
            return False
        params = parameters(self.law)
        return bool(params["loc"] + _CLOSED_FORMS[type(self.law.dist)][0] * params["scale"] == 0)

    def _parameters(self) -> dict[str, Any]:
        return {"dim": self.dim, "law": self.law, "scale": self.scale}


class HarmonicLaw(SpectralLaw):
    """Independent coordinates 2 pi m / period, with m a random whole number.

    P(m) = exp(-1/s^2) I_m(1/s^2), I_m the modified Bessel function, so that by the Jacobi-Anger expansion

    E cos(w . delta) = exp(-(2/s^2) sum over j of sin^2(pi delta_j / period_j)).

    Parameters
    ----------
    dim : int
        Dimension d.
    period : float or array_like of shape (dim,)
        The period of every coordinate, or of each.
    scale : float
        s, the length scale on the circle.

    Examples
    --------
    >>> HarmonicLaw(1, 2.0, 1.0).characteristic([[0.0], [2.0]]).tolist()
    [1.0, 1.0]
    """

    def __init__(self, dim: int, period: float | ArrayLike, scale: float) -> None:
        self.dim = check_dim(dim)
        self.period = check_scale(period, self.dim)
        self.scale = float(np.asarray(check_scale(scale, 1)).reshape(-1)[0])
        self.n_uniforms = self.dim

    @property
    def name(self) -> str:
        return f"whole multiples of 1/period, with Bessel weights at scale {self.scale:g}"

    def frequencies(self, U: Floats) -> Floats:
        U = self._uniforms(U, self.n_uniforms)
        # P(m) falls like a normal law of variance 1/s^2; the tail beyond 12 deviations is below rounding.
        top = int(12 / self.scale) + 40
        m = np.arange(-top, top + 1)
        cumulative = np.cumsum(ive(np.abs(m), self.scale**-2))
        chosen = np.searchsorted(cumulative / cumulative[-1], U)
        return np.asarray(2 * np.pi * m[np.minimum(chosen, 2 * top)] / self.period)

    def characteristic(self, delta: ArrayLike) -> Floats:
        turns = self._differences(delta) / self.period
        return np.asarray(np.exp(-2 / self.scale**2 * np.sum(np.sin(np.pi * turns) ** 2, axis=1)))

    def _parameters(self) -> dict[str, Any]:
        return {"dim": self.dim, "period": self.period, "scale": self.scale}
