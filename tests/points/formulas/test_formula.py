"""Formulas: what tracing finds, what it shares, and that the core's program computes what arrays would."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from mercer import _core
from mercer.kernels import RBF, Cauchy, Laplacian, Linear, Matern, Polynomial, RationalQuadratic, Wendland
from mercer.points import Block, Comparison, Formula, Points, trace
from mercer.points.formulas.formula import leaves
from mercer.points.formulas.pair import squared_norms
from mercer.points.formulas.program import OP, STAT, compile_formula

RNG = np.random.default_rng(0)
X = Points(np.abs(RNG.standard_normal((40, 3))))
Z = Points(np.abs(RNG.standard_normal((70, 3))))
NAMES = {number: name for name, number in OP.items()}


def program(of, points=X):
    formula = trace(of, points)
    assert formula is not None
    return compile_formula(formula)


def operations(of):
    return [NAMES[op] for op, *_ in program(of).code]


def assert_agrees(of, rtol=1e-12):
    """The core's values are those of the same code on arrays."""
    for left, right in ((X, None), (X, Z)):
        comparison = Comparison(of, left, right)
        expected = np.broadcast_to(of(Block(left, right or left)), comparison.shape)
        np.testing.assert_allclose(comparison.dense(), expected, rtol=rtol, atol=1e-300)
    return comparison


# -- sharing ----------------------------------------------------------------------------------------------


def test_five_kernels_of_one_distance_ask_for_it_once():
    five = RBF(1.0) + Matern(1.5, 2.0) + RationalQuadratic(0.7, 3.0) + Cauchy(0.5) + Wendland(1, 4.0)
    p = program(five.of)
    assert [leaf.kind for leaf in p.stats] == ["sqdist"]
    assert [NAMES[op] for op, *_ in p.code].count("stat") == 1
    assert_agrees(five.of)


def test_each_statistic_is_computed_once():
    k = RBF(1.0) * Linear() + Laplacian(2.0) * Linear() + RBF(3.0)
    assert sorted(leaf.kind for leaf in program(k.of).stats) == ["dot", "l1", "sqdist"]


def test_equal_subexpressions_are_one_node():
    assert operations((RBF(1.0) + RBF(1.0)).of).count("exp") == 1
    assert operations((RBF(1.0) * RBF(1.0) + RBF(1.0)).of).count("exp") == 1
    mixed = operations((RBF(1.0) + RBF(2.0)).of)
    assert mixed.count("exp") + mixed.count("exp_add") == 2


def test_scales_per_feature_are_statistics_of_their_own():
    k = RBF([1.0, 2.0, 3.0]) + RBF([3.0, 2.0, 1.0]) + RBF(1.0)
    assert len(program(k.of).stats) == 3
    assert len(program((RBF([1.0, 2.0, 3.0]) + Matern(0.5, [1.0, 2.0, 3.0])).of).stats) == 1


def test_extreme_scales_are_applied_before_squaring():
    formula = trace((RBF(1.0) + RBF(1e-150)).of, X)
    extreme = [leaf for leaf in leaves(formula) if leaf.scale == 1e-150]
    assert len(compile_formula(formula, frozenset(extreme)).stats) == 2
    assert len(compile_formula(formula).stats) == 1


def test_columns_are_views_of_their_own():
    k = RBF(1.0).on([0]) + RBF(2.0).on([0]) + RBF(1.0).on([1])
    p = program(k.of)
    assert len(p.stats) == 2
    assert len({leaf.path for leaf in p.stats}) == 2


def test_a_compiled_formula_is_remembered():
    a, b = trace(RBF(1.5).of, X), trace(RBF(1.5).of, Z)
    assert a == b
    assert hash(a) == hash(b)
    assert compile_formula(a) is compile_formula(b)
    assert a != trace(RBF(1.6).of, X)
    assert a != "formula"


def test_constants_are_folded():
    assert operations(lambda p: -2.0 * (3.0 * p.dot) * 1.0 + 0.0 + 1 - 4) == ["stat", "affine"]
    assert operations(RBF(2.0).of) == ["stat", "exp"]
    assert program(RBF(2.0).of).constants[1] == [-0.125, 0.0, 0.0]


# -- registers --------------------------------------------------------------------------------------------


def test_registers_are_used_again():
    def chain(pair):
        total = pair.dot
        for i in range(60):
            total = total + pair.xp.exp(-pair.sqdist() * (i + 1.0))
        return total

    p = program(chain)
    assert len(p.code) > 60
    assert p.registers <= 4
    assert_agrees(chain)


def test_a_value_lives_until_its_last_use():
    def formula(pair):
        a, b, c = pair.dot, pair.sqdist(), pair.l1()
        d = a * b
        return (d + c) * (d - a) + b * (c + d) - a / (1 + b + c)

    assert_agrees(formula)


def test_a_single_statistic_needs_one_register():
    p = program(Linear().of)
    assert (len(p.code), p.registers, p.result) == (1, 1, 0)


def test_many_values_at_once():
    def balanced(pair):
        values = [pair.xp.exp(-pair.sqdist() * (0.1 * i + 0.1)) for i in range(32)]
        while len(values) > 1:
            values = [a * b + a for a, b in zip(values[::2], values[1::2], strict=True)]
        return values[0]

    assert program(balanced).registers >= 6
    assert_agrees(balanced)


# -- what is traced ---------------------------------------------------------------------------------------

TRACED = {
    "arithmetic": lambda p: (p.dot + 1) * 2 - p.l1() / 3 + (4 - p.dot) * (1 / (1 + p.sqdist())) - (-p.dot),
    "quotient": lambda p: p.dot / (1 + p.sqdist()),
    "powers": lambda p: p.dot**2 + (1 + p.dot) ** 3 + (1 + p.l1()) ** -2 + (1 + p.l1()) ** 1 + (2 + p.dot) ** 0,
    "real powers": lambda p: (1 + p.sqdist()) ** 0.5 + (1 + p.sqdist()) ** 1.7 + (1 + p.l1()) ** -0.3,
    "functions": lambda p: p.xp.exp(-p.l1()) + p.xp.log(1 + p.dot) + p.xp.log1p(p.dot) + p.xp.sqrt(p.sqdist()),
    "more functions": lambda p: p.xp.tanh(p.dot) + p.xp.atan2(p.dot, 1 + p.l1()),
    "bounds": lambda p: p.xp.minimum(p.dot, 1.0) + p.xp.maximum(0.5, p.l1()) + p.xp.minimum(p.dot, p.l1()),
    "clip": lambda p: p.xp.clip(p.dot, min=0.2, max=0.9) + p.xp.clip(p.dot, 0.1) + p.xp.clip(p.dot, max=0.3),
    "other statistics": lambda p: p.chi2 + p.minimum + p.sqsum,
    "scaled": lambda p: p.sqdist(2.0) + p.l1(3) + p.sqdist([1.0, 2.0, 3.0]) + p.l1((0.5, 1, 2)),
    "numpy scalars": lambda p: p.sqdist(np.float32(2)) + p.l1(np.int64(3)) * np.float32(0.5) - np.uint8(3),
    "quotient by a numpy scalar": lambda p: p.dot / np.float32(3) + np.float64(1) / (1 + p.dot),
    "points": lambda p: p.left(squared_norms) + p.right(squared_norms) - 2 * p.dot + p.outer(squared_norms),
    "equality": lambda p: p.equal + 1,
    "functions of numbers": lambda p: p.dot * p.xp.maximum(2.0, 3) + p.xp.sqrt(2) + p.xp.atan2(1.0, 2) + p.xp.exp(0),
    "numpy functions": lambda p: np.exp(-p.l1()) + np.log(1 + p.dot) + np.log1p(p.dot) + np.sqrt(p.sqdist()),
    "more numpy functions": lambda p: np.tanh(p.dot) + np.arctan2(p.dot, 1 + p.l1()) + np.square(p.dot),
    "numpy bounds": lambda p: np.minimum(p.dot, 1.0) + np.maximum(0.5, p.l1()),
    "numpy arithmetic": lambda p: np.add(1.0, p.dot) * np.multiply(p.dot, 2) - np.subtract(3.0, p.l1()),
    "more numpy arithmetic": lambda p: np.divide(2.0, 1 + p.dot) + np.power(p.dot, 3) + np.negative(p.l1()),
    "numpy scalars from the left": lambda p: np.float64(2) * p.dot + np.float64(1) - np.float64(3) * p.l1(),
}


@each("name", TRACED)
def test_traced_formulas_agree_with_arrays(name):
    assert assert_agrees(TRACED[name]).compiled


UNTRACEABLE = {
    "a numpy function without a symbolic form": lambda p: np.cos(p.l1()),
    "a function of the namespace without one": lambda p: p.xp.sin(p.l1()),
    "a keyword": lambda p: np.exp(-p.l1(), dtype=np.float64),
    "numpy.where": lambda p: np.where(p.sqdist() < 1, 1.0, 0.5),
    "a comparison": lambda p: (p.dot > 1) * 1.0,
    "abs": lambda p: abs(p.dot - 1),
    "the remainder": lambda p: p.dot % 2,
    "whole division": lambda p: p.dot // 1,
    "a power of a number": lambda p: 2**p.dot,
    "a power of a NumPy number": lambda p: np.float64(2) ** p.dot + np.power(2.0, p.dot),
    "a method": lambda p: p.dot.clip(0, 1),
    "indexing": lambda p: p.dot[...] * 1.0,
    "a reduction": lambda p: np.add.reduce([p.dot, p.l1()]),
    "an array": lambda p: p.dot + np.ones((1, 1)),
    "a power of an array": lambda p: p.dot ** np.ones((1, 1)),
    "the angle of a number": lambda p: p.xp.atan2(xp_one(p), p.dot),
    "a Python function": lambda p: p.call(lambda x, z: float(x @ z)),
    "differences": lambda p: p.differences(lambda d: (d**2).sum(axis=1)),
    "a plain number": lambda p: 2.0,
}


def xp_one(pair):
    return pair.dot * 0 + 1.0 if isinstance(pair.dot, np.ndarray) else 1.0


@each("name", UNTRACEABLE)
def test_untraceable_formulas_are_evaluated_on_arrays(name):
    comparison = assert_agrees(UNTRACEABLE[name])
    assert trace(UNTRACEABLE[name], X) is None
    assert not comparison.compiled


def test_a_branch_on_values_is_not_taken_blindly():
    def of(pair):
        return pair.dot if pair.dot.max() > 1e300 else pair.dot + 1

    def truthy(pair):
        return pair.dot if pair.dot is None or (pair.dot == 3) else pair.dot + 1

    assert trace(of, X) is None
    assert not Comparison(of, X).compiled
    assert trace(truthy, X) is not None  # equality of formulas is a question about the formulas


def test_errors_of_the_formula_itself_are_shown():
    with pytest.raises(ZeroDivisionError):
        Comparison(lambda p: p.dot * (1 / 0), X)
    with pytest.raises(TypeError, match="unsupported operand"):
        Comparison(lambda p: p.dot + None, X)
    with pytest.raises(AttributeError, match="sqdits"):
        Comparison(lambda p: p.sqdits(), X)


def test_symbols_refuse_to_become_arrays():
    seen = []

    def of(pair):
        seen.append(type(pair.dot))
        return np.asarray(pair.dot) + 1

    assert trace(of, X) is None
    assert seen == [Formula]
    assert_agrees(of)


# -- random formulas --------------------------------------------------------------------------------------


def _bounded(f):
    return lambda p, a: f(p, 1 / (1 + a * a))


UNARY = [
    lambda p, a: p.xp.exp(-(a * a)),
    lambda p, a: p.xp.tanh(a),
    lambda p, a: p.xp.sqrt(a * a + 0.1),
    lambda p, a: p.xp.log1p(a * a),
    lambda p, a: 1 / (2 + a * a),
    lambda p, a: p.xp.clip(a, min=-1.0, max=2.0),
    lambda p, a: 3 - a,
    lambda p, a: a * 0.7 + 0.1,
    _bounded(lambda p, a: a**3),
    _bounded(lambda p, a: (1 + a) ** 0.37),
]
BINARY = [
    lambda p, a, b: a + b,
    lambda p, a, b: a - b,
    lambda p, a, b: p.xp.tanh(a) * p.xp.tanh(b),
    lambda p, a, b: a / (1 + b * b),
    lambda p, a, b: p.xp.minimum(a, b),
    lambda p, a, b: p.xp.maximum(a, b),
    lambda p, a, b: p.xp.atan2(a, 1 + b * b),
]
LEAVES = [
    lambda p: p.dot,
    lambda p: p.sqdist(),
    lambda p: p.sqdist(1.7),
    lambda p: p.sqdist((0.5, 1.0, 2.0)),
    lambda p: p.l1(0.4),
    lambda p: p.chi2,
    lambda p: p.minimum,
    lambda p: p.sqsum,
    lambda p: p.left(squared_norms) + 0.5,
    lambda p: p.right(squared_norms) * 0.2,
]


@settings(max_examples=60)
@given(data=st.data())
def test_random_formulas_agree_with_arrays(data):
    """A stack machine draws any directed graph: values may be used often, late, or by both sides."""
    steps = data.draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 99), st.integers(0, 99), st.integers(0, 99)), max_size=40)
    )

    def of(pair):
        values = [LEAVES[0](pair), LEAVES[1](pair)]
        for kind, which, i, j in steps:
            a, b = values[-1 - i % len(values)], values[-1 - j % len(values)]
            if kind == 0:
                values.append(LEAVES[which % len(LEAVES)](pair))
            elif kind == 1:
                values.append(UNARY[which % len(UNARY)](pair, a))
            else:
                values.append(BINARY[which % len(BINARY)](pair, a, b))
        return values[-1] + 0.5 * values[len(values) // 2]

    left, right = X.take(slice(0, 9)), Z.take(slice(0, 21))
    comparison = Comparison(of, left, right)
    assert comparison.compiled
    expected = np.broadcast_to(of(Block(left, right)), (9, 21))
    np.testing.assert_allclose(comparison.dense(), expected, rtol=1e-9, atol=1e-9)


def test_every_statistic_has_a_number():
    assert set(STAT) == {"dot", "sqdist", "l1", "chi2", "minimum", "sqsum"}
    assert list(OP.values()) == list(range(len(OP)))


# -- inner products from distances ------------------------------------------------------------------------


def test_one_product_serves_inner_products_and_distances():
    k = RBF(2.0) + Polynomial(2) + Linear()
    on_sphere = RNG.standard_normal((30, 5))
    on_sphere /= np.linalg.norm(on_sphere, axis=1)[:, None]
    formula = trace(k.of, Points(on_sphere))
    assert len(compile_formula(formula, derived=frozenset([()])).stats) == 1
    assert len(compile_formula(formula).stats) == 2
    np.testing.assert_allclose(
        k(on_sphere), RBF(2.0)(on_sphere) + Polynomial(2)(on_sphere) + Linear()(on_sphere), rtol=1e-13, atol=1e-14
    )


def test_points_of_unlike_length_keep_their_inner_products():
    X = RNG.standard_normal((30, 5)) * np.logspace(-6, 6, 30)[:, None]
    k = RBF(2.0) + Linear()
    np.testing.assert_allclose(k(X), RBF(2.0)(X) + Linear()(X), rtol=1e-12)


# -- windows in which float32 sums are refined ------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "exponent"),
    [
        (RBF(0.5), lambda s: s / 0.5),
        (Laplacian(0.2), lambda s: s / 0.2),
        (Matern(0.5, 3.0), lambda s: np.sqrt(s) / 3),
        (Matern(1.5, 3.0), lambda s: np.sqrt(3 * s) / 6),
    ],
    ids=["RBF", "Laplacian", "Matern 1/2", "Matern 3/2"],
)
def test_the_window_covers_large_exponents(kernel, exponent):
    ((low, high),) = program(kernel.of).windows
    np.testing.assert_allclose([exponent(low), exponent(high)], [16, 110])


def test_kernels_without_exponentials_have_no_window():
    assert program(Linear().of).windows == [(0.0, 0.0)]
    assert program(Cauchy(1.0).of).windows == [(0.0, 0.0)]


def test_a_sum_of_functions_of_one_distance_needs_no_pass_for_each_addition():
    kernel = Matern(1.5, 2.0) + RBF(2.0) + RationalQuadratic(1.0, 2.0)
    X = np.random.default_rng(0).standard_normal((30, 3))
    program = compile_formula(trace(kernel.of, Points(X)))
    names = [_core.OPS[op] for op, *_ in program.code]
    assert "add" not in names
    assert "powi_add" in names
    np.testing.assert_allclose(kernel(X), sum(k(X) for k in (RBF(2.0), RationalQuadratic(1.0, 2.0), Matern(1.5, 2.0))))


def test_a_term_that_is_read_twice_is_computed_once():
    X = np.random.default_rng(0).standard_normal((30, 3))
    k = RBF(2.0)
    kernel = (k + Matern(1.5, 2.0)) * k
    names = [_core.OPS[op] for op, *_ in compile_formula(trace(kernel.of, Points(X))).code]
    assert sum(name.startswith("exp") for name in names) == 1
    np.testing.assert_allclose(kernel(X), (k(X) + Matern(1.5, 2.0)(X)) * k(X))
