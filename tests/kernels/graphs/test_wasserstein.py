"""Sliced Wasserstein distances against scipy's on a line, and the laws of a kernel on graphs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from graph_samples import graphs, molecules, neighbours, random_graph, reordered
from mercer import SVC, Graph, WLSlicedWasserstein


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
def test_the_order_of_nodes_does_not_matter(graph, seed):
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
def test_errors_are_sentences(make, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        make()


def test_large_graphs_take_time_in_proportion():
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
