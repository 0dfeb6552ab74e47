"""The global alignment kernel against all alignments of short series."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer import SVC, FromFunction, GlobalAlignment
from strings_by_hand import all_alignments

SERIES = st.lists(st.lists(st.floats(-3, 3), min_size=1, max_size=5), min_size=1, max_size=4)


@given(X=SERIES, scale=st.sampled_from([0.5, 1.0, 3.0]), divisible=st.booleans())
def test_sums_over_all_alignments(X, scale, divisible):
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
