"""Logistic regression: scikit-learn's on a linear kernel, calibration, classes and weights."""

import numpy as np
import pytest
import sklearn.linear_model
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_iris, make_moons
from sklearn.metrics import log_loss

from mercer.estimators import KernelLogisticRegression
from mercer.kernels import RBF

X, Y = make_moons(150, noise=0.3, random_state=0)
IRIS, SPECIES = load_iris(return_X_y=True)


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("data", [(X, Y), (IRIS, SPECIES)], ids=["two", "three"])
@pytest.mark.parametrize("weight", [None, "balanced"])
def test_a_linear_kernel_is_scikit_learns_model(data, C, weight):
    ours = KernelLogisticRegression(C, kernel="linear", tol=1e-12, class_weight=weight).fit(*data)
    theirs = sklearn.linear_model.LogisticRegression(C=C, tol=1e-10, max_iter=10_000, class_weight=weight).fit(*data)
    np.testing.assert_allclose(np.atleast_2d(ours.coef_), theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.predict_proba(data[0]), theirs.predict_proba(data[0]), atol=1e-4)
    assert ours.decision_function(data[0]).shape == theirs.decision_function(data[0]).shape
    assert np.array_equal(ours.predict(data[0]), theirs.predict(data[0]))


@pytest.mark.parametrize("data", [(X, Y), (IRIS, SPECIES)], ids=["two", "three"])
def test_the_mean_probability_of_a_class_is_its_share(data):
    points, y = data
    weights = np.random.default_rng(0).uniform(0, 2, len(y))
    model = KernelLogisticRegression(C=5.0, tol=1e-10).fit(points, y, weights)
    mean = np.average(model.predict_proba(points), axis=0, weights=weights)
    share = np.array([weights[y == c].sum() for c in model.classes_]) / weights.sum()
    np.testing.assert_allclose(mean, share, atol=1e-6)


def test_probabilities_are_reliable_on_new_data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (3000, 2))
    p = 1 / (1 + np.exp(-2 * np.sin(2 * X[:, 0]) - X[:, 1]))
    y = rng.random(3000) < p
    model = KernelLogisticRegression(C=1.0, kernel=RBF(1.0)).fit(X[:1000], y[:1000])
    found = model.predict_proba(X[1000:])[:, 1]
    seen, said = calibration_curve(y[1000:], found, n_bins=8)
    assert np.abs(seen - said).max() < 0.1
    assert np.sqrt(np.mean((found - p[1000:]) ** 2)) < 0.06
    assert log_loss(y[1000:], found) < log_loss(y[1000:], p[1000:]) + 0.02


def test_two_classes_by_either_loss_are_the_same_model():
    from mercer.estimators import KernelMachine

    binary = KernelLogisticRegression(C=2.0, tol=1e-10).fit(X, Y)
    # softmax of (f, -f) / 2 shares the penalty among two functions, |f|^2 / 4 in all
    pair = KernelMachine(loss="multinomial", penalty=1.0, tol=1e-10).fit(X, Y)
    np.testing.assert_allclose(binary.predict_proba(X), pair.predict_proba(X), atol=1e-5)


def test_classes_keep_their_names_and_a_new_fit_may_have_others():
    model = KernelLogisticRegression().fit(IRIS, np.array(["a", "b", "c"])[SPECIES])
    assert model.predict(IRIS[:1]).tolist() == ["a"]
    assert model.dual_coef_.shape == (150, 3)
    assert len(model.function_) == 3
    model.fit(X, Y > 0)
    assert model.classes_.tolist() == [False, True]
    assert model.dual_coef_.shape == (150,)
    assert model.predict_proba(X).shape == (150, 2)
    with pytest.raises(ValueError, match="C=inf of KernelLogisticRegression must be a finite number > 0"):
        KernelLogisticRegression(C=np.inf).fit(X, Y)
    with pytest.raises(ValueError, match="one class only"):
        KernelLogisticRegression().fit(X, np.zeros(150))


def test_separable_classes_and_large_C_stay_finite():
    x = np.array([[-1.0], [-0.9], [0.9], [1.0]])
    for C in (1e-10, 1e6):
        model = KernelLogisticRegression(C=C).fit(x, [0, 0, 1, 1])
        p = model.predict_proba(x)
        assert np.isfinite(p).all()
        assert np.isfinite(model.decision_function(1e6 * x)).all()
    assert model.score(x, [0, 0, 1, 1]) == 1
