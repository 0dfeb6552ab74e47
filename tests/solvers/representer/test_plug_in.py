"""The primal by the representer theorem agrees with the dual (M9)."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import referee
from mercer.certify import check_svm
from mercer.gram import Gram
from mercer.kernels import RBF, FromFunction, Linear, Polynomial
from mercer.solvers import SVMDual, solve
from mercer.solvers.control import Control
from mercer.solvers.representer.plug_in import plug_in

KERNELS = [RBF(0.7), Linear(), Polynomial(2), RBF(5.0) + Linear()]


def draw(seed, n, duplicates=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    if duplicates:
        X[n // 2 :] = X[: n - n // 2]
    return X, y


def checked(kernel, X, y, C, found, tol):
    problem = referee.no_offset(np.zeros((len(y), len(y))), y, C)
    return check_svm(kernel, X, **problem.arguments(), plus=found.plus, minus=found.minus, tol=tol)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    kernel=st.sampled_from(KERNELS),
    n=st.integers(2, 40),
    C=st.sampled_from([1e-3, 0.5, 10.0, 1e3]),
    duplicates=st.booleans(),
)
def test_agrees_with_the_dual(seed, kernel, n, C, duplicates):
    X, y = draw(seed, n, duplicates)
    found = plug_in(Gram(kernel, X), y, C, Control(tol=1e-7))
    assert found.certificate.converged
    seen = checked(kernel, X, y, C, found, 1e-6)
    assert seen.converged
    assert seen.primal == pytest.approx(found.certificate.primal, rel=1e-7)
    best = referee.solve(referee.no_offset(kernel(X), y, C))
    assume(best.solved)
    assert found.certificate.dual == pytest.approx(best.dual, rel=2e-7, abs=1e-9)
    values = kernel(X) @ (best.plus - best.minus)
    # Strong convexity: |f - f*|^2 / 2 <= gap of both.
    radius = np.sqrt(2 * (found.certificate.gap + 1e-7 * abs(best.dual) + 1e-9) * kernel.diag(X).max())
    assert np.abs(found.values - values).max() <= 2 * radius


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_agrees_with_our_own_dual_solver(C):
    X, y = draw(7, 300)
    gram = Gram(RBF(0.7), X)
    dual = SVMDual(gram, linear=-y, upper=np.where(y > 0, C, 0.0), lower=np.where(y < 0, C, 0.0), offset="none")
    (other,) = solve([dual], Control(tol=1e-8))
    found = plug_in(gram, y, C, Control(tol=1e-8))
    assert found.certificate.dual == pytest.approx(other.certificate.dual, rel=1e-7)
    assert found.values == pytest.approx(other.values, abs=4 * np.sqrt(2e-8 * found.certificate.primal))


def test_weights_and_signs():
    X, y = draw(3, 40)
    C = np.random.default_rng(0).uniform(0.1, 3.0, size=40)
    found = plug_in(Gram(RBF(1.0), X), y, C, Control(tol=1e-9))
    assert found.certificate.relative_gap <= 1e-9
    assert (found.plus <= np.where(y > 0, C, 0)).all()
    assert (found.minus <= np.where(y < 0, C, 0)).all()
    assert checked(RBF(1.0), X, y, C, found, 1e-8).converged
    assert found.values == pytest.approx(RBF(1.0)(X) @ found.coefficients)
    assert found.offset == 0.0
    gaps = [row.gap for row in found.history]
    assert gaps == sorted(gaps, reverse=True)


@pytest.mark.parametrize("case", ["one point", "one class", "equal rows", "opposite duplicates", "huge", "tiny"])
def test_degenerate_data(case):
    X, y = draw(0, 20)
    kernel = Linear()
    if case == "one point":
        X, y = X[:1], y[:1]
    elif case == "one class":
        y = np.ones(20)
    elif case == "equal rows":
        X[:] = X[0]
    elif case == "opposite duplicates":
        X[10:], y[10:] = X[:10], -y[:10]
    elif case == "huge":
        X *= 1e3
    else:
        X *= 1e-6
    found = plug_in(Gram(kernel, X), y, 1.0, Control(tol=1e-5))
    assert found.certificate.converged
    assert checked(kernel, X, y, 1.0, found, 1e-4).converged


def test_what_rounding_forbids_ends_with_an_honest_gap():
    X, y = draw(0, 20)
    X *= 1e7  # kernel values of 1e14, and f of size 1 as a sum of them
    found = plug_in(Gram(Linear(), X), y, 1.0, Control(tol=1e-9))
    assert found.certificate.stopped == "the gap is at the level of rounding"
    assert found.certificate.relative_gap > 1e-9
    assert found.certificate.iterations < 1000


def test_words():
    words = ["ab", "abc", "bcd", "xyz", "xy", "zxy"]
    kernel = FromFunction(lambda a, b: float(len(set(a) & set(b))))
    found = plug_in(Gram(kernel, words), [1, 1, 1, -1, -1, -1], 1.0)
    assert (found.values > 0).tolist() == [True] * 3 + [False] * 3


def test_single_precision_reaches_what_it_can():
    X, y = draw(1, 60)
    found = plug_in(Gram(RBF(1.0), X.astype(np.float32)), y, 1.0, Control(tol=1e-4))
    assert found.certificate.converged
    assert found.certificate.precision == "float32"
    assert checked(RBF(1.0), X.astype(np.float32), y, 1.0, found, 2e-4).converged


def test_limits_and_listeners():
    X, y = draw(1, 60)
    gram = Gram(RBF(0.3), X)
    few = plug_in(gram, y, 10.0, Control(tol=1e-12, max_iter=2))
    assert few.certificate.stopped == "max_iter=2 reached"
    assert few.certificate.iterations == 2
    assert few.certificate.gap >= 0
    seen = []
    told = plug_in(gram, y, 10.0, Control(tol=1e-12, report=lambda p: seen.append(p) or len(seen) == 2))
    assert told.certificate.stopped == "stopped by the callback"
    assert len(seen) == 2


def test_an_unreachable_tolerance_ends():
    X, y = draw(1, 30)
    found = plug_in(Gram(RBF(1.0), X), y, 1.0, Control(tol=1e-30))
    assert found.certificate.relative_gap < 1e-9
    assert found.certificate.stopped != "converged" or found.certificate.gap <= 0


def test_errors_are_sentences():
    X, y = draw(1, 10)
    with pytest.raises(ValueError, match="square kernel matrix"):
        plug_in(Gram(RBF(1.0), X, X[:5]), y)
    with pytest.raises(ValueError, match=r"labels -1 and \+1; it contains 3"):
        plug_in(Gram(RBF(1.0), X), 3 * y**2)
    for bad in (0.0, -1.0, np.inf):
        with pytest.raises(ValueError, match="C must be positive and finite"):
            plug_in(Gram(RBF(1.0), X), y, bad)
    with pytest.raises(MemoryError, match="Newton system"):
        plug_in(Gram(RBF(1.0), X, budget=100), y)
