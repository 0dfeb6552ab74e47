import numpy as np
import pytest

from mercer.kernels import Delta


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
