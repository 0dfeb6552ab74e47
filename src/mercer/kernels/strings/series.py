"""The kernel of all alignments of two time series."""

from __future__ import annotations

from typing import Any

from mercer.kernels.base import Kernel, check_number, kernel
from mercer.kernels.proof import Proof
from mercer.kernels.strings.half import Half
from mercer.points import Pair
from mercer.points.sets.sequences import Alignments, series


@kernel
class GlobalAlignment(Kernel):
    r"""The sum over all alignments of two time series, of different lengths if need be (Cuturi, 2011).

    .. math:: k(x, z) = \frac{K(x, z)}{\sqrt{K(x, x) K(z, z)}}, \quad
              K(x, z) = \sum_{\pi} \prod_{(i, j) \in \pi} \kappa(x_i, z_j), \quad \kappa = \frac{G}{2 - G}

    with G the Gaussian kernel of the given scale, over all ways to step through both series from beginning to end, by
    one in either or in both. It is computed and normalized in logarithms. Points are arrays of numbers, or of rows of
    numbers.

    Parameters
    ----------
    scale
        The scale of G, in the unit of the numbers.
    divisible
        True for the kernel above. With False kappa is G itself, and -2 scale^2 log K is the soft dynamic time warping
        of the squared distances (Cuturi and Blondel, 2017), of which nothing is proven.

    Examples
    --------
    >>> from mercer import GlobalAlignment
    >>> GlobalAlignment(scale=1.0)([[0.0, 1.0, 2.0], [0.0, 0.0, 1.0, 2.0], [5.0]]).round(3)
    array([[1.   , 0.711, 0.   ],
           [0.711, 1.   , 0.   ],
           [0.   , 0.   , 1.   ]])
    """

    _of_objects = True

    scale: float = 1.0
    divisible: bool = True

    def _validate(self) -> None:
        check_number(self, "scale", self.scale)

    def of(self, pair: Pair) -> Any:
        rule = Alignments(float(self.scale), bool(self.divisible))
        strings = pair.through(series)
        return strings.xp.exp(strings.compare(rule) - (strings.left(Half(rule)) + strings.right(Half(rule))))

    def _proof(self) -> Proof:
        if self.divisible:
            return self._axiom(
                "alignments",
                "kappa / (1 + kappa) = G / 2 is positive semidefinite, which suffices (Cuturi, 2011); normalizing is a "
                "rescaling.",
            )
        return self._axiom(
            "alignments",
            "of kappa = G it is not known whether kappa / (1 + kappa) is positive semidefinite; verdict(k, X) tests k.",
            "unproven",
        )
