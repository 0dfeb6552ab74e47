import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.metrics import pairwise_distances

from mercer import Gram, verdict
from mercer.kernels import Intersection, MinMax, Tanimoto
from samples import histograms, letter_sets, vectors

bits = arrays(bool, st.tuples(st.integers(1, 8), st.integers(1, 6)))
some_sets = st.lists(st.frozensets(st.one_of(st.integers(0, 5), st.text("ab", max_size=2), st.none())), min_size=1)


def jaccard(a, b):
    return len(a & b) / len(a | b) if a | b else 1.0


@given(bits)
def test_fingerprints_have_the_jaccard_index_of_scikit_learn(X):
    wanted = 1 - pairwise_distances(X, metric="jaccard")
    for k in (Tanimoto(), MinMax()):
        np.testing.assert_allclose(k(X), wanted, atol=1e-15)
        np.testing.assert_allclose(k.diag(X), 1.0, atol=1e-15)


@given(some_sets, some_sets)
def test_sets_are_compared_by_their_elements(A, B):
    for k in (Tanimoto(), MinMax()):
        np.testing.assert_allclose(k(A, B), [[jaccard(a, b) for b in B] for a in A], atol=1e-15)
        np.testing.assert_array_equal(k.diag(A), np.ones(len(A)))
    np.testing.assert_array_equal(Intersection()(A, B), [[len(a & b) for b in B] for a in A])
    np.testing.assert_array_equal(Intersection().diag(A), [len(a) for a in A])


def test_sets_and_their_indicators_are_one_kernel():
    A = letter_sets()
    X = np.array([[letter in a for letter in "abc"] for a in A], dtype=float)
    for k in (Tanimoto(), MinMax(), Intersection()):
        np.testing.assert_allclose(k(A), k(X), atol=1e-15)


@given(
    arrays(
        float, st.tuples(st.integers(1, 6), st.integers(1, 4)), elements=st.floats(0, 1e6).map(lambda v: round(v, 2))
    )
)
def test_min_max_is_the_sum_of_minima_over_the_sum_of_maxima(X):
    low, high = (f(X[:, None], X[None]).sum(axis=-1) for f in (np.minimum, np.maximum))
    np.testing.assert_allclose(MinMax()(X), np.where(high > 0, low / np.where(high > 0, high, 1), 1.0), rtol=1e-12)


@pytest.mark.parametrize("k", [Tanimoto(), MinMax()], ids=repr)
@pytest.mark.parametrize("density", [0.005, 0.2])
def test_sparse_points_are_compared_as_dense_ones_by_the_core(k, density):
    X = sparse.random_array((40, 900), density=density, format="csr", rng=np.random.default_rng(0))
    X[[3, 4]] = 0
    np.testing.assert_allclose(k(X), k(X.toarray()), rtol=1e-12, atol=1e-15)
    assert Gram(k, X).compiled
    assert k(X)[3, 4] == 1.0


@given(arrays(float, st.tuples(st.integers(1, 12), st.integers(1, 3)), elements=st.integers(-3, 3)))
def test_tanimoto_is_positive_on_all_real_vectors(X):
    assert verdict(Tanimoto(), X)


def test_the_series_of_the_proof():
    X = vectors()[3:]
    q = X @ X.T / ((X**2).sum(axis=1)[:, None] + (X**2).sum(axis=1))
    np.testing.assert_allclose(Tanimoto()(X), sum(q**m for m in range(1, 60)), atol=1e-12)


def test_negative_entries_are_refused_where_minima_mean_nothing():
    X = histograms(5)
    X[3, 1] = -0.25
    with pytest.raises(ValueError, match=r"X contains -0\.25 at row 3, column 1; .*non-negative"):
        MinMax()(X)


@pytest.mark.parametrize("k", [Tanimoto(), MinMax(), Intersection()], ids=repr)
def test_what_is_no_set_among_sets_is_named(k):
    with pytest.raises(TypeError, match=r"X\[1\] is a list, \['b'\], among points that are sets; .*pass set\(x\)"):
        k([{"a"}, ["b"]])
    with pytest.raises(TypeError, match=r"Z\[1\] is a str, 'b', among points that are sets"):
        k([{"a"}], [{"a"}, "b"])


def test_missing_numbers_are_refused():
    with pytest.raises(ValueError, match="X contains NaN at row 1, column 0"):
        Tanimoto()([[1.0], [np.nan]])
