"""The largest eigenvalues of a kernel matrix by corrections that a guess of it suggests (Davidson 1975)."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular

from mercer.gram.matrix import times
from mercer.gram.symmetric import Symmetric
from mercer.machine.threads import run, shares

EXTRA, PROBES = 4, 4  # pairs kept beyond those asked for; random directions that look for what the guess has missed
_PROBED_PRODUCTS = 3  # products after which the random directions have shown what the guess has missed
_SWITCH = 1e-4  # of the largest eigenvalue: residuals from which on float64 values take the place of float32 ones
_SINGLE_USELESS = 1e-3  # errors of float32 products, in units of the largest eigenvalue, too large to begin with
_UNIT = float(np.finfo(np.float32).eps) / 2
_CHUNK = 4096  # rows that are turned, or converted to float64, at a time
_ROUNDING = 1e-6  # of the largest eigenvalue: what is smaller is rounding of float32
_POLE = 1e-3  # of an eigenvalue: how close to it an equation is still solved
_EPS = float(np.finfo(np.float64).eps)

Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]  # eigenvalues, eigenvectors, residuals


class Sketch:
    r"""The eigenvalues e and nearly orthonormal vectors Z of a matrix made from some columns S of K.

    .. math:: K_{:S} K_{SS}^{-1} K_{S:} = Z \operatorname{diag}(e) Z^T

    Columns are drawn with k(x, x) as their probabilities. Of a positive semidefinite K this leaves a positive
    semidefinite rest, whose trace bounds every eigenvalue that the guess has missed. It is no
    `PivotedCholesky`, as K may be indefinite or centred: all columns are drawn at once and kept as they are.

    Parameters
    ----------
    matrix
        The matrix; a centred one is guessed by the centred guess.
    rank
        How many columns are drawn.
    rng
        Draws them.
    """

    def __init__(self, matrix: Symmetric, rank: int, rng: np.random.Generator) -> None:
        weight = np.abs(matrix.diag)
        rank = min(rank, int(np.count_nonzero(weight)))
        chosen = np.sort(rng.choice(matrix.n, rank, replace=False, p=weight / weight.sum())) if rank else np.arange(0)
        C = matrix.columns(chosen)
        A = _root(C[chosen].astype(np.float64))
        between = square(C)
        self.left = float(matrix.diag.sum() - np.einsum("ij,ij->", A, between @ A))  # the trace of the rest
        self._centre = inner(C, np.ones((matrix.n, 1)))[:, 0] / matrix.n if matrix.center else np.zeros(rank)
        between -= matrix.n * np.outer(self._centre, self._centre)
        self.values, G = _positive(A.T @ between @ A)
        self._C = C
        self._B = A @ (G / np.sqrt(self.values))

    def vectors(self, count: int) -> np.ndarray:
        """Return the leading columns of Z, or all where there are fewer."""
        return self._times(self._B[:, :count])

    def solve(self, R: np.ndarray, shifts: np.ndarray, floor: float) -> np.ndarray:
        """Return (Z diag(e) Z' - shift)^-1 r for each column r of R, kept away from its poles."""
        size = np.maximum(np.abs(shifts), floor)
        inside = self._B.T @ (inner(self._C, R) - np.outer(self._centre, R.sum(axis=0)))
        gap = self.values[:, None] - shifts
        gap = np.copysign(np.maximum(np.abs(gap), _POLE * size), gap)
        return self._times(self._B @ (inside / gap + inside / size)) - R / size

    def _times(self, M: np.ndarray) -> np.ndarray:
        return times(self._C, M) - self._centre @ M


def _root(W: np.ndarray) -> np.ndarray:
    """Return A with A A' about the inverse of W, of its positive part where it has another."""
    try:
        L = cholesky(W + _ROUNDING * np.trace(W) * np.eye(len(W)), lower=True)
        return np.asarray(solve_triangular(L, np.eye(len(W)), lower=True).T)
    except np.linalg.LinAlgError:
        values, U = _positive(W)
        return np.asarray(U / np.sqrt(values))


def _positive(H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues that are no rounding of float32, largest first, and their vectors."""
    if not len(H):
        return np.zeros(0), np.zeros((0, 0))
    values, U = eigh(H, driver="evd")
    kept = np.flatnonzero(values > _ROUNDING * max(values[-1], 0.0))[::-1]
    return values[kept], U[:, kept]


class Davidson:
    r"""A growing basis Q with its image KQ, and the Ritz pairs of K in it.

    A pair (x, e) with the residual r = Kx - ex is corrected by (S - e)^-1 r, where S is the sketch: the better it is,
    the fewer products are needed, and with S = 0 the corrections span the Krylov space of Lanczos' method. Random
    directions grow by K itself, and show eigenvectors that the sketch has missed.

    Images are taken from float32 values until the residuals are small. Then those of the Ritz vectors are computed
    again from float64 values. Vectors that are added later enter the pairs with so small a weight that the
    rounding of their images does not show; the residuals returned include a bound of it.

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
        self.size = self.steps = self._refined = 0
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
        return self._refined > 0

    def run(self, limit: int) -> Pairs:
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
            enough = max(goal, float(doubt[:k].max()) if self._refined else _SWITCH * top)
            if doubt[:k].max() > goal / 2 and sizes[:k].max() <= enough and self._refined < self.steps:
                refined = self._refine()
                if seen and (refined[2] <= goal).all():
                    return refined
                continue
            need = np.flatnonzero(sizes[:k] > goal / 2)
            if need.size and self.steps >= _PROBED_PRODUCTS:  # where it takes long, the pairs that follow help
                need = np.concatenate([need, np.arange(k, len(values))])
            if last:
                return self._refine()
            if not self._expand(R[:, need], values[need], self.tol * top):  # K leaves the span of the basis as it is
                if not self.blur[: self.size].any():
                    return self._refine()
                self._renew(self.size)

    # -- the basis --------------------------------------------------------------------------------------

    def _ritz(self) -> tuple[np.ndarray, np.ndarray]:
        values, U = eigh(self.T[: self.size, : self.size])
        return values[::-1], U[:, ::-1]

    def _new(self, W: np.ndarray, *others: np.ndarray) -> np.ndarray:
        """Return orthonormal columns that extend the basis, and other orthonormal columns, to the span of W.

        Two projections take the known part of a column away. If a third one changes the remainder, it was rounding.
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

    def _refine(self) -> Pairs:
        """Take the Ritz vectors for the basis, with the images of the first k from float64 values; return those."""
        k = self.k
        values, U = self._ritz()
        kept = max(self.kept, self.size // 2)
        self._turn(U[:, :kept], values[:kept])
        if self.blur[:k].any():
            self._renew(k)
        self._refined = self.steps
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


# -- tall matrices, their rows shared among the cores -----------------------------------------------------


def inner(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return A' B in float64, in the precision of A within thousands of rows and in float64 across.

    Examples
    --------
    >>> inner(np.ones((3, 1)), np.ones((3, 2)))
    array([[3., 3.]])
    """

    def part(rows: slice) -> np.ndarray:
        total = np.zeros((A.shape[1], B.shape[1]))
        for i in range(rows.start, rows.stop, _CHUNK):
            some = slice(i, min(i + _CHUNK, rows.stop))
            total += A[some].T @ B[some].astype(A.dtype, copy=False)
        return total

    return np.asarray(np.sum(run(part, shares(len(A))), axis=0))


def square(A: np.ndarray) -> np.ndarray:
    """Return A' A with float64 products, of A in whichever precision it has."""

    def part(rows: slice) -> np.ndarray:
        total = np.zeros((A.shape[1], A.shape[1]))
        for i in range(rows.start, rows.stop, _CHUNK):
            some = A[i : min(i + _CHUNK, rows.stop)].astype(np.float64, copy=False)
            total += some.T @ some
        return total

    return np.asarray(np.sum(run(part, shares(len(A))), axis=0))
