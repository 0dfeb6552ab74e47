"""The periodic kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.features import HarmonicLaw
from mercer.kernels.base import check_number, check_scales, kernel
from mercer.kernels.vectors.stationary import Stationary
from mercer.points import Pair, Points
from mercer.points.formulas.dual import one_or_each


@kernel
class Periodic(Stationary):
    r"""A Gaussian kernel on circles: every feature repeats with the period.

    .. math:: k(x, z) = \exp\Bigl(-\frac{2}{s^2} \sum_j \sin^2 \frac{\pi (x_j - z_j)}{p_j}\Bigr)

    With one feature this is scikit-learn's ExpSineSquared. With several, that kernel takes the sine of the
    Euclidean distance, which is not positive semidefinite; the sum over features is.

    Parameters
    ----------
    period
        p: a number, or one per feature.
    scale
        s, on the circle.

    Examples
    --------
    >>> from mercer.kernels import Periodic
    >>> Periodic(period=1.0)([[0.0], [0.5], [3.0]]).round(4)
    array([[1.    , 0.1353, 1.    ],
           [0.1353, 1.    , 0.1353],
           [1.    , 0.1353, 1.    ]])
    """

    period: float | Sequence[float] = 1.0
    scale: float = 1.0

    _because = (
        "pull-back",
        "the Gaussian kernel after mapping each feature x to the circle point (cos, sin)(2 pi x / period).",
    )

    def _validate(self) -> None:
        check_scales(self, "period", self.period)
        check_number(self, "scale", self.scale)

    def of(self, pair: Pair) -> Any:
        return pair.xp.exp(-0.5 * pair.through(_Circles(one_or_each(self.period))).sqdist(self.scale))

    def spectral_law(self, dim: int) -> Any:
        return HarmonicLaw(dim, self.period, self.scale)


@dataclass(frozen=True)
class _Circles:
    """Each feature as a point of the unit circle."""

    period: float | tuple[float, ...]

    def __call__(self, points: Points) -> Any:
        v = points.vectors
        if not np.isscalar(self.period) and len(self.period) != points.width:  # type: ignore[arg-type]
            raise ValueError(
                f"period has {len(self.period)} entries but the points have {points.width} features. "  # type: ignore[arg-type]
                "Periodic(period=p) adds up over features; the sine of their distance, as of scikit-learn's "
                "ExpSineSquared, is a kernel of one feature only: on several it is not positive semidefinite."
            )
        if points.foreign:
            import array_api_compat

            xp = array_api_compat.array_namespace(v)
            angle = v * (2 * np.pi) / xp.asarray(self.period, dtype=v.dtype, device=v.device)
            return xp.concat([xp.cos(angle), xp.sin(angle)], axis=1)
        v = v if isinstance(v, np.ndarray) else v.toarray()
        turns = np.remainder(v.astype(np.float64) / np.asarray(self.period), 1.0)  # exact period, even far out
        angle = 2 * np.pi * turns
        return np.concatenate([np.cos(angle), np.sin(angle)], axis=1).astype(v.dtype)

    def pull(self, points: Points, gradient: np.ndarray) -> np.ndarray:
        """Return the gradient in x where that in the points of the circles is given."""
        cosine, sine = np.split(points.through(self).vectors[:, :, None], 2, axis=1)
        along_cosine, along_sine = np.split(gradient, 2, axis=1)
        rate = 2 * np.pi / np.broadcast_to(np.asarray(self.period), (points.width,))[:, None]
        return rate * (along_sine * cosine - along_cosine * sine)
