"""Kernel ridge regression: one linear system, whatever its size, with a certificate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from mercer.certify import Certificate, Stop
from mercer.gram import Gram
from mercer.machine.threads import within_limit
from mercer.solvers.control import Control, check_vector
from mercer.solvers.run import Row, Run
from mercer.solvers.systems.cholesky import Singular, diagnose, equal_rows, rounding
from mercer.solvers.systems.feature_space import FeatureSpace
from mercer.solvers.systems.system import Systems

_ROUNDS = 5  # solutions of the system, each from the last, until gap and residual are as asked
_ROUNDING_RESIDUAL = 1e-4  # the relative residual beyond which rounding is no excuse for a gap
_LARGEST_TARGET = 1e140  # size of the targets beyond which their squares leave the range of float64


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
        Coefficients of the solution of a similar problem, as Y.
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
        For a system that is singular to rounding: what is wrong, and the remedy that was taken; mostly empty.
    """

    coefficients: np.ndarray
    offsets: np.ndarray
    values: np.ndarray
    certificate: Certificate
    residual: np.ndarray
    plan: str
    history: list[Row] = field(default_factory=list)
    diagnosis: str = ""


@within_limit
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


class _Point(NamedTuple):
    """Coefficients and offsets, the values f(x_i) + b, and what they are worth, for each column of the targets."""

    a: np.ndarray
    b: np.ndarray
    v: np.ndarray
    residual: np.ndarray
    kkt: np.ndarray
    rounding: np.ndarray
    primal: np.ndarray
    gap: np.ndarray

    @property
    def relative(self) -> float:
        """The largest relative gap beyond rounding."""
        with np.errstate(over="ignore"):
            return float(np.max((self.gap - self.rounding) / np.maximum(self.primal, 1e-300), initial=0.0))


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
        if problem.intercept:  # the offset gives the mean back; the rest is the scale of residuals
            self.mean = np.average(Y, axis=0, weights=self.w)
            Y = Y - self.mean
            Y[:, np.abs(Y).max(axis=0) <= 8 * np.finfo(float).eps] = 0.0
        self.Y = Y
        self.length = np.linalg.norm(Y, axis=0)
        self.far = bool((self.size > _LARGEST_TARGET).any() or (self.size < 1 / _LARGEST_TARGET).any())
        self.unit = np.ones(m) if self.far else self.size**2  # of the objectives, which are found for targets of size 1
        # The different alphas, each of which has a column of ones where there is an offset.
        self.strengths = np.unique(self.alpha) if problem.intercept else np.empty(0)
        self.systems = Systems(problem.gram, control, method=method, rank=rank)
        self.progress = Run(control, self._identity())
        self.begun = 0  # steps before the present call of the solver of systems
        self.diagnosis = ""

    # -- the system -------------------------------------------------------------------------------------

    def _identity(self) -> Iterator[np.ndarray]:
        """What no other problem has: its targets, its parameters, and some of its kernel's values."""
        n = len(self.w)
        some = np.unique(np.linspace(0, n - 1, 16).astype(np.intp))
        yield from (self.Y, self.alpha, self.w, np.array([self.problem.intercept]))
        yield self.systems.matrix.block(some, some, False)

    def _watch(self, iterations: int, residual: np.ndarray, columns: np.ndarray, A: np.ndarray) -> str | None:
        run, m = self.progress, len(self.alpha)
        # At the solution the objective is alpha y'a / 2; the residual r adds |r|^2 / 2 to the gap.
        a, unit = A[:, :m], self.unit
        if self.problem.intercept:
            b, ones = self._offsets(A)
            a = a - b * A[:, ones]
        primal = float(0.5 * (self.alpha * unit * np.einsum("ij,ij->j", self.Y, a)).sum())
        targets = columns[columns < m]
        rest = residual[columns < m] * self.length[targets]
        gap = 0.5 * float(self.w.mean()) * float(unit[targets] @ rest**2)
        relative = gap / max(primal, gap, 1e-300)
        run.steps = self.begun + iterations
        run.note(primal, primal - gap, relative, len(self.w), A=A)
        return run.limit()

    def _offsets(self, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the offsets that make coefficients sum to 0 (0 before the first step), and the columns of ones."""
        m = len(self.alpha)
        ones = m + np.searchsorted(self.strengths, self.alpha)
        total = A[:, ones].sum(axis=0)
        return np.divide(A[:, :m].sum(axis=0), total, out=np.zeros(m), where=total != 0), ones

    def run(self) -> RidgeSolution:
        control, m = self.control, len(self.alpha)
        alpha = np.concatenate([self.alpha, self.strengths])
        each = np.ptp(alpha) > 0  # whether columns have shifts of their own
        if self.problem.weights is None:
            shift: Any = (alpha if each else alpha[:1])[None, :]
        else:
            shift = (1.0 / self.w)[:, None] * alpha if each else alpha[0] / self.w
        B = np.hstack([self.Y, np.ones((len(self.w), len(self.strengths)))])
        A: np.ndarray | None = (self.progress.checkpoint.restore(A=B.shape) or {}).get("A")
        if A is None and self.problem.start is not None:
            A = np.zeros(B.shape)
            A[:, :m] = np.reshape(self.problem.start, self.Y.shape) / self.size
        # The offset of centred targets is small, and the residual of the ones counts only so many times.
        tol = np.where(np.arange(B.shape[1]) < m, 0.7 if self.problem.intercept else 1.0, 3.0) * self.goal
        for _ in range(_ROUNDS):
            try:
                answer = self.systems.solve(shift, B, tol=tol, start=A, watch=self._watch, strict=True)
            except Singular:
                return self._in_features(self._space())
            A = answer.A
            self.progress.steps = self.begun = self.begun + answer.iterations
            self.precision = answer.precision
            relative = self._judge(A, answer.product)
            good = (self.at.residual <= self.goal).all() and relative <= control.tol
            if good or answer.stopped != Stop.CONVERGED:
                break
            # The residual's share of the gap is its square.
            worse = max(float(self.at.residual.max()) / self.goal, (relative / control.tol) ** 0.5)
            tol = tol * min(0.3, 0.5 / worse)
        stopped = answer.stopped
        if good:
            stopped = Stop.CONVERGED
        elif stopped == Stop.CONVERGED:
            stopped = f"the residual stays at {self.at.residual.max():.2g}"
            if (self.at.residual <= self.goal).all():
                stopped = Stop.rounding(f"the relative gap stays at {relative:.2g}")
        if stopped.startswith(Stop.ROUNDING):
            space = FeatureSpace.of_features(self.problem.gram, self.w, self.problem.intercept)
            if space is not None:
                return self._in_features(space)
        self.progress.end(stopped == Stop.CONVERGED, A=answer.A)
        return self._finish(stopped)

    # -- systems that are singular to rounding ----------------------------------------------------------

    def _space(self) -> FeatureSpace:
        gram, matrix, where = self.problem.gram, self.systems.matrix, (self.w, self.problem.intercept)
        space = FeatureSpace.of_features(gram, *where) or FeatureSpace.of_matrix(matrix, *where)
        if space is None:
            raise np.linalg.LinAlgError(diagnose(matrix, self.alpha.min() / self.w))
        return space

    def _in_features(self, space: FeatureSpace) -> RidgeSolution:
        """Solve in feature space: by the system's coefficients, or by the shortest where rounding spoils the former."""
        m, tol = len(self.alpha), self.control.tol
        within, beyond, values = np.empty((3, *self.Y.shape))
        for alpha in np.unique(self.alpha):
            these = self.alpha == alpha
            within[:, these], beyond[:, these], values[:, these] = space.solve(self.Y[:, these], float(alpha))
        product = self.systems.product(np.hstack([within + beyond, within]), precise=True)
        full = self._evaluate(
            *self._with_offset(within + beyond, product[:, :m], values), values if space.exact else None
        )
        short = self._evaluate(*self._with_offset(within, product[:, m:], values), values, space)
        solved = (self.alpha > 0) & ((full.gap <= tol * full.primal) | (full.gap <= short.gap))
        self.at = _Point(*(np.where(solved, a, b) for a, b in zip(full, short, strict=True)))
        self.progress.steps, self.precision = self.begun + 1, "float64"
        relative = self.at.relative
        stopped = Stop.CONVERGED if relative <= tol else Stop.rounding(f"the relative gap stays at {relative:.2g}")
        self.diagnosis = self._account(space, solved, relative)
        self.progress.end(finished=True)
        return self._finish(stopped)

    def _with_offset(
        self, a: np.ndarray, Ka: np.ndarray, values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return coefficients, K a and the offsets that bring it nearest to some values."""
        b = np.average(values - Ka, axis=0, weights=self.w) if self.problem.intercept else np.zeros(a.shape[1])
        return a, Ka, b

    def _account(self, space: FeatureSpace, solved: np.ndarray, relative: float) -> str:
        """Return what was found and done, in sentences; nothing where the system was solved as asked."""
        n, tol, residual = len(self.w), self.control.tol, float(self.at.residual.max())
        if solved.all() and relative <= tol and residual <= self.goal:
            return ""
        text = (
            f"K + alpha is singular to rounding: {n - space.rank} of the {n} eigenvalues of K are 0 beside the "
            f"largest, {space.largest:.3g}; alpha is {self.alpha.min():.2g}."
        )
        if not solved.all():
            text += " The solution of least norm was taken."
        if residual > self.goal and not self.alpha.all():
            text += (
                f" It does not reproduce the targets: {self._cause(space)}, and the targets do not follow; it is the "
                "best in least squares. Take alpha > 0."
            )
        elif self.alpha.any():
            text += f" Its relative gap is {relative:.2g}, and its relative residual {residual:.2g}."
        if relative > tol:
            enough = 1e3 * rounding(self.systems.matrix)
            text += f" Raise alpha to {enough:.1g} or more for the gap of {tol:g} that was asked."
        return text

    def _cause(self, space: FeatureSpace) -> str:
        """Return why targets are missed: equal points that have different ones, or else the rank."""
        Y, w = self.Y, self.w[:, None]
        first = equal_rows(self.systems.matrix)
        if first is None:
            return f"the kernel has rank {space.rank} here"
        means = np.zeros(Y.shape)
        np.add.at(means, first, w * Y)
        means = (means / np.bincount(first, self.w, len(first)).clip(min=1e-300)[:, None])[first]
        if np.linalg.norm(means - self.at.v) <= 1e-2 * np.linalg.norm(Y - self.at.v):
            off = np.abs(Y - means)
            i, column = divmod(int((off > 0.99 * off.max()).argmax()), Y.shape[1])
            alike = np.flatnonzero(first == first[i])
            j = int(alike[np.abs(Y[alike, column] - Y[i, column]).argmax()])
            return f"points {min(i, j)} and {max(i, j)} are equal"
        return f"the kernel has rank {space.rank} on {len(np.unique(first))} different points"

    # -- what it is worth -------------------------------------------------------------------------------

    def _judge(self, A: np.ndarray, KA: np.ndarray) -> float:
        """Set the solution from the columns of the system; return the relative gap."""
        m = len(self.alpha)
        a, Ka, b = A[:, :m].copy(), KA[:, :m].copy(), np.zeros(m)
        if self.problem.intercept:
            b, ones = self._offsets(A)
            a, Ka = a - b * A[:, ones], Ka - b * KA[:, ones]
        self.at = self._evaluate(a, Ka, b)
        return self.at.relative

    def _evaluate(
        self,
        a: np.ndarray,
        Ka: np.ndarray,
        b: np.ndarray,
        values: np.ndarray | None = None,
        space: FeatureSpace | None = None,
    ) -> _Point:
        r"""Return what coefficients are worth beside the dual point u = alpha a; given a space, u = w (y - values).

        .. math:: P - D = \tfrac12 \sum_i w_i (f(x_i) + b - y_i + u_i / w_i)^2
                  + \tfrac{1}{2 \alpha} (\alpha a - u)^T K (\alpha a - u)

        `values` are those of the solution, where they are known: exactly, but for the eigenvectors of a matrix.
        """
        Y, w, alpha = self.Y, self.w, self.alpha
        v = Ka + b
        difference = Y - v - alpha * a / w[:, None]
        residual = np.linalg.norm(difference, axis=0) / np.where(self.length > 0, self.length, 1.0)
        # Rounding leaves this much of a residual that is 0, and its square of a gap: |x_i| times the root of the sum
        # of (a_j |x_j|)^2, in feature space. What is more than `most` is no excuse for a gap: it may hide one.
        lengths = self.systems.matrix.diagonal().clip(min=0.0)
        moved = np.sqrt(lengths[:, None] * np.einsum("i,ij->j", lengths, a**2))
        floor = 2 * np.finfo(float).eps * (1.0 + moved + alpha * np.abs(a) / w[:, None])
        most = 0.5 * _ROUNDING_RESIDUAL**2 * np.einsum("i,ij->j", w, Y**2)
        floor_gap = np.minimum(0.5 * np.einsum("i,ij->j", w, floor**2), most)
        excess = 0.5 * np.einsum("i,ij->j", w, (2 * np.finfo(float).eps * moved) ** 2) - most
        u = w[:, None] * (Y - v if values is None else Y - values)
        extra = np.zeros(len(alpha))
        if space is not None and values is not None:
            r = alpha * a - u
            if space.exact:
                square = space.square(r)
            else:
                square = np.abs(np.einsum("ij,ij->j", r, self.systems.product(r, precise=True)))
            # Both factors of u'v at alpha = 0 have the rounding errors of the targets.
            floor_gap = np.minimum(floor_gap + np.finfo(float).eps * np.einsum("i,ij->j", w, Y**2), most)
            with np.errstate(divide="ignore", invalid="ignore"):
                extra = np.where(alpha > 0, square / (2 * alpha), np.abs(np.einsum("ij,ij->j", u, values - b)))
            difference = values - v
        gap = 0.5 * np.einsum("i,ij->j", w, difference**2) + extra + excess.clip(min=0.0)
        if values is None or (space is not None and not space.exact):
            primal = 0.5 * np.einsum("i,ij->j", w, (Y - v) ** 2) + 0.5 * alpha * np.einsum("ij,ij->j", a, Ka)
        else:  # both objectives of the solution are half of u'y
            primal, v = 0.5 * np.einsum("ij,ij->j", u, Y) + gap, values
        return _Point(a, b, v, residual, np.abs(difference).max(axis=0), floor_gap, primal, gap)

    def _finish(self, stopped: str) -> RidgeSolution:
        problem, size = self.problem, self.size
        shape = np.shape(problem.Y)
        unit = self.unit
        text = "ridge: " + self.systems.plan
        if self.far:
            text += f"; objectives in units of {size.max():.3g} squared"
        run = self.progress
        claim = run.certificate(
            primal=float(self.at.primal @ unit),
            dual=float((self.at.primal - self.at.gap) @ unit),
            kkt=float((self.at.kkt * size).max()),
            solver=text,
            stopped=stopped,
            rounding=float(self.at.rounding @ unit),
            precision=self.precision,
        )
        if not run.history:  # solved at once
            run.history.append(Row(run.steps, claim.primal, claim.dual, claim.relative_gap, len(self.w), claim.seconds))
        with np.errstate(over="ignore"):
            coefficients = (self.at.a * size).reshape(shape)
        values, offsets = (self.at.v + self.mean) * size, (self.at.b + self.mean) * size
        return RidgeSolution(
            coefficients,
            offsets,
            values.reshape(shape),
            claim,
            self.at.residual,
            self.systems.plan,
            run.history,
            self.diagnosis,
        )
