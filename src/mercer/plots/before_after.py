"""Data before and after a lift, with what a straight cut can do in each space."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from contourpy import contour_generator
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from mpl_toolkits.mplot3d.art3d import Poly3DCollection  # type: ignore[import-untyped]
from mpl_toolkits.mplot3d.axes3d import Axes3D  # type: ignore[import-untyped]

from mercer.plots import style
from mercer.plots.lifts import LIFTS, Cut, Lift, best_cut, separate
from mercer.plots.style import SOLID, STRAIGHT, limits, on_grid, scatter

ELEVATION, AZIMUTH = 18.0, -62.0  # of the camera, in degrees
ASPECT = (1.0, 1.0, 0.82)
_TWO_NAMES = 3.0  # inches of width that the names of two lines need side by side


@dataclass
class LiftDisplay:
    """Two classes of points before and after a feature map, from `LiftDisplay.from_map(which, X, y)`.

    Parameters
    ----------
    lift
        The map.
    points, classes
        Points and their classes, 0 and 1.
    image
        The points after the map.
    cut, straight
        The cut between the lifted points, and the best one between the points themselves.

    Attributes
    ----------
    figure_, axes_
        The figure, and the axes before and after.

    Examples
    --------
    >>> from mercer import plots
    >>> display = plots.LiftDisplay.from_map("xor")
    >>> display.straight.accuracy < display.cut.accuracy
    True
    """

    lift: Lift
    points: np.ndarray
    classes: np.ndarray
    image: np.ndarray
    cut: Cut
    straight: Cut

    figure_: Figure = field(init=False, repr=False)
    axes_: tuple[Axes, Axes] = field(init=False, repr=False)

    @classmethod
    def from_map(
        cls,
        which: str | Lift | Callable[[np.ndarray], np.ndarray],
        X: Any = None,
        y: Any = None,
        *,
        seed: int = 0,
        axes: Sequence[Axes] | None = None,
    ) -> Self:
        """Draw points before and after a map; see `lift`."""
        example = _as_lift(which)
        points, classes = _data(example, X, y, seed)
        image = example(points)
        _shape(points, image)
        return cls(example, points, classes, image, separate(image, classes), best_cut(points, classes)).plot(axes)

    def plot(self, axes: Sequence[Axes] | None = None) -> Self:
        """Draw into two axes; None makes a figure."""
        inputs, outputs = _shape(self.points, self.image)
        with style.house():
            before, after = _pair(self.lift.title, inputs, outputs) if axes is None else axes
            if outputs == 3 and not isinstance(after, Axes3D):
                raise ValueError('this lift has three coordinates: make the second of the axes with projection="3d".')
            if inputs == 1:
                before_line(before, self.lift, self.points, self.classes, self.cut, self.straight)
            else:
                before_plane(before, self.lift, self.points, self.classes, self.cut, self.straight)
            _name(before, "Before", self.lift.inputs or _coordinates("x", inputs))
            if isinstance(after, Axes3D):
                after_space(after, self.lift, self.points, self.image, self.classes, self.cut)
            else:
                after_plane(after, self.image, self.classes, self.cut)
            _name(after, "After", self.lift.outputs or _coordinates("z", outputs))
            flat, curved = ("threshold" if inputs == 1 else "line"), ("plane" if outputs == 3 else "line")
            solid, dashed = Line2D([], [], **SOLID), Line2D([], [], **STRAIGHT)
            best, pulled = f"best {flat}, {self.straight.percent} right", f"the {curved}, pulled back"
            _explain(before, {best: dashed, pulled: solid})
            _explain(after, {f"a {curved}, {self.cut.percent} right": solid})
            self.figure_, self.axes_ = style.owner(before), (before, after)
            style.lay_out(self.figure_)
        return self


def lift(
    which: str | Lift | Callable[[np.ndarray], np.ndarray],
    X: Any = None,
    y: Any = None,
    *,
    seed: int = 0,
    axes: Sequence[Axes] | None = None,
) -> Figure:
    r"""Draw two classes of points before and after a feature map.

    Before: the straight cut with the fewest mistakes (dashed), and the regions into which the cut of the lifted
    points divides the space of the data. After: that cut itself, a line or a plane.

    Parameters
    ----------
    which
        A name in `LIFTS`, a `Lift`, or a function from (n, p) arrays to (n, q) arrays, p = 1 or 2 and q = 2 or 3.
    X, y
        Points and their two classes; None for the example's own.
    seed
        For the example's own points.
    axes
        Two axes to draw into (the second made with projection="3d" for a map to three coordinates); None makes a
        figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure that holds the axes.

    Examples
    --------
    >>> from mercer import plots
    >>> figure = plots.lift("rings")
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Before: $(x_1,\\ x_2)$', 'After: $(x_1,\\ x_2,\\ x_1^2 + x_2^2)$']

    One's own data and map:

    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> figure = plots.lift(lambda X: np.hstack([X, np.cos(3 * X)]), X, abs(X[:, 0]) < 0.5)
    """
    return LiftDisplay.from_map(which, X, y, seed=seed, axes=axes).figure_


# -- what is asked ----------------------------------------------------------------------------------------


def _as_lift(which: Any) -> Lift:
    if isinstance(which, Lift):
        return which
    if isinstance(which, str):
        if which not in LIFTS:
            raise ValueError(f"there is no lift {which!r}; there are {', '.join(map(repr, LIFTS))}.")
        return LIFTS[which]
    if not callable(which):
        raise TypeError(f"a lift is a name, a Lift or a function of the points; got {which!r}.")
    return Lift("", which, (), ())


def _data(example: Lift, X: Any, y: Any, seed: int) -> tuple[np.ndarray, np.ndarray]:
    if (X is None) != (y is None):
        raise ValueError("points come with their classes: give both X and y, or neither.")
    if X is None:
        return example.sample(seed)
    points, (labels, classes) = np.asarray(X, dtype=float), np.unique(np.asarray(y), return_inverse=True)
    if points.ndim == 1:
        points = points[:, None]
    if len(labels) != 2:
        raise ValueError(f"a lift is drawn for two classes; y has {len(labels)}.")
    if len(classes) != len(points):
        raise ValueError(f"X has {len(points)} points and y has {len(classes)} classes; one each is needed.")
    return points, classes


def _shape(points: np.ndarray, image: np.ndarray) -> tuple[int, int]:
    if points.ndim != 2 or points.shape[1] not in (1, 2):
        raise ValueError(f"points with 1 or 2 coordinates can be drawn; X has shape {points.shape}.")
    if image.ndim != 2 or len(image) != len(points) or image.shape[1] not in (2, 3):
        raise ValueError(
            f"the lifted points must be an array of {len(points)} rows with 2 or 3 coordinates; "
            f"the map gave shape {image.shape}."
        )
    return points.shape[1], image.shape[1]


def _coordinates(letter: str, count: int) -> tuple[str, ...]:
    return tuple(f"${letter}_{i + 1}$" for i in range(count)) if count > 1 else (f"${letter}$",)


# -- frame ------------------------------------------------------------------------------------------------


def _pair(title: str, inputs: int, outputs: int) -> tuple[Axes, Axes]:
    # Places are given rather than computed: a 3-D box has no tight outline to lay out by.
    if inputs == 1 and outputs == 2:
        # One above the other with a common x axis: each threshold stands over the crossing that makes it.
        figure, places = style.figure(7.2, 5.8), {"left": 0.075, "right": 0.975, "bottom": 0.085, "top": 0.825}
        grid = figure.add_gridspec(2, 1, height_ratios=[1, 3.5], hspace=0.72, **places)
    else:
        figure, places = style.figure(9.6, 4.8), {"left": 0.075, "right": 0.965, "bottom": 0.115, "top": 0.775}
        grid = figure.add_gridspec(1, 2, width_ratios=[1, 1.15], wspace=0.24, **places)
    figure.set_layout_engine("none")
    if title:
        figure.suptitle(title, x=0.016, y=0.975, ha="left", fontsize=15, fontweight="bold")
    before = figure.add_subplot(grid[0])
    if outputs == 3:
        return before, figure.add_subplot(grid[1], projection="3d")
    return before, figure.add_subplot(grid[1], sharex=before if inputs == 1 else None)


def _name(axes: Axes, stage: str, labels: tuple[str, ...]) -> None:
    inside = r",\ ".join(label.strip("$") for label in labels)
    title = f"{stage}: ${inside if len(labels) == 1 else f'({inside})'}$"
    letters = style.fitting(12, re.sub(r"[$_^{}\\]", "", title), style.extent(axes)[0])
    axes.set_title(title, loc="left", pad=24 if _is_wide(axes) else 34, fontsize=letters)
    axes.set_xlabel(labels[0])
    if len(labels) > 1:
        axes.set_ylabel(labels[1])
    if isinstance(axes, Axes3D) and _is_wide(axes):  # in others it would stand outside; the title has it, too
        axes.set_zlabel(labels[2])


def _is_wide(axes: Axes) -> bool:
    return style.extent(axes)[0] > _TWO_NAMES


def _explain(axes: Axes, handles: dict[str, Line2D]) -> None:
    """Write what the lines are between the title and the data."""
    axes.legend(
        handles.values(),
        handles.keys(),
        loc="lower left",
        bbox_to_anchor=(0, 1.0),
        ncols=len(handles) if _is_wide(axes) else 1,
        borderaxespad=0.3,
        borderpad=0,
        fontsize=style.shrunk(9.5, axes),
        handlelength=1.9,
        handletextpad=0.6,
        columnspacing=1.6,
        labelcolor=style.MUTED,
    )


# -- on a line and in the plane -------------------------------------------------------------------------


def before_line(axes: Axes, lift: Lift, points: np.ndarray, classes: np.ndarray, cut: Cut, straight: Cut) -> None:
    """Draw points on a line, the best threshold, and the intervals that the cut of the lifted points makes."""
    x, xlim = points[:, 0], limits(points)
    t = np.linspace(*xlim, 2001)
    side = cut(lift(t[:, None])) > 0
    edges = np.concatenate([[0], np.flatnonzero(np.diff(side)) + 1, [len(t) - 1]])
    for start, stop in itertools.pairwise(edges):
        axes.axvspan(t[start], t[stop], color=style.PALE[int(side[start])], linewidth=0, zorder=0)
    for edge in edges[1:-1]:
        axes.axvline(t[edge], **SOLID)
    axes.axvline(-straight.b / straight.w[0], **STRAIGHT)
    axes.axhline(0, color=style.EDGE, linewidth=1, zorder=1)
    scatter(axes, (x, np.zeros_like(x)), classes)
    axes.set(xlim=xlim, ylim=(-1, 1), yticks=[])
    axes.spines["left"].set_visible(False)
    axes.grid(False)


def before_plane(axes: Axes, lift: Lift, points: np.ndarray, classes: np.ndarray, cut: Cut, straight: Cut) -> None:
    """Draw points in a plane, the best line, and the regions that the cut of the lifted points makes."""
    x, y, values = _pulled_back(lift, cut, points)
    axes.contourf(x, y, values, levels=[-np.inf, 0, np.inf], colors=style.PALE, zorder=0)
    for curve in boundary(lift, cut, points):
        axes.plot(*curve.T, **SOLID)
    _line(axes, straight, **STRAIGHT)
    scatter(axes, (points[:, 0], points[:, 1]), classes)
    axes.set(xlim=limits(points[:, 0]), ylim=limits(points[:, 1]), aspect="equal")


def after_plane(axes: Axes, image: np.ndarray, classes: np.ndarray, cut: Cut) -> None:
    """Draw lifted points in a plane and the line between them."""
    xlim, ylim = limits(image[:, 0]), limits(image[:, 1])
    corners = np.array(list(itertools.product(xlim, ylim)))
    axes.contourf(xlim, ylim, cut(corners).reshape(2, 2).T, levels=[-np.inf, 0, np.inf], colors=style.PALE, zorder=0)
    _line(axes, cut, **SOLID)
    scatter(axes, (image[:, 0], image[:, 1]), classes)
    axes.set(xlim=xlim, ylim=ylim)


def boundary(lift: Lift, cut: Cut, points: np.ndarray) -> list[np.ndarray]:
    """Return the curves in the plane of the data on which the cut of the lifted points is zero."""
    return [np.asarray(curve) for curve in contour_generator(*_pulled_back(lift, cut, points)).lines(0.0)]


def _pulled_back(lift: Lift, cut: Cut, points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the axes of a grid about the points, and the cut of its lifted points."""
    return on_grid(lambda at: cut(lift(at)), [limits(column) for column in points.T])


def _line(axes: Axes, cut: Cut, **options: Any) -> None:
    """Draw the line <w, x> + b = 0 right across the axes."""
    w, foot = cut.w, -cut.b * cut.w / (cut.w @ cut.w)
    axes.axline(tuple(foot), tuple(foot + np.array([-w[1], w[0]]) / np.linalg.norm(w)), **options)


# -- lifted points in space, with the plane between them --------------------------------------------------


Box = list[tuple[float, float]]


def after_space(axes: Axes3D, lift: Lift, points: np.ndarray, image: np.ndarray, classes: np.ndarray, cut: Cut) -> None:
    """Draw lifted points, the plane, and for points of a plane the surface they are lifted to."""
    box = [limits(column, 0.06) for column in image.T]
    axes.set(xlim=box[0], ylim=box[1], zlim=box[2])
    axes.view_init(ELEVATION, AZIMUTH)
    axes.set_box_aspect(ASPECT, zoom=1.16 if _is_wide(axes) else 0.95)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_pane_color((1.0, 1.0, 1.0, 0.0))
        axis.set_major_locator(MaxNLocator(5 if _is_wide(axes) else 3, steps=[1, 2, 5, 10]))
        axis.set_tick_params(labelsize=style.shrunk(9, axes))
    # mplot3d hides nothing behind a plane; drawing the far side, the plane and the near side in that order does.
    axes.computed_zorder = False
    facing = np.sign(cut.w @ _towards_camera(box))
    near = cut(image) * facing > 0
    for chosen, zorder in ((~near, 3), (near, 6)):
        scatter(axes, tuple(image[chosen].T), classes[chosen], depthshade=False, zorder=zorder)
    corners = section(cut, box)
    if len(corners):
        look = {"facecolors": "#7d8b99", "edgecolors": style.MUTED, "alpha": 0.3, "linewidths": 0.8, "zorder": 4}
        axes.add_collection3d(Poly3DCollection([corners], **look))
    if points.shape[1] == 2:
        threads = _inside(box, _net(lift, points))
        depth = cut(threads) * facing
        for side, zorder in ((-depth, 2), (depth, 5)):
            axes.plot(*np.where(side[:, None] >= 0, threads, np.nan).T, color="#b4bfca", linewidth=0.55, zorder=zorder)
        for curve in boundary(lift, cut, points):
            axes.plot(*_inside(box, lift(curve)).T, **(SOLID | {"zorder": 5}))


def section(cut: Cut, box: Box) -> np.ndarray:
    """Return the corners, in order, of the polygon in which the plane of a cut meets a box."""
    crossings = []
    for p, q in itertools.combinations(np.array(list(itertools.product(*box))), 2):
        if (p != q).sum() == 1:  # an edge of the box
            f, g = cut(p), cut(q)
            if f * g < 0:
                crossings.append(p + (q - p) * f / (f - g))
    if len(crossings) < 3:
        return np.empty((0, 3))
    spokes = np.array(crossings) - np.mean(crossings, axis=0)
    flat = spokes @ np.linalg.svd(spokes)[2][:2].T
    return np.array(crossings)[np.argsort(np.arctan2(flat[:, 1], flat[:, 0]))]


def _towards_camera(box: Box) -> np.ndarray:
    e, a = np.deg2rad([ELEVATION, AZIMUTH])
    return np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)]) / ASPECT * np.ptp(box, axis=1)


def _inside(box: Box, points: np.ndarray) -> np.ndarray:
    """Return the points with nan for those outside a box, which breaks the lines that leave it."""
    low, high = np.array(box).T
    return np.where(((points >= low) & (points <= high)).all(axis=1, keepdims=True), points, np.nan)


def _net(lift: Lift, points: np.ndarray, threads: int = 23, fineness: int = 300) -> np.ndarray:
    """Return the lifted lines of constant x1 and of constant x2, one after another, parted by nan."""
    lines = []
    for across, along in ((0, 1), (1, 0)):
        for level in np.linspace(*limits(points[:, across], 0.06), threads):
            line = np.empty((fineness, 2))
            line[:, across], line[:, along] = level, np.linspace(*limits(points[:, along], 0.06), fineness)
            lines.append(line)
    image = lift(np.vstack(lines))
    image[fineness - 1 :: fineness] = np.nan
    return image
