r"""The first three moments of a permutation statistic, without permuting.

Statistics of samples compared by kernels are inner products <A, P B P'> of two symmetric matrices, one of which has its
rows and columns permuted together. When both have a diagonal of zeros and rows with sum zero, the mean over all
permutations is 0, and the second and third moments are polynomials in sums over the matrices. The reason: the moment is
a sum over graphs of two or three edges, and a sum of products of entries over distinct indices can be reduced one index
at a time, because a row without the entries already used sums to minus those.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

_ROUNDING = 64 * float(np.finfo(np.float64).eps)
# Graphs of three edges: how often one occurs among triples of pairs, its vertices, and the sum over distinct indices of
# the product of its entries, as multiples of the sum of cubes and of the sum over triangles.
_GRAPHS = (
    (4, 2, 1, 0),  # one edge three times
    (24, 3, -1, 0),  # one edge twice, and one at its end
    (6, 4, 2, 0),  # one edge twice, and one apart
    (8, 3, 0, 1),  # a triangle
    (8, 4, 2, 0),  # a star
    (24, 4, 1, -1),  # a path
    (12, 5, -4, 2),  # a path of two, and one apart
    (1, 6, 16, -8),  # three apart
)


def hollow_centred(K: np.ndarray) -> np.ndarray:
    r"""Return K with its diagonal set to zero and its rows and columns shifted to sum zero.

    .. math:: A_{ij} = K_{ij} - \frac{r_i + r_j}{n - 2} + \frac{\sum_k r_k}{(n - 1)(n - 2)} \quad (i \ne j), \qquad
              r_i = \sum_{j \ne i} K_{ij}

    (Szekely and Rizzo 2014, who call it U-centring.) Whatever is within rounding of zero becomes zero.

    Examples
    --------
    >>> import numpy as np
    >>> A = hollow_centred(np.arange(16.0).reshape(4, 4) + np.arange(16.0).reshape(4, 4).T)
    >>> float(np.abs(A).max())
    0.0
    """
    n = len(K)
    A = np.array(K, dtype=np.float64)
    size = float(np.abs(A).max())
    np.fill_diagonal(A, 0.0)
    r = A.sum(axis=1) / (n - 2)
    A -= r[:, None]
    A -= r - r.sum() / (n - 1)
    np.fill_diagonal(A, 0.0)
    return A if np.abs(A).max() > _ROUNDING * size else np.zeros_like(A)


@dataclass(frozen=True)
class Invariants:
    """What the moments need to know of a hollow, centred matrix.

    Parameters
    ----------
    size
        The number of rows.
    squares, cubes
        The sums of the squares and of the cubes of the entries.
    triangles
        The trace of A A A.
    """

    size: int
    squares: float
    cubes: float
    triangles: float

    @classmethod
    def of(cls, A: np.ndarray, third: bool = True) -> Invariants:
        """Read them off a matrix; without `third` only what the second moment needs, the rest is NaN."""
        squares = float(np.vdot(A, A))
        if not third:
            return cls(len(A), squares, math.nan, math.nan)
        return cls(len(A), squares, float(np.vdot(A * A, A)), float(np.vdot(A @ A, A)))


def second(a: Invariants, b: Invariants) -> float:
    r"""Return the mean over all permutations of <A, P B P'>^2.

    .. math:: \frac{2 \sum A_{ij}^2 \sum B_{ij}^2}{n (n - 3)}
    """
    return 2.0 * a.squares * b.squares / (a.size * (a.size - 3))


def third(a: Invariants, b: Invariants) -> float:
    """Return the mean over all permutations of <A, P B P'>^3, for matrices of at least six rows."""
    return sum(
        count * (c * a.cubes + t * a.triangles) * (c * b.cubes + t * b.triangles) / math.perm(a.size, vertices)
        for count, vertices, c, t in _GRAPHS
    )
