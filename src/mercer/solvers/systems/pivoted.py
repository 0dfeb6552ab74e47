"""A low-rank approximation of the kernel matrix, and what it makes of equations with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh, solve_triangular

from mercer.gram.products import Products
from mercer.machine.threads import run, shares

_CHUNK = 2048  # columns of R that are weighted at a time
_NOISE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 2e-15}  # of the diagonal, below which a pivot is rounding
_COPIED = 0.5  # of the points, below which their columns of R are copied
_SHOWN = 1e-4  # of W'KW, below which W'(K - R'R)W is rounding

Precondition = Callable[[np.ndarray], np.ndarray]


class Pivoted:
    r"""Rows R of a Cholesky factor with random pivots S, a block at a time.

    .. math:: R^T R = K_{:S} K_{SS}^{-1} K_{S:}

    A block of pivots is drawn at once, with the diagonal of K - R'R as probabilities, and each is accepted with the
    probability that it would still have after those accepted before it: the pivots are distributed as if drawn one by
    one, at the speed of matrix products (Epperly, Tropp and Webber 2024; Chen, Epperly, Tropp and Webber 2023).

    Parameters
    ----------
    products
        The kernel matrix.
    most
        The largest rank of pivots.
    single
        Whether R is kept in float32.
    seed
        Of the pivots.
    spare
        Rows that `learn` may add.
    """

    def __init__(self, products: Products, most: int, single: bool, seed: int = 0, spare: int = 0) -> None:
        self.products, self.single = products, single
        self.dtype = np.dtype(np.float32 if single else np.float64)
        self.most = min(most, products.n)
        self._rows = np.empty((min(most + spare, products.n), products.n), self.dtype)  # not touched before its use
        self.rank = 0
        self.pivots = np.zeros(0, dtype=np.intp)  # S, in the order of the rows
        self._diagonal = products.diagonal().clip(min=0.0)
        self.left = self._diagonal.copy()  # the diagonal of K - R'R
        self._inner = np.zeros((0, 0))
        self._last = _Weighted(np.zeros(products.n), np.zeros((0, 0)))
        self._rng = np.random.default_rng(seed)
        self.exhausted = not self.left.any()
        self._share = 1.0

    @property
    def R(self) -> np.ndarray:
        """The rows so far."""
        return self._rows[: self.rank]

    @property
    def trace(self) -> float:
        """The trace of K - R'R: the sum of the eigenvalues that R leaves out."""
        return float(self.left.sum())

    @property
    def largest(self) -> float:
        """About the largest eigenvalue of K - R'R, as the last block of pivots showed it."""
        return max(self._share * self.trace, float(self.left.max()))

    def grow(self, block: int) -> int:
        """Draw a block of pivots and return how many were accepted."""
        total = self.left.sum()
        if self.exhausted or self.rank == self.most:
            self.exhausted = True
            return 0
        drawn = self._rng.choice(len(self.left), size=min(block, self.most - self.rank), p=self.left / total)
        accepted, L = self._accept(drawn)
        if len(accepted):
            self._append(accepted, L)
        if not len(accepted) or self.left.sum() <= _NOISE[self.dtype] * self._diagonal.sum():
            self.exhausted = True
        return len(accepted)

    def _accept(self, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pivots that are kept and the Cholesky factor of their block of K - R'R."""
        H = self.products.values(drawn, drawn, self.single).astype(np.float64)
        known = self.R[:, drawn].astype(np.float64)
        H -= known.T @ known
        b = len(drawn)
        if b > 16:
            # Points drawn in proportion to the diagonal show the eigenvalues of K - R'R, each too large by trace / b.
            root = 1.0 / np.sqrt(self.left[drawn])
            top = eigh(H * root * root[:, None], eigvals_only=True, subset_by_index=[b - 1, b - 1])
            self._share = max(float(top[0]) - 1.0, 0.1) / b
        chance = self._rng.random(b) * self.left[drawn]
        noise = np.maximum(chance, _NOISE[self.dtype] * self._diagonal[drawn])
        kept: list[int] = []
        L = np.zeros((b, b))
        for i in range(b):
            t = len(kept)
            rest = H[i, i] - L[i, :t] @ L[i, :t]
            if rest <= noise[i]:
                continue
            L[i:, t] = (H[i:, i] - L[i:, :t] @ L[i, :t]) / np.sqrt(rest)
            kept.append(i)
        return drawn[kept], L[np.ix_(kept, range(len(kept)))]

    def _append(self, pivots: np.ndarray, L: np.ndarray) -> None:
        n, r, t = self.products.n, self.rank, len(pivots)
        values = self.products.values(pivots, slice(0, n), self.single)
        inverse = solve_triangular(L, np.eye(t), lower=True).astype(self.dtype)
        at_pivots = np.ascontiguousarray(self.R[:, pivots].T)
        new = self._rows[r : r + t]

        def part(cols: slice) -> None:
            rest = values[:, cols].astype(self.dtype, copy=False) - at_pivots @ self._rows[:r, cols]
            np.matmul(inverse, rest, out=new[:, cols])
            self.left[cols] -= np.einsum("ij,ij->j", new[:, cols], new[:, cols], dtype=np.float64)

        run(part, shares(n))
        self.left[pivots] = 0.0
        self.left.clip(min=0.0, out=self.left)
        self.rank = r + t
        self.pivots = np.concatenate([self.pivots, pivots])

    def learn(self, W: np.ndarray, KW: np.ndarray) -> int:
        r"""Add what some products with K show of K - R'R, and return by how many rows.

        .. math:: E W (W^T E W)^{-1} W^T E \le E, \qquad E = K - R^T R

        Conjugate gradients move along the directions in which R'R misses most: their products have been paid for.

        Parameters
        ----------
        W, KW
            (n, k), and K times it.
        """
        R, cols = self.R, shares(self.products.n)
        inside = np.sum(run(lambda c: R[:, c] @ W[c].astype(R.dtype), cols), axis=0)
        EW = KW - np.concatenate(run(lambda c: R[:, c].T @ inside, cols))
        H = (W.T @ EW).astype(np.float64)
        energy = np.einsum("ij,ij->j", W, KW, dtype=np.float64)
        root = np.sqrt(np.divide(1.0, energy, out=np.zeros_like(energy), where=energy > 0))
        values, vectors = eigh(0.5 * (H + H.T) * root * root[:, None])
        room = len(self._rows) - self.rank
        chosen = np.flatnonzero(values > _SHOWN)[::-1][:room]  # the rest is rounding
        if not len(chosen):
            return 0
        new = self._rows[self.rank : self.rank + len(chosen)]
        new[:] = (EW @ (root[:, None] * vectors[:, chosen] / np.sqrt(values[chosen]))).T
        self.left -= np.einsum("ij,ij->j", new, new, dtype=np.float64)
        self.left.clip(min=0.0, out=self.left)
        self.rank += len(chosen)
        return len(chosen)

    def replace(self, rank: int, columns: Callable[[slice], np.ndarray]) -> None:
        """Put other rows in the place of R, with which R'R is about K, too.

        Parameters
        ----------
        rank
            Their number, at most `most`.
        columns
            From the numbers of some points to their columns of R; long ones are cut, as no point has more than K.
        """

        def part(some: slice) -> None:
            new = columns(some)
            squares = np.einsum("ij,ij->j", new, new, dtype=np.float64)
            most = self._diagonal[some]
            over = np.sqrt(np.divide(most, squares, out=np.ones_like(squares), where=squares > most))
            self._rows[:rank, some] = new * over.astype(self.dtype)

        _in_chunks(part, self.products.n)
        self.rank, self.pivots, self.exhausted = rank, np.zeros(0, dtype=np.intp), True
        self._begin_again()

    def settle(self, count: int) -> None:
        r"""Make R'R exact along its first rows, by one product with K.

        .. math:: R^T R \leftarrow K W H^{-1} W^T K + (I - K W H^{-1} W^T) R_>^T R_> (I - W H^{-1} W^T K), \qquad
                  H = W^T K W

        with the first rows W' of R and the others R_>.
        """
        if not count:
            return
        W = self.R[:count].T.astype(np.float64)
        W /= np.linalg.norm(W, axis=0)
        KW = self.products(W, self.single)
        values, vectors = eigh(W.T @ KW)
        kept = values > _SHOWN * values[-1]
        root = vectors[:, kept] / np.sqrt(values[kept])
        first, others = (KW @ root).T.astype(self.dtype), self.R[count:]
        w = (W @ root).astype(self.dtype)
        inside = np.sum(run(lambda c: others[:, c] @ w[c], shares(self.products.n)), axis=0)

        def part(some: slice) -> None:
            others[:, some] -= inside @ first[:, some]
            self._rows[:count, some] = 0.0
            self._rows[: len(first), some] = first[:, some]

        _in_chunks(part, self.products.n)
        self._begin_again()

    def _begin_again(self) -> None:
        """Measure what rows that are not the old ones leave, and forget what was computed from those."""

        def part(some: slice) -> None:
            R = self.R[:, some]
            self.left[some] = self._diagonal[some] - np.einsum("ij,ij->j", R, R, dtype=np.float64)

        _in_chunks(part, self.products.n)
        self.left.clip(min=0.0, out=self.left)
        self._inner, self._last = np.zeros((0, 0)), _Weighted(np.zeros(self.products.n), np.zeros((0, 0)))

    # -- equations with it ------------------------------------------------------------------------------

    def _gram(self) -> np.ndarray:
        """Return R R', of which only what is new is computed."""
        r, done = self.rank, len(self._inner)
        if done < r:
            R = self.R
            parts = run(lambda cols: R[done:, cols] @ R[:, cols].T, shares(self.products.n))
            new = np.sum(parts, axis=0, dtype=np.float64)
            whole = np.empty((r, r))
            whole[:done, :done] = self._inner
            whole[done:], whole[:, done:] = new, new.T
            self._inner = whole
        return self._inner

    def _weighted(self, weights: np.ndarray) -> np.ndarray:
        """Return R diag(weights) R', of which only what rows and weights have changed is computed."""
        R, last = self.R, self._last
        done = len(last.inner)
        changed = np.flatnonzero(weights != last.weights)
        if len(changed) > 0.5 * np.count_nonzero(weights):
            done, changed = 0, np.flatnonzero(weights)
        whole = np.zeros((len(R), len(R)))
        if done:
            whole[:done, :done] = last.inner
            if done < len(R):
                old = np.flatnonzero(last.weights)
                whole[done:] = self._sum(old, lambda some, w: (some[done:] * w) @ some.T, last.weights)
                whole[:done, done:] = whole[done:, :done].T
        change = weights[changed] - (last.weights[changed] if done else 0.0)
        for sign in (1.0, -1.0):  # a matrix times its own transpose takes half the time
            some = changed[sign * change > 0]
            if len(some):
                root = np.zeros(len(weights))
                root[some] = np.sqrt(sign * change[sign * change > 0])
                whole += sign * self._sum(some, _square, root)
        self._last = _Weighted(weights, whole)
        return whole

    def _sum(
        self, columns: np.ndarray, product: Callable[[np.ndarray, np.ndarray], np.ndarray], weights: np.ndarray
    ) -> np.ndarray:
        """Return the sum of what `product` makes of some columns of R and their weights, in float64."""

        def part(share: slice) -> np.ndarray:
            total: np.ndarray | None = None
            for i in range(share.start, share.stop, _CHUNK):
                some = columns[i : min(i + _CHUNK, share.stop)]
                whole = some[-1] - some[0] == len(some) - 1
                block = self.R[:, some[0] : some[-1] + 1] if whole else self.R[:, some]
                found = product(block, weights[some].astype(self.dtype))
                total = found.astype(np.float64) if total is None else np.add(total, found, out=total)
            assert total is not None
            return total

        return np.asarray(np.sum(run(part, shares(len(columns))), axis=0))

    def precondition(self, shift: np.ndarray, rows: np.ndarray | None = None, slack: float = 0.0) -> Precondition:
        r"""Return the function V -> (R'R + D)^-1 V with D = diag(shift), by Woodbury's formula.

        .. math:: D^{-1} - D^{-1} R^T (I + R D^{-1} R^T)^{-1} R D^{-1}

        Parameters
        ----------
        shift
            One positive number per point; infinite for those that take no part.
        rows
            The points that take part; None for all.
        slack
            How far, relatively, 1 / D may be from 1 / shift: what was there for the last shift then need not change.
        """
        n = self.products.n
        if not self.rank:
            inverse = 1.0 / shift
            return lambda V: V * inverse[:, None]
        if rows is None and np.ptp(shift) == 0:
            weights = 1.0 / shift
            inner = self._gram() * weights[0]
        else:
            weights = np.zeros(n)
            weights[slice(None) if rows is None else rows] = 1.0 / shift
            near = np.abs(weights - self._last.weights) <= slack * np.minimum(weights, self._last.weights)
            weights[near] = self._last.weights[near]
            inner = self._weighted(weights)
        factor = lifted_factor(inner)
        copied = rows is not None and len(rows) < _COPIED * n
        R = np.ascontiguousarray(self.R[:, rows]) if copied else self.R
        inverse = weights[rows] if copied else weights

        def apply(V: np.ndarray) -> np.ndarray:
            U = inverse[:, None] * V
            size = np.abs(U).max(axis=0)
            size = np.where(size > 0, size, 1.0)
            rounded = (U / size).astype(self.dtype, copy=False)
            parts = run(lambda c: R[:, c] @ rounded[c], shares(R.shape[1]))
            inside = cho_solve(factor, np.sum(parts, axis=0, dtype=np.float64), check_finite=False)
            inside = inside.astype(self.dtype)
            back = np.concatenate(run(lambda c: R[:, c].T @ inside, shares(R.shape[1])))
            return np.asarray(U - back * (size * inverse[:, None]))

        if rows is None or copied:
            return apply

        return among(apply, n, rows)


@dataclass(frozen=True)
class _Weighted:
    """R diag(weights) R', as far as R went."""

    weights: np.ndarray
    inner: np.ndarray


def _square(some: np.ndarray, roots: np.ndarray) -> np.ndarray:
    scaled = some * roots
    return np.asarray(scaled @ scaled.T)


def _in_chunks(part: Callable[[slice], None], n: int) -> None:
    """Apply a function to some columns at a time, on all cores."""

    def share(columns: slice) -> None:
        for i in range(columns.start, columns.stop, _CHUNK):
            part(slice(i, min(i + _CHUNK, columns.stop)))

    run(share, shares(n))


def among(apply: Precondition, n: int, rows: np.ndarray) -> Precondition:
    """Return what a function of vectors of all n points makes of those that are 0 beyond some rows, in these rows."""

    def apply_among(V: np.ndarray) -> np.ndarray:
        wide = np.zeros((n, V.shape[1]))
        wide[rows] = V
        return np.asarray(apply(wide)[rows])

    return apply_among


def lifted_factor(inner: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return the Cholesky factor of I + inner, lifted where rounding has made it indefinite."""
    lift = 1.0
    while True:
        try:
            return cho_factor(inner + lift * np.eye(len(inner)), lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            lift = max(2.0 * lift, 1e-7 * float(np.trace(inner)))
