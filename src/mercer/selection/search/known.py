"""Kernels of columns of strings at the rows of a search, computed once for all kernels, folds and penalties."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np

from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.kernels.base import kernel
from mercer.kernels.proof import Proof
from mercer.kernels.rules.pullback import On
from mercer.machine.budget import Budget
from mercer.points import Pair, Points

_PART = 4  # part of the budget that the matrices of the strings may take, all of them together


class Values:
    """The matrix of a kernel on some points, computed when it is first asked for."""

    def __init__(self, kernel: Kernel, points: Points, budget: Budget) -> None:
        self._kernel, self._points, self._budget, self._lock = kernel, points, budget, Lock()
        self._matrix: np.ndarray | None = None

    def get(self) -> np.ndarray:
        """Return the matrix; two threads may want one that neither has."""
        with self._lock:
            if self._matrix is None:
                gram = Gram(self._kernel, self._points, budget=int(self._budget))
                self._matrix = np.asarray(gram.dense(), dtype=np.float64)
            return self._matrix


@kernel
class Known(Kernel):
    """A kernel by its values at some points; the points that it compares are the numbers of these.

    Two of them are equal if their kernels are: they speak of the points of one search.
    """

    base: Kernel
    values: Any

    def of(self, pair: Pair) -> Any:
        return pair.lookup(self.values.get())

    @property
    def resolved(self) -> bool:
        return True

    def _key(self) -> tuple[Any, ...]:
        return (self.base,)

    def _proof(self) -> Proof:
        return self.base._proof()

    def __sklearn_clone__(self) -> Known:
        return self

    def __repr__(self) -> str:
        return repr(self.base)


def known(X: np.ndarray, kernels: Sequence[Kernel], strings: Sequence[int], budget: Any) -> tuple[Any, list[Kernel]]:
    """Return rows with numbers of rows in the place of strings, and kernels of such rows with the same values.

    Several kernels look at a column in the same way, alone and in sums and products with others. What one of them has
    computed serves all, in every fold.

    Parameters
    ----------
    X
        Rows, an array of objects.
    kernels
        Kernels of these rows.
    strings
        The columns of strings.
    budget
        Bytes for everything. Where a quarter of it does not hold the matrices, X and the kernels are returned as they
        are.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, Spectrum
    >>> X = np.array([[1.0, "ACGT"], [2.0, "ACCC"], [4.0, "GGGT"]], dtype=object)
    >>> k = RBF(1.0).on([0]) * Spectrum(2).on([1])
    >>> rows, (same,) = known(X, [k], [1], None)
    >>> rows
    array([[1., 0.],
           [2., 1.],
           [4., 2.]])
    >>> np.allclose(same(rows[:2], rows[2:]), k(X[:2], X[2:]))
    True
    """
    limit = Budget.for_points(budget, len(X))
    points, found = Points(X), dict[Kernel, Values]()

    def put(k: Kernel) -> Kernel:
        if isinstance(k, On) and isinstance(k.columns, list | tuple) and set(k.columns) <= set(strings):
            return On(Known(k.base, found.setdefault(k, Values(k, points, limit))), list(k.columns[:1]))
        parts = {name: part for name, part in k._params().items() if isinstance(part, Kernel)}
        return k.replace(**{name: put(part) for name, part in parts.items()}) if parts else k

    same = [put(k) for k in kernels]
    if 8 * len(X) ** 2 * len(found) > int(limit) // _PART:
        return X, list(kernels)
    rows = X.copy()
    rows[:, list(strings)] = np.arange(len(X))[:, None]
    return rows.astype(np.float64), same
