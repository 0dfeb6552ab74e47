"""The metric that was learned: by which columns two rows are compared, and along which directions."""

from __future__ import annotations

import numpy as np

from mercer.estimators.features.learned import learned_metric
from mercer.kernels import Metric
from mercer.report.blocks import Figure, Figures, Prose, Section, clip, listed, number, percent
from mercer.report.scales import Bands
from mercer.report.story import Machine
from mercer.report.svg import LETTER, Chart

_COLUMNS_DRAWN = 15  # columns with a bar of their own, at most
_DIRECTIONS_DRAWN = 2  # directions, at most: bars of more would be too short for a page
_MOST, _MOST_NAMED = 0.6, 4  # of the metric that the columns named in the lead have together, and how many these may be
_PARTS_NAMED = 4  # columns of a direction that are named
_SAID = 0.1  # from which size on an entry is written beside its bar
_LENGTH, _WIDTH = 26, (440.0, 500.0)  # of names, in letters; of the picture of one direction, or of several


def metric_section(machine: Machine) -> Section | None:
    """Return the section on the metric; None where the kernel treats all columns alike."""
    metric = learned_metric(machine.model)
    if metric is None:
        return None
    what = "probabilities" if machine.classifies else "predictions"
    lead = f"{_compared(metric)} {_direction(metric)}"
    notes = [
        f"A column's share is the mean square of the slope of {what} along it, in units of its deviation, as a fit "
        "before the last has seen it; of a column of categories the shares of all are summed. Columns that tell the "
        "same stand in for each other."
    ]
    figures = [_shares(metric)]
    if metric.mixes:
        figures.append(_directions(metric))
        notes.append(
            "Along a direction all columns move at once, each by so many of its deviations as its number says; those "
            "with opposite signs in opposite ways."
        )
    return Section("metric", "What the metric has learned", lead, [Figures(figures), Prose(notes, quiet=True)])


def _compared(metric: Metric) -> str:
    """Say which columns have most of the metric."""
    shares = metric.by_column()
    sums = np.cumsum(list(shares.values()))
    needed = int(np.searchsorted(sums, _MOST)) + 1
    names = [clip(name, 30) for name in shares]
    if needed > _MOST_NAMED:
        return f"No few columns decide how two rows are compared: {names[0]}, the largest, has {percent(sums[0])}."
    return f"Two rows are compared mostly by {listed(names[:needed])} ({percent(sums[needed - 1])} of the metric)."


def _direction(metric: Metric) -> str:
    if not metric.mixes:
        return "Each column has a weight of its own."
    share, parts = metric.directions(1)[0]
    return f"The direction along which predictions change most ({percent(share)}) is {written(parts)}."


def written(parts: dict[str, float]) -> str:
    """Return a direction as a sum.

    Examples
    --------
    >>> written({"age": 0.8, "income": -0.6})
    '0.8 age − 0.6 income'
    """
    terms = [f"{'−' if entry < 0 else '+'} {number(abs(entry), 2)} {clip(name, 30)}" for name, entry in parts.items()]
    more = ", and smaller parts of others" if len(terms) > _PARTS_NAMED else ""
    return " ".join(terms[:_PARTS_NAMED]).removeprefix("+ ") + more


def _shares(metric: Metric) -> Figure:
    shares = metric.by_column(_COLUMNS_DRAWN)
    names, sizes = list(shares), np.array(list(shares.values()))
    said = "; ".join(f"{name}: {percent(size)}" for name, size in shares.items())
    chart = Chart.of_rows("metric", f"{clip(names[0], 24)} has {percent(sizes[0])} of the metric", said, names, 62, 22)
    x = chart.across(0.0, 116.0 * float(sizes.max()))  # 100 in percent, and room for the number beside the bar
    rows = chart.axis_rows(x, "share of the metric, %", names)
    for place, (name, size) in enumerate(shares.items()):
        end, look = float(x(100 * size)), "fill c-pale" if name.endswith(" others") else "fill c0"
        chart.box(chart.x0, rows.edge(place) + 4, end - chart.x0, rows.size - 8, look, f"{name}: {percent(size)}")
        chart.text(end + 5, rows.middle(place) + 4, percent(size), "tick")
    return chart.figure()


def _directions(metric: Metric) -> Figure:
    shares, names, entries = metric.loadings(_COLUMNS_DRAWN, _DIRECTIONS_DRAWN)
    count = len(shares)
    title = "The direction" if count == 1 else f"The {count} directions"
    title += f" along which predictions change most, with {percent(round(shares.sum(), 3))} of the metric"
    said = "; ".join(written(parts) for _, parts in metric.directions(count))
    chart = Chart.of_rows("directions", title, said, names, 62, 22, _LENGTH, 6.9, width=_WIDTH[count > 1])
    rows = Bands(len(names), chart.y1, chart.y0)
    chart.names_y(rows, names, _LENGTH)
    room = 6.5 * LETTER  # of a number beside a bar
    width = (chart.x1 - chart.x0) / count
    low, high = min(0.0, float(entries.min())), max(0.0, float(entries.max()))
    for j, share in enumerate(shares):
        left = room if low < 0 else LETTER
        unit = (width - room - left) / (high - low)
        zero = chart.x0 + j * width + left - low * unit
        for place, entry in enumerate(entries[:, j]):
            end, hint = zero + float(entry) * unit, f"{names[place]}: {number(entry, 2)}"
            look, at, anchor = ("c0", end + 4, "start") if entry > 0 else ("c1", end - 4, "end")
            chart.box(zero, rows.edge(place) + 4, end - zero, rows.size - 8, f"fill {look}", hint)
            if abs(entry) >= _SAID:
                chart.text(at, rows.middle(place) + 4, number(entry, 2), "tick", anchor=anchor)
        chart.whisker(zero, chart.y0, zero, chart.y1, "zero")
        chart.text(zero, chart.y0 + 16, percent(share), "tick", anchor="middle")
    chart.label_x("share of the metric")
    return chart.figure()
