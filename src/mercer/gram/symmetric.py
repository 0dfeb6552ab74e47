"""Products with the symmetric matrix of a kernel on one set of points, centred if asked, in two precisions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from array_api_compat import array_namespace
from scipy.linalg import eigvalsh

from mercer.gram.gram import Gram
from mercer.gram.rows import times
from mercer.gram.similarities import as_numpy, in_double
from mercer.machine.lazy import cached_property

_SAMPLE = 256  # points among which the error of float32 is measured
_LOW, _HIGH = 1e-30, 1e30  # values and their sums within these are within the range of float32
_WIDE_FEATURES = 128  # features from which on computing a value takes longer than reading it from memory
_BUDGET_PARTS = 3  # one of these parts of the budget may hold the matrix


class Symmetric:
    """K V, or J K J V with J = I - 11'/n, or D K D V with a diagonal D, for the columns of V.

    All of it is divided by `scale`, a power of two near the largest entry of the diagonal: squares stay in range.

    Parameters
    ----------
    gram
        The matrix of one set of points. float32 points are taken for the float64 numbers that they are.
    center
        Whether J is applied from both sides.
    root
        The diagonal of D.
    """

    def __init__(self, gram: Gram, center: bool = False, root: np.ndarray | None = None) -> None:
        points = in_double(gram.left)
        self.gram = gram if points is gram.left else Gram(gram.kernel, points, budget=gram.given_budget)
        self.center, self._root = center, root
        self.n = gram.shape[0]
        self._held: np.ndarray | None = None
        self._sums: tuple[np.ndarray, bool] | None = None
        whole = as_numpy(self.gram.diag())
        self._range = float(np.abs(whole).max())  # of the values of the kernel
        diag = whole if root is None else whole * root**2
        largest = float(np.abs(diag).max())
        self.scale = 2.0 ** math.floor(math.log2(largest)) if largest > 0 else 1.0
        self.diag = diag / self.scale

    @property
    def sums(self) -> np.ndarray | None:
        """The row sums of K itself, of a centred matrix; None before the first product."""
        return None if self._sums is None else self._sums[0]

    @property
    def single(self) -> bool:
        """Whether float32 values are used."""
        return math.isfinite(self.error)

    def distrust(self) -> None:
        """Use no float32 values any more."""
        self.error = math.inf
        self._held = None

    @cached_property
    def error(self) -> float:
        """About the norm of the error, as a matrix, of the values in float32; infinite where there are none.

        It is taken from some points. What is systematic in their block grows with n, and what is random with its root,
        so that the norm of the block times n over their number is an upper bound. Where k(x, x) varies, so is it from
        the points where it is largest.
        """
        gram = self.gram
        if not gram.compiled or not gram.left.numeric or gram.left.foreign or not _LOW < self._range < _HIGH:
            return math.inf
        some = np.unique(np.linspace(0, self.n - 1, _SAMPLE).astype(np.intp))
        largest = np.argsort(np.abs(self.diag), kind="stable")[-_SAMPLE:]
        try:
            off = [self._off(chosen) for chosen in (some, largest)]
        except FloatingPointError:
            return math.inf
        if not all(np.isfinite(block).all() for block in off):
            return math.inf
        one, other = (float(np.abs(eigvalsh(block)).max()) for block in off)
        return max(one * self.n / len(some), other)

    def _off(self, chosen: np.ndarray) -> np.ndarray:
        """Return what float32 makes wrong in the values between some points."""
        off = np.asarray(self._rough.take(chosen).fill() - self.gram.take(chosen).fill()) / self.scale
        return off if self._root is None else off * np.outer(self._root[chosen], self._root[chosen])

    @cached_property
    def _rough(self) -> Gram:
        return self.gram.single(forgiving=True)

    def hold(self) -> int:
        """Keep the values, if they fit their share of the budget, and return how many bytes that takes.

        They are held in float64 where only Python computes them, and in float32 if the points have many features. With
        few, the core computes a value in about the time that reading it takes.
        """
        gram, n = self.gram, self.n
        size = (4 if self.single else 8) * n * n
        if size * _BUDGET_PARTS > gram.budget or gram.left.foreign:
            return 0
        if gram.compiled and not (self.single and gram.left.width >= _WIDE_FEATURES):
            return 0
        self._held = self._rough.fill() if self.single else np.asarray(gram.fill(), dtype=np.float64)
        return size

    def dense(self) -> np.ndarray:
        """Return the whole matrix in float64."""
        K = as_numpy(self.gram.dense())
        if self._root is not None:
            K = self._root[:, None] * K * self._root
        K = K / self.scale
        if self.center:
            self._sums = K.sum(axis=1) * self.scale, True
            K = K - K.mean(axis=0)
            K -= K.mean(axis=1)[:, None]
        return K

    def columns(self, chosen: np.ndarray) -> np.ndarray:
        """Return some columns, not centred, in the precision that is rough."""
        if self._held is not None:
            values = np.ascontiguousarray(self._held[chosen].T)
        else:
            values = (self._rough if self.single else self.gram).block(slice(0, self.n), chosen)
            values = values if isinstance(values, np.ndarray) else as_numpy(values)
        if self._root is None:
            return np.asarray(values / self.scale)
        root = (self._root / math.sqrt(self.scale)).astype(values.dtype)
        return np.asarray(root[:, None] * values * root[chosen])

    def exact(self, V: np.ndarray) -> np.ndarray:
        """Return the product from float64 values."""
        held = self._held is not None and self._held.dtype == np.float64
        return self._between(self._from_held if held else self._computed, V, True)

    def rough(self, V: np.ndarray) -> np.ndarray:
        """Return the product from float32 values, or from float64 ones where those would be too rough."""
        if not self.single:
            return self.exact(V)
        return self._between(self._from_held if self._held is not None else self._rounded, V, False)

    def _between(self, product: Callable[[np.ndarray], np.ndarray], V: np.ndarray, exact: bool) -> np.ndarray:
        """Return the product with what stands on both sides of K; the row sums of K come along."""
        if self._root is not None:
            return self._root[:, None] * product(self._root[:, None] * V) / self.scale
        if not self.center:
            return product(V) / self.scale
        V = V - V.mean(axis=0)
        if self._sums is None or exact > self._sums[1]:
            W = product(np.column_stack([V, np.ones(self.n)]))
            self._sums, W = (W[:, -1].copy(), exact), W[:, :-1]
        else:
            W = product(V)
        W = W / self.scale
        return np.asarray(W - W.mean(axis=0))

    def _rounded(self, V: np.ndarray) -> np.ndarray:
        return self._rough.product(V)

    def _computed(self, V: np.ndarray) -> np.ndarray:
        like = self.gram.left
        if not like.foreign:
            return np.asarray(self.gram.matvec(V), dtype=np.float64)
        xp = array_namespace(like.vectors)
        return as_numpy(self.gram.matvec(xp.asarray(V, dtype=like.vectors.dtype, device=like.vectors.device)))

    def _from_held(self, V: np.ndarray) -> np.ndarray:
        assert self._held is not None
        return times(self._held, V)
