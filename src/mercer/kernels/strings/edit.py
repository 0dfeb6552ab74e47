"""The similarity of strings by their edit distance."""

from __future__ import annotations

from typing import Any

from mercer.kernels.base import Kernel, check_number, kernel
from mercer.kernels.proof import Proof
from mercer.points import Pair
from mercer.points.sets.sequences import Recurrence, letters


@kernel
class EditSimilarity(Kernel):
    r"""A similarity that decreases with Levenshtein's distance. It is not a kernel.

    .. math:: k(x, z) = e^{-d(x, z) / s}

    with d the least number of letters to insert, delete or replace. The distance is not conditionally negative definite
    (Cortes, Haffner and Mohri, 2004), so that for some scales and strings there are negative eigenvalues; `verdict`
    tests it on points, and `repair` mends it.

    Parameters
    ----------
    scale
        s, in letters.

    Examples
    --------
    >>> from mercer import EditSimilarity
    >>> EditSimilarity(scale=2.0)(["kitten", "sitting"]).round(4)  # 3 letters apart
    array([[1.    , 0.2231],
           [0.2231, 1.    ]])
    """

    _of_objects = True

    scale: float = 2.0

    def _validate(self) -> None:
        check_number(self, "scale", self.scale)

    def of(self, pair: Pair) -> Any:
        strings = pair.through(letters)
        return strings.xp.exp(strings.compare(Recurrence("edits")) * (-1.0 / float(self.scale)))

    def _proof(self) -> Proof:
        return self._axiom(
            "edit distance",
            "Levenshtein's distance is not conditionally negative definite; verdict(k, X) tests it on points.",
            "unproven",
        )
