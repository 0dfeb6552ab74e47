"""The Gram matrix: every call on every path, as an operator of SciPy, and in little memory."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator, cg, eigsh, gmres, svds

from cases import each
from mercer import Gram
from mercer.kernels import RBF, FromFunction, Laplacian, Linear, Matern, Periodic
from mercer.machine.threads import cores
from mercer.points import Points, comparison

RNG = np.random.default_rng(0)
X, Z = RNG.standard_normal((90, 4)), RNG.standard_normal((40, 4))


def thin(n, seed):
    return sparse.random_array((n, 2000), density=0.004, rng=np.random.default_rng(seed), format="csr")


def tensors(*arrays):
    torch = pytest.importorskip("torch")
    return [torch.from_numpy(a) for a in arrays]


def case(path):
    """A kernel, its points and the type of the values, for each way of computing them."""
    if path == "compiled":
        return RBF(1.5), X, Z
    if path == "compiled, float32":
        return RBF(1.5), X.astype(np.float32), Z.astype(np.float32)
    if path == "tiles":
        return Matern(1.3, 1.5), X, Z
    if path == "Python function":
        return FromFunction(lambda a, b: float(1 / (1 + np.abs(a - b).sum()))), X, Z
    if path == "sparse":
        return RBF(1.5), thin(90, 0), thin(40, 1)
    return RBF(1.5), *tensors(X, Z)


PATHS = ["compiled", "compiled, float32", "tiles", "Python function", "sparse", "torch"]
paths = pytest.mark.parametrize("path", PATHS)


def numpy(values):
    return np.asarray(values)


def vector(K, *shape, seed=1):
    v = np.random.default_rng(seed).standard_normal(shape)
    return tensors(v)[0] if K.left.foreign else v


# -- the calls --------------------------------------------------------------------------------------------


@paths
@pytest.mark.parametrize("tile", [1 << 19, 700])
def test_every_call_on_every_path(path, tile, monkeypatch):
    monkeypatch.setattr(comparison, "_TILE", tile)
    kernel, x, z = case(path)
    for K, expected in ((Gram(kernel, x), kernel(x)), (Gram(kernel, x, z), kernel(x, z))):
        n, m = expected.shape
        assert K.shape == (n, m)
        assert K.symmetric == (n == m)
        assert K.compiled == (path not in ("tiles", "Python function", "torch"))
        assert K.dtype == expected.dtype == K.dense().dtype
        tolerance = {"rtol": 1e-4, "atol": 1e-4} if "32" in path else {"rtol": 1e-12, "atol": 1e-12}
        expected = numpy(expected)
        np.testing.assert_array_equal(numpy(K.dense()), expected)
        np.testing.assert_array_equal(numpy(K.block(slice(5, 20), slice(2, 9))), expected[5:20, 2:9])
        np.testing.assert_allclose(numpy(K.rows([4, -1, 4])), expected[[4, -1, 4]], **tolerance)
        for shape in ((m,), (m, 1), (m, 6)):
            v = vector(K, *shape)
            for product in (K.matvec(v), K.matmat(v), K.dot(v), K @ v, K * v):
                assert tuple(product.shape) == (n, *shape[1:])
                np.testing.assert_allclose(numpy(product), expected @ numpy(v), **tolerance)
        for shape in ((n,), (n, 3)):
            v = vector(K, *shape)
            for product in (K.rmatvec(v), K.rmatmat(v), K.T @ v, K.H @ v):
                np.testing.assert_allclose(numpy(product), expected.T @ numpy(v), **tolerance)
        assert K.T.shape == K.H.shape == (m, n)
    np.testing.assert_allclose(numpy(Gram(kernel, x).diag()), np.diag(numpy(kernel(x))))
    assert float(Gram(kernel, x).trace()) == pytest.approx(np.trace(numpy(kernel(x))))


@paths
def test_the_diagonal_of_two_sets_of_one_size(path):
    kernel, x, _ = case(path)
    other = x[::-1] if path != "torch" else x.flip(0)
    K = Gram(kernel, x, other)
    assert not K.symmetric
    np.testing.assert_allclose(numpy(K.diag()), np.diag(numpy(K.dense())), rtol=1e-6)
    np.testing.assert_allclose(float(K.trace()), np.trace(numpy(K.dense())), rtol=1e-6)


def test_a_matrix_that_is_not_square_has_no_diagonal():
    for call in (Gram(RBF(1.0), X, Z).diag, Gram(RBF(1.0), X, Z).trace):
        with pytest.raises(ValueError, match="a 90 x 40 matrix has no diagonal; it is not square"):
            call()


def test_the_trace_is_summed_in_double_precision():
    n = 2**16
    ones = np.ones((n, 1), np.float32)
    ones[0] = 2.0**12
    assert Gram(Linear(), ones).trace() == 2.0**24 + n - 1


def test_symmetric_when_the_points_are_the_same_object():
    assert Gram(RBF(1.0), X, X).symmetric
    points = Points(X)
    assert Gram(RBF(1.0), points, points).symmetric
    assert not Gram(RBF(1.0), X, X.copy()).symmetric
    K = Gram(RBF(1.0), X)
    assert K.T is K
    assert K.H is K
    np.testing.assert_array_equal(K.dense(), Gram(RBF(1.0), X, X.copy()).dense())


def test_parameters_are_resolved_on_the_left_points():
    K = Gram(RBF("median"), X, Z)
    assert K.kernel == RBF("median").resolve(X)
    assert K.T.kernel == K.kernel
    assert "Gram matrix of RBF(scale=" in repr(K)
    assert repr(Gram(RBF(1.0), X, Z)) == "<90 x 40 Gram matrix of RBF(scale=1.0), float64>"


@pytest.mark.parametrize("k", [1, 2, 7, 8, 33])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_on_several_threads(k, dtype):
    big, other = RNG.standard_normal((700, 3)).astype(dtype), RNG.standard_normal((301, 3)).astype(dtype)
    for K in (Gram(RBF(1.0), big), Gram(RBF(1.0), big, other), Gram(RBF(1.0), other, big)):
        v = RNG.standard_normal((K.shape[1], k)).astype(dtype)
        exact = K.dense().astype(np.float64) @ v.astype(np.float64)
        size = np.abs(K.dense()).astype(np.float64) @ np.abs(v).astype(np.float64)
        assert (np.abs(K @ v - exact) <= 100 * np.finfo(dtype).eps * size).all()


@pytest.mark.parametrize(
    ("points", "v", "expected"),
    [
        (np.float32, np.float32, np.float32),
        (np.float32, np.float64, np.float64),
        (np.float64, np.float32, np.float64),
        (np.float32, np.int64, np.float64),
        (np.float64, bool, np.float64),
        (np.float32, np.complex64, np.complex64),
        (np.float64, np.complex128, np.complex128),
    ],
)
def test_types_of_products(points, v, expected):
    for kernel in (RBF(1.0), Matern(1.3, 1.0)):
        K = Gram(kernel, X.astype(points))
        assert K.dtype == points
        assert (K @ np.ones(90, v)).dtype == expected
        assert (K @ np.ones((90, 2), v)).dtype == expected


def test_layouts_of_vectors():
    K = Gram(RBF(1.0), X)
    v = RNG.standard_normal((90, 6))
    expected = K.dense() @ v
    read_only = v.copy()
    read_only.flags.writeable = False
    for other in (np.asfortranarray(v), np.repeat(v, 2, axis=1)[:, ::2], v[::-1][::-1], read_only, v.tolist()):
        np.testing.assert_allclose(K @ other, expected, rtol=1e-12, atol=1e-12)
    assert (K @ np.empty((90, 0))).shape == (90, 0)


def test_points_may_be_tables_and_lists():
    import pandas as pd

    K = Gram(RBF(1.0), X).dense()
    for other in (pd.DataFrame(X), X.tolist(), np.asfortranarray(X), Points(X)):
        np.testing.assert_array_equal(Gram(RBF(1.0), other).dense(), K)


# -- blocks -----------------------------------------------------------------------------------------------

CHOICES = [
    slice(None),
    slice(3, 17),
    slice(-5, None),
    slice(20, 3),
    slice(2, 30, 3),
    slice(None, None, -1),
    slice(5, 500),
    7,
    -2,
    np.int64(3),
    [1, 5, 1],
    [-1, 0],
    (2, 3),
    np.array([4], np.uint8),
    [],
    np.array([], int),
    "mask",
    "empty mask",
]


@each("path", ["compiled", "tiles", "sparse", "torch"])
@each("rows", CHOICES, ids=str)
@each("cols", [slice(None), slice(2, 9), [3, -1], "mask"], ids=str)
def test_blocks_are_chosen_as_numpy_chooses(path, rows, cols):
    kernel, x, z = case(path)
    K = Gram(kernel, x, z)

    def chosen(index, size):
        if isinstance(index, str):
            index = np.arange(size) % 3 == (0 if index == "mask" else 5)
        return index, np.atleast_1d(np.arange(size)[list(index) if isinstance(index, tuple) else index]).astype(int)

    (r, i), (c, j) = chosen(rows, 90), chosen(cols, 40)
    np.testing.assert_allclose(numpy(K.block(r, c)), numpy(K.dense())[np.ix_(i, j)], rtol=1e-13)


@pytest.mark.parametrize(
    ("index", "sentence"),
    [
        (90, "index 90 is outside the 90 points"),
        ([3, -91], "index -91 is outside the 90 points"),
        (0.5, "points are chosen by integers, a slice or a mask; got an array of float64"),
        ([1.0, 2.0], "got an array of float64"),
        (["a"], "points are chosen by integers"),
        ([[1, 2]], r"with shape \(1, 2\)"),
        (np.ones(89, bool), "a mask of 89 entries cannot choose among 90 points"),
        (None, "points are chosen by integers"),
    ],
)
def test_choices_that_are_none(index, sentence):
    K = Gram(RBF(1.0), X)
    for call in (lambda: K.block(index, [0]), lambda: K.block([0], index), lambda: K.rows(index)):
        with pytest.raises(IndexError, match=sentence):
            call()


# -- rows through the cache -------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["compiled", "compiled, float32", "tiles", "sparse"])
def test_rows_through_the_cache(path):
    kernel, x, z = case(path)
    K = Gram(kernel, x, z, budget=4 * 5 * 40 * 8)
    expected = kernel(x, z)
    assert len(K.cache.slab) == (10 if "32" in path else 5)
    K.rows([0, 1, 2])
    assert K.cache.hits == 0
    np.testing.assert_allclose(K.rows([2, 0, 2]), expected[[2, 0, 2]], rtol=1e-6)
    assert K.cache.hits == 2
    index = np.random.default_rng(2).integers(0, 90, 60)
    np.testing.assert_allclose(K.rows(index), expected[index], rtol=1e-6)
    mask = np.arange(90) % 7 == 0
    np.testing.assert_allclose(K.rows(mask), expected[mask], rtol=1e-6)
    np.testing.assert_allclose(K.rows(slice(80, None)), expected[80:], rtol=1e-6)
    assert K.rows([]).shape == (0, 40)
    assert K.rows([3]).dtype == K.dtype


def test_the_cache_holds_no_more_rows_than_there_are():
    assert len(Gram(RBF(1.0), X).cache.slab) == 90


def test_rows_of_tensors_keep_their_gradients():
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(X).requires_grad_()
    rows = Gram(RBF(1.0), x).rows([3, 5])
    assert rows.requires_grad


# -- budgets ----------------------------------------------------------------------------------------------


def test_a_matrix_beyond_the_budget_is_refused_with_its_size():
    K = Gram(RBF(1.0), X, budget="32 KiB")
    with pytest.raises(MemoryError) as refusal:
        K.dense()
    assert str(refusal.value) == (
        "the dense 90 x 90 matrix would need 63.29 KiB, more than the budget of 32 KiB; "
        "use matvec, block or rows, or raise the budget."
    )
    np.testing.assert_allclose(K @ np.ones(90), RBF(1.0)(X).sum(axis=1))
    np.testing.assert_allclose(K.rows([1, 2]), RBF(1.0)(X)[[1, 2]])
    out = np.empty((90, 90))
    assert K.dense(out) is out  # the caller's memory is not in the budget


def test_a_row_beyond_the_budget_is_refused():
    with pytest.raises(MemoryError, match=r"a cache of one row of 90 values would need .* raise the budget"):
        Gram(RBF(1.0), X, budget=90 * 8).rows([0])


def test_a_budget_that_is_no_size():
    with pytest.raises(ValueError, match="budget 'plenty' is not a size"):
        Gram(RBF(1.0), X, budget="plenty").dense()


@pytest.mark.parametrize(
    "out",
    [np.empty((90, 89)), np.empty((90, 90), np.float32), np.empty((90, 90), order="F"), np.empty((180, 90))[::2]],
)
def test_a_target_that_does_not_fit_is_refused(out):
    with pytest.raises(ValueError, match="out must be a C-contiguous 90 x 90 array of float64; it is"):
        Gram(RBF(1.0), X).dense(out)


def test_tensors_take_no_target():
    (x,) = tensors(X)
    with pytest.raises(TypeError, match="out is for NumPy arrays; the points are a Tensor"):
        Gram(RBF(1.0), x).dense(np.empty((90, 90)))


MEASURE = """
from pathlib import Path
import numpy as np
from mercer import RBF, Gram

def kilobytes(field):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(field))

X = np.random.default_rng(0).standard_normal(({n}, 5)).astype(np.{dtype})
v = np.ones(({n}, {k}), np.{dtype})
Gram(RBF(1.0), X[:2000]) @ v[:2000]
K = Gram(RBF(1.0), X)
Path("/proc/self/clear_refs").write_text("5")  # the peak is what is used now
before = kilobytes("VmRSS")
K @ v
{also}
print(1024 * (kilobytes("VmHWM") - before))
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak is measured as Linux counts it")
@pytest.mark.parametrize(
    ("dtype", "k", "also"),
    [("float32", 1, ""), ("float64", 1, "K.diag(); K.trace(); K.block([1, 2], [3])"), ("float64", 10, "K.T @ v")],
)
def test_products_of_15000_points_take_a_few_megabytes(dtype, k, also):
    """The matrix itself would take 0.9 or 1.8 gigabytes."""
    n = 15_000
    program = MEASURE.format(dtype=dtype, n=n, k=k, also=also)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    # A product for each thread and a copy of v for each, the result, and strips that do not grow with n.
    assert 0 < int(done.stdout) < 4 * 2**20 + (3 + 2 * cores()) * 8 * n * k


# -- an operator of SciPy ---------------------------------------------------------------------------------


@pytest.fixture
def K():
    return Gram(RBF(1.0), X)


def test_it_is_one(K):
    assert isinstance(K, LinearOperator)
    assert aslinearoperator(K) is K
    np.testing.assert_allclose(K @ np.eye(90), K.dense(), atol=1e-14)


def test_sums_multiples_powers_and_products_of_operators(K):
    D, two = K.dense(), Gram(Laplacian(2.0), X)
    v, V = RNG.standard_normal(90), RNG.standard_normal((90, 3))
    eye = aslinearoperator(np.eye(90))
    for operator, matrix in (
        (K + two, D + two.dense()),
        (K - two, D - two.dense()),
        (-K, -D),
        (2.5 * K, 2.5 * D),
        (K * 2.5, 2.5 * D),
        (K / 4, D / 4),
        (K + 0.1 * eye, D + 0.1 * np.eye(90)),
        (K @ two, D @ two.dense()),
        (K * two, D @ two.dense()),
        (K**2, D @ D),
        ((K + 1j * two), D + 1j * two.dense()),
        (Gram(RBF(1.0), X, Z) @ Gram(RBF(1.0), Z, X), RBF(1.0)(X, Z) @ RBF(1.0)(Z, X)),
    ):
        np.testing.assert_allclose(operator @ v, matrix @ v, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(operator @ V, matrix @ V, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(operator.H @ V, matrix.conj().T @ V, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(operator.T @ v, matrix.T @ v, rtol=1e-10, atol=1e-10)
    with pytest.raises(ValueError, match="Scalar operands are not allowed"):
        K @ 2.0


def test_products_from_the_left(K):
    R, D = Gram(RBF(1.0), X, Z), RBF(1.0)(X, Z)
    v, V = RNG.standard_normal(90), RNG.standard_normal((3, 90))
    np.testing.assert_allclose(v @ R, v @ D, rtol=1e-12)
    np.testing.assert_allclose(V @ R, V @ D, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(v @ K, K.dense() @ v, rtol=1e-12)


def test_transposes(K):
    R = Gram(RBF(1.0), X, Z)
    np.testing.assert_array_equal(R.T.dense(), R.dense().T)
    np.testing.assert_array_equal(R.H.dense(), R.dense().T)
    assert isinstance(R.T, Gram)
    assert R.T.T.shape == R.shape


def test_conjugate_gradients(K):
    regularised = K + 0.5 * aslinearoperator(np.eye(90))
    b = RNG.standard_normal(90)
    solution, failed = cg(regularised, b, rtol=1e-10)
    assert failed == 0
    np.testing.assert_allclose(solution, np.linalg.solve(K.dense() + 0.5 * np.eye(90), b), rtol=1e-7, atol=1e-9)
    shifted = K + (0.5 + 0.5j) * aslinearoperator(np.eye(90))
    solution, failed = gmres(shifted, b.astype(complex), rtol=1e-10, restart=90)
    assert failed == 0
    np.testing.assert_allclose(shifted @ solution, b, atol=1e-8)


def test_largest_eigenvalues_and_singular_values(K):
    values, vectors = eigsh(K, 4)
    np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(K.dense())[-4:], rtol=1e-10)
    np.testing.assert_allclose(K @ vectors, vectors * values, atol=1e-9)
    R = Gram(RBF(1.0), X, Z)
    s = np.sort(svds(R, 3, return_singular_vectors=False, rng=np.random.default_rng(0)))
    np.testing.assert_allclose(s, np.linalg.svd(R.dense())[1][2::-1], rtol=1e-8)


def test_eigenvalues_in_single_precision():
    K = Gram(RBF(1.0), X.astype(np.float32))
    np.testing.assert_allclose(eigsh(K, 1)[0], np.linalg.eigvalsh(RBF(1.0)(X))[-1:], rtol=1e-4)


# -- refusals ---------------------------------------------------------------------------------------------


def test_vectors_that_do_not_fit(K):
    for v in (np.ones(89), np.ones((1, 90)), np.ones((90, 2, 2)), np.float64):
        with pytest.raises((ValueError, TypeError)):
            K @ v
    with pytest.raises(ValueError, match=r"the vector has shape \(89,\); this matrix is 90 x 90 and needs \(90,\)"):
        K @ np.ones(89)
    with pytest.raises(ValueError, match=r"this matrix is 40 x 90"):
        Gram(RBF(1.0), X, Z).rmatvec(np.ones(40))


def test_points_that_do_not_fit():
    with pytest.raises(ValueError, match="X has 4 features and Z has 3"):
        Gram(RBF(1.0), X, Z[:, :3])
    with pytest.raises(ValueError, match="Z contains NaN at row 0, column 0"):
        Gram(RBF(1.0), X, np.full((2, 4), np.nan))
    with pytest.raises(ValueError, match="period has 2 entries but the points have 4 features"):
        Gram(Periodic(period=[1.0, 2.0]), X)


def test_an_overflow_names_the_points_of_the_whole_matrix():
    far = np.ones((100, 2))
    far[71] = 1e200
    K = Gram(Linear(), far)
    for call in (K.dense, K.diag, lambda: K.rows([71]), lambda: K.block([70, 71], [71]), lambda: K @ np.ones(100)):
        with pytest.raises(FloatingPointError, match="of points 71 and 71 is inf"):
            call()
