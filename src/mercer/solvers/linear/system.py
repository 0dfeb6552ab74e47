"""The Newton systems of linear models, (P + A' diag(weight) A) x = r, by the cheapest of three ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy import linalg, sparse

from mercer.solvers.linear.rows import Rows

_STEP_UNKNOWNS = 2000  # unknowns of the largest system that is formed and factored in every step
_DENSE_COLUMNS = 5000  # the same for the columns of a dense X, where steps change few rows

Product = Callable[[np.ndarray], np.ndarray]


class System(Protocol):
    """A family of systems that differ in their weights."""

    def update(self, weight: np.ndarray, lift: float = 0.0) -> None:
        """Take the weights of the next system, and a penalty on the offset that keeps it regular."""

    def solve(self, r: np.ndarray) -> np.ndarray:
        """Return x."""


def system(rows: Rows) -> System:
    """Return the way that suits the shape of A: by columns, by rows, or without any matrix."""
    n, p = rows.shape
    if p <= min(n, _STEP_UNKNOWNS if sparse.issparse(rows.X) else _DENSE_COLUMNS):
        return ByColumns(rows)
    if n <= _STEP_UNKNOWNS:
        return ByRows(rows)
    return MatrixFree(rows)


def exact(rows: Rows) -> bool:
    """Return whether the systems are solved by factorisation."""
    return min(rows.shape) <= _STEP_UNKNOWNS


def cholesky(M: np.ndarray) -> Product:
    """Return the solver of M x = r for a positive semidefinite M, scaled to a unit diagonal; lifted where it fails."""
    diagonal = M.diagonal()
    with np.errstate(over="ignore"):
        scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = M * scale * scale[:, None]
    for lift in (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-3):
        scaled.flat[:: len(M) + 1] = 1.0 + lift
        factor, fails = linalg.lapack.dpotrf(scaled, lower=1)
        if fails == 0:
            return lambda r: scale * linalg.lapack.dpotrs(factor, scale * r, lower=1)[0]
    raise not_definite()


def not_definite() -> np.linalg.LinAlgError:
    """Return the error for a Newton system that no lift makes positive definite."""
    return np.linalg.LinAlgError("a Newton system is not positive definite; X or the weights span too many orders.")


class ByColumns:
    """Form the matrix (columns by columns) and factor it; rows whose weight is what it was are not visited again."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.weight: np.ndarray | None = None
        self.gram = np.zeros(0)

    def update(self, weight: np.ndarray, lift: float = 0.0) -> None:
        """Form the matrix, or add what has changed to it, and factor it."""
        changed = None if self.weight is None else np.flatnonzero(weight != self.weight)
        if weight.all():
            self.gram = self.rows.gram(weight)
        elif changed is None or 2 * len(changed) > np.count_nonzero(weight):
            used = np.flatnonzero(weight)
            all_rows = len(used) > 0.7 * len(weight)
            self.gram = self.rows.gram(weight) if all_rows else self.rows.gram(weight[used], used)
        else:
            assert self.weight is not None
            by = weight[changed] - self.weight[changed]
            for part in (by > 0, by < 0):
                self.gram += self.rows.gram(by[part], changed[part])
        self.weight = weight
        self.matrix = self.gram.copy()
        self.matrix.flat[:: len(self.matrix) + 1] += self.rows.penalty
        self.matrix[-1, -1] += lift
        self._solve = cholesky(self.matrix)

    def solve(self, r: np.ndarray) -> np.ndarray:
        """Return x, once refined."""
        x = self._solve(r)
        return x + self._solve(r - self.matrix @ x)


class ByRows:
    """The same solution from a matrix of rows by rows (Woodbury), for fewer rows than columns.

    With q = weight (A x): (K + 1/weight) q - 1 x_b = A P^-1 r, and sum q = r_b. Scaled by the roots of the weights, so
    that no weight is divided by.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.kernel = rows.kernel()
        self.free = rows.penalty == 0

    def update(self, weight: np.ndarray, lift: float = 0.0) -> None:
        """Factor I + root K root."""
        self.root, self.lift = np.sqrt(weight), lift
        M = self.kernel * self.root * self.root[:, None]
        M.flat[:: len(M) + 1] += 1.0
        self._solve = cholesky(M)
        self.ones = self._solve(self.root)

    def solve(self, r: np.ndarray) -> np.ndarray:
        """Return x."""
        x = self._once(r)
        return x + self._once(r - self._apply(x))

    def _apply(self, x: np.ndarray) -> np.ndarray:
        y = self.rows.penalty * x + self.rows.transposed(self.root**2 * self.rows.times(x))
        y[-1] += self.lift * x[-1]
        return y

    def _once(self, r: np.ndarray) -> np.ndarray:
        p = self.rows.penalty
        x = np.where(self.free, 0.0, r / np.where(self.free, 1.0, p))
        q = self._solve(self.root * self.rows.times(x))
        offset = 0.0
        if self.free.any():
            total = float(self.root @ self.ones) + self.lift
            offset = (r[-1] - float(self.root @ q)) / total if total > 0 else 0.0
            q = q + offset * self.ones
        x = x - np.where(self.free, 0.0, self.rows.transposed(self.root * q) / np.where(self.free, 1.0, p))
        if self.free.any():
            x[-1] = offset
        return x


class MatrixFree:
    """Conjugate gradients with the diagonal as preconditioner: products with A and nothing else.

    Few rows with a weight, as near the solution of a hinge problem, are better served by their own small matrix.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.accuracy = 1e-3
        self.limit = 500

    def update(self, weight: np.ndarray, lift: float = 0.0) -> None:
        """Take the rows that have a weight, and their diagonal."""
        used = np.flatnonzero(weight)
        self.part = self.rows.take(used) if 2 * len(used) < len(weight) else self.rows
        self.weight = weight[used] if self.part is not self.rows else weight
        self.few = ByRows(self.part) if 0 < len(used) <= _STEP_UNKNOWNS and self.part is not self.rows else None
        if self.few is not None:
            self.few.update(self.weight, lift)
            return
        self.penalty = self.rows.penalty.copy()
        self.penalty[-1] += lift
        diagonal = self.penalty + self.part.diagonal(self.weight)
        self.diagonal = np.where(diagonal > 0, diagonal, 1.0)

    def solve(self, r: np.ndarray) -> np.ndarray:
        """Return x to the relative accuracy that is asked for, in the norm of the preconditioner."""
        if self.few is not None:
            return self.few.solve(r)
        return conjugate(self._apply, r, self.diagonal, self.accuracy, self.limit)

    def _apply(self, x: np.ndarray) -> np.ndarray:
        return self.penalty * x + self.part.transposed(self.weight * self.part.times(x))


def conjugate(apply: Product, r: np.ndarray, diagonal: np.ndarray, accuracy: float, limit: int) -> np.ndarray:
    """Return x of apply(x) = r by conjugate gradients with the diagonal as preconditioner."""
    x = np.zeros_like(r)
    s = r / diagonal
    direction = s
    size = start = float(np.vdot(r, s))
    for _ in range(limit):
        if size <= accuracy**2 * start or size == 0:
            break
        product = apply(direction)
        curvature = float(np.vdot(direction, product))
        if curvature <= 0:
            break
        step = size / curvature
        x = x + step * direction
        r = r - step * product
        s = r / diagonal
        size, before = float(np.vdot(r, s)), size
        direction = s + (size / before) * direction
    return x
