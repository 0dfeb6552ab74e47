"""Linear models on few rows or many columns: Newton on the kernel matrix and SMO against interior points."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import mercer.solvers.linear.solve as linear_solve
from cases import each
from mercer.solvers.control import Control
from mercer.solvers.linear.interior import interior_point
from mercer.solvers.linear.newton import by_kernel, proximal_by_kernel, squared_by_kernel, squared_newton
from mercer.solvers.linear.problem import LinearProblem, State
from mercer.solvers.linear.rows import Rows
from mercer.solvers.linear.solve import by_decomposition, finish, solve_linear_models, solve_tiny


def made(n=120, d=150, regression=False, C=1.0, squared=False, intercept=True, sparsely=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 3.0 * intercept
    f = (X - X.mean(axis=0)) @ rng.normal(size=d) / np.sqrt(d) + 0.5 * rng.normal(size=n)
    if regression:
        sign = np.vstack([np.ones(n), -np.ones(n)])
        target = sign * f - 0.2
    else:
        sign, target = np.where(f > 0.1, 1.0, -1.0)[None], np.ones((1, n))
    rows = Rows.of(sparse.csr_matrix(X) if sparsely else X, intercept)
    return LinearProblem(rows, sign, target, C * rng.uniform(0.5, 2.0, n), squared)


def proven(problem, state, tol):
    certificate = finish(problem, state)[2]
    assert certificate.relative_gap <= tol
    return certificate.primal


@each("regression", [False, True])
@each("C", [0.01, 1.0, 100.0])
@each("intercept", [False, True])
@each("shape", [(120, 150), (120, 40), (30, 300)])
def test_squared_losses_on_the_kernel_matrix_are_those_in_the_columns(regression, C, intercept, shape):
    problem = made(*shape, regression, C, squared=True, intercept=intercept)
    values = [
        proven(problem, method(problem, State(problem, Control(tol=1e-9)), 1e-10), 1e-8)
        for method in (squared_by_kernel, squared_newton)
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-8)


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("sparsely", [False, True])
def test_separable_hinges_on_the_kernel_matrix_are_those_of_interior_points(regression, intercept, sparsely):
    problem = made(regression=regression, C=100.0, intercept=intercept, sparsely=sparsely)
    state = State(problem, Control(tol=1e-7))
    assert proximal_by_kernel(problem, state, 5e-8)
    other = interior_point(problem, State(problem, Control(tol=1e-7)), 1e-8)
    assert proven(problem, state, 1e-7) == pytest.approx(proven(problem, other, 1e-7), rel=2e-7)


def test_bounds_that_matter_are_left_to_others():
    problem = made(C=1e-4)
    state = State(problem, Control())
    assert not proximal_by_kernel(problem, state, 1e-5)
    assert state.alpha is None
    assert not state.v.any()
    found = solve_linear_models([problem], Control(tol=1e-6))[0].certificate
    assert "SMO" in found.solver
    assert found.converged


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("C", [1e-3, 1.0])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("sparsely", [False, True])
def test_smo_is_interior_points(monkeypatch, regression, C, intercept, sparsely):
    monkeypatch.setattr(linear_solve, "_SMO_STEPS_PER_ROW", 100_000)  # it may crawl
    problem = made(100, 70, regression, C, intercept=intercept, sparsely=sparsely)
    state = by_decomposition(problem, State(problem, Control(tol=1e-7)), 5e-8)
    other = interior_point(problem, State(problem, Control(tol=1e-7)), 1e-8)
    assert proven(problem, state, 1e-7) == pytest.approx(proven(problem, other, 1e-7), rel=2e-7)


def test_tiny_problems_are_solved_together(monkeypatch):
    problem = made(60, 5, C=0.5)
    several = [problem, replace(problem, sign=-problem.sign), replace(problem, sign=np.roll(problem.sign, 7, axis=1))]
    together = solve_linear_models(several, Control(tol=1e-6))
    assert all("many small problems" in s.certificate.solver for s in together)
    monkeypatch.setattr(linear_solve, "_SMO_ROWS", 0)
    for one, found in zip(several, together, strict=True):
        alone = solve_linear_models([one], Control(tol=1e-6))[0].certificate
        assert "interior" in alone.solver
        assert found.certificate.primal == pytest.approx(alone.primal, rel=2e-6)


def test_an_interrupt_of_tiny_problems_leaves_bounds(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(linear_solve, "solve_small", interrupted)
    problem, control = made(60, 5, C=0.5), Control()
    assert solve_tiny([problem], control) == [None]
    certificate = solve_linear_models([problem], control)[0].certificate
    assert certificate.stopped == "interrupted"
    assert certificate.dual <= certificate.primal


def test_rounding_errors_on_the_kernel_matrix_are_left_to_others(monkeypatch):
    def lost(*_):
        raise np.linalg.LinAlgError("not positive definite")

    problem = made(300, 400, C=10.0)
    assert by_kernel(problem.rows)
    best = solve_linear_models([problem], Control(tol=1e-7))[0].certificate
    assert "kernel matrix" in best.solver
    monkeypatch.setattr(linear_solve, "proximal_by_kernel", lost)
    found = solve_linear_models([problem], Control(tol=1e-6))[0].certificate
    assert "kernel matrix" not in found.solver
    assert found.primal == pytest.approx(best.primal, rel=2e-6)


@pytest.mark.parametrize("squared", [False, True])
def test_limits_on_wide_data_return_a_bound_and_the_reason(squared):
    problem = made(300, 400, C=10.0, squared=squared)
    best = solve_linear_models([problem], Control(tol=1e-8))[0].certificate.primal
    for control, reason in (
        (Control(tol=1e-12, max_iter=1), "max_iter=1"),
        (Control(tol=1e-12, time_limit=1e-9), "time_limit"),
        (Control(tol=1e-12, report=lambda _: True), "stopped by the callback"),
    ):
        c = solve_linear_models([problem], control)[0].certificate
        assert reason in c.stopped
        assert c.dual <= best * (1 + 1e-9) <= c.primal * (1 + 1e-7)
