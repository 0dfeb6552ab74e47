"""Tables of predictions, piece by piece: files larger than memory go through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.cli.shared.errors import fail, no_column
from mercer.cli.shared.rows import name_of

if TYPE_CHECKING:
    import pandas as pd

ROWS = 20_000  # of a piece: tens of megabytes once it is encoded


def pieces(source: str, format: str | None) -> Iterator[pd.DataFrame]:
    """Return the pieces of a table."""
    from mercer.tables import read_pieces

    return read_pieces(source, ROWS, format=format)


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
    for name in names:
        if name not in piece.columns:
            no_column(str(name), name_of(source), piece.columns, ", which the model was fitted to")
    return piece[list(names)]


def predictions(model: Any, X: Any, what: str, quantiles: list[float]) -> dict[str, np.ndarray]:
    """Return the columns of predictions of a piece.

    Parameters
    ----------
    model, X
        The model and its input.
    what
        "prediction", "proba", "margins" or "quantiles".
    quantiles
        Which ones.
    """
    found = {"prediction": np.asarray(model.predict(X))}
    if what == "proba":
        chances = model.predict_proba(X)
        return found | {f"probability_{label}": chances[:, i] for i, label in enumerate(model.classes_)}
    if what == "margins":
        values = np.asarray(model.decision_function(X))
        if values.ndim == 1:
            return found | {"margin": values}
        return found | {f"margin_{label}": values[:, i] for i, label in enumerate(model.classes_)}
    if what == "quantiles":
        values = model.predict_quantiles(X, quantiles)
        return found | {f"quantile_{q:g}": values[:, i] for i, q in enumerate(quantiles)}
    return found


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
