"""Views as orthonormal bases of the images, and the correlations between two of them."""

import numpy as np
import pytest

from mercer import RBF, Gram, Linear
from mercer.solvers.unsupervised.cca import _leading, canonical, view

X = np.random.default_rng(0).normal(size=(90, 4)) + 2.0


def centred(K):
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


@pytest.mark.parametrize("rank", [None, 90], ids=["dense", "factor"])
@pytest.mark.parametrize("kernel", [Linear(), RBF(3.0)], ids=["linear", "rbf"])
def test_a_view_is_a_basis_of_the_centred_images(kernel, rank):
    found = view(Gram(kernel, X), rank, tol=1e-13)
    K = centred(kernel(X))
    np.testing.assert_allclose((found.U * found.s) @ found.U.T, K, atol=1e-8 * K.max())
    np.testing.assert_allclose(found.U.T @ found.U, np.eye(len(found.s)), atol=1e-7)
    points = X if found.centres is None else X[found.centres]
    if isinstance(kernel, Linear):  # weak directions of the Gaussian matrix amplify rounding
        np.testing.assert_allclose(kernel(X, points) @ found.B + found.b, found.U * np.sqrt(found.s), atol=1e-9)
        np.testing.assert_allclose(found.B.T @ kernel(points) @ found.B, np.eye(4), atol=1e-9)


def test_a_factor_leaves_out_what_it_says():
    K = RBF(1.0)(X)
    for rank in (5, 20, 60):
        found = view(Gram(RBF(1.0), X), rank)
        points = X[found.centres]
        approximation = RBF(1.0)(X, points) @ np.linalg.solve(RBF(1.0)(points), RBF(1.0)(points, X))
        assert len(found.centres) <= rank
        assert found.error == pytest.approx(1 - np.trace(approximation) / np.trace(K), abs=1e-9)


def test_a_budget_bounds_the_rank():
    found = view(Gram(RBF(1.0), X, budget=32 * 90 * 7))
    assert len(found.centres) <= 7
    with pytest.raises(MemoryError, match="one row of a factor of 90 points"):
        view(Gram(RBF(1.0), X, budget=100))


@pytest.mark.parametrize("shape", [(40, 50), (120, 90), (90, 120)])
def test_leading_singular_vectors(shape, monkeypatch):
    monkeypatch.setattr("mercer.solvers.unsupervised.cca._FULL", 60)  # beyond it, only what is wanted
    rng = np.random.default_rng(1)
    P, Q = (np.linalg.qr(rng.normal(size=(m, 20)))[0] for m in shape)
    values = 0.9 ** np.arange(20)
    T = (P * values) @ Q.T
    left, found, right = _leading(T, 3)
    np.testing.assert_allclose(found, values[:3])
    np.testing.assert_allclose(left.T @ T @ right, np.diag(values[:3]), atol=1e-9)
    np.testing.assert_allclose(left.T @ left, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(right.T @ right, np.eye(3), atol=1e-9)


def test_a_view_and_itself_are_as_correlated_as_the_penalty_allows():
    found = view(Gram(Linear(), X))
    correlations, a, b = canonical(found, found, 4, 0.1)
    penalty = 0.1 * found.s.sum()
    np.testing.assert_allclose(correlations, np.sort(found.s / (found.s + penalty))[::-1])
    np.testing.assert_allclose(a, b, atol=1e-12)
