"""Dense points about a common centre and sparse ones by their nonzeros: parts agree with the whole to the last bit."""

import numpy as np
import pytest
from scipy import sparse

from mercer.kernels import RBF, Cauchy, Cosine, Linear, Matern, Polynomial
from mercer.points import Comparison, Points
from mercer.points.sets.operands import Centred, padded

FLOATS = (np.float32, np.float64)


def thin(n, d=1500, seed=0, dtype=np.float64, density=0.01):
    return sparse.random_array((n, d), density=density, rng=np.random.default_rng(seed), format="csr").astype(dtype)


def square_distances(x, z):
    x, z = (v.toarray().astype(np.longdouble) for v in (x, z))
    return np.stack([((row - z) ** 2).sum(axis=1) for row in x])


KERNELS = [RBF(1.5), RBF(0.01), Matern(0.5, 1.5), Linear(), Polynomial(3), Cosine(), RBF(1.5) + Linear()]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_parts_agree_with_the_whole_to_the_last_bit(kernel, dtype):
    """Whether the pairs are many or few, and whether the points come as slices, as indices or swapped."""
    X, Z = Points(thin(300, dtype=dtype)), Points(thin(400, seed=1, dtype=dtype))
    comparison = Comparison(kernel.of, X, Z)
    whole = comparison.dense()
    rng = np.random.default_rng(2)
    for rows, cols in ((3, 5), (120, 380)):
        some, others = rng.permutation(300)[:rows], rng.permutation(400)[:cols]
        np.testing.assert_array_equal(comparison.block(some, others), whole[np.ix_(some, others)])
    np.testing.assert_array_equal(comparison.block(slice(130, 290), slice(3, 395)), whole[130:290, 3:395])
    np.testing.assert_array_equal(Comparison(kernel.of, Z, X).dense(), whole.T)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kernel", [k for k in KERNELS if k != Cosine()], ids=str)  # lengths are summed by NumPy
def test_one_dense_side_changes_nothing(kernel, dtype):
    x, z = thin(250, dtype=dtype), thin(300, seed=1, dtype=dtype)
    wanted = Comparison(kernel.of, Points(x), Points(z)).dense()
    np.testing.assert_array_equal(Comparison(kernel.of, Points(x), Points(z.toarray())).dense(), wanted)
    np.testing.assert_array_equal(Comparison(kernel.of, Points(x.toarray()), Points(z)).dense(), wanted)


@pytest.mark.parametrize("scale", [30.0, 1.0, 0.02])
@pytest.mark.parametrize("dtype", FLOATS)
def test_distances_of_near_and_far_points(dtype, scale):
    """Half of the points have a twin that differs from them in the fifth digit, and one has an equal."""
    x = thin(300, dtype=dtype)
    rng = np.random.default_rng(3)
    twins = x.copy()
    twins.data *= 1 + 1e-5 * rng.standard_normal(x.nnz).astype(dtype)
    x = sparse.vstack([x, twins, x[:1]], format="csr")
    rows = np.r_[:20, 300:320, 600]  # some of each kind, with all others
    exact = square_distances(x[rows], x)
    promised = {np.float32: 1e-5, np.float64: 1e-12}[dtype]
    for kernel, value in (
        (RBF(scale), np.exp(-exact / (2 * scale**2))),
        (Matern(0.5, scale), np.exp(-np.sqrt(exact) / scale)),
    ):
        got = Comparison(kernel.of, Points(x)).dense()
        assert (got[0, -1], got[-1, 0]) == (1, 1)
        assert (np.diag(got) == 1).all()
        large = value > np.finfo(dtype).tiny
        np.testing.assert_allclose(got[rows][large], value[large].astype(float), rtol=promised)


def test_distances_by_products_alone_where_the_bound_allows():
    X = Points(thin(300))
    assert Comparison(RBF(1.5).of, X).inexact
    assert not Comparison(RBF(1e-3).of, X).inexact
    assert not Comparison(Matern(0.5, 1.5).of, X).inexact


def test_squares_that_overflow():
    """Differences are scaled before they are squared where the squares would leave the range."""
    x = thin(250)
    got = Comparison(RBF(1e200).of, Points(x * 1e200)).dense()
    np.testing.assert_allclose(got, Comparison(RBF(1.0).of, Points(x)).dense(), rtol=1e-12)


def test_far_more_features_than_nonzeros():
    """Lists by column would be far larger than the points; the values are those of the columns that occur."""
    x = thin(250, d=400)
    spread = np.sort(np.random.default_rng(4).choice(3_000_000, 400, replace=False))
    wide = sparse.csr_array((x.data, spread[x.indices], x.indptr), shape=(250, 3_000_000))
    for kernel in (RBF(1.5), Linear()):
        np.testing.assert_array_equal(
            Comparison(kernel.of, Points(wide)).dense(), Comparison(kernel.of, Points(x)).dense()
        )


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
    fresh = Centred(np.ascontiguousarray(whole.rows[rows]))
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
