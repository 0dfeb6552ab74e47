"""Graphlets against listing all sets of nodes."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_samples import graphs, random_graph, reordered, sets
from mercer import Graph, Graphlets

# Connected graphs are told apart by the degrees of their nodes, in the order of the features.
KINDS = {
    3: [(1, 1, 2), (2, 2, 2)],
    4: [(1, 1, 2, 2), (1, 1, 1, 3), (2, 2, 2, 2), (1, 2, 2, 3), (2, 2, 3, 3), (3, 3, 3, 3)],
}


def counted(graph, size):
    joined = {frozenset(e) for e in graph.edges.tolist() if e[0] != e[1]}
    found = dict.fromkeys(KINDS[size], 0)
    for nodes in combinations(range(graph.size), size):
        degrees = tuple(sorted(sum(frozenset((v, u)) in joined for u in nodes if u != v) for v in nodes))
        found[degrees] = found.get(degrees, 0) + 1
    return [found[kind] for kind in KINDS[size]]


@pytest.mark.parametrize("size", [3, 4])
@given(X=st.booleans().flatmap(lambda d: sets(largest=7, directed=d)))
def test_counts_are_those_of_all_sets_of_nodes(size, X):
    listed = np.array([counted(g, size) for g in X])
    np.testing.assert_array_equal(Graphlets(size)(X), listed @ listed.T)


@pytest.mark.parametrize("density", [0.2, 0.5, 0.9])
def test_dense_graphs_have_all_kinds(density):
    X = [random_graph(np.random.default_rng(seed), 11, density) for seed in range(4)]
    listed = np.array([counted(g, 4) for g in X])
    np.testing.assert_array_equal(Graphlets(4).feature_map().fit_transform(X), listed)


@given(graphs(largest=7), st.integers(0, 100))
def test_the_order_of_nodes_does_not_matter(graph, seed):
    K = Graphlets(4)([graph, reordered(graph, seed)])
    assert (K[0, 0] == K).all()


def test_large_graphs_are_counted_exactly():
    n = 100_000
    ring = Graph(np.column_stack([np.arange(n), (np.arange(n) + 1) % n]))
    np.testing.assert_array_equal(Graphlets(4).feature_map().fit_transform([ring]), [[n, 0, 0, 0, 0, 0]])


def test_hubs_are_counted_up_to_a_bound():
    n = 100_000
    star = Graph(np.column_stack([np.zeros(n, dtype=int), np.arange(1, n + 1)]))
    np.testing.assert_array_equal(Graphlets(3).feature_map().fit_transform([star]), [[n * (n - 1) / 2, 0]])
    with pytest.raises(ValueError, match=r"X\[1\] has 1e\+10 paths of two edges, .* takes up to 30,000,000. Graphlets"):
        Graphlets(4)([Graph([(0, 1)]), star])


def test_many_graphs_are_counted_in_parts(monkeypatch):
    X = [random_graph(np.random.default_rng(seed), 9, 0.5) for seed in range(12)]
    whole = Graphlets(4)(X)
    most = max(np.bincount(g.edges.ravel()).astype(float) @ np.bincount(g.edges.ravel()) for g in X)
    monkeypatch.setattr("mercer.kernels.graphs.graphlets._PATHS", most)
    np.testing.assert_array_equal(Graphlets(4)(X), whole)


def test_other_sizes_are_refused():
    with pytest.raises(ValueError, match="size of Graphlets must be 3 or 4; it is 5"):
        Graphlets(5)
