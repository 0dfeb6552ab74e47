"""The core's counts of shortest paths: what it refuses to read."""

import numpy as np
import pytest

from mercer import _core
from mercer.points.sets.graph import path_counts

RIGHT = {"starts": [0, 3], "arc_starts": [0, 1, 3, 4], "target": [1, 0, 2, 1], "label": [0, 0, 1]}


def test_lengths_are_bounded_and_parts_make_the_whole():
    given = [np.array(v) for v in RIGHT.values()]
    assert path_counts(*given, longest=1).number.tolist() == [2, 1, 1]
    many = 2000  # graphs, which are shared among threads
    starts = np.arange(many + 1) * 3
    arc_starts = np.concatenate([given[1][:-1] + 4 * i for i in range(many)] + [[4 * many]])
    target = np.concatenate([given[2] + 3 * i for i in range(many)])
    found = path_counts(starts, arc_starts, target, np.tile(given[3], many))
    np.testing.assert_array_equal(found.graph, np.repeat(np.arange(many), 5))
    np.testing.assert_array_equal(found.number, np.tile(path_counts(*given).number, many))


def test_lengths_of_arcs_are_added():
    given = [np.array(v) for v in RIGHT.values()]
    found = path_counts(*given, length=np.array([2, 2, 5, 5]))
    assert np.column_stack(found[1:]).tolist() == [[0, 0, 2, 2], [0, 1, 5, 1], [0, 1, 7, 1], [1, 0, 5, 1], [1, 0, 7, 1]]
    for length, sentence in (([1], "wrong length"), ([1, 1, 1, -1], "lengths out"), ([2**62] * 4, "lengths out")):
        with pytest.raises(ValueError, match=sentence):
            path_counts(*given, length=np.array(length))


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("starts", [0, 4], "nodes out of range"),
        ("starts", [0, 3, 2, 3], "nodes out of range"),
        ("starts", [], "wrong length"),
        ("arc_starts", [0, 4], "wrong length"),
        ("arc_starts", [0, 3, 1, 4], "arcs out of range"),
        ("target", [1, 0, 3, 1], "arcs out of range"),
        ("target", [1, 0, -1, 1], "arcs out of range"),
        ("label", [0, 0, 3], "labels out of range"),
        ("label", [0, -1, 0], "labels out of range"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(name, value, sentence):
    given = [np.array(v, dtype=np.int64) for v in (RIGHT | {name: value}).values()]
    with pytest.raises(ValueError, match=sentence):
        _core.path_counts(*given, 0, 1, 5)
    with pytest.raises(ValueError, match="graphs out of range"):
        _core.path_counts(*(np.array(v, dtype=np.int64) for v in RIGHT.values()), 0, 2, 5)
