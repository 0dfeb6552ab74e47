"""The kernel matrices of a search: each computed once, and kept while there is room and use for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.machine.budget import Budget
from mercer.machine.threads import run
from mercer.points import Block, Points
from mercer.points.formulas import formula as symbolic
from mercer.solvers import Control
from mercer.solvers.dual.shared import SharedMatrix

_KEPT = 1536 * 2**20  # bytes of matrices that are kept for later folds: fresh memory is dear
_SHARING, _WIDE = 3, 160  # kernels and features, from which on it pays to keep the statistics
_TILE = 1 << 17  # kernel values at a time: what stands between the steps of a formula stays in the cache
_POWERS = {"sqdist": 2, "l1": 1}  # of the scale that divides the differences


@dataclass
class _Place:
    lock: Lock = field(default_factory=Lock)  # two threads may want a matrix that neither has
    matrix: SharedMatrix | None = None
    users: int = 0


class Matrices:
    """The matrices of all points under the kernels of a search.

    Parameters
    ----------
    points
        All points.
    budget
        Bytes for everything.
    later
        Whether kernels come back in later rounds.
    """

    def __init__(self, points: Points, budget: Budget, later: bool) -> None:
        self.points, self.budget = points, budget
        self._lock = Lock()
        self._places: dict[Kernel, _Place] = {}
        self._statistics: Statistics | None = None
        self._room = min(int(budget) // 4, _KEPT) if later else 0

    def expect(self, kernels: list[Kernel]) -> None:
        """Take down who will ask: each mention of a kernel is one `get` and one `done`."""
        for kernel in kernels:
            self._places.setdefault(kernel, _Place()).users += 1

    def all_kept(self, count: int, itemsize: int) -> bool:
        """Return whether as many matrices are kept until the end."""
        return count * itemsize * len(self.points) ** 2 <= self._room

    def get(self, kernel: Kernel, control: Control) -> SharedMatrix:
        """Return the matrix of a kernel."""
        place = self._places[kernel]
        with place.lock:
            if place.matrix is None:
                gram = Gram(kernel, self.points, budget=int(self.budget))
                place.matrix = SharedMatrix(gram, control, self._compute)
            return place.matrix

    def done(self, kernel: Kernel) -> None:
        """Give up one use of a matrix; the last user lets it go where there is no room to keep it."""
        with self._lock:
            place = self._places[kernel]
            place.users -= 1
            if place.users == 0 and place.matrix is not None:
                others = sum(p.matrix is not None for p in self._places.values())
                if others * place.matrix.values.nbytes > self._room:
                    place.matrix = None

    def _compute(self, gram: Gram) -> np.ndarray | None:
        """Return kernel values from statistics that several kernels share, where there is room for them."""
        X = gram.left.vectors if gram.left.numeric else None
        if len(self._places) < _SHARING or not isinstance(X, np.ndarray) or X.shape[1] < _WIDE:
            return None
        with self._lock:
            if self._statistics is None:
                self._statistics = Statistics(gram.left, min(int(self.budget) // 8, _KEPT // 4))
        if self._statistics.points.dtype != gram.left.dtype:
            return None
        return self._statistics.values(gram)


# -- pair statistics: inner products and distances, computed once for all kernels -------------------------


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
    >>> kept.values(Gram(RBF(2.0), X)).round(3)
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

    def values(self, gram: Gram) -> np.ndarray | None:
        """Return the kernel values of all pairs; None where the kernel asks for more than kept statistics."""
        kinds = shared_kinds(gram)
        if not kinds:
            return None
        with self._lock:
            if len(kinds | set(self._kept)) > self._most:
                return None
            for kind in kinds - set(self._kept):
                try:
                    self._kept[kind] = Gram.of_formula(_Statistic(kind), self.points).fill()
                except FloatingPointError:
                    return None
        n = len(self.points)
        out = np.empty((n, n), self.points.dtype)
        height = max(1, _TILE // n)
        good = run(lambda r: self._fill(gram, slice(r, min(r + height, n)), out), range(0, n, height))
        return out if all(good) else None  # what is not finite, the matrix itself explains

    def _fill(self, gram: Gram, rows: slice, out: np.ndarray) -> bool:
        tile = _Kept(self.points.take(rows), self.points, {kind: S[rows] for kind, S in self._kept.items()})
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            out[rows] = gram.kernel.of(tile)
        return bool(np.isfinite(out[rows]).all())


def shared_kinds(gram: Gram) -> set[str]:
    """Return the statistics of the points as they are that a kernel reads; empty where it reads anything else."""
    if not gram.compiled:
        return set()
    found = set()
    for leaf in symbolic.statistics(gram.formula):
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
