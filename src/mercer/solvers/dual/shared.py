"""Many dual problems on parts of one kernel matrix: the folds and the penalties of a search.

A fold's problem is that of all points, with the box of those left out closed: their coefficients stay 0. The solver
keeps their gradients all the same, and these are the values of f to be scored: a fold costs no matrix, no prediction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mercer import _core
from mercer.certify import Stop
from mercer.gram import Gram
from mercer.solvers.control import Control
from mercer.solvers.dual.problem import Bounds, Solution, State, SVMDual, dot, method
from mercer.solvers.dual.smo import FLOAT32_SHARE, SMO

GATHERED = 6_000  # points whose rows are put together: 144 MB for each thread
FACTORISED = 1_200  # free coefficients that are solved for at once
_STEPS_IN_ALL = 200  # SMO steps per point; then the ordinary way, which knows more than SMO
_STEPS_PER_LOOK = 16  # SMO steps per active point between two looks at the gap
_TARGET = 0.1  # of the violation: where SMO among the active points ends
_CRAWLING = 0.9  # of the violation: if SMO ends above it, it crawls
_FLOAT32_CHECK = 10.0  # times the gap asked for: there the solution is known well enough to say what float32 does to it
_MOST_ACTIVE = 0.7  # of the points: if more are active, all are worked on, and no rows need be put together
_CLIPPINGS = 6  # times that coefficients are set to the end of their interval, and the others solved for again
_ROUNDING = 6e-8  # of float32


@dataclass
class Point:
    """A solution on all points of a matrix, from which a neighbouring problem starts."""

    plus: np.ndarray
    minus: np.ndarray
    image: np.ndarray | None = None  # K (plus - minus); None where only some points are known
    inside: bool = False  # whether no coefficient is at its upper bound: then it solves every larger box too
    solution: Solution | None = None  # with its offset, where no image is known


def within(start: Point, s: State) -> bool:
    """Return whether a solution below its bounds is below those of another problem."""
    return bool((start.plus <= s.upper).all() and (start.minus <= s.lower).all())


def scale(s: State, start: Point) -> None:
    """Start from a multiple of the solution of another box."""
    assert start.image is not None
    share = 1.0 if start.inside and within(start, s) else _best_share(s, start)
    s.plus, s.minus = start.plus * share, start.minus * share
    np.minimum(s.plus, s.upper, out=s.plus)  # rounding
    np.minimum(s.minus, s.lower, out=s.minus)
    s.gradient = s.linear + share * start.image


def _best_share(s: State, start: Point) -> float:
    """Return which multiple of a solution is the best start: it stays in the new box, and keeps sums that are 0."""
    b, total = start.plus - start.minus, start.plus + start.minus
    assert start.image is not None
    square, slope = dot(b, start.image), -dot(b, s.linear) - dot(total, s.width)
    best = slope / square if square > 0 else 1.0
    return float(np.clip(best, 0.0, min(share_in_box(start.plus, start.minus, s.upper, s.lower), 1e300)))


def share_in_box(plus: np.ndarray, minus: np.ndarray, upper: np.ndarray, lower: np.ndarray) -> float:
    """Return the largest multiple of a point that is in a box."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return min(
            float(np.min(bound / part, where=part > 0, initial=np.inf))
            for part, bound in ((plus, upper), (minus, lower))
        )


class SharedMatrix:
    """The kernel values of all points, held for every problem on some of them.

    Parameters
    ----------
    gram
        The matrix; its budget must hold it.
    control
        The tolerance and the precision of the problems.
    compute
        Gives the values of a matrix for less than they would cost, or None.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, Gram
    >>> from mercer.solvers import Control
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1.0, 1.0, -1.0, -1.0])
    >>> shared = SharedMatrix(Gram(RBF(), X), Control())
    >>> rows = np.array([0, 1, 2])  # the last point is left out
    >>> terms = {"linear": -y[rows], "upper": (y[rows] > 0) * 1.0, "lower": (y[rows] < 0) * 1.0}
    >>> solution, values, _ = shared.solve(rows, terms, Control())
    >>> bool(solution.certificate.relative_gap <= 1e-3), bool(values[3] < 0)
    (True, True)
    """

    def __init__(
        self, gram: Gram, control: Control, compute: Callable[[Gram], np.ndarray | None] | None = None
    ) -> None:
        self.gram = gram
        n = gram.shape[0]
        whole = SVMDual(gram, np.zeros(n), np.zeros(n), np.zeros(n))
        self.method = replace(method(whole, control), name="SMO on a shared matrix")
        if self.method.single and gram.compiled:
            gram = gram.single(forgiving=True)
        self.gram.budget.require(
            n * n * np.dtype(gram.dtype).itemsize, f"the {n} x {n} matrix of a search", "raise the budget."
        )
        values = None if compute is None else compute(gram)
        self.values = np.ascontiguousarray(gram.fill() if values is None else values)
        self.diagonal = self.values.diagonal().astype(np.float64)

    def solve(
        self,
        rows: np.ndarray,
        terms: dict[str, Any],
        control: Control,
        start: Point | None = None,
    ) -> tuple[Solution, np.ndarray, Point] | None:
        """Solve the problem of some points; None where SMO alone does not do.

        Parameters
        ----------
        rows
            The points that take part.
        terms
            Of `SVMDual`, one number for each of `rows`.
        start
            A solution for another box, from which to start.

        Returns
        -------
        solution
            On `rows`.
        values
            f at all points, without the offset.
        point
            From which the next problem may start.
        """
        smo = SharedMatrixSMO(self, rows, terms, control, start)
        if not smo.solved and smo.advance() != Stop.CONVERGED:
            return None
        s, all_points = smo.state, smo.solution(Stop.CONVERGED)
        image = s.gradient - s.linear
        solution = replace(
            all_points,
            plus=s.plus[rows],
            minus=s.minus[rows],
            values=image[rows] + all_points.offset,
        )
        below = all(((p < u) | (u == 0)).all() for p, u in ((s.plus, s.upper), (s.minus, s.lower)))
        return solution, image, Point(s.plus, s.minus, image, below and s.groups == 1)


class SharedMatrixSMO(SMO):
    """SMO on the active points, with Newton steps where it crawls. It leaves harder problems to others.

    Parameters
    ----------
    shared
        The matrix.
    rows, terms, start
        As for `SharedMatrix.solve`.
    control
        The limits.
    """

    def __init__(
        self,
        shared: SharedMatrix,
        rows: np.ndarray,
        terms: dict[str, Any],
        control: Control,
        start: Point | None = None,
    ) -> None:
        full: dict[str, Any] = {"offset": terms.get("offset", "free")}
        for name in ("linear", "upper", "lower", "width", "plus", "minus"):
            if (value := terms.get(name)) is not None:
                full[name] = np.zeros(len(shared.values))
                full[name][rows] = value
        self.shared = shared
        super().__init__(SVMDual(shared.gram, **full), control, shared.method)
        s = self.state
        self.solved = False  # whether the start is the solution
        if start is not None and start.image is not None:
            self.solved = start.inside and within(start, s)
            scale(s, start)
        elif s.plus.any() or s.minus.any():
            self.recompute()

    def _keep(self) -> None:
        self.matrix.held = self.shared.values
        self.single = self.shared.values.dtype == np.float32

    def advance(self) -> str:
        s, K = self.state, self.shared.values
        while True:
            bounds = self._look()
            if bounds.relative_gap <= _FLOAT32_CHECK * self.control.tol and not self._trustworthy(bounds):
                return "float32 is not enough"
            if self._small_gap(bounds):
                return Stop.CONVERGED
            active, violation = self._active()
            if (reason := self.run.limit()) is not None:
                return reason
            if violation <= s.floor:
                return Stop.FLOOR
            if self.run.steps > _STEPS_IN_ALL * s.n:
                return "SMO crawls"
            target = _TARGET * violation if self.control.steady else self._next_target(violation, bounds)
            target = max(target, s.floor)
            done, left = _core.smo_part(K, active, *s.arrays, s.groups, target, _STEPS_PER_LOOK * len(active))
            self.run.steps += done
            if left > max(target, _CRAWLING * violation) and s.groups == 1:
                self._newton()
            elif not done:
                return "no step"

    def _active(self) -> tuple[np.ndarray, float]:
        """Return the points that may move soon, and the violation of the conditions of optimality."""
        s = self.state
        keep, worst = s.free, 0.0
        for up, down in s.slopes():
            low, high = float(up.min()), float(down.max())
            worst = max(worst, high - low)
            margin = max(high - low, 0.0)
            keep = keep | (up < high + margin) & (up < np.inf) | (down > low - margin) & (down > -np.inf)
        active = np.flatnonzero(keep).astype(np.int32)
        if len(active) > min(_MOST_ACTIVE * s.n, GATHERED):
            active = np.arange(s.n, dtype=np.int32)
        return active, worst

    def _newton(self) -> None:
        """SMO crawls: solve for the free coefficients at once, those that would leave their box stopped at its side."""
        s = self.state
        free = np.flatnonzero(s.free)
        if not 2 <= len(free) <= FACTORISED:
            return
        K = self.shared.values[np.ix_(free, free)].astype(np.float64)
        rising = s.plus[free] > 0
        b = np.where(rising, s.plus[free], -s.minus[free])
        low, high = np.where(rising, 0.0, -s.lower[free]), np.where(rising, s.upper[free], 0.0)
        slope = s.gradient[free] + np.where(rising, s.width[free], -s.width[free])
        change = newton_step(K, slope, low - b, high - b)
        fall, curve = float(slope @ change), float(change @ (K @ change))
        if not fall < 0:
            return
        change *= min(1.0, -fall / curve) if curve > 0 else 1.0
        moved = np.clip(b + change, low, high)
        change = moved - b
        s.plus[free], s.minus[free] = np.where(rising, moved, 0.0), np.where(rising, 0.0, -moved)
        _core.add_rows(self.shared.values, free.astype(np.int32), change, s.gradient)

    def _trustworthy(self, bounds: Bounds) -> bool:
        """Return whether float32 changes the objective by less than the gap asked for; all values are to stay so."""
        if self.shared.values.dtype == np.float64:
            return True
        s, size = self.state, max(abs(bounds.primal), abs(bounds.dual))
        return _ROUNDING * dot(s.coefficients**2, s.lengths**2) <= FLOAT32_SHARE * self.control.tol * size


def newton_step(K: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return a change in [low, high], of sum 0, that minimises change' K change / 2 + slope' change, nearly.

    Entries that would leave their interval are set to its end, and the others solved for again, a few times; what is
    then still outside shortens the step.

    Examples
    --------
    >>> newton_step(np.eye(3), np.array([1.0, 0.0, -1.0]), np.full(3, -0.5), np.full(3, 0.5)).round(6) + 0.0
    array([-0.5,  0. ,  0.5])
    """
    n = len(slope)
    inside, change = np.ones(n, bool), np.zeros(n)
    ridge = 1e-7 * float(K.diagonal().max())
    for _ in range(_CLIPPINGS):
        free = np.flatnonzero(inside)
        A = K[np.ix_(free, free)]
        A[np.diag_indices(len(free))] += ridge
        fixed = np.where(inside, 0.0, change)
        right = np.column_stack([-(slope + K @ fixed)[free], np.ones(len(free))])
        try:
            factor = cho_factor(A.T, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            return np.zeros(n)
        both = cho_solve(factor, right, overwrite_b=True, check_finite=False)
        change[free] = both[:, 0] - both[:, 1] * ((both[:, 0].sum() + fixed.sum()) / both[:, 1].sum())
        outside = free[(change[free] < low[free]) | (change[free] > high[free])]
        if not outside.size:
            return change
        if outside.size >= free.size - 1:
            break
        whole = change.copy()
        change[outside] = np.clip(change[outside], low[outside], high[outside])
        inside[outside] = False
    else:
        change = whole
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(change > 0, high / change, np.where(change < 0, low / change, np.inf))
    return change * min(1.0, float(room.min()))
