"""The mismatch kernel is the inner product over all k-mers of the alphabet."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer import FromFunction, Mismatch, Spectrum
from strings_by_hand import mismatch


@given(
    X=st.lists(st.text("abc", max_size=6), min_size=1, max_size=3),
    km=st.sampled_from([(1, 0), (2, 1), (3, 1), (3, 2)]),
    size=st.integers(3, 4),
)
def test_is_an_inner_product_of_neighbourhoods(X, km, size):
    slow = FromFunction(lambda x, z: mismatch(x, z, *km, "abcd"[:size]))
    np.testing.assert_array_equal(Mismatch(*km, alphabet=size)(X), slow(X))


def test_without_mismatches_it_is_the_spectrum_kernel():
    X = ["ACGTACGT", "ACGA", "", "AC"]
    np.testing.assert_array_equal(Mismatch(3, 0)(X), Spectrum(3)(X))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((0, 0), "k of Mismatch must be a whole number >= 1"),
        ((3, 3), "m of Mismatch must be below k; they are 3 and 3"),
        ((3, 1, 1), "alphabet of Mismatch must be a whole number >= 2"),
        ((60, 30, 20), r"more than 2\^64 k-mers"),
    ],
)
def test_bad_parameters(given, says):
    with pytest.raises(ValueError, match=says):
        Mismatch(*given)


def test_strings_of_more_letters_than_the_alphabet():
    with pytest.raises(ValueError, match=r"X has 5 different letters, more than the 4 .* alphabet=5"):
        Mismatch(2, 1)(["ACGT", "ACGN"])
