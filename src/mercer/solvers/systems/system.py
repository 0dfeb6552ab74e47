"""Equations with the kernel matrix of the training points: one interface, whichever way they are solved."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from mercer.gram import Gram
from mercer.gram.products import Products
from mercer.machine.budget import readable
from mercer.solvers.control import Control
from mercer.solvers.systems.cholesky import Factor
from mercer.solvers.systems.equation import SINGLE, Answer, Equation, Listener
from mercer.solvers.systems.neighbours import Neighbours
from mercer.solvers.systems.pivoted import Pivoted
from mercer.solvers.systems.polynomials import Polynomials

__all__ = ["METHODS", "Answer", "Systems"]

METHODS = ("auto", "cholesky", "cg")
_LEARNED = 256  # rows of the factor at most that are kept for what products show later
_HARMLESS = 1e-2  # error of a coarse kernel value, in units of the shift
_MANY = 20_000  # points from which on their neighbours are looked for
_BESIDE = 1_024  # rows of the factor at most, where neighbours do the rest
_SO_MANY = 50_000  # points from which on polynomials are tried in the place of pivots
_LESS = 0.5  # of the squares that pivots leave: if polynomials leave more they are not worth their cost
_FUNCTIONS, _EACH = 2_048, 64  # polynomials at most, and points for each of them at least
_SETTLED = 8  # of these, for which a product with K says what it does
_SHARE = 0.75  # of the budget, for both
_INNER = 48  # bytes for each entry of R R': its copies while it is added up, lifted and factorised
_RESTS = 0.9  # of the trace of K: if the factor leaves less, more rows do more than neighbours
_DENSE = 4_000  # points up to which a factor is cheaper than finding out how good a preconditioner is
# Per second, on one core of an ordinary machine: what matters is how they compare, and that a run can be repeated.
_PAIRS = {True: 2.5e9, False: 1.2e9}  # kernel values in float32 or float64 of a product with the symmetric matrix
_COLUMN_PAIRS = {True: 0.6e9, False: 0.3e9}  # ... of whole columns, which are written to memory
_FLOPS = {True: 6e10, False: 2e10}
_BYTES = 5e9
_HELD = 12e9  # bytes of held bands, which are read in order
_FRESH = 1.5e-9  # seconds for a byte of memory that was not in use before
_FIRST, _LARGEST = 64, 512  # pivots drawn at once
_PATIENCE = 1.5  # times the cost of a factor that conjugate gradients may have before it is preferred


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
        self.gram, self.control, self.rank = gram, control, rank
        self.products = Products(gram)
        if control.precision == "float64":
            self.products.single = False
        n = gram.shape[0]
        self.automatic = method == "auto"
        self.fits = 8 * n * n <= gram.budget
        self.method = method if method != "auto" else "cholesky" if n <= _DENSE and self.fits else "cg"
        self.plan = self._explain(n)
        self.buffer: np.ndarray | None = None
        self.factor: tuple[Any, Factor] | None = None
        self.pivoted: Pivoted | None = None
        self._spread: Pivoted | None = None  # the factor that leaves so much that points matter
        self._neighbours: Neighbours | None = None
        if not gram.compiled:
            self._hold()

    def _explain(self, n: int) -> str:
        if self.method == "cholesky":
            return (
                f"Cholesky factor of the {n} x {n} matrix, {readable(8 * n * n)}: "
                + ("few points" if n <= _DENSE else "as asked")
                + (", in float32 with corrections in float64" if self.products.single and n >= SINGLE else "")
            )
        rest = "polynomials and nearest points" if n >= _SO_MANY else "nearest points"
        more = f", and by {rest} where that leaves much" if self._crowded else ""
        why = "as asked" if not self.automatic else "many points" if self.fits else "a factor exceeds the budget"
        return (
            f"conjugate gradients on {n} points, preconditioned by a randomly pivoted Cholesky factor{more} ({why}; "
            f"a dense factor would take {readable(8 * n * n)}, the budget is {readable(self.gram.budget)})"
        )

    def _hold(self) -> None:
        """Keep the values that only Python can compute, as exactly as fits beside what else is needed."""
        n = self.gram.shape[0]
        beside = 8 * n * n if self.method == "cholesky" else n * n
        for dtype in (np.float64, np.float32):
            if np.dtype(dtype).itemsize * n * n + beside <= self.gram.budget:
                self.products.hold(dtype)
                self.plan += f"; the kernel's values are held in {np.dtype(dtype).name}"
                return

    def low_rank(self, shift: float, tol: float, single: bool, hold: bool = True) -> Pivoted:
        """Return a factor R'R of about K for equations with such a shift, grown while that is worth it.

        Parameters
        ----------
        shift
            The smallest of the diagonal that is added to K.
        tol
            The relative residual that is asked for.
        single
            Whether float32 will do.
        hold
            Whether to keep K's values, too, where so many products are faster with them.
        """
        n = self.products.n
        if self.pivoted is None or (self.pivoted.single and not single):
            room = _rank_within(self.gram.budget // 3, n * (4 if single else 8))
            spare = min(_LEARNED, room // 8)
            self.pivoted = Pivoted(self.products, self.rank or max(1, min(n, room - spare)), single, spare=spare)
        costs = Costs.of(self.products, single)
        if self._spread is not self.pivoted and single and self._crowded:
            grow(self.pivoted, shift, tol, min(self.rank or _BESIDE, _BESIDE), costs)
            if self.pivoted.trace >= _RESTS * float(self.products.diagonal().sum()):
                self._spread = self.pivoted
                self._sharpen(self.pivoted)
        if self._spread is not self.pivoted:
            grow(self.pivoted, shift, tol, self.rank, costs)
        if hold and single and costs.worth_holding(steps(self.pivoted.largest, shift, tol)):
            self.products.hold_half()
        return self.pivoted

    def dearer_than_a_factor(self, products: Products, count: int, single: bool) -> bool:
        """Return whether so many steps of conjugate gradients cost more than a factor: by the model, not by a clock."""
        costs, rank = Costs.of(products, single), self.pivoted.rank if self.pivoted is not None else 0
        return costs.build(rank) + costs.run(rank, count) > _PATIENCE * costs.factor()

    def _sharpen(self, pivoted: Pivoted) -> None:
        """Take polynomials in the place of pivots where they show more of a kernel that is spread so much."""
        n = self.products.n
        beside = Neighbours.bytes(n, 0)
        each = 4 * n + Neighbours.bytes(n, 1) - beside
        room = int((_SHARE * self.gram.budget - beside) // each)
        rank = min(self.rank or _FUNCTIONS, _FUNCTIONS, n // _EACH, pivoted.most, room)
        if rank < 1 or n < _SO_MANY or not Polynomials.applies_to(self.products):
            return
        found = Polynomials(self.products, rank)
        if found.leaves(pivoted) <= _LESS:
            pivoted.replace(found.rank, found.rows)
            pivoted.settle(min(found.rank, _SETTLED))

    def nearby(self, pivoted: Pivoted) -> Neighbours | None:
        """Return what is to be made of the rest of K by its nearest points; None where that does not pay.

        Parameters
        ----------
        pivoted
            The low-rank part.
        """
        if self._spread is not pivoted or self.products.kept:
            return None
        if self._neighbours is None or self._neighbours.pivoted is not pivoted:
            self._neighbours = Neighbours(pivoted)
        return self._neighbours

    @property
    def _crowded(self) -> bool:
        """Whether there are so many points that products with K are what takes the time."""
        n, budget = self.products.n, self.gram.budget
        room = Neighbours.bytes(n, _BESIDE + _LEARNED) + 4 * n * (_BESIDE + _LEARNED) <= _SHARE * budget
        return n >= _MANY and self.products.single and not fits_half(n, budget) and room

    @contextmanager
    def coarsely(self, shift: float) -> Iterator[None]:
        """Let products in float32 be coarser still, where that is faster and does no harm beside such a shift."""
        products = self.products
        if products.single and products.held is None and products.coarse is not None:
            size = float(np.abs(products.diagonal()).max())
            products.use_coarse = products.coarse.error * size <= _HARMLESS * shift
        try:
            yield
        finally:
            products.use_coarse = False

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
        single = not precise and (self.products.single or self.products.held is not None)
        return self.products(V.reshape(len(V), -1), single).reshape(V.shape)

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
            A nearby solution, as Y.
        watch
            Called during a long run with the products so far, the relative residuals of the columns still at work,
            their numbers, and the solution so far; what it returns ends the run.
        strict
            Whether to raise `Singular` where the matrix is that to rounding, rather than to take the solution of least
            norm.
        """
        products = self.products.take(rows)
        m = products.n
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
        run = Equation(self, products, S, B / size, np.broadcast_to(tol, size.shape), A, size, watch, strict)
        try:
            answer = run.dense() if self.method == "cholesky" else run.iterative()
        except KeyboardInterrupt:
            self.control.cancel()
            answer = run.interrupted()
        with np.errstate(over="ignore"):
            found = answer.A * size
        if not np.isfinite(found).all():
            raise FloatingPointError(
                "the solution exceeds the range of float64; scale the right-hand side, or raise the shift."
            )
        return replace(answer, A=found.reshape(Y.shape), product=(answer.product * size).reshape(Y.shape))


def _rank_within(size: int, row: int) -> int:
    """Return the largest rank r of a factor whose rows and r x r matrices take no more than some bytes."""
    return int(2 * size / (row + math.sqrt(row * row + 4 * _INNER * size)))


# -- the rank of a preconditioner, by its costs -----------------------------------------------------------


@dataclass(frozen=True)
class Costs:
    """Seconds that a product with K, a column of K and a step of its factor take, roughly."""

    n: int
    single: bool
    product: float
    column: float
    held: float = math.inf  # a product with held bands
    hold: float = 0.0  # computing them

    @classmethod
    def of(cls, products: Products, single: bool) -> Costs:
        """Return the costs for a kernel matrix."""
        n = products.n
        if products.held is not None:
            product, column = products.held.itemsize * n * n / _BYTES, 4.0 * n / _BYTES
        else:
            points = products.gram.left
            width = points.width if points.numeric and not sparse.issparse(points.vectors) else 100
            slower = 0.5 + width / 40 if products.gram.compiled else 100.0
            product, column = slower * n * n / _PAIRS[single], slower * n / _COLUMN_PAIRS[single]
            if single and products.gram.compiled and fits_half(n, products.gram.budget):
                triangle = 2 * n * n
                return cls(n, single, product, column, triangle / _HELD, product + _FRESH * triangle)
        return cls(n, single, product, column)

    def build(self, rank: int) -> float:
        """Return the seconds to make a factor of that rank and what its inverse needs."""
        return rank * self.column + (2.2 * self.n * rank**2 + rank**3 / 3) / _FLOPS[self.single]

    def run(self, rank: int, steps: float) -> float:
        """Return the seconds of so many steps of conjugate gradients."""
        apply = 2.0 * self.n * rank * (4 if self.single else 8) / _BYTES
        return steps * apply + min(steps * self.product, self.hold + steps * self.held)

    def factor(self) -> float:
        """Return the seconds to compute the whole matrix in float64 and to factorise it."""
        return self.n * self.column + 8 * _FRESH * self.n**2 + self.n**3 / 3 / _FLOPS[False]

    def worth_holding(self, steps: float) -> bool:
        """Return whether so many products are faster with held bands."""
        return self.hold + steps * self.held < steps * self.product


def fits_half(n: int, budget: int) -> bool:
    """Return whether half of the values of the matrix may be held, in float32."""
    return 2 * n * n <= budget // 3


def steps(largest: float, shift: float, tol: float) -> float:
    """Return about how many steps of conjugate gradients it takes, by the largest eigenvalue that is left of K."""
    return 2.0 + 0.5 * math.sqrt(1.0 + largest / max(shift, 1e-300)) * math.log(2.0 / min(tol, 0.1))


def grow(pivoted: Pivoted, shift: float, tol: float, rank: int | None, costs: Costs) -> None:
    """Add columns to a factor while that is cheaper than the steps it saves.

    Parameters
    ----------
    pivoted
        The factor, perhaps grown before.
    shift
        The smallest of the diagonal.
    tol
        The relative residual that is asked for.
    rank
        The rank, where the caller names it.
    costs
        Of this matrix.
    """
    if rank is not None:
        while pivoted.rank < rank and not pivoted.exhausted:
            pivoted.grow(min(_LARGEST, rank - pivoted.rank))
        return
    known: list[tuple[int, float]] = []
    while not pivoted.exhausted:
        r, largest = pivoted.rank, pivoted.largest
        if r:
            larger = int(1.3 * r) + 1
            now = costs.build(r) + costs.run(r, steps(largest, shift, tol))
            left = largest * (r / larger) ** _slope(known, r, largest)
            if costs.build(larger) + costs.run(larger, steps(left, shift, tol)) > 0.99 * now:
                return
            known.append((r, largest))
        pivoted.grow(min(max(_FIRST, r // 3), _LARGEST))


def _slope(known: list[tuple[int, float]], rank: int, largest: float) -> float:
    """Return the power of the rank with which the largest eigenvalue falls: at least 1, which no spectrum misses."""
    earlier = [k for k in known if k[0] <= 0.6 * rank and k[1] > largest]
    if not earlier:
        return 1.0
    r, before = earlier[-1]
    return max(1.0, math.log(before / max(largest, 1e-300)) / math.log(rank / r))
