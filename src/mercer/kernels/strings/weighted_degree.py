"""The weighted degree kernel."""

from __future__ import annotations

from typing import Any

from mercer.kernels.base import Kernel, check_integer, kernel
from mercer.kernels.proof import Proof
from mercer.points import Pair
from mercer.points.sets.sequences import SharedRuns, letters


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
    """

    _of_objects = True

    degree: int = 3
    shift: int = 0

    def _validate(self) -> None:
        check_integer(self, "degree", self.degree, 1)
        check_integer(self, "shift", self.shift, 0)

    def of(self, pair: Pair) -> Any:
        top = int(self.degree)
        runs = [0.0]
        for d in range(1, top + 1):  # a run of r equal letters begins with a substring of each length up to r
            runs.append(runs[-1] + 2 * (top - d + 1) / (top * (top + 1)))
        shifts = (1.0, *(0.5 / (s + 1) for s in range(1, int(self.shift) + 1)))
        return pair.through(letters).compare(SharedRuns(tuple(runs), shifts))

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
