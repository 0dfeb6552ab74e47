"""Several functions at once, one per class, tied by a loss of all of them: multinomial logistic regression."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mercer.certify import Stop
from mercer.gram.factor import PivotedCholesky
from mercer.losses.numeric import curvature
from mercer.machine.budget import readable
from mercer.solvers.representer.problem import EPS, Point, Task, dual_point, hidden, hold_few, note
from mercer.solvers.run import Run

_FIRST_ROWS = 400  # of the preconditioner's matrix (classes times rank) at first
_MOST_ROWS = 3000  # of the preconditioner's matrix at most, as it is dense and factorised for each Newton system
_SLOW_PRODUCTS = 40  # with K for one Newton system, after which the rank is doubled
_MOST_STEPS = 500  # Newton steps at most
_MOST_PRODUCTS = 400  # with K for one Newton system
_IDLE_STEPS = 6  # Newton steps without progress, after which only rounding is left
_SLOPE_SUM = 1e-8  # of the derivatives of one function at most, in units of the sum of their sizes
_LOCAL_GAIN = 1e-3  # gain of a step in units of the objective, below which the minimiser is near
_NEGLIGIBLE = 1e-13  # curvature in units of strength / k(x, x) that changes no coefficient


def rank_for(n: int, k: int) -> int:
    """Return how many columns of K precondition k classes."""
    return min(n, max(10, _FIRST_ROWS // k))


def describe(n: int, k: int) -> str:
    """Return the sentence of the plan."""
    rank = rank_for(n, k)
    memory = readable(8 * (n * rank + (k * rank) ** 2))
    return (
        f"Newton's method on {n} x {k} coefficients by conjugate gradients, preconditioned by {rank} columns of the "
        f"kernel matrix, {memory}: the loss ties the {k} functions together."
    )


class Multinomial:
    r"""Newton's method for the coefficients (n, k) of k functions.

    H_i = G_i G_i' is the curvature of the loss at each point, and R = strength A + U the residual of the conditions of
    optimality. The step is G Z, plus -R / strength in the directions in which H_i is 0, where

    .. math:: (\lambda I + G' (K \otimes I) G) Z = -G^+ R + G' K R_0 / \lambda

    With intercepts the coefficients of each function sum to 0, and the equation holds on that subspace. It is solved by
    conjugate gradients with projected preconditioning (Gould, Hribar and Nocedal 2001); the preconditioner is the same
    matrix with F F' in the place of K.
    """

    def __init__(self, task: Task, run: Run, k: int) -> None:
        assert task.systems is not None
        self.task, self.progress, self.systems = task, run, task.systems
        n = len(task)
        self.A = np.zeros((n, k)) if task.a is None else np.array(task.a, dtype=np.float64)
        self.F = self.systems.product(self.A) if self.A.any() else np.zeros((n, k))
        self.b = np.broadcast_to(np.asarray(task.b, dtype=np.float64), (k,)).copy()
        self.lengths = np.sqrt(np.abs(np.asarray(self.systems.gram.diag(), dtype=np.float64)))
        self.size = float(self.lengths.max()) ** 2
        self.rank = rank_for(n, k)
        self._factor = PivotedCholesky(self.systems.matrix, min(n, max(self.rank, _MOST_ROWS // k)))
        self._low: np.ndarray | None = None
        self.forcing = 0.1

    def run(self, tol: float, at_least: int = 0) -> Point:
        """Return the minimiser to a relative gap of `tol`, after so many steps at least, or the best before a limit."""
        task, run = self.task, self.progress
        stopped: str | None = None
        hold_few(self.systems)
        fresh = False  # whether F is a product of float64 values with A, not a sum of steps
        best: Point | None = None
        idle, bound, begun = 0, -math.inf, run.steps
        try:
            while True:
                point = self._look()
                note(run, point.primal, point.relative_gap, self.A, self.b, task.strength)
                taken = run.steps - begun >= at_least or point.gap == 0
                if taken and point.relative_gap <= tol:
                    if fresh:
                        stopped, best = Stop.CONVERGED, point
                        break
                    fresh = True
                    self.F = self.systems.product(self.A, precise=True)
                    continue
                bound = max(bound, point.primal - point.gap)
                if best is None or point.gap < 0.7 * best.gap or point.primal < best.primal * (1 - 1e-9):
                    idle = 0
                else:
                    idle += 1
                if (
                    best is not None
                    and point.gap > 0.1 * best.gap
                    and best.primal - point.primal < _LOCAL_GAIN * point.primal
                ):
                    self.forcing = max(0.1 * self.forcing, 1e-12)  # close by, only inexact steps make slow progress
                best = point
                if (stopped := run.limit()) is not None:
                    break
                if idle >= _IDLE_STEPS or run.steps >= _MOST_STEPS:
                    stopped = Stop.FLOOR
                    break
                self._step(point, tol)
                fresh = False
                run.steps += 1
        except KeyboardInterrupt:
            run.control.cancel()
            stopped = Stop.INTERRUPTED
            if best is None:
                best = self._look()
        best.gap = min(best.gap, best.primal - bound)
        best.stopped, best.solver = str(stopped), "Newton, all classes together"
        return best

    # -- where the run stands ---------------------------------------------------------------------------

    def _look(self) -> Point:
        task, strength = self.task, self.task.strength
        self.b = self._best_offsets(self.F, self.b)
        V = self.F + self.b
        U = task.slopes(V)
        R = strength * self.A + U
        KR = self.systems.product(R)
        loss, square = task.total(V), float(np.vdot(self.A, self.F))
        if not math.isfinite(loss):
            raise ValueError(f"the loss {task.loss!r} is not finite at the start; scale y, or start from zeros.")
        gap = abs(float(np.vdot(R, KR))) / (2.0 * strength)
        left = float(np.abs(U.sum(axis=0)).max()) if task.intercept else 0.0
        if left > max(_SLOPE_SUM * float(np.abs(U).sum()), 4.0 * EPS * float(task.weights.sum())):
            gap = math.inf  # the intercepts are not optimal: U is no dual point and gives no bound
        pull = float(np.vdot(U, KR - strength * self.F))
        noise = EPS * float(np.abs(V).max())
        slope_noise = noise * float(task.weights.sum())
        rounding = 4.0 * (EPS * loss + noise * float(np.abs(U).sum()) + noise * slope_noise)
        rounding += slope_noise * (slope_noise * self.size / (2.0 * strength))
        kkt, conjugates = float(np.abs(KR).max()) / strength, float(np.vdot(U, V)) - loss
        dual = dual_point(task, self.A, V, U, self.lengths, task.weights * (1.0 - (U**2).sum(axis=1) / 2.0 + 1e-12))
        if dual is not None and dual.gap < gap:
            gap, U, conjugates = dual.gap, dual.u, dual.conjugates
            pull = (strength * math.sqrt(max(square, 0.0)) + dual.apart) ** 2
        gap += hidden(self.A, self.lengths, strength)
        self._KR, self._R = KR, R
        pull = max(pull, 0.0)
        A, F = self.A.copy(), self.F.copy()
        return Point(A, self.b, F, U, loss, square, gap, pull, conjugates, kkt, rounding, strength)

    def _best_offsets(self, F: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the intercepts at which the derivatives of each function sum to 0, by Newton's method."""
        task = self.task
        if not task.intercept:
            return b
        value = task.total(F + b)
        for _ in range(60):
            V = F + b
            U = task.slopes(V)
            slope = U.sum(axis=0)
            if np.abs(slope).max() <= 4.0 * EPS * max(float(np.abs(U).sum()), float(task.weights.sum())):
                break
            H = np.einsum("i,ijk->jk", task.weights, curvature(task.loss, task.y, V))
            step = -np.linalg.lstsq(H, slope, rcond=1e-12)[0]
            size = float(np.abs(step).max())
            t = min(1.0, 10.0 / size) if size > 0 else 1.0
            while t > 1e-10:
                new = task.total(F + b + t * step)
                if new <= value + 8 * EPS * abs(value):
                    break
                t *= 0.25
            else:
                break
            b, value = b + t * step, min(new, value)
        return b - b.mean()

    # -- one step ---------------------------------------------------------------------------------------

    def _step(self, point: Point, tol: float) -> None:
        task, strength = self.task, self.task.strength
        step = self._direction(point, tol)
        Ks = self.systems.product(step)
        if not float(np.vdot(self._R, Ks)) < 0:
            step = -self._R / strength
            Ks = -self._KR / strength
        before = self.b
        aKs, sKs = float(np.vdot(self.A, Ks)), float(np.vdot(step, Ks))
        t = 1.0
        while t > 1e-14:
            b = self._best_offsets(self.F + t * Ks, before)
            gain = task.total(self.F + t * Ks + b) - point.loss + strength * t * (aKs + 0.5 * t * sKs)
            if gain <= 8.0 * EPS * abs(point.loss):
                break
            t *= 0.5
        self.A = self.A + t * step
        self.F = self.F + t * Ks
        self.b = b
        size = max(abs(point.primal), 1e-300)
        self.forcing = min(self.forcing, 0.1, max(math.sqrt(point.gap / size), 1e-12))

    def _direction(self, point: Point, tol: float) -> np.ndarray:
        """Return the Newton step."""
        task, strength = self.task, self.task.strength
        with np.errstate(all="ignore"):
            H = curvature(task.loss, task.y, self.F + self.b) * task.weights[:, None, None]
        values, vectors = np.linalg.eigh(H)
        active = values > _NEGLIGIBLE * strength / np.maximum(self.size, 1e-300)
        if task.intercept:
            active |= values > _NEGLIGIBLE * float(values.max())
        roots = np.sqrt(np.where(active, values, 0.0))
        G = vectors * roots[:, None, :]
        inside = np.einsum("ijk,ij->ik", vectors, self._R)  # R in the directions of each point
        rest = -np.einsum("ijk,ik->ij", vectors, np.where(active, 0.0, inside)) / strength
        right = -np.divide(inside, roots, out=np.zeros_like(inside), where=active)
        if np.abs(rest).max() > EPS * np.abs(self.A).max():
            right -= np.einsum("ijk,ij->ik", G, self.systems.product(rest))
        else:
            rest[:] = 0.0
        missing = -self.A.sum(axis=0) - rest.sum(axis=0)
        return rest + self._solve(G, right, missing, point, tol)

    def _solve(self, G: np.ndarray, right: np.ndarray, missing: np.ndarray, point: Point, tol: float) -> np.ndarray:
        """Return G Z for the Z of the Newton system."""
        task, strength = self.task, self.task.strength
        n, k = self.A.shape
        precondition = self._preconditioner(G)

        def up(Z: np.ndarray) -> np.ndarray:
            return np.einsum("ijk,ik->ij", G, Z)

        def down(E: np.ndarray) -> np.ndarray:
            return np.einsum("ijk,ij->ik", G, E)

        Z = np.zeros((n, k))
        if task.intercept:  # the directions e_c in each function, seen by Z
            B = np.swapaxes(G, 0, 1).reshape(k, n, k)  # row c of every G_i
            W = np.stack([precondition(B[c]) for c in range(k)])
            inner = np.einsum("cik,dik->cd", B, W)
            inverse = np.linalg.pinv((inner + inner.T) / 2, rcond=1e-10, hermitian=True)
            Z = np.einsum("c,cik->ik", inverse @ missing, W)

            def project(v: np.ndarray) -> np.ndarray:
                p = precondition(v)
                return p - np.einsum("c,cik->ik", inverse @ np.einsum("cik,ik->c", B, p), W)
        else:
            project = precondition
        residual = right - (strength * Z + down(self.systems.product(up(Z)))) if Z.any() else right
        p = project(residual)
        first = rho = float(np.vdot(residual, p))
        # The preconditioned residual measures the gap that is left.
        enough = max(self.forcing**2 * first, 0.01 * tol * abs(point.primal) * 2.0)
        direction = p
        for count in range(_MOST_PRODUCTS):
            if count == _SLOW_PRODUCTS and self.rank < self._factor.most:
                self.rank, self._low = 2 * self.rank, None  # from the next system on
            if not rho > enough or self.progress.control.cancelled:
                break
            image = strength * direction + down(self.systems.product(up(direction)))
            curve = float(np.vdot(direction, image))
            if not curve > 0:
                break
            t = rho / curve
            Z = Z + t * direction
            residual = residual - t * image
            p = project(residual)
            new = float(np.vdot(residual, p))
            direction = p + (new / rho) * direction
            rho = new
        return up(Z)

    def _preconditioner(self, G: np.ndarray):  # type: ignore[no-untyped-def]
        """Return a function that applies (strength I + G' (F F') G)^-1 by the identity of Woodbury."""
        strength = self.task.strength
        k = self.A.shape[1]
        if self._low is None:
            some = self._factor
            while not some.exhausted and some.rank < self.rank:
                some.grow(min(64, self.rank - some.rank))
            self._low = np.ascontiguousarray(some.R.T)
        F = self._low
        r = F.shape[1]
        H = np.einsum("ijl,iml->ijm", G, G)
        core = np.empty((k, r, k, r))
        for c in range(k):
            for e in range(c, k):
                core[c, :, e, :] = F.T @ (H[:, c, e, None] * F)
                core[e, :, c, :] = core[c, :, e, :].T
        M = core.reshape(k * r, k * r)
        lift = EPS * k * r * (float(np.trace(M)) / max(k * r, 1) + strength)
        M.flat[:: k * r + 1] += strength
        for _ in range(30):
            try:
                factor = cho_factor(M, lower=True, check_finite=False)
                break
            except LinAlgError:
                M.flat[:: k * r + 1] += lift
                lift *= 10.0
        else:
            return lambda v: v / strength

        def apply(v: np.ndarray) -> np.ndarray:
            E = np.einsum("ijk,ik->ij", G, v)
            c = cho_solve(factor, (F.T @ E).T.reshape(-1), check_finite=False).reshape(k, r)
            return (v - np.einsum("ijk,ij->ik", G, F @ c.T)) / strength

        if strength > 1e-5 * self.size:
            return apply

        def refined(v: np.ndarray) -> np.ndarray:
            """Refine twice from the residual what dividing by a small strength loses to cancellation."""
            x = apply(v)
            for _ in range(2):
                E = np.einsum("ijk,ik->ij", G, x)
                x = x + apply(v - strength * x - np.einsum("ijk,ij->ik", G, F @ (F.T @ E)))
            return x

        return refined
