import numpy as np
import pytest
from sklearn.gaussian_process import kernels as gp

from mercer.kernels import RBF, Cauchy, RationalQuadratic
from samples import vectors


@pytest.mark.parametrize("alpha", [0.3, 1.0, 2.0, 16.0, 17.0, 40.5])
def test_agrees_with_the_gaussian_process_kernel(alpha):
    X, Z = vectors(), vectors(7, seed=1)
    wanted = gp.RationalQuadratic(length_scale=0.8, alpha=alpha)(X, Z)
    np.testing.assert_allclose(RationalQuadratic(alpha, 0.8)(X, Z), wanted, rtol=1e-11)


def test_large_alpha_approaches_the_gaussian_kernel():
    X = vectors()
    errors = [np.abs(RationalQuadratic(alpha, 1.3)(X) - RBF(1.3)(X)).max() for alpha in (1.0, 16.0, 1e3, 1e6, 1e9)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-8


def test_cauchy_is_its_member_at_alpha_one():
    X = vectors()
    np.testing.assert_allclose(Cauchy(1.3)(X), RationalQuadratic(1.0, 1.3 / np.sqrt(2))(X), rtol=1e-13)
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
    np.testing.assert_allclose(Cauchy(1.3)(X), 1 / (1 + squared / 1.3**2), rtol=1e-13)


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan"), float("inf")])
def test_alpha_must_be_positive(alpha):
    with pytest.raises(ValueError, match=r"alpha of RationalQuadratic must be > 0 and finite"):
        RationalQuadratic(alpha)
