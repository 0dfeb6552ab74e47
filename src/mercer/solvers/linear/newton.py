"""Newton's method for piecewise quadratic linear models, in the columns of X or in one coefficient per row.

Squared hinges are minimised at once, hinges by proximal steps or rounded around their kinks. The parameters problem,
state and tol are those of `interior_point`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg, sparse

from mercer.certify import Stop, relative_gap
from mercer.machine.budget import Budget
from mercer.solvers.linear.problem import LinearProblem, State, total
from mercer.solvers.linear.rows import Rows
from mercer.solvers.linear.system import MatrixFree, Product, System, not_definite, system

_FACTORED_ROWS = 8000  # rows up to which the kernel matrix is held and factored
_TRIALS = 3  # whole steps without fewer changes of the active set before the line search is asked
_ASKED = 0.5  # of tol, for steps in beta: the certificate is of w, whose sums round in another way
_IDLE_STEPS = 30  # steps without progress, after which only rounding is left
_IDLE = Stop.rounding(f"no progress in {_IDLE_STEPS} steps")


@dataclass(frozen=True)
class Clipped:
    """A loss of the slacks z with the derivative clip(anchor + strength z, 0, cap)."""

    anchor: np.ndarray
    strength: np.ndarray
    cap: np.ndarray | float

    @classmethod
    def squares(cls, problem: LinearProblem) -> Clipped:
        """Return the squared hinges of a problem: alpha = 2 cost max(0, z)."""
        strength = np.broadcast_to(2 * problem.cost, problem.sign.shape)
        return cls(np.zeros_like(strength), strength, np.inf)

    def raw(self, z: np.ndarray) -> np.ndarray:
        """Return the derivative before it is clipped."""
        return self.anchor + self.strength * z

    def pieces(self, raw: np.ndarray) -> np.ndarray:
        """Return on which piece each z lies: 0 and 2 where it is clipped, 1 between, where there is curvature."""
        return (raw > 0).astype(np.int8) + (raw >= self.cap)

    def step_length(self, constant: float, growth: float, z: np.ndarray, dz: np.ndarray) -> float:
        """Return the step that minimises the objective along a line: the zero of an increasing, piecewise linear slope.

        The penalty adds constant + growth t to the slope, and the slacks are z - t dz.
        """

        def slope(t: float) -> tuple[float, float]:
            raw = self.raw(z - t * dz)
            alpha = np.clip(raw, 0.0, self.cap)
            inside = alpha == raw
            second = float((self.strength * dz * dz * inside).sum())
            return constant + t * growth - float((alpha * dz).sum()), growth + second

        start = slope(0.0)[0]
        low, high, t = 0.0, np.inf, 1.0
        for _ in range(60):
            first, second = slope(t)
            if abs(first) <= 0.05 * abs(start):
                break
            low, high = (low, t) if first > 0 else (t, high)
            t = t - first / second if second > 0 else np.inf
            if not low < t < high:
                t = 0.5 * (low + high) if np.isfinite(high) else 4 * low
            if high - low <= 1e-12 * high:
                break
        return t


def squared_newton(problem: LinearProblem, state: State, tol: float) -> State:
    """Minimise a squared-hinge problem: with alpha = 2 cost max(0, z) a step is a weighted least-squares fit."""
    return _newton(problem, state, tol, system(problem.rows), Clipped.squares(problem))


def smoothed(problem: LinearProblem, state: State, tol: float, width: float) -> State:
    """Minimise with each hinge rounded over `width` (in units of f) around its kink: close to the solution soon.

    Only rows inside the width have curvature, so that a step costs two products with A and the matrix of those rows.
    """
    half = np.broadcast_to(0.5 * problem.cost, problem.sign.shape)
    return _newton(problem, state, tol, system(problem.rows), Clipped(half, (2 / width) * half, problem.cost))


def proximal(problem: LinearProblem, state: State, tol: float) -> State:
    """Minimise a hinge problem without factorising anything as large as X (Li, Sun and Toh, 2018).

    The dual is maximised by proximal steps: with the anchor a of the last step and strengths s,

        alpha = clip(a + s z, 0, cost),

    which turns the hinge into a Huber function of width cost/s around the anchor. Newton's method minimises it. Only
    rows inside that width have curvature: about as many as there are support vectors on the margin.
    """
    newton = system(problem.rows)
    cost = np.broadcast_to(problem.cost, problem.sign.shape)
    z = problem.slack(problem.rows.times(state.v))
    # One step of the anchor should be able to travel the whole box on data whose slacks are about 1.
    width = max(float(np.abs(z).mean()), 1e-300)
    first = Clipped(np.zeros(cost.shape) if state.alpha is None else state.alpha, cost / width, problem.cost)
    _proximal_steps(
        state, tol, first, 1e12 * float(cost.max()) / width, lambda c: _newton(problem, state, tol, newton, c)
    )
    return state


def _proximal_steps(
    state: State, tol: float, clipped: Clipped, strongest: float, minimise: Callable[[Clipped], object]
) -> None:
    """Move the anchor to the alpha of each minimum, until the gap is `tol` or `minimise` returns None."""
    last = np.inf
    while float(clipped.strength.max()) <= strongest:
        if minimise(clipped) is None or state.stopped != Stop.CONVERGED or state.gap <= tol:
            return
        assert state.alpha is not None
        clipped = replace(
            clipped, anchor=state.alpha, strength=(4 if state.gap > 0.25 * last else 1) * clipped.strength
        )
        last = min(last, state.gap)
    state.stopped = Stop.rounding("the proximal steps make no progress")


def _newton(problem: LinearProblem, state: State, tol: float, newton: System, clipped: Clipped) -> State:
    """Minimise the objective with a clipped derivative of the loss.

    A step is exact where no z leaves its piece. Ends when the relative gap of the problem itself is `tol`, or when the
    residual is so small that more steps would improve the smoothed problem alone.
    """
    rows, sign = problem.rows, problem.sign
    p = rows.penalty
    v = state.v
    f = rows.times(v)
    smallest, stalled = np.inf, 0
    fresh = True  # f is A v, not yet a sum of steps
    while True:
        z = problem.slack(f)
        alpha = np.clip(clipped.raw(z), 0.0, clipped.cap)
        pull = problem.pull(alpha)
        gradient = p * v - pull
        primal, dual = problem.primal(v, z), problem.dual(alpha, pull)
        residual = 0.5 * rows.dual_square(gradient)
        if rows.offset:
            residual += abs(float(gradient[-1])) * max(abs(float(v[-1])), float(np.abs(z).max()))
        state.v, state.alpha = v, alpha
        state.gap = relative_gap(abs(primal - dual) + residual, primal, dual)
        size = float(np.linalg.norm(gradient / np.sqrt(p + rows.shape[0])))
        stalled = 0 if size < 0.9 * smallest else stalled + 1
        smallest = min(smallest, size)
        if state.gap <= tol or (not problem.squared and residual <= 0.1 * abs(primal - dual)) or size == 0:
            if fresh:
                return state
            f, fresh = rows.times(v), True
            continue
        state.note(primal, dual, state.gap, int((alpha > 0).sum()))
        limit = state.limit()
        if limit or stalled >= _IDLE_STEPS:
            state.stopped = limit or _IDLE
            return state
        weight = total(clipped.strength * ((alpha > 0) & (alpha < clipped.cap)))
        # Where no row has curvature nothing holds the offset, and its step is a guess for the line search to correct.
        lift = (1e-10 if weight.any() else 1e-3) * float(clipped.strength.sum()) if rows.offset else 0.0
        newton.update(weight, lift)
        if isinstance(newton, MatrixFree):
            newton.accuracy = min(0.1, max(1e-10, state.gap))
        dv = newton.solve(-gradient)
        df = rows.times(dv)
        constant = float(p @ (v * dv)) - (0.0 if problem.linear is None else float(problem.linear @ dv))
        step = clipped.step_length(constant, rows.square(dv), z, sign * df)
        v, f, fresh = v + step * dv, f + step * df, False
        state.steps += 1


# -- one coefficient per row: few rows of many columns ----------------------------------------------------


def by_kernel(rows: Rows) -> bool:
    """Return whether a matrix of rows by rows is the cheaper way, and fits."""
    n, p = rows.shape
    if n > _FACTORED_ROWS or n >= 1.5 * p or (sparse.issparse(rows.X) and n > 2000):
        return False
    return n <= 1000 or 16 * n * n <= Budget()


def squared_by_kernel(problem: LinearProblem, state: State, tol: float) -> State:
    """Minimise a squared-hinge problem as `squared_newton` does."""
    newton = KernelNewton(problem, state)
    try:
        newton.minimise(_ASKED * tol, Clipped.squares(problem))
    finally:
        newton.keep()
    return state


def proximal_by_kernel(problem: LinearProblem, state: State, tol: float) -> bool:
    """Minimise a hinge problem whose bounds alpha <= cost are not reached, such as one of separable rows.

    Proximal steps of the dual, as in `proximal`. If an alpha of the first step exceeds its cost, return False
    and leave the state as it was: exchanging rows with a bound leads in circles.
    """
    newton = KernelNewton(problem, state)
    # 1 / strength is added to the kernel values, and is so small beside them that two or three steps suffice.
    size = float(newton.K.diagonal().mean()) or 1.0
    state.alpha = np.zeros(problem.sign.shape)
    fits = True

    def minimise(clipped: Clipped) -> bool | None:
        nonlocal fits
        newton.minimise(_ASKED * tol, clipped)
        fits = bool((state.alpha <= problem.cost).all())
        return fits or None

    try:
        first = Clipped(state.alpha, np.full(problem.sign.shape, 1e3 / size), np.inf)
        _proximal_steps(state, tol, first, 1e12 / size, minimise)
    finally:
        if fits:
            newton.keep()
        else:
            state.afresh()
    return fits


class KernelNewton:
    """Minimises a linear model over w = sum_i beta_i x_i (the representer theorem), from K = X X' alone.

    With a clipped derivative alpha(z) of the loss and the image c = sum_k sign alpha of the slacks, a step ends at
    beta = c + d, where d lives on the rows with curvature, the active set:

        (1 / weight + K) d = f - K c - offset,   sum(c + d) = 0.

    So it costs one factorisation of the size of the active set and two products with K. Whole steps exchange all rows
    that are on the wrong side at once; while their number falls, this is block principal pivoting, which ends with the
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

    def minimise(self, tol: float, clipped: Clipped) -> None:
        """Minimise until the gap of the problem is `tol`, or until the residual says that no step improves it."""
        problem, state = self.problem, self.state
        sign = problem.sign
        fewest, trials, stalled, smallest = len(self.K) + 1, _TRIALS, 0, np.inf
        while True:
            f = self.product + self.offset
            z = problem.slack(f)
            raw = clipped.raw(z)
            alpha = np.clip(raw, 0.0, clipped.cap)
            image = total(sign * alpha)
            pulled = _times(self.K, image)
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
            if limit or stalled >= _IDLE_STEPS:
                state.stopped = limit or _IDLE
                return
            if self.begun:
                piece = clipped.pieces(raw)
            else:  # all rows active: what is left of them after the first step is a good guess
                piece = np.ones(raw.shape, np.int8)
                image, self.begun = total(sign * raw), True
                pulled = _times(self.K, image)
            weight, most = total(clipped.strength * (piece == 1)), float(clipped.strength.sum())
            beta, offset = self._aim(weight, image, f - pulled, most)
            product = pulled + _times(self.K, beta - image)
            dbeta, dproduct, shift = beta - self.beta, product - self.product, offset - self.offset
            t = 1.0
            ahead = clipped.pieces(clipped.raw(problem.slack(product + offset)))
            changed = int(np.count_nonzero(piece != ahead))
            trials = _TRIALS if changed < fewest else trials - 1
            fewest = min(fewest, changed)
            if trials < 0:
                constant, growth = float(self.product @ dbeta), float(dproduct @ dbeta)
                t = clipped.step_length(constant, growth, z, sign * (dproduct + shift))
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


def _factored(M: np.ndarray, diagonal: np.ndarray) -> Product:
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
    raise not_definite()


def _times(K: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Return K b from the rows of K whose coefficient is not zero."""
    used = np.flatnonzero(coefficients)
    return K @ coefficients if 2 * len(used) > len(K) else coefficients[used] @ K[used]
