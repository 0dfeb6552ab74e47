"""SMO among some points of a matrix, and the sums of its rows, against the same work on a matrix of those points."""

import numpy as np
import pytest

from core.jobs import FLOATS
from core.test_smo import KINDS, Run
from mercer import _core


def places(n, count, seed=0):
    return np.sort(np.random.default_rng([seed, n, count]).choice(n, count, replace=False)).astype(np.int32)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", KINDS[:-1])
def test_a_part_ends_where_its_own_matrix_does(kind, dtype):
    """Dense and sparse choices of points: registers that are packed whole, in part, and entries one by one."""
    for n, count in ((5, 2), (40, 39), (65, 33), (70, 17), (200, 20), (130, 130)):
        run, at = Run(kind, n, dtype=dtype), places(n, count)
        alone = Run(kind, n, dtype=dtype)
        K = np.ascontiguousarray(alone.K[np.ix_(at, at)])
        arrays = [a[at].copy() for a in alone.arrays]
        _core.smo(K, *arrays, run.groups, 1e-6, 10**6, True)
        before = run.plus - run.minus
        _, left = _core.smo_part(run.K, at, *run.arrays, run.groups, 1e-6, 10**6)
        assert left <= 1e-6
        rest = np.setdiff1d(np.arange(n), at)
        np.testing.assert_array_equal((run.plus - run.minus)[rest], before[rest])
        np.testing.assert_allclose(run.gradient, run.expected_gradient(), atol=1e-9)
        found, wanted = ((p - m) @ (0.5 * K @ (p - m)) for p, m in ((run.plus[at], run.minus[at]), arrays[1:3]))
        assert found == pytest.approx(wanted, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_part_stops_after_the_steps_that_it_has(dtype):
    run, at = Run("svc", 90, dtype=dtype), places(90, 60)
    steps, left = _core.smo_part(run.K, at, *run.arrays, run.groups, 1e-9, 7)
    assert steps == 7
    assert left > 1e-9
    np.testing.assert_allclose(run.gradient, run.expected_gradient(), atol=1e-9)


@pytest.mark.parametrize("dtype", FLOATS)
def test_rows_are_summed_in_double(dtype):
    for n, count in ((1, 1), (7, 3), (1030, 9), (1500, 1500)):
        K = np.random.default_rng(n).normal(size=(n, n)).astype(dtype)
        at, found = places(n, count), np.ones(n)
        change = np.random.default_rng(1).normal(size=count)
        _core.add_rows(K, at, change, found)
        np.testing.assert_allclose(found, 1.0 + change @ K[at].astype(np.float64), rtol=1e-11, atol=1e-11)


def test_points_that_are_not_there_are_refused():
    run = Run("svc", 10)
    for at in ([10], [-1], [3, 3], [4, 2]):
        with pytest.raises(ValueError, match="out of range, or not in ascending order"):
            _core.smo_part(run.K, np.array(at, np.int32), *run.arrays, 1, 1e-3, 10)
        with pytest.raises(ValueError, match="out of range, or not in ascending order"):
            _core.add_rows(run.K, np.array(at, np.int32), np.ones(len(at)), run.gradient)
    with pytest.raises(ValueError, match="K has the wrong shape"):
        _core.smo_part(run.K[:9, :9].copy(), np.array([1], np.int32), *run.arrays, 1, 1e-3, 10)
    with pytest.raises(ValueError, match="differ in length"):
        _core.add_rows(run.K, np.array([1], np.int32), np.ones(2), run.gradient)
