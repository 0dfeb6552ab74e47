"""NuSVC: the share of margin errors, what is feasible, and scikit-learn. NuSVR: the largest errors."""

from itertools import combinations, product

import clarabel
import numpy as np
import pytest
import sklearn.svm
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_iris, make_classification, make_moons

from mercer.estimators import SVC, KernelMachine, NuSVC, NuSVR
from mercer.kernels import RBF
from mercer.losses import Ball, LargestErrors, Norm


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


# -- the sum of the k largest errors ----------------------------------------------------------------------


def largest_errors(K, y, k, C):
    """Return the least 1/2 a'Ka + C t over a, b and t, t no less than any sum of k signed errors: Clarabel's word.

    Every subset of k samples with every choice of signs is one inequality, so that nothing is known of epsilon.
    """
    n = len(y)
    rows = []
    for chosen in combinations(range(n), k):
        for signs in product((-1.0, 1.0), repeat=k):
            row = np.zeros(n)
            row[list(chosen)] = signs
            rows.append(row)
    S = np.array(rows)  # S (y - K a - b) <= t
    A = np.column_stack([-S @ K, -S.sum(axis=1), -np.ones(len(S))])
    P = np.zeros((n + 2, n + 2))
    P[:n, :n] = K
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.NonnegativeConeT(len(S))]
    q = np.concatenate([np.zeros(n + 1), [C]])
    upper = sparse.triu(sparse.csc_array(P)).tocsc()
    return clarabel.DefaultSolver(upper, q, sparse.csc_array(A), -S @ y, cones, settings).solve().obj_val


@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_the_k_largest_errors_are_the_loss_at_nu_k_of_n(k):
    rng = np.random.default_rng(k)
    X, C = rng.normal(size=(7, 2)), 2.0
    y = np.sin(2 * X[:, 0]) + rng.normal(size=7)
    kernel = RBF(1.0)
    model = NuSVR(nu=k / 7, C=C, kernel=kernel, tol=1e-9).fit(X, y)
    errors = np.sort(np.abs(y - model.predict(X)))[-k:]
    objective = 0.5 * model.function_.norm() ** 2 + C * errors.sum()
    assert objective == pytest.approx(model.certificate_.primal, rel=1e-6)
    assert objective == pytest.approx(largest_errors(kernel(X), y, k, C), rel=1e-6)
    assert model.certificate_.verify(X, y).converged


@pytest.mark.parametrize("k", [1, 2, 3, 7, 9])
@pytest.mark.parametrize("size", [1.0, 1e9])
def test_largest_errors_as_a_loss_of_the_engine(k, size):
    rng = np.random.default_rng(k)
    X, s = rng.normal(size=(7, 2)), 0.5
    y = size * (np.sin(2 * X[:, 0]) + rng.normal(size=7) + 3.0)
    loss, kernel = LargestErrors(k), RBF(1.0)
    model = KernelMachine(kernel, loss, penalty=s / size, tol=1e-9).fit(X, y)
    errors = np.sort(np.abs(y - model.predict(X)))[-k:]
    objective = 0.5 * s / size * model.function_.norm() ** 2 + errors.sum()
    assert loss.value(y, model.predict(X)).sum() == pytest.approx(errors.sum())
    assert objective == pytest.approx(model.certificate_.primal, rel=1e-6)
    best = size * s * largest_errors(kernel(X), y / size, min(k, 7), 1 / s)
    assert objective == pytest.approx(best, rel=1e-6)
    assert model.certificate_.verify(X, y).converged
    assert not KernelMachine(kernel, loss, penalty=s / size, tol=0.3).fit(X, y).certificate_.gap < 0


@pytest.mark.parametrize("penalty", [Norm(0.3), Ball(1.5)])
def test_largest_errors_with_other_penalties(penalty):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=30)
    model = KernelMachine(RBF(1.0), LargestErrors(4), penalty, tol=1e-6).fit(X, y)
    assert model.certificate_.converged
    assert model.certificate_.verify(X, y).converged
    many = KernelMachine(RBF(1.0), LargestErrors(30), penalty, tol=1e-6).fit(X, y)
    absolute = KernelMachine(RBF(1.0), "absolute", penalty, tol=1e-6).fit(X, y)
    assert many.certificate_.primal == pytest.approx(absolute.certificate_.primal, rel=1e-5)


@given(st.integers(1, 6), st.lists(st.floats(-10, 10), min_size=1, max_size=6), st.integers(0, 1000))
def test_fenchel_and_young_for_the_largest_errors(k, f, seed):
    loss, rng = LargestErrors(k), np.random.default_rng(seed)
    f = np.array(f)
    y = rng.normal(size=len(f))
    slope = loss.derivative(y, f)
    equal = loss.value(y, f).sum() + loss.conjugate(y, slope).sum()
    assert equal == pytest.approx(slope @ f, abs=1e-9)
    u = rng.uniform(-1, 1, len(f))
    u *= min(1.0, k / np.abs(u).sum())
    assert loss.value(y, f).sum() + loss.conjugate(y, u).sum() >= u @ f - 1e-9
    assert np.isinf(loss.conjugate(y, np.full(len(f), 1.1))).all()
    if k < len(f):
        assert np.isinf(loss.conjugate(y, np.ones(len(f)))).all()


def test_what_largest_errors_need():
    X, y = np.arange(8.0)[:, None], np.arange(8.0) % 3
    with pytest.raises(ValueError, match="needs an offset"):
        KernelMachine(RBF(1.0), LargestErrors(), fit_intercept=False).fit(X, y)
    with pytest.raises(ValueError, match="weights of single ones have no meaning in it; they go from 1 to 2"):
        KernelMachine(RBF(1.0), LargestErrors()).fit(X, y, sample_weight=[1, 2, 1, 1, 1, 1, 1, 1])
    with pytest.raises(ValueError, match=r"solver='proximal' adds up losses of single predictions, .* use 'dual'"):
        KernelMachine(RBF(1.0), LargestErrors(), solver="proximal").fit(X, y)
    with pytest.raises(ValueError, match="count of LargestErrors must be a whole number >= 1"):
        LargestErrors(0)
    twice = KernelMachine(RBF(1.0), LargestErrors(2), tol=1e-8).fit(X, y, sample_weight=np.full(8, 2.0))
    halved = KernelMachine(RBF(1.0), LargestErrors(2), penalty=0.5, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(twice.predict(X), halved.predict(X), atol=1e-4)


def test_other_joint_losses_are_refused_with_the_theorem_and_the_way_out():
    class Largest:
        def value(self, y, f):
            return np.full(len(y), np.abs(y - f).max())

        def derivative(self, y, f):
            return np.sign(f - y) * (np.abs(y - f) == np.abs(y - f).max())

    match = r"The representer theorem holds for a joint loss .* LargestErrors\(k\), the sum of the k largest"
    with pytest.raises(ValueError, match=match):
        KernelMachine(RBF(1.0), loss=Largest()).fit(np.arange(8.0)[:, None], np.arange(8.0))
