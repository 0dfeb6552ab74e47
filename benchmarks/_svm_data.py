"""The problems of `svm.py`: real data from the folder in `MERCER_DATA`, and made data."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

QUICK = 1_200  # rows of a trial run


class Missing(Exception):
    """The data of a row is not on this machine."""


@dataclass
class Problem:
    """Data in float64 and the parameters that every contender gets."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    model: str = "SVC"
    params: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def kernel(self) -> dict[str, Any]:
        """What the objective needs to know of the kernel."""
        return {
            "kernel": self.params.get("kernel", "rbf"),
            "gamma": self.params["gamma"],
            "degree": self.params.get("degree", 3),
            "coef0": self.params.get("coef0", 0.0),
        }


def file(name: str) -> Path:
    """Return the path of a data file; raise Missing, with the reason, where there is none."""
    folder = os.environ.get("MERCER_DATA")
    if not folder:
        raise Missing("MERCER_DATA is not set")
    path = Path(folder) / name
    if not path.exists():
        raise Missing(f"{path} is missing")
    return path


def a9a() -> Problem:
    data = np.load(file("a9a.npz"))
    return Problem(*(data[k].astype(t) for k, t in (("X", float), ("y", int), ("X_test", float), ("y_test", int))))


def letter() -> Problem:
    """The first 16,000 rows are for training, as is the custom."""
    data = np.load(file("letter.npz"))
    X, y = data["X"].astype(float), np.unique(data["y"], return_inverse=True)[1]
    return standardised(X[:16_000], X[16_000:], y[:16_000], y[16_000:])


def pendigits() -> Problem:
    data = np.load(file("pendigits.npz"))
    return split(data["X"].astype(float), data["y"].astype(int))


def adult() -> Problem:
    """Numbers as they are, a column of zeros and ones for each value of a category."""
    import pandas as pd

    table = pd.read_csv(file("adult.csv.gz"), skipinitialspace=True)
    y = table.pop("ABOVE50K").to_numpy().astype(int)
    return split(pd.get_dummies(table).to_numpy(dtype=float), y)


def cal_housing() -> Problem:
    data = np.load(file("cal_housing.npz"))
    y = data["y"].astype(float)
    problem = split(data["X"].astype(float), y)
    centre, scale = problem.y.mean(), problem.y.std()
    problem.y, problem.y_test = (problem.y - centre) / scale, (problem.y_test - centre) / scale
    problem.model = "SVR"
    return problem


def iris() -> Problem:
    X, y = load_iris(return_X_y=True)
    return Problem(X, y, X, y)


def breast_cancer() -> Problem:
    X, y = load_breast_cancer(return_X_y=True)
    return Problem(X, y, X, y)


@cache
def made(n: int, test: int = 5_000) -> Problem:
    """One family of data at every size: 30 features, 15 of them informative, a tenth of the labels noise."""
    X, y = make_classification(n + test, 30, n_informative=15, n_redundant=5, flip_y=0.1, class_sep=0.7, random_state=0)
    return standardised(X[:n], X[n:], y[:n], y[n:])


def made_linear(n: int = 1_000_000, test: int = 50_000) -> Problem:
    """A million rows and 50 features, for machines without a kernel."""
    X, y = make_classification(n + test, 50, n_informative=30, n_redundant=10, flip_y=0.1, random_state=0)
    return standardised(X[:n], X[n:], y[:n], y[n:], "LinearSVC")


def split(X: np.ndarray, y: np.ndarray) -> Problem:
    """Four fifths for training, the rest for testing; features standardised."""
    return standardised(*train_test_split(X, y, test_size=0.2, random_state=0))


def standardised(X: np.ndarray, X_test: np.ndarray, y: np.ndarray, y_test: np.ndarray, model: str = "SVC") -> Problem:
    """Return the problem with features of mean 0 and variance 1 on the training rows."""
    scaler = StandardScaler().fit(X)
    return Problem(np.ascontiguousarray(scaler.transform(X)), y, scaler.transform(X_test), y_test, model)


# What each row trains: the data, and the parameters of the model.
PROBLEMS: dict[str, tuple[Callable[[], Problem], dict[str, Any]]] = {
    "a9a": (a9a, {"C": 1.0}),
    "letter": (letter, {"C": 10.0}),
    "pendigits": (pendigits, {"C": 10.0}),
    "adult": (adult, {"C": 10.0}),
    "made-1": (lambda: made(20_000), {"C": 1.0, "gamma": 1 / 30}),
    "made-100": (lambda: made(20_000), {"C": 100.0, "gamma": 1 / 30}),
    "svr-1": (cal_housing, {"C": 1.0, "epsilon": 0.1}),
    "svr-10": (cal_housing, {"C": 10.0, "epsilon": 0.1}),
    "poly": (letter, {"C": 10.0, "kernel": "poly", "degree": 3, "coef0": 1.0}),
    "iris": (iris, {"C": 1.0}),
    "breast_cancer": (breast_cancer, {"C": 1.0}),
    "linear": (made_linear, {"C": 1.0}),
    "big": (lambda: made(60_000), {"C": 1.0, "gamma": 1 / 30}),
}


def load(name: str, quick: bool = False) -> Problem:
    """Return a problem, or a random part of it for a trial; gamma="scale" as the number it stands for, for everyone."""
    make, params = PROBLEMS[name]
    whole = make()
    problem = Problem(whole.X, whole.y, whole.X_test, whole.y_test, whole.model, dict(params))
    if quick and len(problem) > QUICK:
        rows = np.random.default_rng(0).permutation(len(problem))[: QUICK * (20 if problem.model == "LinearSVC" else 1)]
        problem.X, problem.y = problem.X[rows], problem.y[rows]
        problem.X_test, problem.y_test = problem.X_test[:QUICK], problem.y_test[:QUICK]
    if problem.model != "LinearSVC":
        problem.params.setdefault("gamma", float(1.0 / (problem.X.shape[1] * problem.X.var())))
    return problem
