"""What every model of the representer theorem does: reads any input, says how good it is, stops when it must."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score

from mercer.estimators import KernelLogisticRegression, KernelMachine, KernelQuantileRegressor, KernelRobustRegressor
from mercer.estimators.regression import base as representer
from mercer.kernels import RBF, Constant, Delta, FromFunction, Laplacian
from mercer.losses import Huber
from mercer.rkhs import RKHSVector

X, LABELS = make_moons(80, noise=0.3, random_state=0)
Y = X[:, 0] - np.sin(3 * X[:, 1])
MODELS = [
    KernelMachine(loss="hinge"),
    KernelMachine(loss="multinomial"),
    KernelMachine(loss=Huber(0.5)),
    KernelLogisticRegression(),
    KernelQuantileRegressor((0.2, 0.7)),
    KernelRobustRegressor(),
]
KERNEL = RBF(1.0)


def name(model):
    return type(model).__name__ + (f"-{model.loss}" if type(model) is KernelMachine else "")


def target(model):
    return LABELS if is_classifier(model) else Y


def output(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


each_model = pytest.mark.parametrize("model", MODELS, ids=name)

# -- laws -------------------------------------------------------------------------------------------------


@each_model
def test_weights_are_repetition(model):
    y = target(model)
    weights = np.tile([0.0, 1.0, 2.0, 1.0], 20)
    rows = np.repeat(np.arange(80), weights.astype(int))
    model = clone(model).set_params(kernel=KERNEL, tol=1e-9)
    weighted = clone(model).fit(X, y, sample_weight=weights)
    repeated = clone(model).fit(X[rows], y[rows])
    np.testing.assert_allclose(output(weighted, X), output(repeated, X), atol=2e-3)
    assert not weighted.dual_coef_[weights == 0].any()
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-6)
    assert weighted.certificate_.verify(X, y, sample_weight=weights).relative_gap < 1e-6
    with pytest.raises(ValueError, match=r"sample_weight\[0\] is -1; with negative weights"):
        model.fit(X, y, sample_weight=-np.ones(80))


@each_model
def test_the_order_of_the_samples_does_not_matter(model):
    y, order = target(model), np.random.default_rng(1).permutation(80)
    model = clone(model).set_params(kernel=KERNEL, tol=1e-9)
    straight, shuffled = clone(model).fit(X, y), clone(model).fit(X[order], y[order])
    np.testing.assert_allclose(output(straight, X), output(shuffled, X), atol=2e-3)


@each_model
def test_the_certificate_is_found_again_from_the_data(model):
    y = target(model)
    fitted = clone(model).fit(X, y)
    claim, checked = fitted.certificate_, fitted.certificate_.verify(X, y)
    assert claim.converged
    assert checked.relative_gap <= 10 * fitted.tol
    assert checked.primal == pytest.approx(claim.primal, rel=1e-6)
    with pytest.raises(ValueError, match=r"1 features, but \w+ is expecting 2"):
        claim.verify(X[:, :1], y)


@each_model
def test_the_function_and_the_predictions_agree(model):
    fitted = clone(model).fit(X, target(model))
    functions = fitted.function_ if isinstance(fitted.function_, RKHSVector) else [fitted.function_]
    values = np.column_stack([f(X) for f in functions])
    if not is_classifier(model):
        np.testing.assert_allclose(values.squeeze(), fitted.predict(X), atol=1e-8)
    else:
        decision = values[:, 0] if values.shape[1] == 1 else values[:, 1] - values[:, 0]
        np.testing.assert_allclose(decision, fitted.decision_function(X), atol=1e-8)
    assert fitted.X_fit_ is not None
    assert fitted.kernel_ == functions[0].kernel


# -- inputs -----------------------------------------------------------------------------------------------


@each_model
def test_matrices_tables_and_sparse_matrices_are_the_same_data(model):
    y = target(model)
    plain = clone(model).fit(X, y)
    expected = output(plain, X)
    for data in (pd.DataFrame(X, columns=["a", "b"]), pl.DataFrame(X, schema=["a", "b"])):
        fitted = clone(model).fit(data, y)
        np.testing.assert_allclose(output(fitted, data), expected, atol=1e-6)
        assert list(fitted.feature_names_in_) == ["a", "b"]
    fitted = clone(model).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(output(fitted, sparse.csr_array(X)), expected, atol=2e-2)
    assert fitted.certificate_.verify(sparse.csr_array(X), y).converged
    np.testing.assert_allclose(output(plain, sparse.csr_array(X)), expected, atol=1e-6)
    single = clone(model).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(output(single, X.astype(np.float32)), expected, atol=2e-2)


@each_model
def test_similarities_and_functions_are_kernels(model):
    y = target(model)
    model = clone(model).set_params(tol=1e-8)
    direct = clone(model).set_params(kernel=Laplacian(2.0)).fit(X, y)
    given = clone(model).set_params(kernel="precomputed").fit(Laplacian(2.0)(X), y)
    np.testing.assert_allclose(output(given, Laplacian(2.0)(X[::3], X)), output(direct, X[::3]), atol=2e-3)
    assert given.certificate_.verify(Laplacian(2.0)(X), y).converged
    called = clone(model).set_params(kernel=laplacian_kernel).fit(X, y)
    np.testing.assert_allclose(output(called, X), output(direct, X), atol=2e-3)
    with pytest.raises(ValueError, match=r"square matrix.*\(80, 2\)"):
        given.fit(X, y)


WORDS = ["abc", "abd", "bcd", "acd", "xyz", "xyw", "yzw", "xzw"]


def shared(a, b):
    return float(len(set(a) & set(b)))


@each_model
def test_strings_are_learned_from(model):
    y = np.repeat([0, 1], 4) if is_classifier(model) else np.repeat([0.0, 1.0], 4)
    model = clone(model).set_params(kernel=FromFunction(shared)).fit(WORDS, y)
    values = model.predict(["ab", "zw"]).reshape(2, -1)
    assert (values[1] > values[0]).all()
    assert model.certificate_.verify(WORDS, y).converged
    assert not hasattr(model, "n_features_in_")


def test_a_table_is_compared_by_its_columns():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(40, 10, 60), "town": rng.choice(["a", "b"], 60)})
    y = np.where(table.town == "a", table.age, 80 - table.age)
    kernel = RBF(20.0).on("age") * (Delta().on("town") + Constant(0.1))
    model = KernelMachine(kernel, "huber", 0.01).fit(table, y)
    assert model.score(table, y) > 0.95
    assert isinstance(model.X_fit_, pd.DataFrame)


# -- scikit-learn's tools ---------------------------------------------------------------------------------


@each_model
def test_a_model_survives_pickling_and_cloning(model):
    y = target(model)
    fitted = clone(model).fit(X, y)
    before = output(fitted, X)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(output(again, X), before)
    assert again.certificate_.verify(X, y).converged
    with pytest.raises(NotFittedError):
        clone(fitted).predict(X)
    with pytest.raises(NotFittedError):
        clone(fitted).certificate_
    assert len(pickle.dumps(fitted)) < 8 * (X.size * 2 + 10 * fitted.dual_coef_.size) + 20_000  # no matrix of pairs


def test_searches_reach_the_loss_and_the_kernel():
    grid = {"loss": ["squared", Huber(0.3)], "penalty": [0.1, 1.0], "kernel__scale": [0.5, 1.0]}
    search = GridSearchCV(KernelMachine(KERNEL), grid, cv=3).fit(X, Y)
    assert search.best_score_ > 0.7
    assert cross_val_score(KernelMachine(loss="logistic"), X, LABELS).mean() > 0.7
    assert cross_val_score(KernelMachine("precomputed", "hinge"), KERNEL(X), LABELS).mean() > 0.7


# -- while a fit runs -------------------------------------------------------------------------------------


@each_model
def test_a_limit_returns_the_best_so_far_with_a_warning(model):
    y = target(model)
    model = clone(model).set_params(max_iter=1, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match="stopped early") as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__
    claim = model.certificate_
    assert not claim.converged
    assert claim.verify(X, y).primal == pytest.approx(claim.primal, rel=1e-5)
    assert np.isfinite(output(model, X)).all()


@each_model
def test_a_warm_start_begins_where_the_last_fit_ended(model):
    y = target(model)
    warm = clone(model).set_params(warm_start=True, tol=1e-6).fit(X, y)
    first, value = warm.n_iter_, warm.certificate_.primal
    warm.fit(X, y)
    assert warm.n_iter_ <= first
    assert warm.certificate_.primal == pytest.approx(value, rel=1e-5)
    assert warm.fit(X[:50], y[:50]).certificate_.converged


@each_model
def test_an_interruption_leaves_a_model(model, monkeypatch):
    def interrupting(problem, control, solver):
        def interrupt(progress):
            raise KeyboardInterrupt

        return solve(problem, replace(control, report=interrupt), solver)

    solve = representer.solve
    monkeypatch.setattr(representer, "solve", interrupting)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = clone(model).set_params(tol=1e-12).fit(X, target(model))
    assert model.certificate_.stopped == "interrupted"
    assert np.isfinite(output(model, X)).all()


class Recorder:
    """A callback that writes down what it is told and may ask to stop."""

    def __init__(self, stop=False):
        self.stop, self.told = stop, []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        pass

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None):
        self.told.append((metadata or {}).get("progress"))
        return self.stop


@each_model
def test_callbacks_hear_of_the_fit_and_can_stop_it(model):
    pytest.importorskip("sklearn.callback")
    callback = Recorder()
    clone(model).set_callbacks(callback).fit(X, target(model))
    told = [p for p in callback.told if p is not None]
    assert told
    assert told[-1].gap <= 1.1 * model.tol
    with pytest.warns(ConvergenceWarning, match="stopped by the callback"):
        clone(model).set_params(tol=1e-12).set_callbacks(Recorder(stop=True)).fit(X, target(model))


def test_a_bar_is_shown_when_asked_for(capsys):
    KernelLogisticRegression(verbose=1).fit(X, LABELS)
    shown = capsys.readouterr().out
    assert "KernelLogisticRegression" in shown
    assert "gap" in shown
    KernelLogisticRegression().fit(X, LABELS)
    assert not capsys.readouterr().out


@pytest.mark.parametrize("model", [KernelMachine(loss="huber"), KernelQuantileRegressor((0.2, 0.7))], ids=name)
def test_a_stopped_fit_resumes_from_its_checkpoint(tmp_path, model):
    path = tmp_path / "fit.npz"
    model = clone(model).set_params(tol=1e-9, checkpoint=path)
    with pytest.warns(ConvergenceWarning):
        clone(model).set_params(max_iter=1).fit(X, Y)
    assert list(tmp_path.iterdir())
    resumed = clone(model).fit(X, Y)
    assert not list(tmp_path.iterdir())
    whole = clone(model).set_params(checkpoint=None).fit(X, Y)
    assert resumed.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=1e-7)


@each_model
def test_a_small_budget_gives_the_same_answer(model):
    y = target(model)
    small = clone(model).set_params(budget="40 kB", tol=1e-7).fit(X, y)
    np.testing.assert_allclose(output(small, X), output(clone(model).set_params(tol=1e-7).fit(X, y), X), atol=1e-2)


# -- hard data --------------------------------------------------------------------------------------------


@each_model
@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_points_of_any_size(model, scale):
    model = clone(model).fit(X * scale, target(model))
    assert np.isfinite(output(model, X * scale)).all()


@pytest.mark.parametrize("scale", [1e-200, 1e-100, 1e100, 1e200])
@pytest.mark.parametrize("loss", ["squared", "huber", "pinball", "absolute"])
def test_targets_of_any_size_have_an_answer(loss, scale):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KernelMachine(KERNEL, loss).fit(X, Y * scale)
    assert np.isfinite(model.predict(X)).all()


@each_model
def test_degenerate_data(model):
    few = np.zeros((4, 2))
    y = np.array([0, 1, 1, 1]) if is_classifier(model) else np.array([0.0, 1.0, 2.0, 3.0])
    assert np.isfinite(output(clone(model).fit(few, y), few)).all()  # all points alike
    if not is_classifier(model):
        constant = clone(model).fit(X, np.full(80, 7.0))
        np.testing.assert_allclose(constant.predict(X), 7.0, atol=1e-6)
        np.testing.assert_allclose(clone(model).fit(X[:1], [3.0]).predict(X[:1]), 3.0, atol=1e-6)  # one row
