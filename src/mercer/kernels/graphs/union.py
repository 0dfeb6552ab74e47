"""Many graphs as one, their nodes, arcs, labels and attributes one after the other, and the base of their kernels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from mercer.features.named import NamedFeatures
from mercer.kernels.base import Kernel
from mercer.machine.lazy import cached_property
from mercer.points import Pair, PointMap, Points
from mercer.points.sets.graph import Graph
from mercer.points.sets.named import hashed


@dataclass(frozen=True)
class Arcs:
    """The steps from each node to a neighbour, ordered by the node they start from.

    An undirected edge is two arcs, a loop one. A directed edge is an arc from its start, and, where both ways are asked
    for, one that says `backward` from its end.

    Attributes
    ----------
    starts
        Where the arcs of each node begin, and their number at the end.
    source, target
        The two nodes of each.
    edge
        Which edge of the union it belongs to.
    backward
        Whether it leads against the direction of its edge.
    """

    starts: np.ndarray
    source: np.ndarray
    target: np.ndarray
    edge: np.ndarray
    backward: np.ndarray


class Union(Sequence[Graph]):
    """A sequence of graphs that is also their disjoint union.

    Parameters
    ----------
    graphs
        The graphs.

    Attributes
    ----------
    starts : ndarray
        Where the nodes of each graph begin, and the number of all nodes at the end.
    edge_starts : ndarray
        The same for edges.
    edges : ndarray
        The edges of all graphs between nodes of the union.
    """

    def __init__(self, graphs: Sequence[Graph]) -> None:
        self._graphs = graphs
        self.sizes = np.array([g.size for g in graphs], dtype=np.int64)
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)])
        counts = np.array([len(g.edges) for g in graphs], dtype=np.int64)
        self.edge_starts = np.concatenate([[0], np.cumsum(counts)])
        self.edges = np.concatenate([g.edges for g in graphs]) + np.repeat(self.starts[:-1], counts)[:, None]
        self.directed = np.repeat([g.directed for g in graphs], counts)

    def __len__(self) -> int:
        return len(self._graphs)

    def __getitem__(self, i: Any) -> Any:
        return self._graphs[i]

    @cached_property
    def labels(self) -> np.ndarray:
        """The hashes of the labels of the nodes."""
        return hashed([g.labels for g in self._graphs], self.sizes)

    @cached_property
    def edge_labels(self) -> np.ndarray:
        """The hashes of the labels of the edges."""
        return hashed([g.edge_labels for g in self._graphs], np.diff(self.edge_starts))

    @cached_property
    def weights(self) -> np.ndarray:
        """The weights of the edges."""
        return np.concatenate([np.ones(len(g.edges)) if g.weights is None else g.weights for g in self._graphs])

    @cached_property
    def attributes(self) -> np.ndarray:
        """The attributes of the nodes, one row each."""
        width = next((g.attributes.shape[1] for g in self._graphs if g.attributes is not None), 0)
        for i, g in enumerate(self._graphs):
            if not width or (g.size and (g.attributes is None or g.attributes.shape[1] != width)):
                has = "no" if g.attributes is None else str(g.attributes.shape[1])
                raise ValueError(
                    f"graph {i} has {has} attributes; this kernel compares the attributes of nodes, of which all "
                    "graphs must have equally many: Graph(edges, labels, attributes=...)."
                )
        return np.concatenate([g.attributes if g.size else np.empty((0, width)) for g in self._graphs])

    @cached_property
    def mean(self) -> Any:
        """The matrix that takes the mean of the neighbours of each node, itself where there are none."""
        arcs, n = self.arcs, int(self.starts[-1])
        degree = np.diff(arcs.starts)
        alone = np.flatnonzero(degree == 0)
        rows, columns = np.concatenate([arcs.source, alone]), np.concatenate([arcs.target, alone])
        values = 1.0 / np.maximum(degree, 1)
        return sparse.csr_array((values[rows], (rows, columns)), shape=(n, n))

    @cached_property
    def arcs(self) -> Arcs:
        """The arcs along edges."""
        return self._arcs(both=False)

    @cached_property
    def all_arcs(self) -> Arcs:
        """The arcs along edges, and against directed ones."""
        return self._arcs(both=True)

    def _arcs(self, both: bool) -> Arcs:
        a, b = self.edges.T
        back = np.flatnonzero((a != b) & ~self.directed if not both else (a != b) | self.directed)
        source, target = np.concatenate([a, b[back]]), np.concatenate([b, a[back]])
        edge = np.concatenate([np.arange(len(a)), back])
        backward = np.concatenate([np.zeros(len(a), dtype=bool), self.directed[back]])
        order = np.argsort(source, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=int(self.starts[-1])))])
        return Arcs(starts, source[order], target[order], edge[order], backward[order])


@dataclass(frozen=True)
class Read:
    """Points in any form of a graph, as a `Union`."""

    def __call__(self, points: Points) -> Union:
        return Union([Graph.of(item, f"{points.name}[{i}]") for i, item in enumerate(points.items)])


def united(points: Points) -> Union:
    """Return points that are graphs as their union, which is made once."""
    union: Union = points.through(Read()).data
    return union


class GraphKernel(Kernel):
    """A kernel whose points are graphs, in any form that `Graph.of` reads."""

    _of_objects: ClassVar[bool] = True


class CountKernel(GraphKernel):
    """The inner product of counts of named features."""

    @property
    @abstractmethod
    def _map(self) -> PointMap:
        """The map from graphs to their counts."""

    def of(self, pair: Pair) -> Any:
        return pair.through(self._map).dot

    def feature_map(self) -> Any:
        return NamedFeatures(self._map)


def check_bool(owner: Any, name: str, value: Any) -> None:
    """Raise unless `value` is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} of {type(owner).__name__} must be True or False; it is {value!r:.60}.")
