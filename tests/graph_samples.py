"""Graphs for tests: drawn by hypothesis, made at random, and with their nodes in another order."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from mercer import Graph

LABELS = ("C", "N", "O")


@st.composite
def graphs(draw, largest: int = 6, directed: bool = False, edge_labels: bool = True, attributes: int = 0):
    """Small graphs: empty ones, isolated nodes and loops among them."""
    n = draw(st.integers(0, largest))
    node = st.integers(0, max(0, n - 1))
    edges = draw(st.lists(st.tuples(node, node), max_size=10, unique_by=lambda e: e if directed else frozenset(e)))
    edges = edges if n else []
    labels = draw(st.lists(st.sampled_from(LABELS), min_size=n, max_size=n))
    bonds = draw(st.lists(st.integers(1, 2), min_size=len(edges), max_size=len(edges))) if edge_labels else None
    rows = None
    if attributes:
        number = st.sampled_from([-1.5, 0.0, 0.25, 2.0])
        rows = draw(st.lists(number, min_size=n * attributes, max_size=n * attributes))
        rows = np.array(rows).reshape(n, attributes)
    return Graph(edges, labels, bonds, rows, directed)


def sets(**given):
    return st.lists(graphs(**given), min_size=1, max_size=5)


def molecules(n: int = 20, seed: int = 0) -> list[Graph]:
    """Random graphs with labels and attributes: two equal ones, one empty, one without edges, one with loops."""
    rng = np.random.default_rng(seed)
    made = [random_graph(rng, int(rng.integers(2, 9))) for _ in range(max(n, 5))]
    made[1] = made[0]
    made[2] = Graph([], [], attributes=np.empty((0, 2)))
    made[3] = Graph([], ["C", "O"], attributes=[[0.0, 1.0], [0.0, 0.0]])
    made[4] = Graph([(0, 0), (0, 1)], ["C", "C"], [1, 2], [[1.0, 1.0], [0.5, -1.0]])
    return made[:n]


def random_graph(rng: np.random.Generator, n: int, density: float = 0.4) -> Graph:
    i, j = np.triu_indices(n, 1)
    chosen = rng.random(len(i)) < density
    edges = np.column_stack([i[chosen], j[chosen]])
    labels = rng.choice(LABELS, size=n).tolist()
    return Graph(edges, labels, rng.integers(1, 3, len(edges)), rng.normal(size=(n, 2)))


def reordered(graph: Graph, seed: int = 0) -> Graph:
    """The same graph with its nodes numbered otherwise."""
    rng = np.random.default_rng(seed)
    place = rng.permutation(graph.size)
    order = np.argsort(place)
    labels = graph.size if graph.labels is None else [graph.labels[i] for i in order]
    attributes = None if graph.attributes is None else graph.attributes[order]
    return Graph(place[graph.edges], labels, graph.edge_labels, attributes, graph.directed, graph.weights)


def neighbours(graph: Graph, backward: bool = True) -> list[list[tuple[int, int, int]]]:
    """For each node its neighbours as (node, number of the edge, whether against its direction), slowly."""
    found: list[list[tuple[int, int, int]]] = [[] for _ in range(graph.size)]
    for number, (a, b) in enumerate(graph.edges.tolist()):
        found[a].append((b, number, 0))
        if graph.directed:
            if backward:
                found[b].append((a, number, 1))
        elif a != b:
            found[b].append((a, number, 0))
    return found
