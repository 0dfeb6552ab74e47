"""One equation with the kernel matrix: by a factor, by conjugate gradients, or by what a singular matrix allows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.certify import Stop
from mercer.gram.products import Products
from mercer.machine.threads import one_thread_each
from mercer.solvers.systems.cg import Indefinite, Precondition, Refinement, Watch, refine
from mercer.solvers.systems.cholesky import Factor, diagnose, factorise, rounding, truncated

if TYPE_CHECKING:
    from mercer.solvers.systems.system import Systems

SINGLE = 1_500  # points from which on a factor in float32 with corrections is cheaper than one in float64
_CORRECTIONS = 25  # products in float64 after which a factor in float32 is given up
_EIGEN_POINTS = 10_000  # points up to which eigenvalues may be taken for a solution of least norm

Listener = Callable[[int, np.ndarray, np.ndarray, np.ndarray], str | None]


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


class Singular(np.linalg.LinAlgError):
    """A matrix that is singular to rounding, for callers who know more of it than its values."""


class Equation:
    """One equation: the points, shifts (m, k), right-hand sides of size 1, tolerances, and the solution so far."""

    def __init__(
        self,
        systems: Systems,
        products: Products,
        shift: np.ndarray,
        Y: np.ndarray,
        tol: np.ndarray,
        A: np.ndarray,
        size: np.ndarray,
        watch: Listener | None,
        strict: bool,
    ) -> None:
        self.systems, self.products, self.control = systems, products, systems.control
        self.shift, self.Y, self.tol, self.A, self.size, self._watch = shift, Y, tol, A, size, watch
        self.strict = strict
        self.lengths = np.linalg.norm(Y, axis=0)
        self.groups = _alike(shift)

    def watch(self, iterations: int, residual: np.ndarray, columns: np.ndarray) -> str | None:
        """Return why to stop: a limit of the control, or the listener's wish."""
        control = self.control
        if control.cancelled:
            return Stop.INTERRUPTED
        if control.time_limit is not None and control.seconds >= control.time_limit:
            return Stop.time(control.time_limit)
        if self._watch is not None:
            return self._watch(iterations, residual, columns, self.A * self.size)
        return None

    def interrupted(self) -> Answer:
        """Return the solution so far."""
        KA = self.products(self.A)
        rest = np.linalg.norm(self.Y - KA - self.shift * self.A, axis=0)
        return Answer(self.A, rest / np.where(self.lengths > 0, self.lengths, 1.0), 0, Stop.INTERRUPTED, product=KA)

    # -- factors ----------------------------------------------------------------------------------------

    def dense(self) -> Answer:
        """Solve by a factor for each different shift."""
        parts = [(columns, self._factored(columns)) for columns in self.groups]
        residual, KA = np.empty(len(self.size)), np.empty(self.A.shape)
        for columns, answer in parts:
            self.A[:, columns], residual[columns], KA[:, columns] = answer.A, answer.residual, answer.product
        answers = [answer for _, answer in parts]
        return Answer(
            self.A,
            residual,
            sum(a.iterations for a in answers),
            next((a.stopped for a in answers if a.stopped != Stop.CONVERGED), Stop.CONVERGED),
            "float32" if all(a.precision == "float32" for a in answers) else "float64",
            KA,
        )

    def _factored(self, columns: np.ndarray) -> Answer:
        s, m = self.systems, self.products.n
        shift, Y = self.shift[:, columns[0]], self.Y[:, columns]
        key = (self.products.rows, shift.copy())
        known = s.factor[1] if s.factor is not None and _same(s.factor[0], key) else None
        s.factor = None
        mean = float((self.products.diagonal() + shift).mean())
        single = self.products.single and m >= SINGLE and shift.min() >= 20 * np.sqrt(m) * 6e-8 * mean
        if single if known is None else known.values.dtype == np.float32:
            with suppress(np.linalg.LinAlgError):
                factor = factorise(self.products, shift, self._buffer(m, np.float32)) if known is None else known
                answer = self._corrected(factor, columns, self._few_corrections)
                if answer.stopped != "slow":
                    s.factor = key, factor
                    return replace(answer, precision="float32")
            known = None
        small = 1e3 * rounding(self.products)
        if known is None:
            try:
                known = factorise(self.products, shift, self._buffer(m, np.float64))
                singular = shift.min() <= small and known.condition() < m * np.finfo(float).eps
            except np.linalg.LinAlgError:
                if shift.min() > small:
                    raise np.linalg.LinAlgError(diagnose(self.products, shift)) from None
                singular = True
            if singular:
                return self._least_norm(shift, Y)
        assert known is not None
        answer = self._corrected(known, columns, self.watch)
        s.factor = key, known
        return answer

    def _few_corrections(self, iterations: int, residual: np.ndarray, columns: np.ndarray) -> str | None:
        return "slow" if iterations > _CORRECTIONS else self.watch(iterations, residual, columns)

    def _corrected(self, factor: Factor, columns: np.ndarray, watch: Watch) -> Answer:
        """Solve with a factor, and remove what rounding has left: the factor is an almost perfect preconditioner."""
        Y, shift = self.Y[:, columns], self.shift[:, columns]
        course = Refinement(factor.solve(Y), np.full(len(columns), np.inf), 1, single=False)
        try:
            stopped = refine(
                self.products, shift, Y, course, self.tol[columns], lambda _: lambda V, _: factor.solve(V), watch
            )
        except Indefinite:
            stopped = "slow" if factor.values.dtype == np.float32 else Stop.rounding("the residual falls no further")
        if stopped.startswith("rounding") and factor.values.dtype == np.float32:
            stopped = "slow"
        assert course.rest is not None
        KA = Y - course.rest - shift * course.A
        return Answer(course.A, course.residual, course.iterations, stopped, product=KA)

    def _least_norm(self, shift: np.ndarray, Y: np.ndarray) -> Answer:
        m = self.products.n
        if self.strict:
            raise Singular
        if m > _EIGEN_POINTS:
            raise np.linalg.LinAlgError(diagnose(self.products, shift))
        vectors, values = truncated(self.products, shift, self._buffer(m, np.float64))
        A = vectors @ ((vectors.T @ Y) / values[:, None])
        rest = Y - self.products(A) - shift[:, None] * A
        A += vectors @ ((vectors.T @ rest) / values[:, None])
        KA = self.products(A)
        residual = np.linalg.norm(Y - KA - shift[:, None] * A, axis=0) / np.maximum(np.linalg.norm(Y, axis=0), 1e-300)
        return Answer(A, residual, product=KA)

    def _buffer(self, m: int, dtype: Any) -> np.ndarray:
        """Return an m x m matrix in memory that is kept from one equation to the next: fresh memory is dear."""
        s = self.systems
        size = m * m * np.dtype(dtype).itemsize
        if s.buffer is None or s.buffer.nbytes < size:
            s.buffer = None
            s.gram.budget.require(size, f"the factor of a {m} x {m} matrix", "choose method='cg', or raise the budget.")
            s.buffer = np.empty(size, np.uint8)
        return s.buffer[:size].view(dtype).reshape(m, m)

    # -- conjugate gradients ----------------------------------------------------------------------------

    def iterative(self) -> Answer:
        """Solve by conjugate gradients; by a factor after all where that takes too long."""
        s = self.systems
        course = Refinement(self.A, np.full(len(self.size), np.inf), 0, self._single())

        def watch(iterations: int, residual: np.ndarray, columns: np.ndarray) -> str | None:
            far = s.automatic and s.fits and (residual > 10 * self.tol[columns]).any()
            slow = far and s.preconditioners.dearer_than_a_factor(self.products, iterations, course.single)
            return self.watch(iterations, residual, columns) or ("slow" if slow else None)

        with one_thread_each(), s.in_16_bits(float(self.shift.min()) if course.single else 0.0):
            try:
                stopped = refine(self.products, self.shift, self.Y, course, self.tol, self._precondition, watch)
            except Indefinite:
                stopped = "indefinite"
        if stopped in ("slow", "indefinite"):
            if s.automatic and s.fits:
                s.preconditioners.forget()
                return self.dense()
            if self.strict:
                raise Singular
            raise np.linalg.LinAlgError(diagnose(self.products, self.shift.min(axis=1)))
        precision = "float32" if course.single else "float64"
        assert course.rest is not None
        KA = self.Y - course.rest - self.shift * course.A
        return Answer(course.A, course.residual, max(1, course.iterations), stopped, precision, KA)

    def _single(self) -> bool:
        """Return whether float32 can help at all beside so small a shift."""
        held = self.products.held
        least = float(self.shift.min()) / max(float(self.products.diagonal().mean()), 1e-300)
        return (self.products.single or (held is not None and held.dtype == np.float32)) and least > 1e-6

    def _precondition(self, single: bool) -> Precondition:
        s, rows = self.systems, self.products.rows
        preconditioner = s.preconditioners.choose(
            float(self.shift.min()), float(self.tol.min()), single, hold=rows is None, shifts=len(self.groups)
        )
        floor = max(float(preconditioner.left.mean()), 10 * rounding(s.products))
        ways = []
        for columns in self.groups:
            shift = np.maximum(self.shift[:, columns[0]], floor)
            if rows is not None:
                everyone = np.full(s.products.n, np.inf)
                everyone[rows] = shift
                shift = everyone
            ways.append((columns, preconditioner.inverse(shift, rows)))
        if len(ways) == 1:
            return lambda V, _: ways[0][1](V)

        def each(V: np.ndarray, active: np.ndarray) -> np.ndarray:
            out = np.empty_like(V)
            for columns, way in ways:
                at = np.isin(active, columns)
                if at.any():
                    out[:, at] = way(V[:, at])
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


def _same(a: tuple[Any, np.ndarray], b: tuple[Any, np.ndarray]) -> bool:
    rows = (a[0] is None) == (b[0] is None) and (a[0] is None or np.array_equal(a[0], b[0]))
    return bool(rows and np.array_equal(a[1], b[1]))
