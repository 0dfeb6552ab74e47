"""What may be learned from: matrices, tables, strings, similarities, functions; and scikit-learn's tools around it."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.svm
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from cases import each
from mercer.estimators import (
    SVC,
    SVR,
    GaussianProcessRegressor,
    KernelKMeans,
    KernelLogisticRegression,
    KernelPCA,
    KernelQuantileRegressor,
    KernelRidge,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Pegasos,
    Perceptron,
)
from mercer.kernels import RBF, Constant, Delta, FromFunction, Laplacian, Linear, Precomputed
from mercer.rkhs import RKHSVector
from mercer.selection import KernelSearchCV

X, Y = load_iris(return_X_y=True)
MODELS = [SVC(), NuSVC(nu=0.3), SVR(), NuSVR(), OneClassSVM()]


def output(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def shared(a, b):
    return float(len(set(a) & set(b)))


WORDS = ["abc", "abd", "bcd", "acd", "xyz", "xyw", "yzw", "xzw"]
LABELS = np.array([0, 0, 0, 0, 1, 1, 1, 1])


# -- precomputed ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_given_similarities_are_those_of_the_kernel(model):
    kernel = RBF(1.0)
    direct = clone(model).set_params(kernel=kernel, tol=1e-10).fit(X, Y)
    given = clone(model).set_params(kernel="precomputed", tol=1e-10).fit(kernel(X), Y)
    np.testing.assert_allclose(output(given, kernel(X[::3], X)), output(direct, X[::3]), atol=1e-4)
    assert np.array_equal(given.support_, direct.support_)
    assert given.support_vectors_.shape == (0, 0)
    assert given.certificate_.verify(kernel(X), Y).relative_gap <= 1e-9
    functions = given.function_ if isinstance(given.function_, RKHSVector) else (given.function_,)
    others = direct.function_ if isinstance(direct.function_, RKHSVector) else (direct.function_,)
    for f, g in zip(functions, others, strict=True):
        assert f.norm() == pytest.approx(g.norm(), rel=1e-4)


def test_given_similarities_have_the_right_shape():
    with pytest.raises(ValueError, match=r"square matrix.*\(150, 4\)"):
        SVC(kernel="precomputed").fit(X, Y)
    model = SVC(kernel="precomputed").fit(Linear()(X), Y)
    with pytest.raises(ValueError, match="4 features, but SVC is expecting 150"):
        model.predict(X)


@pytest.mark.parametrize(
    "model", [SVC(kernel="precomputed"), KernelRidge(kernel="precomputed"), KernelPCA(kernel="precomputed")], ids=repr
)
def test_given_similarities_do_not_depend_on_the_order(model):
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    K = RBF(1.0)(X)
    rounded = K.copy()
    rounded[3, 7] *= 1 + 1e-7  # as float32 leaves it
    clone(model).fit(rounded, y)
    K[3, 7] += 0.25
    text = rf"asymmetric: K\[3, 7\] is {K[3, 7]:.6g} and K\[7, 3\] is {K[7, 3]:.6g}.*\(K \+ K.T\) / 2"
    with pytest.raises(ValueError, match=text):
        clone(model).fit(K, y)
    with pytest.raises(ValueError, match="asymmetric"):
        clone(model).set_params(kernel=Precomputed(K)).fit(np.arange(40), y)


def test_an_asymmetric_kernel_function_is_refused():
    with pytest.raises(ValueError, match="matrix of the kernel function K is asymmetric"):
        SVC(kernel=lambda A, B: A[:, :1] + 0 * B[:, 0]).fit(X, Y)


def test_given_similarities_are_cut_on_both_sides_by_cross_validation():
    scores = cross_val_score(SVC(kernel="precomputed"), RBF(1.0)(X), Y)
    np.testing.assert_allclose(scores, cross_val_score(SVC(kernel=RBF(1.0)), X, Y), atol=0.04)


def test_a_matrix_in_the_kernel_compares_indices():
    model = SVC(kernel=Precomputed(RBF(1.0)(X)), tol=1e-10).fit(np.arange(150), Y)
    assert np.array_equal(model.predict(np.arange(150)), SVC(kernel=RBF(1.0), tol=1e-10).fit(X, Y).predict(X))


# -- functions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_a_function_of_two_matrices_is_a_kernel(model):
    by_function = clone(model).set_params(kernel=laplacian_kernel, tol=1e-10).fit(X, Y)
    by_kernel = clone(model).set_params(kernel=Laplacian(4.0), tol=1e-10).fit(X, Y)
    np.testing.assert_allclose(output(by_function, X), output(by_kernel, X), atol=1e-4)
    assert by_function.certificate_.verify(X, Y).relative_gap <= 1e-9


def test_a_function_agrees_with_scikit_learn():
    ours = SVC(kernel=laplacian_kernel, tol=1e-10).fit(X, Y)
    theirs = sklearn.svm.SVC(kernel=laplacian_kernel, tol=1e-8).fit(X, Y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


def test_a_function_that_returns_another_shape_is_named():
    with pytest.raises(ValueError, match="the kernel function returned shape"):
        SVC(kernel=lambda A, B: A).fit(X, Y)


# -- objects ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel", [FromFunction(shared), lambda A, B: np.array([[shared(a, b) for b in B] for a in A])]
)
def test_strings_are_learned_from(kernel):
    model = SVC(kernel=kernel, C=10.0).fit(WORDS, LABELS)
    assert np.array_equal(model.predict(["ab", "zw"]), [0, 1])
    assert set(model.support_vectors_) <= set(WORDS)
    assert model.certificate_.verify(WORDS, LABELS).converged
    assert not hasattr(model, "n_features_in_")
    assert len(model.margins(WORDS, LABELS)) == len(WORDS)
    assert model.margins(WORDS, LABELS)["alpha"].notna().all()


def test_strings_go_through_a_search():
    search = GridSearchCV(SVC(kernel=FromFunction(shared)), {"C": [0.1, 10.0]}, cv=2).fit(WORDS, LABELS)
    assert search.best_score_ > 0.7
    assert OneClassSVM(kernel=FromFunction(shared)).fit(WORDS).predict(["qq"])[0] == -1


class Graph:
    """Has a length and entries, and is no sequence."""

    def __init__(self, nodes):
        self.nodes = frozenset(nodes)

    def __len__(self):
        return len(self.nodes)

    def __iter__(self):
        return iter(self.nodes)

    def __getitem__(self, node):
        raise KeyError(node)


SEQUENCES = [[i % 5 + 4 * (i % 2)] * (1 + i % 4) + [i % 3 + 5 * (i % 2)] for i in range(24)]
PARITY = np.arange(24) % 2
OBJECTS = {
    "arrays": [np.array(s, dtype=float) for s in SEQUENCES],
    "tokens": [[str(token) for token in s] for s in SEQUENCES],
    "tuples": [tuple(s) for s in SEQUENCES],
    "sets": [set(s) for s in SEQUENCES],
    "graphs": [Graph(s) for s in SEQUENCES],
}
OBJECT_MODELS = [
    *MODELS,
    KernelRidge(),
    KernelLogisticRegression(),
    KernelQuantileRegressor(),
    GaussianProcessRegressor(optimizer=None),
    KernelPCA(2),
    KernelKMeans(2),
    Perceptron(),
    Pegasos(lam=0.1, tol=0.5),
]


@each("kind", OBJECTS)
@each("model", OBJECT_MODELS, ids=lambda m: type(m).__name__)
def test_objects_of_any_length_have_no_width(model, kind):
    kernel, objects = FromFunction(shared), OBJECTS[kind]
    given = clone(model).set_params(kernel=kernel).fit(objects, PARITY)
    assert not hasattr(given, "n_features_in_")
    answer = given.transform if isinstance(model, KernelPCA) else given.predict
    whole = answer(objects)
    for i in (1, 2, 3):  # of other lengths than the first
        np.testing.assert_allclose(answer([objects[i]])[0], whole[i], atol=1e-9)
    if isinstance(model, SVC):
        assert given.margins(objects, PARITY)["alpha"].notna().all()


@pytest.mark.parametrize("kind", OBJECTS)
def test_objects_of_any_length_go_through_searches(kind):
    kernel, objects = FromFunction(shared), OBJECTS[kind]
    asked = cross_val_score(SVC(kernel=kernel), objects, PARITY, cv=3)
    np.testing.assert_array_equal(asked, cross_val_score(SVC(kernel="precomputed"), kernel(objects), PARITY, cv=3))
    np.testing.assert_array_equal(asked, cross_val_score(make_pipeline(SVC(kernel=kernel)), objects, PARITY, cv=3))
    grid = {"C": [0.01, 1.0]}
    both = [
        GridSearchCV(SVC(kernel=kernel), grid, cv=3).fit(objects, PARITY),
        KernelSearchCV(SVC(), [kernel], grid, cv=3).fit(objects, PARITY),
    ]
    assert both[0].best_score_ == both[1].best_score_ > 0.9
    assert np.array_equal(*(search.predict(objects[1:4]) for search in both))


def test_a_model_forgets_the_width_of_an_earlier_fit():
    model = SVC(kernel=FromFunction(lambda a, b: float(len(a) * len(b)))).fit(pd.DataFrame(X), Y)
    assert model.n_features_in_ == 4
    assert not hasattr(model.fit(OBJECTS["tuples"], PARITY), "n_features_in_")


def test_a_table_is_compared_by_its_columns():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(40, 10, 80), "town": rng.choice(["a", "b"], 80)}, index=np.arange(80) + 100)
    label = np.where((table.age > 40) == (table.town == "a"), "old", "new")
    kernel = RBF(10.0).on("age") * (Delta().on("town") + Constant(0.1))
    model = SVC(kernel=kernel, C=10.0).fit(table, label)
    assert model.score(table, label) > 0.9
    assert isinstance(model.support_vectors_, pd.DataFrame)
    assert list(model.feature_names_in_) == ["age", "town"]
    assert list(model.margins(table, label).index) == list(table.index)
    other = pl.DataFrame({"age": table.age.to_numpy(), "town": list(table.town)})
    assert np.array_equal(SVC(kernel=kernel, C=10.0).fit(other, label).predict(other), model.predict(table))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table.rename(columns={"age": "years"}))


def test_numeric_tables_are_matrices():
    table = pd.DataFrame(X, columns=list("abcd"))
    model = SVC().fit(table, Y)
    np.testing.assert_array_equal(model.decision_function(table), SVC().fit(X, Y).decision_function(X))
    assert list(model.feature_names_in_) == list("abcd")
    np.testing.assert_array_equal(
        SVC().fit(pl.DataFrame(X), Y).decision_function(pl.DataFrame(X)), model.decision_function(table)
    )


def test_another_number_of_features_is_named():
    for model in (SVC(), SVC(kernel=laplacian_kernel)):
        with pytest.raises(ValueError, match="3 features, but SVC is expecting 4"):
            model.fit(X, Y).predict(X[:, :3])


# -- scikit-learn's tools ---------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_a_model_survives_pickling_and_cloning(model):
    fitted = clone(model).fit(X, Y)
    before = output(fitted, X)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(output(again, X), before)
    assert again.certificate_.verify(X, Y).converged
    assert pickle.loads(pickle.dumps(fitted.certificate_)).verify(X, Y).converged
    with pytest.raises(NotFittedError):
        clone(fitted).predict(X)
    with pytest.raises(NotFittedError):
        clone(fitted).certificate_


def test_a_pickle_holds_the_support_vectors_and_not_the_data():
    big, y = make_moons(2000, noise=0.1, random_state=0)
    model = SVC(C=100.0).fit(big, y)
    model.predict(big)
    assert len(pickle.dumps(model)) < 200 * len(model.support_) + 20_000 < big.nbytes + 30_000
    given = SVC(kernel="precomputed", C=100.0).fit(RBF(0.5)(big), y)
    assert len(pickle.dumps(given)) < 8 * len(given.support_) * (len(given.support_) + 20) + 20_000


def test_pipelines_and_searches_reach_the_kernel():
    pipe = make_pipeline(StandardScaler(), SVC(kernel=RBF(1.0) + Linear()))
    search = GridSearchCV(pipe, {"svc__C": [0.1, 1.0], "svc__kernel__left__scale": [0.5, 2.0]}, cv=3).fit(X, Y)
    assert search.best_score_ > 0.93
    search = GridSearchCV(SVC(), {"kernel": ["linear", RBF("median"), "rbf"]}, cv=3).fit(X, Y)
    assert search.best_score_ > 0.93


def test_a_model_is_not_spoiled_by_new_parameters():
    model = SVC(kernel="rbf").fit(X, Y)
    before = model.decision_function(X)
    model.set_params(kernel="linear", gamma=7.0)
    np.testing.assert_array_equal(model.decision_function(X), before)


# -- targets in a column ----------------------------------------------------------------------------------

SEVERAL = {"FeatureLearningRegressor", "KernelMachine", "KernelRidge", "KernelRidgeCV", "Ridge"}  # targets
LEARNERS = [
    name
    for name in mercer.estimators.__all__
    for model in [getattr(mercer.estimators, name)()]
    if (is_classifier(model) or is_regressor(model)) and name != "GaussianProcessRegressor"
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", LEARNERS)
def test_targets_in_a_column(name):
    data, model = X[::3], getattr(mercer.estimators, name)()
    if name in ("Pegasos", "Perceptron"):
        model.set_params(random_state=0)
    if name.startswith("FeatureLearning"):
        model.set_params(families="RBF", joint=1)
    y = np.array(["a", "b", "c"])[Y[::3]] if is_classifier(model) else data[:, 0] - np.sin(data[:, 2])
    expected = clone(model).fit(data, y).predict(data)
    for column in (y[:, None], pd.DataFrame({"kind": y})):
        if name in SEVERAL:  # one of them is one of several
            found = clone(model).fit(data, column)
            shape = (-1,) if name == "Ridge" else (-1, 1)  # as scikit-learn's Ridge and KernelRidge
            np.testing.assert_allclose(found.predict(data), expected.reshape(shape))
        else:
            with pytest.warns(DataConversionWarning):
                found = clone(model).fit(data, column)
            assert np.array_equal(found.predict(data), expected)
        if hasattr(found, "certificate_"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataConversionWarning)
                assert found.certificate_.verify(data, column).primal == pytest.approx(found.certificate_.primal)
    for flat in (y.tolist(), pd.Series(y, index=np.arange(len(y))[::-1])):
        assert np.array_equal(clone(model).fit(data, flat).predict(data), expected)
