"""Lifted points in space, with the plane between them."""

from __future__ import annotations

import itertools

import numpy as np
from matplotlib.ticker import MaxNLocator
from mpl_toolkits.mplot3d.art3d import Poly3DCollection  # type: ignore[import-untyped]
from mpl_toolkits.mplot3d.axes3d import Axes3D  # type: ignore[import-untyped]

from mercer.plots import style
from mercer.plots.lifts import Lift
from mercer.plots.panels import SOLID, boundary, limits, scatter
from mercer.plots.separate import Cut

ELEVATION, AZIMUTH = 18.0, -62.0  # of the camera, in degrees
ASPECT = (1.0, 1.0, 0.82)

Box = list[tuple[float, float]]


def after_space(axes: Axes3D, lift: Lift, points: np.ndarray, image: np.ndarray, classes: np.ndarray, cut: Cut) -> None:
    """Draw lifted points, the plane, and for points of a plane the surface they are lifted to."""
    box = [limits(column, 0.06) for column in image.T]
    axes.set(xlim=box[0], ylim=box[1], zlim=box[2])
    axes.view_init(ELEVATION, AZIMUTH)
    axes.set_box_aspect(ASPECT, zoom=1.16)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_pane_color((1.0, 1.0, 1.0, 0.0))
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
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
