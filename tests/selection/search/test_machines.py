"""Kernel values from statistics that several kernels share, against each kernel by itself."""

import numpy as np
import pytest

from cases import each
from mercer import RBF, SVC, Gram, KernelSearchCV, Laplacian, Linear, Matern, Polynomial
from mercer.estimators.svm import fold
from mercer.points import Points
from mercer.selection.search.machines import Statistics, shared_kinds

KERNELS = [
    RBF(0.3),
    RBF(2.0),
    Matern(1.5, 2.5),
    Laplacian(3.0),
    Polynomial(2),
    0.5 * RBF(2.0) + Linear(),
    RBF(1.0) * Polynomial(3),
    RBF(2.0).exp(),
]


@each("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@each("kernel", KERNELS, ids=repr)
def test_values_are_those_of_the_kernel(kernel, dtype):
    X = np.random.default_rng(0).normal(size=(300, 7)).astype(dtype)
    found = Statistics(Points(X), 10**8).values(Gram(kernel, X))
    assert found is not None
    assert found.dtype == dtype
    wanted = kernel(X.astype(np.float64))
    bound = 1e-4 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(found, wanted, rtol=bound, atol=bound * np.abs(wanted).max())


def test_points_that_are_near_keep_their_distance():
    """Distances far below the lengths of the points, which inner products alone would lose."""
    X = 1e3 + 1e-3 * np.random.default_rng(0).normal(size=(200, 5))
    kernel = RBF(1e-3)
    found = Statistics(Points(X), 10**8).values(Gram(kernel, X))
    np.testing.assert_allclose(found, kernel(X), rtol=1e-6, atol=1e-9)


def test_what_is_not_shared_is_left_to_the_kernel():
    X = np.random.default_rng(0).normal(size=(50, 3))
    kept = Statistics(Points(X), 10**8)
    for kernel in (RBF((1.0, 2.0, 3.0)), RBF(1.0).on([0, 1])):
        assert kept.values(Gram(kernel, X)) is None
    assert Statistics(Points(X), 100).values(Gram(RBF(1.0), X)) is None  # no room
    assert shared_kinds(Gram(RBF(1.0) + Linear(), X)) == {"sqdist", "dot"}


def test_values_that_are_not_finite_are_explained_by_the_kernel():
    X = np.full((10, 1), 1e30, np.float32)
    X[:5] *= -1
    assert Statistics(Points(X), 10**8).values(Gram(Polynomial(3), X)) is None


@pytest.mark.parametrize("features", [4, 200], ids=["narrow", "wide"])
def test_a_search_computes_distances_once_where_they_are_the_work(monkeypatch, features):
    made = []
    compute = Statistics.values

    def counted(self, comparison):
        before = set(self._kept)
        values = compute(self, comparison)
        made.append((set(self._kept) - before, values is not None))
        return values

    monkeypatch.setattr(Statistics, "values", counted)
    X = np.random.default_rng(0).normal(size=(120, features))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    kernels = [RBF(s) for s in (0.3, 1.0, 3.0, 9.0)]
    KernelSearchCV(SVC(), kernels, {"C": [1.0, 10.0]}, cv=3, n_jobs=1, exhaustive=True).fit(X, y)
    if features == 4:  # the core makes them again in less time than it takes to read them
        assert not made
        return
    assert [new for new, _ in made if new] == [{"sqdist"}]
    assert len(made) == len(kernels)
    assert all(used for _, used in made)


def test_a_pair_without_a_coefficient_at_its_bound_is_solved_once_for_all_larger_c(monkeypatch):
    sizes = []
    ordinary = fold.together

    def counted(K, problems, control):
        sizes.append(len(problems))
        return ordinary(K, problems, control)

    monkeypatch.setattr(fold, "together", counted)
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 2)) + 8.0 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    grid = {"C": [0.01, 1e2, 1e3, 1e4]}
    search = KernelSearchCV(SVC(), [RBF(5.0)], grid, cv=3, n_jobs=1, exhaustive=True).fit(X, y)
    assert sizes == 3 * [3, 3]
    each = [SVC(kernel=RBF(5.0), C=C).fit(X[30:], y[30:]).score(X[:30], y[:30]) for C in grid["C"]]
    assert each[1:] == [1.0] * 3
    assert (search.cv_results_["mean_test_score"][1:] == 1.0).all()
