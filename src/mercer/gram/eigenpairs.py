"""Eigenvalues of a kernel matrix: the largest with their vectors, and the ends of a spectrum, without the matrix."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import eigh, eigh_tridiagonal
from sklearn.exceptions import ConvergenceWarning

from mercer.gram.davidson import EXTRA, PROBES, Davidson, Sketch
from mercer.gram.gram import Gram
from mercer.gram.similarities import symmetric_part
from mercer.gram.symmetric import Symmetric
from mercer.machine.threads import one_thread_each
from mercer.machine.warn import warn

_LAPACK_POINTS = 600  # points up to which LAPACK takes no longer than setting up anything else
_LAPACK_PART = 8  # LAPACK is the faster, at any size, where one eigenvalue in so many is asked for, or more
_SKETCH_RANK = 5.0  # columns of the first guess, times the root of n
_BASIS_BLOCKS = 12  # blocks of vectors before the basis is cut
_MOST_PRODUCTS = 100  # products with the matrix, at most
_EPS = float(np.finfo(np.float64).eps)
CONFIDENCE = 0.99  # of the floor below the ends of a spectrum


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
        |K v - lambda v| for each pair, plus a bound of the error of float32 values: an eigenvalue of K is that close.
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
    >>> pairs = top_eigenpairs(Gram(Linear(), [[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]]), 2)
    >>> pairs.values, pairs.how
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
        float32 values serve where they are good enough for `tol`, and a bound of their error is added. A warning tells
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
    >>> pairs = top_eigenpairs(K, 5)
    >>> bool(np.allclose(K @ pairs.vectors, pairs.vectors * pairs.values))
    True
    >>> bool(pairs.residuals.max() <= 1e-8 * pairs.values[0])
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
    if (n <= _LAPACK_POINTS or k * _LAPACK_PART >= n) and whole <= gram.budget:
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
    return _pairs(matrix, values, vectors, residuals, "LAPACK")


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
    rank = min(n // 4, max(2 * block, int(_SKETCH_RANK * math.sqrt(n))), max(0, left - least) // 3 // column)
    most = min(n, _BASIS_BLOCKS * block, (left - working - rank * column) // (16 * n))
    rng = np.random.default_rng(seed)
    solver = Davidson(matrix, Sketch(matrix, rank, rng), k, tol, most, rng)
    values, vectors, residuals = solver.run(_MOST_PRODUCTS)
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
    return _pairs(matrix, values, signed(vectors), residuals, how)


def _pairs(matrix: Symmetric, values: np.ndarray, vectors: np.ndarray, residuals: np.ndarray, how: str) -> Eigenpairs:
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


# -- the ends of a spectrum -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Ends:
    """What some steps of Lanczos' method say about the ends of the spectrum of a symmetric matrix.

    Attributes
    ----------
    smallest, largest : float
        The extreme Ritz values. Each is a Rayleigh quotient, so the smallest eigenvalue is at most `smallest` and
        the largest at least `largest`.
    vector : ndarray
        The unit vector whose Rayleigh quotient is `smallest`.
    steps : int
        The dimension of the Krylov space.
    exhausted : bool
        Whether that space is invariant: further products would bring nothing new.
    floor : float
        No eigenvalue is below this, with probability 0.99 over the random start.
    """

    smallest: float
    largest: float
    vector: np.ndarray
    steps: int
    exhausted: bool
    floor: float


def lanczos(
    product: Callable[[np.ndarray], np.ndarray],
    n: int,
    steps: int = 60,
    seed: int = 0,
    negative: float = math.inf,
) -> Ends:
    r"""Return the ends of the spectrum of an n x n symmetric matrix, from at most `steps` products.

    .. math:: T = Q^T K Q, \qquad \operatorname{span} Q = \{q, Kq, \dots, K^{k-1}q\}

    The number of steps is fixed beforehand: the small end of a spectrum that decays to zero is never reached. A bound
    that holds for every matrix says how far away it may be.

    Parameters
    ----------
    product
        Returns the matrix times a vector.
    n
        The size of the matrix.
    steps
        The most products to take.
    seed
        Of the random start.
    negative
        Stop early at a Ritz value below -`negative` times the largest |Ritz value| that is an eigenvalue to 1%.

    Examples
    --------
    >>> import numpy as np
    >>> K = np.diag(np.linspace(-1, 5, 500))
    >>> ends = lanczos(lambda v: K @ v, 500)
    >>> round(ends.smallest, 2), round(ends.largest, 2), ends.floor < -1 <= ends.smallest
    (-1.0, 5.0, True)
    """
    steps = min(steps, n)
    q = np.random.default_rng(seed).standard_normal(n)
    q /= np.linalg.norm(q)
    basis = np.empty((steps, n))
    alpha, beta = np.empty(steps), np.empty(steps)
    for j in range(steps):
        basis[j] = q
        w = product(q)
        alpha[j] = q @ w
        for _ in range(2):  # twice is enough (Kahan and Parlett 1976)
            w = w - (basis[: j + 1] @ w) @ basis[: j + 1]
        beta[j] = np.linalg.norm(w)
        values, vectors = eigh_tridiagonal(alpha[: j + 1], beta[:j])
        low, high = float(values[0]), float(values[-1])
        size = max(abs(low), abs(high))
        exhausted = bool(beta[j] <= n * np.finfo(float).eps * size)
        refuted = low < -negative * size and beta[j] * abs(vectors[-1, 0]) <= 0.01 * abs(low)
        if exhausted or refuted or j + 1 == steps:
            break
        q = w / beta[j]
    vector = vectors[:, 0] @ basis[: j + 1]
    # A space left by less than beta is the invariant space of a matrix that differs by no more than beta.
    floor = low - float(beta[j]) if exhausted else _floor(low, high, n, j + 1, 1 if j + 1 == steps else steps)
    return Ends(low, high, vector / np.linalg.norm(vector), j + 1, exhausted, floor)


def _floor(low: float, high: float, n: int, steps: int, chances: int) -> float:
    """Return a lower bound of the smallest eigenvalue that holds with probability `CONFIDENCE`.

    For a start uniform on the sphere, Lanczos misses the end of a spectrum of width w by more than eps w with
    probability at most 1.648 sqrt(n) exp(-sqrt(eps) (2 steps - 1)), whatever the gaps (Kuczynski and Wozniakowski
    1992, theorem 4.2, applied to K - min and max - K). Both ends within eps w: w <= (high - low) / (1 - 2 eps).
    The chance to fail is shared by both ends, by full and early stops, and by the steps that could be the last.
    """
    eps = (math.log(4 * chances * 1.648 * math.sqrt(n) / (1 - CONFIDENCE)) / (2 * steps - 1)) ** 2
    return low - eps * (high - low) / (1 - 2 * eps) if eps < 0.5 else -math.inf
