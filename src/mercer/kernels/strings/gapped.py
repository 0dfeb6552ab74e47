"""Kernels of k-mers that differ in some places: with gaps, and with mismatches."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from mercer.features import NamedFeatures
from mercer.kernels.base import Kernel, check_integer, kernel
from mercer.kernels.proof import Proof
from mercer.machine.budget import Budget
from mercer.machine.words import count
from mercer.points import Pair, Points
from mercer.points.sets.named import bags, mixed, names, paired
from mercer.points.sets.sequences import Sequences, WindowSums, letters

_LARGEST = 2**64  # weights are whole numbers below it
_WAYS = 1000  # features of one substring, at most: beyond it, those of a string of 1,000 letters are a million
_BYTES = 40  # of a feature while it is counted: name and value, and both once more as they are sorted
_WINDOWS = 4096  # that are named at a time, so that their letters stay in the cache
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
    >>> GappedKmers(length=3, gaps=1).feature_map().fit_transform(["ACGT", "ACTT", "AC"]).shape
    (3, 10)
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

    def feature_map(self) -> Any:
        g, m = int(self.length), int(self.gaps)
        if comb(g, m) > _WAYS:
            raise TypeError(
                f"{self!r} has {comb(g, m):,} features for each substring of {g} letters, and a feature map is made of "
                f"up to {_WAYS:,}; use the kernel itself, whose cost does not depend on the gaps, or fewer gaps."
            )
        return NamedFeatures(GappedCounts(g, m, bool(self.reverse_complement)))

    def _proof(self) -> Proof:
        both = " Both strands: x is the sum of its features and those of its reverse complement, halved."
        return self._axiom(
            "feature map",
            "the inner product of the numbers of times that each string with gaps at m given places occurs."
            + (both if self.reverse_complement else ""),
        )


@dataclass(frozen=True)
class GappedCounts:
    """How often each string of `length` letters, `gaps` of them left out at given places, occurs."""

    length: int
    gaps: int
    both: bool  # strands, each of which counts half of the square

    def __call__(self, points: Points) -> Any:
        strings = points.through(letters)
        counts = self._counts(strings)
        if not self.both:
            return counts
        return (counts + self._counts(strings.through(reverse_complement))) * 0.5**0.5

    def _counts(self, strings: Points) -> Any:
        sequences: Sequences = strings.data
        windows = np.maximum(sequences.lengths - self.length + 1, 0)
        starts = np.concatenate([[0], np.cumsum(windows)])
        masks = list(combinations(range(self.length), self.length - self.gaps))
        Budget().require(
            int(starts[-1]) * len(masks) * _BYTES,
            f"the {count(int(starts[-1]) * len(masks), 'feature')} of {count(len(sequences), 'string')}",
            "use the kernel itself, which needs no features, or fewer gaps.",
        )
        places = np.repeat(sequences.starts[:-1] - starts[:-1], windows) + np.arange(starts[-1])
        kind = mixed(np.array([sequences.kind == "bytes"], np.uint64))
        out = np.empty((len(places), len(masks)), np.int64)
        for first in range(0, len(places), _WINDOWS):
            part = places[first : first + _WINDOWS]
            # The hash of some letters at some places is the sum of one number for each (Zobrist, 1970).
            each = [
                paired(sequences.letters[part + p].astype(np.int64).view(np.uint64), np.array(p, np.uint64))
                for p in range(self.length)
            ]
            for j, kept in enumerate(masks):
                with np.errstate(over="ignore"):  # arithmetic modulo 2^64
                    total = sum((each[p] for p in kept), kind + np.uint64(j))
                out[first : first + _WINDOWS, j] = names(mixed(total))
        return bags(out.ravel(), starts * len(masks))


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
        sequences: Sequences = points.through(letters).data
        size = len(np.unique(sequences.letters))
        if size > self.alphabet:
            raise ValueError(
                f"{points.name} has {size} different letters, more than the {self.alphabet} of the kernel's alphabet; "
                f"pass Mismatch(..., alphabet={size}), or fold cases and rare letters."
            )
        return sequences
