"""Squared distances from inner products: exact where they must be, close everywhere else."""

import numpy as np
import pytest

from cases import each
from core.jobs import FLOATS, dense, job, norms, operand, packed, panel, points, rows_of
from core.test_statistics import WIDER, sizes
from mercer import _core
from mercer.points.comparison import units_of_error


def distances(x, z):
    j = job(x.dtype, len(x), len(z), [("stat", 0, 0)], [operand("sqdist", x, z, inner=True)])
    return dense(j, len(x), len(z), x.dtype)


def exponentials(x, z, gamma, shift=0.0, fused=True):
    """exp(shift - gamma |x - z|^2) in one step, or by way of a register of its own."""
    program = [("stat", 0, 0), ("exp", 0 if fused else 1, 0, 0, 0.0, -gamma, shift)]
    j = job(x.dtype, len(x), len(z), program, [operand("sqdist", x, z, inner=True)])
    return dense(j, len(x), len(z), x.dtype)


def exact(x, z):
    wide = WIDER[x.dtype.type]
    return ((x.astype(wide)[:, None] - z.astype(wide)[None]) ** 2).sum(axis=2)


def clouds(rng, n, d, dtype):
    """Kinds of points whose sums round in different ways."""
    normal = rng.standard_normal((n, d))
    yield normal.astype(dtype)
    sphere = normal / np.linalg.norm(normal, axis=1)[:, None]
    sphere[n // 2 : n // 2 * 2] = -sphere[: n // 2]
    yield sphere.astype(dtype)
    yield ((rng.random((n, d)) < 0.3) * 1.7 - 0.5).astype(dtype)
    yield (np.sign(normal) * rng.uniform(0.9, 1.1, (n, 1))).astype(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_distances_of_every_size_are_off_by_units_of_the_largest_norm(dtype):
    rng = np.random.default_rng(0)
    for n, m, d in sizes(dtype):
        x, z = points(rng, n, d, dtype), points(rng, m, d, dtype)
        largest = max(norms(x).max(), norms(z).max())
        allowed = np.finfo(dtype).eps * units_of_error(d, _core.chunk(d, dtype is np.float32)) * largest
        assert (np.abs(distances(x, z) - exact(x, z)) <= allowed).all(), (n, m, d)


@each("dtype", FLOATS)
@each("d", [1, 8, 16, 23, 24, 47, 48, 123, 400])
def test_the_stated_error_covers_many_kinds_of_points(d, dtype):
    rng = np.random.default_rng(1)
    for x in clouds(rng, 100, d, dtype):
        got = distances(x, x)
        assert (got >= 0).all()
        error = np.abs(got - exact(x, x)).max()
        assert error <= np.finfo(dtype).eps * units_of_error(d, _core.chunk(d, dtype is np.float32)) * norms(x).max()


@pytest.mark.parametrize("dtype", FLOATS)
def test_norms_are_those_of_inner_products_to_the_last_bit(dtype):
    rng = np.random.default_rng(2)
    for n, _, d in sizes(dtype):
        x = points(rng, n, d, dtype) * dtype(1e3)
        j = job(dtype, n, n, [("stat", 0, 0)], [operand("dot", x, x)])
        np.testing.assert_array_equal(norms(x)[:n], np.diag(dense(j, n, n, dtype)))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("d", [1, 7, 16, 31, 33, 100])
def test_equal_points_are_at_distance_zero_wherever_they_stand(d, dtype):
    rng = np.random.default_rng(3)
    x = points(rng, 90, d, dtype) * np.logspace(-5, 5, d).astype(dtype)
    x[1::2] = x[::2]
    got = distances(x, x)
    pair = np.arange(90) // 2
    assert (got[pair[:, None] == pair[None]] == 0).all()
    assert (got[pair[:, None] != pair[None]] > 0).mean() > 0.9
    assert (exponentials(x, x, 1e-12)[pair[:, None] == pair[None]] == 1).all()
    np.testing.assert_array_equal(distances(x[11:52], x.copy()), got[11:52])


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_distance_of_two_points_does_not_depend_on_their_place(dtype):
    rng = np.random.default_rng(4)
    x = points(rng, 70, 41, dtype)
    for values in (distances, lambda a, b: exponentials(a, b, 0.01)):
        whole = values(x, x)
        np.testing.assert_array_equal(whole, whole.T)
        some = rng.permutation(70)[:33]
        np.testing.assert_array_equal(values(x[some], x), whole[some])
        np.testing.assert_array_equal(values(x, x[some]), whole[:, some])


@each("dtype", FLOATS)
@each("shift", [0.0, -3.0, 2.5])
@each("gamma", [1e-6, 0.01, 0.3, 1.5, 20.0, 1e6, -0.1])
def test_the_exponential_is_that_of_the_distance(gamma, shift, dtype):
    """Whether it is taken in the registers that hold the distance or, near the ends of the range, afterwards."""
    rng = np.random.default_rng(5)
    x, z = points(rng, 30, 5, dtype), points(rng, 50, 5, dtype)
    argument = shift - gamma * distances(x, z).astype(WIDER[dtype])
    with np.errstate(over="ignore", under="ignore"):
        wanted = np.exp(argument).astype(dtype)
    normal = (wanted >= np.finfo(dtype).tiny) & np.isfinite(wanted)
    for fused in (True, False):
        got = exponentials(x, z, gamma, shift, fused)
        # Only in the registers that hold a float32 distance is the argument surely not rounded before its whole part is
        # taken, if there is an instruction for it.
        rounded = dtype is np.float64 or _core.isa() == "baseline" or not fused or not 0 < gamma < 1
        unit = np.finfo(dtype).eps * (4 + abs(shift) + 2 * rounded * np.abs(argument))
        assert (np.abs(got - wanted)[normal] <= (unit * wanted)[normal]).all()
        assert (got[~normal & (argument < 0)] < 2 * np.finfo(dtype).tiny).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_register_that_is_read_again_is_not_overwritten(dtype):
    rng = np.random.default_rng(6)
    x = points(rng, 9, 6, dtype)
    program = [("stat", 0, 0), ("exp", 1, 0, 0, 0.0, -0.5), ("mul", 0, 0, 1)]
    j = job(dtype, 9, 9, program, [operand("sqdist", x, x, inner=True)])
    apart = distances(x, x)
    np.testing.assert_allclose(dense(j, 9, 9, dtype), apart * np.exp(-0.5 * apart), rtol=1e-5)


def test_norms_that_do_not_fit_are_refused():
    x = np.ones((4, 3))
    short = np.ones(panel(np.float64) - 1)
    bad = {
        "left too short": (1, 3, x, packed(x), None, (0.0, 0.0), (norms(x)[:3].copy(), norms(x), 3.0)),
        "right no whole panel": (1, 3, x, packed(x), None, (0.0, 0.0), (norms(x), short, 3.0)),
        "of another type": (1, 3, x, packed(x), None, (0.0, 0.0), (norms(x), norms(x).astype(np.float32), 3.0)),
        "no bound": (1, 3, x, packed(x), None, (0.0, 0.0), (norms(x), norms(x))),
        "of another statistic": (0, 3, x, packed(x), None, (0.0, 0.0), (norms(x), norms(x), 3.0)),
        "weighted": (1, 3, x, packed(x), np.ones(3), (0.0, 0.0), (norms(x), norms(x), 3.0)),
    }
    for entry in bad.values():
        with pytest.raises(ValueError, match=r"malformed operand|too short|wrong type"):
            job(np.float64, 4, 4, [("stat", 0, 0)], [entry])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("thin", [False, True])
def test_one_product_serves_inner_products_and_distances(thin, dtype):
    """Whichever comes first, to the last bit what each is alone."""
    rng = np.random.default_rng(4)
    for n, m, d in ((1, 1, 3), (7, 40, 26), (20, 300, 31)):
        x, z = points(rng, n, d, dtype), points(rng, m, d, dtype)
        rows, panels = rows_of(x) if thin else x, packed(z)
        apart, inner = (list(operand(k, x, z, inner=k == "sqdist", thin=thin)) for k in ("sqdist", "dot"))
        apart[2:4] = inner[2:4] = rows, panels
        pair = [tuple(apart), tuple(inner)]
        alone = [dense(job(dtype, n, m, [("stat", 0, 0)], [o]), n, m, dtype) for o in pair]
        for order in ((0, 1), (1, 0)):
            for result in (0, 1):
                program = [("stat", k, k) for k in order]
                got = dense(job(dtype, n, m, program, pair, result=result), n, m, dtype)
                np.testing.assert_array_equal(got, alone[result])


@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_of_distances_within_a_ball_are_those_of_any(dtype):
    """Where the largest distance is known, shorter forms of exp and damp are taken; they round the exponent, too."""
    rng = np.random.default_rng(5)
    x, z = points(rng, 30, 9, dtype), points(rng, 70, 9, dtype)
    q = distances(x, z).astype(WIDER[dtype])
    r = np.sqrt(q)
    for op, p, exact in (
        ("exp", 0.0, np.exp(-q)),
        ("exp_add", 0.0, np.exp(-q) + q),
        ("damp", 0.0, (1 + r) * np.exp(-r)),
        ("damp_add", 0.25, (1 + r + q / 4) * np.exp(-r) + q),
    ):
        program = [("stat", 0, 0), (op, 1, 0, 0, p, -1.0 if op.startswith("exp") else 1.0)]
        j = job(dtype, 30, 70, program, [operand("sqdist", x, z, inner=True)])
        error = np.abs(dense(j, 30, 70, dtype) - exact)
        assert (error <= (8 + 2 * (q if op.startswith("exp") else r)) * np.finfo(dtype).eps * exact).all(), op
