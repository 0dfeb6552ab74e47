"""The prediction over a plane, with the boundary or its contours and rows of the data on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from contourpy import FillType, contour_generator

from mercer.machine.clock import Clock
from mercer.machine.words import count
from mercer.report.blocks import Figure, clip, number, tick
from mercer.report.columns import averaged
from mercer.report.data import as_numbers
from mercer.report.scales import Linear, quantiles, spaced, span
from mercer.report.story import Machine
from mercer.report.svg import STEPS, Chart, path

_PLACES_PER_AXIS = 26  # of the grid on which the prediction is computed; half of them where time is short
_POINTS_DRAWN = 260  # rows drawn over the picture: more would hide it
_MOST_AVERAGED = 60  # rows over which the prediction at a place is averaged, at most: more change nothing one sees
_LEADS = (0.0, 0.25, 0.5, 0.75)  # lead of the likeliest class over the next at which a further layer begins


@dataclass
class Plane:
    """Predictions (places up, places across, outputs) on a grid, and points to draw on it."""

    names: tuple[str, str]
    axes: tuple[np.ndarray, np.ndarray]
    values: np.ndarray
    points: np.ndarray
    targets: np.ndarray
    background: int  # rows of which the average was taken; 0 if there is nothing to average over


def grid_for(clock: Clock, each: float) -> tuple[int, int]:
    """Return how many places on an axis and how many rows at each there is time for."""
    places = _PLACES_PER_AXIS if 4 * each * _PLACES_PER_AXIS**2 < clock.left else _PLACES_PER_AXIS // 2
    return places, int(np.clip(clock.left / (each * places**2), 8, _MOST_AVERAGED))


def columns_plane(
    machine: Machine,
    frame: Any,
    y: np.ndarray,
    columns: list[Any],
    clock: Clock,
    each: float,
    rng: np.random.Generator,
) -> Plane | None:
    """Return the plane of the two columns of numbers that matter most; None if there are no two."""
    labels = {str(label): label for label in frame.columns}
    chosen = [labels[str(c.name)] for c in columns if c.kind == "number" and str(c.name) in labels]
    chosen = [label for label in chosen if len(np.unique(as_numbers(frame[label]))) > 1][:2]
    if len(chosen) < 2:
        return None
    alone = len(columns) == 2
    places, background = grid_for(clock, each)
    rows = frame.iloc[rng.permutation(len(frame))[: 1 if alone else background]]
    ends = [span(quantiles(as_numbers(frame[label]), [0.01, 0.99]), 0.03) for label in chosen]
    axes = (spaced(*ends[0], places), spaced(*ends[1], places))
    first, second = np.meshgrid(*axes)
    values = averaged(machine, rows, {chosen[0]: first.ravel().tolist(), chosen[1]: second.ravel().tolist()})
    shown = rng.permutation(len(frame))[:_POINTS_DRAWN]
    return Plane(
        (str(chosen[0]), str(chosen[1])),
        axes,
        values.reshape(places, places, -1),
        frame.iloc[shown][chosen].to_numpy(dtype=float, na_value=np.nan),
        y[shown],
        0 if alone else len(rows),
    )


def plane_figure(machine: Machine, plane: Plane, title: str) -> Figure:
    """Draw a plane."""
    described = f"A map of the prediction over {plane.names[0]} and {plane.names[1]}, with rows of the data on it."
    chart = Chart("plane", title, described, height=352, top=40 if machine.classifies else 14)
    x = chart.across(float(plane.axes[0][0]), float(plane.axes[0][-1]))
    up = chart.up(float(plane.axes[1][0]), float(plane.axes[1][-1]))
    if machine.classifies and len(machine.classes) > 2:
        _zones(chart, plane, x, up)
    else:
        _bands(chart, machine, plane, x, up)
    chart.axis_x(x, plane.names[0], grid=False)
    for mark in up.ticks(5):
        chart.text(chart.x0 - 7, float(up(mark)) + 4, tick(mark), "tick", anchor="end")
    chart.label_y(plane.names[1])
    _points(chart, machine, plane, x, up)
    average = f" Average over {count(plane.background, 'row')}, all else as it is there." if plane.background else ""
    return chart.figure(_note(machine) + average)


def _note(machine: Machine) -> str:
    if not machine.classifies:
        return "The stronger the shade, the larger the prediction; dots are rows of the data."
    if len(machine.classes) == 2:
        return "On the line both classes are equally probable; marks are rows of the data."
    return "Colours are the likeliest class, paler where it is less sure; marks are rows of the data."


def _bands(chart: Chart, machine: Machine, plane: Plane, x: Linear, up: Linear) -> None:
    """Fill the regions between contours, and draw the contours."""
    values = plane.values[..., -1]
    low, high = (0.0, 1.0) if machine.classifies else (float(values.min()), float(values.max()))
    high = high if high > low else low + 1.0
    levels = np.linspace(low, high, STEPS + 1)
    for step in range(STEPS):
        ends = -np.inf if step == 0 else levels[step], np.inf if step == STEPS - 1 else levels[step + 1]
        _filled(chart, plane, values, ends, f"{'d' if machine.classifies else 'h'}{step}", x, up)
    drawn = contour_generator(*plane.axes, values)
    for level in [0.5] if machine.classifies else levels[1:-1:2]:
        for curve in drawn.lines(level):
            look = "boundary" if machine.classifies else "contour"
            line = path(x(np.asarray(curve)[:, 0]), up(np.asarray(curve)[:, 1]))
            chart.add("path", hint=f"prediction {number(level)}", d=line, class_=look)


def _filled(
    chart: Chart, plane: Plane, values: np.ndarray, ends: tuple[float, float], look: str, x: Linear, up: Linear
) -> None:
    """Fill where values lie between two ends."""
    made = contour_generator(*plane.axes, values, fill_type=FillType.OuterOffset).filled(*ends)
    rings = [
        ring
        for points, starts in zip(*made, strict=True)
        for ring in np.split(np.asarray(points), np.asarray(starts, dtype=int)[1:-1])
    ]
    if rings:
        outline = "".join(path(x(ring[:, 0]), up(ring[:, 1])) + "Z" for ring in rings)
        chart.add("path", d=outline, fill_rule="evenodd", class_=look)


def _zones(chart: Chart, plane: Plane, x: Linear, up: Linear) -> None:
    """Fill where each class is the likeliest, layer upon layer the further it is ahead."""
    for c in range(plane.values.shape[-1]):
        ahead = plane.values[..., c] - np.delete(plane.values, c, axis=-1).max(axis=-1)
        for level in _LEADS:
            if ahead.max() > level:
                _filled(chart, plane, ahead, (level, np.inf), f"zone c{c % 8}", x, up)


def _points(chart: Chart, machine: Machine, plane: Plane, x: Linear, up: Linear) -> None:
    px, py = x(plane.points[:, 0]), up(plane.points[:, 1])
    inside = (px >= chart.x0) & (px <= chart.x1) & (py <= chart.y0) & (py >= chart.y1)
    if not machine.classifies:
        chart.dots(px[inside], py[inside], "mark", 1.7)
        return
    names = [str(c) for c in machine.classes]
    for i, c in enumerate(machine.classes[:8]):
        here = inside & (plane.targets == c)
        for a, b in zip(px[here], py[here], strict=True):
            _mark(chart, float(a), float(b), i, 2.7)
    room = (chart.x1 - chart.x0) / min(8, len(names))
    for i, name in enumerate(names[:8]):
        _mark(chart, chart.x0 + 5 + i * room, 19, i, 3.6)
        chart.text(chart.x0 + 13 + i * room, 23, clip(name, max(3, int(room / 6.1) - 3)), "tick", hint=name)


def _mark(chart: Chart, x: float, y: float, i: int, size: float) -> None:
    """Draw a row of class i; every second class is a triangle: colour is not all that tells them apart."""
    if i % 2:
        chart.add(
            "path",
            d=f"M{x:.1f} {y - 1.2 * size:.1f}l{1.1 * size:.1f} {2 * size:.1f}h{-2.2 * size:.1f}z",
            class_=f"dot c{i} edged",
        )
    else:
        chart.dots([x], [y], f"c{i} edged", size)


# The plane of the two directions along which a classifier tells most: its boundary as one sees it best.


_COLUMNS_NAMED = 2  # columns in the name of a direction
_PROBES = 300  # differences from which the directions are taken, at least
_PROBE_LENGTH = 0.5  # of the differences, in standard deviations
_WEAK_GRADIENT = 1e-2  # share of the first direction's gradient below which a second direction is not drawn


def leading(machine: Machine, S: np.ndarray, rows: Any, probes: int, rng: np.random.Generator) -> np.ndarray:
    """Return two orthonormal directions (2, columns): those along which the log odds of the classes change most.

    They are the leading singular directions of the mean gradient, which is fitted to differences over about half a
    standard deviation. Two classes have one; the other is then the widest spread of the rows across it.

    Parameters
    ----------
    S
        Rows, each column in units of its deviation.
    rows
        Turns such rows into encoded ones.
    probes
        How many differences to look at.
    """
    at = S[rng.integers(len(S), size=probes)]
    steps = _PROBE_LENGTH * rng.standard_normal(at.shape)
    change = _odds(machine.values(rows(at + steps))) - _odds(machine.values(rows(at - steps)))
    gradient = np.linalg.lstsq(steps, change, rcond=1e-3)[0]
    ways, size, _ = np.linalg.svd(gradient, full_matrices=False)
    first, second = ways[:, 0] * (np.sign(gradient[:, -1] @ ways[:, 0]) or 1.0), ways[:, 1]  # the last class is right
    if len(machine.classes) == 2 or size[1] < _WEAK_GRADIENT * size[0]:
        across = S - np.outer(S @ first, first)
        second = np.linalg.svd(across, full_matrices=False)[2][0]
    return np.stack([first, second])


def _odds(chances: np.ndarray) -> np.ndarray:
    logs = np.log(np.clip(chances, 1e-6, 1.0))
    return np.asarray(logs - logs.mean(axis=1, keepdims=True))


def directions_plane(
    machine: Machine, Z: np.ndarray, y: np.ndarray, clock: Clock, each: float, rng: np.random.Generator
) -> Plane | None:
    """Return the plane of the two leading directions of encoded rows; None if they have fewer than two columns.

    At each place the prediction is the average over some rows moved there, each at its own distance from the plane.
    """
    if Z.shape[1] < 2 or Z.dtype == object:  # strings have no directions
        return None
    middle, unit = Z.mean(axis=0), Z.std(axis=0)
    unit[unit == 0] = 1.0
    S = (Z - middle) / unit

    def rows(moved: np.ndarray) -> np.ndarray:
        return moved * unit + middle

    ways = leading(machine, S, rows, max(_PROBES, 4 * Z.shape[1]), rng)
    points = S @ ways.T
    places, background = grid_for(clock, each)
    background = 1 if Z.shape[1] == 2 else min(background, len(Z))
    ends = [span(quantiles(column, [0.01, 0.99]), 0.06) for column in points.T]
    axes = (np.linspace(*ends[0], places), np.linspace(*ends[1], places))
    on = np.column_stack([g.ravel() for g in np.meshgrid(*axes)]) @ ways
    rest = S[rng.permutation(len(S))[:background]]
    rest = rest - rest @ ways.T @ ways
    averages = np.asarray(sum(machine.values(rows(on + off)) for off in rest) / background)
    names = tuple(_name(way, machine) for way in ways)
    shape = (places, places, -1)
    return Plane((names[0], names[1]), axes, averages.reshape(shape), points, y, background if Z.shape[1] > 2 else 0)


def _name(way: np.ndarray, machine: Machine) -> str:
    """Return the columns of the table that a direction is made of most."""
    sizes = {name: float(np.linalg.norm(way[at])) for name, at in machine.model.encoder_.groups().items()}
    most = sorted(sizes, key=lambda name: -sizes[name])
    more = ", …" if len(most) > _COLUMNS_NAMED else ""
    return "direction of " + ", ".join(clip(name, 22) for name in most[:_COLUMNS_NAMED]) + more
