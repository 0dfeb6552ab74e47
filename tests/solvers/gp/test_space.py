"""Names, bounds and fixed parameters."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from mercer.gram import parameters
from mercer.kernels import RBF, Constant, FromFunction, Polynomial, Sigmoid
from mercer.points import Points
from mercer.solvers.gp.space import last_part, space_of

X = np.random.default_rng(0).normal(size=(20, 2)) * [1.0, 100.0]
Y = 10.0 * np.ones((20, 1))
KERNEL = 2.0 * RBF(scale=[1.0, 50.0]) + Constant(0.5)


def test_there_and_back():
    space = space_of(KERNEL, 0.3, Points(X), Y)
    assert space.names == ["left__factor", "left__base__scale[0]", "left__base__scale[1]", "right__value", "noise"]
    kernel, noise = space.at(space.start + np.log(2.0))
    np.testing.assert_allclose([p.value for p in parameters(kernel)], [4.0, 2.0, 100.0, 1.0])
    assert noise == pytest.approx(0.6)


def test_default_bounds_come_from_the_data():
    space = space_of(KERNEL, 0.3, Points(X), Y)
    low, high = space.bounds.T
    values = np.array([2.0, 1.0, 50.0, 0.5, 0.3])
    assert (low < values).all()
    assert (values < high).all()
    assert high[2] / high[1] == pytest.approx(X[:, 1].std() / X[:, 0].std(), rel=0.2)  # each scale by its feature
    assert (low[4], high[4]) == (pytest.approx(1e-4), pytest.approx(1e4))  # the mean square of the targets is 100
    small = space_of(KERNEL, 0.3, Points(sparse.csr_array(X)), Y)
    np.testing.assert_allclose(small.bounds, space.bounds, rtol=1e-6)


def test_points_that_are_no_numbers_have_bounds_too():
    space = space_of(2.0 * FromFunction(lambda a, b: float(a == b)), 0.1, Points(["a", "b"]), np.ones((2, 1)))
    assert space.names == ["factor", "noise"]
    assert np.isfinite(space.bounds).all()


def test_the_more_exact_name_decides():
    bounds = {"base__scale[1]": (3.0, 4.0), "scale": (1.0, 2.0), "left__base__scale": (1.5, 2.5), "noise": (0.1, 0.2)}
    bounds["left__base__scale[1]"] = bounds.pop("base__scale[1]")
    space = space_of(KERNEL, 0.3, Points(X), Y, bounds)
    np.testing.assert_array_equal(space.bounds[[1, 2, 4]], [[1.5, 2.5], [3.0, 4.0], [0.1, 0.2]])
    np.testing.assert_array_equal(space.values[[1, 2, 4]], [1.5, 4.0, 0.2])  # the start lies within


def test_held_and_why():
    space = space_of(
        1.0 * Polynomial(2, 0.0, 1.0) + Sigmoid(0.5, -1.0), 0.0, Points(X), Y, fixed=["gamma", "left__factor"]
    )
    assert space.free_names == [n for n in space.names if n not in space.held]
    assert space.held["noise"] == "it is 0, and a logarithmic scale has no zero"
    assert space.held["left__factor"] == "as asked"
    assert any(why.endswith("no sign") for why in space.held.values())


def test_noise_of_each_point_is_no_parameter():
    noise = np.full(20, 0.1)
    space = space_of(KERNEL, noise, Points(X), Y)
    assert "noise" not in space.names
    np.testing.assert_array_equal(space.at(space.start)[1], noise)
    beside = replace(space, known=np.arange(20.0))
    np.testing.assert_array_equal(beside.at(space.start)[1], noise + np.arange(20.0))
    np.testing.assert_array_equal(beside.of_rows(np.array([3, 7])).at(space.start)[1], [3.1, 7.1])


def test_bounds_that_were_reached_are_named():
    space = space_of(KERNEL, 0.3, Points(X), Y, {"left__factor": (0.5, 8.0)})
    theta = space.start.copy()
    assert space.at_bounds(theta) == []
    theta[0] = np.log(8.0)
    assert space.at_bounds(theta) == ["left__factor is at its upper bound 8"]
    pinned = space_of(KERNEL, 0.3, Points(X), Y, {"noise": (0.1, 0.1)})
    assert pinned.at_bounds(pinned.start) == []  # as asked


@pytest.mark.parametrize(
    ("bounds", "fixed", "said"),
    [
        ({"skale": (1, 2)}, (), "bounds names 'skale', which is no parameter of this model; they are left__factor"),
        ({}, ["nois"], "fixed names 'nois'"),
        ({"noise": (0.0, 1.0)}, (), r"the bounds of noise must satisfy 0 < low <= high < inf; they are \(0.0, 1.0\)"),
        ({"noise": (2.0, 1.0)}, (), "0 < low <= high"),
        ({"noise": 3.0}, (), "must be two numbers"),
    ],
)
def test_what_cannot_be_meant_is_said(bounds, fixed, said):
    with pytest.raises(ValueError, match=said):
        space_of(KERNEL, 0.3, Points(X), Y, bounds, fixed)


def test_last_part():
    assert last_part("left__base__scale[3]") == "scale"
    assert last_part("noise") == "noise"
