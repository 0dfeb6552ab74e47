"""The rows: how many, what their columns hold, what was done to each, and what is to be predicted."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from mercer.machine.words import count
from mercer.report.blocks import Figure, Figures, Prose, Section, Table, clip, listed, number, percent
from mercer.report.scales import Bands, Linear, bins, quantiles, span
from mercer.report.story import Story
from mercer.report.svg import Chart, tag

_ROWS_DRAWN = 20_000  # rows from which the pictures of columns are made, at most: more change nothing one sees
_BARS_PER_COLUMN = 14  # in the small picture of a column
_TARGET_BARS = 16  # classes in the picture of the target, at most
_PLURALS = {
    "number": "numbers",
    "category": "categories",
    "ordered category": "ordered categories",
    "date": "dates",
    "identifier": "identifiers",
    "text": "texts",
    "sequence": "sequences",
}


def data_section(story: Story, rng: np.random.Generator) -> Section:
    """Return the section on the data."""
    import pandas

    frame, y = story.train
    frame = pandas.DataFrame(frame)
    kinds: dict[str, int] = {}
    for column in story.treatment:
        kinds[str(column.kind)] = kinds.get(str(column.kind), 0) + 1
    lead = f"{count(len(frame), 'row')} to learn from"
    if story.test is not None:
        lead += f", {count(len(story.test[0]), 'row')} kept aside for the test"
    lead += f"; {count(frame.shape[1], 'column')}"
    if kinds:
        lead += " (" + listed([count(n, kind, _PLURALS.get(kind, kind)) for kind, n in kinds.items()], 6) + ")"
    blocks: list[Any] = []
    if story.notes:
        blocks.append(Prose(story.notes))
    blocks.append(Figures([_target(np.asarray(y), story.model)]))
    sample = frame
    if len(frame) > _ROWS_DRAWN:
        sample = frame.iloc[np.sort(rng.choice(len(frame), _ROWS_DRAWN, replace=False))]
    if story.treatment:
        blocks.append(_treatment(story.treatment, sample))
    return Section("data", "Data", lead + ".", blocks)


def _treatment(treatment: list[Any], frame: Any) -> Table:
    """Return the table of columns: what each holds, and what became of it."""
    rows = []
    known = {str(label): frame[label] for label in frame.columns}
    for column in treatment:
        name = str(column.name)
        series = known.get(name)
        said = str(column.said).removeprefix(f"{name}: ")
        missing = "" if series is None else percent(float(series.isna().mean())) if series.isna().any() else "0"
        # The markup is made here, of numbers only.
        picture = Markup("" if series is None else sketch(series, str(column.kind)))
        rows.append((clip(name, 60), str(column.kind), picture, missing, f"{len(column.made):,}", said))
    return Table(
        "What each column holds and what was done to it",
        ("column", "kind", "values", "missing", "made", "treatment"),
        rows,
        right=(3, 4),
        long=(5,),
    )


def sketch(series: Any, kind: str) -> str:
    """Return a small picture of a column: a histogram of numbers and dates, or the commonest values."""
    values = series.dropna()
    numbers = as_numbers(values) if kind in ("number", "date") else np.empty(0)
    if numbers.size:
        look = "c0"
        heights = bins(np.clip(numbers, *quantiles(numbers, [0.005, 0.995])), _BARS_PER_COLUMN)[0]
    else:
        look = "c1"
        counts = values.value_counts(sort=False) if in_order(values) else values.astype(str).value_counts()
        heights = counts.to_numpy()[:_BARS_PER_COLUMN]
    if not len(heights) or not heights.max():
        return ""
    bands, up = Bands(_BARS_PER_COLUMN, 0, 84), Linear(0, float(heights.max()), 20, 1)
    bars = "".join(
        tag(
            "rect",
            x=bands.edge(i) + 0.5,
            y=float(up(h)),
            width=bands.size - 1,
            height=max(0.6, 20 - float(up(h))),
            class_=f"fill {look}",
        )
        for i, h in enumerate(heights)
    )
    return tag("svg", bars, viewBox="0 0 84 20", width=84, height=20, class_="sketch", aria_hidden="true")


def in_order(values: Any) -> bool:
    """Return whether a column is an ordered category, whose values are drawn in their order."""
    return bool(getattr(values.dtype, "ordered", False))


def as_numbers(values: Any) -> np.ndarray:
    """Return the finite numbers of a column, dates as days; empty if it holds neither."""
    import pandas

    types, values = pandas.api.types, values.dropna()
    if types.is_datetime64_any_dtype(values):
        values = (values - values.min()) / pandas.Timedelta(days=1)
    elif types.is_bool_dtype(values) or not types.is_numeric_dtype(values):
        return np.empty(0)
    numbers = np.asarray(values, dtype=float)
    return numbers[np.isfinite(numbers)]


# -- the target -------------------------------------------------------------------------------------------


def _target(y: np.ndarray, model: Any) -> Figure:
    if hasattr(model, "classes_"):
        return _classes(y)
    return _histogram(y.astype(float))


def _classes(y: np.ndarray) -> Figure:
    names, counts = np.unique(y.astype(str), return_counts=True)
    order = np.argsort(-counts, kind="stable")
    names, counts = names[order], counts[order]
    share = counts[0] / counts.sum()
    title = (
        f"{count(len(names), 'class', 'classes')}; the commonest, {clip(names[0], 20)}, is {percent(share)} of the rows"
    )
    shown = min(len(names), _TARGET_BARS)
    said = "; ".join(f"{n}: {c:,}" for n, c in zip(names, counts, strict=True))
    drawn = names[:shown].tolist()
    chart = Chart.of_rows("target", title, said, drawn, 60, 24, 20, right=58)
    x = chart.across(0, float(counts.max()))
    rows = chart.axis_rows(x, "rows", drawn, 20)
    for i in range(shown):
        end = float(x(counts[i]))
        chart.box(
            chart.x0, rows.edge(i) + 4, end - chart.x0, rows.size - 8, "fill c0", f"{names[i]}: {counts[i]:,} rows"
        )
        chart.text(end + 5, rows.middle(i) + 4, percent(counts[i] / counts.sum()), "tick")
    note = f"{count(len(names) - shown, 'rarer class', 'rarer classes')} not shown." if shown < len(names) else ""
    return chart.figure(note)


def _histogram(y: np.ndarray) -> Figure:
    y = y[np.isfinite(y)]
    low, middle, high = quantiles(y, [0.002, 0.5, 0.998])
    title = f"The target lies between {number(y.min())} and {number(y.max())}, half of it below {number(middle)}"
    chart = Chart("target", title, f"Histogram of {len(y):,} values.", height=220)
    heights, edges = bins(np.clip(y, low, high), min(32, max(8, int(np.sqrt(len(y))))))
    x, up = chart.across(*span(edges, 0.0)), chart.up(0, float(heights.max()) * 1.05)
    chart.axis_y(up, "rows", up.ticks(4))
    chart.axis_x(x, "target", grid=False)
    chart.histogram(x, up, heights, edges)
    clipped = int(((y < low) | (y > high)).sum())
    return chart.figure(f"{count(clipped, 'value')} beyond the ends are in the last bars." if clipped else "")
