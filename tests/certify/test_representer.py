"""The check of the engine: exact on closed forms, honest about wrong coefficients, and free of the solvers."""

import ast
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import conic
import mercer.certify.representer as module
from mercer.certify.representer import check_representer
from mercer.gram import Gram
from mercer.kernels import RBF
from mercer.losses import Ball, Hinge, Logistic, Norm, Squared, SquaredNorm
from mercer.solvers.control import Control
from mercer.solvers.representer.engine import Representer, solve

each_loss = pytest.mark.parametrize("loss", conic.LOSSES, ids=lambda loss: type(loss).__name__)


def fitted(loss, seed=0, n=15, penalty=None, intercept=True, tol=1e-6):
    X, y = conic.draw(loss, seed, n)
    penalty = penalty or SquaredNorm(0.3)
    return X, y, solve(Representer(Gram(RBF(1.0), X), y, loss, penalty, None, intercept), Control(tol=tol))


def test_it_imports_nothing_of_the_solvers():
    names = [
        node.module
        for node in ast.walk(ast.parse(Path(module.__file__).read_text()))
        if isinstance(node, ast.ImportFrom) and node.module.startswith("mercer")
    ]
    assert names
    assert not [name for name in names if "solvers" in name or "_core" in name or "numeric" in name]


def test_ridge_in_closed_form():
    X, y = conic.draw(Squared(), 0, 12)
    K = np.asarray(Gram(RBF(1.0), X).dense())
    a = np.linalg.solve(K + 0.5 * np.eye(12), y)
    found = check_representer(
        RBF(1.0), X, y, coefficients=a, loss=Squared(), penalty=SquaredNorm(0.5), intercept=False, tol=1e-10
    )
    assert found.converged
    assert found.primal == pytest.approx(0.25 * y @ a, rel=1e-10)
    assert found.kkt < 1e-9


@each_loss
@settings(max_examples=8)
@given(seed=st.integers(0, 10**6), size=st.sampled_from([1e-3, 0.1, 1.0]), intercept=st.booleans())
def test_wrong_coefficients_have_a_gap_that_bounds_how_wrong_they_are(loss, seed, size, intercept):
    X, y, found = fitted(loss, intercept=intercept)
    rng = np.random.default_rng(seed)
    wrong = found.coefficients + size * rng.normal(size=found.coefficients.shape)
    if intercept:
        wrong -= wrong.mean(axis=0)
    claim = check_representer(
        RBF(1.0),
        X,
        y,
        coefficients=wrong,
        offset=found.offset,
        loss=loss,
        penalty=SquaredNorm(0.3),
        intercept=intercept,
    )
    K = np.asarray(Gram(RBF(1.0), X).dense())
    v = K @ wrong + found.offset
    primal = loss.value(y, v).sum() + 0.15 * np.vdot(wrong, K @ wrong)
    assert claim.primal == pytest.approx(primal, rel=1e-9)
    best = found.certificate
    assert claim.primal >= best.dual - 1e-9 * abs(best.dual)
    assert claim.dual <= best.primal + 1e-9 * abs(best.primal)  # weak duality


@each_loss
def test_a_good_fit_passes_and_a_tighter_demand_fails(loss):
    X, y, found = fitted(loss, tol=1e-3)
    arguments = {"coefficients": found.coefficients, "offset": found.offset, "loss": loss, "penalty": SquaredNorm(0.3)}
    assert check_representer(RBF(1.0), X, y, tol=2e-3, **arguments).converged
    worse = arguments | {"coefficients": 2.0 * found.coefficients + 0.1}
    claim = check_representer(RBF(1.0), X, y, tol=1e-6, **worse)
    assert claim.stopped == "the gap is larger than tol"


@pytest.mark.parametrize("penalty", [Norm(1.0), Ball(0.7)], ids=repr)
@pytest.mark.parametrize("loss", [Logistic(), Hinge(), Squared()], ids=repr)
def test_other_penalties(loss, penalty):
    X, y, found = fitted(loss, penalty=penalty)
    claim = check_representer(
        RBF(1.0), X, y, coefficients=found.coefficients, offset=found.offset, loss=loss, penalty=penalty,
        strength=found.strength, tol=1e-5,
    )  # fmt: skip
    assert claim.converged
    assert claim.primal == pytest.approx(found.certificate.primal, rel=1e-8)


def test_a_loss_that_is_not_convex_has_a_gradient_only():
    class Welsch:
        smooth, convex = True, False

        def value(self, y, f):
            return 1.0 - np.exp(-((f - y) ** 2) / 2)

        def derivative(self, y, f):
            return (f - y) * np.exp(-((f - y) ** 2) / 2)

    X, y, found = fitted(Welsch())
    claim = check_representer(
        RBF(1.0), X, y, coefficients=found.coefficients, offset=found.offset, loss=Welsch(), penalty=SquaredNorm(0.3)
    )
    for said in (claim, found.certificate):
        assert said.stationary == "the loss is not convex"
        assert said.stopped == "stationary point"
        assert said.relative_gap <= said.tol
        assert not said.converged


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"coefficients": np.zeros(3)}, "one per training point"),
        ({"coefficients": np.full(15, np.nan)}, "must be finite"),
        ({"offset": np.inf}, "must be finite"),
        ({"weights": -np.ones(15)}, "at least 0"),
    ],
)
def test_what_cannot_be_checked_is_named(change, words):
    X, y = conic.draw(Squared(), 0, 15)
    arguments = {"coefficients": np.zeros(15), "loss": Squared()} | change
    with pytest.raises(ValueError, match=words):
        check_representer(RBF(1.0), X, y, **arguments)
