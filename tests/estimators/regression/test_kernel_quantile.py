"""Quantiles: coverage, crossing, and scikit-learn's linear model."""

import numpy as np
import pytest
import sklearn.linear_model
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mean_pinball_loss

from mercer.estimators import KernelQuantileRegressor
from mercer.kernels import RBF

Q = (0.1, 0.25, 0.5, 0.75, 0.9)


def fan(n=300, seed=0):
    """Noise that grows with x."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 3, (n, 1))
    return X, np.sin(2 * X[:, 0]) + (0.1 + 0.3 * X[:, 0]) * rng.normal(size=n)


@settings(max_examples=15)
@given(st.floats(0.03, 0.97), st.floats(0.01, 10.0), st.integers(5, 60), st.integers(0, 1000))
def test_no_more_than_a_share_q_lies_below(q, C, n, seed):
    X, y = fan(n, seed)
    weights = np.random.default_rng(seed).uniform(0.2, 2, n)
    model = KernelQuantileRegressor(q, C, kernel=RBF(0.5), tol=1e-7).fit(X, y, weights)
    residual, near = y - model.predict(X), 1e-3
    assert weights[residual < -near].sum() <= q * weights.sum() * (1 + 1e-9)
    assert weights[residual > near].sum() <= (1 - q) * weights.sum() * (1 + 1e-9)


def test_coverage_on_new_data():
    model = KernelQuantileRegressor(Q, C=1.0, kernel=RBF(0.7)).fit(*fan(800))
    X, y = fan(4000, seed=1)
    below = (y[:, None] < model.predict(X)).mean(axis=0)
    assert np.abs(below - Q).max() < 0.05
    assert model.score(X, y) > 0.2


def test_a_linear_kernel_with_hardly_a_penalty_is_scikit_learns_model():
    X, y = fan(80)
    ours = KernelQuantileRegressor((0.2, 0.7), C=1e4, kernel="linear", tol=1e-8).fit(X, y)
    for j, q in enumerate((0.2, 0.7)):
        theirs = sklearn.linear_model.QuantileRegressor(quantile=q, alpha=0.0, solver="highs").fit(X, y)
        best = mean_pinball_loss(y, theirs.predict(X), alpha=q)
        assert mean_pinball_loss(y, ours.predict(X)[:, j], alpha=q) <= best * (1 + 1e-4)
        np.testing.assert_allclose(ours.coef_[j], theirs.coef_, atol=0.05)


def test_quantiles_that_cross_are_put_in_order():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (40, 1)), rng.standard_t(2, 40)
    order = (0.9, 0.5, 0.55, 0.1, 0.6)
    model = KernelQuantileRegressor(order, C=30.0, kernel=RBF(0.2)).fit(X, y)
    grid = np.linspace(-2, 2, 400)[:, None]
    ranks = np.argsort(order)
    free = model.predict(grid)
    assert (np.diff(free[:, ranks]) < 0).any()
    tied = model.set_params(non_crossing=True).predict(grid)
    assert (np.diff(tied[:, ranks]) >= 0).all()
    np.testing.assert_array_equal(np.sort(free, axis=1), np.sort(tied, axis=1))


def test_shapes_follow_the_quantiles():
    X, y = fan(50)
    for quantiles in (0.5, (0.5,), np.array([0.5])):
        one = KernelQuantileRegressor(quantiles).fit(X, y)
        assert one.predict(X).shape == (50,)
        assert one.quantiles_.tolist() == [0.5]
        assert one.dual_coef_.shape == (50,)
    two = KernelQuantileRegressor([0.2, 0.8]).fit(X, y)
    assert two.predict(X).shape == (50, 2)
    assert two.dual_coef_.shape == (50, 2)
    assert [f(X[:3]).shape for f in two.function_] == [(3,), (3,)]
    assert len(two.certificate_.parts) == 2
    assert two.certificate_.verify(X, y).relative_gap < 1e-3


@pytest.mark.parametrize("quantiles", [0.0, 1.0, (), (0.5, 1.2), "median", True, np.nan])
def test_what_is_no_quantile_is_named(quantiles):
    with pytest.raises(ValueError, match=r"quantiles=.* of KernelQuantileRegressor must be a number between 0 and 1"):
        KernelQuantileRegressor(quantiles).fit(*fan(10))


def test_the_median_is_half_the_absolute_deviation():
    from mercer.estimators import KernelMachine

    X, y = fan(100)
    median = KernelQuantileRegressor(0.5, C=2.0, kernel=RBF(0.5), tol=1e-8).fit(X, y)
    absolute = KernelMachine(RBF(0.5), "absolute", 1.0, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(median.predict(X), absolute.predict(X), atol=5e-3)
