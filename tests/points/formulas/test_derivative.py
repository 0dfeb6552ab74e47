"""Derivatives of formulas, at kinks and beyond the range too; and their gain, a bound on what errors do to values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from mercer.kernels import (
    RBF,
    Cauchy,
    Constant,
    Delta,
    Kernel,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Wendland,
    kernel,
)
from mercer.points import Comparison, Formula, Points, trace
from mercer.points.formulas.derivative import factored, gain, has_jumps, has_poles, partials, watch
from mercer.points.formulas.dual import Tape
from mercer.points.formulas.formula import NAMESPACE, leaves

VALUES = np.linspace(-2.9, 3.1, 61).round(1)  # 1 among them
X, ONE = Points(VALUES[:, None]), Points([[1.0]])  # whose inner products are the values themselves


def values(formula):
    if not isinstance(formula, Formula):
        return np.full(len(VALUES), formula)
    return Comparison(lambda pair: formula, X, ONE, formula).dense().ravel()


def derivative(of):
    """Return the values of the derivative in the inner product."""
    formula = trace(of, X)
    total = 0.0
    for leaf, part in partials(formula).leaves:
        assert leaf.kind == "dot"
        total = total + part
    return values(total)


# Functions of one variable, as kernels write them: f(t, pair) with t the statistic.
RULES = {
    "sum": lambda t, p: t + t * 3 - 2,
    "difference": lambda t, p: (2 - t) - (t - 1) * t,
    "product": lambda t, p: t * t * (t + 1),
    "quotient": lambda t, p: t / (4 + t) + 3 / (5 - t),
    "negative": lambda t, p: -t / 3,
    "whole power": lambda t, p: t**4 + (t + 5) ** -3,
    "power": lambda t, p: (t * t + 1) ** 1.7 + (t + 4) ** 0.3 + (t + 4) ** -0.4,
    "root": lambda t, p: p.xp.sqrt(t * t + 1),
    "exponential": lambda t, p: p.xp.exp(-0.5 * t * t),
    "logarithm": lambda t, p: p.xp.log(t + 4) + p.xp.log1p(t * t),
    "tangent": lambda t, p: p.xp.tanh(0.7 * t + 0.1),
    "damped 3/2": lambda t, p: p.damped(t * t + 0.5, 0.0),
    "damped 5/2": lambda t, p: p.damped(t * t + 0.5, 1 / 3),
    "damped, other": lambda t, p: p.damped(t * t + 0.5, 0.2),
}


class ComplexPair:
    """Arrays of complex numbers in place of statistics: the imaginary part is the derivative, without rounding."""

    class xp:  # noqa: N801 - the name of the attribute
        sqrt, exp, log, tanh = (staticmethod(f) for f in (np.sqrt, np.exp, np.log, np.tanh))
        log1p = staticmethod(lambda t: np.log(1 + t))

    @staticmethod
    def damped(square, p):
        r = np.sqrt(square)
        return (1 + r + p * r * r) * np.exp(-r)


def exact(f):
    return f(VALUES + 1e-30j, ComplexPair).imag / 1e-30


@pytest.mark.parametrize("name", RULES)
def test_each_rule_is_exact(name):
    f = RULES[name]
    expected = exact(f)
    found = derivative(lambda pair: f(pair.dot, pair))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13 * np.abs(expected).max())


def compose(inner):
    unary = st.sampled_from(["square", "exp", "log1p", "sqrt", "tanh", "inverse", "cube", "power", "damped"])
    binary = st.sampled_from(["add", "mul", "sub", "div"])
    return st.one_of(st.tuples(unary, inner), st.tuples(binary, inner, inner))


expressions = st.recursive(st.sampled_from([("t",), ("scaled",)]), compose, max_leaves=6)


def evaluate(expression, t, pair):
    op, *args = expression
    a, *rest = [evaluate(arg, t, pair) for arg in args] or [t]
    return {
        "t": lambda: a,
        "scaled": lambda: 0.3 * a + 0.1,
        "square": lambda: 0.5 * a**2,
        "cube": lambda: 0.1 * a**3,
        "exp": lambda: pair.xp.exp(-0.1 * a * a),
        "log1p": lambda: pair.xp.log1p(a * a),
        "sqrt": lambda: pair.xp.sqrt(a * a + 1),
        "tanh": lambda: pair.xp.tanh(a),
        "inverse": lambda: 1 / (1 + a * a),
        "power": lambda: (1 + a * a) ** 0.3,
        "damped": lambda: pair.damped(a * a + 0.1, 1 / 3),
        "add": lambda: a + rest[0],
        "sub": lambda: a - 0.37 * rest[0],
        "mul": lambda: 0.5 * a * rest[0],
        "div": lambda: a / (2 + rest[0] * rest[0]),
    }[op]()


@settings(max_examples=150, deadline=None)
@given(expressions)
def test_compositions_are_exact(expression):
    with np.errstate(all="ignore"):
        expected = exact(lambda t, pair: evaluate(expression, t, pair))
        size = np.abs(evaluate(expression, VALUES + 0j, ComplexPair)).max()
    if not np.isfinite(expected).all() or max(size, np.abs(expected).max()) > 1e50:
        return
    found = derivative(lambda pair: evaluate(expression, pair.dot, pair))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12 * (np.abs(expected).max() + size))


def test_minima_and_maxima_have_the_derivative_of_what_they_choose():
    t = VALUES
    np.testing.assert_array_equal(derivative(lambda p: p.xp.minimum(p.dot, 1.0)), t <= 1)
    np.testing.assert_array_equal(derivative(lambda p: p.xp.maximum(p.dot, 1.0)), t >= 1)
    np.testing.assert_array_equal(derivative(lambda p: p.xp.clip(p.dot, min=-1.0, max=1.0)), (t >= -1) & (t <= 1))
    np.testing.assert_allclose(
        derivative(lambda p: p.xp.minimum(p.dot**2, 2 - p.dot)), np.where(t**2 <= 2 - t, 2 * t, -1), atol=1e-14
    )
    np.testing.assert_allclose(
        derivative(lambda p: p.xp.maximum(p.dot**2, 2 - p.dot)), np.where(t**2 >= 2 - t, 2 * t, -1), atol=1e-14
    )


def test_the_angle_has_its_derivative():
    found = derivative(lambda p: p.xp.atan2(p.dot, p.dot**2 + 1))
    a, b = VALUES, VALUES**2 + 1
    np.testing.assert_allclose(found, (b - a * 2 * VALUES) / (a**2 + b**2), rtol=1e-12, atol=1e-15)


def test_a_test_for_zero_has_no_slope_and_is_a_jump():
    formula = trace(lambda pair: pair.equal * pair.dot, X)
    assert has_jumps(formula)
    assert not has_jumps(trace(RBF(1.0).of, X))
    assert {leaf.kind for leaf, _ in partials(formula).leaves} == {"dot"}


# -- kinks and the range ----------------------------------------------------------------------------------


def test_a_root_at_zero_gives_zero_not_infinity():
    formula = trace(lambda pair: pair.xp.exp(-pair.xp.sqrt(pair.sqdist())), X)
    [(leaf, slope)] = partials(formula).leaves
    assert leaf.kind == "sqdist"
    assert has_poles(slope)
    assert not has_poles(partials(trace(Matern(1.5, 1.0).of, X)).leaves[0][1])
    square = (VALUES - 1.0) ** 2
    found = values(slope)
    with np.errstate(divide="ignore"):
        expected = -np.exp(-np.sqrt(square)) / (2 * np.sqrt(square))
    apart = square > 1e-20
    np.testing.assert_allclose(found[apart], expected[apart], rtol=1e-12)
    assert (~apart).sum() == 1
    assert found[~apart] == 0


@pytest.mark.parametrize("scale", [1e-160, 1e-300])
def test_infinite_distances_leave_finite_derivatives(scale):
    for k in (RBF(scale), Matern(0.5, scale), Matern(2.5, scale)):
        for _, slope in partials(trace(k.of, X)).leaves:
            assert np.isfinite(values(factored(slope)[1])).all()


def test_an_overall_factor_is_taken_out():
    [(_, slope)] = partials(trace(Polynomial(2, 1.0, 1e-200).of, X)).leaves
    factor, rest = factored(slope)
    assert factor == pytest.approx(2e-200)
    assert isinstance(rest, Formula)
    assert factored(3.0) == (3.0, 1.0)


# -- constants --------------------------------------------------------------------------------------------


def in_parameters(of, theta):
    """Return the values of the derivative in each parameter."""
    tape = Tape()
    formula = watch(lambda pair: of(pair.dot, pair, *tape.parameters(theta)), X)
    assert not tape.lost
    found = [0.0] * len(theta)
    for constant, part in partials(formula).constants:
        for i, slope in constant.slopes.items():
            found[i] = found[i] + part * slope
    return [values(f) for f in found]


CONSTANTS = {
    "sum": (lambda t, p, a, b: (a + t) - b, [0.3, 2.0]),
    "product": (lambda t, p, a, b: a * (b * t + a), [0.3, 2.0]),
    "quotient": (lambda t, p, a, b: a / (4 + t) + t / b, [0.3, 2.0]),
    "reversed": (lambda t, p, a, b: (a - t) * (b - t), [0.3, 2.0]),
    "powers": (lambda t, p, a, b: (t + 4) ** a + (t + 5) ** b, [0.3, 2.0]),
    "whole powers": (lambda t, p, a, b: (t + 4) ** a + (t + 5) ** b, [1.0, -3.0]),
    "functions": (lambda t, p, a, b: p.xp.exp(-a * t) * p.xp.sqrt(b) + p.xp.tanh(a * b + t), [0.3, 2.0]),
    "equal values": (lambda t, p, a, b: p.xp.exp(-a * t) + p.xp.exp(-b * t), [0.7, 0.7]),
    "neutral values": (lambda t, p, a, b: t * a + b, [1.0, 0.0]),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_have_exact_derivatives(name):
    f, theta = CONSTANTS[name]
    found = in_parameters(f, theta)
    for i in range(len(theta)):
        moved = [complex(v, 1e-30 * (i == j)) for j, v in enumerate(theta)]
        expected = f(VALUES + 0j, ComplexPair, *moved).imag / 1e-30
        np.testing.assert_allclose(found[i], expected, rtol=1e-12, atol=1e-14 * np.abs(expected).max())


def test_bounds_have_the_derivative_where_they_are_chosen():
    low, high = in_parameters(lambda t, p, a, b: p.xp.clip(t, min=a, max=b), [-1.0, 1.0])
    np.testing.assert_array_equal(low, VALUES < -1)
    np.testing.assert_array_equal(high, VALUES > 1)


def test_derivatives_share_what_they_have_in_common():
    formula = trace(RBF([1.0]).of, X)
    [(_, slope)] = partials(formula).leaves
    assert factored(slope)[1] == formula


def test_maps_keep_parameters_in_plain_sight_and_others_are_noted():
    tape = Tape()
    (period,) = tape.parameters([2.0])
    periodic = Periodic(period)
    tape.lost.clear()  # of what the check of the parameter did
    assert isinstance(watch(periodic.of, X), Formula)
    assert not tape.lost

    @kernel
    class Hidden(Kernel):
        power: float = 2.0

        def of(self, pair):
            return pair.through(lambda points: points.vectors * self.power).dot

    assert isinstance(watch(Hidden(period).of, X), Formula)
    assert tape.lost == {0}


def test_what_symbols_cannot_follow_is_none_and_constants_are_numbers():
    assert watch(Matern(0.8, 1.0).of, X) is None
    assert watch(lambda pair: 2.0, X) == 2.0
    assert watch(lambda pair: "text", X) is None


def test_the_namespace_takes_numbers_with_derivatives():
    tape = Tape()
    (a,) = tape.parameters([0.5])
    assert NAMESPACE.exp(a).slopes[0] == pytest.approx(np.exp(0.5))
    assert not tape.lost
    assert NAMESPACE.minimum(a, 1.0) == 0.5
    assert tape.lost == {0}


# -- conditioning -----------------------------------------------------------------------------------------

WELL = [
    RBF(0.7),
    RBF(3.0) ** 3,
    RBF(1.0) * RBF(2.0),
    2.5 * RBF(1.0) + Cauchy(0.5),
    Constant(2.0) + RBF(1.0),
    Constant(2.0) * RBF(1.0),
    Cauchy(0.3),
    Cauchy(1.0) ** 2 * RBF(2.0),
    RationalQuadratic(0.7, 1.3),
    RationalQuadratic(3.0, 1.3),
    RationalQuadratic(40.0, 0.4),
    RBF(1.0).exp(),
    (0.9 * RBF(1.0)).geometric(),
    RBF(2.0).normalized(),
    Matern(1.5, 0.7),
    Matern(2.5, 1.3),
    RBF(1.0) * Matern(1.5, 1.0),
    RBF(1.0) + Matern(2.5, 1.0),
]
ILL = [
    Matern(0.5, 1.0),
    RBF(1.0) * Matern(0.5, 1.0),
    RBF(1.0) + Matern(0.5, 1.0),
    Wendland(scale=1.0),
    RBF([1.0]),  # one scale per feature
    RBF(1.0).geometric(),  # a pole at distance 0
]


def points(distances):
    """A first point, and others at the given distances from it, on a line."""
    return np.concatenate([[0.0], distances])[:, None]


@each("kernel", WELL, ids=repr)
def test_the_gain_bounds_the_relative_derivative(kernel):
    at = np.sqrt(np.concatenate([np.linspace(1e-4, 1, 200), np.geomspace(1, 100, 200)]))
    bound = gain(trace(kernel.of, Points(points(at))), ())
    step = 1e-5
    low, high = (kernel(points(np.sqrt(at**2 + s)))[0, 1:] for s in (-step, step))
    derivative = np.abs(high - low) / (2 * step) / np.maximum(low, 1e-300)
    assert np.isfinite(bound)
    assert derivative.max() <= bound * (1 + 1e-4)
    assert derivative.max() >= bound / 20  # and does not exaggerate


@pytest.mark.parametrize("kernel", ILL, ids=repr)
def test_formulas_that_need_every_digit_of_a_small_distance_have_no_gain(kernel):
    assert gain(trace(kernel.of, Points(points(np.ones(3)))), ()) == np.inf


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2), Delta(), Constant(1.0) * Linear()], ids=repr)
def test_formulas_without_squared_distances_do_not_depend_on_their_error(kernel):
    assert gain(trace(kernel.of, Points(points(np.ones(3)))), ()) == 0


def test_a_term_without_distances_does_not_hide_or_magnify_the_error_of_another():
    X = Points(points(np.ones(3)))
    alone = gain(trace(RBF(2.0).of, X), ())
    for whole in (RBF(2.0) + Linear(), RBF(2.0) * Linear(), 7.0 * RBF(2.0) + Polynomial(3)):
        assert gain(trace(whole.of, X), ()) == alone


def test_each_path_has_its_own_gain():
    kernel = RBF(2.0) * RBF(1.0).on([0]) + Matern(0.5, 1.0).on([1])
    formula = trace(kernel.of, Points(np.ones((3, 2))))
    paths = {leaf.path for leaf in leaves(formula)}
    found = {path: gain(formula, path) for path in paths}
    assert sorted(found.values()) == [0.125, 0.5, np.inf]
