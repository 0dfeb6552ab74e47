"""Blocks of pairs: all ways to the same numbers, and errors that name the pair."""

import numpy as np
import pytest
from scipy import sparse

from mercer.kernels import RBF, Delta, FromFunction, Linear, Matern, Polynomial, Precomputed
from mercer.points import Block, Comparison, Diagonal, Points, comparison, diagonal

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((130, 4)), RNG.standard_normal((70, 4))


def similarity(x, z):
    return float(1 / (1 + np.abs(x - z).sum()))


WAYS = {
    "compiled": RBF(1.0).of,
    "arrays": Matern(1.3, 1.0).of,
    "python": FromFunction(similarity).of,
    "constant": lambda pair: 0.5,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("tile", [1 << 19, 1000])
def test_every_way_to_the_same_numbers(way, tile, monkeypatch):
    monkeypatch.setattr(comparison, "_TILE", tile)  # in one tile, and in many
    monkeypatch.setattr(comparison, "_INLINE", tile)  # in place, and on threads
    left, right = Points(A[:60]), Points(B[:40], "Z")
    for c, n, m in ((Comparison(WAYS[way], left, right), 60, 40), (Comparison(WAYS[way], left), 60, 60)):
        assert c.shape == (n, m)
        assert c.compiled == (way == "compiled")
        K = c.dense()
        assert K.shape == (n, m)
        assert K.dtype == c.dtype == np.float64
        np.testing.assert_allclose(K, np.broadcast_to(c.of(Block(c.left, c.right)), (n, m)), rtol=1e-13)
        np.testing.assert_array_equal(c.block(slice(3, 20), slice(1, 30)), K[3:20, 1:30])
        rows, cols = np.array([5, 5, 0]), np.array([7, 2])
        np.testing.assert_allclose(c.block(rows, cols), K[np.ix_(rows, cols)], rtol=1e-14)
        np.testing.assert_allclose(c.block(rows, slice(2, 9)), K[rows, 2:9], rtol=1e-14)
        for v in (RNG.standard_normal(m), RNG.standard_normal((m, 1)), RNG.standard_normal((m, 9))):
            np.testing.assert_allclose(c.matvec(v), K @ v, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(c.diag(), np.diag(K), rtol=1e-14)
    np.testing.assert_array_equal(K, K.T)


def test_the_diagonal_without_the_matrix():
    points = Points(np.abs(A))
    for k in (RBF(1.0), Linear(), Polynomial(3), Delta(), Matern(1.3, 1.0), FromFunction(similarity)):
        np.testing.assert_allclose(diagonal(k.of, points), np.diag(k(points)), rtol=1e-13)
    for name in ("dot", "chi2", "minimum", "sqsum"):
        one = getattr(Diagonal(points), name)
        np.testing.assert_allclose(one, np.diag(getattr(Block(points, points), name)), rtol=1e-13)


def test_a_statistic_is_computed_once_for_a_block(monkeypatch):
    calls = []
    compute = Block._compute
    monkeypatch.setattr(Block, "_compute", lambda self, *key: calls.append(key) or compute(self, *key))
    block = Block(Points(A), Points(B))
    for _ in range(3):
        block.sqdist()
        block.sqdist([1.0, 2.0, 3.0, 4.0])
        block.dot
    assert calls == [("sqdist", 1.0), ("sqdist", [1.0, 2.0, 3.0, 4.0]), ("dot", 1.0)]


@pytest.mark.parametrize(
    ("x", "z", "dtype"),
    [
        (np.float32, np.float32, np.float32),
        (np.float32, np.float64, np.float64),
        (np.float64, np.float32, np.float64),
        (np.float64, np.float64, np.float64),
    ],
)
def test_the_wider_of_two_types(x, z, dtype):
    left, right = Points(A.astype(x)), Points(B.astype(z))
    for k in (RBF(1.0), RBF([1.0, 2.0, 3.0, 4.0]), Linear() * 2.0, RBF(1.0).normalized()):
        K = Comparison(k.of, left, right).dense()
        assert K.dtype == dtype
        np.testing.assert_allclose(K, k(A, B), rtol=1e-3, atol=1e-5)
    sparse_left, sparse_right = sparse.csr_array(A.astype(x)), sparse.csr_array(B.astype(z))
    assert Comparison(RBF(1.0).of, Points(sparse_left), Points(sparse_right)).dense().dtype == dtype


def thin(n, seed, dtype=np.float64):
    matrix = sparse.random_array((n, 3000), density=0.003, rng=np.random.default_rng(seed), format="csr")
    return matrix.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_points_against_dense_ones(dtype):
    x, z = thin(40, 0, dtype), thin(30, 1, dtype)
    assert sparse.issparse(Points(x).vectors)
    for k in (RBF(1.0), Linear(), Polynomial(2), Delta(), RBF(np.linspace(1, 2, 3000).tolist())):
        expected = k(x.toarray(), z.toarray())
        for left, right in ((x, z), (x.toarray(), z), (x, z.toarray()), (x.tocoo(), z.tocsc())):
            np.testing.assert_allclose(k(left, right), expected, rtol=100 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(RBF(1.0)(x), RBF(1.0)(x).T)


# -- refusals ---------------------------------------------------------------------------------------------


def test_two_widths():
    with pytest.raises(ValueError, match="X has 4 features and Z has 3; both must have the same columns"):
        RBF(1.0)(A, B[:, :3])
    with pytest.raises(ValueError, match="X has 4 features and Z has 3"):
        Comparison(lambda p: p.differences(lambda d: d[:, 0]), Points(A), Points(B[:, :3], "Z")).dense()


def test_scales_that_do_not_fit():
    with pytest.raises(ValueError, match="scale has 3 entries but the points have 4 features"):
        RBF([1.0, 2.0, 3.0])(A)
    with pytest.raises(ValueError, match="scale has 3 entries but the points have 4 features"):
        RBF([1.0, 2.0, 3.0]).diag(A)


def test_vectors_that_do_not_fit():
    c = Comparison(RBF(1.0).of, Points(A), Points(B))
    for shape in ((130,), (71,), (1, 70), (), (70, 2, 2)):
        with pytest.raises(ValueError, match=r"this matrix is 130 x 70 and needs \(70,\) or \(70, k\)"):
            c.matvec(np.ones(shape))


def far(n=200, at=150, dtype=np.float64):
    X = np.ones((n, 2), dtype)
    X[at] = np.finfo(dtype).max / 4
    return X


def through_arrays(pair):
    return np.where(pair.dot > -1, pair.dot, pair.dot)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("of", [Linear().of, through_arrays], ids=["compiled", "arrays"])
@pytest.mark.parametrize("inline", [0, 10**9])
def test_an_overflow_names_the_pair(of, dtype, inline, monkeypatch):
    monkeypatch.setattr(comparison, "_INLINE", inline)
    monkeypatch.setattr(comparison, "_TILE", 5000)
    remedy = "pass float64 data or scale" if dtype is np.float32 else "; scale the features"
    sentence = rf"of points 150 and 150 is inf, outside the range of {np.dtype(dtype)}.*{remedy}.*StandardScaler"
    c = Comparison(of, Points(far(dtype=dtype)))
    two = Comparison(of, Points(far(dtype=dtype)), Points(far(dtype=dtype)))
    ones = np.ones(200, dtype)
    for call in (
        c.dense,
        two.dense,
        c.diag,
        lambda: c.block(slice(140, 160), slice(145, 155)),
        lambda: c.block(np.array([3, 150, 4]), np.array([9, 150])),
        lambda: c.block(np.array([3, 150, 4]), slice(100, 199)),
        lambda: c.block(slice(100, 199), np.array([150])),
    ):
        with pytest.raises(FloatingPointError, match=sentence):
            call()
    if c.compiled:
        for product in (c.matvec, two.matvec):
            with pytest.raises(FloatingPointError, match=sentence):
                product(ones)


def test_two_points_that_overflow_together_are_both_named():
    x, z = np.ones((90, 1)), np.ones((80, 1))
    x[70], z[5] = 1e200, 1e150
    with pytest.raises(FloatingPointError, match="points 70 and 5 is inf"):
        Linear()(x, z)


def test_a_product_that_overflows_though_no_value_does():
    c = Comparison(Linear().of, Points(np.full((3, 1), 1e100)))
    with pytest.raises(FloatingPointError, match=r"its terms are finite, their sum is not\. Scale the vector"):
        c.matvec(np.full(3, 1e300))


def test_a_vector_that_is_not_finite():
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="the vector contains NaN or infinite values"):
            Comparison(RBF(1.0).of, Points(A)).matvec(np.full(130, bad))


def test_a_distance_may_overflow_where_the_kernel_vanishes():
    X = np.array([[0.0], [1e300], [-1e300]])
    for k in (RBF(1.0), Matern(1.5, 1.0), Matern(1.3, 1.0)):  # compiled, compiled, arrays
        np.testing.assert_array_equal(k(X), np.eye(3))


def test_complex_vectors():
    for k in (RBF(1.0), Matern(1.3, 1.0)):
        c = Comparison(k.of, Points(A))
        v = RNG.standard_normal(130) + 1j * RNG.standard_normal(130)
        np.testing.assert_allclose(c.matvec(v), c.dense() @ v, rtol=1e-12)


def test_points_that_are_indices():
    k = Precomputed(np.arange(25.0).reshape(5, 5))
    np.testing.assert_array_equal(k([1, 3], [0, 4]), [[5, 9], [15, 19]])
    np.testing.assert_array_equal(k(np.array([[1], [3]])), [[6, 8], [16, 18]])
    with pytest.raises(IndexError, match="Z contains index 5, but the precomputed matrix has 5 rows: 0 to 4"):
        k([0], [5])
    with pytest.raises(TypeError, match="compares points by their index"):
        k([[0.5, 1.0]])


def test_equality_of_rows_and_of_objects():
    X = np.array([[1.0, 2.0], [1.0, 2.0], [1.0, np.nextafter(2.0, 3)]])
    np.testing.assert_array_equal(Delta()(X), [[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    np.testing.assert_array_equal(Delta()([(1, "a"), (1, "a"), (2, "a")]), [[1, 1, 0], [1, 1, 0], [0, 0, 1]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inner_products_beside_distances_are_those_alone(dtype):
    """One product serves both where the points need no centre; a block agrees with the whole."""
    X = np.random.default_rng(0).standard_normal((300, 12)).astype(dtype)
    parts = RBF(6.0), Matern(1.5, 6.0), Polynomial(2, 1.0, 0.1), Linear()
    whole = Comparison((parts[0] + parts[1] + parts[2] + parts[3]).of, Points(X))
    assert whole.inexact
    K = whole.dense()
    np.testing.assert_allclose(K, sum(k(X) for k in parts), rtol=1e-5 if dtype is np.float32 else 1e-13, atol=1e-5)
    np.testing.assert_array_equal(whole.block(slice(3, 290), slice(7, 280)), K[3:290, 7:280])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inner_products_come_from_differences_where_distances_by_products_would_do_harm(dtype):
    X = np.random.default_rng(0).standard_normal((300, 12))
    X = (X / np.linalg.norm(X, axis=1)[:, None]).astype(dtype)
    kernel = RBF(1e-3) + Linear()
    whole = Comparison(kernel.of, Points(X))
    assert not whole.inexact
    assert whole._derivable(whole.formula) == {()}
    K = whole.dense()
    np.testing.assert_allclose(K, RBF(1e-3)(X) + Linear()(X), rtol=0, atol=20 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(whole.block(slice(3, 9), slice(7, 20)), K[3:9, 7:20])
