"""A graph as a point: numbered nodes and edges, with labels, attributes and weights; and its shortest paths."""

from __future__ import annotations

import math
import numbers
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from mercer import _core
from mercer.machine.threads import run, shares

_NODES = 2**31  # of one graph, at most: a pair of them is one 64-bit number


class Graph:
    """A graph with nodes 0, 1, ..., n - 1.

    Kernels on graphs also take the graphs of networkx (node attributes "label" and "attributes", edge attributes
    "label" and "weight"), sparse adjacency matrices, and tuples, which are the arguments of this class in their order:
    (edges, labels), (adjacency, labels), (edges, labels, edge_labels), ...

    Parameters
    ----------
    edges
        An array or a list of pairs (i, j), or a sparse adjacency matrix, whose entries become the weights unless all of
        them are 1. An edge that is given twice, or in both directions where the graph is undirected, is one edge. An
        edge from a node to itself is a loop.
    labels
        One for each node: whole numbers, texts, other numbers, or tuples of them. Or the number of nodes, which then
        have no labels. None for the nodes that edges or attributes name.
    edge_labels
        One for each edge as given (an adjacency matrix has them row by row), of the same kinds; None for none.
    attributes
        One row of finite numbers for each node, or None.
    directed
        Whether (i, j) leads from i to j only.
    weights
        One finite number for each edge as given; None where all are 1.

    Attributes
    ----------
    size : int
        The number of nodes.

    Examples
    --------
    >>> from mercer import Graph
    >>> Graph([(0, 1), (1, 2), (2, 0)], labels=["C", "C", "O"])
    <Graph: 3 nodes, 3 edges>
    >>> Graph([(0, 1), (1, 0)], 5).edges.tolist()
    [[0, 1]]
    >>> Graph([(0, 3)], labels=["C", "O"])
    Traceback (most recent call last):
        ...
    ValueError: edge 0 joins the nodes 0 and 3, and a graph of 2 nodes has no node 3: nodes are counted from 0.
    """

    __slots__ = ("attributes", "directed", "edge_labels", "edges", "labels", "size", "weights")

    def __init__(
        self,
        edges: Any,
        labels: Any = None,
        edge_labels: Any = None,
        attributes: Any = None,
        directed: bool = False,
        weights: Any = None,
    ) -> None:
        if not isinstance(directed, bool | np.bool_):
            raise TypeError(f"directed must be True or False; it is {directed!r:.60}.")
        sizes: dict[str, int] = {}
        if sparse.issparse(edges):
            sizes["rows of the adjacency matrix"] = edges.shape[0]
            edges, weights = _of_adjacency(edges, bool(directed), weights)
        edges = _pairs(edges)
        if isinstance(labels, numbers.Integral) and not isinstance(labels, bool):
            sizes["nodes"], labels = int(labels), None
        if labels is not None:
            labels = as_labels(labels, "node")
            sizes["node labels"] = len(labels)
        if attributes is not None:
            attributes = _matrix(attributes)
            sizes["rows of attributes"] = len(attributes)
        self.size = _agreed(sizes) if sizes else int(edges.max()) + 1 if edges.size else 0
        _check_ends(edges, self.size)
        edge_labels = None if edge_labels is None else as_labels(edge_labels, "edge")
        weights = None if weights is None else _finite_weights(weights)
        for values, what in ((edge_labels, "edge labels"), (weights, "weights")):
            if values is not None and len(values) != len(edges):
                raise ValueError(f"there are {len(values)} {what} for {len(edges)} edges; give one for each.")
        self.directed, self.labels, self.attributes = bool(directed), labels, attributes
        self.edges, self.edge_labels, self.weights = _once(edges, self.size, self.directed, edge_labels, weights)

    @classmethod
    def of(cls, thing: Any, name: str = "the point") -> Graph:
        """Return a graph in any of the accepted forms as a `Graph`; `name` is what errors call it."""
        if isinstance(thing, cls):
            return thing
        try:
            if isinstance(thing, tuple) and 2 <= len(thing) <= 6:
                return cls(*thing)
            if sparse.issparse(thing):
                return cls(thing)
            if all(hasattr(thing, part) for part in ("nodes", "edges", "is_directed")):
                return _of_networkx(thing)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name} is no graph: {error}") from None
        raise TypeError(
            f"{name} is a {type(thing).__name__}, {thing!r:.60}; kernels on graphs take mercer.Graph, the graphs of "
            "networkx, sparse adjacency matrices, and tuples (edges, labels)."
        )

    def __repr__(self) -> str:
        return f"<Graph: {self.size} nodes, {len(self.edges)} {'directed ' if self.directed else ''}edges>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((self.size, self.directed, self.edges.tobytes()))

    # -- as plain data ----------------------------------------------------------------------------------

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What an equal graph is made with."""
        labels = self.size if self.labels is None else self.labels
        return self.edges, labels, self.edge_labels, self.attributes, self.directed, self.weights

    def _parts(self) -> dict[str, Any]:
        """Return the graph as lists of numbers and texts."""
        return {
            "size": self.size,
            "edges": self.edges.ravel().tolist(),
            "labels": _listed(self.labels),
            "edge_labels": _listed(self.edge_labels),
            "attributes": None if self.attributes is None else self.attributes.ravel().tolist(),
            "width": None if self.attributes is None else self.attributes.shape[1],
            "directed": self.directed,
            "weights": _listed(self.weights),
        }

    @classmethod
    def _of_parts(
        cls,
        size: Any,
        edges: Any,
        labels: Any,
        edge_labels: Any,
        attributes: Any,
        width: Any,
        directed: Any,
        weights: Any,
    ) -> Graph:
        """Return the graph that was written as lists."""
        if type(size) is not int or not 0 <= size < _NODES or type(edges) is not list or len(edges) % 2:
            raise ValueError(f"a graph has a number of nodes and pairs of them, not {size!r:.40} and {edges!r:.40}.")
        pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
        if attributes is not None:
            attributes = np.asarray(attributes, dtype=np.float64).reshape(size, width)
        return cls(pairs, size if labels is None else labels, edge_labels, attributes, directed, weights)


# -- other forms ------------------------------------------------------------------------------------------


def _of_networkx(graph: Any) -> Graph:
    nodes, edges = list(graph.nodes), list(graph.edges(data=True))
    place = {node: i for i, node in enumerate(nodes)}
    of_nodes, of_edges = [graph.nodes[node] for node in nodes], [data for _, _, data in edges]
    labels = _all_or_none(of_nodes, "label", nodes)
    return Graph(
        np.array([(place[a], place[b]) for a, b, _ in edges], dtype=np.int64).reshape(-1, 2),
        len(nodes) if labels is None else labels,
        _all_or_none(of_edges, "label", [(a, b) for a, b, _ in edges]),
        _all_or_none(of_nodes, "attributes", nodes),
        bool(graph.is_directed()),
        [data.get("weight", 1.0) for data in of_edges] if any("weight" in data for data in of_edges) else None,
    )


def _all_or_none(held: list[dict[str, Any]], key: str, names: list[Any]) -> list[Any] | None:
    """Return an attribute of all nodes, or of all edges; None where none of them has it."""
    missing = [name for data, name in zip(held, names, strict=True) if key not in data]
    if len(missing) == len(held):
        return None
    if missing:
        raise ValueError(f"{missing[0]!r:.60} has no {key!r}, and others have one; give it to all or to none.")
    return [data[key] for data in held]


def _of_adjacency(matrix: Any, directed: bool, weights: Any) -> tuple[np.ndarray, Any]:
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"an adjacency matrix is square; this one has shape {matrix.shape}.")
    if weights is not None:
        raise ValueError("weights are the entries of the adjacency matrix; give one or the other.")
    coo = sparse.coo_array(matrix)
    coo.sum_duplicates()
    coo = sparse.csr_array(coo).tocoo()  # row by row
    if not directed and (abs(matrix - matrix.T) > 0).nnz:
        raise ValueError("the adjacency matrix is not symmetric; say Graph(matrix, directed=True) if it is meant so.")
    kept = coo.data != 0
    if not directed:
        kept &= coo.row <= coo.col
    values = np.asarray(coo.data[kept], dtype=np.float64)
    return np.column_stack([coo.row[kept], coo.col[kept]]), None if (values == 1).all() else values


# -- parts ------------------------------------------------------------------------------------------------


def _pairs(edges: Any) -> np.ndarray:
    try:
        pairs = np.asarray(edges)
    except ValueError:
        pairs = np.empty(0, dtype=object)
    if pairs.size == 0 and pairs.ndim in (1, 2) and (pairs.dtype.kind != "O"):
        return np.empty((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(
            "edges are pairs (i, j) of nodes that are counted from 0, in an array of shape (m, 2) or a list; these "
            f"are {edges!r:.80}."
        )
    return pairs.astype(np.int64)


def _check_ends(edges: np.ndarray, size: int) -> None:
    if not 0 <= size < _NODES:
        raise ValueError(f"a graph has from 0 to {_NODES - 1:,} nodes, not {size:,}.")
    if edges.size and int(edges.view(np.uint64).max()) >= size:  # negative numbers are large ones there
        at = int(np.argmax(((edges < 0) | (edges >= size)).any(axis=1)))
        i, j = edges[at].tolist()
        wrong = i if not 0 <= i < size else j
        raise ValueError(
            f"edge {at} joins the nodes {i} and {j}, and a graph of {size} nodes has no node {wrong}: nodes are "
            "counted from 0."
        )


def _agreed(sizes: dict[str, int]) -> int:
    if len(set(sizes.values())) > 1:
        counts = ", ".join(f"{count} {what}" for what, count in sizes.items())
        raise ValueError(f"there are {counts}; there must be one for each node.")
    return next(iter(sizes.values()))


def _matrix(attributes: Any) -> np.ndarray:
    try:
        matrix = np.asarray(attributes, dtype=np.float64)
    except (TypeError, ValueError):
        matrix = np.empty(0)
    if matrix.ndim != 2:
        raise ValueError(f"attributes are one row of numbers for each node; these are {attributes!r:.80}.")
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise ValueError(
            f"attribute {column} of node {row} is {matrix[row, column]}; attributes are finite numbers: impute or drop "
            "it."
        )
    return matrix


def _finite_weights(weights: Any) -> np.ndarray:
    try:
        values = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    if values.ndim != 1:
        raise ValueError(f"weights are one number for each edge; these are {weights!r:.80}.")
    if not np.isfinite(values).all():
        at = int(np.argmin(np.isfinite(values)))
        raise ValueError(f"the weight of edge {at} is {values[at]}; weights are finite numbers.")
    return values


def as_labels(labels: Any, what: str) -> Any:
    """Return labels as an array of whole numbers, or as a tuple where some of them are others."""
    array = labels if isinstance(labels, np.ndarray) else None
    if array is None:
        labels = list(labels)
        if all(type(label) is int for label in labels) and all(-(2**63) <= label < 2**63 for label in labels):
            array = np.array(labels, dtype=np.int64)
        else:
            return tuple(_label(label, what, i) for i, label in enumerate(labels))
    if array.ndim != 1:
        raise ValueError(f"{what} labels are a flat list; these have shape {array.shape}.")
    if array.dtype.kind in "iub" and array.dtype != np.uint64:
        return array.astype(np.int64)
    return as_labels(array.tolist(), what)


def _label(label: Any, what: str, i: int) -> Any:
    """Return a label as plain data; equal numbers of different types become one."""
    if isinstance(label, str):
        return str(label)
    if isinstance(label, tuple):
        return tuple(_label(part, what, i) for part in label)
    if isinstance(label, numbers.Real) and math.isfinite(label):
        whole: Any = label
        return int(whole) if float(label).is_integer() else float(label)
    raise TypeError(f"the label of {what} {i} is {label!r:.60}; labels are texts, finite numbers, or tuples of them.")


def _listed(values: Any) -> list[Any] | None:
    return values.tolist() if isinstance(values, np.ndarray) else values if values is None else list(values)


def _once(edges: np.ndarray, size: int, directed: bool, *held: Any) -> tuple[Any, ...]:
    """Return each edge once, in order, with what belongs to it; refuse edges that are given twice and differ."""
    if not directed:
        edges = np.sort(edges, axis=1)
    key = edges[:, 0] * size + edges[:, 1]
    if (key[1:] > key[:-1]).all():
        return edges, *held
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    for values in held:
        if values is None or len(first) == len(edges):
            continue
        for i, j in enumerate(first[which]):
            if values[i] != values[j]:
                a, b = edges[i].tolist()
                raise ValueError(
                    f"the edge from {a} to {b} is given twice, with {values[j]!r} and {values[i]!r}; a graph has each "
                    "edge once."
                )
    return edges[first], *(
        None if v is None else v[first] if isinstance(v, np.ndarray) else tuple(v[i] for i in first) for v in held
    )


# -- shortest paths, counted by the core ------------------------------------------------------------------


class PathCounts(NamedTuple):
    """How many shortest paths of a graph lead from nodes of one label to nodes of another, by length."""

    graph: np.ndarray
    start: np.ndarray
    end: np.ndarray
    length: np.ndarray
    number: np.ndarray


def path_counts(
    starts: np.ndarray,
    arc_starts: np.ndarray,
    target: np.ndarray,
    label: np.ndarray,
    longest: int | None = None,
    length: np.ndarray | None = None,
) -> PathCounts:
    """Return the counts of shortest paths between different nodes, in the order of graphs.

    Parameters
    ----------
    starts
        Where the nodes of each graph begin, and their number at the end.
    arc_starts
        Where the arcs of each node begin, and their number at the end.
    target
        The node in which each arc ends, one of the same graph.
    label
        The label of each node, counted from 0 within its graph.
    longest
        The length up to which paths count; None for all.
    length
        The length of each arc, a whole number >= 0; None for 1.

    Examples
    --------
    >>> import numpy as np
    >>> path = path_counts(*map(np.array, ([0, 3], [0, 1, 3, 4], [1, 0, 2, 1], [0, 0, 1])))
    >>> np.column_stack(path[1:]).tolist()  # 0 - 0 - 1
    [[0, 0, 1, 2], [0, 1, 1, 1], [0, 1, 2, 1], [1, 0, 1, 1], [1, 0, 2, 1]]
    """
    nodes, begin, end, named = (np.ascontiguousarray(a, dtype=np.int64) for a in (starts, arc_starts, target, label))
    far = None if length is None else np.ascontiguousarray(length, dtype=np.int64)
    most = np.iinfo(np.int64).max if longest is None else longest
    parts = run(
        lambda part: _core.path_counts(nodes, begin, end, named, part.start, part.stop, most, far),
        shares(len(starts) - 1),
    )
    return PathCounts(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
