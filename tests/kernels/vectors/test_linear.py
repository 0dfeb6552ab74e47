import numpy as np
from sklearn.metrics.pairwise import linear_kernel

from mercer.kernels import Linear
from samples import vectors


def test_is_the_inner_product():
    X, Z = vectors(), vectors(7, seed=1)
    np.testing.assert_allclose(Linear()(X, Z), linear_kernel(X, Z), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(Linear().diag(X), (X**2).sum(axis=1), rtol=1e-14)


def test_feature_map_is_the_identity():
    X = vectors()
    np.testing.assert_array_equal(Linear().feature_map().fit_transform(X), X)
