"""The kernel as a value: parameters, equality, repr, copies, and what estimators do with it."""

import copy
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.cluster import SpectralClustering
from sklearn.decomposition import KernelPCA
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GridSearchCV

from cases import each
from graph_samples import molecules
from mercer.kernels import (
    RBF,
    Constant,
    Cosine,
    Delta,
    FromFunction,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    Spectrum,
    WeisfeilerLehman,
    kernel,
)
from samples import SIMILARITIES, shared_letters, table, vectors, words


class Ridge(RegressorMixin, BaseEstimator):
    """The least that holds a kernel."""

    def __init__(self, kernel=RBF(), alpha=1.0):  # noqa: B008 - a kernel is a value
        self.kernel = kernel
        self.alpha = alpha

    def fit(self, X, y):
        self.kernel_ = self.kernel.resolve(X)
        self.points_ = X
        self.coefficients_ = np.linalg.solve(self.kernel_(X) + self.alpha * np.eye(len(X)), y)
        return self

    def predict(self, X):
        return self.kernel_(X, self.points_) @ self.coefficients_


# -- parameters -------------------------------------------------------------------------------------------


def test_parameters_are_reached_through_the_tree():
    k = 2.0 * RBF(1.0) + (Linear() * Matern(2.5, "auto")).on([0, 1])
    params = k.get_params()
    assert params["left__factor"] == 2.0
    assert params["left__base__scale"] == 1.0
    assert params["right__base__right__nu"] == 2.5
    assert params["right__columns"] == [0, 1]
    assert k.get_params(deep=False) == {"left": k.left, "right": k.right}
    assert k.set_params(left__base__scale=3.0, right__base__right__nu=1.5) is k
    assert k == 2.0 * RBF(3.0) + (Linear() * Matern(1.5, "auto")).on([0, 1])


def test_set_params_replaces_a_part_and_then_its_parameter():
    k = RBF(1.0) + Linear()
    k.set_params(left=Laplacian(2.0), left__scale=5.0)
    assert k == Laplacian(5.0) + Linear()


def test_set_params_changes_one_place_only():
    part = RBF(1.0)
    k = part + part
    k.set_params(left__scale=2.0)
    assert k == RBF(2.0) + RBF(1.0)
    assert part == RBF(1.0)


def test_set_params_that_fails_changes_nothing():
    k = RBF(1.0) + Matern(1.5, 1.0)
    with pytest.raises(ValueError, match=r"nu of Matern must be > 0"):
        k.set_params(left__scale=2.0, right__nu=-1.0)
    assert k == RBF(1.0) + Matern(1.5, 1.0)
    with pytest.raises(ValueError, match=r"scale of RBF must be > 0"):
        k.left.set_params(scale=-1.0)
    assert k.left == RBF(1.0)


def test_unknown_parameters_are_named_with_those_there_are():
    with pytest.raises(ValueError, match=r"RBF has no parameter 'gamma'; it has scale"):
        RBF(1.0).set_params(gamma=1.0)
    with pytest.raises(ValueError, match=r"Linear has no parameter 'scale'; it has none"):
        (RBF(1.0) + Linear()).set_params(right__scale=1.0)
    with pytest.raises(ValueError, match=r"Sum has no parameter 'middle'; it has left, right"):
        (RBF(1.0) + Linear()).set_params(middle__scale=1.0)
    with pytest.raises(ValueError, match=r"parameter 'scale' of RBF is 1\.0, which has no parameters of its own"):
        RBF(1.0).set_params(scale__x=1.0)


def test_otherwise_a_kernel_is_a_value():
    k = RBF(1.0)
    with pytest.raises(FrozenInstanceError):
        k.scale = 2.0
    assert k.replace(scale=2.0) == RBF(2.0)
    assert k == RBF(1.0)
    assert k.replace() is k


def test_a_grid_search_reaches_the_parameters_of_parts():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(60, 1))
    y = np.sin(2 * X[:, 0])
    given = RBF(100.0) + 0.1 * Linear()
    model = Ridge(given, alpha=1e-3)
    search = GridSearchCV(model, {"kernel__left__scale": [0.5, 100.0], "kernel__right__factor": [0.0, 0.1]}, cv=3)
    search.fit(X, y)
    assert search.best_params_["kernel__left__scale"] == 0.5
    assert search.best_estimator_.kernel.left == RBF(0.5)
    assert search.best_score_ > 0.99
    assert given == RBF(100.0) + 0.1 * Linear()  # the candidates were copies
    whole = GridSearchCV(model, {"kernel": [Linear(), RBF("auto"), Polynomial(3)]}, cv=3).fit(X, y)
    assert whole.best_params_["kernel"] == RBF("auto")


def test_an_estimator_sets_parameters_of_its_kernel():
    model = clone(Ridge(RBF(1.0) * Matern(1.5, 2.0)))
    model.set_params(kernel__left__scale=7.0)
    assert model.kernel == RBF(7.0) * Matern(1.5, 2.0)
    assert model.get_params()["kernel__right__nu"] == 1.5
    assert "kernel__left__scale" in model.get_params()


# -- equality, repr, copies -------------------------------------------------------------------------------


def test_equal_trees_are_equal():
    a = 2 * RBF(1) + Linear() ** 2
    b = 2.0 * RBF(np.float64(1.0)) + Linear() ** 2
    assert a == b
    assert hash(a) == hash(b)
    assert len({a, b, Linear()}) == 2
    assert a != b.replace(left=RBF(1.0))


def test_order_and_shape_of_a_tree_matter():
    assert RBF(1.0) + Linear() != Linear() + RBF(1.0)
    assert RBF(1.0) != Laplacian(1.0)
    assert RBF([1.0]) != RBF(1.0)
    assert RBF(1.0) != "RBF(scale=1.0)"


@each(
    ("k", "text"),
    [
        (RBF(), "RBF()"),
        (RBF(2), "RBF(scale=2)"),
        (RBF(np.float32(0.5)), "RBF(scale=0.5)"),
        (RBF(np.array([1.0, 2.0])), "RBF(scale=[1.0, 2.0])"),
        (RBF(list(np.array([1.0, 2.0]))), "RBF(scale=[1.0, 2.0])"),
        (RBF((1.0,)), "RBF(scale=(1.0,))"),
        (Matern(nu=1.5, scale="median"), "Matern(scale='median')"),
        (RBF(1.0) + (Linear() + Constant(2.0)), "RBF(scale=1.0) + (Linear() + Constant(value=2.0))"),
        ((RBF(1.0) + Linear()) * Linear(), "(RBF(scale=1.0) + Linear()) * Linear()"),
        (2 * RBF(1.0) * Linear(), "2.0 * RBF(scale=1.0) * Linear()"),
        (2 * (RBF(1.0) * Linear()), "2.0 * (RBF(scale=1.0) * Linear())"),
        (2 * (3 * Linear()), "2.0 * (3.0 * Linear())"),
        (2 * Linear() ** 2, "2.0 * Linear() ** 2"),
        ((2 * Linear()) ** 2, "(2.0 * Linear()) ** 2"),
        ((Linear() ** 2).normalized(), "(Linear() ** 2).normalized()"),
        (Linear().exp().normalized().on("age"), "Linear().exp().normalized().on('age')"),
        ((0.5 * RBF(1.0)).geometric(), "(0.5 * RBF(scale=1.0)).geometric()"),
    ],
)
def test_repr_is_how_one_would_write_it_and_evaluates_back(k, text):
    assert repr(k) == text
    assert eval(text) == k
    assert hash(eval(text)) == hash(k)


def test_copies_are_equal_and_apart():
    k = RBF([1.0, 2.0]) + Linear().on(["a", "b"])
    for twin in (clone(k), copy.deepcopy(k), pickle.loads(pickle.dumps(k))):
        assert twin == k
        assert twin.left is not k.left
        twin.set_params(left__scale=5.0)
        assert k.left.scale == [1.0, 2.0]


# -- resolving --------------------------------------------------------------------------------------------


def test_a_composite_resolves_its_parts_on_what_they_see():
    X = vectors() * [1.0, 5.0, 20.0]
    k = RBF("auto").on([2]) * 2.0 + (Laplacian("median") + 1.0).compose(np.abs).exp() ** 2
    fitted = k.resolve(X)
    assert fitted.resolved
    assert fitted.left.base.base == RBF("auto").resolve(X[:, [2]])
    assert fitted.right.base.base.base.left == Laplacian("median").resolve(np.abs(X))
    np.testing.assert_array_equal(k(X), fitted(X))


def test_columns_of_a_table_resolve_by_name():
    table = pd.DataFrame(vectors() * [1.0, 5.0, 20.0], columns=["auto", "median", "c"])
    k = (RBF("auto").on("median") + Matern(1.5, "median").on(["auto", "c"])).normalized()
    fitted = k.resolve(table)
    assert fitted.base.left.base == RBF("auto").resolve(table[["median"]])
    assert fitted.base.right.base == Matern(1.5, "median").resolve(table[["auto", "c"]])
    assert RBF(1.0).on("median").resolved  # a column of that name is no rule
    assert RBF(1.0).on("auto")(table, table[:2]).shape == (24, 2)


def test_with_two_sets_of_points_it_must_be_said_which_one_decides():
    X, Z = vectors(), vectors(7, seed=1)
    for k in (RBF(), RBF("median") + Linear(), Matern().on([0]).exp()):
        with pytest.raises(ValueError, match=r"takes a parameter from the data .*kernel\.resolve\(X_train\) first"):
            k(X, Z)
        assert k.resolve(X)(X, Z).shape == (24, 7)


# -- kernels of one's own ---------------------------------------------------------------------------------


@kernel
class Logarithmic(Kernel):
    """-log(1 + r) is no kernel; its exponential is 1 / (1 + r)."""

    scale: float = 1.0

    def of(self, pair):
        return -np.log1p(pair.l1(self.scale))


def test_a_class_of_ones_own_has_the_whole_algebra():
    X = vectors()
    k = Logarithmic(2.0).exp() * RBF(1.0) + 1.0
    distance = np.abs(X[:, None] - X[None]).sum(axis=-1)
    np.testing.assert_allclose(k(X), RBF(1.0)(X) / (1 + distance / 2) + 1, rtol=1e-13)
    assert repr(k) == "Logarithmic(scale=2.0).exp() * RBF(scale=1.0) + Constant()"
    assert k.proof().status == "unproven"
    assert clone(k) == k


def test_a_kernel_must_say_how_it_is_computed():
    @kernel
    class Empty(Kernel):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Empty()


def test_what_a_kernel_has_not_it_says():
    with pytest.raises(TypeError, match=r"Linear\(\) has no known spectral law: Bochner"):
        Linear().spectral_law(2)
    with pytest.raises(TypeError, match=r"RBF\(scale=1.0\) has no finite exact feature map; .*RandomFourier"):
        RBF(1.0).feature_map()


# -- single points ----------------------------------------------------------------------------------------

ROWS = np.random.default_rng(0).normal(size=(12, 3))
OF_ROWS = [RBF(1.5), 0.5 * Linear() + Constant(0.1), RBF(1.0).on([0, 2]) * Polynomial(2), Cosine().normalized()]


@pytest.mark.parametrize("k", OF_ROWS, ids=repr)
def test_two_rows_have_a_number(k):
    matrix = k(ROWS)
    for i, j in ((0, 0), (1, 7)):
        value = k(ROWS[i], ROWS[j])
        assert isinstance(value, float)
        assert value == pytest.approx(matrix[i, j], rel=1e-12)
    np.testing.assert_allclose(pairwise_kernels(ROWS, ROWS[:4], metric=k), matrix[:, :4], rtol=1e-12)


@pytest.mark.parametrize("kind", [list, tuple, pd.Series])
def test_rows_may_be_of_any_kind(kind):
    k = RBF(1.5).on([0, 2]) + Linear()
    assert k(kind(ROWS[0]), kind(ROWS[1])) == pytest.approx(k(ROWS)[0, 1], rel=1e-12)


def test_rows_of_a_table_keep_their_names_and_types():
    people = table(5)
    k = RBF(5.0).on("age") * Delta().on("town") + RBF(1e4).on("income")
    assert k(people.iloc[0], people.iloc[3]) == pytest.approx(k(people)[0, 3], rel=1e-12)


@pytest.mark.parametrize(
    ("k", "points"),
    [(Spectrum(2), words(4)), (FromFunction(shared_letters), words(4)), (WeisfeilerLehman(), molecules(4)),
     (Delta(), [2, 3]), (Precomputed(SIMILARITIES), [2, 3]),
     (FromFunction(lambda a, b: a["x"] * b["x"]), [{"x": 2.0}, {"x": 3.0}])],
    ids=lambda value: repr(value) if isinstance(value, Kernel) else "",
)  # fmt: skip
def test_two_objects_have_a_number(k, points):
    value = k(points[0], points[1])
    assert isinstance(value, float)
    assert value == pytest.approx(k(points)[0, 1], rel=1e-12)


@pytest.mark.parametrize("k", [RBF(0.7), Linear() + 1.0, Laplacian(2.0)], ids=repr)
def test_two_numbers_are_points_of_the_line(k):
    assert k(1.5, np.float32(2)) == k(np.array(1.5), 2) == pytest.approx(k([[1.5]], [[2.0]])[0, 0], rel=1e-12)


def test_one_flat_array_and_flat_arrays_of_objects_mean_what_they_did():
    with pytest.raises(ValueError, match="reshape"):
        RBF(1.0)(ROWS[0])
    numbers = np.array([1.0, 2.0, 4.0])
    np.testing.assert_array_equal(
        FromFunction(lambda a, b: a * b)(numbers, numbers[:2]), np.outer(numbers, numbers[:2])
    )
    np.testing.assert_array_equal(Precomputed(np.eye(3))(np.array([0, 1]), np.array([1, 2])), [[0, 0], [1, 0]])
    np.testing.assert_array_equal(Delta()([1, 2], [2, 2, 3]), [[0, 0, 0], [1, 1, 0]])
    with pytest.raises(ValueError, match=r"use kernel\.resolve"):
        RBF()(ROWS[0], ROWS[1])
    with pytest.raises(ValueError, match=r"X has 3 features and Z has 2"):
        RBF(1.0)(ROWS[0].tolist(), [1.0, 2.0])
    with pytest.raises(ValueError, match=r"its rows have different lengths"):
        RBF(1.0)([[1.0, 2.0], [1.0]], [[1.0]])


def test_kernels_work_inside_scikit_learn():
    k, y = RBF(1.5), ROWS[:, 0]
    K = k(ROWS)

    def both(model, output, kernel="kernel"):
        return [output(clone(model).set_params(**{kernel: v}), D) for v, D in ((k, ROWS), ("precomputed", K))]

    np.testing.assert_allclose(*both(KernelPCA(2), lambda m, D: np.abs(m.fit_transform(D))), atol=1e-8)
    np.testing.assert_allclose(*both(KernelRidge(), lambda m, D: m.fit(D, y).predict(D)), rtol=1e-9)
    labels = both(SpectralClustering(2, random_state=0), lambda m, D: m.fit_predict(D), "affinity")
    assert len(set(zip(*labels, strict=True))) == 2
    features = Nystroem(k, n_components=len(ROWS), random_state=0).fit_transform(ROWS)
    np.testing.assert_allclose(features @ features.T, K, atol=1e-8)
