"""The subsequence kernel sums over all pairs of equal subsequences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer import FromFunction, Subsequence
from strings_by_hand import STRINGS, subsequence


@given(X=STRINGS.map(lambda X: [x[:7] for x in X]), n=st.integers(1, 4), decay=st.sampled_from([0.3, 0.5, 1.0]))
def test_sums_by_hand(X, n, decay):
    slow = FromFunction(lambda x, z: float(subsequence(x, z, n, decay)))
    np.testing.assert_allclose(Subsequence(n, decay)(X), slow(X), rtol=1e-12)


def test_all_lengths():
    rng = np.random.default_rng(8)
    X = ["".join(rng.choice(list("ab"), size)) for size in (10, 9, 12, 3, 0)]
    so_far = 0.0
    for n in range(1, 9):
        by_hand = FromFunction(lambda x, z, n=n: float(subsequence(x, z, n, 0.7)))(X)
        so_far += by_hand
        np.testing.assert_allclose(Subsequence(n, 0.7)(X), by_hand, rtol=1e-12, err_msg=f"n={n}")
        np.testing.assert_allclose(Subsequence(n, 0.7, blended=True)(X), so_far, rtol=1e-12, err_msg=f"n={n}, blended")


def test_the_example_of_the_paper():
    K = Subsequence(2, 0.5)(["cat", "car"])
    assert K[0, 1] == 0.5**4
    assert K[0, 0] == 2 * 0.5**4 + 0.5**6


def test_many_strings_of_many_lengths():
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("ab"), n)) for n in rng.integers(0, 60, 50)]
    K = Subsequence(3, 0.7)(X)
    np.testing.assert_array_equal(K, K.T)
    for i, j in rng.integers(0, 50, (30, 2)):
        np.testing.assert_allclose(Subsequence(3, 0.7)([X[i]], [X[j]])[0, 0], K[i, j], rtol=1e-12)


def test_a_long_string():
    assert Subsequence(2, 0.5)(["ab" * 50_000], ["abc"])[0, 0] > 0


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((0, 0.5), "length of Subsequence must be a whole number >= 1"),
        ((2, 0.0), "decay of Subsequence must be > 0"),
        ((2, 1.5), r"decay of Subsequence must be at most 1, .* it is 1\.5"),
    ],
)
def test_bad_parameters(given, says):
    with pytest.raises(ValueError, match=says):
        Subsequence(*given)
