"""Inner products of points rounded to 16-bit whole numbers."""

import numpy as np
import pytest

from cases import each
from core import jobs
from mercer import _core

needs_vnni = pytest.mark.skipif(not _core.has_coarse(), reason="the processor, or MERCER_ISA, lacks AVX-512 VNNI")
LONGEST = 46340


def operand(q, units, z=None, z_units=None):
    """Coarse points of whole numbers q (n, even) against others, or themselves."""
    z, z_units = (q, units) if z is None else (z, z_units)
    p = jobs.panel(np.float32)
    ends = np.full(-(-len(z) // p) * p, np.nan, np.float32)
    ends[: len(z)] = z_units
    pairs = q.view(np.float32)
    return jobs.STAT["dot"], pairs.shape[1], pairs, jobs.packed(z.view(np.float32)), None, (0.0, 0.0), (units, ends)


def coarse_job(q, units, program=(("stat", 0, 0),), z=None, z_units=None):
    m = len(q if z is None else z)
    return jobs.job(np.float32, len(q), m, program, [operand(q, units, z, z_units)])


def rows(rng, n, d):
    """Rows of every kind, none longer than it may be."""
    x = rng.standard_normal((n, d)) * rng.exponential(size=(n, 1))
    x[::5] = 0
    x[::5, rng.integers(d)] = 1  # one coordinate
    x[1::5] = 1  # constant
    x[2::5] *= -1
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    x *= np.minimum(32767 / np.abs(x).max(axis=1), LONGEST - np.sqrt(d))[:, None]
    q = np.zeros((n, d + d % 2), np.int16)
    q[:, :d] = np.rint(x)
    q[3::7] = 0
    return q, rng.uniform(0.5, 2.0, n).astype(np.float32)


@needs_vnni
@each("d", [1, 2, 16, 17, 33, 40, 121, 300])
@each(("n", "m"), [(1, 1), (7, 33), (15, 100), (130, 61)])
def test_products_are_exact_but_for_one_rounding_each(n, m, d):
    rng = np.random.default_rng(n + d)
    (q, a), (z, b) = rows(rng, n, d), rows(rng, m, d)
    found = jobs.dense(coarse_job(q, a, z=z, z_units=b), n, m, np.float32)
    sums = q.astype(np.int64) @ z.T.astype(np.int64)
    assert np.abs(sums).max() < 2**31
    expected = sums.astype(np.float64) * a[:, None].astype(np.float64) * b
    assert np.allclose(found, expected, rtol=3e-7, atol=0)


@needs_vnni
@pytest.mark.parametrize("d", [2, 40, 300])
def test_the_longest_rows_do_not_overflow(d):
    q = np.zeros((4, d), np.int16)
    q[0, 0] = 32767
    q[1, 1] = -32767
    q[2] = np.floor(min(LONGEST / np.sqrt(d), 32767))
    q[3] = -q[2]
    found = jobs.dense(coarse_job(q, np.ones(4, np.float32)), 4, 4, np.float32)
    assert np.allclose(found, q.astype(np.float64) @ q.T.astype(np.float64), rtol=1e-7, atol=0)


@needs_vnni
@each("power", [-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 31])
@each(("factor", "shift"), [(1.0, 0.0), (0.5, 1.25), (-2.0, 0.0)])
def test_a_power_that_follows_is_taken_at_once(power, factor, shift):
    rng = np.random.default_rng(power + 1)
    q, units = rows(rng, 45, 20)
    units = units / np.float32(LONGEST)
    values = jobs.dense(coarse_job(q, units), 45, 45, np.float32).astype(np.float64)
    with np.errstate(divide="ignore"):
        expected = (factor * values + shift) ** power
    program = [("stat", 0, 0), ("powi", 0, 0, 0, power, factor, shift)]
    found = jobs.dense(coarse_job(q, units, program), 45, 45, np.float32)
    good = np.abs(factor * values + shift) > 1e-2  # elsewhere the sum cancels
    assert good.mean() > 0.1
    assert np.allclose(found[good], expected[good], rtol=2e-5, atol=1e-30)


@needs_vnni
def test_a_program_may_read_the_products_twice():
    q, units = rows(np.random.default_rng(0), 40, 18)
    units = units / np.float32(LONGEST)
    t = jobs.dense(coarse_job(q, units), 40, 40, np.float32).astype(np.float64)
    program = [("stat", 0, 0), ("powi", 1, 0, 0, 2), ("add", 0, 0, 1, 0.0, 3.0, 1.0)]
    found = jobs.dense(coarse_job(q, units, program), 40, 40, np.float32)
    assert np.allclose(found, 3 * t + 1 + t**2, atol=1e-5)


@needs_vnni
@pytest.mark.parametrize("n", [1, 31, 129, 1000])
@pytest.mark.parametrize("k", [1, 3, 20])
def test_symmetric_products(n, k):
    rng = np.random.default_rng(n)
    q, units = rows(rng, n, 22)
    job = coarse_job(q, units / np.float32(LONGEST), [("stat", 0, 0), ("powi", 0, 0, 0, 4, 0.3, 0.7)])
    K = np.zeros((n, n), np.float32)
    assert job.dense_symmetric(0, n, K)
    assert np.array_equal(K, K.T)
    assert np.allclose(K, jobs.dense(job, n, n, np.float32), rtol=2e-6, atol=1e-7)
    v = rng.standard_normal((n, k)).astype(np.float32)
    out = np.zeros((n, k))
    for first in range(2):
        job.matvec_symmetric(first, 2, v, out)
    size = np.abs(K).astype(np.float64) @ np.abs(v)
    assert (np.abs(out - K.astype(np.float64) @ v) <= 2e-6 * size).all()


@needs_vnni
def test_malformed_operands_are_refused():
    q, units = rows(np.random.default_rng(0), 40, 18)
    good = operand(q, units)
    short = (*good[:6], (units[:-1], good[6][1]))
    for bad in [(*good[:6], (units,)), (*good[:6], (units, units)), short, (jobs.STAT["l1"], *good[1:])]:
        with pytest.raises(ValueError, match=r"operand|too short"):
            jobs.job(np.float32, 40, 40, [("stat", 0, 0)], [bad])
    x = q.astype(np.float64)
    wide = (0, x.shape[1], x, jobs.packed(x), None, (0.0, 0.0), (np.ones(40), np.ones(64)))
    with pytest.raises(ValueError, match="malformed operand"):
        jobs.job(np.float64, 40, 40, [("stat", 0, 0)], [wide])


@pytest.mark.skipif(_core.has_coarse(), reason="the processor has AVX-512 VNNI")
def test_absent_where_the_processor_cannot():
    with pytest.raises(ValueError, match="malformed operand"):
        coarse_job(*rows(np.random.default_rng(0), 40, 18))
