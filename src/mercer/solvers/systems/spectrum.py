"""A whole path of ridge problems, and what each predicts of points it has not seen, from one decomposition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.linalg import eigh, eigvalsh_tridiagonal, lapack, qr, solve, svd

from mercer import _core
from mercer.gram import Gram
from mercer.gram.factor import PivotedCholesky
from mercer.gram.matrix import KernelMatrix
from mercer.machine.threads import cores, one_thread_each, run
from mercer.solvers.control import check_vector
from mercer.solvers.systems.cholesky import rounding
from mercer.solvers.systems.feature_space import FeatureSpace

_ROWS_AT_ONCE = 256  # points whose errors are computed together
_LOW_RANK_POINTS = 1_000  # points from which on it is tried whether a few eigenvectors suffice
_POINTS_PER_RANK = 4  # points for each eigenvector of such a try at least
_NEGLIGIBLE = 1e-7  # of the least alpha: a rest of K, in trace, that changes nothing
_PART = 256  # of the orthogonal matrix, worked on at a time


class Spectrum:
    r"""The weighted kernel matrix in a form from which every alpha is cheap.

    .. math:: W^{1/2} K W^{1/2} = U \Lambda U^T, \qquad
              (K + \alpha W^{-1})^{-1} = W^{1/2} U (\Lambda + \alpha)^{-1} U^T W^{1/2}

    C is the inverse, with an offset the upper left block of the inverse of the bordered system, and a = C y. When
    points F are left out together, the errors of a fit to the others at F are exactly

    .. math:: y_F - f_{-F}(x_F) = (C_{FF})^{-1} a_F.

    Leaving out one point at a time takes the diagonal of C only, for which a tridiagonal form will do; folds take the
    eigenvectors.

    Parameters
    ----------
    gram
        The kernel matrix of the training points.
    least
        The smallest alpha that will be asked for. Eigenvectors that change nothing beside it are not computed.
    weights
        One positive number per point; None for ones.
    intercept
        Whether the model has a free offset.

    Attributes
    ----------
    floor : float
        Smaller alphas are replaced by this: beside it eigenvalues are rounding errors. Not where the kernel has a
        feature map with few features, which show what its matrix cannot.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, Gram
    >>> X = np.linspace(0, 1, 30)[:, None]
    >>> spectrum = Spectrum(Gram(RBF(scale=0.2), X), least=1e-3)
    >>> errors = np.concatenate([e for _, e in spectrum.leave_one_out(np.sin(9 * X), [1e-3, 1.0])], axis=1)
    >>> (errors**2).mean(axis=(1, 2)).round(4)
    array([0.0001, 0.0573])
    """

    def __init__(
        self, gram: Gram, least: float = 0.0, weights: np.ndarray | None = None, intercept: bool = False
    ) -> None:
        self.gram, self.intercept = gram, intercept
        n = gram.shape[0]
        self.w = np.ones(n) if weights is None else check_vector("weights", weights, n)
        if not ((self.w > 0) & np.isfinite(self.w)).all():
            raise ValueError(f"weights must be positive and finite; the least is {self.w.min():g}. Drop such points.")
        self._root = np.sqrt(self.w)[:, None]
        self._matrix = KernelMatrix(gram)
        self._eigen: tuple[np.ndarray, np.ndarray] | None = None
        self._form: Tridiagonal | None = None
        self._space: FeatureSpace | None = None
        if least <= 1e3 * rounding(self._matrix):
            self._space = FeatureSpace.of_features(gram, self.w, intercept)
        self.complete = self._space is not None or not self._by_low_rank(self._matrix, least)
        self._check(self._eigen[0][[0, -1]] if self._eigen else None)

    def _check(self, ends: np.ndarray | None) -> None:
        """Take note of the extreme eigenvalues, once they are known."""
        if ends is None:
            return
        least, top = float(ends.min()), float(np.abs(ends).max())
        self.floor = max(10 * len(self.w) * np.finfo(float).eps * top, np.finfo(float).tiny * 1e10)
        if least < -1e3 * self.floor:
            raise np.linalg.LinAlgError(
                f"the kernel matrix has an eigenvalue of {least:.3g} (the largest is {top:.3g}): the "
                "kernel is not positive semidefinite on these points. Repair it (mercer.repair)."
            )

    def _weighted(self) -> np.ndarray:
        n = self._matrix.n
        self.gram.budget.require(
            3 * 8 * n * n,
            f"a decomposition of the {n} x {n} matrix",
            "raise the budget, or choose alpha by folds of separate fits.",
        )
        K = self._matrix.dense(np.empty((n, n)))
        K *= self._root
        K *= self._root.T
        return K

    @property
    def eigen(self) -> tuple[np.ndarray, np.ndarray]:
        """The eigenvalues that are kept, in ascending order, and their vectors."""
        if self._eigen is None:
            # Divide and conquer: on kernel matrices most of its work is deflated.
            values, vectors = eigh(self._weighted().T, lower=True, overwrite_a=True, check_finite=False, driver="evd")
            self._check(values[[0, -1]])
            self._eigen = values.clip(min=0.0), vectors
        return self._eigen

    @property
    def form(self) -> Tridiagonal:
        """The tridiagonal form."""
        if self._form is None:
            self._form = Tridiagonal(self._weighted())
            self._check(np.array([self._form.least, self._form.largest]))
        return self._form

    def _by_low_rank(self, matrix: KernelMatrix, least: float) -> bool:
        """Find the eigenvectors by a low-rank factor, if it leaves nothing of K that counts beside alpha."""
        n = matrix.n
        room = int(self.gram.budget // (3 * 8 * n))  # for its rows, an orthonormal basis, and the vectors
        most = min(n // _POINTS_PER_RANK, room)
        if n < _LOW_RANK_POINTS or not least > 0 or not most:
            return False
        goal = _NEGLIGIBLE * least / float(self.w.max())
        with one_thread_each():
            factor = PivotedCholesky(matrix, most)
            while factor.trace > goal and not factor.exhausted:
                before, r = factor.trace, max(1, factor.rank)
                factor.grow(min(max(64, r // 2), 512))
                # The rest falls faster and faster where this will succeed at all.
                rate = np.log(max(before, 1e-300) / max(factor.trace, 1e-300)) / max(1, factor.rank - r)
                if r >= 256 and np.log(max(factor.trace, 1e-300) / goal) > 3.0 * rate * (factor.most - factor.rank):
                    return False
            if factor.trace > goal:
                return False
        Q, T = qr(factor.R.T * self._root, mode="economic", check_finite=False)
        left, values, _ = svd(T, full_matrices=False, check_finite=False)
        self._eigen = values[::-1] ** 2, Q @ left[:, ::-1]
        return True

    # -- the inverse ------------------------------------------------------------------------------------

    def _inverse(self, alphas: Sequence[float] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the eigenvalues (r, number of alphas) of the inverse beyond a multiple of I, and that multiple."""
        values = self.eigen[0][:, None]
        alpha = self._raised(alphas)
        if self.complete:
            return 1.0 / (values + alpha), np.zeros(len(alpha))
        return -values / (alpha * (values + alpha)), 1.0 / alpha

    def _raised(self, alphas: Sequence[float] | np.ndarray) -> np.ndarray:
        return np.maximum(np.asarray(alphas, dtype=np.float64), self.floor)

    def _rotated(self, Y: np.ndarray) -> np.ndarray:
        return np.asarray(self.eigen[1].T @ (self._root * Y))

    def solve(self, Y: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients (n, m) and the offsets (m,) for one alpha."""
        Y = self._columns(Y)
        B = np.hstack([Y, np.ones((len(Y), 1))]) if self.intercept else Y
        D, base = self._inverse([alpha])
        A = self._root * (self.eigen[1] @ (D * self._rotated(B)) + base * self._root * B)
        if not self.intercept:
            return A, np.zeros(Y.shape[1])
        b = A[:, :-1].sum(axis=0) / A[:, -1].sum()
        return A[:, :-1] - A[:, -1:] * b, b

    def _columns(self, Y: np.ndarray) -> np.ndarray:
        Y = np.asarray(Y, dtype=np.float64)
        return Y.reshape(len(Y), -1)

    # -- errors at points left out ----------------------------------------------------------------------

    def leave_one_out(self, Y: np.ndarray, alphas: Sequence[float] | np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield, for some points at a time, the errors (alphas, points, outputs) of fits to all other points."""
        Y = self._columns(Y)
        if self._space is not None:
            yield slice(0, len(Y)), np.array([self._space.leave_one_out(Y, float(alpha)) for alpha in alphas])
            return
        for rows, a, diagonal in self._parts(Y, alphas):
            yield rows, a / diagonal[:, :, None]

    def _parts(
        self, Y: np.ndarray, alphas: Sequence[float] | np.ndarray
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield rows, their coefficients (alphas, rows, outputs) and the diagonal of C (alphas, rows)."""
        m = Y.shape[1]
        B = np.hstack([Y, np.ones((len(Y), 1))]) if self.intercept else Y
        if self.complete and self._eigen is None:
            parts, inner = self.form.path(self._root * B, self._raised(alphas))
        else:
            parts, inner = self._by_vectors(B, alphas)
        for rows, A, diagonal in parts:
            root = self._root[rows]
            A, diagonal = A * root[:, :, None], diagonal * root**2
            if self.intercept:
                g = A[:, :, -1]
                A = A[:, :, :m] - g[:, :, None] * (inner[:, :m] / inner[:, m:])
                diagonal = diagonal - g**2 / inner[:, m]
            yield rows, A.transpose(1, 0, 2), diagonal.T

    def _by_vectors(
        self, B: np.ndarray, alphas: Sequence[float] | np.ndarray
    ) -> tuple[Iterator[tuple[slice, np.ndarray, np.ndarray]], np.ndarray]:
        """Return what `Tridiagonal.path` does, by the eigenvectors."""
        D, base = self._inverse(alphas)
        rotated, weighted = self._rotated(B), self._root * B
        inner = np.einsum("ja,jm,j->am", D, rotated, rotated[:, -1]) + base[:, None] * (weighted.T @ weighted[:, -1])
        # One matrix product for all alphas and outputs.
        scaled = (D[:, :, None] * rotated[:, None, :]).reshape(len(D), -1)

        def parts() -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
            for i in range(0, len(B), _ROWS_AT_ONCE):
                rows = slice(i, min(i + _ROWS_AT_ONCE, len(B)))
                U = self.eigen[1][rows]
                A = (U @ scaled).reshape(len(U), len(base), -1) + base[:, None] * weighted[rows][:, None, :]
                yield rows, A, np.square(U) @ D + base

        return parts(), inner

    def leave_fold_out(
        self, Y: np.ndarray, alphas: Sequence[float] | np.ndarray, folds: Sequence[np.ndarray]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield, for each fold, its points and the errors (alphas, points, outputs) of fits to all others."""
        Y = self._columns(Y)
        m = Y.shape[1]
        if self._space is not None:
            for fold in folds:
                yield fold, np.array([self._space.leave_fold_out(Y, float(alpha), fold) for alpha in alphas])
            return
        D, base = self._inverse(alphas)
        B = np.hstack([Y, np.ones((len(Y), 1))]) if self.intercept else Y
        rotated, scaled = self._rotated(B), self._root * B
        if self.intercept:
            inner = np.einsum("ja,jm,j->am", D, rotated, rotated[:, -1]) + base[:, None] * (scaled.T @ scaled[:, -1])
        for fold in folds:
            U, root = self.eigen[1][fold], self._root[fold]
            errors = np.empty((len(base), len(U), m))
            for j, d in enumerate(D.T):
                A = root * (U @ (d[:, None] * rotated) + base[j] * scaled[fold])
                half = U * np.sqrt(np.abs(d))
                C = half @ half.T if self.complete else base[j] * np.eye(len(U)) - half @ half.T
                C *= root
                C *= root.T
                if self.intercept:
                    g = A[:, m:]
                    A = A[:, :m] - g * (inner[j, :m] / inner[j, m])
                    C -= g @ g.T / inner[j, m]
                errors[j] = solve(C, A, assume_a="sym", check_finite=False, overwrite_a=True)
            yield fold, errors


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

        step = _PART * cores()
        for start in range(0, n, step):
            yield from run(
                part,
                [slice(i, min(i + _PART, n)) for i in range(start, min(start + step, n), _PART)],
            )
