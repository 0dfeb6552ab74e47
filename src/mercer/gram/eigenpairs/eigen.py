"""The largest eigenvalues of a kernel matrix and their vectors, without the matrix where it is large."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.exceptions import ConvergenceWarning

from mercer.gram.eigenpairs.sketch import Sketch
from mercer.gram.gram import Gram
from mercer.gram.rows import inner, times
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


# The largest eigenvalues of a kernel matrix by corrections that a guess of it suggests (Davidson 1975).


EXTRA, PROBES = 4, 4  # pairs kept beyond those asked for; random directions that look for what the guess has missed
_PROBED_PRODUCTS = 3  # products after which the random directions have shown what the guess has missed
_SWITCH = 1e-4  # of the largest eigenvalue: residuals from which on float64 values take the place of float32 ones
_SINGLE_USELESS = 1e-3  # errors of float32 products, in units of the largest eigenvalue, too large to begin with
_UNIT = float(np.finfo(np.float32).eps) / 2
_CHUNK = 4096  # rows of the basis that are turned at a time


Found = tuple[np.ndarray, np.ndarray, np.ndarray]


class Davidson:
    r"""A growing basis Q with its image KQ, and the Ritz pairs of K in it.

    A pair (x, e) with the residual r = Kx - ex is corrected by (S - e)^-1 r, where S is the sketch: the better it is,
    the fewer products are needed, and with S = 0 the corrections span the Krylov space of Lanczos' method. Random
    directions grow by K itself, so that what the sketch has missed comes to light.

    Images are taken from float32 values until the residuals are small. Then those of the Ritz vectors are computed
    again from float64 values. What is added later enters the pairs with so small a weight that the rounding of its
    image is not seen; the residuals returned include what it might be.

    Parameters
    ----------
    matrix
        The matrix, as products.
    sketch
        The guess.
    k
        The number of pairs wanted.
    tol
        The residuals wanted, relative to the largest eigenvalue.
    most
        The largest number of vectors in the basis.
    rng
        Draws the random directions.
    """

    def __init__(
        self, matrix: Symmetric, sketch: Sketch, k: int, tol: float, most: int, rng: np.random.Generator
    ) -> None:
        n = matrix.n
        self.matrix, self.sketch, self.k, self.tol = matrix, sketch, k, tol
        self.kept = min(n, k + EXTRA)
        self.most = min(n, most)
        self.Q, self.KQ = (np.empty((n, self.most), order="F") for _ in range(2))
        self.T = np.zeros((self.most, self.most))
        self.blur = np.zeros(self.most)  # how much of each image is from float32 values
        self.size = self.steps = self._sharpened = 0
        self.rounding = 4 * _EPS * float(np.abs(matrix.diag).sum())
        start = self._new(sketch.vectors(self.kept))
        lacking = self.kept - start.shape[1]
        self._add(start, self._new(rng.standard_normal((n, min(n - start.shape[1], lacking + PROBES))), start))
        if matrix.single and matrix.error > _SINGLE_USELESS * self._ritz()[0][0]:
            matrix.distrust()
            self._renew(self.size)

    @property
    def sharp(self) -> bool:
        """Whether products with float64 values were taken."""
        return self._sharpened > 0

    def run(self, limit: int) -> Found:
        """Return values, vectors and residuals, after at most `limit` products."""
        k = self.k
        while True:
            values, U = self._ritz()
            top = abs(float(values[0]))
            goal = max(self.tol * top, self.rounding)
            U, values = U[:, : self.kept], values[: self.kept]
            Q, KQ = self.Q[:, : self.size], self.KQ[:, : self.size]
            R = times(KQ, U) - times(Q, U) * values
            sizes = np.linalg.norm(R, axis=0)
            # What float32 may hide of the residuals: the values are rounded, and so were the vectors for the products.
            rounded = self.matrix.error + _UNIT * top if self.matrix.single else 0.0
            doubt = rounded * np.linalg.norm(self.blur[: self.size, None] * U, axis=0)
            # Ritz values of this size are rounding of float32, and hide eigenvalues above `goal`.
            if self.matrix.single and self.steps > 1 and values[k - 1] <= 4 * rounded:
                self.matrix.distrust()
                self._renew(self.size)
                continue
            seen = self.steps >= _PROBED_PRODUCTS or self.sketch.left <= values[k - 1]
            last = self.steps >= limit
            if ((sizes + doubt)[:k] <= goal).all() and seen:
                return values[:k], times(Q, U[:, :k]), (sizes + doubt)[:k]
            enough = max(goal, float(doubt[:k].max()) if self._sharpened else _SWITCH * top)
            if doubt[:k].max() > goal / 2 and sizes[:k].max() <= enough and self._sharpened < self.steps:
                found = self._sharpen()
                if seen and (found[2] <= goal).all():
                    return found
                continue
            need = np.flatnonzero(sizes[:k] > goal / 2)
            if need.size and self.steps >= _PROBED_PRODUCTS:  # where it takes long, the pairs that follow help
                need = np.concatenate([need, np.arange(k, len(values))])
            if last:
                return self._sharpen()
            if not self._expand(R[:, need], values[need], self.tol * top):  # K leaves the span of the basis as it is
                if not self.blur[: self.size].any():
                    return self._sharpen()
                self._renew(self.size)

    # -- the basis --------------------------------------------------------------------------------------

    def _ritz(self) -> tuple[np.ndarray, np.ndarray]:
        values, U = eigh(self.T[: self.size, : self.size])
        return values[::-1], U[:, ::-1]

    def _new(self, W: np.ndarray, *others: np.ndarray) -> np.ndarray:
        """Return an orthonormal basis of what the columns of W add to the basis and to other orthonormal columns.

        What two projections have left of a column is new only if a third one leaves it as it is: the rest is rounding.
        """
        for last in (False, False, True):
            size = np.linalg.norm(W, axis=0)
            W = W[:, size > 0] / size[size > 0]
            for Q in (self.Q[:, : self.size], *others):
                W -= times(Q, inner(Q, W))
            if W.shape[1]:
                values, U = eigh(inner(W, W))
                new = values > (0.5 if last else 1e-24 + _EPS * values[-1])
                W = times(W, U[:, new] / np.sqrt(values[new]))
        return W

    def _expand(self, R: np.ndarray, values: np.ndarray, floor: float) -> bool:
        """Add the corrections of some pairs, and the images of the random directions; return whether any are new."""
        turned = self._new(self.sketch.solve(R, values, floor)) if len(values) else R
        wandered = self._new(self._wander if self.steps < _PROBED_PRODUCTS else self._wander[:, :0], turned)
        width = turned.shape[1] + wandered.shape[1]
        if self.size + width > self.most:
            ritz, U = self._ritz()
            kept = max(self.kept, min(self.size, self.most - width) // 2)
            self._turn(U[:, :kept], ritz[:kept])
        return self._add(turned, wandered)

    def _add(self, turned: np.ndarray, wandered: np.ndarray) -> bool:
        new = np.hstack([turned, wandered])[:, : self.most - self.size]
        if not new.shape[1]:
            return False
        m, whole = self.size, self.size + new.shape[1]
        image = self.matrix.rough(new)
        across, inside = inner(self.KQ[:, :m], new), inner(new, image)
        self.Q[:, m:whole], self.KQ[:, m:whole] = new, image
        self.T[:m, m:whole], self.T[m:whole, :m] = across, across.T
        self.T[m:whole, m:whole] = 0.5 * (inside + inside.T)
        self.blur[m:whole] = float(self.matrix.single)
        self._wander = image[:, turned.shape[1] :].copy()
        self.size = whole
        self.steps += 1
        return True

    def _turn(self, U: np.ndarray, values: np.ndarray) -> None:
        """Take the Ritz vectors in U for the basis."""
        m, kept = U.shape
        for i in range(0, self.matrix.n, _CHUNK):
            for A in (self.Q, self.KQ):
                A[i : i + _CHUNK, :kept] = A[i : i + _CHUNK, :m] @ U
        self.blur[:kept] = np.linalg.norm(self.blur[:m, None] * U, axis=0)
        self.T[:kept, :kept] = np.diag(values)
        self.size = kept

    def _sharpen(self) -> Found:
        """Take the Ritz vectors for the basis, with the images of the first k from float64 values; return those."""
        k = self.k
        values, U = self._ritz()
        kept = max(self.kept, self.size // 2)
        self._turn(U[:, :kept], values[:kept])
        if self.blur[:k].any():
            self._renew(k)
        self._sharpened = self.steps
        Q, KQ = self.Q[:, :k], self.KQ[:, :k]
        values, U = eigh(self.T[:k, :k])
        values, U = values[::-1], U[:, ::-1]
        Q = times(Q, U)
        return values, Q, np.linalg.norm(times(KQ, U) - Q * values, axis=0)

    def _renew(self, k: int) -> None:
        """Compute the images of the first k vectors from float64 values."""
        self.KQ[:, :k] = self.matrix.exact(self.Q[:, :k])
        across = inner(self.KQ[:, :k], self.Q[:, : self.size])
        self.T[:k, : self.size], self.T[: self.size, :k] = across, across.T
        self.T[:k, :k] = 0.5 * (across[:, :k] + across[:, :k].T)
        self.blur[:k] = 0.0
