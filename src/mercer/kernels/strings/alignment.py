"""Kernels of strings and series that are summed along both: over subsequences, over alignments or the best one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from mercer.kernels.base import Kernel, check_integer, check_number, kernel
from mercer.kernels.proof import Proof
from mercer.points import Pair, PairRule, Points, diagonal
from mercer.points.sets.sequences import Alignments, Recurrence, letters, series


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


class Scored(Kernel):
    """A kernel of alignments: scores of two letters, and of gaps."""

    _of_objects = True

    match: float
    mismatch: float
    gap_open: float
    gap_extend: float

    def _validate(self) -> None:
        name = type(self).__name__
        for what in ("match", "mismatch"):
            check_number(self, what, getattr(self, what), -math.inf)
        for what in ("gap_open", "gap_extend"):
            check_number(self, what, getattr(self, what), closed=True)
        if self.match < self.mismatch:
            raise ValueError(
                f"match of {name} must be at least mismatch: equal letters cannot score less than different ones; they "
                f"are {self.match!r} and {self.mismatch!r}."
            )

    def _scores(self) -> tuple[float, ...]:
        return float(self.match), float(self.mismatch), -float(self.gap_open), -float(self.gap_extend)


@kernel
class LocalAlignment(Scored):
    r"""The sum over all local alignments of two strings (Saigo, Vert, Ueda and Akutsu, 2004).

    .. math:: k(x, z) = \frac{K(x, z)}{\sqrt{K(x, x) K(z, z)}}, \quad
              K(x, z) = \sum_{\pi} e^{\beta s(\pi)}

    The score s of an alignment adds `match` or `mismatch` for each pair of letters and subtracts `gap_open` plus
    `gap_extend` for each further letter of a gap; the empty alignment has the score 0. K exceeds the range of numbers
    for strings of some hundred letters, so that it is computed and normalized in logarithms. An empty string has K = 1
    with every other.

    Parameters
    ----------
    beta
        How much better alignments count for more.
    match, mismatch
        The scores of two equal and of two different letters.
    gap_open, gap_extend
        The costs of the first letter of a gap and of each further one.

    Examples
    --------
    >>> from mercer import LocalAlignment
    >>> LocalAlignment(beta=0.5)(["GATTACA", "GATACA", "CCCC"]).round(3)
    array([[1.   , 0.826, 0.209],
           [0.826, 1.   , 0.267],
           [0.209, 0.267, 1.   ]])
    """

    beta: float = 0.5
    match: float = 1.0
    mismatch: float = -1.0
    gap_open: float = 2.0
    gap_extend: float = 1.0

    _because = (
        "convolution",
        "K is a sum of convolutions of a kernel of letters, exp(beta mismatch) + (exp(beta match) - exp(beta "
        "mismatch)) [a = b] with match >= mismatch, and of the kernel of gaps, a product f(x) f(z); normalizing is a "
        "rescaling.",
    )

    def _validate(self) -> None:
        check_number(self, "beta", self.beta)
        super()._validate()

    def of(self, pair: Pair) -> Any:
        weights = tuple(math.exp(min(700.0, self.beta * score)) for score in self._scores())
        rule = Recurrence("local alignments", weights)
        strings = pair.through(letters)
        return strings.xp.exp(strings.compare(rule) - (strings.left(Half(rule)) + strings.right(Half(rule))))


@kernel
class SmithWaterman(Scored):
    r"""The score of the best local alignment of two strings (Smith and Waterman, 1981). It is not a kernel.

    .. math:: k(x, z) = \max_{\pi} s(\pi)

    A maximum of kernels need not be positive semidefinite; `verdict` tests it on points, and `repair` mends it.
    `LocalAlignment` is the kernel beside it.

    Parameters
    ----------
    match, mismatch, gap_open, gap_extend
        As of `LocalAlignment`.

    Examples
    --------
    >>> from mercer import SmithWaterman
    >>> SmithWaterman()(["GATTACA", "GATACA", "CCCC"])
    array([[7., 4., 1.],
           [4., 6., 1.],
           [1., 1., 4.]])
    """

    match: float = 1.0
    mismatch: float = -1.0
    gap_open: float = 2.0
    gap_extend: float = 1.0

    _because = (
        "maximum",
        "a maximum over alignments need not be positive semidefinite; verdict(k, X) tests it.",
        "unproven",
    )

    def of(self, pair: Pair) -> Any:
        return pair.through(letters).compare(Recurrence("best alignment", self._scores()))


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


@dataclass(frozen=True)
class Half:
    """rule(x, x) / 2 at each point."""

    rule: PairRule

    def __call__(self, points: Points) -> Any:
        return diagonal(lambda pair: pair.compare(self.rule), points) / 2


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

    _because = (
        "edit distance",
        "Levenshtein's distance is not conditionally negative definite; verdict(k, X) tests it on points.",
        "unproven",
    )

    def _validate(self) -> None:
        check_number(self, "scale", self.scale)

    def of(self, pair: Pair) -> Any:
        strings = pair.through(letters)
        return strings.xp.exp(strings.compare(Recurrence("edits")) * (-1.0 / float(self.scale)))
