"""The shortest-path kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.kernels.base import check_integer, kernel
from mercer.kernels.graphs.base import CountKernel
from mercer.kernels.graphs.hashing import names, paired
from mercer.kernels.graphs.union import Union, united
from mercer.kernels.proof import Proof
from mercer.points import Points
from mercer.points.sets.named import bags
from mercer.points.sets.paths import path_counts

_STEPS = 2 * 10**10  # nodes and arcs that searches from all nodes of a graph may visit: a minute


@kernel
class ShortestPath(CountKernel):
    r"""The shortest-path kernel: pairs of nodes with equal labels at equal distances (Borgwardt and Kriegel, 2005).

    .. math:: k(G, G') = \sum_{a, b, d} n_{a,b,d}(G) \, n_{a,b,d}(G')

    n_{a,b,d} counts the ordered pairs of different nodes with labels a and b whose distance, the number of edges on a
    shortest path from the one to the other, is d.

    Parameters
    ----------
    longest
        The distance up to which pairs count; None for all. Graphs of more than some ten thousand nodes need one.

    Examples
    --------
    >>> from mercer import Graph, ShortestPath
    >>> water = Graph([(0, 1), (0, 2)], labels=["O", "H", "H"])
    >>> peroxide = Graph([(0, 1), (0, 2), (1, 3)], labels=["O", "O", "H", "H"])
    >>> ShortestPath()([water, peroxide])
    array([[12.,  8.],
           [ 8., 24.]])
    """

    longest: int | None = None

    def _validate(self) -> None:
        if self.longest is not None:
            check_integer(self, "longest", self.longest, 1)

    @property
    def _map(self) -> Paths:
        return Paths(None if self.longest is None else int(self.longest))

    def _proof(self) -> Proof:
        return self._axiom("feature map", "the inner product of the counts of triples (label, label, distance).")


@dataclass(frozen=True)
class Paths:
    """How many pairs of nodes have two labels and a distance."""

    longest: int | None

    def __call__(self, points: Points) -> Any:
        union = united(points)
        if self.longest is None:
            _check_size(union, points)
        hashes, label, first = _numbered(union)
        arcs = union.arcs
        found = path_counts(union.starts, arcs.starts, arcs.target, label, self.longest)
        offset = first[found.graph]
        ends = paired(hashes[offset + found.start], hashes[offset + found.end])
        starts = np.searchsorted(found.graph, np.arange(len(union) + 1))
        return bags(names(paired(ends, found.length.view(np.uint64))), starts, found.number)


def _numbered(union: Union) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the different labels of each graph in a row, the number of each node's among them, and where each begins.

    Labels are numbered within a graph, so that the core can count them in an array no longer than the graph.
    """
    graph = np.repeat(np.arange(len(union)), union.sizes)
    order = np.lexsort((union.labels, graph))
    labels, owner = union.labels[order], graph[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (labels[1:] != labels[:-1]) | (owner[1:] != owner[:-1])
    first = np.searchsorted(owner[new], np.arange(len(union)))
    label = np.empty(len(order), dtype=np.int64)
    label[order] = np.cumsum(new) - 1 - first[owner]
    return labels[new], label, first


def _check_size(union: Union, points: Points) -> None:
    steps = union.sizes * (union.sizes + np.diff(union.edge_starts) * 2)
    if (steps > _STEPS).any():
        i = int(np.argmax(steps))
        raise ValueError(
            f"{points.name}[{i}] has {union.sizes[i]:,} nodes, and paths between all of them would take too long; "
            "count those up to some length, such as ShortestPath(longest=3)."
        )
