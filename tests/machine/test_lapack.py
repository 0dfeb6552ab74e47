"""LAPACK in place: factors and inverses are those of NumPy, and other threads go on."""

import threading
import time

import numpy as np
import pytest

from mercer.machine.lapack import clear_above, potrf, trtri


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 7, 64, 130])
def test_factors_and_inverses_are_numpys(n, kind):
    A = np.random.default_rng(n).normal(size=(n, n))
    K = np.asfortranarray(A @ A.T + n * np.eye(n), dtype=kind)
    L = K.copy(order="F")
    tol = 1e-4 if kind == np.float32 else 1e-12
    assert potrf(L)
    np.testing.assert_array_equal(np.triu(L, 1), np.triu(K, 1))  # not touched
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(K), rtol=tol, atol=tol)
    assert trtri(L)
    clear_above(L)
    np.testing.assert_allclose(L @ np.linalg.cholesky(K), np.eye(n), atol=10 * tol)


def test_what_has_no_factor_is_told():
    assert not potrf(np.asfortranarray([[1.0, 0.0], [2.0, 1.0]]))
    assert not trtri(np.asfortranarray([[1.0, 0.0], [2.0, 0.0]]))


@pytest.mark.parametrize("M", [np.ones((2, 3)), np.ones((2, 2), int, order="F"), np.ones((4, 4))[::2, ::2]])
def test_other_matrices_are_refused_by_name(M):
    with pytest.raises(ValueError, match=r"potrf takes a square matrix of floats with contiguous columns"):
        potrf(M)


def test_other_threads_go_on():
    """The lock of Python is free during a factorisation: this thread counts while another computes."""
    M = np.asfortranarray(np.eye(1500) + 0.1)
    begun, over = threading.Event(), threading.Event()

    def compute():
        begun.set()
        for _ in range(10):
            potrf(M.copy(order="F"))
        over.set()

    thread = threading.Thread(target=compute)
    thread.start()
    begun.wait(60)
    turns = 0
    while not over.is_set():
        turns += 1
        time.sleep(0)
    thread.join()
    assert turns > 100
