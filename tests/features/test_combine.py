"""Feature maps of composite kernels: inner products equal the kernel."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from mercer import Constant, Cosine, FromFeatures, Linear, Polynomial
from mercer.features.combine import exact_features


def first_column_plus_one(X):
    return np.asarray(X)[:, 0] + 1.0


KERNELS = [
    Linear() + Polynomial(2),
    2.5 * Linear(),
    Linear() * Polynomial(2, c1=0.5, c2=2.0),
    Linear() ** 3,
    Constant(2.0) + Linear(),
    Polynomial(2).on([0, 2]),
    Polynomial(2).normalized(),
    Cosine() * Linear(),
    Linear().compose(np.tanh),
    Linear().rescaled(first_column_plus_one),
    FromFeatures(np.square) + Linear(),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_inner_products_equal_the_kernel(kernel):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(9, 3)), rng.normal(size=(5, 3))
    phi = kernel.feature_map().fit(X)
    np.testing.assert_allclose(phi.transform(X) @ phi.transform(Z).T, kernel(X, Z), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kernel", [Linear() * Linear(), Linear() + Polynomial(2), 3 * Linear()], ids=repr)
def test_sparse_points(kernel):
    X = sparse.random_array((7, 5), density=0.4, format="csr", rng=np.random.default_rng(1))
    phi = kernel.feature_map().fit(X)
    F = phi.transform(X)
    np.testing.assert_allclose((F @ F.T).toarray(), kernel(X.toarray()), atol=1e-12)


def test_a_kernel_without_finite_map_says_so():
    from mercer import RBF

    with pytest.raises(TypeError, match=r"RBF\(scale=1.0\) has no finite exact feature map; approximate it with"):
        (RBF(1.0) + Linear()).feature_map()


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_exact_features_are_those_of_the_kernel_if_they_are_few(kernel):
    X = np.random.default_rng(0).normal(size=(9, 3))
    Phi = exact_features(kernel, X.astype(np.float32), 1000)
    assert Phi.dtype == np.float64
    np.testing.assert_allclose(Phi @ Phi.T, kernel(X.astype(np.float32).astype(float)), rtol=1e-10, atol=1e-12)
    assert exact_features(kernel, X, Phi.shape[1] - 1) is None


def test_a_transformer_of_the_user_is_neither_refitted_nor_taken_for_another():
    X = np.random.default_rng(0).normal(size=(9, 3))
    scaler = StandardScaler().fit(5 * X)
    assert exact_features(FromFeatures(scaler), X, 10) is None
    np.testing.assert_allclose(scaler.scale_, 5 * X.std(axis=0))
