"""Two classes of points on a line and in a plane, with their cuts."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from contourpy import contour_generator
from matplotlib.axes import Axes

from mercer.plots import style
from mercer.plots.lifts import Cut, Lift

STRAIGHT: dict[str, Any] = {"color": style.MUTED, "linewidth": 1.4, "linestyle": (0, (5, 3)), "zorder": 2}
SOLID: dict[str, Any] = {"color": style.INK, "linewidth": 1.6, "zorder": 2}
FINENESS = 300  # of the grid on which regions are found


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


def scatter(axes: Axes, columns: tuple[np.ndarray, ...], classes: np.ndarray, **options: Any) -> None:
    """Draw points in the colours and shapes of their classes, 0 and 1."""
    for c in (0, 1):
        look: dict[str, Any] = {"color": style.COLOURS[c], "marker": style.MARKERS[c], "s": 26, "zorder": 3}
        look |= {"edgecolors": "white", "linewidths": 0.5} | options
        axes.scatter(*(column[classes == c] for column in columns), **look)


def limits(values: np.ndarray, margin: float = 0.12) -> tuple[float, float]:
    """Return the range of values, widened on each side by a share of it."""
    low, high = float(values.min()), float(values.max())
    pad = margin * ((high - low) or 1.0)
    return low - pad, high + pad


def _pulled_back(lift: Lift, cut: Cut, points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the axes of a grid about the points, and the cut of its lifted points."""
    x, y = (np.linspace(*limits(column), FINENESS) for column in points.T)
    values = cut(lift(np.column_stack([g.ravel() for g in np.meshgrid(x, y)])))
    return x, y, values.reshape(FINENESS, FINENESS)


def _line(axes: Axes, cut: Cut, **options: Any) -> None:
    """Draw the line <w, x> + b = 0 right across the axes."""
    w, foot = cut.w, -cut.b * cut.w / (cut.w @ cut.w)
    axes.axline(tuple(foot), tuple(foot + np.array([-w[1], w[0]]) / np.linalg.norm(w)), **options)
