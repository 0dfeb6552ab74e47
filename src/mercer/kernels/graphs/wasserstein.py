"""A Wasserstein kernel on graphs with attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mercer.kernels.base import Kernel, check_integer, check_number, kernel
from mercer.kernels.graphs.union import GraphKernel, Union, united
from mercer.kernels.vectors.laplacian import Laplacian
from mercer.points import Pair, Points


@kernel
class WLSlicedWasserstein(GraphKernel):
    r"""The Laplacian kernel of sliced Wasserstein distances between the attributes of nodes and their surroundings.

    .. math:: k(G, G') = \exp\Bigl(-\frac{1}{s} \frac{1}{L Q} \sum_{l=1}^{L} \sum_{q=1}^{Q}
              \bigl| F^{-1}_{G,l}(\tfrac{2q-1}{2Q}) - F^{-1}_{G',l}(\tfrac{2q-1}{2Q}) \bigr| \Bigr)

    A node is the vector of its attributes and those of the next h rounds: x^{t+1}_v is the mean of x^t_v and the mean
    of x^t over the neighbours of v. F^{-1}_{G,l} is the quantile function of the nodes of G along the l-th of L fixed
    directions, so that the sum is the mean over directions of the Wasserstein distance on a line.

    Parameters
    ----------
    h
        The number of rounds.
    scale
        s: a number, or "median" for the median distance of the points it is fitted to.
    directions
        L.
    quantiles
        Q.
    seed
        Which directions: unit vectors that are drawn at random once and for all.

    Notes
    -----
    The kernel of Togninalli et al. (2019) has the Wasserstein distance in space in its place, for which no proof of
    positive semidefiniteness is known; along lines it is an L1 distance of quantile functions, and there is one
    (Kolouri, Zou and Rohde, 2016). Standardise attributes first. A graph without nodes has 0 for all its quantiles.

    Examples
    --------
    >>> from mercer import Graph, WLSlicedWasserstein
    >>> X = [Graph([(0, 1)], attributes=[[0.0], [1.0]]), Graph([(0, 1)], attributes=[[2.0], [1.0]])]
    >>> WLSlicedWasserstein(h=0, scale=1.0)(X).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    h: int = 1
    scale: float | Literal["median"] = "median"
    directions: int = 100
    quantiles: int = 20
    seed: int = 0

    _because = (
        "pull-back",
        "a Laplacian kernel of the graph's quantiles along fixed directions, which are finitely many.",
    )

    def _validate(self) -> None:
        for name, low in (("h", 0), ("directions", 1), ("quantiles", 1), ("seed", 0)):
            check_integer(self, name, getattr(self, name), low)
        if self.scale != "median":
            check_number(self, "scale", self.scale)

    @property
    def _map(self) -> Quantiles:
        return Quantiles(int(self.h), int(self.directions), int(self.quantiles), int(self.seed))

    def of(self, pair: Pair) -> Any:
        return Laplacian(self.scale).of(pair.through(self._map))

    def _resolve(self, points: Points) -> Kernel:
        return self.replace(scale=Laplacian("median")._median_scale(points.through(self._map)))


@dataclass(frozen=True)
class Quantiles:
    """Quantiles of the nodes of graphs along random directions, divided by their number."""

    h: int
    directions: int
    quantiles: int
    seed: int

    def __call__(self, points: Points) -> np.ndarray:
        union = united(points)
        nodes = surroundings(union, self.h)
        lines = np.random.default_rng(self.seed).normal(size=(self.directions, nodes.shape[1]))
        lines /= np.linalg.norm(lines, axis=1, keepdims=True)
        along = nodes @ lines.T
        share = (np.arange(self.quantiles) + 0.5) / self.quantiles
        found = np.zeros((len(union), self.quantiles, self.directions))
        for i, (start, end) in enumerate(zip(union.starts, union.starts[1:])):
            if end > start:
                rank = np.minimum((share * (end - start)).astype(np.int64), end - start - 1)
                found[i] = np.sort(along[start:end], axis=0)[rank]
        quantiles = found.reshape(len(union), -1) / (self.quantiles * self.directions)
        # Columns of zeros, by whose number graphs with more or fewer attributes are told apart.
        return np.concatenate([quantiles, np.zeros((len(union), nodes.shape[1]))], axis=1)


def surroundings(union: Union, h: int) -> np.ndarray:
    """Return the attributes of all nodes after 0 to h rounds of averaging with their neighbours, side by side."""
    rounds = [union.attributes]
    for _ in range(h):
        rounds.append((rounds[-1] + union.mean @ rounds[-1]) / 2)
    return np.concatenate(rounds, axis=1)
