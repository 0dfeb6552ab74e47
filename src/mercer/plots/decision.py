"""The decision of a two-class machine in the plane: hyperplane, margins, zones, support vectors, slacks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from contourpy import contour_generator
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import ScaledTranslation
from sklearn.utils.validation import check_is_fitted

from mercer.plots import style
from mercer.plots.style import SOLID, limits, on_grid, scatter

ZONES = ("#d3e2f2", "#ecf3fa", "#fcf0f1", "#f5d9dd")  # f <= -1, -1 < f < 0, 0 <= f < 1, f >= 1
EDGE: dict[str, Any] = {"color": style.MUTED, "linewidth": 1.1, "linestyle": (0, (5, 3)), "zorder": 2}
RING: dict[str, Any] = {"marker": "o", "facecolors": "none", "edgecolors": style.INK, "linewidths": 0.8, "s": 58}
CROSS: dict[str, Any] = {"marker": "x", "color": style.INK, "linewidths": 1.1, "s": 34}
_VISIBLE_SLACK = 0.01  # slack below which a segment would be shorter than the point it starts from
_THIN_THREADS = 40  # threads of a class that would hide the picture unless they are thin
_MARGIN_REACH = 0.6  # share of the picture's size within which margins that lie outside of it are looked for


def boundary(model: Any, X: Any, y: Any, ax: Axes | None = None) -> Figure:
    r"""Draw what a machine for two classes has found in the plane.

    - The hyperplane f = 0 (solid) and the margins f = -1 and f = 1 (dashed).
    - The four zones of the decision (M10): deep where the class is sure, |f| >= 1, pale where it is probable.
    - Support vectors are ringed, and points on the wrong side of f = 0 are crossed.
    - Slacks: a thread from each point that is short of its margin to the nearest place of the margin. For a linear
      kernel its length is the slack in units of 1 / ‖w‖.

    Parameters
    ----------
    model
        A fitted classifier of two classes with a `decision_function`: `SVC`, `NuSVC`, `LinearSVC`, `Perceptron`,
        `Pegasos`, or another library's. Support vectors are known from `support_`; where there is none, none is ringed.
    X, y
        Points with two features and their classes: those the model was fitted to, whose support vectors they are, or
        others of the same kind, among which nothing is ringed.
    ax
        Axes to draw into; None makes a figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure that holds the axes.

    Examples
    --------
    >>> from mercer import RBF, SVC, plots
    >>> X, y = plots.LIFTS["rings"].sample()
    >>> figure = plots.boundary(SVC(kernel=RBF(scale=0.5)).fit(X, y), X, y)
    >>> figure.axes[0].get_title(loc="left")
    'RBF(scale=0.5): 100% right'
    """
    points, signs = _data(model, X, y)
    margin = signs * _values(model, X, points)
    slack = np.maximum(0.0, 1.0 - margin)
    support, wrong = _support(model, points), margin < 0
    wrong |= (margin == 0) & (signs < 0)  # f = 0 belongs to the second class
    box = [limits(column, 0.08) for column in points.T]
    with style.house():
        if ax is None:
            ax = style.figure(5.6, 5.6).add_subplot()
        x1, x2, f = _grid(model, X, box)
        ax.contourf(x1, x2, f, levels=[-np.inf, -1, 0, 1, np.inf], colors=ZONES, zorder=0)
        lines = contour_generator(x1, x2, f)
        for level, look in ((0.0, SOLID), (-1.0, EDGE), (1.0, EDGE)):
            for curve in lines.lines(level):
                ax.plot(*np.asarray(curve).T, **look)
        _threads(ax, model, X, box, points, signs, slack)
        scatter(ax, (points[:, 0], points[:, 1]), (signs > 0).astype(int))
        ax.scatter(*points[support].T, zorder=4, **RING)
        ax.scatter(*points[wrong].T, zorder=5, **CROSS)
        ax.set(xlim=box[0], ylim=box[1], aspect="equal")
        ax.grid(False)
        names = [str(c) for c in X.columns] if hasattr(X, "columns") else ["$x_1$", "$x_2$"]
        ax.set(xlabel=names[0], ylabel=names[1])
        right = math.floor(100 * float(1 - wrong.mean()) + 1e-9)
        ax.set_title(f"{_title(model)}: {right}% right", loc="left")
        _explain(
            ax, int(support.sum()), int((slack > _VISIBLE_SLACK).sum()), int(wrong.sum()), hasattr(model, "support_")
        )
    return style.owner(ax)


# -- what is drawn ----------------------------------------------------------------------------------------


def _data(model: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the points as an array and their classes as -1 and +1."""
    check_is_fitted(model)
    classes = getattr(model, "classes_", None)
    if classes is None or not hasattr(model, "decision_function"):
        raise TypeError(f"boundary draws classifiers with a decision function; {type(model).__name__} is none.")
    if len(classes) != 2:
        raise ValueError(
            f"boundary draws a machine for two classes; this {type(model).__name__} tells {len(classes)} apart. "
            "Fit it to two of them."
        )
    points = np.asarray(X, dtype=float)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"boundary draws points with two features; X has shape {points.shape}.")
    y = np.asarray(y)
    if y.shape != (len(points),):
        raise ValueError(f"X has {len(points)} points and y has {y.size} classes; one each is needed.")
    strange = ~np.isin(y, classes)
    if strange.any():
        raise ValueError(
            f"y contains {y[strange][0].item()!r}, which is none of the classes of this model, {classes.tolist()}."
        )
    return points, np.where(y == classes[1], 1.0, -1.0)


def _values(model: Any, like: Any, points: np.ndarray) -> np.ndarray:
    """Return f at points, handed to the model in the table it knows."""
    table = type(like)(points, columns=like.columns) if hasattr(like, "iloc") else points
    return np.asarray(model.decision_function(table), dtype=float)


def _support(model: Any, points: np.ndarray) -> np.ndarray:
    """Return which of the points are support vectors; none, if these are not the points of the fit."""
    chosen = np.zeros(len(points), dtype=bool)
    index = np.asarray(getattr(model, "support_", []), dtype=int)
    vectors = getattr(model, "support_vectors_", None)
    if not len(index) or index.max() >= len(points):
        return chosen
    if vectors is not None and hasattr(vectors, "toarray"):
        vectors = vectors.toarray()
    if vectors is None or np.array_equal(np.asarray(vectors, dtype=float), points[index]):
        chosen[index] = True
    return chosen


def _grid(model: Any, like: Any, box: list[tuple[float, float]], wider: float = 0.0) -> tuple[np.ndarray, ...]:
    """Return the axes of a grid over the box (or a wider one), and f on it."""
    wide = [(a - wider * (b - a), b + wider * (b - a)) for a, b in box]
    return on_grid(lambda points: _values(model, like, points), wide)


def _threads(
    ax: Axes,
    model: Any,
    like: Any,
    box: list[tuple[float, float]],
    points: np.ndarray,
    signs: np.ndarray,
    slack: np.ndarray,
) -> None:
    """Draw a thread from each point with slack to the nearest place of its margin."""
    if not (slack > _VISIBLE_SLACK).any():
        return
    lines = contour_generator(*_grid(model, like, box, _MARGIN_REACH))
    for i, sign in enumerate((-1.0, 1.0)):
        short = points[(signs == sign) & (slack > _VISIBLE_SLACK)]
        curves = [np.asarray(curve) for curve in lines.lines(sign)]
        if len(short) and curves:
            places = np.vstack([_nearest(short, curve) for curve in curves]).reshape(len(curves), len(short), 2)
            best = np.argmin(((places - short) ** 2).sum(axis=2), axis=0)
            feet = places[best, np.arange(len(short))]
            look: dict[str, Any] = {"colors": style.COLOURS[i], "linewidths": 0.9, "alpha": 0.7, "zorder": 2.5}
            if len(short) > _THIN_THREADS:
                look |= {"linewidths": 0.5, "alpha": 0.4}
            ax.add_collection(LineCollection(list(np.stack([short, feet], axis=1)), **look), autolim=False)


def _nearest(points: np.ndarray, curve: np.ndarray) -> np.ndarray:
    """Return the place of a polygonal curve that is nearest to each point."""
    start, step = curve[:-1], np.diff(curve, axis=0)
    length = np.maximum((step**2).sum(axis=1), 1e-300)
    along = ((points[:, None] - start) * step).sum(axis=2) / length
    feet = start + np.clip(along, 0.0, 1.0)[..., None] * step
    best = np.argmin(((feet - points[:, None]) ** 2).sum(axis=2), axis=1)
    return np.asarray(feet[np.arange(len(points)), best])


# -- words ------------------------------------------------------------------------------------------------


def _title(model: Any) -> str:
    kernel = getattr(model, "kernel_", None)
    return type(model).__name__ if kernel is None else repr(kernel)


def _count(n: int, thing: str) -> str:
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"


def _explain(ax: Axes, support: int, slack: int, wrong: int, rings: bool) -> None:
    """Say below the picture what its signs mean, and how many there are."""
    ring: dict[str, Any] = {
        "marker": "o",
        "markersize": 8,
        "markerfacecolor": "none",
        "markeredgecolor": style.INK,
        "linestyle": "",
    }
    thread: dict[str, Any] = {"color": style.MUTED, "linewidth": 0.9}
    cross: dict[str, Any] = {"marker": "x", "markersize": 6, "markeredgecolor": style.INK, "linestyle": ""}
    pale = tuple(Patch(facecolor=colour, edgecolor=style.EDGE, linewidth=0.5) for colour in ZONES[1:3])
    handles: dict[str, Any] = {
        "$f = 0$": Line2D([], [], **SOLID),
        r"$f = \pm 1$": Line2D([], [], **EDGE),
        "probable only: $|f| < 1$": pale,
    }
    if rings:
        handles[_count(support, "support vector")] = Line2D([], [], **ring)
    handles[_count(slack, "slack")] = Line2D([], [], **thread)
    handles[f"{wrong} misclassified"] = Line2D([], [], **cross)
    ax.legend(
        handles.values(),
        handles.keys(),
        loc="upper left",
        bbox_to_anchor=(0, 0),
        bbox_transform=ax.transAxes + ScaledTranslation(0, -0.48, style.owner(ax).dpi_scale_trans),
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0)},
        ncols=2,
        borderaxespad=0,
        borderpad=0,
        fontsize=9,
        handlelength=1.5,
        handletextpad=0.5,
        columnspacing=1.6,
        labelcolor=style.MUTED,
    )
