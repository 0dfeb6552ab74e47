import numpy as np
import pytest
from sklearn.gaussian_process import kernels as gp

from mercer.kernels import Periodic
from mercer.testing import positive_semidefinite
from samples import vectors


@pytest.mark.parametrize(("period", "scale"), [(1.0, 1.0), (2.5, 0.4), (0.3, 3.0)])
def test_one_feature_is_scikit_learns_kernel(period, scale):
    X, Z = vectors(d=1), vectors(7, d=1, seed=1)
    wanted = gp.ExpSineSquared(length_scale=scale, periodicity=period)(X, Z)
    np.testing.assert_allclose(Periodic(period, scale)(X, Z), wanted, rtol=1e-11, atol=1e-13)


def test_several_features_multiply():
    X = vectors()
    wanted = np.prod([Periodic(p, 0.8)(X[:, [j]]) for j, p in enumerate([1.0, 2.0, 5.0])], axis=0)
    np.testing.assert_allclose(Periodic([1.0, 2.0, 5.0], 0.8)(X), wanted, rtol=1e-11, atol=1e-14)


def test_values_repeat_with_the_period():
    X = vectors()
    k = Periodic([1.0, 2.0, 4.0])
    shifted = X + np.array([3.0, -4.0, 8.0])
    np.testing.assert_allclose(k(X, shifted), k(X), rtol=1e-10)
    assert k(X, X[:1] + np.array([1e6, 2e6, 4e6]))[0, 0] == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_is_positive_semidefinite_where_the_sine_of_a_norm_is_not(d):
    X = np.random.default_rng(0).uniform(-2, 2, size=(60, d))
    positive_semidefinite(Periodic(1.0, scale=0.5), X)
    if d > 1:
        assert np.linalg.eigvalsh(gp.ExpSineSquared(length_scale=0.5, periodicity=1.0)(X))[0] < -0.1


def test_parameters_are_checked():
    with pytest.raises(ValueError, match=r"period of Periodic must be > 0 and finite; it is 0"):
        Periodic(0.0)
    with pytest.raises(ValueError, match=r"every period of Periodic must be > 0 and finite; it is -1"):
        Periodic([1.0, -1.0])
    with pytest.raises(ValueError, match=r"scale of Periodic must be > 0 and finite"):
        Periodic(1.0, scale=-1.0)
    with pytest.raises(ValueError, match=r"period has 2 entries but the points have 3 features"):
        Periodic([1.0, 2.0])(vectors())
