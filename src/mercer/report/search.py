"""The map of the search: the score of every kernel and price, family by family, and what was not tried."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.machine.words import count
from mercer.report.blocks import Figure, Figures, Prose, Section, clip, named, number, tick
from mercer.report.scales import Bands, span
from mercer.report.svg import STEPS, Chart, shade

_SHADED_RANGE = 2.0  # of the shades below the best score, in units of its distance from the median
_FAMILY_RANGE = 5.0  # of the picture of families below the chosen score, in the same units
_ROW_HEIGHT = 21.0  # of a family in the picture, in pixels


@dataclass
class Cell:
    """A candidate: a kernel and the price of errors, with its score."""

    kernel: str
    family: str
    scale: float
    price: float
    score: float
    error: float
    folds: int
    rows: int = 0  # how many it was tried on; 0 if that is not told

    @property
    def tried(self) -> bool:
        """Whether any fold was looked at, with a number as the outcome."""
        return self.folds > 0 and math.isfinite(self.score)


def cells_of(results: dict[str, Any]) -> tuple[list[Cell], str]:
    """Return the candidates of `results_`, the later of equal ones, and what the price is called."""
    name = "C" if "C" in results else "alpha"
    size = len(results["kernel"])
    columns = [results[key] for key in ("kernel", "family", "scale", name, "mean_test_score", "std_test_score")]
    folds, rows = results.get("folds", [1] * size), results.get("rows", [0] * size)
    cells: dict[tuple[str, float], Cell] = {}
    for i in range(size):
        kernel, family, scale, price, score, spread = (column[i] for column in columns)
        seen = 0 if _missing(folds[i]) else int(folds[i])
        cell = Cell(
            str(kernel),
            str(family),
            _plain(scale),
            _plain(price),
            _plain(score),
            _plain(spread) / math.sqrt(max(1, seen)),
            seen,
            0 if _missing(rows[i]) else int(rows[i]),
        )
        key = (cell.kernel, cell.price)
        if key not in cells or cell.tried or not cells[key].tried:
            cells[key] = cell
    return list(cells.values()), name


def _missing(value: Any) -> bool:
    return value is None or value != value


def _plain(value: Any) -> float:
    value = math.nan if _missing(value) or isinstance(value, str) else float(value)
    return value if math.isfinite(value) else math.nan


def search_section(model: Any) -> Section:
    """Return the section on the search."""
    cells, price = cells_of(model.results_)
    tried = [cell for cell in cells if cell.tried]
    families = list(dict.fromkeys(cell.family for cell in cells))
    scoring = named(str(getattr(model, "scoring_", "score")))
    blocks: list[Any] = []
    if tried:
        best = best_of(tried)
        chosen = chosen_of(model.results_, int(model.best_index_), tried, price)
        if len(families) > 1:
            blocks.append(Figures([_families(tried, chosen, price, scoring)]))
        blocks.append(Figures(_maps(cells, tried, chosen, best, price, scoring), small=True))
    account = str(getattr(model, "account_", "")).strip()
    if account:
        blocks.append(Prose([" ".join(part.split()) for part in account.split("\n\n") if part.strip()], columns=True))
    left = len(cells) - len(tried)
    lead = (
        f"{count(len(tried), 'candidate was', 'candidates were')} tried in {count(len(families), 'family', 'families')}"
    )
    lead += f"; {count(left, 'was', 'were')} not reached." if left else "."
    return Section("search", "Search", lead, blocks)


def best_of(cells: list[Cell]) -> Cell:
    """Return the candidate with the highest score among those seen on most rows and folds."""
    return max(cells, key=lambda cell: (cell.rows, cell.folds, cell.score))


def chosen_of(results: dict[str, Any], index: int, tried: list[Cell], price: str) -> Cell:
    """Return the candidate that became the model: of equal scores the search takes the simplest."""
    key = (str(results["kernel"][index]), float(results[price][index]))
    return next((cell for cell in tried if (cell.kernel, cell.price) == key), best_of(tried))


def shaded_range(tried: list[Cell]) -> tuple[float, float]:
    """Return the scores between which shades tell candidates apart: those far below the median are all the palest."""
    scores = np.array([cell.score for cell in tried])
    high = float(scores.max())
    low = max(float(scores.min()), high - _SHADED_RANGE * (high - float(np.median(scores))))
    return (low if low < high else float(scores.min())), high


# -- the best of each family ------------------------------------------------------------------------------


def _families(tried: list[Cell], chosen: Cell, price: str, scoring: str) -> Figure:
    best: dict[str, Cell] = {}
    for cell in tried:
        rival = best.get(cell.family)
        if rival is None or (cell.rows, cell.folds, cell.score) > (rival.rows, rival.folds, rival.score):
            best[cell.family] = cell
    best[chosen.family] = chosen
    order = sorted(best.values(), key=lambda cell: (-cell.rows, -cell.score))
    title = f"The best of each family: {chosen.family} was chosen"
    names = [cell.family for cell in order]
    said = "; ".join(f"{cell.family}: {number(cell.score, 4)}" for cell in order)
    chart = Chart.of_rows("families", title, said, names, 62, 25, 24, 6.2, bottom=44)
    errors = np.array([0.0 if math.isnan(cell.error) else cell.error for cell in order])
    scores = np.array([cell.score for cell in order])
    # One family that fails must not press the others together: it is told in words at the edge.
    far = chosen.score - _FAMILY_RANGE * max(
        chosen.score - float(np.median(scores)), float(errors.max(initial=0.0)) / 2, 1e-9
    )
    near = scores >= far
    x = chart.across(*span(np.concatenate([(scores - errors)[near], (scores + errors)[near]]), 0.06))
    error = 0.0 if math.isnan(chosen.error) else chosen.error
    low, high = float(x(chosen.score - error)), float(x(chosen.score + error))
    chart.box(low, chart.y1, high - low, chart.y0 - chart.y1, "noise", f"{chosen.family} ± one standard error")
    rows = chart.axis_rows(x, f"{scoring} (mean over folds ± standard error)", names, 24)
    for i, cell in enumerate(order):
        look = "c0" if cell is chosen else "c-muted hollow" if cell.rows < chosen.rows else "c-muted"
        y = rows.middle(i)
        if not near[i]:
            chart.text(chart.x0 + 4, y + 4, f"← {number(cell.score, 3)}", "tick", hint=_said(cell, price))
            continue
        chart.whisker(float(x(cell.score - errors[i])), y, float(x(cell.score + errors[i])), y, look)
        chart.dots([x(cell.score)], [y], look, 4.5 if cell is chosen else 3.5, [_said(cell, price)])
    note = "The pale strip is the chosen one's score, one standard error to each side."
    fewer = [cell.rows for cell in order if cell.rows < chosen.rows]
    if fewer:
        note += f" Hollow: left after a first look at {count(max(fewer), 'row')}; the others saw {chosen.rows:,}."
    return chart.figure(note)


# -- score against scale and price ------------------------------------------------------------------------


def _maps(cells: list[Cell], tried: list[Cell], chosen: Cell, best: Cell, price: str, scoring: str) -> list[Figure]:
    low, high = shaded_range(tried)
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.family, []).append(cell)
    scaled = {name: group for name, group in groups.items() if len({c.scale for c in group if c.scale == c.scale}) > 1}
    rest = [cell for name, group in groups.items() if name not in scaled for cell in group]
    figures = []
    for i, (name, group) in enumerate(scaled.items()):
        # Two kernels may have one scale: those of a product whose parts differ by a ratio.
        at = {cell.kernel: cell.scale for cell in group}
        order = sorted(at, key=lambda k: -at[k] if at[k] == at[k] else math.inf)
        lines = [[cell for cell in group if cell.kernel == kernel] for kernel in order]
        names = [number(at[kernel], 3) for kernel in order]
        figures.append(_map(f"map{i}", name, lines, names, "scale", price, (low, high), chosen, best))
    if rest:
        kernels = list(dict.fromkeys(cell.kernel for cell in rest))
        lines = [[cell for cell in rest if cell.kernel == kernel] for kernel in kernels]
        title = "Kernels without a grid of scales" if scaled or len(kernels) > 1 else kernels[0]
        figures.append(_map("maprest", title, lines, kernels, "", price, (low, high), chosen, best))
    return [*figures, _legend(low, high, scoring, any(cell.score < low for cell in tried))]


def _map(
    name: str,
    title: str,
    lines: Sequence[Sequence[Cell]],
    names: Sequence[str],
    axis: str,
    price: str,
    ends: tuple[float, float],
    chosen: Cell,
    best: Cell,
) -> Figure:
    prices = sorted({cell.price for line in lines for cell in line})
    full = max(cell.folds for line in lines for cell in line)
    length = 16 if axis else 24
    longest = 6.2 * max(len(clip(n, length)) for n in names) + (26 if axis else 12)
    most = max((cell.score for line in lines for cell in line if cell.tried), default=math.nan)
    chart = Chart(
        name,
        f"{title}: scores up to {number(most, 4)}",
        f"Cross-validated score of {count(len(lines), 'kernel')} with {count(len(prices), 'value')} of {price}.",
        width=320,
        height=58 + _ROW_HEIGHT * len(lines),
        left=longest,
        right=10,
        top=8,
    )
    rows, columns = Bands(len(lines), chart.y1, chart.y0), Bands(len(prices), chart.x0, chart.x1)
    ring = None
    for r, line in enumerate(lines):
        at = {cell.price: cell for cell in line}
        for c, value in enumerate(prices):
            cell = at.get(value)
            corner = (columns.edge(c) + 0.75, rows.edge(r) + 0.75, columns.size - 1.5, rows.size - 1.5)
            if cell is None or not cell.tried:
                chart.box(*corner, "untried", f"{names[r]}, {price} = {number(value)}: not tried")
                continue
            chart.box(*corner, f"h{shade(cell.score, *ends)}", _said(cell, price))
            if cell.folds < full:
                chart.whisker(corner[0], corner[1] + corner[3], corner[0] + corner[2], corner[1], "left-early")
            elif cell.rows == best.rows and cell.score >= best.score - (0.0 if math.isnan(best.error) else best.error):
                level = "on-high" if shade(cell.score, *ends) > 5 else "on-low"
                chart.dots([columns.middle(c)], [rows.middle(r)], level, 2.2)
            if cell is chosen:
                ring = corner
    if ring:
        chart.box(*ring, "ring", f"chosen: {_said(chosen, price)}")
    tens = [
        c for c, value in enumerate(prices) if value > 0 and abs(math.log10(value) - round(math.log10(value))) < 1e-6
    ]
    end = -math.inf
    for c in tens if len(tens) > 1 else range(len(prices)):
        words = tick(float(f"{prices[c]:.2g}"))
        if columns.middle(c) - 3 * len(words) > end:
            chart.text(columns.middle(c), chart.y0 + 15, words, "tick", anchor="middle")
            end = columns.middle(c) + 3 * len(words) + 4
    chart.names_y(rows, names, length)
    chart.label_x("C (price of errors)" if price == "C" else "alpha (strength of the penalty)")
    if axis:
        chart.label_y(axis)
    return Figure(clip(title, 60), chart.svg(), f"best {number(most, 4)}" if most == most else "not reached")


def _legend(low: float, high: float, scoring: str, clipped: bool) -> Figure:
    chart = Chart(
        "maplegend",
        "How to read the maps",
        "The stronger the shade, the better.",
        width=320,
        height=176,
        left=14,
        right=14,
    )
    ramp = Bands(STEPS, 14, 306)
    for step in range(STEPS):
        chart.box(ramp.edge(step), 10, ramp.size, 16, f"h{step}")
    chart.text(14, 42, f"{'≤ ' if clipped else ''}{number(low, 4)}", "tick")
    chart.text(306, 42, number(high, 4), "tick", anchor="end")
    chart.text(160, 42, clip(scoring, 26), "name", anchor="middle")
    samples = (
        ("ring", "chosen"),
        ("dot", "within one standard error of the best"),
        ("left", "left after fewer folds: hopeless"),
        ("untried", "not tried"),
    )
    for i, (look, words) in enumerate(samples):
        y = 58.0 + 28 * i
        chart.box(14, y, 22, 18, {"untried": "untried", "ring": "h9", "dot": "h8"}.get(look, "h2"))
        if look == "ring":
            chart.box(14, y, 22, 18, "ring")
        elif look == "dot":
            chart.dots([25], [y + 9], "on-high", 2.2)
        elif look == "left":
            chart.whisker(14, y + 18, 36, y, "left-early")
        chart.text(46, y + 13, words, "tick")
    return Figure("How to read the maps", chart.svg())


def _said(cell: Cell, price: str) -> str:
    error = "" if math.isnan(cell.error) else f" ± {number(cell.error, 2)}"
    on = f" of {count(cell.rows, 'row')}" if cell.rows else ""
    folds = count(cell.folds, "fold")
    return f"{cell.kernel}, {price} = {number(cell.price)}: {number(cell.score, 4)}{error}, {folds}{on}"
