"""A low-rank part of the kernel matrix as a preconditioner, by Woodbury's formula."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

from mercer.gram.factor import PivotedCholesky
from mercer.machine.threads import run, shares

if TYPE_CHECKING:
    from mercer.solvers.systems.preconditioners.choice import Costs

_COLUMNS = 2048  # of R, weighted at a time
_COPIED = 0.5  # of the points, below which their columns of R are copied
VISIBLE = 1e-4  # of W'KW, below which W'(K - R'R)W is rounding in float32

Inverse = Callable[[np.ndarray], np.ndarray]  # V -> about (K + D)^-1 V


class LowRank:
    """R'R + D in the place of K + D.

    Parameters
    ----------
    factor
        The rows R, of pivots or of polynomials. It may grow between uses.
    """

    learns = True

    def __init__(self, factor: PivotedCholesky) -> None:
        self.factor = factor
        self._inner = np.zeros((0, 0))
        self._last = _Weighted(np.zeros(factor.matrix.n), np.zeros((0, 0)))

    @property
    def left(self) -> np.ndarray:
        """The diagonal of K - R'R."""
        return self.factor.left

    def seconds(self, costs: Costs, steps: float) -> float:
        """Return about how long it takes to make R and to take so many steps with it."""
        return costs.build(self.factor.rank) + costs.run(self.factor.rank, steps)

    def learn(self, W: np.ndarray, KW: np.ndarray) -> int:
        r"""Add rows for the part of K - R'R that some products with K show; return their number.

        .. math:: E W (W^T E W)^{-1} W^T E \le E, \qquad E = K - R^T R

        Conjugate gradients move along the directions in which R'R misses most: their products have been paid for.

        Parameters
        ----------
        W, KW
            (n, k), and K times it.
        """
        R, cols = self.factor.R, shares(self.factor.matrix.n)
        inside = np.sum(run(lambda c: R[:, c] @ W[c].astype(R.dtype), cols), axis=0)
        EW = KW - np.concatenate(run(lambda c: R[:, c].T @ inside, cols))
        H = (W.T @ EW).astype(np.float64)
        energy = np.einsum("ij,ij->j", W, KW, dtype=np.float64)
        root = np.sqrt(np.divide(1.0, energy, out=np.zeros_like(energy), where=energy > 0))
        values, vectors = eigh(0.5 * (H + H.T) * root * root[:, None])
        chosen = np.flatnonzero(values > VISIBLE)[::-1][: self.factor.room]
        if len(chosen):
            self.factor.extend((EW @ (root[:, None] * vectors[:, chosen] / np.sqrt(values[chosen]))).T)
        return len(chosen)

    def _gram(self) -> np.ndarray:
        """Return R R', of which only what is new is computed."""
        r, done = self.factor.rank, len(self._inner)
        if done < r:
            R = self.factor.R
            parts = run(lambda cols: R[done:, cols] @ R[:, cols].T, shares(self.factor.matrix.n))
            new = np.sum(parts, axis=0, dtype=np.float64)
            whole = np.empty((r, r))
            whole[:done, :done] = self._inner
            whole[done:], whole[:, done:] = new, new.T
            self._inner = whole
        return self._inner

    def _weighted(self, weights: np.ndarray) -> np.ndarray:
        """Return R diag(weights) R', of which only what rows and weights have changed is computed."""
        R, last = self.factor.R, self._last
        done = len(last.inner)
        changed = np.flatnonzero(weights != last.weights)
        if len(changed) > 0.5 * np.count_nonzero(weights):
            done, changed = 0, np.flatnonzero(weights)
        product = np.zeros((len(R), len(R)))
        if done:
            product[:done, :done] = last.inner
            if done < len(R):
                old = np.flatnonzero(last.weights)
                product[done:] = self._sum(old, lambda some, w: (some[done:] * w) @ some.T, last.weights)
                product[:done, done:] = product[done:, :done].T
        change = weights[changed] - (last.weights[changed] if done else 0.0)
        for sign in (1.0, -1.0):  # a matrix times its own transpose takes half the time
            some = changed[sign * change > 0]
            if len(some):
                root = np.zeros(len(weights))
                root[some] = np.sqrt(sign * change[sign * change > 0])
                product += sign * self._sum(some, _square, root)
        self._last = _Weighted(weights, product)
        return product

    def _sum(
        self, columns: np.ndarray, product: Callable[[np.ndarray, np.ndarray], np.ndarray], weights: np.ndarray
    ) -> np.ndarray:
        """Return the sum of what `product` makes of some columns of R and their weights, in float64."""

        def part(share: slice) -> np.ndarray:
            total: np.ndarray | None = None
            for i in range(share.start, share.stop, _COLUMNS):
                some = columns[i : min(i + _COLUMNS, share.stop)]
                whole = some[-1] - some[0] == len(some) - 1
                block = self.factor.R[:, some[0] : some[-1] + 1] if whole else self.factor.R[:, some]
                term = product(block, weights[some].astype(self.factor.dtype))
                total = term.astype(np.float64) if total is None else np.add(total, term, out=total)
            assert total is not None
            return total

        return np.asarray(np.sum(run(part, shares(len(columns))), axis=0))

    def inverse(self, shift: np.ndarray, rows: np.ndarray | None = None, slack: float = 0.0) -> Inverse:
        r"""Return the function V -> (R'R + D)^-1 V with D = diag(shift), by Woodbury's formula.

        .. math:: D^{-1} - D^{-1} R^T (I + R D^{-1} R^T)^{-1} R D^{-1}

        See `Preconditioner`. Slack saves what was computed for the last shift.
        """
        n, dtype, taken = self.factor.matrix.n, self.factor.dtype, slice(None) if rows is None else rows
        if not self.factor.rank:
            inverse = 1.0 / shift[taken]
            return lambda V: V * inverse[:, None]
        if rows is None and np.ptp(shift) == 0:
            weights = 1.0 / shift
            inner = self._gram() * weights[0]
        else:
            weights = np.zeros(n)
            weights[taken] = 1.0 / shift[taken]
            near = np.abs(weights - self._last.weights) <= slack * np.minimum(weights, self._last.weights)
            weights[near] = self._last.weights[near]
            inner = self._weighted(weights)
        factor = lifted_factor(inner)
        copied = rows is not None and len(rows) < _COPIED * n
        R = np.ascontiguousarray(self.factor.R[:, rows]) if copied else self.factor.R
        inverse = weights[rows] if copied else weights

        def apply(V: np.ndarray) -> np.ndarray:
            U = inverse[:, None] * V
            size = np.abs(U).max(axis=0)
            size = np.where(size > 0, size, 1.0)
            rounded = (U / size).astype(dtype, copy=False)
            parts = run(lambda c: R[:, c] @ rounded[c], shares(R.shape[1]))
            inside = cho_solve(factor, np.sum(parts, axis=0, dtype=np.float64), check_finite=False)
            inside = inside.astype(dtype)
            back = np.concatenate(run(lambda c: R[:, c].T @ inside, shares(R.shape[1])))
            return np.asarray(U - back * (size * inverse[:, None]))

        return apply if rows is None or copied else restricted(apply, n, rows)


@dataclass(frozen=True)
class _Weighted:
    """R diag(weights) R', as far as R went."""

    weights: np.ndarray
    inner: np.ndarray


def _square(some: np.ndarray, roots: np.ndarray) -> np.ndarray:
    scaled = some * roots
    return np.asarray(scaled @ scaled.T)


def restricted(apply: Inverse, n: int, rows: np.ndarray) -> Inverse:
    """Return the rows and columns of an n x n matrix that belong to some points."""

    def apply_in_rows(V: np.ndarray) -> np.ndarray:
        wide = np.zeros((n, V.shape[1]))
        wide[rows] = V
        return np.asarray(apply(wide)[rows])

    return apply_in_rows


def lifted_factor(inner: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return the Cholesky factor of I + inner, lifted where rounding has made it indefinite."""
    lift = 1.0
    while True:
        try:
            return cho_factor(inner + lift * np.eye(len(inner)), lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            lift = max(2.0 * lift, 1e-7 * float(np.trace(inner)))
