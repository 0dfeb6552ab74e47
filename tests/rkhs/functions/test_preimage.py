"""Points for functions: where they are known, whether searches arrive at minima, and what has none."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from cases import each
from mercer import RBF, Cauchy, Delta, Linear, Matern, Polynomial, RationalQuadratic, RKHSFunction
from mercer.rkhs import preimages

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
MIXED = RNG.dirichlet(np.ones(40) * 0.2, size=6).T  # convex combinations: functions that are no images
KERNELS = {
    "rbf": RBF(1.5),
    "ard": RBF([1.0, 2.0, 5.0]),
    "matern": Matern(2.5, 2.0),
    "rational": RationalQuadratic(1.0, 2.0),
    "cauchy": Cauchy(2.0),
    "poly": Polynomial(3, 1.0, 0.5),
    "sum": RBF(1.5) + 0.1 * Linear(),
}
RADIAL = ("rbf", "ard", "matern", "rational", "cauchy")
METHODS = [(k, "gradient") for k in KERNELS] + [(k, "distances") for k in RADIAL] + [("rbf", "fixed_point")]
METHODS += [("ard", "fixed_point"), ("poly", "auto"), ("rbf", "auto")]


def distance(kernel, x, c):
    """|phi(x) - g| by the geometry of H."""
    return RKHSFunction(kernel, x[None], [1.0]).distance(RKHSFunction(kernel, X, c))


@each(("name", "method"), METHODS)
def test_images_of_points_lead_back_to_them(name, method):
    inside = 0.5 * (X[:5] + X[5:10])  # points that are no centres, by many centres
    kernel = KERNELS[name]
    if method == "distances":
        found = preimages(kernel, X, np.eye(40)[:, :5], method=method)
        np.testing.assert_allclose(found.points, X[:5], atol=1e-2)
        return
    both = np.vstack([X, inside])
    found = preimages(kernel, both, np.eye(45)[:, 40:], method=method)
    np.testing.assert_allclose(found.points, inside, atol=1e-4)
    assert found.distances.max() < 1e-4


@pytest.mark.parametrize("name", KERNELS)
def test_searches_end_in_minima_and_say_how_far_they_are(name):
    kernel = KERNELS[name]
    found = preimages(kernel, X, MIXED)
    for x, c, said in zip(found.points, MIXED.T, found.distances, strict=True):
        assert said == pytest.approx(distance(kernel, x, c), abs=1e-7)
        nearest = min(distance(kernel, z, c) for z in X)
        assert said <= nearest * (1 + 1e-9)
        better = minimize(lambda z, c=c: distance(kernel, z, c), x, method="Nelder-Mead", options={"maxiter": 400})
        assert said <= better.fun * (1 + 1e-6) + 1e-9


def test_fixed_point_and_gradient_agree():
    one = preimages(RBF(1.5), X, MIXED, method="fixed_point")
    two = preimages(RBF(1.5), X, MIXED, method="gradient")
    np.testing.assert_allclose(one.distances, two.distances, rtol=1e-6)
    np.testing.assert_allclose(one.points, two.points, atol=1e-3)


def test_negative_coefficients_do_not_lead_away():
    C = MIXED - 0.5 * MIXED[::-1]  # the weights of the mean nearly cancel
    found = preimages(RBF(0.7), X, C, method="fixed_point")
    assert np.isfinite(found.points).all()
    for c, said in zip(C.T, found.distances, strict=True):
        assert said <= min(distance(RBF(0.7), z, c) for z in X) * (1 + 1e-9)


def test_the_linear_kernel_has_a_formula():
    found = preimages(Linear(), X, MIXED)
    np.testing.assert_allclose(found.points, MIXED.T @ X)
    assert found.distances.max() < 1e-6
    np.testing.assert_allclose(preimages(Linear(), sparse.csr_array(X), MIXED).points, found.points)


@pytest.mark.parametrize("method", ["distances", "fixed_point", "gradient"])
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_hostile_centres(method, shift):
    for data in (np.full((6, 2), 3.0), np.repeat(X[:2, :2], 3, axis=0), X[:1, :2]):
        C = np.full((len(data), 1), 1.0 / len(data))
        found = preimages(RBF(1.0), data + shift, C, method=method)
        assert np.isfinite(found.points).all()
        assert np.abs(found.points - shift).max() <= 10
    nothing = preimages(RBF(1.0), X, np.zeros((40, 1)), method=method)
    assert np.isfinite(nothing.points).all()
    assert nothing.distances[0] == pytest.approx(1)


@pytest.mark.parametrize("unit", [1e-60, 1e60])
def test_units_do_not_matter(unit):
    expected = preimages(RBF(1.5), X, MIXED).points
    np.testing.assert_allclose(preimages(RBF(1.5 * unit), X * unit, MIXED).points / unit, expected, atol=1e-5)
    by_gradient = preimages(RBF(1.5 * unit), X * unit, MIXED, method="gradient").points / unit
    np.testing.assert_allclose(by_gradient, expected, atol=1e-3)


@pytest.mark.parametrize(
    ("kernel", "coefficients", "method", "error", "says"),
    [
        (RBF(1.0), MIXED, "best", ValueError, "method must be 'auto' or one of 'distances', 'fixed_point', 'gradient'"),
        (RBF(1.0), MIXED[:5], "auto", ValueError, "one row for each of the 40 centres"),
        (RBF(1.0), MIXED * np.nan, "auto", ValueError, "must be finite numbers"),
        (Matern(1.5, 1.0), MIXED, "fixed_point", ValueError, "'fixed_point' is for RBF kernels"),
        (
            Polynomial(2),
            MIXED,
            "distances",
            ValueError,
            "'distances' needs a kernel that is a function of the distance",
        ),
        (Delta(), MIXED, "auto", TypeError, "has no gradient.*learns a way back without one"),
    ],
    ids=["method", "rows", "nan", "fixed_point", "distances", "delta"],
)
def test_what_is_refused(kernel, coefficients, method, error, says):
    with pytest.raises(error, match=says):
        preimages(kernel, X, coefficients, method=method)
