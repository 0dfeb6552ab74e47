"""Centres in any container: equal ones are recognised, none are lost."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from mercer.rkhs.functions.centres import doubled, first_equal, joined, merged, size_of, taken

ROWS = np.array([[0.0, 1.0], [2.0, 0.0], [-0.0, 1.0], [2.0, 1e-300], [2.0, 0.0]])
SAME = [0, 1, 0, 3, 1]


@pytest.mark.parametrize(
    "points",
    [
        ROWS,
        ROWS.astype(np.float32) + np.array([[0], [0], [0], [1], [0]], np.float32),
        np.asfortranarray(ROWS),
        ROWS.tolist(),
        sparse.csr_array(ROWS),
        sparse.csc_matrix(ROWS),
        pd.DataFrame(ROWS),
        ["a", "b", "a", "c", "b"],
        np.array(["a", "b", "a", "c", "b"]),
        np.array(["a", "b", "a", "c", "b"], dtype=object),
        np.array([7, 3, 7, 1, 3]),
        [("x", 1), ("y", 2), ("x", 1), ("y", 3), ("y", 2)],
        pd.DataFrame({"town": list("abacb"), "age": [1.0, 2.0, 1.0, 2.0, 2.0]}),
    ],
    ids=range(13),
)
def test_equal_centres_are_recognised(points):
    assert first_equal(points).tolist() == SAME
    A = np.array([[1.0, 0.0], [2.0, 0.0], [-1.0, 0.0], [0.0, 4.0], [3.0, 1.0]])
    rows, B = merged(points, A)
    assert rows.tolist() == [1, 3]
    assert B.tolist() == [[5.0, 1.0], [0.0, 4.0]]
    assert size_of(taken(points, rows)) == 2
    assert size_of(taken(points, rows[:0])) == 0
    assert size_of(joined(points, points)) == 10


def test_polars():
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"town": list("abacb"), "age": [1.0, 2.0, 1.0, 2.0, 2.0]})
    assert first_equal(table).tolist() == SAME
    assert size_of(taken(table, np.array([], dtype=np.intp))) == 0


def test_what_cannot_be_hashed_is_equal_to_itself_only():
    assert first_equal([{"a"}, {"a"}]).tolist() == [0, 1]
    assert first_equal([1, "1", 1, True]).tolist() == [0, 1, 0, 3]


def test_doubling_keeps_what_is_no_float():
    assert doubled(ROWS.astype(np.float32)).dtype == np.float64
    assert doubled(sparse.csr_array(ROWS, dtype=np.float32)).dtype == np.float64
    frame = pd.DataFrame({"a": np.float32([1.0]), "b": ["x"]})
    assert doubled(frame)["a"].dtype == np.float64
    assert doubled(frame)["b"].tolist() == ["x"]
    assert doubled(["x"]) == ["x"]
