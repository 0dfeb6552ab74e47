"""The moments of permutation statistics, against all permutations."""

import itertools

import numpy as np
import pytest

from mercer.rkhs.statistics.outcome import Invariants, hollow_centred, second, third


def matrix(n, seed):
    K = np.random.default_rng(seed).exponential(size=(n, n)) ** 2
    return K + K.T


@pytest.mark.parametrize("n", [6, 7])
def test_moments_are_means_over_all_permutations(n):
    A, B = hollow_centred(matrix(n, 0)), hollow_centred(matrix(n, 1))
    orders = np.array(list(itertools.permutations(range(n))))
    values = np.einsum("ij,pij->p", A, B[orders[:, :, None], orders[:, None, :]])
    a, b = Invariants.of(A), Invariants.of(B)
    assert values.mean() == pytest.approx(0.0, abs=1e-12 * np.abs(values).max())
    assert second(a, b) == pytest.approx(np.mean(values**2))
    assert third(a, b) == pytest.approx(np.mean(values**3))


@pytest.mark.parametrize("n", [3, 4, 9])
def test_hollow_and_centred(n):
    K = matrix(n, 2)
    A = hollow_centred(K)
    assert A.diagonal().tolist() == [0.0] * n
    assert A.sum(axis=1) == pytest.approx(np.zeros(n), abs=1e-12 * K.max())
    assert pytest.approx(A.T) == A
    shift = np.arange(n) * 3.0
    assert hollow_centred(K + shift + shift[:, None]) == pytest.approx(A, abs=1e-12 * (1 + K.max()))
    assert not hollow_centred(np.full((n, n), 0.1)).any()
