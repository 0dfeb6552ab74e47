import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from mercer import RBF, KernelRidge, plots
from mercer.kernels import Metric

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 6))
NAMES = ["age", "income", "town=A$b$", "town=C", "a name that is longer than anyone would like to read", "rest"]


def labels(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def mixed():
    return Metric.of(RBF(1.0).transformed(rng.normal(size=(6, 6))), X, NAMES)


def test_the_bars_are_the_shares_the_largest_first():
    metric = Metric.of(RBF(1.0).transformed([1.0, 3.0, 2.0, 0.1, 0.2, 0.0]), X, NAMES)
    figure = plots.metric(metric, columns=2)
    (axes,) = figure.axes  # nothing is mixed
    assert labels(axes) == ["income", r"town=A\$b\$", "4 others"]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx(list(metric.by_column(2).values()))


def test_directions_are_beside_them_where_columns_are_mixed():
    metric = mixed()
    bars, directions = plots.metric(metric).axes
    shares, names, entries = metric.loadings()
    assert len(labels(bars)) == 6
    assert labels(directions)[0].replace("\\", "") == names[0]
    assert [bar.get_width() for bar in directions.patches] == pytest.approx(entries.T.ravel().tolist())
    assert len(directions.get_xticks()) == len(shares)


def test_a_model_is_drawn_with_its_own_names():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=[f"{c} of things" for c in "abcdef"])
    model = KernelRidge(kernel=RBF((1.0, 2.0, 3.0, 4.0, 5.0, 0.5))).fit(table, X[:, 5])
    assert labels(plots.metric(model).axes[0])[0] == "f of things"


def test_nothing_is_cut_off():
    figure = plots.metric(mixed())
    FigureCanvasAgg(figure).draw()
    width, height = figure.canvas.get_width_height()
    for axes in figure.axes:
        for text in [*axes.get_yticklabels(), *axes.get_xticklabels(), *axes.texts, axes.xaxis.label, axes.title]:
            box = text.get_window_extent()
            assert 0 <= box.x0 <= box.x1 <= width
            assert 0 <= box.y0 <= box.y1 <= height


def test_own_axes_hold_the_bars_alone():
    figure = Figure()
    axes = figure.add_subplot()
    assert plots.metric(mixed(), ax=axes) is figure
    assert len(figure.axes) == 1
    assert len(axes.patches) == 6


def test_what_cannot_be_drawn_is_refused():
    model = KernelRidge(kernel=RBF(1.0)).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="the kernel of this KernelRidge has no metric to draw"):
        plots.metric(model)
    with pytest.raises(ValueError, match="columns must be a whole number of at least 1; it is 0"):
        plots.metric(mixed(), columns=0)
