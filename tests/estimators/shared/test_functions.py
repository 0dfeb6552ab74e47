"""Every model exposes what it found as functions of a space, and their values are its values."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons

from mercer.estimators import (
    SVC,
    SVR,
    KernelLogisticRegression,
    KernelMachine,
    KernelQuantileRegressor,
    KernelRidge,
    KernelRidgeCV,
    KernelRobustRegressor,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Pegasos,
    Perceptron,
    Ridge,
)
from mercer.kernels import RBF, FromFunction, Laplacian, Linear
from mercer.rkhs import RKHSFunction, RKHSVector
from samples import shared_letters, words

X, LABELS = make_moons(60, noise=0.2, random_state=0)
Y = X[:, 0] - np.sin(3 * X[:, 1])
IRIS = load_iris(return_X_y=True)
KERNEL = RBF(1.0)

REGRESSORS = [
    SVR(kernel=KERNEL),
    NuSVR(kernel=KERNEL),
    KernelRidge(0.1, kernel=KERNEL),
    KernelRidge(0.1, kernel=KERNEL, fit_intercept=True),
    KernelRidgeCV([0.1, 1.0], kernel=KERNEL),
    KernelMachine(KERNEL, "huber"),
    KernelQuantileRegressor(0.7, kernel=KERNEL),
    KernelRobustRegressor(kernel=KERNEL),
    LinearSVR(),
    Ridge(0.5),
]
CLASSIFIERS = [
    SVC(kernel=KERNEL, decision_function_shape="ovo"),
    NuSVC(kernel=KERNEL, nu=0.2, decision_function_shape="ovo"),
    KernelMachine(KERNEL, "hinge"),
    KernelLogisticRegression(kernel=KERNEL),
    LinearSVC(),
    Pegasos(kernel=KERNEL, max_epochs=3, random_state=0),
    Pegasos(max_epochs=3, random_state=0),
    Perceptron(kernel=KERNEL, max_epochs=2, random_state=0),
    Perceptron(max_epochs=2, random_state=0),
]
WITH_KERNEL = [*REGRESSORS[:-2], *CLASSIFIERS[:4], OneClassSVM(kernel=KERNEL)]  # and take similarities


def name(model):
    kernel = getattr(model, "kernel", "")
    parts = [
        type(model).__name__,
        "linear" if kernel is None else "",
        "b" if getattr(model, "fit_intercept", 0) else "",
    ]
    return "-".join(filter(None, parts))


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("model", REGRESSORS, ids=name)
def test_regressors(model):
    fitted = clone(model).fit(X, Y)
    assert isinstance(fitted.function_, RKHSFunction)
    assert_close(fitted.function_(X), fitted.predict(X))
    sparse_fit = clone(model).fit(sparse.csr_array(X), Y)
    assert_close(sparse_fit.function_(sparse.csr_array(X)), sparse_fit.predict(sparse.csr_array(X)))


@pytest.mark.parametrize("model", CLASSIFIERS, ids=name)
def test_two_classes(model):
    fitted = clone(model).fit(X, LABELS)
    assert isinstance(fitted.function_, RKHSFunction)
    assert_close(fitted.function_(X), fitted.decision_function(X))
    sparse_fit = clone(model).fit(sparse.csr_array(X), LABELS)
    assert_close(sparse_fit.function_(sparse.csr_array(X)), sparse_fit.decision_function(sparse.csr_array(X)))


@pytest.mark.parametrize("model", CLASSIFIERS, ids=name)
def test_three_classes(model):
    fitted = clone(model).fit(*IRIS)
    F = fitted.function_
    assert isinstance(F, RKHSVector)
    assert_close(F(IRIS[0]), fitted.decision_function(IRIS[0]))
    assert len(F) == 3
    for j, f in enumerate(F):
        assert_close(f(IRIS[0]), fitted.decision_function(IRIS[0])[:, j])
        assert f.norm() == pytest.approx(F.norms()[j], rel=1e-6)


def test_one_class():
    fitted = OneClassSVM(kernel=KERNEL, nu=0.3).fit(X)
    assert_close(fitted.function_(X), fitted.decision_function(X))
    assert fitted.function_.offset == -fitted.offset_


@pytest.mark.parametrize("model", [KernelRidge(kernel=KERNEL), KernelMachine(KERNEL), Ridge()], ids=name)
def test_several_outputs(model):
    targets = np.stack([Y, Y**2, X[:, 0]], axis=1)
    fitted = clone(model).fit(X, targets)
    assert isinstance(fitted.function_, RKHSVector)
    assert_close(fitted.function_(X), fitted.predict(X))
    one = clone(model).fit(X, targets[:, :1])
    assert isinstance(one.function_, RKHSVector)
    assert_close(one.function_(X), one.predict(X).reshape(-1, 1))


def test_quantiles_and_counts():
    fitted = KernelQuantileRegressor((0.2, 0.8), kernel=KERNEL).fit(X, Y)
    assert_close(fitted.function_(X), fitted.predict(X))
    counts = KernelMachine(KERNEL, "poisson").fit(X, LABELS)
    assert_close(np.exp(counts.function_(X)), counts.predict(X))  # f is the logarithm of what is predicted


@pytest.mark.parametrize("model", WITH_KERNEL, ids=name)
def test_similarities_and_functions(model):
    y = LABELS if hasattr(model, "decision_function") and not isinstance(model, OneClassSVM) else Y
    K = Laplacian(2.0)(X)
    given = clone(model).set_params(kernel="precomputed").fit(K, y)
    values = given.decision_function(K) if hasattr(given, "decision_function") else given.predict(K)
    f = given.function_
    at = getattr(given, "support_", np.arange(len(K)))  # its points are the numbers of these samples
    assert_close(f(np.arange(len(at))), values[at])
    assert_close(K[:, at] @ f.coefficients + f.offset, values)
    if not isinstance(model, KernelRidge | KernelRidgeCV):
        called = clone(model).set_params(kernel=Laplacian(2.0)).fit(X, y)
        assert_close(
            called.function_(X),
            called.decision_function(X) if hasattr(called, "decision_function") else called.predict(X),
        )


def test_three_classes_of_similarities():
    K = KERNEL(IRIS[0])
    for model in (
        SVC(kernel="precomputed", decision_function_shape="ovo"),
        KernelLogisticRegression(kernel="precomputed"),
    ):
        fitted = model.fit(K, IRIS[1])
        at = getattr(fitted, "support_", np.arange(150))
        assert_close(fitted.function_(np.arange(len(at))), fitted.decision_function(K)[at])


def test_strings():
    texts = words(30)
    y = np.array([w.count("a") for w in texts])
    k = FromFunction(shared_letters) + 0.1
    for model in (
        SVR(kernel=k),
        KernelRidge(kernel=k),
        SVC(kernel=k, decision_function_shape="ovo"),
        Pegasos(kernel=k),
    ):
        fitted = model.fit(texts, y if not hasattr(model, "decision_function") else np.minimum(y, 2))
        found = fitted.decision_function(texts) if hasattr(fitted, "decision_function") else fitted.predict(texts)
        assert_close(fitted.function_(texts), found)


def test_the_norm_is_that_of_w_whatever_the_offset():
    for model in (LinearSVC().fit(X + 100.0, LABELS), LinearSVR().fit(X + 100.0, Y), Ridge().fit(X + 100.0, Y)):
        w, f = np.ravel(model.coef_), model.function_
        assert f.kernel == Linear()
        assert f.norm() == pytest.approx(np.linalg.norm(w))
        assert f.offset == pytest.approx(float(np.ravel(model.intercept_)[0]))
        assert f.gradient(X) == pytest.approx(np.tile(w, (len(X), 1)))
    machine = SVC(kernel=KERNEL).fit(X, LABELS)
    assert machine.margin_width_ == pytest.approx(2 / machine.function_.norm())
    many = SVC(kernel=KERNEL).fit(*IRIS)
    assert many.margin_width_ == pytest.approx(2 / many.function_.norms())


def test_class_pairs_hold_their_own_support_vectors():
    F = SVC(kernel=KERNEL).fit(*IRIS).function_
    assert sparse.issparse(F.coefficients)
    assert all(len(f) < len(F.points) for f in F)
    assert all(f.coefficients.all() for f in F)
