"""Kernels on bags of points: sums and means of a kernel over all pairs of their elements."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from mercer.kernels.base import Kernel, kernel
from mercer.kernels.proof import Proof
from mercer.points import Pair, Points
from mercer.points.sets.bags import bagged, counts

Kind = Literal["mean", "sum"]


@kernel
class SetKernel(Kernel):
    r"""The kernel of two bags of points, from one of their elements.

    .. math:: k(A, B) = \frac{1}{|A| |B|} \sum_{a, b} k_0(a, b), \quad a \text{ in } A, b \text{ in } B

    It is the inner product of the mean embeddings of A and B in the space of the base kernel (Gärtner, Flach, Kowalczyk
    and Smola, 2002): bags are compared as samples of a law are. An empty bag has the value 0 with every other.

    Parameters
    ----------
    base
        :math:`k_0`, the kernel of the elements. What it takes from data ("auto", "median") it takes from the elements
        of all bags together.
    kind
        "mean", or "sum" for the sum without the factor in front, which grows with the bags.

    Notes
    -----
    A bag is a matrix with one row per element, of any number of rows, or a list of other objects that the base kernel
    compares. The elements of all bags are stacked once; their kernel values are summed a tile at a time. For the number
    of common elements of Python sets see `Intersection`, for their share `Tanimoto`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, Delta, SetKernel
    >>> SetKernel(RBF(scale=1.0))([np.array([[0.0], [1.0]]), np.array([[1.0]])]).round(4)
    array([[0.8033, 0.8033],
           [0.8033, 1.    ]])
    >>> SetKernel(Delta(), kind="sum")([["to", "be", "or", "not", "to", "be"], ["to", "do"], []])
    array([[10.,  2.,  0.],
           [ 2.,  2.,  0.],
           [ 0.,  0.,  0.]])
    """

    base: Kernel
    kind: Kind = "mean"

    def _validate(self) -> None:
        if not isinstance(self.base, Kernel):
            raise TypeError(f"base of SetKernel must be a kernel of the elements, such as RBF(); it is {self.base!r}.")
        if self.kind not in get_args(Kind):
            raise ValueError(f"kind of SetKernel must be 'mean' or 'sum'; it is {self.kind!r}.")

    def of(self, pair: Pair) -> Any:
        seen = pair.through(bagged)
        total = seen.sums(self.base.of)
        return total if self.kind == "sum" else seen.outer(_inverse_counts) * total

    def _seen(self, points: Points) -> Points:
        elements: Points | None = points.through(bagged).data.elements
        if elements is None:
            raise ValueError(
                f"all bags of {points.name} are empty, and {self.base!r} takes a parameter from their elements; set it."
            )
        return elements

    def _proof(self) -> Proof:
        return self._rule(
            "mean embedding",
            f"the inner product of the {self.kind}s of k0(a, .) over A and of k0(b, .) over B, in the space of k0.",
            self.base,
        )


def _inverse_counts(points: Points) -> np.ndarray:
    """1 / |A|, and 0 for an empty bag."""
    size = points.values(counts)
    return np.divide(1.0, size, out=np.zeros(len(size)), where=size > 0)
