"""Ridge regression in feature space against plain linear algebra."""

import numpy as np
import pytest

from mercer import RBF, Gram, Linear, Polynomial, Precomputed
from mercer.gram.matrix import KernelMatrix
from mercer.solvers.systems.feature_space import FeatureSpace

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))
Y = RNG.normal(size=(30, 2))
W = RNG.uniform(0.3, 3.0, 30)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("exact", [False, True])
def test_it_is_the_solution_of_the_bordered_system(intercept, exact):
    gram = Gram(Polynomial(2), X)
    space = (
        FeatureSpace.of_features(gram, W, intercept)
        if exact
        else FeatureSpace.of_matrix(KernelMatrix(gram), W, intercept)
    )
    assert space.exact == exact
    assert space.rank == 6 - intercept
    K, ones = gram.dense(), np.full((30, 1), float(intercept))
    M = np.block([[K + np.diag(0.1 / W), ones], [ones.T, np.full((1, 1), 1.0 - intercept)]])
    inverse = np.linalg.inv(M)
    a = (inverse @ np.vstack([Y, np.zeros((1, 2))]))[:30]
    parts = space.solve(Y, 0.1)
    assert np.allclose(parts.within + parts.beyond, a, atol=1e-9)
    assert np.allclose(parts.values, Y - 0.1 * a / W[:, None], atol=1e-9)
    f, g = K @ parts.within, K @ a
    assert np.allclose(f - f.mean(axis=0), g - g.mean(axis=0), atol=1e-9)
    assert (np.linalg.norm(parts.within, axis=0) < np.linalg.norm(a, axis=0)).all()
    assert np.allclose(space.complement(0.1), 0.1 / W * inverse.diagonal()[:30], atol=1e-9)
    if exact and not intercept:
        assert np.allclose(space.square(a), np.einsum("ij,ik,kj->j", a, K, a))


def test_kernels_without_a_map_of_few_features_have_no_such_space():
    assert FeatureSpace.of_features(Gram(RBF(), X), W) is None
    assert FeatureSpace.of_features(Gram(Polynomial(9), X), W) is not None
    assert FeatureSpace.of_features(Gram(Polynomial(12), X), W) is None  # 91 features of 30 points
    assert FeatureSpace.of_features(Gram(Linear(), X, budget="1 kB"), W) is None
    assert FeatureSpace.of_matrix(KernelMatrix(Gram(RBF(), X, budget="20 kB")), W) is None
    with pytest.raises(np.linalg.LinAlgError, match="eigenvalue of about -2"):
        FeatureSpace.of_matrix(KernelMatrix(Gram(Precomputed(np.array([[1.0, 3], [3, 1]])), np.arange(2))), np.ones(2))
