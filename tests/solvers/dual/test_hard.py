"""Hard margins: known widths, Clarabel without bounds, and evidence against them that anyone can check."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

import mercer.solvers.dual.hard as hard
import referee
from cases import each
from mercer import RBF, Gram, Linear, Polynomial, Precomputed
from mercer.solvers import Control, Infeasible, SVMDual, solve


def machine(X, y, kernel=None, offset="free"):
    bound = np.where(y > 0, np.inf, 0.0), np.where(y < 0, np.inf, 0.0)
    return SVMDual(Gram(kernel or Linear(), X), -y, *bound, offset=offset)


def fit(X, y, kernel=None, tol=1e-8, **rest):
    (found,) = solve([machine(X, y, kernel, **rest)], Control(tol=tol))
    return found


def margin(found):
    """The distance between the classes: 2 / |w|, and |w|^2 = 2 D at the optimum."""
    return 2 / np.sqrt(2 * found.certificate.dual)


def apart(n=60, d=4, seed=0, by=1.0):
    """Two clouds with the plane x_0 = 0 between them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    y[:2] = 1, -1
    X[:, 0] = y * (by + rng.exponential(size=n))
    return X, y


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e5])
def test_two_points_are_their_distance_apart(scale):
    a, b = scale * np.array([1.0, 2.0, 3.0]), scale * np.array([4.0, -2.0, 3.0])
    found = fit(np.array([a, b]), np.array([1.0, -1.0]))
    square = (a - b) @ (a - b)
    assert margin(found) == pytest.approx(np.sqrt(square))
    assert found.coefficients == pytest.approx([2 / square, -2 / square])
    assert found.values == pytest.approx([1.0, -1.0])
    assert found.offset == pytest.approx(-(a @ a - b @ b) / square)


def test_two_points_in_the_feature_space_of_a_kernel():
    X = np.array([[0.0], [1.3]])
    found = fit(X, np.array([1.0, -1.0]), RBF(0.7))
    assert margin(found) ** 2 == pytest.approx(2 - 2 * np.exp(-0.5 * (1.3 / 0.7) ** 2))


def test_only_the_nearest_points_hold_the_margin():
    X = np.concatenate([np.arange(1.0, 30.0), -np.arange(2.0, 40.0)])[:, None]
    y = np.sign(X[:, 0])
    found = fit(X, y)
    assert margin(found) == pytest.approx(3.0)
    assert set(np.flatnonzero(found.coefficients)) == {0, 29}
    assert found.offset == pytest.approx(1 / 3)  # f(1) = 1 and f(-2) = -1


def test_parallel_edges_with_many_supports():
    """Any mixture of the points on the edges will do; the width is that between the edges."""
    along = np.linspace(-5, 5, 21)
    X = np.concatenate([np.column_stack([along, np.full(21, 2.0)]), np.column_stack([along, np.full(21, -0.5)])])
    y = np.repeat([1.0, -1.0], 21)
    turn = np.array([[np.cos(0.4), -np.sin(0.4)], [np.sin(0.4), np.cos(0.4)]])
    found = fit(X @ turn, y)
    assert margin(found) == pytest.approx(2.5)
    assert y * found.values == pytest.approx(np.ones(42), abs=1e-4)


@each("offset", ["free", "none"])
@each("kernel", [Linear(), RBF(2.0)], ids=str)
@each("seed", range(4))
def test_clarabel_finds_the_same_margin_without_any_bound(seed, kernel, offset):
    X, y = apart(seed=seed)
    found = fit(X, y, kernel, offset=offset)
    problem = referee.svc(kernel(X), y, np.inf)
    problem.upper, problem.lower = np.where(y > 0, np.inf, 0.0), np.where(y < 0, np.inf, 0.0)
    problem.offset = offset
    assert found.certificate.dual == pytest.approx(referee.solve(problem).dual, rel=1e-6)
    assert found.certificate.relative_gap <= 1e-6
    assert found.certificate.primal >= found.certificate.dual
    assert (y * found.values).min() >= 1 - 1e-4
    assert (y * found.coefficients >= 0).all()


def test_the_primal_is_that_of_a_machine_without_errors():
    X, y = apart(n=200)
    found = fit(X, y, tol=1e-2)
    w = found.coefficients @ X
    smallest = (y * (X @ w + found.offset)).min()
    assert smallest > 0
    assert found.certificate.primal == pytest.approx(0.5 * (w @ w) / smallest**2, rel=1e-6)


def test_classes_that_nearly_touch_are_told_apart():
    """w = (-2000, 10000) at the least: f(0, 0) = 1 and f(0.001, 0) = -1, f(5, 1) = 1 and f(5, -1) < -1."""
    X = np.array([[0.0, 0.0], [5.0, 1.0], [1e-3, 0.0], [5.0, -1.0]])
    y = np.array([1.0, 1.0, -1.0, -1.0])
    found = fit(X, y)
    assert margin(found) == pytest.approx(2 / np.hypot(2000, 10000))
    assert (y * found.values).min() >= 1 - 1e-4


def test_features_of_other_units_do_not_hide_a_margin():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * [1.0, 1e3, 0.1]
    y = np.sign(X[:, 0])
    X[:, 0] += 0.05 * y
    assert margin(fit(X, y, tol=1e-3)) >= 0.1 * (1 - 1e-3)


def test_one_class_alone_needs_no_direction():
    X, _ = apart()
    found = fit(X, np.ones(len(X)))
    assert not found.coefficients.any()
    assert (found.values >= 1 - 1e-9).all()


# -- no margin --------------------------------------------------------------------------------------------


def evidence(problem, control=None):
    with pytest.raises(Infeasible, match="cannot be separated by a hard margin") as caught:
        solve([problem], control or Control(tol=1e-3))
    return caught.value


def assert_meet(K, y, b, size, rounding=1e-14):
    """The two mixtures are one point of the feature space: no function separates what they are made of."""
    assert (b * y >= 0).all()
    assert (np.maximum(b, 0).sum(), np.maximum(-b, 0).sum()) == pytest.approx((1, 1), abs=1e-12)
    assert np.sqrt(max(0.0, b @ K @ b)) <= rounding * size


@pytest.mark.parametrize("seed", range(3))
def test_the_evidence_is_two_mixtures_that_meet(seed):
    X, y = apart(n=80, seed=seed)
    y[5:9] *= -1
    found = evidence(machine(X, y))
    assert_meet(X @ X.T, y, found.coefficients, np.linalg.norm(X, axis=1).max(), 1e-7)  # the root of a sum that is 0
    assert np.abs(found.coefficients @ X).max() <= 1e-13 * np.abs(X).max()


def test_a_point_inside_a_triangle():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.25, 0.25]])
    y = np.array([1.0, 1.0, 1.0, -1.0])
    b = evidence(machine(X, y)).coefficients
    assert b == pytest.approx([0.5, 0.25, 0.25, -1], abs=1e-12)  # the only mixture that is the inner point


def test_the_width_it_excludes_is_a_bound():
    """The message never excludes what exists: here a margin too narrow for sums of kernel values in float64."""
    X = np.array([[10.0], [10.0 + 1e-9], [11.0], [-10.0]])
    y = np.array([1.0, -1.0, -1.0, 1.0])
    found = evidence(machine(X, y))
    (width,) = re.findall(r"wider than ([0-9.e+-]+),", str(found))
    assert X[1, 0] - X[0, 0] <= float(width) <= 2e-9
    assert "points are up to 11 long in feature space" in str(found)


def test_the_sentence_counts_the_points_of_the_mixtures():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.25, 0.25]])
    found = evidence(machine(X, np.array([1.0, 1.0, 1.0, -1.0])))
    assert "a mixture of 3 points of one class and one of 1 points of the other are no farther apart" in str(found)
    assert "Use a finite C, or a kernel that separates more" in str(found)


@each("kernel", [Linear(), Polynomial(2)], ids=str)
@each("offset", ["free", "none"])
@each("seed", range(6))
def test_a_linear_program_decides_alike(seed, offset, kernel):
    """As many points as half of all labellings can be separated for (Cover, 1965), by y (w phi + b) >= 1."""
    rng = np.random.default_rng(seed)
    d = 4
    features = kernel.feature_map().fit(np.zeros((1, d))).transform
    n = 2 * features(np.zeros((1, d))).shape[1] + 2 * (offset == "free")
    X, y = rng.normal(size=(n, d)), np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1, -1
    A = np.column_stack([features(X), np.ones(n)]) if offset == "free" else np.asarray(features(X))
    program = linprog(np.zeros(A.shape[1]), -y[:, None] * A, -np.ones(n), bounds=(None, None))
    if program.status == 0:
        assert (y * fit(X, y, kernel, tol=1e-3, offset=offset).values).min() > 0.99
    else:
        assert program.status == 2
        found = evidence(machine(X, y, kernel, offset), Control(tol=1e-3))
        assert np.abs(found.coefficients @ A).max() <= 1e-6 * np.abs(A).max()


@pytest.mark.parametrize("d", [2, 5])
def test_random_labels_of_many_points_are_refused_at_once(d):
    """By the same few steps as for few points; bounds that grow took minutes here."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, d)), np.where(rng.random(2000) < 0.5, 1.0, -1.0)
    found = evidence(machine(X, y), Control(time_limit=20))
    assert np.abs(found.coefficients @ X).max() <= 1e-13 * np.abs(X).max()
    assert_meet(X @ X.T, y, found.coefficients, np.linalg.norm(X, axis=1).max(), 1e-7)


@pytest.mark.parametrize("kernel", [RBF(5.0), RBF(1.0), Polynomial(4)], ids=str)
def test_mixtures_meet_where_only_kernel_values_are_known(kernel):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), np.where(rng.random(400) < 0.5, 1.0, -1.0)
    K = kernel(X)
    for problem in (machine(X, y, kernel), machine(np.arange(400), y, Precomputed(K))):
        assert_meet(K, y, evidence(problem).coefficients, np.sqrt(K.diagonal().max()), 1e-7)


@pytest.mark.parametrize(("scale", "wave", "seed"), [(5.0, 3, 3), (5.0, 3, 6), (3.5, 4, 5)])
def test_overlapping_classes_are_refused_without_larger_and_larger_bounds(scale, wave, seed, monkeypatch):
    """Bounds say the same after seconds: a curve that the kernel follows down to rounding, and no farther."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(601, 2))
    y = np.where(X[:, 0] + 0.3 * np.sin(wave * X[:, 1]) > 0, 1.0, -1.0)
    monkeypatch.setattr(hard, "_by_bounds", lambda *_: pytest.fail("bounds were tried"))
    with pytest.raises(Infeasible) as refusal:
        fit(X, y, RBF(scale))
    b = refusal.value.coefficients
    assert np.allclose([b[b > 0].sum(), b[b < 0].sum()], [1, -1])
    assert (y * b >= 0).all()
    assert np.sqrt(b @ RBF(scale)(X) @ b) < 1e-5


@pytest.mark.parametrize("offset", ["free", "none"])
@pytest.mark.parametrize("scale", [0.05, 0.3])
def test_any_labels_of_independent_points_are_separated(scale, offset):
    """Of numerically full rank, or nearly: the widest margin is Clarabel's."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 2)), np.where(rng.random(150) < 0.5, 1.0, -1.0)
    found = fit(X, y, RBF(scale), tol=1e-6, offset=offset)
    problem = referee.svc(RBF(scale)(X), y, np.inf)
    problem.upper, problem.lower, problem.offset = np.where(y > 0, np.inf, 0.0), np.where(y < 0, np.inf, 0.0), offset
    assert found.certificate.dual == pytest.approx(referee.solve(problem).dual, rel=1e-5)
    assert found.certificate.relative_gap <= 1e-6


@pytest.mark.parametrize("apart", [1e-5, 1e-7])
def test_classes_nearly_touching_in_one_dimension_are_separated(apart):
    rng = np.random.default_rng(0)
    x = np.concatenate([[1.0, 1.0 + apart], rng.uniform(0, 1, 200), 1 + apart + rng.uniform(0, 1, 200)])
    y = np.where(x > 1 + apart / 2, 1.0, -1.0)
    found = fit(x[:, None], y, tol=1e-3)
    assert margin(found) == pytest.approx(apart, rel=1e-6)
    assert (y * found.values).min() == pytest.approx(1.0, abs=0.1)  # beside terms of 1e14


def test_features_far_from_the_origin_hide_no_margin():
    X, y = apart(n=2000)
    assert margin(fit(X + 1e6, y, tol=1e-3)) == pytest.approx(margin(fit(X, y, tol=1e-3)), rel=1e-3)


def test_many_points_are_refused_by_a_few_of_them(monkeypatch):
    monkeypatch.setattr(hard, "WHOLE", 100)
    monkeypatch.setattr(hard, "_PART", 60)
    X, y = apart(n=400)
    X[0], X[1] = 0.01, 0.01  # one point with both labels
    found = evidence(machine(X, y, RBF(3.0)))
    assert len(found.coefficients) == 400
    assert np.count_nonzero(found.coefficients) <= 60
    assert_meet(RBF(3.0)(X), y, found.coefficients, 1.0, 1e-7)


def test_only_classifiers_have_hard_margins():
    X, y = apart()
    problem = machine(X, y)
    problem.width = 0.1
    with pytest.raises(ValueError, match="infinite bounds are for hard-margin classifiers; give C a finite value"):
        solve([problem])
    problem = machine(X, y)
    problem.linear = problem.linear * 1.5
    with pytest.raises(ValueError, match="give C a finite value"):
        solve([problem])


# -- limits -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0, 1, 5])
def test_a_limit_is_no_proof_that_the_classes_overlap(limit):
    X, y = apart()
    (found,) = solve([machine(X, y)], Control(max_iter=limit))
    assert found.certificate.stopped == f"max_iter={limit} reached"
    assert found.certificate.primal >= found.certificate.dual


def test_a_checkpoint_serves_every_rung_of_the_ladder(tmp_path, monkeypatch):
    """Close classes: coefficients beyond the first bounds. The run is cut in the second and finished by another."""
    monkeypatch.setattr(hard, "WHOLE", 50)  # the nearest points of hulls are for fewer
    monkeypatch.setattr(hard, "_PART", 40)
    X, y = apart(n=100, by=0.02)
    path, wide = tmp_path / "fit.npz", RBF(8.0)
    straight = fit(X, y, wide, tol=1e-6)
    assert straight.coefficients.max() > 100
    real, calls = hard.solve_one, []

    def cut(problem, control):
        calls.append(len(problem))
        if len(problem) == 100 and calls.count(100) >= 2:  # those of a part of the points are not counted
            control = replace(control, max_iter=40)
        return real(problem, control)

    monkeypatch.setattr(hard, "solve_one", cut)
    control = Control(tol=1e-6, checkpoint=path)
    (unfinished,) = solve([machine(X, y, wide)], control)
    assert unfinished.certificate.stopped != "converged"
    assert control.checkpoint == path
    monkeypatch.setattr(hard, "solve_one", real)
    assert [p.name for p in tmp_path.iterdir()] == ["fit.npz.1"]
    (resumed,) = solve([machine(X, y, wide)], Control(tol=1e-6, checkpoint=path))
    assert resumed.certificate.dual == pytest.approx(straight.certificate.dual, rel=1e-5)
    assert not list(tmp_path.iterdir())
