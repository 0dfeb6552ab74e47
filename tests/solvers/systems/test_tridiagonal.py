"""The tridiagonal form against the inverses it stands for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.solvers.systems.spectrum import Tridiagonal


def matrix(n, rank, seed):
    R = np.random.default_rng(seed).standard_normal((n, rank))
    return R @ R.T


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 40), share=st.floats(0.0, 1.0), seed=st.integers(0, 99), m=st.integers(1, 3))
def test_solutions_and_diagonals_of_the_inverses(n, share, seed, m):
    M = matrix(n, max(1, round(share * n)), seed)
    B = np.random.default_rng(seed).standard_normal((n, m))
    alphas = np.array([1e-3, 0.1, 10.0])
    parts, inner = Tridiagonal(M.copy()).path(B, alphas)
    rows, A, diagonal = next(iter(parts))
    assert rows == slice(0, n)
    for j, alpha in enumerate(alphas):
        C = np.linalg.inv(M + alpha * np.eye(n))
        room = 1e-10 * (np.linalg.norm(M) / alpha + 1) / alpha
        assert np.abs(A[:, j] - C @ B).max() <= room * np.abs(B).max()
        assert np.abs(diagonal[:, j] - C.diagonal()).max() <= room
        assert np.abs(inner[j] - B.T @ C @ B[:, -1]).max() <= room * n * np.abs(B).max() ** 2


@pytest.mark.parametrize("n", [1, 2, 127, 128, 129, 300, 1100])
def test_q_is_orthogonal_and_turns_the_matrix_into_t(n):
    M = matrix(n, n, 0)
    form = Tridiagonal(M.copy())
    T = np.diag(form.middle) + np.diag(form.beside, 1) + np.diag(form.beside, -1)
    assert np.abs(form.Q @ form.Q.T - np.eye(n)).max() < 1e-12
    assert np.abs(form.Q @ T @ form.Q.T - M).max() < 1e-12 * np.linalg.norm(M)
    values = np.linalg.eigvalsh(M)
    assert np.allclose([form.least, form.largest], values[[0, -1]], atol=1e-10 * values[-1])


def test_a_diagonal_matrix_needs_no_reflection():
    form = Tridiagonal(np.diag([3.0, 1.0, 2.0]))
    assert np.array_equal(form.Q, np.eye(3))
