"""Newton's directions: the system they solve, and K times them."""

import numpy as np
import pytest

from mercer.gram import Gram
from mercer.gram.matrix import KernelMatrix
from mercer.kernels import RBF
from mercer.losses import Logistic, SquaredHinge
from mercer.solvers.control import Control
from mercer.solvers.representer import directions
from mercer.solvers.representer.directions import Directions, _Model
from mercer.solvers.representer.problem import Task
from mercer.solvers.systems.system import Systems

STRENGTH = 0.05


def at(loss, intercept, n=1200, method="cg", **limits):
    """A point on the way: values at which some rows have no curvature, where the loss has such."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    gram = Gram(RBF(1.0), X)
    task = Task(Systems(gram, Control(**limits), method=method), y, loss, np.ones(n), intercept, STRENGTH)
    a = y * rng.uniform(0, 0.3, n)
    K = gram.dense()
    v = K @ a
    return task, K, v, a, STRENGTH * a + task.slopes(v)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", [SquaredHinge(), Logistic()], ids=repr)
@pytest.mark.parametrize("forcing", [3e-2, 1e-3, 1e-9])
def test_minimises_the_quadratic_model(loss, intercept, forcing):
    task, K, v, a, r = at(loss, intercept)
    step, offset, K_step = Directions(task, np.ones(len(a))).find(task, v, a, r, forcing)
    d = task.curvatures(v)
    assert np.allclose(K_step, K @ step, atol=1e-4 * np.abs(K_step).max())
    # The derivative of the model in H vanishes; systems are solved in units of the values, that is divided by d.
    rest, some = r + STRENGTH * step + d * (K @ step + offset), d > 0
    assert np.linalg.norm(rest[some] / d[some]) <= 3 * max(forcing, 1e-7) * np.linalg.norm(r[some] / d[some])
    assert np.allclose(step[d == 0], -r[d == 0] / STRENGTH)
    if intercept:
        assert abs((a + step).sum()) < 0.1 * np.abs(a).sum() * forcing + 1e-6


def test_rows_without_curvature_take_no_part_in_products(monkeypatch):
    task, K, v, a, r = at(SquaredHinge(), True)
    sizes = []
    product = KernelMatrix.__call__

    def counted(self, V, single=False):
        sizes.append(self.n)
        return product(self, V, single)

    monkeypatch.setattr(KernelMatrix, "__call__", counted)
    monkeypatch.setattr(KernelMatrix, "hold_half", lambda self: None)  # held values are read whole
    found = []
    for few in (1.0, 0.0):
        monkeypatch.setattr(directions, "_ACTIVE_SHARE", few)
        found.append(Directions(task, np.ones(len(a))).find(task, v, a, r, 1e-3))
    curved = int((task.curvatures(v) > 0).sum())
    assert curved < 0.9 * len(a)
    assert {curved, len(a)} == set(sizes)
    assert sizes.count(curved) > sizes.count(len(a)) // 2
    (step, offset, K_step), (whole, other, _) = found
    assert np.allclose(K_step, K @ step, atol=1e-5 * np.abs(K_step).max())
    assert np.linalg.norm(step - whole) <= 1e-2 * np.linalg.norm(whole)
    assert offset == pytest.approx(other, rel=1e-2)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", [SquaredHinge(), Logistic()], ids=repr)
def test_a_step_may_end_near_the_minimum_of_the_model(loss, intercept, monkeypatch):
    task, K, v, a, r = at(loss, intercept)
    counts = []
    product = KernelMatrix.__call__

    def counted(self, V, single=False):
        counts[-1] += 1
        return product(self, V, single)

    monkeypatch.setattr(KernelMatrix, "__call__", counted)
    u, d, value = task.slopes(v), task.curvatures(v), 1e6

    def gain(step, offset):
        e = K @ step + offset
        return -(u @ e + STRENGTH * a @ (K @ step) + 0.5 * d @ e**2 + 0.5 * STRENGTH * step @ (K @ step))

    gains = []
    for share in (0.3, 1e-2, 1e-4):
        counts.append(0)
        task = at(loss, intercept)[0]  # whose preconditioner has learnt nothing yet
        found = Directions(task, np.ones(len(a)))
        found.systems.preconditioners.rank = 4
        step, offset, _ = found.find(task, v, a, r, 1e-12, share, value)
        gains.append(gain(step, offset))
    assert counts[0] < counts[1] < counts[2]
    best = max(gains)
    assert gains[0] >= (1 - 0.3) * best > 0
    assert gains[1] >= (1 - 1e-2) * best


@pytest.mark.parametrize("intercept", [True, False])
def test_the_gap_of_the_model_is_that_of_its_dual(intercept):
    task, K, v, a, r = at(SquaredHinge(), intercept, n=200)
    u, d = task.slopes(v), task.curvatures(v)
    active = d > 0
    rest = np.where(active, 0.0, -r / STRENGTH)
    rng = np.random.default_rng(1)
    A = np.zeros((200, 2))
    A[active] = rng.standard_normal((active.sum(), 2)) * np.array([0.01, 1.0]) + np.array([0.0, 5.0])
    model = _Model(task, v, a, r, rest, K @ rest, active, 0.1, 1.0)
    gap, gain = model.judge(A[active], (K @ A)[active])
    offset = (a.sum() + rest.sum() + A[:, 0].sum()) / A[:, 1].sum() if intercept else 0.0
    s = rest + A[:, 0] - offset * A[:, 1]
    e = K @ s + offset
    primal = u @ e + STRENGTH * a @ K @ s + 0.5 * d @ e**2 + 0.5 * STRENGTH * s @ K @ s
    assert gain == pytest.approx(-primal)
    # The model is sum_i q_i(h(x_i) + t - f(x_i)) + strength/2 |h|^2 - strength/2 |f|^2 at h = f + s, where
    # q_i(e) = u_i e + d_i e^2 / 2; its dual point is -strength times the coefficients of h.
    h = a + s
    g = -STRENGTH * h
    assert np.allclose(g[~active], u[~active])
    assert not intercept or abs(g.sum()) < 1e-9
    conjugates = np.sum((g - u)[active] ** 2 / (2 * d[active]))
    dual = -conjugates - g @ K @ a - 0.5 * STRENGTH * h @ K @ h - 0.5 * STRENGTH * a @ K @ a
    assert gap == pytest.approx(primal - dual)


def test_rough_systems_take_fewer_products_as_the_preconditioner_learns(monkeypatch):
    task, _, v, a, r = at(SquaredHinge(), False, n=3000)
    found = Directions(task, np.ones(len(a)))
    found.systems.preconditioners.rank = 20
    counts = []
    product = KernelMatrix.__call__

    def counted(self, V, single=False):
        counts[-1] += 1
        return product(self, V, single)

    monkeypatch.setattr(KernelMatrix, "__call__", counted)
    for _ in range(2):
        counts.append(0)
        found.find(task, v, a, r, 1e-2)
    assert counts[1] < 0.8 * counts[0]


def test_what_float32_cannot_solve_is_solved_with_corrections(monkeypatch):
    task, K, v, a, r = at(SquaredHinge(), False)
    monkeypatch.setattr(directions, "_MOST_STEPS", 1)
    step, _, _ = Directions(task, np.ones(len(a))).find(task, v, a, r, 1e-2)
    rest = r + STRENGTH * step + task.curvatures(v) * (K @ step)
    assert np.linalg.norm(rest) <= 2e-2 * np.linalg.norm(r)


def test_a_time_limit_ends_a_system_with_what_it_has():
    task, K, v, a, r = at(SquaredHinge(), False, time_limit=1e-9)
    step, _, K_step = Directions(task, np.ones(len(a))).find(task, v, a, r, 1e-2)
    assert np.isfinite(step).all()
    assert np.allclose(K_step, K @ step, atol=1e-4 * np.abs(K_step).max())
