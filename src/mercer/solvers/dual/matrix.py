"""The kernel matrix as SMO reads it: square blocks, and products of many rows with a few columns."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mercer.gram import Gram
from mercer.machine.threads import run
from mercer.points import Points

if TYPE_CHECKING:
    from mercer.solvers.dual.problem import SVMDual

_SAMPLE = 48  # free points on which float32 is compared with float64
_PART = 800  # points that they are compared with at a time
_SCRATCH = 16 * 2**20  # bytes of a matrix that a thread keeps from one problem to the next
_ROUNDING = 6e-8  # of float32
FLOAT32_SHARE = 0.3  # of the gap asked for: what float32 values may hide of it


class Matrix(Protocol):
    """What the solvers ask of a kernel matrix."""

    dtype: Any

    def block(self, chosen: np.ndarray) -> np.ndarray:
        """Return the values of some points against one another, valid until the next call."""

    def product(self, rows: np.ndarray | None, cols: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return K[rows, cols] v in float64; all rows for None."""


class Streamed:
    """Values computed when they are asked for and forgotten: the core is faster than most memory."""

    def __init__(self, gram: Gram, points: Points) -> None:
        self._gram, self._points = gram, points
        self._last: tuple[Any, Points] = (None, points)
        self.dtype = gram.on(points.take(slice(0, 1))).dtype
        # Errors of float32 values that matter are found by `measured_float32_gap` before a fit is called converged.
        self._forgiving = self.dtype == np.float32
        self._buffer = np.empty(0, self.dtype)  # fresh memory is dear

    def block(self, chosen: np.ndarray) -> np.ndarray:
        w = len(chosen)
        if self._buffer.size < w * w:
            self._buffer = np.empty(w * w, self.dtype)
        out = self._buffer[: w * w].reshape(w, w)
        return np.asarray(self._gram.on(self._points.take(chosen), None, self._forgiving).fill(out))

    def product(self, rows: np.ndarray | None, cols: np.ndarray, v: np.ndarray) -> np.ndarray:
        if rows is None:
            left = self._points
        else:
            if self._last[0] is not rows:  # the same rows are asked for many times
                self._last = (rows, self._points.take(rows))
            left = self._last[1]
        K = self._gram.on(left, self._points.take(cols), self._forgiving)
        return np.asarray(K.matvec(v).astype(np.float64))


class Held:
    """All values in memory, for kernels that only Python can compute and for small problems."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self.dtype = values.dtype

    def block(self, chosen: np.ndarray) -> np.ndarray:
        return self.values[np.ix_(chosen, chosen)]

    def product(self, rows: np.ndarray | None, cols: np.ndarray, v: np.ndarray) -> np.ndarray:
        # By rows of the symmetric matrix, which are contiguous; sums in float64, a slice of rows at a time.
        out = np.zeros(len(self.values))
        step = max(1, (1 << 22) // len(self.values))
        for i in range(0, len(cols), step):
            out += v[i : i + step] @ self.values[cols[i : i + step]].astype(np.float64, copy=False)
        return out if rows is None else out[rows]


_local = threading.local()


def scratch(n: int, dtype: Any) -> np.ndarray | None:
    """Return this thread's n x n matrix, until it is given back; None where it is in use, or would be large.

    A listener to one fit may start another in the same thread.
    """
    size = n * n * np.dtype(dtype).itemsize
    if size > _SCRATCH or getattr(_local, "lent", False):
        return None
    if not hasattr(_local, "memory"):
        _local.memory = np.empty(_SCRATCH, np.uint8)  # fresh memory is dear; what is not touched costs nothing
    _local.lent = True
    return _local.memory[:size].view(dtype).reshape(n, n)


def give_back(matrix: np.ndarray | None) -> None:
    """Let the next problem of this thread have the scratch matrix, if this is it."""
    if matrix is not None and getattr(_local, "lent", False) and np.may_share_memory(matrix, _local.memory):
        _local.lent = False


class Cached:
    """Rows kept within the budget, for kernels that only Python can compute and too many points to hold all."""

    def __init__(self, gram: Gram) -> None:
        self._gram = gram
        self.dtype = gram.dtype

    def block(self, chosen: np.ndarray) -> np.ndarray:
        return np.concatenate([r[:, chosen] for r in self._slices(chosen)])

    def product(self, rows: np.ndarray | None, cols: np.ndarray, v: np.ndarray) -> np.ndarray:
        out = np.zeros(self._gram.shape[0])
        at = 0
        for part in self._slices(cols):
            out += v[at : at + len(part)] @ part.astype(np.float64, copy=False)
            at += len(part)
        return out if rows is None else out[rows]

    def _slices(self, chosen: np.ndarray) -> Any:
        step = max(1, min(256, len(self._gram.cache.slab)))
        return (self._gram.rows(chosen[i : i + step]) for i in range(0, len(chosen), step))


def float32_gap_bound(length: Any, exposed: Any) -> Any:
    """Return what float32 kernel values could hide of a gap, at worst.

    Rounding moves f(x_i) by about its unit times |x_i| (in feature space) times `length`, the root of the sum of
    (b_j |x_j|)^2; each free coefficient leaves about half its box times that in the gap: `exposed` is the sum of these
    boxes, each times |x_i|.
    """
    return _ROUNDING * length * exposed / 2


def measured_float32_gap(
    problem: SVMDual, b: np.ndarray, values: np.ndarray, free: np.ndarray, box: np.ndarray
) -> float:
    """Return what float32 does hide of a gap: measured on some free points, whose f is computed again in float64.

    Parameters
    ----------
    problem, b
        The problem and its coefficients.
    values
        f at its points, without the offset, as the solver knows them.
    free, box
        Which coefficients are free, and how large their boxes are.
    """
    some = np.flatnonzero(free)
    if not some.size:
        return 0.0  # at a bound, a small error of f changes nothing
    some = some[np.unique(np.linspace(0, len(some) - 1, _SAMPLE).astype(np.intp))]
    support = np.flatnonzero(b)
    points, gram = problem.points(), problem.gram
    left = points.take(some)

    def part(chosen: np.ndarray) -> np.ndarray:
        return np.asarray(gram.on(left, points.take(chosen)).matvec(b[chosen]))

    # So few at a time that no centre is looked for: moving all points to one in float64 would cost more than the sums.
    parts = run(part, [support[i : i + _PART] for i in range(0, len(support), _PART)])
    error = np.abs(sum(parts) - values[some]).mean()
    return 2.0 * float(error) * float(box[free].sum()) / 2
