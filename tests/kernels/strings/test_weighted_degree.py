"""The weighted degree kernel counts equal substrings at equal or near places."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer import FromFunction, WeightedDegree
from strings_by_hand import STRINGS, weighted_degree


@given(X=STRINGS, degree=st.integers(1, 4), shift=st.integers(0, 3))
def test_counts_by_hand(X, degree, shift):
    slow = FromFunction(lambda x, z: weighted_degree(x, z, degree, shift))
    np.testing.assert_allclose(WeightedDegree(degree, shift)(X), slow(X), rtol=1e-12)


@given(X=STRINGS, Z=STRINGS, degree=st.integers(1, 4))
def test_the_feature_map(X, Z, degree):
    slow = FromFunction(lambda x, z: weighted_degree(x, z, degree, 0))
    phi = WeightedDegree(degree).feature_map().fit(X)
    np.testing.assert_allclose((phi.transform(X) @ phi.transform(X).T).toarray(), slow(X), rtol=1e-12)
    if type(X[0]) is type(Z[0]):
        np.testing.assert_allclose((phi.transform(X) @ phi.transform(Z).T).toarray(), slow(X, Z), rtol=1e-12)


@pytest.mark.parametrize("shift", [1, 2, 5, 40])
def test_shifts_keep_it_positive(shift):
    spectrum = 1 + sum(np.cos(s * np.linspace(0, np.pi, 20_001)) / (s + 1) for s in range(1, shift + 1))
    assert spectrum.min() >= 0.5 - 1e-12  # Rogosinski and Szegoe
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("AC"), 30)) for _ in range(40)]
    assert np.linalg.eigvalsh(WeightedDegree(3, shift)(X))[0] > -1e-9


@pytest.mark.parametrize("given", [(0,), (2, -1), (1.5,)])
def test_bad_parameters(given):
    with pytest.raises(ValueError, match="of WeightedDegree must be a whole number"):
        WeightedDegree(*given)
