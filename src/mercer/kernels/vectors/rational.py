"""The rational quadratic kernel and its first member, the Cauchy kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.features.spectral import GaussianScaleMixture
from mercer.kernels.base import check_number, kernel
from mercer.kernels.proof import Proof
from mercer.kernels.vectors.stationary import Radial, Scale
from mercer.points import Pair
from mercer.points.formulas.dual import number


@kernel
class RationalQuadratic(Radial):
    r"""A mixture of Gaussian kernels over many scales.

    .. math:: k(x, z) = \Bigl(1 + \frac{|x - z|^2}{2 \alpha s^2}\Bigr)^{-\alpha}

    Parameters
    ----------
    alpha
        The weight of large scales: small alpha, heavy tails; infinity is `RBF`.
    scale
        s: a number, one per feature, "auto" or "median" (see `RBF`).

    Examples
    --------
    >>> from mercer.kernels import RationalQuadratic
    >>> RationalQuadratic(alpha=1.0, scale=1.0)([[0.0], [2.0]]).round(4)
    array([[1.    , 0.3333],
           [0.3333, 1.    ]])
    """

    alpha: float = 1.0
    scale: Scale = "auto"

    def _validate(self) -> None:
        super()._validate()
        check_number(self, "alpha", self.alpha)

    def of(self, pair: Pair) -> Any:
        alpha = number(self.alpha)
        q = pair.sqdist(self.scale) * (0.5 / alpha)
        if isinstance(alpha, float) and alpha <= 16 and alpha == int(alpha):  # else it may be differentiated
            return (1 + q) ** -int(alpha)
        return pair.xp.exp(-alpha * pair.xp.log1p(q))

    def spectral_law(self, dim: int) -> Any:
        return GaussianScaleMixture.gamma_mixture(dim, self.scale, self.alpha)

    def _proof(self) -> Proof:
        return self._axiom(
            "Schoenberg",
            f"a mixture of Gaussian kernels whose precision has a gamma law of shape {self.alpha:g}.",
        )


@kernel
class Cauchy(Radial):
    r"""The Cauchy kernel.

    .. math:: k(x, z) = \frac{1}{1 + |x - z|^2 / s^2}

    Parameters
    ----------
    scale
        s: a number, one per feature, "auto" or "median" (see `RBF`).

    Examples
    --------
    >>> from mercer.kernels import Cauchy
    >>> Cauchy(scale=1.0)([[0.0], [2.0]])
    array([[1. , 0.2],
           [0.2, 1. ]])
    """

    scale: Scale = "auto"

    _because = "Schoenberg", "a mixture of Gaussian kernels whose precision has an exponential law."

    def of(self, pair: Pair) -> Any:
        return 1 / (1 + pair.sqdist(self.scale))

    def spectral_law(self, dim: int) -> Any:
        return GaussianScaleMixture.gamma_mixture(dim, np.asarray(self.scale) / math.sqrt(2), 1.0)
