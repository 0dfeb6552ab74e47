import numpy as np
import pytest

from mercer.kernels import ArcCosine
from samples import vectors


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
