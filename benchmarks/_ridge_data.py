"""The data of `ridge.py`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from _svm_data import Missing, file, made

__all__ = ["DATA", "Missing", "Table", "logistic_data", "table"]

# gamma and alpha of each set
DATA = {"pol": (0.05, 1e-2), "kin40k": (0.1, 1e-3), "keggundirected": (0.01, 1e-2)}


@dataclass
class Table:
    """Training and test rows, standardised, and the parameters that every contender gets."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    gamma: float
    alpha: float = 1.0


def table(name: str) -> Table:
    """Return one of the regression sets."""
    data = np.load(file(f"{name}.npz"))
    X, y, test = data["X"].astype(float), data["y"].astype(float).ravel(), data["test"].astype(bool)
    X = (X - X[~test].mean(axis=0)) / np.maximum(X[~test].std(axis=0), 1e-12)
    y = (y - y[~test].mean()) / y[~test].std()
    gamma, alpha = DATA[name]
    return Table(name, np.ascontiguousarray(X[~test]), y[~test], X[test], y[test], gamma, alpha)


def logistic_data(n: int = 10_000) -> Table:
    """Return two classes that overlap, made as for `svm.py`."""
    whole = made(n)
    return Table("made data", whole.X, whole.y, whole.X_test, whole.y_test, 1 / 30)
