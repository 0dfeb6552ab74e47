"""Training and test rows of a model; said once for fit, score and verify."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.cli.shared.errors import fail, listed, no_column
from mercer.machine.words import count

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class Examples:
    """A table without its target, and the target."""

    X: pd.DataFrame
    y: np.ndarray
    task: str
    said: list[str]

    def part(self, rows: np.ndarray) -> Examples:
        """Return some of the rows."""
        return Examples(taken(self.X, rows), self.y[rows], self.task, [])

    @property
    def digest(self) -> str:
        """A fingerprint of these rows: the same for the same values in the same order, in any format."""
        found = hashlib.blake2b(digest_size=16)
        for name in self.X.columns:
            found.update(str(name).encode())
            found.update(_bytes(self.X[name]))
        found.update(_bytes(self.y))
        return found.hexdigest()


def read(source: str, format: str | None = None) -> pd.DataFrame:
    """Return the table of a file, or of standard input."""
    from mercer.tables import read_table

    return read_table(source, format=format)


def name_of(source: str) -> str:
    """Return what messages call a source."""
    return "standard input" if source == "-" else source


def examples(frame: pd.DataFrame, target: str | None, task: str, drop: list[str], source: str) -> Examples:
    """Return the rows whose target is known, or say what is wrong with the target."""
    from mercer.tables import target_of

    where = name_of(source)
    if target is None:
        fail(f"say which column to predict, as in --target NAME; of {where} {listed([str(c) for c in frame.columns])}.")
    if target not in frame.columns:
        no_column(target, where, frame.columns, " to predict")
    for name in drop:
        if name not in frame.columns:
            no_column(name, where, frame.columns, " to drop")
    found = target_of(frame[target], task)
    X = taken(frame, found.rows).drop(columns=[target, *drop])
    if not X.shape[1]:
        fail(f"{where} has no column beside {target!r}: there is nothing to predict from.")
    return Examples(X, np.asarray(found.values), found.task, [found.said])


def taken(frame: pd.DataFrame, rows: np.ndarray) -> pd.DataFrame:
    """Return some rows of a table, numbered from 0."""
    found = frame.iloc[rows].reset_index(drop=True)
    found.attrs = dict(frame.attrs)  # they say what columns hold that are not there
    return found


def answers(frame: pd.DataFrame, target: str, classes: np.ndarray | None, source: str) -> Examples:
    """Return rows to test a model on, the answers in the type that it predicts."""
    where = name_of(source)
    if target not in frame.columns:
        no_column(target, where, frame.columns, ", which holds the right answers")
    labels = _numbers(frame[target], where) if classes is None else as_labels(frame[target], classes)
    known = np.array([label is not None for label in labels.tolist()]) if classes is not None else np.isfinite(labels)
    if not known.any():
        fail(f"{where} has no row with a value of {target!r}: there is nothing to test on.")
    left = int((~known).sum())
    said = [f"{count(left, 'row')} of {where} without a value of {target!r} left out."] if left else []
    y = labels[known]
    if classes is not None and all(type(label) is type(classes.tolist()[0]) for label in y.tolist()):
        y = np.array(y.tolist())
    X = taken(frame, np.flatnonzero(known)).drop(columns=[target])
    return Examples(X, y, "regress" if classes is None else "classify", said)


def as_labels(values: Any, classes: np.ndarray) -> np.ndarray:
    """Return labels as the classes have them: a file may hold texts where another holds numbers; None where missing.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.cli.shared.rows import as_labels
    >>> as_labels([1.0, 0.0, None], np.array([0, 1])), as_labels([" 3", "5"], np.array(["3", "4"]))
    (array([1, 0, None], dtype=object), array(['3', '5'], dtype=object))
    """
    import pandas as pd

    from mercer.tables.cells import name, names

    codes, called = names(pd.Series(values))
    known = {name(label): label for label in classes.tolist()}
    return np.array([*(known.get(label, label) for label in called), None], dtype=object)[codes]


def _numbers(values: pd.Series, where: str) -> np.ndarray:
    from mercer.tables.cells import numbers

    found = numbers(values, far=np.inf)
    if found.wrong:
        fail(f"the column {values.name!r} of {where} holds {found.example!r}, and the model predicts numbers.")
    return found.values


def split(found: Examples, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to learn from and the rows to test on, the classes in equal parts where they allow it."""
    from sklearn.model_selection import train_test_split

    rows = np.arange(len(found.y))
    if not share:
        return rows, rows[:0]
    tests = round(share * len(rows))
    if tests < 1 or len(rows) - tests < 2:
        fail(
            f"{count(len(rows), 'row')} cannot be split into training and test rows with --test-size {share:g}; "
            "take --test-size 0, or more rows."
        )
    classes = found.y if found.task == "classify" and strata(found.y, tests) else None
    train, test = train_test_split(rows, test_size=tests, random_state=seed, stratify=classes)
    return np.sort(train), np.sort(test)


def strata(y: np.ndarray, tests: int) -> bool:
    """Whether classes have rows enough to be split in equal parts."""
    _, sizes = np.unique(y, return_counts=True)
    return bool(sizes.min() > 1 and min(tests, len(y) - tests) >= len(sizes))


def _bytes(values: Any) -> bytes:
    """Return values as bytes that do not depend on how a format stores them."""
    import pandas as pd

    series = pd.Series(values)
    if pd.api.types.is_numeric_dtype(series.dtype):
        numbers = series.to_numpy(dtype=np.float64, na_value=np.nan) + 0.0  # no negative zero
        return np.where(np.isnan(numbers), np.nan, numbers).tobytes()
    missing = series.isna().to_numpy()
    return "\x1f".join("" if gone else str(value) for value, gone in zip(series, missing)).encode()
