"""Subsequences and alignments against all of those of short strings, one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer import SVC, EditSimilarity, FromFunction, GlobalAlignment, LocalAlignment, SmithWaterman, Subsequence
from strings_by_hand import STRINGS, alignments, all_alignments, edits, subsequence


@given(X=STRINGS.map(lambda X: [x[:7] for x in X]), n=st.integers(1, 4), decay=st.sampled_from([0.3, 0.5, 1.0]))
def test_sums_by_hand(X, n, decay):
    slow = FromFunction(lambda x, z: float(subsequence(x, z, n, decay)))
    np.testing.assert_allclose(Subsequence(n, decay)(X), slow(X), rtol=1e-12)


def test_all_lengths():
    rng = np.random.default_rng(8)
    X = ["".join(rng.choice(list("ab"), size)) for size in (9, 8, 10, 3, 0)]
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


SHORT = STRINGS.map(lambda X: [x[:4] for x in X][:3])
SCORES = st.sampled_from([(1.0, -1.0, 2.0, 1.0), (2.0, 0.5, 1.0, 0.0), (5.0, -4.0, 10.0, 1.0)])


def scores_of(match, mismatch, gap_open, gap_extend):
    return lambda x, z: alignments(x, z, lambda a, b: match if a == b else mismatch, gap_open, gap_extend)


@given(X=SHORT, scores=SCORES, beta=st.sampled_from([0.1, 0.5, 2.0]))
def test_sums_over_all_alignments(X, scores, beta):
    each = scores_of(*scores)
    slow = FromFunction(lambda x, z: float(np.exp(beta * np.array(each(x, z))).sum())).normalized()
    np.testing.assert_allclose(LocalAlignment(beta, *scores)(X), slow(X), rtol=1e-11)


@given(X=SHORT, scores=SCORES)
def test_finds_the_best_alignment(X, scores):
    each = scores_of(*scores)
    np.testing.assert_allclose(SmithWaterman(*scores)(X), FromFunction(lambda x, z: max(each(x, z)))(X), rtol=1e-12)


def test_sums_beyond_the_range_of_numbers():
    rng = np.random.default_rng(0)
    x = "".join(rng.choice(list("ACGT"), 1000))
    K = LocalAlignment(beta=2.0)([x, x[:500] + "A" + x[501:], "", x[::-1]])
    np.testing.assert_allclose(np.diag(K), 1.0)
    assert 0 < K[0, 1] <= 1
    assert K[0, 2] == 0  # exp(-1000) of what the string has with itself
    assert (np.linalg.eigvalsh(K) > -1e-12).all()


def test_the_best_score_is_no_kernel():
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("ab"), 4)) for _ in range(60)]
    K = SmithWaterman(match=1.0, mismatch=-1.0, gap_open=0.1, gap_extend=0.1)(X)
    assert np.linalg.eigvalsh(K)[0] < -1
    assert SmithWaterman().proof().status == "unproven"
    assert LocalAlignment().proof().proven


@pytest.mark.parametrize("cls", [LocalAlignment, SmithWaterman])
def test_bad_parameters_of_alignment(cls):
    with pytest.raises(ValueError, match=r"must be at least mismatch: .* they are 1\.0 and 2\.0"):
        cls(mismatch=2.0)
    with pytest.raises(ValueError, match=f"gap_open of {cls.__name__} must be >= 0"):
        cls(gap_open=-1.0)
    with pytest.raises(ValueError, match="beta of LocalAlignment must be > 0"):
        LocalAlignment(beta=0.0)


SERIES = st.lists(st.lists(st.floats(-3, 3), min_size=1, max_size=5), min_size=1, max_size=4)


@given(X=SERIES, scale=st.sampled_from([0.5, 1.0, 3.0]), divisible=st.booleans())
def test_sums_over_all_alignments_of_global_alignment(X, scale, divisible):
    def local(a, b):
        gauss = np.exp(-((a - b) ** 2) / (2 * scale**2))
        return gauss / (2 - gauss) if divisible else gauss

    slow = FromFunction(lambda x, z: float(all_alignments(x, z, local))).normalized()
    np.testing.assert_allclose(GlobalAlignment(scale, divisible)(X), slow(X), rtol=1e-9, atol=1e-300)


def test_series_of_rows_of_different_lengths():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 3)) for n in rng.integers(1, 20, 30)]
    K = GlobalAlignment(2.0)(X)
    np.testing.assert_allclose(np.diag(K), 1.0)
    assert np.linalg.eigvalsh(K)[0] > -1e-10
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    np.testing.assert_allclose(GlobalAlignment(2.0)([x @ turn for x in X]), K, rtol=1e-9)


def test_long_series_stay_in_range():
    rng = np.random.default_rng(0)
    X = [np.sin(np.arange(n) / 10) + rng.normal(size=n) / 10 for n in (1000, 1100, 3)]
    K = GlobalAlignment(1.0)(X)
    np.testing.assert_allclose(np.diag(K), 1.0)
    assert 0 < K[0, 1] < 1


def test_a_machine_tells_waves_apart():
    rng = np.random.default_rng(0)
    X = [np.sin(np.arange(rng.integers(30, 50)) * speed) for speed in [0.2, 0.6] * 15]
    model = SVC(kernel=GlobalAlignment(0.5)).fit(X, [0, 1] * 15)
    assert model.score(X, [0, 1] * 15) == 1.0


@pytest.mark.parametrize(
    ("X", "error", "says"),
    [
        (["ab"], TypeError, "point 0 of X is a str, 'ab'; this kernel compares series"),
        ([[1.0], []], TypeError, "point 1 of X is a list"),
        ([[1.0, np.nan]], ValueError, "point 0 of X has NaN"),
        ([np.ones((2, 2)), np.ones((2, 3))], ValueError, "point 1 of X has 3 numbers at each time, point 0 has 2"),
    ],
)
def test_points_that_are_no_series(X, error, says):
    with pytest.raises(error, match=says):
        GlobalAlignment()(X)


def test_says_what_is_proven():
    assert GlobalAlignment().proof().proven
    assert GlobalAlignment(divisible=False).proof().status == "unproven"


@given(X=STRINGS.map(lambda X: [x[:5] for x in X]))
def test_counts_edits(X):
    slow = FromFunction(lambda x, z: float(np.exp(-edits(x, z) / 3.0)))
    np.testing.assert_allclose(EditSimilarity(3.0)(X), slow(X), rtol=1e-12)


def test_is_not_proven():
    assert EditSimilarity().proof().status == "unproven"
    with pytest.raises(ValueError, match="scale of EditSimilarity must be > 0"):
        EditSimilarity(0.0)
