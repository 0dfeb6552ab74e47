"""Functions on other centres: projections, on the span of given points or of the fewest centres that will do."""

from __future__ import annotations

import math
import numbers
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh, solve_triangular

from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.machine.budget import Budget
from mercer.rkhs.functions.centres import doubled, first_equal, merged, plain, size_of, taken
from mercer.rkhs.functions.sums import exponents, indefinite, roots, scaled

_CANDIDATES = 256  # centres that are looked at together, at most
_PARTS = 16  # of the budget: one holds the rows of as many centres
_NOISE = {8: 1e-12, 4: 1e-5}  # share of k(x, x) that is rounding, by bytes per kernel value
_ROUNDS = 4  # of checking the error with fresh kernel values and going on from there


class Pruned(NamedTuple):
    """What pruning found.

    Attributes
    ----------
    function
        The function (or vector of functions) on the new centres.
    error
        The distance in H from what it stands for; for a vector one for each function.
    relative
        The same as a share of the norm.
    """

    function: Any
    error: Any
    relative: Any


class Projected(Pruned):
    """What projecting found, with the fields of `Pruned`."""

    __slots__ = ()


def project(kernel: Kernel, points: Any, values: np.ndarray, budget: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return points, and the coefficients of the functions in their span that have these values there.

    Parameters
    ----------
    kernel, points
        Whose kernel functions span the space; equal points count once.
    values
        Of the functions that are projected, (n, functions).
    budget
        Bytes that may be used.

    Returns
    -------
    rows, coefficients
        Which points are left, and their coefficients, (rows, functions): of the least squares solutions of K a = values
        the shortest, without the directions in which K is rounding alone.
    """
    rows = np.unique(first_equal(points))
    chosen = doubled(plain(taken(points, rows)))
    n = len(rows)
    limit = Budget.for_points(budget, n)
    limit.require(24 * n * n, f"a projection on the span of {n} points", "project on fewer, or raise the budget.")
    spectrum, U = eigh(np.asarray(Gram(kernel, chosen, budget=limit).dense(), dtype=np.float64), driver="evd")
    rounding = n * np.finfo(np.float64).eps * max(float(spectrum[-1]), 0.0)
    if spectrum[0] < -100 * rounding:
        raise indefinite(kernel, f"the kernel matrix of the points has the eigenvalue {spectrum[0]:.6g}")
    kept = spectrum > rounding
    size = exponents(values[rows])
    right = scaled(values[rows], -size)
    inside = U[:, kept] @ ((U[:, kept].T @ right) / spectrum[kept, None])
    return rows, np.ldexp(inside, size)


def prune(
    kernel: Kernel, points: Any, A: np.ndarray, tol: float, most: int | None, budget: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return which centres to keep, their coefficients, the errors and the norms.

    Parameters
    ----------
    kernel, points
        Of all functions.
    A
        Their coefficients, (n, k).
    tol
        The error of each, as a share of its norm.
    most
        The most centres to keep; None for as many as needed.
    budget
        Bytes that may be used.
    """
    if isinstance(tol, bool) or not isinstance(tol, numbers.Real) or not 0 <= tol < math.inf:
        raise ValueError(f"tol={tol!r} must be a finite number >= 0: the error as a share of the norm.")
    if most is not None and (isinstance(most, bool) or not isinstance(most, numbers.Integral) or most < 1):
        raise ValueError(f"max_centres={most!r} must be a whole number >= 1, or None for no limit.")
    nothing = np.zeros(0, dtype=np.intp), np.zeros((0, A.shape[1])), np.zeros(A.shape[1]), np.zeros(A.shape[1])
    if not size_of(points):
        return nothing
    rows, A = merged(points, A)
    if not len(rows):
        return nothing
    size = exponents(A)
    gram = Gram(kernel, doubled(plain(taken(points, rows))), budget=budget)
    search = _Search(gram, scaled(A, -size))
    if tol > 0 or (most is not None and most < len(rows)):
        search.run(float(tol), len(rows) if most is None else min(int(most), len(rows)))
    else:
        search.keep_all()
    kept = search.coefficients.any(axis=1)
    order = np.argsort(search.chosen[kept])
    coefficients = np.ldexp(search.coefficients[kept][order], size)
    return rows[search.chosen[kept][order]], coefficients, np.ldexp(search.errors, size), np.ldexp(search.norms, size)


class _Search:
    r"""Centres S chosen one after the other, and the projections on the span of their kernel functions.

    Rows of :math:`R` with :math:`R^T R = K_{:S} K_{SS}^{-1} K_{S:}` are an orthonormal (Newton) basis of the span,
    evaluated at all centres. With the residual r = f - g and the power function :math:`P(x)^2 = (K - R^T R)(x, x)`, a
    centre shortens r by :math:`r(x)^2 / P(x)^2`. Choosing by this alone takes pairs of neighbours, whose difference is
    a derivative, and in a few steps no digit of R is left; choosing by r alone takes more centres. Between them,
    :math:`r(x)^2 / P(x)` in units of k(x, x) needs few centres and keeps its digits (beta = 2 on the scale of Wenzel,
    Santin and Haasdonk, 2023). Several functions share the centres: their squares are added. It is no
    `mercer.gram.factor.PivotedCholesky`, as functions decide about its pivots, and as a negative P^2 is an error here.
    """

    def __init__(self, gram: Gram, A: np.ndarray) -> None:
        self.gram, self.A = gram, A
        self.n, self.k = A.shape
        self.noise = _NOISE.get(gram.dtype.itemsize, 1e-5)
        self.block = int(max(1, min(_CANDIDATES, gram.budget // (_PARTS * 8 * self.n))))  # centres looked at together
        self.diagonal = np.array(gram.diag(), dtype=np.float64)
        if self.diagonal.min() < 0:
            raise indefinite(gram.kernel, f"k(x, x) = {self.diagonal.min():.6g} is negative at a centre")
        values = np.asarray(gram.matvec(A), dtype=np.float64)
        square = np.einsum("ij,ij->j", A, values)
        self.norms = roots(gram, square, A)
        self.weights = np.where(self.norms > 0, 1.0 / np.where(self.norms > 0, self.norms, 1.0), 0.0)
        self.left = self.diagonal.copy()  # P^2
        self.residual = values  # at all centres
        self.R: list[np.ndarray] = []
        self.chosen = np.zeros(0, dtype=np.intp)
        self.newton = np.zeros((0, self.k))  # coefficients in the orthonormal basis
        self.coefficients = np.zeros((0, self.k))
        self.errors = self.norms.copy()

    def keep_all(self) -> None:
        """Choose every centre, with the coefficients as they are."""
        self.chosen, self.coefficients, self.errors = np.arange(self.n), self.A, np.zeros(self.k)

    @property
    def relative(self) -> float:
        """The largest error, as a share of the norm."""
        return float((self.errors * self.weights).max())

    def run(self, tol: float, most: int) -> None:
        """Choose centres until every error is at most tol times the norm, or there are `most`."""
        for _ in range(_ROUNDS):
            before, number = self.relative, len(self.chosen)
            while self.relative > tol and len(self.chosen) < most and self._extend(tol, most - len(self.chosen)):
                pass
            if len(self.chosen) == self.n:
                self.keep_all()
                return
            self._check()
            done = self.relative <= tol or len(self.chosen) == most
            if done or (len(self.chosen) == number and self.relative > 0.5 * before):
                return

    def _scores(self, r: np.ndarray, left: np.ndarray, diagonal: np.ndarray, chosen: Any) -> np.ndarray:
        """Return how much each centre promises; 0 where it would add nothing but rounding."""
        share = np.divide(left, diagonal, out=np.zeros(len(left)), where=diagonal > 0)
        free = share > self.noise
        free[chosen] = False
        scores = np.zeros(len(left))
        scores[free] = ((r[free] / np.sqrt(diagonal[free, None])) ** 2).sum(axis=1) / np.sqrt(share[free])
        return scores

    def _extend(self, tol: float, room: int) -> bool:
        """Choose some more centres; return whether there were any to look at."""
        scores = self._scores(self.residual * self.weights, self.left, self.diagonal, self.chosen)
        if not scores.any():
            return False
        some = min(self.block, int(np.count_nonzero(scores)))
        best = np.argpartition(scores, -some)[-some:]
        others = np.delete(scores, best).max() if some < self.n else 0.0
        kept, L = self._among(best, 0.5 * others, tol, min(room, some))
        if not kept:  # looked at closely, they add nothing
            self.left[best] = 0.0
            return True
        pivots = best[kept]
        if self._bytes(len(self.chosen) + len(pivots), self.block) > self.gram.budget:
            self.gram.budget.require(
                self._bytes(self.n, _CANDIDATES),
                f"a basis for {self.n} of {self.n} centres",
                f"with {len(self.chosen)} the error is {self.relative:.2g} of the norm. Raise tol, set max_centres, or "
                "raise the budget.",
            )
        self._append(pivots, L)
        return True

    def _bytes(self, count: int, block: int) -> int:
        """Return what a basis takes: its values at all centres, those at its own, and the block that is added to it."""
        return 8 * self.n * (count + 3 * block) + 24 * count * count

    def _among(self, best: np.ndarray, threshold: float, tol: float, room: int) -> tuple[list[int], np.ndarray]:
        """Choose among candidates one by one; return which, and the Cholesky factor of their block of K - R'R."""
        H = np.asarray(self.gram.block(best, best), dtype=np.float64)
        for rows in self.R:
            H -= rows[:, best].T @ rows[:, best]
        diagonal, left, r = self.diagonal[best], H.diagonal().copy(), self.residual[best] * self.weights
        error = (self.errors * self.weights) ** 2
        V = np.zeros((room, len(best)))
        kept: list[int] = []
        while len(kept) < room and (not kept or error.max() > tol**2):
            scores = self._scores(r, left, diagonal, kept)
            i = int(np.argmax(scores))
            if not scores[i] > (threshold if kept else 0.0):
                break
            t = len(kept)
            V[t] = (H[i] - V[:t, i] @ V[:t]) / math.sqrt(left[i])
            step = r[i] / V[t, i]
            r = r - np.outer(V[t], step)
            left = left - V[t] ** 2
            error = error - step**2
            kept.append(i)
        return kept, V[: len(kept), kept].T

    def _append(self, pivots: np.ndarray, L: np.ndarray) -> None:
        rest = np.asarray(self.gram.block(pivots, slice(0, self.n)), dtype=np.float64)
        for rows in self.R:
            rest -= rows[:, pivots].T @ rows
        new = solve_triangular(L, rest, lower=True, overwrite_b=True, check_finite=False)
        c = solve_triangular(L, self.residual[pivots], lower=True, check_finite=False)
        self.R.append(new)
        self.chosen = np.concatenate([self.chosen, pivots])
        self.newton = np.concatenate([self.newton, c])
        self.residual -= new.T @ c
        self.left -= np.einsum("ij,ij->j", new, new)
        self.errors = np.sqrt((self.errors**2 - (c**2).sum(axis=0)).clip(min=0.0))
        at = int(np.argmin(self.left + 1e-3 * self.diagonal))
        if self.left[at] < -1e-3 * self.diagonal[at]:
            raise indefinite(self.gram.kernel, f"the squared distance of k(x, .) from others is {self.left[at]:.3g}")

    def _check(self) -> None:
        """Compute coefficients, and from them residual and error with fresh kernel values."""
        S, difference = self.chosen, self.A.copy()
        if len(S):
            U = np.concatenate([rows[:, S] for rows in self.R])
            self.coefficients = solve_triangular(U, self.newton, check_finite=False)
            difference[S] -= self.coefficients
        self.residual = np.asarray(self.gram.matvec(difference), dtype=np.float64)
        square = np.einsum("ij,ij->j", difference, self.residual)
        hidden = np.sqrt(np.finfo(np.float64).eps) * np.linalg.norm(difference.T * np.sqrt(self.diagonal), axis=1)
        self.errors = np.maximum(roots(self.gram, square, difference), hidden)
        if len(S):  # what is left of it in the span, by rounding, goes to the coefficients of the next check
            inside = solve_triangular(U, self.residual[S], trans="T", check_finite=False)
            self.newton = self.newton + inside
            for rows, part in zip(self.R, np.split(inside, np.cumsum([len(r) for r in self.R])[:-1]), strict=True):
                self.residual -= rows.T @ part
