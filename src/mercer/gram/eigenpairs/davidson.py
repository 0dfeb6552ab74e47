"""The largest eigenvalues of a kernel matrix by corrections that a guess of it suggests (Davidson 1975)."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from mercer.gram.eigenpairs.sketch import Sketch
from mercer.gram.rows import inner, times
from mercer.gram.symmetric import Symmetric

EXTRA, PROBES = 4, 4  # pairs kept beyond those asked for; random directions that look for what the guess has missed
_LOOKS = 3  # products after which those have shown what there is
_SWITCH = 1e-4  # of the largest eigenvalue: residuals from which on float64 values take the place of float32 ones
_USELESS = 1e-3  # of the largest eigenvalue: errors of float32 products that are too large to begin with
_UNIT = float(np.finfo(np.float32).eps) / 2
_CHUNK = 4096  # rows of the basis that are turned at a time
_EPS = float(np.finfo(np.float64).eps)

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
        if matrix.single and matrix.error > _USELESS * self._ritz()[0][0]:
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
            seen = self.steps >= _LOOKS or self.sketch.left <= values[k - 1]
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
            if need.size and self.steps >= _LOOKS:  # where it takes long, the pairs that follow help
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
        wandered = self._new(self._wander if self.steps < _LOOKS else self._wander[:, :0], turned)
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
