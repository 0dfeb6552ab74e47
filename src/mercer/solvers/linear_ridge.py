"""Ridge regression with explicit features, on its smaller side (M11)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, cg

from mercer.points.budget import Budget
from mercer.points.threads import within_limit

_EXTREME = 1e75  # beyond this, or below its inverse, the squares of the features are kept from overflowing
_EPS = float(np.finfo(float).eps)


class CentredRows:
    """The rows sqrt(s_i) (x_i - mean) as an operator; a sparse matrix stays sparse.

    Parameters
    ----------
    X
        A matrix, dense or sparse.
    weights
        s; None where all are 1.
    centre
        Whether the (weighted) mean is taken from the rows.
    """

    def __init__(self, X: Any, weights: np.ndarray | None, centre: bool) -> None:
        n, d = X.shape
        self.root = np.ones(n) if weights is None else np.sqrt(weights)
        self.sparse = sparse.issparse(X)
        largest = float(abs(X).max()) if X.size else 0.0
        self.unit = largest if largest > _EXTREME or 0 < largest < 1 / _EXTREME else 1.0
        X = (X.astype(np.float64) if X.dtype != np.float64 else X) / self.unit if self.unit != 1.0 else X
        share = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
        self.mean = np.asarray(X.T @ share, dtype=np.float64) if centre else np.zeros(d)
        if self.sparse:
            self.X = sparse.diags_array(self.root) @ X if weights is not None else X
        else:
            X = np.asarray(X, dtype=np.float64)
            X = X - self.mean if centre else X
            self.X = self.root[:, None] * X if weights is not None else X
        self._shift = self.mean if self.sparse else np.zeros(d)
        self.mean = self.mean * self.unit

    def times(self, W: np.ndarray) -> np.ndarray:
        """Return the rows times W."""
        out = np.asarray(self.X @ W)
        return out - np.multiply.outer(self.root, self._shift @ W) if self.sparse else out

    def transposed_times(self, A: np.ndarray) -> np.ndarray:
        """Return the transpose times A."""
        out = np.asarray(self.X.T @ A)
        return out - np.multiply.outer(self._shift, self.root @ A) if self.sparse else out

    def matrix(self, primal: bool) -> np.ndarray:
        """Return X'X or XX'."""
        X = self.X
        if not self.sparse:
            return X.T @ X if primal else X @ X.T
        square = (X.T @ X).toarray() if primal else (X @ X.T).toarray()
        if primal:
            across = np.outer(self._shift, np.asarray(X.T @ self.root))
            return square - across - across.T + (self.root @ self.root) * np.outer(self._shift, self._shift)
        across = np.outer(self.root, np.asarray(X @ self._shift))
        return square - across - across.T + (self._shift @ self._shift) * np.outer(self.root, self.root)


@within_limit
def solve_linear_ridge(
    rows: CentredRows, Y: np.ndarray, alpha: np.ndarray, solver: str, budget: Budget
) -> tuple[np.ndarray, np.ndarray | None]:
    r"""Return w of least |Xw - y|² + alpha |w|², one column per target, and a of w = X'a where the dual was solved.

    .. math:: w = (X'X + \alpha I)^{-1} X'y = X'(XX' + \alpha I)^{-1} y

    Parameters
    ----------
    rows
        X, weighted and centred.
    Y
        The targets, weighted and centred, in columns.
    alpha
        A number >= 0 for each.
    solver
        "primal" for the first form, "dual" for the second.
    budget
        What the matrix of the system may take; beyond that it is solved by conjugate gradients.

    Examples
    --------
    >>> rows, Y = CentredRows(np.eye(2), None, False), np.array([[2.0], [4.0]])
    >>> solve_linear_ridge(rows, Y, np.ones(1), "primal", Budget("1 MB"))[0].ravel()
    array([1., 2.])
    """
    primal = solver == "primal"
    size = rows.X.shape[1 if primal else 0]
    with np.errstate(over="ignore"):
        alpha = alpha / rows.unit / rows.unit  # for features in that unit
    right = rows.transposed_times(Y) if primal else Y
    out = np.zeros_like(right)
    M = rows.matrix(primal) if 16 * size * size <= budget else None
    for value in np.unique(alpha[np.isfinite(alpha)]):
        these = alpha == value
        solve = _by_products(rows, primal) if M is None else partial(_by_factor, M)
        out[:, these] = solve(right[:, these], float(value))
    if primal:
        return out / rows.unit, None
    with np.errstate(over="ignore"):
        return rows.transposed_times(out) / rows.unit, out / rows.unit / rows.unit


def _by_factor(M: np.ndarray, Y: np.ndarray, alpha: float) -> np.ndarray:
    """Solve (M + alpha I) A = Y; the shortest solution where the matrix is singular to rounding."""
    noise = 16 * len(M) * _EPS * float(M.diagonal().max(initial=0.0))
    if alpha > noise:
        system = M.copy()
        system.flat[:: len(M) + 1] += alpha
        return linalg.cho_solve(linalg.cho_factor(system, overwrite_a=True, check_finite=False), Y, check_finite=False)
    values, vectors = linalg.eigh(M, check_finite=False)
    keep = values > noise
    return (vectors[:, keep] / (values[keep] + alpha)) @ (vectors[:, keep].T @ Y)


def _by_products(rows: CentredRows, primal: bool) -> Any:
    first, second = (rows.times, rows.transposed_times) if primal else (rows.transposed_times, rows.times)

    def solve(Y: np.ndarray, alpha: float) -> np.ndarray:
        n = len(Y)
        system = LinearOperator((n, n), matvec=lambda v: second(first(v.ravel())) + alpha * v.ravel(), dtype=np.float64)
        return np.column_stack([cg(system, y, rtol=1e-12, maxiter=10 * n)[0] for y in Y.T])

    return solve
