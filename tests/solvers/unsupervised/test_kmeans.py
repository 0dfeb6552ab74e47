"""Lloyd's algorithm on the kernel matrix: its steps, its updates, and its seeds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer import RBF, Gram, Linear
from mercer.solvers.unsupervised.kmeans import Lloyd

X = np.random.default_rng(0).normal(size=(80, 3))


def brute(K, labels, k, w):
    """Squared distances to the means of the clusters, from all pairs."""
    out = np.empty((len(K), k))
    for c in range(k):
        u = w * (labels == c) / (w * (labels == c)).sum()
        out[:, c] = np.diag(K) - 2 * K @ u + u @ K @ u
    return out


@given(seed=st.integers(0, 10_000), k=st.integers(1, 6), budget=st.sampled_from(["10 MB", "2 kB"]))
def test_updates_by_moved_points_are_exact(seed, k, budget):
    """What is left after many updates is what the final partition says, held or in tiles."""
    rng = np.random.default_rng(seed)
    w = rng.uniform(0.1, 3.0, 80)
    lloyd = Lloyd(Gram(RBF(1.0), X, budget=budget), k, w)
    assert (lloyd.matrix.held is None) == (budget == "2 kB")
    found = lloyd.run(rng.choice(80, k, replace=False), 100, 0.0)
    assert found.converged
    expected = brute(RBF(1.0)(X), found.labels, k, w)
    np.testing.assert_allclose(found.distances, expected, atol=1e-12)
    np.testing.assert_array_equal(found.labels, np.argmin(expected, axis=1))
    assert found.inertia == pytest.approx(w @ expected.min(axis=1))
    np.testing.assert_allclose(found.coefficients.sum(axis=0), 1)


def test_seeds_are_different_points_and_far_apart():
    blobs = np.repeat(np.arange(5.0), 16)[:, None] * 100 + np.random.default_rng(1).normal(size=(80, 1))
    for seed in range(20):
        seeds = Lloyd(Gram(Linear(), blobs), 5, np.ones(80)).plus_plus(np.random.RandomState(seed))
        assert len({int(i) // 16 for i in seeds}) == 5


def test_the_first_distances_are_those_to_the_seeds():
    lloyd = Lloyd(Gram(Linear(), X), 3, np.ones(80))
    chosen = np.array([4, 9, 70])
    expected = np.square(X[:, None] - X[chosen]).sum(axis=2)
    np.testing.assert_allclose(lloyd.from_points(chosen), expected, atol=1e-12)
    assert (lloyd.from_points(chosen)[chosen, [0, 1, 2]] == 0).all()
