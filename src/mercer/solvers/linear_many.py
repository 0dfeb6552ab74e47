"""Linear models on many rows: a sample says where the solution is, a few looks at all rows find and prove it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.certify import Certificate
from mercer.solvers.control import Control
from mercer.solvers.interior import State, interior_point
from mercer.solvers.linear_newton import smoothed, squared_newton
from mercer.solvers.linear_problem import LinearProblem, balanced
from mercer.solvers.linear_sweep import Sweep, Sweeper
from mercer.solvers.linear_system import cholesky

_ENOUGH = 1000  # rows per column whose Hessian is good to a few hundredths
_WIDEST = 0.03  # share of the rows that the last, small problem may have
_LOOKS = 12  # after which the problem is not one for this way


class ManyRows:
    """Newton's method with gradients of all rows; for hinges then the problem of the rows near the margin alone.

    Rounding a hinge over a width that holds a few hundredths of the rows changes little, and with so many rows its
    Hessian hardly depends on the width or on which rows are drawn: a step takes one look at X and leaves a tenth of the
    error or less. When the steps are short, only rows within a few of them from the margin can be on either side of it:
    the others are held on theirs (see `linear_solve`), and the problem of those few is solved to the end.

    Parameters
    ----------
    problem
        With `Sweeper.suits`.
    sample
        Some of its rows, their costs raised to stand for all, and their numbers.
    state, control, tol
        As for `interior_point`.
    """

    def __init__(
        self, problem: LinearProblem, sample: tuple[LinearProblem, np.ndarray], state: State, control: Control, tol: float
    ) -> None:
        self.problem, self.state, self.control, self.tol = problem, state, control, tol
        self.sample, self.chosen = sample
        self.core = Sweeper(problem)
        self.alpha = np.empty(problem.sign.shape)

    def solve(self) -> tuple[np.ndarray, Certificate] | None:
        """Return alpha and its certificate with `state.v`; None where it is not found this way."""
        return self._squares() if self.problem.squared else self._hinges()

    # -- squared hinges ---------------------------------------------------------------------------------

    def _squares(self) -> tuple[np.ndarray, Certificate] | None:
        problem, state, rows = self.problem, self.state, self.problem.rows
        p, k = rows.penalty, rows.penalised
        squared_newton(self.sample, state, self.control, max(self.tol, 1e-4))
        state.method, state.gap = "semismooth Newton", np.inf
        last, step = np.inf, None
        while not self._over():
            fresh = step is None or not last < 0.1  # the Hessian is good as long as it takes us there
            v = state.v
            thin = max(1, int(0.5 * rows.shape[0] / (_ENOUGH * rows.shape[1]))) if fresh else 0
            look = self.core.sweep(v, 0.0, thin, self.alpha)
            gradient = p * v - look.pull
            primal = 0.5 * float(p @ (v * v)) + look.risk
            residual = 0.5 * float((gradient[:k] ** 2 / p[:k]).sum())
            state.gap, before = residual / primal, state.gap
            last = state.gap / before
            if self._tell(look, primal - residual):
                return None
            if state.gap <= 0.5 * self.tol:
                pull = self._balance(look.pull)
                proven = None if pull is None else self._proven(v, pull)
                if proven is not None:
                    return proven
            elif last > 0.5 and not fresh:
                return None
            if fresh:
                assert look.gram is not None
                step = cholesky(look.gram + np.diag(p))
            assert step is not None
            state.v = v - step(gradient)
            state.steps += 1
        return None

    def _balance(self, pull: np.ndarray) -> np.ndarray | None:
        """Take what alpha pulls too much at the offset from the rows of the sample; return the pull that is left."""
        if not self.problem.rows.offset:
            return pull
        sign, excess = self.problem.sign[:, self.chosen], float(pull[-1])
        part = self.alpha[:, self.chosen]
        heavier = sign * excess > 0
        total = float(part[heavier].sum())
        if abs(excess) > 0.5 * total:
            return None
        less = np.where(heavier, part * (abs(excess) / max(total, 1e-300)), 0.0)
        self.alpha[:, self.chosen] = part - less
        return pull - self.sample.rows.transposed((sign * less).sum(axis=0))

    # -- hinges -----------------------------------------------------------------------------------------

    def _hinges(self) -> tuple[np.ndarray, Certificate] | None:
        state, sample, p = self.state, self.sample, self.problem.rows.penalty
        n = self.problem.rows.shape[0]
        for share in (0.5, 0.1):
            smoothed(sample, state.afresh(), self.control, self.tol, 2 * self._half(state.v, share))
        state.method = "interior point near the margin"
        narrow, moved = self._half(state.v, _WIDEST), np.inf
        while not self._over():  # until a step is so short that few rows may yet change sides
            v = state.v
            count = n * _WIDEST
            look = self.core.sweep(v, narrow, max(1, int(count / (_ENOUGH * len(v)))))
            assert look.gram is not None
            primal = 0.5 * float(p @ (v * v)) + look.risk
            if self._tell(look, np.nan) or not look.curved:
                return None
            dv = -cholesky(look.gram + np.diag(p))(p * v - look.pull)
            state.v = v + dv
            state.steps += 1
            moved, before = float(np.sqrt(np.square(sample.rows.times(dv)).mean())), moved
            if moved > 0.5 * before:
                return None
            if 0.6 * moved <= narrow:
                break
        half = 0.6 * moved
        while not self._over():
            v = state.v
            look = self.core.sweep(v, half, 0, self.alpha)
            assert look.band is not None
            if self._tell(look, np.nan) or look.curved > max(n // 10, 1):
                return None
            pull = self._near(look, half, primal)
            if pull is None:
                half *= 2
                continue
            proven = self._proven(state.v, pull)
            if proven is not None:
                return proven
            half = 3 * float(np.sqrt(np.square(sample.rows.times(state.v - v)).mean()))
        return None

    def _near(self, look: Sweep, half: float, primal: float) -> np.ndarray | None:
        """Solve for the rows of the band, the others held on their sides; return the pull of all."""
        problem, state, band = self.problem, self.state, look.band
        assert band is not None
        sub = problem.subset(band)
        part = self.alpha[:, band]
        sub.linear = look.pull - sub.pull(part)
        sub.constant = look.gain - float((sub.target * part).sum())
        if problem.rows.offset and not can_balance(sub):
            return None
        # Rounded over this width, the hinges of the band add a quarter of tol to the gap.
        width = float(np.sqrt(24 * 0.25 * self.tol * primal * 2 * half / max(1, len(band))))
        start = state.v
        smoothed(sub, state.afresh(), self.control, 0.5 * self.tol, width)
        assert state.alpha is not None
        state.alpha = balanced(sub, state.alpha)
        if state.gap > self.tol or state.stopped != "converged":
            state.v = start
            interior_point(sub, state.afresh(), self.control, 0.25 * self.tol)
        assert state.alpha is not None
        self.alpha[:, band] = state.alpha
        return sub.pull(state.alpha)

    def _half(self, v: np.ndarray, share: float) -> float:
        z = np.abs(self.sample.slack(self.sample.rows.times(v))).min(axis=0)
        return max(float(np.quantile(z, share)), 1e-9 * float(z.max()), 1e-300)

    # -- both -------------------------------------------------------------------------------------------

    def _over(self) -> bool:
        return self.control.exhausted(self.state.steps) is not None

    def _tell(self, look: Sweep, dual: float) -> bool:
        state = self.state
        if self.control.tell(iteration=state.steps, gap=state.gap, dual=dual, support=look.curved):
            state.stopped = "stopped by the caller"
            return True
        return False

    def _proven(self, v: np.ndarray, pull: np.ndarray) -> tuple[np.ndarray, Certificate] | None:
        state, control = self.state, self.control
        primal, dual, kkt, pull = self.core.proof(v, self.alpha, pull, self.sample.rows.mean_square())
        state.gap = (primal - dual) / max(abs(primal), abs(dual), 1e-300)
        certificate = Certificate(
            primal, dual, kkt, control.tol, solver=state.method, iterations=state.steps, seconds=control.seconds
        )
        return (self.alpha, replace(certificate, stopped="converged")) if certificate.converged else None


def can_balance(sub: LinearProblem) -> bool:
    """Return whether the rows of a band alone can meet the constraint of the offset, with room to spare."""
    assert sub.linear is not None
    cost = np.broadcast_to(sub.cost, sub.sign.shape)
    up, down = float(cost[sub.sign > 0].sum()), float(cost[sub.sign < 0].sum())
    return -0.9 * up < sub.linear[-1] < 0.9 * down
