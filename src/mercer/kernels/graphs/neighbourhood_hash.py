"""The neighbourhood hash kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.kernels.base import check_integer, kernel
from mercer.kernels.graphs.union import Arcs, GraphKernel, check_bool, united
from mercer.kernels.objects.fingerprints import Tanimoto
from mercer.points import Pair, Points
from mercer.points.sets.named import bags, copies, names

_BITS = 62  # of a label: it is the name of a feature


@kernel
class NeighbourhoodHash(GraphKernel):
    r"""The neighbourhood hash kernel: shared labels as a part of all labels (Hido and Kashima, 2009).

    .. math:: k(G, G') = \frac{1}{h + 1} \sum_{t=0}^{h}
              \frac{\sum_c \min(n_{t,c}(G), n_{t,c}(G'))}{\sum_c \max(n_{t,c}(G), n_{t,c}(G'))}

    The label of a node is a word of 62 bits, that of the next round its own, rotated by one bit, XOR those of all its
    neighbours. n_{t,c} counts the nodes with label c in round t. Two graphs without nodes have the value 1.

    Parameters
    ----------
    h
        The number of rounds.
    counts
        Whether a label that o neighbours share enters once, XOR o and rotated by o bits: the count-sensitive hash.
        Otherwise an even number of equal labels cancels out: the simple hash.

    Notes
    -----
    Proven positive semidefinite with either hash, since both map a graph to counts, of which each round takes the
    `MinMax` kernel. Edges lead to neighbours in their direction; labels of edges do not matter. Unlike the colours of
    `WeisfeilerLehman`, words of different neighbourhoods may be equal by the rules of XOR, not only by chance.

    Examples
    --------
    >>> from mercer import Graph, NeighbourhoodHash
    >>> water = Graph([(0, 1), (0, 2)], labels=["O", "H", "H"])
    >>> peroxide = Graph([(0, 1), (0, 2), (1, 3)], labels=["O", "O", "H", "H"])
    >>> NeighbourhoodHash(h=1)([water, peroxide])
    array([[1.   , 0.575],
           [0.575, 1.   ]])
    """

    h: int = 3
    counts: bool = True

    _because = (
        "pull-back",
        "a mean of min-max kernels of counts, each the Tanimoto kernel of 0/1 features, one for the j-th node of a "
        "label: min(n, m) is the sum over j >= 1 of 1[n >= j] 1[m >= j].",
    )

    def _validate(self) -> None:
        check_integer(self, "h", self.h, 0)
        check_bool(self, "counts", self.counts)

    def of(self, pair: Pair) -> Any:
        rounds = [Words(t, bool(self.counts)) for t in range(int(self.h) + 1)]
        return sum(Tanimoto().of(pair.through(words)) for words in rounds) * (1.0 / len(rounds))


@dataclass(frozen=True)
class Words:
    """Whether there is a first, a second, a third ... node of each label after some rounds."""

    t: int
    counts: bool

    def __call__(self, points: Points) -> Any:
        union = united(points)
        words = names(union.labels)
        for _ in range(self.t):
            words = hashed(words, union.arcs, self.counts)
        return copies(bags(words, union.starts))


def hashed(words: np.ndarray, arcs: Arcs, counts: bool) -> np.ndarray:
    """Return the words of the next round."""
    seen, starts = words[arcs.target], arcs.starts
    if counts:
        order = np.lexsort((seen, arcs.source))
        source, seen = arcs.source[order], seen[order]
        first = np.flatnonzero(np.diff(source, prepend=-1) | np.diff(seen, prepend=-1))  # of each word at each node
        number = np.diff(first, append=len(seen))
        seen = _rotated(seen[first] ^ number, number % _BITS)
        starts = np.searchsorted(first, starts)
    total = np.concatenate([[0], np.bitwise_xor.accumulate(seen)])
    return _rotated(words, 1) ^ total[starts[1:]] ^ total[starts[:-1]]


def _rotated(words: np.ndarray, by: Any) -> np.ndarray:
    return (words << by | words >> (_BITS - by)) & (2**_BITS - 1)
