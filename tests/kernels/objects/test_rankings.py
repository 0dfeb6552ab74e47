import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import kendalltau

from mercer import Gram, verdict
from mercer.kernels import Kendall, Mallows
from samples import rankings

scores = st.integers(2, 6).flatmap(
    lambda n: arrays(float, st.tuples(st.integers(1, 8), st.just(n)), elements=st.integers(0, 5))
)
permutations = st.integers(2, 6).flatmap(lambda n: st.lists(st.permutations(range(n)), min_size=1, max_size=8))


def discordant(x, z):
    """Pairs in opposite orders, and a half for those tied in one ranking only."""
    signs = [[np.sign(r[i] - r[j]) for i in range(len(r)) for j in range(i)] for r in (x, z)]
    return sum(1.0 if s == -t != 0 else 0.5 if s != t else 0.0 for s, t in zip(*signs, strict=True))


@given(scores)
def test_kendall_is_the_tau_of_scipy(X):
    wanted = np.nan_to_num([[kendalltau(x, z).statistic for z in X] for x in X])
    np.testing.assert_allclose(Kendall()(X), wanted, atol=1e-14)


@given(scores)
def test_mallows_counts_discordant_pairs(X):
    wanted = np.exp([[-0.3 * discordant(x, z) for z in X] for x in X])
    np.testing.assert_allclose(Mallows(0.3)(X), wanted, rtol=1e-13)


@given(permutations)
def test_without_ties_both_are_functions_of_one_number(X):
    pairs = len(X[0]) * (len(X[0]) - 1) / 2
    np.testing.assert_allclose(Mallows(0.7)(X), np.exp(-0.7 * pairs * (1 - Kendall()(X)) / 2), rtol=1e-12)
    assert verdict(Mallows(0.7), X)


def test_only_the_order_counts():
    X = rankings()
    for k in (Kendall(), Mallows(0.5)):
        np.testing.assert_array_equal(k(np.exp(3 * X) - 7), k(X))
        assert Gram(k, X).compiled


def test_features_of_kendall():
    F = Kendall().feature_map().fit_transform(rankings())
    assert F.shape == (20, 10)
    np.testing.assert_allclose(F @ F.T, Kendall()(rankings()), atol=1e-14)


@pytest.mark.parametrize("k", [Kendall(), Mallows()], ids=repr)
def test_rankings_of_other_items_are_refused(k):
    with pytest.raises(ValueError, match=r"Z ranks 4 items and is compared with rankings of 3; .*the same items"):
        k([[1, 2, 3]], [[1, 2, 3, 4]])
    with pytest.raises(ValueError, match="X is ragged: its rows have different lengths"):
        k([[1, 2, 3], [1, 2]])
    with pytest.raises(ValueError, match="X ranks 1 item, which has no order; at least 2"):
        k([[1], [2]])
    with pytest.raises(ValueError, match="X contains NaN at row 0, column 2"):
        k([[1, 2, np.nan]])


def test_too_many_items_are_refused_with_a_way_out(monkeypatch):
    monkeypatch.setattr("mercer.machine.budget.available_memory", lambda: 2**26)
    with pytest.raises(MemoryError, match=r"all pairs of 2000 items in 3 rankings would need .*FromFunction\(lambda"):
        Kendall()(np.random.default_rng(0).random((3, 2000)))


def test_the_rate_is_positive():
    with pytest.raises(ValueError, match="rate of Mallows must be > 0 and finite; it is -1"):
        Mallows(-1.0)
