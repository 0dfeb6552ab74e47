"""Propagation: against distributions written out, and what its hash functions promise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_samples import graphs, molecules, neighbours, random_graph, reordered, sets
from mercer import Graph, Propagation


def distributions(graph, h):
    """The distributions of labels at each node, round by round, as sorted items rounded far below the width."""
    ways = neighbours(graph, backward=False)
    last = [{label: 1.0} for label in graph.labels]
    found = []
    for t in range(h + 1):
        found += [(t, tuple(sorted((label, round(p, 9)) for label, p in d.items()))) for d in last]
        new = []
        for v in range(graph.size):
            near = [last[u] for u, *_ in ways[v]] or [last[v]]
            labels = {label for d in near for label in d}
            new.append({label: sum(d.get(label, 0.0) for d in near) / len(near) for label in labels})
        last = new
    return found


@given(st.booleans().flatmap(lambda d: st.tuples(sets(directed=d), sets(directed=d))))
def test_with_narrow_bins_equal_distributions_are_counted(both):
    X, Z = both
    slow = [[sum(a == b for a in distributions(G, 2) for b in distributions(H, 2)) for H in Z] for G in X]
    np.testing.assert_array_equal(Propagation(h=2, width=1e-7)(X, Z), slow)


@given(graphs(largest=6, attributes=2), st.integers(0, 100))
def test_the_order_of_nodes_does_not_matter(graph, seed):
    K = Propagation(h=2, width=0.3, attributes=True, draws=3)([graph, reordered(graph, seed)])
    np.testing.assert_allclose(K, K[0, 0], rtol=1e-12)


def test_nearby_attributes_share_bins_more_often_than_distant_ones():
    def shared(distance):
        X = [Graph([], ["C"], attributes=[[x, 0.0]]) for x in (0.0, distance)]
        return Propagation(h=0, width=1.0, attributes=True, draws=2000)(X)[0, 1]

    assert shared(0.0) == pytest.approx(1.0)
    assert 1 > shared(0.1) > 0.85
    assert 0.5 > shared(2.0) > shared(20.0)


def test_other_labels_share_no_narrow_bin_and_seeds_differ():
    X = [Graph([], ["C"], attributes=[[0.0]]), Graph([], ["O"], attributes=[[0.0]])]
    assert Propagation(h=0, attributes=True)(X)[0, 1] == 0
    Y = molecules(20)
    wide = [Propagation(h=1, width=1.0, seed=seed)(Y) for seed in (0, 1)]
    assert np.abs(wide[0] - wide[1]).max() > 0


def test_large_graphs_take_time_in_proportion():
    G = random_graph(np.random.default_rng(0), 400, 0.02)
    large = Graph(np.concatenate([G.edges + 400 * i for i in range(250)]), G.labels * 250)
    assert Propagation(h=2)([large], [G]).item() == 250 * Propagation(h=2)([G]).item()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"width": 0.0}, "width of Propagation must be > 0"),
        ({"h": -1}, "h of Propagation must be a whole number >= 0"),
        ({"draws": 0}, "draws of Propagation must be a whole number >= 1"),
        ({"attributes": "all"}, "attributes of Propagation must be True or False; it is 'all'"),
    ],
)
def test_errors_are_sentences(given, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        Propagation(**given)
