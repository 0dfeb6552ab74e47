"""Sums over all pairs of points, tile by tile of the upper triangle: the parts of derivatives in parameters.

With G_ij = W_ij f(x_i, x_j) for a symmetric matrix W and a formula f, a task asks for the sum of all G_ij, for products
G V, or for sums of G_ij |v_ik - v_jk|^p over the pairs for each column k. All tasks of one sweep share the tiles of W.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mercer.machine.threads import cores, run
from mercer.points import Comparison

_ROWS, _COLS = 256, 1024  # of a tile, which is 2 MiB
_INLINE = 40_000  # pairs below which a second thread costs more than it brings
_MEDIAN_STRIDE = 61  # one value in so many gives the median of a tile
_LARGE_VALUE = 1e3  # in units of the median of a tile
_HUGE = 1e150  # differences beyond stand for infinity; their squares are finite


@dataclass(eq=False)
class Task(ABC):
    """One sum over all pairs of G = W f; None stands for f = 1."""

    values: Comparison | None

    def weighted(self, W: np.ndarray, rows: slice, cols: slice) -> np.ndarray:
        """Return a tile of G."""
        if self.values is None:
            return W[rows, cols]
        tile: np.ndarray = self.values.block(rows, cols)
        return np.multiply(tile, W[rows, cols], out=tile if tile.dtype == W.dtype and tile.flags.writeable else None)

    @abstractmethod
    def start(self, n: int) -> np.ndarray:
        """Return zeros to add to."""

    @abstractmethod
    def add(self, total: np.ndarray, W: np.ndarray, rows: slice, cols: slice) -> None:
        """Add the contribution of a tile and, off the diagonal, of its mirror image."""


@dataclass(eq=False)
class Total(Task):
    """The sum of all G_ij."""

    def start(self, n: int) -> np.ndarray:
        return np.zeros(1)

    def add(self, total: np.ndarray, W: np.ndarray, rows: slice, cols: slice) -> None:
        total += _twice(rows, cols) * self.weighted(W, rows, cols).sum()


@dataclass(eq=False)
class Products(Task):
    """The rows of G V, for a formula that is symmetric in its points."""

    vectors: np.ndarray

    def start(self, n: int) -> np.ndarray:
        return np.zeros(self.vectors.shape)

    def add(self, total: np.ndarray, W: np.ndarray, rows: slice, cols: slice) -> None:
        tile = self.weighted(W, rows, cols)
        total[rows] += tile @ self.vectors[cols]
        if rows != cols:
            total[cols] += tile.T @ self.vectors[rows]


@dataclass(eq=False)
class Margins(Task):
    """The sums of the rows of G (axis 1) or of its columns (axis 0), for a formula that need not be symmetric."""

    axis: int

    def start(self, n: int) -> np.ndarray:
        return np.zeros(n)

    def add(self, total: np.ndarray, W: np.ndarray, rows: slice, cols: slice) -> None:
        for left, right in ((rows, cols), (cols, rows))[: _twice(rows, cols)]:
            total[left if self.axis == 1 else right] += self.weighted(W, left, right).sum(axis=self.axis)


@dataclass(eq=False)
class Spreads(Task):
    """The sums over all pairs of G_ij (v_ik - v_jk)^2 for each column k, by matrix products.

    The derivative of a root has a pole at 0. Where f has `poles`, pairs with exceptionally large values are taken one
    by one: the rounding of their products would drown the rest.
    """

    vectors: Any
    poles: bool = False

    def start(self, n: int) -> np.ndarray:
        return np.zeros(self.vectors.shape[1])

    def add(self, total: np.ndarray, W: np.ndarray, rows: slice, cols: slice) -> None:
        tile, x, z = self.weighted(W, rows, cols), self.vectors[rows], self.vectors[cols]
        part = np.zeros_like(total)
        if self.poles:
            i, j = np.nonzero(_exceptional(tile))
            apart = x[i] - z[j]
            part += (apart.multiply(apart) if sparse.issparse(apart) else apart * apart).T @ tile[i, j]
            tile[i, j] = 0.0
        across = tile @ z
        if sparse.issparse(x):
            part += x.multiply(x).T @ tile.sum(axis=1) + z.multiply(z).T @ tile.sum(axis=0)
            part -= 2 * np.asarray(x.multiply(across).sum(axis=0)).ravel()
        else:
            part += tile.sum(axis=1) @ (x * x) + tile.sum(axis=0) @ (z * z)
            part -= 2 * np.einsum("ij,ij->j", x, across)
        total += _twice(rows, cols) * part


def _exceptional(tile: np.ndarray) -> np.ndarray:
    """Return which values are a thousand times the usual ones, as some of them show."""
    size = np.abs(tile)
    some = size.ravel()[::_MEDIAN_STRIDE]
    some = some[some > 0]
    return size > (_LARGE_VALUE * np.median(some) if len(some) else 0.0)


@dataclass(eq=False)
class Differences(Task):
    """The sums over all pairs of G_ij |v_ik - v_jk|^p for each column k, difference by difference."""

    vectors: np.ndarray  # one row per feature
    units: np.ndarray  # by which differences are multiplied
    power: int

    def start(self, n: int) -> np.ndarray:
        return np.zeros(len(self.vectors))

    def add(self, total: np.ndarray, W: np.ndarray, rows: slice, cols: slice) -> None:
        tile = self.weighted(W, rows, cols)
        apart = np.empty_like(tile)
        for k, (v, unit) in enumerate(zip(self.vectors, self.units, strict=True)):
            np.subtract.outer(v[rows], v[cols], out=apart)
            apart *= unit
            np.clip(np.abs(apart, out=apart), None, _HUGE, out=apart)
            if self.power == 2:
                apart *= apart
            total[k] += _twice(rows, cols) * np.vdot(tile, apart)


def _twice(rows: slice, cols: slice) -> int:
    return 1 if rows == cols else 2


def sweep(tasks: list[Task], W: np.ndarray) -> list[np.ndarray]:
    """Return the sum that each task asks for.

    Tiles are given to threads by position, so that results repeat to the last bit.
    """
    n = len(W)
    widest = max((task.vectors.shape[1] for task in tasks if isinstance(task, Spreads | Products)), default=1)
    height = int(np.clip((1 << 21) // max(widest, 1), 16, _ROWS))
    spans = [slice(r, min(r + height, n)) for r in range(0, n, height)]
    tiles = []
    for rows in spans:
        tiles.append((rows, rows))
        tiles += [(rows, slice(c, min(c + _COLS, n))) for c in range(rows.stop, n, _COLS)]
    workers = min(cores() if n * n > _INLINE else 1, len(tiles))

    def work(first: int) -> list[np.ndarray]:
        totals = [task.start(n) for task in tasks]
        for rows, cols in tiles[first::workers]:
            for task, total in zip(tasks, totals, strict=True):
                task.add(total, W, rows, cols)
        return totals

    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite gets a sentence
        return [sum(parts[1:], parts[0]) for parts in zip(*run(work, range(workers)), strict=True)]
