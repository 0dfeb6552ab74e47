"""The mismatch kernel."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np

from mercer.kernels.base import Kernel, check_integer, kernel
from mercer.points import Pair, Points
from mercer.points.sets.sequences import Sequences, WindowSums, letters

_LARGEST = 2**64  # weights are whole numbers below it


@kernel
class Mismatch(Kernel):
    r"""The k-mers that two strings share if up to m letters may differ (Leslie et al., 2004).

    .. math:: k(x, z) = \sum_{c \in A^k} |x|_{c,m} |z|_{c,m}

    with |x|_{c,m} the number of k-mers of x that differ from c in up to m places. It is computed as a sum over pairs of
    k-mers a of x and b of z: the number of c that are near both depends on the places in which a and b differ, and on
    the number of letters in the alphabet A. That is a parameter: if the letters were counted in the strings compared,
    a value would depend on the other strings. Strings of more letters are refused. A string of fewer than k letters
    has no feature: its values are 0.

    Parameters
    ----------
    k
        The length of the substrings.
    m
        How many letters may differ.
    alphabet
        The number of letters: 4 for DNA, 20 for proteins.

    Examples
    --------
    >>> from mercer import Mismatch
    >>> Mismatch(2, 1)(["AC", "AG", "GT"])
    array([[7., 4., 2.],
           [4., 7., 2.],
           [2., 2., 7.]])
    """

    _of_objects = True

    k: int = 5
    m: int = 1
    alphabet: int = 4

    _because = "feature map", "the inner product of the numbers of k-mers that are near each k-mer."

    def _validate(self) -> None:
        check_integer(self, "k", self.k, 1)
        check_integer(self, "m", self.m, 0)
        check_integer(self, "alphabet", self.alphabet, 2)
        if self.m >= self.k:
            raise ValueError(f"m of Mismatch must be below k; they are {self.m!r} and {self.k!r}.")
        if max(self._weights()) >= _LARGEST:
            raise ValueError(
                f"{self!r} has more than 2^64 k-mers within {self.m} letters of one; choose a smaller m or k."
            )

    def _weights(self) -> tuple[int, ...]:
        """Return the number of k-mers near both of two, for 0, 1, ..., k equal letters."""
        return tuple(
            near_both(int(self.k), int(self.m), int(self.alphabet), int(self.k) - s) for s in range(self.k + 1)
        )

    def of(self, pair: Pair) -> Any:
        return pair.through(Spelled(int(self.alphabet))).compare(WindowSums(int(self.k), self._weights()))


def near_both(k: int, m: int, alphabet: int, apart: int) -> int:
    """Return how many k-mers differ in up to m places from each of two that differ in `apart` places."""
    total = 0
    for equal in range(apart + 1):  # of the places where the two differ, those where it is as the first
        for other in range(apart - equal + 1):  # and those where it is as the second
            neither = apart - equal - other
            ways = comb(apart, equal) * comb(apart - equal, other) * (alphabet - 2) ** neither
            left = m - apart + min(equal, other)  # places of the others where it may differ from both
            total += ways * sum(comb(k - apart, t) * (alphabet - 1) ** t for t in range(min(left, k - apart) + 1))
    return total


@dataclass(frozen=True)
class Spelled:
    """Sequences of up to `alphabet` letters."""

    alphabet: int

    def __call__(self, points: Points) -> Sequences:
        found: Sequences = points.through(letters).data
        size = len(np.unique(found.letters))
        if size > self.alphabet:
            raise ValueError(
                f"{points.name} has {size} different letters, more than the {self.alphabet} of the kernel's alphabet; "
                f"pass Mismatch(..., alphabet={size}), or fold cases and rare letters."
            )
        return found
