"""Looking ahead along the last steps of a decomposition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mercer.solvers.dual.decomposition as decomposition
import mercer.solvers.dual.problem as problem_module
from mercer import RBF, Gram
from mercer.solvers import Control, SVMDual, solve
from mercer.solvers.dual.decomposition import RecentSteps, restore_sum
from mercer.solvers.dual.problem import State


def walked(seed, C=1.0, width=0.0, n=40, steps=3, share=1.0):
    """A problem, its matrix, a state amid its box and the steps of equal sums that led there."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)), rng.choice([-1.0, 1.0], n)
    both = width > 0
    upper = np.where((y > 0) | both, C, 0.0)
    lower = np.where((y < 0) | both, C, 0.0)
    state = State(SVMDual(Gram(RBF(), X), -y, upper, lower, width))
    K = RBF()(X)
    b = y * C * rng.uniform(0.3, 0.7, n)
    recent = RecentSteps(state, lambda where, values: K[:, where] @ values)
    for _ in range(steps):
        step = rng.uniform(-0.08, 0.08, size=n) * C * (rng.random(n) < share)  # never out of the box
        step -= step.mean()
        b = b + step
        recent.keep(step, K @ step)
    state.plus[:], state.minus[:] = np.maximum(b, 0), np.maximum(-b, 0)
    state.gradient[:] = state.linear + K @ b
    return state, K, recent, b


@given(st.integers(0, 10**6), st.sampled_from([0.01, 1.0, 100.0]), st.sampled_from([0.0, 0.1]))
@settings(max_examples=60, deadline=None)
def test_the_box_and_the_sum_are_kept(seed, C, width):
    state, K, recent, b = walked(seed, C, width)
    ahead = recent.extrapolation()
    if ahead is None:
        return
    gradient, plus, minus = (a.copy() for a in ahead[:3])
    np.testing.assert_allclose(gradient, state.linear + K @ (plus - minus), atol=1e-9 * max(1.0, C))
    assert ((plus - minus) * b >= 0).all()  # no one has crossed 0, where the objective has a kink
    assert restore_sum(ahead.missing, K, gradient, plus, minus, state.upper, state.lower)
    assert np.isclose((plus - minus).sum(), b.sum(), atol=1e-9 * max(1.0, C))
    for part, bound in ((plus, state.upper), (minus, state.lower)):
        assert ((part >= 0) & (part <= bound)).all()
    np.testing.assert_allclose(gradient, state.linear + K @ (plus - minus), atol=1e-9 * max(1.0, C))


@pytest.mark.parametrize("width", [0.0, 0.1])
def test_where_no_bound_is_near_it_is_the_minimum_over_the_span(width):
    state, K, recent, b = walked(0, width=width)
    steps = [step for step, _ in recent._steps]
    optimum = b + 0.02 * steps[0] - 0.01 * steps[2] + np.random.default_rng(0).normal(size=len(b)) * 1e-4
    state.linear[:] = 5.0 - K @ optimum - width * np.sign(b)  # 5: any offset
    state.gradient[:] = state.linear + K @ b
    before = state.dual
    ahead = recent.extrapolation()
    old, new = (np.abs([(g + width * np.sign(b)) @ step for step in steps]).max() for g in (state.gradient, ahead[0]))
    assert new <= 1e-10 * old
    assert ahead.missing == pytest.approx(0.0, abs=1e-12)
    state.gradient, state.plus, state.minus = ahead[:3]
    assert state.dual > before


def test_a_sum_that_no_one_can_restore_is_refused():
    one = np.ones(3)
    assert not restore_sum(5.0, np.eye(3), np.zeros(3), 0.9 * one, 0.0 * one, one, 0.0 * one)
    assert not restore_sum(-5.0, np.eye(3), np.zeros(3), 0.9 * one, 0.0 * one, one, 0.0 * one)


@pytest.mark.parametrize("width", [0.0, 0.05])
def test_a_decomposition_that_looks_ahead_finds_the_solution_of_the_whole_matrix(monkeypatch, width):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(700, 6))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=700) > 0, 1.0, -1.0) if width == 0 else np.sin(X).sum(axis=1)
    upper = np.where((y > 0) | (width > 0), 100.0, 0.0)
    lower = np.where((y < 0) | (width > 0), 100.0, 0.0)
    problem = SVMDual(Gram(RBF(3.0), X), -y, upper, lower, width)
    (whole,) = solve([problem], Control(tol=1e-5))
    looked = []
    ahead = RecentSteps.extrapolation
    monkeypatch.setattr(RecentSteps, "extrapolation", lambda self: looked.append(ahead(self)) or looked[-1])
    monkeypatch.setattr(problem_module, "WHOLE", 0)
    monkeypatch.setattr(problem_module, "LARGEST", 64)
    monkeypatch.setattr(decomposition, "_SMALLEST", 32)
    (found,) = solve([problem], Control(tol=1e-5))
    assert found.certificate.converged
    assert any(a is not None for a in looked)
    assert found.certificate.dual == pytest.approx(whole.certificate.dual, rel=2e-5)
    assert abs(found.coefficients.sum()) <= 1e-10 * np.abs(found.coefficients).sum()
