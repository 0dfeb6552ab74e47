"""Factors R of a positive semidefinite matrix: R'R = K, or as much of it as some rows can hold."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh


def eigen_factor(K: np.ndarray) -> np.ndarray:
    """Return R = D^(1/2) U' for K = U D U', without the rows whose eigenvalue is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> R = eigen_factor(np.array([[4.0, 2.0], [2.0, 1.0]]))
    >>> (R.T @ R).round(12)
    array([[4., 2.],
           [2., 1.]])
    """
    values, U = eigh(K, driver="evd")  # to a few eps where the default gives hundreds
    kept = values > 0
    return (U[:, kept] * np.sqrt(values[kept])).T


def partial_cholesky(diag: np.ndarray, column: Callable[[int], np.ndarray], rank: int, seed: int = 0) -> np.ndarray:
    """Return at most `rank` rows of a Cholesky factor with random pivots, from as many columns of K.

    .. math:: R^T R = K_{:S} K_{SS}^{-1} K_{S:}

    Each pivot of S is drawn with the diagonal of K - R'R as its probabilities, which comes close to the best
    approximation of that rank without ever looking at all of K (Chen, Epperly, Tropp and Webber 2023).

    Parameters
    ----------
    diag
        The diagonal of K.
    column
        Returns the column of K with a given index.
    rank
        The most rows to return; fewer when nothing but rounding is left of the diagonal.
    seed
        Of the pivots.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((100, 3))
    >>> K = X @ X.T
    >>> R = partial_cholesky(np.diag(K), lambda i: K[:, i], rank=10)
    >>> len(R), bool(np.allclose(R.T @ R, K))
    (3, True)
    """
    rng = np.random.default_rng(seed)
    rounding = len(diag) * np.finfo(float).eps
    R = np.zeros((rank, len(diag)))
    left = diag.clip(min=0)
    enough = rounding * left.sum()
    done = 0
    while done < rank and left.sum() > enough:
        s = int(rng.choice(len(left), p=left / left.sum()))
        rest = column(s) - R[:done, s] @ R[:done]
        if rest[s] > rounding * diag[s]:  # what is smaller is no direction, only noise to divide by
            R[done] = rest / np.sqrt(rest[s])
            left = (left - R[done] ** 2).clip(min=0)
            done += 1
        left[s] = 0
    return R[:done]
