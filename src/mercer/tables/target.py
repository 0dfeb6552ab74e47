"""The column to predict: numbers or classes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.machine.words import count
from mercer.tables.cells import names, numbers, shown
from mercer.tables.source import TableError

TASKS = ("auto", "classify", "regress")

_CLASSES = 20  # different whole numbers; more than these are quantities, not classes
_CLASS_ROWS = 5  # rows that each such class has on average, at least
_NAMING = 0.5  # classes per row, from which on they name the rows
_TELLING_ROWS = 20  # rows below which one cannot tell whether values name the rows


class Target(NamedTuple):
    """What is to be predicted.

    Attributes
    ----------
    task
        "classify" or "regress".
    values
        The labels, or the numbers as float64, of the rows that have one.
    classes
        The different labels in order; None for a regression.
    said
        A sentence that says what was taken for what.
    rows
        The positions, from 0, of the rows that have a target; the others are dropped.
    """

    task: str
    values: np.ndarray
    classes: np.ndarray | None
    said: str
    rows: np.ndarray


def target_of(series: Any, task: str = "auto") -> Target:
    """Return what a column says is to be predicted.

    Texts, booleans, two values, and whole numbers of at most 20 values with five rows each on average are classes.
    Other numbers are quantities.

    Parameters
    ----------
    series
        The column: a pandas series, or a list or array.
    task
        "classify" or "regress" to say so; "auto" to find out.

    Returns
    -------
    Target

    Examples
    --------
    >>> from mercer.tables import target_of
    >>> target = target_of(["yes", "no", None, "yes"])
    >>> target.task, target.classes.tolist(), target.rows.tolist()
    ('classify', ['no', 'yes'], [0, 1, 3])
    >>> print(target.said)
    target: 2 classes, no (1 rows) and yes (2); 1 row without a target was dropped.
    >>> target_of([1.5, 2.25, 8.0]).task
    'regress'
    """
    import pandas as pd

    if task not in TASKS:
        raise ValueError(f"task={task!r} must be one of {', '.join(map(repr, TASKS))}.")
    series = series if isinstance(series, pd.Series) else pd.Series(series)
    called = "target" if series.name is None else str(series.name)
    if not len(series):
        raise TableError(f"the target {called!r} has no rows.")
    codes, known = names(series)
    cells = numbers(series, far=np.inf)
    rows = np.flatnonzero(codes >= 0)
    if not len(rows):
        raise TableError(f"the target {called!r} has no values: all {len(series):,} rows are missing.")
    if len(known) == 1:
        raise TableError(
            f"the target {called!r} is {known[0]} in all {len(rows):,} rows; there is nothing to tell apart. "
            "Choose another column."
        )
    numeric = not cells.wrong and bool(np.isfinite(cells.values[rows]).all())
    if task == "auto":
        task = _task(series, cells.values[rows], numeric, len(known))
    dropped = len(series) - len(rows)
    were = "was" if dropped == 1 else "were"
    gone = f"; {count(dropped, 'row')} without a target {were} dropped" if dropped else ""
    if task == "regress":
        values = _quantities(called, cells, rows)
        low, middle, high = (shown(float(v)) for v in np.percentile(values, [0, 50, 100]))
        said = f"{called}: numbers from {low} to {high} (median {middle}){gone}."
        return Target(task, values, None, said, rows)
    if len(rows) >= _TELLING_ROWS and len(known) > _NAMING * len(rows):
        raise TableError(
            f"the target {called!r} has {len(known):,} different values in {len(rows):,} rows, too many for classes. "
            + ("Choose task 'regress' to predict numbers." if numeric else "Choose another column.")
        )
    labels = _labels(series.iloc[rows], codes[rows])
    classes, counts = np.unique(labels, return_counts=True)
    return Target(task, labels, classes, f"{called}: {_counted(classes, counts)}{gone}.", rows)


def _task(series: Any, values: np.ndarray, numeric: bool, many: int) -> str:
    import pandas as pd

    chosen = isinstance(series.dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(series.dtype)
    if chosen or not numeric or many == 2:
        return "classify"
    whole = bool(np.all(values == np.floor(values)))
    return "classify" if whole and many <= min(_CLASSES, len(values) / _CLASS_ROWS) else "regress"


def _quantities(called: str, cells: Any, rows: np.ndarray) -> np.ndarray:
    values = np.asarray(cells.values[rows], dtype=np.float64)
    if cells.wrong:
        raise TableError(
            f"the target {called!r} is no number in {cells.wrong:,} rows: {cells.example[:30]!r}. Correct them, or "
            "choose task 'classify' to predict classes."
        )
    if not np.isfinite(values).all():
        raise TableError(f"the target {called!r} is infinite in row {int(rows[np.argmin(np.isfinite(values))]) + 1:,}.")
    return values


def _labels(cells: Any, codes: np.ndarray) -> np.ndarray:
    """Return labels as the column has them: booleans, whole numbers, numbers, or texts as they are first written.

    Parameters
    ----------
    cells
        The part of the column that is there.
    codes
        For each the number of its class, under which "yes" and " yes", or "true" and "TRUE", are the same.
    """
    import pandas as pd

    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(cells.cat.categories.dtype)
    cells = cells.infer_objects()
    if pd.api.types.is_bool_dtype(cells.dtype):
        return np.asarray(cells.to_numpy(dtype=bool))
    if pd.api.types.is_numeric_dtype(cells.dtype):
        labels = cells.to_numpy(dtype=getattr(cells.dtype, "numpy_dtype", None))
        whole = labels.dtype.kind == "f" and np.all(labels == np.floor(labels)) and np.abs(labels).max() < 2**53
        return labels.astype(np.int64) if whole else labels  # a column with gaps is read as one of float64
    first = np.unique(codes, return_index=True)[1]
    return np.array([str(cells.iloc[i]).strip() for i in first])[codes]


def _counted(classes: np.ndarray, counts: np.ndarray) -> str:
    first, *others = [f"{c} ({n:,}{' rows' if i == 0 else ''})" for i, (c, n) in enumerate(zip(classes, counts))]
    if len(others) < 6:
        listed = ", ".join([first, *others[:-1]]) + f" and {others[-1]}"
    else:
        listed = ", ".join([first, *others[:4]]) + ", ..."
    rare = int((counts < _CLASS_ROWS).sum())
    few = f"; {rare} of them with fewer than {_CLASS_ROWS} rows" if rare and len(classes) > 2 else ""
    return f"{len(classes)} classes, {listed}{few}"
