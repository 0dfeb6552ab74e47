"""Inputs on which a solver could run for ever: each ends, with a certificate that holds or the cause by name."""

import re
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from cases import each
from mercer import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from mercer.solvers.dual.problem import Infeasible

N = 200
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 5))
y = (X[:, 0] + 0.5 * rng.normal(size=N) > 0).astype(int)
t = X[:, 0] + rng.normal(size=N)
UNSCALED = rng.normal(size=(N, 13)) * 10.0 ** np.arange(-6, 7)
MANY = rng.normal(size=(3500, 5))
STEPS = 10**7  # of SMO: a few seconds, and some times the most that is taken here


@pytest.fixture(autouse=True)
def _one_thread():
    with threadpool_limits(1):  # threads that wait for one another count as busy
        yield


def bounded(model, data, target=None, **weights):
    """Fit in so many steps; return the verified certificate, or the words of the warning that names the cause."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(data, target, **weights)
    assert np.max(model.n_iter_) < STEPS
    assert [w for w in caught if not issubclass(w.category, ConvergenceWarning)] == []
    values = model.predict(data) if isinstance(model, SVR | NuSVR) else model.decision_function(data)
    assert np.isfinite(values).all()
    checked = model.certificate_.verify(data, target, **weights)
    assert np.isfinite([checked.dual, checked.primal]).all()
    if caught:
        assert not model.certificate_.converged
        return str(caught[0].message)
    assert model.certificate_.converged
    assert checked.relative_gap <= 2 * model.tol
    return checked


def certified(*args, **kwargs):
    found = bounded(*args, **kwargs)
    assert not isinstance(found, str), found
    return found


# -- scales -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1.0, 1e3])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_features_over_twelve_orders_of_magnitude(kernel, C):
    certified(SVC(kernel=kernel, C=C), UNSCALED, y)


@pytest.mark.parametrize("C", [1.0, 1e3])
def test_features_over_twelve_orders_of_magnitude_under_what_is_no_kernel(C):
    model = SVC(kernel="sigmoid", C=C)
    assert "not positive semidefinite" in bounded(model, UNSCALED, y)
    assert model.certificate_.verify(UNSCALED, y).relative_gap <= 2 * model.tol  # as nearly stationary as was asked


@pytest.mark.parametrize("C", [1.0, 1e3])
def test_features_over_twelve_orders_of_magnitude_name_the_largest_where_it_fails(C):
    found = bounded(SVC(kernel="linear", C=C), UNSCALED, y)
    assert not isinstance(found, str) or "feature 12 has a spread of" in found


@pytest.mark.parametrize("C", [1.0, 1e3])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_breast_cancer_as_it_comes(kernel, C):
    data, labels = load_breast_cancer(return_X_y=True)
    certified(SVC(kernel=kernel, C=C), data, labels)


@pytest.mark.parametrize("scale", [1e150, 1e-150])
@pytest.mark.parametrize("model", [SVC(), SVR(), OneClassSVM(), NuSVC(nu=0.3), NuSVR()])
def test_numbers_near_the_ends_of_the_range(model, scale):
    certified(model, X * scale, y if isinstance(model, SVC | NuSVC) else t)


@pytest.mark.parametrize("scale", [1e30, 1e-30, 1e-150])
def test_linear_kernels_of_huge_and_tiny_numbers(scale):
    found = bounded(SVC(kernel="linear"), X * scale, y)
    assert not isinstance(found, str) or "is huge beside kernel values of" in found


@pytest.mark.parametrize("model", [SVC(), SVC(kernel="linear"), SVR()])
def test_numbers_whose_squares_overflow_are_an_error(model):
    with pytest.raises((ValueError, FloatingPointError), match=r"finite|range of float64"):
        model.fit(X * 1e200, y)


@pytest.mark.parametrize("model", [SVR(), NuSVR()])
@pytest.mark.parametrize("scale", [1e12, 1e-12])
def test_targets_of_any_size(model, scale):
    found = bounded(model, X, scale * t)
    assert not isinstance(found, str) or "targets that spread by" in found


@pytest.mark.parametrize("scale", [1e12, 1e-12])
def test_targets_of_any_size_with_parameters_to_match(scale):
    certified(SVR(C=scale, epsilon=0.1 * scale), X, scale * t)
    certified(NuSVR(C=scale), X, scale * t)


@pytest.mark.parametrize("data", [X + 1e8, np.hstack([X, np.full((N, 1), 1e8)])])
def test_far_from_the_origin(data):
    bounded(SVC(), data, y)
    found = bounded(SVC(kernel="linear"), data, y)
    assert not isinstance(found, str) or "has the mean 1e+08" in found


# -- alike --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1.0, 1e6])
def test_equal_samples_with_opposite_labels(C):
    twice = np.repeat(X, 2, axis=0)
    certified(SVC(C=C), twice, np.tile([0, 1], N))


def test_equal_samples_with_opposite_labels_have_no_hard_margin():
    with pytest.raises(Infeasible, match="cannot be separated"):
        SVC(C=np.inf).fit(np.repeat(X, 2, axis=0), np.tile([0, 1], N))
    with pytest.raises(ValueError, match="margin of NuSVC vanishes"):
        NuSVC().fit(np.repeat(X, 2, axis=0), np.tile([0, 1], N))


def test_linear_hard_margin_on_classes_that_overlap():
    with pytest.raises(Infeasible, match="are no farther apart"):
        SVC(kernel="linear", C=np.inf).fit(X, y)


@each("model", [SVC(), SVC(kernel="linear"), SVC(C=1e9), SVC(C=1e-9), SVR(), NuSVR(), SVR(C=1e9), OneClassSVM()])
@each("data", [np.ones((N, 3)), np.zeros((N, 3))])
def test_all_rows_equal(model, data):
    certified(model, data, y if isinstance(model, SVC) else t)


def test_all_rows_equal_leave_no_margin():
    with pytest.raises(Infeasible, match="cannot be separated"):
        SVC(C=np.inf).fit(np.ones((N, 3)), y)
    with pytest.raises(ValueError, match="margin of NuSVC vanishes"):
        NuSVC().fit(np.ones((N, 3)), y)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_constant_features(kernel):
    certified(SVC(kernel=kernel), np.hstack([X, np.full((N, 2), 7.0)]), y)


# -- parameters ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1e-9, 1e9])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_extreme_prices(kernel, C):
    for model in (SVC(kernel=kernel, C=C), SVR(kernel=kernel, C=C)):
        found = bounded(model, X, y if isinstance(model, SVC) else t)
        assert not isinstance(found, str) or "C=1e+09 is huge" in found


@pytest.mark.parametrize("C", [1.0, 1e6])
@pytest.mark.parametrize("gamma", [1e-9, 1e9])
def test_extreme_widths(gamma, C):
    certified(SVC(gamma=gamma, C=C), X, y)
    certified(SVR(gamma=gamma, C=C), X, t)
    certified(OneClassSVM(gamma=gamma), X)
    certified(NuSVR(gamma=gamma, C=C), X, t)


@pytest.mark.parametrize("nu", [1e-9, 1e-3, 1.0])
def test_any_share(nu):
    certified(OneClassSVM(nu=nu), X)
    certified(NuSVR(nu=nu), X, t)
    certified(NuSVC(nu=nu), X, np.arange(N) % 2)


def test_share_at_its_largest_and_past_it():
    most = 2 * min(y.mean(), 1 - y.mean())
    certified(NuSVC(nu=most), X, y)
    with pytest.raises(ValueError, match=re.escape(f"the largest feasible nu is {most:.6g}")):
        NuSVC(nu=min(1.0, 1.001 * most)).fit(X, y)


@pytest.mark.parametrize("C", [np.float32(2), np.float64(2), np.int64(2)])
def test_price_as_a_numpy_number(C):
    certified(SVC(C=C), X, y)


# -- shapes and types ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model", [SVC(), SVC(kernel="linear"), SVC(C=np.inf), NuSVC(nu=1.0), SVR(), NuSVR(), OneClassSVM()]
)
def test_two_samples(model):
    certified(model, np.array([[0.0], [1.0]]), np.array([0, 1]))


@pytest.mark.parametrize("model", [SVC(), NuSVC(nu=1.0), SVC(C=np.inf)])
def test_one_sample_per_class(model):
    model.fit([[0.0], [1.0], [2.0]], ["a", "b", "c"])
    assert list(model.predict([[0.0], [1.0], [2.0]])) == ["a", "b", "c"]


def test_one_class_only():
    with pytest.raises(ValueError, match="at least two classes; y has one class only, 3"):
        SVC().fit(X, np.full(N, 3))


@pytest.mark.parametrize("data", [rng.integers(0, 5, (N, 4)), rng.random((N, 4)) > 0.5])
def test_whole_numbers_and_truth_values(data):
    certified(SVC(), data, y)
    certified(SVR(), data, t)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_one_feature_at_a_high_price(kernel):
    certified(SVC(kernel=kernel, C=1e6), X[:, :1], y)


def test_many_classes():
    k = 100  # 4,950 pairs; a thousand classes are behind the marker
    labels = np.repeat(np.arange(k), 2)
    data = 3 * rng.normal(size=(k, 8))[labels] + 0.3 * rng.normal(size=(2 * k, 8))
    model = SVC(C=10.0)
    certified(model, data, labels)
    assert (model.predict(data) == labels).mean() > 0.95


@pytest.mark.long
def test_a_thousand_classes():
    labels = np.repeat(np.arange(1000), 3)
    data = 3 * rng.normal(size=(1000, 8))[labels] + 0.3 * rng.normal(size=(3000, 8))
    model = SVC(C=10.0).fit(data, labels)
    assert model.certificate_.converged
    assert (model.predict(data[:50]) == labels[:50]).mean() > 0.95


# -- indefinite kernels and weights -------------------------------------------------------------------------


@pytest.mark.parametrize("model", [SVC(), SVC(C=1e6), SVR(C=100.0), NuSVR(C=100.0), OneClassSVM()])
def test_sigmoid_kernels_end(model):
    model.set_params(kernel="sigmoid", gamma=1.0, coef0=-1.0)
    bounded_indefinite(model, X, y if isinstance(model, SVC) else t)


@pytest.mark.parametrize("model", [SVC(), SVC(C=1e6), SVR(), NuSVR(), OneClassSVM()])
def test_any_symmetric_matrix_ends(model):
    A = rng.normal(size=(N, N))
    bounded_indefinite(model.set_params(kernel="precomputed"), A + A.T, y if isinstance(model, SVC) else t)


def bounded_indefinite(model, data, target):
    """The same where duality says nothing: in so many steps, finite, and with one warning that names the cause."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(data, target)
    assert np.max(model.n_iter_) < STEPS
    assert np.isfinite(model.dual_coef_).all()
    assert len(caught) == 1
    assert re.search("indefinite|not positive semidefinite", str(caught[0].message))
    assert model.certificate_.stationary
    assert not model.certificate_.converged


def test_weights_of_zero_drop_samples():
    weights = rng.random(N) * (rng.random(N) > 0.3)
    for model in (SVC(), NuSVC(nu=0.2), SVR(), NuSVR(), OneClassSVM()):
        certified(model, X, y if isinstance(model, SVC | NuSVC) else t, sample_weight=weights)


def test_weights_over_many_orders_of_magnitude():
    weights = 10.0 ** rng.uniform(-6, 6, N)
    for model in (SVC(), SVR(), NuSVR(), OneClassSVM()):
        found = bounded(model, X, y if isinstance(model, SVC) else t, sample_weight=weights)
        assert not isinstance(found, str) or "is huge beside" in found


@pytest.mark.parametrize("model", [SVC(), NuSVC(), SVR(), NuSVR(), OneClassSVM()])
def test_weights_that_mean_nothing_are_an_error(model):
    with pytest.raises(ValueError, match=re.escape("sample_weight[0] is -1; with negative weights")):
        model.fit(X, y, sample_weight=np.r_[-1.0, np.ones(N - 1)])
    with pytest.raises(ValueError, match="all samples have zero or negative weights"):
        model.fit(X, y, sample_weight=np.zeros(N))


def test_a_class_without_weight_is_an_error():
    with pytest.raises(ValueError, match="all samples of class 0 have weight 0"):
        SVC().fit(X, y, sample_weight=y.astype(float))


# -- more points than fit in one working set ----------------------------------------------------------------


@pytest.mark.parametrize(
    "model", [SVC(C=1e-9), SVC(gamma=1e-9), SVC(gamma=1e9), OneClassSVM(nu=1.0), OneClassSVM(nu=1e-9), NuSVR(nu=1.0)]
)
def test_many_samples(model):
    label = (MANY[:, 0] > 0).astype(int) if isinstance(model, SVC) else MANY[:, 1]
    certified(model, MANY, label)


def test_many_equal_samples():
    certified(SVC(), np.ones((3500, 3)), np.arange(3500) % 2)
    certified(SVC(), np.repeat(MANY[:1750], 2, axis=0), np.arange(3500) % 2)
    with pytest.raises(Infeasible, match="cannot be separated"):
        SVC(C=np.inf).fit(np.ones((3500, 3)), np.arange(3500) % 2)


@pytest.mark.long
@pytest.mark.parametrize("C", [1.0, 1e3])
def test_many_samples_over_twelve_orders_of_magnitude(C):
    data = rng.normal(size=(3500, 13)) * 10.0 ** np.arange(-6, 7)
    label = (data[:, 6] + rng.normal(size=3500) > 0).astype(int)
    certified(SVC(C=C), data, label)
    found = bounded(SVC(kernel="linear", C=C), data, label)
    assert not isinstance(found, str) or "feature 12 has a spread of" in found
