"""Points about a common centre: shared by what is taken from them, to the last bit."""

import numpy as np
import pytest

from mercer.kernels import RBF, Cauchy, Linear, Polynomial
from mercer.points import Comparison, Points
from mercer.points.sets.operands import Centred, padded

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
    fresh = Centred.about(None, np.ascontiguousarray(whole.rows[rows]))
    for thin in (False, True):
        np.testing.assert_array_equal(cut.norms(thin)[: len(part)], whole.norms(thin)[:100][rows])
        np.testing.assert_array_equal(cut.norms(thin), fresh.norms(thin))
        assert len(cut.norms(thin)) == padded(len(part), np.dtype(dtype))
    np.testing.assert_array_equal(cut.packed, fresh.packed)
    assert part.take(slice(1, 3)).centre is X.centre


def test_the_last_centre_asked_for_is_remembered():
    X = Points(cloud(50, 5, np.float64, 10.0))
    first = X.centred(X.centre)
    assert X.centred(X.centre) is first
    other = X.centred(None)
    assert other is not first
    assert X.centred(None) is other


def codes(n, dtype, seed=0, standardised=True):
    """One-hot codes of a few categories each, and two columns of other numbers."""
    rng = np.random.default_rng(seed)
    parts = [np.eye(k)[rng.choice(k, n, p=np.r_[0.8, np.full(k - 1, 0.2 / (k - 1))])] for k in (5, 8, 10)]
    X = np.column_stack([*parts, rng.standard_normal((n, 2))])
    return ((X - X.mean(axis=0)) / X.std(axis=0) if standardised else X).astype(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("standardised", [False, True])
def test_columns_with_a_frequent_value_become_thin_about_it(standardised, dtype):
    X = Points(codes(3_000, dtype, standardised=standardised))
    about = X.centred(X.centre)
    assert about.thin is not None
    assert about.thin.nonzeros == np.count_nonzero(about.rows) < 0.35 * about.rows.size
    assert about.terms == np.count_nonzero(about.rows, axis=1).max()
    part = X.take(np.array([5, 2, 2])).centred(X.centre)
    assert part.thin.nonzeros == np.count_nonzero(part.rows)


def test_full_rows_and_narrow_ones_are_not_thin():
    for X in (cloud(500, 30, np.float64, 0.0), cloud(500, 30, np.float64, 5.0), np.eye(10)[np.arange(500) % 10]):
        points = Points(X)
        assert points.centred(points.centre).thin is None


def test_a_sample_that_misleads_is_not_believed():
    X = cloud(512 * 40, 20, np.float64, 0.0)
    X[::80] = 0.0  # what a sample of evenly spaced rows sees
    assert Points(X).centred(None).thin is None


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kernel", [RBF(3.0), Linear(), RBF(4.0) + Polynomial(2), Cauchy(3.0)], ids=repr)
def test_values_of_thin_rows_are_those_of_full_ones(kernel, dtype):
    X, Z = codes(300, dtype), codes(200, dtype, seed=1)
    Z[7] = X[11]
    exact = kernel(X.astype(float)[:50], Z.astype(float)[:50])
    bound = 1e-5 if dtype is np.float32 else 1e-12
    left, right = Points(X), Points(Z)
    K = Comparison(kernel.of, left, right).dense()
    np.testing.assert_allclose(K[:50, :50], exact, rtol=bound, atol=bound * np.abs(exact).max())
    np.testing.assert_array_equal(Comparison(kernel.of, right, left).dense().T, K)
    np.testing.assert_array_equal(Comparison(kernel.of, left, right.take(slice(3, 190))).dense(), K[:, 3:190])
    if kernel == RBF(3.0):
        assert K[11, 7] == 1
    whole = Comparison(kernel.of, left).dense()
    assert (whole == whole.T).all()
