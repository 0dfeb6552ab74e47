"""The rows that the model leans on most: support vectors at their bound, or rows that pull the fit to themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.estimators.shared.classes import one_vs_rest
from mercer.machine.words import count
from mercer.report.blocks import Figure, Figures, Prose, Section, Table, clip, number, percent, value
from mercer.report.data import as_numbers
from mercer.report.scales import span
from mercer.report.story import Machine, draw
from mercer.report.svg import LETTER, Chart

_ROWS_LISTED = 12  # rows of the table
_COLUMNS_LISTED = 4  # columns of the data in the table: as many as fit
_MARGINS = 3000  # support vectors whose margins are computed, at most
_POINTS_LEFT_OUT = 2500  # points up to which each is left out in turn, by the inverse of a matrix: their third power
_AT_BOUND = 1 - 1e-6  # share of its bound from which on a coefficient is at the bound


def influence_section(
    machine: Machine, frame: Any, y: np.ndarray, columns: list[str], rng: np.random.Generator
) -> Section | None:
    """Return the section on influential rows; None for a model of another kind.

    Parameters
    ----------
    columns
        Names of columns of the table to show, from the one that matters most.
    """
    model = machine.model.estimator_
    if hasattr(model, "support_") and machine.classifies:
        return _machine(machine, frame, y, columns, rng)
    if not machine.classifies and getattr(model, "dual_coef_", None) is not None and len(model.dual_coef_) == len(y):
        return _ridge(machine, frame, y, columns)
    return None


def _table(
    caption: str, head: tuple[str, ...], right: range, by_row: dict[int, list[str]], frame: Any, columns: list[str]
) -> Table:
    """Return a table of rows, by number, with what was found of each and what the first columns hold there."""
    known = {str(label): frame[label] for label in frame.columns}
    shown = [(clip(name, 20), known[name]) for name in columns[:_COLUMNS_LISTED] if name in known]
    numeric = (len(head) + i for i, (_, series) in enumerate(shown) if as_numbers(series).size)
    rows = [
        (str(frame.index[row]), *cells, *(value(series.iloc[row]) for _, series in shown))
        for row, cells in by_row.items()
    ]
    return Table(caption, (*head, *(name for name, _ in shown)), rows, right=(*right, *numeric))


# -- support vector machines ------------------------------------------------------------------------------


def _machine(machine: Machine, frame: Any, y: np.ndarray, columns: list[str], rng: np.random.Generator) -> Section:
    model = machine.model.estimator_
    support = np.asarray(model.support_)
    place = {c: i for i, c in enumerate(machine.classes.tolist())}
    codes = np.array([place[c] for c in y[support].tolist()], dtype=int)
    weights = np.asarray(getattr(model, "class_weight_", np.ones(len(machine.classes))), dtype=float)
    part = np.abs(np.asarray(model.dual_coef_)) / (model.C * weights[codes])
    bound = (part >= _AT_BOUND).any(axis=0)
    share = len(support) / len(y)
    lead = (
        f"{count(len(support), 'row')} of {len(y):,} ({percent(share)}) carry the model; {int(bound.sum()):,} of them "
        "are at their bound, where a row can pull no harder."
    )
    some = draw(rng, len(support), _MARGINS)
    if bound.any() and bound.sum() <= _MARGINS:
        some = np.flatnonzero(bound)
    margin = _margins(model, codes[some], some)
    order = np.argsort(margin - part[:, some].sum(axis=0) * 1e-9, kind="stable")[:_ROWS_LISTED]
    by_row = {}
    for i in order:
        row = int(support[some[i]])
        by_row[row] = [clip(y[row], 24), number(margin[i]), percent(float(part[:, some[i]].max()))]
    head = ("row", "true class", "margin", "of its bound")
    caption = "Training rows that the model had to give up most on"
    table = _table(caption, head, range(2, 4), by_row, frame, columns)
    note = (
        "The margin is how far a row is on its own side, in units of the margin's width: below 1 it is inside, below 0 "
        "on the wrong side. Rows far on the wrong side are outliers, mislabelled, or hard; look at them first. Rows "
        "are numbered as in the table."
    )
    figure = _shares(len(y), len(support), int(bound.sum()))
    return Section("influence", "Influential rows", lead, [Figures([figure]), table, Prose([note], quiet=True)])


def _margins(model: Any, codes: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Return how far support vectors are on their own side; of several classes, beyond the best of the others."""
    values = np.asarray(model.decision_function(model.support_vectors_[some]), dtype=float)
    if values.ndim == 1:
        return np.where(codes == 1, values, -values)
    if model.decision_function_shape == "ovo":
        values = one_vs_rest(values, len(model.classes_))
    own = values[np.arange(len(codes)), codes].copy()
    values[np.arange(len(codes)), codes] = -np.inf
    return np.asarray(own - values.max(axis=1))


def _shares(total: int, support: int, bound: int) -> Figure:
    title = f"{percent(1 - support / total)} of the rows could be left out without changing the model"
    parts = (
        ("not needed", total - support, "c-pale"),
        ("between", support - bound, "c0"),
        ("at the bound", bound, "c1"),
    )
    said = "; ".join(f"{name}: {n:,}" for name, n, _ in parts)
    chart = Chart("shares", title, said, height=104, left=8, right=8, top=12, bottom=58)
    x, at = chart.across(0, total), 0
    for name, n, look in parts:
        if n:
            start, width = float(x(at)) + 0.5, max(1.0, float(x(at + n) - x(at)) - 1)
            chart.box(start, 12, width, 30, f"fill {look}", f"{name}: {n:,} rows")
        at += n
    place = chart.x0
    for name, n, look in parts:
        chart.box(place, 60, 11, 11, f"fill {look}")
        chart.text(place + 16, 70, name, "tick")
        chart.text(place + 16, 86, count(n, "row"), "tick")
        place += 40 + LETTER * max(len(name), len(count(n, "row")))
    return chart.figure()


# -- ridge ------------------------------------------------------------------------------------------------


def _ridge(machine: Machine, frame: Any, y: np.ndarray, columns: list[str]) -> Section:
    model = machine.model.estimator_
    a = np.asarray(model.dual_coef_, dtype=float).ravel()
    residual = float(model.alpha) * a  # (K + alpha) a + b = y
    exact = len(a) <= _POINTS_LEFT_OUT and float(model.alpha) > 0
    heads: tuple[str, ...] = ("row", "target", "fitted", "residual")
    units = machine.learnt(y).astype(float)
    if exact:
        left_out = np.asarray(model.loo_residuals(), dtype=float).ravel()
        leverage = np.clip(1 - np.divide(residual, left_out, out=np.ones(len(a)), where=left_out != 0), 0.0, 1.0)
        pull = np.abs(left_out - residual)
        heads += ("left out", "leverage")
    else:
        pull = np.abs(a)
    by_row = {}
    for i in np.argsort(-pull, kind="stable")[:_ROWS_LISTED].tolist():
        by_row[i] = [number(units[i], 4), number(units[i] - residual[i], 4), number(residual[i])]
        by_row[i] += [number(left_out[i]), percent(leverage[i])] if exact else []
    table = _table("Training rows that pull the fit most", heads, range(1, len(heads)), by_row, frame, columns)
    blocks: list[Any] = []
    if exact:
        share = float(leverage.sum())
        lead = (
            f"The fit spends {number(share)} effective parameters on {count(len(a), 'row')}; the table shows the rows "
            "whose own prediction would change most without them."
        )
        blocks.append(Figures([_leverage(leverage, left_out)]))
        note = "“Left out” is the residual of a row in a fit without it; leverage is the share that the row hides."
    else:
        lead = "Every row carries the model; the table shows those with the largest coefficients, the worst fitted."
        note = "A coefficient is the residual of its row divided by alpha."
    if not np.array_equal(units, y):
        note += " Numbers are on the scale on which the target was learnt."
    return Section(
        "influence",
        "Influential rows",
        lead,
        [*blocks, table, Prose([note + " Rows are numbered as in the table."], quiet=True)],
    )


def _leverage(leverage: np.ndarray, left_out: np.ndarray) -> Figure:
    worst = float(leverage.max())
    title = f"No row hides more than {percent(worst)} of its own residual"
    chart = Chart("leverage", title, f"{count(len(leverage), 'row')}.", height=290)
    shown = np.argsort(-(leverage * np.abs(left_out)), kind="stable")[:600]
    x, y = chart.across(*span([0.0, worst], 0.04)), chart.up(*span(left_out[shown], 0.06))
    chart.axis_x(x, "leverage")
    chart.axis_y(y, "residual when left out")
    chart.whisker(chart.x0, float(y(0)), chart.x1, float(y(0)), "zero")
    chart.dots(x(leverage[shown]), y(left_out[shown]), "c0 half", 2.6)
    return chart.figure("Rows far to the right and far from zero pull the fit.")
