"""`check_loss` accepts losses that obey the laws, a user's too, and names the law that one breaks."""

import numpy as np
import pytest

from cases import each
from mercer.losses import (
    Absolute,
    Box,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Multinomial,
    Pinball,
    Poisson,
    Squared,
)
from mercer.testing import check_loss


def broken(base, **methods):
    return type("Broken", (type(base),), methods)(**vars(base))


class Cosh:
    """A user's loss with the least that one can have."""

    def value(self, y, f):
        return np.log(np.cosh(f - y))

    def derivative(self, y, f):
        return np.tanh(f - y)


class Cauchy:
    convex = False
    smooth = True

    def value(self, y, f):
        return np.log1p((f - y) ** 2)

    def derivative(self, y, f):
        return 2 * (f - y) / (1 + (f - y) ** 2)


def test_a_users_loss_needs_two_methods():
    check_loss(Cosh())
    check_loss(Cauchy())
    check_loss(Cosh(), y=[100.0], f=[99.0, 100.0, 101.0])


def test_a_loss_may_be_negative_or_infinite():
    check_loss(broken(Poisson(), value=lambda s, y, f: np.exp(f) - y * f, conjugate=property(), prox=Poisson.prox))
    check_loss(Poisson(), f=[-1e4, 0.0, 1e4])


VALUE = [
    (broken(Hinge(), value=lambda s, y, f: np.nan * y * f), "value of .* must be a number or infinite"),
    (broken(Hinge(), value=lambda s, y, f: -np.inf + 0 * f), "value of .* must be a number or infinite"),
    (broken(Hinge(), value=lambda s, y, f: np.minimum(1.0, np.abs(f) + 0 * y)), "value of .* is not convex"),
    (broken(Cauchy(), convex=True), "value of .* is not convex"),
    (broken(Multinomial(), value=lambda s, y, f: -Multinomial.value(s, y, f)), "value of .* is not convex"),
    (broken(Cosh(), value=lambda s, y, f: np.abs(y - f).max()), r"value of .* has the shape \(\); a loss gives one"),
    (broken(Cosh(), value=lambda s, y, f: 0 * f + np.abs(y - f).max()), "value of .* changes from .* predictions do"),
    (broken(Hinge(), target="number"), "target of .* must be one of 'label', .* not 'number'"),
]
DERIVATIVE = [
    (broken(Hinge(), derivative=lambda s, y, f: np.nan * y * f), "derivative of .* must be finite"),
    (broken(Hinge(), derivative=lambda s, y, f: 0.0 * y * f), "derivative of .* is no subgradient: at y = .*, f = "),
    (broken(Multinomial(), derivative=lambda s, y, f: 0.0 * f), "derivative of .* is no subgradient: at y = "),
    (broken(Cauchy(), derivative=lambda s, y, f: f - y), "derivative of .* is not the slope of the value"),
    (broken(Squared(), derivative=lambda s, y, f: (f - y) * (1 + 1e-3)), "subgradient|not the slope"),
    (broken(Cosh(), derivative=lambda s, y, f: np.tanh(f - y - f.mean())), "derivative of .* changes from .*"),
    (broken(Hinge(), smooth=True), "derivative of .* jumps, but the loss says that it is smooth"),
]
CURVATURE = [
    (broken(Huber(), curvature=lambda s, y, f: 2.0 + 0 * y * f), "curvature of .* is not the slope of the derivative"),
    (broken(Huber(), curvature=lambda s, y, f: 1.0 + 0 * y * f), "curvature of .* is not the slope of the derivative"),
    (broken(Huber(), curvature=lambda s, y, f: np.inf + 0 * y * f), "curvature of .* must be finite"),
    (broken(Huber(), curvature=lambda s, y, f: 1.0), r"curvature of .* must have the shape \(95,\), not \(\)"),
    (broken(Multinomial(), curvature=lambda s, y, f: f), r"curvature .* shape \(192, 3, 3\), not \(192, 3\)"),
    (
        broken(Multinomial(), curvature=lambda s, y, f: s.inverse_link(f)[:, :, None] * np.eye(3)),
        "curvature of .* is not the slope of the derivative",
    ),
]
CONJUGATE = [
    (broken(Hinge(), conjugate=lambda s, y, u: 0.0 * y * u), "conjugate of .* misses Fenchel and Young's equality"),
    (broken(Hinge(), conjugate=lambda s, y, u: np.nan * y * u), "conjugate of .* misses Fenchel and Young's equality"),
    (
        broken(Hinge(), conjugate=lambda s, y, u: np.where(np.abs(u) > 2, np.nan, Hinge.conjugate(s, y, u))),
        "conjugate of .* is NaN at u = ",
    ),
    # As it should be between the slopes that occur, but finite outside.
    (broken(Hinge(), conjugate=lambda s, y, u: y * u), "conjugate of .* breaks Fenchel and Young's inequality at u ="),
    (
        broken(Multinomial(), conjugate=lambda s, y, u: np.minimum(Multinomial.conjugate(s, y, u), 0.0)),
        "conjugate of .* breaks Fenchel and Young's inequality at u =",
    ),
    (broken(Multinomial(), conjugate=lambda s, y, u: 0.0 * u.sum(axis=-1)), "conjugate of .* misses"),
]
PROX = [
    (broken(Hinge(), prox=lambda s, y, f, step: f), "prox of .* with step 0.03 is not the minimiser"),
    (broken(Hinge(), prox=lambda s, y, f, step: np.nan * f), "prox of .* with step 0.03 must be finite"),
    (broken(EpsilonInsensitive(), prox=lambda s, y, f, step: y + 0 * f), "prox of .* is not the minimiser"),
    (broken(Squared(), prox=lambda s, y, f, step: Squared.prox(s, y, f, step) + 1e-5), "prox of .* not the minimiser"),
    (
        broken(Squared(), prox=lambda s, y, f, step: Squared.prox(s, y, f, np.max(step))),
        "prox of .* with one step for each prediction is not the minimiser",
    ),
    (broken(Multinomial(), prox=lambda s, y, f, step: f), "prox of .* is not the minimiser"),
    (broken(Cauchy(), prox=lambda s, y, f, step: f), "prox of .* is not the minimiser"),
]
BOX = [
    (broken(Absolute(), box=lambda s, y: Box(y, 0 * y, 1 + 0 * y, 1 + 0 * y)), "box of .* Fenchel and Young"),
    (broken(Absolute(), box=lambda s, y: Box(-y, 0 * y, 2 + 0 * y, 1 + 0 * y)), "box of .* breaks Fenchel and Young"),
    (broken(Absolute(), box=lambda s, y: Box(-y, 0.1 + 0 * y, 1 + 0 * y, 1 + 0 * y)), "box of .* misses Fenchel"),
    (broken(Absolute(), box=lambda s, y: Box(-y, 0 * y, 1 + 0 * y, 0 * y - 1)), "box of .* needs lower >= 0"),
    (
        broken(Absolute(), conjugate=lambda s, y, u: Absolute.conjugate(s, y, u) + (np.abs(np.abs(u) - 0.3) < 1e-9)),
        "box of .* and the conjugate differ 0.3 of the way to its end",
    ),
]
INVERSE_LINK = [
    (broken(Logistic(), inverse_link=lambda s, f: np.nan * f), "inverse link of .* must be finite"),
    (broken(Logistic(), inverse_link=lambda s, f: f), "inverse link of .* must be a probability"),
    (broken(Logistic(), inverse_link=lambda s, f: 1 / (1 + np.exp(f))), "inverse link .* f is the best prediction"),
    (broken(Poisson(), inverse_link=lambda s, f: np.exp(f) + 1), "inverse link .* f is the best prediction"),
    (broken(Multinomial(), inverse_link=lambda s, f: 0.1 + 0 * f), "inverse link of .* must sum to 1"),
    (broken(Multinomial(), inverse_link=lambda s, f: 1 / 3 + 0 * f), "inverse link .* f is the best prediction"),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@each(("loss", "message"), [*VALUE, *DERIVATIVE, *CURVATURE, *CONJUGATE, *PROX, *BOX, *INVERSE_LINK])
def test_what_breaks_a_law_is_named(loss, message):
    with pytest.raises(AssertionError, match=message):
        check_loss(loss)


def test_the_box_stands_for_a_conjugate():
    class NoConjugate:
        value, derivative, box = Pinball.value, Pinball.derivative, Pinball.box
        quantile = 0.3

    check_loss(NoConjugate())
    NoConjugate.box = lambda self, y: Box(-y, 0 * y, 0.7 + 0 * y, 0.3 + 0 * y)
    with pytest.raises(AssertionError, match=r"the box of .* Fenchel and Young"):
        check_loss(NoConjugate())
