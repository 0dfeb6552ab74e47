"""Kernels of what nodes hear from their neighbours: the propagation kernel, and a Wasserstein kernel of attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mercer.kernels.base import Kernel, check_integer, check_number, kernel
from mercer.kernels.graphs.union import CountKernel, GraphKernel, Union, check_bool, united
from mercer.kernels.vectors.laplacian import Laplacian
from mercer.points import Pair, Points
from mercer.points.sets.named import bags, mixed, names, paired


@kernel
class Propagation(CountKernel):
    r"""The propagation kernel: nodes whose surroundings fall into one bin (Neumann et al., 2016).

    .. math:: k(G, G') = \frac{1}{L} \sum_{l=1}^{L} \sum_{t=0}^{h} \sum_{v \in G} \sum_{v' \in G'}
              1[b_{l,t}(v) = b_{l,t}(v')],
              \qquad b_{l,t}(v) = \Bigl\lfloor \frac{\langle u_l, p_t(v) \rangle + o_{l,t}}{w} \Bigr\rfloor

    p_0(v) is all mass on the label of v, and p_{t+1}(v) the mean of p_t over the neighbours of v (p_t(v) where there
    are none). The entries of u_l follow Cauchy's law, so that the more likely two nodes share a bin, the smaller the
    total variation between their distributions; o_{l,t} is uniform on [0, w].

    Parameters
    ----------
    h
        The number of rounds.
    width
        w, of the bins.
    attributes
        Whether nodes must also share a bin of their attributes, which are propagated alike; there u_l is normal, for
        Euclidean distances. Standardise attributes first.
    draws
        L, the number of hash functions.
    seed
        Which hash functions: they are drawn once and for all.

    Examples
    --------
    >>> from mercer import Graph, Propagation
    >>> X = [Graph([(0, 1)], ["C", "O"]), Graph([(0, 1), (1, 2)], ["C", "C", "C"])]
    >>> Propagation(h=1, width=1e-3)(X)
    array([[ 4.,  6.],
           [ 6., 18.]])
    """

    h: int = 3
    width: float = 1e-5
    attributes: bool = False
    draws: int = 1
    seed: int = 0
    _fixed = ("width",)

    _because = "feature map", "the inner product of counts of nodes by bin; the hash functions are fixed."

    def _validate(self) -> None:
        for name, low in (("h", 0), ("draws", 1), ("seed", 0)):
            check_integer(self, name, getattr(self, name), low)
        check_number(self, "width", self.width)
        check_bool(self, "attributes", self.attributes)

    @property
    def _map(self) -> Binned:
        return Binned(int(self.h), float(self.width), bool(self.attributes), int(self.draws), int(self.seed))


@dataclass(frozen=True)
class Binned:
    """How many nodes fall into each bin, in all rounds, for all hash functions."""

    h: int
    width: float
    attributes: bool
    draws: int
    seed: int

    def __call__(self, points: Points) -> Any:
        union = united(points)
        columns = [names(bins) for draw in range(self.draws) for bins in self._rounds(union, draw)]
        values = np.full(len(columns) * int(union.starts[-1]), self.draws**-0.5)
        return bags(np.column_stack(columns).ravel(), union.starts * len(columns), values)

    def _rounds(self, union: Union, draw: int) -> list[np.ndarray]:
        """Return the bins of all nodes in rounds 0 to h under one hash function."""
        rng = np.random.default_rng((self.seed, draw))
        offsets = rng.uniform(0.0, self.width, size=(self.h + 1, 2))
        salt = rng.integers(0, 2**63, dtype=np.uint64)
        along = [_cauchy(mixed(union.labels ^ salt))]
        if self.attributes:
            along.append(union.attributes @ rng.normal(size=union.attributes.shape[1]))
        rounds = []
        for t in range(self.h + 1):
            bins = np.full(len(along[0]), draw * (self.h + 1) + t, dtype=np.uint64)
            for side, values in enumerate(along):
                cell = np.floor((values + offsets[t, side]) / self.width) + 0.0  # which turns -0 into 0
                bins = paired(bins, cell.view(np.uint64))
            rounds.append(bins)
            along = [union.mean @ values for values in along]
        return rounds


def _cauchy(hashes: np.ndarray) -> np.ndarray:
    """Return numbers that follow Cauchy's law, one and the same for equal hashes."""
    uniform = (hashes >> np.uint64(12)).astype(np.float64) * 2.0**-52 + 2.0**-53
    return np.tan(np.pi * (uniform - 0.5))


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
        values = np.zeros((len(union), self.quantiles, self.directions))
        for i, (start, end) in enumerate(zip(union.starts, union.starts[1:])):
            if end > start:
                rank = np.minimum((share * (end - start)).astype(np.int64), end - start - 1)
                values[i] = np.sort(along[start:end], axis=0)[rank]
        quantiles = values.reshape(len(union), -1) / (self.quantiles * self.directions)
        # Columns of zeros, by whose number graphs with more or fewer attributes are told apart.
        return np.concatenate([quantiles, np.zeros((len(union), nodes.shape[1]))], axis=1)


def surroundings(union: Union, h: int) -> np.ndarray:
    """Return the attributes of all nodes after 0 to h rounds of averaging with their neighbours, side by side."""
    rounds = [union.attributes]
    for _ in range(h):
        rounds.append((rounds[-1] + union.mean @ rounds[-1]) / 2)
    return np.concatenate(rounds, axis=1)
