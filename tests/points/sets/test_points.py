"""Sets of points: every kind of input, nothing converted before it is asked for, nothing computed twice."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from cases import each
from mercer.kernels import RBF, Delta, FromFunction, Linear
from mercer.points import Points

X = np.array([[0.0, 1.0, -2.0], [3.0, 0.0, 5.0], [0.5, 0.0, 0.0], [7.0, 8.0, 9.0]])


def memory_mapped(tmp_path, offset=0, dtype=np.float64):
    path = tmp_path / "points.bin"
    path.write_bytes(b"\0" * offset + X.astype(dtype).tobytes())
    return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=X.shape)


# -- inputs -----------------------------------------------------------------------------------------------

KINDS = {
    "list": (X.tolist(), np.float64),
    "tuple of tuples": (tuple(map(tuple, X)), np.float64),
    "list of arrays": (list(X), np.float64),
    "float64": (X, np.float64),
    "float32": (X.astype(np.float32), np.float32),
    "float16": (X.astype(np.float16), np.float32),
    "long double": (X.astype(np.longdouble), np.float64),
    "big-endian float64": (X.astype(">f8"), np.float64),
    "big-endian float32": (X.astype(">f4"), np.float32),
    "Fortran order": (np.asfortranarray(X), np.float64),
    "strided": (np.repeat(X, 2, axis=0)[::2], np.float64),
    "reversed": (X[::-1][::-1], np.float64),
    "numpy.matrix": (np.asmatrix(X), np.float64),
    "masked, nothing hidden": (np.ma.masked_array(X), np.float64),
    "numbers as objects": (X.astype(object), np.float64),
    "pandas": (pd.DataFrame(X, columns=list("abc")), np.float64),
    "pandas float32": (pd.DataFrame(X.astype(np.float32)), np.float32),
    "polars": (pl.DataFrame(X, schema=list("abc")), np.float64),
    "csr_matrix": (sparse.csr_matrix(X), np.float64),
    "csr_array float32": (sparse.csr_array(X.astype(np.float32)), np.float32),
    "csc_array": (sparse.csc_array(X), np.float64),
    "coo_matrix": (sparse.coo_matrix(X), np.float64),
    "lil_array": (sparse.lil_array(X), np.float64),
    "dok_array": (sparse.dok_array(X), np.float64),
}


@each("kind", KINDS)
def test_every_kind_of_matrix_becomes_the_same_vectors(kind):
    data, dtype = KINDS[kind]
    points = Points(data)
    vectors = points.vectors
    assert len(points) == 4
    assert points.width == 3
    assert points.numeric
    assert not points.foreign
    assert points.dtype == vectors.dtype == dtype
    np.testing.assert_array_equal(vectors, X)
    assert vectors.flags.c_contiguous
    assert vectors.flags.aligned
    assert vectors.dtype.isnative
    assert points.extent == 9.0


@pytest.mark.parametrize("data", [X.astype(int), X.astype(np.int8), (X > 0), pd.DataFrame(X > 0)], ids=str)
def test_whole_numbers_and_truth_values_become_float64(data):
    vectors = Points(data).vectors
    assert vectors.dtype == np.float64
    np.testing.assert_array_equal(vectors, np.asarray(data).astype(float))


def test_a_table_of_several_numeric_types():
    columns = {"a": [1, 2], "b": [0.5, 1.5], "c": [True, False]}
    for table in (pd.DataFrame(columns), pl.DataFrame(columns)):
        np.testing.assert_array_equal(Points(table).vectors, [[1, 0.5, 1], [2, 1.5, 0]])


def test_nullable_columns_of_pandas_are_numbers_when_nothing_is_missing():
    table = pd.DataFrame({"a": pd.array([1, 2], dtype="Int64"), "b": pd.array([0.5, 1.5], dtype="Float64")})
    np.testing.assert_array_equal(Points(table).vectors, [[1, 0.5], [2, 1.5]])


def test_a_missing_entry_of_a_table_is_named():
    for table in (pd.DataFrame({"a": [1.0, None]}), pl.DataFrame({"a": [1.0, None]})):
        with pytest.raises(ValueError, match=r"X contains NaN at row 1, column 0; .* impute or drop"):
            Points(table).vectors


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_plain_arrays_are_not_copied(dtype):
    data = X.astype(dtype)
    assert Points(data).vectors is data


def test_arrays_that_may_not_be_written(tmp_path):
    data = X.copy()
    data.flags.writeable = False
    np.testing.assert_array_equal(RBF(1.0)(data), RBF(1.0)(X))
    mapped = memory_mapped(tmp_path)
    assert np.shares_memory(Points(mapped).vectors, mapped)
    np.testing.assert_array_equal(RBF(1.0)(mapped), RBF(1.0)(X))


def test_an_array_that_begins_between_two_words(tmp_path):
    data = memory_mapped(tmp_path, offset=3)
    assert not data.flags.aligned
    points = Points(np.asarray(data))
    assert points.vectors.flags.aligned
    np.testing.assert_array_equal(RBF(1.0)(points), RBF(1.0)(X))


def test_objects_of_any_kind():
    words = ["aa", "b", "cc"]
    for data in (words, tuple(words), np.array(words), np.array(words, dtype=object), pd.Series(words)):
        points = Points(data)
        assert len(points) == 3
        assert list(points.items) == words
        assert not points.numeric
        assert points.dtype == np.float64
        np.testing.assert_array_equal(FromFunction(lambda a, b: float(a == b))(points), np.eye(3))


def test_texts_that_read_as_numbers_are_texts():
    for data in (
        np.array([["1"], ["2.5"]], dtype=object),
        np.array([["1"], ["2.5"]]),
        pd.DataFrame({"t": ["1", "2.5"]}),
    ):
        assert list(Points(data).items) == ["1", "2.5"]
    np.testing.assert_array_equal(np.stack(Points(np.array([[1], [2.5]], dtype=object)).items), [[1], [2.5]])


def test_the_items_of_tables_and_sparse_matrices_are_their_rows():
    np.testing.assert_array_equal(np.stack(Points(pd.DataFrame(X)).items), X)
    np.testing.assert_array_equal(np.stack(Points(pl.DataFrame(X)).items), X)
    for kind in (sparse.csr_array, sparse.csr_matrix, sparse.coo_array, sparse.csc_matrix, sparse.dok_array):
        points = Points(kind(X))
        np.testing.assert_array_equal([row.toarray().ravel() for row in points.items], X)
        np.testing.assert_array_equal([row.toarray().ravel() for row in points.take(slice(1, 3)).items], X[1:3])


def test_points_are_points_already():
    points = Points(X, "left")
    assert Points.of(points) is points
    assert Points.of(X, "Z").name == "Z"
    assert repr(points) == "<4 points of ndarray>"


# -- refusals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "error", "sentence"),
    [
        (3.5, TypeError, "X is a float, which has no length; pass a sequence"),
        (np.float64(3.5), TypeError, "X is a single float64; pass a sequence of points"),
        (np.array(3.5), TypeError, "X is a single ndarray"),
        ("word", TypeError, "X is a single str"),
        (b"word", TypeError, "X is a single bytes"),
        ({"a": 1}, TypeError, "X is a single dict"),
        ((x for x in X), TypeError, "X is a generator, which has no length"),
        (None, TypeError, "X is a NoneType"),
        ([], ValueError, "X is empty: it has 0 points"),
        (np.empty((0, 3)), ValueError, "X is empty: it has 0 points"),
        (pd.DataFrame({"a": []}), ValueError, "X is empty"),
        (sparse.csr_array((0, 3)), ValueError, "X is empty"),
    ],
)
def test_what_is_no_set_of_points(data, error, sentence):
    with pytest.raises(error, match=sentence):
        Points(data)


@each(
    ("data", "error", "sentence"),
    [
        (np.array([[1.0, np.nan]]), ValueError, "X contains NaN at row 0, column 1; .*SimpleImputer"),
        (np.array([[1.0], [-np.inf]]), ValueError, "X contains an infinite value at row 1, column 0"),
        ([[1.0, 2.0], [3.0, float("nan")]], ValueError, "X contains NaN at row 1, column 1"),
        (np.array([[1e39]], np.longdouble) * 1e300, ValueError, "X contains an infinite value"),
        (sparse.csr_array([[0.0, 1.0], [0.0, np.inf]]), ValueError, "X contains an infinite value at row 1, column 1"),
        ([[1.0, 2.0], [3.0]], ValueError, "X is ragged: its rows have different lengths"),
        ([1.0, 2.0], ValueError, r"its shape is \(2,\). Use X.reshape\(-1, 1\)"),
        (np.zeros((2, 2, 2)), ValueError, r"its shape is \(2, 2, 2\)"),
        (np.zeros((2, 0)), ValueError, "X has 0 columns"),
        (np.zeros((2, 0), dtype="U3"), ValueError, "X has 0 columns"),
        (sparse.csr_array((2, 0)), ValueError, "X has 0 columns"),
        (pd.DataFrame(index=[0, 1]), ValueError, "X has 0 columns"),
        (["a", "b"], TypeError, r"X is not numeric \(it holds str 'a'\).*OneHotEncoder.*FromFunction"),
        (np.array([["1", "x"]], dtype=object), TypeError, "X is not numeric"),
        (np.array([[1 + 2j]]), TypeError, r"X is not numeric \(it holds complex"),
        (np.array([["2024-01-01"]], dtype="M8[D]"), TypeError, "X is not numeric"),
        (pd.DataFrame({"a": [1.0], "town": ["Bern"]}), TypeError, "column 'town' of X is not numeric .*'Bern'"),
        (pl.DataFrame({"a": [1.0], "town": ["Bern"]}), TypeError, "column 'town' of X is not numeric"),
        (np.ma.masked_array([[1.0, 2.0]], mask=[[False, True]]), ValueError, r"X is masked at \(0, 1\)"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_no_matrix_of_finite_numbers(data, error, sentence):
    points = Points(data)  # nobody has asked for vectors yet
    with pytest.raises(error, match=sentence):
        points.vectors
    with pytest.raises(error, match=re.sub(r"\bX (is|has|contains)", r"Z \1", sentence)):
        RBF(1.0)([[1.0, 2.0]], data)


# -- sparse -----------------------------------------------------------------------------------------------


def thin(n=200, d=1000, dtype=np.float64, seed=0):
    return sparse.random_array((n, d), density=0.005, rng=np.random.default_rng(seed), format="csr").astype(dtype)


def test_thin_matrices_stay_sparse_and_others_do_not():
    assert isinstance(Points(thin()).vectors, sparse.csr_array)
    assert isinstance(Points(sparse.csr_array(X)).vectors, np.ndarray)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_vectors_keep_their_precision(dtype):
    assert Points(thin(dtype=dtype)).dtype == dtype
    assert Points((thin() > 0).astype(np.int64)).dtype == np.float64


def test_repeated_entries_are_summed_and_the_caller_s_matrix_is_left_alone():
    rows, cols, values = [0, 0, 3], [999, 999, 5], [1.0, 2.0, 4.0]
    given = sparse.coo_array((values, (rows, cols)), shape=(200, 1000)).tocsr(copy=True)
    raw = sparse.csr_array((np.array([1.0, 2.0, 4.0]), np.array([7, 2, 2]), np.array([0, 3] + [3] * 199)), (200, 1000))
    before = raw.indices.copy(), raw.data.copy()
    points = Points(raw)
    assert points.vectors.has_canonical_format
    np.testing.assert_array_equal(raw.indices, before[0])
    np.testing.assert_array_equal(raw.data, before[1])
    assert Linear()(points)[0, 0] == 1 + 36
    assert Linear()(given)[0, 0] == 9


def test_extent_of_sparse_points():
    matrix = thin()
    matrix.data[:] = -1.0
    matrix.data[3] = -6.0
    assert Points(matrix).extent == 6.0
    assert Points(sparse.csr_array((50, 5000))).extent == 0.0


# -- laziness ---------------------------------------------------------------------------------------------


class Counted:
    """A map that counts how often it is called, and on how many points."""

    def __init__(self, function):
        self.function, self.calls = function, []

    def __call__(self, points):
        self.calls.append(len(points))
        return self.function(points)


def test_a_table_with_text_works_until_vectors_are_asked_for():
    columns = {"size": [1.0, 2.0, 4.0], "colour": ["red", "blue", "red"]}
    for data in (pd.DataFrame(columns), pl.DataFrame(columns)):
        points = Points(data)
        assert len(points) == 3
        assert not points.numeric
        np.testing.assert_array_equal(Delta().on("colour")(points), [[1, 0, 1], [0, 1, 0], [1, 0, 1]])
        np.testing.assert_allclose(RBF(1.0).on("size")(points)[0, 1], np.exp(-0.5))
        part = points.take(np.array([2, 0]))
        np.testing.assert_array_equal(Delta().on("colour")(part), np.ones((2, 2)))
        with pytest.raises(TypeError, match="column 'colour'"):
            points.vectors


def test_a_map_is_applied_once_however_often_it_is_asked_for():
    points, doubled = Points(X), Counted(lambda p: p.vectors * 2)
    assert points.through(doubled) is points.through(doubled)
    np.testing.assert_array_equal(points.through(doubled).vectors, X * 2)
    assert doubled.calls == [4]


@pytest.mark.parametrize("rows", [slice(1, 3), np.array([3, 0, 0]), np.array([], int)], ids=str)
def test_taking_points_cuts_what_was_derived_from_all_of_them(rows):
    points = Points(X)
    doubled, norms = Counted(lambda p: p.vectors * 2), Counted(lambda p: (p.vectors**2).sum(axis=1))
    first = points.take(rows)
    np.testing.assert_array_equal(first.through(doubled).vectors, (X * 2)[rows])
    np.testing.assert_array_equal(first.values(norms), (X**2).sum(axis=1)[rows])
    second = points.take(rows).take(slice(0, 1))
    np.testing.assert_array_equal(second.through(doubled).vectors, (X * 2)[rows][:1])
    np.testing.assert_array_equal(second.through(doubled).values(norms), 4 * (X**2).sum(axis=1)[rows][:1])
    assert doubled.calls == [4]
    assert norms.calls == [4, 4]  # of the points, and of their images


def test_maps_of_maps_are_cut_as_well():
    points = Points(X)
    a, b = Counted(lambda p: p.vectors + 1), Counted(lambda p: p.vectors * 3)
    points.through(a).through(b)
    part = points.take(slice(2, 4)).through(a).through(b)
    np.testing.assert_array_equal(part.vectors, ((X + 1) * 3)[2:4])
    assert a.calls == b.calls == [4]


def test_vectors_are_converted_once_for_all_selections(monkeypatch):
    from mercer.points.sets import points as module

    calls = []
    convert = module.as_vectors
    monkeypatch.setattr(module, "as_vectors", lambda data, name: calls.append(name) or convert(data, name))
    points = Points(X.tolist())
    for rows in (slice(0, 2), slice(1, 3), np.array([0, 3])):
        np.testing.assert_array_equal(points.take(rows).vectors, X[rows])
    assert calls == ["X"]


def test_taking_all_points_is_the_set_itself():
    points = Points(X)
    assert points.take(slice(None)) is points
    assert points.take(slice(0, 4)) is points
    assert points.take(slice(0, 3)) is not points


@each("kind", KINDS)
def test_selections_of_every_kind(kind):
    points = Points(KINDS[kind][0])
    for rows in (slice(1, 3), np.array([2, 0, 2])):
        part = points.take(rows)
        assert len(part) == len(X[rows])
        np.testing.assert_array_equal(part.vectors, X[rows])
        assert part.dtype == points.dtype
        assert part.width == 3
    data = part.data.toarray() if sparse.issparse(part.data) else part.data
    np.testing.assert_array_equal(np.asarray(data, dtype=float), X[rows])


def test_selections_of_objects():
    points = Points(["a", "bb", "ccc"])
    assert list(points.take(np.array([2, 0])).items) == ["ccc", "a"]
    assert list(points.take(slice(1, 3)).items) == ["bb", "ccc"]


# -- what maps may return ---------------------------------------------------------------------------------


def test_a_map_must_keep_the_number_of_points():
    with pytest.raises(ValueError, match="turned 4 points into 2; it must keep their number"):
        Points(X).through(lambda p: p.vectors[:2])


def test_values_are_one_finite_number_per_point():
    with pytest.raises(ValueError, match=r"one number per point: shape \(4,\), not \(4, 3\)"):
        Points(X).values(lambda p: p.vectors)
    with pytest.raises(ValueError, match="gives inf at point 3; it must be finite"):
        Points(X).values(lambda p: np.where(p.vectors[:, 0] > 5, np.inf, 0.0))
