"""The kernel matrices of a search: each computed once, and kept while there is room and use for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.machine.budget import Budget
from mercer.points import Points
from mercer.selection.search.statistics import Statistics
from mercer.solvers import Control
from mercer.solvers.dual.shared import SharedMatrix

_KEPT = 1536 * 2**20  # bytes of matrices that are kept for later folds: fresh memory is dear
_SHARING, _WIDE = 3, 160  # kernels and features, from which on it pays to keep the statistics


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

    def _compute(self, compared: Any) -> np.ndarray | None:
        """Return kernel values from statistics that several kernels share, where there is room for them."""
        X = compared.left.vectors if compared.left.numeric else None
        if len(self._places) < _SHARING or not isinstance(X, np.ndarray) or X.shape[1] < _WIDE:
            return None
        with self._lock:
            if self._statistics is None:
                self._statistics = Statistics(compared.left, min(int(self.budget) // 8, _KEPT // 4))
        if self._statistics.points.dtype != compared.left.dtype:
            return None
        return self._statistics.values(compared)
