"""The preconditioner of a low-rank part and nearest points, against the inverse it stands for."""

import numpy as np
import pytest

from mercer import RBF, Gram, KernelMachine, KernelRidge, Polynomial
from mercer.gram.factor import PivotedCholesky
from mercer.gram.matrix import KernelMatrix
from mercer.losses import Logistic, SquaredHinge
from mercer.solvers import Control
from mercer.solvers.systems.cg import iterate
from mercer.solvers.systems.preconditioners import choice
from mercer.solvers.systems.preconditioners.low_rank import LowRank
from mercer.solvers.systems.preconditioners.neighbours import Neighbours
from mercer.solvers.systems.system import Systems

KERNEL = Polynomial(8, 0.0, 1.0)


def points(n, d=20, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d)) / np.sqrt(np.arange(1, d + 1))
    return X / np.linalg.norm(X, axis=1)[:, None]


def factor(X, rows, spare=0):
    factor = PivotedCholesky(KernelMatrix(Gram(KERNEL, X)), rows, True, spare=spare)
    while factor.rank < rows and not factor.exhausted:
        factor.grow(rows - factor.rank)
    return LowRank(factor)


def neighbours(low_rank):
    return Neighbours(low_rank, low_rank.factor.matrix)


def test_one_group_is_solved_exactly():
    X = points(40)
    shift = np.random.default_rng(1).uniform(0.1, 1.0, 40)
    V = np.random.default_rng(2).normal(size=(40, 2))
    found = neighbours(factor(X, 10)).inverse(shift)(V)
    np.testing.assert_allclose(found, np.linalg.solve(KERNEL(X) + np.diag(shift), V), rtol=1e-3, atol=1e-4)


def test_points_that_take_no_part_are_as_if_they_were_not_there():
    X = points(40)
    shift = np.full(40, 0.3)
    rows = np.flatnonzero(np.arange(40) % 3)
    shift[::3] = np.inf
    V = np.random.default_rng(2).normal(size=(len(rows), 1))
    near = neighbours(factor(X, 10))
    wanted = np.linalg.solve(KERNEL(X[rows]) + 0.3 * np.eye(len(rows)), V)
    np.testing.assert_allclose(near.inverse(shift, rows)(V), wanted, rtol=1e-3, atol=1e-4)
    wide = np.zeros((40, 1))
    wide[rows] = V
    found = near.inverse(shift)(wide)
    assert not found[::3].any()
    np.testing.assert_allclose(found[rows], wanted, rtol=1e-3, atol=1e-4)


def test_rows_that_come_later_are_taken_from_the_rest():
    X = points(45)
    low_rank = factor(X, 8, spare=4)
    near = neighbours(low_rank)
    near.inverse(np.full(45, 0.2))
    W = np.random.default_rng(3).normal(size=(45, 3))
    assert low_rank.learn(W.astype(np.float32), (KERNEL(X) @ W).astype(np.float32)) > 0
    V = np.random.default_rng(2).normal(size=(45, 1))
    found = near.inverse(np.full(45, 0.2))(V)
    np.testing.assert_allclose(found, np.linalg.solve(KERNEL(X) + 0.2 * np.eye(45), V), rtol=2e-3, atol=1e-4)


def test_groups_cut_the_points_and_look_back_only():
    near = neighbours(factor(points(3_000), 50))
    assert sorted(near.order) == list(range(3_000))
    start = 0
    for group in near.groups:
        assert list(group.at[: group.members]) == list(range(start, start + group.members))
        assert (group.at[group.members :] < start).all()
        assert len(set(group.at)) == len(group.at)
        start += group.members
    assert start == 3_000


@pytest.mark.parametrize("some", [False, True], ids=["all", "some"])
def test_it_is_symmetric_and_positive(some):
    near = neighbours(factor(points(2_500), 50))
    shift = np.random.default_rng(4).uniform(0.05, 1.0, 2_500)
    if some:
        shift[::4] = np.inf
    apply = near.inverse(shift)
    U, V = np.random.default_rng(5).normal(size=(2, 2_500, 3))
    U[~np.isfinite(shift)] = V[~np.isfinite(shift)] = 0.0
    A, B = apply(U), apply(V)
    np.testing.assert_allclose(U.T @ B, (V.T @ A).T, rtol=1e-4, atol=1e-3)
    assert (np.einsum("ij,ij->j", U, A) > 0).all()


def test_it_takes_fewer_steps_than_the_low_rank_part_alone():
    X = points(6_000)
    y = np.random.default_rng(6).normal(size=(6_000, 1))
    low_rank, K = factor(X, 50), KERNEL(X)
    shift = np.full(6_000, 0.1)
    counts = []
    for apply in (low_rank.inverse(shift + low_rank.left), neighbours(low_rank).inverse(shift)):
        steps, A = [], np.zeros_like(y)
        iterate(
            lambda V, _: K @ V + 0.1 * V,
            lambda V, _, apply=apply: apply(V),
            y.copy(),
            A,
            1e-4 * np.linalg.norm(y, axis=0),
            np.arange(1),
            lambda lengths, _, steps=steps: steps.append(lengths),
        )
        np.testing.assert_allclose(K @ A + 0.1 * A, y, atol=2e-4 * np.linalg.norm(y))
        counts.append(len(steps))
    assert counts[1] <= 0.7 * counts[0]


@pytest.mark.parametrize(
    "X",
    [
        np.repeat(points(30), 100, axis=0),
        np.ones((2_500, 20)) / np.sqrt(20.0),
        np.concatenate([points(2_400), np.zeros((100, 20))]),
    ],
    ids=["repeated", "constant", "zeros"],
)
@pytest.mark.parametrize("shift", [1e-6, 0.1, 1e6])
def test_points_that_say_nothing_new_do_no_harm(X, shift):
    near = neighbours(factor(X, 40))
    V = np.random.default_rng(0).normal(size=(len(X), 1))
    found = near.inverse(np.full(len(X), shift))(V)
    assert np.isfinite(found).all()
    assert float(np.sum(V * found)) > 0


# -- where it is used -----------------------------------------------------------------------------------


@pytest.fixture
def crowded(monkeypatch):
    """Let 3,000 points be many, and count who is asked for."""
    monkeypatch.setattr(choice, "_NEIGHBOUR_POINTS", 2_000)
    monkeypatch.setattr(choice, "_ROWS_BESIDE_NEIGHBOURS", 60)
    monkeypatch.setattr(choice, "_SPARE_ROWS", 20)
    monkeypatch.setattr(choice, "fits_half", lambda n, budget: False)
    made = []

    class Counted(Neighbours):
        def __init__(self, low_rank, matrix):
            made.append(low_rank)
            super().__init__(low_rank, matrix)

    monkeypatch.setattr(choice, "Neighbours", Counted)
    return made


def test_equations_are_solved_with_neighbours_as_without(crowded):
    X = points(3_000)
    Y = np.random.default_rng(1).normal(size=(3_000, 2))
    gram = Gram(KERNEL, X, budget="100 MB")
    answer = Systems(gram, Control(), method="cg").solve(0.1, Y, tol=1e-8)
    assert len(crowded) == 1
    assert answer.stopped == "converged"
    np.testing.assert_allclose(answer.A, np.linalg.solve(KERNEL(X) + 0.1 * np.eye(3_000), Y), rtol=1e-4, atol=1e-6)


def test_smooth_kernels_get_more_rows_instead(crowded):
    X = points(3_000, 3)
    found = Systems(Gram(RBF(2.0), X, budget="100 MB"), Control(), method="cg")
    assert found.solve(0.1, X[:, 0], tol=1e-6).stopped == "converged"
    assert not crowded


def test_little_room_is_no_room(crowded):
    X = points(3_000)
    found = Systems(Gram(KERNEL, X, budget="8 MB"), Control(), method="cg")
    assert found.solve(0.1, X[:, 0], tol=1e-4).stopped == "converged"
    assert not crowded


@pytest.mark.parametrize("loss", [SquaredHinge(), Logistic()], ids=repr)
@pytest.mark.parametrize("intercept", [False, True])
def test_machines_reach_the_same_objective(crowded, monkeypatch, loss, intercept):
    X = points(3_000)
    y = np.sign(X[:, 0] * X[:, 1] + 0.05 * np.random.default_rng(0).normal(size=3_000))
    model = KernelMachine(KERNEL, loss, 0.1, fit_intercept=intercept, tol=1e-5, budget="100 MB").fit(X, y)
    assert crowded
    assert model.certificate_.converged
    known = KernelMachine(KERNEL, loss, 0.1, fit_intercept=intercept, tol=1e-5)
    crowded.clear()
    monkeypatch.setattr(choice, "_NEIGHBOUR_POINTS", 10**9)
    known.fit(X, y)
    assert not crowded
    assert model.certificate_.primal == pytest.approx(known.certificate_.primal, rel=3e-5)


def test_ridge_says_the_same(crowded):
    X = points(3_000)
    y = X[:, 0] * X[:, 1] + 0.1 * np.random.default_rng(0).normal(size=3_000)
    model = KernelRidge(0.1, kernel=KERNEL, budget="60 MB", residual=1e-6).fit(X, y)
    assert crowded
    a = np.linalg.solve(KERNEL(X) + 0.1 * np.eye(3_000), y)
    np.testing.assert_allclose(model.dual_coef_.ravel(), a, atol=1e-4 * np.abs(a).max())
