"""Ridge regression with explicit features, on its smaller side (M11)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg, optimize, sparse
from scipy.sparse.linalg import LinearOperator, cg

from mercer.machine.budget import Budget
from mercer.machine.threads import within_limit

Product = Callable[[np.ndarray], np.ndarray]

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
    rows: CentredRows, Y: np.ndarray, alpha: np.ndarray, solver: str, budget: Budget, limit: int | None = None
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    r"""Return w of least |Xw - y|² + alpha |w|², one column per target.

    .. math:: w = (X'X + \alpha I)^{-1} X'y = X'(XX' + \alpha I)^{-1} y

    And a of w = X'a where the dual was solved, and the steps for each target: one for a factorisation.

    Parameters
    ----------
    rows
        X, weighted and centred.
    Y
        The targets, weighted and centred, in columns.
    alpha
        A number >= 0 for each.
    solver
        "primal" for the first form, "dual" for the second, "nonnegative" for the least among all w >= 0.
    budget
        What the matrix of the system may take; beyond that it is solved by conjugate gradients, and by projected
        quasi-Newton steps where w >= 0.
    limit
        Steps at most, for methods that take steps.

    Examples
    --------
    >>> rows, Y = CentredRows(np.eye(2), None, False), np.array([[2.0], [4.0]])
    >>> solve_linear_ridge(rows, Y, np.ones(1), "primal", Budget("1 MB"))[0].ravel()
    array([1., 2.])
    """
    primal = solver != "dual"
    size = rows.X.shape[1 if primal else 0]
    with np.errstate(over="ignore"):
        alpha = alpha / rows.unit / rows.unit  # for features in that unit
    right = rows.transposed_times(Y) if primal else Y
    out, steps = np.zeros_like(right), np.ones(len(alpha), dtype=int)
    first, second = (rows.times, rows.transposed_times) if primal else (rows.transposed_times, rows.times)
    M = rows.matrix(primal) if 16 * size * size <= budget else None
    for value in np.unique(alpha[np.isfinite(alpha)]):
        these = np.flatnonzero(alpha == value)
        if solver == "nonnegative":
            for j in these:
                out[:, j], steps[j] = _nonnegative(rows, M, right[:, j], float(value), limit)
        elif M is not None and value <= _noise(M) and not rows.sparse:
            out[:, these] = _by_singular_values(rows.X, Y[:, these], float(value), primal)
        elif M is not None:
            solve = _factored(M, float(value))
            x = solve(right[:, these])
            # The products of M are rounded; one step with those of X makes up for it.
            out[:, these] = x + solve(right[:, these] - second(first(x)) - value * x)
        else:
            for j in these:
                out[:, j], steps[j] = _by_products(first, second, right[:, j], float(value), limit)
    if primal:
        return out / rows.unit, None, steps
    with np.errstate(over="ignore"):
        return rows.transposed_times(out) / rows.unit, out / rows.unit / rows.unit, steps


def _noise(M: np.ndarray) -> float:
    """Return what rounding can have made of an eigenvalue 0."""
    return 16 * len(M) * _EPS * float(M.diagonal().max(initial=0.0))


def _by_singular_values(X: np.ndarray, Y: np.ndarray, alpha: float, primal: bool) -> np.ndarray:
    """Return w, or a of w = X'a, from X itself: where alpha is lost in X'X, half of the digits would be, too."""
    left, values, right = linalg.svd(X, full_matrices=False, check_finite=False)
    keep = values > max(X.shape) * _EPS * float(values.max(initial=0.0))
    left, values, right = left[:, keep], values[keep, None], right[keep]
    parts = (left.T @ Y) / (values**2 + alpha)
    return right.T @ (values * parts) if primal else left @ parts


def _factored(M: np.ndarray, alpha: float) -> Product:
    """Return the solver of (M + alpha I) A = Y; the shortest solution where the matrix is singular to rounding."""
    noise = _noise(M)
    if alpha > noise:
        system = M.copy()
        system.flat[:: len(M) + 1] += alpha
        factor = linalg.cho_factor(system, overwrite_a=True, check_finite=False)
        return lambda Y: linalg.cho_solve(factor, Y, check_finite=False)
    values, vectors = linalg.eigh(M, check_finite=False)
    keep = values > noise
    return lambda Y: (vectors[:, keep] / (values[keep] + alpha)) @ (vectors[:, keep].T @ Y)


def _by_products(
    first: Product, second: Product, y: np.ndarray, alpha: float, limit: int | None
) -> tuple[np.ndarray, int]:
    """Solve the system by conjugate gradients; return the steps they took, too."""
    n, steps = len(y), 0

    def count(_: np.ndarray) -> None:
        nonlocal steps
        steps += 1

    system = LinearOperator((n, n), matvec=lambda v: second(first(v.ravel())) + alpha * v.ravel(), dtype=np.float64)
    x = cg(system, y, rtol=1e-12, maxiter=10 * n if limit is None else limit, callback=count)[0]
    return x, steps


def _nonnegative(
    rows: CentredRows, M: np.ndarray | None, c: np.ndarray, alpha: float, limit: int | None
) -> tuple[np.ndarray, int]:
    """Return the w >= 0 of least w'(M + alpha)w - 2 c'w, M = X'X, and the steps taken."""
    if M is None:

        def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
            half = rows.transposed_times(rows.times(w)) + alpha * w - c
            return float(w @ (half - c)), 2 * half

        options = {"maxiter": 10 * len(c) if limit is None else limit, "maxfun": 10**9, "ftol": 1e-16, "gtol": 1e-12}
        start, bounds = np.zeros(len(c)), optimize.Bounds(0.0, np.inf)
        done = optimize.minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        return done.x, int(done.nit)
    system = M.copy()
    system.flat[:: len(M) + 1] += alpha
    w, steps, done = _pivots(system, c, 100 + len(c) if limit is None else limit)
    if not done and limit is None:  # singular, or pivots that go in circles: one coefficient at a time
        values, vectors = linalg.eigh(system, check_finite=False)
        keep = values > 16 * len(M) * _EPS * float(values[-1])
        root = np.sqrt(values[keep])
        w = optimize.nnls(root[:, None] * vectors[:, keep].T, vectors[:, keep].T @ c / root)[0]
    return w, steps


def _pivots(M: np.ndarray, c: np.ndarray, limit: int) -> tuple[np.ndarray, int, bool]:
    """Guess which coefficients are positive, solve for them, change all that contradict the guess, and so on.

    Block principal pivoting (Kim and Park, 2011): after three rounds without fewer contradictions only one is changed
    at a time, until there are fewer. Returns w, the rounds, and whether nothing contradicts the guess.
    """
    free, w, wrong = np.zeros(len(c), bool), np.zeros(len(c)), c > 0
    sizes = 16 * _EPS * np.abs(M)
    fewest, spare = len(c) + 1, 3
    for step in range(limit):
        if not wrong.any():
            return w, max(1, step), True
        if wrong.sum() < fewest:
            fewest, spare = int(wrong.sum()), 3
        elif spare:
            spare -= 1
        else:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        free ^= wrong
        w = np.zeros(len(c))
        try:
            factor = linalg.cho_factor(M[np.ix_(free, free)], check_finite=False)
        except np.linalg.LinAlgError:
            return np.maximum(w, 0.0), step, False
        w[free] = linalg.cho_solve(factor, c[free], check_finite=False)
        slack = M @ w - c
        wrong = np.where(free, w < 0, slack < -(sizes @ np.abs(w) + 16 * _EPS * np.abs(c)))
    return np.maximum(w, 0.0), limit, not wrong.any()
