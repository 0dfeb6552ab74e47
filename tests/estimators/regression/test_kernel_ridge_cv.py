"""KernelRidgeCV: the scores of as many fits, from one factorisation."""

import numpy as np
import pytest
import sklearn.linear_model
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.metrics import make_scorer, mean_absolute_error, mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut, ShuffleSplit, cross_val_predict

from checks import assert_no_fault
from mercer.estimators import KernelRidge, KernelRidgeCV
from mercer.kernels import RBF

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 2, (50, 2))
Y = np.sin(3 * X[:, 0]) + 0.2 * RNG.normal(size=50)
BOTH = np.column_stack([Y, RNG.normal(size=50)])
KERNEL = RBF(0.7)
ALPHAS = np.logspace(-4, 2, 7)


def test_scikit_learn_finds_no_fault():
    assert_no_fault(KernelRidgeCV())


# -- leave one out ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
def test_leaving_one_out_is_what_it_says(intercept):
    model = KernelRidgeCV(ALPHAS, kernel=KERNEL, fit_intercept=intercept, store_cv_results=True).fit(X, Y)
    for j, alpha in enumerate(ALPHAS):
        plain = KernelRidge(alpha, kernel=KERNEL, fit_intercept=intercept, residual=1e-11)
        left_out = cross_val_predict(plain, X, Y, cv=LeaveOneOut())
        np.testing.assert_allclose(model.cv_results_[:, j], (Y - left_out) ** 2, rtol=1e-4, atol=1e-8)
    best = model.cv_results_.mean(axis=0).argmin()
    assert model.alpha_ == ALPHAS[best]
    assert model.best_score_ == pytest.approx(-model.cv_results_.mean(axis=0)[best])


def test_a_linear_kernel_is_scikit_learns_ridge_cv():
    data, target = load_diabetes(return_X_y=True)
    data, target = data[:150], target[:150]
    alphas = np.logspace(-3, 1, 9)
    ours = KernelRidgeCV(alphas, kernel="linear", store_cv_results=True).fit(data, target)
    theirs = sklearn.linear_model.RidgeCV(alphas, fit_intercept=False, store_cv_results=True).fit(data, target)
    np.testing.assert_allclose(ours.cv_results_, theirs.cv_results_, rtol=1e-5)
    assert ours.alpha_ == theirs.alpha_
    assert ours.best_score_ == pytest.approx(theirs.best_score_, rel=1e-6)
    np.testing.assert_allclose(ours.predict(data), theirs.predict(data), rtol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_model_is_that_of_the_chosen_alpha(weighted):
    weights = RNG.uniform(0.2, 2, 50) if weighted else None
    model = KernelRidgeCV(ALPHAS, kernel=KERNEL, fit_intercept=True).fit(X, BOTH, weights)
    plain = KernelRidge(model.alpha_, kernel=KERNEL, fit_intercept=True).fit(X, BOTH, weights)
    np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=1e-5)
    np.testing.assert_allclose(model.dual_coef_, plain.dual_coef_, atol=1e-4 * np.abs(plain.dual_coef_).max())
    np.testing.assert_allclose(model.loo_residuals(), plain.loo_residuals(), atol=1e-5)
    assert model.certificate_.converged
    assert model.certificate_.verify(X, BOTH, **({} if weights is None else {"sample_weight": weights})).converged


def test_an_alpha_for_each_target():
    model = KernelRidgeCV(ALPHAS, kernel=KERNEL, alpha_per_target=True, store_cv_results=True).fit(X, BOTH)
    assert model.cv_results_.shape == (50, 2, 7)
    for j in range(2):
        alone = KernelRidgeCV(ALPHAS, kernel=KERNEL).fit(X, BOTH[:, j])
        assert model.alpha_[j] == alone.alpha_
        assert model.best_score_[j] == pytest.approx(alone.best_score_)
        np.testing.assert_allclose(model.predict(X)[:, j], alone.predict(X), atol=1e-6)
    assert model.alpha_[0] != model.alpha_[1]
    together = KernelRidgeCV(ALPHAS, kernel=KERNEL).fit(X, BOTH)
    assert np.ndim(together.alpha_) == 0
    assert np.ndim(together.best_score_) == 0


# -- folds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cv", [3, KFold(4, shuffle=True, random_state=0), ShuffleSplit(3, random_state=0)], ids=str)
@pytest.mark.parametrize("intercept", [False, True])
def test_folds_are_those_of_a_search(cv, intercept):
    params = {"kernel": KERNEL, "fit_intercept": intercept}
    model = KernelRidgeCV(ALPHAS, cv=cv, scoring="neg_mean_squared_error", **params).fit(X, Y)
    grid = {"alpha": list(ALPHAS)}
    search = GridSearchCV(KernelRidge(residual=1e-11, **params), grid, cv=cv, scoring="neg_mean_squared_error").fit(
        X, Y
    )
    assert model.alpha_ == search.best_params_["alpha"]
    assert model.best_score_ == pytest.approx(search.best_score_, rel=1e-4)


@pytest.mark.parametrize(
    "scoring", ["neg_mean_absolute_error", "r2", make_scorer(mean_absolute_error, greater_is_better=False)]
)
def test_any_score_of_scikit_learn(scoring):
    model = KernelRidgeCV(ALPHAS, kernel=KERNEL, cv=5, scoring=scoring).fit(X, Y)
    search = GridSearchCV(
        KernelRidge(kernel=KERNEL, residual=1e-11), {"alpha": list(ALPHAS)}, cv=5, scoring=scoring
    ).fit(X, Y)
    assert model.alpha_ == search.best_params_["alpha"]
    assert model.best_score_ == pytest.approx(search.best_score_, rel=1e-4)


def test_a_score_over_left_out_predictions():
    model = KernelRidgeCV(ALPHAS, kernel=KERNEL, scoring="neg_mean_absolute_error").fit(X, Y)
    scores = [
        -mean_absolute_error(
            Y, cross_val_predict(KernelRidge(a, kernel=KERNEL, residual=1e-11), X, Y, cv=LeaveOneOut())
        )
        for a in ALPHAS
    ]
    assert model.alpha_ == ALPHAS[int(np.argmax(scores))]
    assert model.best_score_ == pytest.approx(max(scores), rel=1e-5)


def test_weights_count_in_the_score():
    weights = np.tile([1.0, 3.0], 25)
    model = KernelRidgeCV(ALPHAS, kernel=KERNEL).fit(X, Y, weights)
    scores = [
        -mean_squared_error(
            Y,
            Y - KernelRidge(a, kernel=KERNEL, residual=1e-11).fit(X, Y, weights).loo_residuals(),
            sample_weight=weights,
        )
        for a in ALPHAS
    ]
    assert model.alpha_ == ALPHAS[int(np.argmax(scores))]
    assert model.best_score_ == pytest.approx(max(scores), rel=1e-5)


# -- inputs and parameters --------------------------------------------------------------------------------


def test_similarities_are_a_kernel_too():
    given = KernelRidgeCV(ALPHAS, kernel="precomputed").fit(KERNEL(X), Y)
    direct = KernelRidgeCV(ALPHAS, kernel=KERNEL).fit(X, Y)
    assert given.alpha_ == direct.alpha_
    np.testing.assert_allclose(given.predict(KERNEL(X[:4], X)), direct.predict(X[:4]), atol=1e-6)
    folds = KernelRidgeCV(ALPHAS, kernel="precomputed", cv=4).fit(KERNEL(X), Y)
    assert folds.alpha_ == KernelRidgeCV(ALPHAS, kernel=KERNEL, cv=4).fit(X, Y).alpha_


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_targets_of_any_size(scale):
    model = KernelRidgeCV(ALPHAS, kernel=KERNEL).fit(X, Y * scale)
    plain = KernelRidgeCV(ALPHAS, kernel=KERNEL).fit(X, Y)
    assert model.alpha_ == plain.alpha_
    np.testing.assert_allclose(model.predict(X) / scale, plain.predict(X), atol=1e-6)


def test_constant_targets_and_one_alpha():
    assert KernelRidgeCV([3.0], kernel=KERNEL).fit(X, Y).alpha_ == 3.0
    flat = KernelRidgeCV(ALPHAS, kernel=KERNEL, fit_intercept=True).fit(X, np.full(50, 2.0))
    np.testing.assert_allclose(flat.predict(X), 2.0, atol=1e-6)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"alphas": []}, r"alphas=\[\] of KernelRidgeCV must be"),
        ({"alphas": [1.0, 0.0]}, "alphas=.* of KernelRidgeCV must be numbers > 0"),
        ({"alphas": -1.0}, "alphas=-1.0 of KernelRidgeCV"),
        ({"cv": 3, "store_cv_results": True}, "cv!=None and store_cv_results=True are incompatible"),
        ({"cv": 3, "alpha_per_target": True}, "cv!=None and alpha_per_target=True are incompatible"),
        ({"scoring": "goodness"}, "goodness"),
        ({"kernel": "gauss"}, "kernel='gauss' of KernelRidgeCV"),
    ],
    ids=str,
)
def test_a_parameter_outside_its_domain_is_named(params, match):
    with pytest.raises(ValueError, match=match):
        clone(KernelRidgeCV(**params)).fit(X, Y)


def test_one_sample_has_none_to_leave():
    with pytest.raises(ValueError, match="needs at least two; here n_samples=1"):
        KernelRidgeCV(ALPHAS, kernel=KERNEL).fit(X[:1], Y[:1])
