"""Gradients in x: of every kernel, against differences, closed forms and laws of scale and shift."""

import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from threadpoolctl import ThreadpoolController, threadpool_limits

from cases import each
from mercer.gram import gradient
from mercer.kernels import (
    RBF,
    ArcCosine,
    Cauchy,
    ChiSquared,
    Constant,
    Cosine,
    Delta,
    FromFunction,
    Intersection,
    Laplacian,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    PowerExponential,
    Precomputed,
    RationalQuadratic,
    SpectralMixture,
    Wendland,
)
from mercer.machine.threads import run
from mercer.points import Comparison
from samples import SAMPLES, histograms, of_vectors, vectors
from slopes import composites_of, settled

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _same_numbers_in_any_order():
    global RNG
    RNG = np.random.default_rng(0)


def assert_is_gradient(k, X, Z, rtol=1e-7):
    k = k.resolve(Z)
    a = RNG.normal(size=(len(Z), 2))
    found = gradient(k, X, Z, a)
    assert found.shape == (*X.shape, 2)
    for j in range(X.shape[1]):

        def values(by, j=j):
            moved = X.copy()
            moved[:, j] += by
            return k(moved, Z)

        slope, doubt = settled(values, 1e-4)
        size = np.abs(slope) @ np.abs(a) + 1e-2 * np.abs(values(0.0)) @ np.abs(a)  # terms may cancel each other
        assert (np.abs(found[:, j] - slope @ a) <= rtol * size + 4 * doubt @ np.abs(a)).all()


def without_gradient(k):
    return any(name in repr(k) for name in ("Intersection", "MinMax", "Delta", "Categorical"))


WITH_GRADIENT = [s for s in SAMPLES if of_vectors(s) and not without_gradient(s.kernel)]


@each("sample", WITH_GRADIENT, ids=str)
def test_every_smooth_kernel_has_the_gradient_of_its_values(sample):
    Z = sample.points(20)
    X = np.random.default_rng(5).normal(size=(7, 3))
    assert_is_gradient(sample.kernel, np.abs(X) + 0.5 if sample.points is histograms else X, Z)


leaves = st.sampled_from(
    [
        RBF(1.3),
        RBF([0.7, 2.0, 5.0]),
        Matern(0.5, 2.0),
        Matern(1.5, [1.0, 2.0, 0.5]),
        RationalQuadratic(0.4, 1.5),
        Cauchy(2.0),
        Periodic(3.0, 1.2),
        Wendland(2, 6.0),
        Polynomial(2, 0.3, 0.2),
        Linear(),
        Constant(0.7),
        Cosine(),
        ArcCosine(1),
        SpectralMixture([0.5], [[0.1, 0.0, 0.3]], [2.0]),
        RBF(0.9).on([0, 2]),
        Linear().on([1, 1]),
        RBF(2.0).compose(lambda X: np.concatenate([X, X**2], axis=1)),
        RBF(1.0).rescaled(lambda X: 1 / (1 + (X**2).sum(axis=1))),
        Matern(0.8, 2.0),
    ]
)
composites = composites_of(leaves)


@settings(max_examples=40, deadline=None)
@given(composites, st.integers(0, 3))
def test_composites_have_the_gradient_of_their_values(k, seed):
    rng = np.random.default_rng(seed)
    assert_is_gradient(k, rng.normal(size=(3, 3)), rng.normal(size=(8, 3)), rtol=1e-6)


# -- closed forms -----------------------------------------------------------------------------------------


def closed_form(X, Z, a, slope):
    """Sum over j of a_j slope(|x - z_j|) (x - z_j), pair by pair."""
    apart = X[:, None, :] - Z
    r = np.sqrt((apart**2).sum(axis=2))
    return np.einsum("ij,j,ijk->ik", slope(r), a, apart)


CLOSED = {
    "RBF": (RBF(1.5), lambda r: -np.exp(-(r**2) / 4.5) / 2.25),
    "Matern 3/2": (Matern(1.5, 1.5), lambda r: -(3 / 2.25) * np.exp(-np.sqrt(3) * r / 1.5)),
    "Matern 5/2": (
        Matern(2.5, 1.5),
        lambda r: -(5 / 3 / 2.25) * (1 + np.sqrt(5) * r / 1.5) * np.exp(-np.sqrt(5) * r / 1.5),
    ),
    "Cauchy": (Cauchy(1.5), lambda r: -2 / 2.25 / (1 + r**2 / 2.25) ** 2),
}
EXPONENTIAL = (
    PowerExponential(1.0, 1.5),
    lambda r: -np.divide(np.exp(-r / 1.5), 1.5 * r, out=np.zeros_like(r), where=r > 0),  # 0 at its pole
)


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("size", [(1, 1), (5, 40), (300, 2500)], ids=str)
def test_radial_kernels_have_their_closed_form(name, size):
    """A few pairs difference by difference, many by products, in more tiles than one."""
    k, slope = CLOSED[name]
    n, m = size
    X, Z, a = RNG.normal(size=(n, 4)), RNG.normal(size=(m, 4)), RNG.normal(size=m)
    expected = closed_form(X, Z, a, slope)
    np.testing.assert_allclose(gradient(k, X, Z, a), expected, rtol=1e-10, atol=1e-13 * np.abs(a).sum())


@pytest.mark.parametrize("name", [*CLOSED, "exponential"])
@pytest.mark.parametrize(
    ("size", "features", "functions"),
    [((1, 2500), 60, 150), ((20, 2100), 4, 70), ((20, 2100), 30, 7), ((200, 300), 3, 100), ((140, 60), 150, 2)],
    ids=str,
)
def test_many_functions_have_the_closed_form_of_each(name, size, features, functions):
    """Few rows and many, narrower and wider than a tile is high, in more blocks of functions than one."""
    k, slope = EXPONENTIAL if name == "exponential" else CLOSED[name]
    X, Z = (RNG.normal(size=(count, features)) / np.sqrt(features) for count in size)
    Z[1], X[-1] = Z[0], Z[0]
    A = RNG.normal(size=(len(Z), functions))
    expected = np.stack([closed_form(X, Z, a, slope) for a in A.T], axis=2)
    np.testing.assert_allclose(gradient(k, X, Z, A), expected, rtol=1e-10, atol=1e-13 * np.abs(A).sum(axis=0).max())


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from([RBF(2.0), Polynomial(2, 0.3, 0.2), PowerExponential(1.0, 2.0), ArcCosine(1), Laplacian(2.0)]),
    st.integers(1, 300),
    st.integers(1, 140),
    st.integers(1, 40),
)
def test_many_functions_have_the_gradients_of_one_at_a_time(k, n, features, functions):
    rng = np.random.default_rng(n)
    X, Z = (rng.normal(size=(count, features)) / np.sqrt(features) for count in (n, 150))
    A = rng.normal(size=(150, functions))
    expected = np.stack([gradient(k, X, Z, a) for a in A.T], axis=2)
    np.testing.assert_allclose(gradient(k, X, Z, A), expected, rtol=1e-11, atol=1e-12)


def test_scales_per_feature_stretch_the_gradient():
    scale = np.array([0.5, 2.0, 1.0])
    X, Z, a = RNG.normal(size=(200, 3)), RNG.normal(size=(400, 3)), RNG.normal(size=400)
    expected = gradient(RBF(1.0), X / scale, Z / scale, a) / scale
    np.testing.assert_allclose(gradient(RBF(scale.tolist()), X, Z, a), expected, rtol=1e-10, atol=1e-11)


def test_inner_products_have_theirs():
    X, Z, a = RNG.normal(size=(5, 3)), RNG.normal(size=(9, 3)), RNG.normal(size=9)
    np.testing.assert_allclose(gradient(Linear(), X, Z, a), np.tile(a @ Z, (5, 1)), rtol=1e-13)
    poly = 3 * 0.5 * (((2 + 0.5 * X @ Z.T) ** 2) * a) @ Z
    np.testing.assert_allclose(gradient(Polynomial(3, 2.0, 0.5), X, Z, a), poly, rtol=1e-12)
    np.testing.assert_array_equal(gradient(Constant(2.0), X, Z, a), np.zeros((5, 3)))


@pytest.mark.parametrize("k", [Matern(0.5, 1.0), Wendland(0, 3.0), RBF(1.0), Matern(1.5, 2.0), ArcCosine(1)], ids=str)
def test_a_centre_alone_contributes_nothing_where_x_is_it(k):
    z = np.array([[0.3, -1.0], [0.3, -1.0]])
    along = z[0] if isinstance(k, ArcCosine) else np.zeros(2)  # |x| |z| grows along x
    np.testing.assert_allclose(gradient(k, z[:1], z, [0.5, 1.0])[0], 1.5 * along, atol=1e-14)


@pytest.mark.parametrize("k", [Matern(0.5, 1.0), Matern(0.5, [1.0, 2.0])], ids=str)
def test_a_kink_does_not_disturb_what_is_near_it(k):
    """A centre at 1e-9 from x pulls with its full strength; so it does among thousands of others."""
    Z = RNG.normal(size=(3000, 2))
    X = Z[:200] + 1e-9 * np.array([0.6, 0.8])
    a = np.ones(3000)
    scale = np.broadcast_to(np.asarray(k.scale, dtype=float), (2,))
    apart = (X[:, None, :] - Z) / scale
    r = np.sqrt((apart**2).sum(axis=2))
    expected = -np.einsum("ij,ijk->ik", np.exp(-r) / r, apart) / scale
    np.testing.assert_allclose(gradient(k, X, Z, a), expected, rtol=1e-9, atol=1e-9)


def test_a_coordinate_shared_with_a_centre_does_not_move_an_absolute_difference():
    """Between its one-sided derivatives, -k and k, the mean is 0; the other coordinate counts as ever."""
    found = gradient(Laplacian([1.0, 2.0]), [[0.5, 1.0]], [[0.5, 0.0]], [3.0])
    np.testing.assert_allclose(found, [[0.0, -1.5 * np.exp(-0.5)]], rtol=1e-14)


def test_poles_take_no_digits_from_products_in_tiles():
    """Thousands of pairs go through matrix products; the result is that of differences, one pair after the other."""
    Z, a = RNG.normal(size=(2500, 12)), RNG.normal(size=(2500, 2))
    k = PowerExponential(1.3, 3.0)
    X = np.concatenate([Z[:5], Z[5:10] + 1e-7])
    one_by_one = np.concatenate([gradient(k, x[None], Z, a) for x in X])
    np.testing.assert_allclose(gradient(k, X, Z, a), one_by_one, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("k", [PowerExponential(1.0, 3.0), PowerExponential(1.3, 3.0), Matern(0.5, 3.0)], ids=str)
@pytest.mark.parametrize("order", ["any", "by distance", "on a grid"])
def test_tiles_with_several_poles_lose_no_digits_in_any_order_of_the_centres(k, order):
    """Poles are told from the median of a sample of a tile, also where neighbours are alike or centres repeat."""
    Z = RNG.normal(size=(2500, 6))
    if order == "by distance":
        Z = Z[np.argsort(np.square(Z).sum(axis=1))] * np.linspace(0.1, 10, 2500)[:, None]
    if order == "on a grid":
        Z[:, :2] = np.stack(np.divmod(np.arange(2500), 64), axis=1) / 8
    Z[1000:1040] = Z[:40]  # many coincide
    X = np.concatenate([Z[:40], Z[:40] + 1e-8, Z[40:80] + 1e-6, Z[2060:2100] - 1e-7])
    A = RNG.normal(size=(2500, 3))
    one_by_one = np.concatenate([gradient(k, x[None], Z, A) for x in X])
    np.testing.assert_allclose(gradient(k, X, Z, A), one_by_one, rtol=1e-9, atol=1e-9)


# -- laws -------------------------------------------------------------------------------------------------

OF_ONE_LENGTH = {
    "RBF": lambda u: RBF(1.3 * u),
    "RBF, ARD": lambda u: RBF([1.3 * u, 2 * u, u]),
    "Matern 1/2": lambda u: Matern(0.5, [1.3 * u, 2 * u, u]),
    "Matern 3/2": lambda u: Matern(1.5, 1.3 * u),
    "RationalQuadratic": lambda u: RationalQuadratic(0.7, 1.3 * u),
    "Wendland": lambda u: Wendland(1, 3 * u),
    "Periodic": lambda u: Periodic(3 * u),
    "SpectralMixture": lambda u: SpectralMixture([1.0], [0.1 / u], [2 * u]),
    "Cosine": lambda u: Cosine(),
    "ArcCosine": lambda u: ArcCosine(0),
    "Matern, general": lambda u: Matern(0.8, 1.3 * u),
}


@each("name", OF_ONE_LENGTH)
@each("unit", [1e-150, 1e-100, 1e100, 1e150])
def test_the_unit_of_length_does_not_matter(name, unit):
    make, X, Z = OF_ONE_LENGTH[name], RNG.normal(size=(6, 3)), RNG.normal(size=(12, 3))
    X[0] = Z[0]
    a = RNG.normal(size=12)
    expected = gradient(make(1.0), X, Z, a)
    found = gradient(make(unit), X * unit, Z * unit, a) * unit
    tol = 1e-8 if name == "Matern, general" else 1e-12
    np.testing.assert_allclose(found, expected, rtol=tol, atol=tol * np.abs(expected).max())


@each("name", OF_ONE_LENGTH)
@each("unit", [1e-170, 1e-12, 1e12, 1e170])
def test_scales_that_are_tiny_or_huge_beside_the_data_give_finite_numbers(name, unit):
    X = vectors(12)
    assert np.isfinite(gradient(OF_ONE_LENGTH[name](unit), X, X, np.ones(12))).all()


@pytest.mark.parametrize("k", [RBF(1.0), RBF([1.0, 2.0, 0.5]), Matern(1.5, 1.0), Cauchy(0.5)], ids=str)
def test_shifts_do_not_matter(k):
    Z, X = RNG.normal(size=(3000, 3)) + 1e6, RNG.normal(size=(50, 3)) + 1e6
    a = RNG.normal(size=3000)
    np.testing.assert_allclose(gradient(k, X, Z, a), gradient(k, X - 1e6, Z - 1e6, a), rtol=1e-9, atol=1e-9)


def test_distant_clusters_on_a_tiny_scale_do_not_cancel():
    cluster = (np.arange(3000) % 2)[:, None]
    Z = RNG.normal(size=(3000, 3)) / 1024 + 1e6 * cluster
    X = RNG.normal(size=(50, 3)) / 1024 + 1e6
    a = RNG.normal(size=3000)
    near = (cluster == 1).ravel()
    expected = gradient(RBF(1e-3), X - 1e6, Z[near] - 1e6, a[near])
    np.testing.assert_allclose(gradient(RBF(1e-3), X, Z, a), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_the_gradient_is_linear_in_the_coefficients():
    X, Z, A = RNG.normal(size=(4, 3)), RNG.normal(size=(9, 3)), RNG.normal(size=(9, 5))
    for k in (RBF(1.0), Polynomial(2), Matern(0.8, 1.0), Linear().rescaled(lambda X: X[:, 0])):
        found = gradient(k, X, Z, A)
        assert found.shape == (4, 3, 5)
        for c in range(5):
            np.testing.assert_allclose(found[:, :, c], gradient(k, X, Z, A[:, c]), rtol=1e-9, atol=1e-9)


# -- inputs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [RBF(1.0), Matern(0.5, 1.0), Polynomial(2), Cosine(), ChiSquared(0.3)], ids=str)
def test_sparse_points_give_what_dense_ones_give(k):
    wide = np.zeros((60, 3000))
    wide[:, [5, 77, 2222]] = np.abs(RNG.normal(size=(60, 3))) * (RNG.random((60, 3)) < 0.7)
    wide[:10, 9] = 1.0
    a = RNG.normal(size=60)
    expected = gradient(k, wide[:7], wide, a)
    for X, Z in ((wide[:7], sparse.csr_array(wide)), (sparse.csr_array(wide[:7]), sparse.csr_array(wide))):
        np.testing.assert_allclose(gradient(k, X, Z, a), expected, rtol=1e-9, atol=1e-12)


def test_float32_points_are_differentiated_in_double():
    X, Z = (RNG.normal(size=(n, 3)).astype(np.float32) for n in (5, 9))
    a = RNG.normal(size=9)
    for k in (RBF(1.0), Matern(0.5, 1.0), Cosine(), Periodic(2.0)):
        found = gradient(k, X, Z, a)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, gradient(k, X.astype(float), Z.astype(float), a), rtol=1e-12, atol=1e-15)


def test_columns_of_tables_are_found_by_name():
    X = pd.DataFrame(RNG.normal(size=(6, 3)), columns=["a", "b", "c"])
    a = RNG.normal(size=6)
    k = RBF(1.0).on(["c", "a"]) + Linear().on("b") + RBF(2.0).on(slice(1, 3)) + Linear().on(-1)
    by_number = RBF(1.0).on([2, 0]) + Linear().on(1) + RBF(2.0).on(slice(1, 3)) + Linear().on(-1)
    np.testing.assert_allclose(gradient(k, X, X, a), gradient(by_number, X.to_numpy(), X.to_numpy(), a), rtol=1e-13)


def test_lists_and_parameters_that_wait_for_data():
    Z = [[0.0, 1.0], [2.0, 3.0], [1.0, 1.0]]
    found = gradient(RBF("median"), [[0.5, 0.5]], Z, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(found, gradient(RBF("median").resolve(Z), [[0.5, 0.5]], Z, [1.0, 2.0, 3.0]))


def test_functions_of_two_vectors_are_differentiated_by_differences():
    k = FromFunction(lambda x, z: float(np.exp(-0.5 * ((x - z) ** 2).sum())))
    X, Z, a = RNG.normal(size=(3, 2)), RNG.normal(size=(4, 2)), RNG.normal(size=4)
    np.testing.assert_allclose(gradient(k, X, Z, a), gradient(RBF(1.0), X, Z, a), rtol=1e-8, atol=1e-9)


def test_blas_has_one_thread_where_ours_share_the_rows_and_what_it_had_before(monkeypatch):
    """Also after tasks of the pool that take gradients at the same time."""
    blas, seen, block = ThreadpoolController().select(user_api="blas"), set(), Comparison.block

    def threads():
        return {library.num_threads for library in blas.lib_controllers}

    def slow(self, rows, cols):
        seen.update(threads())
        time.sleep(0.01)
        return block(self, rows, cols)

    monkeypatch.setattr(Comparison, "block", slow)
    X, a = RNG.normal(size=(1000, 3)), RNG.normal(size=1000)
    with threadpool_limits(2):
        gradient(RBF(1.0), X, X, a)
        assert seen == {1}
        assert threads() == {2}
    before = threads()
    run(lambda n: gradient(RBF(1.0), X[:n], X, a), [200, 1000])  # the first ends first
    assert threads() == before


# -- errors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "message"),
    [
        (Delta(), r"Delta\(\) has no gradient: it jumps where x equals a centre"),
        (RBF(1.0) + 0.1 * Delta(), r"0\.1 \* Delta\(\) has no gradient: it jumps"),
        (Intersection(), r"Intersection\(\) has no gradient: a sum of minima has a kink"),
    ],
    ids=["Delta", "sum", "Intersection"],
)
def test_kernels_without_a_gradient_are_refused(k, message):
    X = np.abs(vectors(6))
    with pytest.raises(TypeError, match=message):
        gradient(k, X, X, np.ones(6))


def test_points_that_cannot_be_moved_are_refused():
    with pytest.raises(TypeError, match=r"has no gradient at X, a list of points that are no vectors of numbers"):
        gradient(Delta(), ["a", "b"], ["a", "b"], [1.0, 2.0])
    with pytest.raises(TypeError, match="compares points by their index"):
        gradient(Precomputed(np.eye(3)), np.array([[0], [1]]), np.array([[0], [1]]), [1.0, 1.0])
    table = pd.DataFrame(RNG.normal(size=(4, 2)), columns=["a", "b"])
    with pytest.raises(TypeError, match="move X a little; pass it as an array, not as a DataFrame"):
        gradient(Matern(0.8, 1.0), table, table, np.ones(4))
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="gradient works on NumPy arrays and X is a Tensor"):
        gradient(RBF(1.0), torch.ones((3, 2)), np.ones((3, 2)), np.ones(3))


def test_wrong_shapes_and_values_are_named():
    X = vectors(6)
    with pytest.raises(ValueError, match=r"a has shape \(5,\); for 6 centres it must be \(6,\) or \(6, k\)"):
        gradient(RBF(1.0), X, X, np.ones(5))
    with pytest.raises(ValueError, match="X has 2 features and Z has 3"):
        gradient(RBF(1.0), X[:, :2], X, np.ones(6))
    with pytest.raises(ValueError, match="a contains NaN or infinite values"):
        gradient(RBF(1.0), X, X, np.full(6, np.inf))
    with pytest.raises(FloatingPointError, match=r"the gradient at row 0 of X in feature \d is outside the range"):
        gradient(RBF(1e-200), X * 1e-200, X[3:] * 1e-200, np.full(3, 1e200))
    with pytest.raises(FloatingPointError, match=r"a derivative of Polynomial\(degree=5\) is outside the range"):
        gradient(Polynomial(5), X * 1e100, X * 1e100, np.ones(6))
