"""The importance of columns: how much worse the model is when a column's values are dealt out anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.machine.clock import Clock, pace
from mercer.machine.words import count
from mercer.report.drawing.blocks import Figure, Figures, Prose, Section
from mercer.report.drawing.scales import Bands, Linear, span
from mercer.report.drawing.svg import Chart
from mercer.report.drawing.words import clip, listed, number, percent
from mercer.report.machine import Machine
from mercer.report.story import Story

_TURNS = 5
_FEWEST, _MOST = 60, 2000
_BARS = 16


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


def groups(encoder: Any) -> dict[str, np.ndarray]:
    """Return which columns of the encoded rows were made of each column of the table."""
    found: dict[str, np.ndarray] = {}
    done = 0
    for column in encoder.treatment_:
        if len(column.made):
            found[str(column.name)] = np.arange(done, done + len(column.made))
        done += len(column.made)
    return found


def measure(story: Story, machine: Machine, clock: Clock, rng: np.random.Generator) -> Importance:
    """Deal out the values of each column of the table anew, and look at the score.

    An encoder treats rows one by one, so that dealing out a column and dealing out all that was made of it is the same;
    the latter needs no encoding. The rows are as many as the time allows.
    """
    tested = story.test is not None and len(story.test[0]) > 1
    frame, y = story.test if tested and story.test is not None else story.train
    made = groups(machine.model.encoder_)
    first = rng.permutation(len(y))[:_MOST]
    Z, y = machine.encode(frame.iloc[first]), np.asarray(y)[first]
    each = max(1e-9, pace(machine.values, Z))
    afford = clock.left / (each * (len(made) + 1))  # rows that may be predicted for each column
    turns = int(np.clip(afford / min(len(y), 300), 1, _TURNS))
    rows = int(np.clip(afford / turns, min(_FEWEST, len(y)), len(y)))
    Z, y = Z[:rows], y[:rows]
    before = machine.values(Z)
    full = machine.score_of(before, Z, y)
    losses, shifts = np.full((2, len(made), turns), np.nan)
    for turn in range(turns):
        for i, columns in enumerate(made.values()):
            if clock.out and turn:
                break
            dealt = Z.copy()
            dealt[:, columns] = Z[rng.permutation(rows)][:, columns]
            after = machine.values(dealt)
            losses[i, turn] = full - machine.score_of(after, dealt, y)
            shifts[i, turn] = np.abs(after - before).sum(axis=1).mean() / (2.0 if machine.classifies else 1.0)
    done = np.isfinite(losses).sum(axis=1)
    return Importance(
        list(made),
        np.nanmean(losses, axis=1),
        np.nanstd(losses, axis=1),
        np.nanmean(shifts, axis=1),
        rows,
        int(done.min()),
        full,
        tested,
    )


def importance_section(found: Importance, machine: Machine) -> Section:
    """Return the section on the columns' importance."""
    clear = [clip(found.names[i], 30) for i in found.order if found.clear[i]]
    if clear:
        lead = f"The score rests on {listed(clear, 3)}."
    else:
        lead = "No single column is indispensable: without any one of them the score stays within its noise."
    where = "test rows" if found.tested else "training rows, since no others were kept aside"
    note = (
        f"Each column's values were dealt out anew among {found.rows:,} {where}, {count(found.turns, 'time')}. Columns "
        "that tell the same stand in for each other: both then seem to matter little."
    )
    figures = [_losses(found, machine.measure)] if clear else []
    figures.append(_shifts(found, machine))
    return Section("importance", "Columns that matter", lead, [Figures(figures), Prose([note], quiet=True)])


def _losses(found: Importance, measure: str) -> Figure:
    shown = found.order[:_BARS]
    title = f"Without {clip(found.names[shown[0]], 24)} the score falls by {number(found.loss[shown[0]], 2)}"
    chart = _chart("importance", title, found, shown, found.loss)
    low, high = found.loss[shown] - found.spread[shown], found.loss[shown] + found.spread[shown]
    x = chart.across(*span([0.0, min(0.0, float(low.min())), float(high.max())], 0.03))
    rows = _rows(chart, x, f"loss of {measure}", found, shown)
    zero = float(x(0.0))
    for place, i in enumerate(shown):
        y = rows.middle(place)
        hint = f"{found.names[i]}: {number(found.loss[i], 3)} ± {number(found.spread[i], 2)}"
        chart.box(zero, rows.edge(place) + 4, float(x(found.loss[i])) - zero, rows.size - 8, "fill c0", hint)
        if found.turns > 1:
            ends = x(found.loss[i] + found.spread[i] * np.array([-1, 1]))
            chart.whisker(float(ends[0]), y, float(ends[1]), y, "ink")
    chart.whisker(zero, chart.y0, zero, chart.y1, "zero")
    return Figure(title, chart.svg(), _rest(found, shown))


def _shifts(found: Importance, machine: Machine) -> Figure:
    shown = np.argsort(-found.shift, kind="stable")[:_BARS]
    size, what = found.shift[shown[0]], "the prediction"
    if machine.classifies:
        what = "the probabilities"
    first = clip(found.names[shown[0]], 24)
    title = f"{first} moves {what} most: by {percent(size) if machine.classifies else number(size, 2)} on average"
    chart = _chart("shift", title, found, shown, found.shift)
    x = chart.across(0.0, float(size) * 1.03 or 1.0)
    rows = _rows(chart, x, f"mean change of {what}", found, shown)
    for place, i in enumerate(shown):
        hint = f"{found.names[i]}: {number(found.shift[i], 3)}"
        chart.box(chart.x0, rows.edge(place) + 4, float(x(found.shift[i])) - chart.x0, rows.size - 8, "fill c0", hint)
    return Figure(title, chart.svg(), _rest(found, shown))


def _chart(name: str, title: str, found: Importance, shown: np.ndarray, values: np.ndarray) -> Chart:
    longest = max(len(clip(found.names[i], 22)) for i in shown)
    said = "; ".join(f"{found.names[i]}: {number(values[i], 2)}" for i in shown)
    return Chart(name, title, said, height=62 + 22 * len(shown), left=16 + 6.3 * longest)


def _rows(chart: Chart, x: Linear, label: str, found: Importance, shown: np.ndarray) -> Bands:
    rows = Bands(len(shown), chart.y1, chart.y0)
    chart.axis_x(x, label, x.ticks(4))
    chart.names_y(rows, [found.names[i] for i in shown], 22)
    return rows


def _rest(found: Importance, shown: np.ndarray) -> str:
    more = len(found.names) - len(shown)
    if not more:
        return ""
    return f"{count(more, 'column that matters', 'columns that matter')} less {'is' if more == 1 else 'are'} not shown."
