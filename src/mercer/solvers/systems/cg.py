"""Conjugate gradients for many right-hand sides, in float32 with corrections in float64; and for many shifts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mercer.certify import Stop
from mercer.gram.matrix import KernelMatrix

_ROUND_RESIDUAL = 7e-4  # that one round in float32 aims at, in units of the residual at its start
_STALLED = 0.5  # of the residual: a round that leaves more has met rounding errors
_IDLE_STEPS = 300  # steps without a smaller residual after which a round ends

Precondition = Callable[[np.ndarray, np.ndarray], np.ndarray]
Watch = Callable[[int, np.ndarray, np.ndarray], str | None]


class Indefinite(np.linalg.LinAlgError):
    """A direction in which the matrix is not positive has been met."""


@dataclass(frozen=True)
class Answer:
    """The solution A of (K + S) A = Y, and how well it solves it.

    Attributes
    ----------
    A
        As Y: one column per right-hand side.
    residual
        |Y - (K + S) A| / |Y| of each column, measured with kernel values in float64; 0 where Y is.
    iterations
        How many products with K were taken; 1 for a factorisation.
    stopped
        "converged", or what ended the run before.
    precision
        The arithmetic of most kernel values: "float32" or "float64".
    product
        K A, from kernel values in float64: it has been computed anyway.
    """

    A: np.ndarray
    residual: np.ndarray
    iterations: int = 1
    stopped: str = Stop.CONVERGED
    precision: str = "float64"
    product: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False)


@dataclass
class Refinement:
    """A solution on its way; kept up to date, so that an interrupt loses nothing.

    Attributes
    ----------
    A
        The solution so far.
    residual
        |Y - (K + S) A| / |Y| of each column, as last measured in float64; infinite before.
    iterations
        Products with K so far.
    single
        Whether kernel values are in float32.
    rest
        Y - (K + S) A as last measured in float64.
    history
        One row (iterations, worst residual) for each measurement in float64.
    """

    A: np.ndarray
    residual: np.ndarray
    iterations: int = 0
    single: bool = True
    rest: np.ndarray | None = None
    history: list[tuple[int, float]] = field(default_factory=list)

    def answer(self, shift: np.ndarray, Y: np.ndarray, stopped: str) -> Answer:
        """Return the solution of (K + diag(shift)) A = Y as it is after `refine`."""
        assert self.rest is not None
        precision, KA = "float32" if self.single else "float64", Y - self.rest - shift * self.A
        return Answer(self.A, self.residual, max(1, self.iterations), stopped, precision, KA)


def iterate(
    multiply: Callable[[np.ndarray, np.ndarray], np.ndarray],
    precondition: Precondition,
    R: np.ndarray,
    A: np.ndarray,
    goal: np.ndarray,
    columns: np.ndarray,
    watch: Callable[[np.ndarray, np.ndarray], str | None],
    follow: Callable[[np.ndarray, np.ndarray], None] | None = None,
) -> str | None:
    r"""Take steps of conjugate gradients until each column's residual has at most the length `goal`.

    Every step takes one product with all columns that are not yet done; each has its own step lengths. The directions
    are corrected by Polak and Ribiere's formula, which forgives a preconditioner that rounds.

    Parameters
    ----------
    multiply, precondition
        (V, numbers of the columns) -> the matrix, or the approximate inverse, times V.
    R
        The residuals of the columns; overwritten.
    A
        To which the steps are added, column by column.
    goal
        The length at which a column is done.
    columns
        The numbers of the columns of A to which those of R belong.
    watch
        Called after each step with the lengths of the residuals and their columns; what it returns ends the run.
    follow
        Called with the step lengths along the last product, and their columns.

    Returns
    -------
    stopped
        None when all columns are done, "stalled", or what `watch` said.
    """
    Z = precondition(R, columns)
    P = Z.copy()
    rz = np.einsum("ij,ij->j", R, Z)
    length = np.linalg.norm(R, axis=0)
    best, since = float((length / goal).max()), 0
    active = columns
    while True:
        Q = multiply(P, active)
        curvature = np.einsum("ij,ij->j", P, Q)
        if not (np.all(curvature > 0) and np.all(rz > 0)):
            raise Indefinite("the matrix is not positive definite.")
        step = rz / curvature
        A[:, active] += step * P
        if follow is not None:
            follow(step, active)
        before = R
        R = R - step * Q
        length = np.linalg.norm(R, axis=0)
        reason = watch(length, active)
        going = length > goal
        if reason is not None or not going.any():
            return reason
        worst = float((length / goal).max())
        since = 0 if worst < 0.99 * best else since + 1
        best = min(best, worst)
        if since > _IDLE_STEPS:
            return "stalled"
        if not going.all():
            R, before, P, rz, goal, active = (
                R[:, going],
                before[:, going],
                P[:, going],
                rz[going],
                goal[going],
                active[going],
            )
        Z = precondition(R, active)
        turn = np.einsum("ij,ij->j", R - before, Z)
        P = Z + turn / rz * P
        rz = np.einsum("ij,ij->j", R, Z)


def refine(
    matrix: KernelMatrix,
    shift: np.ndarray,
    Y: np.ndarray,
    course: Refinement,
    tol: float | np.ndarray,
    precondition: Callable[[bool], Precondition],
    watch: Watch,
) -> str:
    """Solve (K + diag(shift)) A = Y by rounds of conjugate gradients, each for the residual of the last in float64.

    Parameters
    ----------
    matrix
        K.
    shift
        (n, k), one column for each of Y.
    Y
        (n, k).
    course
        The start, which becomes the solution.
    tol
        The relative residual to reach in each column, as measured in float64.
    precondition
        From whether float32 will do to an approximate inverse.
    watch
        Called with the products so far, the relative residuals and their columns; what it returns ends the run.

    Returns
    -------
    stopped
        "converged", or why not.
    """
    size = np.linalg.norm(Y, axis=0)
    size = np.where(size > 0, size, 1.0)
    tol = np.broadcast_to(tol, size.shape)
    rough: Precondition | None = None
    R = Y - _times(matrix, shift, course.A, False) if course.A.any() else Y.copy()
    course.residual, course.rest = np.linalg.norm(R, axis=0) / size, R
    worst, stalls = math.inf, 0
    while True:
        course.history.append((course.iterations, float(course.residual.max())))
        if (course.residual <= tol).all():
            return Stop.CONVERGED
        now = float((course.residual / tol).max())
        if now > _STALLED * worst:
            if matrix.use_coarse:
                matrix.use_coarse = False
            else:
                if not course.single:
                    stalls += 1
                    if stalls > 1:
                        return Stop.rounding("the residual falls no further")
                course.single, rough = False, None
        worst = min(worst, now)
        if rough is None:
            rough = precondition(course.single)
        columns = np.flatnonzero(course.residual > tol)
        single = course.single
        aim = 0.5 * tol[columns] / course.residual[columns]
        if single:  # float32 values are only so good: as many rounds as it takes, of equal parts
            aim = aim ** (1.0 / np.ceil(np.log(np.minimum(aim, 0.5)) / math.log(_ROUND_RESIDUAL)).clip(min=1.0))
        kept = course.A.copy()

        def multiply(V: np.ndarray, active: np.ndarray, single: bool = single) -> np.ndarray:
            course.iterations += 1
            return _times(matrix, shift[:, active], V, single)

        def look(lengths: np.ndarray, active: np.ndarray) -> str | None:
            return watch(course.iterations, lengths / size[active], active)

        stopped: str | None = None
        try:
            goal = aim * course.residual[columns] * size[columns]
            stopped = iterate(multiply, rough, R[:, columns], course.A, goal, columns, look)
        except Indefinite:
            if not single:
                raise
            course.A[:] = kept
            if matrix.use_coarse:
                matrix.use_coarse = False
            else:
                course.single, rough = False, None
        R = Y - _times(matrix, shift, course.A, False)
        residual = np.linalg.norm(R, axis=0) / size
        if not (residual <= 2.0 * course.residual).all():  # also where it is no number
            worse = ~(residual <= 2.0 * course.residual)
            course.A[:, worse] = kept[:, worse]
            R = Y - _times(matrix, shift, course.A, False)
            residual = np.linalg.norm(R, axis=0) / size
        course.residual, course.rest = residual, R
        if stopped not in (None, "stalled"):
            course.history.append((course.iterations, float(residual.max())))
            return Stop.CONVERGED if (residual <= tol).all() else str(stopped)


def _times(matrix: KernelMatrix, shift: np.ndarray, V: np.ndarray, single: bool) -> np.ndarray:
    return matrix(V, single) + shift * V


# -- linear systems that differ by a multiple of the identity: one Krylov space serves all of them --------


Apply = Callable[[np.ndarray], np.ndarray]


def krylov(
    apply: Apply, B: np.ndarray, constants: np.ndarray, factors: np.ndarray, tol: float, steps: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Solve (c_k + d_k A_s) x = b_s for every k and every right-hand side s, by the method of Lanczos.

    .. math:: A V = V T + \beta v e^T, \qquad x_k = V (c_k + d_k T)^{-1} V^T b

    Each right-hand side has a matrix of its own; what they share is the pass over it in `apply`. Vectors are kept
    orthogonal by two projections, so that rounding makes no copies of eigenvalues.

    Parameters
    ----------
    apply
        Returns A_s v_s for the rows v_s of a matrix. Each A_s is symmetric.
    B
        The right-hand sides, one for each row.
    constants, factors
        c_k and d_k, such that every c_k + d_k A_s is positive definite.
    tol
        The residual to reach, relative to |b|.
    steps
        Products with A, at most.

    Returns
    -------
    X
        The solutions x, (s, k, n).
    AX
        A x, (s, k, n).
    residuals
        Relative to |b|, (s, k): where larger than tol, the steps were too few.

    Examples
    --------
    >>> import numpy as np
    >>> A, b = np.diag([1.0, 2.0, 3.0]), np.ones((1, 3))
    >>> X, _, residuals = krylov(lambda V: V @ A, b, np.array([0.0, 1.0]), np.ones(2), 1e-10, 3)
    >>> X[0].round(6)
    array([[1.      , 0.5     , 0.333333],
           [0.5     , 0.333333, 0.25    ]])
    """
    s, n = B.shape
    k = len(constants)
    norms = np.linalg.norm(B, axis=1)
    V = np.zeros((s, min(steps, n) + 1, n))
    V[:, 0] = B / np.where(norms > 0, norms, 1.0)[:, None]
    middle: list[np.ndarray] = []  # of T: (s,) for each step
    beside: list[np.ndarray] = []
    below: list[np.ndarray] = []  # of the factors of c + d T: (s, k) for each step
    pivots: list[np.ndarray] = []
    forward: list[np.ndarray] = []
    for j in range(min(steps, n)):
        w = apply(V[:, j])
        a = np.einsum("sn,sn->s", V[:, j], w)
        for _ in range(2):
            seen = V[:, : j + 1]
            w -= np.matmul(np.matmul(seen, w[:, :, None]).transpose(0, 2, 1), seen)[:, 0]
        b = np.linalg.norm(w, axis=1)
        b[b <= 1e-14 * (np.abs(a) + (beside[-1] if beside else 0.0))] = 0.0  # the space is complete
        ratio = factors * beside[-1][:, None] / pivots[-1] if j else np.zeros((s, k))
        pivot = constants + factors * a[:, None] - (ratio * factors * beside[-1][:, None] if j else 0.0)
        below.append(ratio)
        pivots.append(pivot)
        forward.append(-ratio * forward[-1] if j else np.broadcast_to(norms[:, None], (s, k)))
        middle.append(a)
        beside.append(b)
        V[:, j + 1] = w / np.where(b > 0, b, 1.0)[:, None]
        residuals = np.abs(factors) * b[:, None] * np.abs(forward[-1] / pivot)
        if (residuals <= tol * norms[:, None]).all():
            break
    m = len(middle)
    Z = np.empty((m, s, k))
    Z[-1] = forward[-1] / pivots[-1]
    for j in range(m - 2, -1, -1):
        Z[j] = forward[j] / pivots[j] - below[j + 1] * Z[j + 1]
    Z = Z.transpose(1, 2, 0)  # (s, k, m)
    X = np.matmul(Z, V[:, :m])
    T, off = np.array(middle).T[:, None, :], np.array(beside).T[:, None, :]
    TZ = T * Z
    TZ[:, :, 1:] += off[:, :, :-1] * Z[:, :, :-1]
    TZ[:, :, :-1] += off[:, :, :-1] * Z[:, :, 1:]
    AX = np.matmul(TZ, V[:, :m]) + (off[:, :, -1] * Z[:, :, -1])[:, :, None] * V[:, m][:, None, :]
    return X, AX, residuals / np.where(norms > 0, norms, 1.0)[:, None]
