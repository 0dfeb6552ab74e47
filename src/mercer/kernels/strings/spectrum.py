"""The spectrum kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mercer.features import NamedFeatures
from mercer.kernels.base import Kernel, check_integer, kernel
from mercer.points import Pair, Points
from mercer.points.sets.sequences import kmers, letters


@kernel
class Spectrum(Kernel):
    r"""The number of k-mers that two strings share (Leslie, Eskin and Noble, 2002).

    .. math:: k(x, z) = \sum_{a \in A^k} |x|_a |z|_a

    with |x|_a the number of times that a occurs in x, and A the letters, whichever they are.

    Points are texts, bytes, or lists of tokens. A string of fewer than k letters has no feature: its values are 0.

    Parameters
    ----------
    k
        The length of the substrings.
    blended
        Whether shorter ones count, too: all lengths from 1 to k.

    Examples
    --------
    >>> from mercer import Spectrum
    >>> Spectrum(2)(["banana", "bandana", "xyz"])
    array([[9., 7., 0.],
           [7., 8., 0.],
           [0., 0., 2.]])
    """

    _of_objects = True

    k: int = 3
    blended: bool = False

    _because = "feature map", "the inner product of the numbers of times that each k-mer occurs."

    def _validate(self) -> None:
        check_integer(self, "k", self.k, 1)

    def of(self, pair: Pair) -> Any:
        return pair.through(self._map()).dot

    def feature_map(self) -> Any:
        return NamedFeatures(self._map())

    def _map(self) -> KMers:
        return KMers(1 if self.blended else int(self.k), int(self.k))


@dataclass(frozen=True)
class KMers:
    """How often each run of `low` to `high` letters occurs."""

    low: int
    high: int

    def __call__(self, points: Points) -> Any:
        return kmers(points.through(letters).data, self.low, self.high)
