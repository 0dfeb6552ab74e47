"""Robust regression: scikit-learn's definition at its scale, outliers, and the scale itself."""

import numpy as np
import pytest
import sklearn.linear_model

from mercer.estimators import KernelMachine, KernelRobustRegressor
from mercer.kernels import RBF
from mercer.losses import Hinge, Huber, Squared


def wave(n=200, outliers=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = np.linspace(0, 6, n)[:, None]
    clean = np.sin(X[:, 0])
    y = clean + 0.1 * rng.normal(size=n)
    bad = rng.permutation(n)[: int(outliers * n)]
    y[bad] += rng.choice([20.0, 50.0], len(bad))
    return X, y, clean, bad


def test_a_linear_kernel_at_the_same_scale_is_scikit_learns_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.standard_t(2, 80) + 4
    theirs = sklearn.linear_model.HuberRegressor(epsilon=1.5, alpha=0.3, tol=1e-10, max_iter=10_000).fit(X, y)
    # sigma H(r / sigma) with H = z^2 inside is 2 / sigma times Huber's loss of threshold epsilon sigma
    ours = KernelRobustRegressor(
        C=1 / (0.3 * theirs.scale_), delta=1.5, scale=float(theirs.scale_), kernel="linear", tol=1e-12
    ).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    assert np.array_equal(ours.outliers_, theirs.outliers_)


@pytest.mark.parametrize("loss", ["huber", "absolute", "epsilon_insensitive"])
def test_outliers_do_not_move_the_function(loss):
    X, y, clean, bad = wave()
    model = KernelRobustRegressor(loss, C=10.0, kernel=RBF(1.0)).fit(X, y)
    assert np.abs(model.predict(X) - clean).max() < 0.2
    assert model.outliers_[bad].all()
    assert model.certificate_.converged
    assert model.certificate_.verify(X, y).relative_gap < 1e-3
    squares = KernelMachine(RBF(1.0), Squared(), 0.1).fit(X, y)
    assert np.abs(squares.predict(X) - clean).max() > 1.0


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e4])
def test_the_scale_is_that_of_the_noise_in_any_unit(unit):
    X, y, _, _ = wave(400)
    model = KernelRobustRegressor(C=10.0, kernel=RBF(1.0)).fit(X, unit * y)
    assert 0.07 < model.scale_ / unit < 0.15
    np.testing.assert_allclose(
        model.predict(X) / unit, KernelRobustRegressor(C=10.0, kernel=RBF(1.0)).fit(X, y).predict(X), atol=0.01
    )


def test_a_given_scale_and_a_given_loss_are_taken_as_they_are():
    X, y, _, _ = wave(60)
    fixed = KernelRobustRegressor(C=2.0, delta=2.0, scale=0.1, tol=1e-8).fit(X, y)
    machine = KernelMachine(loss=Huber(0.2), penalty=0.5, tol=1e-8).fit(X, y)
    own = KernelRobustRegressor(Huber(0.2), C=2.0, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(fixed.predict(X), machine.predict(X), atol=1e-4)
    np.testing.assert_allclose(own.predict(X), machine.predict(X), atol=1e-4)
    assert fixed.scale_ == 0.1


def test_weights_are_repetition_in_the_scale_too():
    X, y, _, _ = wave(60)
    weights = np.tile([0, 1, 2], 20)
    rows = np.repeat(np.arange(60), weights)
    weighted = KernelRobustRegressor(C=2.0, kernel=RBF(1.0), tol=1e-8).fit(X, y, weights)
    repeated = KernelRobustRegressor(C=2.0, kernel=RBF(1.0), tol=1e-8).fit(X[rows], y[rows])
    assert weighted.scale_ == pytest.approx(repeated.scale_, rel=1e-3)
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-3)


def test_data_without_noise_have_a_scale_all_the_same():
    X = np.linspace(0, 1, 10)[:, None]
    for y in (np.zeros(10), np.full(10, 7.0), X[:, 0]):
        model = KernelRobustRegressor().fit(X, y)
        assert np.isfinite(model.predict(X)).all()
        assert model.scale_ > 0
    assert KernelRobustRegressor().fit([[1.0]], [3.0]).predict([[2.0]])[0] == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        (
            {"loss": "squared"},
            "loss='squared' of KernelRobustRegressor must be a loss object for real targets, or one of",
        ),
        ({"loss": Hinge()}, "loss=Hinge.* must be a loss object for real targets"),
        ({"delta": 0.0}, "delta=0.0 of KernelRobustRegressor must be a number of scales > 0"),
        ({"scale": "std"}, "scale='std' of KernelRobustRegressor must be a number > 0, or 'mad'"),
        ({"scale": 0}, "scale=0"),
        ({"C": -1}, "C=-1 of KernelRobustRegressor must be a finite number > 0"),
    ],
)
def test_a_parameter_outside_its_domain_is_named(params, match):
    with pytest.raises(ValueError, match=match):
        KernelRobustRegressor(**params).fit(*wave(20)[:2])
