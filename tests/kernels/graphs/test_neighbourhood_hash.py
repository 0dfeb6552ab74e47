"""Neighbourhood hashes against words of Python's numbers, and on large graphs."""

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_samples import LABELS, graphs, neighbours, reordered, sets
from mercer import Graph, NeighbourhoodHash

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


@pytest.mark.parametrize("counts", [False, True])
@given(both=st.booleans().flatmap(lambda d: st.tuples(sets(directed=d), sets(directed=d))))
def test_labels_are_words_of_bits(counts, both):
    X, Z = both
    np.testing.assert_allclose(NeighbourhoodHash(2, counts)(X, Z), shares(X, Z, 2, counts), rtol=1e-12)


@given(graphs(largest=7), st.booleans(), st.integers(0, 100))
def test_the_order_of_nodes_does_not_matter(graph, counts, seed):
    np.testing.assert_allclose(NeighbourhoodHash(3, counts)([graph, reordered(graph, seed)]), 1.0, rtol=1e-12)


def test_more_neighbours_than_bits_are_counted():
    stars = [Graph([(0, i) for i in range(1, n + 1)], ["C"] * (n + 1)) for n in (1, 3, 1 + BITS, 3 + BITS)]
    for counts in (False, True):
        np.testing.assert_allclose(NeighbourhoodHash(2, counts)(stars), shares(stars, stars, 2, counts), rtol=1e-12)


def test_the_simple_hash_sees_an_even_number_of_equal_neighbours_as_none():
    two, none = Graph([(0, 1), (0, 2)], ["C", "O", "O"]), Graph([], ["C", "O", "O"])
    alike = [NeighbourhoodHash(1, counts)([two], [none]).item() for counts in (False, True)]
    assert alike == [(1 + 1 / 5) / 2, (1 + 0) / 2]


def test_large_graphs_take_time_in_proportion():
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
