"""Nearest points as a preconditioner for the part of a kernel matrix that a low-rank approximation leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_solve

from mercer.gram import Gram
from mercer.gram.matrix import KernelMatrix
from mercer.machine.threads import cores, run, shares
from mercer.solvers.systems.preconditioners.low_rank import Inverse, LowRank, lifted_factor, restricted

if TYPE_CHECKING:
    from mercer.solvers.systems.preconditioners.choice import Costs

_MEMBERS = 192  # points of a group
_NEAREST = 512  # points on which a group is conditioned
_POOL = 2048  # points among which groups are formed
_PROBES = 4  # points of a group by which candidates are found
_CANDIDATES = 1600  # of which the nearest are chosen by all points of the group
_BATCH = 16  # groups whose candidates are found together
_DAMPING = 0.5  # of the mean of the diagonal of K - R'R, added where a group is conditioned
_ROWS = 4096  # of G R, copied or squared at a time


class Neighbours:
    r"""K + D approximated by a low-rank part and, for the rest, by each group of points given its nearest.

    .. math:: K + D \approx R^T R + (G^T G)^{-1}, \qquad
              G_B = L_B^{-1} (I_B - W), \quad W = E_{BJ} (E_{JJ} + D_J + \epsilon)^{-1}, \quad E = K - R^T R

    Groups B of points near one another stand in a random order. J are the points of earlier groups nearest to those of
    B, and L_B is the Cholesky factor of the covariance of B given J (Vecchia 1988; for E, Gyger, Furrer and
    Sigrist 2024). epsilon keeps errors of far-reaching correlations, which are not seen, from adding up.

    Parameters
    ----------
    low_rank
        R, which may grow between uses.
    matrix
        K.
    seed
        Of the order.
    """

    learns = False  # what products with K would show has been taken from K itself

    def __init__(self, low_rank: LowRank, matrix: KernelMatrix, seed: int = 0) -> None:
        self.low_rank = low_rank
        rng = np.random.default_rng(seed)
        groups = list(_groups(matrix, rng))
        rng.shuffle(groups)
        self.order = np.concatenate(groups)
        ends = np.cumsum([len(g) for g in groups])
        compared = matrix.gram.on(matrix.points(True).take(self.order), forgiving=True)
        starts = ends - [len(g) for g in groups]
        batches = [range(i, min(i + _BATCH, len(groups))) for i in range(0, len(groups), _BATCH)]
        parts = run(lambda some: _surroundings(compared, [slice(starts[i], ends[i]) for i in some]), batches)
        self.groups = [group for part in parts for group in part]
        self._compared = compared
        self._R = np.empty((matrix.n, 0), low_rank.factor.dtype)  # points by rows, in the order of the groups

    @staticmethod
    def bytes(n: int, rank: int) -> int:
        """Return about how much memory so many points take beside R: R again, G R, and G."""
        return 4 * n * (2 * rank + _MEMBERS + _NEAREST)

    @property
    def left(self) -> np.ndarray:
        """The diagonal of K that is not taken account of: nothing."""
        return np.zeros(len(self.order))

    def seconds(self, costs: Costs, steps: float) -> float:
        """Return about how long it takes to make R and G and to take so many steps with them."""
        size = _MEMBERS + _NEAREST
        return self.low_rank.seconds(costs, steps) + costs.groups(
            len(self.groups) * size**3 / 3, self.bytes(len(self.order), 0), steps
        )

    def learn(self, W: np.ndarray, KW: np.ndarray) -> int:
        """Learn nothing."""
        return 0

    def _catch_up(self) -> None:
        """Copy the rows of R that are new."""
        R, done, n = self.low_rank.factor.R, self._R.shape[1], len(self.order)
        if len(R) == done:
            return
        whole = np.empty((n, len(R)), R.dtype)

        def copy(rows: slice) -> None:
            for i in range(rows.start, rows.stop, _ROWS):
                some = slice(i, min(i + _ROWS, rows.stop))
                whole[some, :done] = self._R[some]
                whole[some, done:] = R[done:, self.order[some]].T

        run(copy, shares(n))
        self._R = whole

    def inverse(self, shift: np.ndarray, rows: np.ndarray | None = None, slack: float = 0.0) -> Inverse:
        """Return the function V -> (R'R + (G'G)^-1)^-1 V with D = diag(shift).

        See `Preconditioner`. G is computed afresh for each shift, whatever the slack.
        """
        self._catch_up()
        n, order = len(self.order), self.order
        damping = _DAMPING * self.low_rank.factor.trace / n
        moved = shift[order]
        R = self._R
        GR = np.zeros(R.shape, R.dtype)

        def part(first: int) -> list[tuple[np.ndarray, np.ndarray]]:
            blocks = []
            for group in self.groups[first :: cores()]:
                at = group.at[np.isfinite(moved[group.at])]
                members = int(np.isfinite(moved[group.at[: group.members]]).sum())
                if members:
                    values, near = self._compared.block(at, at).astype(R.dtype, copy=False), R[at]
                    G = _rows(values - near @ near.T, members, moved[at].astype(R.dtype), damping)
                    GR[at[:members]] = G @ near
                    blocks.append((at, G))
            return blocks

        G = run(part, range(cores()))
        inner = np.zeros((R.shape[1], R.shape[1]))
        for some in run(lambda c: _square(GR, c), shares(n)):
            inner += some
        factor = lifted_factor(inner)

        def apply(V: np.ndarray) -> np.ndarray:
            size = np.abs(V).max(axis=0)
            size = np.where(size > 0, size, 1.0)
            v = (V[order] / size).astype(R.dtype)
            g = np.zeros_like(v)

            def forward(some: list[tuple[np.ndarray, np.ndarray]]) -> None:
                for at, G in some:
                    g[at[: len(G)]] = G @ v[at]

            def back(some: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
                out = np.zeros(v.shape)
                for at, G in some:
                    out[at] += G.T @ g[at[: len(G)]]
                return out

            run(forward, G)
            parts = run(lambda c: GR[c].T @ g[c], shares(n))
            inside = cho_solve(factor, np.sum(parts, axis=0, dtype=np.float64), check_finite=False).astype(R.dtype)
            g -= np.concatenate(run(lambda c: GR[c] @ inside, shares(n)))
            out = np.empty(V.shape)
            out[order] = np.sum(run(back, G), axis=0)
            return out * size

        return apply if rows is None else restricted(apply, n, rows)


@dataclass
class _Group:
    """Points: those first that it consists of, then the nearest of earlier groups."""

    at: np.ndarray
    members: int


def _rows(E: np.ndarray, members: int, shift: np.ndarray, damping: float) -> np.ndarray:
    """Return the rows of G of a group, from the values of K - R'R at its points and its nearest; E is overwritten."""
    m = members
    E.ravel()[:: len(E) + 1] += shift
    own, across, others = E[:m, :m], E[m:, :m], E[m:, m:]
    eye = np.eye(m, dtype=E.dtype)
    try:  # by NumPy's functions, which let other threads run
        damped = np.linalg.cholesky(others + damping * np.eye(len(others), dtype=E.dtype))
        W = cho_solve((damped, True), across, check_finite=False).T
        known = W @ across
        L = np.linalg.cholesky(own - known - known.T + (W @ others) @ W.T)
        return np.asarray(np.linalg.solve(L, np.concatenate([eye, -W], axis=1)))
    except np.linalg.LinAlgError:  # what R leaves of K here is rounding
        alone = eye / np.sqrt(own.diagonal())[:, None]
        return np.concatenate([alone, np.zeros((m, len(others)), E.dtype)], axis=1)


def _groups(matrix: KernelMatrix, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield groups of points that are near one another."""
    pools, stack = [], [np.arange(matrix.n)]
    while stack:
        some = stack.pop()
        if len(some) <= _POOL:
            pools.append(some)
            continue
        two = rng.choice(some, 2, replace=False)
        values = matrix.block(some, two, True)
        nearer, half = np.argsort(values[:, 0] - values[:, 1]), len(some) // 2
        stack += [some[nearer[:half]], some[nearer[half:]]]
    seeds = rng.integers(2**32, size=len(pools))
    for groups in run(lambda i: _cut(matrix, pools[i], np.random.default_rng(seeds[i])), range(len(pools))):
        yield from groups


def _cut(matrix: KernelMatrix, pool: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Cut some points into groups: one at random and those nearest to it, again and again."""
    values, left, groups = matrix.block(pool, pool, True), np.arange(len(pool)), []
    while len(left) > _MEMBERS:
        near = np.argpartition(-values[rng.choice(left), left], _MEMBERS - 1)
        groups.append(pool[left[near[:_MEMBERS]]])
        left = left[near[_MEMBERS:]]
    return [*groups, pool[left]]


def _surroundings(compared: Gram, members: list[slice]) -> list[_Group]:
    """Return some groups with the nearest of the points before all of them."""
    first = members[0].start
    scores: list[np.ndarray | None] = [None] * len(members)
    if first > _CANDIDATES:
        probes = [min(_PROBES, m.stop - m.start) for m in members]
        for i, (m, count) in enumerate(zip(members, probes, strict=True)):
            block = compared.block(slice(m.start, m.start + count), slice(0, first))
            scores[i] = np.einsum("ij,ij->j", block, block)
    groups = []
    for m, score in zip(members, scores, strict=True):
        before = np.arange(first) if score is None else np.argpartition(-score, _CANDIDATES - 1)[:_CANDIDATES]
        at, count = np.concatenate([np.arange(m.start, m.stop), before]), m.stop - m.start
        if len(before) > _NEAREST:
            values = compared.block(at[:count], before)
            near = np.einsum("ij,ij->j", values, values)
            at = np.concatenate([at[:count], before[np.argpartition(-near, _NEAREST - 1)[:_NEAREST]]])
        groups.append(_Group(at, count))
    return groups


def _square(A: np.ndarray, rows: slice) -> np.ndarray:
    """Return A'A of some rows, in float64."""
    total = np.zeros((A.shape[1], A.shape[1]))
    for i in range(rows.start, rows.stop, _ROWS):
        some = A[i : min(i + _ROWS, rows.stop)]
        total += some.T @ some
    return total
