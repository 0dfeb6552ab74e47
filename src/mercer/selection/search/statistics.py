"""What all kernels read from the same pairs of points, computed once: inner products, distances."""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np

from mercer.machine.threads import run
from mercer.points import Block, Comparison, Points
from mercer.points.formulas import formula as symbolic

_TILE = 1 << 17  # kernel values at a time: what stands between the steps of a formula stays in the cache
_POWERS = {"sqdist": 2, "l1": 1}  # of the scale that divides the differences


class Statistics:
    """The statistics of all pairs of some points, kept for kernels that differ in what they make of them.

    Parameters
    ----------
    points
        All points, in the type that the values are to have.
    room
        Bytes for the statistics.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, Gram
    >>> from mercer.points import Points
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> kept = Statistics(Points(X), 10_000)
    >>> kept.values(Gram(RBF(2.0), X).comparison).round(3)
    array([[1.   , 0.882, 0.325],
           [0.882, 1.   , 0.607],
           [0.325, 0.607, 1.   ]])
    """

    def __init__(self, points: Points, room: int) -> None:
        self.points = points
        self._lock = Lock()
        self._kept: dict[str, np.ndarray] = {}
        each = len(points) ** 2 * np.dtype(points.dtype).itemsize
        self._most = room // each if each else 0  # statistics that there is room for

    def values(self, comparison: Comparison) -> np.ndarray | None:
        """Return the kernel values of all pairs; None where the kernel asks for more than kept statistics."""
        kinds = shared_kinds(comparison)
        if not kinds:
            return None
        with self._lock:
            if len(kinds | set(self._kept)) > self._most:
                return None
            for kind in kinds - set(self._kept):
                values, finite = Comparison(_Statistic(kind), self.points, None).compute()
                if not finite:
                    return None
                self._kept[kind] = values
        n = len(self.points)
        out = np.empty((n, n), self.points.dtype)
        height = max(1, _TILE // n)
        good = run(lambda r: self._fill(comparison, slice(r, min(r + height, n)), out), range(0, n, height))
        return out if all(good) else None  # what is not finite, the comparison itself explains

    def _fill(self, comparison: Comparison, rows: slice, out: np.ndarray) -> bool:
        tile = _Kept(self.points.take(rows), self.points, {kind: S[rows] for kind, S in self._kept.items()})
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            out[rows] = comparison.of(tile)
        return bool(np.isfinite(out[rows]).all())


def shared_kinds(comparison: Comparison) -> set[str]:
    """Return the statistics of the points as they are that a kernel reads; empty where it reads anything else."""
    if not comparison.compiled or comparison.formula is None:
        return set()
    found = set()
    for leaf in symbolic.statistics(comparison.formula):
        plain = leaf.kind == "dot" or leaf.kind in _POWERS
        if leaf.path or not plain or not isinstance(leaf.scale, float | int):
            return set()
        found.add(leaf.kind)
    return found


class _Statistic:
    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __call__(self, pair: Any) -> Any:
        return pair.dot if self.kind == "dot" else getattr(pair, self.kind)()


class _Kept(Block):
    """Some rows of pairs whose statistics are known."""

    def __init__(self, left: Points, right: Points, kept: dict[str, np.ndarray]) -> None:
        super().__init__(left, right)
        self._known = kept

    def _compute(self, kind: str, scale: Any) -> Any:
        known = self._known[kind]
        return known if kind == "dot" or scale == 1 else known * known.dtype.type(float(scale) ** -_POWERS[kind])
