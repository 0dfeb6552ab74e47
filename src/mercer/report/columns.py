"""Columns: how much worse the model is when the values of one are dealt out anew, and the prediction as a function of
one, on average over the others (Friedman, 2001).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.machine.clock import Clock, pace
from mercer.machine.words import count
from mercer.report.blocks import Figure, Figures, Prose, Section, clip, listed, number, percent
from mercer.report.data import as_numbers, in_order
from mercer.report.scales import quantiles, spaced, span
from mercer.report.story import Machine, Story
from mercer.report.svg import LETTER, Chart

_PERMUTATIONS = 5  # of each column, at most: their spread gives the error of its importance
_FEWEST_ROWS, _MOST_ROWS = 60, 2000  # rows whose values are permuted, as time allows
_COLUMNS_DRAWN = 16  # columns in a picture of the importance, at most


@dataclass
class Importance:
    """What the score loses without each column, mean and spread over the turns, and how far predictions move."""

    names: list[str]
    loss: np.ndarray
    spread: np.ndarray
    shift: np.ndarray
    rows: int
    turns: int
    full: float
    tested: bool

    @property
    def clear(self) -> np.ndarray:
        """Which columns cost the score more than its noise: two standard errors of the mean over the turns."""
        noise = 2 * self.spread / np.sqrt(self.turns)
        return np.asarray((self.loss > noise) & (self.loss > 1e-3 * max(abs(self.full), 1e-3)))

    @property
    def order(self) -> np.ndarray:
        """The columns from the one that matters most: by the score where that is clear, then by the predictions."""
        return np.lexsort((-self.shift, -np.where(self.clear, self.loss, 0.0)))


def measure(story: Story, machine: Machine, clock: Clock, rng: np.random.Generator) -> Importance:
    """Deal out the values of each column of the table anew, and look at the score.

    An encoder treats rows one by one, so that dealing out a column and dealing out all that was made of it is the same;
    the latter needs no encoding. The rows are as many as the time allows.
    """
    tested = story.test is not None and len(story.test[0]) > 1
    frame, y = story.test if tested and story.test is not None else story.train
    groups = machine.model.encoder_.groups()
    first = rng.permutation(len(y))[:_MOST_ROWS]
    Z, y = machine.encode(frame.iloc[first]), np.asarray(y)[first]
    each = max(1e-9, pace(machine.values, Z))
    afford = clock.left / (each * (len(groups) + 1))  # rows that may be predicted for each column
    turns = int(np.clip(afford / min(len(y), 300), 1, _PERMUTATIONS))
    rows = int(np.clip(afford / turns, min(_FEWEST_ROWS, len(y)), len(y)))
    Z, y = Z[:rows], y[:rows]
    before = machine.values(Z)
    intact = machine.score_of(before, Z, y)
    losses, shifts = np.full((2, len(groups), turns), np.nan)
    for turn in range(turns):
        for i, columns in enumerate(groups.values()):
            if clock.out and turn:
                break
            dealt = Z.copy()
            dealt[:, columns] = Z[rng.permutation(rows)][:, columns]
            after = machine.values(dealt)
            losses[i, turn] = intact - machine.score_of(after, dealt, y)
            shifts[i, turn] = np.abs(after - before).sum(axis=1).mean() / (2.0 if machine.classifies else 1.0)
    done = np.isfinite(losses).sum(axis=1)
    return Importance(
        list(groups),
        np.nanmean(losses, axis=1),
        np.nanstd(losses, axis=1),
        np.nanmean(shifts, axis=1),
        rows,
        int(done.min()),
        intact,
        tested,
    )


def importance_section(importance: Importance, machine: Machine) -> Section:
    """Return the section on the columns' importance."""
    clear = [clip(importance.names[i], 30) for i in importance.order if importance.clear[i]]
    if clear:
        lead = f"The score rests on {listed(clear, 3)}."
    else:
        lead = "No single column is indispensable: without any one of them the score stays within its noise."
    where = "test rows" if importance.tested else "training rows, since no others were kept aside"
    note = (
        f"Each column's values were dealt out anew among {importance.rows:,} {where}, {count(importance.turns, 'time')}"
        ". Columns that tell the same stand in for each other: both then seem to matter little."
    )
    figures = [_losses(importance, machine.measure)] if clear else []
    figures.append(_shifts(importance, machine))
    return Section("importance", "Columns that matter", lead, [Figures(figures), Prose([note], quiet=True)])


def _losses(importance: Importance, measure: str) -> Figure:
    shown = importance.order[:_COLUMNS_DRAWN]
    title = f"Without {clip(importance.names[shown[0]], 24)} the score falls by {number(importance.loss[shown[0]], 2)}"
    names = [importance.names[i] for i in shown]
    chart = _chart("importance", title, names, importance.loss[shown])
    low, high = importance.loss[shown] - importance.spread[shown], importance.loss[shown] + importance.spread[shown]
    x = chart.across(*span([0.0, min(0.0, float(low.min())), float(high.max())], 0.03))
    rows = chart.axis_rows(x, f"loss of {measure}", names)
    zero = float(x(0.0))
    for place, i in enumerate(shown):
        y = rows.middle(place)
        hint = f"{names[place]}: {number(importance.loss[i], 3)} ± {number(importance.spread[i], 2)}"
        chart.box(zero, rows.edge(place) + 4, float(x(importance.loss[i])) - zero, rows.size - 8, "fill c0", hint)
        if importance.turns > 1:
            ends = x(importance.loss[i] + importance.spread[i] * np.array([-1, 1]))
            chart.whisker(float(ends[0]), y, float(ends[1]), y, "ink")
    chart.whisker(zero, chart.y0, zero, chart.y1, "zero")
    return chart.figure(_rest(importance, shown))


def _shifts(importance: Importance, machine: Machine) -> Figure:
    shown = np.argsort(-importance.shift, kind="stable")[:_COLUMNS_DRAWN]
    size, what = importance.shift[shown[0]], "the probabilities" if machine.classifies else "the prediction"
    first = clip(importance.names[shown[0]], 24)
    title = f"{first} moves {what} most: by {percent(size) if machine.classifies else number(size, 2)} on average"
    names = [importance.names[i] for i in shown]
    chart = _chart("shift", title, names, importance.shift[shown])
    x = chart.across(0.0, float(size) * 1.03 or 1.0)
    rows = chart.axis_rows(x, f"mean change of {what}", names)
    for place, i in enumerate(shown):
        hint, end = f"{names[place]}: {number(importance.shift[i], 3)}", float(x(importance.shift[i]))
        chart.box(chart.x0, rows.edge(place) + 4, end - chart.x0, rows.size - 8, "fill c0", hint)
    return chart.figure(_rest(importance, shown))


def _chart(name: str, title: str, names: list[str], values: np.ndarray) -> Chart:
    said = "; ".join(f"{of}: {number(value, 2)}" for of, value in zip(names, values, strict=True))
    return Chart.of_rows(name, title, said, names, 62, 22)


def _rest(importance: Importance, shown: np.ndarray) -> str:
    more = len(importance.names) - len(shown)
    if not more:
        return ""
    return f"{count(more, 'column that matters', 'columns that matter')} less {'is' if more == 1 else 'are'} not shown."


_VALUES_DRAWN = 24  # values of a number at which the mean prediction is computed
_CLASSES_DRAWN = 5  # classes with a line of their own, at most
_CATEGORIES_DRAWN = 12  # categories on the axis, at most


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
    made = machine.model.encoder_.groups()
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
        values = distinct if len(distinct) <= 12 else spaced(low, high, _VALUES_DRAWN)
        if pandas.api.types.is_integer_dtype(series):
            values = np.unique(np.round(values).astype(int))
        settings: list[Any] = values.tolist()
    elif column.kind in ("category", "ordered category", "yes/no"):
        counts = series.dropna().value_counts()
        counts = counts[counts > 0][:_CATEGORIES_DRAWN]  # pandas counts levels that do not occur, too
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
        background = int(np.clip(share / (each * _VALUES_DRAWN), 20, 200))
        dependence = depend(machine, frame, column, background, rng)
        if dependence is not None:
            figures.append(_draw(dependence, machine, len(figures), min(background, len(frame))))
    return figures


def _draw(dependence: Dependence, machine: Machine, place: int, rows: int) -> Figure:
    means, names = _outputs(dependence, machine)
    what = (
        "probability" + (f" of {clip(names[0], 18)}" if len(names) == 1 else "") if machine.classifies else "prediction"
    )
    low, high = float(means[:, 0].min()), float(means[:, 0].max())
    title = f"{clip(dependence.name, 26)}: the {what} lies between {number(low, 2)} and {number(high, 2)}"
    if len(names) > 1:
        title = f"{clip(dependence.name, 26)}: the probability of each class"
    note = f"Average over {count(rows, 'row')} in which this column is set to each value."
    chart = Chart(f"depend{place}", title, note, height=320, top=34 if len(names) > 1 else 14)
    if dependence.kind == "number":
        _lines(chart, dependence, means, names, what)
    else:
        chart = _strokes(chart, dependence, means, names, what)
    for i, name in enumerate(names if len(names) > 1 else []):
        at = chart.x0 + i * (chart.x1 - chart.x0) / len(names)
        chart.whisker(at, 16, at + 14, 16, f"key c{i}")
        chart.text(at + 18, 20, clip(name, int((chart.x1 - chart.x0) / len(names) / LETTER) - 4), "tick", hint=name)
    return chart.figure(note)


def _outputs(dependence: Dependence, machine: Machine) -> tuple[np.ndarray, list[str]]:
    """Return what is drawn: the prediction, the second of two classes, or those of many that move most."""
    if not machine.classifies:
        return dependence.means, ["prediction"]
    names = [str(c) for c in machine.classes]
    if len(names) == 2:
        return dependence.means[:, 1:], names[1:]
    moving = np.sort(np.argsort(-np.ptp(dependence.means, axis=0), kind="stable")[:_CLASSES_DRAWN])
    return dependence.means[:, moving], [names[i] for i in moving]


def _lines(chart: Chart, dependence: Dependence, means: np.ndarray, names: list[str], what: str) -> None:
    at = np.array(dependence.values, float)
    x, y = chart.across(*span(at, 0.02)), chart.up(*span(means, 0.08))
    chart.axis_y(y, what)
    chart.axis_x(x, dependence.name)
    for i in range(means.shape[1]):
        chart.line(x(at), y(means[:, i]), f"c{i}")
        if len(at) <= 12:
            chart.dots(x(at), y(means[:, i]), f"c{i}", 3)


def _strokes(chart: Chart, dependence: Dependence, means: np.ndarray, names: list[str], what: str) -> Chart:
    order = np.argsort(-means[:, 0], kind="stable")
    if dependence.kind == "ordered category":
        order = np.arange(len(means))
    labels = [str(dependence.values[i]) for i in order]
    top = chart.y1 + (14 if len(names) > 1 else 0)
    made = Chart.of_rows(chart.name, chart.title, chart.description, labels, top + 50, 21, 20, top=top)
    x = made.across(*span(means, 0.06))
    rows = made.axis_rows(x, f"{what}, by {clip(dependence.name, 24)}", labels, 20, 5)
    for place, i in enumerate(order):
        y = rows.middle(place)
        made.add("line", x1=made.x0, x2=made.x1, y1=y, y2=y, class_="grid")
        hints = [f"{labels[place]}: {number(v)}" for v in means[i]]
        for c, value in enumerate(means[i]):
            made.dots([x(value)], [y], f"c{c}", 4.2, hints[c : c + 1])
    return made
