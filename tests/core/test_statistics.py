"""Sums over coordinates, dense and sparse, against direct sums in a wider type."""

import numpy as np
import pytest
from scipy import sparse

from cases import each
from core.jobs import FLOATS, dense, job, operand, packed, panel, points, stat_job
from mercer import _core

WIDER = {np.float32: np.float64, np.float64: np.longdouble}
STRIP = {np.float32: 512, np.float64: 256}  # columns evaluated at a time
CHUNK = 16  # coordinates summed at a time


def terms(kind, x, z, weight=None):
    """The terms of the sum for every pair: (n, m, d)."""
    wide = WIDER[x.dtype.type]
    a, b = x.astype(wide)[:, None, :], z.astype(wide)[None, :, :]
    w = wide(1) if weight is None else weight.astype(wide)
    if kind == "dot":
        return a * b
    if kind == "sqdist":
        return ((a - b) * w) ** 2
    if kind == "l1":
        return np.abs((a - b) * w)
    if kind == "sqsum":
        return (a + b) ** 2
    if kind == "minimum":
        return np.minimum(a, b)
    total = a + b
    return np.where(total > 0, (a - b) ** 2 / np.where(total > 0, total, 1), 0)


def assert_close(got, exact):
    """Rounding may move a sum by a few units for each term of a chunk and for each chunk."""
    d = exact.shape[2]
    unit = np.finfo(got.dtype).eps / 2
    allowed = (8 + min(d, CHUNK) + d / CHUNK) * unit * np.abs(exact).sum(axis=2)
    assert (np.abs(got - exact.sum(axis=2)) <= allowed).all()


def sample(kind, rng, n, d, dtype):
    x = points(rng, n, d, dtype)
    return np.abs(x) * (rng.random((n, d)) < 0.7).astype(dtype) if kind == "chi2" else x


def sizes(dtype):
    p, s = panel(dtype), STRIP[dtype]
    yield from ((n, m, d) for n in (1, 2, 3, 5, 7, 8, 9) for m, d in ((1, 1), (p + 1, 3)))
    yield from ((n, 10, 5) for n in (63, 64, 65))
    yield from ((3, m, 4) for m in (1, 2, p - 1, p, p + 1, 2 * p - 1, s - 1, s, s + 1, s + p + 1, 2 * s + 3))
    yield from ((4, 5, d) for d in (1, 2, 15, 16, 17, 31, 32, 33, 100, 257))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", _core.STATS)
def test_dense_statistics_of_every_size(kind, dtype):
    rng = np.random.default_rng(0)
    for n, m, d in sizes(dtype):
        x, z = sample(kind, rng, n, d, dtype), sample(kind, rng, m, d, dtype)
        assert_close(dense(stat_job(kind, x, z), n, m, dtype), terms(kind, x, z))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", ["sqdist", "l1"])
def test_one_weight_per_coordinate(kind, dtype):
    rng = np.random.default_rng(1)
    for n, m, d in ((1, 1, 1), (9, 37, 5), (65, 130, 17), (3, 300, 40)):
        x, z, w = points(rng, n, d, dtype), points(rng, m, d, dtype), np.exp(points(rng, 1, d, dtype)[0])
        assert_close(dense(stat_job(kind, x, z, w), n, m, dtype), terms(kind, x, z, w))
        both = [sparse.csr_array(v) for v in (x, z)]
        assert_close(dense(stat_job(kind, *both, w), n, m, dtype), terms(kind, x, z, w))


def thinned(rng, n, d, dtype, density):
    """A sparse matrix with some empty rows, and the same as an array."""
    x = np.where(rng.random((n, d)) < density, np.abs(points(rng, n, d, dtype)), 0).astype(dtype)
    x[rng.random(n) < 0.3] = 0
    return sparse.csr_array(x), x


@each("dtype", FLOATS)
@each("density", [0.0, 0.02, 0.5, 1.0])
@each("kind", _core.STATS)
def test_sparse_statistics_with_empty_rows(kind, density, dtype):
    rng = np.random.default_rng(2)
    for n, m, d in ((1, 1, 1), (1, 40, 3), (9, 1, 200), (17, 65, 50), (3, STRIP[dtype] + 5, 7)):
        (xs, x), (zs, z) = thinned(rng, n, d, dtype, density), thinned(rng, m, d, dtype, density)
        assert_close(dense(stat_job(kind, xs, zs), n, m, dtype), terms(kind, x, z))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", _core.STATS)
def test_the_statistic_of_two_points_does_not_depend_on_their_place(kind, dtype):
    """Bit for bit: whatever strip and panel a pair falls into, and in whichever order it is given."""
    rng = np.random.default_rng(3)
    x = np.abs(points(rng, 70, 21, dtype))
    whole = dense(stat_job(kind, x, x), 70, 70, dtype)
    np.testing.assert_array_equal(whole, whole.T)
    some = rng.permutation(70)[:33]
    np.testing.assert_array_equal(dense(stat_job(kind, x[some], x), 33, 70, dtype), whole[some])
    np.testing.assert_array_equal(dense(stat_job(kind, x, x[some]), 70, 33, dtype), whole[:, some])
    thin = sparse.csr_array(np.where(rng.random(x.shape) < 0.4, x, 0).astype(dtype))
    whole = dense(stat_job(kind, thin, thin), 70, 70, dtype)
    np.testing.assert_array_equal(whole, whole.T)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", ["sqdist", "l1", "chi2"])
def test_equal_points_are_at_distance_zero_exactly(kind, dtype):
    rng = np.random.default_rng(4)
    x = np.abs(points(rng, 40, 30, dtype)) * np.logspace(-5, 6, 30).astype(dtype)
    weights = [None] if kind == "chi2" else [None, np.logspace(-3, 3, 30).astype(dtype)]
    for w in weights:
        assert (np.diag(dense(stat_job(kind, x, x, w), 40, 40, dtype)) == 0).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_differences_are_formed_before_they_are_squared(dtype):
    """Far from the origin the difference of squares would cancel; the square of differences does not."""
    rng = np.random.default_rng(5)
    x = (points(rng, 50, 8, dtype) + dtype(1e6)).astype(dtype)
    assert_close(dense(stat_job("sqdist", x, x), 50, 50, dtype), terms("sqdist", x, x))
    assert_close(dense(stat_job("l1", x, x), 50, 50, dtype), terms("l1", x, x))


@pytest.mark.parametrize("dtype", FLOATS)
def test_denormal_coordinates_are_told_apart(dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    x = np.array([[0.0], [tiny], [2 * tiny]], dtype)
    got = dense(stat_job("l1", x, x), 3, 3, dtype)
    np.testing.assert_array_equal(got, np.abs(x - x.T))
    assert (got > 0).sum() == 6


@pytest.mark.parametrize("dtype", FLOATS)
def test_chi_squared_neither_overflows_nor_divides_by_zero(dtype):
    big = np.finfo(dtype).max / 4
    x = np.array([[0.0, 0.0], [big, 0.0], [0.0, big]], dtype)
    got = dense(stat_job("chi2", x, x), 3, 3, dtype)
    np.testing.assert_allclose(got, [[0, big, big], [big, 0, 2 * big], [big, 2 * big, 0]], rtol=1e-6)


@each("dtype", FLOATS)
@each("m", [1, 15, 16, 17, 31, 32, 33, 64, 100])
@each("d", [1, 3])
def test_packing_pads_the_last_panel_with_zeros(m, d, dtype):
    z = np.arange(1, m * d + 1, dtype=dtype).reshape(m, d)
    p = panel(dtype)
    panels = packed(z).reshape(-1, d, p)
    rows = panels.transpose(0, 2, 1).reshape(-1, d)
    np.testing.assert_array_equal(rows[:m], z)
    assert (rows[m:] == 0).all()


def test_packing_refuses_a_target_of_another_size():
    z = np.ones((5, 3))
    with pytest.raises(ValueError, match="wrong size"):
        _core.pack(z, np.empty(15))
    with pytest.raises(TypeError):
        _core.pack(z, np.empty(panel(np.float64) * 3, np.float32))


def test_arrays_that_may_not_be_written_can_be_read():
    x = np.random.default_rng(6).standard_normal((5, 3))
    z = packed(x)
    x.flags.writeable = z.flags.writeable = False
    j = job(np.float64, 5, 5, [("stat", 0, 0)], [(0, 3, x, z, None, (0.0, 0.0), None)])
    np.testing.assert_allclose(dense(j, 5, 5, np.float64), x @ x.T)
    with pytest.raises(TypeError):
        j.dense(0, 5, 0, 3, x)


@pytest.mark.parametrize("kind", ["sqdist", "l1"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "d", "m"), [(1, 1, 1), (9, 7, 70), (13, 40, 33)])
def test_sums_in_the_window_are_those_of_double_precision(n, d, m, weighted, kind):
    rng = np.random.default_rng(9)
    x, z = points(rng, n, d, np.float32), points(rng, m, d, np.float32)
    weight = rng.uniform(0.5, 2, d).astype(np.float32) if weighted else None
    plain = dense(job(np.float32, n, m, [("stat", 0, 0)], [operand(kind, x, z, weight)]), n, m, np.float32)
    low, high = (float(v) for v in np.quantile(plain, [0.3, 0.8]))
    j = job(np.float32, n, m, [("stat", 0, 0)], [operand(kind, x, z, weight, (low, high))])
    refined = dense(j, n, m, np.float32)
    t = (x.astype(float)[:, None] - z.astype(float)) * (1.0 if weight is None else weight.astype(float))
    exact = (np.abs(t) if kind == "l1" else t**2).sum(axis=2).astype(np.float32)
    inside = (plain > np.float32(low)) & (plain < np.float32(high))
    np.testing.assert_array_max_ulp(refined[inside], exact[inside], 1)
    np.testing.assert_array_equal(refined[~inside], plain[~inside])
