"""Kernel ridge regression: one linear system, whatever its size, with a certificate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.certify import Certificate
from mercer.gram import Gram
from mercer.solvers.cholesky import rounding
from mercer.solvers.control import Control, check_vector
from mercer.solvers.history import Row
from mercer.solvers.saved import Saved
from mercer.solvers.systems import Answer, Systems

_ROUNDS = 5  # solutions of the system, each from the last, until gap and residual are as asked
_FAR = 1e140  # size of the targets beyond which their squares leave the range of float64


@dataclass
class RidgeProblem:
    r"""Minimise a sum of weighted squares plus the squared norm, for each column of Y.

    .. math:: \tfrac12 \sum_i w_i (y_i - f(x_i) - b)^2 + \tfrac{\alpha}{2} \|f\|_H^2

    The minimiser is f = sum a_i k(x_i, .) with (K + alpha W^-1) a + b = y, and sum a_i = 0 where b is free.

    Parameters
    ----------
    gram
        The kernel matrix of the training points.
    Y
        Targets, (n,) or (n, m).
    alpha
        At least 0: a number, or one for each column of Y.
    weights
        One positive number per point; None for ones.
    intercept
        Whether b is free; else it is 0.
    start
        Coefficients of a nearby solution, as Y.
    """

    gram: Gram
    Y: np.ndarray
    alpha: Any = 1.0
    weights: np.ndarray | None = None
    intercept: bool = False
    start: np.ndarray | None = None


@dataclass
class RidgeSolution:
    """What `solve_ridge` returns.

    Attributes
    ----------
    coefficients
        As Y.
    offsets
        b for each column of Y.
    values
        f(x_i) + b, as Y.
    certificate
        The objectives of all columns together; `kkt` is the worst residual of the system, in units of Y.
    residual
        |y - b - (K + alpha / W) a| / |y| for each column, of y less its mean where b is free; in float64.
    plan
        How the system was solved, and why so.
    history
        One row (products, primal, relative gap, points, seconds) for each product.
    diagnosis
        What was found wrong with a system that is singular to rounding, and what was done; mostly empty.
    """

    coefficients: np.ndarray
    offsets: np.ndarray
    values: np.ndarray
    certificate: Certificate
    residual: np.ndarray
    plan: str
    history: list[Row] = field(default_factory=list)
    diagnosis: str = ""


def solve_ridge(
    problem: RidgeProblem,
    control: Control,
    method: str = "auto",
    residual: float = 1e-6,
    rank: int | None = None,
) -> RidgeSolution:
    """Solve a ridge problem until the relative gap is `control.tol` and the relative residual is `residual`.

    Parameters
    ----------
    problem
        What to minimise.
    control
        The limits. An interrupt, too, returns the best solution so far.
    method, rank
        As for `Systems`.
    residual
        Largest |y - b - (K + alpha / W) a| / |y| that counts as converged.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, Gram
    >>> from mercer.solvers import Control
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> solution = solve_ridge(RidgeProblem(Gram(RBF(scale=0.3), X), X[:, 0] ** 2, 1e-3, intercept=True), Control())
    >>> bool(np.abs(solution.values - X[:, 0] ** 2).max() < 0.02), solution.certificate.converged
    (True, True)
    """
    return _Ridge(problem, control, method, residual, rank).run()


class _Ridge:
    """A run: targets as columns of size 1, and the columns of ones that the offsets need."""

    def __init__(self, problem: RidgeProblem, control: Control, method: str, residual: float, rank: int | None) -> None:
        self.problem, self.control, self.goal = problem, control, residual
        n = problem.gram.shape[0]
        Y = np.asarray(problem.Y, dtype=np.float64)
        if Y.shape[:1] != (n,) or Y.ndim > 2 or not np.isfinite(Y).all():
            raise ValueError(f"Y must hold {n} finite rows, one per point; its shape is {Y.shape}.")
        Y = Y.reshape(n, -1)
        m = Y.shape[1]
        self.alpha = np.broadcast_to(np.asarray(problem.alpha, dtype=np.float64), (m,)).copy()
        if not ((self.alpha >= 0) & np.isfinite(self.alpha)).all():
            raise ValueError(f"alpha must be finite and at least 0; it is {problem.alpha!r}.")
        self.w = np.ones(n) if problem.weights is None else check_vector("weights", problem.weights, n)
        if not ((self.w > 0) & np.isfinite(self.w)).all():
            raise ValueError(f"weights must be positive and finite; the least is {self.w.min():g}. Drop such points.")
        self.size = np.abs(Y).max(axis=0, initial=0.0)
        self.size[self.size == 0] = 1.0
        Y = Y / self.size
        self.mean = np.zeros(m)
        if problem.intercept:  # nothing is lost with the mean, and what is left says how small a residual is small
            self.mean = np.average(Y, axis=0, weights=self.w)
            Y = Y - self.mean
            Y[:, np.abs(Y).max(axis=0) <= 8 * np.finfo(float).eps] = 0.0
        self.Y = Y
        self.length = np.linalg.norm(Y, axis=0)
        self.systems = Systems(problem.gram, control, method=method, rank=rank)
        self.history: list[Row] = []
        self.iterations = 0
        self.diagnosis = ""

    # -- the system -------------------------------------------------------------------------------------

    @property
    def strengths(self) -> np.ndarray:
        """The different alphas, each of which has a column of ones where there is an offset."""
        return np.unique(self.alpha) if self.problem.intercept else np.empty(0)

    def _shift(self) -> np.ndarray:
        alpha = np.concatenate([self.alpha, self.strengths])
        if self.problem.weights is None:
            return alpha[None, :] if np.ptp(alpha) else np.asarray(alpha[:1, None])
        return np.asarray((1.0 / self.w)[:, None] * alpha) if np.ptp(alpha) else alpha[0] / self.w

    def _identity(self) -> Iterator[np.ndarray]:
        """What no other problem has: its targets, its parameters, and some of its kernel's values."""
        n = len(self.w)
        some = np.unique(np.linspace(0, n - 1, 16).astype(np.intp))
        yield from (self.Y, self.alpha, self.w, np.array([self.problem.intercept]))
        yield self.systems.products.values(some, some, False)

    @property
    def _far(self) -> bool:
        """Whether the squares of the targets' sizes are no numbers."""
        return bool((self.size > _FAR).any() or (self.size < 1 / _FAR).any())

    @property
    def _unit(self) -> np.ndarray:
        """The units of the objectives, which are found for targets of size 1."""
        return np.ones(len(self.size)) if self._far else self.size**2

    def _watch(self, iterations: int, residual: np.ndarray, columns: np.ndarray, A: np.ndarray) -> str | None:
        control, m = self.control, len(self.alpha)
        self.saved.write_now_and_then(A)
        # At the solution the objective is alpha y'a / 2; the residual r adds |r|^2 / 2 to the gap.
        a, unit = A[:, :m], self._unit
        if self.problem.intercept:
            ones = A[:, m + np.searchsorted(self.strengths, self.alpha)]
            total = ones.sum(axis=0)
            a = a - ones * np.divide(a.sum(axis=0), total, out=np.zeros(m), where=total != 0)
        primal = float(0.5 * (self.alpha * unit * np.einsum("ij,ij->j", self.Y, a)).sum())
        targets = columns[columns < m]
        rest = residual[columns < m] * self.length[targets]
        gap = 0.5 * float(self.w.mean()) * float(unit[targets] @ rest**2)
        relative = gap / max(primal, gap, 1e-300)
        at = self.iterations + iterations
        self.history.append(Row(at, primal, primal - gap, relative, len(self.w), control.seconds))
        if control.tell(iteration=at, gap=relative, dual=primal - gap, support=len(self.w)):
            return "stopped by the caller"
        return f"max_iter={control.max_iter} reached" if 0 <= control.max_iter <= at else None

    def run(self) -> RidgeSolution:
        control, m = self.control, len(self.alpha)
        B = np.hstack([self.Y, np.ones((len(self.w), len(self.strengths)))])
        self.saved = Saved(control, self._identity())
        A: np.ndarray | None = self.saved.restore()
        if A is None and self.problem.start is not None:
            A = np.zeros(B.shape)
            A[:, :m] = np.reshape(self.problem.start, self.Y.shape) / self.size
        # The offset of centred targets is small, and the residual of the ones counts only so many times.
        tol = np.where(np.arange(B.shape[1]) < m, 0.7 if self.problem.intercept else 1.0, 3.0) * self.goal
        for _ in range(_ROUNDS):
            answer = self.systems.solve(self._shift(), B, tol=tol, start=A, watch=self._watch)
            A = answer.A
            self.iterations += answer.iterations
            self.precision = answer.precision
            if answer.diagnosis and self._needs_lift(answer):
                self._lift(answer.diagnosis)
                continue
            self.diagnosis = self.diagnosis or answer.diagnosis
            relative = self._judge(A, answer.product)
            good = (self.residual <= self.goal).all() and relative <= control.tol
            if good or answer.stopped != "converged" or answer.diagnosis:
                break
            # The residual's share of the gap is its square.
            worse = max(float(self.residual.max()) / self.goal, (relative / control.tol) ** 0.5)
            tol = tol * min(0.3, 0.5 / worse)
        stopped = answer.stopped
        if good:
            stopped = "converged"
        elif stopped == "converged" and not answer.diagnosis:
            stopped = f"the residual stays at {self.residual.max():.2g}"
        if stopped == "converged":
            self.saved.remove()
        else:
            self.saved.write(answer.A)
        return self._finish(stopped)

    def _needs_lift(self, answer: Answer) -> bool:
        """Whether the solution of least norm is not that of this problem.

        It is where it passes through all targets, and at alpha = 0 it is the best that can be; but the offset cannot be
        eliminated from a singular system, and least squares without weights are not those with them.
        """
        if self.problem.intercept:
            return True
        missed = bool((answer.residual > self.goal).any())
        return missed and (self.problem.weights is not None or bool(self.alpha.any()))

    def _lift(self, why: str) -> None:
        """Solve a nearby problem instead."""
        lift = 1e4 * rounding(self.systems.products)
        self.diagnosis = f"{why.split('. ')[0]}. alpha was raised to {lift:.2g}."
        self.alpha = np.maximum(self.alpha, lift)

    # -- what it is worth -------------------------------------------------------------------------------

    def _judge(self, A: np.ndarray, KA: np.ndarray) -> float:
        """Set coefficients, offsets and values from the columns of the system; return the relative gap."""
        m, w = len(self.alpha), self.w
        a, Ka, b = A[:, :m].copy(), KA[:, :m].copy(), np.zeros(m)
        if self.problem.intercept:
            at = m + np.searchsorted(self.strengths, self.alpha)
            ones, Kones = A[:, at], KA[:, at]
            b = a.sum(axis=0) / ones.sum(axis=0)
            a, Ka = a - b * ones, Ka - b * Kones
        self.a, self.b, self.v = a, b, Ka + b
        rest = self.Y - self.v - self.alpha * a / w[:, None]
        self.residual = np.linalg.norm(rest, axis=0) / np.where(self.length > 0, self.length, 1.0)
        self.kkt = np.abs(rest).max(axis=0)
        # Rounding leaves this much of a residual that is 0, and its square of a gap: |x_i| times the root of the sum
        # of (a_j |x_j|)^2, in feature space.
        lengths = self.systems.products.diagonal().clip(min=0.0)
        moved = np.sqrt(lengths[:, None] * np.einsum("i,ij->j", lengths, a**2))
        floor = 2 * np.finfo(float).eps * (1.0 + moved + self.alpha * np.abs(a) / w[:, None])
        self.rounding = 0.5 * np.einsum("i,ij->j", w, floor**2)
        loss = 0.5 * np.einsum("i,ij->j", w, (self.Y - self.v) ** 2)
        self.primal = loss + 0.5 * self.alpha * np.einsum("ij,ij->j", a, Ka)
        self.gap = 0.5 * np.einsum("i,ij->j", w, rest**2)
        hopeless = self.gap - self.rounding > self.control.tol * self.primal
        if self.diagnosis and hopeless.any():
            self.gap = np.where(hopeless, np.minimum(self.gap, self._other_gap()), self.gap)
        return float(np.max((self.gap - self.rounding) / np.maximum(self.primal, 1e-300), initial=0.0))

    def _other_gap(self) -> np.ndarray:
        """Return the gap to the dual point of the residuals, u = w (f - y): what is left of a singular system."""
        u = self.w[:, None] * (self.v - self.Y)
        r = self.alpha * self.a + u
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = np.einsum("ij,ij->j", r, self.systems.product(r, precise=True)) / (2 * self.alpha)
        return np.where(self.alpha > 0, np.abs(gap), np.abs(np.einsum("ij,ij->j", u, self.v)))

    def _finish(self, stopped: str) -> RidgeSolution:
        problem, size = self.problem, self.size
        shape = np.shape(problem.Y)
        unit = self._unit
        text = "ridge: " + self.systems.plan
        if self._far:
            text += f"; objectives in units of {size.max():.3g} squared"
        certificate = Certificate(
            primal=float(self.primal @ unit),
            dual=float((self.primal - self.gap) @ unit),
            kkt=float((self.kkt * size).max()),
            tol=self.control.tol,
            solver=text,
            iterations=self.iterations,
            seconds=self.control.seconds,
            rounding=float(self.rounding @ unit),
            precision=self.precision,
            stopped=stopped,
        )
        if not self.history:  # solved at once
            claim = certificate
            self.history = [
                Row(claim.iterations, claim.primal, claim.dual, claim.relative_gap, len(self.w), claim.seconds)
            ]
        with np.errstate(over="ignore"):
            coefficients = (self.a * size).reshape(shape)
        values, offsets = (self.v + self.mean) * size, (self.b + self.mean) * size
        return RidgeSolution(
            coefficients,
            offsets,
            values.reshape(shape),
            certificate,
            self.residual,
            self.systems.plan,
            self.history,
            self.diagnosis,
        )
