"""One linear machine for all classes at once (Crammer and Singer, 2001), by proximal Newton steps on its dual."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mercer.certify import Stop, relative_gap
from mercer.solvers.control import Control
from mercer.solvers.linear.problem import LinearSolution
from mercer.solvers.linear.rows import COPIED_NUMBERS, Rows, single_threaded
from mercer.solvers.linear.system import cholesky, conjugate
from mercer.solvers.run import Run

_FACTORED_UNKNOWNS = 1500  # unknowns, classes times columns, up to which Newton systems are formed and factored
_IDLE_STEPS = 30  # steps without progress, after which only rounding is left
_CG_STEPS = 1000  # of conjugate gradients at most, for one Newton step


@dataclass
class Classes:
    r"""Minimise 1/2 sum_m |w_m|² + sum_i cost_i loss_i with f_m = w_m.x + b_m and y_i the class of row i.

    .. math:: \text{loss}_i = \max_m (f_m(x_i) + [m \ne y_i]) - f_{y_i}(x_i)

    The dual has one distribution per row: beta_im >= 0 with sum_m beta_im = cost_i, maximises

    .. math:: \sum_i \sum_{m \ne y_i} \beta_{im} - \tfrac12 \sum_m |w_m|^2, \qquad
              w_m = \sum_i (c_i [m = y_i] - \beta_{im}) x_i

    subject, for the offsets, to sum_i (c_i [m = y_i] - beta_im) = 0 for each class.

    Parameters
    ----------
    rows
        X, with its centre and scales.
    codes
        The number of each row's class.
    count
        How many classes there are.
    cost
        One positive number per row.
    """

    rows: Rows
    codes: np.ndarray
    count: int
    cost: np.ndarray

    def __post_init__(self) -> None:
        self.other = np.ones((len(self.codes), self.count))
        self.other[np.arange(len(self.codes)), self.codes] = 0.0
        self.own = self.cost[:, None] * (1.0 - self.other)
        self.penalty = self.rows.penalty[:, None]

    def primal(self, V: np.ndarray, F: np.ndarray) -> float:
        """Return the objective at V, where the values are F."""
        own = F[np.arange(len(F)), self.codes]
        return 0.5 * float((self.penalty * V * V).sum()) + float(self.cost @ ((F + self.other).max(axis=1) - own))

    def dual(self, beta: np.ndarray) -> float:
        """Return the dual objective of a balanced beta."""
        k = self.rows.penalised
        U = self.rows.transposed(self.own - beta)[:k]
        return float((beta * self.other).sum()) - 0.5 * float((U * U / self.penalty[:k]).sum())

    def balanced(self, beta: np.ndarray) -> np.ndarray:
        """Return a beta near by that meets the constraints of the offsets: mixed with one that makes up for it."""
        if not self.rows.offset:
            return beta
        wanted = self.own.sum(axis=0)
        missing = wanted - beta.sum(axis=0)
        ratio = max(0.0, float((-missing / wanted).max()))
        share = ratio / (1.0 + ratio)
        if share <= 1e-15:
            return beta
        towards = np.maximum(wanted + (1.0 - share) / share * missing, 0.0) / wanted.sum()
        return (1.0 - share) * beta + share * np.multiply.outer(self.cost, towards)


def solve_crammer_singer(problem: Classes, control: Control) -> LinearSolution:
    """Solve the joint problem to the relative gap `control.tol`; w has a row and b a number for each class.

    The dual is maximised by proximal steps: with the anchor a of the last one and a strength s,

        beta_i = the point of the simplex nearest to a_i + s_i (f(x_i) + [m != y_i]),

    which rounds the maximum over an interval around its kinks. Newton's method minimises that; only rows that touch two
    classes or more have curvature.

    Parameters
    ----------
    problem
        What to minimise.
    control
        The limits. An interrupt, too, returns the best solution so far.
    """
    rows = problem.rows
    if rows.shape[0] * rows.shape[1] <= COPIED_NUMBERS:
        problem = replace(problem, rows=rows.take(np.arange(rows.shape[0])))
    elif rows.X.dtype != np.float64:  # once, not in each product
        X = rows.X.astype(np.float64)
        problem = replace(problem, rows=Rows(X, rows.centre, rows.scale, rows.ones, rows.penalty))
    run = _Proximal(problem, control)
    try:
        with single_threaded(problem.rows):
            run.solve()
    except KeyboardInterrupt:
        run.stopped = Stop.INTERRUPTED
    except np.linalg.LinAlgError as error:
        run.stopped = Stop.rounding(str(error))
    V, beta, _, dual = run.best
    V = V - V.mean(axis=1, keepdims=True)  # what all classes share decides nothing
    F = problem.rows.times(V)
    primal = problem.primal(V, F)
    apart = problem.rows.implied(problem.rows.transposed(problem.own - beta) - problem.penalty * V)
    F = F + problem.other
    slackness = (beta * (F.max(axis=1, keepdims=True) - F)).sum(axis=1) / problem.cost
    kkt = max(float(slackness.max()), float(np.abs(problem.rows.times(apart)).max()))
    solver = "proximal semismooth Newton"
    certificate = run.certificate(primal, dual, kkt, solver, run.stopped, otherwise=Stop.ROUNDING)
    models = [rows.model(v) for v in V.T]
    w, b = np.array([w for w, _ in models]), np.array([b for _, b in models])
    return LinearSolution(w, b, beta.T, certificate, run.history)


class _Proximal(Run):
    """The proximal steps under way."""

    def __init__(self, problem: Classes, control: Control) -> None:
        super().__init__(control)
        self.problem, self.stopped = problem, Stop.CONVERGED
        n, count = problem.other.shape
        self.V = np.zeros((problem.rows.shape[1], count))
        start = problem.balanced(np.repeat(problem.cost[:, None] / count, count, axis=1))
        primal = problem.primal(self.V, np.zeros((n, count)))
        self.best = self.V, start, primal, max(0.0, problem.dual(start))
        if problem.dual(start) < 0:  # nothing costs less than nothing: beta = own is feasible, too
            self.best = self.V, problem.own, primal, 0.0

    def solve(self) -> None:
        """Take proximal steps until the gap is what is asked."""
        beta, width, last = self.best[1], 1.0, np.inf
        while self.gap > self.control.tol:
            beta = self._newton(beta, self.problem.cost[:, None] / width)
            if self.stopped != Stop.CONVERGED:
                return
            if self.gap > 0.25 * last:
                width /= 4
            last = self.gap
            if width < 1e-13:
                self.stopped = Stop.rounding("the proximal steps make no progress")
                return

    @property
    def gap(self) -> float:
        """The relative gap of the best point."""
        primal, dual = self.best[2:]
        return relative_gap(primal - dual, primal, dual)

    def _newton(self, anchor: np.ndarray, strength: np.ndarray) -> np.ndarray:
        """Minimise the rounded objective as far as it helps the objective itself; return beta there."""
        problem, control, k = self.problem, self.control, self.problem.rows.penalised
        V, F = self.V, problem.rows.times(self.V)
        least, idle = np.inf, 0
        while True:
            beta = onto_simplex(anchor + strength * (F + problem.other), problem.cost)
            gradient = problem.penalty * V - problem.rows.transposed(problem.own - beta)
            primal, fair = problem.primal(V, F), problem.balanced(beta)
            dual = problem.dual(fair)
            if primal < self.best[2]:
                self.best = V, self.best[1], primal, self.best[3]
            if dual > self.best[3]:
                self.best = self.best[0], fair, self.best[2], dual
            self.note(*self.best[2:], self.gap, int((beta[problem.own > 0] < problem.cost).sum()))
            residual = 0.5 * float((gradient[:k] ** 2 / problem.penalty[:k]).sum())
            if problem.rows.offset:
                residual += float(np.abs(gradient[-1]).max()) * max(1.0, float(np.abs(F).max()))
            size = float(np.linalg.norm(gradient / np.sqrt(problem.penalty + len(F))))
            idle = 0 if size < 0.9 * least else idle + 1
            least = min(least, size)
            self.V = V
            if self.gap <= control.tol or residual <= 0.1 * abs(primal - dual) or size == 0:
                return beta
            limit = self.limit()
            if limit or idle >= _IDLE_STEPS:
                self.stopped = limit or Stop.rounding(f"no progress in {_IDLE_STEPS} steps")
                return beta
            step = self._solver(beta > 0, strength[:, 0], min(0.1, max(1e-10, self.gap)))(-gradient)
            length = self._search(V, F, step, anchor, strength, float((gradient * step).sum()))
            V = V + length * step
            F = problem.rows.times(V)
            self.steps += 1

    def _rounded(self, V: np.ndarray, F: np.ndarray, anchor: np.ndarray, strength: np.ndarray) -> float:
        problem = self.problem
        beta = onto_simplex(anchor + strength * (F + problem.other), problem.cost)
        losses = ((beta - problem.own) * F + beta * problem.other - (beta - anchor) ** 2 / (2 * strength)).sum()
        return 0.5 * float((problem.penalty * V * V).sum()) + float(losses)

    def _search(
        self, V: np.ndarray, F: np.ndarray, step: np.ndarray, anchor: np.ndarray, strength: np.ndarray, slope: float
    ) -> float:
        """Return a step length that lowers the rounded objective in proportion to the slope (Armijo)."""
        start, along, length = self._rounded(V, F, anchor, strength), self.problem.rows.times(step), 1.0
        while length > 1e-10:
            value = self._rounded(V + length * step, F + length * along, anchor, strength)
            if value <= start + 1e-4 * length * slope + 1e-14 * abs(start):
                return length
            length *= 0.5
        return length

    def _solver(self, active: np.ndarray, strength: np.ndarray, accuracy: float) -> Callable[[np.ndarray], np.ndarray]:
        """Return the solver of the Newton systems (P + A' s J A) x = r; J projects onto the classes of each row.

        J_i = diag(S) - S S' / |S| for the classes S where beta_i > 0. A shift of all offsets changes nothing; a small
        penalty on them makes the solution unique.
        """
        problem = self.problem
        count = active.sum(axis=1)
        curved = count > 1
        lift = np.zeros_like(problem.penalty)
        if problem.rows.offset:
            lift[-1] = (1e-10 if curved.any() else 1e-3) * float(strength.sum())
        penalty = problem.penalty + lift
        S, s, share = active[curved].astype(np.float64), strength[curved], strength[curved] / count[curved]
        p, m = len(penalty), active.shape[1]
        if p * m <= _FACTORED_UNKNOWNS:
            part = problem.rows.take(np.flatnonzero(curved))
            M = np.zeros((m, p, m, p))
            for a in range(m):
                for b in range(a, m):
                    weight = (s if a == b else 0.0) * S[:, a] - share * S[:, a] * S[:, b]
                    M[a, :, b] = M[b, :, a] = part.gram(weight)
                M[a, :, a][np.arange(p), np.arange(p)] += penalty[:, 0]
            solve = cholesky(M.reshape(m * p, m * p))
            return lambda r: solve(r.T.ravel()).reshape(m, p).T

        def apply(D: np.ndarray) -> np.ndarray:
            part = problem.rows.times(D)[curved] * S
            out = np.zeros((len(active), m))
            out[curved] = s[:, None] * part - share[:, None] * part.sum(axis=1, keepdims=True) * S
            return penalty * D + problem.rows.transposed(out)

        weights = np.zeros(active.shape)
        weights[curved] = s[:, None] * S * (1.0 - 1.0 / count[curved, None])
        diagonal = penalty + np.column_stack([problem.rows.diagonal(column) for column in weights.T])
        return lambda r: conjugate(apply, r, diagonal, accuracy, _CG_STEPS)


def onto_simplex(rows: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Return the nearest nonnegative numbers to each row that add up to `total` (Held, Wolfe and Crowder, 1974).

    Examples
    --------
    >>> onto_simplex(np.array([[0.5, 0.5, -1.0], [3.0, 0.0, 0.0]]), np.array([1.0, 1.0]))
    array([[0.5, 0.5, 0. ],
           [1. , 0. , 0. ]])
    """
    ordered = -np.sort(-rows, axis=1)
    level = (np.cumsum(ordered, axis=1) - total[:, None]) / np.arange(1, rows.shape[1] + 1)
    last = rows.shape[1] - 1 - np.argmax((ordered > level)[:, ::-1], axis=1)
    return np.maximum(rows - level[np.arange(len(rows)), last][:, None], 0.0)
