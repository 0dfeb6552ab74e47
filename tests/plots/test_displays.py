"""What all displays have in common: axes in, axes and artists out, and nothing cut off."""

from functools import cache

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy.stats import norm

from cases import each
from mercer import RBF, SVC, SVR, KernelRidge, KernelSearchCV, Linear, MercerExpansion, Polynomial, plots

X, y = plots.LIFTS["xor"].sample()
CLASSIFIER = SVC().fit(X, y)
REGRESSOR = SVR().fit(X[:, :1], X[:, 1])
LEARNED = KernelRidge(kernel=RBF((1.0, 3.0))).fit(X, y)
SEARCH = KernelSearchCV(SVC(), [RBF, Linear()], cv=3).fit(X, y)
LINE, PLANE = MercerExpansion(RBF(1.0), norm(), 8), MercerExpansion(RBF(1.0), X, 4)
DISPLAYS = {
    "boundary": lambda: plots.BoundaryDisplay.from_estimator(CLASSIFIER, X, y),
    "losses": lambda: plots.LossesDisplay.from_losses(),
    "convergence": lambda: plots.ConvergenceDisplay.from_estimator(CLASSIFIER),
    "duality": lambda: plots.DualityDisplay.from_estimator(CLASSIFIER),
    "kkt": lambda: plots.KKTDisplay.from_estimator(CLASSIFIER, X, y),
    "regression": lambda: plots.RegressionDisplay.from_estimator(REGRESSOR, X[:, :1], X[:, 1]),
    "gram": lambda: plots.GramDisplay.from_kernel(RBF(1.0), X, y),
    "spectrum": lambda: plots.SpectrumDisplay.from_expansion(LINE),
    "eigenfunctions": lambda: plots.EigenfunctionsDisplay.from_expansion(LINE),
    "maps": lambda: plots.EigenfunctionsDisplay.from_expansion(PLANE, 4),
    "proof": lambda: plots.ProofDisplay.from_kernel(RBF(1.0) * Polynomial(2) + Linear()),
    "search": lambda: plots.SearchDisplay.from_search(SEARCH),
    "metric": lambda: plots.MetricDisplay.from_estimator(LEARNED),
}


@cache
def display_of(name):
    return DISPLAYS[name]()


def texts(figure):
    for axes in figure.axes:
        yield from (axes.title, axes._left_title, *axes.texts)
        for axis in (axes.xaxis, axes.yaxis) if axes.axison else ():
            low, high = sorted(axis.get_view_interval())
            yield axis.label
            yield from (tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high)
        legend = axes.get_legend()
        yield from legend.get_texts() if legend is not None else ()


def assert_nothing_is_cut_off(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    width, height = canvas.get_width_height()
    for text in texts(figure):
        if text.get_visible() and text.get_text():
            box = text.get_window_extent()
            inside = -1 <= box.x0 <= box.x1 <= width + 1 and -1 <= box.y0 <= box.y1 <= height + 1
            assert inside, f"{text.get_text()!r} at {box} leaves a figure of {width} x {height}"


@each("name", DISPLAYS)
def test_a_figure_of_its_own_and_plain_axes(name):
    before = dict(mpl.rcParams)
    display = display_of(name)
    first = display.figure_
    assert display.ax_ in first.axes
    assert_nothing_is_cut_off(first)
    figure = Figure()
    ax = figure.subplots()
    assert display.plot(ax) is display
    assert (display.figure_, display.ax_) == (figure, ax)
    assert len(ax.collections) == len(first.axes[0].collections)
    assert_nothing_is_cut_off(figure)
    assert dict(mpl.rcParams) == before


@each("name", ["boundary", "proof", "search"])
def test_four_in_a_figure(name):
    figure = Figure()
    for ax in figure.subplots(2, 2).flat[::3]:
        display_of(name).plot(ax)
    assert_nothing_is_cut_off(figure)


def test_a_layout_of_the_users_is_left_alone():
    figure = Figure(layout="tight")
    ax = figure.subplots()
    before = ax.get_position()
    plots.kkt(CLASSIFIER, X, y, ax=ax)
    assert np.array_equal(before.bounds, ax.get_position().bounds)


def test_every_display_has_its_short_form():
    displays = {name.removesuffix("Display").lower() for name in plots.__all__ if name.endswith("Display")}
    functions = {name for name in plots.__all__ if name.islower()}
    assert displays == functions


@pytest.mark.parametrize("name", ["line", "rings"])
def test_lifts_in_plain_axes(name):
    figure = Figure()
    before = figure.add_subplot(1, 2, 1)
    after = figure.add_subplot(1, 2, 2, projection="3d" if name == "rings" else None)
    display = plots.LiftDisplay.from_map(name, axes=(before, after))
    assert display.axes_ == (before, after)
    assert_nothing_is_cut_off(figure)
