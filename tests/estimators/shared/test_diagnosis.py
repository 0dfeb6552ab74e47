import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from mercer import RBF, SVC, SVR, FromFunction, Linear, OneClassSVM, Precomputed, Sigmoid
from mercer.estimators.shared.diagnosis import diagnose

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
X /= X.std(axis=0)
LARGE = np.array([1.0, 1.0, 1e9, 1.0])


def test_finds_nothing_where_nothing_is_wrong():
    assert diagnose(X, RBF(1.0), labels=X[:, 0] > 0, C=1.0) is None
    assert diagnose(X, Linear(), C=1.0) is None
    assert diagnose(X * 1e6, RBF(1e6), C=1.0) is None  # one scale for all is no trouble


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_names_the_feature_that_dwarfs_the_others(form):
    said = diagnose(form(X * LARGE), RBF(1.0), names=["age", "height", "income", "children"])
    assert said.startswith("feature 2 ('income') has a spread of 1e+09, 1e+09 times the median spread")
    assert "StandardScaler" in said
    assert diagnose(form(X * LARGE), RBF(1.0)).startswith("feature 2 has")


def test_of_two_features_one_can_dwarf_the_other():
    assert diagnose(X[:, :2] * [1.0, 1e6], RBF(1.0)).startswith("feature 1 has")


def test_names_a_feature_far_from_zero():
    assert diagnose(X + np.array([0.0, 1e9, 0.0, 0.0]), RBF(1.0)).startswith("feature 1 has the mean 1e+09")
    assert "constant" in diagnose(np.hstack([X, np.full((len(X), 1), 1e9)]), RBF(1.0))


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (RBF.from_gamma(1e-9), ["nearly constant", "raise gamma"]),
        (RBF.from_gamma(1e9), ["no two points as similar", "lower gamma"]),
        (Sigmoid(1.0, -1.0), ["is indefinite", "eigenvalue"]),
    ],
)
def test_looks_at_kernel_values(kernel, words):
    said = diagnose(X, kernel)
    assert all(word in said for word in words)


def test_looks_at_kernels_of_anything():
    assert "nearly constant" in diagnose(["a", "bb", "c"], FromFunction(lambda a, b: 1.0))
    A = rng.normal(size=(30, 30))
    assert "indefinite" in diagnose(np.arange(30), Precomputed(A + A.T))
    assert "is 0" in diagnose(np.arange(3), Precomputed(np.zeros((3, 3))))
    assert diagnose(X[:1], RBF(1.0)) is None
    assert "range of float64" in diagnose(X * 1e200, Linear())


def test_sees_that_all_rows_are_equal():
    assert diagnose(np.ones((5, 2)), RBF(1.0)).startswith("all rows of X are equal")


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_names_two_equal_samples_with_different_labels(form):
    twice = np.vstack([X, X[:3]])
    labels = np.array(["a"] * len(X) + ["a", "b", "b"])
    said = diagnose(form(twice), RBF(1.0), labels=labels)
    assert said.startswith("4 of 123 samples are equal to one with another label")
    assert "samples 1 and 121" in said or "samples 2 and 122" in said
    assert diagnose(form(twice), RBF(1.0), labels=np.array(["a"] * len(twice))) is None


def test_weighs_c_against_kernel_values_and_targets():
    assert diagnose(X, RBF(1.0), C=1e9).startswith("C=1e+09 is huge beside kernel values of 1")
    assert "targets that spread by 1e-12" in diagnose(X, RBF(1.0), C=1.0, unit=1e-12)


@pytest.mark.parametrize(
    ("model", "data", "words"),
    [
        (SVC(max_iter=2), X * LARGE, "feature 2 has a spread"),
        (SVC(max_iter=2, gamma=1e9), X, "no two points as similar"),
        (SVR(max_iter=2, C=1e10), X, "C=1e+10 is huge"),
        (OneClassSVM(max_iter=1, kernel="precomputed"), X @ X.T - 2 * np.eye(len(X)), "indefinite"),
    ],
)
def test_the_warning_of_an_unfinished_fit_carries_the_cause(model, data, words):
    y = X[:, 0] > 0 if isinstance(model, SVC) else X[:, 0]
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(data, y)
    assert words in str(caught[0].message)
    assert caught[0].filename == __file__


def test_a_finished_fit_says_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SVC().fit(X * LARGE, X[:, 0] > 0)
    assert model.certificate_.stopped == "converged"
