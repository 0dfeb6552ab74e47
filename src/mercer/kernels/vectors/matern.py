"""The Matern kernels."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from mercer.features.spectral import GaussianScaleMixture, matern
from mercer.kernels.base import check_number, kernel
from mercer.kernels.proof import Proof
from mercer.kernels.vectors.stationary import Radial, Scale
from mercer.points import Pair


@kernel
class Matern(Radial):
    r"""The Matern kernel of smoothness nu.

    .. math:: k(x, z) = \frac{2^{1-\nu}}{\Gamma(\nu)} r^\nu K_\nu(r), \quad r = \sqrt{2\nu}\,|x - z| / s

    In closed form: :math:`e^{-r}` for nu = 1/2, :math:`(1 + r) e^{-r}` for 3/2, :math:`(1 + r + r^2/3) e^{-r}` for 5/2.

    Parameters
    ----------
    nu
        Smoothness: functions of the space have nu - 1/2 derivatives, roughly. Infinity is `RBF`.
    scale
        s: a number, one per feature, "auto" or "median" (see `RBF`).

    Examples
    --------
    >>> from mercer.kernels import Matern
    >>> Matern(nu=0.5, scale=1.0)([[0.0], [1.0]]).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    _fixed: ClassVar[tuple[str, ...]] = ("nu",)

    nu: float = 1.5
    scale: Scale = "auto"

    def _validate(self) -> None:
        super()._validate()
        if self.nu == math.inf:
            raise ValueError("nu of Matern is infinite: that limit is the Gaussian kernel; use RBF(scale).")
        check_number(self, "nu", self.nu)

    def of(self, pair: Pair) -> Any:
        xp, nu = pair.xp, float(self.nu)
        if nu not in (0.5, 1.5, 2.5):
            distance = xp.sqrt(pair.sqdist(self.scale))
            value = matern(np.asarray(distance), nu)
            return xp.asarray(value, dtype=distance.dtype, device=distance.device)
        square = pair.sqdist(self.scale) * (2 * nu)
        return xp.exp(-xp.sqrt(square)) if nu == 0.5 else pair.damped(square, 0.0 if nu == 1.5 else 1 / 3)

    def spectral_law(self, dim: int) -> Any:
        return GaussianScaleMixture.student(dim, self.scale, self.nu)

    def _proof(self) -> Proof:
        return self._axiom(
            "Bochner",
            f"the characteristic function of a multivariate t law with {2 * self.nu:g} degrees of freedom.",
        )
