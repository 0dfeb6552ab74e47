"""The kernel matrix as solvers read it, streamed or kept, in both precisions."""

import numpy as np
import pytest
import scipy.sparse as sp

from cases import each
from mercer import RBF, FromFunction, Gram, Laplacian, Linear, Polynomial
from mercer.gram.matrix import KernelMatrix

RNG = np.random.default_rng(0)
X = RNG.standard_normal((90, 4))
V = RNG.standard_normal((90, 3)) * np.array([1e-80, 1.0, 1e80])


def close(found, expected, tol):
    size = np.abs(expected).max(axis=0)
    return np.abs(found / size - expected / size).max() < tol


@each("held", [None, np.float32, np.float64])
@each("rows", [None, np.arange(3, 80, 3)], ids=["all", "some"])
@each("data", [X, X.astype(np.float32), sp.csr_array(np.where(np.abs(X) > 1, X, 0.0))])
def test_agrees_with_the_dense_matrix(held, rows, data):
    exact = data.astype(np.float64)
    chosen = np.arange(90) if rows is None else rows
    K = Gram(RBF(scale=1.3), exact).dense()[np.ix_(chosen, chosen)]
    matrix = KernelMatrix(Gram(RBF(scale=1.3), data))
    if held:
        matrix.hold(held)
    matrix = matrix.take(rows)
    assert matrix.n == len(chosen)
    assert close(matrix(V[chosen]), K @ V[chosen], 1e-11)
    assert close(matrix(V[chosen], single=True), K @ V[chosen], 1e-5)
    assert np.allclose(matrix.diagonal(), np.diag(K))
    some = np.array([2, 0, 5])
    assert np.allclose(matrix.block(some, some, False), K[np.ix_(some, some)], atol=1e-12)
    assert np.allclose(matrix.block(some, slice(0, matrix.n), True), K[some], atol=1e-5)
    for dtype, error in ((np.float32, 1e-5), (np.float64, 1e-12)):
        assert np.allclose(matrix.dense(np.empty(K.shape, dtype)), K, atol=error)


def test_holds_only_within_the_budget():
    matrix = KernelMatrix(Gram(RBF(), X, budget=90 * 90 * 4))
    matrix.hold(np.float64)
    assert matrix.held is None
    matrix.hold(np.float32)
    assert matrix.held is not None


def test_float32_only_where_it_is_enough():
    assert KernelMatrix(Gram(RBF(scale=1.0), X)).single
    assert not KernelMatrix(Gram(Laplacian(scale=1.0), 1e6 + X)).single
    assert not KernelMatrix(Gram(FromFunction(lambda a, b: float(a @ b)), X)).single


@pytest.mark.parametrize("n", [1, 255, 256, 2301])
def test_bands_hold_every_pair_once(n):
    points = np.random.default_rng(n).standard_normal((n, 2))
    columns = np.random.default_rng(0).standard_normal((n, 2))
    matrix = KernelMatrix(Gram(RBF(scale=1.0), points))
    matrix.hold_half()
    K = matrix.dense(np.empty((n, n)))
    assert close(matrix(columns, single=True), K @ columns, 1e-5)
    assert close(matrix(columns), K @ columns, 1e-12)


# -- few columns, and blocks of some points among themselves: what SMO asks for ---------------------------------

N = len(X)
KERNELS = [RBF(1.5), Linear(), Polynomial(2), Laplacian(1.0), RBF(1.0).on([0, 2]) + 0.5 * Linear()]


def shifted_dot(a, b):
    return float(a @ b) + 1.0


def policies(kernel, single=False):
    """Yield a matrix in each way that its values are kept or computed, and the values."""
    gram = Gram(kernel, X)
    dense = (gram.single() if single else gram).dense()
    yield KernelMatrix(gram), dense
    held = KernelMatrix(gram)
    held.held = dense
    yield held, dense
    if not gram.compiled:
        yield KernelMatrix(Gram(kernel, X, budget=4 * N * 8 * 7)), dense  # seven rows at a time


def assert_same(matrix, dense, single, rng):
    rel = 1e-5 if single else 1e-12
    size = np.abs(dense).max()
    everyone = np.arange(N, dtype=np.int32)
    for chosen in (everyone[:1], rng.permutation(everyone)[:37], everyone):
        block = np.array(matrix.square(chosen, single))
        assert block.dtype == dense.dtype
        np.testing.assert_allclose(block, dense[np.ix_(chosen, chosen)], rtol=rel, atol=rel * size)
        np.testing.assert_array_equal(block, block.T)
    for rows in (None, everyone[5:6], rng.permutation(everyone)[:50]):
        for cols in (everyone[3:4], rng.permutation(everyone)[:41], everyone):
            v = rng.normal(size=len(cols)).astype(dense.dtype)
            product = matrix.columns_product(cols, v, rows, single)
            assert product.dtype == np.float64
            expected = dense.astype(np.float64)[:, cols] @ v
            np.testing.assert_allclose(
                product, expected if rows is None else expected[rows], rtol=rel, atol=rel * size * np.abs(v).sum()
            )


@each("single", [False, True])
@each("kernel", KERNELS, ids=str)
def test_few_columns_of_compiled_kernels(kernel, single):
    for matrix, dense in policies(kernel, single):
        assert_same(matrix, dense, single, np.random.default_rng(1))


def test_few_columns_of_python_kernels():
    for matrix, dense in policies(FromFunction(shifted_dot)):
        assert_same(matrix, dense, False, np.random.default_rng(2))
        np.testing.assert_allclose(dense, X @ X.T + 1)


@each("single", [False, True])
def test_few_columns_of_sparse_points(single):
    thin = sp.random_array((N, 500), density=0.02, rng=np.random.default_rng(3), format="csr")
    gram = Gram(RBF(2.0), thin)
    dense = gram.dense().astype(np.float32 if single else np.float64)
    assert_same(KernelMatrix(gram), dense, single, np.random.default_rng(3))


@each("held", [False, True])
def test_few_columns_among_some_of_the_points(held):
    gram, rows = Gram(RBF(), X), np.arange(3, 80, 3)
    matrix, K = KernelMatrix(gram, rows), gram.dense()[np.ix_(rows, rows)]
    if held:
        matrix.hold(np.float64)
    some, cols, v = np.array([4, 1, 9]), np.array([0, 7]), np.array([2.0, -1.0])
    np.testing.assert_allclose(matrix.square(some, False), K[np.ix_(some, some)])
    np.testing.assert_allclose(matrix.columns_product(cols, v, None, False), K[:, cols] @ v)
    np.testing.assert_allclose(matrix.columns_product(cols, v, some, False), K[np.ix_(some, cols)] @ v)


def test_rows_that_are_asked_for_again_are_those_of_now():
    gram = Gram(RBF(), X)
    matrix, K = KernelMatrix(gram), gram.dense()
    cols, v = np.arange(4), np.ones(4)
    first, second = np.arange(10), np.arange(10, 20)
    for rows in (first, first, second, first, None, second):
        at = slice(None) if rows is None else rows
        np.testing.assert_allclose(matrix.columns_product(cols, v, rows, False), K[at][:, cols] @ v)


def test_a_square_is_valid_until_the_next():
    gram = Gram(RBF(), X)
    matrix, K = KernelMatrix(gram), gram.dense()
    for size in (5, 40, 3, 60):
        chosen = np.arange(size)[::-1]
        np.testing.assert_allclose(matrix.square(chosen, False), K[np.ix_(chosen, chosen)])


def test_sums_of_single_precision_values_are_kept_in_double():
    matrix = KernelMatrix(Gram(Linear(), np.zeros((1000, 1))))
    matrix.held = np.full((1000, 1000), np.float32(0.1))
    v = np.where(np.arange(1000) % 2 == 0, 1e6, -1e6) + 1.0
    product = matrix.columns_product(np.arange(1000), v, None, True)
    np.testing.assert_allclose(product, float(np.float32(0.1)) * v.sum(), rtol=1e-9)


def test_no_columns_give_nothing():
    for matrix, _ in policies(FromFunction(shifted_dot)):
        assert not matrix.columns_product(np.arange(0), np.zeros(0), None, False).any()
