import numpy as np
import pytest
from matplotlib.figure import Figure

from mercer import RBF, SVC, Linear, plots

X, y = plots.LIFTS["rings"].sample()


def test_each_picture_is_the_boundary_of_a_fit_with_its_value():
    kernels = [Linear(), RBF(0.5)]
    display = plots.BoundariesDisplay.from_estimator(SVC(), X, y, kernel=kernels)
    for kernel, one, ax in zip(kernels, display.displays, display.axes_, strict=True):
        model = SVC(kernel=kernel).fit(X, y)
        np.testing.assert_allclose(one.values, model.decision_function(X))
        assert one.ax_ is ax
        assert ax.get_title(loc="left").startswith(repr(kernel))


def test_the_signs_are_told_once():
    figure = plots.boundaries(SVC(), X, y, kernel=[Linear(), RBF(0.5), RBF(5.0)])
    (legend,) = figure.legends
    assert "misclassified" in [text.get_text() for text in legend.get_texts()]
    assert all(ax.get_legend() is None for ax in figure.axes)


def test_any_parameter_in_given_axes():
    figure, model = Figure(), SVC(kernel=RBF(0.5))
    axes = figure.subplots(2, 2)
    assert plots.boundaries(model, X, y, axes=axes, C=[0.01, 1.0, 100.0]) is figure
    titles = [ax.get_title(loc="left").split(":")[0] for ax in axes.flat]
    assert titles == ["C=0.01", "C=1.0", "C=100.0", ""]
    assert model.get_params()["C"] == 1.0


def test_wrong_calls():
    with pytest.raises(ValueError, match=r"one parameter is varied, .* these are \['C', 'kernel'\]"):
        plots.boundaries(SVC(), X, y, C=[1.0], kernel=[Linear()])
    with pytest.raises(ValueError, match="2 machines are drawn; give as many axes, not 1"):
        plots.boundaries(SVC(), X, y, C=[1.0, 2.0], axes=[Figure().subplots()])
