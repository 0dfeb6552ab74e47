"""Newton's method in one coefficient per row: for linear models on few rows of many columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg, sparse

from mercer.certify import Stop, relative_gap
from mercer.machine.budget import Budget
from mercer.solvers.linear.newton import step_length
from mercer.solvers.linear.problem import LinearProblem, State, total
from mercer.solvers.linear.rows import Rows

_FACTORED_ROWS = 8000  # rows up to which the kernel matrix is held and factored
_TRIALS = 3  # whole steps without fewer changes of the active set before the line search is asked


def by_kernel(rows: Rows) -> bool:
    """Return whether a matrix of rows by rows is the cheaper way, and fits."""
    n, p = rows.shape
    if n > _FACTORED_ROWS or n >= 1.5 * p or (sparse.issparse(rows.X) and n > 2000):
        return False
    return n <= 1000 or 16 * n * n <= Budget()


class KernelNewton:
    """Minimises a linear model over w = sum_i beta_i x_i (the representer theorem), from K = X X' alone.

    With loss' = alpha(z) = clip(anchor + strength z, 0, cap) and the image c = sum_k sign alpha of the slacks, a step
    ends at beta = c + d, where d lives on the rows with curvature, the active set:

        (1 / weight + K) d = f - K c - offset,   sum(c + d) = 0.

    So it costs one factorisation of the size of the active set and two products with K. Whole steps exchange all rows
    that are on the wrong side at once; while fewer and fewer are, this is block principal pivoting, which ends with the
    exact solution after some ten steps (Portugal, Judice and Vicente, 1994). Else a line search sees to progress.

    Parameters
    ----------
    problem
        With any loss, and all of its rows.
    state
        As for `interior_point`.
    """

    def __init__(self, problem: LinearProblem, state: State) -> None:
        self.problem, self.state = problem, state
        self.K = problem.rows.kernel()
        n = len(self.K)
        self.beta, self.product = np.zeros(n), np.zeros(n)  # and K beta
        self.offset = float(state.v[-1]) if problem.rows.offset else 0.0
        self.begun = False

    def keep(self) -> None:
        """Write the model to the state."""
        rows = self.problem.rows
        self.state.v = rows.implied(rows.transposed(self.beta))
        self.state.v[rows.penalised :] = self.offset

    def minimise(self, tol: float, anchor: np.ndarray, strength: np.ndarray, cap: np.ndarray | float) -> None:
        """Minimise until the gap of the problem is `tol`, or until the residual says that no step improves it."""
        problem, state = self.problem, self.state
        sign = problem.sign
        fewest, trials, stalled, smallest = len(self.K) + 1, _TRIALS, 0, np.inf
        while True:
            f = self.product + self.offset
            z = problem.slack(f)
            raw = anchor + strength * z
            alpha = np.clip(raw, 0.0, cap)
            image = total(sign * alpha)
            pulled = times(self.K, image)
            primal = 0.5 * float(self.beta @ self.product) + problem.risk(z)
            dual = problem.gain(alpha) - 0.5 * float(image @ pulled)
            residual = 0.5 * float((image - self.beta) @ (pulled - self.product))
            if problem.rows.offset:
                residual += abs(float(image.sum())) * max(abs(self.offset), float(np.abs(z).max()))
            state.alpha = alpha
            state.gap = relative_gap(abs(primal - dual) + max(0.0, residual), primal, dual)
            if state.gap <= tol or (not problem.squared and residual <= 0.1 * abs(primal - dual)):
                return
            state.note(primal, dual, state.gap, int((alpha > 0).sum()))
            stalled = 0 if residual < 0.9 * smallest else stalled + 1
            smallest = min(smallest, residual)
            limit = state.limit()
            if limit or stalled >= 30:
                state.stopped = limit or Stop.rounding("no progress in 30 steps")
                return
            if self.begun:
                piece = (raw > 0).astype(np.int8) + (raw >= cap)
            else:  # all rows active: what is left of them after the first step is a good guess
                piece = np.ones(raw.shape, np.int8)
                image, self.begun = total(sign * raw), True
                pulled = times(self.K, image)
            beta, offset = self._aim(total(strength * (piece == 1)), image, f - pulled, float(strength.sum()))
            product = pulled + times(self.K, beta - image)
            dbeta, dproduct, shift = beta - self.beta, product - self.product, offset - self.offset
            t = 1.0
            ahead = anchor + strength * problem.slack(product + offset)
            changed = int(np.count_nonzero(piece != (ahead > 0).astype(np.int8) + (ahead >= cap)))
            trials = _TRIALS if changed < fewest else trials - 1
            fewest = min(fewest, changed)
            if trials < 0:
                constant, growth = float(self.product @ dbeta), float(dproduct @ dbeta)
                t = step_length(constant, growth, z, sign * (dproduct + shift), anchor, strength, cap)
            self.beta = self.beta + t * dbeta
            self.product, self.offset = self.product + t * dproduct, self.offset + t * shift
            state.steps += 1

    def _aim(self, weight: np.ndarray, image: np.ndarray, r: np.ndarray, most: float) -> tuple[np.ndarray, float]:
        """Return coefficients and offset at the end of a whole step."""
        used = np.flatnonzero(weight)
        free = self.problem.rows.offset
        if not used.size:  # nothing holds the offset, and its step is a guess for the line search to correct
            return image, self.offset + (float(image.sum()) / (1e-3 * most) if free else 0.0)
        M = self.K[np.ix_(used, used)] if len(used) < len(weight) else self.K.copy()
        solve = _factored(M, 1 / weight[used])
        d = solve(r[used])
        offset = 0.0
        if free:
            ones = solve(np.ones(len(used)))
            offset = (float(d.sum()) + float(image.sum())) / float(ones.sum())
            d -= offset * ones
        beta = image.copy()
        beta[used] += d
        return beta, offset


def _factored(M: np.ndarray, diagonal: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return the solver of (M + diagonal) x = r; M is overwritten."""
    own = M.diagonal().copy()
    top = float((own + diagonal).max())
    for lift in (0.0, 1e-13, 1e-10):
        M.flat[:: len(M) + 1] = own + diagonal + lift * top
        # The upper half of M is overwritten; the lower one has what it takes to try again.
        factor, fails = linalg.lapack.dpotrf(M.T, lower=1, overwrite_a=1, clean=0)
        if not fails:
            return lambda r: linalg.lapack.dpotrs(factor, r, lower=1)[0]
        lower = np.tril_indices(len(M), -1)
        M.T[lower] = M[lower]
    raise np.linalg.LinAlgError("a Newton system is not positive definite; X or the weights span too many orders.")


def times(K: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Return K b from the rows of K whose coefficient is not zero."""
    used = np.flatnonzero(coefficients)
    return K @ coefficients if 2 * len(used) > len(K) else coefficients[used] @ K[used]


def squared_by_kernel(problem: LinearProblem, state: State, tol: float) -> State:
    """Minimise a squared-hinge problem: alpha = 2 cost max(0, z).

    Parameters
    ----------
    problem, state, tol
        As for `interior_point`.
    """
    strength = np.broadcast_to(2 * problem.cost, problem.sign.shape)
    newton = KernelNewton(problem, state)
    try:
        newton.minimise(tol, np.zeros_like(strength), strength, np.inf)
    finally:
        newton.keep()
    return state


def proximal_by_kernel(problem: LinearProblem, state: State, tol: float) -> bool:
    """Minimise a hinge problem whose bounds alpha <= cost do not matter, as where the rows can be separated.

    Proximal steps of the dual, as in `linear_newton.proximal`. Where an alpha of the first step is beyond its cost, the
    answer is False and the state is what it was: exchanging rows with a bound leads in circles.

    Parameters
    ----------
    problem, state, tol
        As for `interior_point`.
    """
    newton = KernelNewton(problem, state)
    # 1 / strength stands beside the kernel values: small enough that two or three steps are all it takes.
    size = float(newton.K.diagonal().mean()) or 1.0
    strength = np.full(problem.sign.shape, 1e3 / size)
    state.alpha = np.zeros(problem.sign.shape)
    last, fits = np.inf, True
    try:
        while float(strength.max()) <= 1e12 / size:
            newton.minimise(tol, state.alpha, strength, np.inf)
            fits = bool((state.alpha <= problem.cost).all())
            if not fits or state.stopped != Stop.CONVERGED or state.gap <= tol:
                break
            if state.gap > 0.25 * last:
                strength = 4 * strength
            last = min(last, state.gap)
        else:
            state.stopped = Stop.rounding("the proximal steps make no progress")
    finally:
        if fits:
            newton.keep()
        else:
            state.afresh()
    return fits
