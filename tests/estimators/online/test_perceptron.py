"""Perceptron as an estimator."""

import pickle

import numpy as np
import pytest
import sklearn.linear_model
from scipy import sparse
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

from checks import assert_no_fault
from mercer.estimators.online.perceptron import Perceptron
from mercer.kernels import RBF, Delta, FromFunction, Linear
from mercer.rkhs import RKHSFunction
from samples import shared_letters

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


# A weight is a longer step at a mistake, a repeated point may be a mistake twice: as with scikit-learn's Perceptron.
STEPS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "the weight of a point is a step, not a number of visits"
    for kind in ("dense", "sparse")
}


@pytest.mark.parametrize(
    "model", [Perceptron(max_epochs=20), Perceptron(RBF(), max_epochs=20, shuffle=True, random_state=0)]
)
def test_scikit_learns_checks(model):
    assert_no_fault(model, STEPS)


def blobs(classes=3):
    X, y = make_blobs(120, centers=[[0, 6], [6, 0], [-6, -6]][:classes], random_state=0)
    return X, np.array(["red", "green", "blue"])[y]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", [None, Linear(), RBF(3.0)], ids=repr)
def test_separable_classes_are_learned(classes, kernel):
    X, y = blobs(classes)
    model = Perceptron(kernel).fit(X, y)
    assert model.converged_
    assert model.score(X, y) == 1.0
    machines = 1 if classes == 2 else 3
    assert model.mistakes_per_epoch_.shape == (model.n_iter_, machines)
    assert model.mistakes_ == model.mistakes_per_epoch_.sum() > 0
    assert not model.mistakes_per_epoch_[-1].any()
    assert model.decision_function(X).shape == ((120,) if classes == 2 else (120, 3))


def test_primal_and_linear_kernel_are_one_model():
    X, y = load_iris(return_X_y=True)
    primal, dual = Perceptron(max_epochs=20).fit(X, y), Perceptron(Linear(), max_epochs=20).fit(X, y)
    assert primal.mistakes_per_epoch_.tolist() == dual.mistakes_per_epoch_.tolist()
    assert primal.coef_ == pytest.approx(dual.dual_coef_ @ X[dual.support_], abs=1e-9)
    assert primal.intercept_.tolist() == dual.intercept_.tolist()
    assert (dual.dual_coef_ == dual.dual_coef_.round()).all()
    assert dual.mistakes_ == np.abs(dual.dual_coef_).sum()
    assert not primal.converged_


def test_sparse_is_dense():
    X, y = blobs()
    dense, thin = Perceptron().fit(X, y), Perceptron().fit(sparse.csr_matrix(X), y)
    assert dense.coef_ == pytest.approx(thin.coef_)
    assert (dense.predict(X) == thin.predict(sparse.csr_array(X))).all()


def test_no_offset():
    X, y = blobs(2)
    for kernel in (None, RBF(3.0)):
        assert Perceptron(kernel, fit_intercept=False).fit(X, y).intercept_.tolist() == [0.0]


@pytest.mark.parametrize("kernel", [None, RBF(2.0)], ids=repr)
def test_the_function_is_the_decision(kernel):
    X, y = blobs(2)
    model = Perceptron(kernel).fit(X, y)
    assert isinstance(model.function_, RKHSFunction)
    assert model.function_(X) == pytest.approx(model.decision_function(X))
    X, y = blobs(3)
    model = Perceptron(kernel).fit(X, y)
    assert np.stack([f(X) for f in model.function_], axis=1) == pytest.approx(model.decision_function(X))


def test_words_are_points():
    words = ["ab", "abc", "bcd", "xyz", "xy", "zxy"]
    y = [0, 0, 0, 1, 1, 1]
    model = Perceptron(FromFunction(shared_letters)).fit(words, y)
    assert model.predict(["a", "zz"]).tolist() == [0, 1]
    assert pickle.loads(pickle.dumps(model)).predict(words).tolist() == y
    assert Perceptron(Delta()).fit(words, y).score(words, y) == 1.0


def test_points_that_cannot_be_separated_warn():
    X, y = np.array([[1.0], [1.0], [2.0]]), [0, 1, 0]
    with pytest.warns(ConvergenceWarning, match=r"still made 2 mistakes in pass 25.*max_epochs=25"):
        model = Perceptron(max_epochs=25).fit(X, y)
    assert model.n_iter_ == 25
    assert not model.converged_


def test_partial_fit_goes_on():
    X, y = blobs()
    whole = Perceptron(max_epochs=3).fit(X, y)
    steps = Perceptron()
    for _ in range(whole.n_iter_):
        steps.partial_fit(X, y, classes=np.unique(y))
    assert steps.coef_ == pytest.approx(whole.coef_)
    assert steps.intercept_.tolist() == whole.intercept_.tolist()
    assert steps.mistakes_per_epoch_.tolist() == whole.mistakes_per_epoch_.tolist()
    assert steps.mistakes_ == whole.mistakes_
    part = Perceptron().partial_fit(X[:1], y[:1], classes=np.unique(y))
    assert part.decision_function(X).shape == (120, 3)


def test_shuffling_is_repeatable():
    X, y = load_iris(return_X_y=True)
    first, again, other = (Perceptron(shuffle=True, random_state=s, max_epochs=5).fit(X, y) for s in (0, 0, 1))
    assert first.coef_.tolist() == again.coef_.tolist()
    assert first.coef_.tolist() != other.coef_.tolist()


def test_errors_are_sentences():
    X, y = blobs(2)
    with pytest.raises(TypeError, match="kernel object"):
        Perceptron(len).fit(X, y)
    with pytest.raises(ValueError, match="max_epochs of Perceptron"):
        Perceptron(max_epochs=0).fit(X, y)
    with pytest.raises(ValueError, match="one class only"):
        Perceptron().fit(X, np.ones(120))
    with pytest.raises(ValueError, match="needs classes"):
        Perceptron().partial_fit(X, y)
    model = Perceptron().partial_fit(X, y, classes=["green", "red"])
    with pytest.raises(ValueError, match="differs from those of the first call"):
        model.partial_fit(X, y, classes=["green", "blue"])
    with pytest.raises(ValueError, match="which is not among"):
        model.partial_fit(X, ["zebra"] * 120)
    with pytest.raises(AttributeError):
        Perceptron(RBF()).partial_fit(X, y)
    with pytest.raises(ValueError, match="requires y"):
        Perceptron(FromFunction(shared_letters)).fit(["a"], None)
    with pytest.raises(ValueError, match="penalty='l2' of Perceptron must be None"):
        Perceptron(penalty="l2").fit(X, y)
    with pytest.raises(ValueError, match="eta0 of Perceptron must be > 0"):
        Perceptron(eta0=0.0).fit(X, y)
    with pytest.raises(ValueError, match="max_iter of Perceptron"):
        Perceptron(max_iter=0).fit(X, y)
    with pytest.raises(ValueError, match="class_weight='heavy' of Perceptron"):
        Perceptron(class_weight="heavy").fit(X, y)
    with pytest.raises(ValueError, match=r"coef_init has shape \(3,\); for these data it must have shape \(1, 2\)"):
        Perceptron().fit(X, y, coef_init=np.ones(3))
    with pytest.raises(ValueError, match="need the primal form"):
        Perceptron(RBF(), warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="'balanced' of Perceptron is not supported for partial_fit"):
        Perceptron(class_weight="balanced").partial_fit(X, y, classes=np.unique(y))
    with pytest.warns(UserWarning, match="early_stopping=True changes nothing in Perceptron: a pass without"):
        Perceptron(early_stopping=True).fit(X, y)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 0.3, 1: 2.0, 2: 1.0}])
def test_steps_are_scikit_learns(weighted, class_weight):
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)[:140]
    X, y = X[order], y[order]
    weight = np.random.default_rng(1).uniform(0.1, 2, 140) if weighted else None
    options = {"eta0": 0.7, "shuffle": False, "class_weight": class_weight, "max_iter": 4}
    theirs = sklearn.linear_model.Perceptron(**options, tol=None).fit(X, y, sample_weight=weight)
    ours = Perceptron(**options).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-9)
    dual = Perceptron(Linear(), **options).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(dual.dual_coef_ @ X[dual.support_], ours.coef_, atol=1e-8)


def test_no_weight_leaves_a_point_out():
    X, y = blobs(2)
    weight = (np.arange(120) % 3 > 0).astype(float)
    for kernel in (None, RBF(3.0)):
        weighted, without = Perceptron(kernel).fit(X, y, sample_weight=weight), Perceptron(kernel)
        without.fit(X[weight > 0], y[weight > 0])
        np.testing.assert_array_equal(weighted.decision_function(X), without.decision_function(X))
    assert (weight[weighted.support_] > 0).all()


def test_a_fit_goes_on_from_where_it_is_told():
    X, y = load_iris(return_X_y=True)
    first = Perceptron(max_epochs=2).fit(X, y)
    more = Perceptron(max_epochs=3).fit(X, y, coef_init=first.coef_, intercept_init=first.intercept_)
    whole = Perceptron(max_epochs=5).fit(X, y)
    np.testing.assert_allclose(more.coef_, whole.coef_, atol=1e-9)
    warm = Perceptron(max_epochs=2, warm_start=True).fit(X, y).sparsify().set_params(max_epochs=3).fit(X, y)
    np.testing.assert_allclose(warm.coef_, whole.coef_, atol=1e-9)


def test_float32_is_kept():
    X, y = load_iris(return_X_y=True)
    single = Perceptron(max_epochs=3).fit(X.astype(np.float32), y)
    assert single.coef_.dtype == single.intercept_.dtype == np.float32
    assert single.decision_function(X.astype(np.float32)).dtype == np.float32
    assert Perceptron(max_epochs=3).fit(X, y).coef_.dtype == np.float64


def test_the_history_counts_corrections():
    X, y = load_iris(return_X_y=True)
    model = Perceptron(max_epochs=5).fit(X, y)
    for k, table in enumerate(model.history_):
        passes = model.mistakes_per_epoch_[: len(table), k]
        np.testing.assert_array_equal(table["steps"], np.cumsum(passes))
        assert np.isnan(table["primal"]).all()
        assert (np.diff(table["seconds"]) >= 0).all()


def test_a_column_of_labels_is_read_as_scikit_learn_reads_it():
    X, y = blobs(2)
    with pytest.warns(DataConversionWarning, match="column-vector"):
        column = Perceptron().fit(X, y[:, None])
    np.testing.assert_array_equal(column.coef_, Perceptron().fit(X, y).coef_)
