"""Graphs as points: forms, laws of equality, plain data, and what is refused."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import mercer
from cases import each
from graph_samples import graphs, molecules
from mercer import SVC, Graph, WeisfeilerLehman
from mercer.points import Points
from mercer.points.state import read_points, write_points

ANY = st.booleans().flatmap(lambda d: graphs(directed=d, attributes=2))


@given(ANY)
def test_a_graph_survives_plain_data_and_pickles(graph):
    arrays = {}
    manifest = write_points([graph, graph], "points", arrays)
    for twin in (*read_points(manifest, arrays), pickle.loads(pickle.dumps(graph)), Graph(*graph.arguments)):
        assert twin == graph
        assert hash(twin) == hash(graph)
    assert Graph._of_parts(**graph._parts()) == graph


def test_all_forms_are_one_graph():
    wanted = Graph([(0, 1), (1, 2)], ["a", "b", "b"])
    matrix = sparse.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    for form in (
        wanted,
        ([(0, 1), (1, 2)], ["a", "b", "b"]),
        (np.array([[2, 1], [1, 0]]), np.array(["a", "b", "b"])),
        ([(0, 1), (1, 0), (1, 2)], ("a", "b", "b")),
        (matrix, ["a", "b", "b"]),
    ):
        assert Graph.of(form) == wanted
    assert Graph.of(matrix) == Graph([(0, 1), (1, 2)], 3) == Graph([(0, 1), (1, 2)])
    assert Graph(2 * matrix).weights.tolist() == [2.0, 2.0]
    assert Graph([(0, 1)], directed=True) != Graph([(1, 0)], directed=True)
    assert Graph([], 2) != Graph([], 3)
    assert wanted != "wanted"
    assert repr(wanted) == "<Graph: 3 nodes, 2 edges>"


def test_graphs_of_networkx_are_read():
    networkx = pytest.importorskip("networkx")
    G = networkx.Graph()
    G.add_node("x", label="a", attributes=[1.0, 2.0])
    G.add_node("y", label="b", attributes=[0.0, 0.0])
    G.add_edge("y", "x", label=7, weight=0.5)
    assert Graph.of(G) == Graph([(0, 1)], ["a", "b"], [7], [[1.0, 2.0], [0.0, 0.0]], weights=[0.5])
    D = networkx.DiGraph([(1, 0)])
    assert Graph.of(D) == Graph([(0, 1)], 2, directed=True)
    assert Graph.of(networkx.empty_graph(0)) == Graph([], 0)
    G.add_node("z")
    with pytest.raises(ValueError, match=r"x is no graph: 'z' has no 'label', and others have one"):
        Graph.of(G, "x")


def test_what_looks_like_networkx_is_read_without_it():
    G = SimpleNamespace(nodes={0: {}, 1: {}}, edges=lambda data: [(0, 1, {})], is_directed=lambda: False)
    assert Graph.of(G) == Graph([(0, 1)])


@pytest.mark.parametrize("form", ["graphs", "tuples", "matrices", "networkx"])
def test_lists_of_graphs_are_no_matrices_to_estimators(form):
    X = molecules(30)
    y = np.array([len(g.edges) > 4 for g in X])
    if form == "tuples":
        X = [(g.edges.tolist(), g.size) for g in X]
    elif form == "matrices":
        X = [sparse.coo_array((np.ones(len(g.edges)), g.edges.T), shape=(g.size, g.size)) for g in X[5:]]
        X, y = [sparse.csr_array(A + A.T) for A in X], y[5:]
    elif form == "networkx":
        networkx = pytest.importorskip("networkx")
        X = [networkx.Graph(g.edges.tolist()) for g in X]
    points = Points(X)
    assert not points.numeric
    assert points.single() is points
    assert SVC(kernel=WeisfeilerLehman(1)).fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("n", [10, 60])
def test_models_with_graphs_are_saved(n, tmp_path):
    X = molecules(n, seed=1)
    y = np.array([len(g.edges) > 4 for g in X])
    model = SVC(kernel=WeisfeilerLehman(2).normalized()).fit(X, y)
    mercer.save(model, tmp_path / "model.mercer")
    twin = mercer.load(tmp_path / "model.mercer")
    assert twin.support_vectors_ == model.support_vectors_
    np.testing.assert_array_equal(twin.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(twin.function_(X), model.function_(X))


def test_a_model_fitted_to_graphs_of_networkx_says_how_to_save_it(tmp_path):
    networkx = pytest.importorskip("networkx")
    X = [networkx.path_graph(n) for n in range(2, 8)]
    model = SVC(kernel=WeisfeilerLehman(1)).fit(X, [0, 0, 0, 1, 1, 1])
    with pytest.raises(ValueError, match=r"fit the model to \[mercer.Graph.of\(g\) for g in X\]"):
        mercer.save(model, tmp_path / "model.mercer")


@each(
    ("given", "sentence"),
    [
        ({"edges": [(0, 3)], "labels": 2}, "edge 0 joins the nodes 0 and 3, and a graph of 2 nodes has no node 3"),
        ({"edges": [(0, 1), (-1, 0)], "labels": 2}, "edge 1 joins the nodes -1 and 0.* has no node -1"),
        ({"edges": [(0, 1)], "labels": ["a", "b"], "attributes": [[1.0]]}, "there are 2 node labels, 1 rows of attr"),
        ({"edges": sparse.eye_array(3), "labels": ["a"]}, "there are 3 rows of the adjacency matrix, 1 node labels"),
        ({"edges": [(0, 1)], "edge_labels": [1, 2]}, "there are 2 edge labels for 1 edges; give one for each"),
        ({"edges": [(0, 1)], "weights": []}, "there are 0 weights for 1 edges"),
        ({"edges": [(0, 1)], "weights": [np.inf]}, "the weight of edge 0 is inf; weights are finite"),
        ({"edges": [(0, 1)], "weights": "heavy"}, "weights are one number for each edge; these are 'heavy'"),
        ({"edges": [], "attributes": [[0.0], [np.nan]]}, "attribute 0 of node 1 is nan; attributes are finite numbers"),
        ({"edges": [], "attributes": [1.0]}, r"attributes are one row of numbers for each node; these are \[1.0\]"),
        ({"edges": [(0, 1, 2)]}, r"edges are pairs \(i, j\) of nodes that are counted from 0"),
        ({"edges": [(0, 1), (2,)]}, "edges are pairs"),
        ({"edges": [(0.5, 1)]}, "edges are pairs"),
        ({"edges": [], "labels": -1}, "a graph has from 0 to 2,147,483,647 nodes, not -1"),
        ({"edges": [], "labels": [None]}, "the label of node 0 is None; labels are texts, finite numbers, or tuples"),
        ({"edges": [], "labels": [np.nan]}, "the label of node 0 is nan"),
        ({"edges": [], "labels": np.eye(2)}, r"node labels are a flat list; these have shape \(2, 2\)"),
        ({"edges": [(0, 1), (1, 0)], "edge_labels": ["a", "b"]}, "from 0 to 1 is given twice, with 'a' and 'b'"),
        ({"edges": [(0, 1)], "directed": "no"}, "directed must be True or False; it is 'no'"),
        ({"edges": sparse.csr_array([[0, 1], [0, 0]])}, "is not symmetric; say Graph.matrix, directed=True"),
        ({"edges": sparse.csr_array((2, 3))}, r"an adjacency matrix is square; this one has shape \(2, 3\)"),
        ({"edges": sparse.eye_array(2), "weights": [1.0, 1.0]}, "weights are the entries of the adjacency matrix"),
    ],
)
def test_errors_are_sentences(given, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        Graph(**given)


def test_states_that_hold_no_graph_are_refused():
    with pytest.raises(ValueError, match="a point is a number, a text, an array, a graph or a tuple"):
        read_points({"kind": "items", "container": "list", "items": [{"graph": 3}]}, {})
    with pytest.raises(ValueError, match="a graph has a number of nodes and pairs of them, not -1"):
        Graph._of_parts(-1, [], None, None, None, None, False, None)
