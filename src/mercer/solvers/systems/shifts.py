"""Linear systems that differ by a multiple of the identity: one Krylov space serves all of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Apply = Callable[[np.ndarray], np.ndarray]


def krylov(
    apply: Apply, B: np.ndarray, constants: np.ndarray, factors: np.ndarray, tol: float, steps: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Solve (c_k + d_k A_s) x = b_s for every k and every right-hand side s, by the method of Lanczos.

    .. math:: A V = V T + \beta v e^T, \qquad x_k = V (c_k + d_k T)^{-1} V^T b

    Each right-hand side has a matrix of its own; what they share is the pass over it in `apply`. Vectors are kept
    orthogonal by two projections, so that rounding makes no copies of eigenvalues.

    Parameters
    ----------
    apply
        Returns A_s v_s for the rows v_s of a matrix. Each A_s is symmetric.
    B
        The right-hand sides, one for each row.
    constants, factors
        c_k and d_k, such that every c_k + d_k A_s is positive definite.
    tol
        The residual to reach, relative to |b|.
    steps
        Products with A, at most.

    Returns
    -------
    X
        The solutions x, (s, k, n).
    AX
        A x, (s, k, n).
    residuals
        Relative to |b|, (s, k): where larger than tol, the steps were too few.

    Examples
    --------
    >>> import numpy as np
    >>> A, b = np.diag([1.0, 2.0, 3.0]), np.ones((1, 3))
    >>> X, _, residuals = krylov(lambda V: V @ A, b, np.array([0.0, 1.0]), np.ones(2), 1e-10, 3)
    >>> X[0].round(6)
    array([[1.      , 0.5     , 0.333333],
           [0.5     , 0.333333, 0.25    ]])
    """
    s, n = B.shape
    k = len(constants)
    norms = np.linalg.norm(B, axis=1)
    V = np.zeros((s, min(steps, n) + 1, n))
    V[:, 0] = B / np.where(norms > 0, norms, 1.0)[:, None]
    middle: list[np.ndarray] = []  # of T: (s,) for each step
    beside: list[np.ndarray] = []
    below: list[np.ndarray] = []  # of the factors of c + d T: (s, k) for each step
    pivots: list[np.ndarray] = []
    forward: list[np.ndarray] = []
    for j in range(min(steps, n)):
        w = apply(V[:, j])
        a = np.einsum("sn,sn->s", V[:, j], w)
        for _ in range(2):
            seen = V[:, : j + 1]
            w -= np.matmul(np.matmul(seen, w[:, :, None]).transpose(0, 2, 1), seen)[:, 0]
        b = np.linalg.norm(w, axis=1)
        b[b <= 1e-14 * (np.abs(a) + (beside[-1] if beside else 0.0))] = 0.0  # the space is complete
        ratio = factors * beside[-1][:, None] / pivots[-1] if j else np.zeros((s, k))
        pivot = constants + factors * a[:, None] - (ratio * factors * beside[-1][:, None] if j else 0.0)
        below.append(ratio)
        pivots.append(pivot)
        forward.append(-ratio * forward[-1] if j else np.broadcast_to(norms[:, None], (s, k)))
        middle.append(a)
        beside.append(b)
        V[:, j + 1] = w / np.where(b > 0, b, 1.0)[:, None]
        residuals = np.abs(factors) * b[:, None] * np.abs(forward[-1] / pivot)
        if (residuals <= tol * norms[:, None]).all():
            break
    m = len(middle)
    Z = np.empty((m, s, k))
    Z[-1] = forward[-1] / pivots[-1]
    for j in range(m - 2, -1, -1):
        Z[j] = forward[j] / pivots[j] - below[j + 1] * Z[j + 1]
    Z = Z.transpose(1, 2, 0)  # (s, k, m)
    X = np.matmul(Z, V[:, :m])
    T, off = np.array(middle).T[:, None, :], np.array(beside).T[:, None, :]
    TZ = T * Z
    TZ[:, :, 1:] += off[:, :, :-1] * Z[:, :, :-1]
    TZ[:, :, :-1] += off[:, :, :-1] * Z[:, :, 1:]
    AX = np.matmul(TZ, V[:, :m]) + (off[:, :, -1] * Z[:, :, -1])[:, :, None] * V[:, m][:, None, :]
    return X, AX, residuals / np.where(norms > 0, norms, 1.0)[:, None]
