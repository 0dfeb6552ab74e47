"""The gap that a state reports against the textbook's two objectives, and the conditions of optimality."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from mercer import RBF, Gram, Linear
from mercer.solvers import SVMDual
from mercer.solvers.dual.problem import Bounds, State

EACH = ["svc", "none", "svr", "one_class", "nu_svc", "nu_svr"]


def hinge(t):
    return np.maximum(0.0, t)


class Case:
    """A model with its objectives as the lectures write them, at feasible coefficients that are nowhere optimal."""

    def __init__(self, kind, seed=0, n=30, C=2.0, nu=0.4, epsilon=0.3):
        rng = np.random.default_rng(seed)
        self.kind, self.C, self.nu, self.epsilon, self.n = kind, C, nu, epsilon, n
        self.X = rng.normal(size=(n, 3))
        self.y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
        self.targets = self.y + rng.normal(size=n)
        y, one = self.y, np.ones(n)
        up, low = (y > 0) * 1.0, (y < 0) * 1.0
        self.linear, self.upper, self.lower, width, offset = {
            "svc": (-y, C * up, C * low, 0.0, "free"),
            "none": (-y, C * up, C * low, 0.0, "none"),
            "svr": (-self.targets, C * one, C * one, epsilon, "free"),
            "one_class": (0 * one, one, 0 * one, 0.0, "free"),
            "nu_svc": (0 * one, up, low, 0.0, "split"),
            "nu_svr": (-self.targets, C * one, C * one, 0.0, "split"),
        }[kind]
        self.plus, self.minus = self.feasible(rng)
        self.problem = SVMDual(
            Gram(RBF(1.0), self.X), self.linear, self.upper, self.lower, width, offset, self.plus, self.minus
        )
        self.state = State(self.problem)
        self.K = self.problem.gram.dense()
        self.state.gradient[:n] = self.K @ self.state.coefficients + self.linear

    def feasible(self, rng):
        n, some = self.n, 0.01 + rng.random(self.n)
        if self.kind == "none":
            return self.upper * some / 2, self.lower * some / 2
        if self.kind == "one_class":
            return capped(some, self.nu * n), np.zeros(n)
        unit = 1.0 if self.kind == "nu_svc" else self.C
        return tuple(unit * capped(some * side, self.nu * n / 2) for side in (self.y > 0, self.y < 0))

    def primal(self, b0, half=0.0):
        """The objective of the model (in the scale of its dual) at f = K b + b0."""
        b, y = self.state.coefficients, self.y
        g = self.K @ b
        square, f = 0.5 * b @ g, g + b0
        return {
            "svc": lambda: square + self.C * hinge(1 - y * f).sum(),
            "none": lambda: square + self.C * hinge(1 - y * g).sum(),
            "svr": lambda: square + self.C * hinge(np.abs(self.targets - f) - self.epsilon).sum(),
            # Schoelkopf et al. (2001), times n nu, with rho = -b0.
            "one_class": lambda: square + b0 * self.nu * self.n + hinge(-f).sum(),
            # y f >= rho - slack, less what a wide margin brings.
            "nu_svc": lambda: square - self.nu * self.n * half + hinge(half - y * f).sum(),
            # The width of the tube is -half.
            "nu_svr": lambda: (
                square + self.C * (self.nu * self.n * -half + hinge(np.abs(self.targets - f) + half).sum())
            ),
        }[self.kind]()

    def dual(self):
        b = self.state.coefficients
        return -(
            0.5 * b @ self.K @ b + self.linear @ b + np.dot(self.problem.width, 1.0) * (self.plus + self.minus).sum()
        )


def capped(weights, total):
    """Weights above 0 turned into numbers of at most 1 with the given sum, larger where the weight is larger."""
    low, high = 0.0, 1e9
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(1, middle * weights).sum() < total else (low, middle)
    return np.minimum(1, low * weights)


@each("seed", range(5))
@each("kind", EACH)
def test_the_bounds_are_the_textbook_s_objectives(kind, seed):
    case = Case(kind, seed)
    found = case.state.bounds()
    offset, half = (found.plus - found.minus) / 2, -(found.plus + found.minus) / 2
    assert found.dual == pytest.approx(case.dual(), rel=1e-12)
    assert found.primal == pytest.approx(case.primal(offset, half), rel=1e-9)
    assert found.primal > found.dual


@pytest.mark.parametrize("kind", EACH[:1] + EACH[2:])
def test_no_other_offset_comes_closer(kind):
    case = Case(kind, 7)
    found = case.state.bounds()
    offset, half = (found.plus - found.minus) / 2, -(found.plus + found.minus) / 2
    for move in (-0.5, -1e-3, 1e-3, 0.5):
        assert case.primal(offset + move, half) >= found.primal - 1e-9
        if kind.startswith("nu"):
            assert case.primal(offset, half + move) >= found.primal - 1e-9


@settings(max_examples=100)
@given(
    kind=st.sampled_from(EACH),
    seed=st.integers(0, 2**32 - 1),
    n=st.sampled_from([4, 10, 31]),
    C=st.sampled_from([1e-6, 1.0, 1e6]),
    scale=st.sampled_from([1e-8, 1.0, 1e8]),
)
def test_the_gap_is_never_negative_beyond_rounding(kind, seed, n, C, scale):
    case = Case(kind, seed, n, C)
    s = case.state
    s.gradient[:n] = scale * (case.K @ s.coefficients) + case.linear
    s.lengths = np.sqrt(scale) * s.lengths
    found = s.bounds()
    assert found.primal - found.dual >= -found.rounding
    assert found.rounding >= 0
    assert found.relative_gap >= 0


def test_the_relative_gap_leaves_rounding_out():
    assert Bounds(10.0, 9.0, 0, 0, 0.0).relative_gap == pytest.approx(0.1)
    assert Bounds(10.0, 9.0, 0, 0, 0.5).relative_gap == pytest.approx(0.05)
    assert Bounds(10.0, 9.0, 0, 0, 1.5).relative_gap == 0
    assert Bounds(-9.0, -10.0, 0, 0, 0.0).relative_gap == pytest.approx(0.1)
    assert Bounds(np.inf, 1.0, 0, 0, 0.0).relative_gap == np.inf
    assert Bounds(0.0, 0.0, 0, 0, 0.0).relative_gap == 0


@pytest.mark.parametrize("kind", EACH)
def test_kkt_is_the_worst_violation_of_any_point(kind):
    case = Case(kind, 3)
    s, found = case.state, case.state.bounds()
    s.plus[:5], s.minus[:5] = 0.0, 0.0
    s.plus[5:9], s.minus[5:9] = s.upper[5:9], 0.0
    worst = 0.0
    for i in range(case.n):
        for x, bound, slope in (
            (s.plus[i], s.upper[i], s.gradient[i] + s.width[i] + found.plus),
            (s.minus[i], s.lower[i], -s.gradient[i] + s.width[i] + found.minus),
        ):
            if x < bound:
                worst = max(worst, -slope)
            if x > 0:
                worst = max(worst, slope)
    assert s.kkt(found) == pytest.approx(worst)
    assert worst > 0


def test_two_points_at_their_optimum():
    """x = 1 and -1, C large: w = 1, both coefficients 1/2, f(x) = x: gap 0, no violation, both objectives 1/2."""
    y = np.array([1.0, -1.0])
    X = y[:, None]
    problem = SVMDual(Gram(Linear(), X), -y, 9.0 * (y > 0), 9.0 * (y < 0), plus=0.5 * (y > 0), minus=0.5 * (y < 0))
    s = State(problem)
    s.gradient[:] = X @ X.T @ s.coefficients - y
    found = s.bounds()
    assert (found.primal, found.dual, s.kkt(found)) == pytest.approx((0.5, 0.5, 0.0))
    assert found.relative_gap == 0
    assert s.free.all()
    assert s.sums() == 0


def test_the_phantom_takes_what_the_others_leave():
    case = Case("none", 1)
    s = case.state
    assert len(s.plus) == case.n + 1
    assert (s.plus - s.minus).sum() == pytest.approx(0, abs=1e-12)
    assert min(s.plus[-1], s.minus[-1]) == 0
    assert len(s.coefficients) == len(s.free) == case.n
    s.plus[:-1] = s.upper[:-1]
    s.balance()
    assert (s.plus - s.minus).sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("kind", EACH)
def test_what_the_sums_are(kind):
    case = Case(kind, 2)
    s = case.state
    expected = {"split": [s.plus.sum(), s.minus.sum()]}.get(case.problem.offset, [(s.plus - s.minus).sum()])
    assert s.sums() == pytest.approx(expected, abs=1e-12)


def test_the_floor_grows_with_the_kernel_and_the_coefficients():
    one, other = Case("svc").state, Case("svc").state
    other.plus *= 100
    assert other.floor > one.floor > 0
    assert one.floor < 1e-12


def test_a_start_is_copied_and_checked():
    X, one = np.eye(3), np.ones(3)
    gram = Gram(Linear(), X)
    start = 0.5 * one
    s = State(SVMDual(gram, -one, one, one, plus=start))
    s.plus[:] = 0.0
    assert (start == 0.5).all()
    with pytest.raises(ValueError, match=r"the start is infeasible: plus\[1\] = 2 is outside \[0, 1\]"):
        State(SVMDual(gram, -one, one, one, plus=np.array([0.0, 2.0, 0.0])))
    with pytest.raises(ValueError, match=r"the start is infeasible: minus\[2\] = -1 is outside \[0, 1\]"):
        State(SVMDual(gram, -one, one, one, minus=np.array([0.0, 0.0, -1.0])))
    with pytest.raises(ValueError, match="linear contains NaN"):
        State(SVMDual(gram, one * np.nan, one, one))
    with pytest.raises(ValueError, match="shape"):
        State(SVMDual(gram, np.ones(2), one, one))
