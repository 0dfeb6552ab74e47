"""Points that are no vectors go the whole way: fit, predict, search, function, file."""

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer import SVC, KernelPCA, KernelRidge, KernelSearchCV, Perceptron
from mercer.kernels import (
    RBF,
    Categorical,
    FromDissimilarity,
    Intersection,
    Kendall,
    Mallows,
    MinMax,
    PowerSeries,
    SetKernel,
    Tanimoto,
)

N = 40
RNG = np.random.default_rng(0)
SIDE = np.arange(N) % 2  # what is to be learned


def taken(points, rows):
    if isinstance(points, list):
        return [points[i] for i in rows]
    return points.iloc[rows] if hasattr(points, "iloc") else points[rows]


SETS = [frozenset(RNG.choice(list("abcdef" if side else "defghi"), 4).tolist()) for side in SIDE]
BAGS = [RNG.normal(2.0 * side, 1.0, size=(RNG.integers(1, 9), 2)) for side in SIDE]
RANKS = np.array([RNG.permutation(6) * 0.3 + (np.arange(6) if side else np.arange(6)[::-1]) for side in SIDE])
PEOPLE = pd.DataFrame({"age": RNG.normal(40, 9, N), "job": [("cook", None)[side] for side in SIDE]})
LINE = 3.0 * SIDE + RNG.random(N)
CASES = [
    (Tanimoto(), SETS),
    (MinMax() + Intersection(), SETS),
    (SetKernel(RBF()), BAGS),
    (SetKernel(RBF(1.0), "sum").normalized(), BAGS),
    (Kendall(), RANKS),
    (Mallows(0.2), RANKS),
    (PowerSeries(Kendall(), [1.0, 1.0, 0.5]), RANKS),
    (RBF(10.0).on("age") * Categorical(0.1).on("job"), PEOPLE),
    (FromDissimilarity(np.abs(LINE[:, None] - LINE), scale="median"), np.arange(N)),
    (FromDissimilarity(np.abs(LINE[:, None] - LINE), kind="centred"), np.arange(N)),
]


@pytest.mark.parametrize(("kernel", "points"), CASES, ids=[repr(kernel)[:40] for kernel, _ in CASES])
def test_the_whole_way(kernel, points, tmp_path):
    train, test = np.arange(28), np.arange(28, N)
    X, Z = taken(points, train), taken(points, test)
    model = SVC(kernel=kernel).fit(X, SIDE[train])
    assert (model.predict(Z) == SIDE[test]).mean() >= 0.9
    assert model.certificate_.converged
    assert model.certificate_.verify(X, SIDE[train])
    np.testing.assert_allclose(model.function_(Z), model.decision_function(Z), atol=1e-10)
    projected = model.function_.project(X)
    assert projected.relative <= 1e-6
    mercer.save(model, tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(again.decision_function(Z), model.decision_function(Z))
    ridge = KernelRidge(0.1, kernel=kernel).fit(X, 2.0 * SIDE[train] - 1)
    assert np.abs(ridge.predict(Z) - (2 * SIDE[test] - 1)).mean() < 0.7
    assert KernelPCA(2, kernel=kernel).fit_transform(X).shape == (28, 2)
    online = Perceptron(kernel=kernel).fit(X, SIDE[train])
    assert (online.predict(Z) == SIDE[test]).mean() >= 0.8
    search = KernelSearchCV(SVC(), {"kernel": [kernel, 2.0 * kernel]}, cv=2).fit(X, SIDE[train])
    assert search.best_score_ >= 0.8
