"""Judged rows: errors (the confusion matrix, or the residuals), and calibration (probabilities and quantiles beside the
frequencies they promise).
"""

from __future__ import annotations

import numpy as np
from scipy.stats import beta

from mercer.machine.words import count
from mercer.report.blocks import Figure, Figures, Prose, Section, Table, clip, number, percent
from mercer.report.scales import LARGEST, Bands, bins, exponent, quantiles, span
from mercer.report.story import LEVELS, Judged, Machine
from mercer.report.svg import LETTER, Chart, shade

_CLASSES_WITH_COUNTS = 9  # classes up to which the cells have room for their counts
_CLASSES_DRAWN = 30  # classes in the picture, at most
_PREDICTIONS_DRAWN = 900  # points in the picture, at most


def errors_section(judged: Judged, machine: Machine, rng: np.random.Generator) -> Section:
    """Return the section on the errors."""
    return _classified(judged, machine) if machine.classifies else _regressed(judged, rng)


# -- classes ----------------------------------------------------------------------------------------------


def _classified(judged: Judged, machine: Machine) -> Section:
    names = [str(c) for c in machine.classes]
    place = {c: i for i, c in enumerate(machine.classes.tolist())}
    k = len(names)
    table = np.zeros((k, k), int)
    known = [(place[t], place[p]) for t, p in zip(judged.truth.tolist(), judged.predicted.tolist()) if t in place]
    np.add.at(table, tuple(np.array(known, int).reshape(-1, 2).T), 1)
    total, right = len(judged.truth), int(np.trace(table))
    lead = f"{percent(right / total)} right on {judged.where}: {count(total - right, 'error')}."
    off = table - np.diag(np.diag(table))
    if off.max(initial=0):
        t, p = np.unravel_index(int(off.argmax()), off.shape)
        lead += f" The commonest takes {clip(names[t], 24)} for {clip(names[p], 24)}, {count(int(off[t, p]), 'time')}."
    strange = total - len(known)
    if strange:
        lead += f" {count(strange, 'row has', 'rows have')} a class that the model has never seen."
    return Section("errors", "Confusion", lead, [Figures([_matrix(table, names), _by_class(table, names)])])


def _matrix(table: np.ndarray, names: list[str]) -> Figure:
    k = min(len(names), _CLASSES_DRAWN)
    order = np.sort(np.argsort(-table.sum(axis=1), kind="stable")[:k])
    table, names = table[np.ix_(order, order)], [names[i] for i in order]
    recall = np.divide(np.diag(table), table.sum(axis=1), out=np.ones(k), where=table.sum(axis=1) > 0)
    weakest = int(recall.argmin())
    title = f"The class found least often is {clip(names[weakest], 20)}: {percent(recall[weakest])} of its rows"
    if recall.min() == 1:
        title = "Every row of every class is found"
    longest = max(len(clip(n, 12)) for n in names)
    left, size = 36 + LETTER * longest, min(74.0, max(11.0, 330 / k))
    turned = longest * LETTER > size
    bottom = 30 + (LETTER * longest * 0.75 + 8 if turned else 18)
    chart = Chart(
        "confusion",
        title,
        "; ".join(f"true {n}: {percent(r)} found" for n, r in zip(names, recall, strict=True)),
        width=left + k * size + 12,
        height=10 + k * size + bottom,
        left=left,
        right=12,
        top=10,
        bottom=bottom,
    )
    rows, columns = Bands(k, chart.y1, chart.y0), Bands(k, chart.x0, chart.x1)
    sums = np.maximum(1, table.sum(axis=1))
    for i in range(k):
        for j in range(k):
            part = table[i, j] / sums[i]
            step = 0 if not table[i, j] else max(1, shade(part, 0.0, 1.0))
            hint = f"true {names[i]}, predicted {names[j]}: {table[i, j]:,} rows, {percent(part)} of the class"
            chart.box(columns.edge(j) + 0.5, rows.edge(i) + 0.5, columns.size - 1, rows.size - 1, f"h{step}", hint)
            if k <= _CLASSES_WITH_COUNTS:
                look = "cell on-high" if step > 5 else "cell on-low"
                chart.text(
                    columns.middle(j), rows.middle(i) + (0 if size > 34 else 4), f"{table[i, j]:,}", look, "middle"
                )
                if size > 34:
                    chart.text(columns.middle(j), rows.middle(i) + 15, percent(part), f"{look} small", "middle")
    chart.names_y(rows, names, 12)
    for j, name in enumerate(names):
        x, y = columns.middle(j), chart.y0 + 15
        if turned:
            chart.turned(x + 3, y - 4, clip(name, 12))
        else:
            chart.text(x, y, clip(name, 12), "tick", "middle", name)
    chart.label_x("predicted")
    chart.label_y("true")
    note = (
        "Shades are shares of each true class"
        + ("" if k <= _CLASSES_WITH_COUNTS else "; rest on a cell for its numbers")
        + "."
    )
    return chart.figure(note)


def _by_class(table: np.ndarray, names: list[str]) -> Table:
    actual, said, right = table.sum(axis=1), table.sum(axis=0), np.diag(table)
    rows = []
    for i, name in enumerate(names):
        recall = right[i] / actual[i] if actual[i] else float("nan")
        precision = right[i] / said[i] if said[i] else float("nan")
        both = 2 * right[i] / (actual[i] + said[i]) if actual[i] + said[i] else float("nan")
        rows.append((clip(name, 40), f"{actual[i]:,}", percent(recall), percent(precision), percent(both)))
    return Table(
        "By class: recall is the share of its rows that are found, precision how often that name is right",
        ("class", "rows", "recall", "precision", "F1"),
        rows,
        right=(1, 2, 3, 4),
    )


# -- numbers ----------------------------------------------------------------------------------------------


def _regressed(judged: Judged, rng: np.random.Generator) -> Section:
    truth, predicted = judged.truth.astype(float), judged.predicted.astype(float)
    with np.errstate(over="ignore"):
        residual = np.clip(truth - predicted, -LARGEST, LARGEST)
    mean = float((residual / len(residual)).sum())
    half, most = quantiles(np.abs(residual), [0.5, 0.95])
    lead = (
        f"On {judged.where} half of the predictions are within {number(half)} of the truth, and 95% within "
        f"{number(most)}; on average they are {number(abs(mean), 2)} too {'low' if mean > 0 else 'high'}."
    )
    return Section("errors", "Residuals", lead, [Figures([_scatter(truth, predicted, rng), _spread(residual)])])


def _scatter(truth: np.ndarray, predicted: np.ndarray, rng: np.random.Generator) -> Figure:
    size = max(exponent(truth), exponent(predicted))  # squares are numbers in units of it
    true, said = np.ldexp(truth, -size), np.ldexp(predicted, -size)
    spread = float(((true - true.mean()) ** 2).sum())
    explained = 1 - float(((true - said) ** 2).sum()) / spread if spread else float("nan")
    title = f"Predictions follow the truth: R² = {number(explained)}"
    some = rng.permutation(len(truth))[:_PREDICTIONS_DRAWN]
    chart = Chart("scatter", title, f"{count(len(truth), 'point')}; the diagonal is a perfect prediction.", height=330)
    # A few extremes must not press all the others into a corner.
    low, high = quantiles(np.concatenate([truth, predicted]), [0.001, 0.999])
    ends = span([low, high], 0.04)
    x, y = chart.across(*ends), chart.up(*ends)
    chart.axis_x(x, "predicted")
    chart.axis_y(y, "true")
    chart.line(x(ends), y(ends), "c-muted dashed")
    look = "c0 faint" if len(some) > 150 else "c0 half"
    chart.dots(x(np.clip(predicted[some], *ends)), y(np.clip(truth[some], *ends)), look, 2.4)
    note = f"{_PREDICTIONS_DRAWN} of {len(truth):,} rows, drawn at random." if len(truth) > _PREDICTIONS_DRAWN else ""
    return chart.figure(note)


def _spread(residual: np.ndarray) -> Figure:
    low, middle, high = quantiles(residual, [0.05, 0.5, 0.95])
    title = f"Nine in ten residuals lie between {number(low)} and {number(high)}"
    chart = Chart("residuals", title, f"Histogram; the median is {number(middle)}.", height=330)
    ends = quantiles(residual, [0.005, 0.995])
    heights, edges = bins(np.clip(residual, *ends), min(40, max(8, int(np.sqrt(len(residual))))))
    x, y = chart.across(*span(edges, 0.02)), chart.up(0, float(heights.max()) * 1.06)
    chart.box(float(x(low)), chart.y1, float(x(high) - x(low)), chart.y0 - chart.y1, "noise")
    chart.axis_y(y, "rows")
    chart.axis_x(x, "true − predicted", grid=False)
    chart.histogram(x, y, heights, edges)
    if edges[0] < 0 < edges[-1]:
        chart.whisker(float(x(0)), chart.y0, float(x(0)), chart.y1, "zero")
    return chart.figure("The pale strip holds nine in ten; the last bars hold all beyond.")


_CALIBRATION_BINS = 10  # groups of predictions of about the same probability, at most
_COVERAGE = 0.95  # of the interval about the share of each group


def calibration_section(judged: Judged, machine: Machine) -> Section | None:
    """Return the section on calibration; None where the judged rows have neither probabilities nor quantiles."""
    if machine.classifies and judged.probabilities is not None:
        return _probabilities(judged, machine)
    if judged.quantiles is not None:
        return _quantiles(judged)
    return None


def interval(hits: int, of: int) -> tuple[float, float]:
    """Return the interval (Clopper and Pearson, 1934) of shares that a count of hits does not contradict.

    Examples
    --------
    >>> low, high = interval(5, 10)
    >>> f"{low:.2f} {high:.2f}"
    '0.19 0.81'
    """
    tail = (1 - _COVERAGE) / 2
    low = float(beta.ppf(tail, hits, of - hits + 1)) if hits else 0.0
    high = float(beta.ppf(1 - tail, hits + 1, of - hits)) if hits < of else 1.0
    return low, high


# -- probabilities ----------------------------------------------------------------------------------------


def _probabilities(judged: Judged, machine: Machine) -> Section:
    assert judged.probabilities is not None
    two = len(machine.classes) == 2
    place = {c: i for i, c in enumerate(machine.classes.tolist())}
    codes = np.array([place.get(t, -1) for t in judged.truth.tolist()])
    if two:
        said, came = judged.probabilities[:, 1], codes == 1
        what = f"the probability of {clip(machine.classes[1], 20)}"
    else:
        said, came = judged.probabilities.max(axis=1), codes == judged.probabilities.argmax(axis=1)
        what = "the probability of the likeliest class"
    known = codes >= 0
    indicator = np.zeros_like(judged.probabilities)
    indicator[np.flatnonzero(known), codes[known]] = 1.0
    brier = float(((judged.probabilities - indicator) ** 2).sum(axis=1).mean()) / (2.0 if two else 1.0)
    bins = _bins(said)
    off = sum(abs(float(came[b].mean()) - float(said[b].mean())) * len(b) for b in bins) / len(said)
    lead = f"On {judged.where}, {what} is off by {percent(off)} on average; the Brier score is {number(brier)}."
    note = Prose(
        [
            "Each point holds about as many rows as the others: how often the event came against how probable it was "
            "said to be. Points on the diagonal are right; strokes are 95% intervals of what the count allows."
        ],
        quiet=True,
    )
    return Section(
        "calibration", "Calibration", lead, [Figures([_reliability(said, came, bins, what), _said(said, what)]), note]
    )


def _bins(said: np.ndarray) -> list[np.ndarray]:
    """Return rows with about the same probability, in groups of about the same size."""
    groups = np.array_split(np.argsort(said, kind="stable"), min(_CALIBRATION_BINS, max(1, len(said) // 15)))
    return [g for g in groups if len(g)]


def _reliability(said: np.ndarray, came: np.ndarray, bins: list[np.ndarray], what: str) -> Figure:
    means = np.array([float(said[b].mean()) for b in bins])
    shares = np.array([float(came[b].mean()) for b in bins])
    ends = np.array([interval(int(came[b].sum()), len(b)) for b in bins])
    inside = int(((ends[:, 0] <= means) & (means <= ends[:, 1])).sum())
    title = f"Said and seen agree within chance in {inside} of {count(len(bins), 'group')}"
    described = "; ".join(f"said {percent(m)}, came {percent(s)}" for m, s in zip(means, shares, strict=True))
    chart = Chart("reliability", title, described, height=330)
    low = 0.0 if means.min() < 0.45 else max(0.0, float(np.floor(10 * min(means.min(), ends[:, 0].min())) / 10))
    x, y = chart.across(low, 1.0), chart.up(low, 1.0)
    chart.axis_x(x, f"said: {what}")
    chart.axis_y(y, "seen: how often it came")
    chart.line(x([low, 1]), y([low, 1]), "c-muted dashed")
    for m, (a, b) in zip(means, ends, strict=True):
        chart.whisker(float(x(m)), float(y(max(a, low))), float(x(m)), float(y(b)), "c0")
    chart.line(x(means), y(shares), "c0 thin")
    hints = [
        f"{len(b):,} rows: said {percent(m)}, came {percent(s)}" for b, m, s in zip(bins, means, shares, strict=True)
    ]
    chart.dots(x(means), y(shares), "c0", 4, hints)
    return chart.figure()


def _said(said: np.ndarray, what: str) -> Figure:
    low = 0.0 if said.min() < 0.5 else 0.5
    heights, edges = np.histogram(said, 20, (low, 1.0))
    sure = float(((said > 0.9) | (said < 0.1)).mean())
    title = f"The model is sure (below 10% or above 90%) of {percent(sure)} of the rows"
    chart = Chart("said", title, "Histogram of the probabilities.", height=330)
    x, y = chart.across(low, 1.0), chart.up(0, float(heights.max()) * 1.06)
    chart.axis_y(y, "rows")
    chart.axis_x(x, f"said: {what}", grid=False)
    chart.histogram(x, y, heights, edges, percent)
    return chart.figure()


# -- quantiles --------------------------------------------------------------------------------------------


def _quantiles(judged: Judged) -> Section:
    assert judged.quantiles is not None
    below = (judged.truth[:, None].astype(float) <= judged.quantiles).mean(axis=0)
    widest = int(np.argmax(np.abs(below - LEVELS)))
    inner = below[LEVELS == 0.95][0] - below[LEVELS == 0.05][0]
    lead = f"The interval from the 5% to the 95% quantile holds {percent(inner)} of {judged.where}; 90% was promised."
    title = f"No quantile is off by more than {percent(abs(below[widest] - LEVELS[widest]))}"
    said = "; ".join(f"{percent(q)}: {percent(b)}" for q, b in zip(LEVELS, below, strict=True))
    chart = Chart("coverage", title, said, height=330)
    x, y = chart.across(0, 1), chart.up(0, 1)
    chart.axis_x(x, "promised: share of truths below the quantile")
    chart.axis_y(y, "seen: share below")
    n = len(judged.truth)
    noise = 1.96 * np.sqrt(LEVELS * (1 - LEVELS) / n)
    chart.band(x(LEVELS), y(np.clip(LEVELS - noise, 0, 1)), y(np.clip(LEVELS + noise, 0, 1)), "c-muted")
    chart.line(x([0, 1]), y([0, 1]), "c-muted dashed")
    chart.line(x(LEVELS), y(below), "c0 thin")
    hints = [f"{percent(q)} quantile: {percent(b)} below" for q, b in zip(LEVELS, below, strict=True)]
    chart.dots(x(LEVELS), y(below), "c0", 3.6, hints)
    figure = chart.figure(f"The grey band is what chance allows with {count(n, 'row')}.")
    return Section("calibration", "Calibration of quantiles", lead, [Figures([figure])])
