"""The largest eigenvalues of a kernel matrix and their vectors, without the matrix where it is large."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.exceptions import ConvergenceWarning

from mercer.gram.eigenpairs.davidson import EXTRA, PROBES, Davidson
from mercer.gram.eigenpairs.sketch import Sketch
from mercer.gram.gram import Gram
from mercer.gram.similarities import symmetric_part
from mercer.gram.symmetric import Symmetric
from mercer.machine.threads import one_thread_each
from mercer.machine.warn import warn

_SMALL = 600  # points up to which LAPACK takes no longer than setting up anything else
_MANY = 8  # one of so many eigenvalues, or more of them, are LAPACK's work at any size
_RANK = 5.0  # times the root of n: columns of the guess
_BASIS = 12  # blocks of vectors before the basis is cut
_PRODUCTS = 100
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Eigenpairs:
    """The k largest eigenvalues of a symmetric matrix, with their vectors and how well they fit.

    Attributes
    ----------
    values : ndarray of shape (k,)
        The eigenvalues, largest first.
    vectors : ndarray of shape (n, k)
        Orthonormal vectors, one per column. The entry of the largest absolute value is positive (the last one where
        several are, up to 1e-6).
    residuals : ndarray of shape (k,)
        |K v - lambda v| for each pair, with what float32 values may hide of it: an eigenvalue of K is that close.
    how : str
        How they were found, and with how many products.
    rounding : float
        What rounding may make of an eigenvalue that is 0.
    sums : ndarray of shape (n,) or None
        With ``center=True`` the row sums of K, which the centring found; as exact as the values that were used.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Gram, Linear
    >>> from mercer.gram import top_eigenpairs
    >>> found = top_eigenpairs(Gram(Linear(), [[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]]), 2)
    >>> found.values, found.how
    (array([9., 4.]), 'LAPACK')
    """

    values: np.ndarray
    vectors: np.ndarray = field(repr=False)
    residuals: np.ndarray
    how: str
    rounding: float
    sums: np.ndarray | None = field(default=None, repr=False)


def top_eigenpairs(
    gram: Gram, k: int, *, center: bool = False, weights: Any = None, tol: float = 1e-8, seed: int = 0
) -> Eigenpairs:
    r"""Return the k largest eigenvalues of a kernel matrix and their vectors.

    .. math:: K v_j = \lambda_j v_j, \qquad \lambda_1 \ge \dots \ge \lambda_k

    Small matrices go to LAPACK. Of larger ones only products with blocks of vectors are taken, within the budget of
    `gram`: Davidson's method with corrections from some columns of K finds 20 pairs of 10,000 points in four to ten of
    them. Only the largest eigenvalues are looked for, so that those of a matrix that is not positive semidefinite are
    its most positive ones.

    Parameters
    ----------
    gram
        The matrix of one set of points.
    k
        How many pairs, from 1 to the number of points.
    center
        Whether to take (I - 11'/n) K (I - 11'/n) in place of K: the points have their mean at 0 in feature space.
    weights
        One number w_i >= 0 for each point, to take W^(1/2) K W^(1/2) with W = diag(w) in place of K: the matrix of the
        integral operator of the measure that has mass w_i at x_i. None for K itself.
    tol
        The residuals |K v - lambda v| wanted, relative to the largest eigenvalue. They are those of float64 values:
        float32 values serve where they are good enough for `tol`, and what they may hide is added. A warning tells
        where rounding or the number of products leaves more. Eigenvalues below `tol` of the largest are not told apart.
    seed
        Of the columns and directions that are drawn.

    Returns
    -------
    Eigenpairs

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, Gram
    >>> from mercer.gram import top_eigenpairs
    >>> X = np.random.default_rng(0).standard_normal((1500, 3))
    >>> K = Gram(RBF(scale=2.0), X)
    >>> found = top_eigenpairs(K, 5)
    >>> bool(np.allclose(K @ found.vectors, found.vectors * found.values))
    True
    >>> bool(found.residuals.max() <= 1e-8 * found.values[0])
    True
    """
    n = gram.shape[0]
    if not gram.symmetric:
        raise ValueError(f"{gram!r} compares two sets of points; eigenvalues are of one: make it as Gram(kernel, X).")
    if isinstance(k, bool) or not isinstance(k, numbers.Integral) or not 1 <= k <= n:
        raise ValueError(f"k must be a whole number from 1 to {n}, the number of points; it is {k!r}.")
    if not (isinstance(tol, numbers.Real) and 0 < float(tol) < 1):
        raise ValueError(f"tol must lie between 0 and 1, relative to the largest eigenvalue; it is {tol!r}.")
    root = None if weights is None else np.sqrt(_weights(weights, n, center))
    whole = 8 * n * n * 4  # with what LAPACK and the centring need beside it
    if (n <= _SMALL or k * _MANY >= n) and whole <= gram.budget:
        return _by_lapack(Symmetric(gram, center, root), int(k))
    with one_thread_each():
        return _by_products(Symmetric(gram, center, root), int(k), float(tol), seed)


def _weights(weights: Any, n: int, center: bool) -> np.ndarray:
    if center:
        raise ValueError(
            "center=True and weights cannot be combined; centre the kernel matrix of repeated points instead."
        )
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (n,) or not np.isfinite(w).all() or (w < 0).any():
        raise ValueError(f"weights must be {n} finite numbers >= 0, one for each point; they are {weights!r:.80}.")
    return w


def _by_lapack(matrix: Symmetric, k: int) -> Eigenpairs:
    K = symmetric_part(matrix.dense())
    n = matrix.n
    values, vectors = eigh(K, subset_by_index=(n - k, n - 1), driver="evr") if k < n else eigh(K, driver="evd")
    if len(values) < k:  # where many are equal, "evr" may find none of them
        values, vectors = (part[..., -k:] for part in eigh(K, driver="evd"))
    values, vectors = values[::-1].copy(), signed(vectors[:, ::-1])
    residuals = np.linalg.norm(K @ vectors - vectors * values, axis=0)
    return _found(matrix, values, vectors, residuals, "LAPACK")


def _by_products(matrix: Symmetric, k: int, tol: float, seed: int) -> Eigenpairs:
    n, budget = matrix.n, matrix.gram.budget
    block = min(n, k + EXTRA + PROBES)
    # Beside the basis and its image: the residuals, a new block and its product, which each core sums on its own.
    working = 8 * n * 8 * block
    least = 16 * n * min(n, 2 * block + EXTRA) + working
    budget.require(
        least,
        f"{k} eigenpairs of {n} points (a basis of {2 * block} vectors and its image)",
        "raise the budget of the Gram matrix, or ask for fewer pairs.",
    )
    left = budget - matrix.hold()
    column = (4 if matrix.single else 8) * n
    rank = min(n // 4, max(2 * block, int(_RANK * math.sqrt(n))), max(0, left - least) // 3 // column)
    most = min(n, _BASIS * block, (left - working - rank * column) // (16 * n))
    rng = np.random.default_rng(seed)
    solver = Davidson(matrix, Sketch(matrix, rank, rng), k, tol, most, rng)
    values, vectors, residuals = solver.run(_PRODUCTS)
    goal = max(tol * abs(float(values[0])), solver.rounding)
    if residuals.max() > goal:
        warn(
            f"the residuals of {int((residuals > goal).sum())} of {k} eigenpairs are above tol={tol:g} of the largest "
            f"eigenvalue, up to {residuals.max() / abs(values[0]):.2g} of it, after {solver.steps} products; a larger "
            "budget, a larger tol or a few pairs more may help.",
            ConvergenceWarning,
        )
    values_of = "float64" if not matrix.single else "float32, then float64" if solver.sharp else "float32"
    how = f"Davidson's method, {solver.steps} products with values in {values_of}"
    return _found(matrix, values, signed(vectors), residuals, how)


def _found(matrix: Symmetric, values: np.ndarray, vectors: np.ndarray, residuals: np.ndarray, how: str) -> Eigenpairs:
    rounding = math.sqrt(matrix.n) * _EPS * float(np.abs(matrix.diag).sum())  # of sums of so many products
    s = matrix.scale
    return Eigenpairs(values * s, vectors, residuals * s, how, rounding * s, matrix.sums)


def signed(vectors: np.ndarray) -> np.ndarray:
    """Return the vectors with their largest entries positive: of several that are largest up to 1e-6, the last one.

    Examples
    --------
    >>> signed(np.array([[0.6, 1.0], [-0.8, 0.0], [0.8, -1.0]]))
    array([[ 0.6, -1. ],
           [-0.8, -0. ],
           [ 0.8,  1. ]])
    """
    size = np.abs(vectors)
    large = size >= (1 - 1e-6) * size.max(axis=0)
    last = len(vectors) - 1 - large[::-1].argmax(axis=0)
    return np.asarray(vectors * np.where(np.take_along_axis(vectors, last[None], axis=0) < 0, -1.0, 1.0))
