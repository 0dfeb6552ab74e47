"""Penalties increase, have the derivative they say, and the conjugate that is a supremum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.losses import Ball, Norm, Penalty, SquaredNorm

PENALTIES = [SquaredNorm(), SquaredNorm(0.2), SquaredNorm(0.0), Norm(), Norm(3.0), Norm(0.0), Ball(), Ball(2.5)]
each_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
norms = st.floats(0.0, 1e6)


@each_penalty
@given(s=norms, t=norms)
def test_they_increase_and_are_convex(penalty, s, t):
    low, high = sorted([s, t])
    assert 0.0 <= penalty.value(low) <= penalty.value(high)
    assert 0.0 <= penalty.derivative(low) <= penalty.derivative(high)
    if penalty.value(high) < np.inf:
        line = penalty.value(high) + penalty.derivative(high) * (low - high)
        assert line <= penalty.value(low) + 1e-9 * (1 + penalty.value(high))


@each_penalty
@given(t=st.floats(1e-3, 1e3))
def test_the_derivative_is_the_slope(penalty, t):
    h = 1e-6 * t
    before, after = penalty.value(t - h), penalty.value(t + h)
    if np.isfinite(after):
        assert penalty.derivative(t) == pytest.approx((after - before) / (2 * h), rel=1e-6, abs=1e-9)


@each_penalty
@settings(max_examples=50)
@given(s=st.floats(-5.0, 50.0))
def test_the_conjugate_is_a_supremum(penalty, s):
    t = np.concatenate([np.linspace(0.0, 300.0, 30001), [1e9]])
    supremum = np.max(s * t - penalty.value(t))
    conjugate = penalty.conjugate(s)
    if conjugate == np.inf:
        assert supremum > 0
        assert np.max(s * 2 * t - penalty.value(2 * t)) > 1.5 * supremum  # no end to it
    else:
        assert conjugate == pytest.approx(supremum, rel=1e-4, abs=1e-4)


@each_penalty
@given(t=norms)
def test_fenchel_and_young_meet_at_the_derivative(penalty, t):
    if penalty.value(t) < np.inf:
        s = penalty.derivative(t)
        assert penalty.value(t) + penalty.conjugate(s) == pytest.approx(s * t, rel=1e-12) or isinstance(penalty, Ball)


@each_penalty
def test_they_are_penalties_on_arrays(penalty):
    assert isinstance(penalty, Penalty)
    t = [0.0, 1.0, 2.0]
    for method in (penalty.value, penalty.derivative, penalty.conjugate):
        assert method(t).tolist() == [float(method(x)) for x in t]
    assert eval(repr(penalty)) == penalty


@pytest.mark.filterwarnings("error")
@each_penalty
def test_far_norms(penalty):
    for t in (0.0, 1e-300, 1e200, 1.7e308):
        for method in (penalty.value, penalty.derivative, penalty.conjugate):
            assert not np.isnan(method(t))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SquaredNorm(-1.0), "strength of SquaredNorm must be >= 0 and finite; it is -1.0"),
        (lambda: Norm(-1.0), "strength of Norm must be >= 0 and finite; it is -1.0"),
        (lambda: Norm(np.inf), "strength of Norm must be >= 0 and finite; it is inf"),
        (lambda: Ball(0.0), "radius of Ball must be > 0 and finite; it is 0.0"),
        (lambda: Ball(-2.0), "radius of Ball must be > 0 and finite; it is -2.0"),
    ],
)
def test_parameters_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()
