"""Kernels of labels that are refined in rounds: those of Weisfeiler and Lehman, and the neighbourhood hash."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.kernels.base import check_integer, kernel
from mercer.kernels.graphs.union import Arcs, CountKernel, GraphKernel, Union, check_bool, united
from mercer.kernels.objects.fingerprints import Tanimoto
from mercer.points import Pair, Points
from mercer.points.sets.named import bags, copies, mixed, names, paired, sums

_COUNTED = ("nodes", "edges")


@kernel
class WeisfeilerLehman(CountKernel):
    r"""The Weisfeiler-Lehman kernel: shared colours after each round of refinement (Shervashidze et al., 2011).

    .. math:: k(G, G') = \sum_{t=0}^{h} \sum_{c} n_{t,c}(G) \, n_{t,c}(G')

    The colour of a node in round 0 is its label. In the next round it stands for its colour and the multiset of its
    neighbours' colours: for the tree of walks from it. n_{t,c} counts the nodes of colour c in round t.

    Parameters
    ----------
    h
        The number of rounds.
    edge_labels
        Whether the colour also stands for the labels of the edges to the neighbours.
    counted
        "nodes" for the subtree kernel; "edges" for the edge kernel, which counts edges by the colours of their two ends
        and by their labels.

    Notes
    -----
    Along directed edges the neighbours ahead and those behind are told apart. Colours are 62-bit hashes, so that graphs
    that come later need no vocabulary.

    Examples
    --------
    >>> from mercer import Graph, WeisfeilerLehman
    >>> water = Graph([(0, 1), (0, 2)], labels=["O", "H", "H"])
    >>> peroxide = Graph([(0, 1), (0, 2), (1, 3)], labels=["O", "O", "H", "H"])
    >>> WeisfeilerLehman(h=1)([water, peroxide])
    array([[10.,  10.],
           [10.,  16.]])
    """

    h: int = 3
    edge_labels: bool = False
    counted: str = "nodes"

    _because = "feature map", "the inner product of the counts of colours, which are finitely many."

    def _validate(self) -> None:
        check_integer(self, "h", self.h, 0)
        check_bool(self, "edge_labels", self.edge_labels)
        if self.counted not in _COUNTED:
            raise ValueError(f'counted of WeisfeilerLehman must be "nodes" or "edges"; it is {self.counted!r}.')

    @property
    def _map(self) -> Refined:
        return Refined(int(self.h), bool(self.edge_labels), self.counted)


@kernel
class WLOptimalAssignment(CountKernel):
    r"""The optimal assignment of nodes to nodes with like trees around them (Kriege, Giscard and Wilson, 2016).

    .. math:: k(G, G') = \max_{B} \sum_{(v, v') \in B} \sum_{t=0}^{h} 1[c_t(v) = c_t(v')]
              = \sum_{t=0}^{h} \sum_{c} \min\bigl(n_{t,c}(G), n_{t,c}(G')\bigr)

    B runs over the assignments, in which each node occurs at most once; c_t and n_{t,c} are those of
    `WeisfeilerLehman`. The colours form a hierarchy, for which the best assignment is the intersection of histograms.

    Parameters
    ----------
    h
        The number of rounds.
    edge_labels
        Whether colours also stand for the labels of edges.

    Examples
    --------
    >>> from mercer import Graph, WLOptimalAssignment
    >>> water = Graph([(0, 1), (0, 2)], labels=["O", "H", "H"])
    >>> peroxide = Graph([(0, 1), (0, 2), (1, 3)], labels=["O", "O", "H", "H"])
    >>> WLOptimalAssignment(h=1)([water, peroxide])
    array([[6., 5.],
           [5., 8.]])
    """

    h: int = 3
    edge_labels: bool = False

    _because = (
        "feature map",
        "min(n, m) is the sum over j >= 1 of 1[n >= j] 1[m >= j]: one feature for the j-th of a colour.",
    )

    def _validate(self) -> None:
        check_integer(self, "h", self.h, 0)
        check_bool(self, "edge_labels", self.edge_labels)

    @property
    def _map(self) -> Copies:
        return Copies(int(self.h), bool(self.edge_labels))


@dataclass(frozen=True)
class Refined:
    """How many nodes or edges have each colour, in all rounds."""

    h: int
    edge_labels: bool
    counted: str

    def __call__(self, points: Points) -> Any:
        union = united(points)
        if self.counted == "nodes":
            return bags(*_by_graph(colours(union, self.h, self.edge_labels), union.starts))
        return bags(*_by_graph(_of_edges(union, colours(union, self.h, self.edge_labels)), union.edge_starts))


@dataclass(frozen=True)
class Copies:
    """Whether there is a first, a second, a third ... node of each colour, in all rounds."""

    h: int
    edge_labels: bool

    def __call__(self, points: Points) -> Any:
        union = united(points)
        return copies(bags(*_by_graph(colours(union, self.h, self.edge_labels), union.starts)))


def colours(union: Union, h: int, edge_labels: bool = False) -> list[np.ndarray]:
    """Return the colours of all nodes in rounds 0 to h, as 64-bit hashes."""
    rounds = [mixed(union.labels)]
    arcs = union.all_arcs
    arc = arcs.backward.astype(np.uint64)
    if edge_labels:
        arc = paired(union.edge_labels[arcs.edge], arc)
    alike = len(arc) > 0 and bool((arc == arc[0]).all())  # then nodes are hashed, which are fewer than arcs
    for _ in range(h):
        seen = paired(rounds[-1], arc[:1])[arcs.target] if alike else paired(rounds[-1][arcs.target], arc)
        rounds.append(paired(rounds[-1], sums(seen, arcs.starts)))
    return rounds


def _of_edges(union: Union, rounds: list[np.ndarray]) -> list[np.ndarray]:
    """Return the colours of all edges: of their ends, in order where they are directed, and of their labels."""
    a, b = union.edges.T
    edge_colours = []
    for colour in rounds:
        with np.errstate(over="ignore"):
            ends = np.where(union.directed, paired(colour[a], colour[b]), mixed(colour[a]) + mixed(colour[b]))
        edge_colours.append(paired(ends, union.edge_labels))
    return edge_colours


def _by_graph(rounds: list[np.ndarray], starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the names of all rounds, graph by graph, and where each graph begins."""
    return names(np.column_stack(rounds)).ravel(), starts * len(rounds)


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
