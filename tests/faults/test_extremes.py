"""Extreme numbers for every estimator: a sentence, or a model whose answers are finite."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier

from mercer import RBF, Linear, Matern, Polynomial, estimators

SENTENCE = 600  # characters
MODELS = [*(getattr(estimators, name) for name in estimators.__all__)]
KERNELS = ("linear", "rbf", "poly", "sigmoid", RBF(), RBF(1e-200), RBF(1e200), Matern(1.5), 1e300 * Linear())
KERNELS = (*KERNELS, 1e-300 * RBF(1.0), Polynomial(5), 2.0 * RBF(1.0) + Linear())
LOSSES = ("squared", "logistic", "hinge", "absolute", "huber", "squared_hinge", "epsilon_insensitive", "pinball")
SIZES = 10.0 ** np.array([-320, -308, -200, -160, -100, -30, -8, 0, 0, 0, 8, 30, 100, 153, 160, 200, 300, 307])
STRENGTHS = [1e-300, 1e-100, 1e-16, 1e-3, 1.0, 1e3, 1e16, 1e100, 1e300]
ZERO_OR_MORE, EITHER = [0.0, *STRENGTHS], [False, True]
SHARES = [1e-300, 1e-16, 1e-3, 0.5, 1 - 1e-16, 1.0]
PARAMETERS: dict[str, list[Any]] = {
    **dict.fromkeys(("C", "lam", "gamma", "penalty", "eta0", "delta", "bandwidth", "kappa"), STRENGTHS),
    **dict.fromkeys(("alpha", "epsilon", "noise"), ZERO_OR_MORE),
    **dict.fromkeys(("fit_intercept", "normalize_y", "probability", "average", "project"), EITHER),
    "nu": SHARES,
    "quantiles": [[1e-300], [0.5], [1e-3, 0.5, 1 - 1e-16]],
    "alphas": [[1e-300, 1.0], [1.0, 1e300], [1e-16]],
    "degree": [1, 2, 30],
    "coef0": [0.0, 1.0, -1.0, 1e200, 1e-200],
    "loss": list(LOSSES),
    "n_components": [1, 2, 50],
    "n_clusters": [1, 2, 3],
}
# Where the defaults would let a hopeless problem run for its full number of passes.
QUICK = {"max_epochs": 20, "random_state": 0, "time_limit": 1.0}


@dataclass(frozen=True)
class Extreme:
    """A small problem with something extreme about it."""

    model: type
    parameters: dict[str, Any]
    X: Any
    y: Any
    weights: Any

    def __str__(self) -> str:
        data = f"X {self.X.dtype} {self.X.shape} up to {np.abs(np.asarray(self.X, dtype=float)).max():.3g}"
        return f"{self.model.__name__}({self.parameters}) on {data}, y {np.asarray(self.y).ravel()[:3]}"


def draw(rng: np.random.Generator) -> Extreme:
    model = MODELS[rng.integers(len(MODELS))]
    n, d = int(rng.integers(1, 41)), int(rng.integers(1, 6))
    return Extreme(model, _parameters(model, rng), _points(n, d, rng), _targets(model, n, rng), _weights(n, rng))


def _choice(rng: np.random.Generator, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def _parameters(model: type, rng: np.random.Generator) -> dict[str, Any]:
    names = [name for name in signature(model).parameters if name in PARAMETERS]
    chosen = {name: _choice(rng, PARAMETERS[name]) for name in names if rng.random() < 0.35}
    if "kernel" in signature(model).parameters and model is not estimators.KernelDensity and rng.random() < 0.8:
        chosen["kernel"] = _choice(rng, KERNELS)
    if model not in (estimators.KernelMachine,):
        chosen.pop("loss", None)
    if model is estimators.Perceptron:
        chosen.pop("alpha", None)
    return chosen | {name: value for name, value in QUICK.items() if name in signature(model).parameters}


def _points(n: int, d: int, rng: np.random.Generator) -> Any:
    X = rng.normal(size=(n, d))
    kind = rng.integers(8)
    if kind == 1:
        X[:] = X[0]
    elif kind == 2:
        X = X[rng.integers(0, n, n) // 2]
    elif kind == 3:
        X = np.outer(X[:, 0], X[0])
    elif kind == 4:
        X = 1.0 + 1e-14 * X
    elif kind == 5:
        X[:, 0] = 0.0
    with np.errstate(all="ignore"):
        X = X * _choice(rng, SIZES)
    if kind == 6:
        X[rng.integers(n), rng.integers(d)] = 1e300
    X = np.clip(X, -1.7e308, 1.7e308)
    form = rng.integers(10)
    with np.errstate(all="ignore"):
        if form == 1:
            return np.clip(X, -9e18, 9e18).astype(np.int64)
        if form == 2:
            return np.clip(X, -3e38, 3e38).astype(np.float32)
    if form == 3:
        return X > 0
    if form == 4:
        return X.astype(object)
    if form == 5:
        return np.asfortranarray(X)
    if form == 6:
        return np.repeat(X, 2, axis=1)[:, ::2][::-1]
    if form == 7:
        X.setflags(write=False)
    return X


def _targets(model: type, n: int, rng: np.random.Generator) -> Any:
    if is_classifier(model()) or (model is estimators.KernelMachine and rng.random() < 0.5):
        codes = rng.integers(0, int(rng.integers(1, 4)), n)
        names = _choice(rng, [[0, 1, 2], [-1, 1, 7], ["a", "ü", "c"], [1e300, -1e300, 0.5], [True, False, True]])
        return np.array(names, dtype=_choice(rng, [None, object]))[codes]
    if rng.random() < 0.03:
        return np.array(["a", "ü"], dtype=object)[rng.integers(0, 2, n)]
    y = rng.normal(size=(n, 2) if model is estimators.KernelCCA else n)
    with np.errstate(all="ignore"):
        y = y * _choice(rng, [1e-300, 1e-160, 1e-8, 1.0, 1.0, 1.0, 1e8, 1e150, 1e300])
    return np.full_like(y, y[0]) if rng.random() < 0.2 else y


def _weights(n: int, rng: np.random.Generator) -> Any:
    if rng.random() < 0.5:
        return None
    weights = rng.uniform(0.5, 1.5, n) if rng.random() < 0.5 else np.ones(n)
    weights *= _choice(rng, [1e-300, 1e-160, 1e-16, 1.0, 1e16, 1e160, 1e300])
    if rng.random() < 0.3:
        weights[rng.random(n) < 0.5] = 0.0
    return weights


def answers(model: Any, X: Any) -> dict[str, Any]:
    """Return every number that a fitted model says of its training points."""
    found = {}
    for method in ("predict", "decision_function", "predict_proba", "transform", "score_samples"):
        if hasattr(model, method):
            found[method] = getattr(model, method)(X)
    return found


def fault(case: Extreme) -> str:
    """Return what is wrong with how a case ends; "" if nothing is."""
    takes = signature(case.model.fit).parameters
    extra = {} if case.weights is None or "sample_weight" not in takes else {"sample_weight": case.weights}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = case.model(**case.parameters).fit(case.X, case.y, **extra)
            said = answers(model, case.X)
        except (ValueError, TypeError, FloatingPointError) as error:
            text = str(error)
            raw = not text or len(text) > SENTENCE or text[-1] != "."
            end = f"{type(error).__name__}: {text[:200]}" if raw else ""
            said = {}
        except Exception as error:
            end, said = f"{type(error).__name__}: {error}", {}
        else:
            end = ""
    for method, values in said.items():
        if case.model is estimators.KernelDensity:  # of a point of weight 0, far off, the density is 0
            values = np.where(values == -np.inf, 0.0, values)
        if np.asarray(values).dtype.kind == "f" and not np.isfinite(values).all():
            end = f"{method} is not finite"
    if numpy := [str(w.message) for w in caught if w.category is RuntimeWarning]:
        end = end or f"RuntimeWarning: {numpy[0]}"
    return end


def faults(count: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    found = []
    for number in range(count):
        case = draw(rng)
        if what := fault(case):
            found.append(f"{number}: {case}: {what}")
    return found


def test_extreme_inputs_end_in_a_sentence_or_in_finite_answers():
    assert faults(150) == []


@pytest.mark.long
def test_many_extreme_inputs_end_in_a_sentence_or_in_finite_answers(capsys):
    found = faults(5000, seed=1)
    with capsys.disabled():
        print(f"\n5000 extreme inputs: {len(found)} failures")  # noqa: T201
    assert found == []
