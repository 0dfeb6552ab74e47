"""Kernels of local alignments, and the score of the best one."""

from __future__ import annotations

import math
from typing import Any

from mercer.kernels.base import Kernel, check_number, kernel
from mercer.kernels.proof import Proof
from mercer.kernels.strings.half import Half
from mercer.points import Pair
from mercer.points.sets.sequences import Recurrence, letters


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

    def _validate(self) -> None:
        check_number(self, "beta", self.beta)
        super()._validate()

    def of(self, pair: Pair) -> Any:
        weights = tuple(math.exp(min(700.0, self.beta * score)) for score in self._scores())
        rule = Recurrence("local alignments", weights)
        strings = pair.through(letters)
        return strings.xp.exp(strings.compare(rule) - (strings.left(Half(rule)) + strings.right(Half(rule))))

    def _proof(self) -> Proof:
        return self._axiom(
            "convolution",
            "K is a sum of convolutions of a kernel of letters, exp(beta mismatch) + (exp(beta match) - exp(beta "
            "mismatch)) [a = b] with match >= mismatch, and of the kernel of gaps, a product f(x) f(z); normalizing is "
            "a rescaling.",
        )


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

    def of(self, pair: Pair) -> Any:
        return pair.through(letters).compare(Recurrence("best alignment", self._scores()))

    def _proof(self) -> Proof:
        return self._axiom(
            "maximum",
            "a maximum over alignments need not be positive semidefinite; verdict(k, X) tests it.",
            "unproven",
        )
