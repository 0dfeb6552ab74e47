"""The weighted degree kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.features import NamedFeatures
from mercer.kernels.base import Kernel, check_integer, kernel
from mercer.kernels.proof import Proof
from mercer.points import Pair, Points
from mercer.points.sets.named import bags, names, paired
from mercer.points.sets.sequences import SharedRuns, kmer_names, letters


@kernel
class WeightedDegree(Kernel):
    r"""Equal substrings at equal places, or at places near to each other (Raetsch and Sonnenburg, 2004).

    .. math:: k(x, z) = \sum_{d=1}^{D} \beta_d \sum_{|i - j| \le S} \delta_{i-j}
              [x_i \ldots x_{i+d-1} = z_j \ldots z_{j+d-1}],
              \quad \beta_d = \frac{2 (D - d + 1)}{D (D + 1)}, \quad \delta_0 = 1, \; \delta_s = \frac{1}{2 (|s| + 1)}

    For strings that are aligned, such as the surroundings of splice sites. Places are counted from the beginning;
    strings may have different lengths.

    Parameters
    ----------
    degree
        D, the length of the longest substrings.
    shift
        S, how far apart two places may be.

    Examples
    --------
    >>> from mercer import WeightedDegree
    >>> WeightedDegree(degree=2)(["ACGT", "ACTT", "CGT"]).round(3)
    array([[3.667, 2.333, 0.   ],
           [2.333, 3.667, 0.667],
           [0.   , 0.667, 2.667]])
    >>> WeightedDegree(degree=2).feature_map().fit_transform(["ACGT", "ACTT", "CGT"]).shape
    (3, 14)
    """

    _of_objects = True

    degree: int = 3
    shift: int = 0

    def _validate(self) -> None:
        check_integer(self, "degree", self.degree, 1)
        check_integer(self, "shift", self.shift, 0)

    def of(self, pair: Pair) -> Any:
        # A run of r equal letters begins with a substring of each length up to r.
        runs = np.concatenate([[0.0], np.cumsum(weights(int(self.degree)))]).tolist()
        shifts = (1.0, *(0.5 / (s + 1) for s in range(1, int(self.shift) + 1)))
        return pair.through(letters).compare(SharedRuns(tuple(runs), shifts))

    def feature_map(self) -> Any:
        if self.shift:  # substrings at different places: no sparse map is known
            return super().feature_map()
        return NamedFeatures(PlacedKmers(int(self.degree)))

    def _proof(self) -> Proof:
        if self.shift == 0:
            return self._axiom(
                "feature map", "the inner product of indicators of substrings at their places, weighted."
            )
        return self._axiom(
            "Bochner",
            "for each d, a function of the difference of places times the indicator of equal substrings; its spectrum "
            "1 + sum_s cos(s t) / (s + 1) is at least 1/2 for every t (Rogosinski and Szegoe, 1928).",
        )


def weights(degree: int) -> np.ndarray:
    """Return beta_1, ..., beta_D."""
    return 2 * np.arange(degree, 0, -1) / (degree * (degree + 1))


@dataclass(frozen=True)
class PlacedKmers:
    """The root of beta_d for each substring of d letters at its place."""

    degree: int

    def __call__(self, points: Points) -> Any:
        kmers, counts = kmer_names(points.through(letters).data, 1, self.degree)
        runs = counts.ravel()
        place = np.arange(len(kmers)) - np.repeat(np.cumsum(runs) - runs, runs)
        values = np.repeat(np.tile(np.sqrt(weights(self.degree)), len(counts)), runs)
        starts = np.concatenate([[0], np.cumsum(counts.sum(axis=1))])
        return bags(names(paired(kmers.view(np.uint64), place.view(np.uint64))), starts, values)
