"""Rows of tables: those that a model learns from, is tested on and predicts, and the columns that its kernel names."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.cli.output import fail, listed, require_columns
from mercer.kernels import Kernel
from mercer.kernels.rules.pullback import On
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


def read(source: str, **reading: Any) -> pd.DataFrame:
    """Return the table of a file, or of standard input."""
    from mercer.tables import read_table

    return read_table(source, **reading)


def name_of(source: str) -> str:
    """Return what messages call a source."""
    return "standard input" if source == "-" else source


def examples(frame: pd.DataFrame, target: str | None, task: str, drop: list[str], source: str) -> Examples:
    """Return the rows whose target is known, or say what is wrong with the target."""
    from mercer.tables import target_of

    where = name_of(source)
    if target is None:
        fail(f"say which column to predict, as in --target NAME; of {where} {listed([str(c) for c in frame.columns])}.")
    require_columns([target], where, frame.columns, " to predict")
    require_columns(drop, where, frame.columns, " to drop")
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
    require_columns([target], where, frame.columns, ", which holds the right answers")
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
    >>> from mercer.cli.rows import as_labels
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


ROWS = 20_000  # of a piece: tens of megabytes once it is encoded


def pieces(source: str, **reading: Any) -> Iterator[pd.DataFrame]:
    """Return the pieces of a table."""
    from mercer.tables import read_pieces

    return read_pieces(source, ROWS, **reading)


def inputs(model: Any, piece: pd.DataFrame, source: str, target: str | None) -> Any:
    """Return what a model takes of a table: the columns that it was fitted to, in their order."""
    from mercer.tables.cells import ABSENT

    names = getattr(model, "feature_names_in_", None)
    if names is None:
        if getattr(model, "n_features_in_", None) is None:
            fail(f"{type(model).__name__} takes no table of numbers, and cannot be applied to {name_of(source)}.")
        X = piece.drop(columns=[target] if target in piece.columns else [])
        if X.shape[1] != model.n_features_in_:
            fail(f"{name_of(source)} has {X.shape[1]} columns; the model was fitted to {model.n_features_in_}.")
        return X.to_numpy(dtype=np.float64)
    if ABSENT in piece.attrs:  # of svmlight: what is not written is there all the same
        return piece
    if hasattr(model, "encoder_"):  # a column that was dropped is not missed
        names = [column.name for column in model.encoder_.treatment_ if column.made]
    require_columns(names, name_of(source), piece.columns, ", which the model was fitted to")
    return piece[list(names)]


def predictions(model: Any, X: Any, what: str, quantiles: list[float], adaptive: bool = False) -> dict[str, np.ndarray]:
    """Return the columns of predictions of a piece.

    Parameters
    ----------
    model, X
        The model and its input.
    what
        "prediction", "proba", "margins" or "quantiles".
    quantiles, adaptive
        Which ones, and whether they are further apart for rows that are harder to predict.
    """
    columns = {"prediction": np.asarray(model.predict(X))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to say of these rows has been said
        if what == "proba":
            chances = model.predict_proba(X)
            return columns | {f"probability_{label}": chances[:, i] for i, label in enumerate(model.classes_)}
        if what == "margins":
            values = np.asarray(model.decision_function(X))
            if values.ndim == 1:
                return columns | {"margin": values}
            return columns | {f"margin_{label}": values[:, i] for i, label in enumerate(model.classes_)}
        if what == "quantiles":
            values = model.predict_quantiles(X, quantiles, adaptive=adaptive)
            return columns | {f"quantile_{q:g}": values[:, i] for i, q in enumerate(quantiles)}
    return columns


def require(model: Any, what: str) -> None:
    """Say that a model does not give what was asked for."""
    method = {
        "prediction": "predict",
        "proba": "predict_proba",
        "margins": "decision_function",
        "quantiles": "predict_quantiles",
    }[what]
    if hasattr(model, method):
        return
    kind = "classifies" if hasattr(model, "classes_") else "predicts numbers"
    other = {"proba": "--quantiles gives an interval", "margins": "--quantiles gives an interval"}
    if what == "prediction":
        fail(f"{type(model).__name__} predicts nothing.")
    if what == "quantiles":
        fail(f"--quantiles is for models that predict numbers; this {type(model).__name__} {kind}: take --proba.")
    fail(f"--{what} is for classifiers that have it; this {type(model).__name__} {kind}: {other[what]}.")


def placed(kernel: Any, encoder: Any, source: str) -> Any:
    """Return a kernel with names of columns replaced by the places of what these became.

    Parameters
    ----------
    kernel
        A kernel such as `RBF(1.0).on("age")`; a class stays as it is.
    encoder
        A fitted `TableEncoder`.
    source
        What errors call the table.

    Examples
    --------
    >>> import pandas as pd
    >>> from mercer import RBF, Linear
    >>> from mercer.cli.rows import placed
    >>> from mercer.tables import TableEncoder
    >>> people = pd.DataFrame({"age": [31.0, 33.0, 60.0], "job": ["smith", "baker", "clerk"]})
    >>> placed(RBF(1.0).on("age") + Linear().on(["job"]), TableEncoder().fit(people), "people.csv")
    RBF(scale=1.0).on([0]) + Linear().on([1, 2, 3])
    """
    if isinstance(kernel, On) and _names(kernel.columns):
        made: dict[str, list[int]] = {}
        place = 0
        for column in encoder.treatment_:
            made[column.name] = list(range(place, place + len(column.made)))
            place += len(column.made)
        wanted = _names(kernel.columns)
        require_columns(wanted, source, [name for name, places in made.items() if places], ", which a kernel names,")
        return On(kernel.base, [i for name in wanted for i in made[name]])
    if not isinstance(kernel, Kernel):
        return kernel
    parts = kernel.children()
    return kernel.replace(**{name: placed(part, encoder, source) for name, part in parts.items()}) if parts else kernel


def _names(columns: Any) -> list[str]:
    """Return the names among columns; none where these are places."""
    if isinstance(columns, str):
        return [columns]
    return [c for c in columns if isinstance(c, str)] if isinstance(columns, list | tuple) else []
