"""Far predictions, large truths and extreme steps: numbers or an honest infinity, and no warning."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from loss_samples import LOSSES, SCALAR
from mercer.losses import Exponential, Logistic, Multinomial, Poisson

FAR = np.array([0.0, 1e-300, 1e-8, 1.0, 30.0, 700.0, 720.0, 1e4, 1e8, 1e100, 1e200])
FAR = np.concatenate([FAR, -FAR])
TRUTHS = {"label": [-1.0, 1.0], "real": FAR, "count": FAR[:11]}
pytestmark = pytest.mark.filterwarnings("error")


def places(loss):
    if loss.target == "class":
        f = np.random.default_rng(0).choice(FAR, (300, 3))
        return np.arange(300) % 3, f
    return (a.ravel() for a in np.meshgrid(TRUTHS[loss.target], FAR))


@each("loss", LOSSES, ids=repr)
def test_no_nan(loss):
    y, f = places(loss)
    value, slope = loss.value(y, f), loss.derivative(y, f)
    assert not np.isnan(value).any()
    assert np.isfinite(slope[np.isfinite(value)]).all()
    assert not np.isnan(slope).any()
    if hasattr(loss, "curvature"):
        curvature = loss.curvature(y, f)
        assert np.isfinite(curvature[np.isfinite(value)]).all()
        assert not np.isnan(curvature).any()
    if hasattr(loss, "conjugate"):
        assert not np.isnan(loss.conjugate(y, slope)).any()
    if hasattr(loss, "inverse_link"):
        assert not np.isnan(loss.inverse_link(f)).any()


@each("loss", LOSSES, ids=repr)
@each("step", [1e-300, 1e-12, 1.0, 1e12, 1e100])
def test_prox_is_finite_and_between(loss, step):
    y, f = places(loss)
    g = loss.prox(y, f, step)
    assert np.isfinite(g).all()
    if loss.target != "class":
        # The prox never moves past where the loss falls: the slopes at f and at g do not disagree.
        slope = np.sign(loss.derivative(y, f))
        assert ((g - f) * slope <= 0).all()


@pytest.mark.parametrize("loss", SCALAR, ids=repr)
@settings(max_examples=25)
@given(data=st.data())
def test_prox_contracts(loss, data):
    """A prox is firmly nonexpansive: it keeps the order, and brings no two predictions farther apart."""
    y = data.draw(st.sampled_from([1.0, -1.0] if loss.target == "label" else [0.0, 2.0]))
    a, b = sorted(data.draw(st.tuples(st.floats(-1e5, 1e5), st.floats(-1e5, 1e5))))
    step = 10.0 ** data.draw(st.floats(-8.0, 8.0))
    p, q = loss.prox(y, [a, b], step)
    rounding = 1e-12 * (1 + abs(a) + abs(b))
    assert -rounding <= q - p <= b - a + rounding


@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_the_tails_of_labels(y):
    right, wrong = 1e4 * y, -1e4 * y
    assert Logistic().value(y, wrong) == 1e4
    assert Logistic().derivative(y, wrong) == -y
    assert Logistic().value(y, right) == Logistic().curvature(y, wrong) == 0.0
    assert Exponential().value(y, right) == 0.0
    assert Exponential().value(y, wrong) == np.inf
    # What is left of a certain prediction is not lost.
    assert Logistic().value(y, 700.0 * y) == pytest.approx(np.exp(-700.0), rel=1e-12)
    assert Logistic().inverse_link(-700.0) == pytest.approx(np.exp(-700.0), rel=1e-12)


def test_the_tails_of_counts_and_classes():
    assert Poisson().value(3.0, 1e4) == np.inf
    assert Poisson().value(3.0, -1e4) == pytest.approx(3e4, rel=1e-3)
    assert Poisson().derivative(3.0, -1e4) == -3.0
    assert Poisson().value(1e-300, 100.0) == pytest.approx(np.exp(100.0))
    assert Multinomial().value(0, [700.0, 0.0, 0.0]) == pytest.approx(2 * np.exp(-700.0), rel=1e-12)
    assert Multinomial().value(1, [1e4, -1e4, 0.0]) == 2e4
    assert Multinomial().derivative(0, [700.0, 0.0, 0.0])[0] == pytest.approx(-2 * np.exp(-700.0), rel=1e-12)
