import numpy as np
import pytest
from scipy.spatial.distance import cdist

from mercer import KernelPCA, repair, verdict
from mercer.kernels import RBF, FromDissimilarity, Laplacian, Linear
from samples import length_apart, vectors, words


def euclidean(x, z):
    return float(np.linalg.norm(x - z))


def manhattan(x, z):
    return float(np.abs(x - z).sum())


def edits(a, b):
    """Levenshtein's distance."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        row, above = [i + 1], row
        for j, z in enumerate(b):
            row.append(min(above[j + 1] + 1, row[j] + 1, above[j] + (x != z)))
    return float(row[-1])


def test_exponentials_of_known_distances_are_known_kernels():
    X = vectors()
    np.testing.assert_allclose(FromDissimilarity(manhattan, 2.0)(X), Laplacian(2.0)(X), rtol=1e-12, atol=1e-300)
    squared = FromDissimilarity(cdist(X, X, "sqeuclidean"), scale=2.0)
    np.testing.assert_allclose(squared(np.arange(len(X))), RBF(1.0)(X), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_about_an_origin_euclidean_distances_are_inner_products(scale):
    X, Z = vectors(), vectors(7, seed=1)
    k = FromDissimilarity(euclidean, scale, "centred", origin=Z[0])
    np.testing.assert_allclose(k(X, Z), Linear()(X - Z[0], Z - Z[0]) / scale**2, atol=1e-9)
    np.testing.assert_allclose(k.diag(X), ((X - Z[0]) ** 2).sum(axis=1) / scale**2, rtol=1e-10)


def test_the_origin_is_the_first_training_point_and_changes_no_distance():
    X = vectors(12)
    k = FromDissimilarity(euclidean, kind="centred").resolve(X)
    np.testing.assert_array_equal(k.origin, X[0])
    np.testing.assert_allclose(k(X)[0], 0.0, atol=1e-12)
    double_centred = KernelPCA(2, kernel=k).fit(X[:4])
    other = KernelPCA(2, kernel=k.replace(origin=X[7])).fit(X[:4])
    np.testing.assert_allclose(double_centred.eigenvalues_, other.eigenvalues_, rtol=1e-8, atol=1e-8)
    J = np.eye(4) - 0.25
    wanted = np.linalg.eigvalsh(-0.5 * J @ cdist(X[:4], X[:4]) ** 2 @ J)[::-1][:2]
    np.testing.assert_allclose(double_centred.eigenvalues_, wanted, rtol=1e-8, atol=1e-8)


def test_the_median_is_that_of_the_training_points():
    D = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 2.0], [5.0, 2.0, 0.0]])
    assert FromDissimilarity(D, "median").resolve([0, 1, 2]).scale == 2.0
    assert FromDissimilarity(length_apart, "median").resolve(["a", "b"]).scale == 1.0  # all equal


def test_verdict_and_repair_do_the_rest():
    texts = [*words(20), "abab", "baba", "aabb", "bbaa", "abcabc"]
    k = FromDissimilarity(edits, kind="centred").resolve(texts)
    assert k.proof().status == "unproven"
    assert "d^2 is conditionally negative definite" in k.proof().reason
    found = verdict(k, texts)
    assert not found
    assert found.witness @ k(texts) @ found.witness < 0
    mended = repair(k(texts), "clip")
    assert verdict(mended.matrix)
    np.testing.assert_allclose(mended.apply(k(texts)), mended.matrix, atol=1e-9 * np.abs(mended.matrix).max())


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: FromDissimilarity([[0.0, -1.0], [-1.0, 0.0]]), ValueError, r"contains -1; dissimilarities are >= 0"),
        (
            lambda: FromDissimilarity([[0.0, 1.0]]),
            ValueError,
            r"a function of two points, or a square matrix.*\(1, 2\)",
        ),
        (lambda: FromDissimilarity([[np.nan]]), ValueError, r"contains nan at \(0, 0\)"),
        (lambda: FromDissimilarity(max, scale=0.0), ValueError, "scale of FromDissimilarity must be > 0"),
        (lambda: FromDissimilarity(max, scale="auto"), TypeError, "scale of FromDissimilarity must be a number"),
        (lambda: FromDissimilarity(max, kind="log"), ValueError, "must be 'exp' or 'centred'; it is 'log'"),
        (lambda: FromDissimilarity(max, origin=1), ValueError, "origin of FromDissimilarity is 1, for which exp"),
        (
            lambda: FromDissimilarity(lambda x, z: -2.0)(["a"]),
            ValueError,
            "returned -2; dissimilarities are >= 0: mend",
        ),
        (lambda: FromDissimilarity(lambda x, z: np.nan)(["a"]), FloatingPointError, "returned nan for points 0 and 0"),
        (lambda: FromDissimilarity([[0.0]])([3]), IndexError, "X contains index 3"),
    ],
)
def test_what_is_wrong_is_said(make, error, sentence):
    with pytest.raises(error, match=sentence):
        make()


def test_points_without_a_hash_may_be_the_origin():
    k = FromDissimilarity(lambda a, b: float(len(a ^ b)), kind="centred").resolve([{1, 2}, {2}, {3}])
    assert hash(k) == hash(k.replace(origin={9}))
    assert k != k.replace(origin={9})
    np.testing.assert_allclose(k([{1, 2}, {2}, {3}]), [[0, 0, 0], [0, 1, 3], [0, 3, 9]])
