import mpmath
import numpy as np
import pytest
from sklearn.gaussian_process import kernels as gp

from mercer.kernels import RBF, Matern
from samples import vectors

DISTANCES = np.concatenate([[0.0], np.logspace(-9, 1.5, 60)])[:, None]


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, 0.3, 0.9, 3.5, 7.2])
@pytest.mark.parametrize("scale", [0.8, [0.5, 1.0, 4.0]])
def test_agrees_with_the_gaussian_process_kernel(nu, scale):
    X, Z = vectors(), vectors(7, seed=1)
    # scikit-learn adds eps to a distance of zero where there is no closed form.
    wanted = gp.Matern(scale, nu=nu)(X, Z)
    np.testing.assert_allclose(Matern(nu, scale)(X, Z), wanted, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("nu", [0.25, 0.7, 1.2, 3.5, 20.0, 80.0, 250.0])
def test_agrees_with_the_definition_in_many_digits(nu):
    values = Matern(nu, scale=1.0)(np.zeros((1, 1)), DISTANCES)[0]
    with mpmath.workdps(60):
        for r, value in zip(DISTANCES[1::3, 0], values[1::3], strict=True):
            x = mpmath.sqrt(2 * mpmath.mpf(nu)) * mpmath.mpf(float(r))
            wanted = 2 ** (1 - mpmath.mpf(nu)) / mpmath.gamma(nu) * x**nu * mpmath.besselk(nu, x)
            assert value == pytest.approx(float(wanted), rel=1e-11, abs=1e-300)
    assert values[0] == 1.0


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_the_general_form_meets_the_closed_ones(nu):
    closed = Matern(nu, scale=1.0)(np.zeros((1, 1)), DISTANCES)
    for step in (-1e-7, 1e-7):
        near = Matern(nu + step, scale=1.0)(np.zeros((1, 1)), DISTANCES)
        np.testing.assert_allclose(near, closed, atol=1e-6)
        assert not np.array_equal(near, closed)


def test_large_nu_approaches_the_gaussian_kernel():
    X = vectors()
    wanted = RBF(1.3)(X)
    errors = [np.abs(Matern(nu, 1.3)(X) - wanted).max() for nu in (10.0, 99.0, 101.0, 1e3, 1e5)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-5
    with pytest.raises(ValueError, match=r"nu of Matern is infinite: .*use RBF"):
        Matern(nu=float("inf"))


def test_is_smooth_across_the_change_of_method_at_large_order():
    below, above = (Matern(nu, 1.0)(np.zeros((1, 1)), DISTANCES) for nu in (100.0 - 1e-9, 100.0))
    np.testing.assert_allclose(below, above, rtol=1e-8, atol=1e-300)


def test_far_points_have_no_similarity_rather_than_no_number():
    X = np.array([[0.0], [1e3], [1e100], [1e200]])
    for nu in (0.5, 0.8, 1.5, 2.5, 4.0, 150.0):
        np.testing.assert_array_equal(Matern(nu, 1.0)(X), np.eye(4))


@pytest.mark.parametrize("nu", [0.0, -0.5, float("nan")])
def test_nu_must_be_positive(nu):
    with pytest.raises(ValueError, match=r"nu of Matern must be > 0 and finite"):
        Matern(nu)
