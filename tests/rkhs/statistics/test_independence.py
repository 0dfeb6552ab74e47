"""The independence test: its statistic by brute force, its level by simulation, its power against dependence."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.metrics.pairwise import rbf_kernel

from cases import each
from mercer.gram import Gram
from mercer.kernels import RBF, Delta, FromFunction, Laplacian, Linear, Polynomial, Precomputed, Sigmoid
from mercer.rkhs import HSICResult, hsic_test, squared_mmd
from mercer.rkhs.statistics.independence import dense_alignment, factored_alignment
from samples import SIMILARITIES, shared_letters, words

METHODS = ("permutation", "block")


def pairs(seed, n=40, strength=0.0, d=1):
    """Variables that are uncorrelated at every strength, and independent at 0."""
    rng = np.random.default_rng((n, d, seed))
    X, noise = rng.normal(size=(n, d)), rng.normal(size=(n, d))
    return X, strength * (X**2 - 1) + noise


def biased(K, L):
    n = len(K)
    H = np.eye(n) - 1 / n
    return np.trace(K @ H @ L @ H) / n**2


def unbiased(K, L):
    """Means over sets of two, three and four different indices (Gretton et al. 2008)."""
    n = len(K)
    two = [K[i, j] * L[i, j] for i, j in itertools.permutations(range(n), 2)]
    three = [K[i, j] * L[i, k] for i, j, k in itertools.permutations(range(n), 3)]
    four = [K[i, j] * L[k, m] for i, j, k, m in itertools.permutations(range(n), 4)]
    return np.mean(two) - 2 * np.mean(three) + np.mean(four)


# -- the statistic ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel_x", "kernel_y"),
    [(RBF(1.0), Laplacian(2.0)), (Linear(), Polynomial(2)), (Sigmoid(0.5, -0.5), RBF(0.5))],
    ids=["smooth", "polynomials", "indefinite"],
)
def test_the_statistic_is_the_formula(kernel_x, kernel_y):
    X, Y = pairs(0, n=9, strength=0.5, d=2)
    K, L = kernel_x(X), kernel_y(Y)
    found = hsic_test(X, Y, kernel_x, kernel_y, n_permutations=9, unbiased=False, random_state=0)
    assert found.statistic == pytest.approx(biased(K, L))
    assert found.cka == pytest.approx(biased(K, L) / math.sqrt(biased(K, K) * biased(L, L)))
    found = hsic_test(X, Y, kernel_x, kernel_y, n_permutations=9, random_state=0)
    assert found.statistic == pytest.approx(unbiased(K, L))
    assert found.cka == pytest.approx(unbiased(K, L) / math.sqrt(unbiased(K, K) * unbiased(L, L)))
    block = hsic_test(X, Y, kernel_x, kernel_y, method="block", random_state=0)
    assert (block.statistic, block.cka) == (pytest.approx(found.statistic), pytest.approx(found.cka))


def test_with_linear_kernels_it_is_the_squared_covariance():
    X, Y = pairs(1, n=30, strength=1.0)
    found = hsic_test(X, Y, Linear(), Linear(), unbiased=False, random_state=0)
    assert found.statistic == pytest.approx(np.cov(X.T, Y.T, bias=True)[0, 1] ** 2)
    assert found.cka == pytest.approx(np.corrcoef(X.T, Y.T)[0, 1] ** 2)


def test_against_labels_it_is_the_squared_mmd():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(12, 2)), rng.normal(size=(8, 2)) + 1
    label = np.repeat([0, 1], [12, 8])[:, None]
    found = hsic_test(np.vstack([X, Y]), label, RBF(1.0), Delta(), unbiased=False, random_state=0)
    share = 12 * 8 / 20**2
    assert found.statistic == pytest.approx(2 * share**2 * squared_mmd(X, Y, RBF(1.0), unbiased=False))


def test_the_default_kernels_have_the_median_distances_as_scales():
    X, Y = pairs(2, n=20, strength=0.5, d=2)

    def gaussian(Z):
        return rbf_kernel(Z, gamma=0.5 / np.median(np.linalg.norm(Z[:, None] - Z, axis=2)[np.triu_indices(20, 1)]) ** 2)

    assert hsic_test(X, Y, unbiased=False, random_state=0).statistic == pytest.approx(biased(gaussian(X), gaussian(Y)))


def test_statistics_of_permutations_are_those_of_permuted_samples():
    X, Y = pairs(3, n=90, strength=0.5, d=2)  # more than one band of rows
    found = dense_alignment([Gram(RBF(1.0), X), Gram(Laplacian(1.0), Y)])
    orders = np.array([np.random.default_rng(seed).permutation(90) for seed in range(5)])
    for choice in (True, False):
        permuted = [
            hsic_test(X, Y[order], RBF(1.0), Laplacian(1.0), n_permutations=1, unbiased=choice).statistic
            for order in orders
        ]
        assert found.statistics(orders, choice) == pytest.approx(permuted, rel=1e-9)


def test_factors_and_matrices_agree():
    X, Y = pairs(4, n=300, strength=0.3)
    grams = [Gram(RBF(1.0), X), Gram(RBF(2.0) + Linear(), Y)]
    dense = dense_alignment(grams)
    factored = factored_alignment(grams, 60, exactly=True, rng=np.random.default_rng(0))
    assert 0 <= factored.error < 1e-6
    orders = np.array([np.random.default_rng(seed).permutation(300) for seed in range(20)])
    for choice in (True, False):
        apart = np.abs(factored.statistics(orders, choice) - dense.statistics(orders, choice))
        assert apart.max() <= 1e-6 * dense.statistics(orders, choice).std()
        assert factored.cka(choice) == pytest.approx(dense.cka(choice), abs=1e-8)
    assert factored_alignment(grams, 3, exactly=True, rng=np.random.default_rng(0)) is None


@pytest.mark.parametrize("rank", [4, 8, 16])
def test_the_error_of_approximate_factors_is_a_bound(rank):
    X, Y = pairs(5, n=250, strength=0.3, d=3)
    grams = [Gram(RBF(1.0), X), Gram(RBF(1.0), Y)]
    factored = factored_alignment(grams, rank, exactly=False, rng=np.random.default_rng(0))
    assert abs(factored.cka(False) - dense_alignment(grams).cka(False)) <= factored.error


def test_beyond_the_budget_factors_stand_for_the_matrices():
    X, Y = pairs(6, n=400, strength=0.4)
    exact = hsic_test(X, Y, n_permutations=99, random_state=0)
    small = hsic_test(X, Y, n_permutations=99, random_state=0, budget="600 kB")
    assert small.computed.startswith("factors of rank")
    assert small.error < 0.01
    assert small.cka == pytest.approx(exact.cka, abs=small.error + 1e-9)
    assert small.rejects(0.05) == exact.rejects(0.05)
    with pytest.raises(MemoryError, match=r"permuting two matrices of 400 x 400 would need .* use method='block'"):
        hsic_test(X, Y, budget="1 kB")
    with pytest.raises(MemoryError, match="for kernels that are proven positive semidefinite"):
        hsic_test(X, Y, Sigmoid(1.0, 0.0), budget="600 kB")


def test_one_block_has_the_permutation_test_as_its_limit():
    X, Y = pairs(7, n=80, strength=0.25)
    block = hsic_test(X, Y, method="block", block_size=80, random_state=0)
    permuted = hsic_test(X, Y, n_permutations=10_000, random_state=0)
    assert block.statistic == pytest.approx(permuted.statistic)
    values = permuted.null.values
    assert abs(values.mean()) < 4 * values.std() / math.sqrt(len(values))
    assert block.null.deviation == pytest.approx(values.std(), rel=0.04)
    assert block.null.skewness == pytest.approx(stats.skew(values), rel=0.2)
    assert block.pvalue == pytest.approx(permuted.pvalue, abs=0.02)


def test_order_and_sides_do_not_matter():
    X, Y = pairs(8, strength=0.5)
    found = hsic_test(X, Y, RBF(1.0), Laplacian(1.0), random_state=0)
    order = np.random.default_rng(0).permutation(40)
    for other in (
        hsic_test(X[order], Y[order], RBF(1.0), Laplacian(1.0), random_state=1),
        hsic_test(Y, X, Laplacian(1.0), RBF(1.0), random_state=1),
    ):
        assert (other.statistic, other.cka) == (pytest.approx(found.statistic), pytest.approx(found.cka))


# -- the level --------------------------------------------------------------------------------------------


def pvalues(method, draws, **options):
    tests = (hsic_test(*pairs(i, **options), method=method, n_permutations=199, random_state=i) for i in range(draws))
    return np.array([found.pvalue for found in tests])


def test_p_values_of_few_permutations_are_uniform_on_their_grid():
    found = [hsic_test(*pairs(i, n=8), n_permutations=9, random_state=i).pvalue for i in range(1000)]
    counts = np.bincount(np.round(10 * np.array(found)).astype(int), minlength=11)[1:]
    assert counts.sum() == 1000
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("n", "d"), [(40, 1), (60, 3)])
def test_type_one_error(method, n, d):
    draws = 1000
    found = pvalues(method, draws, n=n, d=d)
    for level in (0.01, 0.05, 0.1, 0.2):
        assert abs(np.mean(found <= level) - level) <= 3 * math.sqrt(level * (1 - level) / draws)


@pytest.mark.long
def test_type_one_error_of_approximate_factors():
    draws, found = 1000, []
    for i in range(draws):
        X, Y = pairs(i, n=60, d=3)
        test = hsic_test(X, Y, n_permutations=99, random_state=i, budget="20 kB")
        assert test.error > 0
        found.append(test.pvalue <= 0.05)
    assert abs(np.mean(found) - 0.05) <= 3 * math.sqrt(0.05 * 0.95 / draws)


@pytest.mark.parametrize("method", METHODS)
def test_power_grows_with_the_dependence(method):
    power = [np.mean(pvalues(method, 50, strength=strength) <= 0.05) for strength in (0.0, 0.3, 0.6, 2.0)]
    assert power == sorted(power)
    assert power[0] < 0.2
    assert power[-1] > 0.9


# -- the result -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("strength", [0.0, 0.7])
def test_thresholds_agree_with_p_values(method, strength):
    X, Y = pairs(9, strength=strength)
    found = hsic_test(X, Y, method=method, n_permutations=199, random_state=0)
    assert isinstance(found, HSICResult)
    assert -1 <= found.cka <= 1
    for level in (0.001, 0.01, 0.05, 0.3, 0.9):
        assert found.rejects(level) == (found.statistic > found.threshold(level)) == (found.pvalue <= level)
    assert repr(found).startswith(f"HSICResult(statistic={found.statistic:.6g}, pvalue={found.pvalue:.4g}, method=")
    assert f"cka={found.cka:.4g}, size=40, kernel_x=RBF(scale=" in repr(found)


def test_a_variable_is_aligned_with_itself():
    X, _ = pairs(10)
    for method, choice in (("permutation", True), ("permutation", False), ("block", True)):
        assert hsic_test(X, X, method=method, unbiased=choice, random_state=0).cka == pytest.approx(1.0)


# -- inputs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_strings_against_numbers(method):
    X = words(50)
    counts = np.array([[float(word.count("a"))] for word in X])
    kernel = FromFunction(shared_letters)
    assert hsic_test(X, counts, kernel, method=method, random_state=0).rejects(0.01)
    noise = np.random.default_rng(0).normal(size=(50, 1))
    assert not hsic_test(X, noise, kernel, method=method, random_state=0).rejects(0.01)


def test_tables_sparse_matrices_indices_and_tensors():
    X, Y = pairs(11, strength=0.3, d=2)
    found = hsic_test(X, Y, random_state=0)
    for container in (sparse.csr_array, pd.DataFrame, list):
        same = hsic_test(container(X), Y, random_state=0)
        assert (same.pvalue, same.statistic) == (found.pvalue, pytest.approx(found.statistic, rel=1e-9))
    where = np.random.default_rng(0).integers(0, 6, size=40)
    assert hsic_test(where, Y, Precomputed(SIMILARITIES), random_state=0).size == 40
    torch = pytest.importorskip("torch")
    assert hsic_test(torch.tensor(X), Y, random_state=0).pvalue == found.pvalue


# -- hostile samples --------------------------------------------------------------------------------------


@each("method", METHODS)
@each("value", [0.0, 0.1, 1e8])
@each("kernel", [None, Linear(), RBF(0.3)], ids=["median", "linear", "rbf"])
def test_a_constant_depends_on_nothing(method, value, kernel):
    _, Y = pairs(12)
    constant = np.full((40, 2), value)
    for found in (
        hsic_test(constant, Y, kernel, method=method, random_state=0),
        hsic_test(Y, constant, None, kernel, method=method, random_state=0),
        hsic_test(constant, constant, kernel, kernel, method=method, random_state=0),
    ):
        assert (found.pvalue, found.cka) == (1.0, 0.0)
        assert math.isfinite(found.statistic)


@pytest.mark.parametrize("method", METHODS)
def test_repeated_points_are_ties(method):
    rng = np.random.default_rng(0)
    X, Y = rng.integers(0, 2, size=(30, 1)), rng.integers(0, 2, size=(30, 1))
    found = hsic_test(X, Y, method=method, random_state=0)
    assert 0 < found.pvalue <= 1
    assert -1 <= found.cka <= 1


def test_the_smallest_samples():
    X = np.array([[0.0], [1.0], [3.0], [7.0]])
    for n in (1, 2, 3):
        assert 0 < hsic_test(X[:n], X[:n], unbiased=False, random_state=0).pvalue <= 1
    assert hsic_test(X[:1], X[:1], unbiased=False, random_state=0).pvalue == 1.0
    assert 0 < hsic_test(X, X, random_state=0).pvalue <= 1
    with pytest.raises(ValueError, match=r"there are 3 pairs; the unbiased estimate needs 4 of them"):
        hsic_test(X[:3], X[:3])
    with pytest.raises(ValueError, match="4 pairs are too few for blocks, which need 6; use method='permutation'"):
        hsic_test(X, X, method="block")


@pytest.mark.parametrize("factor", [1e-120, 1.0, 1e120])
@pytest.mark.parametrize("method", METHODS)
def test_units_do_not_matter(factor, method):
    X, Y = pairs(13, strength=0.4)
    found = hsic_test(factor * X, Y / factor, method=method, random_state=0)
    assert found.pvalue == pytest.approx(hsic_test(X, Y, method=method, random_state=0).pvalue)


def test_errors_are_sentences():
    X, Y = pairs(14)
    with pytest.raises(ValueError, match="X has 40 points and Y has 39; independence is a question about pairs"):
        hsic_test(X, Y[:-1])
    with pytest.raises(ValueError, match="method must be 'permutation' or 'block'; it is 'gamma'"):
        hsic_test(X, Y, method="gamma")
    with pytest.raises(ValueError, match=r"n_permutations must be a whole number >= 1; it is 2\.5"):
        hsic_test(X, Y, n_permutations=2.5)
    with pytest.raises(TypeError, match="kernel_y must be a kernel object"):
        hsic_test(X, Y, None, "rbf")
    with pytest.raises(ValueError, match="contains NaN"):
        hsic_test(X, np.full((40, 1), np.nan))
