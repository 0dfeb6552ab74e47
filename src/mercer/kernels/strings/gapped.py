"""The gapped k-mer kernel."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np

from mercer.kernels.base import Kernel, check_integer, kernel
from mercer.kernels.proof import Proof
from mercer.points import Pair, Points
from mercer.points.sets.sequences import Sequences, WindowSums, letters

_LARGEST = 2**64  # weights are whole numbers below it
_COMPLEMENT = str.maketrans("ACGTacgt", "TGCAtgca")


@kernel
class GappedKmers(Kernel):
    r"""The k-mers with gaps that two strings share (Ghandi et al., 2014; FastSK: Blakely et al., 2020).

    .. math:: k(x, z) = \sum_{a \in x} \sum_{b \in z} \binom{g - h(a, b)}{g - m}

    over the substrings a and b of g = `length` letters, with h the number of places in which they differ. The binomial
    is the number of ways to leave out m = `gaps` places such that the others agree.

    It is computed exactly, by counting equal letters along each diagonal of the table of letters: the cost is
    proportional to |x| |z| and does not depend on g or m. A string of fewer than g letters has no feature: its values
    are 0. FastSK's kernel is the `normalized()` one.

    Parameters
    ----------
    length
        g, the letters of a substring.
    gaps
        m, how many of them are left out.
    reverse_complement
        Whether the other strand of DNA is read, too: k(x, z) + k(x, z') with z' the reverse complement of z. Letters
        other than these four stay as they are.

    Examples
    --------
    >>> from mercer import GappedKmers
    >>> GappedKmers(length=3, gaps=1)(["ACGT", "ACTT", "AC"])
    array([[6., 2., 0.],
           [2., 6., 0.],
           [0., 0., 0.]])
    """

    _of_objects = True

    length: int = 8
    gaps: int = 2
    reverse_complement: bool = False

    def _validate(self) -> None:
        check_integer(self, "length", self.length, 1)
        check_integer(self, "gaps", self.gaps, 0)
        if self.gaps >= self.length:
            raise ValueError(
                f"gaps of GappedKmers must be below length, so that a letter is left to compare; they are "
                f"{self.gaps!r} and {self.length!r}."
            )
        if comb(int(self.length), int(self.gaps)) >= _LARGEST:
            raise ValueError(
                f"GappedKmers(length={self.length}, gaps={self.gaps}) leaves out gaps in "
                f"{comb(int(self.length), int(self.gaps)):.2g} ways, more than 64 bits count; choose fewer gaps."
            )

    def of(self, pair: Pair) -> Any:
        g, k = int(self.length), int(self.length - self.gaps)
        rule = WindowSums(g, tuple(comb(s, k) for s in range(g + 1)))
        strings = pair.through(letters)
        return strings.compare(BothStrands(rule)) if self.reverse_complement else strings.compare(rule)

    def _proof(self) -> Proof:
        both = " Both strands: x is the sum of its features and those of its reverse complement, halved."
        return self._axiom(
            "feature map",
            "the inner product of the numbers of times that each string with gaps at m given places occurs."
            + (both if self.reverse_complement else ""),
        )


@dataclass(frozen=True)
class BothStrands:
    """rule(x, z) + rule(x, z') with z' the reverse complement of z."""

    rule: WindowSums

    def __call__(self, left: Points, right: Points) -> Any:
        return self.rule(left, right) + self.rule(left, right.through(reverse_complement))


def reverse_complement(points: Points) -> Sequences:
    """Return the sequences backwards, with A and T, C and G exchanged."""
    given = points.data
    if given.kind == "tokens":
        raise TypeError(
            f"{points.name} has lists of tokens, which have no reverse complement; pass texts or bytes of the letters "
            "A, C, G and T, or reverse_complement=False."
        )
    ends = np.repeat(given.starts[1:] + given.starts[:-1], given.lengths) - 1
    place = np.arange(given.starts[0], given.starts[-1])
    backwards = given.letters[ends - place]
    partner = np.arange(max(128, int(backwards.max(initial=0)) + 1), dtype=np.int32)
    partner[list(_COMPLEMENT)] = list(_COMPLEMENT.values())
    return Sequences(partner[backwards], given.starts - given.starts[0], given.kind)
