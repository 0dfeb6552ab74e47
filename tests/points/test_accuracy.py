"""Kernels of distances on data that defeats the usual formula |x|^2 - 2<x, z> + |z|^2.

The truth is formed from direct differences of the very numbers stored, in a wider type: float64 for float32,
long double for float64.
"""

import numpy as np
import pytest

from cases import each
from mercer import Gram
from mercer.kernels import RBF, Cauchy, Laplacian, Linear, Matern, RationalQuadratic
from mercer.points import Comparison, Points, comparison

WIDER = {np.float32: np.float64, np.float64: np.longdouble}
BOUND = {np.float32: 1e-5, np.float64: 1e-12}
KERNELS = {
    "RBF": RBF,
    "Laplacian": Laplacian,
    "Matern 1/2": lambda s: Matern(0.5, s),
    "Matern 3/2": lambda s: Matern(1.5, s),
    "Matern 5/2": lambda s: Matern(2.5, s),
    "RationalQuadratic 0.7": lambda s: RationalQuadratic(0.7, s),
    "RationalQuadratic 1": lambda s: RationalQuadratic(1.0, s),
    "RationalQuadratic 5": lambda s: RationalQuadratic(5.0, s),
    "RationalQuadratic 30": lambda s: RationalQuadratic(30.0, s),
    "Cauchy": Cauchy,
}
# Multiples of the spread of the data: from values next to 1 to values that vanish.
FACTORS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 3.0, 30.0, 1e4)

pytestmark = pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="no wider type to compare float64 with")


@pytest.fixture(params=["few pairs", "many pairs"])
def pairs(request, monkeypatch):
    """Many pairs are worth a look for distances that may be taken from inner products; here few pairs are, too."""
    if request.param == "many pairs":
        monkeypatch.setattr(comparison, "_MANY_PAIRS", 0)
        monkeypatch.setattr(comparison, "_FEW_FEATURES", 1)


def clouds(dtype, n=32, d=6):
    """Hostile data, each with the scale of its spread."""
    rng = np.random.default_rng(0)
    base = rng.standard_normal((n, d))
    for offset in (0.0, 1e3, 1e6):
        yield f"offset {offset:g}", (base + offset).astype(dtype), 1.0
    side = np.where(np.arange(n)[:, None] % 2, 1e6, -1e6)
    yield "two far clusters, seen from within", (base + side).astype(dtype), 1.0
    yield "two far clusters, seen from afar", (base + side).astype(dtype), 1e6
    twins = (base + 1e6).astype(dtype)
    twins[1] = twins[0]
    twins[3] = np.nextafter(twins[2], dtype(np.inf))
    twins[5] = twins[4]
    twins[5, 0] = np.nextafter(twins[4, 0], dtype(0))
    yield "duplicates and neighbours", twins, 1.0
    yield "duplicates and neighbours, magnified", twins, float(np.spacing(dtype(1e6)))
    unit = 1e-30 if dtype is np.float32 else 1e-200
    yield "tiny", (base * unit).astype(dtype), unit
    yield "huge", (base / unit).astype(dtype), 1 / unit
    widths = np.logspace(-3, 3, d)
    yield "one scale per feature", (base * widths).astype(dtype), widths
    yield "one scale per feature, offset", ((base + 1e3) * widths).astype(dtype), widths
    yield "many features", (rng.standard_normal((n, 200)) + 10).astype(dtype), 5.0


def truth(kernel, X):
    wide = WIDER[X.dtype.type]
    t = (X.astype(wide)[:, None] - X.astype(wide)[None]) / np.asarray(kernel.scale, np.float64).astype(wide)
    if isinstance(kernel, Laplacian):
        return np.exp(-np.abs(t).sum(axis=2))
    q = (t**2).sum(axis=2)
    if isinstance(kernel, RBF):
        return np.exp(-q / 2)
    if isinstance(kernel, Matern):
        r = np.sqrt(2 * wide(kernel.nu) * q)
        return {0.5: wide(1), 1.5: 1 + r, 2.5: 1 + r + r * r / 3}[kernel.nu] * np.exp(-r)
    if isinstance(kernel, RationalQuadratic):
        return np.exp(-wide(kernel.alpha) * np.log1p(q / (2 * wide(kernel.alpha))))
    return 1 / (1 + q)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the truth underflows where it should
@each("dtype", [np.float32, np.float64])
@each("name", KERNELS)
def test_relative_error_on_hostile_data(pairs, name, dtype):
    """Of every kernel value down to the smallest normal number of the type.

    An exponent e that is rounded once is off by e times the rounding unit, and exp makes a relative error of
    that: for float32 and e = 87 (a value of 1e-38) this alone is half of the bound.
    """
    worst = (0.0, "", 0.0)
    for cloud, X, spread in clouds(dtype):
        for factor in FACTORS:
            scale = spread * factor
            kernel = KERNELS[name](scale.tolist() if np.ndim(scale) else float(scale))
            exact = truth(kernel, X)
            wanted = exact >= np.finfo(dtype).tiny
            error = np.abs(kernel(X) - exact)[wanted] / exact[wanted]
            at = int(error.argmax())
            worst = max(worst, (float(error[at]), f"{cloud}, scale x {factor:g}", float(exact[wanted][at])))
    error, where, value = worst
    assert error <= BOUND[dtype], f"relative error {error:.2g} at k = {value:.2g} ({where})"


@each("dtype", [np.float32, np.float64])
@each("name", KERNELS)
def test_a_point_and_its_duplicates_have_similarity_one_exactly(pairs, name, dtype):
    for cloud, X, spread in clouds(dtype):
        X[7] = X[6]
        for factor in FACTORS[::3]:
            scale = spread * factor
            kernel = KERNELS[name](scale.tolist() if np.ndim(scale) else float(scale))
            K = Gram(kernel, X)
            matrix = K.dense()
            assert (np.diag(matrix) == 1).all(), cloud
            assert matrix[6, 7] == matrix[7, 6] == 1, cloud
            assert (matrix == matrix.T).all(), cloud
            assert (matrix <= 1 + 2 * np.finfo(dtype).eps).all(), cloud
            assert (K.diag() == 1).all(), cloud
            np.testing.assert_array_equal(K.block([6, 3], [7, 0]), matrix[np.ix_([6, 3], [7, 0])])


@each(("dtype", "scale"), [(np.float32, 1e-44), (np.float64, 5e-324)])
@each("name", KERNELS)
def test_a_scale_whose_inverse_overflows(pairs, name, dtype, scale):
    X = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 1.0]], dtype)
    for s in (scale, [scale, scale], [1.0, scale]):
        K = KERNELS[name](s)(X)
        assert (K[[0, 1, 2, 0], [0, 1, 2, 2]] == 1).all()
        assert (K[1, [0, 2]] < 1e-20).all()


def test_differences_of_neighbouring_numbers_are_seen(pairs):
    """Where the differences are a few units of the last place, the kernel still resolves each of them."""
    X = (1e6 + np.spacing(np.float32(1e6)) * np.arange(20, dtype=np.float32)[:, None]).astype(np.float32)
    row = RBF(float(np.spacing(np.float32(1e6))))(X)[0]
    np.testing.assert_allclose(row, np.exp(-0.5 * np.arange(20.0) ** 2), rtol=1e-5, atol=1e-44)


def benign(dtype, n=250, d=8, offset=3.0):
    return (np.random.default_rng(1).standard_normal((n, d)) + offset).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_come_from_inner_products_only_where_that_is_harmless(dtype):
    X = Points(benign(dtype))
    far = Points(np.concatenate([X.vectors, X.vectors + dtype(3e6)]))
    for kernel in (RBF(5.0), Cauchy(5.0), RationalQuadratic(0.7, 5.0), RBF(5.0) + Linear(), Matern(2.5, 9.0)):
        assert Comparison(kernel.of, X).inexact, kernel
        assert not Comparison(kernel.of, far).inexact, kernel
    for kernel in (RBF(5e-3), Matern(0.5, 5.0), RBF(5.0) + Matern(0.5, 5.0), Laplacian(5.0), RBF([5.0] * 8)):
        assert not Comparison(kernel.of, X).inexact, kernel


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "name", ["RBF", "RationalQuadratic 0.7", "RationalQuadratic 5", "Cauchy", "Matern 3/2", "Matern 5/2"]
)
def test_values_from_inner_products_keep_the_bound(name, dtype):
    X = benign(dtype, 400)
    X[7] = X[300]
    X[9] = np.nextafter(X[8], dtype(9))
    for scale in (2.0, 4.0, 16.0, 1e3):
        kernel = KERNELS[name](scale)
        exact = truth(kernel, X)
        K = kernel(X)
        assert np.abs(K / exact - 1).max() <= BOUND[dtype]
        assert (K == K.T).all()
        assert (np.diag(K) == 1).all()
        assert K[7, 300] == 1
        assert K.max() == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_two_sets_of_points_share_one_centre(dtype):
    X = benign(dtype, 300)
    Z = np.concatenate([X[:250] + dtype(0.5), X[40:60]])
    kernel = RBF(6.0)
    assert Comparison(kernel.of, Points(X), Points(Z)).inexact
    K = kernel(X, Z)
    assert (K[np.arange(40, 60), np.arange(250, 270)] == 1).all()
    np.testing.assert_array_equal(kernel(Z, X).T, K)
    whole = Points(X)
    part = whole.take(np.arange(0, 300, 2))
    np.testing.assert_array_equal(Comparison(kernel.of, whole, part).dense(), kernel(X)[:, ::2])
