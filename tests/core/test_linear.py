"""The looks at a linear model's rows against NumPy: every sum from its definition."""

import numpy as np
import pytest

from cases import each
from mercer import _core


def made(n, d, sides, dtype, equal, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(dtype)
    sign = np.where(rng.random((1, n)) < 0.5, 1.0, -1.0) if sides == 1 else np.array([[1.0], [-1.0]]) * np.ones((1, n))
    target = np.full((sides, 1), 0.7) if equal else rng.normal(size=(sides, n))
    cost = np.array([1.5]) if equal else rng.uniform(0.5, 2.0, n)
    return X, sign, target, cost, rng.normal(size=d) / np.sqrt(d), rng


WIDTHS, LENGTHS = [1, 3, 7, 8, 9, 31, 50, 64, 73, 100], [1, 5, 8, 100, 203]


@each(("d", "n"), [(d, LENGTHS[(i + step) % 5]) for i, d in enumerate(WIDTHS) for step in (0, 3)])
@each("squared", [False, True])
@each(("sides", "dtype", "equal"), [(1, np.float64, True), (1, np.float32, False), (2, np.float64, False)])
def test_a_sweep_is_what_its_sums_say(n, d, squared, sides, dtype, equal):
    X, sign, target, cost, w, rng = made(n, d, sides, dtype, equal)
    centre, scale, half = rng.normal(size=d), np.exp2(rng.integers(-2, 3, d)), 0.4
    first, last = n // 5, n
    width = (d + 8) // 8 * 8
    pull, alpha, gram = np.zeros(d + 1), np.full((sides, n), np.nan), np.zeros((width, width))
    band = np.empty(n, np.int32)
    risk, gain, square, curved = _core.linear_sweep(
        X, sign, target, cost, squared, first, last, w, 0.3, half, pull, alpha, band, gram, centre, 1 / scale, 1
    )
    rows = slice(first, last)
    A = X[rows].astype(np.float64)
    costs = np.broadcast_to(cost, n)[rows]
    z = np.broadcast_to(target, (sides, n))[:, rows] - sign[:, rows] * (A @ w + 0.3)
    loss = np.maximum(z, 0.0)
    if squared:
        expected, weight = 2 * costs * loss, (2 * costs * (z > 0)).sum(axis=0)
        assert square == pytest.approx((expected**2 / costs).sum(), rel=1e-12)
    else:
        expected = costs * np.clip(0.5 + z / (2 * half), 0, 1)
        weight = (costs / (2 * half) * (np.abs(z) < half)).sum(axis=0)
        assert square == 0
    assert risk == pytest.approx((costs * (loss**2 if squared else loss)).sum(), rel=1e-12)
    assert gain == pytest.approx((np.broadcast_to(target, (sides, n))[:, rows] * expected).sum(), rel=1e-11, abs=1e-11)
    np.testing.assert_allclose(alpha[:, rows], expected, rtol=1e-12, atol=1e-13)
    assert np.isnan(alpha[:, :first]).all()
    beta = (sign[:, rows] * expected).sum(axis=0)
    np.testing.assert_allclose(pull, np.append(A.T @ beta, beta.sum()), rtol=1e-11, atol=1e-11)
    assert band[:curved].tolist() == (first + np.flatnonzero(weight)).tolist()
    block = np.column_stack([(A - centre) / scale, np.ones(len(A))])
    np.testing.assert_allclose(
        np.triu(gram[: d + 1, : d + 1]), np.triu(block.T @ (block * weight[:, None])), rtol=1e-11, atol=1e-10
    )


@each("d", [1, 8, 50, 73])
@each("n", [1, 100, 203])
@each("squared", [False, True])
@each(("sides", "dtype", "equal"), [(1, np.float64, True), (1, np.float32, False), (2, np.float64, False)])
def test_a_proof_is_what_its_sums_say(n, d, squared, sides, dtype, equal):
    X, sign, target, cost, w, rng = made(n, d, sides, dtype, equal)
    alpha, apart, unit, pull = rng.uniform(0, 0.5, (sides, n)), rng.normal(size=d), 3.0, np.zeros(d + 1)
    found = _core.linear_proof(X, sign, target, cost, squared, 0, n, w, 0.3, apart, -0.1, alpha, unit, pull)
    A, costs = X.astype(np.float64), np.broadcast_to(cost, n)
    z = target - sign * (A @ w + 0.3)
    loss = np.maximum(z, 0.0)
    if squared:
        sums = (costs * loss**2).sum(), (target * alpha).sum(), (alpha**2 / costs).sum()
        off = np.abs(alpha / (2 * costs) - loss)
    else:
        sums = (costs * loss).sum(), (target * alpha).sum(), 0.0
        off = unit * np.abs(np.clip(alpha + z / unit, 0, costs) - alpha)
    np.testing.assert_allclose(found, [*sums, off.max(), np.abs(A @ apart - 0.1).max()], rtol=1e-11, atol=1e-12)
    beta = (sign * alpha).sum(axis=0)
    np.testing.assert_allclose(pull, np.append(A.T @ beta, beta.sum()), rtol=1e-11, atol=1e-11)


def test_a_thinned_hessian_is_that_of_all_rows_on_average():
    X, sign, target, cost, w, _ = made(40_000, 4, 1, np.float64, True)
    grams = []
    for thin in (1, 5):
        gram = np.zeros((8, 8))
        _core.linear_sweep(
            X,
            sign,
            target,
            cost,
            True,
            0,
            len(X),
            w,
            0.0,
            0.0,
            np.zeros(5),
            None,
            None,
            gram,
            np.zeros(4),
            np.ones(4),
            thin,
        )
        grams.append(thin * np.triu(gram)[:5, :5])
    assert 0 < np.abs(grams[1] - grams[0]).max() < 0.1 * grams[0].max()


def test_arrays_that_do_not_fit_are_refused():
    X, sign, target, cost, w, _ = made(10, 3, 1, np.float64, True)

    def sweep(**changes):
        given = {"x": X, "sign": sign, "target": target, "cost": cost, "squared": False, "first": 0, "last": 10, "w": w}
        given |= {"shift": 0.0, "half": 0.1, "pull": np.zeros(4), "alpha": None, "band": None, "gram": None}
        given |= {"centre": np.zeros(3), "inverse_scale": np.ones(3), "thin": 1}
        return _core.linear_sweep(**(given | changes))

    sweep()
    wrong = [{"last": 11}, {"first": -1}, {"w": np.ones(2)}, {"pull": np.zeros(3)}, {"cost": np.ones(9)}]
    wrong += [{"sign": sign[:, :9].copy()}, {"alpha": np.zeros((1, 9))}, {"gram": np.zeros((4, 4))}, {"thin": 0}]
    wrong += [{"target": np.ones((2, 1))}, {"band": np.zeros(9, np.int32)}, {"centre": np.zeros(2)}]
    for change in wrong:
        with pytest.raises(ValueError, match=r"shape|size|range|malformed"):
            sweep(**change)
