"""Samples of every loss, and truths for them: what the tests of losses and of solvers run over."""

from hypothesis import strategies as st

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
)

LOSSES = [
    Squared(),
    Absolute(),
    EpsilonInsensitive(),
    EpsilonInsensitive(0.0),
    EpsilonInsensitive(1.0),
    SquaredEpsilonInsensitive(),
    SquaredEpsilonInsensitive(0.0),
    SquaredEpsilonInsensitive(2.0),
    Huber(),
    Huber(0.1),
    Huber(50.0),
    Pinball(),
    Pinball(0.05),
    Pinball(0.9),
    Expectile(),
    Expectile(0.05),
    Expectile(0.9),
    Logistic(),
    Hinge(),
    SquaredHinge(),
    SmoothedHinge(),
    SmoothedHinge(0.01),
    SmoothedHinge(3.0),
    PerceptronLoss(),
    Exponential(),
    Poisson(),
    Multinomial(),
]
SCALAR = [loss for loss in LOSSES if loss.target != "class"]


def truths(loss, size=1e3):
    """A strategy of one truth for a loss; of three classes where it wants one."""
    return {
        "label": st.sampled_from([-1.0, 1.0]),
        "real": st.floats(-size, size),
        "count": st.one_of(st.floats(0.0, size), st.integers(0, 50).map(float)),
        "class": st.integers(0, 2),
    }[loss.target]


def predictions(loss, size=1e3):
    """A strategy of one prediction for a loss; of three columns where it wants classes."""
    number = st.floats(-size, size)
    return st.tuples(number, number, number) if loss.target == "class" else number
