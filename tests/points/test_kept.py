"""Points rounded to 16 bits, against float64; and rows in a cache: what is kept, and what is replaced."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from mercer import RBF, Gram, Linear, Polynomial, _core
from mercer.gram.matrix import KernelMatrix
from mercer.points import Comparison, Points
from mercer.points.kept import Coarse, RowCache, whole

needs_vnni = pytest.mark.skipif(not _core.has_coarse(), reason="the processor, or MERCER_ISA, lacks AVX-512 VNNI")


def eighth(pair):
    return pair.dot**8


def made(kind, rng, n, d):
    x = rng.standard_normal((n, d)) / np.sqrt(d)
    if kind == "norms":
        x *= 10.0 ** rng.uniform(-3, 1, (n, 1))
    if kind == "zeros":
        x[rng.integers(n, size=n // 3)] = 0
    if kind == "extreme":
        x[::3] = 0
        x[::3, rng.integers(d)] = 1
        x[1::3] = -1
    return x


def all_values(products, n):
    return products.matvec(np.eye(n))


@each("kind", ["plain", "norms", "zeros", "extreme"])
@each("d", [1, 2, 16, 17, 40, 300, 5000])
@each("dtype", [np.float32, np.float64])
def test_whole_numbers_are_near_and_never_too_long(kind, d, dtype):
    x = made(kind, np.random.default_rng(d), 61, d).astype(dtype)
    q, units = whole(x)
    assert q.shape == (61, d + d % 2)
    assert q.dtype == np.int16
    exact = q.astype(np.int64)
    assert (np.abs(exact) <= 32767).all()  # never -32768
    assert (np.einsum("ij,ij->i", exact, exact) < 2**31).all()
    assert (np.abs(exact[:, :d] * units[:, None].astype(np.float64) - x) <= 0.501 * units[:, None]).all()
    size = np.linalg.norm(x, axis=1)
    assert (units <= size / 32000).all()
    assert not exact[:, d:].any()


def test_numbers_of_one_size_are_exact():
    x = 0.3 * np.random.default_rng(0).choice([-1.0, 0.0, 1.0], (40, 33))
    q, units = whole(x)
    assert np.allclose(q[:, :33] * units[:, None].astype(np.float64), x, rtol=1e-7, atol=0)


@needs_vnni
def test_one_point():
    x = made("plain", np.random.default_rng(0), 1, 16)
    assert np.allclose(Coarse.of(Comparison(eighth, Points(x))).matvec([2.0]), 2 * (x @ x.T)[0] ** 8, rtol=1e-3)


def test_whole_numbers_of_extreme_sizes():
    x = np.outer([1e-300, 1e-30, 1.0, 1e30, 1e300], np.linspace(-1, 1, 20))
    q, units = whole(x)
    assert (q == q[2]).all()
    assert np.allclose(units[1:4] / units[2], [1e-30, 1.0, 1e30])


@needs_vnni
@each("kind", ["plain", "norms", "zeros", "extreme"])
@each(("n", "d"), [(5, 16), (45, 17), (203, 40), (256, 75), (130, 300)])
@each("dtype", [np.float32, np.float64])
@each("of", [eighth, Linear().of, Polynomial(3, 1.0, 0.5).of, Polynomial(5, 0.5, 1.0).of])
def test_within_the_stated_error(kind, n, d, dtype, of):
    rng = np.random.default_rng(n)
    x = made(kind, rng, n, d).astype(dtype)
    products = Coarse.of(Comparison(of, Points(x)))
    K = Comparison(of, Points(x.astype(np.float64))).dense()
    assert products.shape == (n, n)
    assert products.error < 1e-3
    v = rng.standard_normal(n)
    # float32 sums add their own rounding
    allowed = products.error * np.abs(K.diagonal()).max() * np.abs(v).sum() + 1e-6 * np.abs(K) @ np.abs(v) + 1e-36
    assert (np.abs(products.matvec(v) - K @ v) <= allowed).all()
    values = all_values(products, n)
    assert np.array_equal(values, values.T)
    # Each value is good in proportion to the lengths of its own two points, however long others are.
    if of is eighth:
        lengths = np.linalg.norm(x.astype(np.float64), axis=1) ** 8
        assert (np.abs(values - K) <= 1e-3 * np.outer(lengths, lengths) + 1e-36).all()


@needs_vnni
def test_positive_semidefinite():
    x = made("plain", np.random.default_rng(1), 200, 18)
    eigenvalues = np.linalg.eigvalsh(all_values(Coarse.of(Comparison(Linear().of, Points(x))), 200))
    assert eigenvalues[0] > -2e-7 * eigenvalues[-1]


@needs_vnni
@pytest.mark.parametrize("n", [1001, 2500])
def test_many_points_and_columns_repeat_to_the_last_bit(n):
    rng = np.random.default_rng(n)
    points = Points(made("norms", rng, n, 31))
    products = Coarse.of(Comparison(Polynomial(4, 1.0, 1.0).of, points))
    V = rng.standard_normal((n, 3))
    K = Comparison(Polynomial(4, 1.0, 1.0).of, points).dense()
    found = products.matvec(V)
    assert found.dtype == np.float64
    assert found.shape == (n, 3)
    assert np.array_equal(found, products.matvec(V))
    allowed = (products.error + 1e-6) * np.abs(K).max() * np.abs(V).sum(axis=0)
    assert (np.abs(found - K @ V) <= allowed).all()
    assert np.array_equal(
        products.matvec(V[:, 0]), Coarse.of(Comparison(Polynomial(4, 1.0, 1.0).of, points)).matvec(V[:, 0])
    )


@needs_vnni
def test_formulas_that_read_numbers_of_the_points_or_maps_of_them():
    x = made("plain", np.random.default_rng(2), 120, 20)

    def of(pair):
        return pair.outer(_first) * pair.dot + pair.through(_doubled).dot ** 2

    K = Comparison(of, Points(x)).dense()
    assert np.abs(all_values(Coarse.of(Comparison(of, Points(x))), 120) - K).max() < 1e-4 * np.abs(K).max()


def _first(points):
    return points.vectors[:, 0]


def _doubled(points):
    return np.hstack([points.vectors, 2 * points.vectors])


@pytest.mark.parametrize(
    ("of", "sides"),
    [
        (RBF(scale=1.0).of, [np.ones((30, 20))]),
        (lambda pair: pair.dot + pair.sqdist(), [np.ones((30, 20))]),
        (lambda pair: pair.dot, [np.ones((30, 15))]),
        (lambda pair: pair.dot, [np.ones((30, 20)), np.ones((30, 20))]),
        (lambda pair: pair.dot, [np.eye(30)]),
        (lambda pair: pair.dot, [sp.random_array((50, 4000), density=0.001, format="csr", rng=0)]),
        (lambda pair: pair.call(lambda x, z: 1.0), [np.ones((30, 20))]),
    ],
    ids=["distances", "both", "narrow", "two sets", "thin", "sparse", "Python"],
)
def test_none_where_it_does_not_apply(of, sides):
    assert Coarse.of(Comparison(of, *map(Points, sides))) is None


@needs_vnni
def test_the_diagonal_is_put_right_where_it_has_most_of_the_error():
    X = made("plain", np.random.default_rng(6), 1003, 40)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    high, low = (Coarse.of(Comparison(of, Points(X))) for of in (eighth, Linear().of))
    assert high.exact_diagonal
    assert not low.exact_diagonal
    first = np.eye(1003)[:, ::100]
    assert np.abs(high.matvec(first)[::100].diagonal() - 1).max() < 1e-6
    assert high.error < 1e-5


@needs_vnni
def test_values_beyond_float32():
    x = 1e6 * made("plain", np.random.default_rng(3), 40, 20)
    comparison = Comparison(eighth, Points(x))
    products = Coarse.of(comparison)
    assert products.error == np.inf
    v = np.ones(40)
    assert np.allclose(products.matvec(v), comparison.matvec(v))
    with pytest.raises(FloatingPointError, match="outside the range of float32"):
        Coarse.of(Comparison(eighth, Points(x.astype(np.float32)))).matvec(v)


@needs_vnni
def test_vectors_of_the_wrong_shape_or_not_finite():
    products = Coarse.of(Comparison(eighth, Points(made("plain", np.random.default_rng(4), 40, 20))))
    with pytest.raises(ValueError, match=r"shape \(39,\); this matrix is 40 x 40"):
        products.matvec(np.ones(39))
    with pytest.raises(ValueError, match="NaN or infinite"):
        products.matvec(np.full(40, np.nan))


@needs_vnni
def test_products_use_it_when_they_may():
    rng = np.random.default_rng(5)
    X, V = made("plain", rng, 300, 24), rng.standard_normal((300, 2)) * [1e-80, 1e80]
    products = KernelMatrix(Gram(Polynomial(3, 1.0, 1.0), X))
    fine = products(V, single=True)
    products.use_coarse = True
    rough = products(V, single=True)
    assert products.coarse.error < 1e-4
    assert not np.array_equal(fine, rough)
    assert (np.abs(rough - fine).max(axis=0) < 1e-4 * np.abs(fine).max(axis=0)).all()
    assert np.array_equal(products(V), KernelMatrix(products.gram)(V))
    some = products.take(np.arange(0, 300, 2))
    plain = some(V[::2], single=True)
    some.use_coarse = True
    rough = some(V[::2], single=True)
    assert not np.array_equal(plain, rough)
    assert (np.abs(rough - plain).max(axis=0) < 1e-4 * np.abs(plain).max(axis=0)).all()
    products.hold_half()
    assert np.allclose(products(V, single=True) / V.max(axis=0), fine / V.max(axis=0), atol=1e-4)


MATRIX = np.random.default_rng(0).standard_normal((30, 7))


class Source:
    """Rows of a matrix, with a record of those that were computed."""

    def __init__(self):
        self.asked = []

    def __call__(self, index):
        assert len(set(index.tolist())) == len(index)  # never the same row twice
        self.asked.append(index.tolist())
        return MATRIX[index]


def cache(capacity, source=None):
    return RowCache(capacity, 7, np.float64, source or Source())


def test_rows_are_computed_once():
    source = Source()
    c = cache(4, source)
    np.testing.assert_array_equal(c.rows(np.array([3, 1])), MATRIX[[3, 1]])
    np.testing.assert_array_equal(c.rows(np.array([1, 2, 3])), MATRIX[[1, 2, 3]])
    assert source.asked == [[3, 1], [2]]
    assert c.hits == 2


def test_the_least_recently_used_row_is_replaced():
    source = Source()
    c = cache(3, source)
    c.rows(np.array([0, 1, 2]))
    c.rows(np.array([0]))  # 1 is now the oldest
    c.rows(np.array([5]))
    c.rows(np.array([0, 2, 5]))
    assert source.asked == [[0, 1, 2], [5]]
    c.rows(np.array([1]))
    assert source.asked[2:] == [[1]]


def test_a_row_asked_for_is_not_replaced_by_another_asked_for_with_it():
    c = cache(3)
    c.rows(np.array([0, 1, 2]))
    np.testing.assert_array_equal(c.rows(np.array([8, 0, 9])), MATRIX[[8, 0, 9]])
    slots = c.slots(np.array([9, 8, 0]))
    np.testing.assert_array_equal(c.slab[slots], MATRIX[[9, 8, 0]])


def test_repeated_rows_take_one_place():
    source = Source()
    c = cache(2, source)
    np.testing.assert_array_equal(c.rows(np.array([4, 4, 4, 4, 6])), MATRIX[[4, 4, 4, 4, 6]])
    assert source.asked == [[4], [6]] or source.asked == [[4, 6]]
    assert len(set(c.slots(np.array([4, 4, 6, 4])).tolist())) == 2


def test_more_rows_than_there_is_room_for():
    c = cache(3)
    index = np.random.default_rng(1).integers(0, 30, 50)
    np.testing.assert_array_equal(c.rows(index), MATRIX[index])
    with pytest.raises(ValueError, match="4 rows were asked for at once; the cache holds 3"):
        c.slots(np.arange(4))


def test_no_rows():
    c = cache(3)
    assert c.rows(np.array([], int)).shape == (0, 7)
    assert c.slots(np.array([], int)).shape == (0,)


def test_rows_are_copies():
    c = cache(3)
    c.rows(np.array([1]))[:] = 0
    np.testing.assert_array_equal(c.rows(np.array([1])), MATRIX[[1]])


@given(st.integers(1, 6), st.lists(st.lists(st.integers(0, 9), max_size=9), max_size=12), st.sets(st.integers(0, 11)))
def test_any_sequence_of_requests(capacity, requests, failures):
    """Also when computing fails in between: a row that was lost is lost, never mistaken for another."""
    number = iter(range(10**6))

    def compute(index):
        if next(number) in failures:
            raise FloatingPointError
        return MATRIX[index]

    c = cache(capacity, compute)
    for request in requests:
        index = np.array(request, int)
        try:
            np.testing.assert_array_equal(c.rows(index), MATRIX[index])
        except FloatingPointError:
            continue
