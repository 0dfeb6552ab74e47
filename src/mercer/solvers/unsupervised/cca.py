"""Canonical correlations of two views whose images lie in the spaces of two kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, solve_triangular, svd

from mercer.gram import Gram
from mercer.gram.factor import PivotedCholesky
from mercer.gram.matrix import KernelMatrix
from mercer.machine.budget import readable
from mercer.machine.threads import within_limit

_DENSE = 1500  # points up to which all eigenvectors are cheaper than a factor, which may need as many rows
_RANK = 2000  # the largest rank that is tried where none is asked for
_BLOCK = 128  # pivots drawn at a time
_BASES = 5  # n x rank: of a view its factor and its basis, the basis of the other, and room to multiply them
_FULL = 500  # the size up to which all singular vectors are computed
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class View:
    r"""The centred images of n points in an orthonormal basis of their span, or of most of it.

    .. math:: \langle e_j, \phi(x_i) - m \rangle = U_{ij} \sqrt{s_j}, \qquad
              \langle e_j, \phi(x) - m \rangle = \sum_{i \in S} B_{ij} k(x_i, x) + b_j

    Attributes
    ----------
    U, s
        Orthonormal columns, and the eigenvalues of the centred kernel matrix, largest first.
    centres
        S: the numbers of the points that span the basis; None for all.
    B, b
        The basis, in terms of those.
    error
        The share of the trace of the kernel matrix that the basis leaves out.
    how : str
        How it was found.
    """

    U: np.ndarray
    s: np.ndarray
    centres: np.ndarray | None
    B: np.ndarray
    b: np.ndarray
    error: float
    how: str


@within_limit
def view(gram: Gram, rank: int | None = None, tol: float = 1e-6, seed: int = 0) -> View:
    """Return a basis of the images: all eigenvectors where n is small, else a pivoted Cholesky factor.

    Parameters
    ----------
    gram
        The kernel matrix of the points.
    rank
        The most directions; None for all of up to 1,500 points, and else up to 2,000 of them, as the budget allows.
    tol
        The share of the trace that may be left out, beyond 1,500 points or with `rank`.
    seed
        Of the pivots.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Gram, Linear
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> side = view(Gram(Linear(), X))
    >>> bool(np.allclose((side.U * side.s) @ side.U.T, (X - X.mean(0)) @ (X - X.mean(0)).T))
    True
    """
    n = gram.shape[0]
    matrix = KernelMatrix(gram)
    if rank is None and n <= _DENSE and 48 * n * n <= gram.budget:
        return _decomposed(matrix)
    each = 8 * _BASES * n  # bytes of a direction
    most = min(n, _RANK if rank is None else rank, int(gram.budget // each))
    gram.budget.require(each, f"one row of a factor of {n} points", "raise the budget.")
    return _low_rank(matrix, most, tol, seed)


def _decomposed(matrix: KernelMatrix) -> View:
    n = matrix.n
    K = matrix.dense(np.empty((n, n)))
    means = K.mean(axis=0)
    size = float(np.abs(K.diagonal()).sum())
    K -= means
    K -= K.mean(axis=1)[:, None]
    s, U = eigh(K, overwrite_a=True, check_finite=False)
    kept = np.flatnonzero(s > max(1e-12 * float(s[-1]), _EPS * size))[::-1]
    s, U = s[kept], U[:, kept]
    B = U / np.sqrt(s)
    return View(U, s, None, B, -(means @ B), 0.0, f"all {len(s)} eigenvectors of the {n} x {n} matrix")


def _low_rank(matrix: KernelMatrix, most: int, tol: float, seed: int) -> View:
    n = matrix.n
    factor = PivotedCholesky(matrix, most, seed=seed)
    size, block = factor.trace, max(1, min(_BLOCK, most // 4))
    while factor.trace > tol * size and factor.grow(block):
        pass
    R, pivots = factor.R, factor.pivots
    middle = R.mean(axis=1)
    R -= middle[:, None]
    s, Q = eigh(R @ R.T) if len(R) else (np.zeros(0), np.zeros((0, 0)))
    floor = max(1e-12 * float(s[-1]), _EPS * size) if len(s) else 0.0
    kept = np.flatnonzero(s > floor)[::-1]
    s, Q = s[kept], Q[:, kept]
    U = R.T @ Q
    U /= np.sqrt(s)
    L = (R[:, pivots] + middle[:, None]).T
    B = solve_triangular(L, Q, lower=True, trans="T") if len(R) else Q
    error = factor.trace / size if size > 0 else 0.0
    how = (
        f"pivoted Cholesky factor of rank {factor.rank} of the {n} x {n} matrix, {readable(8 * n * factor.rank)}, "
        f"which leaves out {error:.1e} of its trace"
    )
    return View(U, s, pivots, B, -(middle @ Q), error, how)


@within_limit
def canonical(x: View, y: View, k: int, kappa: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Return the k largest regularised correlations, and the coefficients of their functions in the two bases.

    .. math:: \max_{f, g} \operatorname{cov}(f(x), g(y)) \quad \text{with} \quad
              \operatorname{var} f(x) + \kappa_x \|f\|^2 = \operatorname{var} g(y) + \kappa_y \|g\|^2 = 1

    Parameters
    ----------
    x, y
        The views of the same n samples.
    k
        How many; those beyond the rank of a view are 0.
    kappa
        kappa_x and kappa_y in units of the mean squared distance of the images from their mean.
    """
    n = len(x.U)
    roots = []
    for side in (x, y):
        penalty = kappa * float(side.s.sum())  # n kappa_x
        roots.append(np.sqrt(side.s + penalty))
    T = (x.U * (np.sqrt(x.s) / roots[0])).T @ (y.U * (np.sqrt(y.s) / roots[1]))
    P, rho, Q = _leading(T, min(k, *T.shape))
    a, b = np.zeros((len(x.s), k)), np.zeros((len(y.s), k))
    correlations = np.zeros(k)
    rank = len(rho)
    correlations[:rank] = rho.clip(max=1.0)
    a[:, :rank] = P * (np.sqrt(n) / roots[0])[:, None]
    b[:, :rank] = Q * (np.sqrt(n) / roots[1])[:, None]
    signs = _signs(x.U @ (np.sqrt(x.s)[:, None] * a))
    return correlations, a * signs, b * signs


def _signs(scores: np.ndarray) -> np.ndarray:
    """Return the signs that make the largest score of each component positive, whatever the basis was."""
    largest = scores[np.argmax(np.abs(scores), axis=0), np.arange(scores.shape[1])]
    return np.where(largest < 0, -1.0, 1.0)


def _leading(T: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the k leading singular vectors and values of a matrix."""
    if not k:
        return np.zeros((T.shape[0], 0)), np.zeros(0), np.zeros((T.shape[1], 0))
    if min(T.shape) <= _FULL or 2 * k > min(T.shape):
        P, rho, Qt = svd(T, full_matrices=False)
        P, rho, Q = P[:, :k], rho[:k], Qt[:k].T
    else:
        small = T if T.shape[0] <= T.shape[1] else T.T
        m = len(small)
        squares, P = eigh(small @ small.T, subset_by_index=(m - k, m - 1), overwrite_a=True)
        P, rho = P[:, ::-1], np.sqrt(squares[::-1].clip(min=0.0))
        Q = (small.T @ P) / np.where(rho > 0, rho, 1.0)
        if small is not T:
            P, Q = Q, P
    return P, rho, Q
