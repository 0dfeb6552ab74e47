"""The choice of a preconditioner, by a model of what it costs and what it saves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import sparse

from mercer.gram.factor import PivotedCholesky
from mercer.gram.matrix import KernelMatrix
from mercer.solvers.systems.preconditioners.low_rank import Inverse, LowRank
from mercer.solvers.systems.preconditioners.neighbours import Neighbours
from mercer.solvers.systems.preconditioners.polynomials import Polynomials, refine_leading, replace_rows

_SPARE_ROWS = 256  # of the factor at most, kept for what products show later
_NEIGHBOUR_POINTS = 20_000  # points from which on their neighbours are looked for
_ROWS_BESIDE_NEIGHBOURS = 1_024  # of the factor at most, where neighbours do the rest
_FLAT_SPECTRUM = 0.9  # of the trace of K: if so many rows leave less, more rows do more than neighbours
_POLYNOMIAL_POINTS = 50_000  # points from which on polynomials are tried in the place of pivots
_MOST_POLYNOMIALS, _POINTS_PER_POLYNOMIAL = 2_048, 64  # the latter at least
_POLYNOMIALS_LEAVE = 0.5  # of the squares that pivots leave, at most: else they are not worth their cost
_EXACT_POLYNOMIALS = 8  # for which a product with K says what it does
_BUDGET_SHARE = 0.75  # of the budget, for a factor and neighbours
_BYTES_PER_ENTRY = 48  # of R R': its copies while it is added up, lifted and factorised
_FIRST_BLOCK, _LARGEST_BLOCK = 64, 512  # pivots drawn at once
_FACTOR_PATIENCE = 1.5  # times the cost of a factor that conjugate gradients may have before it is preferred
# Per second, on one core of an ordinary machine: what matters is how they compare, and that a run can be repeated.
_PAIRS = {True: 2.5e9, False: 1.2e9}  # kernel values in float32 or float64 of a product with the symmetric matrix
_COLUMN_PAIRS = {True: 0.6e9, False: 0.3e9}  # ... of whole columns, which are written to memory
_FLOPS = {True: 6e10, False: 2e10}  # in float32 or float64
_BYTES = 5e9  # of memory read or written
_BAND_BYTES = 12e9  # of held bands, which are read in order
_FRESH = 1.5e-9  # seconds for a byte of memory that was not in use before


class Preconditioner(Protocol):
    """An approximation of K of which K + D inherits an approximate inverse.

    Attributes
    ----------
    left
        The diagonal of K that the approximation leaves out.
    learns
        Whether `learn` makes anything of products with K.
    """

    learns: bool

    @property
    def left(self) -> np.ndarray: ...

    def inverse(self, shift: np.ndarray, rows: np.ndarray | None = None, slack: float = 0.0) -> Inverse:
        """Return the function V -> about (K + D)^-1 V with D = diag(shift).

        Parameters
        ----------
        shift
            One positive number per point of K; infinite for those that take no part.
        rows
            The points of which V consists; None for all.
        slack
            The relative error that 1 / D may have, beside 1 / shift, to save time.
        """

    def seconds(self, costs: Costs, steps: float) -> float:
        """Return about how long it takes to be made and to be used in so many steps."""

    def learn(self, W: np.ndarray, KW: np.ndarray) -> int:
        """Learn from the products K W; return the number of directions learned."""


class Preconditioners:
    """The preconditioner of one kernel matrix. It grows with the precision that is asked for.

    A factor of randomly pivoted columns. Where points are many and that leaves much, polynomials take its place if
    they leave less, and nearest points serve for the rest.

    Parameters
    ----------
    matrix
        K; its budget bounds the memory.
    rank
        Of the low-rank part; None to weigh its cost against the products it saves.
    """

    def __init__(self, matrix: KernelMatrix, rank: int | None) -> None:
        self.matrix, self.rank = matrix, rank
        self.forget()

    def forget(self) -> None:
        """Give the memory back."""
        self._low_rank: LowRank | None = None
        self._neighbours: Neighbours | None = None
        self._flat = False  # whether the low-rank part leaves so much that neighbours do the rest

    def choose(self, shift: float, tol: float, single: bool, *, hold: bool = True, shifts: int = 1) -> Preconditioner:
        """Return a preconditioner of K + D.

        Parameters
        ----------
        shift
            The smallest entry of D.
        tol
            The relative residual that is asked for.
        single
            Whether float32 will do.
        hold
            Whether all points take part: K's values may be held where so many products are faster with them.
        shifts
            The number of different D.
        """
        n, costs = self.matrix.n, Costs.of(self.matrix, single)
        if self._low_rank is None or (self._low_rank.factor.single and not single):
            self.forget()
            room = _rank_within(self.matrix.gram.budget // 3, n * (4 if single else 8))
            spare = min(_SPARE_ROWS, room // 8)
            most = self.rank or max(1, min(n, room - spare))
            self._low_rank = LowRank(PivotedCholesky(self.matrix, most, single, spare=spare))
        factor = self._low_rank.factor
        if not self._flat and single and self._crowded:
            rows = min(self.rank or _ROWS_BESIDE_NEIGHBOURS, _ROWS_BESIDE_NEIGHBOURS)
            grow(factor, shift, tol, rows, costs)
            self._flat = factor.trace >= _FLAT_SPECTRUM * float(self.matrix.diagonal().sum())
            if self._flat and self._replaced(factor):
                self._low_rank = LowRank(factor)
        if not self._flat:
            grow(factor, shift, tol, self.rank, costs)
        if hold and single and costs.worth_holding(steps(factor.largest, shift, tol)):
            self.matrix.hold_half()
        if not self._flat or not hold or shifts > 1 or self.matrix.kept:
            return self._low_rank
        if self._neighbours is None:
            self._neighbours = Neighbours(self._low_rank, self.matrix)
        return self._neighbours

    def dearer_than_a_factor(self, matrix: KernelMatrix, count: float, single: bool) -> bool:
        """Return whether so many steps of conjugate gradients cost more than a factor: by the model, not by a clock."""
        costs = Costs.of(matrix, single)
        chosen = self._neighbours or self._low_rank
        seconds = costs.run(0, count) if chosen is None else chosen.seconds(costs, count)
        return seconds > _FACTOR_PATIENCE * costs.factor()

    @property
    def description(self) -> str:
        """What it is, for the plan of a fit."""
        rest = "polynomials and nearest points" if self.matrix.n >= _POLYNOMIAL_POINTS else "nearest points"
        more = f", and by {rest} where that leaves much" if self._crowded else ""
        return f"a randomly pivoted Cholesky factor{more}"

    @property
    def _crowded(self) -> bool:
        """Whether points are so many that products with K take most of the time."""
        n, budget, rows = self.matrix.n, self.matrix.gram.budget, _ROWS_BESIDE_NEIGHBOURS + _SPARE_ROWS
        room = Neighbours.bytes(n, rows) + 4 * n * rows <= _BUDGET_SHARE * budget
        return n >= _NEIGHBOUR_POINTS and self.matrix.single and not fits_half(n, budget) and room

    def _replaced(self, factor: PivotedCholesky) -> bool:
        """Take polynomials in the place of pivots where they show more of the kernel; return whether they do."""
        n = self.matrix.n
        fixed = Neighbours.bytes(n, 0)
        each = 4 * n + Neighbours.bytes(n, 1) - fixed
        room = int((_BUDGET_SHARE * self.matrix.gram.budget - fixed) // each)
        rank = min(self.rank or _MOST_POLYNOMIALS, _MOST_POLYNOMIALS, n // _POINTS_PER_POLYNOMIAL, factor.most, room)
        if rank < 1 or n < _POLYNOMIAL_POINTS or not Polynomials.applies_to(self.matrix):
            return False
        polynomials = Polynomials(self.matrix, rank)
        if polynomials.leaves(factor) > _POLYNOMIALS_LEAVE:
            return False
        replace_rows(factor, polynomials.rank, polynomials.rows)
        refine_leading(factor, self.matrix, min(polynomials.rank, _EXACT_POLYNOMIALS))
        return True


def _rank_within(size: int, row: int) -> int:
    """Return the largest rank r of a factor that, with its r x r matrices, fits into some bytes."""
    return int(2 * size / (row + math.sqrt(row * row + 4 * _BYTES_PER_ENTRY * size)))


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
    def of(cls, matrix: KernelMatrix, single: bool) -> Costs:
        """Return the costs for a kernel matrix."""
        n = matrix.n
        if matrix.held is not None:
            product, column = matrix.held.itemsize * n * n / _BYTES, 4.0 * n / _BYTES
        else:
            points = matrix.gram.left
            width = points.width if points.numeric and not sparse.issparse(points.vectors) else 100
            slower = 0.5 + width / 40 if matrix.gram.compiled else 100.0
            product, column = slower * n * n / _PAIRS[single], slower * n / _COLUMN_PAIRS[single]
            if single and matrix.gram.compiled and fits_half(n, matrix.gram.budget):
                triangle = 2 * n * n
                return cls(n, single, product, column, triangle / _BAND_BYTES, product + _FRESH * triangle)
        return cls(n, single, product, column)

    def build(self, rank: int) -> float:
        """Return the seconds to make a factor of that rank, ready to be inverted."""
        return rank * self.column + (2.2 * self.n * rank**2 + rank**3 / 3) / _FLOPS[self.single]

    def run(self, rank: int, steps: float) -> float:
        """Return the seconds of so many steps of conjugate gradients."""
        apply = 2.0 * self.n * rank * (4 if self.single else 8) / _BYTES
        return steps * apply + min(steps * self.product, self.hold + steps * self.held)

    def groups(self, flops: float, size: float, steps: float) -> float:
        """Return the seconds of so many operations at first, and to read so many bytes twice in each step."""
        return flops / _FLOPS[self.single] + 2.0 * steps * size / _BYTES

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
    """Estimate the steps of conjugate gradients from the largest eigenvalue that is left of K."""
    return 2.0 + 0.5 * math.sqrt(1.0 + largest / max(shift, 1e-300)) * math.log(2.0 / min(tol, 0.1))


def grow(factor: PivotedCholesky, shift: float, tol: float, rank: int | None, costs: Costs) -> None:
    """Add columns to a factor while that is cheaper than the steps it saves.

    Parameters
    ----------
    factor
        Perhaps grown before.
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
        while factor.rank < rank and not factor.exhausted:
            factor.grow(min(_LARGEST_BLOCK, rank - factor.rank))
        return
    known: list[tuple[int, float]] = []
    while not factor.exhausted:
        r, largest = factor.rank, factor.largest
        if r:
            larger = int(1.3 * r) + 1
            now = costs.build(r) + costs.run(r, steps(largest, shift, tol))
            left = largest * (r / larger) ** _slope(known, r, largest)
            if costs.build(larger) + costs.run(larger, steps(left, shift, tol)) > 0.99 * now:
                return
            known.append((r, largest))
        factor.grow(min(max(_FIRST_BLOCK, r // 3), _LARGEST_BLOCK))


def _slope(known: list[tuple[int, float]], rank: int, largest: float) -> float:
    """Return the power of the rank with which the largest eigenvalue falls: at least 1, which no spectrum misses."""
    earlier = [k for k in known if k[0] <= 0.6 * rank and k[1] > largest]
    if not earlier:
        return 1.0
    r, before = earlier[-1]
    return max(1.0, math.log(before / max(largest, 1e-300)) / math.log(rank / r))
