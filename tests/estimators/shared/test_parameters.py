"""Kernels by name, as functions, and those of scikit-learn's Gaussian processes, in every model that takes a kernel."""

import pickle
import warnings

import numpy as np
import pytest
import sklearn.gaussian_process.kernels as sk
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.gaussian_process import GaussianProcessRegressor as Referee
from sklearn.metrics.pairwise import pairwise_kernels

from cases import each
from mercer import io
from mercer.estimators import (
    SVC,
    SVR,
    GaussianProcessRegressor,
    KernelCCA,
    KernelKMeans,
    KernelLogisticRegression,
    KernelMachine,
    KernelPCA,
    KernelQuantileRegressor,
    KernelRidge,
    KernelRidgeCV,
    KernelRobustRegressor,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Pegasos,
    Perceptron,
)
from mercer.estimators.shared.parameters import KERNEL_NAMES, named_kernel
from mercer.kernels import RBF, Linear, Matern
from mercer.points import Points
from mercer.selection import KernelSearchCV

X, Y = load_iris(return_X_y=True)
X, Y = X[::3], Y[::3]
MACHINES = [SVC(), NuSVC(nu=0.3), SVR(), NuSVR(), OneClassSVM(nu=0.3)]
OF_SETS = [*MACHINES, KernelMachine(), KernelLogisticRegression(), KernelQuantileRegressor(), KernelRobustRegressor()]
OF_PAIRS = [KernelRidge(), KernelRidgeCV(), KernelPCA(2), KernelKMeans(3, random_state=0), KernelCCA(1)]
ONLINE = [Perceptron(max_epochs=3), Pegasos(lam=0.1, tol=0.9, random_state=0)]
EVERY = [*OF_SETS, *OF_PAIRS, GaussianProcessRegressor(optimizer=None), *ONLINE]


def fitted(model, **params):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(perceptron|fit stopped early|duality gap)")
        return clone(model).set_params(**params).fit(X, X if isinstance(model, KernelCCA) else Y)


def by_class(model):
    return type(model).__name__


# -- names ------------------------------------------------------------------------------------------------


@each("name", [name for name in KERNEL_NAMES if name not in ("matern", "precomputed")])
@each("gamma", [None, 0.3])
def test_names_mean_what_scikit_learn_means(name, gamma):
    kernel = named_kernel(name, Points(X), gamma, degree=2, coef0=0.5)
    rate = 1.0 if name == "chi2" and gamma is None else gamma
    expected = pairwise_kernels(X, metric=name, filter_params=True, gamma=rate, degree=2, coef0=0.5)
    np.testing.assert_allclose(kernel(X), expected, rtol=1e-10)
    if gamma is not None:
        same = [named_kernel(name, Points(X), rule, 2, 0.5)(X) for rule in ("auto", 0.25)]
        np.testing.assert_allclose(*same, rtol=1e-10)


@each("model", EVERY, ids=by_class)
def test_every_model_takes_every_name(model):
    for name in KERNEL_NAMES:
        if name in ("precomputed", "sigmoid", "additive_chi2"):
            continue
        found = fitted(model, kernel=name).kernel_
        found = getattr(found, "base", found)  # a process has a factor
        gamma = getattr(model, "gamma", "scale")
        named = named_kernel(name, Points(X), gamma, coef0=getattr(model, "coef0", 0.0))
        assert found == named
    assert named_kernel("matern", Points(X)) == Matern(2.5).resolve(X)
    with pytest.raises(ValueError, match=r"kernel='gauss' of .* must be .*a kernel object.*'cosine'"):
        fitted(model, kernel="gauss")


@each("model", EVERY, ids=by_class)
def test_a_class_is_no_kernel(model):
    for cls in (RBF, sk.RBF):
        with pytest.raises(TypeError, match=r"kernel=RBF is a class; pass an object: RBF\(\)"):
            fitted(model, kernel=cls)


# -- parameters that belong to names ------------------------------------------------------------------------


@pytest.mark.parametrize("model", [*OF_SETS, *OF_PAIRS], ids=by_class)
def test_parameters_of_names_beside_an_object_are_named(model):
    function = (lambda x, z: float(x @ z)) if model in OF_PAIRS else (lambda A, B: A @ B.T)
    for kernel in (Linear(), function):
        with pytest.warns(UserWarning, match=r"gamma=0\.5 and degree=2 of .* change nothing: kernel=.* has its own"):
            clone(model).set_params(kernel=kernel, gamma=0.5, degree=2).fit(X, X if isinstance(model, KernelCCA) else Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        fitted(model, kernel=Linear())
        fitted(model, kernel="linear", gamma=0.5, coef0=2.0)


def test_parameters_of_a_function_are_used_and_those_of_an_object_named():
    def shifted(x, z, by):
        return float(x @ z) + by

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = KernelRidge(kernel=shifted, kernel_params={"by": 2.0}).fit(X, Y)
        KernelCCA(1, kernel=Linear(), kernel_y="rbf", gamma=0.5).fit(X, X)
    expected = KernelRidge(kernel=Linear() + 2.0).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-6)
    with pytest.warns(UserWarning, match="kernel_params=.* changes nothing"):
        KernelRidge(kernel=Linear(), kernel_params={"by": 2.0}).fit(X, Y)


# -- functions of two sets of points --------------------------------------------------------------------------


class Standardised:
    """Uses statistics of its second argument; takes down the shapes of what it gets."""

    def __init__(self):
        self.seen = []

    def __call__(self, A, B):
        self.seen.append((A.shape, B.shape))
        unit = B.std(axis=0)
        return RBF(1.5)(A / unit, B / unit)


@pytest.mark.parametrize("model", MACHINES, ids=by_class)
def test_a_function_is_called_as_scikit_learn_calls_it(model):
    theirs = getattr(sklearn.svm, by_class(model))(kernel=Standardised(), tol=1e-8)
    if hasattr(model, "nu"):
        theirs.set_params(nu=model.nu)
    asked = "decision_function" if hasattr(model, "decision_function") else "predict"
    ours, theirs = fitted(model, kernel=Standardised(), tol=1e-9), theirs.fit(X, Y)
    assert ours.kernel.seen == theirs.kernel.seen == [(X.shape, X.shape)]
    new = X[::7] + 0.1
    np.testing.assert_allclose(getattr(ours, asked)(new), getattr(theirs, asked)(new), atol=1e-4)
    np.testing.assert_array_equal(getattr(ours, asked)(new.tolist()), getattr(ours, asked)(new))  # a list is an array
    assert set(ours.kernel.seen[1:]) == {(new.shape, X.shape)}
    again = pickle.loads(pickle.dumps(ours))
    np.testing.assert_array_equal(again.predict(new), ours.predict(new))
    assert ours.certificate_.verify(X, Y).converged


@pytest.mark.parametrize("model", OF_SETS[5:], ids=by_class)
def test_functions_fit_what_their_matrices_fit(model):
    matrix = Standardised()(X, X)
    by_matrix = clone(model).set_params(kernel="precomputed", tol=1e-9).fit(matrix, Y)
    by_function = clone(model).set_params(kernel=Standardised(), tol=1e-9).fit(X, Y)
    new = X[::7] + 0.1
    np.testing.assert_allclose(by_function.predict(new), by_matrix.predict(Standardised()(new, X)), atol=1e-6)
    assert by_function.certificate_.verify(X, Y).converged


def test_beyond_the_budget_a_function_is_called_in_blocks():
    seen = []

    def product(A, B):
        seen.append((len(A), len(B)))
        return A @ B.T

    model = SVC(kernel=product, budget="20 kB").fit(X, Y)
    seen.clear()
    many = np.repeat(X, 3, axis=0)
    found = model.predict(many)
    assert len(seen) > 1
    assert {right for _, right in seen} == {len(X)}
    assert np.array_equal(found, SVC(kernel=Linear()).fit(X, Y).predict(many))


# -- scikit-learn's Gaussian processes ------------------------------------------------------------------------


@each("model", EVERY, ids=by_class)
def test_kernels_of_processes_are_translated(model):
    assert fitted(model, kernel=sk.RBF([1.0, 2.0, 0.5, 1.0])).kernel_ == RBF([1.0, 2.0, 0.5, 1.0])
    if not isinstance(model, GaussianProcessRegressor):
        with pytest.raises(ValueError, match="has a WhiteKernel, which is noise"):
            fitted(model, kernel=sk.RBF() + sk.WhiteKernel())


def test_a_search_takes_them():
    theirs, ours = [sk.RBF(0.5), sk.Matern(1.0)], [RBF(0.5), Matern(1.5, 1.0)]
    for model, grid in ((SVC(), {"C": [0.1, 1.0]}), (KernelRidge(), {"alpha": [0.1, 1.0]})):
        found = [KernelSearchCV(model, kernels, grid, cv=3).fit(X, Y) for kernels in (theirs, ours)]
        assert found[0].best_score_ == found[1].best_score_
        by_name = KernelSearchCV(model, param_grid={**grid, "kernel": theirs}, cv=3).fit(X, Y)
        assert by_name.best_score_ == found[1].best_score_


rng = np.random.default_rng(0)
TIMES, NEW = rng.uniform(0, 10, (80, 1)), rng.uniform(0, 10, (200, 1))
WAVE = np.sin(2 * TIMES[:, 0]) + 0.1 * rng.normal(size=80)


def test_a_process_finds_the_parameters_of_their_kernels():
    kernel = sk.ConstantKernel(1.0) * sk.RBF(5.0) + sk.WhiteKernel(0.01)
    ours = GaussianProcessRegressor(kernel).fit(TIMES, WAVE)
    theirs = Referee(kernel, alpha=0.0, n_restarts_optimizer=3, random_state=0).fit(TIMES, WAVE)
    assert ours.score(NEW, np.sin(2 * NEW[:, 0])) > 0.99
    assert ours.log_marginal_likelihood_value_ == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-6)
    assert ours.noise_ == pytest.approx(theirs.kernel_.k2.noise_level, rel=1e-2)
    assert ours.kernel_.right.scale == pytest.approx(theirs.kernel_.k1.k2.length_scale, rel=1e-2)


def test_a_process_respects_their_bounds():
    kernel = sk.ConstantKernel(2.0, "fixed") * sk.RBF(0.5, (0.4, 0.6)) + sk.WhiteKernel(0.03, "fixed")
    with pytest.warns(UserWarning, match=r"right__scale is at its upper bound 0\.6"):
        model = GaussianProcessRegressor(kernel).fit(TIMES, WAVE)
    assert (model.kernel_.left.value, model.noise_) == (2.0, 0.03)
    assert model.kernel_.right.scale == pytest.approx(0.6)
    wider = GaussianProcessRegressor(kernel, bounds={"scale": (0.1, 10.0)}).fit(TIMES, WAVE)  # the user's decide
    assert wider.kernel_.right.scale > 0.7
    with pytest.raises(ValueError, match="leave out one of the two"):
        GaussianProcessRegressor(kernel, noise=np.full(80, 0.1)).fit(TIMES, WAVE)


def test_a_model_with_their_kernel_is_saved(tmp_path):
    kernel = sk.ConstantKernel(1.0) * sk.RBF(5.0) + sk.WhiteKernel(0.01)
    model = GaussianProcessRegressor(kernel).fit(TIMES, WAVE)
    io.save(model, tmp_path / "model")
    again = io.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    assert again.kernel == kernel


def test_functions_of_two_points_get_arrays_too():
    model = KernelRidge(kernel=lambda x, z: float(np.exp(-((x - z) ** 2).sum()))).fit(X.tolist(), Y)
    np.testing.assert_allclose(
        model.predict(X[:2].tolist()), KernelRidge(kernel="rbf", gamma=1.0).fit(X, Y).predict(X[:2])
    )
    assert model.n_features_in_ == 4
