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


@st.composite
def weighted(draw):
    """Graphs whose weights are sums that floating-point numbers round in different ways; 0 among them."""
    graph = draw(st.booleans().flatmap(lambda d: graphs(largest=7, directed=d, edge_labels=False)))
    number = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.7, 2.5])
    weights = draw(st.lists(number, min_size=len(graph.edges), max_size=len(graph.edges)))
    return Graph(graph.edges, graph.labels, directed=graph.directed, weights=weights)


def counted_by_weight(graph, longest=None):
    """Tenths, which are whole numbers, by Bellman and Ford's algorithm."""
    far = 10**6
    arcs = [(a, b, round(10 * w)) for (a, b), w in zip(graph.edges.tolist(), graph.weights)]
    arcs += [] if graph.directed else [(b, a, w) for a, b, w in arcs]
    found = Counter()
    for start in range(graph.size):
        tenths = [0 if v == start else far for v in range(graph.size)]
        for _ in range(graph.size):
            for a, b, w in arcs:
                tenths[b] = min(tenths[b], tenths[a] + w)
        for v, d in enumerate(tenths):
            if v != start and d < far and (longest is None or d <= 10 * longest):
                found[graph.labels[start], graph.labels[v], d] += 1
    return found


@given(st.lists(weighted(), min_size=1, max_size=4), st.sampled_from([None, 0.3, 2]))
def test_weights_are_lengths(X, longest):
    counts = [counted_by_weight(g, longest) for g in X]
    slow = [[sum(n * z[c] for c, n in x.items()) for z in counts] for x in counts]
    np.testing.assert_array_equal(ShortestPath(longest, weighted=True)(X), slow)


def test_weights_of_one_are_numbers_of_edges():
    X = molecules(20)
    np.testing.assert_array_equal(ShortestPath(weighted=True)(X), ShortestPath()(X))
    assert (ShortestPath(2, weighted=True)(X) == ShortestPath(2)(X)).all()


def test_large_graphs_have_distances_up_to_a_length():
    n = 100_000
    ends = np.column_stack([np.arange(n), (np.arange(n) + 1) % n])
    ring = Graph(ends, np.zeros(n, dtype=int), weights=np.tile([0.5, 1.0], n // 2))
    assert ShortestPath(1.5, weighted=True)([ring]).item() == n**2 + n**2 + (2 * n) ** 2
    with pytest.raises(ValueError, match=r"X\[0\] has 100,000 nodes.*such as ShortestPath\(longest=3\)"):
        ShortestPath(weighted=True)([ring])


def test_many_distances_are_added_up_as_they_are_found():
    n = 1_500  # so that there are more than 2^20 pairs
    star = Graph([(0, i) for i in range(1, n)], np.zeros(n, dtype=int), weights=np.tile([0.25, 0.5], n)[: n - 1])
    near, other = n // 2, n // 2 - 1  # leaves by the length of their edge
    pairs = {0.25: 2 * near, 0.5: 2 * other + near * (near - 1), 0.75: 2 * near * other, 1.0: other * (other - 1)}
    assert ShortestPath(weighted=True)([star]).item() == sum(number**2 for number in pairs.values())


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ShortestPath(weighted=1), "weighted of ShortestPath must be True or False; it is 1"),
        (lambda: ShortestPath(0.0, weighted=True), "longest of ShortestPath must be > 0"),
        (
            lambda: ShortestPath(weighted=True)([Graph([(0, 1)]), Graph([(0, 1)], weights=[-2.0])]),
            r"X\[1\] has an edge of weight -2; ShortestPath\(weighted=True\) takes weights for lengths, which are >= 0",
        ),
        (
            lambda: ShortestPath(weighted=True)([Graph([(0, 1)], weights=[1e10])]),
            r"the weights of X\[0\] have the sum 1e\+10; .* takes up to 4e\+09: divide the weights of all graphs",
        ),
    ],
)
def test_weights_that_are_no_lengths_are_refused(make, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        make()


def test_a_length_is_a_whole_number():
    with pytest.raises(ValueError, match="longest of ShortestPath must be a whole number >= 1; it is 0"):
        ShortestPath(longest=0)
