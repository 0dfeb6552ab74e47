"""Every estimator of the library, fitted to small data in the ways that leave different things behind.

A new estimator is fitted by default; whatever needs other data adds its line here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse, stats
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import mercer
from mercer import RBF, Delta, Linear, Matern, Polynomial, losses
from mercer.estimators import (
    SVC,
    SVR,
    GaussianProcessRegressor,
    KernelLogisticRegression,
    KernelMachine,
    KernelPCA,
    KernelQuantileRegressor,
    KernelRidge,
    KernelRidgeCV,
    LinearSVC,
    NuSVC,
    Pegasos,
    Perceptron,
)
from mercer.features import Monomials, RandomFourier, TaylorFeatures
from mercer.rkhs import Box, MercerFeatures
from mercer.selection import AutoClassifier, AutoRegressor, KernelMixture, KernelSearchCV
from mercer.tables import TableEncoder
from samples import table, words

_RNG = np.random.default_rng(7)
X = np.vstack([_RNG.normal(size=(14, 3)) + shift for shift in (-1.5, 0.0, 1.5)])
CLASSES = np.repeat([2, 5, 9], 14)
NAMES = np.array(["low", "middle", "höchste"])[np.repeat([0, 1, 2], 14)]
Y = X[:, 0] - 0.5 * X[:, 1] ** 2 + 0.1 * _RNG.normal(size=len(X))
WEIGHTS = _RNG.uniform(0.0, 2.0, len(X)) * (np.arange(len(X)) % 7 > 0)
SIMILAR = Polynomial(2)(X)
METHODS = ("predict", "decision_function", "predict_proba", "transform", "score_samples", "inverse_transform")


@dataclass(frozen=True)
class Case:
    """A model with the data that it is fitted to."""

    name: str
    make: Callable[[], Any]
    X: Any = field(default=None, repr=False)
    y: Any = field(default=None, repr=False)
    fit: dict[str, Any] = field(default_factory=dict, repr=False)

    def fitted(self) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = self.make()
            return model.fit(self.X) if self.y is None else model.fit(self.X, self.y, **self.fit)

    def __str__(self) -> str:
        return self.name


def _default(name: str) -> Case:
    cls = getattr(mercer.estimators, name)
    target = CLASSES if is_classifier(cls()) else Y
    return Case(name, cls, X, X[:, :2] ** 2 if name == "KernelCCA" else target)


def mixed(n: int = 36, seed: int = 3) -> pd.DataFrame:
    """A table with what tables have: numbers, whole numbers, names, and holes."""
    found = table(n, seed)
    found["rooms"] = np.arange(n) % 4
    found.loc[::5, "age"] = np.nan
    found.loc[::7, "town"] = None
    return found


def columns(n: int = 48, seed: int = 5) -> pd.DataFrame:
    """A table with every kind of column that an encoder tells apart."""
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D")
    found = pd.DataFrame(
        {
            "id": np.arange(n) + 100,
            "width": rng.normal(3.0, 1.0, n),
            "price": rng.lognormal(3.0, 1.5, n),
            "hue": rng.choice(["red", "green", "grün"], n),
            "sold": np.where(rng.uniform(size=n) < 0.4, "yes", "no"),
            "day": days.strftime("%Y-%m-%d"),
            "country": "NL",
        }
    )
    found.loc[::6, "width"] = np.nan
    found.loc[::9, "hue"] = None
    return found


def preprocessing() -> ColumnTransformer:
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["age", "income"]),
            (
                "towns",
                make_pipeline(
                    SimpleImputer(strategy="constant", fill_value="?"),
                    OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=3),
                ),
                ["town"],
            ),
            (
                "again",
                OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2),
                ["town"],
            ),
        ],
        remainder="passthrough",
    )


_TABLE = mixed()
_COLUMNS = columns()
_SOLD = np.where(_COLUMNS["hue"].eq("red") | (_COLUMNS["width"] > 3.5), "dear", "cheap")
_VALUE = np.log(_COLUMNS["price"].to_numpy()) + (_COLUMNS["hue"] == "green")
_WORDS = words(30)
_LETTERS = np.array([w.count("a") for w in _WORDS])

CASES = [
    *(_default(name) for name in mercer.estimators.__all__),
    Case("SVC of two classes", lambda: SVC(C=10.0, kernel=RBF(1.0)), X, CLASSES > 4),
    Case("SVC of names", lambda: SVC(class_weight={"low": 2.0, "höchste": 0.5}), X, NAMES, {"sample_weight": WEIGHTS}),
    Case("SVC of similarities", lambda: SVC(kernel="precomputed", break_ties=True), SIMILAR, CLASSES),
    Case("SVC, sparse", lambda: SVC(kernel="poly", degree=2), sparse.csr_array(np.where(abs(X) > 1, X, 0.0)), CLASSES),
    Case("SVC, float32", lambda: SVC(dtype="float32"), X.astype(np.float32), CLASSES),
    Case("SVC, linear", lambda: SVC(kernel=Linear(), warm_start=True), X, CLASSES),
    Case("SVC of words", lambda: SVC(kernel=Delta() + 0.5), _WORDS, _LETTERS > 0),
    Case("SVR of a table", lambda: SVR(kernel=RBF(10.0).on("age") * Delta().on("town")), table(20), np.arange(20.0)),
    Case("SVR of objects", lambda: SVR(kernel=Delta()), np.array(_WORDS, dtype=object), _LETTERS.astype(float)),
    Case("KernelRidge of two", lambda: KernelRidge(kernel=RBF([1.0, 2.0, 3.0]), alpha=[0.1, 1.0]), X, np.c_[Y, -Y]),
    Case("KernelRidge, weights", lambda: KernelRidge(kernel="rbf"), X, Y, {"sample_weight": WEIGHTS}),
    Case("KernelRidgeCV, folds", lambda: KernelRidgeCV(kernel="rbf", cv=KFold(3, shuffle=True, random_state=1)), X, Y),
    Case("KernelLogisticRegression of two", lambda: KernelLogisticRegression(kernel="rbf"), X, NAMES == "low"),
    Case("KernelQuantileRegressor of three", lambda: KernelQuantileRegressor(quantiles=[0.1, 0.5, 0.9]), X, Y),
    Case(
        "KernelMachine, Huber in a ball", lambda: KernelMachine(loss=losses.Huber(0.5), penalty=losses.Ball(2.0)), X, Y
    ),
    Case("LinearSVC of two", lambda: LinearSVC(loss="hinge"), X, CLASSES > 4),
    Case("Pegasos, kernel", lambda: Pegasos(0.1, RBF(1.0), max_epochs=30, random_state=0), X, CLASSES),
    Case("Perceptron, kernel", lambda: Perceptron(Polynomial(2)), X, CLASSES > 4),
    Case("KernelPCA with preimages", lambda: KernelPCA(3, kernel="rbf", fit_inverse_transform=True), X),
    Case(
        "GaussianProcessRegressor of two",
        lambda: GaussianProcessRegressor(Matern(2.5, 1.0), normalize_y=True),
        X,
        np.c_[Y, Y**2],
    ),
    Case(
        "GaussianProcessRegressor, cg", lambda: GaussianProcessRegressor(1.0 * RBF(1.0), solver="cg", noise=0.1), X, Y
    ),
    Case("SVC, probabilities", lambda: SVC(probability=True), X, NAMES),
    Case("NuSVC of two, probabilities", lambda: NuSVC(nu=0.3, probability=True, random_state=1), X, CLASSES > 4),
    Case("SVC, kernel chosen", lambda: SVC(kernel="auto"), X, CLASSES),
    Case(
        "search of SVC",
        lambda: KernelSearchCV(SVC(), [RBF, Linear(), RBF([1.0, 2.0, 3.0])], {"C": [1.0, 10.0]}, cv=3),
        X,
        NAMES,
    ),
    Case(
        "search of KernelRidge by two scores",
        lambda: KernelSearchCV(
            KernelRidge(),
            param_grid=[{"kernel": ["linear"], "alpha": [0.1]}, {"kernel": ["rbf"], "gamma": [0.1, 1.0]}],
            cv=KFold(3),
            scoring=["r2", "neg_mean_absolute_error"],
            refit="r2",
        ),
        X,
        Y,
    ),
    Case("AutoClassifier", lambda: AutoClassifier(kernels=["RBF(2.0)", "Linear()"], cv=3), _COLUMNS, _SOLD),
    Case("AutoClassifier of three", lambda: AutoClassifier(kernels=[RBF(1.0), RBF(3.0)], cv=2), X, CLASSES),
    Case(
        "AutoClassifier, sparse",
        lambda: AutoClassifier(kernels=[RBF(2.0)], cv=2),
        sparse.coo_array(X * (X > 0)),
        CLASSES,
    ),
    Case("AutoRegressor", lambda: AutoRegressor(kernels=[RBF(2.0), Linear()], cv=2), _COLUMNS, _VALUE),
    Case("KernelMixture", lambda: KernelMixture([Linear(), RBF(1.0).on([0]), RBF(2.0)]), X, CLASSES),
    Case("KernelMixture for KernelRidge", lambda: KernelMixture([RBF(1.0), RBF(3.0)], "objective", tol=0.01), X, Y),
    Case("TableEncoder", TableEncoder, _COLUMNS),
    Case("table model", lambda: make_pipeline(TableEncoder(), SVC(C=3.0)), _COLUMNS, _SOLD),
    Case("MercerFeatures", lambda: MercerFeatures(RBF(1.5), 8), X),
    Case("MercerFeatures under a law", lambda: MercerFeatures(RBF(1.0), 5, stats.norm(0, 2)), X[:, :1]),
    Case("MercerFeatures on a box", lambda: MercerFeatures(RBF(4.0), 4, Box([-4, -4], [4, 4])), X[:, :2]),
    Case("Monomials", lambda: Monomials(2), X),
    Case("RandomFourier", lambda: RandomFourier(Matern(1.5), 21, random_state=np.random.RandomState(3)), X),
    Case("TaylorFeatures", lambda: TaylorFeatures(scale=2.0), X),
    Case("feature map", lambda: (2.0 * Polynomial(2).on([0, 2]) + Linear()).feature_map(), X),
    Case(
        "pipeline",
        lambda: Pipeline([("prepare", preprocessing()), ("model", SVC(C=3.0))]),
        _TABLE,
        np.where(_TABLE["rooms"] > 1, "big", "small"),
    ),
    Case(
        "scaled target",
        lambda: TransformedTargetRegressor(
            make_pipeline(StandardScaler(), KernelRidge(kernel="rbf")), transformer=StandardScaler()
        ),
        X,
        Y,
    ),
]


@cache
def fitted(name: str) -> tuple[Case, Any]:
    """Return a case and its model, fitted once for all tests of a process."""
    case = next(c for c in CASES if c.name == name)
    return case, case.fitted()


def answers(model: Any, X: Any) -> dict[str, Any]:
    """Return what a model says about points, by every method that answers."""
    found = {}
    for method in METHODS:
        if hasattr(model, method):
            try:
                found[method] = getattr(model, method)(X)
            except (ValueError, TypeError, AttributeError, NotImplementedError) as error:
                found[method] = str(error)
    if (
        isinstance(model, GaussianProcessRegressor) and model.solver != "cg"
    ):  # whose second answer starts from the first
        found["deviation"] = model.predict(X, return_std=True)[1]
    if hasattr(model, "predict_quantiles"):
        found["quantiles"] = model.predict_quantiles(X, [0.1, 0.5, 0.9])
        if hasattr(model, "residual_rows_"):  # older model files do not know them
            found["adaptive quantiles"] = model.predict_quantiles(X, [0.1, 0.5, 0.9], adaptive=True)
    if isinstance(model, KernelMixture):
        found["similarities"] = model.kernel_(X)
    return found


def assert_same(a: dict[str, Any], b: dict[str, Any]) -> None:
    """Both are the same to the last bit."""
    assert set(a) == set(b)
    assert any(not isinstance(v, str) for v in a.values())
    for key, value in a.items():
        if isinstance(value, str):
            assert b[key] == value
            continue
        other = b[key]
        if sparse.issparse(value):
            value, other = value.toarray(), other.toarray()
        assert value.dtype == other.dtype
        assert np.array_equal(value, other), key
