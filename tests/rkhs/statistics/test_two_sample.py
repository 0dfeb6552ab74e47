"""The two-sample test: its statistic by brute force, its level by simulation, its power against a shift."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

from cases import each
from mercer.kernels import RBF, FromFeatures, FromFunction, Laplacian, Linear, Precomputed, Sigmoid
from mercer.rkhs import MMDResult, mmd_test, squared_mmd, witness
from samples import SIMILARITIES, letter_counts, shared_letters, words

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


def test_errors_are_sentences():
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
