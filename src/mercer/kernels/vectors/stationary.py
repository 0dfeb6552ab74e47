"""Kernels of the difference x - z, and how their scale is read off data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import array_api_compat
import numpy as np
from scipy import sparse

from mercer.kernels.base import PENDING, Kernel, check_scales
from mercer.points import Block, Points

Scale = float | Sequence[float] | Literal["auto", "median"]

_MEDIAN_SAMPLE = 1000  # points whose half a million distances tell the median well enough


class Stationary(Kernel):
    """A kernel that depends on x - z alone; Bochner: k / k(x, x) is the characteristic function of a law."""

    @staticmethod
    def from_spectral(law: Any, dim: int | None = None) -> Kernel:
        """Return the kernel k(x, z) = E cos(w . (x - z)) with frequencies w drawn from `law`.

        Parameters
        ----------
        law
            A frozen scipy.stats law (one-dimensional: the coordinates of w are independent copies; or
            multivariate_normal, multivariate_t), a law of `mercer.features`, or a sampler
            `sampler(n, rng) -> (n, dim)`.
        dim
            The number of features; needed for a sampler, and to fix a one-dimensional law to it.

        Examples
        --------
        >>> from scipy.stats import norm
        >>> from mercer.kernels import RBF, Stationary
        >>> import numpy as np
        >>> X = np.array([[0.0], [1.5]])
        >>> bool(np.allclose(Stationary.from_spectral(norm())(X), RBF(1.0)(X)))
        True
        """
        from mercer.kernels.vectors.spectral import Spectral

        return Spectral(law, dim)


class Radial(Stationary):
    """A stationary kernel of a scaled distance, with one `scale` for all features or one for each (ARD)."""

    scale: Scale

    def _validate(self) -> None:
        if isinstance(self.scale, str):
            if self.scale not in PENDING:
                raise ValueError(
                    f"scale of {type(self).__name__} is a positive number, one per feature, 'auto' or "
                    f"'median'; it is {self.scale!r}."
                )
        else:
            check_scales(self, "scale", self.scale)

    def _resolve(self, points: Points) -> Kernel:
        if not isinstance(self.scale, str):
            return self
        rule = self._auto_scale if self.scale == "auto" else self._median_scale
        return self.replace(scale=rule(points))

    def _auto_scale(self, points: Points) -> float:
        """sqrt(d var(X) / 2): scikit-learn's gamma = "scale" for exp(-gamma |x - z|^2)."""
        d, variance = points.width, spread(points)
        return float(np.sqrt(d * variance / 2)) if variance > 0 else float(np.sqrt(0.5))

    def _median_scale(self, points: Points) -> float:
        """The median distance between two points, on at most 1,000 evenly spaced ones."""
        distances = self._distances(sample(points))
        middle = float(np.median(distances)) if len(distances) else 0.0
        return middle if middle > 0 else 1.0

    def _distances(self, points: Points) -> np.ndarray:
        return np.sqrt(upper_triangle(Block(points, points).sqdist()))


def spread(points: Points) -> float:
    """Return the variance of all coordinates together, as scikit-learn's gamma="scale" does."""
    v = points.vectors
    if sparse.issparse(v):
        size = v.shape[0] * v.shape[1]
        mean = v.sum(dtype=np.float64) / size
        return float(v.multiply(v).sum(dtype=np.float64) / size - mean**2)
    if points.foreign:
        return float(array_api_compat.array_namespace(v).var(v))
    if 1e-100 < points.extent < 1e100:
        return points.variance
    unit = points.extent or 1.0
    return float((v / unit).var(dtype=np.float64)) * unit * unit


def sample(points: Points) -> Points:
    """Return at most 1,000 of the points, evenly spaced."""
    if len(points) <= _MEDIAN_SAMPLE:
        return points
    return points.take(np.linspace(0, len(points) - 1, _MEDIAN_SAMPLE).astype(np.intp))


def upper_triangle(matrix: Any) -> np.ndarray:
    """Return the entries above the diagonal."""
    dense = np.asarray(matrix)
    return dense[np.triu_indices(len(dense), 1)]
