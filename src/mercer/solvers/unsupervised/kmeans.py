"""Lloyd's algorithm for points of H, from products of the kernel matrix with the clusters' indicators."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mercer.gram import Gram
from mercer.gram.matrix import KernelMatrix
from mercer.points import Points

_SLACK = 16 * float(np.finfo(float).eps)  # of the lengths involved, by which a centre must be nearer to win a point


@dataclass(frozen=True, eq=False)
class Clusters:
    """A partition and the means of its parts.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        The nearest centre of each point.
    coefficients : ndarray of shape (n, clusters)
        The centres m_c = sum_i U_ic phi(x_i).
    squares : ndarray of shape (clusters,)
        |m_c|^2.
    distances : ndarray of shape (n, clusters)
        The squared distances of the points to the centres.
    inertia : float
        The weighted sum of those to the nearest.
    steps : int
        Assignments made.
    converged : bool
        Whether the last of them changed nothing.
    """

    labels: np.ndarray
    coefficients: np.ndarray
    squares: np.ndarray
    distances: np.ndarray
    inertia: float
    steps: int
    converged: bool


class Lloyd:
    r"""Alternates between nearest centres and means, in the space of a kernel.

    .. math:: \|\phi(x_i) - m_c\|^2 = K_{ii} - 2 (K U)_{ic} + (U^T K U)_{cc}, \qquad
              U_{ic} = w_i [i \in c] / \textstyle\sum_{j \in c} w_j

    After a step only the columns of K are computed whose points have changed sides.

    Parameters
    ----------
    gram
        The kernel matrix of the points. It is held if its budget allows, else computed in tiles for each product.
    clusters
        How many.
    weights
        One positive number per point.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Gram, Linear
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> clusters = Lloyd(Gram(Linear(), X), 2, np.ones(4)).run(np.array([0, 1]), 10, 0.0)
    >>> clusters.labels, float(clusters.inertia)
    (array([0, 0, 1, 1]), 1.0)
    """

    def __init__(self, gram: Gram, clusters: int, weights: np.ndarray) -> None:
        self.matrix = KernelMatrix(gram)
        self.n, self.k, self.weights = gram.shape[0], clusters, weights
        self.matrix.hold(np.float64)
        self.own = self.matrix.diagonal()

    # -- where to start ---------------------------------------------------------------------------------

    def plus_plus(self, rng: np.random.RandomState) -> np.ndarray:
        """Return k-means++ seeds (Arthur and Vassilvitskii 2007), greedy and drawn in the order of scikit-learn."""
        n, k, w = self.n, self.k, self.weights
        trials = 2 + int(math.log(k))
        seeds = np.empty(k, dtype=np.intp)
        seeds[0] = rng.choice(n, p=w / w.sum())
        nearest = self.from_points(seeds[:1])[:, 0]
        total = nearest @ w
        for c in range(1, k):
            drawn = rng.uniform(size=trials) * total
            candidates = np.searchsorted(np.cumsum(w * nearest), drawn).clip(max=n - 1)
            each = np.minimum(nearest[:, None], self.from_points(candidates))
            totals = w @ each
            best = int(np.argmin(totals))
            seeds[c], nearest, total = candidates[best], each[:, best], totals[best]
        return seeds

    def from_points(self, chosen: np.ndarray) -> np.ndarray:
        """Return the squared distances of all points to some of them."""
        values = self.matrix.block(chosen, slice(0, self.n), False).T
        distances = self.own[:, None] + self.own[chosen] - 2.0 * values
        distances[chosen, np.arange(len(chosen))] = 0.0
        return np.asarray(distances.clip(min=0.0))

    # -- Lloyd ------------------------------------------------------------------------------------------

    def from_centres(self, centres: Points) -> np.ndarray:
        """Return the squared distances of all points to the images of other ones."""
        kernel = self.matrix.gram.kernel
        values = self.matrix.exact.against(centres).fill()
        distances = self.own[:, None] + np.asarray(kernel.diag(centres), dtype=np.float64) - 2.0 * values
        return np.asarray(distances.clip(min=0.0))

    def run(self, seeds: np.ndarray, max_iter: int, tol: float, distances: np.ndarray | None = None) -> Clusters:
        """Go on until no point changes sides, or the inertia falls by less than `tol` of itself.

        Parameters
        ----------
        seeds
            The numbers of the points that are the first centres.
        max_iter
            The most steps.
        tol
            At least 0.
        distances
            The squared distances to the first centres, where these are other points; the seeds are near them.
        """
        n, k, w = self.n, self.k, self.weights
        self._U = np.zeros((n, k))
        self._U[seeds, np.arange(k)] = 1.0
        distances = self.from_points(seeds) if distances is None else distances
        labels = np.argmin(distances, axis=1)
        members = np.full(n, -1)
        self._sums = self._Z = np.zeros((n, k))  # K Z with Z_ic = w_i [i in c]
        self._inner = np.zeros((n, k))  # K U
        self._squares = self.own[seeds].copy()
        inertia = math.inf
        steps, converged = 0, False
        while steps < max_iter:
            steps += 1
            moved = self._refilled(labels, distances)
            converged = bool((moved == members).all())
            if converged:
                break
            self._move(moved)
            members = moved
            distances = self._distances()
            new = self._nearest(distances, members)
            value = float(w @ distances[np.arange(n), new])
            labels = new
            if inertia - value <= tol * inertia and tol > 0:
                break
            inertia = value
        self._sums = self.matrix(self._Z)  # without the rounding of the updates
        self._average()
        distances = self._distances()
        labels = self._nearest(distances, members)
        inertia = float(w @ distances[np.arange(n), labels])
        return Clusters(labels, self._U, self._squares, distances, inertia, steps, converged)

    def _move(self, members: np.ndarray) -> None:
        """Make the centres the means of the members."""
        Z = np.zeros((self.n, self.k))
        Z[np.arange(self.n), members] = self.weights
        change = Z - self._Z
        who = np.flatnonzero(change.any(axis=1))
        held = self.matrix.held
        if held is not None and len(who) < self.n:
            self._sums = self._sums + (change[who].T @ held[who]).T
        elif 2 * len(who) < self.n:  # all columns are symmetric, and cost half
            some = self.matrix.exact.take(slice(None), who)
            self._sums = self._sums + np.asarray(some.matvec(change[who]), dtype=np.float64)
        else:
            self._sums = self.matrix(Z)
        self._Z = Z
        self._average()

    def _average(self) -> None:
        """Turn sums into means; an empty cluster keeps the centre it had."""
        total = self._Z.sum(axis=0)
        full = total > 0
        self._U[:, full] = self._Z[:, full] / total[full]
        self._inner[:, full] = self._sums[:, full] / total[full]
        for c in np.flatnonzero(~full):
            self._inner[:, c] = self.matrix(self._U[:, [c]])[:, 0]
        self._squares = np.einsum("ic,ic->c", self._U, self._inner)

    def _distances(self) -> np.ndarray:
        distances = self.own[:, None] - 2.0 * self._inner + self._squares
        return np.asarray(distances.clip(min=0.0))

    def _nearest(self, distances: np.ndarray, members: np.ndarray) -> np.ndarray:
        """Return the nearest centre of each point: its own, unless another is nearer by more than rounding."""
        best = np.argmin(distances, axis=1)
        everyone = np.arange(self.n)
        here, there = distances[everyone, members], distances[everyone, best]
        return np.where(here - there > _SLACK * (np.abs(self.own) + self._squares[best]), best, members)

    def _refilled(self, labels: np.ndarray, distances: np.ndarray) -> np.ndarray:
        """Return the labels after empty clusters have taken the points farthest from their centres."""
        sizes = np.bincount(labels, minlength=self.k)
        empty = np.flatnonzero(sizes == 0)
        if not len(empty):
            return labels
        away = distances[np.arange(self.n), labels]
        rounding = _SLACK * float(np.abs(self.own).max())
        labels = labels.copy()
        for i in np.argsort(-away, kind="stable"):
            if not len(empty) or away[i] <= rounding:
                break
            if sizes[labels[i]] > 1:
                sizes[labels[i]] -= 1
                labels[i], empty = empty[0], empty[1:]
        return labels
