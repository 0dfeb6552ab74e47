"""Sums of kernel functions: every way to evaluate them gives the same numbers, and projections obey their laws."""

import pickle

import numpy as np
import pytest

from mercer.estimators import SVC
from mercer.kernels import RBF, Laplacian, Linear
from mercer.rkhs.functions.sums import Expansion


def made(sizes, d=40, functions=3, seed=0):
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(sum(sizes), d)) + 5.0
    return S, [rng.normal(size=(n, functions)) for n in sizes], rng.normal(size=(50, d)) + 5.0


def expected(kernel, S, blocks, X):
    K, out, start = kernel(X, S), [], 0
    for block in blocks:
        out.append(K[:, start : start + len(block)] @ block)
        start += len(block)
    return np.stack(out, axis=1)


@pytest.mark.parametrize("sizes", [[70], [60, 80, 50], [3, 1, 4, 2], [50, 0, 90]], ids=str)
@pytest.mark.parametrize("kernel", [RBF(5.0), RBF(0.3), Laplacian(20.0), Linear(), RBF([5.0] * 40)], ids=str)
@pytest.mark.parametrize("single", [False, True])
def test_sums_are_products_with_the_kernel_matrix(sizes, kernel, single):
    S, blocks, X = made(sizes)
    seen = Expansion(kernel, S, blocks, single).sums(X)
    right = expected(kernel, S, blocks, X)
    np.testing.assert_allclose(
        seen, right, atol=(3e-6 if single else 1e-12) * max(1.0, np.abs(kernel(X, S)).max()) * 10
    )
    np.testing.assert_allclose(Expansion(kernel, S, blocks).sums_of_rows(kernel(X, S)), right, atol=1e-9)


def test_one_point_far_from_the_others_spoils_nothing():
    S, blocks, X = made([80])
    far = X.copy()
    far[0] = 1e4
    np.testing.assert_allclose(
        Expansion(RBF(5.0), S, blocks, single=True).sums(far), expected(RBF(5.0), S, blocks, far), atol=1e-4
    )


def test_what_float32_cannot_hold_stays_float64():
    S, blocks, X = made([80])
    X[3] = 1e30
    np.testing.assert_allclose(
        Expansion(RBF(5.0), S, blocks, single=True).sums(X), expected(RBF(5.0), S, blocks, X), atol=1e-4
    )


def test_prepared_points_are_not_pickled():
    S, blocks, X = made([80])
    e = Expansion(RBF(5.0), S, blocks, single=True)
    size = len(pickle.dumps(e))
    before = e.sums(X)
    assert len(pickle.dumps(e)) == size
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(e)).sums(X), before)


def test_a_fit_in_float32_predicts_in_float32_and_close_to_float64():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 30))
    y = (np.sin(X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=1500) > 0).astype(int)
    narrow = SVC(dtype="float32").fit(X, y)
    assert narrow._expansion.single
    wide = expected(narrow.kernel_, narrow.support_vectors_, narrow._expansion.blocks, X)[:, 0, 0] + narrow.intercept_
    np.testing.assert_allclose(narrow.decision_function(X), wide, atol=1e-4)
