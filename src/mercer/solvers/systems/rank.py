"""How many columns a preconditioner is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import sparse

from mercer.solvers.systems.pivoted import Pivoted
from mercer.solvers.systems.products import Products

# Per second, on one core of an ordinary machine: what matters is how they compare, and that a run can be repeated.
_PAIRS = {True: 2.5e9, False: 1.2e9}  # kernel values in float32 or float64 of a product with the symmetric matrix
_COLUMN_PAIRS = {True: 0.6e9, False: 0.3e9}  # ... of whole columns, which are written to memory
_FLOPS = {True: 6e10, False: 2e10}
_BYTES = 5e9
_HELD = 12e9  # bytes of held bands, which are read in order
_FRESH = 1.5e-9  # seconds for a byte of memory that was not in use before
_FIRST, _LARGEST = 64, 512  # pivots drawn at once


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
