"""Random walks against the inverse on the product graph, walks written out, and GraKeL."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_samples import graphs, molecules, neighbours, reordered, sets
from mercer import Graph, RandomWalk

DECAY = 0.01


def adjacency(graph):
    A = np.zeros((graph.size, graph.size))
    for (a, b), w in zip(graph.edges.tolist(), np.ones(len(graph.edges)) if graph.weights is None else graph.weights):
        A[a, b] = w
        if not graph.directed:
            A[b, a] = w
    return A


def by_product_graph(G, H):
    """1'(I - decay A)^-1 1 on the pairs of nodes with equal labels."""
    pairs = [(i, j) for i in range(G.size) for j in range(H.size) if _label(G, i) == _label(H, j)]
    A, B = adjacency(G), adjacency(H)
    product = np.array([[A[i, k] * B[j, m] for k, m in pairs] for i, j in pairs]).reshape(len(pairs), len(pairs))
    return np.linalg.inv(np.eye(len(pairs)) - DECAY * product).sum()


def _label(graph, i):
    return None if graph.labels is None else graph.labels[i]


@given(st.booleans().flatmap(lambda d: st.tuples(sets(directed=d), sets(directed=d))))
def test_the_series_is_the_inverse_on_the_product_graph(both):
    X, Z = both
    K = RandomWalk(DECAY)(X, Z)
    np.testing.assert_allclose(K, [[by_product_graph(G, H) for H in Z] for G in X], rtol=1e-12)


def test_weights_multiply_along_walks():
    X = [Graph([(0, 1), (1, 2)], weights=[0.5, 3.0]), Graph([(0, 1)], weights=[2.0])]
    np.testing.assert_allclose(RandomWalk(DECAY)(X), [[by_product_graph(G, H) for H in X] for G in X], rtol=1e-13)


@given(graphs(largest=4), graphs(largest=4))
def test_walks_are_counted_by_their_labels(G, H):
    def walks(graph, m):
        ways, found = neighbours(graph, backward=False), [[v] for v in range(graph.size)]
        for _ in range(m):
            found = [[*walk, u] for walk in found for u, *_ in ways[walk[-1]]]
        return Counter(tuple(graph.labels[v] for v in walk) for walk in found)

    small = 1e-4  # what longer walks add is beyond the tolerance
    terms = [sum(n * walks(H, m)[w] for w, n in walks(G, m).items()) * small**m for m in range(4)]
    assert RandomWalk(small)([G], [H]).item() == pytest.approx(sum(terms), rel=1e-10)


@given(graphs(largest=7), st.integers(0, 100))
def test_the_order_of_nodes_does_not_matter(graph, seed):
    K = RandomWalk(DECAY)([graph, reordered(graph, seed)])
    np.testing.assert_allclose(K, K[0, 0], rtol=1e-12)


def test_agreement_with_grakel():
    kernels = pytest.importorskip("grakel.kernels")
    X = [g for g in molecules(16, seed=3) if len(np.unique(g.edges)) == g.size > 0]
    assert len(X) > 5
    theirs = [[list(map(tuple, np.vstack([g.edges, g.edges[:, ::-1]]))), dict(enumerate(g.labels))] for g in X]
    found = kernels.RandomWalk(lamda=DECAY, method_type="baseline").fit_transform(theirs)
    np.testing.assert_allclose(RandomWalk(DECAY)([Graph(g.edges, g.size) for g in X]), found, rtol=1e-9)


def test_sparse_and_full_matrices_agree():
    n = 70
    ring = np.column_stack([np.arange(n), (np.arange(n) + 1) % n])
    values = RandomWalk(0.1)([Graph(ring), Graph(ring, directed=True), Graph([(0, 1)], 2)])
    assert values[0, 0] == pytest.approx(n * n / (1 - 0.1 * 4))
    assert values[1, 1] == pytest.approx(n * n / (1 - 0.1))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: RandomWalk(-0.1), "decay of RandomWalk must be >= 0"),
        (
            lambda: RandomWalk(0.3)([Graph([(0, 1)]), Graph([(0, 1), (1, 2), (0, 2)])]),
            r"decay of RandomWalk is 0.3, and at most 0.2475 is allowed: .* eigenvalue .*, 2 for X\[1\]",
        ),
        (lambda: RandomWalk()([Graph([(0, 1)], weights=[-1.0])]), r"X\[0\] has an edge of weight -1; RandomWalk needs"),
        (lambda: RandomWalk()([Graph([], 100_000)]), r"X\[0\] has 100,000 nodes; RandomWalk compares each with each"),
    ],
)
def test_errors_are_sentences(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
