"""The Gaussian kernel."""

from __future__ import annotations

import math
from typing import Any, Self

from mercer.features.spectral import GaussianScaleMixture
from mercer.kernels.base import check_number, kernel
from mercer.kernels.vectors.stationary import Radial, Scale
from mercer.points import Pair


@kernel
class RBF(Radial):
    r"""The Gaussian kernel (K6).

    .. math:: k(x, z) = \exp\Bigl(-\sum_j \frac{(x_j - z_j)^2}{2 s_j^2}\Bigr)

    Parameters
    ----------
    scale
        s: a number, one per feature, "auto" (scikit-learn's gamma="scale") or "median" (the median distance);
        the last two are resolved when the kernel meets its training points.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> RBF(scale=1.0)([[0.0], [1.0]]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    >>> RBF.from_gamma(0.5) == RBF(scale=1.0)
    True
    """

    scale: Scale = "auto"

    _because = "Bochner", "the characteristic function of a normal law of frequencies with deviation 1/scale."

    @classmethod
    def from_gamma(cls, gamma: float) -> Self:
        """Return exp(-gamma |x - z|^2)."""
        check_number(cls(1.0), "gamma", gamma)
        return cls(scale=math.sqrt(0.5 / gamma))

    @classmethod
    def from_sigma2(cls, sigma2: float) -> Self:
        """Return exp(-|x - z|^2 / sigma2), the convention without the 2."""
        check_number(cls(1.0), "sigma2", sigma2)
        return cls(scale=math.sqrt(sigma2 / 2))

    def of(self, pair: Pair) -> Any:
        return pair.xp.exp(-0.5 * pair.sqdist(self.scale))

    def spectral_law(self, dim: int) -> Any:
        return GaussianScaleMixture.gaussian(dim, self.scale)
