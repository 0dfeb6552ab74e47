"""The core's elementary functions against a wider type, in units in the last place, over the whole range."""

import itertools
from functools import lru_cache

import numpy as np
import pytest

from cases import each
from core.jobs import FLOATS, dense, elementwise, job
from mercer import _core

LONG = np.finfo(np.longdouble).nmant >= 63
WIDER = {np.float32: np.float64, np.float64: np.longdouble}
UNSIGNED = {np.float32: np.uint32, np.float64: np.uint64}
# exp is finite and not zero between these.
EXP_RANGE = {np.float32: (-103.98, 88.73), np.float64: (-745.14, 709.79)}

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

both = pytest.mark.parametrize(
    "dtype",
    [
        np.float32,
        pytest.param(np.float64, marks=pytest.mark.skipif(not LONG, reason="no wider type to compare float64 with")),
    ],
)


@lru_cache
def patterns(dtype):
    """Every 2^8-th float32 from a random start, or as many random bit patterns of float64; no NaN."""
    rng = np.random.default_rng(0)
    if dtype is np.float32:
        bits = np.arange(rng.integers(256), 2**32, 2**8, dtype=np.uint64).astype(np.uint32)
    else:
        bits = rng.integers(0, 2**64, 2**18, dtype=np.uint64)
    x = bits.view(dtype)
    return np.concatenate([x[~np.isnan(x)], boundaries(dtype)])


def boundaries(dtype):
    """Every number within a few thousand steps of where a format or a function changes character."""
    info = np.finfo(dtype)
    low, high = EXP_RANGE[dtype]
    places = [0.0, info.smallest_subnormal, info.tiny, info.eps, info.eps / 2, 1 / np.sqrt(2), 1.0, np.sqrt(2), 2.0]
    places += [info.max, -low, high, float(np.log(info.tiny)) * -1, np.log(2) / 2, np.log(2)]
    unsigned = UNSIGNED[dtype]
    near = np.arange(-4096, 4096)
    x = [(np.array(p, dtype).view(unsigned).astype(np.int64) + near).astype(unsigned).view(dtype) for p in places]
    x = np.concatenate([*x, np.array([np.inf], dtype)])
    x = x[~np.isnan(x)]
    return np.concatenate([x, -x])


def ulps(got, truth):
    """Return |got - truth| in units of the last place of `truth` as rounded to the type of `got`."""
    dtype, wide = got.dtype, truth.dtype.type
    assert np.array_equal(np.isnan(got), np.isnan(truth))
    limit = np.ldexp(wide(1), np.finfo(dtype).maxexp)  # infinity is where the next number would be
    g = got.astype(wide)
    g = np.where(np.isinf(g), np.copysign(limit, g), g)
    t = np.clip(truth, -limit, limit)
    unit = np.spacing(np.minimum(np.abs(t), np.finfo(dtype).max).astype(dtype)).astype(wide)
    return np.where(np.isnan(got), 0, np.abs(g - t) / unit)


def worst(op, function, x, **kwargs):
    pieces = np.array_split(x, -(-len(x) // 2**18))  # that stay in the cache
    return max(float(ulps(elementwise(op, p, **kwargs), function(p.astype(WIDER[p.dtype.type]))).max()) for p in pieces)


@both
@pytest.mark.parametrize(
    ("op", "function", "bound", "often"),
    [
        # `often` is where random bit patterns seldom fall: few numbers, of which kernels are made.
        ("exp", np.exp, 2.0, EXP_RANGE),
        ("log", np.log, 2.0, (0.0, 4.0)),
        ("log1p", np.log1p, 2.0, (-1.0, 4.0)),
        ("sqrt", np.sqrt, 0.5, (0.0, 4.0)),
        ("tanh", np.tanh, 3.0, (-20.0, 20.0)),  # the C library's
    ],
)
def test_error_in_ulps(dtype, op, function, bound, often, record_property):
    low, high = often[dtype] if isinstance(often, dict) else often
    rng = np.random.default_rng(1)
    dense = rng.uniform(low, high, 2**18)
    close = rng.standard_normal(2**17) * np.logspace(-9, 0, 2**17)  # of 0 and of 1
    x = np.concatenate([patterns(dtype), dense.astype(dtype), close.astype(dtype), (1 + close).astype(dtype)])
    found = worst(op, function, x)
    record_property("worst_ulps", found)
    assert found <= bound


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("op", "values"),
    [
        ("exp", [(0.0, 1.0), (-0.0, 1.0), (np.inf, np.inf), (-np.inf, 0.0), (np.nan, np.nan), (1e30, np.inf)]),
        ("log", [(1.0, 0.0), (0.0, -np.inf), (-0.0, -np.inf), (-1.0, np.nan), (np.inf, np.inf), (np.nan, np.nan)]),
        ("log", [(-np.inf, np.nan)]),
        ("log1p", [(0.0, 0.0), (-1.0, -np.inf), (-2.0, np.nan), (np.inf, np.inf), (np.nan, np.nan)]),
        ("sqrt", [(0.0, 0.0), (-0.0, -0.0), (-1.0, np.nan), (np.inf, np.inf), (np.nan, np.nan), (4.0, 2.0)]),
        ("tanh", [(0.0, 0.0), (np.inf, 1.0), (-np.inf, -1.0), (np.nan, np.nan), (50.0, 1.0)]),
        ("iszero", [(0.0, 1.0), (-0.0, 1.0), (1e-38, 0.0), (np.inf, 0.0), (np.nan, 0.0)]),
    ],
)
def test_special_values_are_exact(dtype, op, values):
    x, expected = np.array(values, dtype).T.copy()
    np.testing.assert_array_equal(elementwise(op, x), expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_exp_is_one_around_zero(dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    x = np.array([tiny, -tiny, np.finfo(dtype).eps / 8, -np.finfo(dtype).eps / 8], dtype)
    assert (elementwise("exp", x) == 1).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_exp_overflows_and_vanishes_where_it_should(dtype):
    info = np.finfo(dtype)
    # The last argument whose exponential rounds to a finite number, and to one above zero.
    top = dtype(np.log(np.longdouble(info.max)))
    top = top if np.longdouble(top) < np.log(np.longdouble(info.max)) else np.nextafter(top, dtype(0))
    edge = np.log(np.longdouble(info.smallest_subnormal)) - np.log(np.longdouble(2))
    bottom = dtype(edge)
    bottom = bottom if np.longdouble(bottom) > edge else np.nextafter(bottom, dtype(0))
    x = np.array([top, np.nextafter(top, dtype(np.inf)), bottom, np.nextafter(bottom, dtype(-np.inf))], dtype)
    at_top, above, at_bottom, below = elementwise("exp", x)
    assert np.isfinite(at_top)
    assert at_top > info.max * 0.99
    assert above == np.inf
    assert at_bottom == info.smallest_subnormal
    assert below == 0


@pytest.mark.parametrize("dtype", FLOATS)
def test_exp_is_monotone_at_its_edges(dtype):
    low, high = EXP_RANGE[dtype]
    for place in (low, high, float(np.log(np.finfo(dtype).tiny))):
        bits = np.array(place, dtype).view(UNSIGNED[dtype]).astype(np.int64) + np.arange(-(2**14), 2**14)
        x = np.sort(bits.astype(UNSIGNED[dtype]).view(dtype))
        assert (np.diff(elementwise("exp", x).clip(max=np.finfo(dtype).max)) >= 0).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_results_below_the_normal_range_are_kept(dtype):
    info = np.finfo(dtype)
    x = np.linspace(np.log(info.tiny) - 10, np.log(info.tiny), 1000).astype(dtype)
    y = elementwise("exp", x)
    assert (y > 0).all()
    assert (y <= info.tiny * 1.01).all()
    assert elementwise("affine", y, factor=0.5).any()
    assert (elementwise("sqrt", np.array([info.smallest_subnormal], dtype)) > 0).all()


@both
@each("power", [-7, -2, -1, 0, 1, 2, 3, 4, 5, 10, 37, 64])
def test_whole_powers(dtype, power):
    rng = np.random.default_rng(2)
    x = (np.exp(rng.uniform(-0.9, 0.9, 20_000)) * rng.choice([-1, 1], 20_000)).astype(dtype)
    found = worst("powi", lambda t: t ** t.dtype.type(power), x, constant=power)
    assert found <= max(1, abs(power))  # at most one unit for each product, and for a reciprocal


@both
@pytest.mark.parametrize("power", [-3.5, -1 / 3, 0.1, 1.5, 2.7, 20.25])
def test_real_powers(dtype, power):
    rng = np.random.default_rng(3)
    x = np.exp(rng.uniform(-4, 4, 20_000)).astype(dtype)
    wide = WIDER[dtype]
    c = wide(dtype(power))
    error = ulps(elementwise("powc", x, constant=power), x.astype(wide) ** c)
    # exp(c log x) carries the rounding of its exponent into the result.
    assert (error <= 2 + 4 * np.abs(c * np.log(x.astype(wide)))).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_real_powers_at_the_ends(dtype):
    x = np.array([0.0, 1.0, np.inf, np.nan], dtype)
    np.testing.assert_array_equal(elementwise("powc", x, constant=1.5), np.array([0, 1, np.inf, np.nan], dtype))
    np.testing.assert_array_equal(elementwise("powc", x, constant=-1.5), np.array([np.inf, 1, 0, np.nan], dtype))


@both
def test_angles_in_every_quadrant(dtype):
    rng = np.random.default_rng(4)
    bits = rng.integers(0, 2 ** (8 * np.dtype(dtype).itemsize), (2, 2**17), dtype=np.uint64)
    y, x = bits.astype(UNSIGNED[dtype]).view(dtype)
    round_numbers = rng.standard_normal((2, 2**16)).astype(dtype)
    y, x = np.concatenate([y, round_numbers[0]]), np.concatenate([x, round_numbers[1]])
    wide = WIDER[dtype]
    assert ulps(elementwise("atan2", y, x), np.arctan2(y.astype(wide), x.astype(wide))).max() <= 2


@pytest.mark.parametrize("dtype", FLOATS)
def test_angles_at_the_axes(dtype):
    y, x = (np.array(v, dtype) for v in np.meshgrid([0.0, -0.0, 1, -1, np.inf, -np.inf], [0.0, -0.0, 1, -1, np.inf]))
    y, x = y.ravel(), x.ravel()
    np.testing.assert_allclose(elementwise("atan2", y, x), np.arctan2(y, x), rtol=np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("power", [-3, -1, 2, 3, 5])
def test_a_function_plus_another_register_is_the_sum_of_both(power, dtype):
    rng = np.random.default_rng(0)
    x, y = (rng.uniform(0.5, 2, 777).astype(dtype) for _ in range(2))
    wide = 0.7 * x.astype(np.longdouble) + 0.2
    np.testing.assert_allclose(elementwise("exp_add", x, y, factor=0.7, shift=0.2), np.exp(wide) + y, rtol=1e-6)
    np.testing.assert_allclose(elementwise("powi_add", x, y, power, 0.7, 0.2), wide**power + y, rtol=2e-6)
    damped = (1 + np.sqrt(wide) + wide / 3) * np.exp(-np.sqrt(wide))
    np.testing.assert_allclose(elementwise("damp_add", x, y, 1 / 3, 0.7, 0.2), damped + y, rtol=1e-6)


@both
@pytest.mark.parametrize("p", [0.0, 1 / 3])
def test_damped_exponentials_of_a_square_root(p, dtype):
    """To a few units in the last place, and those of the root, which exp magnifies; 0 far out, and 1 at 0."""
    x = np.concatenate([np.geomspace(1e-30, 1e4, 20_000), np.linspace(0, 100, 9_999)]).astype(dtype)
    r = np.sqrt(x.astype(WIDER[dtype]))
    exact = (1 + r + WIDER[dtype](dtype(p)) * r * r) * np.exp(-r)
    normal = exact > np.finfo(dtype).tiny
    assert (ulps(elementwise("damp", x, constant=p), exact)[normal] <= (8 + 2 * r)[normal]).all()
    far = np.array([0.0, 1e9, np.finfo(dtype).max, np.inf], dtype)
    np.testing.assert_array_equal(elementwise("damp", far, constant=p), [1, 0, 0, 0])


TERMS = [("add", 0.0), ("exp_add", 0.0), ("damp_add", 0.0), ("powi_add", -1.0), ("powi_add", 2.0), ("powi_add", 3.0)]
TERMS += [("powi_add", 4.0), ("damp_add", 1 / 3)]


@pytest.mark.parametrize("dtype", FLOATS)
def test_two_terms_of_a_sum_are_added_as_one_after_the_other(dtype):
    """Neighbours share a pass; an instruction between them, which does nothing, keeps them apart."""
    rng = np.random.default_rng(3)
    cols = [rng.uniform(0.5, 2, 333).astype(dtype) for _ in range(3)]
    start = [("col", i, i) for i in range(3)]
    for (first, p), (second, q) in itertools.product(TERMS, TERMS):
        a, b = (first, 2, 0, 2, p, 0.7, 0.2), (second, 2, 1, 2, q, -0.3, 2.5)
        together, apart = (
            dense(job(dtype, 1, 333, [*start, a, *between, b], cols=cols), 1, 333, dtype)
            for between in ([], [("lower", 2, 2, 0, -100.0)])
        )
        np.testing.assert_allclose(together, apart, rtol=2 * np.finfo(dtype).eps, err_msg=f"{first}, {second}")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("m", [1, 15, 40, 300])
def test_an_outer_sum_adds_a_vector_of_each_side(m, dtype):
    rng = np.random.default_rng(1)
    row, col, other = (rng.standard_normal(k).astype(dtype) for k in (11, m, m))
    program = [("col", 0, 0), ("outer", 0, 0, 1, 1.0, -2.0, 0.5)]
    j = job(dtype, 11, m, program, rows=[row * 0, row], cols=[other, col])
    wanted = (0.5 - 2.0 * other)[None] + row[:, None] + col[None]
    np.testing.assert_allclose(dense(j, 11, m, dtype), wanted, rtol=1e-5, atol=1e-5)


def test_an_outer_sum_of_vectors_that_are_not_there_is_refused():
    v = np.ones(4)
    for b, p in ((1, 0.0), (0, 1.0), (0, -1.0), (0, np.nan)):
        with pytest.raises(ValueError, match="malformed program"):
            job(np.float64, 4, 4, [("col", 0, 0), ("outer", 0, 0, b, p)], rows=[v], cols=[v])
    for op in ("exp_add", "powi_add", "damp_add"):  # the second register was never written
        with pytest.raises(ValueError, match="malformed program"):
            job(np.float64, 4, 4, [("col", 0, 0), (op, 0, 0, 1)], cols=[v], registers=2)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", [1, 7, 16, 100, 1001])
def test_the_extent_is_the_largest_absolute_value(size, dtype):
    x = np.random.default_rng(2).standard_normal(size).astype(dtype)
    for at in {0, size // 2, size - 1}:
        for value in (9.0, -9.0):
            y = x.copy()
            y[at] = value
            assert _core.extent(y) == 9
        for value in (np.nan, np.inf, -np.inf):
            y[at] = value
            assert np.isnan(_core.extent(y))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", [1, 7, 8, 9, 1000])
def test_the_variance_is_taken_from_the_mean(size, dtype):
    x = (np.random.default_rng(3).standard_normal(size) + 1e3).astype(dtype)
    assert _core.variance(x) == pytest.approx(x.var(dtype=np.longdouble), rel=1e-12)
