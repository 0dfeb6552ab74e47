import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import chi2_kernel

from mercer.kernels import ChiSquared, Intersection
from samples import histograms, vectors


@pytest.mark.parametrize("gamma", [0.1, 1.0, 4.0])
def test_chi_squared_agrees_with_scikit_learn(gamma):
    X, Z = histograms(), histograms(7, seed=1)
    np.testing.assert_allclose(ChiSquared(gamma)(X, Z), chi2_kernel(X, Z, gamma=gamma), rtol=1e-12, atol=1e-300)


def test_intersection_is_the_sum_of_minima():
    X, Z = histograms(), histograms(7, seed=1)
    np.testing.assert_allclose(Intersection()(X, Z), np.minimum(X[:, None], Z[None]).sum(axis=-1), rtol=1e-14)
    np.testing.assert_allclose(Intersection().diag(X), X.sum(axis=1), rtol=1e-14)


def test_intersection_is_the_overlap_of_intervals():
    X = histograms(6, d=1)
    t = (np.arange(200_000) + 0.5) / 200_000 * X.max()
    inside = (t[None] < X).astype(float)
    np.testing.assert_allclose(Intersection()(X), inside @ inside.T * X.max() / 200_000, atol=1e-3)


@pytest.mark.parametrize("k", [ChiSquared(), Intersection()], ids=repr)
@pytest.mark.parametrize("name", ["X", "Z"])
def test_negative_features_are_refused(k, name):
    good, bad = histograms(5), histograms(5)
    bad[3, 1] = -0.25
    sets = (bad, good) if name == "X" else (good, bad)
    with pytest.raises(ValueError, match=rf"{name} contains -0\.25 at row 3, column 1; .*non-negative.*MinMaxScaler"):
        k(*sets)
    with pytest.raises(ValueError, match=r"X contains -0\.25"):
        k.diag(bad)
    thin = sparse.random_array((20, 900), density=0.01, format="csr", rng=0)
    thin.data[7] = -0.5
    with pytest.raises(ValueError, match=r"X contains -0\.5"):
        k(thin)


def test_gamma_must_be_positive():
    with pytest.raises(ValueError, match=r"gamma of ChiSquared must be > 0"):
        ChiSquared(-1.0)


def test_all_zero_histograms_are_equal():
    X = np.zeros((3, 2))
    np.testing.assert_array_equal(ChiSquared()(X), np.ones((3, 3)))
    np.testing.assert_array_equal(Intersection()(X), np.zeros((3, 3)))
    assert ChiSquared()(np.abs(vectors())).max() == 1.0
