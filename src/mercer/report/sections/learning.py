"""The learning curve: the chosen kernel and price, fitted to growing parts of the rows."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from mercer.machine.clock import Clock
from mercer.report.drawing.blocks import Figure, Figures, Section
from mercer.report.drawing.scales import span
from mercer.report.drawing.svg import Chart
from mercer.report.drawing.words import number
from mercer.report.machine import Machine, draw
from mercer.report.story import Story

_SIZES = 7  # sizes of a part, at most, each half of the next: down to 1/64 of the rows
_FEWEST_ROWS = 16  # rows of the smallest part
_PARTS_PER_SIZE = 3  # parts drawn of each size, whose mean is shown
_ROWS_SCORED = 2000  # rows on which a fit is scored, at most
_TIME_OF_TWICE_THE_ROWS = (
    5.0  # in units of the time of half of them, where it is not known yet: between a square and a cube
)


@dataclass
class Curve:
    """Scores on rows not seen and on rows learnt, for each size: a list of draws."""

    sizes: list[int] = field(default_factory=list)
    unseen: list[list[float]] = field(default_factory=list)
    seen: list[list[float]] = field(default_factory=list)
    stopped: bool = False


def learning_section(story: Story, machine: Machine, clock: Clock, rng: np.random.Generator) -> Section | None:
    """Return the section on the learning curve; None where there are too few rows for one."""
    y = np.asarray(story.train[1])
    train = machine.encode(story.train[0])
    tested = story.test is not None and len(story.test[0]) > 1
    if tested:
        assert story.test is not None
        chosen = draw(rng, len(story.test[0]), _ROWS_SCORED)
        judges = (machine.encode(story.test[0])[chosen], np.asarray(story.test[1])[chosen])
        pool = np.arange(len(y))
    else:
        apart = rng.permutation(len(y))
        cut = min(_ROWS_SCORED, max(2, len(y) // 5))
        judges, pool = (train[apart[:cut]], y[apart[:cut]]), apart[cut:]
    curve = grow(machine, train[pool], y[pool], judges, clock, rng, whole=machine if tested else None)
    if len(curve.sizes) < 2:
        return None
    where = "test rows" if tested else "a fifth of the rows, kept aside for this"
    return Section("learning", "Learning curve", _lead(curve), [Figures([_draw(curve, machine, where)])])


def grow(
    machine: Machine,
    Z: np.ndarray,
    y: np.ndarray,
    judges: tuple[np.ndarray, np.ndarray],
    clock: Clock,
    rng: np.random.Generator,
    whole: Machine | None,
) -> Curve:
    """Fit growing parts, from the smallest up, as long as the next will be done in time.

    `whole` is the model of all rows, if they are the ones at hand: it need not be fitted again.
    """
    curve, before = Curve(), 0.0
    least = max(_FEWEST_ROWS, 3 * len(machine.classes))
    sizes = sorted({len(y) >> k for k in range(_SIZES) if len(y) >> k >= least} | ({len(y)} if whole else set()))
    for size in sizes:
        if whole is not None and size == len(y):
            curve.sizes.append(size)
            curve.unseen.append([whole.score(*judges)])
            rows = draw(rng, size, _ROWS_SCORED // 2)
            curve.seen.append([whole.score(Z[rows], y[rows])])
            continue
        if curve.stopped:
            continue
        last, spent = 0.0, []
        unseen, seen = [], []
        for turn in range(_PARTS_PER_SIZE if size < len(y) else 1):
            expected = last if turn else _TIME_OF_TWICE_THE_ROWS * before
            if expected > clock.left and (turn or curve.sizes):
                curve.stopped = curve.stopped or not turn
                break
            began = time.perf_counter()
            rows = _part(machine, y, size, rng)
            part = machine.refitted(Z[rows], y[rows], max(0.1, clock.left))
            unseen.append(part.score(*judges))
            some = rows[: _ROWS_SCORED // 2]
            seen.append(part.score(Z[some], y[some]))
            last = time.perf_counter() - began
            spent.append(last)
        if unseen:
            curve.sizes.append(size)
            curve.unseen.append(unseen)
            curve.seen.append(seen)
            before = float(np.mean(spent))
    return curve


def _part(machine: Machine, y: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return so many rows, with every class among them."""
    rows = rng.permutation(len(y))
    if not machine.classifies:
        return rows[:size]
    first = [rows[y[rows] == c][:2] for c in machine.classes]
    must = np.concatenate(first).astype(int)
    rest = rows[~np.isin(rows, must)]
    return rng.permutation(np.concatenate([must, rest[: max(0, size - len(must))]]))


def _lead(curve: Curve) -> str:
    """Say what the last doubling brought, against the noise of the draws."""
    means = [float(np.mean(s)) for s in curve.unseen]
    doublings = np.log2(curve.sizes[-1] / curve.sizes[-2])
    gain = (means[-1] - means[-2]) / doublings
    noise = max(*(float(np.std(s)) for s in curve.unseen[-2:]), 1e-3)
    step = f"from {curve.sizes[-2]:,} to {curve.sizes[-1]:,} rows the score on rows not seen"
    if gain > noise:
        return f"More rows would probably help: {step} rose by about {number(gain, 2)} with each doubling."
    if gain < -noise:
        return f"The curve is not settled: {step} fell by about {number(-gain, 2)} with each doubling."
    return f"More rows would probably bring little: {step} changed by {number(gain, 1)} with each doubling."


def _draw(curve: Curve, machine: Machine, where: str) -> Figure:
    sizes = np.array(curve.sizes, float)
    last = number(np.mean(curve.unseen[-1]), 4)
    title = f"{machine.measure} on rows not seen reaches {last} with {curve.sizes[-1]:,} rows"
    said = "; ".join(f"{n:,} rows: {number(np.mean(s), 3)}" for n, s in zip(curve.sizes, curve.unseen, strict=True))
    chart = Chart("learning", title, said, height=290, top=34)
    x = chart.across_log(sizes[0] / 1.15, sizes[-1] * 1.15)
    every = [v for s in (*curve.unseen, *curve.seen) for v in s]
    # One hopeless fit of few rows must not flatten the rest.
    middle, top = float(np.median(every)), max(every)
    low = max(min(every), middle - 5 * max(top - middle, 0.1 * abs(top)))
    y = chart.up(*span([low, max(every)], 0.07))
    chart.axis_y(y, machine.measure)
    chart.axis_x(x, "rows learnt (logarithmic)")
    for name, look, lists, right in (
        ("rows learnt", "c1", curve.seen, True),
        ("rows not seen", "c0", curve.unseen, False),
    ):
        mean = np.clip([float(np.mean(s)) for s in lists], y.low, y.high)
        ends = [np.clip([f(s) for s in lists], y.low, y.high) for f in (min, max)]
        chart.band(x(sizes), y(ends[0]), y(ends[1]), look)
        chart.line(x(sizes), y(mean), look if not right else f"{look} dashed")
        hints = [f"{int(n):,} rows, {name}: {number(np.mean(s), 4)}" for n, s in zip(sizes, lists, strict=True)]
        chart.dots(x(sizes), y(mean), look, 3.2, hints)
        at = chart.x0 + (0 if not right else 130)
        chart.whisker(at, 16, at + 18, 16, f"key {look}" + (" dashed" if right else ""))
        chart.text(at + 24, 20, name, "tick")
    note = (
        f"The winner's kernel and price at every size, scored on {where}; bands reach from the worst to the best draw."
    )
    if curve.stopped:
        note += " Sizes that would have taken too long for a report were left out."
    return Figure(title, chart.svg(), note)
