"""The largest eigenpairs against LAPACK on the whole matrix, in and out of memory, on data of every kind."""

import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import eigh
from sklearn.exceptions import ConvergenceWarning

from mercer import (
    RBF,
    Constant,
    Delta,
    FromFunction,
    Gram,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from mercer.gram import eigenpairs, top_eigenpairs


def whole(gram, center=False):
    """The matrix in float64, made without `gram`'s own operator, and centred by its definition."""
    X = gram.left.data
    if isinstance(X, np.ndarray) and X.dtype == np.float32:
        X = X.astype(np.float64)
    K = np.asarray(gram.kernel(X), dtype=np.float64)
    J = np.eye(len(K)) - 1 / len(K)
    return J @ K @ J if center else K


def agree(found, K, k, tol=1e-8):
    """Values, residuals and vectors of the pairs found, each against LAPACK or its definition."""
    size = np.abs(K).max() or 1.0  # squares of huge numbers are none
    K, values, residuals = K / size, found.values / size, found.residuals / size
    lambdas = eigh(K, eigvals_only=True)[::-1]
    slack = tol * abs(lambdas[0]) + found.rounding / size
    assert values.shape == residuals.shape == (k,)
    assert found.vectors.shape == (len(K), k)
    assert (np.diff(values) <= 0).all()
    assert np.abs(found.vectors.T @ found.vectors - np.eye(k)).max() < 1e-11
    true = np.linalg.norm(K @ found.vectors - found.vectors * values, axis=0)
    assert (true <= slack).all()
    assert (np.abs(true - residuals) <= slack).all()
    assert np.abs(values - lambdas[:k]).max() <= slack


@pytest.fixture
def by_products(monkeypatch):
    """Let no matrix go to LAPACK."""
    monkeypatch.setattr(eigenpairs, "_LAPACK_POINTS", 0)
    monkeypatch.setattr(eigenpairs, "_LAPACK_PART", 0)


def clustered(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((6, d))[rng.integers(0, 6, n)] * 3 + rng.standard_normal((n, d))


DATA = {
    "a smooth kernel": (RBF(1.5), np.random.default_rng(0).standard_normal((500, 2))),
    "a flat tail": (RBF("auto"), np.random.default_rng(1).standard_normal((600, 30))),
    "clusters": (RBF("auto"), clustered(500, 10)),
    "a rough kernel": (Matern(0.5, 2.0), np.random.default_rng(2).standard_normal((500, 3))),
    "rank 3": (Linear(), np.random.default_rng(3).standard_normal((500, 3))),
    "duplicates": (RBF(1.0), np.repeat(np.random.default_rng(4).standard_normal((25, 3)), 20, axis=0)),
    "heavy tails": (Polynomial(3, 1.0, 1.0), np.random.default_rng(5).standard_t(2, size=(500, 3))),
    "huge numbers": (RBF(1e8), 1e8 * np.random.default_rng(6).standard_normal((500, 3))),
    "squares beyond float64": (Linear(), 1e120 * np.random.default_rng(6).standard_normal((500, 3))),
    "squares below float64": (Linear(), 1e-100 * np.random.default_rng(6).standard_normal((500, 3))),
    "tiny numbers": (Linear(), 1e-9 * np.random.default_rng(7).standard_normal((500, 5))),
    "far from the origin": (RBF(1.0), 1e5 + np.random.default_rng(8).standard_normal((500, 3))),
    "not positive": (Sigmoid(1.0, -1.0), np.random.default_rng(9).standard_normal((500, 2))),
    "all alike": (RBF(1.0), np.ones((400, 2))),
    "the identity": (Delta(), np.arange(400.0)[:, None]),
    "a constant": (Constant(2.0), np.arange(400.0)[:, None]),
    "sparse": (
        RBF(1.0),
        sparse.random_array((500, 400), density=0.01, format="csr", rng=np.random.default_rng(10), dtype=float),
    ),
    "single precision": (RBF(1.0), np.random.default_rng(11).standard_normal((500, 4)).astype(np.float32)),
}


@pytest.mark.parametrize("center", [False, True], ids=["", "centred"])
@pytest.mark.parametrize("name", DATA)
def test_products_find_what_lapack_finds(by_products, name, center):
    kernel, X = DATA[name]
    gram = Gram(kernel, X)
    found = top_eigenpairs(gram, 7, center=center)
    assert found.how.startswith("Davidson")
    agree(found, whole(gram, center), 7)


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-8])
def test_float32_hides_nothing_that_the_residuals_do_not_tell(by_products, tol):
    X = np.random.default_rng(0).standard_normal((900, 20)) + 30  # far enough to lose digits
    gram = Gram(RBF(5.0), X)
    found = top_eigenpairs(gram, 5, tol=tol)
    K = whole(gram)
    true = np.linalg.norm(K @ found.vectors - found.vectors * found.values, axis=0)
    assert (true <= found.residuals + found.rounding).all()
    assert (found.residuals <= tol * found.values[0]).all()


@pytest.mark.parametrize("lapack", [False, True], ids=["products", "lapack"])
def test_centring_brings_the_row_sums(monkeypatch, lapack):
    monkeypatch.setattr(eigenpairs, "_LAPACK_POINTS", 1000 if lapack else 0)
    gram = Gram(RBF(1.0), np.random.default_rng(0).standard_normal((300, 2)))
    assert top_eigenpairs(gram, 3).sums is None
    for tol, off in ((1e-4, 1e-6), (1e-10, 1e-13)):
        assert np.allclose(top_eigenpairs(gram, 3, center=True, tol=tol).sums, whole(gram).sum(axis=1), rtol=off)


@pytest.mark.parametrize("name", ["a smooth kernel", "clusters", "rank 3", "heavy tails"])
def test_small_residuals_are_reached_when_asked_for(by_products, name):
    kernel, X = DATA[name]
    gram = Gram(kernel, X)
    found = top_eigenpairs(gram, 6, tol=1e-12)
    agree(found, whole(gram), 6, tol=1e-12)


def test_weights_are_masses(by_products):
    X = np.random.default_rng(0).standard_normal((400, 2))
    w = np.random.default_rng(1).uniform(0, 1, 400)
    w[:5] = 0
    root = np.sqrt(w)
    gram = Gram(RBF(1.0), X)
    agree(top_eigenpairs(gram, 6, weights=w), root[:, None] * whole(gram) * root, 6)
    # A point of weight 3 is three points.
    repeated = top_eigenpairs(Gram(RBF(1.0), np.repeat(X, 3, axis=0)), 4)
    assert np.allclose(top_eigenpairs(gram, 4, weights=np.full(400, 3.0)).values, repeated.values)


@pytest.mark.parametrize("weights", [[1.0, 2.0], [1.0, -1.0, 1.0], [1.0, np.nan, 1.0], [[1.0, 1.0, 1.0]]], ids=repr)
def test_weights_are_one_number_for_each_point(weights):
    with pytest.raises(ValueError, match="weights must be 3 finite numbers >= 0, one for each point"):
        top_eigenpairs(Gram(RBF(1.0), np.zeros((3, 1))), 1, weights=weights)


def test_weights_and_centring_are_two_things():
    with pytest.raises(ValueError, match="center=True and weights cannot be combined"):
        top_eigenpairs(Gram(RBF(1.0), np.zeros((3, 1))), 1, weights=np.ones(3), center=True)


@given(
    seed=st.integers(0, 2**16),
    n=st.integers(1, 40),
    d=st.integers(1, 4),
    repeated=st.booleans(),
    center=st.booleans(),
    lapack=st.booleans(),
    share=st.floats(0, 1),
)
@example(seed=1, n=24, d=1, repeated=False, center=True, lapack=False, share=0.375)  # a pair of 1.4 times tol
@example(seed=1765, n=24, d=1, repeated=False, center=True, lapack=False, share=0.75)  # more pairs than the rank
@settings(max_examples=60)
def test_any_number_of_pairs_of_any_matrix(seed, n, d, repeated, center, lapack, share):
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((n, d)), 0 if repeated else 8)
    gram = Gram(RBF(1.0) if seed % 2 else Linear(), X)
    k = 1 + int(share * (n - 1))
    with pytest.MonkeyPatch.context() as patch:
        if not lapack:
            patch.setattr(eigenpairs, "_LAPACK_POINTS", 0)
            patch.setattr(eigenpairs, "_LAPACK_PART", 0)
        found = top_eigenpairs(gram, k, center=center, seed=seed)
    assert found.how.startswith("LAPACK" if lapack else "Davidson")
    agree(found, whole(gram, center), k)


def test_both_ways_agree_on_vectors_and_signs(by_products):
    gram = Gram(RBF(1.0), np.random.default_rng(0).uniform(0, 3, (500, 1)))
    products = top_eigenpairs(gram, 5, tol=1e-12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(eigenpairs, "_LAPACK_POINTS", 1000)
        lapack = top_eigenpairs(gram, 5)
    assert lapack.how == "LAPACK"
    assert np.abs(products.vectors - lapack.vectors).max() < 1e-9
    largest = np.take_along_axis(lapack.vectors, np.abs(lapack.vectors).argmax(axis=0)[None], axis=0)
    assert (largest > 0).all()


def test_signs_do_not_hang_on_rounding():
    # On points that lie symmetrically, odd vectors have two largest entries.
    X = np.linspace(-1, 1, 301)[:, None]
    noise = 1e-14 * np.random.default_rng(0).standard_normal((3, *X.shape))
    one, *others = (top_eigenpairs(Gram(RBF(0.5), X + e), 6).vectors for e in noise)
    assert all(np.abs(one - other).max() < 1e-8 for other in others)


@pytest.mark.parametrize("n", [20, 80, 199])
def test_eigenvalues_that_are_equal_are_found(n):
    """LAPACK's "evr" finds none of the 79 equal ones of 80 points that are like nobody else."""
    far = Gram(RBF(1.0), 1e3 * np.arange(n)[:, None])
    found = top_eigenpairs(far, 2, center=True)
    assert found.values == pytest.approx([1.0, 1.0])
    assert np.allclose(found.vectors.T @ found.vectors, np.eye(2))


def test_what_the_sample_missed_is_found(by_products, monkeypatch):
    # A group of 30 equal points, far from all others, whose eigenvalue is 30; no column of it is drawn.
    monkeypatch.setattr(eigenpairs, "_SKETCH_RANK", 0.0)
    X = np.random.default_rng(0).standard_normal((800, 20))
    X[:30] = 1e3
    gram = Gram(RBF(4.0), X)
    lambdas = eigh(whole(gram), eigvals_only=True)[::-1]
    for seed in range(5):
        found = top_eigenpairs(gram, 4, seed=seed)
        assert np.abs(found.values - 30).min() < 1e-6
        assert np.abs(found.values - lambdas[:4]).max() < 1e-6


def test_kernels_of_python_and_of_matrices(by_products):
    words = ["".join(w) for w in np.random.default_rng(0).choice(list("abcd"), (150, 5))]
    gram = Gram(FromFunction(lambda a, b: float(sum(x == y for x, y in zip(a, b)))), words)
    found = top_eigenpairs(gram, 4)
    agree(found, gram.kernel(words), 4)
    X = np.random.default_rng(1).standard_normal((500, 3))
    K = RBF(1.0)(X)
    given_matrix = top_eigenpairs(Gram(Precomputed(K), np.arange(500)[:, None]), 4)
    agree(given_matrix, K, 4)


def test_the_budget_holds(by_products):
    n, k, budget = 1600, 5, 4 * 10**6  # the matrix would be 20 MB, and 10 MB in float32
    X = np.random.default_rng(0).standard_normal((n, 8))
    gram = Gram(RBF(3.0), X, budget=budget)
    gram.matvec(np.ones(n))  # what is kept with the points is there before
    top_eigenpairs(Gram(RBF(3.0), X[:50]), 1)
    tracemalloc.start()
    found = top_eigenpairs(gram, k)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= budget
    agree(found, whole(gram), k)


def test_a_budget_too_small_says_what_is_needed():
    gram = Gram(RBF(1.0), np.random.default_rng(0).standard_normal((2000, 3)), budget="1 MB")
    with pytest.raises(
        MemoryError, match=r"50 eigenpairs of 2000 points .* raise the budget .* or ask for fewer pairs"
    ):
        top_eigenpairs(gram, 50)


def test_unreached_tolerances_are_told(by_products, monkeypatch):
    monkeypatch.setattr(eigenpairs, "_MOST_PRODUCTS", 1)
    gram = Gram(RBF("auto"), np.random.default_rng(1).standard_normal((600, 30)))
    monkeypatch.setattr(eigenpairs, "_SKETCH_RANK", 0.0)
    with pytest.warns(ConvergenceWarning, match=r"residuals of \d+ of 9 eigenpairs are above tol=1e-08"):
        found = top_eigenpairs(gram, 9)
    K = whole(gram)
    true = np.linalg.norm(K @ found.vectors - found.vectors * found.values, axis=0)
    assert np.allclose(true, found.residuals, rtol=1e-6, atol=1e-9)


def test_results_repeat():
    gram = Gram(RBF(1.0), np.random.default_rng(0).standard_normal((500, 3)))
    a, b = (top_eigenpairs(gram, 3, seed=4) for _ in range(2))
    assert np.array_equal(a.vectors, b.vectors)


def test_torch_points(by_products):
    torch = pytest.importorskip("torch")
    X = np.random.default_rng(0).standard_normal((300, 3))
    found = top_eigenpairs(Gram(RBF(1.0), torch.as_tensor(X)), 4)
    agree(found, RBF(1.0)(X), 4)


@pytest.mark.parametrize("k", [0, 11, 2.0, True, "2"], ids=repr)
def test_k_is_a_number_of_points(k):
    with pytest.raises(ValueError, match=rf"k must be a whole number from 1 to 10, the number of points; it is {k!r}"):
        top_eigenpairs(Gram(RBF(1.0), np.arange(10.0)[:, None]), k)


@pytest.mark.parametrize("tol", [0.0, -1e-8, 1.0, float("nan"), "small"], ids=repr)
def test_tol_is_a_share(tol):
    with pytest.raises(ValueError, match="tol must lie between 0 and 1"):
        top_eigenpairs(Gram(RBF(1.0), np.arange(10.0)[:, None]), 2, tol=tol)


def test_two_sets_of_points_have_no_eigenvalues():
    with pytest.raises(ValueError, match=r"compares two sets of points; .* make it as Gram\(kernel, X\)"):
        top_eigenpairs(Gram(RBF(1.0), np.zeros((3, 1)), np.ones((3, 1))), 1)


@pytest.mark.long
def test_fifty_thousand_points_within_the_budget():
    n, k, budget = 50_000, 10, 400 * 2**20  # the matrix would be 20 GB
    X = clustered(n, 20)
    gram = Gram(RBF("auto"), X, budget=budget)
    gram.matvec(np.ones(n))
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = top_eigenpairs(gram, k)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= budget
    true = np.linalg.norm(gram.matvec(found.vectors) - found.vectors * found.values, axis=0)
    assert (true <= 1e-8 * found.values[0]).all()
    # A sample of the points has about the same eigenvalues, as shares of their number.
    sample = eigh(gram.kernel(X[:3000]), eigvals_only=True, subset_by_index=(2990, 2999))[::-1] / 3000
    assert np.abs(found.values / n - sample).max() < 0.1 * sample[0]
