"""Inner products and distances of sparse rows, with lists by column and without: the laws of all others."""

import numpy as np
import pytest
from scipy import sparse

from core.jobs import FLOATS, STAT, dense, job, points, rows_of
from core.test_statistics import STRIP, assert_close, terms
from mercer import _core
from mercer.points.comparison import units_of_error


def thinned(rng, n, d, dtype, density=0.1):
    """Rows with few nonzeros, some with none at all."""
    x = np.where(rng.random((n, d)) < density, points(rng, n, d, dtype), 0).astype(dtype)
    x[rng.random(n) < 0.1] = 0
    return x


def norms(rows, n):
    out = np.empty(n)
    rows.norms(out)
    return out


def operands(kinds, x, z, listed=True, near=0.0):
    left, right = rows_of(sparse.csr_array(x)), rows_of(sparse.csr_array(z))
    if listed:
        right.list_columns()
    squares = norms(left, len(x)), norms(right, len(z))
    four = (*squares, float(max(s.max() for s in squares)), near)
    return [
        (STAT[kind], x.shape[1], left, right, None, (0.0, 0.0), four if kind == "sqdist" else None) for kind in kinds
    ]


def values(kind, x, z, **how):
    j = job(x.dtype, len(x), len(z), [("stat", 0, 0)], operands([kind], x, z, **how))
    return dense(j, len(x), len(z), x.dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("listed", [True, False])
def test_inner_products_of_every_size(listed, dtype):
    rng = np.random.default_rng(0)
    for n, m, d in ((1, 1, 1), (1, 40, 3), (9, 1, 200), (130, 65, 50), (3, STRIP[dtype] + 5, 7)):
        x, z = thinned(rng, n, d, dtype), thinned(rng, m, d, dtype, 0.3)
        assert_close(values("dot", x, z, listed=listed), terms("dot", x, z))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("density", [0.0, 0.1, 0.5, 1.0])
def test_distances_are_off_by_units_of_the_largest_norm_in_double(density, dtype):
    rng = np.random.default_rng(1)
    for n, m, d in ((1, 1, 1), (9, 70, 40), (70, 33, 123)):
        x, z = thinned(rng, n, d, dtype, density), thinned(rng, m, d, dtype)
        exact = terms("sqdist", x.astype(np.float64), z.astype(np.float64)).sum(axis=2)
        largest = max(float((v.astype(float) ** 2).sum(axis=1).max()) for v in (x, z))
        allowed = float(np.finfo(float).eps) * units_of_error(d, d) * largest + np.finfo(dtype).eps * exact
        assert (np.abs(values("sqdist", x, z) - exact) <= allowed).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_near_points_are_compared_by_differences(dtype):
    """Every distance is then good to a few units of itself, however near the points are and far from the origin."""
    rng = np.random.default_rng(2)
    x = thinned(rng, 60, 80, dtype, 0.3)
    z = np.where(x != 0, x * (1 + 1e-6 * rng.standard_normal(x.shape)), 0).astype(dtype)
    exact = terms("sqdist", x.astype(np.float64), z.astype(np.float64)).sum(axis=2)
    allowed = 2 * units_of_error(80, 80) * np.finfo(float).eps * exact + np.finfo(dtype).eps * exact
    assert (np.abs(values("sqdist", x, z, near=0.5) - exact) <= allowed).all()
    if dtype == np.float64:  # what it is for
        assert (np.abs(values("sqdist", x, z) - exact) > allowed).any()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("near", [0.0, 0.5])
@pytest.mark.parametrize("kind", ["dot", "sqdist"])
def test_the_value_of_two_points_does_not_depend_on_their_place_or_order(kind, near, dtype):
    rng = np.random.default_rng(3)
    n = 2 * STRIP[dtype] + 70
    x = thinned(rng, n, 50, dtype)
    x[5::7] = points(rng, len(x[5::7]), 50, dtype)
    whole = values(kind, x, x, near=near)
    np.testing.assert_array_equal(whole, whole.T)
    np.testing.assert_array_equal(values(kind, x, x, near=near, listed=False), whole)
    some = rng.permutation(n)[:33]
    np.testing.assert_array_equal(values(kind, x[some], x, near=near), whole[some])
    np.testing.assert_array_equal(values(kind, x, x[some], near=near), whole[:, some])
    j = job(dtype, n, n, [("stat", 0, 0)], operands([kind], x, x, near=near))
    for r0, r1, c0, c1 in ((0, 1, n - 1, n), (7, 150, 33, 400), (130, 131, 0, n), (n - 9, n, 5, 6)):
        part = np.empty((r1 - r0, c1 - c0), dtype)
        j.dense(r0, r1, c0, c1, part)
        np.testing.assert_array_equal(part, whole[r0:r1, c0:c1])
    half = np.empty((n, n), dtype)
    assert j.dense_symmetric(0, n, half)
    np.testing.assert_array_equal(half, whole)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("near", [0.0, 0.5])
def test_equal_points_are_at_distance_zero_wherever_they_stand(near, dtype):
    rng = np.random.default_rng(4)
    x = thinned(rng, 90, 300, dtype, 0.4) * dtype(37)
    x[1::2] = x[::2]
    pair = np.arange(90) // 2
    assert (values("sqdist", x, x, near=near)[pair[:, None] == pair[None]] == 0).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_one_product_serves_inner_products_and_distances(dtype):
    rng = np.random.default_rng(5)
    x, z = thinned(rng, 150, 40, dtype), thinned(rng, STRIP[dtype] + 9, 40, dtype)
    for kinds in (["dot", "sqdist"], ["sqdist", "dot"]):
        both = operands(kinds, x, z)
        for result, kind in enumerate(kinds):
            j = job(dtype, len(x), len(z), [("stat", 0, 0), ("stat", 1, 1)], both, result=result)
            np.testing.assert_array_equal(dense(j, len(x), len(z), dtype), values(kind, x, z))


@pytest.mark.parametrize("dtype", FLOATS)
def test_products_with_vectors(dtype):
    rng = np.random.default_rng(6)
    x, v = thinned(rng, 700, 40, dtype), points(rng, 700, 2, dtype)
    j = job(dtype, 700, 700, [("stat", 0, 0)], operands(["dot"], x, x))
    wanted = x.astype(float) @ (x.astype(float).T @ v)
    out = np.zeros((700, 2))
    j.matvec(0, 700, v, out)
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-3)
    out[:] = 0
    for first in range(2):
        j.matvec_symmetric(first, 2, v, out)
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-3)


def test_operands_that_do_not_fit_are_refused():
    x = np.eye(4, 3)
    (kind, d, left, right, weight, window, four), *_ = operands(["sqdist"], x, x)
    single = rows_of(sparse.csr_array(x.astype(np.float32)))
    for bad in (
        (kind, 4, left, right, weight, window, four),
        (kind, d, single, right, weight, window, four),
        (kind, d, left, right, weight, window, four[:3]),
        (kind, d, left, right, np.ones(3), window, four),
        (STAT["dot"], d, left, right, weight, window, four),
        (kind, d, left, right, weight, window, (four[0][:3], *four[1:])),
        (kind, d, left, right, weight, window, (four[0], four[1][:3], *four[2:])),
    ):
        with pytest.raises((ValueError, RuntimeError)):
            job(np.float64, 4, 4, [("stat", 0, 0)], [bad])
    for n, m in ((5, 4), (4, 5)):
        with pytest.raises(ValueError, match="malformed operand"):
            job(np.float64, n, m, [("stat", 0, 0)], [(kind, d, left, right, weight, window, None)])
    with pytest.raises(ValueError, match="wrong size"):
        _core.RowsFloat64(x).norms(np.empty(3))
