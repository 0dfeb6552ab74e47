"""Pegasos as an estimator."""

import functools

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import parametrize_with_checks

import referee
from mercer.estimators.pegasos import Pegasos
from mercer.kernels import RBF, FromFunction, Linear
from samples import shared_letters

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@parametrize_with_checks(
    [
        Pegasos(max_epochs=8, random_state=0, batch_size=4),
        Pegasos(kernel=RBF(), max_epochs=8, random_state=0, average=True, fit_intercept=True),
        Pegasos(solver="subgradient", project=True, max_epochs=30),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


@functools.cache
def optimum(lam):
    X, y = cancer()
    return lam * referee.solve(referee.no_offset(X @ X.T, np.where(y == 1, 1.0, -1.0), 1 / (lam * len(y))), 1e-8).dual


@pytest.mark.parametrize("options", [{}, {"average": True}, {"batch_size": 16, "project": True}], ids=str)
def test_it_comes_close_to_the_optimum(options):
    X, y = cancer()
    lam = 0.05
    model = Pegasos(lam, max_epochs=30, random_state=0, tol=1e-3, **options).fit(X, y)
    best = optimum(lam)
    assert best * (1 - 1e-6) <= model.certificate_.primal <= best * 1.3
    assert model.certificate_.dual <= best * (1 + 1e-6)
    assert model.score(X, y) > 0.95
    primals = [look.primal for look in model.history_]
    assert primals[-1] < primals[0]
    assert model.certificate_.primal == primals[-1]


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kernel", [None, RBF(2.0)], ids=repr)
def test_verify_recomputes_the_certificate(kernel, fit_intercept):
    X, y = cancer()
    model = Pegasos(0.02, kernel, fit_intercept=fit_intercept, max_epochs=5, random_state=0).fit(X, y)
    seen = model.certificate_.verify(X, y)
    assert seen.solver == "independent check"
    assert seen.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert seen.dual == pytest.approx(model.certificate_.dual, rel=1e-9)
    assert model.certificate_.verify(X[::-1], y).gap > 1.5 * seen.gap
    f = model.decision_function(X)
    signs = np.where(y == 1, 1, -1)
    norm = model.coef_[0] @ model.coef_[0] if kernel is None else model.function_.norm() ** 2
    penalty = 0.01 * (norm + model.intercept_[0] ** 2)
    assert seen.primal == pytest.approx(penalty + np.maximum(0, 1 - signs * f).mean(), rel=1e-9)
    with pytest.raises(ValueError, match="was fitted to 569 points; X and y have 3"):
        model.certificate_.verify(X[:3], y[:3])


def test_three_classes():
    X, y = load_iris(return_X_y=True)
    model = Pegasos(0.01, RBF(1.0), random_state=0, max_epochs=30, tol=0.05).fit(X, y)
    assert model.score(X, y) > 0.93
    assert model.decision_function(X).shape == (150, 3)
    assert len(model.history_) == len(model.certificate_.parts) == len(model.function_) == 3
    assert model.certificate_.verify(X, y).primal == pytest.approx(model.certificate_.primal, rel=1e-9)


def test_forms_agree():
    X, y = cancer()
    options = {"lam": 0.05, "random_state": 0, "max_epochs": 5, "fit_intercept": True}
    primal, dual = Pegasos(**options).fit(X, y), Pegasos(kernel=Linear(), **options).fit(X, y)
    thin = Pegasos(**options).fit(sparse.csr_array(X), y)
    assert primal.coef_ == pytest.approx(dual.dual_coef_ @ X[dual.support_], abs=1e-6)
    assert primal.coef_ == pytest.approx(thin.coef_, abs=1e-6)
    assert primal.intercept_ == pytest.approx(dual.intercept_, abs=1e-6)
    assert primal.n_iter_ == dual.n_iter_ == 5 * 569


def test_a_kernel_bends_the_boundary():
    X, y = make_moons(300, noise=0.1, random_state=0)
    assert Pegasos(1e-3, random_state=0).fit(X, y).score(X, y) < 0.92
    model = Pegasos(1e-3, RBF(0.4), random_state=0, batch_size=8, average=True).fit(X, y)
    assert model.score(X, y) > 0.97
    assert model.function_(X) == pytest.approx(model.decision_function(X))


def test_subgradient_descent_can_be_watched():
    X, y = cancer()
    model = Pegasos(0.5, solver="subgradient", max_epochs=300, tol=0.02).fit(X, y)
    assert model.certificate_.converged
    assert model.certificate_.solver == "subgradient descent"
    assert [look.step for look in model.history_] == list(range(1, model.n_iter_ + 1))
    rare = Pegasos(0.5, solver="subgradient", max_epochs=300, tol=0.02, evaluate="log").fit(X, y)
    assert len(rare.history_) <= 10


def test_words_are_points():
    words = ["ab", "abc", "bcd", "xyz", "xy", "zxy"]
    model = Pegasos(0.1, FromFunction(shared_letters), random_state=0).fit(words, [0, 0, 0, 1, 1, 1])
    assert model.predict(["a", "zz"]).tolist() == [0, 1]
    assert model.certificate_.verify(words, [0, 0, 0, 1, 1, 1]).gap == pytest.approx(model.certificate_.gap, abs=1e-12)


def test_an_early_end_warns():
    X, y = cancer()
    with pytest.warns(ConvergenceWarning, match=r"max_epochs=1 reached.*tol=1e-06 was asked.*Raise max_epochs"):
        Pegasos(max_epochs=1, tol=1e-6, random_state=0).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lam": 0.0}, "lam of Pegasos must be > 0"),
        ({"tol": -1.0}, "tol of Pegasos must be > 0"),
        ({"batch_size": 0}, "batch_size of Pegasos must be a whole number >= 1"),
        ({"max_epochs": 2.5}, "max_epochs of Pegasos"),
        ({"time_limit": 0.0}, "time_limit of Pegasos"),
        ({"solver": "adam"}, "'pegasos' or 'subgradient'; it is 'adam'"),
        ({"evaluate": "never"}, "'epoch' or 'log'; it is 'never'"),
    ],
)
def test_errors_are_sentences(parameters, message):
    with pytest.raises(ValueError, match=message):
        Pegasos(**parameters).fit([[0.0], [1.0]], [0, 1])


def test_a_time_limit_ends_the_descent():
    X, y = cancer()
    model = Pegasos(1e-4, tol=1e-9, max_epochs=10**6, time_limit=0.3).fit(X, y)
    assert model.certificate_.stopped == "time_limit=0.3 s reached"
