"""Sums of kernel functions at the support vectors (M8), evaluated for many functions and many points at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.gram import Gram
from mercer.kernels import Kernel, Linear
from mercer.machine.lazy import cached_property
from mercer.points import Points
from mercer.rkhs import RKHSFunction, RKHSVector

_LARGE = 1e18  # coordinates whose squares float32 cannot hold
_FEW = 32  # support vectors per block below which all blocks are evaluated together


class Expansion:
    """f_c(x) = sum_i B_ic k(s_i, x), where the coefficients B are zero outside given blocks.

    A block is a run of support vectors together with the coefficients of the functions that use them: one block for a
    single function, one per class for the class pairs of a classifier.

    Parameters
    ----------
    kernel
        The kernel, resolved.
    support
        The support vectors s_i, in the order of the blocks.
    blocks
        One matrix (support vectors, functions) for each run, all with the same number of functions.
    single
        Whether float32 kernel values are enough: those of the fit were.
    """

    def __init__(self, kernel: Kernel, support: Any, blocks: list[np.ndarray], single: bool = False) -> None:
        self.kernel = kernel
        self.support = support
        self.blocks = blocks
        self.single = single

    def sums(self, X: Any) -> np.ndarray:
        """Return the sums over each block, (points of X, blocks, functions), in float64."""
        points = Points(X)
        parts, k = self._parts, self.kernel
        if self.single and points.extent < _LARGE:
            points = points.single()
        if self._together and parts[0] is not None:
            return self.sums_of_rows(Gram(k, points, parts[0]).dense())
        out = np.zeros((len(points), len(self.blocks), self.blocks[0].shape[1]))
        for i, (part, block) in enumerate(zip(parts, self.blocks, strict=False)):
            if part is not None:
                out[:, i] = Gram(k, points, part).matvec(block)
        return out

    def sums_of_rows(self, K: np.ndarray) -> np.ndarray:
        """Return the same for similarities K (points, support vectors) that are given."""
        out = np.empty((len(K), len(self.blocks), self.blocks[0].shape[1]))
        start = 0
        for i, block in enumerate(self.blocks):
            np.matmul(K[:, start : start + len(block)], block, out=out[:, i])
            start += len(block)
        return out

    # -- the support vectors, prepared once for all predictions -----------------------------------------

    @property
    def _together(self) -> bool:
        """Whether blocks are so small that looking at each by itself would cost more than the kernel values."""
        return len(self.blocks) > 1 and sum(map(len, self.blocks)) < _FEW * len(self.blocks)

    @cached_property
    def _parts(self) -> list[Points | None]:
        """The support vectors of each block, or all in one."""
        sizes = [sum(map(len, self.blocks))] if self._together else [len(block) for block in self.blocks]
        parts: list[Points | None] = []
        for stop, size in zip(np.cumsum(sizes), sizes, strict=True):
            part = None
            if size:
                part = Points(Points(self.support).take(np.arange(stop - size, stop)).data, "support_vectors_")
            parts.append(part.single() if part is not None and self.single else part)
        return parts

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_parts"}


def found_functions(kernel: Kernel, points: Any, A: Any, offsets: Any, single: bool) -> RKHSFunction | RKHSVector:
    """Return the functions with coefficients A, (centres, functions): one by itself, or all as a vector."""
    if single:
        return RKHSFunction(kernel, points, A[:, 0], float(np.ravel(offsets)[0]))
    return RKHSVector(kernel, points, A, offsets)


def linear_functions(coef: Any, intercept: Any, single: bool) -> RKHSFunction | RKHSVector:
    """Return w.x + b as functions of the linear kernel: w = sum_i a_i x_i has itself as its only centre."""
    w = np.array(np.atleast_2d(coef), dtype=np.float64)
    return found_functions(Linear(), w, np.eye(len(w)), intercept, single)
