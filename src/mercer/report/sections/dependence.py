"""The prediction as a function of one column, on average over the others (Friedman, 2001)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.machine.clock import Clock
from mercer.machine.words import count
from mercer.report.drawing.blocks import Figure
from mercer.report.drawing.scales import Bands, quantiles, spaced, span
from mercer.report.drawing.svg import LETTER, Chart
from mercer.report.drawing.words import clip, number
from mercer.report.machine import Machine
from mercer.report.sections.data import as_numbers, in_order
from mercer.report.sections.importance import groups

_PLACES = 24
_LINES = 5  # classes that are drawn
_NAMES = 12  # categories that are drawn


@dataclass
class Dependence:
    """Mean predictions (places, outputs) with a column set to each of some values."""

    name: str
    kind: str
    values: list[Any]
    means: np.ndarray


def averaged(machine: Machine, frame: Any, settings: dict[Any, list[Any]]) -> np.ndarray:
    """Return the mean of the predictions over the rows of a table, with columns set to each of some values in turn.

    An encoder treats columns one by one, so that only the columns that are set need to be encoded for each value.
    """
    size = len(next(iter(settings.values())))
    one = frame.iloc[np.zeros(size, dtype=int)].reset_index(drop=True)
    for label, values in settings.items():
        one[label] = values
    changed = machine.encode(one)
    made = groups(machine.model.encoder_)
    columns = np.concatenate([made[str(label)] for label in settings])
    Z = np.tile(machine.encode(frame), (size, 1))
    Z[:, columns] = np.repeat(changed[:, columns], len(frame), axis=0)
    return machine.values(Z).reshape(size, len(frame), -1).mean(axis=1)


def depend(machine: Machine, frame: Any, column: Any, background: int, rng: np.random.Generator) -> Dependence | None:
    """Return how the prediction goes with one column of a table; None for kinds that have no order and no names."""
    import pandas

    labels = {str(label): label for label in frame.columns}
    if str(column.name) not in labels:
        return None
    series = frame[labels[str(column.name)]]
    if column.kind == "number":
        numbers = as_numbers(series)
        if not numbers.size:
            return None
        distinct = np.unique(numbers)
        low, high = quantiles(numbers, [0.02, 0.98])
        values = distinct if len(distinct) <= 12 else spaced(low, high, _PLACES)
        if pandas.api.types.is_integer_dtype(series):
            values = np.unique(np.round(values).astype(int))
        settings: list[Any] = values.tolist()
    elif column.kind in ("category", "ordered category", "yes/no"):
        counts = series.dropna().value_counts()
        counts = counts[counts > 0][:_NAMES]  # pandas counts levels that do not occur, too
        settings = (counts.sort_index() if in_order(series) else counts).index.tolist()
    else:
        return None
    if len(settings) < 2:
        return None
    rows = frame.iloc[rng.permutation(len(frame))[:background]]
    means = averaged(machine, rows, {labels[str(column.name)]: settings})
    return Dependence(str(column.name), str(column.kind), settings, means)


def dependence_figures(
    machine: Machine, frame: Any, columns: list[Any], clock: Clock, each: float, rng: np.random.Generator, most: int = 4
) -> list[Figure]:
    """Return pictures for the columns that matter most, as long as there is time.

    `each` is the time that the prediction of a row takes.
    """
    figures: list[Figure] = []
    for column in columns:
        if len(figures) == most or (figures and clock.out):
            break
        share = clock.left / (most - len(figures))
        background = int(np.clip(share / (each * _PLACES), 20, 200))
        found = depend(machine, frame, column, background, rng)
        if found is not None:
            figures.append(_draw(found, machine, len(figures), min(background, len(frame))))
    return figures


def _draw(found: Dependence, machine: Machine, place: int, rows: int) -> Figure:
    means, names = _outputs(found, machine)
    what = (
        "probability" + (f" of {clip(names[0], 18)}" if len(names) == 1 else "") if machine.classifies else "prediction"
    )
    low, high = float(means[:, 0].min()), float(means[:, 0].max())
    title = f"{clip(found.name, 26)}: the {what} lies between {number(low, 2)} and {number(high, 2)}"
    if len(names) > 1:
        title = f"{clip(found.name, 26)}: the probability of each class"
    note = f"Average over {count(rows, 'row')} in which this column is set to each value."
    chart = Chart(f"depend{place}", title, note, height=320, top=34 if len(names) > 1 else 14)
    if found.kind == "number":
        _lines(chart, found, means, names, what)
    else:
        chart = _strokes(chart, found, means, names, what)
    for i, name in enumerate(names if len(names) > 1 else []):
        at = chart.x0 + i * (chart.x1 - chart.x0) / len(names)
        chart.whisker(at, 16, at + 14, 16, f"key c{i}")
        chart.text(at + 18, 20, clip(name, int((chart.x1 - chart.x0) / len(names) / LETTER) - 4), "tick", hint=name)
    return Figure(title, chart.svg(), note)


def _outputs(found: Dependence, machine: Machine) -> tuple[np.ndarray, list[str]]:
    """Return what is drawn: the prediction, the second of two classes, or those of many that move most."""
    if not machine.classifies:
        return found.means, ["prediction"]
    names = [str(c) for c in machine.classes]
    if len(names) == 2:
        return found.means[:, 1:], names[1:]
    moving = np.sort(np.argsort(-np.ptp(found.means, axis=0), kind="stable")[:_LINES])
    return found.means[:, moving], [names[i] for i in moving]


def _lines(chart: Chart, found: Dependence, means: np.ndarray, names: list[str], what: str) -> None:
    at = np.array(found.values, float)
    x, y = chart.across(*span(at, 0.02)), chart.up(*span(means, 0.08))
    chart.axis_y(y, what)
    chart.axis_x(x, found.name)
    for i in range(means.shape[1]):
        chart.line(x(at), y(means[:, i]), f"c{i}")
        if len(at) <= 12:
            chart.dots(x(at), y(means[:, i]), f"c{i}", 3)


def _strokes(chart: Chart, found: Dependence, means: np.ndarray, names: list[str], what: str) -> Chart:
    order = np.argsort(-means[:, 0], kind="stable")
    if found.kind == "ordered category":
        order = np.arange(len(means))
    labels = [str(found.values[i]) for i in order]
    longest = max(len(clip(name, 20)) for name in labels)
    top = chart.y1 + (14 if len(names) > 1 else 0)
    made = Chart(
        chart.name,
        chart.title,
        chart.description,
        height=top + 50 + 21 * len(labels),
        left=16 + 6.3 * longest,
        top=top,
    )
    x, rows = made.across(*span(means, 0.06)), Bands(len(labels), made.y1, made.y0)
    made.axis_x(x, f"{what}, by {clip(found.name, 24)}")
    made.names_y(rows, labels, 20)
    for place, i in enumerate(order):
        y = rows.middle(place)
        made.add("line", x1=made.x0, x2=made.x1, y1=y, y2=y, class_="grid")
        hints = [f"{labels[place]}: {number(v)}" for v in means[i]]
        for c, value in enumerate(means[i]):
            made.dots([x(value)], [y], f"c{c}", 4.2, hints[c : c + 1])
    return made
