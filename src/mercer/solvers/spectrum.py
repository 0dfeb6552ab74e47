"""A whole path of ridge problems, and what each predicts of points it has not seen, from one eigendecomposition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.linalg import eigh, qr, solve, svd

from mercer.gram import Gram
from mercer.solvers.control import check_vector
from mercer.solvers.pivoted import Pivoted
from mercer.solvers.products import Products, one_thread_each

_ROWS = 256  # points whose errors are computed at a time
_TRY = 1_000  # points from which on it is tried whether a few eigenvectors suffice
_SHARE = 4  # the rank of such a try is at most n over this
_NEGLIGIBLE = 1e-7  # of the least alpha: a rest of K, in trace, that changes nothing


class Spectrum:
    r"""Eigenvectors and eigenvalues of the weighted kernel matrix, from which every alpha is cheap.

    .. math:: W^{1/2} K W^{1/2} = U \Lambda U^T, \qquad
              (K + \alpha W^{-1})^{-1} = W^{1/2} U (\Lambda + \alpha)^{-1} U^T W^{1/2}

    With C the inverse (with an offset: the upper left block of the inverse of the bordered system) and a = C y, the
    errors at points F that are left out together are exactly those of a fit to the others,

    .. math:: y_F - f_{-F}(x_F) = (C_{FF})^{-1} a_F.

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
    values : ndarray
        The eigenvalues that are kept, in ascending order.
    floor : float
        Smaller alphas are replaced by this: beside it eigenvalues are rounding errors.
    plan : str
        What was decomposed, and how.

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

    values: np.ndarray
    vectors: np.ndarray

    def __init__(
        self, gram: Gram, least: float = 0.0, weights: np.ndarray | None = None, intercept: bool = False
    ) -> None:
        self.gram, self.intercept = gram, intercept
        n = gram.shape[0]
        self.w = np.ones(n) if weights is None else check_vector("weights", weights, n)
        if not ((self.w > 0) & np.isfinite(self.w)).all():
            raise ValueError(f"weights must be positive and finite; the least is {self.w.min():g}. Drop such points.")
        self._root = np.sqrt(self.w)[:, None]
        products = Products(gram)
        self.complete = not self._few(products, least)
        if self.complete:
            self._all(products)
        top = float(np.abs(self.values).max(initial=0.0))
        self.floor = max(10 * n * np.finfo(float).eps * top, np.finfo(float).tiny * 1e10)
        if self.values.min(initial=0.0) < -1e3 * self.floor:
            raise np.linalg.LinAlgError(
                f"the kernel matrix has an eigenvalue of {self.values.min():.3g} (the largest is {top:.3g}): the "
                "kernel is not positive semidefinite on these points. Repair it (mercer.repair)."
            )
        self.values = self.values.clip(min=0.0)

    def _all(self, products: Products) -> None:
        n = products.n
        self.gram.budget.require(
            3 * 8 * n * n,
            f"an eigendecomposition of the {n} x {n} matrix",
            "raise the budget, or choose alpha by folds of separate fits.",
        )
        K = products.dense(np.empty((n, n)))
        K *= self._root
        K *= self._root.T
        # Divide and conquer: on kernel matrices most of its work is deflated.
        self.values, self.vectors = eigh(K.T, lower=True, overwrite_a=True, check_finite=False, driver="evd")
        self.plan = f"eigendecomposition of the {n} x {n} matrix in float64"

    def _few(self, products: Products, least: float) -> bool:
        """Find the eigenvectors by a low-rank factor where what it leaves of K is nothing beside alpha."""
        n = products.n
        if n < _TRY or not least > 0:
            return False
        goal = _NEGLIGIBLE * least / float(self.w.max())
        with one_thread_each():
            pivoted = Pivoted(products, n // _SHARE, single=False)
            while pivoted.trace > goal and not pivoted.exhausted:
                before, r = pivoted.trace, max(1, pivoted.rank)
                pivoted.grow(min(max(64, r // 2), 512))
                # The rest falls faster and faster where this will succeed at all.
                rate = np.log(max(before, 1e-300) / max(pivoted.trace, 1e-300)) / max(1, pivoted.rank - r)
                if r >= 256 and np.log(max(pivoted.trace, 1e-300) / goal) > 3.0 * rate * (pivoted.most - pivoted.rank):
                    return False
            if pivoted.trace > goal:
                return False
        Q, T = qr(pivoted.R.T * self._root, mode="economic", check_finite=False)
        left, values, _ = svd(T, full_matrices=False, check_finite=False)
        self.values, self.vectors = values[::-1] ** 2, Q @ left[:, ::-1]
        self.plan = (
            f"eigendecomposition by a factor of rank {pivoted.rank} of the {n} x {n} matrix, which leaves nothing"
        )
        return True

    # -- the inverse ------------------------------------------------------------------------------------

    def _inverse(self, alphas: Sequence[float] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the eigenvalues (r, number of alphas) of the inverse beyond a multiple of I, and that multiple."""
        alpha = np.maximum(np.asarray(alphas, dtype=np.float64), self.floor)
        sums = self.values[:, None] + alpha
        if self.complete:
            return 1.0 / sums, np.zeros(len(alpha))
        return -self.values[:, None] / (alpha * sums), 1.0 / alpha

    def _rotated(self, Y: np.ndarray) -> np.ndarray:
        return np.asarray(self.vectors.T @ (self._root * Y))

    def solve(self, Y: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients (n, m) and the offsets (m,) for one alpha."""
        Y = self._columns(Y)
        B = np.hstack([Y, np.ones((len(Y), 1))]) if self.intercept else Y
        D, base = self._inverse([alpha])
        A = self._root * (self.vectors @ (D * self._rotated(B)) + base * self._root * B)
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
        for rows, a, diagonal in self._parts(self._columns(Y), alphas):
            yield rows, a / diagonal[:, :, None]

    def _parts(
        self, Y: np.ndarray, alphas: Sequence[float] | np.ndarray
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield rows, their coefficients (alphas, rows, outputs) and the diagonal of C (alphas, rows)."""
        n, m = Y.shape
        D, base = self._inverse(alphas)
        B = np.hstack([Y, np.ones((n, 1))]) if self.intercept else Y
        rotated = self._rotated(B)
        k = len(base)
        # One matrix product for all alphas and outputs.
        scaled = (D[:, :, None] * rotated[:, None, :]).reshape(len(D), -1)
        if self.intercept:
            ones = B[:, -1:] * self._root
            inner = np.einsum("ja,jm,j->am", D, rotated, rotated[:, -1]) + base[:, None] * ((self._root * B).T @ ones).T
        for i in range(0, n, _ROWS):
            rows = slice(i, min(i + _ROWS, n))
            U, root = self.vectors[rows], self._root[rows]
            A = (U @ scaled).reshape(len(U), k, -1) + base[:, None] * (root * B[rows])[:, None, :]
            A *= root[:, :, None]
            diagonal = (np.square(U) @ D + base) * root**2
            if self.intercept:
                g = A[:, :, -1]
                A = A[:, :, :m] - g[:, :, None] * (inner[:, :m] / inner[:, m:])
                diagonal = diagonal - g**2 / inner[:, m]
            yield rows, A.transpose(1, 0, 2), diagonal.T

    def leave_fold_out(
        self, Y: np.ndarray, alphas: Sequence[float] | np.ndarray, folds: Sequence[np.ndarray]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield, for each fold, its points and the errors (alphas, points, outputs) of fits to all others."""
        Y = self._columns(Y)
        m = Y.shape[1]
        D, base = self._inverse(alphas)
        B = np.hstack([Y, np.ones((len(Y), 1))]) if self.intercept else Y
        rotated, scaled = self._rotated(B), self._root * B
        if self.intercept:
            inner = np.einsum("ja,jm,j->am", D, rotated, rotated[:, -1]) + base[:, None] * (scaled.T @ scaled[:, -1])
        for fold in folds:
            U, root = self.vectors[fold], self._root[fold]
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
