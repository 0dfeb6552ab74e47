"""LAPACK without Python's lock, in place: SciPy's functions hold it, so that threads would wait for one another.

For work that is shared among threads, each with a BLAS of one thread (`one_thread_each`). The threads of BLAS itself
are ended by a fork, and a factorisation that waits for them while another thread forks waits for ever.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import cython_lapack

_BLOCK = 64  # columns that are cleared together


def potrf(M: np.ndarray) -> bool:
    """Replace the lower triangle of a matrix by that of its Cholesky factor; return whether there is one.

    Parameters
    ----------
    M
        n x n, float32 or float64, its columns contiguous; what is above the diagonal is neither read nor changed.

    Examples
    --------
    >>> import numpy as np
    >>> M = np.asfortranarray([[4.0, 9.0], [2.0, 5.0]])
    >>> potrf(M), M.tolist()
    (True, [[2.0, 9.0], [1.0, 2.0]])
    """
    return _call("potrf", M, b"L") == 0


def trtri(L: np.ndarray) -> bool:
    """Replace a lower triangle by its inverse; return whether there is one. As for `potrf`."""
    return _call("trtri", L, b"L", b"N") == 0


def clear_above(M: np.ndarray) -> None:
    """Set what is above the diagonal to 0."""
    n = len(M)
    for j in range(0, n, _BLOCK):
        end = min(j + _BLOCK, n)
        M[:j, j:end] = 0
        M[j:end, j:end] = np.tril(M[j:end, j:end])


def _call(name: str, M: np.ndarray, *letters: bytes) -> int:
    """Call a function of LAPACK on a whole matrix; return its verdict."""
    kinds = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}
    square = M.ndim == 2 and M.shape[0] == M.shape[1] and M.flags.f_contiguous and M.flags.writeable
    if M.dtype not in kinds or not square:
        raise ValueError(f"{name} takes a square matrix of floats with contiguous columns, not {M.dtype} {M.shape}.")
    size, verdict = ctypes.c_int(len(M)), ctypes.c_int(0)
    at = ctypes.addressof
    _function(kinds[M.dtype] + name, len(letters) + 4)(*letters, at(size), M.ctypes.data, at(size), at(verdict))
    return verdict.value


@cache
def _function(name: str, arguments: int) -> Callable[..., Any]:
    """Return a function of LAPACK as SciPy gives it to C."""
    read = ctypes.pythonapi
    read.PyCapsule_GetName.restype, read.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    read.PyCapsule_GetPointer.restype = ctypes.c_void_p
    read.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    capsule = cython_lapack.__pyx_capi__[name]
    address = read.PyCapsule_GetPointer(capsule, read.PyCapsule_GetName(capsule))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(address)
