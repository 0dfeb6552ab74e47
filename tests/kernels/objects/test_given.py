"""Similarities given from outside."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import PolynomialFeatures

from mercer.estimators.shared.parameters import FromMatrices
from mercer.gram import Gram
from mercer.kernels import RBF, FromFeatures, FromFunction, Linear, Polynomial, Precomputed
from samples import SIMILARITIES, indices, letter_counts, shared_letters, squares, vectors, words


def test_points_are_indices():
    k = Precomputed(SIMILARITIES)
    i, j = indices(), indices(7, seed=1)
    np.testing.assert_array_equal(k(i, j), SIMILARITIES[np.ix_(i, j)])
    np.testing.assert_array_equal(k.diag(i), np.diag(SIMILARITIES)[i])
    np.testing.assert_array_equal(k(i[:, None]), k(i))
    np.testing.assert_array_equal(k([0, 2]), SIMILARITIES[np.ix_([0, 2], [0, 2])])
    np.testing.assert_array_equal(k(range(3)), SIMILARITIES[:3, :3])


def test_whole_numbers_and_float32_are_taken():
    assert Precomputed([[2, 1], [1, 2]])([0, 1]).dtype == np.float64
    assert Precomputed(np.eye(2, dtype=np.float32))([0, 1]).dtype == np.float32


def test_matrices_compare_by_value():
    assert Precomputed(np.eye(3)) == Precomputed(np.eye(3).tolist()) == Precomputed(np.eye(3))
    assert Precomputed(np.eye(3)) != Precomputed(2 * np.eye(3))
    large = np.eye(30)
    assert Precomputed(large) == Precomputed(large.copy())
    assert hash(Precomputed(large)) == hash(Precomputed(large.copy()))
    assert repr(Precomputed(large)) == "Precomputed(matrix=<30 x 30 float64 array>)"


def test_nothing_is_proven():
    assert Precomputed(np.eye(3)).proof().status == "unproven"


@pytest.mark.parametrize("matrix", [np.ones((2, 3)), np.ones(4), [["a"]], np.eye(2) * 1j])
def test_the_matrix_must_be_square_and_of_numbers(matrix):
    with pytest.raises(ValueError, match=r"matrix of Precomputed must be a square matrix of numbers; it has shape"):
        Precomputed(matrix)


def test_the_matrix_must_be_finite():
    matrix = np.eye(3)
    matrix[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"contains nan at \(1, 2\); every entry must be finite"):
        Precomputed(matrix)


def test_points_must_be_indices_into_it():
    k = Precomputed(np.eye(3))
    with pytest.raises(IndexError, match=r"X contains index 3, but the precomputed matrix has 3 rows: 0 to 2"):
        k([0, 3])
    with pytest.raises(IndexError, match=r"Z contains index -1"):
        k([0], [-1])
    for points in ([0.5, 1.0], ["a", "b"], np.eye(3)):
        with pytest.raises(TypeError, match=r"by their index into its matrix; X has shape .*numpy.arange\(n\)"):
            k(points)


@dataclass(frozen=True)
class Interval:
    start: float
    end: float


def overlap(a: Interval, b: Interval) -> float:
    return max(0.0, min(a.end, b.end) - max(a.start, b.start))


def test_any_objects_may_be_compared():
    points = [Interval(0, 2), Interval(1, 3), Interval(5, 6)]
    np.testing.assert_array_equal(FromFunction(overlap)(points), [[2, 1, 0], [1, 2, 0], [0, 0, 1]])
    np.testing.assert_array_equal(FromFunction(overlap)(points, points[1:]), [[1, 0], [2, 0], [0, 1]])
    np.testing.assert_array_equal(FromFunction(overlap).diag(points), [2, 2, 1])


def test_ragged_sequences_are_objects_too():
    points = [[1, 2, 3], [2], (3, 2, 5, 7)]
    K = FromFunction(lambda a, b: float(len(set(a) & set(b))))(points)
    np.testing.assert_array_equal(K, [[3, 1, 2], [1, 1, 1], [2, 1, 4]])


def test_rows_of_matrices_and_tables_are_points():
    X = vectors(6)
    dot = FromFunction(lambda x, z: float(np.dot(x, z)))
    np.testing.assert_allclose(dot(X), X @ X.T, rtol=1e-14)
    np.testing.assert_allclose(dot(X.tolist()), X @ X.T, rtol=1e-14)
    pandas = pytest.importorskip("pandas")
    np.testing.assert_allclose(dot(pandas.DataFrame(X)), X @ X.T, rtol=1e-14)
    K = FromFunction(lambda x, z: float((x @ z.T).sum()))(sparse.csr_array(X))
    np.testing.assert_allclose(K, X @ X.T, rtol=1e-14)


def test_a_function_of_vectors_joins_the_algebra():
    X = vectors()
    inner = FromFunction(lambda x, z: float(x @ z))
    np.testing.assert_allclose((inner * RBF(1.0) + 1.0)(X), (Linear() * RBF(1.0) + 1.0)(X), rtol=1e-12, atol=1e-13)


def test_values_that_are_no_numbers_are_refused():
    def broken(a, b):
        return float("nan") if {3, 7} == {int(a), int(b)} else 1.0

    said = r"the kernel function .*broken returned nan for points 3 and 7; .* mend the function"
    points = list(range(10))
    for k in (FromFunction(broken), 2 * FromFunction(broken) + 1):
        with pytest.raises(FloatingPointError, match=said):
            k(points)
        with pytest.raises(FloatingPointError, match=said):
            Gram(k, points).block([3], [5, 7])
    with pytest.raises(FloatingPointError, match=r"returned nan for points 1 and 1"):
        FromFunction(lambda a, b: float("nan") if a == 2 else 1.0).diag([1, 2])
    matrix = FromMatrices(lambda A, B: np.where(A > B.T, np.inf, 1.0))
    with pytest.raises(FloatingPointError, match=r"<lambda> returned inf for points 4 and 3"):
        matrix(np.array([[0.0], [0.0], [0.0], [0.0], [1.0]]), np.array([[9.0], [9.0], [9.0], [0.5]]))
    with pytest.raises(TypeError, match=r"f of FromFunction must be a function of two points; it is 3"):
        FromFunction(3)


def test_features_of_each_object_or_of_all():
    points = words()
    counts = np.array([letter_counts(word) for word in points])
    np.testing.assert_array_equal(FromFeatures(letter_counts, each=True)(points), counts @ counts.T)
    X = vectors()
    np.testing.assert_allclose(FromFeatures(squares)(X), squares(X) @ squares(X).T, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(FromFeatures(lambda X: X[:, 0])(X), np.outer(X[:, 0], X[:, 0]), rtol=1e-13)


def test_features_of_a_fitted_transformer():
    documents = ["a b a", "b c", "c c a"]
    counts = CountVectorizer(token_pattern=r"\w").fit(documents)
    wanted = counts.transform(documents).toarray() @ counts.transform(documents).toarray().T
    np.testing.assert_array_equal(FromFeatures(counts)(documents), wanted)
    X, monomials = vectors(), PolynomialFeatures(2)
    np.testing.assert_allclose(
        FromFeatures(monomials.fit(X))(X), monomials.transform(X) @ monomials.transform(X).T, rtol=1e-12, atol=1e-12
    )


def test_features_of_the_polynomial_kernel():
    X, k = vectors(), Polynomial(3)
    phi = k.feature_map().fit(X)
    np.testing.assert_allclose(FromFeatures(phi)(X), k(X), rtol=1e-11, atol=1e-9)


def test_feature_maps_are_checked():
    with pytest.raises(TypeError, match=r"phi of FromFeatures must be a function or a transformer; it is 3"):
        FromFeatures(3)
    with pytest.raises(ValueError, match=r"turned 24 points into 5; it must keep their number"):
        FromFeatures(lambda X: X[:5])(vectors())
    with pytest.raises(ValueError, match=r"X is ragged"):
        FromFeatures(list, each=True)([[1.0], [1.0, 2.0]])


def test_what_is_known_of_a_function():
    assert FromFunction(shared_letters).proof().status == "unproven"
    assert FromFeatures(squares).proof().status == "proven"
