"""Augmented Lagrangians: any convex loss, by its prox or by its derivative alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import conic
from mercer.certify.representer import check_representer
from mercer.gram import Gram
from mercer.kernels import RBF
from mercer.losses import Absolute, Hinge, Multinomial, PerceptronLoss, Pinball, SquaredNorm
from mercer.losses.numeric import prox
from mercer.solvers.control import Control
from mercer.solvers.representer.engine import Representer, solve
from mercer.solvers.representer.proximal import Envelope

SCALAR = [loss for loss in conic.LOSSES if not isinstance(loss, (Multinomial, PerceptronLoss))]


class Elastic:
    """The absolute error plus half its square: known by value and derivative only."""

    def value(self, y, f):
        return np.abs(f - y) + 0.5 * (f - y) ** 2

    def derivative(self, y, f):
        return np.sign(f - y) + (f - y)


class Steeper:
    """The larger of the exponential and of a line: a kink away from 0, curved on one side."""

    target = "label"

    def value(self, y, f):
        return np.maximum(np.exp(-y * f), 1.0 - 2.0 * y * f)

    def derivative(self, y, f):
        m = y * f
        return -y * np.where(np.exp(-m) > 1.0 - 2.0 * m, np.exp(-m), 2.0)


class Hidden:
    """A loss of the library, of which only value and derivative are told."""

    def __init__(self, loss):
        self.loss, self.target = loss, loss.target

    def value(self, y, f):
        return self.loss.value(y, f)

    def derivative(self, y, f):
        return self.loss.derivative(y, f)


def fit(loss, X, y, strength, intercept=True, weights=None, tol=1e-6, solver="proximal"):
    problem = Representer(Gram(RBF(1.0), X), y, loss, SquaredNorm(strength), weights, intercept)
    return solve(problem, Control(tol=tol), solver)


@pytest.mark.parametrize("loss", SCALAR, ids=repr)
@settings(max_examples=5)
@given(seed=st.integers(0, 10**6), strength=st.sampled_from([1e-2, 1.0, 50.0]), intercept=st.booleans())
def test_it_finds_what_the_special_solvers_find(loss, seed, strength, intercept):
    X, y = conic.draw(loss, seed, 20)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, 20)
    found = fit(loss, X, y, strength, intercept, weights)
    special = fit(loss, X, y, strength, intercept, weights, solver="auto")
    assert found.certificate.stopped == "converged"
    assert found.certificate.primal == pytest.approx(special.certificate.primal, rel=3e-6)
    assert found.certificate.dual <= special.certificate.primal * (1 + 1e-9)


@pytest.mark.parametrize("loss", [Elastic(), Steeper(), Hidden(Absolute()), Hidden(Hinge()), Hidden(Pinball(0.2))])
@pytest.mark.parametrize("intercept", [True, False])
def test_value_and_derivative_are_enough(loss, intercept):
    X, y = conic.draw(loss, 1, 25)
    found = fit(loss, X, y, 0.1, intercept, tol=1e-5, solver="auto")
    assert found.certificate.stopped == "converged"
    checked = check_representer(
        RBF(1.0), X, y, coefficients=found.coefficients, offset=found.offset, loss=loss, penalty=SquaredNorm(0.1),
        intercept=intercept, tol=1e-4,
    )  # fmt: skip
    assert checked.converged, checked
    if isinstance(loss, Hidden):
        best = fit(loss.loss, X, y, 0.1, intercept, solver="auto").certificate.primal
        assert found.certificate.primal == pytest.approx(best, rel=2e-5)


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), rho=st.sampled_from([1e-3, 1.0, 1e4]))
def test_the_envelope_is_smooth_below_the_loss_and_its_slope_a_subgradient(seed, rho):
    rng = np.random.default_rng(seed)
    y, v, w = rng.normal(size=9), 2 * rng.normal(size=9), rng.uniform(0.5, 2.0, 9)
    envelope = Envelope(Elastic(), y, w, np.zeros(9), rho)
    assert (envelope.value(y, v) <= w * Elastic().value(y, v) + 1e-12).all()
    h = 1e-6
    slope = (envelope.value(y, v + h) - envelope.value(y, v - h)) / (2 * h)
    np.testing.assert_allclose(envelope.derivative(y, v), slope, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(envelope.copies(v), prox(Elastic(), y, v, w / rho), atol=1e-12)
    assert (envelope.curvature(y, v) <= rho * (1 + 1e-12)).all()
    g, u = envelope.copies(v), envelope.derivative(y, v)
    for other in rng.normal(size=5):  # u is a subgradient at g
        assert (w * Elastic().value(y, other) >= w * Elastic().value(y, g) + u * (other - g) - 1e-9).all()
