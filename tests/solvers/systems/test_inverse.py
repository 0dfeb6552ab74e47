"""The diagonal of an inverse, whichever way it is computed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.gram import Gram
from mercer.kernels import RBF
from mercer.solvers.systems.inverse import inverse_diagonal


@given(st.integers(2, 40), st.floats(1e-4, 1e3), st.booleans(), st.booleans(), st.integers(0, 10**6))
def test_it_is_that_of_the_inverse_with_or_without_a_border(n, alpha, intercept, streamed, seed):
    rng = np.random.default_rng(seed)
    X, shift = rng.normal(size=(n, 2)), alpha * rng.uniform(0.5, 2, n)
    M = RBF(1.0)(X) + np.diag(shift)
    if intercept:
        M = np.block([[M, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    found = inverse_diagonal(Gram(RBF(1.0), X, budget=16 * n * n if streamed else None), shift, intercept)
    np.testing.assert_allclose(found, np.linalg.inv(M).diagonal()[:n], rtol=1e-5, atol=1e-9)


def test_a_singular_matrix_has_none():
    with pytest.raises(np.linalg.LinAlgError, match=r"singular to rounding.*take a larger alpha"):
        inverse_diagonal(Gram(RBF(1.0), np.zeros((3, 1))), np.zeros(3))
