"""The law on whole multiples of a base frequency behind the periodic kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ive

from mercer.features.spectral.law import SpectralLaw, check_dim, check_scale

Floats = NDArray[np.float64]


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
