import math

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics.pairwise import rbf_kernel

from mercer.kernels import RBF
from samples import vectors


@pytest.mark.parametrize("gamma", [0.01, 0.5, 3.0])
def test_agrees_with_scikit_learn(gamma):
    X, Z = vectors(), vectors(7, seed=1)
    # scikit-learn's distances go through norms, and lose digits that ours keep.
    np.testing.assert_allclose(RBF.from_gamma(gamma)(X, Z), rbf_kernel(X, Z, gamma=gamma), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("scale", [0.3, [0.5, 1.0, 4.0]])
def test_agrees_with_the_gaussian_process_kernel(scale):
    X, Z = vectors(), vectors(7, seed=1)
    np.testing.assert_allclose(RBF(scale)(X, Z), gp.RBF(scale)(X, Z), rtol=1e-12, atol=1e-300)


def test_conventions_translate():
    X = vectors()
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
    np.testing.assert_allclose(RBF.from_gamma(0.3)(X), np.exp(-0.3 * squared), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(RBF.from_sigma2(1.7)(X), np.exp(-squared / 1.7), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(RBF(1.7)(X), np.exp(-squared / (2 * 1.7**2)), rtol=1e-12, atol=1e-300)
    assert RBF.from_gamma(0.5) == RBF.from_sigma2(2.0) == RBF(1.0)
    assert RBF.from_gamma(2.0).scale == pytest.approx(math.sqrt(1 / 4))


def test_one_for_a_point_and_itself_exactly():
    X = vectors() * 1e7 + 1e9
    K = RBF(0.7)(X)
    assert (np.diag(K) == 1).all()
    assert K[0, 1] == 1.0  # two equal rows


@pytest.mark.parametrize("make", [RBF.from_gamma, RBF.from_sigma2])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_other_parameters_are_checked_by_their_own_name(make, value):
    with pytest.raises(ValueError, match=r"(gamma|sigma2) of RBF must be > 0 and finite; it is"):
        make(value)
