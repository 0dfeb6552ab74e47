"""Values and points as plain data come back as they were, and nothing else is let in."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mercer.points.state import read_points, read_value, write_points, write_value
from samples import table, vectors, words

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple),
    max_leaves=8,
)


def same(a, b):
    return type(a) is type(b) and (repr(a) == repr(b))


@given(plain)
def test_plain_values_come_back_to_the_last_bit(value):
    arrays = {}
    code = json.loads(json.dumps(write_value(value, "value", arrays, None), allow_nan=False))
    assert not arrays
    assert same(read_value(code, arrays, None), value)


def test_arrays_slices_and_numpy_numbers():
    arrays = {}
    value = [np.float32(0.1), np.int64(3), np.bool_(True), slice(1, None, 2), np.arange(3), np.ones((2, 2), np.float32)]
    code = json.loads(json.dumps(write_value(value, "v", arrays, None)))
    back = read_value(code, arrays, None)
    assert back[:4] == [float(np.float32(0.1)), 3, True, slice(1, None, 2)]
    assert sorted(arrays) == ["v.4", "v.5"]
    assert back[4].tolist() == [0, 1, 2]
    assert back[5].dtype == np.float32


def trip(data):
    arrays = {}
    manifest = json.loads(json.dumps(write_points(data, "points", arrays), allow_nan=False))
    assert all(a.dtype.kind in "fiub" and a.flags.c_contiguous for a in arrays.values())
    return read_points(manifest, arrays)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, bool])
def test_matrices(dtype):
    X = np.asfortranarray(vectors(8).astype(dtype))
    back = trip(X)
    assert back.dtype == X.dtype
    assert np.array_equal(back, X)
    assert np.array_equal(trip(X[:, 0]), X[:, 0])
    assert trip(X[:0]).shape == (0, 3)


def test_sparse_matrices():
    X = sparse.random(9, 50, density=0.1, random_state=0, format="csc")
    back = trip(X)
    assert isinstance(back, sparse.csr_array)
    assert (back != sparse.csr_array(X)).nnz == 0


def test_sequences():
    for items in (words(5), tuple(words(5)), [("a", 1), ("b", 2.5)], [1, 2.5, None], [], [[0.0], [2.0]]):
        assert same(trip(items), items)
    texts = np.array(words(5))
    assert trip(texts).tolist() == texts.tolist()
    assert trip(texts).dtype == texts.dtype
    objects = np.array(["a", "bc", None], dtype=object)
    assert trip(objects).dtype == object
    assert trip(objects).tolist() == objects.tolist()
    assert trip(range(3)) == [0, 1, 2]
    strings = [np.arange(3.0), np.arange(2.0)]  # points of different lengths
    assert [x.tolist() for x in trip(strings)] == [[0.0, 1.0, 2.0], [0.0, 1.0]]


def test_tables():
    t = table(6)
    back = trip(t)
    assert isinstance(back, pd.DataFrame)
    assert back.equals(t)
    numbered = pd.DataFrame(vectors(6).astype(np.float32))
    assert trip(numbered).equals(numbered)
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(t.to_dict("list"))
    assert trip(frame).equals(frame)


@pytest.mark.parametrize(("values", "levels"), [(["M", "S", None], ["S", "M", "L"]), ([5, 1, 5], [1, 5, 9])])
def test_ordered_categories_keep_their_levels(values, levels):
    frame = pd.DataFrame({"size": pd.Categorical(values, levels, ordered=True), "x": np.arange(3.0)})
    back = trip(frame)
    assert back["size"].dtype == frame["size"].dtype
    assert back.equals(frame)
    if isinstance(levels[0], str):
        polars = pytest.importorskip("polars")
        frame = polars.DataFrame({"size": polars.Series(values, dtype=polars.Enum(levels))})
        assert trip(frame).schema == frame.schema
        assert trip(frame).equals(frame)


def test_tensors_come_back_as_arrays():
    torch = pytest.importorskip("torch")
    X = torch.tensor(vectors(5), requires_grad=True)
    assert np.array_equal(trip(X), vectors(5))


class Molecule:
    def __repr__(self):
        return "Molecule()"


def test_what_is_no_data_is_refused_in_a_sentence():
    with pytest.raises(TypeError, match=r"points.1 is a Molecule, Molecule\(\); only points that are numbers, texts"):
        write_points(["a", Molecule()], "points", {})
    with pytest.raises(TypeError, match=r"column 'm': point\.0 is a Molecule"):
        write_points(pd.DataFrame({"m": [Molecule()]}), "points", {})
    with pytest.raises(TypeError, match=r"a column called \('a', 'b'\)"):
        write_points(pd.DataFrame({("a", "b"): [1.0]}), "points", {})
    with pytest.raises(ValueError, match="two columns of the table have one name"):
        write_points(pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), "points", {})


def test_a_damaged_state_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match=r"incomplete: its manifest names the array 'points', and there are none"):
        read_points({"kind": "array", "array": "points"}, {})
    for manifest in (None, {}, {"kind": "pickle"}, {"kind": "table", "library": "os", "columns": []}):
        with pytest.raises(ValueError, match="the state cannot be read"):
            read_points(manifest, {})
    with pytest.raises(ValueError, match="items are a list"):
        read_points({"kind": "items", "items": "abc"}, {})
    with pytest.raises(ValueError, match="a point is a number, a text"):
        read_points({"kind": "items", "items": [{"code": "1"}]}, {})
    broken = {"p.data": np.ones(2), "p.indices": np.array([0, 99]), "p.indptr": np.array([0, 1, 2])}
    with pytest.raises(ValueError, match="ind"):  # the core would read outside of the matrix
        read_points({"kind": "sparse", "name": "p", "shape": [2, 5]}, broken)


@given(
    st.lists(st.sets(st.one_of(st.integers(), st.text(), st.none(), st.tuples(st.integers(), st.text()))), min_size=1)
)
def test_sets_come_back_and_are_written_in_one_order(points):
    points = [*points, frozenset({1, "a"})]
    arrays = {}
    manifest = json.loads(json.dumps(write_points(points, "points", arrays)))
    back = read_points(manifest, arrays)
    assert back == points
    assert [type(x) for x in back] == [type(x) for x in points]
    shuffled = [type(x)(reversed(list(x))) for x in points]
    assert write_points(shuffled, "points", {}) == manifest


def test_a_set_of_lists_is_damaged():
    with pytest.raises(ValueError, match="the elements of a set can be hashed, not"):
        read_points({"kind": "items", "container": "list", "items": [{"set": [[1, 2]]}]}, {})
