"""Linear models on many rows: a sample says where the solution is, a few looks at all rows find and prove it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from mercer import _core
from mercer.certify import Certificate, Stop, relative_gap
from mercer.machine.threads import run
from mercer.solvers.linear.interior import interior_point
from mercer.solvers.linear.newton import smoothed, squared_newton
from mercer.solvers.linear.problem import LinearProblem, State, balanced
from mercer.solvers.linear.system import cholesky

_ROWS_PER_COLUMN = 1600  # rows per column whose Hessian is good to a few hundredths
_LAST_SHARE = 0.05  # of the rows that the last, small problem may have
_CROSSING_SHARE = 0.25  # of the last step: how far a row can be from the margin and yet cross it
_ROUNDS = 6  # of the small problem
_STAGE_STEPS = 15  # of a stage on the sample; where more are needed, the whole problem is hard, too


class ManyRows:
    """Newton's method with gradients of all rows; for hinges then the problem of the rows near the margin alone.

    A hinge is rounded over a width that holds a few hundredths of the rows, which changes little. With so many rows its
    Hessian hardly depends on the width, or on which rows are drawn: a step takes one look at X and leaves a tenth of
    the error or less. Once steps are short, only rows a few of them from the margin may still cross it. The others are
    held on their side (see `linear_solve`), and the problem of those few is solved to the end.

    Parameters
    ----------
    problem
        With `Sweeper.suits`.
    sample
        Some of its rows, their costs raised to stand for all, and their numbers.
    state, tol
        As for `interior_point`.
    """

    def __init__(
        self,
        problem: LinearProblem,
        sample: tuple[LinearProblem, np.ndarray],
        state: State,
        tol: float,
    ) -> None:
        self.problem, self.state, self.tol = problem, state, tol
        self.sample, self.chosen = sample
        self.core = Sweeper(problem)
        self.alpha = np.empty(problem.sign.shape)

    def solve(self) -> tuple[np.ndarray, Certificate] | None:
        """Return alpha and its certificate with `state.v`; None where it is not found this way."""
        return self._squares() if self.problem.squared else self._hinges()

    # -- squared hinges ---------------------------------------------------------------------------------

    def _squares(self) -> tuple[np.ndarray, Certificate] | None:
        state, rows = self.state, self.problem.rows
        squared_newton(self.sample, state.afresh(_STAGE_STEPS), max(self.tol, 1e-4))
        state.afresh().method = "semismooth Newton"
        thin = max(1, int(0.5 * rows.shape[0] / (_ROWS_PER_COLUMN * rows.shape[1])))
        model: Secants | None = None
        while state.limit() is None:
            v, before = state.v, state.gap
            look = self.core.sweep(v, 0.0, 0 if model else thin, self.alpha)
            self._note(look)
            if state.asked_to_stop:
                return None
            if state.gap <= 1.5 * self.tol:
                pull = self._balance(look.pull)
                proven = None if pull is None else self._proven(v, pull)
                if proven is not None:
                    return proven
            if not state.gap < before:
                return None
            if model is None or state.gap > 0.1 * before:  # too many rows have come or gone since
                gram = look.gram if look.gram is not None else self.core.sweep(v, 0.0, thin).gram
                assert gram is not None
                model = Secants(gram + np.diag(rows.penalty))
            state.v = v + model.step(v, rows.penalty * v - look.pull)
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
        state, p, n = self.state, self.problem.rows.penalty, self.problem.rows.shape[0]
        for share in (0.5, 0.1):
            smoothed(self.sample, state.afresh(_STAGE_STEPS), self.tol, 2 * self.sample.half_width(state.v, share))
            if state.stopped != Stop.CONVERGED:
                return None
        state.afresh().method = "interior point near the margin"
        narrow, moved = self.sample.half_width(state.v, _LAST_SHARE), np.inf
        while not _CROSSING_SHARE * moved <= narrow:  # until a step is so short that few rows may yet change sides
            v, before = state.v, moved
            look = self.core.sweep(v, narrow, max(1, int(_LAST_SHARE * n / (_ROWS_PER_COLUMN * len(v)))))
            self._note(look)
            if state.limit() is not None or not look.curved:
                return None
            assert look.gram is not None
            state.v = v - cholesky(look.gram + np.diag(p))(p * v - look.pull)
            state.steps += 1
            moved = self._moved(v)
            if not moved < 0.5 * before:
                return None
        half = _CROSSING_SHARE * moved
        for _ in range(_ROUNDS):
            v = state.v
            look = self.core.sweep(v, half, 0, self.alpha)
            self._note(look)
            if state.limit() is not None or look.curved > n // 10:
                return None
            pull = self._near(look, half)
            if pull is None:
                half *= 2
                continue
            proven = self._proven(state.v, pull)
            if proven is not None:
                return proven
            half = max(3 * self._moved(v), 0.5 * half)
        return None

    def _near(self, look: Sweep, half: float) -> np.ndarray | None:
        """Solve for the rows of the band, the others held on their sides; return the pull of all."""
        problem, state, band = self.problem, self.state, look.band
        assert band is not None
        sub = problem.subset(band)
        part = self.alpha[:, band]
        sub = replace(sub, linear=look.pull - sub.pull(part), constant=look.gain - sub.gain(part))
        if not len(band) or not sub.can_balance():
            return None
        # Hinges rounded over this width add nρ width² / 24 to the gap, where nρ rows lie in a unit of slack: here a
        # quarter of tol.
        width = float(np.sqrt(6 * self.tol * look.risk * 2 * half / len(band)))
        start = state.v
        smoothed(sub, state.afresh(), 0.5 * self.tol, width)
        if state.gap > self.tol or state.stopped != Stop.CONVERGED:
            state.v = start
            interior_point(sub, state.afresh(), 0.25 * self.tol)
        assert state.alpha is not None
        self.alpha[:, band] = alpha = balanced(sub, state.alpha)
        return sub.pull(alpha)

    def _moved(self, v: np.ndarray) -> float:
        """Return the root mean square, over the sample, of the difference between f and the f of v."""
        return float(np.sqrt(np.square(self.sample.rows.times(self.state.v - v)).mean()))

    # -- both -------------------------------------------------------------------------------------------

    def _note(self, look: Sweep) -> None:
        """Note the results of a look at all rows."""
        state, rows = self.state, self.problem.rows
        primal = 0.5 * rows.square(state.v) + look.risk
        dual = look.gain - 0.5 * rows.dual_square(look.pull) - 0.25 * look.square
        state.gap = (primal - dual) / max(primal, 1e-300)  # of the dual's size, which may be huge, it would hardly fall
        state.note(primal, dual, state.gap, look.curved)

    def _proven(self, v: np.ndarray, pull: np.ndarray) -> tuple[np.ndarray, Certificate] | None:
        state = self.state
        primal, dual, kkt, pull = self.core.proof(v, self.alpha, pull, self.sample.rows.mean_square())
        state.gap = relative_gap(primal - dual, primal, dual)
        certificate = state.certificate(primal, dual, kkt, state.method)
        feasible = not self.problem.rows.offset or abs(pull[-1]) <= 1e-12 * float(self.alpha.sum())
        return (self.alpha, certificate) if feasible and certificate.converged else None


class Secants:
    """Steps with the Hessian of some of the rows, corrected by how the gradients have changed along earlier steps.

    The multisecant form of Anderson's acceleration (Fang and Saad, 2009): close to the solution the gradient is
    linear, and these are the steps of conjugate gradients, preconditioned by that Hessian.

    Parameters
    ----------
    hessian
        Of a sample.
    """

    def __init__(self, hessian: np.ndarray) -> None:
        self.solve = cholesky(hessian)
        self.points: list[np.ndarray] = []
        self.gradients: list[np.ndarray] = []

    def step(self, v: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return the step from v."""
        self.points.append(v)
        self.gradients.append(gradient)
        if len(self.points) == 1:
            return -self.solve(gradient)
        S, Y = np.diff(self.points, axis=0).T, np.diff(self.gradients, axis=0).T
        inner = Y.T @ np.column_stack([self.solve(y) for y in Y.T])
        c = np.linalg.lstsq(inner, Y.T @ self.solve(gradient), rcond=1e-12)[0]
        return -S @ c - self.solve(gradient - Y @ c)


# Looks at every row of a linear model, in the core: sums that the solvers of many rows need, in one pass of memory.


_CHUNK_ROWS = 2**16  # rows a thread takes at a time; sums are added in the order of the rows, so that results repeat
_CACHED_COLUMNS = 256  # columns whose matrix of products a thread keeps in its caches


@dataclass
class Sweep:
    """The results of a look at all rows from v.

    Parameters
    ----------
    risk, gain, square
        The sums of the losses, of target alpha and, of squares, of alpha² / cost.
    pull
        A'(sign alpha).
    curved
        The number of rows with curvature.
    gram
        Their Hessian, if it was asked for.
    band
        Their numbers, if alpha was asked for.
    """

    risk: float
    gain: float
    square: float
    pull: np.ndarray
    curved: int
    gram: np.ndarray | None
    band: np.ndarray | None


class Sweeper:
    """Looks at the rows of a problem.

    Parameters
    ----------
    problem
        One that `suits`.
    """

    def __init__(self, problem: LinearProblem) -> None:
        self.rows = problem.rows
        target, cost = problem.target, problem.cost
        self._terms = (
            np.ascontiguousarray(problem.sign),
            np.ascontiguousarray(target[:, :1] if target.strides[1] == 0 else target),
            np.ascontiguousarray(cost[:1] if cost.strides[0] == 0 else cost),
            problem.squared,
        )
        self._inverse = 1 / self.rows.scale

    @staticmethod
    def suits(problem: LinearProblem) -> bool:
        """Return whether the core reads the rows as they are."""
        X = problem.rows.X
        return not sparse.issparse(X) and X.flags.c_contiguous and 0 < X.shape[1] <= _CACHED_COLUMNS and len(X) < 2**31

    def sweep(self, v: np.ndarray, half: float, thin: int = 0, alpha: np.ndarray | None = None) -> Sweep:
        """Return the sums at v for alpha = cost clip(1/2 + z / (2 half), 0, 1), or 2 cost max(0, z) of squares.

        Parameters
        ----------
        v
            The model.
        half
            Up to which slack a row has curvature; squares have it wherever they are not zero.
        thin
            Find the Hessian from every so many-th row with curvature, drawn at random; 0: do not.
        alpha
            Where to put alpha, if it is wanted.
        """
        rows, d = self.rows, len(self.rows.scale)
        n, width = rows.shape[0], (d + 8) // 8 * 8
        w, shift = rows.model(v)

        def part(first: int) -> tuple[tuple[float, ...], np.ndarray, np.ndarray | None, np.ndarray | None]:
            last = min(n, first + _CHUNK_ROWS)
            pull = np.zeros(d + 1)
            gram = np.zeros((width, width)) if thin else None
            band = None if alpha is None else np.empty(last - first, np.int32)
            where = (*self._terms, first, last, w, shift, half, pull, alpha, band, gram)
            sums = _core.linear_sweep(rows.X, *where, rows.centre, self._inverse, max(1, thin))
            return sums, pull, gram, None if band is None else band[: sums[3]]

        parts = run(part, range(0, n, _CHUNK_ROWS))
        risk, gain, square, curved = np.sum([sums for sums, *_ in parts], axis=0)
        gram = sum(g for _, _, g, _ in parts) * thin if thin else None
        band = None if alpha is None else np.concatenate([b for *_, b in parts])
        if gram is not None:
            size = rows.shape[1]  # without the ones where there is no offset
            gram = np.triu(gram[:size, :size])
            gram += np.triu(gram, 1).T
        return Sweep(risk, gain, square, self._pull([p for _, p, *_ in parts]), int(curved), gram, band)

    def proof(
        self, v: np.ndarray, alpha: np.ndarray, pull: np.ndarray, unit: float
    ) -> tuple[float, float, float, np.ndarray]:
        """Return primal and dual value, the worst KKT residual and the pull of alpha, all from X itself.

        Parameters
        ----------
        v, alpha
            What is to be proved good.
        pull
            A'(sign alpha) as the solver knows it, which says what w alpha implies.
        unit
            The mean of |x|², which makes a change of f of one of alpha.
        """
        rows = self.rows
        n = rows.shape[0]
        ends = (*rows.model(v), *rows.model(rows.implied(pull - rows.penalty * v)), alpha, unit)

        def part(first: int) -> tuple[tuple[float, ...], np.ndarray]:
            sums = np.zeros(len(rows.scale) + 1)
            return _core.linear_proof(rows.X, *self._terms, first, min(n, first + _CHUNK_ROWS), *ends, sums), sums

        parts = run(part, range(0, n, _CHUNK_ROWS))
        risk, gain, square = np.sum([out[:3] for out, _ in parts], axis=0)
        pull = self._pull([p for _, p in parts])
        primal = 0.5 * rows.square(v) + risk
        dual = gain - 0.5 * rows.dual_square(pull) - 0.25 * square
        return primal, dual, max(max(out[3:]) for out, _ in parts), pull

    def _pull(self, parts: list[np.ndarray]) -> np.ndarray:
        sums = np.sum(parts, axis=0)
        return self.rows.of_sums(sums[:-1], sums[-1])
