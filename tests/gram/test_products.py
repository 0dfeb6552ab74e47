"""Products with the kernel matrix, streamed or held, in both precisions."""

import numpy as np
import pytest
import scipy.sparse as sp

from cases import each
from mercer import RBF, FromFunction, Gram, Laplacian
from mercer.gram.products import Products

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
    products = Products(Gram(RBF(scale=1.3), data))
    if held:
        products.hold(held)
    products = products.take(rows)
    assert products.n == len(chosen)
    assert close(products(V[chosen]), K @ V[chosen], 1e-11)
    assert close(products(V[chosen], single=True), K @ V[chosen], 1e-5)
    assert np.allclose(products.diagonal(), np.diag(K))
    some = np.array([2, 0, 5])
    assert np.allclose(products.values(some, some, False), K[np.ix_(some, some)], atol=1e-12)
    assert np.allclose(products.values(some, slice(0, products.n), True), K[some], atol=1e-5)
    for dtype, error in ((np.float32, 1e-5), (np.float64, 1e-12)):
        assert np.allclose(products.dense(np.empty(K.shape, dtype)), K, atol=error)


def test_holds_only_within_the_budget():
    products = Products(Gram(RBF(), X, budget=90 * 90 * 4))
    products.hold(np.float64)
    assert products.held is None
    products.hold(np.float32)
    assert products.held is not None


def test_float32_only_where_it_is_enough():
    assert Products(Gram(RBF(scale=1.0), X)).single
    assert not Products(Gram(Laplacian(scale=1.0), 1e6 + X)).single
    assert not Products(Gram(FromFunction(lambda a, b: float(a @ b)), X)).single


@pytest.mark.parametrize("n", [1, 255, 256, 2301])
def test_bands_hold_every_pair_once(n):
    points = np.random.default_rng(n).standard_normal((n, 2))
    columns = np.random.default_rng(0).standard_normal((n, 2))
    products = Products(Gram(RBF(scale=1.0), points))
    products.hold_half()
    K = products.dense(np.empty((n, n)))
    assert close(products(columns, single=True), K @ columns, 1e-5)
    assert close(products(columns), K @ columns, 1e-12)
