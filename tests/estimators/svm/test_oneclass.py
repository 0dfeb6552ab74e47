"""OneClassSVM beside scikit-learn's, and the share nu."""

import numpy as np
import pytest
import sklearn.svm

from mercer.estimators import OneClassSVM


def cloud(n=150, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(size=(n - 10, 2)), rng.uniform(-6, 6, (10, 2))])


@pytest.mark.parametrize("params", [{}, {"kernel": "linear"}, {"gamma": 2.0}], ids=str)
@pytest.mark.parametrize("nu", [0.05, 0.5, 0.897])
def test_agrees_with_scikit_learn(params, nu):
    X = cloud() + (5 if params.get("kernel") == "linear" else 0)
    ours = OneClassSVM(nu=nu, tol=1e-11, **params).fit(X)
    theirs = sklearn.svm.OneClassSVM(nu=nu, tol=1e-9, **params).fit(X)
    scale = np.abs(theirs.score_samples(X)).max()
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), atol=1e-4 * scale)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4 * scale)
    np.testing.assert_allclose(ours.offset_, theirs.offset_, atol=1e-4 * scale)
    clear = np.abs(theirs.decision_function(X)) > 1e-3 * scale
    assert np.array_equal(ours.predict(X)[clear], theirs.predict(X)[clear])
    assert ours.dual_coef_.sum() == pytest.approx(nu * len(X))
    assert ours.predict(X).dtype == theirs.predict(X).dtype
    assert ours.n_support_.shape == theirs.n_support_.shape
    assert ours.offset_.shape == theirs.offset_.shape == ours.intercept_.shape


@pytest.mark.parametrize("nu", [0.05, 0.3, 1.0])
def test_nu_is_the_share_outside(nu):
    X = cloud()
    model = OneClassSVM(nu=nu, tol=1e-9).fit(X)
    assert (model.decision_function(X) < -1e-6).mean() <= nu <= len(model.support_) / len(X) + 1e-12
    assert model.certificate_.verify(X).relative_gap <= 1e-8


def test_weights_agree_with_scikit_learn():
    X = cloud(60)
    weights = np.tile([0.0, 1.0, 2.0], 20)
    ours = OneClassSVM(gamma=0.5, tol=1e-11).fit(X, sample_weight=weights)
    theirs = sklearn.svm.OneClassSVM(gamma=0.5, tol=1e-9).fit(X, sample_weight=weights)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)
    assert ours.certificate_.verify(X, sample_weight=weights).relative_gap < 1e-9


def test_it_predicts_what_it_was_fitted_to():
    X = cloud()
    assert np.array_equal(OneClassSVM(nu=0.2).fit_predict(X), OneClassSVM(nu=0.2).fit(X).predict(X))
