"""Every loss obeys the laws of `check_loss`, and `check_loss` refuses losses that do not."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.losses import (
    EpsilonInsensitive,
    Hinge,
    Loss,
    PerceptronLoss,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from mercer.testing import check_loss

LOSSES = [
    Hinge(),
    SquaredHinge(),
    PerceptronLoss(),
    EpsilonInsensitive(),
    EpsilonInsensitive(0.0),
    EpsilonInsensitive(1.0),
    SquaredEpsilonInsensitive(),
    SquaredEpsilonInsensitive(0.0),
    SquaredEpsilonInsensitive(2.0),
]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_laws(loss):
    check_loss(loss)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@given(f=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6), y=st.floats(-1e3, 1e3))
def test_laws_anywhere(loss, f, y):
    check_loss(loss, [y], f)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_a_loss_is_a_value(loss):
    assert pickle.loads(pickle.dumps(loss)) == loss
    assert eval(repr(loss)) == loss
    assert hash(loss) == hash(pickle.loads(pickle.dumps(loss)))


def broken(base, **methods):
    return type("Broken", (type(base),), methods)(**vars(base))


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (broken(Hinge(), value=lambda s, y, f: np.multiply(y, f)), "finite and not negative"),
        (broken(Hinge(), value=lambda s, y, f: np.minimum(1.0, np.abs(f) + 0 * y)), "not convex|no subgradient"),
        (broken(Hinge(), derivative=lambda s, y, f: 0.0 * y * f), "no subgradient"),
        (broken(Hinge(), smooth=True), "jumps"),
        (broken(Hinge(), conjugate=lambda s, y, u: 0.0 * y * u), "Fenchel and Young"),
        (broken(Hinge(), conjugate=lambda s, y, u: np.nan * y * u), "Fenchel and Young"),
        (broken(Hinge(), prox=lambda s, y, f, step: f), "not the minimiser"),
        (broken(EpsilonInsensitive(), prox=lambda s, y, f, step: y + 0 * f), "not the minimiser"),
    ],
)
def test_what_breaks_a_law_is_named(loss, message):
    with pytest.raises(AssertionError, match=message):
        check_loss(loss)


def test_the_tube_must_have_a_width():
    for kind in (EpsilonInsensitive, SquaredEpsilonInsensitive):
        with pytest.raises(ValueError, match=r"epsilon of .* must be >= 0"):
            kind(-0.1)


def test_a_loss_without_prox_says_so():
    class NoProx(SquaredHinge):
        prox = Loss.prox

    with pytest.raises(NotImplementedError, match="no prox in closed form"):
        NoProx().prox(1.0, 0.0, 1.0)
    check_loss(NoProx())


def test_slacks_of_the_lectures():
    y = np.array([1.0, -1.0])
    assert Hinge().value(y, 0.0).tolist() == [1.0, 1.0]
    assert Hinge().value(y, -2.0 * y).tolist() == [3.0, 3.0]
