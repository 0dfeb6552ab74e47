"""Linear models by looks at all rows: the value of the other solvers, and proofs that hold."""

import numpy as np
import pytest

import mercer.solvers.linear.many as linear_many
import mercer.solvers.linear.solve as linear_solve
from cases import each
from mercer.solvers.control import Control
from mercer.solvers.linear.many import ManyRows, Secants, Sweeper
from mercer.solvers.linear.problem import LinearProblem, State
from mercer.solvers.linear.rows import Rows
from mercer.solvers.linear.solve import solve_linear_models
from mercer.solvers.linear.verify import check_linear


def made(squared=False, regression=False, intercept=True, dtype=np.float64, weights=True, n=40_000, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) * np.geomspace(0.1, 10, d) + 3).astype(dtype)
    f = (X - 3) @ (rng.normal(size=d) / np.geomspace(0.1, 10, d)) + rng.normal(size=n)
    if regression:
        sign = np.broadcast_to([[1.0], [-1.0]], (2, n))
        target = sign * f - 0.5
    else:
        sign, target = np.where(f > 0.3, 1.0, -1.0)[None], np.broadcast_to(1.0, (1, n))
    cost = rng.uniform(0.1, 3.0, n) if weights else np.broadcast_to(0.5, n)
    return LinearProblem(Rows.of(X, intercept), sign, target, cost, squared)


def many(problem, control, size=4000):
    state = State(problem, control)
    return state, ManyRows(problem, linear_solve._sample(problem, size), state, 0.5 * control.tol).solve()


@each("squared", [False, True])
@each("regression", [False, True])
@each("intercept", [False, True])
@each("tol", [1e-3, 1e-5, 1e-8])
def test_it_ends_where_the_others_do_with_a_proof_that_holds(squared, regression, intercept, tol):
    problem = made(squared, regression, intercept)
    direct = solve_linear_models([problem], Control(tol=1e-9))[0]
    state, found = many(problem, Control(tol=tol))
    assert found is not None
    alpha, certificate = found
    assert certificate.converged
    assert certificate.primal == pytest.approx(direct.certificate.primal, rel=1.01 * tol)
    w, b = problem.rows.model(state.v)
    again = check_linear(
        problem.rows.X,
        w=w,
        b=b,
        sign=problem.sign,
        target=problem.target,
        cost=problem.cost,
        alpha=alpha,
        squared=squared,
        intercept=intercept,
        tol=tol,
    )
    assert again.primal == pytest.approx(certificate.primal, rel=1e-10)
    assert again.dual == pytest.approx(certificate.dual, rel=1e-10)


@pytest.mark.parametrize("squared", [False, True])
def test_float32_rows_and_equal_costs(squared):
    single = made(squared, dtype=np.float32, weights=False)
    double = LinearProblem(
        Rows.of(single.rows.X.astype(np.float64), True), single.sign, single.target, single.cost, squared
    )
    values = [many(problem, Control(tol=1e-7))[1][1].primal for problem in (single, double)]
    assert values[0] == pytest.approx(values[1], rel=2e-7)


@pytest.mark.parametrize("squared", [False, True])
def test_the_core_agrees_with_the_problem(squared):
    problem = made(squared)
    v = np.random.default_rng(1).normal(size=problem.rows.shape[1])
    core, alpha = Sweeper(problem), np.empty(problem.sign.shape)
    look = core.sweep(v, 0.3, 1, alpha)
    assert look.risk == pytest.approx(problem.risk(problem.slack(problem.rows.times(v))))
    np.testing.assert_allclose(look.pull, problem.pull(alpha), rtol=1e-9, atol=1e-9)
    z = problem.slack(problem.rows.times(v))[0]
    weight = 2 * problem.cost * (z > 0) if squared else problem.cost / 0.6 * (np.abs(z) < 0.3)
    np.testing.assert_allclose(look.gram, problem.rows.gram(weight), rtol=1e-9, atol=1e-9)
    primal, dual, kkt, pull = core.proof(v, alpha, look.pull, 1.0)
    assert primal == pytest.approx(problem.primal(v, problem.slack(problem.rows.times(v))))
    assert dual == pytest.approx(problem.dual(alpha, pull))
    assert kkt > 0


@pytest.mark.parametrize("squared", [False, True])
def test_limits_and_listeners_end_it(squared):
    problem = made(squared)
    told = []
    state, found = many(problem, Control(tol=1e-6, report=lambda progress: told.append(progress) or len(told) > 4))
    assert found is None
    assert state.limit() == "stopped by the callback"
    assert len(told) == 5
    assert many(problem, Control(tol=1e-6, max_iter=2))[1] is None
    assert many(problem, Control(tol=1e-6, time_limit=1e-9))[1] is None


@pytest.mark.parametrize("squared", [False, True])
def test_what_it_cannot_do_is_left_to_the_others(monkeypatch, squared):
    problem = made(squared)
    direct = solve_linear_models([problem], Control(tol=1e-7))[0].certificate.primal
    monkeypatch.setattr(linear_solve, "_SAMPLE_ROWS", 4000)
    monkeypatch.setattr(linear_many, "_STAGE_STEPS", 1)
    monkeypatch.setattr(linear_many, "_ROWS_PER_COLUMN", 1e-3)  # a Hessian of hardly any rows
    found = solve_linear_models([problem], Control(tol=1e-7))[0].certificate
    assert found.converged
    assert found.primal == pytest.approx(direct, rel=2e-7)


def test_a_constant_that_fits_needs_no_look(monkeypatch):
    problem = made(regression=True)
    problem.target = problem.sign * 4.0 - 0.5
    monkeypatch.setattr(linear_solve, "_SAMPLE_ROWS", 4000)
    monkeypatch.setattr(linear_solve, "ManyRows", None)
    solution = solve_linear_models([problem], Control(tol=1e-7))[0]
    assert solution.certificate.primal == pytest.approx(0.0, abs=1e-12)
    assert abs(solution.b - 4.0) <= 0.5 + 1e-12


def test_an_interrupt_leaves_the_best_so_far(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    problem = made()
    monkeypatch.setattr(linear_solve, "_SAMPLE_ROWS", 4000)
    monkeypatch.setattr(Sweeper, "proof", interrupted)
    certificate = solve_linear_models([problem], Control(tol=1e-7))[0].certificate
    assert certificate.stopped == "interrupted"
    assert certificate.relative_gap < 1


@pytest.mark.parametrize(("n", "size"), [(10, 10), (10, 7), (1000, 999), (1000, 3), (5, 0)])
def test_a_sample_has_no_row_twice(n, size):
    for seed in range(20):
        chosen = linear_solve._spread(np.random.default_rng(seed), n, size)
        assert len(set(chosen)) == size
        assert all(0 <= i < n for i in chosen)


def test_secants_make_up_for_a_bad_hessian():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 10))
    H, v = A.T @ A, rng.normal(size=10)
    poor = H + np.outer(A[0], A[0]) + np.outer(A[1], A[1])  # two directions are wrong: two secants are enough
    sizes, model = [], Secants(poor)
    for _ in range(5):
        sizes.append(np.linalg.norm(H @ v))
        v = v + model.step(v, H @ v)
    assert sizes[1] > 1e-3 * sizes[0]
    assert sizes[4] < 1e-9 * sizes[0]
