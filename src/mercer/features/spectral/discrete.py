"""Laws on countably many frequencies: given, drawn by a user's sampler, or whole multiples of a base frequency."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ive

from mercer.features.spectral.law import Seed, SpectralLaw, check_dim, check_scale, check_weights, generator

Floats = NDArray[np.float64]
Sampler = Callable[[int, np.random.Generator], ArrayLike]


class DiscreteLaw(SpectralLaw):
    """Finitely many frequencies w_i with probabilities p_i.

    E cos(w . delta) = sum of p_i cos(w_i . delta): exact, and a kernel with 2 features per frequency.

    Parameters
    ----------
    frequencies : array_like of shape (m, dim)
        The frequencies, in radians per unit of x.
    weights : array_like of shape (m,), optional
        Their probabilities; equal when left out.

    Examples
    --------
    >>> import numpy as np
    >>> law = DiscreteLaw([[0.0], [np.pi]], [0.25, 0.75])
    >>> law.characteristic([[0.0], [1.0]]).tolist()
    [1.0, -0.5]
    """

    def __init__(self, frequencies: ArrayLike, weights: ArrayLike | None = None) -> None:
        points = np.array(frequencies, dtype=np.float64)
        if points.ndim != 2 or 0 in points.shape:
            raise ValueError(
                f"frequencies must have shape (m, dim) with at least one row and column; got shape {points.shape}."
            )
        if not np.isfinite(points).all():
            raise ValueError("frequencies must be finite, but some are NaN or infinite: leave those rows out.")
        points.flags.writeable = False
        self.points = points
        self.weights = check_weights(np.full(len(points), 1 / len(points)) if weights is None else weights, len(points))
        self.dim = points.shape[1]
        self.n_uniforms = 1

    @classmethod
    def from_sampler(cls, sampler: Sampler, dim: int, n: int = 4096, random_state: Seed = None) -> DiscreteLaw:
        """The empirical law of n draws of ``sampler(n, rng)``, which returns an array of shape (n, dim)."""
        dim = check_dim(dim)
        drawn = np.asarray(sampler(n, generator(random_state)), dtype=np.float64)
        if drawn.shape != (n, dim):
            raise ValueError(
                f"The sampler was asked for {n} frequencies in dimension {dim} and must return shape "
                f"({n}, {dim}); it returned shape {drawn.shape}. It is called as sampler(n, rng), with rng a "
                "numpy Generator."
            )
        return cls(drawn)

    @property
    def name(self) -> str:
        return f"discrete law on {len(self.points)} frequencies"

    def frequencies(self, U: Floats) -> Floats:
        U = self._uniforms(U, 1)
        chosen = np.searchsorted(np.cumsum(self.weights), U[:, 0], side="right")
        # Rounding may leave the cumulated weights a hair below 1.
        return np.asarray(self.points[np.minimum(chosen, np.flatnonzero(self.weights)[-1])])

    def characteristic(self, delta: ArrayLike) -> Floats:
        delta = self._differences(delta)
        value = np.empty(len(delta))
        for start in range(0, len(delta), 1024):
            part = slice(start, start + 1024)
            value[part] = np.cos(delta[part] @ self.points.T) @ self.weights
        return value

    def _parameters(self) -> dict[str, Any]:
        return {"frequencies": self.points, "weights": self.weights}


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
