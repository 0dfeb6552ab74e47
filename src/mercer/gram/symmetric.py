"""The kernel matrix as eigenproblems see it: centred, or scaled on both sides."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import eigvalsh

from mercer.gram.gram import Gram, as_numpy, in_double
from mercer.gram.matrix import KernelMatrix
from mercer.machine.lazy import cached_property

_SAMPLE = 256  # points among which the norm of the error of float32 is measured
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
        self._kernel = KernelMatrix(self.gram, foreign=True)
        self.center, self._root = center, root
        self.n = gram.shape[0]
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

    @cached_property
    def single(self) -> bool:
        """Whether float32 values are used."""
        self._kernel.single = math.isfinite(self.error)
        return self._kernel.single

    def distrust(self) -> None:
        """Use no float32 values any more."""
        self.error, self.single = math.inf, False
        self._kernel.single, self._kernel.held = False, None

    @cached_property
    def error(self) -> float:
        """About the norm of the error, as a matrix, of the values in float32; infinite where there are none.

        It is taken from a block of some points. Systematic errors grow with n, random ones with its root: the norm of
        the block times n over their number is an upper bound. So is that from the points where k(x, x) is largest. This
        bounds the error of eigenvalues. `Gram.single_is_enough` is stricter, and about single values, as nobody
        measures their effect on the solution of a system.
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
        off = np.asarray(self._kernel.rough.take(chosen).fill() - self.gram.take(chosen).fill()) / self.scale
        return off if self._root is None else off * np.outer(self._root[chosen], self._root[chosen])

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
        self._kernel.hold(np.float32 if self.single else np.float64)
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
        if self._kernel.held is not None:
            values = np.ascontiguousarray(self._kernel.held[chosen].T)
        else:
            values = (self._kernel.rough if self.single else self.gram).block(slice(0, self.n), chosen)
            values = values if isinstance(values, np.ndarray) else as_numpy(values)
        if self._root is None:
            return np.asarray(values / self.scale)
        root = (self._root / math.sqrt(self.scale)).astype(values.dtype)
        return np.asarray(root[:, None] * values * root[chosen])

    def exact(self, V: np.ndarray) -> np.ndarray:
        """Return the product from float64 values."""
        return self._between(V, False)

    def rough(self, V: np.ndarray) -> np.ndarray:
        """Return the product from float32 values, or from float64 ones where those would be too rough."""
        return self._between(V, self.single)

    def _between(self, V: np.ndarray, single: bool) -> np.ndarray:
        """Return the product with K between its factors (root weights or centring); row sums of K come along."""
        product = self._kernel.product
        if self._root is not None:
            return self._root[:, None] * product(self._root[:, None] * V, single) / self.scale
        if not self.center:
            return product(V, single) / self.scale
        V = V - V.mean(axis=0)
        if self._sums is None or (not single and not self._sums[1]):
            W = product(np.column_stack([V, np.ones(self.n)]), single)
            self._sums, W = (W[:, -1].copy(), not single), W[:, :-1]
        else:
            W = product(V, single)
        W = W / self.scale
        return np.asarray(W - W.mean(axis=0))
