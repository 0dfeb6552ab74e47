"""Positive semidefiniteness on the training points: without it there is no duality, and no minimum."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor

from mercer.certify.certificate import Certificate, without_duality
from mercer.certify.values import tiles
from mercer.gram import Gram
from mercer.gram.eigenpairs import lanczos
from mercer.gram.gram import in_double
from mercer.gram.similarities import precision, symmetric_part
from mercer.kernels import Kernel, Precomputed
from mercer.machine.threads import one_thread_each
from mercer.points import Points

_POINTS = 2_000  # whose matrix is looked at: a part of a second
_CALLED_POINTS = 500  # the same where a Python function gives the values


def seen_indefinite(gram: Gram, centred: bool = False) -> str:
    """Return a sentence on the negative eigenvalue that was seen; empty if none was.

    A kernel that is proven costs nothing; of any other up to 2,000 points are looked at (500 where a Python function
    gives the values), evenly spaced among all.

    Parameters
    ----------
    gram
        The kernel matrix of the points.
    centred
        Whether only sums of coefficients that add up to 0 count, as after centring in feature space.

    Examples
    --------
    >>> from mercer import RBF, Gram, Sigmoid
    >>> seen_indefinite(Gram(RBF(1.0), [[0.0], [1.0]]))
    ''
    >>> seen_indefinite(Gram(Sigmoid(1.0, -1.0), [[0.0], [1.0]]))
    'the kernel is not positive semidefinite on these points (eigenvalue -1.23)'
    """
    if gram.kernel.proof().proven:
        return ""
    chosen = _evenly(gram.kernel, gram.left)
    with one_thread_each():  # for matrices of this size the threads of BLAS take longer to find one another
        K = symmetric_part(np.asarray(Gram(gram.kernel, chosen).dense(), dtype=np.float64))
        low = _negative(K, _rounding(gram.kernel, chosen), centred)
    return _sentence(low, len(chosen), len(gram.left)) if low < 0 else ""


def with_duality(gram: Gram, claims: list[Certificate], rows: list[np.ndarray | None]) -> list[Certificate]:
    """Return the claims of a fit, less duality where the kernel is not positive semidefinite on a problem's points.

    Parameters
    ----------
    gram
        The kernel matrix of the training points.
    claims
        A certificate for each problem.
    rows
        Which points take part in each; None for all.
    """
    if not (why := seen_indefinite(gram)):
        return claims
    return [
        without_duality(claim, why if part is None else seen_indefinite(Gram(gram.kernel, gram.left.take(part))))
        for claim, part in zip(claims, rows, strict=True)
    ]


def why_indefinite(kernel: Kernel, X: Any) -> str:
    """Return what `seen_indefinite` does, from array operations alone: for the independent checks."""
    if kernel.proof().proven:
        return ""
    points = Points.of(X)
    kernel = kernel.resolve(points)
    chosen = _evenly(kernel, points)
    K = np.concatenate([values for _, values in tiles(kernel, chosen)])
    spectrum = np.linalg.eigvalsh(symmetric_part(K))
    low, size = float(spectrum[0]), float(np.abs(spectrum).max())
    return _sentence(low, len(chosen), len(points)) if low < -_rounding(kernel, chosen) * size else ""


def _negative(H: np.ndarray, rounding: float, centred: bool) -> float:
    """Return the least eigenvalue of a symmetric matrix, to 1%; 0 if it is above -`rounding` times the largest."""
    n = len(H)
    size = float(max(np.linalg.norm(H), np.linalg.norm(H.sum(axis=0))) / n**0.5)  # at most the largest |eigenvalue|
    if centred:
        mean = H.mean(axis=0)
        H = H - mean - mean[:, None] + mean.mean()
    try:
        shifted = H.copy()
        shifted.flat[:: n + 1] += rounding * size
        cho_factor(shifted.T, lower=True, overwrite_a=True, check_finite=False)
        return 0.0
    except np.linalg.LinAlgError:
        ends = lanczos(lambda v: H @ v, n, negative=rounding)
    low, size = ends.smallest, max(size, -ends.smallest, ends.largest)
    if low >= -rounding * size:  # Lanczos need not see an eigenvalue near 0
        spectrum = np.linalg.eigvalsh(H)
        low, size = float(spectrum[0]), max(size, float(np.abs(spectrum).max()))
    return low if low < -rounding * size else 0.0


def _evenly(kernel: Kernel, points: Points) -> Points:
    """Return the points that are looked at, in double precision."""
    cheap = isinstance(kernel, Precomputed) or Gram(kernel, points).compiled
    most = _POINTS if cheap else _CALLED_POINTS
    if len(points) > most:
        points = points.take(np.linspace(0, len(points) - 1, most).astype(np.intp))
    return in_double(points)


def _rounding(kernel: Kernel, points: Points) -> float:
    """Return the size of eigenvalues that count as 0, relative to the largest: as for `verdict`."""
    return max(len(points), 100) * precision(Gram(kernel, points).dtype)


def _sentence(low: float, looked: int, n: int) -> str:
    where = "these points" if looked == n else f"{looked:,} of these points"
    return f"the kernel is not positive semidefinite on {where} (eigenvalue {low:.3g})"
