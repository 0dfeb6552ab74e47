"""The gain of a formula bounds what an error of the squared distance does to its values."""

import numpy as np
import pytest

from cases import each
from mercer.kernels import RBF, Cauchy, Constant, Delta, Linear, Matern, Polynomial, RationalQuadratic, Wendland
from mercer.points import Points
from mercer.points.formulas.conditioning import gain
from mercer.points.formulas.formula import trace

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
    for kernel in (RBF(2.0) + Linear(), RBF(2.0) * Linear(), 7.0 * RBF(2.0) + Polynomial(3)):
        assert gain(trace(kernel.of, X), ()) == alone


def test_each_path_has_its_own_gain():
    kernel = RBF(2.0) * RBF(1.0).on([0]) + Matern(0.5, 1.0).on([1])
    formula = trace(kernel.of, Points(np.ones((3, 2))))
    paths = {leaf.path for leaf in _leaves(formula)}
    found = {path: gain(formula, path) for path in paths}
    assert sorted(found.values()) == [0.125, 0.5, np.inf]


def _leaves(formula):
    from mercer.points.formulas.formula import leaves

    return leaves(formula)
