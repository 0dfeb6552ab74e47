"""Points about a common centre: shared by what is taken from them, to the last bit."""

import numpy as np
import pytest

from mercer.points import Points
from mercer.points.centred import Centred, padded

FLOATS = (np.float32, np.float64)


def cloud(n, d, dtype, offset, seed=0):
    return (np.random.default_rng(seed).standard_normal((n, d)) + offset).astype(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_centre_is_amid_points_that_are_far_from_zero(dtype):
    X = Points(cloud(5_000, 7, dtype, 100.0))
    assert np.abs(X.centre - 100).max() < 0.2
    assert X.centre.dtype == dtype
    assert X.centred(X.centre).radius < 60 < 7 * 90**2 < X.centred(None).radius


def test_points_about_zero_are_left_where_they_are():
    X = Points(cloud(500, 7, np.float64, 0.0))
    assert X.centre is None
    assert X.centred(None).rows is X.vectors


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rows", [slice(3, 40), np.array([5, 5, 2, 99]), np.arange(50)[::-3]])
def test_what_is_taken_has_the_rows_and_norms_of_the_whole(rows, dtype):
    X = Points(cloud(100, 9, dtype, 10.0))
    part = X.take(rows)
    assert part.centre is X.centre
    whole, cut = X.centred(X.centre), part.centred(X.centre)
    np.testing.assert_array_equal(cut.rows, whole.rows[rows])
    assert cut.rows.flags.c_contiguous
    np.testing.assert_array_equal(cut.norms[: len(part)], whole.norms[:100][rows])
    fresh = Centred.about(None, np.ascontiguousarray(whole.rows[rows]))
    np.testing.assert_array_equal(cut.norms, fresh.norms)
    np.testing.assert_array_equal(cut.packed, fresh.packed)
    assert len(cut.norms) == padded(len(part), np.dtype(dtype))
    assert part.take(slice(1, 3)).centre is X.centre


def test_the_last_centre_asked_for_is_remembered():
    X = Points(cloud(50, 5, np.float64, 10.0))
    first = X.centred(X.centre)
    assert X.centred(X.centre) is first
    other = X.centred(None)
    assert other is not first
    assert X.centred(None) is other
