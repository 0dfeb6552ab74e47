import numpy as np
import pytest
from matplotlib.figure import Figure

from mercer import RBF, Linear, plots

rng = np.random.default_rng(0)
X = rng.standard_normal((12, 2))
y = rng.integers(0, 3, 12)


def values(axes):
    return np.asarray(axes.images[0].get_array())


def test_the_picture_is_the_matrix():
    figure = plots.gram(RBF(scale=1.0), X)
    np.testing.assert_array_equal(values(figure.axes[0]), RBF(scale=1.0)(X))
    assert figure.axes[0].get_title(loc="left") == "RBF(scale=1.0)"


def test_parameters_that_wait_for_data_are_resolved():
    np.testing.assert_array_equal(values(plots.gram(RBF(), X).axes[0]), RBF()(X))


def test_points_are_grouped_by_class_and_ordered_within():
    order = rng.permutation(12)
    axes = plots.gram(RBF(scale=1.0), X, y, order=order).axes[0]
    expected = [i for c in range(3) for i in order if y[i] == c]
    np.testing.assert_array_equal(values(axes), RBF(scale=1.0)(X)[np.ix_(expected, expected)])
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0", "1", "2"]


def test_zero_is_white_when_there_are_negative_values():
    axes = plots.gram(Linear(), X).axes[0]
    low, high = axes.images[0].get_clim()
    assert low == -high < 0
    low, high = plots.gram(RBF(scale=1.0), X).axes[0].images[0].get_clim()
    assert (low, high) == (0.0, 1.0)


def test_own_axes():
    figure = Figure()
    axes = figure.add_subplot()
    assert plots.gram(Linear(), X, ax=axes) is figure
    assert len(axes.images) == 1


def test_wrong_orders_and_classes_are_refused():
    with pytest.raises(ValueError, match="each of the indices 0 to 11 once"):
        plots.gram(Linear(), X, order=[0, 1])
    with pytest.raises(ValueError, match="each of the indices 0 to 11 once"):
        plots.gram(Linear(), X, order=np.zeros(12, dtype=int))
    with pytest.raises(ValueError, match="X has 12 points and y has 3 classes"):
        plots.gram(Linear(), X, [0, 1, 1])
