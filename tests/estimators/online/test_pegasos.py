"""Pegasos as an estimator."""

import functools

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

import referee
from checks import assert_no_fault
from mercer.estimators.online.pegasos import Pegasos
from mercer.kernels import RBF, FromFunction, Linear
from samples import shared_letters

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


# The order of the visits is random, and a repeated point is visited twice.
VISITS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "the weight of a point is a step, not a number of visits"
    for kind in ("dense", "sparse")
}
ODD = {"check_class_weight_classifiers": "without an offset f(-x) = -f(x): no weight favours a class everywhere"}


@pytest.mark.parametrize(
    "model",
    [
        Pegasos(max_epochs=8, random_state=0, batch_size=4),
        Pegasos(kernel=RBF(), max_epochs=8, random_state=0, average=True, fit_intercept=True),
        Pegasos(solver="subgradient", project=True, max_epochs=30),
    ],
)
def test_scikit_learns_checks(model):
    assert_no_fault(model, ({} if model.solver == "subgradient" else VISITS) | ({} if model.fit_intercept else ODD))


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
    primals = model.history_["primal"]
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
    assert model.history_["steps"].tolist() == list(range(1, model.n_iter_ + 1))
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
        ({"learning_rate": "fast"}, "learning_rate='fast' of Pegasos must be 'optimal', 'invscaling', a number > 0"),
        ({"learning_rate": 2.0, "lam": 0.5}, "learning_rate=2.0 of Pegasos must be"),
        (
            {"learning_rate": lambda t: 9.0, "lam": 0.5},
            r"step length at t=1 is 9; it must be > 0 and below 1/lambda = 2",
        ),
        ({"class_weight": {0: -1.0}}, "class_weight gives class 0 the weight -1"),
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


@functools.cache
def weighted_optimum(kernel):
    """Weights of rows, what each counts with that of its class, and the least objective under them."""
    X, y = cancer()
    weight = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], len(y))
    s = weight * np.where(y == 0, 2.0, 1.0)
    K, use = X @ X.T if kernel is None else kernel(X, X), s > 0
    least = referee.no_offset(K[np.ix_(use, use)], np.where(y == 1, 1.0, -1.0)[use], s[use] / (0.05 * s.sum()))
    return weight, s, 0.05 * referee.solve(least, 1e-8).dual


@pytest.mark.parametrize("kernel", [None, RBF(2.0)], ids=repr)
@pytest.mark.parametrize(
    "rate",
    ["optimal", "invscaling", 5.0, lambda t: 20.0 / (1 + t)],
    ids=["optimal", "invscaling", "constant", "own"],
)
def test_weights_and_steps_of_ones_own(kernel, rate):
    X, y = cancer()
    signs = np.where(y == 1, 1.0, -1.0)
    weight, s, best = weighted_optimum(kernel)
    options = {"class_weight": {0: 2.0, 1: 1.0}, "learning_rate": rate}
    model = Pegasos(0.05, kernel, **options, max_epochs=20, random_state=0, tol=1e-9).fit(X, y, weight)
    seen = model.certificate_.verify(X, y, sample_weight=weight)
    assert seen.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert seen.dual == pytest.approx(model.certificate_.dual, rel=1e-9)
    norm = model.function_.norm() ** 2
    loss = np.maximum(0, 1 - signs * model.decision_function(X))
    assert seen.primal == pytest.approx(0.025 * norm + (s @ loss) / s.sum(), rel=1e-9)
    assert seen.dual <= best * (1 + 1e-6)
    assert best * (1 - 1e-6) <= seen.primal
    assert rate != "optimal" or seen.primal <= 1.5 * best
    assert model.certificate_.verify(X, y).primal != pytest.approx(seen.primal, rel=1e-3)


def test_margins_and_zones_are_those_of_a_soft_margin():
    X, y = cancer()
    weight = np.where(np.arange(len(y)) % 4, 1.0, 2.0)
    model = Pegasos(0.5, solver="subgradient", max_epochs=2000, tol=1e-3).fit(X, y, weight)
    table = model.margins(X, y, weight)
    f = model.decision_function(X)
    np.testing.assert_allclose(table.margin, np.where(y == 1, 1, -1) * f)
    assert set(table.role) == {"outside", "on the margin", "inside", "misclassified"}
    assert (table.kkt[table.role == "inside"] < 1e-9).all()
    assert model.margins(X[::-1], y).alpha.isna().all()
    assert ((model.zones(X) == 2) == (f >= 1)).all()
    assert model.history_.dtype.names == ("steps", "primal", "dual", "gap", "support", "seconds")
    assert model.history_["gap"][-1] == pytest.approx(model.certificate_.relative_gap)
