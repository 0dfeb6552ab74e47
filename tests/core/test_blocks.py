"""Blocks and products of every size, dense and symmetric, and all threads' parts put together."""

import numpy as np
import pytest
from scipy import sparse

from cases import each
from core.jobs import FLOATS, dense, job, operand, panel, points, rbf_job

STRIP = {np.float32: 512, np.float64: 256}
SIZES = (1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 321)


def rbf(x, z):
    wide = np.longdouble if x.dtype == np.float64 else np.float64
    d = x.astype(wide)[:, None] - z.astype(wide)[None]
    return np.exp(-0.5 * (d**2).sum(axis=2))


@pytest.mark.parametrize("dtype", FLOATS)
def test_dense_values(dtype):
    rng = np.random.default_rng(0)
    for n, m, d in ((1, 1, 1), (65, 63, 1), (9, 300, 3), (130, 17, 26)):
        x, z = points(rng, n, d, dtype), points(rng, m, d, dtype)
        exact = rbf(x, z)
        error = np.abs(dense(rbf_job(x, z), n, m, dtype) - exact)
        # The rounding of the exponent is its size times that of the squared distance.
        assert (error <= exact * (2 - 30 * np.log(exact)) * np.finfo(dtype).eps).all()


@each("dtype", FLOATS)
@each("n", SIZES)
def test_a_symmetric_matrix_equals_the_full_one_bit_for_bit(n, dtype):
    x = points(np.random.default_rng(n), n, 5, dtype)
    j = rbf_job(x, x)
    full = dense(j, n, n, dtype)
    half = np.full((n, n), np.nan, dtype)
    assert j.dense_symmetric(0, n, half)
    np.testing.assert_array_equal(half, full)
    np.testing.assert_array_equal(half, half.T)
    assert (np.diag(half) == 1).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("height", [1, 3, 8, 64, 100, 1000])
def test_symmetric_bands_of_any_height_make_the_whole(height, dtype):
    n = 201
    x = points(np.random.default_rng(1), n, 3, dtype)
    j = rbf_job(x, x)
    out = np.full((n, n), np.nan, dtype)
    for r in reversed(range(0, n, height)):
        assert j.dense_symmetric(r, min(r + height, n), out)
    np.testing.assert_array_equal(out, dense(j, n, n, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_any_block_is_a_block_of_the_whole(dtype):
    rng = np.random.default_rng(2)
    n, m = 70, 2 * STRIP[dtype] + 37
    x, z = points(rng, n, 4, dtype), points(rng, m, 4, dtype)
    j = rbf_job(x, z)
    whole = dense(j, n, m, dtype)
    p = panel(dtype)
    cuts = [(0, 0), (0, 1), (p - 1, p + 1), (p, m), (m - 1, m), (m, m), (3, STRIP[dtype] + 5), (1, m)]
    cuts += [tuple(sorted(rng.integers(0, m + 1, 2))) for _ in range(20)]
    for c0, c1 in cuts:
        r0, r1 = sorted(rng.integers(0, n + 1, 2))
        out = np.full((r1 - r0, c1 - c0), np.nan, dtype)
        assert j.dense(r0, r1, c0, c1, out)
        np.testing.assert_array_equal(out, whole[r0:r1, c0:c1])


@pytest.mark.parametrize("dtype", FLOATS)
def test_nothing_is_written_outside_the_block(dtype):
    x = points(np.random.default_rng(3), 40, 3, dtype)
    j = rbf_job(x, x)
    room = np.full((12, 21), np.nan, dtype)
    part = room[3:8]
    j.dense(5, 10, 7, 28, part)
    assert np.isfinite(part).all()
    assert np.isnan(np.delete(room, slice(3, 8), axis=0)).all()


VECTORS = [*range(1, 10), 12, 15, 16, 17, 31, 32, 33, 40]  # at once: register widths, and what is beside them


def assert_product(got, matrix, v):
    """Sums of a strip are kept in the matrix's type, sums of strips in double."""
    dtype = matrix.dtype.type
    exact = matrix.astype(np.longdouble) @ v.astype(np.longdouble)
    size = np.abs(matrix).astype(np.float64) @ np.abs(v).astype(np.float64)
    assert (np.abs(got - exact) <= STRIP[dtype] * np.finfo(dtype).eps * size + 1e-300).all()


@each("dtype", FLOATS)
@each("k", VECTORS)
def test_products_with_k_vectors(k, dtype):
    rng = np.random.default_rng(k)
    for n, m in ((1, 1), (1, 300), (65, 9), (37, STRIP[dtype] + 41)):
        x, z, v = points(rng, n, 3, dtype), points(rng, m, 3, dtype), points(rng, m, k, dtype)
        j = rbf_job(x, z)
        out = np.zeros((n, k))
        j.matvec(0, n, v, out)
        assert_product(out, dense(j, n, m, dtype), v)


@each("dtype", FLOATS)
@each("k", VECTORS)
def test_symmetric_products_with_k_vectors(k, dtype):
    rng = np.random.default_rng(k)
    n = 150 + k
    x, v = points(rng, n, 3, dtype), points(rng, n, k, dtype)
    j = rbf_job(x, x)
    out = np.zeros((n, k))
    j.matvec_symmetric(0, 1, v, out)
    assert_product(out, dense(j, n, n, dtype), v)


@each("dtype", FLOATS)
@each("n", SIZES)
def test_symmetric_products_of_every_size(n, dtype):
    rng = np.random.default_rng(n)
    x, v = points(rng, n, 2, dtype), points(rng, n, 3, dtype)
    j = rbf_job(x, x)
    matrix = dense(j, n, n, dtype)
    for step in (1, 2, 3, 7):
        out = np.zeros((n, 3))
        for first in range(step):
            j.matvec_symmetric(first, step, v, out)
        assert_product(out, matrix, v)


@pytest.mark.parametrize("dtype", FLOATS)
def test_products_add_to_what_is_there(dtype):
    rng = np.random.default_rng(4)
    x, v = points(rng, 30, 2, dtype), points(rng, 30, 2, dtype)
    j = rbf_job(x, x)
    for run in (lambda out: j.matvec(0, 30, v, out), lambda out: j.matvec_symmetric(0, 1, v, out)):
        once, twice = np.zeros((30, 2)), np.ones((30, 2))
        run(once)
        run(twice)
        np.testing.assert_allclose(twice, once + 1, rtol=1e-14)


@pytest.mark.parametrize("dtype", FLOATS)
def test_some_rows_of_a_product(dtype):
    rng = np.random.default_rng(5)
    x, z, v = points(rng, 90, 3, dtype), points(rng, 50, 3, dtype), points(rng, 50, 5, dtype)
    j = rbf_job(x, z)
    whole = np.zeros((90, 5))
    j.matvec(0, 90, v, whole)
    for r0, r1 in ((0, 0), (0, 1), (7, 80), (89, 90), (90, 90)):
        part = np.zeros((r1 - r0, 5))
        j.matvec(r0, r1, v, part)
        np.testing.assert_allclose(part, whole[r0:r1], rtol=50 * np.finfo(dtype).eps, atol=50 * np.finfo(dtype).eps)


def test_products_with_no_vector():
    x = points(np.random.default_rng(6), 20, 3, np.float64)
    j = rbf_job(x, x)
    for run in (lambda v, out: j.matvec(0, 20, v, out), lambda v, out: j.matvec_symmetric(0, 1, v, out)):
        run(np.empty((20, 0)), np.empty((20, 0)))
        out = np.zeros((20, 1))
        run(np.ones((20, 1)), out)  # the job still works
        assert_product(out, dense(j, 20, 20, np.float64), np.ones((20, 1)))


def test_sums_of_float32_values_are_kept_in_double():
    """2^16 terms of 2^10: a float32 sum would not see the one that is larger by 1."""
    m = 2**16
    ones = np.ones(m, np.float32)
    j = job(np.float32, 1, m, [("col", 0, 0), ("affine", 0, 0, 0, 0.0, 1024.0)], cols=[ones])
    v = np.ones((m, 1), np.float32)
    v[0] = 1 + 2**-10
    out = np.zeros((1, 1))
    j.matvec(0, 1, v, out)
    assert out[0, 0] == 1024.0 * m + 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_sparse_blocks_and_products(dtype):
    rng = np.random.default_rng(7)
    x = np.where(rng.random((77, 30)) < 0.1, points(rng, 77, 30, dtype), 0).astype(dtype)
    x[::5] = 0
    program = [("stat", 0, 0), ("exp", 0, 0, 0, 0.0, -0.5)]
    s = sparse.csr_array(x)
    j = job(dtype, 77, 77, program, [operand("sqdist", s, s)])
    whole = dense(j, 77, 77, dtype)
    np.testing.assert_allclose(whole, rbf(x, x), rtol=100 * np.finfo(dtype).eps)
    half = np.empty((77, 77), dtype)
    assert j.dense_symmetric(0, 77, half)
    np.testing.assert_array_equal(half, whole)
    v = points(rng, 77, 6, dtype)
    out = np.zeros((77, 6))
    j.matvec_symmetric(0, 2, v, out)
    j.matvec_symmetric(1, 2, v, out)
    assert_product(out, whole, v)


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_job_of_no_points_does_nothing(dtype):
    x = points(np.random.default_rng(8), 3, 2, dtype)
    for n, m in ((0, 3), (3, 0), (0, 0)):
        j = job(dtype, n, m, [("stat", 0, 0)], [operand("dot", x, x)])
        assert j.dense(0, n, 0, m, np.empty((n, m), dtype))
        j.matvec(0, n, np.empty((m, 2), dtype), np.zeros((n, 2)))


J = rbf_job(np.ones((6, 2)), np.ones((6, 2)))


@each(
    ("call", "arguments", "error"),
    [
        ("dense", (0, 6, 0, 6, np.empty((6, 5))), ValueError),
        ("dense", (0, 6, 0, 6, np.empty(36)), ValueError),
        ("dense", (0, 6, 0, 6, np.empty((6, 6), np.float32)), TypeError),
        ("dense", (0, 6, 0, 6, np.empty((6, 6), order="F")), TypeError),
        ("dense", (0, 7, 0, 6, np.empty((7, 6))), ValueError),
        ("dense", (-1, 6, 0, 6, np.empty((7, 6))), ValueError),
        ("dense", (0, 6, 2, 8, np.empty((6, 6))), ValueError),
        ("dense", (4, 2, 0, 6, np.empty((0, 6))), ValueError),
        ("dense_symmetric", (0, 6, np.empty((6, 7))), ValueError),
        ("dense_symmetric", (0, 7, np.empty((6, 6))), ValueError),
        ("dense_symmetric", (-1, 6, np.empty((6, 6))), ValueError),
        ("matvec", (0, 6, np.ones((5, 1)), np.zeros((6, 1))), ValueError),
        ("matvec", (0, 6, np.ones((6, 1)), np.zeros((6, 2))), ValueError),
        ("matvec", (0, 6, np.ones(6), np.zeros(6)), ValueError),
        ("matvec", (2, 9, np.ones((6, 1)), np.zeros((7, 1))), ValueError),
        ("matvec", (0, 6, np.ones((6, 1), np.float32), np.zeros((6, 1))), TypeError),
        ("matvec_symmetric", (0, 1, np.ones((6, 1)), np.zeros((5, 1))), ValueError),
        ("matvec_symmetric", (0, 0, np.ones((6, 1)), np.zeros((6, 1))), ValueError),
        ("matvec_symmetric", (-1, 1, np.ones((6, 1)), np.zeros((6, 1))), ValueError),
        ("matvec_symmetric", (5, 2**62, np.ones((6, 1)), np.zeros((6, 1))), ValueError),
    ],
)
def test_calls_outside_the_job_are_refused(call, arguments, error):
    with pytest.raises(error):
        getattr(J, call)(*arguments)


def test_symmetric_calls_on_two_sets_of_points_are_refused():
    j = rbf_job(np.ones((6, 2)), np.ones((5, 2)))
    with pytest.raises(ValueError, match="shape"):
        j.dense_symmetric(0, 6, np.empty((6, 6)))
    with pytest.raises(ValueError, match="shape"):
        j.matvec_symmetric(0, 1, np.ones((5, 1)), np.zeros((6, 1)))
