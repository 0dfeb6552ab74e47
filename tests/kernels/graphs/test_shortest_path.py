"""Shortest paths against Floyd and Warshall's algorithm, GraKeL, and on large graphs."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_samples import graphs, molecules, reordered, sets
from mercer import Graph, ShortestPath


def counted(graph, longest=None):
    far = 10**6
    D = np.full((graph.size, graph.size), far)
    for a, b in graph.edges.tolist():
        D[a, b] = 1
        if not graph.directed:
            D[b, a] = 1
    for k in range(graph.size):
        D = np.minimum(D, D[:, [k]] + D[[k]])
    found = Counter()
    for i in range(graph.size):
        for j in range(graph.size):
            if i != j and D[i, j] <= (longest or far - 1):
                found[graph.labels[i], graph.labels[j], D[i, j]] += 1
    return found


def dots(X, Z, **how):
    a, b = [counted(g, **how) for g in X], [counted(g, **how) for g in Z]
    return [[sum(n * z[c] for c, n in x.items()) for z in b] for x in a]


@given(st.booleans().flatmap(lambda d: st.tuples(sets(directed=d), sets(directed=d))))
def test_paths_are_those_of_floyd_and_warshall(both):
    X, Z = both
    np.testing.assert_array_equal(ShortestPath()(X, Z), dots(X, Z))
    np.testing.assert_array_equal(ShortestPath(longest=2)(X), dots(X, X, longest=2))


@given(graphs(largest=7), st.integers(0, 100))
def test_the_order_of_nodes_does_not_matter(graph, seed):
    K = ShortestPath()([graph, reordered(graph, seed)])
    assert (K[0, 0] == K).all()


def test_agreement_with_grakel():
    kernels = pytest.importorskip("grakel.kernels")
    X = [g for g in molecules(30, seed=3) if len(np.unique(g.edges)) == g.size > 0]
    assert len(X) > 10
    theirs = [[list(map(tuple, np.vstack([g.edges, g.edges[:, ::-1]]))), dict(enumerate(g.labels))] for g in X]
    found = kernels.ShortestPath(with_labels=True).fit_transform(theirs)
    np.testing.assert_allclose(ShortestPath()(X), found, rtol=1e-9)


def test_large_graphs_need_a_bound():
    n = 100_000
    ring = Graph(np.column_stack([np.arange(n), (np.arange(n) + 1) % n]), np.zeros(n, dtype=int))
    assert ShortestPath(longest=3)([ring]).item() == 3 * (2 * n) ** 2
    with pytest.raises(ValueError, match=r"X\[0\] has 100,000 nodes.*such as ShortestPath\(longest=3\)"):
        ShortestPath()([ring])


def test_a_length_is_a_whole_number():
    with pytest.raises(ValueError, match="longest of ShortestPath must be a whole number >= 1; it is 0"):
        ShortestPath(longest=0)
