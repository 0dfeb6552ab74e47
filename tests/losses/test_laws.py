"""Every loss obeys the laws of `check_loss`, is a value, and says what is wrong with its parameters."""

import copy
import inspect
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mercer.losses
from loss_samples import LOSSES, predictions, truths
from mercer.losses import (
    Absolute,
    EpsilonInsensitive,
    Expectile,
    Hinge,
    Huber,
    Loss,
    Multinomial,
    PerceptronLoss,
    Pinball,
    Poisson,
    SmoothedHinge,
    SquaredEpsilonInsensitive,
)
from mercer.testing import check_loss

OPTIONAL = ("curvature", "conjugate", "prox", "box", "inverse_link")
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def test_every_loss_has_a_sample():
    kinds = {k for _, k in inspect.getmembers(mercer.losses, inspect.isclass) if issubclass(k, Loss) and k is not Loss}
    trained = kinds - {mercer.losses.ZeroOne}  # the laws are about derivatives; its own: test_definitions.py
    single = {k for k in trained if not k.joint}
    assert single == {type(loss) for loss in LOSSES}
    assert {k.__name__ for k in trained - single} == {"LargestErrors"}  # its laws: tests/estimators/test_nu.py


@each_loss
def test_laws(loss):
    check_loss(loss)


@each_loss
@settings(max_examples=15)
@given(data=st.data())
def test_laws_anywhere(loss, data):
    f = data.draw(st.lists(predictions(loss), min_size=1, max_size=5))
    check_loss(loss, [data.draw(truths(loss))], f)


@each_loss
def test_a_loss_is_a_value(loss):
    for twin in (pickle.loads(pickle.dumps(loss)), copy.deepcopy(loss), eval(repr(loss), vars(mercer.losses))):
        assert twin == loss
        assert hash(twin) == hash(loss)


@each_loss
def test_it_broadcasts_and_takes_lists(loss):
    y = {"label": [1, -1], "class": [2, 0]}.get(loss.target, [0, 3])
    row = [0.5, -1.0, 2.0] if loss.target == "class" else 0.5
    both = [row, row]
    for name in ("value", "derivative", *OPTIONAL[:2]):
        if hasattr(loss, name):
            method = getattr(loss, name)
            np.testing.assert_array_equal(method(y, both), method(np.array(y, float), np.array(row)))
    if hasattr(loss, "prox"):
        each = [loss.prox(t, row, step) for t, step in zip(y, [0.3, 2.0])]
        np.testing.assert_allclose(loss.prox(y, both, [0.3, 2.0]), each, rtol=1e-12)


def test_what_has_no_formula_is_not_there():
    assert not any(hasattr(Loss, name) for name in OPTIONAL)
    boxes = {type(loss) for loss in LOSSES if hasattr(loss, "box")}
    assert boxes == {Hinge, PerceptronLoss, EpsilonInsensitive, Absolute, Pinball}
    assert {type(loss) for loss in LOSSES if hasattr(loss, "curvature")} == {type(k) for k in LOSSES if k.smooth}


def test_a_loss_needs_value_and_derivative():
    class Empty(Loss):
        pass

    with pytest.raises(TypeError, match=r"abstract.*derivative.*value"):
        Empty()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EpsilonInsensitive(-0.1), r"epsilon of EpsilonInsensitive must be >= 0 and finite; it is -0.1"),
        (lambda: SquaredEpsilonInsensitive(-0.1), r"epsilon of SquaredEpsilonInsensitive must be >= 0"),
        (lambda: Huber(0.0), r"delta of Huber must be > 0 and finite; it is 0.0"),
        (lambda: Huber(np.inf), r"delta of Huber must be > 0 and finite; it is inf"),
        (lambda: SmoothedHinge(0), r"width of SmoothedHinge must be > 0 and finite; it is 0"),
        (lambda: Pinball(0.0), r"quantile of Pinball must be > 0 and finite; it is 0.0"),
        (lambda: Pinball(1.0), r"quantile of Pinball must be < 1; it is 1.0"),
        (lambda: Expectile(90), r"quantile of Expectile must be < 1; it is 90"),
        (lambda: Expectile(-0.5), r"quantile of Expectile must be > 0"),
    ],
)
def test_parameters_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("kind", [EpsilonInsensitive, Huber, SmoothedHinge, Pinball, Expectile])
def test_parameters_are_numbers(kind):
    with pytest.raises(TypeError, match=r"of .* must be a number .* not 'wide'"):
        kind("wide")


def test_truths_are_checked():
    for method in ("value", "derivative", "curvature", "conjugate"):
        with pytest.raises(ValueError, match=r"y of Poisson must be counts, numbers >= 0; one is -2"):
            getattr(Poisson(), method)([1.0, -2.0], 0.0)
    for y in (3, -1, 0.5, np.nan):
        with pytest.raises(ValueError, match=r"y of Multinomial must be classes 0 ... 2, one for each column of f"):
            Multinomial().value([0, y], np.zeros((2, 3)))
    with pytest.raises(ValueError, match="classes"):
        Multinomial().value(0, 1.0)


def test_slacks_of_the_lectures():
    y = np.array([1.0, -1.0])
    assert Hinge().value(y, 0.0).tolist() == [1.0, 1.0]
    assert Hinge().value(y, -2.0 * y).tolist() == [3.0, 3.0]
