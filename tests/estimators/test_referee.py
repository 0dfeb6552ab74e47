"""Our five machines against Clarabel, and against libsvm, on problems nobody chose."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sklearn import svm as peers
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

import referee
from mercer import (
    RBF,
    SVC,
    SVR,
    KernelLogisticRegression,
    KernelMachine,
    KernelRidge,
    Linear,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Polynomial,
)
from mercer.losses import Huber

KERNELS = (RBF(0.7), RBF(5.0), Linear(), Polynomial(2, 1.0, 1.0))
MODELS = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")


@st.composite
def problems(draw):
    """A model, its data and its weights: few points, of which many may be equal, on one line or alike in a feature."""
    n, d = draw(st.integers(2, 14)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.sampled_from(["normal", "grid", "equal", "line", "constant feature", "scaled"]))
    X = rng.normal(size=(n, d))
    if shape == "grid":
        X = np.round(X)  # points that coincide, with either label
    elif shape == "equal":
        X[:] = X[0]
    elif shape == "line":
        X = X[:, :1] * np.ones(d)
    elif shape == "constant feature":
        X[:, 0] = 3.0
    elif shape == "scaled":
        X = X * 10.0 ** rng.uniform(-3, 1, d)
    weights = None
    if draw(st.booleans()):
        weights = rng.choice([0.1, 0.5, 1.0, 3.0], n)
        weights[rng.random(n) < draw(st.sampled_from([0.0, 0.3]))] = 0.0
    signs = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    signs[:2] = 1.0, -1.0
    if weights is not None:
        weights[:2] = np.maximum(weights[:2], 0.1)
    target = np.round(rng.normal(size=n), draw(st.sampled_from([0, 6])))
    return draw(st.sampled_from(MODELS)), X, signs, target, weights, draw(st.sampled_from(KERNELS)), draw(_settings())


@st.composite
def _settings(draw):
    return {
        "C": draw(st.sampled_from([0.01, 1.0, 30.0])),
        "nu": draw(st.sampled_from([0.05, 0.3, 0.7, 1.0])),
        "epsilon": draw(st.sampled_from([0.0, 0.1, 2.0])),
    }


def stated(name, K, signs, target, w, C, nu, epsilon):
    """The model as a dual problem, from its definition."""
    half = nu * w.sum() / 2
    zero = np.zeros(len(w))
    plus, minus = np.where(signs > 0, w, 0.0), np.where(signs < 0, w, 0.0)
    return {
        "SVC": lambda: referee.svc(K, signs, C * w),
        "NuSVC": lambda: referee.Dual(K, zero, plus, minus, offset="split", total=(half, half)),
        "SVR": lambda: referee.Dual(K, -target, C * w, C * w, width=epsilon),
        "NuSVR": lambda: referee.Dual(K, -target, C * w, C * w, offset="split", total=(C * half, C * half)),
        "OneClassSVM": lambda: referee.Dual(K, zero, w, zero, total=nu * w.sum()),
    }[name]()


def fitted(name, kernel, X, signs, target, weights, C, nu, epsilon):
    model = {
        "SVC": lambda: SVC(kernel=kernel, C=C, tol=1e-8),
        "NuSVC": lambda: NuSVC(kernel=kernel, nu=nu, tol=1e-8),
        "SVR": lambda: SVR(kernel=kernel, C=C, epsilon=epsilon, tol=1e-8),
        "NuSVR": lambda: NuSVR(kernel=kernel, C=C, nu=nu, tol=1e-8),
        "OneClassSVM": lambda: OneClassSVM(kernel=kernel, nu=nu, tol=1e-8),
    }[name]()
    y = signs if name in ("SVC", "NuSVC") else target
    return model.fit(X, y, sample_weight=weights), y


def agree(problem):
    """Assert that the dual value is Clarabel's to 1e-7, and the function within what the two gaps allow."""
    name, X, signs, target, weights, kernel, given_ = problem
    at = np.arange(len(X)) if weights is None else np.flatnonzero(weights)
    w = np.ones(len(X)) if weights is None else weights[at]
    nu = given_["nu"]
    if name == "NuSVC":
        nu = min(nu, 2 * min(w[signs[at] > 0].sum(), w[signs[at] < 0].sum()) / w.sum())
    parameters = {**given_, "nu": nu}
    K = kernel(X[at])
    dual = stated(name, K, signs[at], target[at], w, **parameters)
    word = referee.solve(dual)
    assume(word.solved)
    size = float(np.abs(K).max()) * float(np.minimum(dual.upper + dual.lower, 1e300).sum())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model, y = fitted(name, kernel, X, signs, target, weights, **parameters)
    except ValueError as error:
        if name != "NuSVC" or "margin of NuSVC vanishes" not in str(error):
            raise
        assert abs(word.dual) <= 1e-10 * max(size, 1.0)  # |w|^2 / 2
        return
    claim = model.certificate_
    again = claim.verify(X, y, sample_weight=weights)
    assert claim.converged
    assert again.converged or again.gap <= 1e-14 * size * w.sum()  # an optimum of 0, reached up to rounding
    off = 1e-7 * abs(word.dual) + 1e-10 * max(size, 1.0)  # Clarabel's own gap is absolute near 0, of some 1e-11
    assert abs(again.dual - word.dual) <= off
    scale = float(model._scales[0]) if name == "NuSVC" else 1.0
    f = scale * (model.predict(X[at]) if name in ("SVR", "NuSVR") else model.decision_function(X[at]))
    g = K @ (word.plus - word.minus)
    far = 2 * math.sqrt(2 * (max(again.gap, 0.0) + off) * float(K.diagonal().max())) + 1e-9
    assert np.abs((f - scale * model.intercept_[0]) - g).max() <= far


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(problems())
def test_agrees_with_clarabel(problem):
    agree(problem)


@pytest.mark.long
@settings(max_examples=2000, suppress_health_check=[HealthCheck.too_slow])
@given(problems())
def test_agrees_with_clarabel_two_thousand_times(problem):
    agree(problem)


def _standard(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize(("load", "C"), [(load_breast_cancer, 1.0), (load_breast_cancer, 100.0), (load_iris, 1.0)])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_dual_of_svc_is_that_of_libsvm(load, C, kernel):
    X, y = _standard(load)
    y = (y > 0).astype(int)
    ours = SVC(C=C, kernel=kernel, tol=1e-9).fit(X, y)
    theirs = peers.SVC(C=C, kernel=kernel, tol=1e-10).fit(X, y)
    K = ours.kernel_(X)
    _same_dual(_value(K, ours, np.where(y, -1.0, 1.0)), _value(K, theirs, np.where(y, -1.0, 1.0)))
    assert ours.certificate_.verify(X, y).converged


@pytest.mark.parametrize("nu", [0.1, 0.4])
def test_dual_of_nu_svc_is_that_of_libsvm(nu):
    X, y = _standard(load_wine)
    y = (y > 0).astype(int)
    ours = NuSVC(nu=nu, tol=1e-9).fit(X, y)
    theirs = peers.NuSVC(nu=nu, tol=1e-10).fit(X, y)
    # Both are scaled to a margin of 1: |w|^2 says it all.
    K = ours.kernel_(X)
    _same_dual(_value(K, ours, np.zeros(len(y))), _value(K, theirs, np.zeros(len(y))), 1e-6)


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_dual_of_svr_is_that_of_libsvm(C, kernel):
    X, y = _standard(load_diabetes)
    y = (y - y.mean()) / y.std()
    ours = SVR(C=C, epsilon=0.1, kernel=kernel, tol=1e-9).fit(X, y)
    theirs = peers.SVR(C=C, epsilon=0.1, kernel=kernel, tol=1e-10).fit(X, y)
    K = ours.kernel_(X)
    _same_dual(_value(K, ours, -y, 0.1), _value(K, theirs, -y, 0.1))


def test_dual_of_nu_svr_and_one_class_is_that_of_libsvm():
    X, y = _standard(load_diabetes)
    y = (y - y.mean()) / y.std()
    # scikit-learn's NuSVR, like ours, has the sum C nu n.
    ours, theirs = NuSVR(nu=0.4, C=2.0, tol=1e-9).fit(X, y), peers.NuSVR(nu=0.4, C=2.0, tol=1e-10).fit(X, y)
    K = ours.kernel_(X)
    _same_dual(_value(K, ours, -y), _value(K, theirs, -y))
    alone, peer = OneClassSVM(nu=0.3, tol=1e-9).fit(X), peers.OneClassSVM(nu=0.3, tol=1e-10).fit(X)
    _same_dual(_value(K, alone, 0 * y), _value(K, peer, 0 * y))


def _value(K, model, linear, width=0.0):
    """The dual objective by one program for both, from the coefficients alone."""
    b = np.zeros(len(K))
    b[model.support_] = np.ravel(model.dual_coef_)
    return -(0.5 * b @ K @ b + linear @ b + width * np.abs(b).sum())


def _same_dual(ours, theirs, tol=1e-7):
    assert abs(ours - theirs) <= tol * abs(theirs)


@pytest.mark.parametrize("seed", [0, 1, 5, 6, 31, 104])
@pytest.mark.filterwarnings("ignore:the fit stopped early", "ignore:K . alpha is singular")
def test_certified_objectives_are_those_of_the_coefficients(seed):
    """Far from the origin sums of a_i k(x_i, x) lose most of their digits, and nothing lost is certified."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(6, 20)), int(rng.integers(1, 4))
    X = 1000.0 + rng.normal(size=(n, d))
    y = 30.0 * rng.normal(size=n)
    sign, huge, wide = np.where(y > 0, 1.0, -1.0), 1e4 * (X - 1000.0), X.astype(np.longdouble)
    K = (wide @ wide.T + 1) ** 2
    cases = [
        (KernelMachine(Polynomial(2), Huber(10.0), 0.3), X, y, K, lambda v: Huber(10.0).value(y, v), 0.3),
        (KernelLogisticRegression(0.01, kernel=Polynomial(2)), X, sign, K,
         lambda v: 0.01 * np.logaddexp(0, -sign * v), 1.0),
        (KernelRidge(1e-4, kernel=Linear(), fit_intercept=True), huge, y, huge.astype(np.longdouble) @ huge.T,
         lambda v: (y - v) ** 2 / 2, 1e-4),
    ]  # fmt: skip
    for model, points, target, values, loss, strength in cases:
        claim = model.fit(points, target).certificate_
        a, b = np.ravel(model.dual_coef_), float(np.ravel(model.intercept_)[0])
        f = values @ a
        objective = float(loss(np.asarray(f + b, dtype=float)).sum() + 0.5 * strength * (a @ f))
        if claim.converged:
            assert abs(objective - claim.primal) <= max(claim.tol * objective, claim.rounding), type(model).__name__
    assert claim.converged  # the features of a linear kernel lose nothing
