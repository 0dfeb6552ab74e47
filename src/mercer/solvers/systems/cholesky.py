"""Equations by dense factors of K + diag(shift), or by eigenvectors where it is singular."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import blas, eigh, lapack

from mercer.certify import Stop
from mercer.gram import Gram
from mercer.gram.eigenpairs import lanczos
from mercer.gram.matrix import KernelMatrix
from mercer.solvers.systems.cg import Answer, Indefinite, Refinement, Watch, refine

SINGLE = 1_500  # points from which on a factor in float32 with corrections is cheaper than one in float64
_CORRECTIONS = 25  # products in float64 after which a factor in float32 is given up
_EIGEN_POINTS = 10_000  # points up to which eigenvalues may be taken for a solution of least norm
_LAPACK_POINTS = 5_000  # points up to which LAPACK takes half a second, too short to interrupt
_BLOCK = 512  # columns of a factor between two looks at signals
_BY_BLOCK = {
    np.dtype(np.float32): (lapack.spotrf, blas.strsm),
    np.dtype(np.float64): (lapack.dpotrf, blas.dtrsm),
}
_POTRS = {np.dtype(np.float32): lapack.spotrs, np.dtype(np.float64): lapack.dpotrs}


@dataclass
class Factor:
    """The Cholesky factor of K + diag(shift).

    Attributes
    ----------
    values
        n x n, column by column; one triangle holds the factor.
    norm
        The largest sum of absolute values in a column of the matrix.
    """

    values: np.ndarray
    norm: float = 1.0

    def condition(self) -> float:
        """Return an estimate of 1 / (|M| |M^-1|), of a factor in float64."""
        return float(lapack.dpocon(self.values, self.norm, uplo="L")[0])

    def solve(self, B: np.ndarray) -> np.ndarray:
        """Return the solutions for the columns of B, in float64."""
        dtype = self.values.dtype
        size = np.abs(B).max(axis=0, initial=0.0)
        size = np.where(size > 0, size, 1.0)
        X, _ = _POTRS[dtype](self.values, (B / size).astype(dtype, order="F"), lower=1, overwrite_b=1)
        return np.asarray(X, dtype=np.float64) * size


class Singular(np.linalg.LinAlgError):
    """A matrix that is singular to rounding. Callers who know more than its values may go on."""


class Factors:
    """Equations with parts of one matrix, each by a factor: the last factor, and its memory, serve the next one.

    Attributes
    ----------
    last
        The factor of the last equation, if it had one.
    """

    def __init__(self, gram: Gram) -> None:
        self.gram = gram
        self.last: Factor | None = None
        self._of: tuple[np.ndarray | None, np.ndarray] = (None, np.zeros(0))  # rows and shift of `last`
        self._memory: np.ndarray | None = None

    def solve(
        self,
        matrix: KernelMatrix,
        shift: np.ndarray,
        Y: np.ndarray,
        tol: np.ndarray,
        watch: Watch,
        strict: bool = False,
    ) -> Answer:
        """Return A with (K + diag(shift)) A = Y.

        Parameters
        ----------
        products, shift, Y, tol, watch
            K, one number per point, the right-hand sides, and the rest as for `refine`.
        strict
            Whether to raise `Singular` rather than to take the solution of least norm.
        """
        m, known, factor = matrix.n, self._of, self.last
        if not (_same(known[0], matrix.rows) and np.array_equal(known[1], shift)):
            factor = None
        self.last, self._of = None, (matrix.rows, shift.copy())
        mean = float((matrix.diagonal() + shift).mean())
        single = matrix.single and m >= SINGLE and shift.min() >= 20 * np.sqrt(m) * 6e-8 * mean
        if single if factor is None else factor.values.dtype == np.float32:

            def few(iterations: int, residual: np.ndarray, columns: np.ndarray) -> str | None:
                return "slow" if iterations > _CORRECTIONS else watch(iterations, residual, columns)

            with suppress(np.linalg.LinAlgError):
                factor = factor or factorise(matrix, shift, self._matrix(m, np.float32))
                answer = _corrected(factor, matrix, shift, Y, tol, few)
                if answer.stopped != "slow":
                    self.last = factor
                    return replace(answer, precision="float32")
            factor = None
        if factor is None:
            small = 1e3 * rounding(matrix)
            try:
                factor = factorise(matrix, shift, self._matrix(m, np.float64))
                singular = shift.min() <= small and factor.condition() < m * np.finfo(float).eps
            except np.linalg.LinAlgError:
                if shift.min() > small:
                    raise np.linalg.LinAlgError(diagnose(matrix, shift)) from None
                singular = True
            if singular:
                if strict:
                    raise Singular
                return self._least_norm(matrix, shift, Y)
        assert factor is not None
        answer = _corrected(factor, matrix, shift, Y, tol, watch)
        self.last = factor
        return answer

    def _least_norm(self, matrix: KernelMatrix, shift: np.ndarray, Y: np.ndarray) -> Answer:
        if matrix.n > _EIGEN_POINTS:
            raise np.linalg.LinAlgError(diagnose(matrix, shift))
        vectors, values = truncated(matrix, shift, self._matrix(matrix.n, np.float64))
        A = vectors @ ((vectors.T @ Y) / values[:, None])
        rest = Y - matrix(A) - shift[:, None] * A
        A += vectors @ ((vectors.T @ rest) / values[:, None])
        KA = matrix(A)
        residual = np.linalg.norm(Y - KA - shift[:, None] * A, axis=0) / np.maximum(np.linalg.norm(Y, axis=0), 1e-300)
        return Answer(A, residual, product=KA)

    def _matrix(self, m: int, dtype: Any) -> np.ndarray:
        """Return an m x m matrix in memory that is kept from one equation to the next: fresh memory is dear."""
        size = m * m * np.dtype(dtype).itemsize
        if self._memory is None or self._memory.nbytes < size:
            self._memory = None
            text = f"the factor of a {m} x {m} matrix"
            self.gram.budget.require(size, text, "choose method='cg', or raise the budget.")
            self._memory = np.empty(size, np.uint8)
        return self._memory[:size].view(dtype).reshape(m, m)


def _same(rows: np.ndarray | None, others: np.ndarray | None) -> bool:
    return rows is others or (rows is not None and others is not None and np.array_equal(rows, others))


def _corrected(
    factor: Factor, matrix: KernelMatrix, shift: np.ndarray, Y: np.ndarray, tol: np.ndarray, watch: Watch
) -> Answer:
    """Solve with a factor, and remove what rounding has left: the factor is an almost perfect preconditioner."""
    course = Refinement(factor.solve(Y), np.full(Y.shape[1], np.inf), 1, single=False)
    S = np.broadcast_to(shift[:, None], Y.shape)
    try:
        stopped = refine(matrix, S, Y, course, tol, lambda _: lambda V, _: factor.solve(V), watch)
    except Indefinite:
        stopped = Stop.rounding("the residual falls no further")
    if stopped.startswith(Stop.ROUNDING) and factor.values.dtype == np.float32:
        stopped = "slow"
    return course.answer(S, Y, stopped)


def cholesky(M: np.ndarray) -> bool:
    """Replace the lower triangle of a matrix by that of its Cholesky factor; return whether there is one.

    Of many points by blocks of columns: slower than LAPACK in one call, and unlike it open to an interruption.

    Parameters
    ----------
    M
        n x n, float32 or float64; what is above its diagonal blocks is not looked at.
    """
    n, (potrf, trsm) = len(M), _BY_BLOCK[M.dtype]
    if n <= _LAPACK_POINTS:
        L, failed = potrf(M, lower=1, overwrite_a=1, clean=0)
        if not np.shares_memory(L, M):
            M[:] = L
        return not failed
    for j in range(0, n, _BLOCK):
        here, below = slice(j, min(j + _BLOCK, n)), slice(min(j + _BLOCK, n), n)
        if j:
            M[j:, here] -= M[j:, :j] @ M[here, :j].T
        L, failed = potrf(M[here, here], lower=1, clean=1)
        if failed:
            return False
        M[here, here] = L
        if below.start < n:
            M[below, here] = trsm(1.0, L, M[below, here], side=1, lower=1, trans_a=1)
    return True


def inverse_of_factor(L: np.ndarray) -> None:
    """Replace the lower triangle of a Cholesky factor in float64 by that of its own inverse, by blocks.

    Parameters
    ----------
    L
        As `cholesky` leaves it.
    """
    n = len(L)
    blocks = [slice(j, min(j + _BLOCK, n)) for j in range(0, n, _BLOCK)]
    for at, here in reversed(list(enumerate(blocks))):
        own = np.tril(lapack.dtrtri(L[here, here], lower=1)[0])
        for row in reversed(blocks[at + 1 :]):
            between = slice(here.stop, row.start)
            L[row, here] = -(L[row, row] @ L[row, here] + L[row, between] @ L[between, here]) @ own
        L[here, here] = own


def inverse_of_product(L: np.ndarray) -> None:
    """Replace the lower triangle of a Cholesky factor in float64 by that of the inverse of L L', by blocks.

    Parameters
    ----------
    L
        As `cholesky` leaves it.
    """
    n = len(L)
    if n <= _LAPACK_POINTS:
        inverse, _ = lapack.dpotri(L, lower=1, overwrite_c=1)
        if not np.shares_memory(inverse, L):
            L[:] = inverse
        return
    inverse_of_factor(L)
    for i in range(0, n, _BLOCK):
        here = slice(i, min(i + _BLOCK, n))
        L[here, : here.stop] = L[i:, here].T @ L[i:, : here.stop]


def factorise(matrix: KernelMatrix, shift: np.ndarray, buffer: np.ndarray) -> Factor:
    """Return the Cholesky factor of K + diag(shift), computed in place.

    Parameters
    ----------
    matrix
        K.
    shift
        One number per point.
    buffer
        n x n, float32 or float64; it becomes the factor.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where there is none.
    """
    matrix.dense(buffer)
    buffer.flat[:: len(buffer) + 1] += shift
    norm = float(lapack.dlange("1", buffer.T)) if buffer.dtype == np.float64 else 0.0
    if not cholesky(buffer.T):
        raise np.linalg.LinAlgError(f"K + shift has no Cholesky factor in {buffer.dtype}.")
    return Factor(buffer.T, norm)


def rounding(matrix: KernelMatrix) -> float:
    """Return how large an eigenvalue rounding errors alone can make, or unmake."""
    diagonal = np.abs(matrix.diagonal())
    return float(np.finfo(np.float64).eps * max(diagonal.sum(), len(diagonal) * 1e-300))


def truncated(matrix: KernelMatrix, shift: np.ndarray, buffer: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvectors and eigenvalues of K + diag(shift) that are more than rounding.

    They give the solution of least norm among all that leave the smallest residual.
    """
    matrix.dense(buffer)
    buffer.flat[:: len(buffer) + 1] += shift
    values, vectors, floor = eigenpairs(buffer)
    kept = values > floor
    return vectors[:, kept], values[kept]


def eigenpairs(M: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return eigenvalues and eigenvectors of a symmetric matrix, and what is rounding of the former; M is overwritten.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where an eigenvalue is negative beyond rounding.
    """
    values, vectors = eigh(M.T, lower=True, overwrite_a=True, check_finite=False, driver="evd")
    floor = 10.0 * np.finfo(np.float64).eps * len(values) * max(float(np.abs(values).max()), 1e-300)
    if values[0] < -1e3 * floor:
        raise np.linalg.LinAlgError(_not_positive(float(values[0]), float(values[-1])))
    return values, vectors, floor


def diagnose(matrix: KernelMatrix, shift: np.ndarray) -> str:
    """Return, in a sentence, why K + diag(shift) is not positive definite."""
    ends = lanczos(lambda v: matrix(v[:, None])[:, 0] + shift * v, matrix.n, steps=min(matrix.n, 40))
    if ends.smallest < -1e3 * rounding(matrix):
        return _not_positive(ends.smallest, ends.largest)
    first = equal_rows(matrix)
    again = np.flatnonzero(first != np.arange(matrix.n)) if first is not None else np.empty(0, np.intp)
    why = "the kernel has less than full rank on these points"
    if first is not None and again.size:
        why += f", of which {first[again[0]]} and {again[0]} are equal"
    return (
        f"K + shift is singular to rounding (eigenvalues up to {ends.largest:.2g}, shift {float(shift.min()):.2g}): "
        f"{why}. Raise alpha to {1e3 * rounding(matrix):.1g} or more, or drop repeated points."
    )


def _not_positive(smallest: float, largest: float) -> str:
    """Return the sentence for a matrix with a negative eigenvalue."""
    return (
        f"K + shift is not positive semidefinite: it has an eigenvalue of about {smallest:.3g} (the largest is "
        f"{largest:.3g}), so the kernel is none on these points. Raise alpha by more than {-smallest:.3g}, or repair "
        "the kernel (mercer.repair)."
    )


def equal_rows(matrix: KernelMatrix) -> np.ndarray | None:
    """Return for each point the number of the first one that is equal to it; None where points cannot be compared."""
    points = matrix.points(False)
    if not points.numeric or not isinstance(points.vectors, np.ndarray):
        return None
    _, first, inverse = np.unique(points.vectors, axis=0, return_index=True, return_inverse=True)
    return np.asarray(first[inverse.ravel()])
