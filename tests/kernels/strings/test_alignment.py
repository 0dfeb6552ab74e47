"""Kernels of alignments against all alignments of short strings, one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer import FromFunction, LocalAlignment, SmithWaterman
from strings_by_hand import STRINGS, alignments

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
def test_bad_parameters(cls):
    with pytest.raises(ValueError, match=r"must be at least mismatch: .* they are 1\.0 and 2\.0"):
        cls(mismatch=2.0)
    with pytest.raises(ValueError, match=f"gap_open of {cls.__name__} must be >= 0"):
        cls(gap_open=-1.0)
    with pytest.raises(ValueError, match="beta of LocalAlignment must be > 0"):
        LocalAlignment(beta=0.0)
