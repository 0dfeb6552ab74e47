import numpy as np
import pytest
from sklearn.metrics.pairwise import laplacian_kernel

from mercer.kernels import Laplacian
from samples import vectors


@pytest.mark.parametrize("gamma", [0.01, 0.5, 3.0])
def test_agrees_with_scikit_learn(gamma):
    X, Z = vectors(), vectors(7, seed=1)
    wanted = laplacian_kernel(X, Z, gamma=gamma)
    np.testing.assert_allclose(Laplacian(1 / gamma)(X, Z), wanted, rtol=1e-12, atol=1e-300)


def test_auto_has_the_rate_of_scikit_learns_default_on_standardised_data():
    X = vectors()
    X = (X - X.mean()) / X.std()
    np.testing.assert_allclose(Laplacian("auto")(X), laplacian_kernel(X), rtol=1e-12)
    assert Laplacian("auto").resolve(np.ones((4, 3))).scale == 3.0


def test_median_is_of_the_sum_of_absolute_differences():
    X = vectors()
    distances = np.abs(X[:, None] - X[None]).sum(axis=-1)[np.triu_indices(len(X), 1)]
    assert Laplacian("median").resolve(X).scale == pytest.approx(np.median(distances), rel=1e-14)
