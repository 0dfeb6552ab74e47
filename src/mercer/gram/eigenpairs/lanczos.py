"""The ends of a spectrum from matrix-vector products, with what they leave unknown."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh_tridiagonal

CONFIDENCE = 0.99


@dataclass(frozen=True, eq=False)
class Ends:
    """What some steps of Lanczos' method say about the ends of the spectrum of a symmetric matrix.

    Attributes
    ----------
    smallest, largest : float
        The extreme Ritz values. Each is a Rayleigh quotient, so the smallest eigenvalue is at most `smallest` and
        the largest at least `largest`.
    vector : ndarray
        The unit vector whose Rayleigh quotient is `smallest`.
    steps : int
        The dimension of the Krylov space.
    exhausted : bool
        Whether that space is invariant: further products would bring nothing new.
    floor : float
        No eigenvalue is below this, with probability 0.99 over the random start.
    """

    smallest: float
    largest: float
    vector: np.ndarray
    steps: int
    exhausted: bool
    floor: float


def lanczos(
    product: Callable[[np.ndarray], np.ndarray],
    n: int,
    steps: int = 60,
    seed: int = 0,
    negative: float = math.inf,
) -> Ends:
    r"""Return the ends of the spectrum of an n x n symmetric matrix, from at most `steps` products.

    .. math:: T = Q^T K Q, \qquad \operatorname{span} Q = \{q, Kq, \dots, K^{k-1}q\}

    The number of steps is fixed beforehand rather than run to convergence: the small end of a spectrum that decays
    to zero is never reached, and a bound that holds for every matrix says how far it may be.

    Parameters
    ----------
    product
        Returns the matrix times a vector.
    n
        The size of the matrix.
    steps
        The most products to take.
    seed
        Of the random start.
    negative
        Stop early at a Ritz value below -`negative` times the largest |Ritz value| that is an eigenvalue to 1%.

    Examples
    --------
    >>> import numpy as np
    >>> K = np.diag(np.linspace(-1, 5, 500))
    >>> ends = lanczos(lambda v: K @ v, 500)
    >>> round(ends.smallest, 2), round(ends.largest, 2), ends.floor < -1 <= ends.smallest
    (-1.0, 5.0, True)
    """
    steps = min(steps, n)
    q = np.random.default_rng(seed).standard_normal(n)
    q /= np.linalg.norm(q)
    basis = np.empty((steps, n))
    alpha, beta = np.empty(steps), np.empty(steps)
    for j in range(steps):
        basis[j] = q
        w = product(q)
        alpha[j] = q @ w
        for _ in range(2):  # twice is enough (Kahan and Parlett 1976)
            w = w - (basis[: j + 1] @ w) @ basis[: j + 1]
        beta[j] = np.linalg.norm(w)
        values, vectors = eigh_tridiagonal(alpha[: j + 1], beta[:j])
        low, high = float(values[0]), float(values[-1])
        size = max(abs(low), abs(high))
        exhausted = bool(beta[j] <= n * np.finfo(float).eps * size)
        refuted = low < -negative * size and beta[j] * abs(vectors[-1, 0]) <= 0.01 * abs(low)
        if exhausted or refuted or j + 1 == steps:
            break
        q = w / beta[j]
    vector = vectors[:, 0] @ basis[: j + 1]
    # A space left by less than beta is the invariant space of a matrix that differs by no more than beta.
    floor = low - float(beta[j]) if exhausted else _floor(low, high, n, j + 1, 1 if j + 1 == steps else steps)
    return Ends(low, high, vector / np.linalg.norm(vector), j + 1, exhausted, floor)


def _floor(low: float, high: float, n: int, steps: int, chances: int) -> float:
    """Return what the smallest eigenvalue exceeds with probability `CONFIDENCE`.

    For a start uniform on the sphere, Lanczos misses the end of a spectrum of width w by more than eps w with
    probability at most 1.648 sqrt(n) exp(-sqrt(eps) (2 steps - 1)), whatever the gaps (Kuczynski and Wozniakowski
    1992, theorem 4.2, applied to K - min and max - K). Both ends within eps w: w <= (high - low) / (1 - 2 eps).
    The chance to fail is shared by both ends, by full and early stops, and by the steps that could be the last.
    """
    eps = (math.log(4 * chances * 1.648 * math.sqrt(n) / (1 - CONFIDENCE)) / (2 * steps - 1)) ** 2
    return low - eps * (high - low) / (1 - 2 * eps) if eps < 0.5 else -math.inf
