"""Any loss and any penalty: the special cases that have names, the targets of each kind, and a user's own loss."""

import re
from pathlib import Path

import numpy as np
import pytest
import sklearn.linear_model
from scipy.optimize import minimize
from sklearn.base import is_classifier, is_regressor
from sklearn.datasets import load_iris, make_moons

from mercer.estimators import SVC, SVR, KernelMachine
from mercer.estimators.shared.loss_names import NAMES, named_loss
from mercer.kernels import RBF, Linear
from mercer.losses import (
    Ball,
    EpsilonInsensitive,
    Expectile,
    Hinge,
    Huber,
    Logistic,
    Multinomial,
    Norm,
    Pinball,
    Poisson,
    Squared,
    SquaredNorm,
)
from mercer.solvers.run import HISTORY

X, LABELS = make_moons(120, noise=0.2, random_state=0)
RNG = np.random.default_rng(0)
Y = np.sin(2 * X[:, 0]) + 0.2 * RNG.normal(size=120)
COUNTS = RNG.poisson(np.exp(1 + 0.5 * X[:, 0]))
KERNEL = RBF(0.7)
TIGHT = 1e-8


def objective(model, X, y, weights=None):
    """The primal value by its definition, from the public attributes alone."""
    f, loss = model.function_, named_loss(model.loss)
    penalty = model.penalty if hasattr(model.penalty, "value") else SquaredNorm(model.penalty)
    w = np.ones(len(y)) if weights is None else weights
    return float(w @ loss.value(y, f(X)) + penalty.value(f.norm()))


# -- cases that have a name -------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.3, 20.0])
def test_the_hinge_is_a_support_vector_machine(C):
    machine = KernelMachine(KERNEL, Hinge(), 1 / C, tol=TIGHT).fit(X, LABELS)
    svc = SVC(kernel=KERNEL, C=C, tol=TIGHT).fit(X, LABELS)
    np.testing.assert_allclose(machine.decision_function(X), svc.decision_function(X), atol=2e-3)
    assert C * machine.certificate_.primal == pytest.approx(svc.certificate_.primal, rel=1e-6)
    assert np.array_equal(machine.predict(X), svc.predict(X))


def test_the_tube_is_support_vector_regression():
    machine = KernelMachine(KERNEL, EpsilonInsensitive(0.1), 0.1, tol=TIGHT).fit(X, Y)
    svr = SVR(kernel=KERNEL, C=10.0, epsilon=0.1, tol=TIGHT).fit(X, Y)
    np.testing.assert_allclose(machine.predict(X), svr.predict(X), atol=2e-3)


@pytest.mark.parametrize("solver", ["ridge", "newton", "proximal"])
def test_the_squared_loss_is_ridge_regression_by_every_solver(solver):
    machine = KernelMachine(KERNEL, "squared", 0.5, fit_intercept=False, solver=solver, tol=TIGHT).fit(X, Y)
    np.testing.assert_allclose(
        machine.predict(X), KERNEL(X) @ np.linalg.solve(KERNEL(X) + 0.5 * np.eye(120), Y), atol=1e-3
    )


def test_counts_are_those_of_scikit_learn():
    alpha = 0.1
    ours = KernelMachine("linear", Poisson(), alpha * len(X), tol=1e-12).fit(X, COUNTS)
    theirs = sklearn.linear_model.PoissonRegressor(alpha=alpha, tol=1e-10, max_iter=1000).fit(X, COUNTS)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-4)
    assert ours.score(X, COUNTS) == pytest.approx(theirs.score(X, COUNTS), rel=1e-5)
    assert is_regressor(ours)
    assert ours.__sklearn_tags__().target_tags.positive_only
    with pytest.raises(ValueError, match=r"y contains -1.*counts, which are at least 0"):
        ours.fit(X, COUNTS - COUNTS.min() - 1)


# -- targets ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_loss_by_its_name_is_fitted_verified_and_the_right_kind_of_model(name):
    target = named_loss(name).target
    y = {"real": Y, "label": np.where(LABELS, "yes", "no"), "class": LABELS + 5, "count": COUNTS}[target]
    model = KernelMachine(KERNEL, name, 1.0).fit(X, y)
    assert is_classifier(model) == (target in ("label", "class"))
    assert is_regressor(model) == (target in ("real", "count"))
    checked = model.certificate_.verify(X, y)
    assert model.certificate_.converged
    assert checked.primal == pytest.approx(model.certificate_.primal, rel=1e-6, abs=1e-9)
    assert checked.relative_gap <= 1e-3
    assert model.predict(X).shape == (120,)
    if is_classifier(model):
        assert set(model.predict(X)) <= set(y)
        assert model.score(X, y) > (0.85 if name != "perceptron" else 0.4)
    elif name not in ("pinball", "expectile"):
        assert model.score(X, y) > 0.2
    assert hasattr(model, "predict_proba") == (hasattr(named_loss(name), "inverse_link") and is_classifier(model))
    assert hasattr(model, "decision_function") == is_classifier(model)
    assert model.plan_
    assert model.n_iter_ >= 0
    assert model.history_.dtype == HISTORY


PAGE = Path(__file__).parents[2] / "docs" / "representer.md"
_BEGINS = {"one linear": "ridge", "Newton": "newton", "the SVM solver": "dual", "augmented": "proximal"}


@pytest.mark.skipif(not PAGE.exists(), reason="there is no documentation beside a wheel")
def test_the_page_names_every_loss_with_its_solver():
    rows = dict(re.findall(r'^\| "(\w+)" \|.*\| (\w+) \|$', PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert tuple(sorted(rows)) == tuple(sorted(NAMES))
    for name, solver in rows.items():
        y = {"real": Y, "label": LABELS, "class": LABELS, "count": COUNTS}[named_loss(name).target]
        plan = KernelMachine(KERNEL, name).fit(X, y).plan_
        assert [s for begin, s in _BEGINS.items() if plan.startswith(begin)] == [solver]


def test_several_columns_are_as_many_problems():
    both = np.column_stack([Y, -2 * Y + 1])
    model = KernelMachine(KERNEL, Huber(0.3), 0.5, tol=TIGHT).fit(X, both)
    assert model.predict(X).shape == (120, 2)
    assert model.dual_coef_.shape == (120, 2)
    assert model.intercept_.shape == (2,)
    assert len(model.function_) == 2
    assert len(model.certificate_.parts) == 2
    for j in range(2):
        alone = KernelMachine(KERNEL, Huber(0.3), 0.5, tol=TIGHT).fit(X, both[:, j])
        np.testing.assert_allclose(model.predict(X)[:, j], alone.predict(X), atol=1e-3)
        np.testing.assert_allclose(model.function_[j](X), model.predict(X)[:, j], atol=1e-6)
    assert model.certificate_.verify(X, both).relative_gap < 1e-6
    column = KernelMachine(KERNEL, Huber(0.3), 0.5).fit(X, Y[:, None])
    assert column.predict(X).shape == (120, 1)


def test_more_classes_each_against_the_rest_or_all_together():
    iris, species = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[species]
    for loss, shape in [("hinge", 3), ("logistic", 3), ("multinomial", 3)]:
        model = KernelMachine("rbf", loss, 0.1).fit(iris, names)
        assert model.score(iris, names) > 0.95
        assert model.decision_function(iris).shape == (150, shape)
        assert np.array_equal(model.classes_[model.decision_function(iris).argmax(axis=1)], model.predict(iris))
        assert model.certificate_.verify(iris, names).relative_gap < 1e-3
        if loss != "hinge":
            p = model.predict_proba(iris)
            np.testing.assert_allclose(p.sum(axis=1), 1.0)
            assert np.array_equal(p.argmax(axis=1), model.decision_function(iris).argmax(axis=1))
            np.testing.assert_allclose(np.exp(model.predict_log_proba(iris)), p)
    one = KernelMachine("rbf", "hinge", 0.1, tol=TIGHT).fit(iris, species == 1)
    three = KernelMachine("rbf", "hinge", 0.1, tol=TIGHT).fit(iris, species)
    np.testing.assert_allclose(three.decision_function(iris)[:, 1], one.decision_function(iris), atol=1e-2)


def test_class_weights_are_sample_weights():
    by_class = KernelMachine(KERNEL, "logistic", class_weight={0: 1.0, 1: 3.0}, tol=TIGHT).fit(X, LABELS)
    by_sample = KernelMachine(KERNEL, "logistic", tol=TIGHT).fit(X, LABELS, np.where(LABELS, 3.0, 1.0))
    np.testing.assert_allclose(by_class.decision_function(X), by_sample.decision_function(X), atol=1e-4)
    assert by_class.class_weight_.tolist() == [1.0, 3.0]
    balanced = KernelMachine(KERNEL, "hinge", class_weight="balanced").fit(X[30:], LABELS[30:])
    assert balanced.certificate_.converged


# -- penalties --------------------------------------------------------------------------------------------


class Quartic:
    """A user's penalty, t^4 / 4."""

    def value(self, t):
        return np.asarray(t) ** 4 / 4

    def derivative(self, t):
        return np.asarray(t) ** 3


@pytest.mark.parametrize("penalty", [SquaredNorm(0.7), Norm(2.0), Ball(1.5), Quartic()], ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("loss", [Squared(), Pinball(0.3)], ids=lambda v: type(v).__name__)
def test_every_increasing_penalty_is_minimised(loss, penalty):
    model = KernelMachine(KERNEL, loss, penalty, tol=1e-6).fit(X, Y)
    found = model.certificate_
    assert found.converged
    assert objective(model, X, Y) == pytest.approx(found.primal, rel=1e-6)
    assert found.verify(X, Y).relative_gap <= 1e-4
    norm = model.function_.norm()
    if isinstance(penalty, Ball):
        assert norm <= 1.5 * (1 + 1e-6)
    f = model.function_ - model.intercept_
    for other in (0.9, 1.05):  # no multiple is better
        trial = loss.value(Y, other * f(X) + model.intercept_).sum() + penalty.value(other * norm)
        assert trial >= found.primal * (1 - 1e-5)


def test_a_number_is_the_strength_of_the_squared_norm():
    by_number = KernelMachine(KERNEL, "huber", 0.7, tol=TIGHT).fit(X, Y)
    by_object = KernelMachine(KERNEL, "huber", SquaredNorm(0.7), tol=TIGHT).fit(X, Y)
    np.testing.assert_array_equal(by_number.predict(X), by_object.predict(X))


# -- a user's own loss ------------------------------------------------------------------------------------


class LogCosh:
    """No subclass of anything: a value and a derivative."""

    smooth = True

    def value(self, y, f):
        return np.logaddexp(f - y, y - f) - np.log(2)

    def derivative(self, y, f):
        return np.tanh(f - y)


class Steps:
    """Not smooth, and nothing said about it."""

    def value(self, y, f):
        return np.abs(y - f) + np.maximum(0, np.abs(y - f) - 1)

    def derivative(self, y, f):
        return np.sign(f - y) * (1 + (np.abs(y - f) > 1))


class Cauchy:
    """Not convex."""

    smooth, convex = True, False

    def value(self, y, f):
        return np.log1p((y - f) ** 2)

    def derivative(self, y, f):
        return 2 * (f - y) / (1 + (f - y) ** 2)


@pytest.mark.parametrize("loss", [LogCosh(), Steps()], ids=lambda v: type(v).__name__)
def test_a_value_and_a_derivative_are_enough(loss):
    model = KernelMachine(KERNEL, loss, 0.5, tol=1e-6).fit(X[:40], Y[:40])
    assert model.certificate_.converged
    K = KERNEL(X[:40])

    def primal(p):
        return loss.value(Y[:40], K @ p[:-1] + p[-1]).sum() + 0.25 * p[:-1] @ K @ p[:-1]

    start = np.append(model.dual_coef_, model.intercept_)
    referee = minimize(primal, start, method="Powell", options={"maxiter": 2}).fun
    assert model.certificate_.primal <= referee * (1 + 1e-4)
    assert primal(start) == pytest.approx(model.certificate_.primal, rel=1e-6)
    assert model.certificate_.verify(X[:40], Y[:40]).relative_gap < 1e-4


def test_a_loss_that_is_not_convex_ends_at_a_stationary_point_and_says_so():
    model = KernelMachine(KERNEL, Cauchy(), 0.5, tol=1e-8).fit(X, Y)
    assert model.certificate_.stationary == "the loss is not convex"
    r = 0.5 * model.dual_coef_ + Cauchy().derivative(Y, model.predict(X))
    assert np.abs(KERNEL(X) @ r).max() < 1e-3
    assert model.certificate_.verify(X, Y).stationary == "the loss is not convex"


class Largest:
    """The largest error of all samples, in whatever shape, is no sum over the samples."""

    def __init__(self, shape):
        self.shape = shape

    def value(self, y, f):
        return np.full(self.shape or (), np.abs(y - f).max())

    def derivative(self, y, f):
        return np.where(np.abs(y - f) == np.abs(y - f).max(), np.sign(f - y), 0.0)


@pytest.mark.parametrize(("shape", "says"), [(None, r"has the shape \(\)"), (len(Y), "when other predictions do")])
def test_a_loss_that_is_no_sum_over_the_samples_is_refused(shape, says):
    with pytest.raises(ValueError, match=says):
        KernelMachine(KERNEL, Largest(shape), 0.5).fit(X, Y)


class Bounded:
    """A penalty that increases and is not convex."""

    def value(self, t):
        return 30.0 * np.arctan(t)

    def derivative(self, t):
        return 30.0 / (1.0 + t * t)


def test_a_penalty_that_is_not_convex_is_minimised_without_the_claim_of_a_minimum():
    model = KernelMachine(KERNEL, Squared(), Bounded()).fit(X, Y)
    claim = model.certificate_
    for found in (claim, claim.verify(X, Y)):
        assert found.stationary == "the penalty is not convex"
        assert not found.converged
    others = [KernelMachine(KERNEL, Squared(), strength).fit(X, Y) for strength in np.geomspace(1e-6, 1e4, 41)]
    values = [m.certificate_.primal - 0.5 * m.penalty * m.function_.norm() ** 2 for m in others]
    paid = [v + Bounded().value(m.function_.norm()) for v, m in zip(values, others, strict=True)]
    assert claim.primal <= min(paid) * (1 + 1e-6)
    assert np.ptp(np.sign(np.diff(paid))) == 2  # the objective rises and falls along the path: more than one minimum


# -- parameters -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "match"),
    [
        (
            {"loss": "hingee"},
            r"loss='hingee' of KernelMachine must be an object with the methods value\(y, f\).*'hinge'",
        ),
        ({"loss": Hinge}, "loss=.*Hinge.* of KernelMachine must be an object"),
        ({"loss": 3}, "loss=3 of KernelMachine"),
        ({"penalty": -1.0}, r"penalty=-1.0 of KernelMachine must be a number > 0 \(the strength s"),
        ({"penalty": "l2"}, "penalty='l2' of KernelMachine"),
        ({"penalty": np.inf}, "penalty=inf"),
        ({"solver": "sgd"}, "solver='sgd' of KernelMachine must be one of 'auto', 'ridge'"),
        ({"fit_intercept": 2}, "fit_intercept=2 of KernelMachine must be True or False"),
        ({"kernel": "gauss"}, "kernel='gauss'"),
        ({"tol": 0}, "tol=0 of KernelMachine"),
    ],
    ids=lambda v: "" if isinstance(v, dict) else v[:20],
)
def test_a_parameter_outside_its_domain_is_named_with_its_value(params, match):
    with pytest.raises(ValueError, match=match):
        KernelMachine(**params).fit(X, Y)


def test_a_solver_that_the_loss_does_not_allow_says_what_it_needs():
    with pytest.raises((ValueError, TypeError), match="dual"):
        KernelMachine(KERNEL, Logistic(), solver="dual").fit(X, LABELS)
    with pytest.raises((ValueError, TypeError), match="ridge"):
        KernelMachine(KERNEL, Huber(), solver="ridge").fit(X, Y)


def test_what_a_regressor_has_not_and_a_classifier_has():
    assert not hasattr(KernelMachine(loss=Expectile()), "decision_function")
    assert not hasattr(KernelMachine(loss=Hinge()), "predict_proba")
    assert not hasattr(KernelMachine(loss="no such loss"), "predict_proba")
    assert hasattr(KernelMachine(loss=Multinomial()), "predict_proba")
    with pytest.raises(ValueError, match="one class only"):
        KernelMachine(loss="hinge").fit(X, np.ones(120))
    with pytest.raises(ValueError, match="which is none of the classes"):
        KernelMachine(loss="hinge").fit(X, LABELS).certificate_.verify(X, LABELS + 1)


def test_the_linear_kernel_has_weights():
    model = KernelMachine(Linear(), "huber").fit(X, Y)
    np.testing.assert_allclose(X @ model.coef_ + model.intercept_, model.predict(X), atol=1e-12)
    np.testing.assert_allclose(model.function_(X), model.predict(X), atol=1e-6)
    with pytest.raises(AttributeError, match="coef_ exists for the linear kernel only"):
        KernelMachine(KERNEL).fit(X, Y).coef_
