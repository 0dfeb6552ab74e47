"""Newton's method: finite ends, true descent, the right minimum with and without factorisations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import conic
from cases import each
from mercer.certify.representer import check_representer
from mercer.gram import Gram
from mercer.kernels import RBF, Linear
from mercer.losses import (
    Expectile,
    Exponential,
    Huber,
    Logistic,
    Poisson,
    SmoothedHinge,
    SquaredEpsilonInsensitive,
    SquaredHinge,
    SquaredNorm,
)
from mercer.solvers.control import Control
from mercer.solvers.representer import newton, problem
from mercer.solvers.representer.newton import Newton
from mercer.solvers.representer.problem import Task
from mercer.solvers.run import Run
from mercer.solvers.systems.system import Systems

QUADRATIC = [SquaredHinge(), SquaredEpsilonInsensitive(0.2), Huber(0.3), Expectile(0.8), SmoothedHinge(0.5)]
CURVED = [Logistic(), Poisson(), Exponential()]


def run(loss, X, y, strength, kernel=None, intercept=True, tol=1e-10, start=None, method="cholesky", b=0.0, **limits):
    gram = Gram(kernel or RBF(1.0), X)
    control = Control(tol=tol, **limits)
    task = Task(Systems(gram, control, method=method), y, loss, np.ones(len(y)), intercept, strength, start, b)
    course = Run(control, (y,))
    return Newton(task, course).run(tol), course


@pytest.mark.parametrize("loss", QUADRATIC, ids=repr)
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), strength=st.sampled_from([1e-4, 1e-2, 1.0, 100.0]), intercept=st.booleans())
def test_piecewise_quadratic_losses_end_after_finitely_many_steps(loss, seed, strength, intercept):
    X, y = conic.draw(loss, seed, 25)
    point, course = run(loss, X, y, strength, intercept=intercept)
    assert point.stopped == "converged"
    assert course.steps <= 80
    again, after = run(loss, X, y, strength, intercept=intercept, start=point.a)
    assert after.steps <= 1
    assert again.gap <= 1e-9 * max(again.primal, 1e-300) + again.rounding


@each("loss", [*QUADRATIC, *CURVED], ids=repr)
@each("intercept", [True, False])
def test_the_minimum_is_that_of_a_generic_method(loss, intercept):
    X, y = conic.draw(loss, 0, 20)
    point, _ = run(loss, X, y, 0.1, intercept=intercept)
    K = np.asarray(Gram(RBF(1.0), X).dense())
    L = np.linalg.cholesky(K + 1e-13 * np.eye(20))

    def objective(z):
        c, b = z[:20], z[20] * intercept
        v = L @ c + b
        u = loss.derivative(y, v)
        return loss.value(y, v).sum() + 0.05 * c @ c, np.append(L.T @ u + 0.1 * c, u.sum() * intercept)

    found = minimize(
        objective, np.zeros(21), jac=True, method="L-BFGS-B", options={"maxiter": 10**4, "ftol": 1e-15, "gtol": 1e-10}
    )
    assert point.primal <= found.fun * (1 + 1e-9)
    assert point.primal >= found.fun * (1 - 1e-6)


@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge(), Huber(0.3)], ids=repr)
@pytest.mark.parametrize("intercept", [True, False])
def test_conjugate_gradients_find_what_factors_find(loss, intercept):
    X, y = conic.draw(loss, 0, 300)
    exact, _ = run(loss, X, y, 0.3, intercept=intercept, tol=1e-9)
    inexact, _ = run(loss, X, y, 0.3, intercept=intercept, tol=1e-9, method="cg")
    assert inexact.stopped == "converged"
    assert inexact.primal == pytest.approx(exact.primal, rel=1e-8)
    np.testing.assert_allclose(inexact.f + inexact.b, exact.f + exact.b, atol=1e-3)


@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge()], ids=repr)
def test_kernel_values_in_float32_are_not_believed_at_the_end(loss, monkeypatch):
    monkeypatch.setattr(problem, "_HELD_POINTS", 0)  # as for many points
    monkeypatch.setattr(newton, "_GAP_POINTS", 0)
    X, y = conic.draw(loss, 0, 400)
    point, _ = run(loss, X, y, 0.01, tol=1e-7, method="cg")
    assert point.stopped == "converged"
    checked = check_representer(
        RBF(1.0), X, y, coefficients=point.a, offset=point.b, loss=loss, penalty=SquaredNorm(0.01), tol=2e-7
    )
    assert checked.converged, checked


def test_a_run_is_interrupted_wherever_it_is(monkeypatch):
    X, y = conic.draw(Logistic(), 0, 30)
    calls = []
    before = Systems.solve

    def solve(self, *args, **options):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return before(self, *args, **options)

    monkeypatch.setattr(Systems, "solve", solve)
    point, course = run(Logistic(), X, y, 1e-6)
    assert point.stopped == "interrupted"
    assert course.control.cancelled
    assert np.isfinite(point.gap)


def test_no_curvature_anywhere_is_no_obstacle():
    X, y = conic.draw(SquaredHinge(), 0, 20)
    far = 1e6 * y * np.ones(20)  # every point far outside: the loss is flat
    point, _ = run(SquaredHinge(), X, y, 1e-3, kernel=Linear() + RBF(0.3), start=far - far.mean())
    fresh, _ = run(SquaredHinge(), X, y, 1e-3, kernel=Linear() + RBF(0.3))
    assert point.stopped == "converged"
    assert point.primal == pytest.approx(fresh.primal, rel=1e-8)


@pytest.mark.parametrize("loss", CURVED, ids=repr)
@pytest.mark.parametrize("size", [-300.0, -30.0, 30.0, 300.0])
def test_curvatures_of_any_size(loss, size):
    X, y = conic.draw(loss, 0, 20)
    start = size * np.random.default_rng(0).normal(size=20)
    point, course = run(loss, X, y, 0.01, start=start)
    assert point.stopped == "converged"
    assert point.primal == pytest.approx(run(loss, X, y, 0.01)[0].primal, rel=1e-8)
    assert course.steps < 200


@pytest.mark.parametrize("label", [1.0, -1.0])
@pytest.mark.parametrize("loss", [Logistic(), Exponential(), SquaredHinge()], ids=repr)
def test_one_label_alone_gives_a_finite_intercept(loss, label):
    X, _ = conic.draw(loss, 0, 10)
    point, _ = run(loss, X, np.full(10, label), 1.0)
    assert point.stopped == "converged"
    assert np.isfinite(point.b)
    assert (label * (point.f + point.b) > 0.5).all()
    assert point.primal < 1e-10


def test_a_constant_truth_is_reached_by_the_intercept():
    X, _ = conic.draw(Huber(), 0, 10)
    point, _ = run(Huber(), X, np.full(10, 3e8), 1.0)
    assert point.stopped == "converged"
    assert point.b == pytest.approx(3e8)


class Cauchy:
    """Not convex: outliers pull less the farther they are."""

    smooth, convex = True, False

    def value(self, y, f):
        return np.log1p((f - y) ** 2)

    def derivative(self, y, f):
        return 2 * (f - y) / (1 + (f - y) ** 2)


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), strength=st.sampled_from([1e-6, 1e-2, 1.0]), intercept=st.booleans())
def test_a_loss_that_is_not_convex_goes_down_to_a_stationary_point(seed, strength, intercept):
    X, y = conic.draw(Cauchy(), seed, 20)
    y[::5] += 10.0
    point, course = run(Cauchy(), X, y, strength, intercept=intercept, tol=1e-8)
    assert point.stopped == "converged"
    assert point.primal <= np.log1p((y) ** 2).sum() + 1e-9
    K = np.asarray(Gram(RBF(1.0), X).dense())
    gradient = K @ (strength * point.a + Cauchy().derivative(y, point.f + point.b))
    assert np.abs(gradient).max() <= 1e-2
    primal = np.array(course.history)[:, 1]
    assert (np.diff(primal) <= 1e-6 * np.abs(primal[:-1])).all()


def test_the_offset_settles_where_the_slopes_balance():
    _, y = conic.draw(Logistic(), 0, 50)
    f = np.random.default_rng(0).normal(size=50)
    task = Task(None, y, Logistic(), np.ones(50), True, 1.0)
    for start in (-1e3, 0.0, 1e3):
        b = task.best_offset(f, start)
        assert abs(Logistic().derivative(y, f + b).sum()) < 1e-12


def test_the_gap_is_known_without_a_conjugate():
    X, y = conic.draw(Logistic(), 0, 30)
    hidden = type("Hidden", (), {"smooth": True, "value": Logistic().value, "derivative": Logistic().derivative})()
    one, _ = run(hidden, X, y, 0.1, tol=1e-8)
    other, _ = run(Logistic(), X, y, 0.1, tol=1e-8)
    assert one.stopped == "converged"
    assert one.primal == pytest.approx(other.primal, rel=1e-8)


def test_a_product_shows_how_far_the_dual_point_is(monkeypatch):
    """-strength a, where it is outside of the conjugate's domain, is put right, and what that does in H is computed."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    y = np.where(X[:, 0] > 0.3 * rng.standard_normal(300), 1.0, -1.0)
    gram, strength = Gram(RBF(1.0), X), 0.1
    control = Control()
    exact, _ = run(SquaredHinge(), X, y, strength, intercept=False)
    a = exact.a - 1e-3 * y  # rows that had no coefficient have one of the wrong sign
    task = Task(Systems(gram, control), y, SquaredHinge(), np.ones(300), False, strength, a)
    monkeypatch.setattr(newton, "_GAP_POINTS", 0)
    solver = Newton(task, Run(control, (y,)))
    loose, tight = solver._look(0.0, product=False), solver._look(0.0)
    assert tight.gap < 0.9 * loose.gap
    K = gram.dense()
    for point in (loose, tight):
        u = point.u  # of the losses; the dual is - sum of conjugates - |u|_K^2 / (2 strength)
        assert np.all(y * u <= 0)
        conjugates = float((y * u + u**2 / 4).sum())
        assert point.conjugates == pytest.approx(conjugates)
        dual = -conjugates - float(u @ K @ u) / (2 * strength)
        assert dual <= exact.primal + 1e-9
        assert point.gap >= point.primal - dual - 1e-9
    assert tight.gap == pytest.approx(tight.primal - dual)
    assert tight.pull == pytest.approx(float(u @ K @ u))
