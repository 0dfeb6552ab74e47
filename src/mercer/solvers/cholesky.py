"""Dense factors of K + diag(shift), and what to do where it is singular."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, lapack

from mercer.gram.lanczos import lanczos
from mercer.solvers.products import Products

_POTRF = {np.dtype(np.float32): lapack.spotrf, np.dtype(np.float64): lapack.dpotrf}
_POTRS = {np.dtype(np.float32): lapack.spotrs, np.dtype(np.float64): lapack.dpotrs}


@dataclass
class Factor:
    """The Cholesky factor of K + diag(shift) + lift I.

    Attributes
    ----------
    values
        n x n, column by column; one triangle holds the factor.
    lift
        What was added to the diagonal so that rounding errors leave it positive; mostly 0.
    norm
        The largest sum of absolute values in a column of the matrix.
    """

    values: np.ndarray
    lift: float = 0.0
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


def factorise(products: Products, shift: np.ndarray, buffer: np.ndarray, lifts: tuple[float, ...] = (0.0,)) -> Factor:
    """Return the Cholesky factor of K + diag(shift), computed in place.

    Parameters
    ----------
    products
        K.
    shift
        One number per point.
    buffer
        n x n, float32 or float64; it becomes the factor.
    lifts
        What to add to the diagonal, one after the other, until the factor exists.

    Raises
    ------
    numpy.linalg.LinAlgError
        When none of the lifts suffices.
    """
    for lift in lifts:
        products.dense(buffer)
        buffer.flat[:: len(buffer) + 1] += shift + lift
        norm = float(lapack.dlange("1", buffer.T)) if buffer.dtype == np.float64 else 0.0
        values, failed = _POTRF[buffer.dtype](buffer.T, lower=1, overwrite_a=1, clean=0)
        if not failed:
            return Factor(values, lift, norm)
    raise np.linalg.LinAlgError(f"K + shift has no Cholesky factor in {buffer.dtype}.")


def rounding(products: Products) -> float:
    """Return how large an eigenvalue rounding errors alone can make, or unmake."""
    diagonal = np.abs(products.diagonal())
    return float(np.finfo(np.float64).eps * max(diagonal.sum(), len(diagonal) * 1e-300))


def truncated(products: Products, shift: np.ndarray, buffer: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvectors and eigenvalues of K + diag(shift) that are more than rounding.

    They give the solution of least norm among all that leave the smallest residual.
    """
    products.dense(buffer)
    buffer.flat[:: len(buffer) + 1] += shift
    values, vectors = eigh(buffer.T, lower=True, overwrite_a=True, check_finite=False, driver="evd")
    floor = 10.0 * np.finfo(np.float64).eps * len(values) * max(float(np.abs(values).max()), 1e-300)
    if values[0] < -1e3 * floor:
        raise np.linalg.LinAlgError(not_positive(float(values[0]), float(values[-1])))
    kept = values > floor
    return vectors[:, kept], values[kept]


def diagnose(products: Products, shift: np.ndarray) -> str:
    """Return, in a sentence, why K + diag(shift) is not positive definite."""
    ends = lanczos(lambda v: products(v[:, None])[:, 0] + shift * v, products.n, steps=min(products.n, 40))
    if ends.smallest < -1e3 * rounding(products):
        return not_positive(ends.smallest, ends.largest)
    first = equal_rows(products)
    again = np.flatnonzero(first != np.arange(products.n)) if first is not None else np.empty(0, np.intp)
    why = "the kernel has less than full rank on these points"
    if first is not None and again.size:
        why += f", of which {first[again[0]]} and {again[0]} are equal"
    return (
        f"K + shift is singular to rounding (eigenvalues up to {ends.largest:.2g}, shift {float(shift.min()):.2g}): "
        f"{why}. Raise alpha to {1e3 * rounding(products):.1g} or more, or drop repeated points."
    )


def not_positive(smallest: float, largest: float) -> str:
    """Return the sentence for a matrix with a negative eigenvalue."""
    return (
        f"K + shift is not positive semidefinite: it has an eigenvalue of about {smallest:.3g} (the largest is "
        f"{largest:.3g}), so the kernel is none on these points. Raise alpha by more than {-smallest:.3g}, or repair "
        "the kernel (mercer.repair)."
    )


def equal_rows(products: Products) -> np.ndarray | None:
    """Return for each point the number of the first one that is equal to it; None where points cannot be compared."""
    points = products.points(False)
    if not points.numeric or not isinstance(points.vectors, np.ndarray):
        return None
    _, first, inverse = np.unique(points.vectors, axis=0, return_index=True, return_inverse=True)
    return np.asarray(first[inverse.ravel()])
