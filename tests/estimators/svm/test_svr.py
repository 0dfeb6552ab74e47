"""SVR and NuSVR beside scikit-learn's, and the tube."""

import numpy as np
import pytest
import sklearn.svm
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

import referee
from cases import each
from mercer.estimators import SVR, NuSVR
from mercer.kernels import RBF, Linear, Polynomial
from mercer.solvers import Infeasible
from parity import radius, svr_certificate

TIGHT = 1e-9


def wave(n=100, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 1))
    return X, np.sinc(X[:, 0]) + 0.1 * rng.normal(size=n)


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X)[:200], (y[:200] - y.mean()) / y.std()


@each("data", [wave, diabetes], ids=lambda f: f.__name__)
@each("params", [{}, {"kernel": "linear"}, {"kernel": "poly", "degree": 2, "coef0": 1.0}], ids=str)
@each(("C", "epsilon"), [(1.0, 0.1), (20.0, 0.0), (0.1, 0.5)])
def test_regression_agrees_with_scikit_learn_within_the_two_gaps(data, params, C, epsilon):
    X, y = data()
    ours = SVR(C=C, epsilon=epsilon, tol=TIGHT, **params).fit(X, y)
    theirs = sklearn.svm.SVR(C=C, epsilon=epsilon, tol=1e-8, **params).fit(X, y)
    largest = float(ours.kernel_.diag(X).max())
    allowed = radius(ours.certificate_, largest)
    allowed += radius(svr_certificate(theirs, ours.kernel_, X, y, C, epsilon), largest) + 1e-6
    assert np.abs(ours.predict(X) - theirs.predict(X)).max() <= allowed


def test_attributes_are_those_of_scikit_learn():
    X, y = wave()
    ours, theirs = SVR(tol=TIGHT).fit(X, y), sklearn.svm.SVR(tol=1e-9).fit(X, y)
    assert np.array_equal(ours.support_, theirs.support_)
    assert np.array_equal(ours.support_vectors_, theirs.support_vectors_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
    assert np.array_equal(ours.n_support_, theirs.n_support_)
    assert isinstance(ours.n_iter_, int)
    linear = SVR(kernel="linear", tol=TIGHT).fit(X, y)
    np.testing.assert_allclose(linear.coef_, sklearn.svm.SVR(kernel="linear", tol=1e-9).fit(X, y).coef_, atol=1e-4)


def test_weights_agree_with_scikit_learn_and_with_repetition():
    X, y = wave(60)
    weights = np.tile([0.0, 1.0, 2.0], 20)
    rows = np.repeat(np.arange(60), weights.astype(int))
    ours = SVR(gamma=1.0, tol=1e-11).fit(X, y, sample_weight=weights)
    again = SVR(gamma=1.0, tol=1e-11).fit(X[rows], y[rows])
    theirs = sklearn.svm.SVR(gamma=1.0, tol=1e-8).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ours.predict(X), again.predict(X), atol=1e-4)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)
    assert ours.certificate_.verify(X, y, sample_weight=weights).relative_gap < 1e-9


def test_a_tube_around_all_targets_needs_no_support_vector():
    X = np.arange(5.0)[:, None]
    model = SVR(epsilon=10.0).fit(X, np.arange(5.0))
    assert model.support_.shape == (0,)
    assert model.dual_coef_.shape == (1, 0)
    assert np.ptp(model.predict(X)) == 0
    assert np.abs(model.predict(X) - np.arange(5.0)).max() <= 10
    assert model.certificate_.verify(X, np.arange(5.0)).gap == 0
    assert SVR(kernel="linear", epsilon=10.0).fit(X, np.arange(5.0)).predict([[7.0]]).shape == (1,)


def test_the_price_of_nu_svr_is_finite():
    X, y = wave(10)
    with pytest.raises(ValueError, match="C=inf of NuSVR must be a finite number > 0"):
        NuSVR(C=np.inf).fit(X, y)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    ("kernel", "epsilon"), [(RBF(0.3), 0.2), (RBF(1.0), 0.3), (Linear(), 1.4), (Polynomial(3), 0.7)]
)
def test_a_hard_tube_is_the_flattest_that_clarabel_finds(kernel, epsilon, fit_intercept):
    X, y = wave(40)
    model = SVR(C=np.inf, kernel=kernel, epsilon=epsilon, fit_intercept=fit_intercept, tol=1e-7).fit(X, y)
    problem = referee.svr(kernel(X), y, np.inf, epsilon)
    problem.offset = "free" if fit_intercept else "none"
    assert np.abs(y - model.predict(X)).max() <= epsilon * (1 + 1e-9)
    assert model.certificate_.dual == pytest.approx(referee.solve(problem).dual, rel=1e-5)
    assert model.certificate_.converged
    assert model.certificate_.verify(X, y).converged
    assert set(model.margins(X, y).role) <= {"inside the tube", "on the tube"}
    assert fit_intercept or model.intercept_ == 0


def test_a_hard_tube_of_no_width_interpolates():
    X, y = wave(12)
    model = SVR(C=np.inf, kernel=RBF(0.3), epsilon=0.0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-9)
    assert model.certificate_.verify(X, y).converged


def test_a_tube_as_wide_as_the_targets_needs_no_function():
    X, y = wave(12)
    model = SVR(C=np.inf, epsilon=10.0).fit(X, y)
    assert not len(model.support_)
    assert model.predict(X) == pytest.approx(np.full(12, (y.max() + y.min()) / 2))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_a_tube_too_narrow_for_the_kernel_is_an_error_with_evidence(epsilon, fit_intercept):
    X, y = wave(30)
    with pytest.raises(Infeasible, match=r"stays within epsilon=0[.2]* of every target .*narrowest tube") as caught:
        SVR(C=np.inf, kernel="linear", epsilon=epsilon, fit_intercept=fit_intercept).fit(X, y)
    b = caught.value.coefficients
    assert np.abs(b).sum() == pytest.approx(1)
    assert np.abs(b @ X).max() <= 1e-9
    assert not fit_intercept or abs(b.sum()) <= 1e-9
    narrowest = float(b @ y)  # for any f of the space and offset: sum b (y - f) = b'y, which is at most the width
    assert narrowest > epsilon
    model = SVR(C=np.inf, kernel="linear", epsilon=1.001 * narrowest, fit_intercept=fit_intercept).fit(X, y)
    assert np.abs(y - model.predict(X)).max() <= 1.001 * narrowest * (1 + 1e-9)


def test_one_point_with_two_targets_has_no_tube():
    X, y = np.array([[0.0], [1.0], [1.0]]), np.array([0.0, 1.0, 2.0])
    with pytest.raises(Infeasible, match=r"narrowest tube has epsilon=0.5\."):
        SVR(C=np.inf, kernel=RBF(1.0), epsilon=0.4).fit(X, y)
    assert SVR(C=np.inf, kernel=RBF(1.0), epsilon=0.5001).fit(X, y).certificate_.verify(X, y).converged


def test_too_many_points_for_a_hard_tube_are_told_so():
    with pytest.raises(ValueError, match=r"C=inf needs the whole kernel matrix of 3001 points.*large finite C"):
        SVR(C=np.inf, epsilon=0.1).fit(np.arange(3001.0)[:, None], np.arange(3001.0))


def test_bad_targets_are_named():
    X, _ = wave(4)
    with pytest.raises(ValueError, match="NaN"):
        SVR().fit(X, [1.0, np.nan, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"y\[1\] is inf"):
        SVR(kernel=lambda A, B: A @ B.T).fit(X, [1.0, np.inf, 0.0, 0.0])
    with pytest.raises(ValueError, match="requires y"):
        SVR().fit(X, None)


# -- nu ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [wave, diabetes], ids=lambda f: f.__name__)
@pytest.mark.parametrize(("nu", "C"), [(0.1, 1.0), (0.5, 10.0), (0.9, 0.5)])
def test_nu_regression_agrees_with_scikit_learn(data, nu, C):
    X, y = data()
    ours, theirs = NuSVR(nu=nu, C=C, tol=1e-10).fit(X, y), sklearn.svm.NuSVR(nu=nu, C=C, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=2e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-4)


@pytest.mark.parametrize("nu", [0.05, 0.3, 0.8])
def test_nu_is_the_share_outside_the_tube(nu):
    X, y = wave()
    model = NuSVR(nu=nu, C=5.0, tol=1e-9).fit(X, y)
    outside = np.abs(y - model.predict(X)) > model.epsilon_ + 1e-6
    assert model.epsilon_ > 0
    assert outside.mean() <= nu <= len(model.support_) / len(y)
    same = SVR(C=5.0, epsilon=model.epsilon_, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(same.predict(X), model.predict(X), atol=1e-4)
    assert model.certificate_.verify(X, y).relative_gap <= 1e-8
