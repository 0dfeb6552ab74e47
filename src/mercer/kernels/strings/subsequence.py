"""The subsequence kernel."""

from __future__ import annotations

from typing import Any

from mercer.kernels.base import Kernel, check_integer, check_number, kernel
from mercer.points import Pair
from mercer.points.sets.sequences import Recurrence, letters


@kernel
class Subsequence(Kernel):
    r"""The subsequences that two strings share, with gaps that cost (Lodhi et al., 2002).

    .. math:: k(x, z) = \sum_{u \in A^n} \sum_{i : x_i = u} \sum_{j : z_j = u} \lambda^{l(i) + l(j)}

    over increasing places i and j of the n = `length` letters of u, which span l(i) and l(j) letters of x and z. It
    takes n |x| |z| steps, of as many strings at a time as a register holds numbers. A string of fewer than n letters
    has no feature: its values are 0. Values decrease like decay^(2 n); `normalized()` is the form to learn with.

    Parameters
    ----------
    length
        n, the letters of a subsequence.
    decay
        lambda, the factor for each letter spanned, above 0 and up to 1.
    blended
        Whether shorter ones count, too: all lengths from 1 to n.

    Examples
    --------
    >>> from mercer import Subsequence
    >>> Subsequence(2, 0.5).normalized()(["cat", "car", "bat"]).round(4)
    array([[1.    , 0.4444, 0.4444],
           [0.4444, 1.    , 0.    ],
           [0.4444, 0.    , 1.    ]])
    """

    _of_objects = True

    length: int = 3
    decay: float = 0.5
    blended: bool = False

    _because = "feature map", "the inner product of the sums of decay^l(i) over the places of each u."

    def _validate(self) -> None:
        check_integer(self, "length", self.length, 1)
        check_number(self, "decay", self.decay)
        if self.decay > 1:
            raise ValueError(f"decay of Subsequence must be at most 1, so that gaps cost; it is {self.decay!r}.")

    def of(self, pair: Pair) -> Any:
        given = float(self.length), float(self.decay), float(bool(self.blended))
        return pair.through(letters).compare(Recurrence("subsequences", given))
