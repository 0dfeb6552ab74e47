"""The row cache: what is kept, what is replaced, and that a row is always the row asked for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.points import RowCache

MATRIX = np.random.default_rng(0).standard_normal((30, 7))


class Source:
    """Rows of a matrix, with a record of those that were computed."""

    def __init__(self):
        self.asked = []

    def __call__(self, index):
        assert len(set(index.tolist())) == len(index)  # never the same row twice
        self.asked.append(index.tolist())
        return MATRIX[index]


def cache(capacity, source=None):
    return RowCache(capacity, 7, np.float64, source or Source())


def test_rows_are_computed_once():
    source = Source()
    c = cache(4, source)
    np.testing.assert_array_equal(c.rows(np.array([3, 1])), MATRIX[[3, 1]])
    np.testing.assert_array_equal(c.rows(np.array([1, 2, 3])), MATRIX[[1, 2, 3]])
    assert source.asked == [[3, 1], [2]]
    assert c.hits == 2


def test_the_least_recently_used_row_is_replaced():
    source = Source()
    c = cache(3, source)
    c.rows(np.array([0, 1, 2]))
    c.rows(np.array([0]))  # 1 is now the oldest
    c.rows(np.array([5]))
    c.rows(np.array([0, 2, 5]))
    assert source.asked == [[0, 1, 2], [5]]
    c.rows(np.array([1]))
    assert source.asked[2:] == [[1]]


def test_a_row_asked_for_is_not_replaced_by_another_asked_for_with_it():
    c = cache(3)
    c.rows(np.array([0, 1, 2]))
    np.testing.assert_array_equal(c.rows(np.array([8, 0, 9])), MATRIX[[8, 0, 9]])
    slots = c.slots(np.array([9, 8, 0]))
    np.testing.assert_array_equal(c.slab[slots], MATRIX[[9, 8, 0]])


def test_repeated_rows_take_one_place():
    source = Source()
    c = cache(2, source)
    np.testing.assert_array_equal(c.rows(np.array([4, 4, 4, 4, 6])), MATRIX[[4, 4, 4, 4, 6]])
    assert source.asked == [[4], [6]] or source.asked == [[4, 6]]
    assert len(set(c.slots(np.array([4, 4, 6, 4])).tolist())) == 2


def test_more_rows_than_there_is_room_for():
    c = cache(3)
    index = np.random.default_rng(1).integers(0, 30, 50)
    np.testing.assert_array_equal(c.rows(index), MATRIX[index])
    with pytest.raises(ValueError, match="4 rows were asked for at once; the cache holds 3"):
        c.slots(np.arange(4))


def test_no_rows():
    c = cache(3)
    assert c.rows(np.array([], int)).shape == (0, 7)
    assert c.slots(np.array([], int)).shape == (0,)


def test_rows_are_copies():
    c = cache(3)
    c.rows(np.array([1]))[:] = 0
    np.testing.assert_array_equal(c.rows(np.array([1])), MATRIX[[1]])


@given(st.integers(1, 6), st.lists(st.lists(st.integers(0, 9), max_size=9), max_size=12), st.sets(st.integers(0, 11)))
def test_any_sequence_of_requests(capacity, requests, failures):
    """Also when computing fails in between: a row that was lost is lost, never mistaken for another."""
    number = iter(range(10**6))

    def compute(index):
        if next(number) in failures:
            raise FloatingPointError
        return MATRIX[index]

    c = cache(capacity, compute)
    for request in requests:
        index = np.array(request, int)
        try:
            np.testing.assert_array_equal(c.rows(index), MATRIX[index])
        except FloatingPointError:
            continue
