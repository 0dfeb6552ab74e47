"""Inner products and distances of rows with few nonzeros: the same laws as of full rows."""

import numpy as np
import pytest
from scipy import sparse

from core.jobs import FLOATS, OP, dense, job, operand, packed, points, rows_of
from core.test_inner import exact
from core.test_statistics import assert_close, sizes, terms
from mercer import _core
from mercer.points.comparison import units_of_error


def thinned(rng, n, d, dtype, density=0.2):
    """Rows with few nonzeros, some with none at all."""
    x = np.where(rng.random((n, d)) < density, points(rng, n, d, dtype), 0).astype(dtype)
    x[rng.random(n) < 0.1] = 0
    return x


def values(kind, x, z):
    j = job(x.dtype, len(x), len(z), [("stat", 0, 0)], [operand(kind, x, z, inner=kind == "sqdist", thin=True)])
    return dense(j, len(x), len(z), x.dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_inner_products_of_every_size(dtype):
    rng = np.random.default_rng(0)
    for n, m, d in sizes(dtype):
        x, z = thinned(rng, n, d, dtype), points(rng, m, d, dtype)
        assert_close(values("dot", x, z), terms("dot", x, z))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("density", [0.0, 0.1, 0.5, 1.0])
def test_distances_are_off_by_units_of_the_largest_norm(density, dtype):
    rng = np.random.default_rng(1)
    for n, m, d in ((1, 1, 1), (9, 70, 40), (70, 33, 123)):
        x, z = thinned(rng, n, d, dtype, density), thinned(rng, m, d, dtype)
        largest = max(float((v.astype(float) ** 2).sum(axis=1).max()) for v in (x, z))
        allowed = float(np.finfo(dtype).eps) * units_of_error(d, d) * largest
        assert (np.abs(values("sqdist", x, z) - exact(x, z)) <= allowed).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", ["dot", "sqdist"])
def test_the_value_of_two_points_does_not_depend_on_their_place_or_order(kind, dtype):
    """Not even where one point of the pair has few nonzeros and the other has many."""
    rng = np.random.default_rng(2)
    x = thinned(rng, 70, 123, dtype)
    x[5::7] = points(rng, 10, 123, dtype)
    whole = values(kind, x, x)
    np.testing.assert_array_equal(whole, whole.T)
    some = rng.permutation(70)[:33]
    np.testing.assert_array_equal(values(kind, x[some], x), whole[some])
    np.testing.assert_array_equal(values(kind, x, x[some]), whole[:, some])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("d", [1, 16, 100, 300])
def test_equal_points_are_at_distance_zero_wherever_they_stand(d, dtype):
    rng = np.random.default_rng(3)
    x = thinned(rng, 90, d, dtype, 0.4) * dtype(37)
    x[1::2] = x[::2]
    pair = np.arange(90) // 2
    assert (values("sqdist", x, x)[pair[:, None] == pair[None]] == 0).all()
    program = [("stat", 0, 0), ("exp", 0, 0, 0, 0.0, -1e-5)]
    j = job(dtype, 90, 90, program, [operand("sqdist", x, x, inner=True, thin=True)])
    K = dense(j, 90, 90, dtype)
    assert (K[pair[:, None] == pair[None]] == 1).all()
    np.testing.assert_allclose(K, np.exp(-1e-5 * exact(x, x).astype(float)), rtol=1e-4)


@pytest.mark.parametrize("dtype", FLOATS)
def test_products_with_vectors(dtype):
    rng = np.random.default_rng(4)
    x, z, v = thinned(rng, 200, 40, dtype), thinned(rng, 300, 40, dtype), points(rng, 300, 2, dtype)
    j = job(dtype, 200, 300, [("stat", 0, 0)], [operand("dot", x, z, thin=True)])
    out = np.zeros((200, 2))
    j.matvec(0, 200, v, out)
    np.testing.assert_allclose(out, x.astype(float) @ z.astype(float).T @ v, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", FLOATS)
def test_rows_may_be_made_of_a_matrix_of_arrays_and_of_other_rows(dtype):
    rng = np.random.default_rng(5)
    x, z = thinned(rng, 50, 30, dtype), points(rng, 20, 30, dtype)
    x[7] = 1  # a full row amid thin ones
    made = rows_of(x)
    csr = sparse.csr_array(x)
    given = type(made)(csr.data, csr.indices.astype(np.int32), csr.indptr.astype(np.int64), 30)
    chosen = np.array([7, 7, 0, 49, 3])
    part = type(made)(made, chosen)
    assert made.nonzeros == given.nonzeros == csr.nnz
    assert made.longest == given.longest == part.longest == 30
    assert part.nonzeros == sum((x[i] != 0).sum() for i in chosen)
    wanted = values("dot", x, z)
    for rows, index in ((made, slice(None)), (given, slice(None)), (part, chosen)):
        n = len(x[index])
        j = job(dtype, n, 20, [("stat", 0, 0)], [(OP["stat"], 30, rows, packed(z), None, (0.0, 0.0), None)])
        np.testing.assert_array_equal(dense(j, n, 20, dtype), wanted[index])


def test_rows_that_point_outside_are_refused():
    data, index, start = np.ones(3), np.array([0, 1, 2], np.int32), np.array([0, 1, 3])
    for bad in (
        (data, index, np.array([0, 1, 4]), 3),
        (data, index, np.array([-1, 1, 3]), 3),
        (data, index, np.array([0, 2, 1]), 3),
        (data, index, start, 2),
        (data, np.array([0, -1, 2], np.int32), start, 3),
        (data, index, start[:0], 3),
        (data, index, start, 0),
    ):
        with pytest.raises(ValueError, match="malformed sparse rows"):
            _core.RowsFloat64(*bad)
    rows = _core.RowsFloat64(data, index, start, 3)
    for chosen in (np.array([2]), np.array([-1])):
        with pytest.raises(ValueError, match="outside"):
            _core.RowsFloat64(rows, chosen)
    z = np.ones((4, 3))
    for kind, n, d in ((0, 3, 3), (0, 2, 4), (2, 2, 3), (1, 2, 3)):  # too few, too narrow, no product, no norms
        with pytest.raises(ValueError, match=r"malformed operand|too short"):
            job(np.float64, n, 4, [("stat", 0, 0)], [(kind, d, rows, packed(z), None, (0.0, 0.0), None)])
