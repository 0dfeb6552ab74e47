"""The prox and the curvature of a loss that has only value and derivative."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from loss_samples import LOSSES, SCALAR, predictions, truths
from mercer.losses import Exponential, Hinge, Multinomial, Squared
from mercer.losses.numeric import curvature, increasing_root, prox


class Bare:
    """A user's loss: two methods, no base class."""

    def __init__(self, loss):
        self.loss, self.target = loss, loss.target

    def value(self, y, f):
        return self.loss.value(y, f)

    def derivative(self, y, f):
        return self.loss.derivative(y, f)


@pytest.mark.parametrize("loss", SCALAR, ids=repr)
@settings(max_examples=30)
@given(data=st.data())
def test_prox_without_a_formula_is_the_one_with(loss, data):
    y, f = data.draw(truths(loss)), data.draw(st.lists(predictions(loss), min_size=1, max_size=5))
    step = 10.0 ** data.draw(st.floats(-6.0, 6.0))
    expected = loss.prox(y, f, step)
    found = prox(Bare(loss), y, f, step)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12 * (1 + np.abs(f).max()))
    many = step * np.arange(1.0, len(f) + 1)
    np.testing.assert_allclose(
        prox(Bare(loss), y, f, many), loss.prox(y, f, many), rtol=1e-10, atol=1e-12 * (1 + np.abs(f).max())
    )


@each("loss", [k for k in LOSSES if k.smooth], ids=repr)
def test_curvature_without_a_formula_is_the_one_with(loss):
    y = {"label": 1.0, "class": 2}.get(loss.target, 0.7)
    f = np.random.default_rng(0).normal(size=(40, 3))
    f = f if loss.target == "class" else f.ravel()
    found, expected = curvature(Bare(loss), y, f), loss.curvature(y, f)
    assert found.shape == expected.shape
    near = np.isclose(found, expected, rtol=1e-6, atol=1e-7)
    assert near.mean() > 0.99  # the others are kinks of the derivative


def test_what_the_loss_has_is_used():
    class Own(Bare):
        def prox(self, y, f, step):
            return np.array([7.0])

        def curvature(self, y, f):
            return np.array([8.0])

    assert prox(Own(Hinge()), 1.0, [0.0], 1.0).tolist() == [7.0]
    assert curvature(Own(Hinge()), 1.0, [0.0]).tolist() == [8.0]


def test_a_loss_that_is_not_convex_gets_a_stationary_point():
    class Cauchy:
        convex = False

        def value(self, y, f):
            return np.log1p(np.subtract(f, y) ** 2)

        def derivative(self, y, f):
            t = np.subtract(f, y)
            return 2 * t / (1 + t**2)

    loss = Cauchy()
    for step in (0.1, 3.0, 1e4):
        f = np.linspace(-20.0, 20.0, 101)
        g = prox(loss, 1.0, f, step)
        np.testing.assert_allclose(g + step * loss.derivative(1.0, g), f, atol=1e-12 * (1 + step))
    assert (curvature(loss, 0.0, [3.0, -3.0]) < 0).all()


def test_a_convex_loss_has_no_negative_curvature():
    noisy = Bare(Squared())
    noisy.derivative = lambda y, f: 1.0 - 1e-12 * np.sign(f - 0.5)
    assert curvature(noisy, 0.0, np.array([0.5])).tolist() == [0.0]


@pytest.mark.filterwarnings("error")
def test_beyond_the_largest_float():
    bare = Bare(Exponential())
    assert curvature(bare, 1.0, [-1e4, 1e4]).tolist() == [np.inf, 0.0]
    np.testing.assert_allclose(prox(bare, 1.0, [-1e4, 1e4], 1.0), Exponential().prox(1.0, [-1e4, 1e4], 1.0), rtol=1e-12)


def test_complaints():
    with pytest.raises(TypeError, match=r"has no prox, .* give the loss a method prox\(y, f, step\)"):
        prox(Bare(Multinomial()), 0, np.zeros((1, 3)), 1.0)
    bad = Bare(Squared())
    bad.derivative = lambda y, f: np.where(f > 1, np.nan, f)
    with pytest.raises(FloatingPointError, match=r"derivative of .* is NaN at f = 2"):
        prox(bad, 0.0, [0.0, 2.0], 1.0)


@given(root=st.floats(-1e300, 1e300), slope=st.floats(1.0, 1e3), jump=st.booleans())
def test_roots_are_found_to_rounding(root, slope, jump):
    calls = []

    def excess(x):
        calls.append(1)
        with np.errstate(over="ignore"):
            return (x - root) + np.sign(x - root) if jump else slope * (x - root)

    low, high = np.array([-1.7e308]), np.array([1.7e308])
    found = increasing_root(excess, low, high)
    assert abs(found[0] - root) <= 1e-15 * abs(root) + 1e-289
    assert len(calls) <= 200


def test_few_evaluations_of_a_smooth_loss_and_fewer_than_floats_have_bits_of_a_kinked_one():
    rng = np.random.default_rng(0)
    for loss, most in [(Squared(), 8), (Hinge(), 75)]:
        calls = []
        bare = Bare(loss)
        bare.derivative = lambda y, f, loss=loss, calls=calls: calls.append(1) or loss.derivative(y, f)
        prox(bare, np.sign(rng.normal(size=500)), 3 * rng.normal(size=500), 1.0)
        assert len(calls) <= most
