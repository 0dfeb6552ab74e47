"""The shortest-path kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.kernels.base import check_integer, check_number, kernel
from mercer.kernels.graphs.union import CountKernel, Union, check_bool, united
from mercer.points import Points
from mercer.points.sets.graph import path_counts
from mercer.points.sets.named import bags, names, paired

_UNITS = 10**9  # in which lengths are added: whole numbers, so that equal sums are equal
_TOTAL = 4e9  # length of all edges of a graph: of twice as many billionths the sum has 63 bits
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
    weighted
        Whether the distance is the smallest sum of the weights of edges, each rounded to nine decimals, in place of
        their number. Weights must not be negative.

    Examples
    --------
    >>> from mercer import Graph, ShortestPath
    >>> water = Graph([(0, 1), (0, 2)], labels=["O", "H", "H"])
    >>> peroxide = Graph([(0, 1), (0, 2), (1, 3)], labels=["O", "O", "H", "H"])
    >>> ShortestPath()([water, peroxide])
    array([[12.,  8.],
           [ 8., 24.]])
    """

    longest: float | None = None
    weighted: bool = False

    _because = "feature map", "the inner product of the counts of triples (label, label, distance)."

    def _validate(self) -> None:
        check_bool(self, "weighted", self.weighted)
        if self.longest is not None and self.weighted:
            check_number(self, "longest", self.longest)
        elif self.longest is not None:
            check_integer(self, "longest", self.longest, 1)

    @property
    def _map(self) -> Paths:
        return Paths(None if self.longest is None else float(self.longest), bool(self.weighted))


@dataclass(frozen=True)
class Paths:
    """How many pairs of nodes have two labels and a distance."""

    longest: float | None
    weighted: bool = False

    def __call__(self, points: Points) -> Any:
        union = united(points)
        if self.longest is None:
            _check_size(union, points)
        hashes, label, first = _numbered(union)
        arcs = union.arcs
        longest = None if self.longest is None else round(min(self.longest, 9e9) * (_UNITS if self.weighted else 1))
        lengths = _lengths(union, points)[arcs.edge] if self.weighted else None
        paths = path_counts(union.starts, arcs.starts, arcs.target, label, longest, lengths)
        offset = first[paths.graph]
        ends = paired(hashes[offset + paths.start], hashes[offset + paths.end])
        starts = np.searchsorted(paths.graph, np.arange(len(union) + 1))
        return bags(names(paired(ends, paths.length.view(np.uint64))), starts, paths.number)


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


def _lengths(union: Union, points: Points) -> np.ndarray:
    """Return the weights of edges as whole numbers of billionths."""
    graph = np.repeat(np.arange(len(union)), np.diff(union.edge_starts))
    if (union.weights < 0).any():
        at = int(np.argmin(union.weights))
        raise ValueError(
            f"{points.name}[{graph[at]}] has an edge of weight {union.weights[at]:g}; ShortestPath(weighted=True) "
            "takes weights for lengths, which are >= 0."
        )
    total = np.bincount(graph, union.weights, minlength=len(union))
    if (total > _TOTAL).any():
        i = int(np.argmax(total))
        raise ValueError(
            f"the weights of {points.name}[{i}] have the sum {total[i]:g}; ShortestPath(weighted=True) takes up to "
            f"{_TOTAL:g}: divide the weights of all graphs by the same number."
        )
    return np.rint(union.weights * _UNITS).astype(np.int64)


def _check_size(union: Union, points: Points) -> None:
    steps = union.sizes * (union.sizes + np.diff(union.edge_starts) * 2)
    if (steps > _STEPS).any():
        i = int(np.argmax(steps))
        raise ValueError(
            f"{points.name}[{i}] has {union.sizes[i]:,} nodes, and paths between all of them would take too long; "
            "count those up to some length, such as ShortestPath(longest=3)."
        )
