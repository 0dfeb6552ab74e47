"""Mean embeddings: means of functions as inner products, distances of samples, and the test of whether they differ.

The test's statistic by brute force, its level by simulation, its power against a shift.
"""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats
from sklearn.metrics.pairwise import rbf_kernel

from cases import each
from mercer.kernels import (
    RBF,
    FromFeatures,
    FromFunction,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from mercer.rkhs import MMDResult, RKHSFunction, mean_embedding, mmd_test, squared_mmd, witness
from samples import SIMILARITIES, SPACES, letter_counts, shared_letters, vectors, words

spaces = st.sampled_from(SPACES)
seeds = st.integers(0, 2**20)


def unbiased(K, n):
    """The estimate written out: means over pairs of different points."""
    xx, yy, xy = K[:n, :n], K[n:, n:], K[:n, n:]
    m = len(yy)
    inside = (xx.sum() - np.trace(xx)) / (n * (n - 1)) + (yy.sum() - np.trace(yy)) / (m * (m - 1))
    return inside - 2 * xy.mean()


@given(spaces, seeds, st.booleans())
def test_means_are_inner_products(space, seed, weighted):
    kernel, points = space
    X, centres = points(9, seed=seed), points(6, seed=seed + 1)
    rng = np.random.default_rng(seed)
    w = rng.exponential(size=9) if weighted else None
    f = RKHSFunction(kernel, centres, rng.normal(size=6))
    size = np.abs(f.coefficients).sum() * np.abs(kernel(centres, X)).max()
    assert f @ mean_embedding(kernel, X, w) == pytest.approx(np.average(f(X), weights=w), abs=1e-12 * (1 + size))


@given(spaces, seeds)
def test_the_distance_of_embeddings_is_the_formula(space, seed):
    kernel, points = space
    X, Y = points(8, seed=seed), points(6, seed=seed + 1)
    p, q = mean_embedding(kernel, X), mean_embedding(kernel, Y)
    K, L, M = kernel(X), kernel(Y), kernel(X, Y)
    size = max(np.abs(K).max(), np.abs(L).max())
    squared = K.mean() + L.mean() - 2 * M.mean()
    assert squared_mmd(X, Y, kernel, unbiased=False) == pytest.approx(squared, abs=1e-11 * size)
    assert p.distance(q) ** 2 == pytest.approx(squared, abs=1e-11 * size)
    assert witness(X, Y, kernel).norm() == pytest.approx(p.distance(q), abs=1e-5 * math.sqrt(size))
    both = np.block([[K, M], [M.T, L]])
    assert squared_mmd(X, Y, kernel) == pytest.approx(unbiased(both, 8), abs=1e-11 * size)
    assert squared_mmd(X, Y, kernel) == pytest.approx(squared_mmd(Y, X, kernel), abs=1e-11 * size)


def test_with_the_linear_kernel_it_is_the_distance_of_the_means():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 4)), rng.normal(size=(20, 4)) + 1.0
    assert squared_mmd(X, Y, Linear(), unbiased=False) == pytest.approx(np.sum((X.mean(0) - Y.mean(0)) ** 2))


def test_the_default_is_a_gaussian_kernel_of_the_median_distance():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 2)), rng.normal(size=(20, 2)) + 1.0
    Z = np.vstack([X, Y])
    distance = np.linalg.norm(Z[:, None] - Z, axis=2)[np.triu_indices(50, 1)]
    K = rbf_kernel(Z, gamma=0.5 / np.median(distance) ** 2)
    assert squared_mmd(X, Y) == pytest.approx(unbiased(K, 30))
    assert witness(X, Y).kernel == RBF("median").resolve(Z)


def test_the_unbiased_estimate_has_mean_zero_over_all_divisions():
    Z = np.random.default_rng(0).exponential(size=(12, 2))
    rng = np.random.default_rng(1)
    found = []
    for _ in range(2000):
        order = rng.permutation(12)
        found.append(squared_mmd(Z[order[:5]], Z[order[5:]], Polynomial(2)))
    assert abs(np.mean(found)) < 4 * np.std(found) / math.sqrt(2000)


def test_the_witness_has_the_largest_difference_of_means():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 1)), rng.laplace(size=(50, 1))
    f = witness(X, Y, RBF(0.5))
    best = (f(X).mean() - f(Y).mean()) / f.norm()
    assert best == pytest.approx(f.norm())
    for seed in range(20):
        centres, a = rng.normal(size=(5, 1)), np.random.default_rng(seed).normal(size=5)
        other = RKHSFunction(RBF(0.5), centres, a)
        assert (other(X).mean() - other(Y).mean()) / other.norm() <= best * (1 + 1e-12)


@pytest.mark.parametrize(("kernel", "points"), SPACES, ids=["rbf", "linear", "sum", "ard", "words", "matrix", "table"])
def test_order_does_not_matter_and_equal_samples_do_not_differ(kernel, points):
    X, Y = points(9), points(7, seed=3)
    back = X.iloc[::-1] if isinstance(X, pd.DataFrame) else X[::-1]
    size = 1e-11 * np.abs(kernel.diag(X)).max()
    for choice in (True, False):
        found = squared_mmd(X, Y, kernel, unbiased=choice)
        assert squared_mmd(back, Y, kernel, unbiased=choice) == pytest.approx(found, abs=100 * size)
    assert squared_mmd(X, back, kernel, unbiased=False) == pytest.approx(0.0, abs=size)


def test_containers():
    X, Y = vectors(8), vectors(6, seed=1)
    found = squared_mmd(X, Y, RBF(1.0))
    assert squared_mmd(X.tolist(), Y, RBF(1.0)) == pytest.approx(found)
    assert squared_mmd(sparse.csr_array(X), sparse.csr_array(Y), RBF(1.0)) == pytest.approx(found)
    assert squared_mmd(pd.DataFrame(X), pd.DataFrame(Y), RBF(1.0)) == pytest.approx(found)
    torch = pytest.importorskip("torch")
    assert squared_mmd(torch.tensor(X), torch.tensor(Y), RBF(1.0)) == pytest.approx(found)


def test_float32_samples_are_compared_in_double():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)).astype(np.float32)
    Y = X + np.float32(1e-4)
    exact = squared_mmd(X.astype(np.float64), Y.astype(np.float64), RBF(1.0), unbiased=False)
    assert squared_mmd(X, Y, RBF(1.0), unbiased=False) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("factor", [1e-150, 1e-8, 1.0, 1e8, 1e150])
def test_the_median_scale_makes_it_independent_of_units(factor):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 2)), rng.normal(size=(30, 2)) + 0.5
    assert squared_mmd(factor * X, factor * Y) == pytest.approx(squared_mmd(X, Y), rel=1e-9)


def test_weights_are_shares():
    X = [[0.0], [1.0], [2.0]]
    assert mean_embedding(RBF(1.0), X, [2, 2, 4]).coefficients.tolist() == [0.25, 0.25, 0.5]
    assert mean_embedding(RBF(1.0), X, [1e308, 1e308, 0]).coefficients.tolist() == [0.5, 0.5, 0.0]


def test_errors_are_sentences():
    X = np.zeros((3, 2))
    with pytest.raises(ValueError, match=r"weights have shape \(2,\) and there are 3 points"):
        mean_embedding(RBF(1.0), X, [1.0, 1.0])
    with pytest.raises(ValueError, match="at least 0 and not all 0; they lie between -1 and 1"):
        mean_embedding(RBF(1.0), X, [1.0, -1.0, 0.0])
    with pytest.raises(ValueError, match="not all 0"):
        mean_embedding(RBF(1.0), X, [0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="3 and 1 points; the unbiased estimate averages over pairs"):
        squared_mmd(X, X[:1])
    with pytest.raises(TypeError, match="kernel must be a kernel object such as"):
        squared_mmd(X, X, "rbf")
    with pytest.raises(
        ValueError, match="X has the columns 0, 1 and Y has 0, 1, 2; two samples are compared by the same"
    ):
        witness(X, np.zeros((4, 3)))
    with pytest.raises(ValueError, match="X has the columns a and Y has b"):
        witness(pd.DataFrame({"a": [1.0]}), pd.DataFrame({"b": [1.0]}))
    with pytest.raises(ValueError, match="contains NaN"):
        squared_mmd(X, np.full((2, 2), np.nan))
    with pytest.raises(ValueError, match="Y is empty"):
        squared_mmd(X, X[:0])
    with pytest.raises(TypeError, match="not numeric"):
        squared_mmd(["a", "b"], ["c", "d"])


# -- the two-sample test ----------------------------------------------------------------------------------

METHODS = ("permutation", "block")


def samples(seed, n=30, m=25, shift=0.0, d=2):
    rng = np.random.default_rng((n, m, d, seed))
    return rng.normal(size=(n, d)), rng.normal(size=(m, d)) + shift


# -- the statistic ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("unbiased", [True, False])
@pytest.mark.parametrize("n", [4, 25])
def test_the_statistic_and_those_of_the_permutations_are_squared_distances(unbiased, n):
    X, Y = samples(0, n=n, m=5, shift=1.0)
    found = mmd_test(X, Y, Laplacian(1.0), n_permutations=50, unbiased=unbiased, random_state=0)
    assert found.statistic == pytest.approx(squared_mmd(X, Y, Laplacian(1.0), unbiased=unbiased))
    if n > 4:
        return
    Z = np.vstack([X, Y])
    divisions = np.array(list(itertools.combinations(range(9), 4)))
    rest = [np.setdiff1d(np.arange(9), chosen) for chosen in divisions]
    possible = [
        squared_mmd(Z[a], Z[b], Laplacian(1.0), unbiased=unbiased) for a, b in zip(divisions, rest, strict=True)
    ]
    nearest = np.abs(found.null.values[:, None] - np.array(possible)).min(axis=1)
    assert nearest.max() < 1e-13


def test_with_many_permutations_the_p_value_is_that_of_all_divisions():
    X, Y = samples(1, n=5, m=5, shift=0.8)
    Z = np.vstack([X, Y])
    kernel = RBF("median").resolve(Z)
    observed = squared_mmd(X, Y, kernel)
    divisions = [np.array(c) for c in itertools.combinations(range(10), 5)]
    reached = [squared_mmd(Z[c], Z[np.setdiff1d(np.arange(10), c)], kernel) >= observed - 1e-12 for c in divisions]
    p = mmd_test(X, Y, n_permutations=20_000, random_state=0).pvalue
    share = np.mean(reached)
    assert abs(p - share) < 4 * math.sqrt(share * (1 - share) / 20_000) + 1e-4


def test_the_matrix_need_not_fit_the_budget():
    X, Y = samples(2, n=300, m=200, shift=0.2)
    held = mmd_test(X, Y, n_permutations=60, random_state=7)
    streamed = mmd_test(X, Y, n_permutations=60, random_state=7, budget="200 kB")
    assert streamed.statistic == pytest.approx(held.statistic, rel=1e-10)
    assert streamed.null.values == pytest.approx(held.null.values, abs=1e-12)
    assert streamed.pvalue == held.pvalue


def test_one_block_has_the_permutation_test_as_its_limit():
    X, Y = samples(3, n=60, m=40, shift=0.2)
    block = mmd_test(X, Y, method="block", block_size=100, random_state=0)
    permuted = mmd_test(X, Y, n_permutations=20_000, random_state=0)
    assert block.statistic == pytest.approx(permuted.statistic)
    values = permuted.null.values
    assert abs(values.mean()) < 4 * values.std() / math.sqrt(len(values))
    assert block.null.deviation == pytest.approx(values.std(), rel=0.03)
    assert block.null.skewness == pytest.approx(stats.skew(values), rel=0.15)
    for level in (0.01, 0.05, 0.2):
        assert block.threshold(level) == pytest.approx(permuted.threshold(level), rel=0.1)
    assert block.pvalue == pytest.approx(permuted.pvalue, abs=0.02)


def test_blocks_are_parts_of_both_samples():
    X, Y = samples(4, n=90, m=30, shift=3.0)
    found = [mmd_test(X, Y, RBF(1.0), method="block", block_size=size, random_state=0) for size in (12, 40, 120)]
    assert [f.statistic for f in found] == pytest.approx([found[-1].statistic] * 3, rel=0.2)
    assert found[0].null.deviation > found[1].null.deviation > found[2].null.deviation


def test_order_does_not_change_the_statistic():
    X, Y = samples(5, shift=0.5)
    found = mmd_test(X, Y, random_state=0)
    assert mmd_test(X[::-1], Y[::-1], random_state=1).statistic == pytest.approx(found.statistic, rel=1e-10)
    assert mmd_test(Y, X, random_state=1).statistic == pytest.approx(found.statistic, rel=1e-10)


# -- the level --------------------------------------------------------------------------------------------


def pvalues(method, draws, **options):
    """Of samples of one law, or of two where there is a shift."""
    tests = (mmd_test(*samples(i, **options), method=method, n_permutations=199, random_state=i) for i in range(draws))
    return np.array([found.pvalue for found in tests])


def test_p_values_of_few_permutations_are_uniform_on_their_grid():
    found = [mmd_test(*samples(i, n=6, m=5), n_permutations=9, random_state=i).pvalue for i in range(1000)]
    counts = np.bincount(np.round(10 * np.array(found)).astype(int), minlength=11)[1:]
    assert counts.sum() == 1000
    assert stats.chisquare(counts).pvalue > 1e-4


def test_p_values_of_many_blocks_are_uniform():
    found = [mmd_test(*samples(i, n=600, m=400), method="block", block_size=10, random_state=i) for i in range(60)]
    assert stats.kstest([test.pvalue for test in found], "uniform").pvalue > 1e-3
    assert all(0 < test.null.skewness < 0.5 for test in found)


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("n", "m", "d"), [(40, 40, 1), (60, 30, 3)])
def test_type_one_error(method, n, m, d):
    draws = 1000
    found = pvalues(method, draws, n=n, m=m, d=d)
    for level in (0.01, 0.05, 0.1, 0.2):
        assert abs(np.mean(found <= level) - level) <= 3 * math.sqrt(level * (1 - level) / draws)


@pytest.mark.parametrize("method", METHODS)
def test_power_grows_with_the_shift(method):
    power = [np.mean(pvalues(method, 60, shift=shift) <= 0.05) for shift in (0.0, 0.4, 0.8, 1.6)]
    assert power == sorted(power)
    assert power[0] < 0.2
    assert power[-1] > 0.9


def test_it_sees_more_than_means():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(300, 1)), rng.laplace(scale=math.sqrt(0.5), size=(300, 1))  # same mean and variance
    assert stats.ttest_ind(X[:, 0], Y[:, 0]).pvalue > 0.05
    assert mmd_test(X, Y, RBF(0.5), random_state=0).rejects(0.01)
    assert not mmd_test(X, Y, Linear(), random_state=0).rejects(0.01)


# -- the result -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shift", [0.0, 0.7])
def test_thresholds_agree_with_p_values(method, shift):
    X, Y = samples(6, shift=shift)
    found = mmd_test(X, Y, method=method, n_permutations=199, random_state=0)
    assert isinstance(found, MMDResult)
    for level in (0.001, 0.01, 0.05, 0.3, 0.9):
        assert found.rejects(level) == (found.statistic > found.threshold(level)) == (found.pvalue <= level)
    assert found.witness.norm() == pytest.approx(witness(X, Y).norm())
    assert repr(found).startswith(f"MMDResult(statistic={found.statistic:.6g}, pvalue={found.pvalue:.4g}, method=")
    assert "sizes=(30, 25), kernel=RBF(scale=" in repr(found)
    with pytest.raises(AttributeError):
        found.pvalue = 0.0


@pytest.mark.parametrize("method", METHODS)
def test_equal_seeds_give_equal_results(method):
    X, Y = samples(7)
    a, b, c = (mmd_test(X, Y, method=method, block_size=10, random_state=seed) for seed in (0, 0, 1))
    assert (a.statistic, a.pvalue) == (b.statistic, b.pvalue)
    assert a.pvalue != c.pvalue


# -- inputs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_strings(method):
    X = words(40)
    Y = ["c" * (1 + len(word) // 2) for word in words(30, seed=1)]
    for kernel in (FromFunction(shared_letters), FromFeatures(letter_counts, each=True)):
        assert mmd_test(X, Y, kernel, method=method, random_state=0).rejects(0.01)
        assert not mmd_test(X, words(30, seed=5), kernel, method=method, random_state=0).rejects(0.01)


def test_tables_sparse_matrices_indices_and_tensors():
    X, Y = samples(8, shift=0.4)
    found = mmd_test(X, Y, random_state=0)
    for container in (sparse.csr_array, pd.DataFrame, list):
        same = mmd_test(container(X), container(Y), random_state=0)
        assert (same.pvalue, same.statistic) == (found.pvalue, pytest.approx(found.statistic, rel=1e-9))
    assert mmd_test([0, 1, 2], [3, 4, 5, 0], Precomputed(SIMILARITIES), random_state=0).sizes == (3, 4)
    torch = pytest.importorskip("torch")
    assert mmd_test(torch.tensor(X), torch.tensor(Y), random_state=0).pvalue == found.pvalue


def test_an_indefinite_kernel_gives_a_statistic_with_the_right_level():
    X, Y = samples(9)
    assert 0 < mmd_test(X, Y, Sigmoid(1.0, -1.0), random_state=0).pvalue <= 1


# -- hostile samples --------------------------------------------------------------------------------------


@each("method", METHODS)
@each("value", [0.0, 0.1, 1e8])
@each("kernel", [None, Linear(), RBF(0.3)], ids=["median", "linear", "rbf"])
def test_constant_samples_do_not_differ(method, value, kernel):
    found = mmd_test(np.full((20, 2), value), np.full((15, 2), value), kernel, method=method, random_state=0)
    assert found.pvalue == 1.0
    assert found.statistic == pytest.approx(0.0, abs=1e-12 * (1 + value**2))
    assert not found.rejects(0.5)


@pytest.mark.parametrize("method", METHODS)
def test_equal_samples_do_not_differ(method):
    X, _ = samples(10)
    assert mmd_test(X, X, method=method, random_state=0).pvalue > 0.5
    assert mmd_test(X, X, unbiased=False, random_state=0).pvalue == 1.0


@pytest.mark.parametrize("method", METHODS)
def test_repeated_points_are_ties(method):
    rng = np.random.default_rng(0)
    X, Y = rng.integers(0, 2, size=(20, 1)), rng.integers(0, 2, size=(20, 1))
    found = mmd_test(X, Y, method=method, random_state=0)
    assert 0 < found.pvalue <= 1
    assert math.isfinite(found.statistic)


def test_the_smallest_samples():
    X = np.array([[0.0], [1.0], [5.0], [6.0]])
    alone = mmd_test(X[:1], X[1:2], unbiased=False, random_state=0)
    assert (alone.pvalue, alone.sizes) == (1.0, (1, 1))
    one = mmd_test(X[:1], X[1:], unbiased=False, n_permutations=99, random_state=0)
    assert 0 < one.pvalue <= 1
    two = mmd_test(X[:2], X[2:], n_permutations=3000, random_state=0)  # 2 of the 6 divisions are this one
    assert two.pvalue == pytest.approx(1 / 3, abs=0.03)
    with pytest.raises(ValueError, match=r"1 and 3 points; the unbiased estimate .* Use unbiased=False"):
        mmd_test(X[:1], X[1:])
    with pytest.raises(ValueError, match="samples of 2 and 2 points are too few for blocks, which need 6"):
        mmd_test(X[:2], X[2:], method="block")
    assert 0 < mmd_test(X[:2], np.vstack([X, X]), method="block", random_state=0).pvalue <= 1


@pytest.mark.parametrize("factor", [1e-120, 1.0, 1e120])
@pytest.mark.parametrize("method", METHODS)
def test_units_do_not_matter(factor, method):
    X, Y = samples(11, shift=0.5)
    found = mmd_test(factor * X, factor * Y, method=method, random_state=0)
    assert found.pvalue == pytest.approx(mmd_test(X, Y, method=method, random_state=0).pvalue)


def test_far_from_the_origin_the_linear_kernel_still_tells():
    X, Y = samples(12, shift=2.0)
    assert mmd_test(X + 1e5, Y + 1e5, Linear(), random_state=0).rejects(0.01)


@pytest.mark.parametrize("method", METHODS)
def test_very_unequal_sizes(method):
    X, Y = samples(13, n=5, m=2000, shift=3.0)
    assert mmd_test(X, Y, method=method, n_permutations=199, random_state=0).rejects(0.01)


def test_errors_of_the_test_are_sentences():
    X, Y = samples(14)
    with pytest.raises(ValueError, match="method must be 'permutation' or 'block'; it is 'bootstrap'"):
        mmd_test(X, Y, method="bootstrap")
    with pytest.raises(ValueError, match="n_permutations must be a whole number >= 1; it is 0"):
        mmd_test(X, Y, n_permutations=0)
    with pytest.raises(ValueError, match="block_size must be a whole number >= 6; it is 2"):
        mmd_test(X, Y, method="block", block_size=2)
    with pytest.raises(ValueError, match=r"level must be a number between 0 and 1, such as 0.05; it is 5"):
        mmd_test(X, Y, random_state=0).rejects(5)
    with pytest.raises(TypeError, match="kernel must be a kernel object"):
        mmd_test(X, Y, "rbf")
    with pytest.raises(ValueError, match="one row per point"):
        mmd_test(X[:, 0], Y[:, 0])
