"""Numbers with derivatives: they are carried through arithmetic, and what loses them is noted."""

import math
import operator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.kernels import RBF
from mercer.points.formulas.dual import Tape, number, one_or_each, parameters_in, plain, substituted

positive = st.floats(0.1, 5.0)

FUNCTIONS = {
    "sum": lambda a, b: a + 2 * b - 3,
    "difference": lambda a, b: 1.5 - a - (b - a * b),
    "product": lambda a, b: a * b * a,
    "quotient": lambda a, b: a / b + 2.0 / a - b / 3,
    "power": lambda a, b: a**b + 2.0**a + b**3 + b**-0.5,
    "sign": lambda a, b: -a + abs(-b) + (+a),
    "functions": lambda a, b: np.exp(-a) * np.log(b) + np.sqrt(a) * np.tanh(b) + np.log1p(a * b),
    "numpy's numbers": lambda a, b: np.float64(2.0) * a + b / np.float64(3.0) - np.float64(1.0) ** b,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@given(a=positive, b=positive)
def test_derivatives_are_those_of_the_complex_step(name, a, b):
    f = FUNCTIONS[name]
    tape = Tape()
    value = f(*tape.parameters([a, b]))
    assert value.value == pytest.approx(f(a, b), rel=1e-14)
    assert not tape.lost
    if name == "sign":  # abs is not analytic
        assert value.slopes == {0: 0.0, 1: 1.0}
        return
    h = 1e-30
    exact = [f(a + 1j * h, b + 0j).imag / h, f(a + 0j, b + 1j * h).imag / h]
    found = [value.slopes.get(i, 0.0) for i in range(2)]
    np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-12)


LOSSES = {
    "float": float,
    "int": int,
    "round": round,
    "math": math.sqrt,
    "array": np.asarray,
    "array of floats": lambda a: np.array([a, 1.0]),
    "product with an array": lambda a: a * np.ones(3),
    "product of an array": lambda a: np.ones(3) * a,
    "unknown function": np.cbrt,
    "equality that holds": lambda a: a == 2.0,
    "membership": lambda a: a in (1.0, 2.0),
}


@pytest.mark.parametrize("name", LOSSES)
def test_what_loses_derivatives_is_noted_and_gives_the_value(name):
    tape = Tape()
    a, _ = tape.parameters([2.0, 3.0])
    np.testing.assert_array_equal(LOSSES[name](a), LOSSES[name](2.0))
    assert tape.lost == {0}


KEPT = {
    "order": lambda a: (a < 3, a <= 2, a > 3, a >= 3.0),
    "equality that fails": lambda a: (a == 3.0, a != 3.0),
    "truth": bool,
    "text": lambda a: (repr(a), f"{a:.3f}"),
    "hash": hash,
    "dimension": np.ndim,
    "scalar": np.isscalar,
}


@pytest.mark.parametrize("name", KEPT)
def test_what_keeps_derivatives_gives_what_a_float_gives(name):
    tape = Tape()
    assert KEPT[name](tape.parameters([2.0])[0]) == KEPT[name](2.0)
    assert not tape.lost


def test_zero_is_a_branch_of_its_own():
    tape = Tape()
    assert not tape.parameters([0.0])[0]
    assert tape.lost == {0}


def test_errors_are_those_of_floats():
    (a,) = Tape().parameters([0.0])
    with pytest.raises(ZeroDivisionError):
        1 / a
    with pytest.raises(TypeError):
        operator.add(a, "text")


def test_parameters_are_numbers_or_one_for_each_feature():
    (a,) = Tape().parameters([2.0])
    assert number(a) is a
    assert type(number(np.float32(2))) is float
    assert one_or_each([1, a])[1] is a
    assert one_or_each(np.array([1.0, 2.0])) == (1.0, 2.0)
    assert one_or_each(3) == 3.0


@dataclass(frozen=True)
class Map:
    period: object
    other: object = None


def test_numbers_are_found_and_replaced_within_maps_and_kernels():
    a, b = Tape().parameters([2.0, 3.0])
    map = Map(period=(a, 1.0), other=RBF(scale=a * b))
    assert parameters_in(map) == {0, 1}
    assert plain(map) == Map((2.0, 1.0), RBF(scale=6.0))
    moved = substituted(map, lambda dual: dual.moved(0, 0.5))
    assert moved == Map((2.5, 1.0), RBF(scale=7.5))
    untouched = Map((2.0, 1.0), RBF(scale=6.0))
    assert plain(untouched) is untouched
