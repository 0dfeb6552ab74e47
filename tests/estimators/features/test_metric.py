"""The metric that is learned from gradients: against a slow reference, and its laws."""

import math

import numpy as np
import pytest

from mercer import RBF, KernelRidge, Laplacian
from mercer.estimators.features.metric import (
    FAMILIES,
    Columns,
    Round,
    families_for,
    in_unit_length,
    learn_metric,
    mean_square,
    next_matrix,
    rounds,
    tuned,
)
from mercer.gram import gradient
from mercer.kernels import Metric
from mercer.machine.clock import Clock
from mercer.solvers.systems.inverse import left_out

RNG = np.random.default_rng(0)
BY_NAME = {family.name: family for family in FAMILIES}


def curve(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) + X[:, 0] * X[:, 1]
    return X, (y - y.mean())[:, None]


def slow_metric(k, rows, a):
    """The mean outer product of gradients by central differences, one point and one column after the other."""
    n, d = rows.shape
    step, M = 1e-6, np.zeros((d, d))
    for x in rows:
        for j in range(a.shape[1]):
            g = np.zeros(d)
            for c in range(d):
                there, back = x.copy(), x.copy()
                there[c] += step
                back[c] -= step
                g[c] = float(((k(there[None], rows) - k(back[None], rows)) @ a[:, j])[0]) / (2 * step)
            M += np.outer(g, g)
    return M / n


@pytest.mark.parametrize("name", ["RBF", "exponential", "Laplacian"])
def test_the_metric_is_the_mean_outer_product_of_gradients(name):
    rows, _ = curve(25, 3)
    a = RNG.normal(size=(25, 2))
    family = BY_NAME[name]
    start = (
        np.array([[1.0, 0.3, 0.0], [0.0, 0.5, -0.2], [0.1, 0.0, 2.0]]) if family.mixes else np.array([1.0, 0.5, 2.0])
    )
    one = Round(family, 0, start, 2, -2)
    reached = next_matrix(one, rows, a, np.ones(25))
    wanted = slow_metric(one.base.transformed(start), rows, a)
    if family.mixes:
        np.testing.assert_allclose(reached @ reached, wanted, rtol=1e-5, atol=1e-8 * np.abs(wanted).max())
        np.testing.assert_allclose(reached, reached.T, atol=1e-12 * np.abs(reached).max())
    else:
        np.testing.assert_allclose(reached**2, np.diag(wanted), rtol=1e-5)


def test_weights_count_rows_of_the_metric():
    rows, _ = curve(20, 2)
    a, weights = RNG.normal(size=(20, 1)), RNG.integers(1, 4, 20).astype(float)
    one = Round(BY_NAME["RBF"], 0, np.eye(2), 2, -2)
    M = next_matrix(one, rows, a, weights) @ next_matrix(one, rows, a, weights)
    each = gradient(one.base, rows, rows, a)[:, :, 0]
    np.testing.assert_allclose(M, (weights * each.T) @ each / weights.sum(), rtol=1e-9)


@pytest.mark.parametrize("shift", [0.3, "each"])
def test_leave_one_out_agrees_with_fits_without_each(shift):
    X, y = curve(14, 2)
    weights = np.ones(14) if shift == 0.3 else RNG.uniform(0.5, 2.0, 14)
    K = Laplacian(2.0)(X)
    a, errors = left_out(K.copy(), y, 0.3 / weights)
    whole = KernelRidge(0.3, kernel=Laplacian(2.0), fit_intercept=True, residual=1e-10).fit(X, y[:, 0], weights)
    np.testing.assert_allclose(a[:, 0], whole.dual_coef_, atol=1e-8)
    for i in range(14):
        rest = np.delete(np.arange(14), i)
        model = KernelRidge(0.3, kernel=Laplacian(2.0), fit_intercept=True, residual=1e-10)
        model.fit(X[rest], y[rest, 0], weights[rest])
        assert errors[i, 0] == pytest.approx(y[i, 0] - model.predict(X[i : i + 1])[0], abs=1e-7)


def test_a_singular_matrix_has_no_errors():
    assert left_out(np.ones((5, 5)), np.ones((5, 1)), 0.0) is None


@pytest.mark.parametrize("name", ["RBF", "exponential"])
def test_rotations_do_not_change_what_a_metric_that_mixes_columns_predicts(name):
    X, y = curve(80, 4)
    turn = np.linalg.qr(RNG.normal(size=(4, 4)))[0]

    def errors(rows):
        start = Round(BY_NAME[name], 0, in_unit_length(rows, np.eye(4), True), 2, -3)
        return [step.error for step in rounds(start, rows, y, np.ones(80), 2)]

    np.testing.assert_allclose(errors(X @ turn), errors(X), rtol=1e-6)


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_order_and_units_of_columns_do_not_matter(name):
    X, y = curve(60, 3)
    order, units = [2, 0, 1], np.array([1e-6, 3.0, 1e5])
    plain = learn_metric(X, y, families=[BY_NAME[name]])
    other = learn_metric((X * units + 7.0 * units)[:, order], y, families=[BY_NAME[name]])
    there = RNG.normal(size=(20, 3))
    K = plain.kernel(there, X)
    np.testing.assert_allclose(
        other.kernel((there * units + 7.0 * units)[:, order], (X * units + 7.0 * units)[:, order]), K, atol=1e-6
    )
    shares = Metric.of(plain.kernel, X).importances
    np.testing.assert_allclose(Metric.of(other.kernel, (X * units)[:, order]).importances, shares[order], rtol=1e-5)


def test_ranks_do_not_see_increasing_changes_of_a_column():
    X, y = curve(60, 3)
    family = BY_NAME["Laplacian of ranks"]
    plain, curved = learn_metric(X, y, families=[family]), learn_metric(np.exp(3 * X), y, families=[family])
    np.testing.assert_allclose(curved.kernel(np.exp(3 * X)), plain.kernel(X), atol=1e-9)


def test_equal_rows_with_integer_weights_are_repeated_rows_in_a_round():
    X, y = curve(40, 2)
    counts = RNG.integers(1, 3, 40)
    rows, targets = np.repeat(X, counts, axis=0), np.repeat(y, counts, axis=0)
    one = Round(BY_NAME["RBF"], 0, np.eye(2), 2, 0)
    a, _ = left_out(one.values(X), y, one.strength / counts)
    b, _ = left_out(one.values(rows), targets, one.strength * np.ones(len(rows)))
    np.testing.assert_allclose(one.base(X[:5], X) @ a, one.base(X[:5], rows) @ b, atol=1e-8)


def test_tuning_finds_the_least_error_of_its_grid():
    X, y = curve(60, 2)
    one, ones = Round(BY_NAME["RBF"], 0, in_unit_length(X, np.eye(2), True), 2, -3), np.ones(60)
    best, a = tuned(one, X, y, ones)
    assert a.shape == (60, 1)
    for scale in (best.scale - 1, best.scale, best.scale + 1):
        for alpha in (best.alpha - 1, best.alpha, best.alpha + 1):
            if scale == best.scale or alpha == best.alpha:
                near = Round(one.family, 0, one.matrix, scale, alpha)
                found = left_out(near.values(X), y, near.strength * ones)
                assert found is None or mean_square(found[1], y, ones) >= best.error * (1 - 1e-3) or alpha < -10


def test_two_columns_among_a_hundred_are_found():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 100))
    y = (np.sin(2 * X[:, 17]) + X[:, 60] ** 2)[:, None]
    found = learn_metric(X, y - y.mean())
    share = Metric.of(found.kernel, X).importances
    assert set(np.argsort(share)[-2:]) == {17, 60}
    assert share[[17, 60]].sum() > 0.5


@pytest.mark.parametrize(
    "X",
    [
        np.ones((30, 3)),
        np.c_[RNG.normal(size=30), np.zeros(30), np.full(30, 1e12)],
        np.repeat(RNG.normal(size=(10, 2)), 3, axis=0),
        RNG.normal(size=(12, 50)),
        RNG.normal(size=(30, 2)) * [1e-150, 1e150],
    ],
    ids=["constant", "constants beside", "repeated", "wide", "huge and tiny"],
)
def test_degenerate_data_give_a_finite_proven_kernel(X):
    y = np.sin(np.arange(len(X)))[:, None]
    found = learn_metric(X, y - y.mean())
    assert np.isfinite(found.kernel(X)).all()
    assert found.kernel.proof().status == "proven"
    assert 0 < found.alpha < math.inf


def test_constant_targets_have_no_directions():
    X = RNG.normal(size=(30, 2))
    found = learn_metric(X, np.zeros((30, 1)))
    assert np.isfinite(found.kernel(X)).all()


def test_what_is_judged_is_told_and_a_limit_ends_it():
    X, y = curve(120, 3)
    told = []
    found = learn_metric(X, y, listen=lambda step, rows: told.append((step.family.name, rows)))
    # Few rows are judged from both sides, each of which is told as soon as it is known.
    assert sorted(told) == sorted(2 * [(step.family.name, rows // 2) for step, rows in found.tried])
    assert {name for name, _ in told} == set(BY_NAME)
    assert {rows for _, rows in found.tried} == {120}
    short = learn_metric(X, y, clock=Clock(1e-9))
    assert len({step.family.name for step, _ in short.tried}) == 1


def test_ctrl_c_leaves_the_best_so_far():
    X, y = curve(120, 3)

    def listen(step, rows):
        if step.family.name == "exponential":
            raise KeyboardInterrupt

    found = learn_metric(X, y, listen=listen)
    assert found.chosen[0].family.name in ("Laplacian", "Laplacian of ranks")


def test_wide_tables_are_not_mixed():
    assert {family.mixes for family in families_for(2000)} == {False}
    assert [family.name for family in families_for(5, ["RBF"])] == ["RBF"]


def test_columns_are_in_units_of_their_deviations():
    X = RNG.normal(size=(50, 2)) * [1.0, 1e4]
    rows = Columns(X, False)
    np.testing.assert_allclose(rows.rows.std(axis=0), 1.0)
    k = rows.kernel(RBF(1.0), np.array([[1.0, 0.5], [0.0, 2.0]]))
    np.testing.assert_allclose(k(X), RBF(1.0)(rows.rows @ np.array([[1.0, 0.5], [0.0, 2.0]]).T), atol=1e-9)
