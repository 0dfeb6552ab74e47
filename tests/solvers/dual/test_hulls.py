"""The nearest points of convex hulls: known distances, Clarabel's, and mixtures that anyone can check."""

import numpy as np
import pytest

import referee
from cases import each
from mercer import RBF, Polynomial
from mercer.solvers.dual import hulls
from mercer.solvers.dual.hard import pivoted_factor
from mercer.solvers.dual.hulls import (
    _Equations,
    in_mixture,
    mixtures,
    nearest,
    nearest_on_matrix,
    on_matrix,
    refined_on_matrix,
)


def never():
    return False


def labels(n, rng):
    sign = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    sign[:2] = 1.0, -1.0
    return sign


def distance(K, sign, free):
    """Clarabel's: |w| at the smallest |w|^2 / 2 over all mixtures."""
    if free:
        dual = referee.nu_svc(K, sign, 2 / len(sign))
        dual.upper, dual.lower = (np.where(side, np.inf, 0.0) for side in (sign > 0, sign < 0))
    else:
        dual = referee.one_class(K * sign * sign[:, None], 1 / len(sign))
        dual.upper = np.full(len(sign), np.inf)
    return np.sqrt(max(0.0, -2 * referee.solve(dual).dual))


def assert_mixtures(b, sign, free):
    assert (sign * b >= 0).all()
    sums = np.maximum(b, 0).sum(), np.maximum(-b, 0).sum()
    assert sums == pytest.approx((1, 1), abs=1e-12) if free else sum(sums) == pytest.approx(1, abs=1e-12)


@each("free", [True, False])
@each("seed", range(8))
def test_vectors_and_matrices_have_the_distance_that_clarabel_finds(seed, free):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 40)), int(rng.integers(1, 12))
    X, sign = rng.normal(size=(n, d)), labels(n, rng)
    want, size = distance(X @ X.T, sign, free), np.linalg.norm(X, axis=1).max()
    found = nearest(X, sign, free, 1e-9, 1e-15 * size, never)
    assert_mixtures(found.b, sign, free)
    assert found.apart == pytest.approx(np.linalg.norm(X.T @ found.b), abs=1e-14)
    assert found.apart == pytest.approx(want, rel=1e-6, abs=1e-5)
    assert found.margin <= found.apart * (1 + 1e-12) or found.apart < 1e-12
    again = nearest_on_matrix(X @ X.T, sign, free, 1e-9, 1e-8 * size)
    assert_mixtures(again.b, sign, free)
    assert again.apart == pytest.approx(want, rel=1e-6, abs=1e-5)


def test_the_solution_names_the_points_that_hold_it():
    X = np.concatenate([np.arange(1.0, 30.0), -np.arange(2.0, 40.0)])[:, None]
    found = nearest(X, np.sign(X[:, 0]), True, 1e-9, 0.0, never)
    assert set(np.flatnonzero(found.b)) == {0, 29}
    assert (found.apart, found.margin) == pytest.approx((3.0, 3.0), rel=1e-12)


@pytest.mark.parametrize("apart", [1e-3, 1e-7, 1e-11])
def test_a_distance_that_is_small_beside_the_points_is_found_in_full(apart):
    rng = np.random.default_rng(0)
    X = np.concatenate([[0.0, apart], -rng.uniform(size=100), apart + rng.uniform(size=100)])[:, None]
    sign = np.where(X[:, 0] > apart / 2, 1.0, -1.0)
    found = nearest(X, sign, True, 1e-6, 1e-15, never)
    assert found.margin == pytest.approx(apart, rel=1e-9)
    assert found.gap <= 1e-6


def test_hulls_that_touch_in_one_point_meet():
    X = np.array([[0.0], [1.0], [1.0], [2.0]]) - 1.0
    sign = np.array([1.0, 1.0, -1.0, -1.0])
    found = nearest(X, sign, True, 1e-9, 4e-15, never)
    assert np.abs(X.T @ found.b).max() <= 4e-15
    assert_mixtures(found.b, sign, True)


def test_equations_refine_mixtures_of_the_right_points():
    rng = np.random.default_rng(0)
    X, sign = rng.normal(size=(40, 2)), labels(40, rng)
    K = RBF(0.5)(X)
    exact = nearest_on_matrix(K, sign, True, 1e-10, 0.0)
    worse = on_matrix(K, mixtures(exact.b * rng.uniform(0.5, 1.5, 40), True), sign, True)
    better = refined_on_matrix(K, in_mixture(K, worse, sign, True), sign, True)
    assert worse.gap > 1e-2
    assert better.gap <= 1e-9
    assert better.apart == pytest.approx(exact.apart, rel=1e-7)


def separable(n: int, seed: int, scale: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return RBF(scale)(rng.normal(size=(n, 3))), labels(n, rng)


@pytest.mark.parametrize("free", [True, False])
def test_points_that_join_and_leave_border_the_equations_of_the_others(free):
    K, sign = separable(150, 1)
    rng, equations = np.random.default_rng(2), _Equations(K, sign, free)
    at = rng.random(150) < 0.6
    for _ in range(6):
        b, values, level = equations.solve(at)
        sums = np.stack([sign[at] > 0, sign[at] < 0]) if free else sign[None, at]
        alike = np.linalg.solve(K[np.ix_(at, at)], sums.T.astype(float))
        want = np.linalg.solve(sums @ alike, [1.0, -1.0] if free else [1.0])
        np.testing.assert_allclose(level, want, rtol=1e-6)
        np.testing.assert_allclose(b[at], alike @ want, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(values, K @ b, atol=1e-13)
        assert not b[~at].any()
        at = at.copy()
        at[rng.choice(150, 8, replace=False)] ^= True


@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_any_start_leads_to_the_distance_that_clarabel_finds(free, scale):
    K, sign = separable(120, 3, scale)
    want = distance(K, sign, free)
    rng = np.random.default_rng(4)
    weights = rng.random(120) ** 8  # few points have most of it
    for start in (None, sign * weights, sign * (weights > 0.5), np.zeros(120)):
        found = nearest_on_matrix(K, sign, free, 1e-8, 0.0, start)
        assert_mixtures(found.b, sign, free)
        assert found.apart == pytest.approx(want, rel=1e-5, abs=1e-6)


def test_a_start_near_the_solution_saves_steps():
    K, sign = separable(300, 5, 1.0)
    far = nearest_on_matrix(K, sign, True, 1e-8, 0.0)
    near = nearest_on_matrix(K, sign, True, 1e-8, 0.0, far.b)
    assert near.steps < far.steps
    assert near.apart == pytest.approx(far.apart, rel=1e-7)


def test_equations_need_points_of_both_classes_that_can_be_told_apart():
    K, sign = separable(20, 6)
    assert refined_on_matrix(K, sign > 0, sign, True) is None
    assert refined_on_matrix(np.ones((20, 20)), np.ones(20, bool), sign, True) is None


def test_it_leaves_when_it_is_told_to():
    rng = np.random.default_rng(0)
    X, sign = rng.normal(size=(30, 2)), labels(30, rng)
    assert nearest(X, sign, True, 1e-9, 0.0, lambda: True).steps == 0


@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("apart", [0.0, 3.0])
def test_steps_on_few_columns_lead_to_the_same_mixtures(free, apart):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 2))
    sign = labels(300, rng)
    X[:, 0] += apart * sign
    K = RBF(3.0)(X)
    factor = pivoted_factor(K)
    assert factor.values.shape[1] < 200
    assert np.all(np.diff(factor.left) <= 0)
    ways = [nearest(factor.values, sign, free, 1e-8, 1e-7, never, columns) for columns in (None, factor)]
    for found in ways:
        assert_mixtures(found.b, sign, free)
    assert ways[1].apart == pytest.approx(ways[0].apart, rel=1e-5, abs=1e-6)


def test_equations_end_the_steps_on_columns_at_the_points_that_hold_the_margin():
    rng = np.random.default_rng(0)
    X, sign = rng.normal(size=(400, 4)), labels(400, rng)
    K = Polynomial(6)(X)
    factor = pivoted_factor(K)
    assert factor.values.shape[1] < 300
    found = nearest(factor.values, sign, True, 1e-4, 1e-7, never, factor)
    assert found.gap <= 1e-4
    assert_mixtures(found.b, sign, True)
    assert np.count_nonzero(found.b) <= factor.values.shape[1] + 2  # as many as there are directions, not all
    assert found.apart == pytest.approx(distance(K, sign, True), rel=1e-4)


def test_equations_that_fail_are_tried_again_at_a_much_smaller_gap(monkeypatch):
    tried = []
    monkeypatch.setattr(hulls, "refined_on_matrix", lambda K, at, sign, free, tol, steps: tried.append(steps))
    refine = hulls._Refinement(np.eye(4), np.array([1.0, 1.0, -1.0, -1.0]), True, 1e-3)
    for steps, gap in enumerate((1.0, 0.5, 0.02, 0.01, 0.003, 0.001, 0.0009)):
        assert refine(np.arange(4), np.ones(4), np.ones(4), gap, steps) is None
    assert tried == [2, 5]


def test_it_is_asked_to_leave_also_far_from_the_solution():
    rng, asked = np.random.default_rng(0), []

    def stop():
        asked.append(True)
        return len(asked) > 1

    nearest(rng.normal(size=(600, 300)), labels(600, rng), True, 1e-9, 0.0, stop)
    assert len(asked) <= 3
