"""Derivatives in parameters: of every kernel, against differences, scikit-learn and laws of scale."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.gaussian_process import kernels as sk

from cases import each
from mercer.gram import parameter_gradient, parameters, with_parameters
from mercer.gram.derivatives.tiles import Differences, Margins, Products, Spreads, Total, sweep
from mercer.kernels import (
    RBF,
    Cauchy,
    Constant,
    Delta,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    SpectralMixture,
    Wendland,
    kernel,
)
from mercer.points import Comparison, Points
from samples import SAMPLES, vectors
from slopes import composites_of, settled

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _same_numbers_in_any_order():
    global RNG
    RNG = np.random.default_rng(0)


def symmetric(n, seed=0):
    W = np.random.default_rng(seed).normal(size=(n, n))
    return W + W.T


def assert_is_derivative(k, X, rtol=1e-8, seed=0):
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    k, W = k.resolve(X), symmetric(n, seed)
    found = parameter_gradient(k, X, W)
    theta = np.array([p.value for p in parameters(k)])
    assert found.shape == theta.shape
    for i, p in enumerate(parameters(k)):

        def values(by, i=i):
            moved = theta.copy()
            moved[i] += by
            return with_parameters(k, moved)(X)

        unit = abs(p.value) or 1.0
        slope, doubt = settled(values, 1e-4 * unit)
        size = np.abs(W * slope).sum() + 1e-2 * np.abs(W * values(0.0)).sum() / unit  # terms may cancel each other
        assert abs(found[i] - (W * slope).sum()) <= rtol * size + 4 * np.abs(W * doubt).sum(), p
    return found


@each("sample", SAMPLES, ids=str)
def test_every_kernel_has_the_derivatives_of_its_values(sample):
    assert_is_derivative(sample.kernel, sample.points(20))


leaves = st.sampled_from(
    [
        RBF(1.3),
        RBF([0.7, 2.0, 5.0]),
        Matern(0.5, 2.0),
        Matern(1.5, [1.0, 2.0, 0.5]),
        Matern(2.5, 0.8),
        RationalQuadratic(0.4, 1.5),
        RationalQuadratic(2.0, [1.0, 0.5, 2.0]),
        Cauchy(2.0),
        Laplacian([3.0, 1.0, 2.0]),
        Periodic(3.0, 1.2),
        Wendland(2, 6.0),
        Polynomial(2, 0.3, 0.2),
        Linear(),
        Constant(0.7),
        Delta(),
        SpectralMixture([0.5], [0.1], [2.0]),
        RBF(0.9).on([0, 2]),
        Matern(0.8, 2.0),
    ]
)
composites = composites_of(leaves)


@settings(max_examples=40, deadline=None)
@given(composites, st.integers(0, 3))
def test_composites_have_the_derivatives_of_their_values(k, seed):
    X = vectors(8, seed=seed) / 2
    X[3] /= 30
    assert_is_derivative(k, X, rtol=1e-7, seed=seed)


# -- an independent referee -------------------------------------------------------------------------------

SCALES = [0.5, 1.0, 4.0]
PAIRS = {
    "RBF": (RBF(1.5), sk.RBF(1.5)),
    "RBF, ARD": (RBF(SCALES), sk.RBF(SCALES)),
    "Matern 1/2, ARD": (Matern(0.5, SCALES), sk.Matern(SCALES, nu=0.5)),
    "Matern 3/2, ARD": (Matern(1.5, SCALES), sk.Matern(SCALES, nu=1.5)),
    "Matern 5/2, ARD": (Matern(2.5, SCALES), sk.Matern(SCALES, nu=2.5)),
    "RationalQuadratic": (RationalQuadratic(0.7, 1.5), sk.RationalQuadratic(1.5, 0.7)),
    "product and sum": (
        2.0 * RBF(SCALES) + 0.5 * Matern(1.5, 2.0),
        sk.ConstantKernel(2.0) * sk.RBF(SCALES) + sk.ConstantKernel(0.5) * sk.Matern(2.0, nu=1.5),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_gradients_are_those_of_scikit_learn(name):
    ours, theirs = PAIRS[name]
    X, W = RNG.normal(size=(40, 3)), symmetric(40)
    # Theirs is in the logarithms of the parameters, which they sort by name.
    _, gradient = theirs(X, eval_gradient=True)
    expected = np.einsum("ij,ijp->p", W, gradient)
    found = parameter_gradient(ours, X, W) * [p.value for p in parameters(ours)]
    if name == "RationalQuadratic":
        expected = expected[[theirs.hyperparameters.index(h) for h in sorted(theirs.hyperparameters)]]
        found = found[[[p.name for p in parameters(ours)].index(n) for n in ("alpha", "scale")]]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_the_period_has_its_derivative_in_closed_form():
    x = np.concatenate([RNG.normal(size=12) * 20, [0.0, 3.0]])
    p, s, W = 1.7, 0.9, symmetric(14)
    apart = x[:, None] - x
    K = np.exp(-2 / s**2 * np.sin(np.pi * apart / p) ** 2)
    by_period = K * 2 / s**2 * np.sin(2 * np.pi * apart / p) * np.pi * apart / p**2
    by_scale = K * 4 / s**3 * np.sin(np.pi * apart / p) ** 2
    found = parameter_gradient(Periodic(p, s), x[:, None], W)
    size = [np.abs(W * d).sum() for d in (by_period, by_scale)]
    expected = [(W * d).sum() for d in (by_period, by_scale)]
    assert (np.abs(found - expected) <= [1e-9 * size[0], 1e-13 * size[1]]).all()


# -- laws -------------------------------------------------------------------------------------------------

OF_ONE_LENGTH = {
    "RBF": lambda u: RBF(1.3 * u),
    "RBF, ARD": lambda u: RBF([1.3 * u, 2 * u, u]),
    "Matern 1/2": lambda u: Matern(0.5, 1.3 * u),
    "Matern 1/2, ARD": lambda u: Matern(0.5, [1.3 * u, 2 * u, u]),
    "Matern 3/2": lambda u: Matern(1.5, [1.3 * u, 2 * u, u]),
    "Matern 5/2": lambda u: Matern(2.5, 1.3 * u),
    "RationalQuadratic": lambda u: RationalQuadratic(0.7, 1.3 * u),
    "Cauchy": lambda u: Cauchy([1.3 * u, 2 * u, u]),
    "Laplacian": lambda u: Laplacian(1.3 * u),
    "Laplacian, ARD": lambda u: Laplacian([1.3 * u, 2 * u, u]),
    "Wendland": lambda u: Wendland(1, 3 * u),
    "Wendland 0": lambda u: Wendland(0, 3 * u),
    "on columns": lambda u: RBF([1.3 * u, u]).on([2, 0]),
}


@each("name", OF_ONE_LENGTH)
@each("unit", [1e-150, 1e-100, 1e100, 1e150])
def test_the_unit_of_length_does_not_matter(name, unit):
    make = OF_ONE_LENGTH[name]
    X, W = vectors(12), symmetric(12)
    X[3] /= 30
    expected = parameter_gradient(make(1.0), X, W)
    lengths = ["scale" in p.name for p in parameters(make(1.0))]
    found = parameter_gradient(make(unit), X * unit, W) * np.where(lengths, unit, 1.0)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13 * np.abs(expected).max())


@each("name", OF_ONE_LENGTH)
@each("unit", [1e-300, 1e-170, 1e-12, 1e12, 1e170])
def test_scales_that_are_tiny_or_huge_beside_the_data_give_finite_numbers(name, unit):
    assert np.isfinite(parameter_gradient(OF_ONE_LENGTH[name](unit), vectors(12), symmetric(12))).all()


def test_far_offsets_and_tiny_scales_do_not_cancel():
    """Two distant clusters of close points, on a scale of the clusters: what products would lose."""
    cluster = np.arange(20) % 2
    far = RNG.normal(size=(20, 2)) / 1024 + 1e6 * cluster[:, None]
    near = far - 1e6 * cluster[:, None]  # without rounding: the differences within clusters are the same
    W = symmetric(20) * (cluster[:, None] == cluster)
    for k in (RBF([1e-3, 2e-3]), Laplacian([1e-3, 2e-3]), Matern(1.5, [1e-3, 2e-3])):
        found = parameter_gradient(k, far, W)
        np.testing.assert_allclose(found, parameter_gradient(k, near, W), rtol=1e-11)


@pytest.mark.parametrize("k", [2.0 * RBF([1.0, 2.0, 3.0]), Periodic(2.0), Polynomial(2).normalized()], ids=str)
def test_it_is_linear_in_the_matrix_and_blind_to_the_order_of_points(k):
    X, V, W = RNG.normal(size=(15, 3)), symmetric(15, 1), symmetric(15, 2)
    a, b = (parameter_gradient(k, X, M) for M in (V, W))
    np.testing.assert_allclose(parameter_gradient(k, X, 2 * V - 3 * W), 2 * a - 3 * b, rtol=1e-9, atol=1e-9)
    order = RNG.permutation(15)
    np.testing.assert_allclose(parameter_gradient(k, X[order], V[np.ix_(order, order)]), a, rtol=1e-9, atol=1e-10)


def test_many_tiles_agree_with_the_whole():
    """More points than a tile has rows and columns, for every kind of sum, on one and on many threads."""
    n = 1500
    X, W = RNG.normal(size=(n, 3)), symmetric(n)
    v = RNG.normal(size=(n, 2))
    values = Comparison((RBF(1.0).rescaled(lambda x: x[:, 0] ** 2 + 1)).of, Points(X))
    K = values.dense()
    apart = v[:, None, :] - v
    lopsided = trace_of_row(X)
    expected = [
        (W * K).sum(),
        (W * K) @ v,
        (W * lopsided.dense()).sum(axis=1),
        (W * lopsided.dense()).sum(axis=0),
        np.einsum("ij,ijk->k", W * K, apart**2),
        np.einsum("ij,ijk->k", W * K, np.abs(apart) * [2.0, 3.0]),
        W.sum(),
    ]
    found = sweep(
        [
            Total(values),
            Products(values, v),
            Margins(lopsided, 1),
            Margins(lopsided, 0),
            Spreads(values, v),
            Differences(values, np.ascontiguousarray(v.T), np.array([2.0, 3.0]), 1),
            Total(None),
        ],
        W,
    )
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, np.atleast_1d(b), rtol=1e-9, atol=1e-9 * np.abs(b).max())


def trace_of_row(X):
    """A formula that is not symmetric: exp(-|x - z|^2) |x|^2."""
    from mercer.points.formulas.pair import squared_norms

    return Comparison(lambda pair: pair.xp.exp(-pair.sqdist()) * pair.left(squared_norms), Points(X), Points(X))


# -- inputs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "k", [RBF(0.8), 1.5 * RBF([0.5, 2.0, 1.0, 3.0]), Matern(0.5, [0.5, 2.0, 1.0, 3.0]), Laplacian(1.0), Polynomial(2)],
    ids=str,
)  # fmt: skip
def test_sparse_points_give_what_dense_ones_give(k):
    dense = RNG.normal(size=(300, 4)) * (RNG.random((300, 4)) < 0.3)
    wide = np.zeros((300, 2000))
    wide[:, [3, 700, 1200, 1999]] = dense
    W = symmetric(300)
    scales = k.get_params().get("base__scale", k.get_params().get("scale"))
    if isinstance(scales, list):
        every = np.full(2000, 7.0)
        every[[3, 700, 1200, 1999]] = scales
        name = "base__scale" if "base__scale" in k.get_params() else "scale"
        full = k.__sklearn_clone__().set_params(**{name: every.tolist()})
        chosen = [p.index is None or p.index in (3, 700, 1200, 1999) for p in parameters(full)]
    else:
        full, chosen = k, slice(None)
    found = parameter_gradient(full, sparse.csr_array(wide), W)
    np.testing.assert_allclose(found[chosen], parameter_gradient(k, dense, W), rtol=1e-10)


@pytest.mark.parametrize("k", [RBF([1.0, 2.0, 0.5]), Matern(0.5, 1.0), Polynomial(2).normalized()], ids=str)
def test_float32_points_are_differentiated_in_double(k):
    X = vectors(20).astype(np.float32)
    W = symmetric(20)
    np.testing.assert_allclose(parameter_gradient(k, X, W), parameter_gradient(k, X.astype(float), W), rtol=1e-12)


@pytest.mark.parametrize("k", [2.0 * RBF([1.0, 2.0, 3.0]), Matern(0.5, 1.0), Constant(2.0) + Periodic(1.0)], ids=str)
def test_one_point_and_equal_points(k):
    one = parameter_gradient(k, [[1.0, 2.0, 3.0]], [[2.0]])
    factors = [1.0 if p.name.endswith(("factor", "value")) else 0.0 for p in parameters(k)]
    np.testing.assert_allclose(one, 2.0 * np.array(factors), atol=1e-9)
    W = symmetric(5)
    same = parameter_gradient(k, np.tile([1.0, 2.0, 3.0], (5, 1)), W)
    np.testing.assert_allclose(same, W.sum() * np.array(factors), atol=1e-9)


def test_parameters_that_wait_for_data_are_resolved_first():
    X, W = vectors(10), symmetric(10)
    np.testing.assert_array_equal(
        parameter_gradient(RBF("auto"), X, W), parameter_gradient(RBF("auto").resolve(X), X, W)
    )
    assert parameter_gradient(Linear(), X, W).shape == (0,)


# -- kernels of one's own ---------------------------------------------------------------------------------


@kernel
class ByFormula(Kernel):
    """Everything in sight."""

    rate: float = 0.7
    power: float = 1.5

    def of(self, pair):
        return (1 + self.rate * pair.sqdist()) ** -self.power


@kernel
class ByFloat(ByFormula):
    """A conversion in between."""

    def of(self, pair):
        return (1 + float(self.rate) * pair.sqdist()) ** -self.power


@kernel
class ByMath(ByFormula):
    """A function of math in between."""

    def of(self, pair):
        return math.exp(-self.rate) * pair.xp.exp(-self.power * pair.sqdist())


@kernel
class ByBranch(ByFormula):
    """A formula that holds for one value only."""

    def of(self, pair):
        return 1 / (1 + pair.sqdist()) if self.rate == 1.0 else (1 + pair.sqdist() * self.power) ** -self.rate


class Stretched:
    """A map that hides its number."""

    def __init__(self, by):
        self.by = by

    def __call__(self, points):
        return points.vectors * np.array([self.by, 1.0, 2.0])


@dataclass(frozen=True)
class Bent:
    """A map that shows its number."""

    by: float

    def __call__(self, points):
        return np.abs(points.vectors) ** self.by


@kernel
class ByHiddenMap(ByFormula):
    def of(self, pair):
        return pair.xp.exp(-self.power * pair.through(Stretched(self.rate)).sqdist())


@kernel
class ByOpenMap(ByFormula):
    def of(self, pair):
        seen = pair.through(Bent(self.rate))
        return pair.xp.exp(-self.power * seen.sqdist()) + 0.1 * seen.dot + 0.01 * seen.sqsum


@kernel
class ByMapBelowAbsolutes(ByFormula):
    def of(self, pair):
        return pair.xp.exp(-self.power * pair.through(Bent(self.rate)).l1())


@kernel
class ByFactor(ByFormula):
    """A factor per point, as a closure."""

    def of(self, pair):
        return pair.outer(lambda points: np.exp(-self.rate * points.vectors[:, 0])) * pair.xp.exp(-pair.sqdist())


@kernel
class ByTwo(ByFormula):
    """One number in two places, another in a statistic that is asked for twice."""

    def of(self, pair):
        scales = [self.power, self.rate, 1.0]
        return self.rate * pair.xp.exp(-pair.sqdist(scales)) / (1 + self.rate * pair.sqdist(scales))


OWN = [ByFormula, ByFloat, ByMath, ByBranch, ByHiddenMap, ByOpenMap, ByMapBelowAbsolutes, ByFactor, ByTwo]


@each("cls", OWN, ids=lambda cls: cls.__name__)
@each("rate", [0.7, 1.0])
def test_kernels_of_ones_own_are_differentiated_however_they_use_their_numbers(cls, rate):
    found = assert_is_derivative(cls(rate), RNG.normal(size=(15, 3)))
    assert (found != 0).sum() >= (1 if cls in (ByBranch, ByFactor) else 2)


def test_parts_of_a_sum_that_symbols_cannot_follow_do_not_concern_the_others():
    X, W = RNG.normal(size=(15, 3)), symmetric(15)
    found = parameter_gradient(RBF([1.0, 2.0, 3.0]) + Matern(0.8, 1.0), X, W)
    np.testing.assert_array_equal(found[:3], parameter_gradient(RBF([1.0, 2.0, 3.0]), X, W))
    assert found[3] == pytest.approx(parameter_gradient(Matern(0.8, 1.0), X, W)[0], rel=1e-12)


# -- errors -----------------------------------------------------------------------------------------------


def test_wrong_matrices_are_refused():
    X = vectors(6)
    with pytest.raises(ValueError, match=r"W has shape \(5, 5\); for 6 points it must be a symmetric 6 x 6 matrix"):
        parameter_gradient(RBF(1.0), X, np.eye(5))
    with pytest.raises(ValueError, match=r"W is not symmetric: its row 3 is not its column 3"):
        parameter_gradient(RBF(1.0), X, np.triu(np.ones((6, 6))))
    with pytest.raises(ValueError, match="row 3 of W contains NaN"):
        parameter_gradient(RBF(1.0), X, np.full((6, 6), np.nan))


def test_derivatives_beyond_the_range_are_named():
    with pytest.raises(FloatingPointError, match=r"a derivative of Polynomial\(\) is outside the range of float64"):
        parameter_gradient(Polynomial(3), vectors(6) * 1e150, np.ones((6, 6)))
    W = np.full((6, 6), 1e300)
    with pytest.raises(FloatingPointError, match=r"the derivative of RBF\(scale=1e-200\) in scale is outside"):
        parameter_gradient(RBF(1e-200), vectors(6) * 1e-200, W)


def test_scales_of_the_wrong_number_are_named():
    with pytest.raises(ValueError, match="scale has 2 entries but the points have 3 features"):
        parameter_gradient(RBF([1.0, 2.0]), vectors(6), np.eye(6))


def test_tensors_are_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="works on NumPy arrays and X is a Tensor"):
        parameter_gradient(RBF(1.0), torch.ones((3, 2)), np.eye(3))
