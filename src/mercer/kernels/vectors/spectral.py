"""Stationary kernels from the law of their frequencies: any law, and mixtures of Gaussian ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.features.spectral import MixtureLaw, ShiftedGaussian, as_law
from mercer.features.spectral.law import describe, fingerprint, is_frozen
from mercer.kernels.base import check_number, kernel, written
from mercer.kernels.proof import Proof
from mercer.kernels.vectors.stationary import Stationary
from mercer.points import Pair, Points
from mercer.points.formulas.dual import number, one_or_each


@kernel
class Spectral(Stationary):
    r"""The characteristic function of a law, by Bochner's theorem (K7). Made by `Stationary.from_spectral`.

    .. math:: k(x, z) = \mathbb{E}_w \cos\langle w, x - z \rangle

    Examples
    --------
    >>> from scipy.stats import cauchy
    >>> from mercer.kernels import Laplacian, Spectral
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [2.0, 0.5]])
    >>> bool(np.allclose(Spectral(cauchy())(X), Laplacian(1.0)(X)))
    True
    """

    law: Any
    dim: int | None = None

    def _validate(self) -> None:
        if not callable(self.law) or type(self.law).__module__.startswith("scipy."):  # a sampler has to wait for points
            as_law(self.law, getattr(self.law, "dim", 1) if self.dim is None else self.dim)

    def of(self, pair: Pair) -> Any:
        return pair.differences(self.spectral_law(pair.width).characteristic)

    def spectral_law(self, dim: int) -> Any:
        if self.dim is not None and dim != self.dim:
            raise ValueError(f"this spectral law is on {self.dim} features; the points have {dim}.")
        return as_law(self.law, dim)

    def _key(self) -> tuple[Any, ...]:
        return fingerprint(self.law) if is_frozen(self.law) else self.law, self.dim

    def __repr__(self) -> str:
        law = describe(self.law) if is_frozen(self.law) else written(self.law)
        return f"Spectral(law={law})" if self.dim is None else f"Spectral(law={law}, dim={self.dim!r})"

    def _proof(self) -> Proof:
        return self._axiom("Bochner", f"the characteristic function of {_name(self.law)}.")


def _name(law: Any) -> str:
    if hasattr(law, "name"):
        return f"the law {law.name}"
    dist = getattr(law, "dist", None)
    return f"the law {dist.name}" if dist is not None and hasattr(dist, "name") else "the given law of frequencies"


@kernel
class SpectralMixture(Stationary):
    r"""A mixture of Gaussians in frequency (Wilson and Adams, 2013): quasi-periodic patterns.

    .. math:: k(x, z) = \sum_q w_q \exp\Bigl(-\sum_j \frac{(x_j - z_j)^2}{2 s_{qj}^2}\Bigr)
                        \cos\langle 2\pi\mu_q, x - z \rangle

    Parameters
    ----------
    weights
        w: one non-negative number per component.
    means
        mu: one frequency per component (cycles per unit), a number or one per feature.
    scales
        s: how far each component reaches, a number or one per feature.

    Examples
    --------
    >>> from mercer.kernels import SpectralMixture
    >>> SpectralMixture(weights=[1.0], means=[0.5], scales=[10.0])([[0.0], [1.0], [2.0]]).round(3)
    array([[ 1.   , -0.995,  0.98 ],
           [-0.995,  1.   , -0.995],
           [ 0.98 , -0.995,  1.   ]])
    """

    weights: Sequence[float]
    means: Sequence[float | Sequence[float]]
    scales: Sequence[float | Sequence[float]]

    _because = (
        "Bochner",
        "the characteristic function of a mixture of normal laws placed symmetrically at +mean and -mean.",
    )

    def _validate(self) -> None:
        for name, values in self._params().items():
            if isinstance(values, str) or not np.iterable(values):
                raise TypeError(
                    f"{name} of SpectralMixture must be a list with one entry per component, not {values!r}."
                )
        if not len(self.weights) == len(self.means) == len(self.scales) > 0:
            raise ValueError(
                f"SpectralMixture needs as many weights ({len(self.weights)}) as means ({len(self.means)}) and scales "
                f"({len(self.scales)}), at least one."
            )
        for w in self.weights:
            check_number(self, "every weight", w, closed=True)
        for s in self.scales:
            for value in np.atleast_1d(s):
                check_number(self, "every scale", float(value))
        for m in self.means:
            for value in np.atleast_1d(m):
                check_number(self, "every mean", float(value), low=float("-inf"))

    def of(self, pair: Pair) -> Any:
        total: Any = 0.0
        for w, mean, scale in zip(self.weights, self.means, self.scales, strict=True):
            phase = pair.through(_Phase(one_or_each(mean)))
            total = total + number(w) * pair.xp.exp(-0.5 * pair.sqdist(one_or_each(scale))) * phase.dot
        return total

    def spectral_law(self, dim: int) -> Any:
        laws = [
            ShiftedGaussian(dim, 2 * np.pi * np.broadcast_to(np.asarray(m, float), (dim,)), s)
            for m, s in zip(self.means, self.scales, strict=True)
        ]
        total = float(np.sum(self.weights))
        return MixtureLaw([w / total for w in self.weights], laws)


@dataclass(frozen=True)
class _Phase:
    """(cos, sin) of 2 pi <mu, x>, whose inner products are the cosines of the differences."""

    mean: float | tuple[float, ...]

    def __call__(self, points: Points) -> Any:
        v = points.vectors
        if isinstance(self.mean, tuple) and len(self.mean) not in (1, points.width):
            raise ValueError(
                f"a mean of SpectralMixture has {len(self.mean)} entries but the points have {points.width} features."
            )
        mean = np.broadcast_to(np.asarray(self.mean), (points.width,))
        if points.foreign:
            import array_api_compat

            xp = array_api_compat.array_namespace(v)
            angle = (2 * np.pi) * (v @ xp.asarray(mean.copy(), dtype=v.dtype, device=v.device))
            return xp.stack([xp.cos(angle), xp.sin(angle)], axis=1)
        angle = 2 * np.pi * np.remainder(np.asarray(v @ mean, dtype=np.float64), 1.0)
        return np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(v.dtype)

    def pull(self, points: Points, gradient: np.ndarray) -> np.ndarray:
        """Return the gradient in x where that in (cos, sin) is given."""
        cosine, sine = points.through(self).vectors.T[:, :, None, None]
        rate = 2 * np.pi * np.broadcast_to(np.asarray(self.mean), (points.width,))[:, None]
        return rate * (gradient[:, 1:] * cosine - gradient[:, :1] * sine)
