"""NuSVC: the share of margin errors, what is feasible, and scikit-learn."""

import numpy as np
import pytest
import sklearn.svm
from sklearn.datasets import load_iris, make_classification, make_moons

from mercer.estimators import SVC, NuSVC
from mercer.kernels import RBF


def blobs(n=150, seed=0):
    return make_classification(n, 5, flip_y=0.15, random_state=seed)


@pytest.mark.parametrize(
    ("params", "nu"),
    [({}, 0.2), ({}, 0.5), ({}, 0.8), ({"kernel": "linear"}, 0.79), ({"gamma": 1.0}, 0.2), ({"gamma": 1.0}, 0.5)],
    ids=str,
)
def test_two_classes_agree_with_scikit_learn(params, nu):
    X, y = make_moons(120, noise=0.3, random_state=0)
    ours, theirs = NuSVC(nu=nu, tol=1e-11, **params).fit(X, y), sklearn.svm.NuSVC(nu=nu, tol=1e-9, **params).fit(X, y)
    scale = np.abs(theirs.decision_function(X)).max()
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3 * scale)
    assert ours.dual_coef_.shape == theirs.dual_coef_.shape
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3 * scale)


def test_many_classes_and_weights_agree_with_scikit_learn():
    X, y = load_iris(return_X_y=True)
    weights = np.random.default_rng(0).uniform(0.5, 1.5, len(y))
    ours = NuSVC(nu=0.3, tol=1e-11, decision_function_shape="ovo").fit(X, y, sample_weight=weights)
    theirs = sklearn.svm.NuSVC(nu=0.3, tol=1e-9, decision_function_shape="ovo").fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=2e-3)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    assert ours.certificate_.verify(X, y, sample_weight=weights).relative_gap < 1e-9


@pytest.mark.parametrize("nu", [0.1, 0.4, 0.7])
def test_nu_bounds_margin_errors_from_above_and_support_vectors_from_below(nu):
    X, y = blobs()
    model = NuSVC(nu=nu, tol=1e-9).fit(X, y)
    margin = (2 * y - 1) * model.decision_function(X)
    assert (margin < 1 - 1e-6).mean() <= nu <= len(model.support_) / len(y)


def test_nu_gives_the_machine_of_some_price():
    X, y = blobs()
    nu = NuSVC(nu=0.5, kernel=RBF(1.5), tol=1e-10).fit(X, y)
    price = SVC(C=1 / nu._scales[0], kernel=RBF(1.5), tol=1e-10).fit(X, y)
    np.testing.assert_allclose(nu.decision_function(X), price.decision_function(X), atol=1e-3)


def test_nu_past_feasibility_names_the_largest_and_at_it_works():
    X, y = blobs(60)
    y[:] = 0
    y[:12] = 1
    with pytest.raises(ValueError, match=r"nu=0\.5.*largest feasible nu is 0\.4\b"):
        NuSVC(nu=0.5).fit(X, y)
    model = NuSVC(nu=0.4).fit(X, y)
    assert model.certificate_.converged
    with pytest.raises(ValueError, match=r"largest feasible nu is 0\.2"):
        NuSVC(nu=0.5).fit(X, y, sample_weight=np.where(y == 1, 4 / 9, 1.0))


def test_where_the_classes_meet_there_is_no_margin():
    X, y = np.array([[0.0], [1.0], [0.0], [1.0]]), np.array([0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"margin of NuSVC vanishes.*nu=0\.9.*Raise nu"):
        NuSVC(nu=0.9).fit(X, y)
    X, y = make_moons(120, noise=0.3, random_state=0)
    with pytest.raises(ValueError, match="margin of NuSVC vanishes"):
        NuSVC(nu=0.1, kernel="linear").fit(X, y)


def test_class_weights_count():
    X, y = make_moons(100, noise=0.4, random_state=1)
    plain, heavy = NuSVC(nu=0.4).fit(X, y), NuSVC(nu=0.4, class_weight={1: 1.4}).fit(X, y)
    same = NuSVC(nu=0.4).fit(X, y, sample_weight=np.where(y == 1, 1.4, 1.0))
    np.testing.assert_array_equal(heavy.decision_function(X), same.decision_function(X))
    assert np.abs(heavy.decision_function(X) - plain.decision_function(X)).max() > 1e-2
