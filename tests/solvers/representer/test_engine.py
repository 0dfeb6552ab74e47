"""The engine against Clarabel on every loss, and what must hold whatever the loss (M4, M9, M13)."""

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import conic
from mercer import SVC
from mercer.certify.representer import check_representer
from mercer.gram import Gram
from mercer.kernels import RBF, Linear, Polynomial
from mercer.losses import (
    Absolute,
    Ball,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Multinomial,
    Norm,
    PerceptronLoss,
    Pinball,
    Poisson,
    Squared,
    SquaredHinge,
    SquaredNorm,
)
from mercer.solvers.control import Control
from mercer.solvers.representer.engine import Representer, plan, solve
from mercer.solvers.representer.plug_in import plug_in

KERNELS = [RBF(0.8), Linear(), Polynomial(2), RBF(3.0) + Linear()]
each_loss = pytest.mark.parametrize("loss", conic.LOSSES, ids=lambda loss: type(loss).__name__)


def fit(kernel, X, y, loss, penalty=None, weights=None, intercept=True, tol=1e-8, solver="auto", start=None, **limits):
    problem = Representer(Gram(kernel, X), y, loss, penalty or SquaredNorm(1.0), weights, intercept, start)
    return solve(problem, Control(tol=tol, **limits), solver)


@each_loss
@settings(max_examples=12)
@example(seed=2, kernel=KERNELS[0], n=2, strength=0.01, weighted=False, intercept=True)  # a tube that fits both
@given(
    seed=st.integers(0, 10**6),
    kernel=st.sampled_from(KERNELS),
    n=st.integers(2, 12),
    strength=st.sampled_from([1e-2, 0.3, 1.0, 20.0]),
    weighted=st.booleans(),
    intercept=st.booleans(),
)
def test_every_loss_has_the_minimum_that_clarabel_finds(loss, seed, kernel, n, strength, weighted, intercept):
    X, y = conic.draw(loss, seed, n)
    if intercept and len(np.unique(y)) == 1:
        y[0] = {"label": -y[0], "count": y[0] + 1, "class": (y[0] + 1) % 3}.get(loss.target, y[0])
    weights = np.random.default_rng(seed + 1).uniform(0.1, 3.0, n) if weighted else np.ones(n)
    K = np.asarray(Gram(kernel, X).dense())
    found = fit(kernel, X, y, loss, SquaredNorm(strength), weights, intercept, tol=1e-7)
    best, _, solved = conic.minimum(K, y, loss, SquaredNorm(strength), weights, intercept)
    claim = found.certificate
    assert claim.stopped == "converged", claim
    size = max(abs(claim.primal), 1e-2)  # Clarabel stops by absolute tolerances, too
    if solved:
        assert claim.primal <= best + 1e-5 * size
        assert claim.dual <= best + 1e-5 * size
        assert claim.primal >= best - 1e-5 * size
    checked = check_representer(
        kernel, X, y, coefficients=found.coefficients, offset=found.offset, loss=loss, penalty=SquaredNorm(strength),
        weights=weights, intercept=intercept, tol=1e-7,
    )  # fmt: skip
    assert checked.relative_gap <= 2e-7
    assert checked.primal == pytest.approx(claim.primal, rel=1e-8, abs=1e-10)
    np.testing.assert_allclose(found.values, K @ found.coefficients + found.offset, rtol=1e-6, atol=1e-8)


@each_loss
@pytest.mark.parametrize("intercept", [True, False])
def test_weights_are_repetitions(loss, intercept):
    X, y = conic.draw(loss, 3, 15)
    times = np.random.default_rng(0).integers(1, 4, 15)
    weighted = fit(RBF(1.0), X, y, loss, SquaredNorm(0.5), times.astype(float), intercept)
    repeated = fit(RBF(1.0), np.repeat(X, times, axis=0), np.repeat(y, times), loss, SquaredNorm(0.5), None, intercept)
    assert weighted.certificate.primal == pytest.approx(repeated.certificate.primal, rel=1e-6, abs=1e-12)
    first = np.concatenate([[0], np.cumsum(times)[:-1]])
    if not isinstance(loss, PerceptronLoss):  # f = 0 for every offset on the right side
        np.testing.assert_allclose(repeated.values[first], weighted.values, atol=2e-3)


@each_loss
def test_a_weight_of_0_is_no_point(loss):
    X, y = conic.draw(loss, 5, 14)
    weights = np.ones(14)
    weights[-3:] = 0.0
    if getattr(loss, "target", "") == "class":
        y[:3] = 0, 1, 2
    found = fit(RBF(1.0), X, y, loss, None, weights)
    less = fit(RBF(1.0), X[:-3], y[:-3], loss)
    assert found.certificate.primal == pytest.approx(less.certificate.primal, rel=1e-6, abs=1e-12)
    assert not found.coefficients[-3:].any()


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_the_hinge_with_a_squared_norm_is_the_svc(C):  # M4
    X, y = conic.draw(Hinge(), 1, 60)
    machine = SVC(kernel=RBF(1.0), C=C, tol=1e-7).fit(X, y)
    for weights, strength in ((np.full(60, C), 1.0), (None, 1.0 / C)):
        found = fit(RBF(1.0), X, y, Hinge(), SquaredNorm(strength), weights)
        np.testing.assert_allclose(found.values, machine.decision_function(X), atol=2e-3)


def test_without_offset_it_is_the_plug_in_machine():  # M9
    X, y = conic.draw(Hinge(), 2, 50)
    gram = Gram(RBF(1.0), X)
    plugged = plug_in(gram, y, 2.0, Control(tol=1e-9))
    found = solve(Representer(gram, y, Hinge(), SquaredNorm(1.0), np.full(50, 2.0), False), Control(tol=1e-9))
    assert found.offset == 0
    assert found.certificate.primal == pytest.approx(plugged.certificate.primal, rel=1e-8)
    np.testing.assert_allclose(found.values, plugged.values, atol=1e-4)


def test_the_squared_loss_is_kernel_ridge():
    X, y = conic.draw(Squared(), 0, 30)
    K = np.asarray(Gram(RBF(1.0), X).dense())
    found = fit(RBF(1.0), X, y, Squared(), SquaredNorm(0.3), None, False)
    np.testing.assert_allclose(found.coefficients, np.linalg.solve(K + 0.3 * np.eye(30), y), rtol=1e-8)


# -- plans and wishes ---------------------------------------------------------------------------------------


class Bare:
    """A user's loss that says nothing but its value and its slope."""

    def value(self, y, f):
        return np.abs(f - y) + 0.5 * (f - y) ** 2

    def derivative(self, y, f):
        return np.sign(f - y) + (f - y)


class Smooth(Bare):
    smooth = True

    def value(self, y, f):
        return np.log(np.cosh(f - y))

    def derivative(self, y, f):
        return np.tanh(f - y)


def problem(loss, **parts):
    X, y = conic.draw(loss, 0, 20)
    return Representer(Gram(RBF(1.0), X), y, loss, **parts)


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (Squared(), "linear system"),
        (Logistic(), "has a curvature"),
        (Hinge(), "piecewise linear"),
        (Bare(), "prox by a search"),
        (Smooth(), "by differences"),
        (Multinomial(), "20 x 3 coefficients"),
    ],
)
def test_the_plan_says_which_solver_and_why(loss, words):
    text = plan(problem(loss))
    assert words in text
    assert text.endswith(".")
    assert text.count(". ") == 0
    if not isinstance(loss, (Bare, Squared)):
        assert re.search(r"\d (KiB|MiB|B)", text) or isinstance(loss, Smooth)


def test_the_plan_of_another_penalty_names_the_search():
    assert "search over the strength" in plan(problem(Hinge(), penalty=Norm(2.0)))


@pytest.mark.parametrize(
    ("loss", "solver", "words"),
    [
        (Logistic(), "dual", "box"),
        (Hinge(), "newton", "curvature"),
        (Bare(), "newton", "smooth = True"),
        (Huber(), "ridge", "not Squared"),
        (Multinomial(), "dual", "one per class"),
        (Hinge(), "simplex", "must be one of"),
    ],
)
def test_a_wish_that_cannot_be_met_names_what_is_missing(loss, solver, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        plan(problem(loss), Control(), solver)
    with pytest.raises(ValueError, match=re.escape(words)):
        solve(problem(loss), Control(), solver)


def test_a_loss_that_is_neither_smooth_nor_convex_is_refused():
    class Neither(Bare):
        convex = False

    with pytest.raises(ValueError, match="neither smooth"):
        solve(problem(Neither()))
    with pytest.raises(ValueError, match="needs a convex loss"):
        solve(problem(Neither()), solver="proximal")


@pytest.mark.parametrize("solver", ["newton", "proximal"])
@pytest.mark.parametrize("loss", [Huber(0.5), Logistic(), SquaredHinge(), Poisson()], ids=repr)
def test_solvers_agree(loss, solver):
    X, y = conic.draw(loss, 4, 40)
    a, b = (fit(RBF(1.0), X, y, loss, SquaredNorm(0.1), solver=s) for s in ("auto", solver))
    assert a.certificate.primal == pytest.approx(b.certificate.primal, rel=1e-6)
    np.testing.assert_allclose(a.values, b.values, atol=5e-3)


# -- bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y": np.zeros(20)}, "labels -1 and +1"),
        ({"y": np.full(20, np.nan)}, "NaN"),
        ({"y": np.full(20, np.inf)}, "finite"),
        ({"weights": -np.ones(20)}, "at least 0"),
        ({"weights": np.zeros(20)}, "nothing to fit"),
        ({"start": np.zeros(3)}, "start must be"),
        ({"loss": Poisson(), "y": -np.ones(20)}, "at least 0"),
        ({"loss": Multinomial(), "y": np.full(20, 0.5)}, "classes 0, 1"),
    ],
)
def test_bad_input_is_named(change, words):
    X, y = conic.draw(Logistic(), 0, 20)
    with pytest.raises(ValueError, match=re.escape(words)):
        Representer(**({"gram": Gram(RBF(1.0), X), "y": y, "loss": Logistic()} | change))


def test_what_is_no_loss_no_penalty_or_no_square_matrix_is_refused():
    X, y = conic.draw(Logistic(), 0, 20)
    with pytest.raises(TypeError, match="has no method value"):
        Representer(Gram(RBF(1.0), X), y, object())
    with pytest.raises(TypeError, match="has no method derivative"):
        Representer(Gram(RBF(1.0), X), y, Logistic(), type("R", (), {"value": lambda self, t: t})())
    with pytest.raises(ValueError, match="square kernel matrix"):
        Representer(Gram(RBF(1.0), X, X[:5]), y, Logistic())


# -- extremes -----------------------------------------------------------------------------------------------


@each_loss
@settings(max_examples=12)
@example(exponent=0, intercept=True, kind="one row")  # with one class, the minimum is at an infinite intercept
@given(
    exponent=st.integers(-12, 12),
    intercept=st.booleans(),
    kind=st.sampled_from(["plain", "one row", "constant", "duplicates", "rank 1", "no kernel"]),
)
def test_every_problem_ends_with_finite_numbers(loss, exponent, intercept, kind):
    X, y = conic.draw(loss, 7, 12)
    if kind == "one row":
        X, y = X[:1], y[:1]
    elif kind == "constant":
        y[:] = y[0]
    elif kind == "duplicates":
        X = np.repeat(X[:4], 3, axis=0)
    kernel = {"rank 1": Linear(), "no kernel": Linear()}.get(kind, RBF(1.0))
    X = X[:, :1] if kind == "rank 1" else 0 * X if kind == "no kernel" else X
    found = fit(kernel, X, y, loss, SquaredNorm(10.0**exponent), None, intercept, tol=1e-3, time_limit=5.0)
    assert np.isfinite(found.coefficients).all()
    assert np.isfinite(found.offset).all()
    assert np.isfinite(found.values).all()
    claim = found.certificate
    assert claim.stopped == "converged" or exponent <= -9, claim
    assert claim.gap >= -1e-9 * abs(claim.primal)


@pytest.mark.parametrize("loss", [Squared(), Absolute(), Pinball(0.3), EpsilonInsensitive(), Huber()], ids=repr)
@pytest.mark.parametrize("strength", [1e-6, 1.0, 1e6])
def test_truths_of_any_size(loss, strength):
    X, y = conic.draw(loss, 0, 20)
    found = fit(RBF(1.0), X, 1e200 * y, loss, SquaredNorm(strength))
    assert found.certificate.stopped == "converged"
    assert np.isfinite(found.values).all()
    if isinstance(loss, Squared):
        small = fit(RBF(1.0), X, y, loss, SquaredNorm(strength))
        np.testing.assert_allclose(found.coefficients / 1e200, small.coefficients, rtol=1e-9, atol=1e-12)
    else:
        assert 0 < found.certificate.primal < np.inf


def test_a_loss_that_overflows_says_so():
    X, y = conic.draw(SquaredHinge(), 0, 5)
    from mercer.losses import Expectile

    with pytest.raises(ValueError, match="not finite at f = 0, where y lies between"):
        fit(RBF(1.0), X, 1e200 * y, Expectile())


# -- limits, listeners, checkpoints -------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [Logistic(), Hinge(), Bare(), Multinomial()], ids=lambda loss: type(loss).__name__)
def test_limits_end_a_run_with_the_best_so_far(loss):
    X, y = conic.draw(loss, 0, 40)
    for limits, words in (({"max_iter": 0}, "max_iter=0"), ({"time_limit": 0.0}, "time_limit=0")):
        found = fit(RBF(0.3), X, y, loss, SquaredNorm(1e-4), tol=1e-10, **limits)
        assert words in found.certificate.stopped
        assert np.isfinite(found.values).all()
        checked = check_representer(
            RBF(0.3), X, y, coefficients=found.coefficients, offset=found.offset, loss=loss, penalty=SquaredNorm(1e-4)
        )
        assert checked.primal == pytest.approx(found.certificate.primal, rel=1e-8)


@pytest.mark.parametrize("loss", [Logistic(), Bare(), Multinomial()], ids=lambda loss: type(loss).__name__)
def test_a_listener_hears_and_may_stop(loss):
    X, y = conic.draw(loss, 0, 40)
    heard = []
    found = fit(RBF(0.3), X, y, loss, SquaredNorm(1e-6), tol=1e-9, report=lambda where: heard.append(where) or True)
    assert found.certificate.stopped == "stopped by the callback"
    assert heard[0].support <= 40 * 3
    assert len(heard) == 1

    def interrupt(where):
        raise KeyboardInterrupt

    found = fit(RBF(0.3), X, y, loss, SquaredNorm(1e-6), tol=1e-9, report=interrupt)
    assert found.certificate.stopped == "interrupted"
    assert np.isfinite(found.values).all()


@pytest.mark.parametrize("loss", [Logistic(), Hinge(), Bare(), Multinomial()], ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("penalty", [SquaredNorm(1e-4), Norm(0.5)], ids=repr)
def test_a_checkpoint_goes_on_where_it_stopped(tmp_path, loss, penalty):
    X, y = conic.draw(loss, 0, 20)
    file = tmp_path / "state"
    whole = fit(RBF(0.3), X, y, loss, penalty, tol=1e-6)
    cut = fit(RBF(0.3), X, y, loss, penalty, tol=1e-6, max_iter=3, checkpoint=file)
    assert cut.certificate.stopped != "converged"
    assert file.exists()
    assert not (tmp_path / "state.part").exists()
    with pytest.raises(ValueError, match="belongs to another problem"):
        fit(RBF(0.3), X, y[::-1].copy(), loss, penalty, checkpoint=file)
    resumed = fit(RBF(0.3), X, y, loss, penalty, tol=1e-6, checkpoint=file)
    assert resumed.certificate.stopped == "converged"
    assert resumed.certificate.primal == pytest.approx(whole.certificate.primal, rel=1e-5)
    assert not file.exists()


def test_a_broken_checkpoint_is_refused(tmp_path):
    X, y = conic.draw(Logistic(), 0, 10)
    file = tmp_path / "state"
    file.write_bytes(b"not a checkpoint")
    with pytest.raises(ValueError, match="cannot be read"):
        fit(RBF(1.0), X, y, Logistic(), checkpoint=file)


@each_loss
def test_a_warm_start_is_where_it_ends(loss):
    X, y = conic.draw(loss, 0, 30)
    cold = fit(RBF(0.5), X, y, loss, SquaredNorm(0.1), tol=1e-6)
    warm = fit(RBF(0.5), X, y, loss, SquaredNorm(0.1), tol=1e-5, start=cold.coefficients)
    assert warm.certificate.iterations <= max(1, cold.certificate.iterations // 2)
    assert warm.certificate.primal == pytest.approx(cold.certificate.primal, rel=1e-4, abs=1e-12)


def test_the_history_goes_down():
    X, y = conic.draw(Logistic(), 0, 60)
    found = fit(RBF(0.3), X, y, Logistic(), SquaredNorm(1e-5))
    steps, primal, dual, gap, support, seconds = np.array(found.history).T
    assert (np.diff(primal) <= 1e-9).all()
    assert (dual <= found.certificate.primal * (1 + 1e-9)).all()
    assert gap[-1] <= 1e-8
    assert (np.diff(steps) >= 0).all()
    assert (np.diff(seconds) >= 0).all()
    assert support[-1] <= 60


def test_problems_on_one_matrix_share_it():
    X, y = conic.draw(Logistic(), 0, 30)
    gram = Gram(RBF(1.0), X)
    first = solve(Representer(gram, y, Logistic()))
    second = solve(Representer(gram, -y, Logistic()))
    assert first.systems is second.systems
    np.testing.assert_allclose(first.values, -second.values, atol=1e-6)


def test_a_ball_and_a_norm_of_the_same_strength_meet():
    X, y = conic.draw(Logistic(), 0, 30)
    one = fit(RBF(1.0), X, y, Logistic(), SquaredNorm(0.2))
    t = np.sqrt(one.coefficients @ (one.values - one.offset))
    for penalty in (Ball(t), Norm(0.2 * t)):
        same = fit(RBF(1.0), X, y, Logistic(), penalty, tol=1e-9)
        assert same.strength == pytest.approx(0.2, rel=1e-3)
        np.testing.assert_allclose(same.values, one.values, atol=1e-3)
