"""Newton's direction for the coefficients of the representer theorem, and its product with the kernel matrix."""

from __future__ import annotations

from collections import deque

import numpy as np

from mercer.gram.matrix import KernelMatrix
from mercer.machine.threads import one_thread_each
from mercer.solvers.representer.problem import EPS, Task
from mercer.solvers.systems.cg import Indefinite, iterate
from mercer.solvers.systems.cholesky import rounding

_NEGLIGIBLE = 1e-13  # curvature in units of strength / k(x, x) that changes no coefficient
ROUGH = 1e-3  # the relative residual that products in float32 are good for without corrections
_LEARNED_PRODUCTS = 64  # the last ones, from which the preconditioner learns
_ACTIVE_SHARE = 0.95  # of the rows, up to which the others are left out of products
_FLOAT32_FLOOR = 1e-5  # root of the model's gap over the gap at the start: float32 gets no lower
_REMAINING_SHARE = 0.05  # of the objective after the step: a gain above it does not allow a larger error
_DIAGONAL_SLACK = 0.2  # relative error allowed in the inverse of a preconditioner's diagonal
_MOST_STEPS = 500  # of one run of conjugate gradients in float32, without corrections

Direction = tuple[np.ndarray, float, np.ndarray]


class Directions:
    r"""The minimiser a + s of the quadratic model at a point, for the rows A with curvature d_i > 0.

    .. math:: (K_{AA} + \mathrm{diag}(\lambda / d_A)) s_A + t = -r_A / d_A + K_{A,rest} r_{rest} / \lambda,
              \qquad r = \lambda a + u, \quad u_i = w_i L'(v_i), \quad d_i = w_i L''(v_i)

    The others have s_i = -r_i / lambda; t is the step of the offset, if there is one. Systems for
    which float32 is precise enough are solved by conjugate gradients. Their products with K add up to K s, which the
    line search needs. Where some rows have no curvature, they run on the others only, and one more pass computes K s in
    the rows left out. They end when the duality gap of the model is small beside the gain of the step; the gap costs
    nothing.

    Parameters
    ----------
    task
        The problem.
    diagonal
        |k(x_i, x_i)|.
    """

    def __init__(self, task: Task, diagonal: np.ndarray) -> None:
        assert task.systems is not None
        self.systems, self.diagonal = task.systems, diagonal
        self.size = float(diagonal.max())

    def find(
        self,
        task: Task,
        v: np.ndarray,
        a: np.ndarray,
        r: np.ndarray,
        forcing: float,
        share: float = 0.0,
        value: float = np.inf,
    ) -> Direction:
        """Return s, t and K s.

        Parameters
        ----------
        task
            The problem, of which the strength may have changed.
        v, a, r
            Values with the offset, coefficients, and strength a + u.
        forcing
            The relative residual to which the system is solved.
        share
            Systems in float32 end at this distance to the model's minimum, in units of the gain of the step.
        value
            The objective.
        """
        systems, strength = self.systems, task.strength
        d = task.curvatures(v)
        active = d * self.diagonal > _NEGLIGIBLE * strength
        if task.intercept:
            active |= d > _NEGLIGIBLE * float(d.max())
        step = -r / strength
        if not active.any():
            return step, 0.0, systems.product(step)
        inactive = np.where(active, 0.0, step)
        with systems.in_16_bits(strength / float(d.max())):
            K_inactive = systems.product(inactive) if inactive.any() else np.zeros(len(v))
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = np.where(active, np.maximum(strength / d, EPS * len(v) * self.size), np.inf)
            right = np.where(active, -r / d - K_inactive, 0.0)
        if task.intercept:
            right = np.stack([right, active.astype(float)], 1)
        right = right.reshape(len(v), -1)
        model = _Model(task, v, a, r, inactive, K_inactive, active, share, value) if share else None
        both, K_both = self._solved(shift, right, active, forcing, model)
        offset = 0.0
        step, K_step = inactive + both[:, 0], K_inactive + K_both[:, 0]
        if task.intercept:
            offset = _offset(float(step.sum()) + float(a.sum()), both[:, 1])
            step, K_step = step - offset * both[:, 1], K_step - offset * K_both[:, 1]
        if not (np.isfinite(step).all() and np.isfinite(K_step).all()):
            step = -r / strength
            return step, 0.0, systems.product(step)
        return step, offset, K_step

    def _solved(
        self, shift: np.ndarray, right: np.ndarray, active: np.ndarray, forcing: float, model: _Model | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the solution in the active rows, 0 elsewhere, and K times it."""
        systems = self.systems
        if systems.method == "cg" and (forcing >= ROUGH or model is not None) and systems.matrix.single:
            rough = self._rough(shift, right, forcing, model)
            if rough is not None:
                return rough
        rows = None if active.all() else np.flatnonzero(active)
        answer = systems.solve(shift[active], right[active], rows=rows, tol=forcing)
        if systems.method == "cg" and 8 * len(right) ** 2 <= systems.gram.budget // 2:
            part = systems.matrix if rows is None else systems.matrix.take(rows)
            if systems.preconditioners.dearer_than_a_factor(part, answer.iterations, answer.precision == "float32"):
                systems.method = "cholesky"
        solution = np.zeros_like(right)
        solution[active] = answer.A
        return solution, systems.product(solution)

    def _rough(
        self, shift: np.ndarray, right: np.ndarray, forcing: float, model: _Model | None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Solve by conjugate gradients with kernel values in float32; None where they do not get there."""
        systems, asked = self.systems, forcing
        smallest = float(shift.min())
        with one_thread_each(), systems.in_16_bits(smallest):
            preconditioner = systems.preconditioners.choose(smallest, max(asked, ROUGH), True)
        forcing = EPS if model is not None else asked
        active = np.isfinite(shift)
        few = not systems.matrix.kept and active.mean() <= _ACTIVE_SHARE
        rows = np.flatnonzero(active) if few else np.arange(len(shift))
        part, active = systems.matrix.take(rows), active[rows]
        finite = np.where(active, shift[rows], 0.0)[:, None]
        A, K_A, last = np.zeros((part.n, right.shape[1])), np.zeros((part.n, right.shape[1])), np.empty(0)
        steps = 0
        products: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=_LEARNED_PRODUCTS)

        def multiply(V: np.ndarray, columns: np.ndarray) -> np.ndarray:
            nonlocal last
            last = part(V, True)
            if preconditioner.learns:
                size = np.linalg.norm(V, axis=0)
                products.append(((V / size).astype(np.float32), (last / size).astype(np.float32)))
            return np.where(active[:, None], last, 0.0) + finite * V

        def follow(step: np.ndarray, columns: np.ndarray) -> None:
            K_A[:, columns] += step * last

        def watch(lengths: np.ndarray, columns: np.ndarray) -> str | None:
            nonlocal steps
            steps += 1
            control = systems.control
            if control.cancelled or (control.time_limit is not None and control.seconds >= control.time_limit):
                return "ended"
            ended = model.ended(A[active], K_A[active]) if model is not None else None
            return ended or ("slow" if steps >= _MOST_STEPS else None)

        lengths = np.linalg.norm(right, axis=0)
        columns = np.flatnonzero(lengths > 0)
        if not len(columns):
            return np.zeros_like(right), np.zeros_like(right)
        with one_thread_each(), systems.in_16_bits(smallest):
            part.use_coarse = systems.matrix.use_coarse
            left = np.maximum(preconditioner.left, 10 * rounding(systems.matrix))
            inverse = preconditioner.inverse(shift + left, rows if few else None, _DIAGONAL_SLACK)
            try:
                stopped = iterate(
                    multiply,
                    lambda V, _: inverse(V),
                    right[np.ix_(rows, columns)],
                    A,
                    forcing * lengths[columns],
                    columns,
                    watch,
                    follow,
                )
            except Indefinite:
                return None
            vectors, images = [A], [K_A]
            if products:
                W, KW = (np.concatenate(each, axis=1) for each in zip(*products, strict=True))
                vectors, images = [A, W], [K_A, KW]
            if few:  # the products with K in the other rows, in one pass
                vectors, images = self._everywhere(part, rows, vectors, images)
            A, K_A = vectors[0], images[0]
            if products:
                preconditioner.learn(vectors[1], images[1])
        missed = stopped in ("slow", "stalled") or (stopped == "floor" and asked < ROUGH)
        return None if missed else (A, K_A)

    def _everywhere(
        self, part: KernelMatrix, rows: np.ndarray, parts: list[np.ndarray], images: list[np.ndarray]
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return vectors that are 0 beyond some rows, and their products with K, in all rows."""
        n = len(self.diagonal)
        others = np.setdiff1d(np.arange(n), rows)
        beyond = part.elsewhere(np.concatenate(parts, axis=1), others)
        whole, products, first = [], [], 0
        for V, KV in zip(parts, images, strict=True):
            last = first + V.shape[1]
            wide, image = np.zeros((n, V.shape[1]), V.dtype), np.empty((n, V.shape[1]), KV.dtype)
            wide[rows], image[rows], image[others] = V, KV, beyond[:, first:last]
            whole.append(wide)
            products.append(image)
            first = last
        return whole, products


class _Model:
    """The quadratic model at a point, with the duality gap that bounds how far a step is from its minimum.

    Parameters
    ----------
    task, v, a, r
        As for `Directions.find`.
    inactive, K_inactive
        The steps of the rows without curvature, and K times them.
    active
        The other rows.
    share, value
        How small the gap must be beside what the step gains, and the objective.
    """

    def __init__(
        self,
        task: Task,
        v: np.ndarray,
        a: np.ndarray,
        r: np.ndarray,
        inactive: np.ndarray,
        K_inactive: np.ndarray,
        active: np.ndarray,
        share: float,
        value: float,
    ) -> None:
        self.strength, self.intercept, self.share, self.value = task.strength, task.intercept, share, value
        self.d, self.r, self.K_inactive = task.curvatures(v)[active], r[active], K_inactive[active]
        self.slopes, self.sum = float(task.slopes(v).sum()), float(a.sum() + inactive.sum())
        self.square = float(inactive @ K_inactive)
        nothing = np.zeros((len(self.r), 2))
        self.first = self.judge(nothing, nothing)[0]

    def ended(self, A: np.ndarray, K_A: np.ndarray) -> str | None:
        """Return why to end with these solutions in the active rows: near enough, or at the floor of float32."""
        gap, gain = self.judge(A, K_A)
        if 0.0 <= gap <= self.share * min(gain, _REMAINING_SHARE * abs(self.value - gain)):
            return "near"
        return "floor" if gap <= _FLOAT32_FLOOR**2 * self.first else None

    def judge(self, A: np.ndarray, K_A: np.ndarray) -> tuple[float, float]:
        """Return the gap of the model at a step, and the gain: its value at 0 less that at the step."""
        s, own, offset = A[:, 0], K_A[:, 0], 0.0
        if self.intercept:
            offset = _offset(self.sum + float(s.sum()), A[:, 1])
            s, own = s - offset * A[:, 1], own - offset * K_A[:, 1]
        e = self.K_inactive + own
        across = float(self.K_inactive @ s)  # s'K inactive
        slope = float(self.r @ e) - self.strength * (self.square + across) + self.slopes * offset
        e = e + offset
        curvature = float(self.d @ (e * e)) + self.strength * (self.square + 2.0 * across + float(s @ own))
        residual = self.r + self.strength * s + self.d * e
        return 0.5 * float(residual @ (residual / self.d)), -slope - 0.5 * curvature


def _offset(total: float, other: np.ndarray) -> float:
    """Return the step of the offset: the multiple of the other solution that makes the coefficients sum to 0."""
    weight = float(other.sum())
    return total / weight if weight > 0 else 0.0
