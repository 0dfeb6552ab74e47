"""Refined labels against dictionaries of nested tuples, words of Python's numbers and GraKeL, and on large graphs."""

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_samples import LABELS, graphs, molecules, neighbours, reordered, sets
from mercer import Graph, NeighbourhoodHash, WeisfeilerLehman, WLOptimalAssignment

ROUNDS = 2


def counted(graph, h=ROUNDS, edge_labels=False, edges=False):
    """Colours as nested tuples, written out."""
    ways, bonds = neighbours(graph), graph.edge_labels
    colours = list(graph.labels)
    found = Counter()
    for t in range(h + 1):
        if edges:
            for number, (a, b) in enumerate(graph.edges.tolist()):
                ends = (colours[a], colours[b])
                found[t, ends if graph.directed else tuple(sorted(ends, key=repr)), graph.directed, bonds[number]] += 1
        else:
            found.update((t, c) for c in colours)
        colours = [
            (
                colours[v],
                tuple(sorted(((colours[u], back, bonds[e] if edge_labels else 0) for u, e, back in ways[v]), key=repr)),
            )
            for v in range(graph.size)
        ]
    return found


def dots(X, Z, **how):
    a, b = [counted(g, **how) for g in X], [counted(g, **how) for g in Z]
    return [[sum(n * z[c] for c, n in x.items()) for z in b] for x in a]


def minima(X, Z, **how):
    a, b = [counted(g, **how) for g in X], [counted(g, **how) for g in Z]
    return [[sum(min(n, z[c]) for c, n in x.items()) for z in b] for x in a]


DIRECTIONS = st.booleans().flatmap(lambda d: st.tuples(sets(directed=d), sets(directed=d)))


@given(DIRECTIONS)
def test_subtrees_are_those_of_nested_tuples(both):
    X, Z = both
    np.testing.assert_array_equal(WeisfeilerLehman(ROUNDS)(X, Z), dots(X, Z))
    np.testing.assert_array_equal(WeisfeilerLehman(ROUNDS, edge_labels=True)(X), dots(X, X, edge_labels=True))


@given(DIRECTIONS)
def test_edges_are_counted_by_the_colours_of_their_ends(both):
    X, Z = both
    np.testing.assert_array_equal(WeisfeilerLehman(ROUNDS, counted="edges")(X, Z), dots(X, Z, edges=True))


@given(DIRECTIONS)
def test_assignments_are_intersections_of_histograms(both):
    X, Z = both
    np.testing.assert_array_equal(WLOptimalAssignment(ROUNDS)(X, Z), minima(X, Z))
    k = WLOptimalAssignment(ROUNDS, edge_labels=True)
    np.testing.assert_array_equal(k(X), minima(X, X, edge_labels=True))


@given(graphs(largest=4, edge_labels=False), graphs(largest=4, edge_labels=False))
def test_the_best_assignment_of_nodes_is_the_kernel(G, H):
    from scipy.optimize import linear_sum_assignment

    def chains(graph):
        ways, colours = neighbours(graph), list(graph.labels)
        found = [[c] for c in colours]
        for _ in range(ROUNDS):
            colours = [
                (colours[v], tuple(sorted((colours[u] for u, *_ in ways[v]), key=repr))) for v in range(graph.size)
            ]
            for chain, colour in zip(found, colours):
                chain.append(colour)
        return found

    gain = np.array([[sum(map(lambda a, b: a == b, x, z)) for z in chains(H)] for x in chains(G)]).reshape(
        G.size, H.size
    )
    best = gain[linear_sum_assignment(gain, maximize=True)].sum()
    assert WLOptimalAssignment(ROUNDS)([G], [H]).item() == best


@pytest.mark.parametrize(
    "k", [WeisfeilerLehman(3, True), WeisfeilerLehman(2, True, "edges"), WLOptimalAssignment(3, True)]
)
@given(graph=graphs(largest=7), seed=st.integers(0, 100))
def test_the_order_of_nodes_does_not_matter(k, graph, seed):
    other = reordered(graph, seed)
    K = k([graph, other])
    assert (K[0, 0] == K).all()


def test_agreement_with_grakel():
    kernels = pytest.importorskip("grakel.kernels")
    X = [g for g in molecules(30, seed=3) if len(g.edges)]
    theirs = [
        [[tuple(e) for g in [g] for e in np.vstack([g.edges, g.edges[:, ::-1]]).tolist()], dict(enumerate(g.labels))]
        for g in X
    ]
    for h in (1, 4):
        found = kernels.WeisfeilerLehman(n_iter=h, base_graph_kernel=kernels.VertexHistogram).fit_transform(theirs)
        np.testing.assert_allclose(_covered(found, X), _covered(WeisfeilerLehman(h)(X), X), rtol=1e-9)
        found = kernels.WeisfeilerLehmanOptimalAssignment(n_iter=h).fit_transform(theirs)
        np.testing.assert_allclose(_covered(found, X), _covered(WLOptimalAssignment(h)(X), X), rtol=1e-9)


def _covered(K, X):
    """The part of graphs whose nodes all have an edge: GraKeL reads no others from a list of edges."""
    whole = [len(np.unique(g.edges)) == g.size for g in X]
    assert sum(whole) > 10
    return K[np.ix_(whole, whole)]


def test_new_labels_and_new_graphs_are_ordinary():
    X, Z = molecules(8), [Graph([(0, 1)], ["Xe", "C"]), Graph([], 3), Graph([], [])]
    phi = WLOptimalAssignment(2).feature_map().fit(X)
    np.testing.assert_allclose((phi.transform(X) @ phi.transform(Z).T).toarray(), WLOptimalAssignment(2)(X, Z))
    assert WeisfeilerLehman(0)(Z[:1], X[:1]).item() == X[0].labels.count("C")


def test_equal_numbers_are_equal_labels_and_texts_are_others():
    one, same, text = ([(0, 1)], np.array([1, 2])), ([(0, 1)], [1.0, 2]), ([(0, 1)], ["1", "2"])
    assert WeisfeilerLehman(1)([one], [same, text]).tolist() == [[4.0, 0.0]]


def test_large_graphs_take_time_in_proportion():
    n = 100_000
    rng = np.random.default_rng(0)
    edges = rng.integers(0, n, size=(3 * n, 2))
    labels = rng.integers(0, 5, n)
    place = rng.permutation(n)
    G, H = Graph(edges, labels), Graph(place[edges], labels[np.argsort(place)])
    K = WLOptimalAssignment(2)([G, H])
    assert (3 * n == K).all()
    for k in (WeisfeilerLehman(2), WeisfeilerLehman(1, counted="edges")):
        K = k([G, H])
        assert (K[0, 0] == K).all()
        assert K[0, 0] > n


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: WeisfeilerLehman(-1), "h of WeisfeilerLehman must be a whole number >= 0; it is -1"),
        (lambda: WeisfeilerLehman(1, "yes"), "edge_labels of WeisfeilerLehman must be True or False; it is 'yes'"),
        (lambda: WeisfeilerLehman(1, counted="paths"), 'counted of WeisfeilerLehman must be "nodes" or "edges"'),
        (lambda: WLOptimalAssignment(1.5), "h of WLOptimalAssignment must be a whole number >= 0; it is 1.5"),
        (lambda: WeisfeilerLehman()([[1.0]]), r"X\[0\] is a list, \[1.0\]; kernels on graphs take mercer.Graph"),
        (lambda: WeisfeilerLehman()([([(0, 5)], 2)]), r"X\[0\] is no graph: edge 0 joins the nodes 0 and 5"),
    ],
)
def test_errors_are_sentences(make, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        make()


BITS = 62
WORDS = {label: random.Random(label).getrandbits(BITS) for label in LABELS}  # any words will do


def rotated(word, by):
    digits = format(word, f"0{BITS}b")
    by %= BITS
    return int(digits[by:] + digits[:by], 2)


def rounds(graph, h, counts):
    """How many nodes have each word, for each round."""
    ways, words = neighbours(graph, backward=False), [WORDS[label] for label in graph.labels]
    found = [Counter(words)]
    for _ in range(h):
        new = []
        for v in range(graph.size):
            near, word = Counter(words[u] for u, *_ in ways[v]), rotated(words[v], 1)
            for other, number in near.items():
                if counts:
                    word ^= rotated(other ^ number, number)
                elif number % 2:
                    word ^= other
            new.append(word)
        words = new
        found.append(Counter(words))
    return found


def shares(X, Z, h, counts):
    def share(x, z):
        return (x & z).total() / (x | z).total() if x or z else 1.0

    left, right = ([rounds(g, h, counts) for g in side] for side in (X, Z))
    return [[np.mean([share(*level) for level in zip(x, z, strict=True)]) for z in right] for x in left]


@given(counts=st.booleans(), both=st.booleans().flatmap(lambda d: st.tuples(sets(directed=d), sets(directed=d))))
def test_labels_are_words_of_bits(counts, both):
    X, Z = both
    np.testing.assert_allclose(NeighbourhoodHash(2, counts)(X, Z), shares(X, Z, 2, counts), rtol=1e-12)


@given(graphs(largest=7), st.booleans(), st.integers(0, 100))
def test_the_order_of_nodes_does_not_matter_of_neighbourhood_hash(graph, counts, seed):
    np.testing.assert_allclose(NeighbourhoodHash(3, counts)([graph, reordered(graph, seed)]), 1.0, rtol=1e-12)


def test_more_neighbours_than_bits_are_counted():
    stars = [Graph([(0, i) for i in range(1, n + 1)], ["C"] * (n + 1)) for n in (1, 3, 1 + BITS, 3 + BITS)]
    for counts in (False, True):
        np.testing.assert_allclose(NeighbourhoodHash(2, counts)(stars), shares(stars, stars, 2, counts), rtol=1e-12)


def test_the_simple_hash_sees_an_even_number_of_equal_neighbours_as_none():
    two, none = Graph([(0, 1), (0, 2)], ["C", "O", "O"]), Graph([], ["C", "O", "O"])
    alike = [NeighbourhoodHash(1, counts)([two], [none]).item() for counts in (False, True)]
    assert alike == [(1 + 1 / 5) / 2, (1 + 0) / 2]


def test_large_graphs_take_time_in_proportion_of_neighbourhood_hash():
    n = 100_000
    rng = np.random.default_rng(0)
    edges, labels, place = rng.integers(0, n, size=(3 * n, 2)), rng.integers(0, 5, n), rng.permutation(n)
    G, H = Graph(edges, labels), Graph(place[edges], labels[np.argsort(place)])
    np.testing.assert_allclose(NeighbourhoodHash(2)([G, H]), 1.0, rtol=1e-12)


def test_parameters_are_checked():
    with pytest.raises(TypeError, match="counts of NeighbourhoodHash must be True or False; it is 'simple'"):
        NeighbourhoodHash(counts="simple")
    with pytest.raises(ValueError, match="h of NeighbourhoodHash must be a whole number >= 0; it is -1"):
        NeighbourhoodHash(-1)
