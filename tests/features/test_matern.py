"""The Matern function against its integral, over all orders and distances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp

from mercer.features.spectral import matern


def by_integral(r: float, nu: float) -> float:
    """K_nu(x) = integral of exp(-x cosh t) cosh(nu t) over t > 0, by trapezoids in logarithms."""
    x = np.sqrt(2 * nu) * r
    t = np.linspace(0, np.arccosh(1 + (800 + 40 * nu) / x), 20_001)
    weights = np.full(t.shape, t[1])
    weights[0] /= 2
    bessel = logsumexp(-x * np.cosh(t) + np.logaddexp(nu * t, -nu * t) - np.log(2), b=weights)
    return float(np.exp((1 - nu) * np.log(2) - gammaln(nu) + nu * np.log(x) + bessel))


@given(r=st.floats(1e-6, 25.0), nu=st.one_of(st.floats(0.05, 5), st.floats(5, 1000)))
@settings(deadline=None, max_examples=100)
def test_against_the_integral(r, nu):
    # The logarithms above lose about nu log(nu) units of rounding.
    assert matern(r, nu) == pytest.approx(by_integral(r, nu), rel=1e-11 + 1e-14 * nu, abs=1e-300)


@pytest.mark.parametrize("nu", [0.01, 0.5, 1.0, 1.5, 2.0, 2.5, 30.0, 99.99, 100.0, 1e4, 1e9, np.inf])
def test_falls_from_one_to_zero_without_nan(nu):
    r = np.concatenate([[0.0], np.logspace(-320, 308, 3000), [np.inf]])
    value = matern(r, nu)
    assert value[0] == 1.0
    assert value[-1] == 0.0
    assert np.isfinite(value).all()
    assert np.diff(value).max() <= 1e-12


def test_orders_join_smoothly_and_reach_the_gaussian():
    r = np.linspace(0, 10, 200)
    np.testing.assert_allclose(matern(r, 100.0), matern(r, 100.0 - 1e-9), rtol=1e-10)
    np.testing.assert_allclose(matern(r, 0.5 + 1e-12), matern(r, 0.5), rtol=1e-10)
    np.testing.assert_allclose(matern(r, 1e12), matern(r, np.inf), atol=1e-10)


@pytest.mark.parametrize("nu", [0.0, -1.0, float("nan")])
def test_bad_smoothness(nu):
    with pytest.raises(ValueError, match=f"must be positive, not {nu}"):
        matern(1.0, nu)
