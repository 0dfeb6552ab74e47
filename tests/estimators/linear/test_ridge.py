"""Ridge with explicit features: both forms of M11, scikit-learn's, and what is hard for either."""

import numpy as np
import pytest
import sklearn.linear_model
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, sparse
from sklearn.exceptions import ConvergenceWarning

from cases import each
from checks import assert_no_fault
from mercer.estimators.linear.ridge import Ridge


@pytest.mark.parametrize("model", [Ridge(), Ridge(0.1, solver="dual", fit_intercept=False), Ridge(positive=True)])
def test_scikit_learn_finds_no_fault(model):
    assert_no_fault(model)


def problem(n, d, seed=0, targets=None):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + rng.normal(size=d), rng.normal(size=n if targets is None else (n, targets)) + 3.0


@given(
    st.integers(2, 30),
    st.integers(1, 30),
    st.floats(1e-3, 1e3),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_primal_and_dual_are_the_same_and_scikit_learns(n, d, alpha, intercept, weighted, is_sparse, seed):
    X, y = problem(n, d, seed)
    if is_sparse:
        X[np.abs(X) < 1] = 0
    weights = np.random.default_rng(seed).uniform(0.1, 3, n) if weighted else None
    given = sparse.csr_array(X) if is_sparse else X
    primal = Ridge(alpha, fit_intercept=intercept, solver="primal").fit(given, y, weights)
    dual = Ridge(alpha, fit_intercept=intercept, solver="dual").fit(given, y, weights)
    theirs = sklearn.linear_model.Ridge(alpha, fit_intercept=intercept, solver="svd").fit(X, y, weights)
    for ours in (primal, dual):
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-8 * (1 + 1 / alpha))
        np.testing.assert_allclose(ours.predict(given), theirs.predict(X), atol=1e-8 * (1 + 1 / alpha))
    mean = np.average(X, axis=0, weights=weights) if intercept else 0.0
    np.testing.assert_allclose((X - mean).T @ dual.dual_coef_, dual.coef_, atol=1e-8 * (1 + 1 / alpha))  # the span
    assert not hasattr(primal, "dual_coef_")


@pytest.mark.parametrize(("n", "d", "chosen"), [(50, 5, "primal"), (5, 50, "dual"), (10, 10, "dual")])
def test_the_smaller_side_is_chosen(n, d, chosen):
    assert Ridge().fit(*problem(n, d)).solver_ == chosen


@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_many_targets_with_an_alpha_each(solver):
    X, Y = problem(20, 6, targets=3)
    together = Ridge([0.1, 1.0, 10.0], solver=solver).fit(X, Y)
    assert together.coef_.shape == (3, 6)
    assert together.predict(X).shape == (20, 3)
    for j, alpha in enumerate([0.1, 1.0, 10.0]):
        alone = Ridge(alpha, solver=solver).fit(X, Y[:, j])
        np.testing.assert_allclose(together.predict(X)[:, j], alone.predict(X), atol=1e-10)
        assert isinstance(alone.intercept_, float)


@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_weights_are_repetition(solver):
    X, y = problem(20, 6)
    weights = np.tile([0, 1, 2, 3], 5)
    rows = np.repeat(np.arange(20), weights)
    weighted = Ridge(solver=solver).fit(X, y, weights)
    np.testing.assert_allclose(weighted.predict(X), Ridge(solver=solver).fit(X[rows], y[rows]).predict(X), atol=1e-10)
    if solver == "dual":
        assert not weighted.dual_coef_[weights == 0].any()


@pytest.mark.parametrize("solver", ["primal", "dual"])
@pytest.mark.parametrize("intercept", [False, True])
def test_without_a_penalty_the_shortest_solution_of_least_squares(solver, intercept):
    X, y = problem(15, 4)
    X = np.column_stack([X, X])  # each feature twice
    w = Ridge(0.0, solver=solver, fit_intercept=intercept).fit(X, y).coef_
    centred = (X - X.mean(axis=0), y - y.mean()) if intercept else (X, y)
    np.testing.assert_allclose(w, np.linalg.lstsq(*centred)[0], atol=1e-8)


@pytest.mark.parametrize("solver", ["primal", "dual"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_system_over_the_budget_is_solved_by_its_products(solver, is_sparse):
    X, y = problem(40, 30)
    X = sparse.csr_array(X) if is_sparse else X
    small = Ridge(solver=solver, budget="5 kB").fit(X, y)
    np.testing.assert_allclose(small.coef_, Ridge(solver=solver).fit(X, y).coef_, atol=1e-7)


@pytest.mark.parametrize("solver", ["primal", "dual"])
@pytest.mark.parametrize("scale", [1e-200, 1e-100, 1e100, 1e200])
def test_units_do_not_matter(solver, scale):
    X, y = problem(20, 4)
    plain = Ridge(0.0, solver=solver).fit(X, y).predict(X)
    np.testing.assert_allclose(Ridge(0.0, solver=solver).fit(X * scale, y).predict(X * scale), plain, rtol=1e-6)
    np.testing.assert_allclose(
        Ridge(1.0, solver=solver).fit(X, y * scale).predict(X) / scale,
        Ridge(1.0, solver=solver).fit(X, y).predict(X),
        rtol=1e-9,
    )
    for alpha in (1e-12, 1e12):
        assert np.isfinite(Ridge(alpha, solver=solver).fit(X * scale, y).predict(X * scale)).all()


def test_degenerate_data():
    one = Ridge().fit([[2.0, 1.0]], [5.0])
    assert one.predict([[7.0, 7.0]])[0] == pytest.approx(5.0)
    flat = Ridge().fit(np.ones((5, 2)), np.arange(5.0))
    np.testing.assert_allclose(flat.coef_, 0.0, atol=1e-12)
    assert flat.intercept_ == pytest.approx(2.0)
    constant = Ridge().fit(problem(10, 3)[0], np.full(10, 4.0))
    np.testing.assert_allclose(constant.predict(problem(10, 3)[0]), 4.0)


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (Ridge(-1.0), r"alpha=-1.0 of Ridge must be a finite number >= 0, or one for each target"),
        (Ridge("much"), "alpha='much' of Ridge"),
        (Ridge(np.inf), "alpha=inf of Ridge"),
        (Ridge([1.0, 2.0]), "alpha of Ridge has 2 numbers and y has 1 column;"),
        (Ridge(solver="sgd"), "solver='sgd' of Ridge must be one of 'auto', 'primal', 'dual', 'svd'"),
        (Ridge(solver="svd", positive=True), "solver='svd' of Ridge does not support positive=True"),
        (Ridge(positive="yes"), "positive='yes' of Ridge must be True or False"),
        (Ridge(max_iter=0), "max_iter=0 of Ridge must be a whole number >= 1"),
        (Ridge(tol=0), "tol=0 of Ridge must be a relative duality gap"),
        (Ridge(fit_intercept="no"), "fit_intercept='no' of Ridge must be True or False"),
        (Ridge(budget="plenty"), "budget 'plenty' is not a size"),
    ],
)
def test_a_parameter_outside_its_domain_is_named(model, match):
    with pytest.raises(ValueError, match=match):
        model.fit(*problem(10, 3))


@each("kind", [np.asarray, sparse.csr_array])
@each(("n", "d"), [(40, 8), (8, 40)])
@each("budget", [None, "100 B"])
@each("intercept", [False, True])
def test_nonnegative_weights_are_those_of_bounded_least_squares(kind, n, d, budget, intercept):
    X, Y = problem(n, d, targets=2)
    s = np.random.default_rng(1).uniform(0.5, 2, n)
    model = Ridge([0.1, 3.0], positive=True, fit_intercept=intercept, budget=budget).fit(kind(X), Y, s)
    assert model.certificate_.verify(kind(X), Y, sample_weight=s).relative_gap < 1e-9
    free = np.eye(d + intercept)[:d]
    for j, alpha in enumerate([0.1, 3.0]):
        A = np.r_[np.sqrt(s)[:, None] * np.c_[X, np.ones((n, int(intercept)))], np.sqrt(alpha) * free]
        bounds = (np.r_[np.zeros(d), [-np.inf] * intercept], np.inf)
        theirs = optimize.lsq_linear(A, np.r_[np.sqrt(s) * Y[:, j], np.zeros(d)], bounds, tol=1e-14).x
        np.testing.assert_allclose(model.coef_[j], theirs[:d], atol=1e-5)
    assert (model.coef_ >= 0).all()
    assert (model.coef_ == 0).any()


@pytest.mark.parametrize("repeated", [False, True])
def test_nonnegative_least_squares_without_a_penalty(repeated):
    X, y = problem(20, 5)
    X = np.c_[X, X] if repeated else X
    model = Ridge(0.0, positive=True, fit_intercept=False).fit(X, y)
    assert model.certificate_.primal == pytest.approx(optimize.nnls(X, y)[1] ** 2)
    assert model.certificate_.converged


@pytest.mark.parametrize("positive", [False, True])
def test_float32_is_kept(positive):
    X, Y = problem(20, 6, targets=2)
    for y in (Y, Y[:, 0]):
        single = Ridge(positive=positive).fit(X.astype(np.float32), y)
        double = Ridge(positive=positive).fit(X, y)
        assert single.coef_.dtype == single.intercept_.dtype == np.float32
        assert single.predict(X.astype(np.float32)).dtype == np.float32
        assert double.predict(X).dtype == double.coef_.dtype == np.float64
        np.testing.assert_allclose(single.coef_, double.coef_, atol=1e-5)


def test_a_column_of_targets_is_read_as_scikit_learn_reads_it():
    X, y = problem(20, 6)
    ours, theirs = Ridge().fit(X, y[:, None]), sklearn.linear_model.Ridge().fit(X, y[:, None])
    assert ours.coef_.shape == theirs.coef_.shape
    assert ours.intercept_.shape == theirs.intercept_.shape == (1,)
    assert ours.predict(X).shape == theirs.predict(X).shape
    assert Ridge().fit(X, y).intercept_.shape == ()


@pytest.mark.parametrize("solver", ["svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga"])
def test_scikit_learns_ways_to_the_same_weights(solver):
    X, y = problem(20, 6)
    model = Ridge(solver=solver).fit(X, y)
    np.testing.assert_allclose(model.coef_, Ridge().fit(X, y).coef_)
    assert model.solver_ == solver
    with pytest.warns(UserWarning, match="random_state=3 changes nothing in Ridge: nothing is random"):
        Ridge(solver=solver, random_state=3).fit(X, y)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_the_certificate_is_that_of_the_objective(positive, alpha):
    X, Y = problem(30, 6, targets=2)
    s = np.random.default_rng(1).uniform(0.5, 2, 30)
    model = Ridge(alpha, positive=positive).fit(X, Y, s)
    claim = model.certificate_
    objective = (s[:, None] * (Y - model.predict(X)) ** 2).sum() + alpha * (model.coef_**2).sum()
    assert claim.primal == pytest.approx(objective)
    assert claim.converged
    assert len(claim.parts) == len(model.history_) == 2
    assert model.history_[0]["primal"][-1] == claim.parts[0].primal
    model.coef_ = model.coef_ * 1.01 + 0.01
    worse = claim.verify(X, Y, sample_weight=s)
    assert worse.dual <= objective <= worse.primal
    assert not worse.converged


def test_a_budget_of_steps_is_kept_and_said():
    X, y = problem(300, 200)
    with pytest.warns(ConvergenceWarning, match="max_iter=2 reached"):
        model = Ridge(1e-3, budget="1 kB", max_iter=2).fit(X, y)
    assert model.n_iter_ == [2]
    assert model.certificate_.dual <= Ridge(1e-3).fit(X, y).certificate_.primal


def test_least_squares_on_powers_loses_no_digits_to_squares():
    X, y = np.vander(np.linspace(0, 1, 30), 12), np.sin(np.arange(30.0))
    model = Ridge(0.0, fit_intercept=False).fit(X, y)
    best = np.linalg.lstsq(X, y)[1][0]
    assert model.certificate_.primal == pytest.approx(best, rel=1e-9)
    assert model.certificate_.converged
