"""Laws of the values: what every Gram matrix of a kernel obeys."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy import sparse

from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.points import Points
from mercer.testing.rounding import rounding


def finite(kernel: Kernel, points: Any, other: Any = None) -> None:
    """Every value is a finite number."""
    k, X, Z = resolved(kernel, points, other)
    try:
        values = np.concatenate([np.ravel(part) for part in (k(X), k(X, Z), k.diag(X))])
    except FloatingPointError as error:
        raise AssertionError(f"finiteness fails for {kernel!r}: {error}") from error
    if not np.isfinite(values).all():
        raise AssertionError(f"finiteness fails for {kernel!r}: a value is {values[~np.isfinite(values)][0]}.")


def symmetry(kernel: Kernel, points: Any, other: Any = None) -> None:
    """k(x, z) = k(z, x): exactly within one set of points, to rounding between two."""
    k, X, Z = resolved(kernel, points, other)
    K = np.asarray(k(X))
    agree("symmetry", kernel, K, K.T, 0.0, "k(x_i, x_j)", "k(x_j, x_i)")
    agree("symmetry", kernel, k(X, Z), np.asarray(k(Z, X)).T, rounding(k, X, Z).bound, "k(x_i, z_j)", "k(z_j, x_i)")


def diagonal(kernel: Kernel, points: Any, other: Any = None) -> None:
    """`diag` gives the diagonal of the matrix."""
    k, X, _ = resolved(kernel, points, other)
    agree("the diagonal", kernel, k.diag(X), np.diag(k(X)), np.diag(rounding(k, X).bound), "diag", "the matrix")


def formula(kernel: Kernel, points: Any, other: Any = None) -> None:
    """The compiled formula gives the values of the same formula on arrays."""
    k, X, Z = resolved(kernel, points, other)
    for right in (None, Z):
        by_arrays = rounding(k, X, right)
        agree("the formula", kernel, k(X, right), by_arrays.values, by_arrays.bound, "the engine", "array operations")


def blocks(kernel: Kernel, points: Any, other: Any = None) -> None:
    """Parts of the matrix are what the whole has there, and a copy of the points is as good as the points."""
    k, X, Z = resolved(kernel, points, other)
    K, bound = np.asarray(k(X)), rounding(k, X).bound
    agree("block = whole", kernel, k(X, Points(copy.copy(X.data))), K, bound, "k(X, copy of X)", "k(X)")
    for right in (None, Z):
        gram = Gram(k, X, right)
        K, bound = np.asarray(gram.dense()), rounding(k, X, right).bound
        n, m = K.shape
        scattered = np.random.default_rng(0).integers(0, n, size=min(n, 7)), np.arange(m)[:: -max(1, m // 5)]
        for rows, cols in (
            (slice(n // 3, n), slice(0, m // 2 + 1)),
            (slice(0, n, 2), slice(m // 4, m)),
            scattered,
            (slice(0, n // 2 + 1), scattered[1]),
        ):
            part = gram.block(rows, cols)
            agree("block = whole", kernel, part, K[rows][:, cols], bound[rows][:, cols], "the block", "the whole")
        rows = scattered[0]
        agree("block = whole", kernel, gram.rows(rows), K[rows], bound[rows], "the rows", "the whole")


def matvec(kernel: Kernel, points: Any, other: Any = None) -> None:
    """The product with vectors is that of the matrix."""
    k, X, Z = resolved(kernel, points, other)
    for right in (None, Z):
        gram = Gram(k, X, right)
        K = np.asarray(gram.dense(), dtype=np.float64)
        V = np.random.default_rng(0).normal(size=(K.shape[1], 2))
        eps = float(np.finfo(gram.dtype).eps)
        bound = (rounding(k, X, right).bound + len(V) * eps * np.abs(K)) @ np.abs(V)
        agree("matvec", kernel, gram.matvec(V), K @ V, bound, "matvec", "the dense product")
        agree("matvec", kernel, gram.matvec(V[:, 0]), K @ V[:, 0], bound[:, 0], "matvec", "the dense product")


def positive_semidefinite(kernel: Kernel, points: Any, other: Any = None) -> None:
    """A kernel whose proof says proven has no negative eigenvalue beyond rounding."""
    if not kernel.proof().proven:
        return
    k, X, _ = resolved(kernel, points, other)
    K = np.asarray(k(X), dtype=np.float64)
    unit = float(np.abs(K).max()) or 1.0  # so that squares of large values stay finite
    eigenvalues = np.linalg.eigvalsh(K / unit)
    tolerance = np.linalg.norm(rounding(k, X).bound / unit) + 4 * len(K) * np.finfo(np.float64).eps
    if eigenvalues[0] < -tolerance:
        raise AssertionError(
            f"positive semidefiniteness fails for {kernel!r}: its proof says proven, but the Gram matrix of these "
            f"{len(K)} points has the eigenvalue {eigenvalues[0] * unit:.6g}; rounding explains "
            f"{tolerance * unit:.2g}. Its largest eigenvalue is {eigenvalues[-1] * unit:.6g}."
        )


def cauchy_schwarz(kernel: Kernel, points: Any, other: Any = None) -> None:
    """|k(x, z)|^2 <= k(x, x) k(z, z) for a kernel whose proof says proven."""
    if not kernel.proof().proven:
        return
    k, X, Z = resolved(kernel, points, other)
    size = np.abs(np.asarray(k(X, Z), dtype=np.float64))
    most = [np.sqrt(np.asarray(k.diag(side)).clip(0) + np.diag(rounding(k, side).bound)) for side in (X, Z)]
    limit = np.outer(*most)
    excess, slack = np.maximum(size - limit, 0), rounding(k, X, Z).bound + 8 * np.finfo(np.float64).eps * limit
    agree("Cauchy-Schwarz", kernel, excess, np.zeros_like(size), slack, "|k(x, z)| - sqrt(k(x, x) k(z, z))", "at most")


def float32(kernel: Kernel, points: Any, other: Any = None) -> None:
    """Single precision agrees with double, for points that are rows of a matrix.

    Pairs are left out where the formula comes near the ends of single precision's range, and the law where it leaves
    that range and says so (FloatingPointError).
    """
    points = prepared(points)
    matrix = points.data
    if not (sparse.issparse(matrix) or (isinstance(matrix, np.ndarray) and matrix.ndim == 2)):
        return
    if not points.numeric or points.extent > float(np.finfo(np.float32).max):
        return
    single = matrix.astype(np.float32)
    double = single.astype(np.float64)
    k = kernel.resolve(double)
    try:
        got = np.asarray(k(single), dtype=np.float64)
    except FloatingPointError:
        return
    rounded = rounding(k, double, None, np.float32)
    bound = np.where(rounded.strained, np.inf, rounded.bound)
    agree("float32 = float64", kernel, got, k(double), bound, "float32", "float64")


# -- what the laws share ----------------------------------------------------------------------------------


def resolved(kernel: Kernel, points: Any, other: Any = None) -> tuple[Kernel, Points, Points]:
    """Return the kernel and both sets of points, the second a copy of the first when None."""
    X = prepared(points)
    return kernel.resolve(X), X, Points(copy.copy(X.data)) if other is None else prepared(other)


def prepared(points: Any) -> Points:
    """Return the points; tensors as the NumPy arrays they hold."""
    converted = Points.of(points)
    return Points(np.asarray(converted.data)) if converted.foreign else converted


def agree(law: str, kernel: Kernel, got: Any, wanted: Any, bound: Any, this: str, that: str) -> None:
    """Raise, with the worst pair, unless two arrays agree within the bound."""
    got, wanted = np.asarray(got, dtype=np.float64), np.asarray(wanted, dtype=np.float64)
    if got.shape != wanted.shape:
        raise AssertionError(f"{law} fails for {kernel!r}: {this} has shape {got.shape}, {that} {wanted.shape}.")
    gap = np.abs(got - wanted)
    excess = np.where(gap <= bound, 0.0, gap)
    if excess.any():
        at = np.unravel_index(np.argmax(excess), excess.shape)
        raise AssertionError(
            f"{law} fails for {kernel!r}: at {', '.join(map(str, map(int, at)))} {this} is {got[at]:.17g} and {that} "
            f"{wanted[at]:.17g}; they differ by {gap[at]:.3g}, rounding explains "
            f"{np.broadcast_to(bound, gap.shape)[at]:.3g}."
        )
