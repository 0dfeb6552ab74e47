"""The data of the programs: real data from the folder in `MERCER_DATA`, and made data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from _harness import file
from sklearn.datasets import load_breast_cancer, load_iris, make_classification, make_friedman1
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

# gamma and alpha of each set of `ridge.py`
DATA = {"pol": (0.05, 1e-2), "kin40k": (0.1, 1e-3), "keggundirected": (0.01, 1e-2)}
QUICK = 1_200  # rows of a trial run


@dataclass
class Sample:
    """Training and test rows, in float64."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    def first(self, n: int) -> Sample:
        """Return the same with fewer training rows."""
        return Sample(self.X[:n], self.y[:n], self.X_test, self.y_test)


@dataclass
class Table(Sample):
    """Standardised rows, and the parameters that every contender of `ridge.py` gets."""

    name: str
    gamma: float
    alpha: float = 1.0


@dataclass
class Problem(Sample):
    """Data and the parameters that every contender of `svm.py` gets."""

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


# -- regression -------------------------------------------------------------------------------------------


def table(name: str) -> Table:
    """Return one of the regression sets."""
    data = np.load(file(f"{name}.npz"))
    X, y, test = data["X"].astype(float), data["y"].astype(float).ravel(), data["test"].astype(bool)
    X = (X - X[~test].mean(axis=0)) / np.maximum(X[~test].std(axis=0), 1e-12)
    y = (y - y[~test].mean()) / y[~test].std()
    gamma, alpha = DATA[name]
    return Table(np.ascontiguousarray(X[~test]), y[~test], X[test], y[test], name, gamma, alpha)


def logistic_data(n: int = 10_000) -> Table:
    """Return two classes that overlap, made as for `svm.py`."""
    whole = made(n)
    return Table(whole.X, whole.y, whole.X_test, whole.y_test, "made data", 1 / 30)


def friedman(n: int, test: int, d: int = 5) -> Sample:
    """Return Friedman's first function of d features, five of which matter, with noise of deviation 1."""
    X, y = make_friedman1(n + test, n_features=d, noise=1.0, random_state=0)
    y = (y - y[:n].mean()) / y[:n].std()
    return Sample(X[:n], y[:n], X[n:], y[n:])


def sample(name: str, n: int) -> Sample:
    """Return n training rows, drawn at random, and all test rows of one of the regression sets, by its fixed mask."""
    data = np.load(file(f"{name}.npz"))
    X, y, test = data["X"].astype(float), data["y"].astype(float).ravel(), data["test"].astype(bool)
    rows = np.random.default_rng(0).permutation(np.flatnonzero(~test))[:n]
    center, unit = X[rows].mean(axis=0), np.maximum(X[rows].std(axis=0), 1e-12)
    middle, height = y[rows].mean(), y[rows].std()
    return Sample(
        (X[rows] - center) / unit, (y[rows] - middle) / height, (X[test] - center) / unit, (y[test] - middle) / height
    )
