"""Penalties other than the squared norm: against Clarabel's cones, and against a search by scipy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import conic
from mercer.certify.representer import check_representer
from mercer.gram import Gram
from mercer.kernels import RBF, Linear
from mercer.losses import Ball, Hinge, Huber, Logistic, Multinomial, Norm, PerceptronLoss, Squared, SquaredNorm
from mercer.solvers.control import Control
from mercer.solvers.representer.engine import Representer, solve

LOSSES = [loss for loss in conic.LOSSES if not isinstance(loss, PerceptronLoss)]


def fit(loss, X, y, penalty, intercept=True, tol=1e-6, kernel=None):
    return solve(Representer(Gram(kernel or RBF(1.0), X), y, loss, penalty, None, intercept), Control(tol=tol))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@settings(max_examples=6)
@given(
    seed=st.integers(0, 10**6),
    penalty=st.sampled_from([Norm(0.3), Norm(2.0), Norm(50.0), Ball(0.05), Ball(0.8)]),
    intercept=st.booleans(),
)
def test_norms_and_balls_against_clarabel(loss, seed, penalty, intercept):
    X, y = conic.draw(loss, seed, 12)
    if loss.target in ("label", "class"):
        y[:2] = (-1, 1) if loss.target == "label" else (0, 1)
    found = fit(loss, X, y, penalty, intercept)
    claim = found.certificate
    assert claim.stopped == "converged", claim
    K = np.asarray(Gram(RBF(1.0), X).dense())
    best, _, solved = conic.minimum(K, y, loss, penalty, np.ones(12), intercept)
    if solved:
        assert claim.primal == pytest.approx(best, rel=2e-5, abs=1e-6)
        assert claim.dual <= best + 1e-5 * abs(best) + 1e-7
    t = math.sqrt(max(float(np.vdot(found.coefficients, K @ found.coefficients)), 0.0))
    if isinstance(penalty, Ball):
        assert t <= penalty.radius * (1 + 1e-9)
    checked = check_representer(
        RBF(1.0), X, y, coefficients=found.coefficients, offset=found.offset, loss=loss, penalty=penalty,
        intercept=intercept, strength=found.strength, tol=1e-5,
    )  # fmt: skip
    assert checked.primal == pytest.approx(claim.primal, rel=1e-6)
    if t > 0:
        assert checked.converged, checked


@pytest.mark.parametrize("loss", [Squared(), Logistic(), Hinge(), Huber()], ids=repr)
@pytest.mark.parametrize("intercept", [True, False])
def test_a_strong_norm_leaves_nothing_of_f(loss, intercept):
    X, y = conic.draw(loss, 0, 20)
    found = fit(loss, X, y, Norm(1e3), intercept)
    assert not found.coefficients.any()
    assert "f = 0" in found.certificate.solver
    assert found.certificate.converged
    b = minimize_scalar(lambda b: loss.value(y, np.full(20, b)).sum(), bounds=(-3, 3), method="bounded")
    best = b.fun if intercept else loss.value(y, np.zeros(20)).sum()
    assert found.certificate.primal == pytest.approx(best, rel=1e-5)


def test_the_least_strength_that_leaves_nothing_is_the_norm_of_the_gradient_at_0():
    X, y = conic.draw(Squared(), 0, 20)
    K = np.asarray(Gram(RBF(1.0), X).dense())
    u = y.mean() - y
    least = math.sqrt(u @ K @ u)
    assert fit(Squared(), X, y, Norm(0.99 * least), tol=1e-9).coefficients.any()
    assert not fit(Squared(), X, y, Norm(1.01 * least), tol=1e-9).coefficients.any()


def test_a_ball_that_does_not_bind_says_so():
    X, y = conic.draw(Squared(), 0, 30)
    found = fit(Squared(), X[:, :1], y, Ball(1e3), kernel=Linear())
    A = np.column_stack([X[:, :1], np.ones(30)])
    w = np.linalg.lstsq(A, y, rcond=None)[0]
    assert "the ball does not bind" in found.certificate.solver
    assert found.certificate.converged
    np.testing.assert_allclose(found.values, A @ w, atol=1e-3)


def test_losses_that_a_wide_ball_lets_vanish_are_reported():
    X, y = conic.draw(Squared(), 0, 10)
    found = fit(Squared(), X, y, Ball(1e6))
    assert "does not bind" in found.certificate.stopped
    np.testing.assert_allclose(found.values, y, atol=1e-4)


class Quartic:
    """A user's penalty, convex, without a conjugate."""

    def value(self, t):
        return t**4 / 4 + t

    def derivative(self, t):
        return t**3 + 1


class Root:
    """A user's penalty that is not convex."""

    def value(self, t):
        return 3 * np.sqrt(t)

    def derivative(self, t):
        return 1.5 / np.sqrt(np.maximum(t, 1e-300))


class Falling(Quartic):
    def derivative(self, t):
        return -t


def along(loss, X, y, penalty):
    """Return the least of losses plus penalty over the minimisers for a fine grid of strengths, and over constants."""
    values = [min(loss.value(y, np.full(len(y), b)).sum() for b in np.linspace(-2, 2, 4001)) + penalty.value(0.0)]
    for strength in np.geomspace(1e-2, 1e2, 120):
        found = fit(loss, X, y, SquaredNorm(strength), tol=1e-9)
        t = math.sqrt(max(found.coefficients @ (found.values - found.offset), 0.0))
        values.append(loss.value(y, found.values).sum() + penalty.value(t))
    return min(values)


@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=repr)
@pytest.mark.parametrize("penalty", [Quartic(), Root()], ids=lambda penalty: type(penalty).__name__)
def test_a_users_penalty(loss, penalty):
    X, y = conic.draw(loss, 0, 15)
    found = fit(loss, X, y, penalty)
    best = along(loss, X, y, penalty)
    assert found.certificate.primal <= best * (1 + 1e-5)
    assert found.certificate.primal >= best * (1 - 1e-3)
    assert found.certificate.converged == isinstance(penalty, Quartic)
    assert found.certificate.stationary == ("the penalty is not convex" if isinstance(penalty, Root) else "")
    if isinstance(penalty, Quartic):
        t = math.sqrt(found.coefficients @ (found.values - found.offset))
        assert found.strength * t == pytest.approx(penalty.derivative(t), rel=1e-3)


def test_a_penalty_that_falls_is_refused():
    X, y = conic.draw(Squared(), 0, 5)
    with pytest.raises(ValueError, match="must increase with the norm"):
        fit(Squared(), X, y, Falling())


def test_limits_hold_for_the_whole_search():
    X, y = conic.draw(Logistic(), 0, 20)
    problem = Representer(Gram(RBF(1.0), X), y, Logistic(), Norm(0.5))
    found = solve(problem, Control(tol=1e-9, max_iter=3))
    assert found.certificate.stopped == "max_iter=3 reached"
    assert found.certificate.iterations <= 4
    found = solve(Representer(Gram(RBF(1.0), X), y, Logistic(), Ball(0.5)), Control(tol=1e-9, max_iter=1))
    assert "max_iter=1" in found.certificate.stopped


def test_multinomial_counts_among_the_losses():
    assert any(isinstance(loss, Multinomial) for loss in LOSSES)
