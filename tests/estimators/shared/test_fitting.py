"""Fits that end in a whole model or leave none, and numbers that leave float64."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from mercer import (
    SVC,
    SVR,
    FromFunction,
    GaussianProcessRegressor,
    KernelPCA,
    KernelRidge,
    LinearSVR,
    OneClassSVM,
    Pegasos,
    Perceptron,
    Ridge,
)

X = np.random.default_rng(0).normal(size=(20, 3))
T = X[:, 0] - X[:, 1]
Y = T > 0


def interrupting(x, z):
    raise KeyboardInterrupt


@pytest.mark.parametrize("model", [KernelPCA(2), KernelRidge(), SVC(), SVR(), OneClassSVM()], ids=repr)
def test_an_interrupted_fit_leaves_no_half_of_a_model(model):
    with pytest.raises(KeyboardInterrupt):
        model.set_params(kernel=FromFunction(interrupting)).fit(X, Y)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_a_failed_fit_leaves_the_model_of_the_fit_before():
    model = SVR().fit(X, T)
    before = model.predict(X)
    with pytest.raises(ValueError, match="y contains 'a'"):
        model.fit(X[:, :2], np.array(["a"] * 20, dtype=object))
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("model", [Ridge(), LinearSVR(), SVR(), KernelRidge()], ids=repr)
def test_words_as_targets_of_a_regressor_are_named(model):
    with pytest.raises(ValueError, match=r"y contains 'low', and \w+ predicts numbers; encode y, or take a classifier"):
        model.fit(X, ["low"] * 20)


@pytest.mark.parametrize("weight", [1e300, 1e-300])
@pytest.mark.parametrize("model", [OneClassSVM(), SVR(), KernelRidge(), Ridge(), Perceptron()], ids=repr)
def test_weights_whose_squares_leave_float64_are_named(model, weight):
    with pytest.raises(ValueError, match=r"sample_weight\[0\] is 1e[+-]300, .* Divide all of them by one number"):
        model.fit(X, Y, sample_weight=np.full(20, weight))


@pytest.mark.parametrize("model", [Pegasos(random_state=0), Perceptron()], ids=repr)
def test_features_whose_squares_leave_float64_are_named_by_the_online_learners(model):
    with pytest.raises(ValueError, match=r"X reaches \S+e\+160, whose square leaves the range of float64; scale"):
        model.fit(1e160 * X, Y)


def test_coefficients_beyond_float64_end_in_a_sentence_with_the_sizes():
    with pytest.raises(FloatingPointError, match=r"fit of Ridge leaves the range .* X reaches .*, y reaches .*\. "):
        Ridge().fit(X.astype(np.float32), 1e150 * T)


def test_a_likelihood_beyond_float64_ends_in_a_sentence():
    with pytest.raises(FloatingPointError, match="fit of GaussianProcessRegressor leaves the range of float64"):
        GaussianProcessRegressor(kernel="linear", noise=0.001).fit(1e-308 * X, np.full(20, 1e149))


@pytest.mark.parametrize("model", [Ridge(), LinearSVR(C=100.0), SVR(kernel="linear", C=100.0)], ids=repr)
def test_answers_beyond_float64_are_errors(model):
    model.fit(1e-3 * X, 1e3 * T)
    with pytest.raises(FloatingPointError, match=r"answers of \w+ leave the range of float64: X reaches 1e\+308"):
        model.predict(np.full((1, 3), 1e308) * [1.0, -1.0, 1.0])


def test_components_beyond_float32_stay_in_float64():
    large = (1e37 * X).astype(np.float32)
    found = KernelPCA(2, kernel="poly", degree=2, gamma=1.0).fit(large).transform(large)
    assert found.dtype == np.float64
    assert np.isfinite(found).all()
