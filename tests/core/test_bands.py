"""Products with a held triangle against the whole matrix."""

import itertools

import numpy as np
import pytest

from cases import each
from mercer import _core


def band_of(K, first, rows):
    width = -(-(len(K) - first) // 16) * 16
    band = np.zeros((rows, width), np.float32)
    band[:, : len(K) - first] = K[first : first + rows, first:]
    square = band[:, :rows]
    square[np.tril_indices(rows, -1)] = 0.0
    np.fill_diagonal(square, square.diagonal() / 2)
    return band


# The more vectors at once, the shorter the strips of columns: there are several, and a rest, in the last cases.
CASES = [*itertools.product([1, 7, 16, 100], [1, 2, 3, 4, 7]), (2500, 1), (1100, 2), (1100, 3), (600, 4), (1100, 7)]


@each(("n", "count"), CASES)
def test_bands_make_up_the_symmetric_product(n, count):
    rng = np.random.default_rng(n)
    K = rng.standard_normal((n, n)).astype(np.float32)
    K = K + K.T
    v, out = np.zeros((count, n + 16), np.float32), np.zeros((count, n + 16))
    v[:, :n] = rng.standard_normal((count, n))
    for first in range(0, n, 37):
        _core.band_product(band_of(K, first, min(37, n - first)), first, v, out)
    expected = v[:, :n].astype(float) @ K.astype(float)
    assert np.abs(out[:, :n] - expected).max() <= 1e-5 * np.abs(v).max() * np.abs(K).sum(axis=0).max()
    assert not out[:, n:].any()


def test_what_does_not_fit_is_refused():
    v, out = np.zeros((1, 32), np.float32), np.zeros((1, 32))
    with pytest.raises(ValueError, match="multiple of 16"):
        _core.band_product(np.zeros((2, 15), np.float32), 0, v, out)
    with pytest.raises(ValueError, match="at least as many"):
        _core.band_product(np.zeros((20, 16), np.float32), 0, v, out)
    for first in (-1, 17):
        with pytest.raises(ValueError, match="end of the band"):
            _core.band_product(np.zeros((2, 16), np.float32), first, v, out)
    with pytest.raises(ValueError, match="same shape"):
        _core.band_product(np.zeros((2, 16), np.float32), 0, v, np.zeros((2, 32)))
