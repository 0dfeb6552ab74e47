"""Equations with the kernel matrix of the training points: one interface, whichever way they are solved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.certify import Stop
from mercer.gram import Gram
from mercer.gram.matrix import KernelMatrix
from mercer.machine.budget import readable
from mercer.machine.threads import one_thread_each
from mercer.solvers.control import Control
from mercer.solvers.systems.cg import Answer, Indefinite, Precondition, Refinement, refine
from mercer.solvers.systems.cholesky import SINGLE, Factors, Singular, diagnose, rounding
from mercer.solvers.systems.preconditioners.choice import Preconditioners

METHODS = ("auto", "cholesky", "cg")
_COARSE_ERROR = 1e-2  # of a kernel value at points rounded to 16 bits, in units of the shift, at most
_TWICE_AS_DEAR = 24  # columns with which a product takes twice as long as with few
_FACTOR_POINTS = 4_000  # up to which a factor is cheaper than finding out how good a preconditioner is

Listener = Callable[[int, np.ndarray, np.ndarray, np.ndarray], str | None]


class Systems:
    r"""The kernel matrix K of the training points, and equations with it.

    .. math:: (K + \operatorname{diag}(s)) A = Y

    A factor or a preconditioner that was computed for one equation serves the next where it can.

    Parameters
    ----------
    gram
        The matrix: square, of NumPy data or of objects. Its budget bounds the memory.
    control
        Its time limit and cancellation are obeyed; `precision` "float64" forbids float32.
    method
        "cholesky", "cg" (conjugate gradients, preconditioned by a randomly pivoted Cholesky factor) or "auto".
    rank
        Of the preconditioner; None to weigh its cost against the products it saves.

    Attributes
    ----------
    plan : str
        Which method, why, and the bytes it takes.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, Gram
    >>> from mercer.solvers import Control
    >>> X = np.linspace(0, 1, 5)[:, None]
    >>> systems = Systems(Gram(RBF(scale=0.5), X), Control())
    >>> answer = systems.solve(0.1, np.sin(6 * X[:, 0]))
    >>> answer.A.round(3), answer.stopped
    (array([-3.279,  5.237,  0.631, -5.375,  2.568]), 'converged')
    """

    def __init__(self, gram: Gram, control: Control, *, method: str = "auto", rank: int | None = None) -> None:
        if method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}; it is {method!r}.")
        self.gram, self.control = gram, control
        self.matrix = KernelMatrix(gram)
        if control.precision == "float64":
            self.matrix.single = False
        self.preconditioners = Preconditioners(self.matrix, rank)
        n = gram.shape[0]
        self.automatic = method == "auto"
        self.fits = 8 * n * n <= gram.budget
        self.method = method if method != "auto" else "cholesky" if n <= _FACTOR_POINTS and self.fits else "cg"
        self.plan = self._explain(n)
        self.factors = Factors(gram)
        if not gram.compiled:
            self._hold()

    def _explain(self, n: int) -> str:
        if self.method == "cholesky":
            return (
                f"Cholesky factor of the {n} x {n} matrix, {readable(8 * n * n)}: "
                + ("few points" if n <= _FACTOR_POINTS else "as asked")
                + (", in float32 with corrections in float64" if self.matrix.single and n >= SINGLE else "")
            )
        why = "as asked" if not self.automatic else "many points" if self.fits else "a factor exceeds the budget"
        return (
            f"conjugate gradients on {n} points, preconditioned by {self.preconditioners.description} ({why}; "
            f"a dense factor would take {readable(8 * n * n)}, the budget is {readable(self.gram.budget)})"
        )

    def _hold(self) -> None:
        """Keep the values that only Python can compute, in the most exact type that fits the budget."""
        n = self.gram.shape[0]
        beside = 8 * n * n if self.method == "cholesky" else n * n
        for dtype in (np.float64, np.float32):
            if np.dtype(dtype).itemsize * n * n + beside <= self.gram.budget:
                self.matrix.hold(dtype)
                self.plan += f"; the kernel's values are held in {np.dtype(dtype).name}"
                return

    @contextmanager
    def in_16_bits(self, shift: float) -> Iterator[None]:
        """Let products in float32 take points in 16 bits, where that is faster and does no harm beside such a shift."""
        matrix = self.matrix
        if matrix.single and matrix.held is None and matrix.coarse is not None:
            size = float(np.abs(matrix.diagonal()).max())
            matrix.use_coarse = matrix.coarse.error * size <= _COARSE_ERROR * shift
        try:
            yield
        finally:
            matrix.use_coarse = False

    def product(self, V: np.ndarray, precise: bool = False) -> np.ndarray:
        """Return K V in float64, with kernel values in float64 if `precise` and else in whatever is fastest.

        Parameters
        ----------
        V
            (n,) or (n, k).
        precise
            Whether a certificate depends on it.
        """
        V = np.asarray(V, dtype=np.float64)
        single = not precise and (self.matrix.single or self.matrix.held is not None)
        return self.matrix(V.reshape(len(V), -1), single).reshape(V.shape)

    def solve(
        self,
        shift: Any,
        Y: np.ndarray,
        *,
        rows: np.ndarray | None = None,
        tol: float | np.ndarray = 1e-10,
        start: np.ndarray | None = None,
        watch: Listener | None = None,
        strict: bool = False,
    ) -> Answer:
        """Return A with (K[rows, rows] + diag(shift)) A = Y.

        Parameters
        ----------
        shift
            At least 0: a number, one number per point (m,), or one per column: (1, k) or (m, k).
        Y
            (m,) or (m, k).
        rows
            The numbers of the points that take part; None for all.
        tol
            The relative residual to reach, one number or one per column.
        start
            The solution of a similar equation, as Y.
        watch
            Called during a long run with the products so far, the relative residuals of the columns still at work,
            their numbers, and the solution so far; what it returns ends the run.
        strict
            Whether to raise `Singular` where the matrix is that to rounding, rather than to take the solution of least
            norm.
        """
        matrix = self.matrix.take(rows)
        m = matrix.n
        Y = np.asarray(Y, dtype=np.float64)
        B = Y.reshape(m, -1)
        S = np.asarray(shift, dtype=np.float64)
        S = np.broadcast_to(S[:, None] if S.ndim == 1 else S, B.shape)
        if not (S >= 0).all() or np.isinf(S).any():
            raise ValueError(f"the shift must be finite and at least 0; it is {S[~((S >= 0) & np.isfinite(S))][0]:g}.")
        if not np.isfinite(B).all():
            raise ValueError("the right-hand side contains NaN or infinite values; it must be finite.")
        size = np.abs(B).max(axis=0, initial=0.0)
        size = np.where(size > 0, size, 1.0)
        A = np.zeros(B.shape) if start is None else np.asarray(start, dtype=np.float64).reshape(B.shape) / size
        equation = _Equation(self, matrix, S, B / size, np.broadcast_to(tol, size.shape), A, size, watch, strict)
        try:
            answer = equation.by_factors() if self.method == "cholesky" else equation.by_gradients()
        except KeyboardInterrupt:
            self.control.cancel()
            answer = equation.interrupted()
        with np.errstate(over="ignore"):
            A = answer.A * size
        if not np.isfinite(A).all():
            raise FloatingPointError(
                "the solution exceeds the range of float64; scale the right-hand side, or raise the shift."
            )
        return replace(answer, A=A.reshape(Y.shape), product=(answer.product * size).reshape(Y.shape))


@dataclass
class _Equation:
    """One equation: the points, shifts (m, k), right-hand sides of size 1, tolerances, and the solution so far."""

    systems: Systems
    matrix: KernelMatrix
    shift: np.ndarray
    Y: np.ndarray
    tol: np.ndarray
    A: np.ndarray
    size: np.ndarray
    listener: Listener | None
    strict: bool

    def __post_init__(self) -> None:
        self.groups = _alike(self.shift)

    def watch(self, iterations: int, residual: np.ndarray, columns: np.ndarray) -> str | None:
        """Return why to stop: a limit of the control, or the listener's wish."""
        control = self.systems.control
        if control.cancelled:
            return Stop.INTERRUPTED
        if control.time_limit is not None and control.seconds >= control.time_limit:
            return Stop.time(control.time_limit)
        if self.listener is not None:
            return self.listener(iterations, residual, columns, self.A * self.size)
        return None

    def interrupted(self) -> Answer:
        """Return the solution so far."""
        KA, lengths = self.matrix(self.A), np.linalg.norm(self.Y, axis=0)
        rest = np.linalg.norm(self.Y - KA - self.shift * self.A, axis=0)
        return Answer(self.A, rest / np.where(lengths > 0, lengths, 1.0), 0, Stop.INTERRUPTED, product=KA)

    def by_factors(self) -> Answer:
        """Solve by a factor for each different shift."""
        residual, KA, answers = np.empty(len(self.size)), np.empty(self.A.shape), []
        for columns in self.groups:
            shift, solve = self.shift[:, columns[0]], self.systems.factors.solve
            answers.append(solve(self.matrix, shift, self.Y[:, columns], self.tol[columns], self.watch, self.strict))
        for columns, answer in zip(self.groups, answers, strict=True):
            self.A[:, columns], residual[columns], KA[:, columns] = answer.A, answer.residual, answer.product
        return Answer(
            self.A,
            residual,
            sum(a.iterations for a in answers),
            next((a.stopped for a in answers if a.stopped != Stop.CONVERGED), Stop.CONVERGED),
            "float32" if all(a.precision == "float32" for a in answers) else "float64",
            KA,
        )

    def by_gradients(self) -> Answer:
        """Solve by conjugate gradients; by a factor after all where that takes too long."""
        s, matrix, least = self.systems, self.matrix, float(self.shift.min())
        single = matrix.single or (matrix.held is not None and matrix.held.dtype == np.float32)
        if single:  # float32 does not help beside a tiny shift
            single = least / max(float(matrix.diagonal().mean()), 1e-300) > 1e-6
        course = Refinement(self.A, np.full(len(self.size), np.inf), 0, single)

        def watch(iterations: int, residual: np.ndarray, columns: np.ndarray) -> str | None:
            far = s.automatic and s.fits and (residual > 10 * self.tol[columns]).any()
            steps = iterations * (1 + len(columns) / _TWICE_AS_DEAR)
            slow = far and s.preconditioners.dearer_than_a_factor(matrix, steps, course.single)
            return self.watch(iterations, residual, columns) or ("slow" if slow else None)

        with one_thread_each(), s.in_16_bits(least if single else 0.0):
            try:
                stopped = refine(matrix, self.shift, self.Y, course, self.tol, self._precondition, watch)
            except Indefinite:
                stopped = "indefinite"
        if stopped in ("slow", "indefinite"):
            if s.automatic and s.fits:
                s.preconditioners.forget()
                return self.by_factors()
            if self.strict:
                raise Singular
            raise np.linalg.LinAlgError(diagnose(matrix, self.shift.min(axis=1)))
        return course.answer(self.shift, self.Y, stopped)

    def _precondition(self, single: bool) -> Precondition:
        s, rows = self.systems, self.matrix.rows
        preconditioner = s.preconditioners.choose(
            float(self.shift.min()), float(self.tol.min()), single, hold=rows is None, shifts=len(self.groups)
        )
        floor = max(float(preconditioner.left.mean()), 10 * rounding(s.matrix))
        inverses = []
        for columns in self.groups:
            shift = np.maximum(self.shift[:, columns[0]], floor)
            if rows is not None:
                everyone = np.full(s.matrix.n, np.inf)
                everyone[rows] = shift
                shift = everyone
            inverses.append((columns, preconditioner.inverse(shift, rows)))
        if len(inverses) == 1:
            return lambda V, _: inverses[0][1](V)

        def each(V: np.ndarray, active: np.ndarray) -> np.ndarray:
            out = np.empty_like(V)
            for columns, inverse in inverses:
                at = np.isin(active, columns)
                if at.any():
                    out[:, at] = inverse(V[:, at])
            return out

        return each


def _alike(shift: np.ndarray) -> list[np.ndarray]:
    """Return the numbers of the columns, those with equal shifts together."""
    if shift.strides[1] == 0:
        return [np.arange(shift.shape[1])]
    groups: dict[bytes, list[int]] = {}
    for j in range(shift.shape[1]):
        groups.setdefault(shift[:, j].tobytes(), []).append(j)
    return [np.array(columns) for columns in groups.values()]
