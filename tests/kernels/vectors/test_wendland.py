import numpy as np
import pytest
from sympy import Poly, Rational, integrate, symbols

from mercer.kernels import Wendland
from mercer.testing import positive_semidefinite
from samples import vectors


@pytest.mark.parametrize("smoothness", [0, 1, 2])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 7])
def test_is_positive_semidefinite_in_every_dimension(smoothness, d):
    rng = np.random.default_rng(d)
    X = rng.uniform(-1, 1, size=(150, d)) * 150 ** (-0.5 / d)
    k = Wendland(smoothness, scale=1.0)
    assert 0 < (k(X) > 0).mean() <= 1
    positive_semidefinite(k, X)


def test_the_kernel_of_one_dimension_is_none_in_eight():
    """Which is why the exponent follows the dimension."""
    corners = np.array(np.meshgrid(*[[0.0, 1.0]] * 8)).reshape(8, -1).T
    r = np.sqrt(((corners[:, None] - corners[None]) ** 2).sum(axis=-1))
    of_one_dimension = Wendland(0, scale=2.0)(np.zeros((1, 1)), r.reshape(-1, 1)).reshape(r.shape)
    assert np.linalg.eigvalsh(of_one_dimension)[0] < -1
    positive_semidefinite(Wendland(0, scale=2.0), corners)


@pytest.mark.parametrize("smoothness", [0, 1, 2])
def test_support_ends_exactly_at_the_scale(smoothness):
    X = np.array([[0.0], [1.999], [2.0], [2.5], [1e200]])
    K = Wendland(smoothness, scale=2.0)(X)
    assert K[0, 1] > 0
    np.testing.assert_array_equal(K[0, 2:], 0.0)
    np.testing.assert_array_equal(np.diag(K), 1.0)


@pytest.mark.parametrize("smoothness", [0, 1, 2])
@pytest.mark.parametrize("d", [1, 3, 4])
def test_agrees_with_wendlands_recursion(smoothness, d):
    """phi_(l, k) is phi_(l, 0)(r) = (1 - r)^l after k times the integral of t phi(t) from r to 1."""
    r, t = symbols("r t")
    phi = (1 - r) ** (d // 2 + smoothness + 1)
    for _ in range(smoothness):
        phi = integrate((t * phi.subs(r, t)).expand(), (t, r, 1))
    polynomial = Poly((phi / phi.subs(r, 0)).expand(), r)
    for x in (Rational(1, 10), Rational(1, 2), Rational(9, 10)):
        points = np.zeros((2, d))
        points[1, 0] = float(x)
        assert Wendland(smoothness, scale=1.0)(points)[0, 1] == pytest.approx(float(polynomial.eval(x)), rel=1e-11)


def test_smoothness_is_checked():
    with pytest.raises(ValueError, match=r"smoothness of Wendland must be 0, 1 or 2; it is 3"):
        Wendland(3)
    with pytest.raises(TypeError, match=r"has a spectral law, but not one in closed form"):
        Wendland(1, 1.0).spectral_law(2)
    assert Wendland(1, 1.0)(vectors()).shape == (24, 24)
