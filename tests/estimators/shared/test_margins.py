"""What a fit says about itself: the table of margins, zones, width, function, certificate, history."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, make_moons

from mercer.estimators import (
    SVC,
    SVR,
    KernelLogisticRegression,
    KernelMachine,
    KernelRobustRegressor,
    NuSVC,
    NuSVR,
    OneClassSVM,
)
from mercer.kernels import RBF
from mercer.losses import EpsilonInsensitive
from mercer.rkhs import RKHSVector

X, Y = make_moons(80, noise=0.3, random_state=0)
IRIS = load_iris(return_X_y=True)
ROLES = ["outside", "on the margin", "inside", "misclassified"]


@pytest.mark.parametrize("model", [SVC(C=2.0, tol=1e-9), NuSVC(nu=0.5, tol=1e-9)], ids=lambda m: type(m).__name__)
def test_complementary_slackness_holds_sample_by_sample(model):
    table = model.fit(X, Y).margins(X, Y)
    signs = 2 * Y - 1
    np.testing.assert_allclose(table.margin, signs * model.decision_function(X))
    np.testing.assert_allclose(table.slack, np.maximum(0, 1 - table.margin))
    assert table.kkt.max() < 1e-4
    C = model.C if isinstance(model, SVC) else 1 / model._scales[0]
    alpha = np.zeros(len(Y))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    np.testing.assert_array_equal(table.alpha, alpha)
    expected = np.select(
        [alpha == 0, alpha < C * (1 - 1e-9), table.margin > 0], ["outside", "on the margin", "inside"], "misclassified"
    )
    assert list(table.role) == list(expected)
    assert set(table.role) == set(ROLES)
    assert (table.margin[table.role == "outside"] > 1 - 1e-4).all()
    np.testing.assert_allclose(table.margin[table.role == "on the margin"], 1, atol=1e-4)


def test_slack_is_one_on_the_boundary_and_three_two_margins_beyond():
    model = SVC(kernel="linear", C=1e6, tol=1e-10).fit([[-1.0], [1.0]], [0, 1])
    table = model.margins([[0.0], [-2.0]], [1, 1])
    np.testing.assert_allclose(table.slack, [1.0, 3.0], atol=1e-6)


def test_the_table_has_the_weights_in_it():
    weights = np.random.default_rng(0).uniform(0.2, 2, len(Y)) * (np.arange(len(Y)) % 7 > 0)
    model = SVC(tol=1e-9, class_weight={1: 2.0}).fit(X, Y, sample_weight=weights)
    table = model.margins(X, Y, sample_weight=weights)
    assert table.kkt.max() < 1e-4
    assert (table.alpha <= weights * np.where(Y == 1, 2, 1) * (1 + 1e-9)).all()


def test_new_samples_have_a_margin_but_no_alpha():
    model = SVC().fit(X, Y)
    table = model.margins(X + 0.01, Y)
    assert table.alpha.isna().all()
    assert table.kkt.isna().all()
    assert set(table.role) <= set(ROLES)
    assert (table.role[table.margin <= 0] == "misclassified").all()
    with pytest.raises(ValueError, match="y contains 7, which is none of the classes"):
        model.margins(X, np.full(len(X), 7))
    with pytest.raises(ValueError, match="80 samples and y has 3"):
        model.margins(X, Y[:3])


def test_each_pair_of_classes_has_its_own_rows():
    model = SVC(tol=1e-9).fit(*IRIS)
    table = model.margins(*IRIS)
    assert table.index.names == ["positive", "negative", "sample"]
    assert len(table) == 300
    assert table.kkt.max() < 1e-4
    model.decision_function_shape = "ovo"
    values = model.decision_function(IRIS[0])
    part = table.loc[(1, 2)]
    signs = np.where(IRIS[1][part.index] == 1, 1, -1)
    np.testing.assert_allclose(part.margin, signs * values[part.index, 2])


def test_the_tube():
    rng = np.random.default_rng(0)
    x = np.linspace(0, 6, 90)[:, None]
    y = np.sin(x[:, 0]) + 0.2 * rng.normal(size=90)
    frame = pd.DataFrame(x, index=[f"row {i}" for i in range(90)], columns=["x"])
    for model in (SVR(epsilon=0.15, tol=1e-9), NuSVR(nu=0.4, tol=1e-10)):
        table = model.fit(frame, y).margins(frame, y)
        width = model.epsilon_ if isinstance(model, NuSVR) else 0.15
        np.testing.assert_allclose(table.residual, y - model.predict(frame))
        assert table.kkt.max() < 1e-4
        assert set(table.role) == {"inside the tube", "on the tube", "outside the tube"}
        assert (np.abs(table.residual[table.role == "inside the tube"]) < width + 1e-4).all()
        np.testing.assert_allclose(np.abs(table.residual[table.role == "on the tube"]), width, atol=1e-4)
        assert list(table.index) == list(frame.index)
        assert model.margins(frame + 1, y).alpha.isna().all()


def test_one_class():
    model = OneClassSVM(nu=0.3, tol=1e-10).fit(X)
    table = model.margins(X)
    assert table.kkt.max() < 1e-4
    assert set(table.role) == {"inside", "on the boundary", "outlier"}
    assert table.alpha.sum() == pytest.approx(0.3 * len(X))


def test_zones_are_cut_at_minus_one_zero_and_one():
    model = SVC(C=5.0).fit(X, Y)
    f, zone = model.decision_function(X), model.zones(X)
    assert set(zone) == {-2, -1, 1, 2}
    assert np.array_equal(zone == 2, f >= 1)
    assert np.array_equal(zone == 1, (f >= 0) & (f < 1))
    assert np.array_equal(zone == -1, (f < 0) & (f > -1))
    assert np.array_equal(zone == -2, f <= -1)
    assert SVC().fit(*IRIS).zones(IRIS[0]).shape == (150, 3)


@pytest.mark.parametrize("data", [(X, Y), IRIS], ids=["two classes", "three classes"])
def test_the_function_is_the_decision_function(data):
    model = SVC(tol=1e-8, decision_function_shape="ovo").fit(*data)
    functions = model.function_ if isinstance(model.function_, RKHSVector) else (model.function_,)
    values = np.stack([f(data[0]) for f in functions], axis=1)
    np.testing.assert_allclose(values, model.decision_function(data[0]).reshape(values.shape), atol=1e-9)
    widths = np.atleast_1d(model.margin_width_)
    np.testing.assert_allclose(widths, [2 / f.norm() for f in functions])


@pytest.mark.parametrize("model", [SVC(), NuSVC(), SVR(), NuSVR(), OneClassSVM()], ids=lambda m: type(m).__name__)
def test_the_certificate_is_confirmed_by_other_code(model):
    model.set_params(tol=1e-6).fit(X, Y)
    claim = model.certificate_
    found = claim.verify(X, Y)
    assert claim.converged
    assert found.converged
    size = max(abs(found.primal), 1e-12)
    assert claim.primal == pytest.approx(found.primal, abs=1e-7 * size)
    assert claim.dual == pytest.approx(found.dual, abs=1e-7 * size)
    assert claim.dual <= found.primal + 1e-7 * size
    assert "SMO" in model.plan_
    assert model.history_["gap"][-1] <= 1e-6
    assert (np.diff(model.history_["seconds"]) >= 0).all()


def test_a_wrong_model_is_found_out():
    model = SVC(tol=1e-6).fit(X, Y)
    model.intercept_ = model.intercept_ + 0.5
    assert not model.certificate_.verify(X, Y).converged
    model = SVC(tol=1e-6).fit(X, Y)
    with pytest.raises(ValueError, match="not feasible"):
        model.certificate_.verify(X, 1 - Y)


def test_three_classes_have_three_certificates():
    model = SVC().fit(*IRIS)
    assert len(model.certificate_.parts) == 3
    assert model.certificate_.verify(*IRIS).converged
    assert len(model.history_) == 3


def test_without_pandas_the_remedy_is_named(monkeypatch):
    model = SVC(kernel=RBF(1.0)).fit(X, Y)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="install pandas"):
        model.margins(X, Y)


# -- the same of every machine that has the notion --------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_the_machine_of_the_hinge_has_the_table_of_the_classifier(weighted):
    weights = np.random.default_rng(0).uniform(0.2, 2, len(Y)) * (np.arange(len(Y)) % 7 > 0) if weighted else None
    model = KernelMachine(RBF(0.5), "hinge", 0.5, tol=1e-9, class_weight={1: 2.0}).fit(X, Y, sample_weight=weights)
    same = SVC(C=2.0, kernel=RBF(0.5), tol=1e-9, class_weight={1: 2.0}).fit(X, Y, sample_weight=weights)
    table, expected = (m.margins(X, Y, sample_weight=weights) for m in (model, same))
    np.testing.assert_allclose(table.alpha, expected.alpha, atol=1e-3)
    np.testing.assert_allclose(table.margin, expected.margin, atol=1e-4)
    assert (table.role == expected.role).mean() > 0.97
    assert table.kkt.max() < 1e-3
    assert np.mean(model.zones(X) == same.zones(X)) > 0.97
    assert model.margins(X + 0.01, Y).alpha.isna().all()


def test_a_machine_with_a_tube_has_the_table_of_the_regressor():
    y = np.sin(3 * X[:, 0]) + 0.5 * np.random.default_rng(0).normal(size=len(X))
    table = KernelMachine(RBF(0.5), EpsilonInsensitive(0.2), 0.5, tol=1e-9).fit(X, y).margins(X, y)
    expected = SVR(C=2.0, epsilon=0.2, kernel=RBF(0.5), tol=1e-9).fit(X, y).margins(X, y)
    np.testing.assert_allclose(table.alpha, expected.alpha, atol=1e-3)
    np.testing.assert_allclose(table.residual, expected.residual, atol=1e-4)
    assert set(table.role) == {"inside the tube", "on the tube", "outside the tube"}
    assert table.kkt.max() < 1e-3


def test_the_robust_regressor_has_a_tube_too():
    y = X[:, 0] + np.sin(3 * X[:, 1])
    model = KernelRobustRegressor("epsilon_insensitive", C=2.0, scale=0.2, delta=1.0, kernel=RBF(0.5), tol=1e-9)
    assert model.fit(X, y).margins(X, y).kkt.max() < 1e-3


def test_each_class_against_the_rest():
    data, kinds = IRIS
    names = np.array(["a", "b", "c"])[kinds]
    model = KernelMachine(RBF(1.0), "hinge", tol=1e-8).fit(data, names)
    table = model.margins(data, names)
    assert list(table.index.names) == ["positive", "sample"]
    assert table.kkt.max() < 1e-3
    for p, name in enumerate("abc"):
        np.testing.assert_allclose(
            table.loc[name].margin, np.where(names == name, 1, -1) * model.decision_function(data)[:, p]
        )
    assert model.zones(data).shape == (150, 3)


def test_no_margin_where_there_is_none():
    smooth = KernelMachine(loss="squared_hinge").fit(X, Y)
    assert smooth.zones(X).shape == (len(X),)
    assert not hasattr(smooth, "margins")
    for model in (KernelMachine(loss="squared"), KernelMachine(loss="logistic"), KernelLogisticRegression()):
        assert not hasattr(model, "margins")
        assert not hasattr(model, "zones")
