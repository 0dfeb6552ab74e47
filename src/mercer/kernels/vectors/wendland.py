"""Wendland kernels: compact support."""

from __future__ import annotations

from typing import Any

from mercer.kernels.base import kernel
from mercer.kernels.vectors.stationary import Radial, Scale
from mercer.points import Pair


@kernel
class Wendland(Radial):
    r"""A polynomial of the distance that is exactly zero beyond the scale (Wendland, 1995).

    .. math:: k(x, z) = (1 - r)_+^{l + k} \, p_k(r), \quad r = |x - z| / s, \; l = \lfloor d / 2 \rfloor + k + 1

    with :math:`p_0 = 1`, :math:`p_1 = (l + 1) r + 1`, :math:`p_2 = ((l^2 + 4 l + 3) r^2 + (3 l + 6) r + 3) / 3`.
    The exponent follows the number of features d, since compact support is only possible up to a dimension.

    Parameters
    ----------
    smoothness
        k = 0, 1 or 2: the kernel has 2 k continuous derivatives.
    scale
        s: a number, one per feature, "auto" or "median" (see `RBF`).

    Examples
    --------
    >>> from mercer.kernels import Wendland
    >>> Wendland(smoothness=0, scale=2.0)([[0.0], [1.0], [5.0]])
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    """

    smoothness: int = 1
    scale: Scale = "auto"

    _because = (
        "Bochner",
        "its Fourier transform is non-negative in as many dimensions as the points have (Wendland, 1995).",
    )

    def _validate(self) -> None:
        super()._validate()
        if self.smoothness not in (0, 1, 2):
            raise ValueError(f"smoothness of Wendland must be 0, 1 or 2; it is {self.smoothness!r}.")

    def of(self, pair: Pair) -> Any:
        k = int(self.smoothness)
        l = pair.width // 2 + k + 1  # noqa: E741 - the name in the literature
        r = pair.xp.sqrt(pair.sqdist(self.scale))
        inside = pair.xp.clip(1 - r, min=0.0)
        if k == 0:
            return inside**l
        r = pair.xp.clip(r, max=1.0)
        if k == 1:
            return inside ** (l + 1) * ((l + 1) * r + 1)
        return inside ** (l + 2) * (((l * l + 4 * l + 3) / 3) * r * r + (l + 2) * r + 1)

    def spectral_law(self, dim: int) -> Any:
        raise TypeError(
            f"{self!r} has a spectral law, but not one in closed form that could be sampled here; use its values, or "
            "approximate it with scikit-learn's Nystroem."
        )
