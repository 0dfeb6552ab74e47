"""Calibration: probabilities and quantiles beside the frequencies they promise."""

from __future__ import annotations

import numpy as np
from scipy.stats import beta

from mercer.machine.words import count
from mercer.report.drawing.blocks import Figure, Figures, Prose, Section
from mercer.report.drawing.svg import Chart
from mercer.report.drawing.words import clip, number, percent
from mercer.report.machine import Machine
from mercer.report.story import LEVELS, Judged

_BINS = 10
_INTERVAL = 0.95


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
    tail = (1 - _INTERVAL) / 2
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
    hot = np.zeros_like(judged.probabilities)
    hot[np.flatnonzero(known), codes[known]] = 1.0
    brier = float(((judged.probabilities - hot) ** 2).sum(axis=1).mean()) / (2.0 if two else 1.0)
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
    groups = np.array_split(np.argsort(said, kind="stable"), min(_BINS, max(1, len(said) // 15)))
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
    return Figure(title, chart.svg())


def _said(said: np.ndarray, what: str) -> Figure:
    low = 0.0 if said.min() < 0.5 else 0.5
    heights, edges = np.histogram(said, 20, (low, 1.0))
    sure = float(((said > 0.9) | (said < 0.1)).mean())
    title = f"The model is sure (below 10% or above 90%) of {percent(sure)} of the rows"
    chart = Chart("said", title, "Histogram of the probabilities.", height=330)
    x, y = chart.across(low, 1.0), chart.up(0, float(heights.max()) * 1.06)
    chart.axis_y(y, "rows")
    chart.axis_x(x, f"said: {what}", grid=False)
    for h, a, b in zip(heights, edges[:-1], edges[1:], strict=True):
        hint = f"{percent(a)} to {percent(b)}: {count(int(h), 'row')}"
        chart.box(float(x(a)) + 0.5, float(y(h)), float(x(b) - x(a)) - 1, chart.y0 - float(y(h)), "fill c0", hint)
    return Figure(title, chart.svg())


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
    figure = Figure(title, chart.svg(), f"The grey band is what chance allows with {count(n, 'row')}.")
    return Section("calibration", "Calibration of quantiles", lead, [Figures([figure])])
