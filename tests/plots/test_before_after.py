import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from mercer import plots
from mercer.plots.before_after import boundary, section
from mercer.plots.lifts import LIFTS, best_cut, separate


def pixels(figure):
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(float)


@pytest.fixture(scope="module", params=LIFTS)
def drawn(request):
    figure = plots.lift(request.param)
    FigureCanvasAgg(figure)
    return request.param, figure, pixels(figure)


def test_both_halves_of_the_picture_are_drawn(drawn):
    _, figure, image = drawn
    assert len(figure.axes) == 2
    for axes in figure.axes:
        x0, y0, x1, y1 = (int(v) for v in axes.get_window_extent().extents)
        part = image[image.shape[0] - y1 : image.shape[0] - y0, x0:x1]
        assert part.std() > 8


def test_both_classes_are_drawn_in_their_colours_on_both_sides(drawn):
    name, figure, _ = drawn
    y = LIFTS[name].sample()[1]
    for axes in figure.axes:
        sizes = {}
        for points in axes.collections:
            if isinstance(points, PathCollection) and len(points.get_offsets()):
                colour = mpl.colors.to_hex(points.get_facecolor()[0])
                sizes[colour] = sizes.get(colour, 0) + len(points.get_offsets())
        assert sizes == {"#2a6fbb": (y == 0).sum(), "#d1495b": (y == 1).sum()}


def test_the_legends_tell_the_accuracies(drawn):
    name, figure, _ = drawn
    X, y = LIFTS[name].sample()
    before, after = ([text.get_text() for text in axes.get_legend().get_texts()] for axes in figure.axes)
    assert f", {best_cut(X, y).percent} right" in before[0]
    assert separate(LIFTS[name](X), y).accuracy == 1.0
    assert after[0].endswith("100% right")


def test_the_coordinates_are_named(drawn):
    name, figure, _ = drawn
    before, after = figure.axes
    assert before.get_xlabel() == LIFTS[name].inputs[0]
    shown = [after.get_xlabel(), after.get_ylabel()] + ([after.get_zlabel()] if hasattr(after, "get_zlabel") else [])
    assert tuple(shown) == LIFTS[name].outputs


@pytest.mark.parametrize("name", [name for name in LIFTS if len(LIFTS[name].inputs) == 2])
def test_the_pulled_back_curve_is_where_the_cut_is_zero(name):
    lift = LIFTS[name]
    X, y = lift.sample()
    cut = separate(lift(X), y)
    curves = boundary(lift, cut, X)
    assert curves
    for curve in curves:
        assert np.abs(cut(lift(curve))).max() < 0.05 * np.abs(cut(lift(X))).max()


@pytest.mark.parametrize("name", ["rings", "xor"])
def test_the_plane_is_cut_out_of_the_box(name):
    lift = LIFTS[name]
    X, y = lift.sample()
    cut = separate(lift(X), y)
    box = [(float(c.min()), float(c.max())) for c in lift(X).T]
    polygon = section(cut, box)
    assert len(polygon) >= 3
    np.testing.assert_allclose(cut(polygon), 0, atol=1e-9 * np.abs(cut(lift(X))).max())
    low, high = np.array(box).T
    assert (polygon >= low - 1e-12).all()
    assert (polygon <= high + 1e-12).all()
    sides = np.roll(polygon, -1, axis=0) - polygon
    turns = np.cross(sides, np.roll(sides, -1, axis=0)) @ cut.w
    assert (turns > 0).all() or (turns < 0).all()  # convex, so the corners are in order


def test_own_map_data_and_axes():
    figure = Figure()
    X = np.linspace(-1, 1, 30)
    y = np.where(np.abs(X) < 0.5, "in", "out")
    returned = plots.lift(lambda X: np.hstack([X, np.cos(3 * X)]), X, y, axes=figure.subplots(1, 2))
    assert returned is figure
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Before: $x$", r"After: $(z_1,\ z_2)$"]


def test_own_axes_in_space():
    figure = Figure()
    axes = figure.add_subplot(121), figure.add_subplot(122, projection="3d")
    assert plots.lift("xor", axes=axes) is figure
    with pytest.raises(ValueError, match='second of the axes with projection="3d"'):
        plots.lift("xor", axes=Figure().subplots(1, 2))


def test_the_users_settings_are_left_alone():
    before = dict(mpl.rcParams)
    plots.lift("line")
    assert dict(mpl.rcParams) == before


def test_pyplot_is_not_touched():
    code = (
        "import sys; from mercer import RBF, plots; plots.lift('rings'); plots.gram(RBF(1.0), [[0.0], [1.0]]);"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


two = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("moons",), ValueError, "no lift 'moons'; there are 'rings', 'xor'"),
        ((3,), TypeError, "a name, a Lift or a function of the points; got 3"),
        (("xor", two), ValueError, "give both X and y, or neither"),
        (("xor", two, [0, 1, 2]), ValueError, "drawn for two classes; y has 3"),
        (("xor", two, [0, 1]), ValueError, "X has 3 points and y has 2 classes"),
        (
            (np.tanh, np.eye(3), [0, 1, 1]),
            ValueError,
            r"points with 1 or 2 coordinates can be drawn; X has shape \(3, 3\)",
        ),
        (
            (lambda X: X[:, :1], two, [0, 1, 1]),
            ValueError,
            r"3 rows with 2 or 3 coordinates; the map gave shape \(3, 1\)",
        ),
        ((np.tanh,), ValueError, "no data of its own; give X and y"),
    ],
)
def test_what_cannot_be_drawn_is_said(arguments, error, words):
    with pytest.raises(error, match=words):
        plots.lift(*arguments)
