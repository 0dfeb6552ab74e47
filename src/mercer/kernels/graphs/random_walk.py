"""The geometric random-walk kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigs, eigsh

from mercer.kernels.base import check_number, kernel
from mercer.kernels.graphs.union import GraphKernel, Union, united
from mercer.points import Pair, Points

_NODES = 10_000  # of one graph: two of them share a matrix with an entry for each pair of nodes
_DENSE = 64  # nodes up to which products with a full adjacency matrix are faster than with a sparse one
_RATIO = 0.99  # of the series, at most: it then has 4,000 terms
_LEFT = 1e-17  # share of the sum that the terms left out may have


@kernel
class RandomWalk(GraphKernel):
    r"""The geometric random-walk kernel: walks with equal labels in both graphs (Gaertner, Flach and Wrobel, 2003).

    .. math:: k(G, G') = \sum_{m \ge 0} \lambda^m \sum_{l = (l_0, \ldots, l_m)} w_l(G) \, w_l(G')

    w_l counts the walks of m edges along which the nodes have these labels, each as the product of the weights of its
    edges. Graphs without labels have one label.

    Parameters
    ----------
    decay
        lambda, up to 0.99 / rho^2 for the largest eigenvalue rho of the adjacency matrices of all graphs: the series
        converges below 1 / rho^2, slowly next to it.

    Notes
    -----
    The series is summed on matrices with an entry for each pair of nodes; their product graph, with an entry for each
    two such pairs, is not formed. Walks repeat themselves: much of the sum goes back and forth between the same nodes.

    Examples
    --------
    >>> from mercer import Graph, RandomWalk
    >>> edge, path = Graph([(0, 1)]), Graph([(0, 1), (1, 2)])
    >>> RandomWalk(decay=0.1)([edge, path]).round(4)
    array([[ 4.4444,  6.9388],
           [ 6.9388, 11.0417]])
    """

    decay: float = 0.01

    _because = "limit", "sums over m <= M are inner products of counts of walks, times decay^m >= 0, and converge."

    def _validate(self) -> None:
        check_number(self, "decay", self.decay, closed=True)

    def of(self, pair: Pair) -> Any:
        return pair.through(Walkers(float(self.decay))).compare(Walks(float(self.decay)))


@dataclass(frozen=True)
class Walker:
    """A graph as walks see it: its adjacency matrix, the hashes of its labels, and its largest eigenvalue."""

    matrix: Any
    labels: np.ndarray
    radius: float

    @property
    def rank(self) -> tuple[Any, ...]:
        """What orders two graphs whichever of them comes first, so that rounding does not depend on it."""
        return len(self.labels), self.radius, self.labels.tobytes()


@dataclass(frozen=True)
class Walkers:
    """Graphs on which the series with this decay converges."""

    decay: float

    def __call__(self, points: Points) -> list[Walker]:
        union = united(points)
        made = [self._walker(union, i, f"{points.name}[{i}]") for i in range(len(union))]
        worst = max(range(len(made)), key=lambda i: made[i].radius)
        largest = made[worst].radius
        if self.decay * largest**2 > _RATIO:
            raise ValueError(
                f"decay of RandomWalk is {self.decay:g}, and at most {_RATIO / largest**2:.6g} is allowed: the series "
                f"converges below the inverse square of the largest eigenvalue of an adjacency matrix, {largest:.6g} "
                f"for {points.name}[{worst}]."
            )
        return made

    def _walker(self, union: Union, i: int, name: str) -> Walker:
        n, first = int(union.sizes[i]), int(union.starts[i])
        if n > _NODES:
            raise ValueError(
                f"{name} has {n:,} nodes; RandomWalk compares each with each of another graph and takes up to "
                f"{_NODES:,}. WeisfeilerLehman takes graphs of any size."
            )
        arcs = union.arcs
        part = slice(int(arcs.starts[first]), int(arcs.starts[first + n]))
        weights = union.weights[arcs.edge[part]]
        if (weights < 0).any():
            raise ValueError(f"{name} has an edge of weight {weights.min():g}; RandomWalk needs weights >= 0.")
        ends = arcs.source[part] - first, arcs.target[part] - first
        matrix = sparse.csr_array((weights, ends), shape=(n, n))
        radius = _radius(matrix, union[i].directed)
        return Walker(matrix.toarray() if n <= _DENSE else matrix, union.labels[first : first + n], radius)


@dataclass(frozen=True)
class Walks:
    """The sums of the series for graphs of two sets."""

    decay: float

    def __call__(self, left: Points, right: Points) -> np.ndarray:
        return np.array([[self._sum(x, z) for z in right.items] for x in left.items])

    def _sum(self, x: Walker, z: Walker) -> float:
        if z.rank < x.rank:
            x, z = z, x
        ratio = self.decay * x.radius * z.radius
        term = (x.labels[:, None] == z.labels).astype(np.float64)
        if not term.size:
            return 0.0
        equal = term * self.decay
        total = last = float(term.sum())
        while last > _LEFT * (1 - ratio) * total:  # each term is at most `ratio` times the one before, in the 2-norm
            term = equal * (z.matrix @ (x.matrix @ term).T).T
            last = float(term.sum())
            total += last
        return total


def _radius(matrix: Any, directed: bool) -> float:
    """Return the largest eigenvalue of a matrix without negative entries, which is also the largest in size."""
    n = matrix.shape[0]
    if not matrix.nnz:
        return 0.0
    if n <= 500:
        values = np.linalg.eigvals(matrix.toarray()) if directed else np.linalg.eigvalsh(matrix.toarray())
    else:
        start = np.ones(n)  # so that the same graph has the same radius
        values = eigs(matrix, 1, v0=start)[0] if directed else eigsh(matrix, 1, v0=start)[0]
    largest = float(np.abs(values).max())
    return largest if math.isfinite(largest) else 0.0
