"""Sparse points by their nonzeros: what is taken agrees with the whole, and every distance with an exact one."""

import numpy as np
import pytest
from scipy import sparse

from mercer.kernels import RBF, Cosine, Linear, Matern, Polynomial
from mercer.points import Comparison, Points

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
