import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer import Gram, verdict
from mercer.kernels import RBF, Constant, FromFunction, Linear, Polynomial, PowerSeries
from samples import minus_log, vectors


@given(st.lists(st.floats(0, 3), min_size=1, max_size=6))
def test_coefficients_weigh_the_powers(c):
    X = vectors(8)[:, :2] / 30
    k = PowerSeries(Linear(), c)
    np.testing.assert_allclose(k(X), sum(a * (X @ X.T) ** m for m, a in enumerate(c)), rtol=1e-10, atol=1e-12)
    assert k.proof().proven
    F = k.feature_map().fit_transform(X)
    np.testing.assert_allclose(F @ F.T, k(X), rtol=1e-10, atol=1e-12)


def test_known_series():
    X = vectors(12)
    k = RBF(1.0)
    np.testing.assert_allclose(PowerSeries(k, function=np.exp)(X), k.exp()(X), rtol=1e-14)
    inverse = PowerSeries(0.9 * k, function=lambda t: 1 / (1 - t), radius=1.0)
    np.testing.assert_allclose(inverse(X), (0.9 * k).geometric()(X), rtol=1e-14)
    np.testing.assert_allclose(PowerSeries(Linear(), [1.0, 2.0, 1.0])(X), Polynomial(2)(X), rtol=1e-12)
    assert Gram(PowerSeries(k, [1.0, 2.0, 1.0]), X).compiled
    assert Gram(inverse, X).compiled


def test_the_proof_says_what_is_claimed():
    listed, claimed = PowerSeries(RBF(1.0), [1.0, 1.0]).proof(), PowerSeries(RBF(1.0), function=np.sin).proof()
    assert listed.proven
    assert claimed.status == "unproven"
    assert claimed.gaps() == [claimed]
    assert "is claimed, not shown; verdict(k, X) tests" in claimed.reason
    assert not PowerSeries(FromFunction(max), [1.0]).proof().proven
    line = np.linspace(-2, 2, 9)[:, None]
    assert not verdict(PowerSeries(9.0 * RBF(1.0), function=np.sin), line)  # whose third coefficient is negative
    assert verdict(PowerSeries(9.0 * RBF(1.0), function=np.sinh), line)


def test_outside_the_radius_the_value_is_named():
    k = PowerSeries(3.0 * RBF(1.0), function=minus_log, radius=2.0)
    with pytest.raises(
        ValueError, match=r"the power series converges only where k\(x, x\) < 2; here it reaches 3 at .*"
    ):
        k(vectors())
    with pytest.raises(ValueError, match=r"here it reaches 3 at point 0\. Use a \* k in place of k with a < 0\.666667"):
        k.diag(vectors())
    with pytest.raises(ValueError, match=r"1 / \(1 - k\) converges only where k\(x, x\) < 1; here it reaches 1 "):
        Constant(1.0).geometric()(vectors())


@pytest.mark.parametrize(
    ("given_", "error", "sentence"),
    [
        ({}, ValueError, "one of them; it got neither"),
        ({"coefficients": [1.0], "function": np.exp}, ValueError, "one of them; it got both"),
        (
            {"coefficients": [1.0, -0.5]},
            ValueError,
            r"coefficient 1 of PowerSeries must be >= 0 and finite; it is -0\.5",
        ),
        ({"coefficients": []}, ValueError, r"must be a flat list of numbers; they are \[\]"),
        ({"coefficients": "exp"}, ValueError, "must be a flat list of numbers; they are 'exp'"),
        ({"function": 2.0}, TypeError, r"function of PowerSeries must be a function of a number; it is 2\.0"),
        ({"function": np.exp, "radius": 0.0}, ValueError, "radius of PowerSeries must be > 0"),
    ],
)
def test_parameters_are_checked(given_, error, sentence):
    with pytest.raises(error, match=sentence):
        PowerSeries(RBF(1.0), **given_)
    with pytest.raises(TypeError, match="base of PowerSeries must be a kernel"):
        PowerSeries(1.0, [1.0])
