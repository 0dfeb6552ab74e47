import numpy as np
import pytest

from mercer import plots
from mercer.losses import Absolute, Hinge, Logistic, Multinomial, Pinball, Squared, ZeroOne


def curve(line):
    x, y = (np.asarray(part, dtype=float) for part in line.get_data())
    return x[~np.isnan(y)], y[~np.isnan(y)]


def test_curves_are_the_losses_of_the_label_1():
    chosen = [Hinge(), Logistic(), Squared()]
    display = plots.LossesDisplay.from_losses(chosen)
    for loss, line in zip(chosen, display.lines_, strict=True):
        x, y = curve(line)
        np.testing.assert_allclose(y, loss.value(np.ones(len(x)), x))
    assert display.ax_.get_xlabel() == "margin y f"


def test_no_line_leads_through_the_jump():
    (line,) = plots.LossesDisplay.from_losses([ZeroOne()]).lines_
    x, y = (np.asarray(part, dtype=float) for part in line.get_data())
    assert np.isnan(y).sum() == 1
    assert set(y[~np.isnan(y)]) == {0.0, 1.0}
    assert y[x < 0].all()
    assert not y[x >= 0].any()


def test_losses_of_numbers_are_functions_of_the_residual():
    display = plots.LossesDisplay.from_losses([Absolute(), Pinball(0.9)])
    x, y = curve(display.lines_[1])
    np.testing.assert_allclose(y, np.where(x < 0, -0.9 * x, 0.1 * x))
    assert display.ax_.get_xlabel().startswith("residual")


def test_curves_differ_without_colour():
    looks = [line.get_linestyle() + str(line._dash_pattern) for line in plots.LossesDisplay.from_losses().lines_]
    assert len(set(looks)) == len(looks) == 6


@pytest.mark.parametrize("chosen", [[Multinomial()], []])
def test_what_has_no_curve_is_refused(chosen):
    with pytest.raises(ValueError, match="Leave out those of classes and of counts"):
        plots.losses(chosen)
