"""The solvers of linear models against Clarabel, against one another, and against the bounds of duality."""

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import mercer.solvers.linear.solve as linear_solve
import mercer.solvers.linear.system as linear_system
from mercer.solvers.control import Control
from mercer.solvers.linear.interior import interior_point
from mercer.solvers.linear.newton import proximal, smoothed, squared_newton
from mercer.solvers.linear.problem import LinearProblem, State, balanced, best_offset
from mercer.solvers.linear.rows import Rows
from mercer.solvers.linear.solve import solve_linear_models
from mercer.solvers.linear.system import ByColumns, ByRows, MatrixFree, cholesky
from mercer.solvers.linear.verify import check_linear


def referee(X, sign, target, cost, squared, intercept):
    """The optimal value by Clarabel: minimise 1/2 |w|² + cost loss(xi) over w, b, xi >= 0 and xi >= target - sign f."""
    n, d = X.shape
    k = len(sign)
    p = d + 1
    weight = np.tile(cost, k) / cost.max()
    diagonal = np.concatenate([np.ones(d) / cost.max(), [0.0], 2 * weight if squared else np.zeros(k * n)])
    linear = np.concatenate([np.zeros(p), np.zeros(k * n) if squared else weight])
    A = np.hstack([X, np.full((n, 1), float(intercept))])
    upper = np.hstack([np.vstack([-s[:, None] * A for s in sign]), -np.eye(k * n)])
    lower = np.hstack([np.zeros((k * n, p)), -np.eye(k * n)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-11
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.diag(diagonal)),
        linear,
        sparse.csc_matrix(np.vstack([upper, lower])),
        np.concatenate([-target.ravel(), np.zeros(k * n)]),
        [clarabel.NonnegativeConeT(2 * k * n)],
        settings,
    )
    return cost.max() * solver.solve().obj_val


@st.composite
def problems(draw):
    """A classification or a regression, with weights, duplicates, constant columns, and more columns than rows."""
    n, d = draw(st.integers(2, 40)), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, d)) * draw(st.sampled_from([1.0, 0.01, 30.0]))
    if draw(st.booleans()):
        X[n // 2 :] = X[: n - n // 2]
    if draw(st.booleans()):
        X[:, 0] = draw(st.sampled_from([0.0, 5.0]))
    cost = draw(st.sampled_from([1e-3, 1.0, 50.0])) * (rng.uniform(0.1, 3.0, n) if draw(st.booleans()) else np.ones(n))
    if draw(st.booleans()):
        y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        y[:2] = 1.0, -1.0
        sign, target = y[None], np.ones((1, n))
    else:
        y, epsilon = rng.normal(size=n) + X[:, 0], draw(st.sampled_from([0.0, 0.3]))
        sign = np.vstack([np.ones(n), -np.ones(n)])
        target = sign * y - epsilon
    return X, sign, target, cost, draw(st.booleans()), draw(st.booleans())


@settings(max_examples=60, deadline=None)
@given(problems())
def test_the_value_is_that_of_clarabel(case):
    X, sign, target, cost, squared, intercept = case
    best = referee(*case)
    problem = LinearProblem(Rows.of(X, intercept), sign, target, cost, squared)
    found = solve_linear_models([problem], Control(tol=1e-8))[0]
    c = found.certificate
    assert c.converged
    size = max(abs(best), 1e-3 * float(cost.max()))
    assert c.primal == pytest.approx(best, rel=1e-6, abs=1e-6 * size)
    assert c.dual <= best + 1e-6 * size
    again = check_linear(
        X,
        w=found.w,
        b=found.b,
        sign=sign,
        target=target,
        cost=cost,
        alpha=found.alpha,
        squared=squared,
        intercept=intercept,
        tol=1e-8,
    )
    assert again.primal == pytest.approx(c.primal, rel=1e-9, abs=1e-9 * size)
    assert again.dual == pytest.approx(c.dual, rel=1e-7, abs=1e-7 * size)


def made(n=300, d=5, seed=0, squared=False, regression=False, C=1.0, sparsely=False, intercept=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = X @ rng.normal(size=d) + 0.7 * rng.normal(size=n)
    if regression:
        sign = np.vstack([np.ones(n), -np.ones(n)])
        target = sign * f - 0.2
    else:
        sign, target = np.where(f > 0.3, 1.0, -1.0)[None], np.ones((1, n))
    rows = Rows.of(sparse.csr_matrix(X) if sparsely else X, intercept)
    return LinearProblem(rows, sign, target, np.full(n, C), squared)


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_proximal_steps_and_interior_points_agree(regression, C):
    problem = made(regression=regression, C=C)
    gaps = []
    for method in (interior_point, proximal):
        state = method(problem, State(problem, Control(tol=1e-7, max_iter=500)), 1e-7)
        assert state.stopped == "converged"
        gaps.append(problem.primal(state.v, problem.slack(problem.rows.times(state.v))))
    assert gaps[0] == pytest.approx(gaps[1], rel=3e-7)


def test_rounded_hinges_tend_to_hinges():
    problem = made(n=500)
    best = solve_linear_models([problem], Control(tol=1e-9))[0].certificate.primal
    values, state = [], State(problem, Control(tol=1e-9))
    for width in (1.0, 0.3, 0.1, 0.03, 0.01):
        smoothed(problem, state.afresh(200), 1e-9, width)
        values.append(problem.primal(state.v, problem.slack(problem.rows.times(state.v))) - best)
    assert -1e-6 < values[-1] < 0.01 * values[0] + 1e-6
    assert values[0] > 0


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("sparsely", [False, True])
def test_the_detour_by_a_sample_ends_at_the_same_value(monkeypatch, squared, regression, sparsely):
    problem = made(n=4000, squared=squared, regression=regression, sparsely=sparsely)
    direct = solve_linear_models([problem], Control(tol=1e-7))[0].certificate
    monkeypatch.setattr(linear_solve, "_SAMPLE_ROWS", 200)
    monkeypatch.setattr(linear_solve, "COPIED_NUMBERS", 0)
    found = solve_linear_models([problem], Control(tol=1e-7))[0].certificate
    assert direct.converged
    assert found.converged
    assert found.primal == pytest.approx(direct.primal, rel=2e-7)
    if not squared:
        assert "near the margin" in found.solver
        assert "near the margin" not in direct.solver


@pytest.mark.parametrize("squared", [False, True])
def test_a_rare_class_is_in_the_sample(monkeypatch, squared):
    problem = made(n=3000, squared=squared)
    sign = -np.ones((1, 3000))
    sign[0, :4] = 1.0
    problem.sign = sign
    direct = solve_linear_models([problem], Control(tol=1e-7))[0].certificate
    monkeypatch.setattr(linear_solve, "_SAMPLE_ROWS", 100)
    found = solve_linear_models([problem], Control(tol=1e-7))[0].certificate
    assert found.converged
    assert found.primal == pytest.approx(direct.primal, rel=2e-7)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("shape", [(300, 40), (40, 300)])
def test_without_any_matrix_the_value_is_the_same(monkeypatch, squared, shape):
    problem = made(*shape, squared=squared, sparsely=True)
    direct = solve_linear_models([problem], Control(tol=1e-6))[0].certificate
    monkeypatch.setattr(linear_system, "_STEP_UNKNOWNS", 5)
    found = solve_linear_models([problem], Control(tol=1e-6, max_iter=500))[0].certificate
    assert found.converged
    assert found.primal == pytest.approx(direct.primal, rel=2e-6)


@pytest.mark.parametrize("kind", [ByColumns, ByRows, MatrixFree])
@pytest.mark.parametrize("sparsely", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_newton_systems_are_solved(kind, sparsely, intercept):
    rng = np.random.default_rng(3)
    rows = made(30, 20, sparsely=sparsely, intercept=intercept).rows
    system = kind(rows)
    if kind is MatrixFree:
        system.accuracy = 1e-13
    A = np.array([rows.times(e) for e in np.eye(rows.shape[1])]).T
    for weight in (rng.random(30), rng.random(30) * (rng.random(30) < 0.6), np.ones(30)):
        for lift in (0.0, 0.5) if intercept else (0.0,):
            system.update(weight, lift)
            M = np.diag(rows.penalty) + A.T @ (weight[:, None] * A)
            M[-1, -1] += lift
            r = rng.normal(size=len(M))
            np.testing.assert_allclose(system.solve(r), np.linalg.solve(M, r), rtol=1e-6, atol=1e-8)


def test_a_singular_system_is_lifted_and_an_indefinite_one_refused():
    x = cholesky(np.ones((2, 2)))(np.array([1.0, 1.0]))
    np.testing.assert_allclose(x.sum(), 1.0, rtol=1e-6)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparsely", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_rows_are_the_matrix_they_stand_for(dtype, sparsely, intercept):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(50, 4)) * [1.0, 1e3, 1e-3, 0.0] + [0.0, 1e3, 5.0, 2.0]).astype(dtype)
    rows = Rows.of(sparse.csr_matrix(X) if sparsely else X, intercept)
    v = rng.normal(size=rows.shape[1])
    w, b = rows.model(v)
    np.testing.assert_allclose(rows.times(v), X.astype(float) @ w + b, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(rows.vector(w, b), v, rtol=1e-9, atol=1e-9)
    assert rows.penalty @ v**2 == pytest.approx(w @ w)
    A = np.array([rows.times(e) for e in np.eye(rows.shape[1])]).T
    r = rng.random(50)
    np.testing.assert_allclose(rows.transposed(r), A.T @ r, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(rows.gram(r), A.T @ (r[:, None] * A), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(rows.diagonal(r), np.diag(A.T @ (r[:, None] * A)), rtol=1e-6, atol=1e-6)
    some = np.array([3, 7, 8])
    np.testing.assert_allclose(rows.take(some).times(v), rows.times(v)[some], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(rows.gram(-r[:3], some), -A[some].T @ (r[:3, None] * A[some]), rtol=1e-8, atol=1e-8)
    centred = X.astype(float) - rows.centre
    np.testing.assert_allclose(rows.kernel(), centred @ centred.T, rtol=1e-6, atol=1e-6 * (centred**2).max())


@settings(max_examples=60, deadline=None)
@given(problems(), st.integers(0, 2**32 - 1))
def test_the_best_offset_cannot_be_beaten(case, seed):
    X, sign, target, cost, squared, _ = case
    rng = np.random.default_rng(seed)
    problem = LinearProblem(Rows.of(X, True), sign, target, cost, squared)
    f = rng.normal(size=X.shape[0]) + rng.choice([0.0, 1e3])
    t = best_offset(problem, f)
    least = problem.risk(problem.slack(f + t))
    others = np.concatenate([t + rng.normal(size=20) * 10.0 ** rng.uniform(-6, 3, 20), (sign * target - f).ravel()])
    assert all(problem.risk(problem.slack(f + s)) >= least * (1 - 1e-9) - 1e-9 for s in others)


def test_the_best_offset_of_many_rows_is_found_inside_an_interval():
    problem = made(n=5000)
    f = problem.rows.times(np.ones(6))
    t = best_offset(problem, f)
    assert problem.risk(problem.slack(f + t)) == pytest.approx(
        min(problem.risk(problem.slack(f + s)) for s in (problem.sign * problem.target - f).ravel()), rel=1e-12
    )


@settings(max_examples=30, deadline=None)
@given(problems(), st.integers(0, 2**32 - 1))
def test_a_balanced_alpha_is_feasible(case, seed):
    X, sign, target, cost, squared, intercept = case
    problem = LinearProblem(Rows.of(X, intercept), sign, target, cost, squared)
    alpha = balanced(problem, np.random.default_rng(seed).normal(size=sign.shape) * cost)
    assert alpha.min() >= 0
    assert squared or (alpha <= cost).all()
    assert not intercept or abs((sign * alpha).sum()) <= 1e-12 * alpha.sum()


@pytest.mark.parametrize("squared", [False, True])
def test_limits_return_a_bound_and_the_reason(squared):
    problem = made(n=2000, squared=squared, C=100.0)
    best = solve_linear_models([problem], Control(tol=1e-8))[0].certificate.primal
    for control, reason in (
        (Control(tol=1e-12, max_iter=1), "max_iter=1"),
        (Control(tol=1e-12, max_iter=0), "max_iter=0"),
        (Control(tol=1e-12, time_limit=1e-9), "time_limit"),
        (Control(tol=1e-12, report=lambda _: True), "stopped by the callback"),
    ):
        c = solve_linear_models([problem], control)[0].certificate
        assert reason in c.stopped
        assert c.dual <= best * (1 + 1e-9) <= c.primal * (1 + 1e-7)


@pytest.mark.parametrize("sample", [100, 100_000])
def test_an_interrupt_leaves_the_best_so_far(monkeypatch, sample):
    monkeypatch.setattr(linear_solve, "_SAMPLE_ROWS", sample)
    problem = made(n=2000, C=100.0)

    def interrupt(progress):
        if progress.iteration == 3:
            raise KeyboardInterrupt

    c = solve_linear_models([problem], Control(tol=1e-9, report=interrupt))[0].certificate
    assert c.stopped == "interrupted"
    assert np.isfinite([c.primal, c.dual]).all()
    assert c.dual <= c.primal


def test_newton_on_squared_hinges_needs_few_steps():
    problem = made(n=5000, squared=True)
    state = squared_newton(problem, State(problem, Control()), 1e-10)
    assert state.stopped == "converged"
    assert state.steps <= 15


def test_a_constant_that_fits_everything_is_the_solution():
    problem = made(regression=True)
    problem.target = problem.sign * 0.1 - 0.5
    found = solve_linear_models([problem], Control())[0]
    assert not found.w.any()
    assert found.certificate.primal == found.certificate.dual == 0


def test_wrong_dual_variables_are_refused():
    problem = made(n=10)
    with pytest.raises(ValueError, match="not feasible for these data"):
        check_linear(
            problem.rows.X,
            w=np.zeros(5),
            b=0.0,
            sign=problem.sign,
            target=problem.target,
            cost=problem.cost,
            alpha=np.full((1, 10), 2.0),
            squared=False,
            intercept=True,
            tol=1e-3,
        )


def test_values_too_large_to_square_name_their_column():
    with pytest.raises(ValueError, match="column 1 of X has values beyond 1e"):
        Rows.of(np.array([[1.0, 0.0], [2.0, 1e200]]), True)
