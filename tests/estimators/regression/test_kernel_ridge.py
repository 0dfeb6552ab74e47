"""KernelRidge: scikit-learn's, leave-one-out by definition, intercept, weights, and systems that are hard to solve."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.kernel_ridge
import sklearn.linear_model
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import LinAlgWarning
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV

from cases import each
from checks import assert_no_fault
from mercer.estimators import KernelMachine, KernelRidge, KernelRidgeClassifier, Ridge
from mercer.kernels import RBF, FromFunction, Linear, Polynomial

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 2, (60, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=60)
BOTH = np.column_stack([Y, X[:, 2] - 5])
KERNEL = RBF(1.0)


def test_scikit_learn_finds_no_fault():
    for model in (KernelRidge(), KernelRidge(kernel="rbf", gamma=0.5, fit_intercept=True)):
        assert_no_fault(model)


# -- scikit-learn's model ---------------------------------------------------------------------------------


@each(
    "params",
    [
        {},
        {"kernel": "rbf"},
        {"kernel": "rbf", "gamma": 2.0},
        {"kernel": "poly", "degree": 2},
        {"kernel": "polynomial", "gamma": 0.5, "coef0": 0.3},
        {"kernel": "laplacian"},
        {"kernel": "laplacian", "gamma": 0.7},
        {"kernel": "cosine"},
        {"kernel": "chi2", "gamma": 0.5},
        {"kernel": "additive_chi2", "alpha": 100.0},
        {"kernel": "sigmoid", "gamma": 0.01, "alpha": 10.0},
        {"kernel": lambda a, b, c=1.0: float(c + a @ b), "kernel_params": {"c": 2.0}},
        {"kernel": lambda a, b: float(np.exp(-((a - b) ** 2).sum()))},
    ],
    ids=lambda p: str(p.get("kernel", ""))[:12],
)
@each("y", [Y, BOTH], ids=["one", "two"])
@each("weighted", [False, True])
@pytest.mark.filterwarnings("ignore:the kernel .* is not positive semidefinite")
def test_coefficients_are_those_of_scikit_learn(params, y, weighted):
    weights = RNG.uniform(0.1, 2, 60) if weighted else None
    ours = KernelRidge(**{"residual": 1e-11, **params}).fit(X, y, weights)
    theirs = sklearn.kernel_ridge.KernelRidge(**params).fit(X, y, weights)
    size = np.abs(theirs.dual_coef_).max()
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-6 * size)
    np.testing.assert_allclose(ours.predict(X[:7]), theirs.predict(X[:7]), atol=1e-6 * size)
    np.testing.assert_array_equal(ours.X_fit_, theirs.X_fit_)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-6)


def test_similarities_and_an_alpha_per_target_are_as_in_scikit_learn():
    for alpha in (0.3, [0.1, 10.0], np.array([1.0, 1.0])):
        ours = KernelRidge(alpha, kernel="precomputed", residual=1e-11).fit(KERNEL(X), BOTH)
        theirs = sklearn.kernel_ridge.KernelRidge(alpha=alpha, kernel="precomputed").fit(KERNEL(X), BOTH)
        np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-6)
        np.testing.assert_allclose(ours.predict(KERNEL(X[:5], X)), theirs.predict(KERNEL(X[:5], X)), atol=1e-6)
    assert ours.__sklearn_tags__().input_tags.pairwise
    with pytest.raises(ValueError, match="alpha of KernelRidge has 3 numbers and y has 2 columns; give one"):
        KernelRidge([1.0, 2.0, 3.0]).fit(X, BOTH)


def test_shapes_follow_those_of_y():
    assert KernelRidge().fit(X, Y).predict(X).shape == (60,)
    assert KernelRidge().fit(X, Y[:, None]).predict(X).shape == (60, 1)
    assert KernelRidge().fit(X, BOTH).dual_coef_.shape == (60, 2)
    model = KernelRidge(kernel=KERNEL).fit(X, BOTH)
    assert [f(X[:4]).shape for f in model.function_] == [(4,), (4,)]
    np.testing.assert_allclose(model.function_[1](X), model.predict(X)[:, 1], atol=1e-8)
    assert model.residual_.shape == (2,)
    assert model.intercept_.tolist() == [0.0, 0.0]


# -- what it minimises ------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(st.floats(1e-6, 1e6), st.booleans(), st.booleans(), st.integers(2, 25), st.integers(0, 10**6))
def test_the_equations_hold(alpha, intercept, weighted, n, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 2)), rng.normal(size=n) + 3
    w = rng.uniform(0.2, 3, n) if weighted else np.ones(n)
    model = KernelRidge(alpha, kernel=KERNEL, fit_intercept=intercept, residual=1e-10).fit(X, y, w)
    a, b = model.dual_coef_, model.intercept_
    left = KERNEL(X) @ a + alpha * a / w + b
    np.testing.assert_allclose(left, y, atol=1e-7 * np.linalg.norm(y))
    assert abs(a.sum()) <= 1e-8 * (np.abs(a).sum() + 1e-300) if intercept else b == 0
    assert model.residual_ <= 1e-10
    checked = model.certificate_.verify(X, y, sample_weight=w)
    assert checked.primal == pytest.approx(model.certificate_.primal, rel=1e-5, abs=1e-9)
    assert checked.relative_gap < 1e-6


def test_the_certificate_follows_from_the_residual():
    model = KernelRidge(0.1, kernel=KERNEL, fit_intercept=True).fit(X, BOTH)
    claim = model.certificate_
    assert claim.converged
    assert (model.residual_ <= 1e-6).all()
    assert isinstance(KernelRidge(kernel=KERNEL).fit(X, Y).residual_, float)
    assert model.plan_
    checked = claim.verify(X, BOTH)
    assert checked.primal == pytest.approx(claim.primal, rel=1e-8)
    assert checked.gap <= claim.gap + checked.rounding + 1e-12 * claim.primal


def test_the_intercept_makes_constants_free():
    shifted = KernelRidge(kernel=KERNEL, fit_intercept=True, residual=1e-10).fit(X, Y + 1000)
    plain = KernelRidge(kernel=KERNEL, fit_intercept=True, residual=1e-10).fit(X, Y)
    np.testing.assert_allclose(shifted.predict(X) - 1000, plain.predict(X), atol=1e-4)
    machine = KernelMachine(KERNEL, "squared", 1.0, tol=1e-10).fit(X, Y)
    np.testing.assert_allclose(plain.predict(X), machine.predict(X), atol=1e-4)
    linear = KernelRidge(0.5, kernel=Linear(), fit_intercept=True, residual=1e-11).fit(X, Y)
    np.testing.assert_allclose(linear.predict(X), Ridge(0.5).fit(X, Y).predict(X), atol=1e-6)
    np.testing.assert_allclose(linear.coef_, Ridge(0.5).fit(X, Y).coef_, atol=1e-6)


@pytest.mark.parametrize("intercept", [False, True])
def test_weights_are_repetition(intercept):
    weights = np.tile([0, 1, 2], 20)
    rows = np.repeat(np.arange(60), weights)
    model = KernelRidge(0.3, kernel=KERNEL, fit_intercept=intercept, residual=1e-11)
    weighted, repeated = clone(model).fit(X, BOTH, weights), clone(model).fit(X[rows], BOTH[rows])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-6)
    assert not weighted.dual_coef_[weights == 0].any()


# -- leave one out ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.1, [0.01, 3.0]], ids=str)
def test_residuals_without_each_sample_are_those_of_as_many_fits(intercept, weighted, alpha):
    weights = RNG.uniform(0.3, 2, 60) if weighted else np.ones(60)
    weights[7] = 0.0 if weighted else 1.0
    model = KernelRidge(alpha, kernel=KERNEL, fit_intercept=intercept, residual=1e-11)
    found = clone(model).fit(X, BOTH, weights).loo_residuals()
    assert found.shape == BOTH.shape
    for i in range(0, 60, 7):
        others = np.arange(60) != i
        alone = clone(model).fit(X[others], BOTH[others], weights[others]).predict(X[[i]])[0]
        np.testing.assert_allclose(found[i], BOTH[i] - alone, atol=1e-6)
    one = KernelRidge(0.1, kernel=KERNEL).fit(X, Y).loo_residuals()
    assert one.shape == (60,)


def test_leaving_one_out_of_given_similarities():
    direct = KernelRidge(0.1, kernel=KERNEL).fit(X, Y).loo_residuals()
    given = KernelRidge(0.1, kernel="precomputed").fit(KERNEL(X), Y).loo_residuals()
    np.testing.assert_allclose(direct, given, atol=1e-8)


# -- inputs -----------------------------------------------------------------------------------------------


def shared(a, b):
    return float(len(set(a) & set(b)))


def test_tables_sparse_matrices_and_strings():
    expected = KernelRidge(kernel=KERNEL).fit(X, Y).predict(X)
    for data in (pd.DataFrame(X, columns=list("abc")), pl.DataFrame(X, schema=list("abc")), sparse.csr_array(X)):
        np.testing.assert_allclose(KernelRidge(kernel=KERNEL).fit(data, Y).predict(data), expected, atol=1e-6)
    single = KernelRidge(kernel=KERNEL).fit(X.astype(np.float32), Y)
    np.testing.assert_allclose(single.predict(X.astype(np.float32)), expected, atol=1e-3)
    words = ["abc", "abd", "bcd", "xyz", "xyw", "yzw"]
    for kernel in (FromFunction(shared), shared):
        model = KernelRidge(kernel=kernel).fit(words, [0, 0, 0, 1, 1, 1])
        assert model.predict(["ab"])[0] < model.predict(["zw"])[0]


def test_pickling_cloning_and_searching():
    model = KernelRidge(kernel=KERNEL).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.certificate_.verify(X, Y).primal == pytest.approx(model.certificate_.primal)
    with pytest.raises(NotFittedError):
        clone(model).predict(X)
    with pytest.raises(NotFittedError):
        clone(model).loo_residuals()
    grid = {"alpha": [0.01, 0.1], "kernel__scale": [0.5, 1.0]}
    assert GridSearchCV(KernelRidge(kernel=KERNEL), grid).fit(X, Y).best_score_ > 0.8
    names = [p for p in KernelRidge().get_params() if p in sklearn.kernel_ridge.KernelRidge().get_params()]
    theirs = sklearn.kernel_ridge.KernelRidge().get_params()
    assert {p: KernelRidge().get_params()[p] for p in names} == theirs


# -- hard systems -----------------------------------------------------------------------------------------


@each("alpha", [0.0, 1e-12, 1e-6, 1.0, 1e12])
@each("scale", [1e-200, 1.0, 1e200])
@each("intercept", [False, True])
def test_any_alpha_on_targets_of_any_size(alpha, scale, intercept):
    model = KernelRidge(alpha, kernel=KERNEL, fit_intercept=intercept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = clone(model).fit(X, scale * Y).predict(X) / scale
        plain = clone(model).fit(X, Y).predict(X)
    np.testing.assert_allclose(found, plain, atol=1e-3)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_certificate_of_targets_of_any_size_is_found_again(scale):
    for model in (KernelRidge(0.1, kernel=KERNEL), KernelMachine(KERNEL, "squared", 0.1)):
        claim = model.fit(X, scale * Y).certificate_
        checked = claim.verify(X, scale * Y)
        assert claim.converged
        assert checked.converged
        assert checked.primal == pytest.approx(claim.primal, rel=1e-6)


@pytest.mark.parametrize("intercept", [False, True])
def test_duplicates_constants_single_rows_and_rank_one(intercept):
    model = KernelRidge(0.0, kernel=KERNEL, fit_intercept=intercept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each system is singular, and says so
        twice = clone(model).fit(np.repeat(X[:5], 2, axis=0), np.repeat(Y[:5], 2))
        np.testing.assert_allclose(twice.predict(X[:5]), Y[:5], atol=1e-3)
        torn = clone(model).fit(X[[0, 0, 1]], [0.0, 2.0, 5.0])  # no function passes through both
        np.testing.assert_allclose(torn.predict(X[:2]), [1.0, 5.0], atol=1e-2)
        flat = clone(model).set_params(alpha=1e-6).fit(X, np.full(60, 3.0))
        np.testing.assert_allclose(flat.predict(X), 3.0, atol=1e-3)
        np.testing.assert_allclose(clone(model).fit(X[:1], [4.0]).predict(X[:1]), 4.0, atol=1e-6)
        line = clone(model).set_params(kernel="linear").fit(X[:, :1], 2 * X[:, 0])
        np.testing.assert_allclose(line.predict(X[:, :1]), 2 * X[:, 0], atol=1e-3)
        zero = clone(model).set_params(kernel="linear", alpha=1.0).fit(np.zeros((4, 2)), [1.0, 2.0, 3.0, 4.0])
        np.testing.assert_allclose(zero.predict(np.zeros((1, 2))), 2.5 if intercept else 0.0, atol=1e-9)
        nothing = clone(model).set_params(alpha=1.0).fit(X, np.zeros(60))
        assert not nothing.predict(X).any()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_the_alpha_that_was_asked_for_is_fitted_certified_and_left_out_by(intercept, noise):
    rng = np.random.default_rng(0)
    t = rng.uniform(34, 41, (100, 1))
    y = 10 - (t[:, 0] - 37) ** 2 + noise * rng.normal(size=100)
    model = KernelRidge(1e-6, kernel=Polynomial(2), fit_intercept=intercept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)  # says which residual was reached
        model.fit(t, y)
        machine = KernelMachine(Polynomial(2), "squared", 1e-6, fit_intercept=intercept).fit(t, y)
        a = KernelRidge(1e-6, kernel=Polynomial(2), fit_intercept=intercept).fit(t[1:], y[1:])
    assert model.score(t, y) > 0.999
    for fitted in (model, machine):
        claim, checked = fitted.certificate_, fitted.certificate_.verify(t, y)
        assert claim.converged
        assert checked.converged
        assert checked.primal == pytest.approx(claim.primal, rel=1e-6, abs=checked.rounding)
    K = Polynomial(2)(t)
    loss = np.sum((y - K @ model.dual_coef_ - model.intercept_) ** 2)
    assert 0.5 * (loss + 1e-6 * model.dual_coef_ @ K @ model.dual_coef_) == pytest.approx(
        model.certificate_.primal, rel=1e-3
    )
    assert model.loo_residuals()[0] == pytest.approx(y[0] - a.predict(t[:1])[0], abs=1e-3)


@pytest.mark.parametrize("alpha", [1e-9, 1e-3])
def test_what_float64_cannot_is_said_and_no_worse_than_elsewhere(alpha):
    rng = np.random.default_rng(0)
    t = rng.uniform(34, 41, (200, 1))  # (1 + x.z)^4 has rounding errors of 1e-3 here
    y = 10 - (t[:, 0] - 37) ** 2 + 0.1 * rng.normal(size=200)
    model = KernelRidge(alpha, kernel=Polynomial(4))
    with pytest.warns(LinAlgWarning, match=r"singular to rounding.*relative gap is .*Raise alpha to"):
        model.fit(t, y)
    assert not model.certificate_.converged
    assert not model.certificate_.verify(t, y).converged
    K = Polynomial(4)(t)
    rest = y - K @ model.dual_coef_ - alpha * model.dual_coef_
    assert model.residual_ == pytest.approx(np.linalg.norm(rest) / np.linalg.norm(y), rel=0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = sklearn.kernel_ridge.KernelRidge(alpha=alpha, kernel="precomputed").fit(K, y)
    assert model.score(t, y) >= theirs.score(K, y) - 1e-3


def test_a_singular_system_is_diagnosed():
    with pytest.warns(LinAlgWarning, match="points 0 and 1 are equal, and the targets do not follow") as caught:
        KernelRidge(0.0, kernel=KERNEL).fit(X[[0, 0, 1]], [0.0, 2.0, 5.0])
    assert caught[0].filename == __file__
    with pytest.raises(np.linalg.LinAlgError, match=r"not positive semidefinite.*Raise alpha"):
        KernelRidge(1e-3, kernel="precomputed").fit(-KERNEL(X), Y)


def test_a_limit_ends_a_fit_with_a_warning():
    n = 400
    X = RNG.uniform(0, 1, (n, 2))
    hard = KernelRidge(1e-8, kernel=RBF(0.3), solver="cg", max_iter=1, residual=1e-9)
    with pytest.warns(ConvergenceWarning, match=r"relative residual of .*; 1e-09 was asked") as caught:
        hard.fit(X, np.sin(9 * X[:, 0]))
    assert caught[0].filename == __file__
    assert hard.residual_ > 1e-9
    assert np.isfinite(hard.predict(X)).all()


@pytest.mark.parametrize("solver", ["auto", "cholesky", "cg"])
def test_every_solver_finds_the_same_coefficients(solver):
    n = 300
    X = RNG.uniform(0, 1, (n, 2))
    y = np.sin(9 * X[:, 0]) + 0.1 * RNG.normal(size=n)
    exact = np.linalg.solve(RBF(0.3)(X) + 0.01 * np.eye(n), y)
    model = KernelRidge(0.01, kernel=RBF(0.3), solver=solver, residual=1e-10).fit(X, y)
    np.testing.assert_allclose(model.dual_coef_, exact, atol=1e-6 * np.abs(exact).max())


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"alpha": -1}, "alpha=-1 of KernelRidge must be a finite number >= 0, or one for each target"),
        ({"kernel": "gauss"}, r"kernel='gauss' of KernelRidge must be a kernel object.*'rbf'"),
        ({"kernel": 3}, "kernel=3"),
        ({"gamma": 0.0}, "gamma=0.0 of KernelRidge must be a number > 0, or None"),
        ({"gamma": "scale"}, "gamma='scale' of KernelRidge"),
        ({"kernel": "poly", "degree": 0}, "degree=0"),
        ({"kernel_params": 1}, "kernel_params=1 of KernelRidge must be a dictionary"),
        ({"residual": 0}, "residual=0 of KernelRidge must be a relative residual"),
        ({"solver": "svd"}, "solver='svd' of KernelRidge must be 'auto', 'cholesky' or 'cg'"),
        ({"budget": "plenty"}, "budget 'plenty' is not a size"),
    ],
    ids=str,
)
def test_a_parameter_outside_its_domain_is_named(params, match):
    with pytest.raises(ValueError, match=match):
        KernelRidge(**params).fit(X, Y)


# -- classes ----------------------------------------------------------------------------------------------

IRIS, SPECIES = load_iris(return_X_y=True)


@pytest.mark.parametrize("weight", [None, "balanced"])
@pytest.mark.parametrize("some", [slice(None), slice(100)], ids=["three", "two"])
def test_classes_by_a_linear_kernel_are_scikit_learns(some, weight):
    X, y = IRIS[some], SPECIES[some]
    w = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    ours = KernelRidgeClassifier(0.5, kernel="linear", class_weight=weight, residual=1e-10).fit(X, y, w)
    theirs = sklearn.linear_model.RidgeClassifier(0.5, class_weight=weight).fit(X, y, w)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    assert ours.certificate_.verify(X, y, sample_weight=w).converged


def test_names_of_classes_come_back():
    names = np.array(["setosa", "versicolor", "virginica"])[SPECIES]
    model = KernelRidgeClassifier(0.1, kernel="rbf").fit(IRIS, names)
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert model.score(IRIS, names) > 0.95
    with pytest.raises(ValueError, match="one class only, 'setosa'"):
        model.fit(IRIS[:50], names[:50])


def test_scikit_learn_finds_no_fault_in_the_classifier():
    assert_no_fault(KernelRidgeClassifier(kernel="rbf"))
