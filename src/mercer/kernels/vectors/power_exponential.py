"""The exponential of a power of the distance."""

from __future__ import annotations

from typing import Any, ClassVar

from mercer.kernels.base import check_number, kernel
from mercer.kernels.vectors.stationary import Radial, Scale
from mercer.points import Pair


@kernel
class PowerExponential(Radial):
    r"""The exponential of a power of the distance, between the rough `Matern` of smoothness 1/2 and the smooth `RBF`.

    .. math:: k(x, z) = \exp\Bigl(-\Bigl(\frac{|x - z|}{s}\Bigr)^p\Bigr), \quad 0 < p \le 2

    Parameters
    ----------
    power
        p: 1 is Matern(0.5, scale=s), 2 is RBF(s / sqrt(2)).
    scale
        s: a number, one per feature, "auto" or "median" (see `RBF`).

    Examples
    --------
    >>> from mercer.kernels import PowerExponential
    >>> PowerExponential(power=1.0, scale=2.0)([[0.0], [2.0]]).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    _fixed: ClassVar[tuple[str, ...]] = ("power",)

    power: float = 1.0
    scale: Scale = "auto"

    _because = "Schoenberg", "|x - z|^p is a conditionally negative definite function for 0 < p <= 2."

    def _validate(self) -> None:
        super()._validate()
        check_number(self, "power", self.power)
        if self.power > 2:
            raise ValueError(
                f"power of PowerExponential must be at most 2; it is {self.power!r}. exp(-|x - z|^p) is positive "
                "semidefinite for 0 < p <= 2 only (Schoenberg, 1938)."
            )

    def of(self, pair: Pair) -> Any:
        square = pair.sqdist(self.scale)
        if self.power == 2:
            return pair.xp.exp(-square)
        return pair.xp.exp(-(pair.xp.sqrt(square) if self.power == 1 else square ** (self.power / 2)))
