"""Mean embeddings: means of functions as inner products, and distances of samples."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from mercer.kernels import RBF, Delta, FromFunction, Laplacian, Linear, Matern, Polynomial, Precomputed
from mercer.rkhs import RKHSFunction, mean_embedding, squared_mmd, witness
from samples import SIMILARITIES, indices, shared_letters, table, vectors, words

SPACES = [
    (RBF(1.5), vectors),
    (Linear(), vectors),
    (Polynomial(2) + Laplacian(2.0), vectors),
    (Matern(scale=[0.5, 1.0, 4.0]), vectors),
    (FromFunction(shared_letters), words),
    (Precomputed(SIMILARITIES), indices),
    (RBF(10.0).on("age") * Delta().on("town"), table),
]
spaces = st.sampled_from(SPACES)
seeds = st.integers(0, 2**20)


def unbiased(K, n):
    """The estimate written out: means over pairs of different points."""
    xx, yy, xy = K[:n, :n], K[n:, n:], K[:n, n:]
    m = len(yy)
    inside = (xx.sum() - np.trace(xx)) / (n * (n - 1)) + (yy.sum() - np.trace(yy)) / (m * (m - 1))
    return inside - 2 * xy.mean()


@given(spaces, seeds, st.booleans())
def test_means_are_inner_products(space, seed, weighted):
    kernel, points = space
    X, centres = points(9, seed=seed), points(6, seed=seed + 1)
    rng = np.random.default_rng(seed)
    w = rng.exponential(size=9) if weighted else None
    f = RKHSFunction(kernel, centres, rng.normal(size=6))
    size = np.abs(f.coefficients).sum() * np.abs(kernel(centres, X)).max()
    assert f @ mean_embedding(kernel, X, w) == pytest.approx(np.average(f(X), weights=w), abs=1e-12 * (1 + size))


@given(spaces, seeds)
def test_the_distance_of_embeddings_is_the_formula(space, seed):
    kernel, points = space
    X, Y = points(8, seed=seed), points(6, seed=seed + 1)
    p, q = mean_embedding(kernel, X), mean_embedding(kernel, Y)
    K, L, M = kernel(X), kernel(Y), kernel(X, Y)
    size = max(np.abs(K).max(), np.abs(L).max())
    squared = K.mean() + L.mean() - 2 * M.mean()
    assert squared_mmd(X, Y, kernel, unbiased=False) == pytest.approx(squared, abs=1e-11 * size)
    assert p.distance(q) ** 2 == pytest.approx(squared, abs=1e-11 * size)
    assert witness(X, Y, kernel).norm() == pytest.approx(p.distance(q), abs=1e-5 * math.sqrt(size))
    both = np.block([[K, M], [M.T, L]])
    assert squared_mmd(X, Y, kernel) == pytest.approx(unbiased(both, 8), abs=1e-11 * size)
    assert squared_mmd(X, Y, kernel) == pytest.approx(squared_mmd(Y, X, kernel), abs=1e-11 * size)


def test_with_the_linear_kernel_it_is_the_distance_of_the_means():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 4)), rng.normal(size=(20, 4)) + 1.0
    assert squared_mmd(X, Y, Linear(), unbiased=False) == pytest.approx(np.sum((X.mean(0) - Y.mean(0)) ** 2))


def test_the_default_is_a_gaussian_kernel_of_the_median_distance():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 2)), rng.normal(size=(20, 2)) + 1.0
    Z = np.vstack([X, Y])
    distance = np.linalg.norm(Z[:, None] - Z, axis=2)[np.triu_indices(50, 1)]
    K = rbf_kernel(Z, gamma=0.5 / np.median(distance) ** 2)
    assert squared_mmd(X, Y) == pytest.approx(unbiased(K, 30))
    assert witness(X, Y).kernel == RBF("median").resolve(Z)


def test_the_unbiased_estimate_has_mean_zero_over_all_divisions():
    Z = np.random.default_rng(0).exponential(size=(12, 2))
    rng = np.random.default_rng(1)
    found = []
    for _ in range(2000):
        order = rng.permutation(12)
        found.append(squared_mmd(Z[order[:5]], Z[order[5:]], Polynomial(2)))
    assert abs(np.mean(found)) < 4 * np.std(found) / math.sqrt(2000)


def test_the_witness_has_the_largest_difference_of_means():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 1)), rng.laplace(size=(50, 1))
    f = witness(X, Y, RBF(0.5))
    best = (f(X).mean() - f(Y).mean()) / f.norm()
    assert best == pytest.approx(f.norm())
    for seed in range(20):
        centres, a = rng.normal(size=(5, 1)), np.random.default_rng(seed).normal(size=5)
        other = RKHSFunction(RBF(0.5), centres, a)
        assert (other(X).mean() - other(Y).mean()) / other.norm() <= best * (1 + 1e-12)


@pytest.mark.parametrize(("kernel", "points"), SPACES, ids=["rbf", "linear", "sum", "ard", "words", "matrix", "table"])
def test_order_does_not_matter_and_equal_samples_do_not_differ(kernel, points):
    X, Y = points(9), points(7, seed=3)
    back = X.iloc[::-1] if isinstance(X, pd.DataFrame) else X[::-1]
    size = 1e-11 * np.abs(kernel.diag(X)).max()
    for choice in (True, False):
        found = squared_mmd(X, Y, kernel, unbiased=choice)
        assert squared_mmd(back, Y, kernel, unbiased=choice) == pytest.approx(found, abs=100 * size)
    assert squared_mmd(X, back, kernel, unbiased=False) == pytest.approx(0.0, abs=size)


def test_containers():
    X, Y = vectors(8), vectors(6, seed=1)
    found = squared_mmd(X, Y, RBF(1.0))
    assert squared_mmd(X.tolist(), Y, RBF(1.0)) == pytest.approx(found)
    assert squared_mmd(sparse.csr_array(X), sparse.csr_array(Y), RBF(1.0)) == pytest.approx(found)
    assert squared_mmd(pd.DataFrame(X), pd.DataFrame(Y), RBF(1.0)) == pytest.approx(found)
    torch = pytest.importorskip("torch")
    assert squared_mmd(torch.tensor(X), torch.tensor(Y), RBF(1.0)) == pytest.approx(found)


def test_float32_samples_are_compared_in_double():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)).astype(np.float32)
    Y = X + np.float32(1e-4)
    exact = squared_mmd(X.astype(np.float64), Y.astype(np.float64), RBF(1.0), unbiased=False)
    assert squared_mmd(X, Y, RBF(1.0), unbiased=False) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("factor", [1e-150, 1e-8, 1.0, 1e8, 1e150])
def test_the_median_scale_makes_it_independent_of_units(factor):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 2)), rng.normal(size=(30, 2)) + 0.5
    assert squared_mmd(factor * X, factor * Y) == pytest.approx(squared_mmd(X, Y), rel=1e-9)


def test_weights_are_shares():
    X = [[0.0], [1.0], [2.0]]
    assert mean_embedding(RBF(1.0), X, [2, 2, 4]).coefficients.tolist() == [0.25, 0.25, 0.5]
    assert mean_embedding(RBF(1.0), X, [1e308, 1e308, 0]).coefficients.tolist() == [0.5, 0.5, 0.0]


def test_errors_are_sentences():
    X = np.zeros((3, 2))
    with pytest.raises(ValueError, match=r"weights have shape \(2,\) and there are 3 points"):
        mean_embedding(RBF(1.0), X, [1.0, 1.0])
    with pytest.raises(ValueError, match="at least 0 and not all 0; they lie between -1 and 1"):
        mean_embedding(RBF(1.0), X, [1.0, -1.0, 0.0])
    with pytest.raises(ValueError, match="not all 0"):
        mean_embedding(RBF(1.0), X, [0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="3 and 1 points; the unbiased estimate averages over pairs"):
        squared_mmd(X, X[:1])
    with pytest.raises(TypeError, match="kernel must be a kernel object such as"):
        squared_mmd(X, X, "rbf")
    with pytest.raises(
        ValueError, match="X has the columns 0, 1 and Y has 0, 1, 2; two samples are compared by the same"
    ):
        witness(X, np.zeros((4, 3)))
    with pytest.raises(ValueError, match="X has the columns a and Y has b"):
        witness(pd.DataFrame({"a": [1.0]}), pd.DataFrame({"b": [1.0]}))
    with pytest.raises(ValueError, match="contains NaN"):
        squared_mmd(X, np.full((2, 2), np.nan))
    with pytest.raises(ValueError, match="Y is empty"):
        squared_mmd(X, X[:0])
    with pytest.raises(TypeError, match="not numeric"):
        squared_mmd(["a", "b"], ["c", "d"])
