"""Losses against other people's definitions, their conjugates against suprema, their proxes against minimisers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from scipy.special import huber, log_softmax, softmax
from sklearn._loss import loss as sk
from sklearn.linear_model import _sgd_fast as sgd
from sklearn.metrics import log_loss, zero_one_loss

from loss_samples import SCALAR, predictions, truths
from mercer import RBF, KernelMachine, plots
from mercer.losses import (
    Absolute,
    EpsilonInsensitive,
    Expectile,
    Exponential,
    Hinge,
    Huber,
    Logistic,
    Multinomial,
    PerceptronLoss,
    Pinball,
    Poisson,
    SmoothedHinge,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
    ZeroOne,
)
from mercer.testing import check_loss

each = settings(max_examples=40)
real = st.floats(-1e4, 1e4)
label = st.sampled_from([-1.0, 1.0])

# Losses of scikit-learn that are ours; it writes labels as 0 and 1.
PEERS = [
    (Squared(), sk.HalfSquaredError()),
    (Absolute(), sk.AbsoluteError()),
    (Pinball(0.3), sk.PinballLoss(quantile=0.3)),
    (Huber(1.5), sk.HuberLoss(delta=1.5)),
    (Logistic(), sk.HalfBinomialLoss()),
    (Exponential(), sk.ExponentialLoss()),
    (Poisson(), sk.HalfPoissonLoss()),
    (Multinomial(), sk.HalfMultinomialLoss(n_classes=3)),
]
DESCENT = [
    (Hinge(), sgd.Hinge(1.0)),
    (PerceptronLoss(), sgd.Hinge(0.0)),
    (SquaredHinge(), sgd.SquaredHinge(1.0)),
    (EpsilonInsensitive(0.2), sgd.EpsilonInsensitive(0.2)),
    (SquaredEpsilonInsensitive(0.2), sgd.SquaredEpsilonInsensitive(0.2)),
]


@pytest.mark.parametrize(("ours", "theirs"), PEERS, ids=[repr(p[0]) for p in PEERS])
@each
@given(data=st.data())
def test_scikit_learn_has_the_same_loss(ours, theirs, data):
    y = np.array([data.draw(truths(ours, 30.0))], dtype=float)
    f = np.array([data.draw(predictions(ours, 30.0))], dtype=float)
    truth = (y + 1) / 2 if ours.target == "label" else y
    constant = theirs.constant_to_optimal_zero(truth) if isinstance(ours, Poisson) else 0.0
    value, slope = theirs.loss_gradient(truth, f)
    np.testing.assert_allclose(ours.value(y, f), value + constant, rtol=1e-9, atol=1e-9)
    if ours.smooth or y[0] != f[0]:
        np.testing.assert_allclose(ours.derivative(y, f), slope, rtol=1e-9, atol=1e-9)
    if ours.smooth and ours.target != "class" and not isinstance(ours, Huber):
        np.testing.assert_allclose(ours.curvature(y, f), theirs.gradient_hessian(truth, f)[1], rtol=1e-9, atol=1e-9)
    if hasattr(ours, "inverse_link"):
        mean = theirs.predict_proba(f) if ours.target != "count" else theirs.link.inverse(f)
        mean = mean[:, 1] if ours.target == "label" else mean
        np.testing.assert_allclose(ours.inverse_link(f), mean, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("ours", "theirs"), DESCENT, ids=[repr(p[0]) for p in DESCENT])
@each
@given(data=st.data())
def test_stochastic_gradient_descent_has_the_same_loss(ours, theirs, data):
    y, f = data.draw(truths(ours)), data.draw(predictions(ours))
    np.testing.assert_allclose(ours.value(y, f), theirs.py_loss(f, y), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(ours.derivative(y, f), theirs.py_dloss(f, y), rtol=1e-12, atol=1e-300)


@each
@given(y=real, f=real, delta=st.floats(1e-3, 1e3))
def test_scipy_has_the_same_huber(y, f, delta):
    np.testing.assert_allclose(Huber(delta).value(y, f), huber(delta, f - y), rtol=1e-12, atol=1e-300)


@each
@given(y=st.integers(0, 3), f=st.tuples(real, real, real, real))
def test_multinomial_is_minus_the_log_of_softmax(y, f):
    np.testing.assert_allclose(Multinomial().value(y, f), -log_softmax(f)[y], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(Multinomial().derivative(y, f), softmax(f) - np.eye(4)[y], atol=1e-12)


@each
@given(y=label, f=st.floats(-300.0, 300.0))
def test_two_classes_are_one_label(y, f):
    one, two = Logistic(), Multinomial()
    c, pair = int(y > 0), [0.0, f]
    np.testing.assert_allclose(two.value(c, pair), one.value(y, f), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(two.derivative(c, pair)[1], one.derivative(y, f), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(two.curvature(c, pair)[1, 1], one.curvature(y, f), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(two.inverse_link(pair)[1], one.inverse_link(f), rtol=1e-12, atol=1e-300)


@each
@given(y=real, f=real, q=st.floats(0.01, 0.99), step=st.floats(0.01, 100.0))
def test_quantiles_mirror(y, f, q, step):
    for kind in (Pinball, Expectile):
        loss, mirror = kind(q), kind(1.0 - q)
        np.testing.assert_allclose(loss.value(y, f), mirror.value(-y, -f), rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(loss.derivative(y, f), -mirror.derivative(-y, -f), rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(loss.prox(y, f, step), -mirror.prox(-y, -f, step), rtol=1e-9, atol=1e-9)


@each
@given(y=real, f=real, u=st.floats(-3.0, 3.0), step=st.floats(0.01, 100.0))
def test_special_cases(y, f, u, step):
    for one, two, factor in [
        (Expectile(0.5), Squared(), 1.0),
        (Huber(1e9), Squared(), 1.0),
        (SquaredEpsilonInsensitive(0.0), Squared(), 2.0),
        (EpsilonInsensitive(0.0), Absolute(), 1.0),
        (Pinball(0.5), Absolute(), 0.5),
    ]:
        np.testing.assert_allclose(one.value(y, f), factor * two.value(y, f), rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(one.derivative(y, f), factor * two.derivative(y, f), rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(one.conjugate(y, u), factor * two.conjugate(y, u / factor), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(one.prox(y, f, step), two.prox(y, f, factor * step), rtol=1e-9, atol=1e-9)


@each
@given(y=real, f=real, delta=st.floats(1e-12, 1e-6))
def test_a_narrow_huber_is_the_absolute_error(y, f, delta):
    error = Absolute().value(y, f) - Huber(delta).value(y, f) / delta
    assert -1e-12 * abs(y - f) <= error <= delta / 2 + 1e-12 * abs(y - f)


@each
@given(y=label, f=st.floats(-10.0, 10.0), width=st.floats(1e-9, 5.0))
def test_a_smoothed_hinge_is_near_the_hinge(y, f, width):
    below = Hinge().value(y, f) - SmoothedHinge(width).value(y, f)
    assert -1e-12 <= below <= width / 2 + 1e-12


@each
@given(y=st.floats(0.0, 1e3), f=st.floats(-30.0, 8.0))
def test_poisson_is_its_definition_and_best_at_the_logarithm(y, f):
    definition = np.exp(f) - y * f + (y * np.log(y) - y if y > 0 else 0.0)
    np.testing.assert_allclose(Poisson().value(y, f), definition, rtol=1e-9, atol=1e-9 * (1 + y))
    if y > 0:
        assert abs(Poisson().value(y, np.log(y))) <= 1e-25 * (1 + y)


@pytest.mark.parametrize("loss", SCALAR, ids=repr)
@settings(max_examples=25)
@given(data=st.data())
def test_the_conjugate_is_a_supremum(loss, data):
    y, f = data.draw(truths(loss, 10.0)), data.draw(st.floats(-4.0, 4.0))
    # Inside of the domain: the slopes that occur, and what lies between them.
    other = data.draw(st.floats(-4.0, 4.0))
    u = 0.7 * float(loss.derivative(y, f)) + 0.3 * float(loss.derivative(y, other))
    middle = y if loss.target == "real" else 0.0
    found = minimize_scalar(
        lambda g: loss.value(y, g) - u * g,
        bounds=(middle - 60.0, middle + 60.0),
        options={"xatol": 1e-10},
        method="bounded",
    )
    np.testing.assert_allclose(loss.conjugate(y, u), -found.fun, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("loss", SCALAR, ids=repr)
@settings(max_examples=25)
@given(data=st.data())
def test_the_prox_is_a_minimiser(loss, data):
    y, f = data.draw(truths(loss, 10.0)), data.draw(st.floats(-5.0, 5.0))
    step = 10.0 ** data.draw(st.floats(-3.0, 3.0))
    found = minimize_scalar(
        lambda g: loss.value(y, g) + (g - f) ** 2 / (2 * step),
        bounds=(-60.0, 60.0),
        options={"xatol": 1e-10},
        method="bounded",
    )
    g = float(loss.prox(y, f, step))
    assert abs(g - found.x) <= 1e-5 * (1 + np.sqrt(step)) * (1 + abs(g))
    assert loss.value(y, g) + (g - f) ** 2 / (2 * step) <= found.fun + 1e-10 * (1 + abs(found.fun))


@settings(max_examples=25)
@given(y=st.integers(0, 2), f=predictions(Multinomial(), 8.0), size=st.floats(-3.0, 3.0))
def test_the_multinomial_prox_is_a_minimiser(y, f, size):
    loss, f, step = Multinomial(), np.array(f), 10.0**size
    found = minimize(
        lambda g: loss.value(y, g) + (g - f) @ (g - f) / (2 * step),
        f,
        jac=lambda g: loss.derivative(y, g) + (g - f) / step,
        options={"gtol": 1e-9},
    )
    np.testing.assert_allclose(loss.prox(y, f, step), found.x, rtol=1e-4, atol=1e-4)
    g = loss.prox(y, f, step)
    np.testing.assert_allclose(g + step * loss.derivative(y, g), f, rtol=1e-9, atol=1e-12 * (1 + step))


@settings(max_examples=25)
@given(y=st.integers(0, 2), p=st.tuples(*[st.floats(0.01, 1.0)] * 3))
def test_the_multinomial_conjugate_is_a_supremum(y, p):
    loss, e = Multinomial(), np.eye(3)[y]
    p = np.array(p) / np.sum(p)
    found = minimize(
        lambda f: loss.value(y, f) - (p - e) @ f, np.zeros(3), jac=lambda f: loss.derivative(y, f) - (p - e)
    )
    np.testing.assert_allclose(loss.conjugate(y, p - e), -found.fun, rtol=1e-6, atol=1e-6)
    for outside in (p, p - e + [0.1, 0.0, 0.0], p - e + [2.0, -1.0, -1.0]):
        assert loss.conjugate(y, outside) == np.inf
    assert loss.conjugate(y, np.zeros(3)) == 0.0  # a corner of the simplex


def test_ends_of_the_domains():
    assert Logistic().conjugate(1.0, [-1.0, 0.0]).tolist() == [0.0, 0.0]
    assert Logistic().conjugate(1.0, [-1.1, 0.1]).tolist() == [np.inf, np.inf]
    assert Exponential().conjugate(-1.0, [0.0, -0.1]).tolist() == [0.0, np.inf]
    assert Poisson().conjugate(0.0, [0.0, -0.1]).tolist() == [0.0, np.inf]
    assert Poisson().conjugate(1.0, [-1.0, -1.1]).tolist() == [1.0, np.inf]


@pytest.mark.parametrize(
    ("loss", "best"),
    [
        (Squared(), np.mean),
        (Absolute(), np.median),
        (Pinball(0.3), lambda y: np.quantile(y, 0.3, method="inverted_cdf")),
        (Poisson(), lambda y: np.log(np.mean(y))),
    ],
    ids=["mean", "median", "quantile", "log of the mean"],
)
def test_the_best_constant(loss, best):
    y = np.random.default_rng(0).poisson(7.0, size=101) + 0.5
    assert loss.value(y, best(y)).sum() <= min(loss.value(y, best(y) + h).sum() for h in (-1e-3, 1e-3, -0.3, 0.3))


# -- the 0-1 loss, and means --------------------------------------------------------------------------------


@each
@given(y=label, f=real)
def test_a_mistake_costs_one_and_the_convex_losses_lie_above(y, f):
    cost = float(ZeroOne().value(y, f))
    assert cost == (f < 0 if y > 0 else f >= 0)
    with np.errstate(over="ignore"):
        for above in (Hinge(), SquaredHinge(), Exponential()):
            assert float(above.value(y, f)) >= cost
        assert float(Logistic().value(y, f)) >= np.log(2) * cost


def test_means_are_the_scores_of_scikit_learn():
    rng = np.random.default_rng(0)
    y, f, weights = rng.choice([-1.0, 1.0], 50), rng.normal(size=50), rng.uniform(size=50)
    said = np.where(f >= 0, 1.0, -1.0)
    for w in (None, weights):
        assert ZeroOne().mean(y, f, w) == pytest.approx(zero_one_loss(y, said, sample_weight=w))
        chance = 1 / (1 + np.exp(-f))
        assert Logistic().mean(y, f, w) == pytest.approx(log_loss(y > 0, chance, sample_weight=w))


def test_the_mean_of_the_0_1_loss_is_the_share_of_mistakes_of_a_model():
    X, y = plots.LIFTS["rings"].sample()
    model = KernelMachine(RBF(scale=3.0), loss="hinge").fit(X, y)
    assert ZeroOne().mean(2 * y - 1, model.decision_function(X)) == pytest.approx(1 - model.score(X, y))


@pytest.mark.parametrize("solver", ["auto", "newton", "dual", "proximal"])
def test_the_0_1_loss_is_not_trained(solver):
    X, y = plots.LIFTS["rings"].sample()
    with pytest.raises(ValueError, match=r"has no derivative to descend. Train with .* Hinge\(\)"):
        KernelMachine(loss=ZeroOne(), solver=solver).fit(X, y)
    with pytest.raises(AssertionError, match="cannot be trained"):
        check_loss(ZeroOne())
