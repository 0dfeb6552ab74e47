"""The graphlet kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import FunctionTransformer

from mercer.kernels.base import kernel
from mercer.kernels.graphs.union import GraphKernel, Union, united
from mercer.kernels.rules.pullback import Applied
from mercer.machine.lazy import cached_property
from mercer.points import Pair, Points

_PATHS = 3 * 10**7  # of two edges that are held at a time, each with its two ends: a gigabyte


@kernel
class Graphlets(GraphKernel):
    r"""The graphlet kernel: connected induced subgraphs of 3 or 4 nodes (Shervashidze et al., 2009).

    .. math:: k(G, G') = \sum_{H} n_H(G) \, n_H(G')

    H runs over the connected graphs of that size, 2 or 6 of them, and n_H(G) counts the sets of nodes of G that have
    exactly the edges of H between them. Labels, loops and directions of edges do not matter.

    Parameters
    ----------
    size
        3 or 4.

    Notes
    -----
    The counts are exact: from degrees, common neighbours and triangles by the relations of Ahmed et al. (2015), not by
    listing or sampling sets of nodes. Large graphs have many of them; `Graphlets().normalized()` compares their shares.
    Sets of 4 nodes take memory for each two nodes that share a neighbour, and graphs with more than 30 million paths of
    two edges, such as stars of 5,500 nodes, are refused.

    Examples
    --------
    >>> from mercer import Graph, Graphlets
    >>> triangle, path = Graph([(0, 1), (1, 2), (0, 2)]), Graph([(0, 1), (1, 2), (2, 3)])
    >>> Graphlets(size=3)([triangle, path])
    array([[1., 0.],
           [0., 4.]])
    """

    size: int = 3

    _because = "feature map", "the inner product of the counts of connected induced subgraphs."

    def _validate(self) -> None:
        if self.size not in (3, 4) or isinstance(self.size, bool):
            raise ValueError(f"size of Graphlets must be 3 or 4; it is {self.size!r}.")

    def of(self, pair: Pair) -> Any:
        return pair.through(Induced(int(self.size))).dot

    def feature_map(self) -> Any:
        return FunctionTransformer(Applied(Induced(int(self.size))))


@dataclass(frozen=True)
class Induced:
    """How many sets of nodes induce each connected graph: the path to the triangle, or to the clique of 4."""

    size: int

    def __call__(self, points: Points) -> np.ndarray:
        union = united(points)
        if self.size == 3:
            return np.column_stack(_Counter(union).three())
        ends = union.edges[union.edges[:, 0] != union.edges[:, 1]].ravel()
        degree = np.bincount(ends, minlength=int(union.starts[-1])).astype(np.float64)
        paths = np.diff(np.concatenate([[0.0], np.cumsum(degree**2)])[union.starts])
        if (paths > _PATHS).any():
            i = int(np.argmax(paths))
            raise ValueError(
                f"{points.name}[{i}] has {paths[i]:.2g} paths of two edges, most through nodes with many neighbours; "
                f"Graphlets(size=4) takes up to {_PATHS:,}. Graphlets(size=3) and WeisfeilerLehman take any number."
            )
        parts = np.split(np.arange(len(union)), np.flatnonzero(np.diff(np.cumsum(paths) // _PATHS)) + 1)
        return np.concatenate([np.column_stack(_Counter(Union([union[i] for i in part])).four()) for part in parts])


class _Counter:
    """Counts of subgraphs in all graphs of a union at once."""

    def __init__(self, union: Union) -> None:
        n = int(union.starts[-1])
        a, b = union.edges[union.edges[:, 0] != union.edges[:, 1]].T
        ends = np.concatenate([a, b]), np.concatenate([b, a])
        self.A = sparse.csr_array((np.ones(2 * len(a)), ends), shape=(n, n))
        self.A.data[:] = 1.0  # two directed edges between the same nodes are one here
        self.graph, self._many = np.repeat(np.arange(len(union)), union.sizes), len(union)
        self.degree = np.diff(self.A.indptr).astype(np.float64)

    @cached_property
    def common(self) -> Any:
        """The numbers of neighbours that two nodes share."""
        return self.A @ self.A

    @cached_property
    def shared(self) -> Any:
        """The same of two neighbours: triangles on an edge."""
        return sparse.coo_array(self.A.multiply(self.common))

    def of_nodes(self, values: np.ndarray) -> np.ndarray:
        """Return the sums over the nodes of each graph."""
        return np.bincount(self.graph, values, minlength=self._many)

    def three(self) -> list[np.ndarray]:
        # Each edge leads to the end of larger degree, so that no node has many ahead; one edge of a triangle closes a
        # path of the two others (Schank and Wagner, 2005).
        d, edge = self.degree, self.A.tocoo()
        rank = np.argsort(np.argsort(d, kind="stable"))
        ahead = rank[edge.row] < rank[edge.col]
        up = sparse.csr_array((edge.data[ahead], (edge.row[ahead], edge.col[ahead])), shape=self.A.shape)
        closed = sparse.coo_array(up.multiply(up @ up))
        triangles = self._of_pairs(closed, closed.data)
        return [self.of_nodes(d * (d - 1) / 2) - 3 * triangles, triangles]

    def four(self) -> list[np.ndarray]:
        # Subgraphs that may have further edges between their nodes, each edge of an arc list twice.
        d, t = self.degree, np.asarray(self.shared.sum(axis=1)).ravel() / 2  # triangles at each node
        edge = self.A.tocoo()
        stars = self.of_nodes(d * (d - 1) * (d - 2) / 6)
        paths = self._of_pairs(edge, (d[edge.row] - 1) * (d[edge.col] - 1)) / 2 - self.of_nodes(t)
        two = self.common.tocoo()
        cycles = self._of_pairs(two, np.where(two.row != two.col, two.data * (two.data - 1) / 2, 0.0)) / 4
        paws = self.of_nodes(t * (d - 2))
        diamonds = self._of_pairs(self.shared, self.shared.data * (self.shared.data - 1) / 2) / 2
        cliques = self._cliques()
        # Those that have no further ones.
        diamonds = diamonds - 6 * cliques
        cycles = cycles - diamonds - 3 * cliques
        paws = paws - 4 * diamonds - 12 * cliques
        stars = stars - paws - 2 * diamonds - 4 * cliques
        paths = paths - 4 * cycles - 2 * paws - 6 * diamonds - 12 * cliques
        return [paths, stars, cycles, paws, diamonds, cliques]

    def _of_pairs(self, pairs: Any, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.graph[pairs.row], values, minlength=self._many)

    def _cliques(self) -> np.ndarray:
        """Return the cliques of 4 nodes: edges among the common neighbours of the two ends of an edge."""
        upper = self.shared.row < self.shared.col
        row, col = self.shared.row[upper], self.shared.col[upper]
        both = self.A[row].multiply(self.A[col]).tocsr()  # the common neighbours of each edge that has some
        inside = np.asarray((both @ self.A).multiply(both).sum(axis=1)).ravel() / 2
        return np.bincount(self.graph[row], inside, minlength=self._many) / 6
