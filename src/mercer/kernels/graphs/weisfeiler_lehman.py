"""The kernels of Weisfeiler and Lehman's colour refinement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.kernels.base import check_integer, kernel
from mercer.kernels.graphs.union import CountKernel, Union, check_bool, united
from mercer.points import Points
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
    found = []
    for colour in rounds:
        with np.errstate(over="ignore"):
            ends = np.where(union.directed, paired(colour[a], colour[b]), mixed(colour[a]) + mixed(colour[b]))
        found.append(paired(ends, union.edge_labels))
    return found


def _by_graph(rounds: list[np.ndarray], starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the names of all rounds, graph by graph, and where each graph begins."""
    return names(np.column_stack(rounds)).ravel(), starts * len(rounds)
