"""Kernels on sets and fingerprints: what two points share, as a part of what either has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.kernels.base import Kernel, kernel
from mercer.kernels.vectors.histogram import non_negative
from mercer.points import Pair, Points, PointValues
from mercer.points.formulas.pair import squared_norms
from mercer.points.sets.bags import sizes


@kernel
class Tanimoto(Kernel):
    r"""The Tanimoto kernel: the Jaccard index of 0/1 fingerprints and of sets.

    .. math:: k(x, z) = \frac{\langle x, z \rangle}{|x|^2 + |z|^2 - \langle x, z \rangle}

    On Python sets of hashable objects it is :math:`|A \cap B| / |A \cup B|`. Two zero vectors, or two empty sets, have
    the value 1; a zero vector and another one 0.

    Notes
    -----
    Positive semidefinite on all real vectors, negative entries included, and so on 0/1 vectors, for which it was shown
    by Gower (1971) and taken up for molecules by Ralaivola, Swamidass, Saigo and Baldi (2005).

    Examples
    --------
    >>> from mercer.kernels import Tanimoto
    >>> Tanimoto()([[1, 1, 0, 0], [1, 0, 1, 1]])
    array([[1.  , 0.25],
           [0.25, 1.  ]])
    >>> Tanimoto()([{"a", "b"}, {"b", "c", "d"}, set()])
    array([[1.  , 0.25, 0.  ],
           [0.25, 1.  , 0.  ],
           [0.  , 0.  , 1.  ]])
    """

    _because = (
        "limit",
        "1 / (|x|^2 + |z|^2), the integral of exp(-t |x|^2) exp(-t |z|^2) over t, is a kernel, and so is q, its "
        "product with <x, z>; |q| <= 1/2, and k = q / (1 - q) is the limit of q + q^2 + ... (x = 0 is a coordinate of "
        "its own).",
    )

    def of(self, pair: Pair) -> Any:
        return _shared(pair, pair.common, sizes) if pair.sets else _shared(pair, pair.dot, squared_norms)


@kernel
class MinMax(Kernel):
    r"""The min-max kernel, the Jaccard index of non-negative vectors such as counts.

    .. math:: k(x, z) = \frac{\sum_j \min(x_j, z_j)}{\sum_j \max(x_j, z_j)}

    On Python sets it is the Jaccard index, as `Tanimoto` is. Two zero vectors have the value 1.

    Notes
    -----
    The sum of maxima is taken as :math:`\sum_j x_j + \sum_j z_j - \sum_j \min(x_j, z_j)`. The kernel is the
    probability that two consistent samples agree (Ioffe, 2010), also called the Ruzicka similarity.

    Examples
    --------
    >>> from mercer.kernels import MinMax
    >>> MinMax()([[1.0, 2.0], [3.0, 1.0]])
    array([[1. , 0.4],
           [0.4, 1. ]])
    """

    _because = (
        "pull-back",
        "the Tanimoto kernel of the areas below the histograms: min is the integral of 1[t < x_j] 1[t < z_j], and x_j "
        "that of 1[t < x_j]^2 (Ioffe, 2010).",
    )

    def of(self, pair: Pair) -> Any:
        if pair.sets:
            return _shared(pair, pair.common, sizes)
        seen = pair.through(non_negative)
        return _shared(seen, seen.minimum, totals)


def _shared(pair: Pair, shared: Any, size: PointValues) -> Any:
    """Return shared / (size(x) + size(z) - shared), and 1 where both sizes are 0."""
    both_empty = pair.outer(_Empty(size))
    return (shared + both_empty) / (pair.left(size) + pair.right(size) - shared + both_empty)


def totals(points: Points) -> Any:
    """Return the sum of the coordinates of each point."""
    total = points.vectors.sum(axis=1)
    return total if points.foreign else np.asarray(total).ravel()


@dataclass(frozen=True)
class _Empty:
    """1 for points of size 0, and 0 for others."""

    size: PointValues

    def __call__(self, points: Points) -> Any:
        size = points.values(self.size)
        return (size == 0) + size * 0
