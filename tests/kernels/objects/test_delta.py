import numpy as np
import pandas as pd
import pytest

from mercer import Gram
from mercer.kernels import RBF, Categorical, Delta
from samples import words


@pytest.mark.parametrize(
    "points",
    [
        ["red", "blue", "red"],
        np.array(["red", "blue", "red"]),
        [1, 2, 1],
        np.array([1, 2, 1]),
        [(1, "a"), (2, "a"), (1, "a")],
        [("a",), ("a", "b"), ("a",)],
        [[1, 2], [1], [1, 2]],
        [None, True, None],
        np.array([[0.1, 0.2], [0.1, 0.3], [0.1, 0.2]]),
        np.array([[[0.1, 0.2]], [[0.1, 0.3]], [[0.1, 0.2]]]),
        [frozenset("ab"), frozenset("b"), frozenset("ba")],
    ],
    ids=lambda points: type(points).__name__,
)
def test_equal_objects_match(points):
    np.testing.assert_array_equal(Delta()(points), [[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    np.testing.assert_array_equal(Delta().diag(points), np.ones(3))


def test_the_smallest_difference_counts():
    tiny = np.nextafter(0, 1)
    X = np.array([[0.0], [tiny], [-0.0], [1.0], [np.nextafter(1, 2)]])
    wanted = np.eye(5)
    wanted[0, 2] = wanted[2, 0] = 1  # zero has two signs and one value
    np.testing.assert_array_equal(Delta()(X), wanted)


def test_between_two_sets():
    np.testing.assert_array_equal(Delta()(["a", "b"], ["b", "c"]), [[0, 0], [1, 0]])
    np.testing.assert_array_equal(Delta()([[1.0], [2.0]], [[2.0]]), [[0], [1]])


# -- categories -------------------------------------------------------------------------------------------


def as_polars(columns):
    return pytest.importorskip("polars").DataFrame(columns, strict=False)


MISSING = {"job": ["nurse", None, "cook", "nurse", None], "code": [1.0, float("nan"), 2.0, 1.0, None]}


@pytest.mark.parametrize("table", [pd.DataFrame, as_polars])
@pytest.mark.parametrize("column", ["job", "code"])
def test_missing_equals_missing_in_tables(table, column):
    K = Categorical().on(column)(table(MISSING))
    np.testing.assert_array_equal(
        K, [[1, 0, 0, 1, 0], [0, 1, 0, 0, 1], [0, 0, 1, 0, 0], [1, 0, 0, 1, 0], [0, 1, 0, 0, 1]]
    )


@pytest.mark.parametrize("table", [pd.DataFrame, as_polars])
def test_products_over_the_columns_of_a_table(table):
    people = {"age": [30.0, 40.0, 30.0], "job": ["nurse", "cook", None]}
    k = RBF(10.0).on("age") * Categorical(0.2).on("job")
    np.testing.assert_allclose(k(table(people)), RBF(10.0)([[30.0], [40.0], [30.0]]) * (0.2 + 0.8 * np.eye(3)))


def test_all_columns_of_a_row_must_match():
    rows = pd.DataFrame({"job": ["nurse", "nurse", "nurse"], "town": ["Bern", "Athens", "Bern"]})
    np.testing.assert_array_equal(Categorical()(rows), [[1, 0, 1], [0, 1, 0], [1, 0, 1]])


def test_any_hashable_value_and_pandas_missing_values():
    values = [("a", 1), frozenset("ab"), pd.NA, pd.NaT, float("nan"), None, 3, 3.0]
    K = Categorical()(values)
    assert K[2:6, 2:6].all()
    assert K[6, 7] == 1.0
    assert K.sum() == 1 + 1 + 16 + 4


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numbers_are_compared_by_the_core_missing_ones_too(dtype):
    whole, some = np.array([[1.0], [2.0]], dtype), np.array([[2.0], [np.nan], [np.inf], [-np.inf], [0.0]], dtype)
    assert Gram(Categorical(), some).compiled
    np.testing.assert_array_equal(Categorical()(some), np.eye(5))
    np.testing.assert_array_equal(Categorical(0.5)(whole, some), [[0.5] * 5, [1.0] + [0.5] * 4])
    np.testing.assert_array_equal(Categorical(0.5)(some, whole), Categorical(0.5)(whole, some).T)
    for same in (whole.astype(int), whole.tolist(), [(1,), np.array([2.0])]):
        np.testing.assert_array_equal(Categorical(0.5)(same, some), Categorical(0.5)(whole, some))


@pytest.mark.parametrize("other", [-0.1, 1.0, np.nan])
def test_the_other_similarity_lies_between_none_and_full(other):
    with pytest.raises(ValueError, match="other of Categorical must be"):
        Categorical(other)


def test_with_no_other_similarity_it_is_delta():
    np.testing.assert_array_equal(Categorical()(words()), Delta()(words()))
