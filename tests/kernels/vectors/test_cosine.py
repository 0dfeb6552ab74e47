"""Kernels of angles: the cosine, and the means of random units."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import cosine_similarity

from mercer.kernels import ArcCosine, Cosine, Linear
from samples import vectors


def test_agrees_with_scikit_learn():
    X, Z = vectors(), vectors(7, seed=1)
    np.testing.assert_allclose(Cosine()(X, Z), cosine_similarity(X, Z), rtol=1e-13, atol=1e-15)


def test_is_the_normalized_linear_kernel():
    X = vectors()
    np.testing.assert_allclose(Cosine()(X), Linear().normalized()(X), rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(Cosine()(X)[2], 0.0)  # a row of zeros has no direction


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("as_points", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_length_does_not_matter_however_small_or_large(dtype, as_points):
    rows = np.zeros((9, 600))
    rows[:, :3] = vectors(9)
    rows[2] = rows[6]
    top = np.log10(np.finfo(dtype).max) - 4
    lengths = 10.0 ** np.linspace(-top, top, 9)
    K = Cosine()(as_points((rows * lengths[:, None]).astype(dtype)))
    np.testing.assert_allclose(K, Cosine()(rows), atol=50 * np.finfo(dtype).eps)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_is_the_mean_of_random_units(order):
    X = vectors()[[0, 4, 6, 7, 8, 9]]
    X = X / np.linalg.norm(X, axis=1)[:, None] * np.linspace(0.5, 2, len(X))[:, None]
    n = 400_000
    projected = np.random.default_rng(0).normal(size=(n, 3)) @ X.T
    units = (projected > 0) * projected**order
    products = 2 * units[:, :, None] * units[:, None, :]
    error = products.std(axis=0) / np.sqrt(n)
    assert (np.abs(ArcCosine(order)(X) - products.mean(axis=0)) < 5 * error).all()


@pytest.mark.parametrize("order", [0, 1, 2])
def test_agrees_with_the_arc_cosine_where_that_is_exact(order):
    X = vectors(12)[6:]
    length = np.linalg.norm(X, axis=1)
    cosine = np.clip(X @ X.T / np.outer(length, length), -1, 1)
    angle = np.arccos(cosine)
    J = [
        np.pi - angle,
        np.sin(angle) + (np.pi - angle) * cosine,
        3 * np.sin(angle) * cosine + (np.pi - angle) * (1 + 2 * cosine**2),
    ][order]
    off = ~np.eye(len(X), dtype=bool)
    wanted = np.outer(length, length) ** order * J / np.pi
    np.testing.assert_allclose(ArcCosine(order)(X)[off], wanted[off], rtol=1e-10)


def test_small_angles_keep_their_digits():
    tiny = 1e-9
    X = np.array([[1.0, 0.0], [1.0, tiny], [-1.0, tiny]])
    K = ArcCosine(order=0)(X)
    assert 1 - K[0, 1] == pytest.approx(tiny / np.pi, rel=1e-6)
    assert K[0, 2] == pytest.approx(tiny / np.pi, rel=1e-6)


def test_length_enters_to_the_order():
    X = vectors()
    for order in (0, 1, 2):
        k, root = ArcCosine(order), np.sqrt(ArcCosine(order).diag(X))
        assert (np.abs(k(3 * X) - 9.0**order * k(X)) <= 1e-14 * 9.0**order * np.outer(root, root)).all()


@pytest.mark.parametrize("order", [3, -1, 0.5, "1"])
def test_order_is_zero_one_or_two(order):
    with pytest.raises(ValueError, match=r"order of ArcCosine must be 0, 1 or 2; it is"):
        ArcCosine(order)
