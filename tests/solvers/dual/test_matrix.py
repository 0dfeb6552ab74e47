"""Blocks and products of the matrix in each of its forms against the same numbers held as one array."""

import numpy as np
import pytest
from scipy import sparse

from mercer import RBF, FromFunction, Gram, Laplacian, Linear, Polynomial
from mercer.points import Points
from mercer.solvers.dual.matrix import Cached, Held, Streamed

N = 90
X = np.random.default_rng(0).normal(size=(N, 4))
KERNELS = [RBF(1.5), Linear(), Polynomial(2), Laplacian(1.0), RBF(1.0).on([0, 2]) + 0.5 * Linear()]


def dot(a, b):
    return float(a @ b) + 1.0


def forms(kernel, single=False):
    """Every form of one matrix, and the matrix."""
    points = Points(X).single() if single else Points(X)
    gram = Gram(kernel, Points(X))
    dense = Gram(kernel, points).dense()
    yield Held(dense), dense
    if gram.compiled:
        yield Streamed(gram, points), dense
    if not single:
        yield Cached(gram), dense
        yield Cached(Gram(kernel, X, budget=4 * N * 8 * 7)), dense  # seven rows at a time


def assert_same(matrix, dense, rng):
    rel = 1e-5 if dense.dtype == np.float32 else 1e-12
    size = np.abs(dense).max()
    assert matrix.dtype == dense.dtype
    everyone = np.arange(N, dtype=np.int32)
    for chosen in (everyone[:1], rng.permutation(everyone)[:37], everyone):
        block = np.array(matrix.block(chosen))
        np.testing.assert_allclose(block, dense[np.ix_(chosen, chosen)], rtol=rel, atol=rel * size)
        np.testing.assert_array_equal(block, block.T)
    for rows in (None, everyone[5:6], rng.permutation(everyone)[:50]):
        for cols in (everyone[3:4], rng.permutation(everyone)[:41], everyone):
            v = rng.normal(size=len(cols)).astype(dense.dtype)
            found = matrix.product(rows, cols, v)
            assert found.dtype == np.float64
            expected = dense.astype(np.float64)[:, cols] @ v
            np.testing.assert_allclose(
                found, expected if rows is None else expected[rows], rtol=rel, atol=rel * size * np.abs(v).sum()
            )


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_compiled_kernels(kernel, single):
    rng = np.random.default_rng(1)
    seen = [type(m).__name__ for m, dense in forms(kernel, single) if assert_same(m, dense, rng) is None]
    assert seen == (["Held", "Streamed"] if single else ["Held", "Streamed", "Cached", "Cached"])


def test_python_kernels():
    rng = np.random.default_rng(2)
    for matrix, dense in forms(FromFunction(dot)):
        assert_same(matrix, dense, rng)
        np.testing.assert_allclose(dense, X @ X.T + 1)


def test_sparse_points_are_streamed():
    thin = sparse.random_array((N, 500), density=0.02, rng=np.random.default_rng(3), format="csr")
    gram = Gram(RBF(2.0), thin)
    assert_same(Streamed(gram, gram.left), gram.dense(), np.random.default_rng(3))
    assert_same(Streamed(gram, gram.left.single()), gram.dense().astype(np.float32), np.random.default_rng(3))


def test_rows_that_are_asked_for_again_are_those_of_now():
    gram = Gram(RBF(), X)
    matrix, K = Streamed(gram, gram.left), gram.dense()
    cols, v = np.arange(4), np.ones(4)
    first, second = np.arange(10), np.arange(10, 20)
    for rows in (first, first, second, first, None, second):
        at = slice(None) if rows is None else rows
        np.testing.assert_allclose(matrix.product(rows, cols, v), K[at][:, cols] @ v)


def test_a_block_is_valid_until_the_next():
    gram = Gram(RBF(), X)
    matrix, K = Streamed(gram, gram.left), gram.dense()
    for size in (5, 40, 3, 60):
        chosen = np.arange(size)[::-1]
        np.testing.assert_allclose(matrix.block(chosen), K[np.ix_(chosen, chosen)])


def test_sums_of_single_precision_values_are_kept_in_double():
    values = np.full((1000, 1000), np.float32(0.1))
    held = Held(values)
    v = np.where(np.arange(1000) % 2 == 0, 1e6, -1e6) + 1.0
    found = held.product(None, np.arange(1000), v)
    np.testing.assert_allclose(found, float(np.float32(0.1)) * v.sum(), rtol=1e-9)


def test_no_columns_give_nothing():
    for matrix, _ in forms(RBF()):
        if not isinstance(matrix, Streamed):
            assert not matrix.product(None, np.arange(0), np.zeros(0)).any()
