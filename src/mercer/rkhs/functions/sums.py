"""Sums of kernel functions: values, inner products and norms for coefficients of any size, and projections."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.machine.lazy import cached_property
from mercer.points import Points
from mercer.points.sets.points import is_foreign
from mercer.rkhs.functions.centres import doubled, merged, plain, size_of, taken

_TILE = 2**21  # kernel values held at a time where the coefficients are sparse
_ROUNDING = {8: 1e-10, 4: 1e-6}  # of <f, f>, in units of the largest it could be, by bytes per kernel value
_LARGE_COORDINATE = 1e18  # coordinates whose squares float32 cannot hold
_SMALL_BLOCK = 32  # support vectors per block below which all blocks are evaluated together


def exponents(A: Any) -> Any:
    """Return for each column the exponent of 2 of its largest entry: scaling by it rounds nothing."""
    top = abs(A).max(axis=0).toarray().ravel() if sparse.issparse(A) else np.abs(A).max(axis=0, initial=0.0)
    return np.frexp(top)[1]


def values(kernel: Kernel, X: Any, points: Any, A: Any) -> Any:
    """Return sum_j A_j k(x, z_j) at each x of X, for one column of coefficients or several, in tiles."""
    gram = Gram(kernel, Points.of(X), Points(points, "Z"))  # never symmetric: f(X) does not depend on who holds X
    if is_foreign(A):
        return gram.matvec(A)
    size = exponents(A)
    with np.errstate(over="ignore"):
        sums = np.ldexp(_product(gram, scaled(A, -size)), size)
    if not np.isfinite(sums).all():
        raise FloatingPointError(
            f"a value of the function lies outside the range of {sums.dtype}: its coefficients reach "
            f"{largest(A):.3g}. Divide the function by a number first."
        )
    return sums


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
        if self.single and points.extent < _LARGE_COORDINATE:
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
        return len(self.blocks) > 1 and sum(map(len, self.blocks)) < _SMALL_BLOCK * len(self.blocks)

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


def inner(kernel: Kernel, P: Any, A: Any, Q: Any, B: Any) -> np.ndarray:
    """Return A' K(P, Q) B, the inner products of the functions of A (columns, centres P) with those of B."""
    if not (size_of(P) and size_of(Q)):
        return np.zeros((A.shape[1], B.shape[1]))
    same = Q is P
    if not same and size_of(P) > size_of(Q):  # the longer side is summed in the tiles
        return inner(kernel, Q, B, P, A).T
    if is_foreign(A):
        products = A.T @ (Gram(kernel, P) if same else Gram(kernel, P, Q)).matvec(B)
        return np.asarray(plain(products), dtype=np.float64)
    left, right = exponents(A), exponents(B)
    P = doubled(P)
    K = Gram(kernel, P) if same else Gram(kernel, P, doubled(Q))
    products = np.asarray(scaled(A, -left).T @ _product(K, scaled(B, -right)), dtype=np.float64)
    with np.errstate(over="ignore"):
        products = np.ldexp(products, left[:, None] + right)
    if not np.isfinite(products).all():
        raise FloatingPointError(
            f"an inner product lies outside the range of float64: the coefficients reach {largest(A):.3g} and "
            f"{largest(B):.3g}. Divide the functions by a number first."
        )
    return products


def norms(kernel: Kernel, points: Any, A: Any) -> np.ndarray:
    """Return the norm of each function, sqrt(a' K a)."""
    if not size_of(points):
        return np.zeros(A.shape[1])
    if is_foreign(A):
        gram = Gram(kernel, points)
        square = plain((A * gram.matvec(A)).sum(0))
        return roots(gram, square.astype(np.float64), plain(A))
    if sparse.issparse(A):  # each function on the centres it uses
        return np.array([_norm_of_some(kernel, points, A[:, [j]].tocoo()) for j in range(A.shape[1])])
    size = exponents(A)
    B = scaled(A, -size)
    gram = Gram(kernel, doubled(points))
    square = np.einsum("ij,ij->j", B, _product(gram, B))
    with np.errstate(over="ignore"):
        lengths = np.ldexp(roots(gram, square, B), size)
    if not np.isfinite(lengths).all():
        raise FloatingPointError(
            f"a norm lies outside the range of float64: the coefficients reach {largest(A):.3g}. Divide the function "
            "by a number first."
        )
    return np.asarray(lengths)


def _norm_of_some(kernel: Kernel, points: Any, column: Any) -> float:
    rows, a = np.asarray(column.coords[0]), np.asarray(column.data)[:, None]
    order = np.argsort(rows)
    return float(norms(kernel, taken(points, rows[order]), a[order])[0]) if len(rows) else 0.0


def distances(kernel: Kernel, points: Any, A: Any) -> np.ndarray:
    """Return the norms of differences: equal centres are made one first, so that what cancels does so exactly."""
    if is_foreign(A) or not size_of(points):
        return norms(kernel, points, A)
    rows, B = merged(points, A.toarray() if sparse.issparse(A) else A)
    return norms(kernel, taken(points, rows), B) if len(rows) else np.zeros(A.shape[1])


def roots(gram: Gram, square: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Return the roots of <f, f>, refusing what is more negative than rounding could make it.

    Parameters
    ----------
    gram
        The kernel matrix of the centres.
    square
        <f, f> of each function.
    A
        The coefficients.
    """
    if (square < 0).any():
        lengths = np.sqrt(np.abs(np.asarray(plain(gram.diag()), dtype=np.float64)))
        allowed = _ROUNDING.get(gram.dtype.itemsize, 1e-6) * (np.abs(A).T @ lengths) ** 2
        worst = int(np.argmin(square + allowed))
        if square[worst] < -allowed[worst]:
            raise indefinite(gram.kernel, f"<f, f> = {square[worst]:.6g} is negative")
    return np.sqrt(square.clip(min=0.0))


def indefinite(kernel: Kernel, seen: str) -> ValueError:
    """Return the error for a kernel that has no Hilbert space."""
    return ValueError(
        f"{seen}: {kernel!r} is not positive semidefinite, and there is no norm. mercer.gram.verdict shows it; "
        "mercer.gram.repair makes the nearest kernel matrix."
    )


def _product(gram: Gram, A: Any) -> np.ndarray:
    """Return K A; for sparse A a tile of K at a time, so that zeros cost nothing."""
    if not sparse.issparse(A):
        return np.asarray(gram.matvec(A))
    n, m = gram.shape
    out = np.empty((n, A.shape[1]))
    step = max(1, _TILE // max(m, A.shape[1]))
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        out[rows] = np.asarray(gram.block(rows, slice(0, m)), dtype=np.float64) @ A
    return out


def scaled(A: Any, exponent: Any) -> Any:
    """Return the columns of A times powers of 2."""
    if not sparse.issparse(A):
        return np.ldexp(A, exponent)
    data = np.ldexp(A.data, np.repeat(exponent, np.diff(A.indptr)))
    return sparse.csc_array((data, A.indices, A.indptr), shape=A.shape)


def largest(A: Any) -> float:
    """Return the largest absolute coefficient."""
    return float(np.abs(A.data if sparse.issparse(A) else A).max(initial=0.0))
