"""Every shift of a matrix at the price of one: its tridiagonal form."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal, lapack

from mercer import _core
from mercer.points.threads import cores, run

_ROWS = 256  # of the orthogonal matrix, worked on at a time


class Tridiagonal:
    r"""Q and T with M = Q T Q', and what the inverses of M + alpha have on their diagonals.

    .. math:: (M + \alpha)^{-1}_{ii} = q_i^T (T + \alpha)^{-1} q_i = |D^{-1/2} L^{-1} q_i|^2,
              \qquad T + \alpha = L D L^T

    L has one entry below its diagonal, so that an alpha costs a few operations for each entry of Q. Eigenvectors, which
    would give the same, take three times as long as Q.

    Parameters
    ----------
    M
        A positive semidefinite matrix in float64; overwritten.

    Attributes
    ----------
    least, largest : float
        Its extreme eigenvalues.

    Examples
    --------
    >>> import numpy as np
    >>> M = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
    >>> form = Tridiagonal(M.copy())
    >>> rows, values, diagonal = next(form.path(np.ones((3, 1)), np.array([1.0]))[0])
    >>> np.allclose(diagonal[:, 0], np.linalg.inv(M + np.eye(3)).diagonal())
    True
    >>> np.allclose(values[:, 0, 0], np.linalg.solve(M + np.eye(3), np.ones(3)))
    True
    """

    def __init__(self, M: np.ndarray) -> None:
        n = len(M)
        work = int(lapack.dsytrd_lwork(n, lower=1)[0])
        c, self.middle, beside, tau, _ = lapack.dsytrd(M.T, lower=1, lwork=work, overwrite_a=1)
        self.beside = beside[: n - 1]
        self.Q = np.zeros((n, n))
        self.Q[0, 0] = 1.0
        if n > 1:
            reflectors = np.asfortranarray(c[1:, :-1])
            del c
            work = int(lapack.dorgqr(reflectors, tau, lwork=-1)[1][0])
            self.Q[1:, 1:] = lapack.dorgqr(reflectors, tau, lwork=work, overwrite_a=1)[0]
        ends = [eigvalsh_tridiagonal(self.middle, self.beside, select="i", select_range=(k, k)) for k in {0, n - 1}]
        self.least, self.largest = float(min(ends)[0]), float(max(ends)[0])

    def path(
        self, B: np.ndarray, alphas: np.ndarray
    ) -> tuple[Iterator[tuple[slice, np.ndarray, np.ndarray]], np.ndarray]:
        """Return solutions and diagonals of the inverses for some rows at a time, and the inner products with the last.

        Parameters
        ----------
        B
            Right-hand sides (n, m).
        alphas
            The shifts, such that M + alpha is positive definite.

        Returns
        -------
        parts
            Of rows, (M + alpha)^-1 B (rows, alphas, m), and the diagonal of (M + alpha)^-1 (rows, alphas).
        inner
            B' (M + alpha)^-1 B[:, -1], (alphas, m).
        """
        n, k = len(B), len(alphas)
        shifts = np.full(-(-k // 8) * 8, alphas[-1])
        shifts[:k] = alphas
        below, inverse = self._factors(shifts)
        forward = np.empty((B.shape[1], n, len(shifts)))
        forward[:] = (B.T @ self.Q)[:, :, None]
        for i in range(1, n):
            forward[:, i] -= below[i] * forward[:, i - 1]
        right = forward * inverse
        inner = np.einsum("mia,ia->am", right[:, :, :k], forward[-1, :, :k])
        return self._parts(below, inverse, right, k), inner

    def _factors(self, shifts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the entries below the diagonal of L, in the row they belong to, and 1 / D: (n, shifts)."""
        below, inverse = np.zeros((len(self.middle), len(shifts))), np.empty((len(self.middle), len(shifts)))
        inverse[0] = 1.0 / (self.middle[0] + shifts)
        for i, beside in enumerate(self.beside, 1):
            below[i] = beside * inverse[i - 1]
            inverse[i] = 1.0 / (self.middle[i] + shifts - beside * below[i])
        return below, inverse

    def _parts(
        self, below: np.ndarray, inverse: np.ndarray, right: np.ndarray, k: int
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        n, (m, _, wide) = len(self.Q), right.shape

        def part(rows: slice) -> tuple[slice, np.ndarray, np.ndarray]:
            q = self.Q[rows]
            squares, values = np.empty((len(q), wide)), np.empty((m, len(q), wide))
            _core.resolvent(below, inverse, right, q, squares, values)
            return rows, values[:, :, :k].transpose(1, 2, 0), squares[:, :k]

        step = _ROWS * cores()
        for start in range(0, n, step):
            yield from run(part, [slice(i, min(i + _ROWS, n)) for i in range(start, min(start + step, n), _ROWS)])
