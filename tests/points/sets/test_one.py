"""What is one point by itself; kernels and functions say the same (tests/kernels/test_base.py, tests/rkhs)."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from cases import each
from mercer import Graph
from mercer.points.sets.one import is_one_point, of_sets
from mercer.points.sets.vectors import NoMatrix


class Triangle:
    """What networkx shows of a graph."""

    nodes, edges = {i: {} for i in range(3)}, {(0, 1): {}, (1, 2): {}, (0, 2): {}}

    def is_directed(self):
        return False

    def __len__(self):
        return 3


@each(
    "data", [1, 1.5, np.float32(1), np.array(2.0), "ACGT", b"ACGT", {"age": 3}, Graph([(0, 1)]), Triangle(), object()]
)
def test_single_points(data):
    assert is_one_point(data)


@each(
    "data",
    [None, [1.0], (1.0,), ["ACGT"], {1, 2}, np.zeros(3), np.zeros((1, 2)), sparse.csr_array((1, 2)),
     sparse.dok_array((2, 2)), pd.DataFrame({"a": [1.0]}), iter([1.0])],
)  # fmt: skip
def test_sets_of_points_and_what_may_be_one(data):
    assert not is_one_point(data)


def of_rows(X):
    if np.ndim(X) != 2:
        raise NoMatrix("X must be a matrix with one row per point")
    return np.shape(X)


@each("x", [1.5, [1.0, 2.0], (1.0, 2.0), np.zeros(3), pd.Series([1.0, 2.0])], ids=repr)
def test_where_rows_are_asked_for_a_flat_array_is_one(x):
    assert of_sets(of_rows, x) == ((1, np.size(x)), True)
    assert of_sets(len, x) == (np.size(x), np.ndim(x) == 0)


def test_what_is_neither_is_refused_as_before():
    with pytest.raises(NoMatrix):
        of_sets(of_rows, np.zeros((2, 2, 2)))
    with pytest.raises(NoMatrix):
        of_sets(of_rows, ["a", "b"])
