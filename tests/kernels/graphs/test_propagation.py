"""Propagation against distributions written out; sliced Wasserstein distances against scipy's on a line."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from graph_samples import graphs, molecules, neighbours, random_graph, reordered, sets
from mercer import SVC, Graph, Propagation, WLSlicedWasserstein


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


def surrounded(graph, h):
    ways, rounds = neighbours(graph, backward=False), [graph.attributes]
    for _ in range(h):
        last = rounds[-1]
        near = [np.mean([last[u] for u, *_ in ways[v]], axis=0) if ways[v] else last[v] for v in range(graph.size)]
        rounds.append((last + np.array(near).reshape(last.shape)) / 2)
    return np.hstack(rounds)


def test_many_quantiles_give_the_wasserstein_distance_along_lines():
    # Of 4 and 6 nodes all steps of both quantile functions lie between multiples of 1 / 12.
    X = [g for g in molecules(60, seed=2) if g.size in (4, 6)][:8]
    rng = np.random.default_rng(7)
    lines = rng.normal(size=(5, 6))
    lines /= np.linalg.norm(lines, axis=1, keepdims=True)
    sides = [surrounded(g, 2) @ lines.T for g in X]
    apart = [[np.mean([wasserstein_distance(a[:, j], b[:, j]) for j in range(5)]) for b in sides] for a in sides]
    k = WLSlicedWasserstein(h=2, scale=0.7, directions=5, quantiles=12, seed=7)
    np.testing.assert_allclose(k(X), np.exp(-np.array(apart) / 0.7), rtol=1e-9)


@given(st.booleans().flatmap(lambda d: graphs(directed=d, attributes=2)), st.integers(0, 100))
def test_the_order_of_nodes_does_not_matter_of_wasserstein(graph, seed):
    K = WLSlicedWasserstein(scale=1.0)([graph, reordered(graph, seed)])
    np.testing.assert_allclose(K, 1.0, rtol=1e-12)


def test_the_median_scale_is_taken_from_the_training_graphs():
    X = molecules(20)
    k = WLSlicedWasserstein().resolve(X)
    distances = -np.log(k(X)[np.triu_indices(20, 1)])
    assert np.median(distances) == pytest.approx(1.0)
    assert SVC(kernel=WLSlicedWasserstein()).fit(X, np.arange(20) % 2).kernel_ == k


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: WLSlicedWasserstein(scale=-1.0), "scale of WLSlicedWasserstein must be > 0"),
        (lambda: WLSlicedWasserstein(scale="auto"), "scale of WLSlicedWasserstein must be a number"),
        (lambda: WLSlicedWasserstein(directions=0), "directions of WLSlicedWasserstein must be a whole number >= 1"),
        (lambda: WLSlicedWasserstein()([Graph([(0, 1)])]), "graph 0 has no attributes; this kernel compares the attr"),
        (
            lambda: WLSlicedWasserstein()(
                [Graph([], attributes=np.ones((1, 2))), Graph([], attributes=np.ones((1, 3)))]
            ),
            "graph 1 has 3 attributes.*of which all graphs must have equally many",
        ),
    ],
)
def test_errors_are_sentences_of_wasserstein(make, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        make()


def test_large_graphs_take_time_in_proportion_of_wasserstein():
    """Copies of a graph side by side have its quantiles."""
    part = random_graph(np.random.default_rng(0), 400, 0.02)
    many = 250
    edges = np.concatenate([part.edges + part.size * i for i in range(many)])
    large = Graph(edges, part.labels * many, attributes=np.tile(part.attributes, (many, 1)))
    assert WLSlicedWasserstein(h=1, scale=1.0)([large], [part]).item() == pytest.approx(1.0)


def test_new_graphs_need_as_many_attributes():
    k = WLSlicedWasserstein(scale=1.0)
    with pytest.raises(ValueError, match="X has 2002 features and Z has 2004"):
        k([Graph([], attributes=[[1.0]])], [Graph([], attributes=[[1.0, 2.0]])])
